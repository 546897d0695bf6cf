package simulation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

const maxAskers = 4

// update is what somebody did in a chat, which their channel delivers until it is taken, and perhaps more often.
type update struct {
	channel  *channel
	person   string
	decision connectors.Decision
	request  permissions.ID
	left     int // deliveries to come
}

// live is the whole day: what goes wrong, and then the evening, on which everything is mended and has to come right.
func (w *world) live() {
	w.start()
	for range 14 + w.draw.IntN(26) {
		w.step()
	}
	w.mend()
	for len(w.updates) > 0 {
		w.deliver()
	}
	w.pass(2*most + 50*time.Second)
	if w.judge != nil {
		w.judge.evening()
	}
	for _, a := range w.askers {
		a.cancel()
	}
	w.stop()
	w.lasted = w.elapsed()
	<-time.After(time.Second) // until idle goroutines have ended
}

// step is one thing that happens.
func (w *world) step() {
	steps := []struct {
		weight int
		do     func()
	}{
		{3, w.ask}, {9, w.tap}, {8, w.deliver}, {4, w.moment}, {4, w.while}, {1, w.leave}, {1, w.cancel}, {1, w.trouble},
		{1, w.restart}, {1, w.takeBack},
	}
	if w.weather.stops {
		steps = append(steps, struct {
			weight int
			do     func()
		}{1, w.stopAll})
	}
	if w.weather.jumps || w.weather.suspends {
		steps = append(steps, struct {
			weight int
			do     func()
		}{2, w.clocks})
	}
	total := 0
	for _, s := range steps {
		total += s.weight
	}
	if w.life == nil && w.draw.IntN(2) == 0 {
		w.start()
	}
	n := w.draw.IntN(total)
	for _, s := range steps {
		if n -= s.weight; n < 0 {
			s.do()
			break
		}
	}
	w.pass(time.Millisecond)
}

func (w *world) moment() { w.pass(time.Duration(w.draw.IntN(2000)) * time.Millisecond) }

func (w *world) while() {
	d := time.Duration(w.draw.IntN(40)) * time.Second
	w.note("%s go by", d)
	w.pass(d)
}

// ask has a program ask something new, or what another asks already.
func (w *world) ask() {
	n := len(w.askers)
	if n == maxAskers {
		return
	}
	a := &asker{name: fmt.Sprintf("a%d", n+1), caller: permissions.CallerUID(1000 + w.draw.IntN(2))}
	if n > 0 && w.draw.IntN(3) == 0 {
		old := w.askers[w.draw.IntN(n)]
		a.caller, a.question, a.quorum, a.may = old.caller, old.question, old.quorum, old.may
		a.question.ID, a.question.Call = "", ""
	} else {
		w.question(a)
	}
	if w.draw.IntN(2) == 0 {
		a.question.Call = "call-" + a.name
	}
	if a.question.Call != "" && w.draw.IntN(3) == 0 {
		a.poll = time.Duration(1+w.draw.IntN(20)) * time.Second
	}
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	w.askers = append(w.askers, a)
	w.note("%s ASKS, %s, %s, key %q, %s", a.name, a.question.Kind, topic(a.question), a.question.Key, a.question.WantedTimeout)
	go a.run(ctx, w)
}

// question draws what is asked.
func (w *world) question(a *asker) {
	q := permissions.Request{Session: "s", WantedTimeout: time.Duration(5+w.draw.IntN(55)) * time.Second}
	a.quorum, a.may = 1, []string{"fay", "sam"}
	switch w.draw.IntN(5) {
	case 0:
		q.Kind, q.Tags, q.Reason = permissions.KindPermission, []permissions.Tag{permissions.Network}, a.name
	case 1:
		q.Kind, q.Tags, q.Reason = permissions.KindPermission, []permissions.Tag{workspace}, a.name
		a.quorum = 2
	case 2:
		q.Kind, q.Tool, q.Input, q.Reason = permissions.KindTool, "write_file", json.RawMessage(`{"path":"/srv/a"}`), a.name
		a.may = []string{"fay", "kim"}
	case 3:
		q.Kind, q.Mode, q.Message = permissions.KindPause, permissions.ModeConfirm, a.name
	case 4:
		q.Kind, q.Message, q.Choices = permissions.KindClarification, a.name, []string{"one", "two"}
	}
	switch w.draw.IntN(5) {
	case 0, 1:
		q.Key = "key-" + a.name
	case 2:
		q.ID = permissions.NewID(w.now())
	}
	a.question = q
}

