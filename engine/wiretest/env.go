// Package wiretest is shared by the tests of the servers: a [Env], which is the real engine over the real store, and paths for
// sockets.
package wiretest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/registry"
)

// Accounts of callers whose requests are not put to fay.
const (
	OfSam  = 5001 // put to sam
	OfBoth = 5002 // put to fay and sam
)

// Accounts of people, besides that of the tests.
const (
	fayUID = 6001
	samUID = 6002
	kimUID = 6003
)

// Env is an engine over a store in a folder of its test. Fay is asked, whose account is that of the tests; there are sam and kim
// as well. Everybody is reached over telegram, which shows a request when the test says so.
type Env struct {
	*engine.Engine
	Store *store.Store // without the faults of Fail
	// Asks, if set, is called at the start of every Ask.
	Asks func(permissions.Caller, permissions.Request)

	settings engine.Settings
	faults   *faults
	phone    *phone

	mu    sync.Mutex
	feeds []*registry.Feed
}

// NewEnv makes an env, which runs until the end of the test, with more channels than telegram.
func NewEnv(t testing.TB, more ...connectors.Connector) *Env {
	t.Helper()
	d := NewIdleEnv(t, more...)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = d.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return d
}

// NewIdleEnv is NewEnv of an engine that takes questions and answers, and delivers nothing and keeps no deadline: in a bubble of
// virtual time, its clocks would take most of the time.
func NewIdleEnv(t testing.TB, more ...connectors.Connector) *Env {
	t.Helper()
	d, err := OpenEnv(t.TempDir(), more...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Store.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// OpenEnv is NewIdleEnv for what is no test: its store is in that folder, and the caller closes it.
func OpenEnv(folder string, more ...connectors.Connector) (*Env, error) {
	path := filepath.Join(folder, "store.db")
	rows, err := OpenStore(context.Background(), store.Options{Path: path, Now: time.Now, Log: Quiet})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	d := &Env{Store: rows, settings: usual(), faults: &faults{Store: rows}, phone: newPhone()}
	d.Engine = engine.New(engine.Options{
		Store: d.faults, Settings: d.settings, Now: time.Now, Log: Quiet,
		Elapsed: func() time.Duration { return time.Since(began) },
	})
	d.Connect(append(more, d.phone)...)
	if err := d.Recover(context.Background()); err != nil {
		return nil, errors.Join(err, rows.Close())
	}
	return d, nil
}

func usual() engine.Settings {
	fay := connectors.Person{Name: "fay", User: "fay", UID: os.Getuid(), Location: time.UTC}
	sam, kim := fay, fay
	sam.Name, sam.User, sam.UID = "sam", "sam", samUID
	kim.Name, kim.User, kim.UID = "kim", "kim", kimUID
	return engine.Settings{
		UID: os.Getuid(), AllowSameUser: true, Editor: true,
		People: []connectors.Person{fay, sam, kim},
		Routes: []engine.Route{
			{Agents: []string{permissions.CallerUID(OfSam).Name}, Ask: []string{"sam"}},
			{Agents: []string{permissions.CallerUID(OfBoth).Name}, Ask: []string{"fay", "sam"}},
			{Ask: []string{"fay"}},
		},
		Approvals: engine.Approvals{
			Timeout: time.Hour, MaxTimeout: 24 * time.Hour, ClarificationTimeout: time.Hour, DeliverWithin: 24 * time.Hour,
			RedeemWindow: time.Hour, Scopes: []permissions.Scope{permissions.Once, permissions.Session, permissions.For(15 * time.Minute)},
		},
		Policy: permissions.Policy{Gated: []string{"*"}},
		Limits: engine.Limits{PendingPerCaller: 100_000, PromptsPerMinute: 10_000_000, PendingTotal: 100_000},
	}
}

// Configure changes the settings.
func (d *Env) Configure(change func(*engine.Settings)) {
	d.settings.People, d.settings.Routes = slices.Clone(d.settings.People), slices.Clone(d.settings.Routes)
	change(&d.settings)
	d.Engine.Configure(d.settings)
}

// GiveAccount makes the account of the tests that of another person; empty: of nobody.
func (d *Env) GiveAccount(name string) {
	d.Configure(func(s *engine.Settings) {
		for i, uid := range []int{fayUID, samUID, kimUID} {
			if s.People[i].UID = uid; s.People[i].Name == name {
				s.People[i].UID = os.Getuid()
			}
		}
	})
}

// As is how a person answers over telegram.
func (d *Env) As(name string) connectors.Identity {
	i := slices.IndexFunc(d.settings.People, func(p connectors.Person) bool { return p.Name == name })
	return connectors.Identity{Via: d.phone.Name(), UID: d.settings.People[i].UID}
}

// Decide is an answer of fay's over telegram.
func (d *Env) Decide(id permissions.ID, a permissions.Answer, comment string) (permissions.Request, error) {
	return d.OnPermission(context.Background(), connectors.Decision{From: d.As("fay"), Request: id, Answer: a, Comment: comment})
}

// Fail makes every call of the store fail with err; nil ends that.
func (d *Env) Fail(err error) { d.faults.set(err) }

// Ask is that of the engine.
func (d *Env) Ask(ctx context.Context, c permissions.Caller, q permissions.Request) (permissions.Request, error) {
	d.noteAsk(c, q)
	return d.Engine.Ask(ctx, c, q)
}

// AskDeferred is that of the engine.
func (d *Env) AskDeferred(
	ctx context.Context, until time.Time, c permissions.Caller, question func() (permissions.Request, error),
) (*permissions.Request, error) {
	return d.Engine.AskDeferred(ctx, until, c, func() (permissions.Request, error) {
		q, err := question()
		if err == nil {
			d.noteAsk(c, q)
		}
		return q, err
	})
}

func (d *Env) noteAsk(c permissions.Caller, q permissions.Request) {
	if d.Asks != nil {
		d.Asks(c, q)
	}
}

// Subscribe is that of the engine.
func (d *Env) Subscribe(buffer int) *registry.Feed {
	f := d.Engine.Subscribe(buffer)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.feeds = append(d.feeds, f)
	return f
}

// Feeds are all feeds ever subscribed to, in order.
func (d *Env) Feeds() []*registry.Feed {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.feeds)
}

// Deliver lets telegram show a request, and returns when the store has it that it was shown.
func (d *Env) Deliver(t testing.TB, id permissions.ID) {
	t.Helper()
	d.phone.show(id)
	Eventually(t, "it is shown", func() bool {
		copies, err := d.Store.Copies(t.Context(), id)
		return err == nil && slices.ContainsFunc(copies, func(c permissions.Copy) bool { return !c.SentAt.IsZero() })
	})
}

// Waiters is how many calls wait for a request.
func (d *Env) Waiters(id permissions.ID) int {
	s, _ := d.View(context.Background(), permissions.Request{ID: id, State: permissions.Pending})
	return s.Waiting
}

// PendingIDs are the ids of pending requests, oldest first.
func (d *Env) PendingIDs() (ids []permissions.ID) {
	rows, _ := d.Store.Pending(context.Background(), "", "", 1000)
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	return ids
}

// Prune deletes the oldest entries of the audit, which writes one that says so.
func (d *Env) Prune(t testing.TB, entries int) {
	t.Helper()
	if _, err := d.Store.Prune(t.Context(), permissions.Keep{Audit: 1}, time.Now().Add(time.Second), entries); err != nil {
		t.Fatal(err)
	}
}

// Commit stores a step of a session of one of the daemon's agents.
func (d *Env) Commit(t testing.TB, c agents.Commit) {
	t.Helper()
	if err := d.Store.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// Question is a question for tests.
func Question(reason string) permissions.Request {
	return permissions.Request{
		Kind: permissions.KindPermission, Tags: []permissions.Tag{permissions.Network}, Reason: reason,
	}
}

// phone is a channel that reaches everybody, and shows a request when it is told to.
type phone struct {
	mu    sync.Mutex
	shown map[permissions.ID]chan struct{}
}

func newPhone() *phone { return &phone{shown: map[permissions.ID]chan struct{}{}} }

// Name implements [connectors.Connector].
func (*phone) Name() string { return "telegram" }

// Run implements [connectors.Connector].
func (*phone) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// at is closed when a request is to be shown.
func (p *phone) at(id permissions.ID) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown[id] == nil {
		p.shown[id] = make(chan struct{})
	}
	return p.shown[id]
}

func (p *phone) show(id permissions.ID) { close(p.at(id)) }

// Notify implements [connectors.Notifier].
func (*phone) Notify(context.Context, connectors.Notice) error { return nil }

// Send implements [connectors.Connector].
func (p *phone) Send(ctx context.Context, c connectors.Prompt) (ref string, err error) {
	select {
	case <-p.at(c.Request.ID):
		return "1", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
