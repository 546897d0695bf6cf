package connectortest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Nobody is the services of a daemon that has no people, agents or grants. Tests embed it in those that they hand a connector.
type Nobody struct{}

var _ connectors.Services = Nobody{}

// Person finds nobody.
func (Nobody) Person(id connectors.Identity) (connectors.Person, error) {
	return connectors.Person{}, permissions.NotConfigured(id.UID)
}

// OnPermission knows no request.
func (Nobody) OnPermission(_ context.Context, d connectors.Decision) (permissions.Request, error) {
	return permissions.Request{}, permissions.Unknown(string(d.Request) + d.Code)
}

// OnMessage reaches no agent.
func (Nobody) OnMessage(context.Context, connectors.Message) error { return permissions.NoAgent() }

// Agents are none.
func (Nobody) Agents(context.Context, connectors.Identity) ([]permissions.Presence, error) {
	return nil, permissions.NoAgent()
}

// Use finds no agent.
func (Nobody) Use(context.Context, connectors.Identity, string) (string, error) {
	return "", permissions.NoAgent()
}

// Order reaches no agent.
func (Nobody) Order(context.Context, connectors.Identity, permissions.Order, string) (string, error) {
	return "", permissions.NoAgent()
}

// Pending is empty.
func (Nobody) Pending(context.Context, connectors.Identity, permissions.ID, int) ([]permissions.RequestView, error) {
	return nil, nil
}

// Grants are none.
func (Nobody) Grants(context.Context, connectors.Identity, permissions.ID, int) ([]permissions.Grant, error) {
	return nil, nil
}

// Revoke knows no grant.
func (Nobody) Revoke(_ context.Context, _ connectors.Identity, id permissions.ID) (permissions.Revoked, error) {
	return permissions.Revoked{}, permissions.Unknown(string(id))
}

// Void knows no request.
func (Nobody) Void(_ context.Context, _ connectors.Identity, name string) (permissions.RequestView, error) {
	return permissions.RequestView{}, permissions.Unknown(name)
}

// StopAll cancels nothing.
func (Nobody) StopAll(context.Context, connectors.Identity) (int, error) { return 0, nil }

// Resume does nothing.
func (Nobody) Resume(context.Context, connectors.Identity) error { return nil }

// StopAgent knows no agent.
func (Nobody) StopAgent(_ context.Context, _ connectors.Identity, name string) (permissions.Lock, int, error) {
	return permissions.Lock{}, 0, permissions.NoAgentNamed(name)
}

// ResumeAgent knows no agent.
func (Nobody) ResumeAgent(_ context.Context, _ connectors.Identity, name string) (permissions.Lock, error) {
	return permissions.Lock{}, permissions.AgentNotStopped(name)
}

// QuietAgent knows no agent.
func (Nobody) QuietAgent(_ context.Context, _ connectors.Identity, name string, _ time.Duration) (time.Time, error) {
	return time.Time{}, permissions.NoAgentNamed(name)
}

// TrustAgent knows no agent.
func (Nobody) TrustAgent(
	_ context.Context, _ connectors.Identity, name string, _ time.Duration, _ bool,
) (permissions.Grant, error) {
	return permissions.Grant{}, permissions.NoAgentNamed(name)
}

// StoppedBy is empty.
func (Nobody) StoppedBy() string { return "" }

// Lock finds nobody.
func (Nobody) Lock(_ context.Context, _ connectors.Identity, name string, _ time.Time) (permissions.Locked, error) {
	return permissions.Locked{}, permissions.NoPerson(name, "")
}

// Unlock finds nobody.
func (Nobody) Unlock(_ context.Context, _ connectors.Identity, name string) (permissions.Lock, bool, error) {
	return permissions.Lock{}, false, permissions.NoPerson(name, "")
}

// SetAway finds nobody.
func (Nobody) SetAway(_ context.Context, id connectors.Identity, _ time.Time, _ string) error {
	return permissions.NotConfigured(id.UID)
}

