package admin_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// TestLocksGoOverTheSocket: what a lock did, and who is locked, is told as it is.
func TestLocksGoOverTheSocket(t *testing.T) {
	socket := wiretest.Socket(t)
	serve(t, socket, &wholeEnv{&pairingEnv{Env: wiretest.NewEnv(t)}})
	c := newClient(t, socket, "")
	l, err := c.Lock(t.Context(), "sam", noonThen)
	if err != nil || l.Person != "sam" || !l.Locked || l.LockedBy != "fay" || !l.LockedAt.Equal(noonThen) ||
		len(l.Voided) != 1 || l.Voided[0].ID != "V" || len(l.Used) != 1 || l.Used[0].ID != "U" || len(l.Revoked) != 1 {
		t.Errorf("locked: %+v, %v", l, err)
	}
	if took, err := l.Revoked[0].Revoked(); err != nil || took.Grant.ID != "G" || len(took.Ran) != 1 || took.Ran[0].ID != "R" {
		t.Errorf("revoked: %+v, %v", took, err)
	}
	if l, err := c.Unlock(t.Context(), "sam"); err != nil || !l.Locked || len(l.Unlocking) != 1 {
		t.Errorf("by one of two: %+v, %v", l, err)
	}
	if l, err := newClient(t, socket, key).Unlock(t.Context(), "sam"); err != nil || l.Locked {
		t.Errorf("by the operator: %+v, %v", l, err)
	}
	if s, err := c.Status(t.Context()); err != nil || len(s.Locked) != 1 || s.Locked[0].Person != "sam" {
		t.Errorf("the status: %+v, %v", s.Locked, err)
	}
}

// shutting is an env at which fay is locked after a while.
type shutting struct {
	*wiretest.Env
	locked atomic.Bool
}

func (s *shutting) Who(id connectors.Identity) (string, error) {
	if s.locked.Load() {
		return "", permissions.LockedOut("fay")
	}
	return s.Env.Who(id)
}

// TestAnOpenInboxOfSomebodyWhoIsLocked ends with the next change, without sending it.
func TestAnOpenInboxOfSomebodyWhoIsLocked(t *testing.T) {
	t.Run("A8/an open inbox", func(t *testing.T) {
		socket, env := wiretest.Socket(t), &shutting{Env: wiretest.NewEnv(t)}
		serve(t, socket, env)
		put(t, env.Env, wiretest.Question("before"))
		told, ended := make(chan permissions.RequestView, 10), make(chan error, 1)
		go func() {
			ended <- newClient(t, socket, "").Inbox(context.Background(), func(s permissions.RequestView) error {
				told <- s
				return nil
			})
		}()
		<-told
		env.locked.Store(true)
		put(t, env.Env, wiretest.Question("after"))
		select {
		case err := <-ended:
			if !isRefusal(err, permissions.CodeLocked) {
				t.Errorf("it ends with %v", err)
			}
		case s := <-told:
			t.Errorf("it is told of %s", s.Request.Reason)
		case <-time.After(20 * time.Second):
			t.Error("it goes on")
		}
	})
}
