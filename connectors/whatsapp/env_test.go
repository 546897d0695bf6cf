package whatsapp

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/connectors/whatsapp/whatsapptest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// env is a running engine over a real store, with an account that is linked at a WhatsApp of our own, and people who
// have phones there. Its clock is the server's, which a test puts forward.
type env struct {
	*engine.Engine
	t        testing.TB
	server   *whatsapptest.Server
	wa       *Connector
	rows     *store.Store
	dir      string
	settings engine.Settings
	logged   *book
	began    time.Time
	phones   map[string]*whatsapptest.Person
	others   []connectors.Connector
	agents   []agents.Resident
	desk     *watcher
	unwell   bool   // it does not get connected when it is opened
	auto     bool   // take another version when ours is refused
	paced    bool   // with the limits of sending
	inFile   bool   // see inFile
	number   string // that alone is served
	stop     func()
}

var numbers = map[string]string{"fay": "491700000001", "sam": "491700000002", "eve": "491700000666"}

// with changes an env before it opens.
type with func(*env)

// newEnv links an account and runs an env until the test ends.
func newEnv(t testing.TB, changes ...with) *env {
	t.Helper()
	s := &env{
		t: t, server: whatsapptest.New(t), dir: t.TempDir(), logged: &book{}, phones: map[string]*whatsapptest.Person{},
		desk: &watcher{},
	}
	s.began = s.server.Now()
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
	for _, name := range []string{"fay", "sam"} {
		s.phones[name] = s.server.Person(numbers[name], name)
		s.settings.People = append(s.settings.People, connectors.Person{
			Name: name, UID: permissions.NoUID, Addresses: map[string]string{Name: "+" + numbers[name]}, Location: time.UTC,
		})
	}
	s.phones["eve"] = s.server.Person(numbers["eve"], "eve")
	s.auto = true
	for _, change := range changes {
		change(s)
	}
	s.link()
	s.open()
	t.Cleanup(func() {
		s.stop()
		s.discreet()
	})
	return s
}

// inFile has the account in a file, also where the store is in PostgreSQL.
func inFile(s *env) { s.inFile = true }

// moves gives a person of the configuration another number, or none.
func (s *env) moves(i int, number string) {
	s.settings.People[i] = s.settings.People[i].WithAddress(Name, number)
}

// link links the account, and has the daemon find that by itself.
func (s *env) link() {
	s.t.Helper()
	o := Linking{
		Path: filepath.Join(s.dir, "whatsapp.db"), HTTP: s.server.Client(), Log: slog.New(slog.DiscardHandler),
	}
	if os.Getenv("DAYCARED_TEST_STORE") == "postgres" && !s.inFile {
		rows := s.openStore(slog.New(slog.DiscardHandler))
		defer rows.Close()
		o.Shared = rows.OpenAccount
	}
	if _, err := Link(soon(s.t), o, &hand{t: s.t, phone: s.server.Phone()}); err != nil {
		s.t.Fatalf("link: %v", err)
	}
}

func (s *env) openStore(log *slog.Logger) *store.Store {
	s.t.Helper()
	rows, err := wiretest.OpenStore(s.t.Context(), store.Options{Path: filepath.Join(s.dir, "store.db"), Now: s.server.Now, Log: log})
	if err != nil {
		s.t.Fatal(err)
	}
	return rows
}