// tap has somebody answer a card, mostly their own.
func (w *world) tap() {
	c := w.channels[w.draw.IntN(len(w.channels))]
	if len(c.cards) == 0 {
		return
	}
	shown := c.cards[w.draw.IntN(len(c.cards))]
	who := shown.person
	if w.draw.IntN(8) == 0 {
		who = []string{"fay", "sam", "kim", "a stranger"}[w.draw.IntN(4)]
	}
	options := shown.request.Options
	answer := options[w.draw.IntN(len(options))].ID
	if w.draw.IntN(2) == 0 {
		answer = options[0].ID
	}
	n := len(w.trace)
	u := &update{channel: c, person: who, request: shown.request.ID, left: 1 + w.draw.IntN(5)}
	u.decision = connectors.Decision{Answer: answer, From: identity(c, who), Key: fmt.Sprintf("%s:%d", c.name, n)}
	switch {
	case c.named:
		u.decision.Code = shown.code
	case c.bound:
		u.decision.Request, u.decision.Shown = shown.request.ID, shown.request.Digest
	default:
		u.decision.Button, u.decision.Ref = shown.button, shown.ref
	}
	w.updates = append(w.updates, u)
	w.note("%s ANSWERS %s to %s at %s, %s, to come %d times", who, answer, w.nameOf(u.request), c.name, u.decision.Key, u.left)
	if w.judge != nil {
		w.judge.pressed(u)
	}
}

// identity is how a channel proves somebody.
func identity(c *channel, who string) connectors.Identity {
	id := connectors.Identity{Via: c.name, UID: permissions.NoUID}
	i := slices.IndexFunc(people, func(p connectors.Person) bool { return p.Name == who })
	switch {
	case c.bound:
		id.Console = who == "fay"
	case i < 0:
		id.Address = "666"
	default:
		id.Address = cmp.Or(people[i].Addresses[c.name], "667")
	}
	return id
}

// deliver has a channel deliver one of the updates, in any order.
func (w *world) deliver() {
	if len(w.updates) == 0 {
		return
	}
	if w.life == nil {
		w.start()
		return
	}
	i := w.draw.IntN(len(w.updates))
	u := w.updates[i]
	if u.left--; u.left <= 0 {
		w.updates = slices.Delete(w.updates, i, i+1)
	}
	w.note("%s IS DELIVERED", u.decision.Key)
	w.delivered++
	l := w.life
	answered := false
	ctx := marked(l.ctx, fmt.Sprintf("%s (%d)", u.decision.Key, w.delivered))
	go func() {
		r, err := l.OnPermission(ctx, u.decision)
		w.mu.Lock()
		answered = true
		w.mu.Unlock()
		var refusal *permissions.Refusal
		lost := err != nil && (!errors.As(err, &refusal) || refusal.Code == permissions.CodeBroken)
		w.say("%s: %v", u.decision.Key, err)
		w.mu.Lock()
		if lost { // it is not acknowledged, and comes again
			u.left++
			if !slices.Contains(w.updates, u) {
				w.updates = append(w.updates, u)
			}
		}
		w.mu.Unlock()
		if w.judge != nil && err == nil {
			w.judge.acknowledged(u, r)
		}
	}()
	if w.draw.IntN(3) > 0 { // else others go on meanwhile
		for w.settle(); w.life == l; w.pass(100 * time.Millisecond) {
			w.mu.Lock()
			over := answered
			w.mu.Unlock()
			if over {
				break
			}
		}
	}
}

// leave has a program end without an answer.
func (w *world) leave() {
	if len(w.askers) == 0 {
		return
	}
	a := w.askers[w.draw.IntN(len(w.askers))]
	w.note("%s LEAVES", a.name)
	a.cancel()
}

// cancel has a program take its question back.
func (w *world) cancel() {
	if len(w.askers) == 0 || w.life == nil {
		return
	}
	a := w.askers[w.draw.IntN(len(w.askers))]
	all, err := w.store.Pending(context.Background(), "", "", 10)
	if err != nil {
		w.say("nothing can be cancelled: %v", err)
		return
	}
	for _, r := range all {
		if r.Caller.Name == a.caller.Name && topic(r) == topic(a.question) {
			w.note("%s CANCELS %s", a.name, w.nameOf(r.ID))
			if w.judge != nil {
				w.judge.cancelled(r.ID)
			}
			l := w.life
			go func() {
				_, err := l.Withdraw(l.ctx, a.caller, r.ID)
				w.say("%s cancelled %s: %v", a.name, w.nameOf(r.ID), err)
			}()
			return
		}
	}
}
