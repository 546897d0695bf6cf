// Package wire is what crosses our own sockets, in both directions and for both doors: the JSON of a request and of a
// question, the strict reading of it, problem details for what is refused, listeners that know, as far as a connection
// tells, who is at the other end, and count them, a server that stops at once, and the client's side of the connection.
//
// It knows words, not meaning: what is asked and decided lies in permissions, which is all of ours that it imports.
// The doors themselves are agents/api (who asks) and connectors/admin (who decides).
//
// Strict means: UTF-8 without a byte order mark, every member known, spelled exactly and given once, at most
// [MaxDepth] levels, nothing after the value, and bounded in size. What another program could read differently is
// refused rather than guessed at.
package wire

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
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

// Door is the HTTP side of one room: a mux of its own, with strict JSON, problem details, the description of its
// routes at /openapi.json, /healthz and /readyz. Register routes on API and with [Door.Handle], then serve
// [Door.Handler] at each of its listeners.
type Door struct {
	API     huma.API
	mux     *http.ServeMux
	log     *slog.Logger
	handled []string // the patterns besides those of API
}

// health is the one path at which everybody is answered, whoever they are.
const health = "/healthz"

// operations are the paths of every door that tell of the daemon rather than of requests.
var operations = []string{health, "/readyz", "/metrics", "/openapi.json"}

// Looks reports whether a call only looks after the daemon, and whether it asks no more than that it be alive.
func Looks(r *http.Request) (alive, looks bool) {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	return reads && r.URL.Path == health, reads && slices.Contains(operations, r.URL.Path)
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
	d.Handle("GET "+health, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n"))
	}))
	d.Handle("GET /readyz", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := ready(r.Context()); err != nil {
			notReady(err).Write(w)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ready\n"))
	}))
	d.Handle("GET /openapi.json", http.HandlerFunc(d.describe))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		NewProblem(http.StatusNotFound, codeNoRoute, "There is no "+r.Method+" "+r.URL.Path+" here.").Write(w)
	})
	return d
}

// Metrics has the door answer /metrics with h.
func (d *Door) Metrics(h http.Handler) { d.Handle("GET /metrics", h) }

// Handle has h answer what matches the pattern of [http.ServeMux], which the description does not tell of.
func (d *Door) Handle(pattern string, h http.Handler) {
	d.handled = append(d.handled, pattern)
	d.mux.Handle(pattern, h)
}

// Routes are the patterns of everything that this door answers, in order.
func (d *Door) Routes() []string {
	routes := slices.Clone(d.handled)
	for path, item := range d.API.OpenAPI().Paths {
		for method, operation := range map[string]*huma.Operation{
			http.MethodGet: item.Get, http.MethodPut: item.Put, http.MethodPost: item.Post, http.MethodDelete: item.Delete,
			http.MethodPatch: item.Patch, http.MethodHead: item.Head, http.MethodOptions: item.Options, http.MethodTrace: item.Trace,
		} {
			if operation != nil {
				routes = append(routes, method+" "+path)
			}
		}
	}
	slices.Sort(routes)
	return routes
}

// describe writes the OpenAPI description of the routes on API.
func (d *Door) describe(w http.ResponseWriter, _ *http.Request) {
	spec, err := d.API.OpenAPI().MarshalJSON()
	if err != nil {
		d.problem(err).Write(w)
		return
	}
	w.Header().Set("Content-Type", "application/openapi+json")
	_, _ = w.Write(spec)
}

// notReady tells why the daemon is not ready: with its own words if it has some, else as a store that is unwell.
func notReady(err error) *Problem {
	p := ProblemOf(err)
	if p.Code == codeInternal || p.Code == codeAgain {
		p = ProblemOf(permissions.Broken(err.Error()))
	}
	p.Status = http.StatusServiceUnavailable
	return p
}

// Entrance is how calls come to a door over one listener.
type Entrance struct {
	// Hosts reports whether a host (without its port, in lower case) is served here; nil: [SocketHosts].
	Hosts func(name string) bool
	// Guard proves who makes a call, or turns it away, before any of its body is read; nil lets everybody in.
	Guard func(http.Handler) http.Handler
}

// Handler is everything behind this door, for the calls of one listener. The routes must have been registered.
func (d *Door) Handler(e Entrance) http.Handler {
	h := whole(d.mux)
	if e.Guard != nil {
		h = e.Guard(h)
	}
	hosts := e.Hosts
	if hosts == nil {
		hosts = SocketHosts
	}
	return admit(h, hosts)
}

// Refuse tells an error to the caller as a [Problem], and to the log where the caller is told only that there was one.
func (d *Door) Refuse(err error) error { return d.problem(err) }

// TurnAway answers a call that does not get as far as its route, as [Door.Refuse] would.
func (d *Door) TurnAway(w http.ResponseWriter, err error) { d.problem(err).Write(w) }

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
