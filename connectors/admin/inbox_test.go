package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

func unmarshal(text string, v any) error { return json.Unmarshal([]byte(text), v) }

// opened is an inbox that runs until the test ends.
type opened struct {
	told chan permissions.RequestView
	seen map[permissions.ID]bool // by next
	lost chan error
	back chan struct{}
	stop func() error
}

func open(t *testing.T, c *admin.Client) *opened {
	t.Helper()
	o := &opened{
		seen: map[permissions.ID]bool{}, told: make(chan permissions.RequestView, 5000), lost: make(chan error, 10),
		back: make(chan struct{}, 10),
	}
	c.Lost = func(err error) { o.lost <- err }
	c.Back = func() { o.back <- struct{}{} }
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- c.Inbox(ctx, func(s permissions.RequestView) error {
			o.told <- s
			return nil
		})
	}()
	stopped := false
	o.stop = func() error {
		cancel()
		if stopped {
			return nil
		}
		stopped = true
		return <-done
	}
	t.Cleanup(func() {
		if err := o.stop(); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("inbox: %v", err)
		}
	})
	return o
}

// next is the next request that the inbox tells of. That somebody who asked has left, which is told after a while, is passed over.
func (o *opened) next(t *testing.T) permissions.RequestView {
	t.Helper()
	for {
		select {
		case s := <-o.told:
			if o.seen[s.Request.ID] && s.Request.State == permissions.Pending && !s.Request.LeftAt.IsZero() {
				continue
			}
			o.seen[s.Request.ID] = true
			return s
		case <-time.After(10 * time.Second):
			t.Fatal("the inbox tells nothing")
			return permissions.RequestView{}
		}
	}
}

// deny is fay's answer.
func deny(t *testing.T, env *wiretest.Env, id permissions.ID) {
	t.Helper()
	if _, err := env.Decide(id, permissions.Deny, ""); err != nil {
		t.Errorf("deny: %v", err)
	}
}

func TestAnInboxTellsWhatIsPendingThenWhatChanges(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	before := make([]permissions.Request, 250) // more than two pages
	for i := range before {
		before[i] = put(t, env, wiretest.Question(fmt.Sprint("before ", i)))
	}
	o := open(t, newClient(t, socket, ""))
	for _, r := range before {
		if s := o.next(t); s.Request.ID != r.ID || s.Code == "" || s.Request.State != permissions.Pending {
			t.Fatalf("told %+v, want %s", s, r.ID)
		}
	}
	after := put(t, env, wiretest.Question("after"))
	s := o.next(t)
	for s.Request.ID != after.ID { // what else became of one of the others
		if s.Request.State != permissions.Pending {
			t.Fatalf("told %s, want %s", s.Request.Reason, after.ID)
		}
		s = o.next(t)
	}
	deny(t, env, after.ID)
	for s = o.next(t); s.Request.State == permissions.Pending; { // the same
		s = o.next(t)
	}
	if s.Request.ID != after.ID || s.Request.State != permissions.Denied || s.Request.DecidedBy != "fay" {
		t.Errorf("told %+v", s.Request)
	}
}

func TestAnInboxIsItsPersons(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	o := open(t, newClient(t, socket, ""))
	operator := open(t, newClient(t, socket, key))

	theirs := putAs(t, env, wiretest.OfSam, wiretest.Question("sam's"))
	both := putAs(t, env, wiretest.OfBoth, wiretest.Question("both's"))
	if s := operator.next(t); s.Request.ID != theirs.ID {
		t.Errorf("the operator is told %s", s.Request.Reason)
	}
	if s := o.next(t); s.Request.ID != both.ID {
		t.Errorf("fay is told %s", s.Request.Reason)
	}
	if _, err := env.Cancel(t.Context(), connectors.Identity{Operator: true}, string(theirs.ID)); err != nil {
		t.Fatal(err)
	}
	last := put(t, env, wiretest.Question("fay's"))
	if s := o.next(t); s.Request.ID != last.ID {
		t.Errorf("fay is told of what is sam's: %s is %s", s.Request.Reason, s.Request.State)
	}
}

