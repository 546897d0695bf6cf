package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/permissions"
)

var fay = connectors.Person{
	Name: "fay", UID: permissions.NoUID, Addresses: map[string]string{Name: "fay@example.org"}, Location: time.UTC,
}

const longEnough = 20 * time.Second

// wire serves the generic fake in the gateway's wire format, and returns its address.
func wire(t testing.TB, s *connectortest.Service) string {
	t.Helper()
	done := make(chan struct{})
	mux := http.NewServeMux()
	reply := func(w http.ResponseWriter, do func() any) {
		var out any
		if err := s.Call(func() { out = do() }); err != nil {
			panic(http.ErrAbortHandler) // the connection is lost
		}
		if out == nil {
			w.WriteHeader(http.StatusGone)
			return
		}
		_ = json.NewEncoder(w).Encode(out)
	}
	mux.HandleFunc("POST /messages", func(w http.ResponseWriter, r *http.Request) {
		var m message
		_ = json.NewDecoder(r.Body).Decode(&m)
		reply(w, func() any {
			return message{ID: s.Send(m.To, connectortest.Posted{ID: m.ID, Text: m.Text, ReplyTo: m.ReplyTo})}
		})
	})
	mux.HandleFunc("PUT /messages/{id}", func(w http.ResponseWriter, r *http.Request) {
		var m message
		_ = json.NewDecoder(r.Body).Decode(&m)
		reply(w, func() any {
			if !s.Edit(r.PathValue("id"), m.Text) {
				return nil
			}
			return message{ID: r.PathValue("id")}
		})
	})
	mux.HandleFunc("GET /updates", func(w http.ResponseWriter, r *http.Request) {
		after, _ := strconv.ParseInt(r.FormValue("after"), 10, 64)
		ctx, end := context.WithCancel(r.Context())
		defer end()
		go func() {
			select {
			case <-done:
			case <-ctx.Done():
			}
			end()
		}()
		reply(w, func() any {
			all := []update{}
			for _, u := range s.Updates(ctx, after) {
				all = append(all, update{u.Number, u.ID, u.From, u.Text, u.ReplyTo})
			}
			return all
		})
	})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Start()
	t.Cleanup(func() {
		close(done)
		server.Close()
	})
	return server.URL
}

func options(t testing.TB, s *connectortest.Service) Options {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return Options{
		URL: wire(t, s), Token: "secret", HTTP: &http.Client{Transport: transport}, Now: time.Now, Retry: time.Millisecond,
		Log: slog.New(slog.DiscardHandler),
	}
}

func TestPassesTheSuite(t *testing.T) {
	connectortest.Run(t, func(t *testing.T, in connectors.Services) connectortest.Harness {
		s := connectortest.NewService(7)
		sees := func(t testing.TB, text string) {
			t.Helper()
			ctx, done := context.WithTimeout(context.Background(), longEnough)
			defer done()
			if _, err := s.Sees(ctx, "fay@example.org", text); err != nil {
				t.Fatalf("fay does not see %q but\n%s", text, s.Seen("fay@example.org"))
			}
		}
		writes := func(t testing.TB, p connectors.Prompt, text string) {
			sees(t, p.Code)
			s.Writes("fay@example.org", text, "")
		}
		return connectortest.Harness{
			Connector: New(options(t, s), in), To: fay, Sees: sees, Writes: writes, Line: s.Set,
			Is:       func(id connectors.Identity) bool { return id.Address == "fay@example.org" },
			Seen:     func() string { return s.Seen("fay@example.org") },
			Do:       func(t testing.TB, p connectors.Prompt, d connectors.Decision) { writes(t, p, words(p, d)) },
			Stranger: func(_ testing.TB, p connectors.Prompt) { s.Writes("eve@example.org", "yes "+p.Code, "") },
		}
	})
}

