package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire/wiretest"
	"github.com/daycared/daycared/permissions"
)

func TestAQuietInboxHasAHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*heartbeat+time.Second)
		defer cancel()
		w := httptest.NewRecorder()
		s := newStream(wiretest.NewDesk(), connectors.Identity{Operator: true}, "fay", w)
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
	desk := wiretest.NewDesk()
	ended, end := context.WithCancel(t.Context())
	end()
	r, _ := desk.Ask(ended, permissions.CallerUID(1), wiretest.Question("x"))
	for room := range 3 {
		w := &full{ResponseRecorder: httptest.ResponseRecorder{Body: new(bytes.Buffer)}, room: room}
		s := newStream(desk, connectors.Identity{Operator: true}, "fay", http.ResponseWriter(w))
		done := make(chan error, 1)
		go func() { done <- s.run(t.Context()) }()
		if room == 2 { // the row, the end of the rows, and no more
			wiretest.Eventually(t, "followed", func() bool { return len(desk.Feeds()) == 3 })
			_, _ = desk.Registry.Resolve(t.Context(), r.ID, permissions.Return{At: time.Now()})
		}
		if err := <-done; err == nil || err.Error() != "the reader has gone" {
			t.Errorf("room for %d: %v", room, err)
		}
	}
	broken := permissions.Broken("make room")
	desk.Fail(broken)
	s := newStream(desk, connectors.Identity{Operator: true}, "fay", httptest.NewRecorder())
	if err := s.run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("without a store: %v", err)
	}
	if err := s.changed(t.Context(), r); !errors.Is(err, broken) {
		t.Errorf("a change without a store: %v", err)
	}
}

func TestAStreamForgetsWhatIsSettledWhenThereIsMuch(t *testing.T) {
	s := newStream(wiretest.NewDesk(), connectors.Identity{}, "fay", httptest.NewRecorder())
	s.remember(permissions.Request{ID: "pending", State: permissions.Pending, Revision: 7})
	for n := range maxSeen {
		s.remember(permissions.Request{ID: permissions.ID(fmt.Sprint(n)), State: permissions.Denied})
	}
	if len(s.seen) > maxSeen || s.seen["pending"].revision != 7 {
		t.Errorf("%d remembered, pending at %d", len(s.seen), s.seen["pending"].revision)
	}
}