func TestAnInboxComesBackAfterARestart(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	_, stop := serve(t, socket, env)
	settled, stays := put(t, env, wiretest.Question("settled")), put(t, env, wiretest.Question("stays"))
	wiretest.Eventually(t, "their asker has left", func() bool {
		r, err := env.Store.Read(t.Context(), stays.ID)
		return err == nil && !r.LeftAt.IsZero()
	})
	o := open(t, newClient(t, socket, ""))
	o.next(t)
	o.next(t)
	if took := stop(); took > time.Second {
		t.Errorf("stopping with an inbox open took %s", took)
	}
	<-o.lost
	deny(t, env, settled.ID)
	fresh := put(t, env, wiretest.Question("fresh"))
	serve(t, socket, env)
	<-o.back
	states := map[permissions.ID]permissions.State{}
	for len(o.told) > 0 {
		s := <-o.told
		states[s.Request.ID] = s.Request.State
	}
	if states[settled.ID] != permissions.Denied || states[fresh.ID] != permissions.Pending {
		t.Errorf("told after the restart: %v", states)
	}
	if _, again := states[stays.ID]; again {
		t.Error("what did not change was told again")
	}
	if len(o.lost) != 0 {
		t.Errorf("lost is told %d times too often", len(o.lost))
	}
}

// A reader that falls behind is cut off, comes back, and ends with the newest state of everything.
func TestAnInboxThatLagsStartsAgain(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	q := wiretest.Question("x")
	q.Details = strings.Repeat("d", permissions.MaxDetails) // fills the socket soon
	r := put(t, env, q)

	c := newClient(t, socket, "")
	reading, told := make(chan struct{}), make(chan permissions.RequestView, 1000)
	lost := make(chan error, 10)
	c.Lost = func(err error) { lost <- err }
	settled := errors.New("settled")
	done := make(chan error, 1)
	go func() {
		done <- c.Inbox(context.Background(), func(s permissions.RequestView) error {
			<-reading
			told <- s
			if s.Request.State == permissions.Denied {
				return settled
			}
			return nil
		})
	}()
	wiretest.Eventually(t, "the inbox follows", func() bool { return len(env.Feeds()) == 1 })
	feed := env.Feeds()[0]
	for n := 0; !feed.Overflowed() && n < 1000; n++ { // until the stream, which nobody reads, is cut off
		more := wiretest.Question(fmt.Sprint(n))
		more.Details = strings.Repeat("d", 64<<10)
		put(t, env, more)
	}
	if !feed.Overflowed() {
		t.Fatal("a reader that does not read still follows")
	}
	close(reading)
	<-lost
	deny(t, env, r.ID)
	if err := <-done; !errors.Is(err, settled) {
		t.Errorf("inbox: %v", err)
	}
	var last permissions.RequestView
	for len(told) > 0 {
		last = <-told
	}
	if last.Request.State != permissions.Denied {
		t.Errorf("the last it was told: %v", last.Request.State)
	}
}

func TestAnInboxThatCannotFollowEnds(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	err := newClient(t, socket, "").Inbox(t.Context(), func(permissions.RequestView) error { return nil })
	if !errors.Is(err, admin.ErrUnreachable) {
		t.Errorf("no daemon: %v", err)
	}
	serve(t, socket, env)
	put(t, env, wiretest.Question("x"))
	enough := errors.New("enough")
	err = newClient(t, socket, "").Inbox(t.Context(), func(permissions.RequestView) error { return enough })
	if !errors.Is(err, enough) {
		t.Errorf("handle's error came as %v", err)
	}
}

// TestAnInboxIsNotUnreachableBeforeTheStart: what was shown in an inbox before a restart is not undeliverable for want of it, however
// early the daemon asks.
func TestAnInboxIsNotUnreachableBeforeTheStart(t *testing.T) {
	err := admin.New(admin.Options{}, nil).Reach(connectors.Person{Name: "fay"})
	if err == nil || errors.Is(err, connectors.ErrUnreachable) {
		t.Errorf("got %v", err)
	}
}
