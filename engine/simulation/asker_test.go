package simulation

import (
	"context"
	"errors"
	"time"

	"github.com/daycared/daycared/permissions"
)

// asker is somebody's program that asks once, and does not give up before it knows.
type asker struct {
	name     string
	caller   permissions.Caller
	question permissions.Request
	quorum   int
	may      []string      // who may decide it
	poll     time.Duration // how long it waits at a time; 0: until the end
	cancel   func()
	done     bool
	got      permissions.Request
	err      error
}

// run asks until there is an answer, or a refusal.
func (a *asker) run(ctx context.Context, w *world) {
	for ctx.Err() == nil {
		w.mu.Lock()
		l := w.life
		up := l != nil && l.up
		w.mu.Unlock()
		err := errDead
		var r permissions.Request
		if up {
			r, err = a.ask(ctx, l)
		}
		if a.knows(ctx, w, r, err) {
			return
		}
		wait := time.NewTimer(time.Second)
		select {
		case <-ctx.Done():
		case <-wait.C:
		}
		wait.Stop()
	}
	w.mu.Lock()
	a.done, a.err = true, ctx.Err()
	w.mu.Unlock()
}

// ask asks in one life of the daemon, which may end.
func (a *asker) ask(ctx context.Context, l *life) (permissions.Request, error) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	defer context.AfterFunc(l.ctx, done)()
	if a.poll > 0 {
		brief, end := context.WithTimeout(ctx, a.poll)
		defer end()
		ctx = brief
	}
	return l.Ask(marked(ctx, a.name), a.caller, a.question)
}

// knows notes what came back, and reports whether that is the end.
func (a *asker) knows(ctx context.Context, w *world, r permissions.Request, err error) bool {
	var refusal *permissions.Refusal
	errors.As(err, &refusal)
	again := refusal == nil && err != nil || refusal != nil &&
		refusal.Code == permissions.CodeBroken
	switch {
	case ctx.Err() != nil:
		return false
	case errors.Is(err, context.DeadlineExceeded):
		return false // still pending, and it is back in a moment
	case again:
		w.say("%s hears %v", a.name, err)
		return false
	}
	w.mu.Lock()
	a.done, a.got, a.err = true, r, err
	w.mu.Unlock()
	if err != nil {
		w.say("%s IS REFUSED: %v", a.name, err)
		return true
	}
	w.say("%s IS TOLD that %s is %s %s", a.name, w.nameOf(r.ID), r.State, r.Answer)
	if w.judge != nil {
		w.judge.told(a, r)
	}
	return true
}
