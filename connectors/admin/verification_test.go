package admin

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// slowCheck is an engine whose verification ends when release is closed.
type slowCheck struct {
	Operations
	release chan struct{}
	begun   int
	cut     bool
}

func (s *slowCheck) Verify(ctx context.Context, _ connectors.Identity, told ...func(done, all int64)) ([]permissions.Head, error) {
	s.begun++
	told[0](7, 9)
	select {
	case <-s.release:
		return []permissions.Head{{Entries: 9}}, nil
	case <-ctx.Done():
		s.cut = true
		return nil, ctx.Err()
	}
}

// No call lasts as long as a verification: those that ask again join it, and one that nobody asks about any more ends.
func TestALongVerificationTakesSeveralCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowCheck{release: make(chan struct{})}
		r := &routes{New(Options{}, slow), nil}
		asked := func(operator bool) ([]Head, error) {
			ctx := context.WithValue(t.Context(), identityKey{}, connectors.Identity{Operator: operator})
			return r.verify(ctx, nil)
		}
		if _, err := asked(false); permissions.AsRefusal(err) == nil {
			t.Errorf("somebody else got %v", err)
		}
		for range 3 {
			began := time.Now()
			_, err := asked(true)
			var p *wire.Problem
			if !errors.As(err, &p) || p.Code != wire.CodeVerifying || *p.Progress != (wire.Progress{Done: 7, All: 9}) ||
				time.Since(began) != verifyAnswers {
				t.Fatalf("%v after %s", err, time.Since(began))
			}
		}
		close(slow.release)
		if heads, err := asked(true); err != nil || len(heads) != 1 || heads[0].Entries != 9 || slow.begun != 1 {
			t.Errorf("%v %v, begun %d times", heads, err, slow.begun)
		}

		slow.release = make(chan struct{})
		_, _ = asked(true)
		<-time.After(verifyForgets + time.Second)
		synctest.Wait()
		if !slow.cut || slow.begun != 2 || r.checks.one != nil {
			t.Errorf("cut off: %v, begun %d times", slow.cut, slow.begun)
		}

		slow.cut = false
		_, _ = asked(true)
		r.checks.stop()
		if !slow.cut || r.checks.one != nil {
			t.Error("it goes on after the end of the door")
		}
	})
}
