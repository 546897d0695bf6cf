package telegram

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// env is a running engine over a real store, whose people have phones at a Telegram of our own. Its clock is the
// server's, which a test puts forward.
type env struct {
	*engine.Engine
	t        testing.TB
	server   *telegramtest.Server
	bot      *Connector
	rows     *store.Store
	dir      string
	settings engine.Settings
	logged   *book
	began    time.Time
	phones   map[string]*telegramtest.Person
	others   []connectors.Connector
	groups   []connectors.Person // chats without limits, besides those of people
	agents   []agents.Resident
	brisk    bool
	paced    bool // with the limits of sending
	token    Token
	through  func(engine.Store) engine.Store // wraps the engine's store; nil: not wrapped
	stop     func()
}

// ids are the accounts of people at Telegram.
var ids = map[string]int64{"fay": 2001, "sam": 2002, "kim": 2003}

const (
	longEnough = 30 * time.Second
	eveID      = 6666
)

// with changes an env before it opens.
type with func(*env)

func asking(q engine.Route) with { return func(s *env) { s.settings.Routes = []engine.Route{q} } }

// newEnv runs an env until the test ends.
func newEnv(t testing.TB, changes ...with) *env {
	t.Helper()
	s := &env{
		t: t, server: telegramtest.New(t), dir: t.TempDir(), logged: &book{}, phones: map[string]*telegramtest.Person{},
	}
	s.began, s.token = s.server.Now(), Token(s.server.Token())
	s.settings = engine.Settings{
		UID: 1, Routes: []engine.Route{{Ask: []string{"fay"}}},
		Approvals: engine.Approvals{
			Timeout: 15 * time.Minute, MaxTimeout: time.Hour, ClarificationTimeout: 5 * time.Minute,
			DeliverWithin: 2 * time.Minute, RedeemWindow: 10 * time.Minute,
			Scopes: []permissions.Scope{
				permissions.Once, permissions.SessionTool, permissions.Session, permissions.For(15 * time.Minute),
			},
		},
		Policy: permissions.Policy{Gated: []string{"write_file"}, HighRiskTools: []string{"run_command"}},
		Limits: engine.Limits{PendingPerCaller: 20000, PromptsPerMinute: 1000000, PendingTotal: 20000},
	}
	for name, id := range ids {
		s.enrol(name, id).Start("")
	}
	s.phones["eve"] = s.server.Person(telegramtest.User{ID: eveID, FirstName: "eve"})
	s.phones["eve"].Start("")
	api := newAPI(s.token, s.server.URL(), slog.New(slog.DiscardHandler))
	if err := api.call(t.Context(), "deleteWebhook", map[string]any{"drop_pending_updates": true}, nil); err != nil {
		t.Fatal(err)
	}
	api.close()
	for _, change := range changes {
		change(s)
	}
	s.open()
	t.Cleanup(func() {
		s.stop()
		s.hides()
	})
	return s
}

// at is somebody with an account.
func at(id int64) connectors.Person { return connectors.Person{}.WithAddress(Name, address(id)) }

// moves gives a person of the configuration another account, or none.
func (s *env) moves(i int, id int64) {
	account := ""
	if id != 0 {
		account = address(id)
	}
	s.settings.People[i] = s.settings.People[i].WithAddress(Name, account)
}

// enrol configures a person with that account, who has not pressed Start yet.
func (s *env) enrol(name string, id int64) *telegramtest.Person {
	p := s.server.Person(telegramtest.User{ID: id, FirstName: name})
	s.phones[name] = p
	s.settings.People = append(s.settings.People, connectors.Person{
		Name: name, UID: int(id), Addresses: map[string]string{Name: address(id)}, Location: time.UTC,
	})
	return p
}

