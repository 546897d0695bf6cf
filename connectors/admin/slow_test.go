package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/internal/server"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// operators is an env at which everybody is the operator: the peer of a pipe is unknown.
type operators struct{ *wiretest.Env }

func (o operators) Who(connectors.Identity) (string, error) { return "fay", nil }

func (o operators) Events(
	ctx context.Context, _ connectors.Identity, after int64, limit int,
) ([]permissions.Event, int64, error) {
	return o.Env.Events(ctx, connectors.Identity{Operator: true}, after, limit)
}

// A reader that does not read is cut off by the write deadline; it comes back with the last seq that it has, and misses
// nothing.
func TestASlowReaderOfEventsIsCutOffAndResyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := operators{wiretest.NewIdleEnv(t)}
		door := server.New("test", env.Ready, wiretest.Quiet)
		(&routes{New(Options{}, env), door}).register()
		l := wiretest.NewPipes()
		server := &http.Server{Handler: door.Handler(server.Listener{}), ReadHeaderTimeout: time.Second}
		go func() { _ = server.Serve(l) }()

		ended, end := context.WithCancel(t.Context())
		end()
		const events = 200
		for n := range events {
			_, _ = env.Ask(ended, permissions.CallerUID(1), wiretest.Question(fmt.Sprint(n)))
		}
		last, told := "0", 0
		for connections := 0; told < events; connections++ {
			near := l.Dial()
			_, _ = io.WriteString(near, "GET /v1/events HTTP/1.1\r\nHost: daycared\r\nLast-Event-ID: "+last+"\r\n\r\n")
			text := make([]byte, 16<<10)
			n, _ := io.ReadFull(near, text) // and then nothing is read any more
			began := time.Now()
			<-time.After(eventWithin + time.Second)
			synctest.Wait()
			if _, err := io.Copy(io.Discard, near); err != nil || time.Since(began) > 2*eventWithin {
				t.Errorf("a reader that does not read was not cut off: %v after %s", err, time.Since(began))
			}
			_ = near.Close()
			for _, whole := range strings.SplitAfter(string(text[:n]), "}}") {
				_, rest, found := strings.Cut(whole, "id: ")
				seq, rest, _ := strings.Cut(rest, "\n")
				if found && strings.HasSuffix(rest, "}}") {
					told++
					if want := fmt.Sprint(told); seq != want {
						t.Fatalf("told of %s, want %s", seq, want)
					}
					last = seq
				}
			}
			if connections > events {
				t.Fatalf("told of %d in %d connections", told, connections)
			}
		}
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// A reader gets its position before the first event, and can resume there.
func TestTheFirstThingAReaderIsToldIsItsPlace(t *testing.T) {
	l := &eventFollower{place: FromNow}
	if err := l.handleEvent(event{id: "7"}); err != nil || l.place != 7 {
		t.Errorf("at %d, %v", l.place, err)
	}
	l.handle = func(e wire.Event) error { return fmt.Errorf("told of %d", e.Seq) }
	if err := l.handleEvent(event{id: "7", kind: "REQUEST_USED", data: `{"seq":7}`}); err != nil {
		t.Errorf("what lies before the place was handed over: %v", err)
	}
	if err := l.handleEvent(event{id: "9", kind: "REQUEST_USED", data: `{"seq":9}`}); err == nil || l.place != 7 {
		t.Errorf("at %d, %v: what was not taken is told again", l.place, err)
	}
	for _, e := range []event{{id: "x"}, {id: "10", kind: "REQUEST_USED", data: "{"}} {
		if err := l.handleEvent(e); err == nil || errors.Is(err, l.failed) {
			t.Errorf("%+v: %v", e, err)
		}
	}
}

// TestWhatTakesLongerThanACallSaysSo, and goes on; what does not is answered as it is, and a panic ends that call alone.
func TestWhatTakesLongerThanACallSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan int, 1)
		for _, takes := range []time.Duration{0, time.Second, wire.MaxWait + time.Second} {
			ctx, leave := context.WithCancel(t.Context())
			n, err := finishInBackground(func(ctx context.Context, n *int) (int, error) {
				_ = timing.Pause(ctx, takes)
				ended <- *n
				return *n, map[bool]error{true: permissions.OperatorOnly()}[takes == time.Second]
			})(ctx, new(7))
			leave()
			if done := <-ended; done != 7 {
				t.Errorf("%d was done", done)
			}
			var p *wire.Problem
			late := errors.As(err, &p) && p.Status == http.StatusAccepted && p.Code == wire.CodeGoesOn
			refused := permissions.CodeOf(err) == permissions.CodeOf(permissions.OperatorOnly())
			if (takes == 0) != (n == 7 && err == nil) || refused != (takes == time.Second) || late != (takes > wire.MaxWait) {
				t.Errorf("after %s: %d, %v", takes, n, err)
			}
		}
		_, err := finishInBackground(func(context.Context, *int) (int, error) { panic("boom") })(t.Context(), nil)
		if err == nil || !strings.Contains(err.Error(), "boom") {
			t.Errorf("a panic: %v", err)
		}
	})
}
