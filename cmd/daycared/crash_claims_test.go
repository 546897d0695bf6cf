package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/daycared/daycared/client"
	"github.com/daycared/daycared/permissions"
)

// claim is an outcome that somebody was told.
type claim struct {
	name, whom string
	state      permissions.State
}

// read returns a row, from the current daemon.
func (l *loop) read(id permissions.ID) (r permissions.Request, err error) {
	l.await("the row of "+string(id), func(ctx context.Context) error {
		var s permissions.RequestView
		s, err = l.people.Show(ctx, string(id))
		var refusal *permissions.Refusal
		if errors.As(err, &refusal) {
			return nil
		}
		r = s.Request
		return err
	})
	return r, err
}

// ask asks a named question across deaths of the daemon, and compares the agent's outcome with the row. The received request has
// no id if that was a violation. Each question asks for a separate folder below the tag, since what was denied twice is not
// asked again.
func (l *loop) ask(ctx context.Context, name, tag string) <-chan permissions.Request {
	told := make(chan permissions.Request, 1)
	wanted, err := permissions.ParseTag(tag + "/" + strings.ReplaceAll(name, " ", "-"))
	if err != nil {
		l.violated("%v", err)
	}
	q := permissions.Request{Kind: permissions.KindPermission, Tags: []permissions.Tag{wanted}, Reason: name, Key: name}
	go func() {
		defer close(told)
		for {
			s, err := l.agents.Put(ctx, q)
			r := s.Request
			if errors.Is(err, client.ErrUnreachable) && ctx.Err() == nil {
				continue // never connected: the daemon was dead
			}
			if err != nil {
				l.unanswered(name, r.ID, err)
				return
			}
			l.claimed(r.ID, claim{name: name, whom: "its agent", state: r.State})
			told <- r
			return
		}
	}()
	return told
}

// unanswered describes an unanswered question's row and the daemon's state.
func (l *loop) unanswered(name string, id permissions.ID, err error) {
	if l.ctx.Err() != nil {
		return
	}
	var r permissions.Request
	unread := errors.New("nobody was told of its row")
	if id != "" {
		r, unread = l.read(id)
	}
	log, _ := os.ReadFile(filepath.Join(l.dir, "log"))
	l.violated("%s (%s) is not answered: %v; it is %s, %v\n%s", name, id, err, r.State, unread, log[max(0, len(log)-4000):])
}

// ended checks that a question ended with the given answer.
func (l *loop) ended(name string, r permissions.Request, want permissions.State) {
	if r.ID != "" && r.State != want {
		l.violated("%s (%s) was to end %s and ended %s", name, r.ID, want, r.State)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
}

// claimed compares a claim with the row, and keeps it for the end.
func (l *loop) claimed(id permissions.ID, c claim) {
	l.mu.Lock()
	before, twice := l.stored[id]
	l.stored[id] = c
	l.mu.Unlock()
	if twice && before.state != c.state {
		l.violated("%s (%s): %s was told that it is %s, and %s that it is %s", c.name, id, before.whom, before.state, c.whom, c.state)
	}
	l.holds(id, c)
}

func (l *loop) holds(id permissions.ID, c claim) {
	r, err := l.read(id)
	switch {
	case err != nil:
		l.violated("%s (%s) is lost: %s was told that it is %s, and now: %v", c.name, id, c.whom, c.state, err)
	case l.ctx.Err() == nil && r.State != c.state:
		l.violated("%s (%s) is lost: %s was told that it is %s, and it is %s", c.name, id, c.whom, c.state, r.State)
	}
}

// audit reads the new audit entries: each request ends once.
func (l *loop) audit() {
	for l.ctx.Err() == nil {
		var entries []permissions.Entry
		l.await("the audit", func(ctx context.Context) (err error) {
			entries, err = l.people.Audit(ctx, l.seq, 0)
			return err
		})
		if len(entries) == 0 {
			return
		}
		for _, e := range entries {
			l.seq = e.Seq
			if e.Type == permissions.StoreRestored && !l.restored {
				l.violated("a death counts as a restore: %v", e.Detail)
			}
			if e.Type != permissions.RequestSettled {
				continue
			}
			if l.settled[e.Request] = append(l.settled[e.Request], e.Detail["state"]); len(l.settled[e.Request]) > 1 {
				l.violated("%s (%s) is applied twice: it was settled %s", l.stored[e.Request].name, e.Request,
					strings.Join(l.settled[e.Request], ", then "))
			}
		}
	}
}

// finish reads everything back.
func (l *loop) finish(crashes int) {
	l.t.Helper()
	l.audit()
	if _, err := l.people.Verify(l.ctx); err != nil {
		l.violated("the audit: %v", err)
	}
	for id, c := range l.stored {
		l.holds(id, c)
	}
	directed := 0
	for _, n := range l.deaths {
		directed += n
	}
	if directed < crashes/2 {
		l.violated("only %d of %d deaths were at a failpoint", directed, crashes)
	}
	if l.t.Failed() {
		l.t.FailNow()
	}
	l.t.Logf("%d kills, %d at a failpoint, %d questions, %d audit entries: "+
		"nothing lost, nothing doubled, nothing expired that was approved", crashes, directed, l.asked, l.seq)
}