// PairSender knows no account.
func (Nobody) PairSender(
	_ context.Context, _ connectors.Identity, _, account string,
) (s permissions.UnknownSender, paired bool, err error) {
	return s, false, permissions.NoSender(account)
}

// WithdrawPairing knows no account.
func (Nobody) WithdrawPairing(_ context.Context, _ connectors.Identity, name, account string) error {
	return permissions.NotProposed(account, name)
}

// NoteUnknownSender does nothing.
func (Nobody) NoteUnknownSender(context.Context, permissions.UnknownSender) error { return nil }

// ChatLost does nothing.
func (Nobody) ChatLost(context.Context, string, string, string, string) error { return nil }

// ChatRecovered does nothing.
func (Nobody) ChatRecovered(context.Context, string, string, string) error { return nil }

// Suspend does nothing.
func (Nobody) Suspend(context.Context, string, string) error { return nil }

// Preview knows no request.
func (Nobody) Preview(context.Context, connectors.Decision) (connectors.Prompt, error) {
	return connectors.Prompt{}, permissions.Unknown("button")
}

// Burst finds none.
func (Nobody) Burst(context.Context, connectors.Identity, string) (connectors.Burst, error) {
	return connectors.Burst{}, nil
}

// DecideAll knows no burst.
func (Nobody) DecideAll(context.Context, connectors.BurstDecision) (connectors.Burst, int, error) {
	return connectors.Burst{}, 0, permissions.Unknown("button")
}

// LivePrompts are none.
func (Nobody) LivePrompts(context.Context, string, int) ([]connectors.Prompt, error) { return nil, nil }

// Refresh refreshes nothing.
func (Nobody) Refresh(context.Context, string) ([]connectors.Prompt, error) { return nil, nil }

// SendAgain sends nothing.
func (Nobody) SendAgain(context.Context, connectors.Identity, string) (connectors.Prompt, error) {
	return connectors.Prompt{}, permissions.NotYours()
}

// ShowAgain shows nothing.
func (Nobody) ShowAgain(context.Context, string) ([]connectors.Prompt, error) { return nil, nil }

// Groups are none.
func (Nobody) Groups(context.Context) ([]connectors.Group, error) { return nil, nil }

// RenameGroup does nothing.
func (Nobody) RenameGroup(context.Context, string, string) error { return nil }

// Unheeded is nothing.
func (Nobody) Unheeded(context.Context, connectors.Identity, string) ([]permissions.Request, error) {
	return nil, nil
}

// People are none.
func (Nobody) People() []connectors.Person { return nil }

// Downtime is zero.
func (Nobody) Downtime() time.Duration { return 0 }

// Stop is none.
func (Nobody) Stop() connectors.Stop { return connectors.Stop{} }

// EndStop does nothing.
func (Nobody) EndStop(context.Context, connectors.Identity, time.Time) error { return nil }

// Late is services that are given after the connector was made, before it runs.
type Late struct{ connectors.Services }

// Bind gives the services.
func (l *Late) Bind(in connectors.Services) { l.Services = in }

// patience is how long the suite waits for what must come.
const patience = 10 * time.Second

// inbound is what the suite hands a connector: rows in memory, settled by permissions.Step, and what was sent of them. There is
// one person, the harness's, with one agent.
type inbound struct {
	Nobody
	name string
	self connectors.Person
	is   func(connectors.Identity) bool // whether an identity is self
	now  func() time.Time               // the channel's clock

	mu       sync.Mutex
	rows     map[permissions.ID]permissions.Request
	codes    map[string]permissions.ID
	keys     map[string]permissions.ID // of chat events that decided
	cards    []sentCard
	failures int // how many decisions cannot be stored
	taken    chan taken
	heard    chan connectors.Message
}

// sentCard is a prompt as the connector was last given it.
type sentCard struct {
	connectors.Prompt
	dated time.Time
}