// open starts everything over what is there.
func (s *env) open() {
	s.t.Helper()
	log := slog.New(slog.NewTextHandler(s.logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	rows := s.openStore(log)
	s.rows = rows
	s.Engine = engine.New(engine.Options{
		Store: rows, Residents: s.agents, Settings: s.settings, Now: s.server.Now, Log: log,
		Elapsed: func() time.Duration { return s.server.Now().Sub(s.began) },
	})
	s.desk.Engine = s.Engine
	o := Options{
		Path: filepath.Join(s.dir, "whatsapp.db"), HTTP: s.server.Client(), Now: s.server.Now, Log: log, AutoVersion: s.auto,
		Number: s.number,
	}
	if rows.Pool() != nil && !s.inFile {
		o.Shared = rows.OpenAccount
	}
	s.wa = New(o, s.desk)
	if !s.paced {
		s.wa.Unpace()
	}
	s.wa.again, s.wa.firstTry, s.wa.redeliveryWait = 50*time.Millisecond, 10*time.Millisecond, 500*time.Millisecond
	people := append([]connectors.Connector{s.wa}, s.others...)
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
	if s.server.Phone().Linked() && !s.unwell {
		s.well()
	}
}

// discreet checks that nothing but what is for those who look for a fault holds a number, a code or what people wrote, and
// that what the library says holds no number either.
func (s *env) discreet() {
	private := []string{s.server.Number()}
	for _, p := range s.phones {
		private = append(private, p.Number(), p.LID().User)
		for _, m := range p.Messages() {
			if m.From == p.Number() && len(m.Text) > 5 {
				private = append(private, m.Text)
			}
		}
	}
	for _, line := range strings.Split(s.logged.String(), "\n") {
		for _, secret := range private {
			number := strings.Trim(secret, "0123456789") == "" && strings.Contains(line, "whatsapp library")
			if (number || !strings.Contains(line, "level=DEBUG")) && strings.Contains(line, secret) {
				s.t.Errorf("%q is logged: %s", secret, line)
			}
		}
	}
}

// restart stops everything as a stop of the daemon does, and starts it again.
func (s *env) restart() {
	s.t.Helper()
	s.stop()
	s.open()
}

// ended is what a call got.
type ended struct {
	r   permissions.Request
	err error
}

// ask starts a call.
func (s *env) ask(q permissions.Request) <-chan ended {
	done := make(chan ended, 1)
	go func() {
		r, err := s.Ask(s.t.Context(), permissions.CallerUID(1000), q)
		done <- ended{r, err}
	}()
	return done
}

// get waits for the answer of a call.
func (s *env) get(call <-chan ended, want permissions.State) permissions.Request {
	s.t.Helper()
	select {
	case e := <-call:
		if e.err != nil || e.r.State != want {
			s.t.Fatalf("got %s, %v; want %s", e.r.State, e.err, want)
		}
		return e.r
	case <-time.After(patience):
		s.t.Fatal("no answer")
		return permissions.Request{}
	}
}

// waits checks that a call still waits.
func (s *env) waits(call <-chan ended) {
	s.t.Helper()
	select {
	case e := <-call:
		s.t.Fatalf("it does not wait: %s, %v", e.r.State, e.err)
	default:
	}
}

// sees waits for a message of ours that holds a text.
func (s *env) sees(who, text string) whatsapptest.Message {
	s.t.Helper()
	m, err := s.phones[who].Sees(soon(s.t), func(m whatsapptest.Message) bool { return strings.Contains(m.Text, text) })
	if err != nil {
		s.t.Fatalf("%s waits for %q: %v\n%s", who, text, err, s.logged)
	}
	return m
}

// card waits for a card, and for its being noted.
func (s *env) card(who, text string) (m whatsapptest.Message, code string) {
	s.t.Helper()
	m = s.sees(who, text)
	code = codeOn(m)
	s.until("the card is noted", func() bool {
		r, err := s.rows.ByCode(s.t.Context(), code)
		if err != nil {
			return false
		}
		copies, err := s.rows.Copies(s.t.Context(), r.ID)
		for _, c := range copies {
			if c.Person == who && c.Connector == Name && !c.SentAt.IsZero() {
				return true
			}
		}
		return err != nil
	})
	return m, code
}

// codeOn is the code on a card, or empty.
func codeOn(m whatsapptest.Message) string {
	if on := onCard.FindStringSubmatch(m.Text); on != nil {
		return on[1]
	}
	return ""
}

// anyCode matches a code.
var anyCode = regexp.MustCompile(`\b[0-9A-Z]{5}\b`)

var onCard = regexp.MustCompile("`?([0-9A-Z]{5})`?(?: · until .*)?$")

// becomes waits until a card says something.
func (s *env) becomes(who, id, text string) {
	s.t.Helper()
	_, err := s.phones[who].Sees(soon(s.t), func(m whatsapptest.Message) bool { return m.ID == id && strings.Contains(m.Text, text) })
	if err != nil {
		m, _ := s.phones[who].Message(id)
		s.t.Fatalf("%s's card does not say %q: %v; it says %q", who, text, err, m.Text)
	}
}

// until waits until something is so.
func (s *env) until(what string, is func() bool) {
	s.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		if is() {
			return
		}
	}
	s.t.Fatalf("it does not come about that %s\n%s", what, s.logged)
}

func network(reason string) permissions.Request {
	return permissions.Request{Kind: permissions.KindPermission, Tags: []permissions.Tag{permissions.Network}, Reason: reason}
}

func toolCall(name, input string) permissions.Request {
	return permissions.Request{Kind: permissions.KindTool, Tool: name, Input: []byte(input), Session: "s1"}
}

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
