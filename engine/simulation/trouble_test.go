package simulation

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// trouble begins or ends something that lasts.
func (w *world) trouble() {
	w.disturb()
	c := w.channels[w.draw.IntN(len(w.channels))]
	switch w.draw.IntN(4) {
	case 0, 1:
		c.away = !c.away && w.weather.fail[sending] > 0
		w.note("%s IS AWAY: %v", c.name, c.away)
	case 2:
		w.weather.full = !w.weather.full && w.weather.fail[writing] > 0
		w.note("THE DISK IS FULL: %v", w.weather.full)
	case 3:
		if p := people[w.draw.IntN(len(people))].Name; w.weather.fail[sending] > 0 {
			c.gone[p] = true
			w.note("%s HAS BLOCKED %s", p, c.name)
		}
	}
}

// restart stops or kills the daemon, or starts it.
func (w *world) restart() {
	switch {
	case w.life == nil:
		w.start()
	case w.draw.IntN(2) == 0:
		w.bury("killed where it stood")
	default:
		w.stop()
	}
	if w.life == nil {
		d := time.Duration(w.draw.IntN(90)) * time.Second
		if w.draw.IntN(3) == 0 {
			d = time.Duration(w.draw.IntN(1000)) * time.Millisecond
		}
		w.note("nobody starts it for %s", d)
		w.pass(d)
		if w.draw.IntN(4) > 0 {
			w.start()
		}
	}
}

// clocks sets the clock on the wall, or has the machine sleep.
func (w *world) clocks() {
	const year = 365 * 24 * time.Hour
	by := []time.Duration{time.Second, 10 * time.Second, time.Minute, time.Hour, 24 * time.Hour, 10 * year}[w.draw.IntN(6)]
	if w.weather.suspends && (!w.weather.jumps || w.draw.IntN(2) == 0) {
		if by > 24*time.Hour {
			by = 5 * time.Minute
		}
		w.note("THE MACHINE SLEEPS for %s", by)
		w.mu.Lock()
		w.ahead, w.aged = w.ahead+by, w.aged+by
		w.mu.Unlock()
		w.disturb()
		return
	}
	if w.draw.IntN(2) == 0 {
		by = -by
	}
	w.note("THE CLOCK IS SET by %s", by)
	if w.judge != nil {
		w.judge.set(by)
	}
	w.mu.Lock()
	w.ahead += by
	w.mu.Unlock()
	w.disturb()
}

// mend ends whatever is wrong.
func (w *world) mend() {
	w.weather = weather{}
	w.mu.Lock()
	for _, c := range w.channels {
		c.away = false
	}
	w.mu.Unlock()
	w.note("EVENING: all is mended")
	w.disturb()
	for w.life == nil {
		w.start()
	}
	w.command("EVERYTHING GOES ON", func(ctx context.Context, l *life) error {
		return l.Resume(ctx, connectors.Identity{Via: "cli", UID: 1, Operator: true})
	})
}

// command is what a person orders, which is done before anything else happens.
func (w *world) command(what string, do func(ctx context.Context, l *life) error) {
	l := w.life
	if l == nil {
		return
	}
	w.note("%s", what)
	over := false
	go func() {
		err := do(l.ctx, l)
		w.say("%s: %v", what, err)
		w.mu.Lock()
		over = true
		w.mu.Unlock()
	}()
	for w.settle(); w.life == l; w.pass(100 * time.Millisecond) {
		w.mu.Lock()
		done := over
		w.mu.Unlock()
		if done {
			return
		}
	}
}

// stopAll has sam stop everything, or go on.
func (w *world) stopAll() {
	sam := connectors.Identity{Via: "alpha", UID: permissions.NoUID, Address: "2"}
	if w.draw.IntN(2) == 0 {
		w.command("SAM STOPS EVERYTHING", func(ctx context.Context, l *life) error {
			_, err := l.StopAll(ctx, sam)
			return err
		})
		return
	}
	w.command("SAM LETS IT GO ON", func(ctx context.Context, l *life) error { return l.Resume(ctx, sam) })
}

// takeBack has fay take back an approval or a grant.
func (w *world) takeBack() {
	fay := connectors.Identity{Via: "cli", UID: 1}
	all, err := w.store.GrantsInForce(context.Background(), "", w.now(), "", 99)
	if err == nil && len(all) > 0 && w.draw.IntN(2) == 0 {
		g := all[w.draw.IntN(len(all))]
		w.command("FAY REVOKES what came of "+w.nameOf(g.Request), func(ctx context.Context, l *life) error {
			_, err := l.Revoke(ctx, fay, g.ID)
			return err
		})
		return
	}
	r, _, err := w.store.ByNumber(context.Background(), int64(1+w.draw.IntN(maxAskers)))
	if err == nil {
		w.command("FAY TAKES BACK "+w.nameOf(r.ID), func(ctx context.Context, l *life) error {
			_, err := l.Void(ctx, fay, string(r.ID))
			if err != nil { // an id is another one each time that the day is lived
				err = errors.New(strings.ReplaceAll(err.Error(), string(r.ID), w.nameOf(r.ID)))
			}
			return err
		})
	}
}
