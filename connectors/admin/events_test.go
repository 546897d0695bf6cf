package admin_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

var errEnough = errors.New("enough")

// hear follows the events until handle has had enough.
func hear(t *testing.T, c *admin.Client, after int64, handle func(wire.Event) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := c.Events(ctx, after, handle); !errors.Is(err, errEnough) {
		t.Errorf("events: %v", err)
	}
}

// until collects events up to the first of that type about that request.
func until(heard *[]wire.Event, id permissions.ID, what permissions.Type) func(wire.Event) error {
	return func(e wire.Event) error {
		*heard = append(*heard, e)
		if e.Request != nil && *e.Request == id && e.Type == what {
			return errEnough
		}
		return nil
	}
}

func TestEventsTellWhatHappensInOrder(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	q := wiretest.Question("x")
	q.Session = "s1"
	r := put(t, env, q)
	env.Deliver(t, r.ID)
	deny(t, env, r.ID)
	var heard []wire.Event
	hear(t, newClient(t, socket, ""), 0, until(&heard, r.ID, permissions.RequestSettled))
	if len(heard) != 3 || heard[0].Type != permissions.RequestCreated || heard[1].Type != permissions.RequestShown ||
		heard[0].Seq >= heard[1].Seq || heard[1].Seq >= heard[2].Seq {
		t.Fatalf("heard %+v", heard)
	}
	last := heard[2]
	if *last.Session != "s1" || last.Payload["actor"] != "fay" || last.Payload["via"] != "telegram" ||
		last.Payload["state"] != "denied" || last.Payload["answer"] != "deny" || last.At.IsZero() {
		t.Errorf("heard %+v", last)
	}
}

func TestEventsAreThePersons(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	theirs := putAs(t, env, wiretest.OfSam, wiretest.Question("sam's"))
	mine := put(t, env, wiretest.Question("fay's"))
	if _, err := newClient(t, socket, "").StopAll(t.Context(), connectors.Identity{}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{key: 2, "": 1} {
		requests := map[permissions.ID]bool{}
		hear(t, newClient(t, socket, text), 0, func(e wire.Event) error {
			if e.Type == permissions.AllStopped {
				return errEnough
			}
			requests[*e.Request] = true
			return nil
		})
		if len(requests) != want || !requests[mine.ID] || requests[theirs.ID] != (text == key) {
			t.Errorf("key %q hears of %v", text, requests)
		}
	}
}

// begin opens the stream as any program may, and reads what it says up to a text.
func begin(t *testing.T, socket, query, last string) (read func(upTo string) string, status int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/v1/events"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	answer, err := wiretest.HTTP(t, socket).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	return func(upTo string) string {
		var text strings.Builder
		for b := make([]byte, 1); !strings.HasSuffix(text.String(), upTo); {
			if _, err := answer.Body.Read(b); err != nil {
				return text.String() + err.Error()
			}
			text.Write(b)
		}
		return text.String()
	}, answer.StatusCode
}

// A reader that resumes from a future event would miss everything up to it.
func TestAGroupThatNothingHasReachedIsRefused(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	c, handle := newClient(t, socket, ""), func(wire.Event) error { return errEnough }
	put(t, env, wiretest.Question("one")) // seq 1
	err := c.Events(t.Context(), 99, handle)
	if !isRefusal(err, permissions.CodeInvalid) || !strings.Contains(err.Error(), "the newest is seq 1;") {
		t.Errorf("after 99: %v", err)
	}
	env.Prune(t, 1)
	put(t, env, wiretest.Question("two"))
	hear(t, c, 1, handle)
}

func TestAnEventStreamBeginsWhereItIsTold(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	for n := range 20 {
		put(t, env, wiretest.Question(fmt.Sprint("before ", n))) // seq 1 to 20
	}
	for _, c := range []struct{ query, last, first string }{
		{"", "", "id: 20\n\n"}, // from now on, and where that is
		{"?after=-1", "", "id: 20\n\n"},
		{"?after=0", "", "id: 1\nevent: REQUEST_CREATED\ndata: {"},
		{"?after=17", "", "id: 18\nevent: REQUEST_CREATED\ndata: {"},
		{"", "0", "id: 1\n"},
		{"", "19", "id: 20\nevent: REQUEST_CREATED\n"},
		{"?after=3", "19", "id: 20\n"}, // a returning reader resumes where it was
		{"", "20", "id: 20\n\n"},
	} {
		read, status := begin(t, socket, c.query, c.last)
		if got := read(c.first); status != http.StatusOK || got != c.first {
			t.Errorf("%s %s begins %d %q, want %q", c.query, c.last, status, got, c.first)
		}
	}
	for _, query := range []string{"?after=x", "?after=-2", "?after=1.5", "?since=1"} {
		if status, text := wiretest.Do(t, wiretest.HTTP(t, socket), http.MethodGet, "/v1/events"+query, "", ""); status == 200 {
			t.Errorf("%s: %.100s", query, text)
		}
	}
	env.Prune(t, 7)
	for query, status := range map[string]int{"?after=6": 410, "?after=7": 200, "?after=0": 200, "": 200} {
		if _, got := begin(t, socket, query, ""); got != status {
			t.Errorf("%s after pruning: %d, want %d", query, got, status)
		}
	}
	read, _ := begin(t, socket, "", "3")
	if got := read("}"); !strings.Contains(got, `"code":"gone"`) || !strings.Contains(got, "before seq 8 is no longer kept") {
		t.Errorf("a place that is kept no more: %s", got)
	}
	if err := newClient(t, socket, "").Events(t.Context(), 3, nil); !isRefusal(err, permissions.CodeGone) {
		t.Errorf("the client says %v", err)
	}
}

