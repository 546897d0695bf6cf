// Package admin is the door of those who decide: HTTP on admin.sock, for the command line and for an inbox in another
// terminal, and the client that speaks to it.
//
// Who calls is the account at the other end of the socket. The account that runs the daemon, and root, may also present
// the admin key, and are the operator then. Everybody else is the person whose account it is, sees what was put to them
// and decides that. What an identity may do is the business of the [Desk]; this door only proves it.
//
// As a connector it pushes nothing: whoever has an inbox open follows the stream of changes, is told notices in it, and
// counts as reachable while they do. What their agents say comes in it, too, and waits while there is none; they write to
// them by routes of their own. The events are another stream, read from the audit in the order of commits: its
// reader names the last one that it has and goes on from there.
package admin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// Name is what copies and the configuration call this door.
const Name = "admin"

// The references of what was shown here.
const (
	refInbox = "inbox" // the person had an inbox open
	refAdmin = "admin" // they will come and look
)

// Key is the secret that proves the operator. It does not print.
type Key string

// String hides the key.
func (Key) String() string { return "‹admin key›" }

// GoString hides the key.
func (k Key) GoString() string { return k.String() }

// LogValue hides the key.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// Options are what a [Connector] needs.
type Options struct {
	Socket string // path of admin.sock
	Group  string // whose members may come in as well; empty: this account and root only
	Key    Key    // of the operator; empty: nobody is
	// AdminReachable lets a request wait for somebody to come to the socket, without an open inbox.
	AdminReachable bool
	// Connections is how many connections one account may have at a time; 0 for the default of 1024.
	Connections int
	// Zone is where a person lives, by name; nil where that is not known. It is called by several goroutines at a time;
	// nil knows nobody.
	Zone func(name string) *time.Location
	// Metrics answers /metrics; nil: nothing does.
	Metrics http.Handler
	// Daemon describes the process for [Status]; nil: nothing is known of it. It is called by several goroutines at a time.
	Daemon func() Daemon
	// Stop ends the daemon in order; nil: nobody can. by is who asked for it, for the log. It returns at once.
	Stop func(by string)
	Log  *slog.Logger
}

// Connector is the deciders' door.
type Connector struct {
	options  Options
	inboxes  inboxes
	began    atomic.Pointer[time.Time] // when Run began
	listener net.Listener
}

var (
	_ connectors.Connector = (*Connector)(nil)
	_ connectors.Reacher   = (*Connector)(nil)
	_ connectors.Teller    = (*Connector)(nil)
	_ connectors.Screen    = (*Connector)(nil)
)

// New makes a connector. It does nothing yet.
func New(o Options) *Connector { return &Connector{options: o} }

// Name is [Name].
func (c *Connector) Name() string { return Name }

// Shows is [connectors.Screen].
func (c *Connector) Shows() {}

// Listen opens the socket, so that what is wrong with it is known before anything else is started. Callers wait in the
// socket's queue until [Connector.Run].
func (c *Connector) Listen() error {
	l, err := wire.Listen(c.options.Socket, c.options.Group)
	if err != nil {
		return err
	}
	c.listener = l
	return nil
}

// Run serves until ctx ends, after [Connector.Listen] if that was not called. h is also a [Desk]: the engine is both.
func (c *Connector) Run(ctx context.Context, h connectors.Handler) error {
	desk, ok := h.(Desk)
	if !ok {
		return errors.New("serve admin.sock: the handler is not a desk")
	}
	if c.listener == nil {
		if err := c.Listen(); err != nil {
			return err
		}
	}
	now := time.Now()
	c.began.Store(&now)
	l := c.listener
	c.listener = nil // it is closed when Run returns
	guarded := c.door(desk).Handler(wire.Entrance{Guard: paced()})
	return wire.Serve(ctx, l, guarded, c.options.Connections, c.options.Log)
}

// door has all that deciders may reach.
func (c *Connector) door(desk Desk) *wire.Door {
	door := wire.NewDoor("daycared for deciders", desk.Ready, c.options.Log)
	r := &routes{desk: desk, door: door, gate: newGate(c.options.Key), inboxes: &c.inboxes, zone: c.options.Zone,
		daemon: c.options.Daemon, end: c.options.Stop}
	r.register()
	if c.options.Metrics != nil {
		door.Metrics(c.options.Metrics)
	}
	return door
}

// The paces of each account, in calls a second and at once. They are this door's own: what agents do uses up nothing.
const (
	callsPerSecond, callsAtOnce = 2000, 5000
	looksPerSecond, looksAtOnce = 20, 100
)

