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