// open starts everything over the store that is there.
func (s *env) open() {
	s.t.Helper()
	log := slog.New(slog.NewTextHandler(s.logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	rows, err := wiretest.OpenStore(s.t.Context(), store.Options{
		Path: filepath.Join(s.dir, "store.db"), Now: s.server.Now, Log: log,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.rows = rows
	seen := engine.Store(rows)
	if s.through != nil {
		seen = s.through(rows)
	}
	s.Engine = engine.New(engine.Options{
		Store: seen, Residents: s.agents, Settings: s.settings, Now: s.server.Now, Log: log,
		Elapsed: func() time.Duration { return s.server.Now().Sub(s.began) },
	})
	s.bot = New(Options{Token: s.token, APIURL: s.server.URL(), Now: s.server.Now, Log: log}, s.Engine)
	if !s.paced {
		quick(s.bot, slices.Concat(s.settings.People, s.groups))
	}
	if s.brisk {
		others := transportOf(s.bot.api).Clone()
		others.ResponseHeaderTimeout = 250 * time.Millisecond
		transportOf(s.bot.api).ResponseHeaderTimeout = 2 * time.Second
		s.bot.api.client.Transport = brisk{transportOf(s.bot.api), others}
	}
	people := append([]connectors.Connector{s.bot}, s.others...)
	connectortest.Connect(s.Engine, people...)
	if err := s.Recover(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { _ = s.Run(ctx) })
	for _, c := range people {
		group.Go(func() { _ = c.Run(ctx) })
	}
	s.stop = sync.OnceFunc(func() {
		cancel()
		group.Wait()
		if err := rows.Close(); err != nil {
			s.t.Error(err)
		}
	})
}

// quick takes the limits of sending away from some chats, which are those of the real Telegram.
func quick(c *Connector, people []connectors.Person) {
	c.pace.overall.SetLimit(rate.Inf)
	c.pace.talk.SetLimit(rate.Inf)
	c.pace.forgot = time.Now()
	for _, id := range append([]connectors.Person{at(eveID)}, people...) {
		c.pace.chats[chatWith(id)] = &lane{limit: rate.NewLimiter(rate.Inf, 1), talk: rate.NewLimiter(rate.Inf, 1)}
	}
}

// brisk gives calls up soon that are not answered, polls a little later.
type brisk struct{ polls, others *http.Transport }

// RoundTrip does one call.
func (b brisk) RoundTrip(r *http.Request) (*http.Response, error) {
	if path.Base(r.URL.Path) == "getUpdates" {
		return b.polls.RoundTrip(r)
	}
	return b.others.RoundTrip(r)
}

// CloseIdleConnections is what a client calls.
func (b brisk) CloseIdleConnections() {
	b.polls.CloseIdleConnections()
	b.others.CloseIdleConnections()
}

// impatient has the bot be brisk.
func impatient(s *env) { s.brisk = true }

// book keeps what is logged.
type book struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *book) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(text)
}

func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// hides checks that the token is nowhere: not in the log at its most talkative, the health, nor the store, which has
// the requests, the audit and every error that people see.
func (s *env) hides() {
	s.t.Helper()
	places := map[string]string{"the log": s.logged.String()}
	if err := s.bot.Health(); err != nil {
		places["the health"] = err.Error()
	}
	files, err := filepath.Glob(filepath.Join(s.dir, "*"))
	if err != nil || len(files) == 0 {
		s.t.Fatalf("the store's files: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		places[filepath.Base(file)] = string(text)
	}
	for place, text := range places {
		if found := leaked(text, string(s.token)); found != "" {
			s.t.Errorf("%s holds the token, as %s", place, found)
		}
	}
}

// leaked finds a token in a text, or its secret half, also percent-encoded.
func leaked(text, token string) string {
	_, secret, _ := strings.Cut(token, ":")
	text = strings.ToLower(text)
	for _, form := range []string{secret, url.PathEscape(token), url.QueryEscape(token), strings.ReplaceAll(token, "-", "%2d")} {
		if strings.Contains(text, strings.ToLower(form)) {
			return form
		}
	}
	return ""
}

func TestALeakIsFound(t *testing.T) {
	const token = "123:AAE-secret_of-35-characters"
	for _, text := range []string{
		"x " + token, "AAE-secret_of-35-characters", "/bot" + url.QueryEscape(token) + "/",
		"123:AAE%2Dsecret_of%2d35%2Dcharacters",
	} {
		if leaked(text, token) == "" {
			t.Errorf("%q is not found", text)
		}
	}
	if found := leaked("123: nothing", token); found != "" {
		t.Error(found)
	}
}