// taken is a decision that came in, and what became of it.
type taken struct {
	decision connectors.Decision
	after    permissions.Request
	err      error
}

var errStore = errors.New("the disk is full")

func newInbound() *inbound {
	return &inbound{
		taken: make(chan taken, 100), heard: make(chan connectors.Message, 100),
		rows: map[permissions.ID]permissions.Request{}, codes: map[string]permissions.ID{}, keys: map[string]permissions.ID{},
	}
}

// serve makes the harness's person the one who is known.
func (d *inbound) serve(h Harness) {
	d.name, d.self, d.is, d.now = h.Connector.Name(), h.To, h.Is, h.Now
	if d.now == nil {
		d.now = time.Now
	}
}

// Person finds the harness's person.
func (d *inbound) Person(id connectors.Identity) (connectors.Person, error) {
	if id.Via != d.name || !d.is(id) {
		return connectors.Person{}, permissions.NotConfigured(id.UID)
	}
	return d.self, nil
}

// OnPermission decides a row. A button is recorded with the request that it names.
func (d *inbound) OnPermission(_ context.Context, dec connectors.Decision) (permissions.Request, error) {
	after, err := d.decide(&dec)
	d.taken <- taken{dec, after, err}
	return after, err
}

// OnMessage hears what is for the agent.
func (d *inbound) OnMessage(_ context.Context, m connectors.Message) error {
	if _, err := d.Person(m.From); err != nil {
		return err
	}
	d.heard <- m
	return nil
}

// Agents is the one that there is.
func (d *inbound) Agents(_ context.Context, id connectors.Identity) ([]permissions.Presence, error) {
	if _, err := d.Person(id); err != nil {
		return nil, err
	}
	return []permissions.Presence{{Agent: "helper", Foreground: true, Activity: permissions.Idle}}, nil
}

// Pending is what was sent and is pending, as far as the connector was told.
func (d *inbound) Pending(
	_ context.Context, _ connectors.Identity, after permissions.ID, _ int,
) (waiting []permissions.RequestView, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if after != "" { // all are on the first page
		return nil, nil
	}
	for _, c := range d.cards {
		if c.Request.State == permissions.Pending {
			shown := permissions.Copy{Person: c.To.Name, Connector: d.name, Ref: c.Ref, SentAt: c.SentAt, ChannelTime: c.dated}
			waiting = append(waiting, permissions.RequestView{Request: c.Request, Code: c.Code, Copies: []permissions.Copy{shown}})
		}
	}
	return waiting, nil
}

// Preview is the card whose button was pressed.
func (d *inbound) Preview(_ context.Context, dec connectors.Decision) (connectors.Prompt, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, err := d.pressed(dec)
	if err == nil && c.Request.State != permissions.Pending {
		err = permissions.ToRefusal(&permissions.SettledError{Request: c.Request})
	}
	return c.Prompt, err
}

// pressed is the card whose button was pressed. The caller holds the lock.
func (d *inbound) pressed(dec connectors.Decision) (sentCard, error) {
	n := slices.IndexFunc(d.cards, func(c sentCard) bool { return c.Button == dec.Button })
	switch {
	case n < 0:
		return sentCard{}, permissions.Unknown("button")
	case !d.is(dec.From):
		return sentCard{}, permissions.NotYours()
	case d.cards[n].Ref != dec.Ref && d.cards[n].Ref != "":
		return sentCard{}, permissions.ButtonMoved()
	}
	return d.cards[n], nil
}

