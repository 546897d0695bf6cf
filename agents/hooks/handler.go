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

// Options configure a [Handler].
type Options struct {
	Requests Requests
	// CallerOf returns the authenticated caller of a call's context.
	CallerOf func(context.Context) permissions.Caller
	// Stopping is closed when the daemon stops, before the contexts of calls end: calls are then answered, and their requests
	// stay open. Nil: never.
	Stopping <-chan struct{}
}

const (
	// writeMargin is the time for writing an answer after a call's time is over.
	writeMargin = 5 * time.Second
	// maxWithin is the maximum of within.
	maxWithin = 24 * time.Hour
)

// Handler serves POST /hook/{dialect}; ?within=9m gives the agent's timeout. An agent that hangs up earlier has ended its hook.
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
	within, err := parseTimeout(r.URL.Query().Get("within"), d.Within)
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); !strings.EqualFold(strings.TrimSpace(kind), "application/json") {
		http.Error(w, "a hook sends application/json", http.StatusUnsupportedMediaType)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(within + writeMargin)) // best effort: test recorders have no deadlines
	input, err := io.ReadAll(io.LimitReader(r.Body, MaxInput+1))
	if err != nil {
		http.Error(w, "read what the hook was given: "+err.Error(), http.StatusBadRequest)
		return
	}
	c, err := d.Read(input)
	switch {
	case c.Recall.Via != "":
		if err == nil {
			_, _ = o.Requests.Recall(r.Context(), o.CallerOf(r.Context()), c.Recall) // best effort: it decides nothing
		}
		answer(w, Reply{})
		return
	case err != nil:
		answer(w, c.Reply(Refuse(err)))
		return
	}
	c.Request.Host, _ = os.Hostname()                              // empty if it fails
	c.Request.Leads.Unknown = c.given != nil && c.questions == nil // it may be of another machine: nobody looks where names lead
	ctx, done := o.untilHangup(r.Context())
	defer done()
	answer(w, c.Reply(Decide(ctx, o.Requests, o.CallerOf(ctx), c, c.Within(within))))
}

// untilHangup derives a context whose cause distinguishes a stop of the daemon ([ErrLeft]) from an agent that hung up; net/http
// ends the call's context in both cases.
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

// parseTimeout parses the timeout of a hook.
func parseTimeout(text string, usual time.Duration) (time.Duration, error) {
	if text == "" {
		return usual, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d > maxWithin {
		return 0, errors.New("within is a duration from 1s to 24h, such as 9m")
	}
	return d, nil
}

// answer writes a reply. A non-zero exit code becomes an HTTP error, which agents treat as a denial if their settings say so.
func answer(w http.ResponseWriter, r Reply) {
	if r.Exit != 0 {
		http.Error(w, r.Complaint, http.StatusUnprocessableEntity)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(r.Body) // the agent may have hung up
}
