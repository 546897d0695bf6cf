package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

func TestAQuietInboxHasAHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*heartbeat+time.Second)
		defer cancel()
		w := httptest.NewRecorder()
		s := newStream(wiretest.NewIdleEnv(t), connectors.Identity{Operator: true}, "fay", w)
		if err := s.run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ended with %v", err)
		}
		want := "event: synced\ndata: {}\n\n" + strings.Repeat(": still here\n\n", 3)
		if got := w.Body.String(); got != want || !w.Flushed {
			t.Errorf("wrote %q", got)
		}
	})
}

// full is a writer that takes so many writes and no more.
type full struct {
	httptest.ResponseRecorder
	room int
}

func (f *full) Write(b []byte) (int, error) {
	if f.room--; f.room < 0 {
		return 0, errors.New("the reader has gone")
	}
	return f.ResponseRecorder.Write(b)
}

func TestAStreamEndsWithItsReaderOrItsRows(t *testing.T) {
	env := wiretest.NewIdleEnv(t)
	ended, end := context.WithCancel(t.Context())
	end()
	r, _ := env.Ask(ended, permissions.CallerUID(1), wiretest.Question("x"))
	for room := range 3 {
		w := &full{ResponseRecorder: httptest.ResponseRecorder{Body: new(bytes.Buffer)}, room: room}
		s := newStream(env, connectors.Identity{Operator: true}, "fay", http.ResponseWriter(w))
		done := make(chan error, 1)
		go func() { done <- s.run(t.Context()) }()
		if room == 2 { // the row, the end of the rows, and no more
			wiretest.Eventually(t, "followed", func() bool { return len(env.Feeds()) == 3 })
			_, _ = env.Ask(ended, permissions.CallerUID(1), wiretest.Question("x")) // its caller comes back
		}
		if err := <-done; err == nil || err.Error() != "the reader has gone" {
			t.Errorf("room for %d: %v", room, err)
		}
	}
	broken := permissions.Broken("make room")
	env.Fail(broken)
	s := newStream(env, connectors.Identity{Operator: true}, "fay", httptest.NewRecorder())
	if err := s.run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("without a store: %v", err)
	}
	if err := s.changed(t.Context(), r); !errors.Is(err, broken) {
		t.Errorf("a change without a store: %v", err)
	}
}

// TestWhatWasTakenFromAPersonIsToldOnce: that they are not asked any more, and nothing that happens to it afterwards.
func TestWhatWasTakenFromAPersonIsToldOnce(t *testing.T) {
	env, w := wiretest.NewIdleEnv(t), httptest.NewRecorder()
	ended, end := context.WithCancel(t.Context())
	end()
	r, _ := env.Ask(ended, permissions.CallerUID(wiretest.OfBoth), wiretest.Question("x"))
	s := newStream(env, connectors.Identity{UID: os.Getuid()}, "fay", w)
	told := func() int {
		if err := s.changed(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		return strings.Count(w.Body.String(), "event: request\n")
	}
	if n := told(); n != 1 {
		t.Errorf("told %d times that it is asked", n)
	}
	r.Asked, r.Revision = []string{"sam"}, r.Revision+1
	if n := told(); n != 2 {
		t.Errorf("told %d times, with the loss", n)
	}
	r.State, r.Revision = permissions.Cancelled, r.Revision+1
	if n := told(); n != 2 {
		t.Errorf("told %d times, with what came after the loss", n)
	}
}

func TestAStreamForgetsWhatIsSettledWhenThereIsMuch(t *testing.T) {
	s := newStream(wiretest.NewIdleEnv(t), connectors.Identity{}, "fay", httptest.NewRecorder())
	s.remember(permissions.Request{ID: "pending", State: permissions.Pending, Revision: 7})
	for n := range maxSeen {
		s.remember(permissions.Request{ID: permissions.ID(fmt.Sprint(n)), State: permissions.Denied})
	}
	if len(s.seen) > maxSeen || s.seen["pending"].revision != 7 {
		t.Errorf("%d remembered, pending at %d", len(s.seen), s.seen["pending"].revision)
	}
}

// An inbox that opens when a request is due, and before its row says that it was sent, tells it: nobody will send it again.
func TestAnInboxThatOpensWhileARequestIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		env, c := wiretest.NewIdleEnv(t), New(Options{AdminReachable: true}, nil)
		waits := func(reason string, due time.Time) permissions.Request {
			r := wiretest.Question(reason)
			r.ID, r.Revision, r.State = permissions.NewID(time.Now()), 1, permissions.Pending
			r.CreatedAt, r.Deadline = time.Now(), time.Now().Add(time.Hour)
			r.Caller, r.Session, r.Asked, r.Quorum = permissions.CallerUID(1), string(r.ID), []string{"fay"}, 1
			r.Digest = permissions.ComputeDigest(r)
			r, _, err := env.Store.Open(ctx, permissions.Opening{
				Request: r, Copies: []permissions.Copy{{Request: r.ID, Person: "fay", Connector: Name, DueAt: due}},
			})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		sent, coming := waits("was sent", time.Now()), waits("is to come", time.Now().Add(time.Minute))
		if ref, err := c.Send(ctx, connectors.Prompt{Request: sent, To: connectors.Person{Name: "fay"}}); ref != refAdmin || err != nil {
			t.Fatalf("sent as %q, %v", ref, err)
		}
		w := httptest.NewRecorder()
		s := newStream(env, connectors.Identity{Operator: true}, "fay", w)
		var leave func()
		s.sent, leave = c.inboxes.enter("fay")
		defer leave()
		if err := s.run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ended with %v", err)
		}
		if told := w.Body.String(); !strings.Contains(told, string(sent.ID)) || strings.Contains(told, string(coming.ID)) {
			t.Errorf("told %s", told)
		}
	})
}