func (d *inbound) decide(dec *connectors.Decision) (permissions.Request, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := dec.Request
	switch {
	case dec.Button != "":
		c, err := d.pressed(*dec)
		if err != nil {
			return permissions.Request{}, err
		}
		id, dec.Request = c.Request.ID, c.Request.ID
	case id == "":
		id = d.codes[dec.Code]
	}
	r, ok := d.rows[id]
	known, again := d.keys[dec.Key]
	switch {
	case again && known == id:
		return r, nil
	case !ok:
		return permissions.Request{}, permissions.Unknown(string(id))
	case dec.From.Via != d.name || !d.is(dec.From) || !slices.Contains(r.Asked, d.self.Name):
		return permissions.Request{}, permissions.NotYours()
	case dec.Shown != permissions.Digest{} && dec.Shown != r.ShownDigest():
		return r, permissions.ShownDiffers()
	case d.failures > 0:
		d.failures--
		return permissions.Request{}, errStore
	}
	var e permissions.Transition = permissions.Cast{Really: dec.Really, Vote: permissions.Vote{
		By: d.self.Name, Via: dec.From.Via, Answer: dec.Answer, Call: dec.Call, Comment: dec.Comment, At: r.CreatedAt,
	}}
	if dec.Default {
		e = permissions.Default{By: d.self.Name, Via: dec.From.Via, At: r.CreatedAt}
	}
	c, err := permissions.Step(r, e)
	if err != nil {
		return r, permissions.ToRefusal(err)
	}
	d.rows[id] = c.After
	if dec.Key != "" {
		d.keys[dec.Key] = id
	}
	d.tell(c.After)
	return c.After, nil
}

// tell notes that the connector knows what a request has become. The caller holds the lock.
func (d *inbound) tell(r permissions.Request) {
	for i := range d.cards {
		if d.cards[i].Request.ID == r.ID {
			d.cards[i].Request = r
		}
	}
}

// put keeps a row and returns it as the person is to see it.
func (d *inbound) put(r permissions.Request, code string) connectors.Prompt {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rows[r.ID] = r
	d.codes[code] = r.ID
	return connectors.Prompt{
		Request: r, Code: code, To: d.self, Waiting: 1, Button: permissions.NewButton(),
	}
}

// sends notes that a prompt is being sent: its answer may come before its confirmation.
func (d *inbound) sends(p connectors.Prompt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := slices.IndexFunc(d.cards, func(c sentCard) bool { return c.Button == p.Button }); n >= 0 {
		d.cards[n].Prompt = p
		return
	}
	p.SentAt = d.now()
	d.cards = append(d.cards, sentCard{Prompt: p})
}

// sent notes the channel's name of what was sent, and when that was by its clock.
func (d *inbound) sent(p connectors.Prompt, ref string, dated time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.cards {
		if d.cards[i].Button == p.Button {
			d.cards[i].Ref, d.cards[i].dated = ref, dated
		}
	}
}

// edits returns a prompt with what is known of its card.
func (d *inbound) edits(ref string, p connectors.Prompt) connectors.Prompt {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tell(p.Request)
	for _, c := range d.cards {
		if c.Ref == ref {
			p.Ref, p.Button, p.SentAt = ref, c.Button, c.SentAt
		}
	}
	return p
}

// elsewhere lets something happen to a request that does not come through the connector.
func (d *inbound) elsewhere(t testing.TB, p connectors.Prompt, e permissions.Transition) connectors.Prompt {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	c, err := permissions.Step(d.rows[p.Request.ID], e)
	if err != nil {
		t.Fatalf("settle elsewhere: %v", err)
	}
	d.rows[p.Request.ID] = c.After
	p.Request = c.After
	return p
}

func (d *inbound) row(p connectors.Prompt) permissions.Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rows[p.Request.ID]
}

// next is the next decision that comes in.
func (d *inbound) next(t testing.TB) taken {
	t.Helper()
	select {
	case got := <-d.taken:
		return got
	case <-time.After(patience):
		t.Fatal("no decision reached the engine")
		return taken{}
	}
}

// none checks that no decision was taken that changed anything.
func (d *inbound) none(t testing.TB) {
	t.Helper()
	for {
		select {
		case got := <-d.taken:
			if got.err == nil {
				t.Fatalf("a decision was taken: %+v", got.decision)
			}
		default:
			return
		}
	}
}
