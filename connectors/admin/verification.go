package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

const (
	// verifyAnswers is how long a call waits for the end of a verification before it says how far that is.
	verifyAnswers = time.Second
	// verifyForgets is how long a verification goes on, or its result is kept, after the last call.
	verifyForgets = time.Minute
)

// verifications are those of the whole audit, one at a time. It goes on between calls, so that no call takes as long as it does; calls
// of others join it.
type verifications struct {
	mu  sync.Mutex
	one *verification // nil: none
}

type verification struct {
	cancel    context.CancelFunc
	ended     chan struct{}
	heads     []permissions.Head
	err       error
	forget    *time.Timer
	done, all atomic.Int64
}

// join returns the verification that runs, or a new one.
func (v *verifications) join(ctx context.Context, verify func(context.Context, *verification) ([]permissions.Head, error)) *verification {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.one != nil && v.one.forget.Reset(verifyForgets) {
		return v.one
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	one := &verification{cancel: cancel, ended: make(chan struct{})}
	one.forget = time.AfterFunc(verifyForgets, func() {
		cancel()
		v.remove(one)
	})
	v.one = one
	go func() {
		defer close(one.ended)
		one.heads, one.err = verify(ctx, one)
	}()
	return one
}

// remove makes the next call begin anew.
func (v *verifications) remove(one *verification) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.one == one {
		v.one = nil
	}
	one.forget.Stop()
}

// stop ends the one that runs, and returns when it has ended.
func (v *verifications) stop() {
	v.mu.Lock()
	one := v.one
	v.mu.Unlock()
	if one != nil {
		one.cancel()
		v.remove(one)
		<-one.ended
	}
}

func (r *routes) verify(ctx context.Context, _ *struct{}) ([]Head, error) {
	if !who(ctx).Operator {
		return nil, permissions.OperatorOnly()
	}
	one := r.checks.join(ctx, func(ctx context.Context, one *verification) ([]permissions.Head, error) {
		return r.engine.Verify(ctx, who(ctx), func(done, all int64) {
			one.all.Store(all)
			one.done.Store(done)
		})
	})
	wait := time.NewTimer(verifyAnswers)
	defer wait.Stop()
	select {
	case <-one.ended:
		r.checks.remove(one)
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-wait.C:
		p := wire.Progress{Done: one.done.Load(), All: one.all.Load()}
		problem := wire.NewProblem(http.StatusAccepted, wire.CodeVerifying,
			fmt.Sprintf("%d of %d entries and requests are verified so far; ask again to learn more", p.Done, p.All))
		problem.Progress = &p
		return nil, problem
	}
	switch err := one.err; {
	case err == nil:
		return wire.Map(one.heads, func(h permissions.Head) Head {
			return Head{FromEntry(h.Entry), h.First, h.Entries, h.Unkeyed}
		}), nil
	case permissions.AsRefusal(err) != nil, errors.Is(err, permissions.ErrBroken), errors.Is(err, context.Canceled):
		return nil, err
	}
	return nil, wire.NewProblem(http.StatusConflict, wire.CodeChain, one.err.Error())
}
