// Package server is the HTTP server of daycared's sockets: strict JSON, problem details, an OpenAPI description, listeners that
// identify and count their peers as far as a connection allows, and a quick stop. Its protocol is
// [github.com/daycared/daycared/internal/wire]; its users are agents/api (for agents) and connectors/admin (for deciders).
package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

const (
	// writeWithin is the time from the end of a call's body to its answer's last byte, unless its route has [WriteWithin].
	writeWithin = 20 * time.Second
	// LongPoll is that time for a route whose calls may wait [MaxWait].
	LongPoll = wire.MaxWait + 10*time.Second
)

// huma has these two as globals. They are the same for every server and set once, before any exists: without the first,
// a member in the wrong case passes validation and arrives empty.
func init() {
	huma.ValidateStrictCasing = true
	huma.NewError = invalidBody
}

var (
	_ huma.StatusError       = (*wire.Problem)(nil)
	_ huma.HeadersError      = (*wire.Problem)(nil)
	_ huma.ContentTypeFilter = (*wire.Problem)(nil)
)

// Server is an HTTP server: a mux with strict JSON, problem details, an OpenAPI description at /openapi.json, /healthz
// and /readyz. Register routes on API and with [Server.Handle], then serve [Server.Handler] at each listener.
type Server struct {
	API       huma.API
	mux       *http.ServeMux
	log       *slog.Logger
	handled   []string // patterns besides those of API
	beginning *beginning
}

// health is the one path that needs no authentication.
const health = "/healthz"

// operations are the paths, common to all servers, about the daemon rather than requests.
var operations = []string{health, "/readyz", "/metrics", "/openapi.json"}

// IsMonitoring reports whether a call only monitors the daemon, and whether it only asks if it is alive.
func IsMonitoring(r *http.Request) (alive, looks bool) {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	return reads && r.URL.Path == health, reads && slices.Contains(operations, r.URL.Path)
}

// New makes a server without routes. /readyz calls ready: nil, or an error that says what to do.
func New(title string, ready func(context.Context) error, log *slog.Logger) *Server {
	mux := http.NewServeMux()
	// For huma, "json" is also the format of application/problem+json.
	config := huma.Config{
		OpenAPI:                      &huma.OpenAPI{OpenAPI: "3.1.0", Info: &huma.Info{Title: title, Version: "1"}},
		Formats:                      map[string]huma.Format{"application/json": format, "json": format},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
	}
	d := &Server{API: humago.New(mux, config), mux: mux, log: log, beginning: newBeginning()}
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
		wire.NewProblem(http.StatusNotFound, wire.CodeNoRoute, "There is no "+r.Method+" "+r.URL.Path+" here.").Write(w)
	})
	return d
}

// Metrics serves /metrics with h.
func (d *Server) Metrics(h http.Handler) { d.Handle("GET /metrics", h) }

// Handle serves a pattern of [http.ServeMux] with h, outside the OpenAPI description.
func (d *Server) Handle(pattern string, h http.Handler) {
	d.handled = append(d.handled, pattern)
	d.mux.Handle(pattern, h)
}

// Routes are the patterns of all routes, in order.
func (d *Server) Routes() []string {
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

func (d *Server) describe(w http.ResponseWriter, _ *http.Request) {
	spec, err := d.API.OpenAPI().MarshalJSON()
	if err != nil {
		d.problem(err).Write(w)
		return
	}
	w.Header().Set("Content-Type", "application/openapi+json")
	_, _ = w.Write(spec)
}

// notReady is why the daemon is not ready: err's own text if it is a refusal, else that the store is unwell.
func notReady(err error) *wire.Problem {
	p := wire.ProblemOf(err)
	if p.Code == wire.CodeInternal || p.Code == wire.CodeAgain {
		p = wire.ProblemOf(permissions.Broken(err.Error()))
	}
	p.Status = http.StatusServiceUnavailable
	return p
}

// Listener configures one listener of a server.
type Listener struct {
	// Hosts reports whether a host (without its port, in lower case) is served here; nil: [SocketHosts].
	Hosts func(name string) bool
	// Guard authenticates calls before their bodies are read; nil admits everybody.
	Guard func(http.Handler) http.Handler
}

// Handler is the handler for one listener. Register all routes first.
func (d *Server) Handler(e Listener) http.Handler {
	h := readWhole(d.mux)
	if e.Guard != nil {
		h = e.Guard(h)
	}
	hosts := e.Hosts
	if hosts == nil {
		hosts = SocketHosts
	}
	return middleware(h, hosts)
}

// Refuse converts an error to a [Problem], and logs it if the caller gets no details.
func (d *Server) Refuse(err error) error { return d.problem(err) }

// Reject answers a call that does not reach its route, as [Server.Refuse] would.
func (d *Server) Reject(w http.ResponseWriter, err error) { d.problem(err).Write(w) }

func (d *Server) problem(err error) *wire.Problem {
	p := wire.ProblemOf(err)
	if p.Code == wire.CodeInternal {
		d.log.Error("a call could not be answered", "err", err)
	}
	return p
}

// Register registers an operation. handle returns the answer's body; its error is for [Server.Refuse].
func Register[I, O any](d *Server, o huma.Operation, handle func(context.Context, *I) (O, error)) {
	huma.Register(d.API, o, func(ctx context.Context, in *I) (*struct{ Body O }, error) {
		out, err := handle(ctx, in)
		if err != nil {
			return nil, d.Refuse(err)
		}
		return &struct{ Body O }{out}, nil
	})
}

// WriteWithin sets the time limit for an operation's answer.
func WriteWithin(limit time.Duration) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		_, w := humago.Unwrap(ctx)
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit)) // unsupported by a test's recorder
		next(ctx)
	}
}

// format is JSON as it crosses our sockets.
var format = huma.Format{
	Marshal: func(w io.Writer, v any) error {
		line, err := wire.Encode(v)
		if err != nil {
			return err
		}
		_, err = w.Write(append(line, '\n'))
		return err
	},
	Unmarshal: wire.Decode,
}

// invalidBody converts the findings of huma's validation, without repeating the input.
func invalidBody(status int, msg string, errs ...error) huma.StatusError {
	if status >= http.StatusInternalServerError {
		return wire.NewProblem(status, wire.CodeInternal, wire.DetailInLog)
	}
	details := make([]string, 0, len(errs))
	for _, err := range errs {
		if d, is := errors.AsType[*huma.ErrorDetail](err); is {
			err = errors.New(strings.TrimPrefix(d.Location+": "+d.Message, ": "))
		}
		details = append(details, err.Error())
	}
	if len(details) == 0 {
		details = []string{msg}
	}
	p := wire.ProblemOf(permissions.Invalid(errors.New(strings.Join(details, "; "))))
	p.Status = status
	return p
}
