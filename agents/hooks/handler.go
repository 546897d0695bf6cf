package hooks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Options are what a [Handler] needs.
type Options struct {
	Desk Requests
	// CallerOf is who makes the call that a context is of, proven by whoever admits calls.
	CallerOf func(context.Context) permissions.Caller
	// Stopping is closed when the daemon stops, before the contexts of calls end: they are then answered, and their
	// requests stand. Nil: it never does.
	Stopping <-chan struct{}
}

const (
	// spare is left to write an answer, beyond the time that a call may take.
	spare = 5 * time.Second
	// longest is the most that a call may ask to wait.
	longest = 24 * time.Hour
)

// Handler answers POST /hook/{dialect}, with ?within=9m for how long the agent waits. An agent that hangs up before that
// has ended its hook.
func Handler(o Options) http.Handler {
	h := http.NewServeMux()
	h.HandleFunc("POST /hook/{dialect}", o.serve)
	return h
}

func (o Options) serve(w http.ResponseWriter, r *http.Request) {
	d, known := Find(r.PathValue("dialect"))
	if !known {
		http.Error(w, fmt.Sprintf("there is no dialect %q; there are %s", r.PathValue("dialect"), strings.Join(Names(), ", ")),
			http.StatusNotFound)
		return
	}
	within, err := waits(r.URL.Query().Get("within"), d.Within)
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); !strings.EqualFold(strings.TrimSpace(kind), "application/json") {
		http.Error(w, "a hook sends application/json", http.StatusUnsupportedMediaType)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(within + spare)) // a writer without deadlines has none
	input, err := io.ReadAll(io.LimitReader(r.Body, MaxInput+1))
	if err != nil {
		http.Error(w, "read what the hook was given: "+err.Error(), http.StatusBadRequest)
		return
	}
	c, err := d.Read(input)
	switch {
	case c.Moot.Via != "":
		if err == nil {
			_, _ = o.Desk.Recall(r.Context(), o.CallerOf(r.Context()), c.Moot) // it decides nothing, so it fails for nothing
		}
		answer(w, Reply{})
		return
	case err != nil:
		answer(w, c.Reply(Refuse(err)))
		return
	}
	c.Request.Host, _ = os.Hostname() // a host without a name is not told
	ctx, done := o.untilHangup(r.Context())
	defer done()
	answer(w, c.Reply(Decide(ctx, o.Desk, o.CallerOf(ctx), c, c.Within(within))))
}

// untilHangup is a call's context, which ends with a cause that tells the daemon's stop ([ErrLeft]) from an agent that
// hung up: net/http ends the call's own context alike for both.
func (o Options) untilHangup(call context.Context) (ctx context.Context, done func()) {
	ctx, end := context.WithCancelCause(context.WithoutCancel(call))
	over, joined := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(joined)
		select {
		case <-over:
			return
		case <-call.Done():
		}
		select {
		case <-o.Stopping:
			end(ErrLeft)
		default:
			end(nil)
		}
	}()
	return ctx, func() {
		close(over)
		<-joined
		end(nil)
	}
}

// waits reads how long a hook may take.
func waits(text string, usual time.Duration) (time.Duration, error) {
	if text == "" {
		return usual, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d > longest {
		return 0, errors.New("within is a duration from 1s to 24h, such as 9m")
	}
	return d, nil
}

// answer writes a reply. What would be an exit code is an error here, which agents take for a denial where their settings
// say so.
func answer(w http.ResponseWriter, r Reply) {
	if r.Exit != 0 {
		http.Error(w, r.Complaint, http.StatusUnprocessableEntity)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(r.Body) // an agent that has hung up reads nothing
}