func paced() func(http.Handler) http.Handler {
	return wire.Paced(wire.NewPace(callsPerSecond, callsAtOnce), wire.NewPace(looksPerSecond, looksAtOnce))
}

// returnTime is how long an inbox whose connection was lost, perhaps because the daemon was started again, has to come
// back before its person counts as gone.
const returnTime = 2 * time.Second

// Reach is [connectors.Reacher].
func (c *Connector) Reach(p connectors.Person) error {
	switch {
	case c.options.AdminReachable, c.inboxes.present(p.Name):
		return nil
	case c.began.Load() == nil, c.mayReturn(p.Name): // before it serves, nobody could come back
		return away(p)
	}
	return gone(p)
}

func gone(p connectors.Person) error { return &connectors.Gone{Why: p.Name + " has no inbox open"} }

func (c *Connector) mayReturn(name string) bool {
	last := c.inboxes.left(name)
	if began := c.began.Load(); last.IsZero() && began != nil {
		last = *began
	}
	return time.Since(last) < returnTime
}

// Send shows the request in the person's inboxes, or notes that they will come and look.
func (c *Connector) Send(_ context.Context, p connectors.Prompt) (ref string, err error) {
	present, _ := c.inboxes.send(p.To.Name, parcel{request: p.Request.ID})
	switch {
	case present:
		return refInbox, nil
	case c.options.AdminReachable:
		return refAdmin, nil
	case c.began.Load() == nil, c.mayReturn(p.To.Name):
		return "", away(p.To)
	}
	return "", gone(p.To)
}

// Tell is [connectors.Teller]: what the notice says goes to every inbox that the person has open.
func (c *Connector) Tell(_ context.Context, n connectors.Notice) error {
	lines := card.Notice(n, card.Options{Self: n.To.Name, Now: time.Now(), Location: cmp.Or(n.To.Location, time.Local)})
	if len(lines) == 0 {
		return nil
	}
	switch present, taken := c.inboxes.send(n.To.Name, parcel{lines: lines}); {
	case taken > 0:
		return nil
	case present, c.mayReturn(n.To.Name):
		return away(n.To)
	}
	return gone(n.To)
}

func away(p connectors.Person) error { return errors.New(p.Name + " has no inbox open just now") }

// What a caller says about itself besides its account.
const (
	headerKey = "Authorization" // Bearer and the admin key
	headerVia = "Daycared-Via"
	bearer    = "Bearer "
)

// What decided_via says of decisions that come through this door.
const (
	viaCLI      = "cli"
	viaTerminal = "terminal" // an inbox: a prompt on somebody's screen
)

// gate proves who calls.
type gate struct {
	key    [sha256.Size]byte
	hasKey bool
	own    int // the account that runs the daemon
}

func newGate(key Key) gate {
	return gate{key: sha256.Sum256([]byte(key)), hasKey: key != "", own: os.Geteuid()}
}

type identityKey struct{}

// admit proves who makes a call, for every route behind it.
func (g gate) admit(ctx huma.Context, next func(huma.Context)) {
	id := g.identity(wire.PeerUID(ctx.Context()), ctx.Header(headerKey), ctx.Header(headerVia))
	next(huma.WithValue(ctx, identityKey{}, id))
}

// who is who makes the call that ctx is of; nobody, where nothing has been proven.
func who(ctx context.Context) connectors.Identity {
	if id, ok := ctx.Value(identityKey{}).(connectors.Identity); ok {
		return id
	}
	return connectors.Identity{Via: viaCLI, UID: permissions.NoUID}
}

// identity is who calls, given the account at the other end and what the call presents. Only the daemon's own account
// and root can be the operator, and only with the key, which is compared in constant time.
func (g gate) identity(uid int, authorization, via string) connectors.Identity {
	id := connectors.Identity{Via: viaCLI, UID: uid}
	if via == viaTerminal {
		id.Via = viaTerminal
	}
	key, presented := strings.CutPrefix(authorization, bearer)
	digest := sha256.Sum256([]byte(key))
	right := subtle.ConstantTimeCompare(digest[:], g.key[:]) == 1
	id.Operator = g.hasKey && presented && right && (uid == 0 || uid == g.own)
	return id
}