// While requests are opened and settled, the daemon is started again and again: the reader hears everything once.
func TestEventsSurviveRestartsWithoutLossOrDoubles(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	_, stop := serve(t, socket, env)
	const restarts, each = 8, 40
	c := newClient(t, socket, "")
	back := make(chan struct{}, 100)
	c.Back = func() { back <- struct{}{} }
	heard, begun, done := []wire.Event{}, make(chan struct{}), make(chan error, 1)
	first := put(t, env, wiretest.Question("first"))
	go func() {
		done <- c.Events(t.Context(), 0, func(e wire.Event) error {
			if len(heard) == 0 {
				close(begun)
			}
			heard = append(heard, e)
			if *e.Request == first.ID && e.Type == permissions.RequestSettled {
				return errEnough
			}
			return nil
		})
	}()
	<-begun
	var ids []permissions.ID
	for round := range restarts {
		var restarted sync.WaitGroup
		restarted.Go(func() {
			stop()
			_, stop = serve(t, socket, env)
		})
		for n := range each {
			r := putAs(t, env, 10_000+round*each+n, wiretest.Question("x")) // one caller would soon be denied twice
			deny(t, env, r.ID)
			ids = append(ids, r.ID)
		}
		restarted.Wait()
		<-back
	}
	deny(t, env, first.ID)
	if err := <-done; !errors.Is(err, errEnough) {
		t.Errorf("events: %v", err)
	}
	settled := map[permissions.ID]int{}
	for i, e := range heard {
		if e.Type == permissions.RequestSettled {
			settled[*e.Request]++
		}
		if i > 0 && e.Seq != heard[i-1].Seq+1 {
			t.Fatalf("seq %d came after %d", e.Seq, heard[i-1].Seq)
		}
	}
	for _, id := range append(ids, first.ID) {
		if settled[id] != 1 {
			t.Errorf("the end of %s was told %d times", id, settled[id])
		}
	}
}

func TestANewEventReaderHearsOnlyWhatIsNew(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	old := put(t, env, wiretest.Question("old"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	heard, done := make(chan wire.Event, 10000), make(chan error, 1)
	c := newClient(t, socket, "")
	go func() {
		done <- c.Events(ctx, admin.FromNow, func(e wire.Event) error {
			heard <- e
			return nil
		})
	}()
	wiretest.Eventually(t, "something new is heard", func() bool {
		put(t, env, wiretest.Question(rand.Text()))
		return len(heard) > 0
	})
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("events: %v", err)
	}
	for len(heard) > 0 {
		if e := <-heard; *e.Request == old.ID {
			t.Errorf("heard %+v", e)
		}
	}
}

func TestEventsThatCannotBeFollowedEnd(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	c := newClient(t, socket, "")
	if err := c.Events(t.Context(), 0, nil); !errors.Is(err, admin.ErrUnreachable) {
		t.Errorf("no daemon: %v", err)
	}
	serve(t, socket, env)
	put(t, env, wiretest.Question("x"))
	hear(t, c, 0, func(wire.Event) error { return errEnough })
}

// TestAnEventStreamEndsAtTheFirstRefusal: what a look finds is streamed, and the first refusal ends it.
func TestAnEventStreamEndsAtTheFirstRefusal(t *testing.T) {
	env, held := wiretest.NewEnv(t), make(chan struct{})
	server := httptest.NewServer(admin.Events(func(*http.Request) admin.Look {
		return func(ctx context.Context, after int64, limit int) ([]permissions.Event, int64, error) {
			select {
			case <-held:
				return nil, after, permissions.NotHeld(permissions.Events)
			default:
				return env.Events(ctx, connectors.Identity{Operator: true}, after, limit)
			}
		}
	}, env.Changed))
	defer server.Close()
	get := func(after string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"?after="+after, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := (&http.Client{Timeout: 20 * time.Second}).Do(r) // a stream that goes on is an error
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		return answer
	}
	put(t, env, wiretest.Question("one"))
	stream := get("0")
	first := make([]byte, len("id: 1\nevent: REQUEST_CREATED\n"))
	if _, err := io.ReadFull(stream.Body, first); err != nil || string(first) != "id: 1\nevent: REQUEST_CREATED\n" ||
		stream.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("it begins %q, %v", first, err)
	}
	close(held)
	put(t, env, wiretest.Question("two"))
	if rest, err := io.ReadAll(stream.Body); err != nil || strings.Contains(string(rest), "two") {
		t.Errorf("it goes on: %q, %v", rest, err)
	}
	for after, status := range map[string]int{"0": http.StatusForbidden, "x": http.StatusUnprocessableEntity} {
		if got := get(after); got.StatusCode != status {
			t.Errorf("after %s: %d", after, got.StatusCode)
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}