// words are an answer as a person writes it.
func words(p connectors.Prompt, d connectors.Decision) string {
	code := p.Code
	if d.Call > 0 {
		code += fmt.Sprintf(" #%d", d.Call)
	}
	scope, allows := d.Answer.Scope()
	switch {
	case d.Answer == permissions.Deny && d.Comment != "":
		return "no " + code + " because " + d.Comment
	case d.Answer == permissions.Deny:
		return "no " + code
	case d.Answer == permissions.Other:
		return code + " other: " + d.Comment
	case d.Really:
		return "yes " + code + " run"
	case allows:
		return "yes " + code + " " + scope.String()
	}
	return code + " " + strings.TrimPrefix(string(d.Answer), "option_")
}

// daemon is an engine with a real store behind the example, as the daemon has it.
func daemon(t *testing.T, s *connectortest.Service) *engine.Engine {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	rows, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "store.db"), Now: time.Now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(engine.Options{Store: rows, Now: time.Now, Log: log, Settings: engine.Settings{
		UID: 1, People: []connectors.Person{fay}, Routes: []engine.Route{{Ask: []string{"fay"}}},
		Approvals: engine.Approvals{
			Timeout: time.Minute, MaxTimeout: time.Hour, ClarificationTimeout: time.Minute, DeliverWithin: time.Minute,
			RedeemWindow: time.Minute, Scopes: []permissions.Scope{permissions.Once},
		},
		Limits: engine.Limits{PendingPerCaller: 20, PromptsPerMinute: 1000, PendingTotal: 20},
	}})
	c := New(options(t, s), e)
	e.Connect(c)
	if err := e.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = e.Run(ctx) })
	running.Go(func() { _ = c.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// A question is asked, its card comes over the wire, and the reply to it decides.
func TestAReplyToACardDecides(t *testing.T) {
	s := connectortest.NewService(1)
	e := daemon(t, s)
	settled := make(chan permissions.Request, 1)
	go func() {
		r, _ := e.Ask(t.Context(), permissions.CallerUID(1000), permissions.Request{
			Kind: permissions.KindPermission, Tags: []permissions.Tag{permissions.Network}, Reason: "to fetch the docs",
		})
		settled <- r
	}()
	ctx, done := context.WithTimeout(t.Context(), longEnough)
	defer done()
	m, err := s.Sees(ctx, "fay@example.org", "to fetch the docs")
	if err != nil {
		t.Fatal(err)
	}
	s.Writes("eve@example.org", "yes", m.ID) // an account of nobody's
	s.Writes("fay@example.org", "no because not today", m.ID)
	select {
	case r := <-settled:
		if r.State != permissions.Denied || r.DecidedBy != "fay" || r.Comment != "not today" || r.DecidedVia != Name {
			t.Errorf("%s by %s via %s; want that fay denied", r.State, r.DecidedBy, r.DecidedVia)
		}
	case <-ctx.Done():
		t.Fatalf("nothing was decided; fay sees\n%s", s.Seen("fay@example.org"))
	}
	if _, err := s.Sees(ctx, "fay@example.org", "Denied by"); err != nil {
		t.Errorf("the card does not say so:\n%s", s.Seen("fay@example.org"))
	}
}

// What the gateway says that it will never have is not tried again; everything else is.
func TestWhatIsTriedAgain(t *testing.T) {
	s := connectortest.NewService(1)
	c := New(options(t, s), connectortest.Nobody{})
	p := connectors.Prompt{Request: connectortest.Request(permissions.KindPermission, fay, 1, nil), Code: "K7F3Q", To: fay}
	if err := c.Edit(t.Context(), "77", p); !isGone(err) {
		t.Errorf("a message that is not there: %v", err)
	}
	p.To = connectors.Person{Name: "kim"}
	if _, err := c.Send(t.Context(), p); !isGone(err) {
		t.Errorf("nobody's account: %v", err)
	}
	c.Token, p.To = "wrong", fay
	if _, err := c.Send(t.Context(), p); err == nil || isGone(err) || strings.Contains(err.Error(), "wrong") {
		t.Errorf("a wrong token: %v", err)
	}
}

func isGone(err error) bool { return errors.Is(err, connectors.ErrUnreachable) }