// Desk is what this door needs of the engine besides deciding. An identity that is nobody here, or that asks for what
// is not routed to it, gets a *permissions.Refusal; the operator sees everything.
type Desk interface {
	connectors.Handler
	connectors.Controls
	connectors.Talks
	connectors.Locker
	// Who is the name of the person that an identity is.
	Who(id connectors.Identity) (name string, err error)
	// Show gives one request by its id or its code.
	Show(ctx context.Context, id connectors.Identity, name string) (permissions.Standing, error)
	// Cancel withdraws a pending request, by its id or its code.
	Cancel(ctx context.Context, id connectors.Identity, name string) (permissions.Standing, error)

	// Sessions lists at most limit sessions of agents of ours after the one named, by id: those of this person's, and only
	// with ended also those that have.
	Sessions(
		ctx context.Context, id connectors.Identity, ended bool, after permissions.ID, limit int,
	) ([]permissions.Sitting, error)
	// Session gives one of them.
	Session(ctx context.Context, id connectors.Identity, session permissions.ID) (permissions.Sitting, error)
	// Debug switches whether each state of its run is logged.
	Debug(ctx context.Context, id connectors.Identity, session permissions.ID, on bool) (permissions.Sitting, error)
	// Executions lists at most limit of its calls after the one with that ID, by ID.
	Executions(
		ctx context.Context, id connectors.Identity, session permissions.ID, after int64, limit int,
	) ([]permissions.Execution, error)
	// Artifacts lists at most limit of its artifacts after the one with that ID, by ID: those of one of its calls, or all of them
	// where that is 0.
	Artifacts(
		ctx context.Context, id connectors.Identity, session permissions.ID, execution, after int64, limit int,
	) ([]permissions.Artifact, error)

	// CreateToken makes a token for an agent of a person's, empty for nobody's in particular; expires is how long it is valid, 0 for
	// ever. The secret is told this once.
	// For the operator only, as is all about tokens.
	CreateToken(
		ctx context.Context, id connectors.Identity, name, person string, expires time.Duration,
	) (permissions.Secret, permissions.Token, error)
	// Tokens lists the tokens that are not revoked.
	Tokens(ctx context.Context, id connectors.Identity) ([]permissions.Token, error)
	// RevokeToken revokes one token by its id, or all of a name.
	RevokeToken(ctx context.Context, id connectors.Identity, name string) ([]permissions.Token, error)

	// Happenings lists at most limit events after seq that this person may see, and how far it looked: where to go on.
	// An after that lies before everything that is still kept is refused with [permissions.CodeGone], unless it is 0:
	// from wherever the list begins.
	Happenings(ctx context.Context, id connectors.Identity, after int64, limit int) (list []permissions.Happening, seen int64, err error)
	// Changed is closed when there may be new ones.
	Changed() <-chan struct{}

	// Audit lists at most limit entries of the daemon's chain after seq, oldest first; for the operator only.
	Audit(ctx context.Context, id connectors.Identity, after int64, limit int) ([]permissions.Entry, error)
	// Verify checks every audit chain and returns their heads; for the operator only.
	Verify(ctx context.Context, id connectors.Identity) ([]permissions.Head, error)
	// Invite makes a link by which somebody brings the account that is to answer as the person of that name.
	Invite(ctx context.Context, id connectors.Identity, name, via string) (connectors.Invitation, error)
	// Guest waits until somebody has come by the link.
	Guest(ctx context.Context, id connectors.Identity, code string) (connectors.Guest, error)
	// Pair has the guest with that address answer as the person, and returns the account that did before, if another.
	Pair(ctx context.Context, id connectors.Identity, code, address string) (now, was permissions.Pairing, err error)
	// Dismiss ends the invitation.
	Dismiss(ctx context.Context, id connectors.Identity, code string) error
	// Unpair takes the account away that somebody was paired with.
	Unpair(ctx context.Context, id connectors.Identity, name, via string) (permissions.Pairing, error)

	// Locks are the people who are locked.
	Locks() []permissions.Lock
	// Suspended lists what opens nothing since the store was restored.
	Suspended(ctx context.Context, id connectors.Identity) (permissions.Suspended, error)
	// Reinstate has what the names mean open again what it opened, or everything without names, and returns it.
	Reinstate(ctx context.Context, id connectors.Identity, names []string) (permissions.Suspended, error)

	// Subscribe follows every committed change.
	Subscribe(buffer int) *permissions.Feed
	// Stand is a row with its code, copies and waiters.
	Stand(ctx context.Context, r permissions.Request) (permissions.Standing, error)
	// Health is what is wrong with each channel that knows, and with people's accounts there, by the channel's name; nil
	// for one that is well.
	Health() map[string]error
	// Ways are the channels by which each person can be reached.
	Ways() map[string][]string
	// Contacts are all channels that are switched on, with whom each can reach just now.
	Contacts() []connectors.Contact
	// Waiting is how many requests wait for an identity, and since when the oldest does; zero where none waits.
	Waiting(ctx context.Context, id connectors.Identity) (count int, since time.Time, err error)
	// Ready is nil while requests can be stored and answered; the error says what to do.
	Ready(ctx context.Context) error
}
