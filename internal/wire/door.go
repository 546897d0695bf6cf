package wire

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/daycared/daycared/permissions"
)

const (
	// writeWithin is how long a call may take from its end of reading to its last byte written, unless its route says
	// otherwise ([WriteWithin]).
	writeWithin = 20 * time.Second
	// LongPoll is that time for a route on which a call may wait [MaxWait].
	LongPoll = MaxWait + 10*time.Second
)

// huma keeps these two as globals. They are the same for every door, so they are set once, before any exists: without
// the first, a member in the wrong case passes validation and arrives empty.
func init() {
	huma.ValidateStrictCasing = true
	huma.NewError = invalidBody
}

// Door is the HTTP side of one socket: a mux of its own, with strict JSON, problem details, the description of its
// routes at /openapi.json, /healthz and /readyz. Register routes on API, then serve [Door.Handler].
type Door struct {
	API huma.API
	mux *http.ServeMux
	log *slog.Logger
}

// NewDoor makes a door without routes. ready is asked by /readyz: nil, or an error that says what to do.
func NewDoor(title string, ready func(context.Context) error, log *slog.Logger) *Door {
	mux := http.NewServeMux()
	// The format "json" is what huma writes application/problem+json with.
	config := huma.Config{
		OpenAPI:                      &huma.OpenAPI{OpenAPI: "3.1.0", Info: &huma.Info{Title: title, Version: "1"}},
		Formats:                      map[string]huma.Format{"application/json": format, "json": format},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
	}
	d := &Door{API: humago.New(mux, config), mux: mux, log: log}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := ready(r.Context()); err != nil {
			notReady(err).write(w)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ready\n"))
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		NewProblem(http.StatusNotFound, codeNoRoute, "There is no "+r.Method+" "+r.URL.Path+" at this socket.").write(w)
	})
	return d
}

// Metrics has the door answer /metrics with h.
func (d *Door) Metrics(h http.Handler) { d.mux.Handle("GET /metrics", h) }

// notReady tells why the daemon is not ready: with its own words if it has some, else as a store that is unwell.
func notReady(err error) *Problem {
	p := ProblemOf(err)
	if p.Code == codeInternal || p.Code == codeAgain {
		p = ProblemOf(permissions.Broken(err.Error()))
	}
	p.Status = http.StatusServiceUnavailable
	return p
}

// Handler is everything behind this door. The routes must have been registered.
func (d *Door) Handler() (http.Handler, error) {
	spec, err := d.API.OpenAPI().MarshalJSON()
	if err != nil {
		return nil, err
	}
	d.mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(spec)
	})
	return admit(d.mux), nil
}

// Refuse tells an error to the caller as a [Problem], and to the log where the caller is told only that there was one.
func (d *Door) Refuse(err error) error { return d.problem(err) }

// TurnAway answers a call that does not get as far as its route, as [Door.Refuse] would.
func (d *Door) TurnAway(ctx huma.Context, err error) {
	_, w := humago.Unwrap(ctx)
	d.problem(err).write(w)
}

func (d *Door) problem(err error) *Problem {
	p := ProblemOf(err)
	if p.Code == codeInternal {
		d.log.Error("a call could not be answered", "err", err)
	}
	return p
}

// WriteWithin gives an operation's answer this long.
func WriteWithin(limit time.Duration) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		_, w := humago.Unwrap(ctx)
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit)) // a test's recorder has none
		next(ctx)
	}
}
