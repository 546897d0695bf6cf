// Package admin is the server for people who decide: HTTP on admin.sock, for the command line and for inboxes in other
// terminals, with its client.
//
// The caller is the account at the other end of the socket. The account that runs the daemon, and root, become the operator
// by presenting the admin key. Everybody else is the person with that account, and sees and decides what was sent to them.
// This server only proves an identity; the [Operations] decides what it may do.
//
// As a connector it pushes nothing by itself. A client with an open inbox follows a stream of changes, notices and agent
// messages, and its person counts as reachable meanwhile; agent messages wait for an inbox. People write to agents by
// routes of their own. Events are a second stream, read from the audit in the order of commits: a reader names the last
// event that it has and continues there.
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
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/internal/server"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/registry"
	"github.com/daycared/daycared/permissions/timing"
)

// Name identifies this server in copies and in the configuration.
const Name = "admin"

// References of what was shown here.
const (
	refInbox = "inbox" // an inbox of the person was open
	refAdmin = "admin" // the person will come and look
)

// Key is the operator's secret.
type Key = wire.Secret

// Options configure a [Connector].
type Options struct {
	Socket string // path of admin.sock
	Group  string // its members may connect, too; empty: only this account and root
	Key    Key    // of the operator; empty: there is none
	// AdminReachable lets requests wait for somebody to connect, without an open inbox.
	AdminReachable bool
	// NoteInboxes says to other daemons on the same store who has an inbox open here, and HasInbox reports whether a person has one there;
	// both are nil if there can be none.
	NoteInboxes func(ctx context.Context, names []string) error
	HasInbox    func(name string) bool
	// Connections limits the connections of one account; 0 is 1024.
	Connections int
	// Zone returns a person's time zone, or nil. It may be nil and must be safe for concurrent use.
	Zone func(name string) *time.Location
	// Now is the clock that the store goes by; nil: the machine's.
	Now func() time.Time
	// Metrics serves /metrics; it may be nil.
	Metrics http.Handler
	// Daemon describes the process for [Status]. It may be nil and must be safe for concurrent use.
	Daemon func() Daemon
	// Stop begins an orderly shutdown and returns at once; nil disables it. by names who asked for it, for the log.
	Stop func(by string)
	Log  *slog.Logger
}

// Connector is the admin server.
type Connector struct {
	options  Options
	engine   Operations
	inboxes  inboxes
	checks   verifications
	began    atomic.Pointer[time.Time] // when Run began
	listener net.Listener
}

var (
	_ connectors.Connector           = (*Connector)(nil)
	_ connectors.ReachabilityChecker = (*Connector)(nil)
	_ connectors.Notifier            = (*Connector)(nil)
	_ connectors.Screen              = (*Connector)(nil)
	_ connectors.Follower            = (*Connector)(nil)
)

// New makes a connector for the operations of that engine. It performs no I/O.
func New(o Options, engine Operations) *Connector {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Connector{options: o, engine: engine, inboxes: inboxes{changed: timing.NewSignal()}}
}

// Name is [Name].
func (c *Connector) Name() string { return Name }

// Screen is [connectors.Screen].
func (c *Connector) Screen() {}

// Listen opens the socket, so that its errors are known first. Connections queue until [Connector.Run].
func (c *Connector) Listen() error {
	l, err := server.Listen(c.options.Socket, c.options.Group)
	if err != nil {
		return err
	}
	c.listener = l
	return nil
}

// Run serves until ctx ends. It calls [Connector.Listen] if that was not done.
func (c *Connector) Run(ctx context.Context) error {
	if c.listener == nil {
		if err := c.Listen(); err != nil {
			return err
		}
	}
	now := time.Now()
	c.began.Store(&now)
	l := c.listener
	c.listener = nil // closed when Run returns
	paced := server.RateLimited(server.NewRateLimiter(callsPerSecond, callsAtOnce), server.NewRateLimiter(looksPerSecond, looksAtOnce))
	guarded := c.newServer().Handler(server.Listener{Guard: paced})
	defer c.checks.stop() // nothing reads the store once this has returned
	if c.options.NoteInboxes != nil {
		noting, done := context.WithCancel(ctx)
		var work sync.WaitGroup
		work.Go(func() { c.noteInboxes(noting) })
		defer func() { done(); work.Wait() }()
	}
	return server.Serve(ctx, l, guarded, c.options.Connections, c.options.Log)
}

func (c *Connector) newServer() *server.Server {
	srv := server.New("daycared for deciders", c.engine.Ready, c.options.Log)
	(&routes{c, srv}).register()
	if c.options.Metrics != nil {
		srv.Metrics(c.options.Metrics)
	}
	return srv
}

// Rate limits of one account: calls per second and burst. They are separate from those of agents.
const (
	callsPerSecond, callsAtOnce = 2000, 5000
	looksPerSecond, looksAtOnce = 20, 100
)

// returnTime is how long a lost inbox, as in a restart, may take to reconnect before its person counts as unreachable.
const returnTime = 2 * time.Second

// Reach is [connectors.ReachabilityChecker].
func (c *Connector) Reach(p connectors.Person) error {
	switch {
	case c.options.AdminReachable, c.present(p.Name):
		return nil
	case c.began.Load() == nil, c.mayReturn(p.Name): // not serving yet, so nobody could have reconnected
		return away(p)
	}
	return gone(p)
}

// present reports whether a person has an inbox open, here or at another daemon.
func (c *Connector) present(name string) bool {
	return c.inboxes.present(name) || c.options.HasInbox != nil && c.options.HasInbox(name)
}

// noteInboxes says to other daemons who has an inbox open here, whenever that changes, until ctx ends.
func (c *Connector) noteInboxes(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.inboxes.changed:
		}
		if err := c.options.NoteInboxes(ctx, c.inboxes.names()); err != nil && ctx.Err() == nil {
			c.options.Log.Warn("say to other daemons who has an inbox open: retrying", "err", err)
			c.inboxes.changed.Notify()
			_ = timing.Pause(ctx, returnTime) // the loop checks ctx
		}
	}
}

func gone(p connectors.Person) error {
	return &connectors.UnreachableError{Reason: p.Name + " has no inbox open"}
}

func (c *Connector) mayReturn(name string) bool {
	last := c.inboxes.left(name)
	if began := c.began.Load(); last.IsZero() && began != nil {
		last = *began
	}
	return time.Since(last) < returnTime
}

// Follows is [connectors.Follower]: an open inbox learns of every change, and whoever will come and look needs no sending.
func (c *Connector) Follows(p connectors.Person) (ref string) {
	switch {
	case c.present(p.Name):
		return refInbox
	case c.options.AdminReachable:
		return refAdmin
	}
	return ""
}

// Send shows the request in the person's inboxes, or records that they will come and look.
func (c *Connector) Send(_ context.Context, p connectors.Prompt) (ref string, err error) {
	present, _ := c.inboxes.send(p.To.Name, delivery{request: p.Request.ID})
	switch {
	case present, c.present(p.To.Name): // inboxes at other daemons learn of it as of every change
		return refInbox, nil
	case c.options.AdminReachable:
		return refAdmin, nil
	case c.began.Load() == nil, c.mayReturn(p.To.Name):
		return "", away(p.To)
	}
	return "", gone(p.To)
}

// Notify is [connectors.Notifier]: the notice goes to all open inboxes of the person.
func (c *Connector) Notify(_ context.Context, n connectors.Notice) error {
	lines := card.Notice(n, card.Options{
		Self: n.To.Name, Now: time.Now(), Location: cmp.Or(n.To.Location, time.Local), Language: n.To.Language,
	})
	if len(lines) == 0 {
		return nil
	}
	switch present, taken := c.inboxes.send(n.To.Name, delivery{lines: lines}); {
	case taken > 0:
		return nil
	case present, c.mayReturn(n.To.Name):
		return away(n.To)
	}
	return gone(n.To)
}

func away(p connectors.Person) error {
	return &absent{error: errors.New(p.Name + " has no inbox open just now")}
}

// Headers by which a caller describes itself.
const (
	headerKey = "Authorization" // Bearer and the admin key
	headerVia = "Daycared-Via"
	bearer    = "Bearer "
)

// The values of decided_via for decisions made here.
const (
	viaCLI      = "cli"      // a command of ours
	viaTerminal = "terminal" // an inbox: a prompt on a person's screen
	viaHTTP     = "web"      // any other client, which does not say
)

type authenticator struct {
	key    [sha256.Size]byte
	hasKey bool
	own    int // the account that runs the daemon
}

func newGate(key Key) authenticator {
	return authenticator{key: sha256.Sum256([]byte(key)), hasKey: key != "", own: os.Geteuid()}
}

type identityKey struct{}

// admit authenticates the caller before every route.
func (g authenticator) admit(ctx huma.Context, next func(huma.Context)) {
	id := g.identity(server.PeerUID(ctx.Context()), ctx.Header(headerKey), ctx.Header(headerVia))
	next(huma.WithValue(ctx, identityKey{}, id))
}

// who is ctx's caller, or nobody if the call was not authenticated.
func who(ctx context.Context) connectors.Identity {
	if id, ok := ctx.Value(identityKey{}).(connectors.Identity); ok {
		return id
	}
	return connectors.Identity{Via: viaHTTP, UID: permissions.NoUID}
}

// identity authenticates a caller by its account and what it presents. Only the daemon's own account and root can be the
// operator, and only with the key, which is compared in constant time.
func (g authenticator) identity(uid int, authorization, via string) connectors.Identity {
	id := connectors.Identity{Via: viaHTTP, UID: uid}
	if via == viaTerminal || via == viaCLI {
		id.Via = via
	}
	key, presented := strings.CutPrefix(authorization, bearer)
	digest := sha256.Sum256([]byte(key))
	right := subtle.ConstantTimeCompare(digest[:], g.key[:]) == 1
	id.Operator = g.hasKey && presented && right && (uid == 0 || uid == g.own)
	return id
}

// Operations is what this server needs from the engine: what every channel does, and what only operators do. An identity that
// is not configured, or that asks for what is not routed to it, gets a *permissions.Refusal; the operator sees everything.
type Operations interface {
	connectors.Inbound
	// Who is the name of an identity's person.
	Who(id connectors.Identity) (name string, err error)
	// Absences lists the people who are away.
	Absences() []permissions.Absence
	// Show returns a request by its id or code.
	Show(ctx context.Context, id connectors.Identity, name string) (permissions.RequestView, error)
	// WithRecentActivity adds what its caller did before a pending request, as that identity may see it.
	WithRecentActivity(ctx context.Context, id connectors.Identity, v permissions.RequestView) permissions.RequestView
	// History lists what is settled, oldest first: to the operator everything, to a person what was put to them.
	History(ctx context.Context, id connectors.Identity, of permissions.HistoryQuery) ([]permissions.Request, error)
	// GiveRule gives the caller of an approved request the rule with these patterns, for calls in a folder. It is for an operator who could
	// have allowed the request alone, and the rule must load and cover something of the request.
	GiveRule(ctx context.Context, id connectors.Identity, request permissions.ID, allow []string, in string) (permissions.Grant, error)
	// Cancel withdraws a pending request by its id or code.
	Cancel(ctx context.Context, id connectors.Identity, name string) (permissions.RequestView, error)

	// Sessions lists at most limit sessions of this person's agents after the one given, by id; with ended, also ended ones.
	Sessions(
		ctx context.Context, id connectors.Identity, ended bool, after permissions.ID, limit int,
	) ([]permissions.SessionView, error)
	// Session returns one of them.
	Session(ctx context.Context, id connectors.Identity, session permissions.ID) (permissions.SessionView, error)
	// Debug switches the logging of each state of a session's run.
	Debug(ctx context.Context, id connectors.Identity, session permissions.ID, on bool) (permissions.SessionView, error)
	// Executions lists at most limit of its calls after the one with that id, by id.
	Executions(
		ctx context.Context, id connectors.Identity, session permissions.ID, after int64, limit int,
	) ([]permissions.Execution, error)
	// Artifacts lists at most limit artifacts after that ID, by ID: those of one of its calls; where that is 0, all of them.
	Artifacts(
		ctx context.Context, id connectors.Identity, session permissions.ID, execution, after int64, limit int,
	) ([]permissions.Artifact, error)

	// CreateToken makes a token for an agent of a person; an empty person means nobody in particular. expires is its
	// lifetime, 0 forever. The secret cannot be read again. All methods about tokens are for the operator only.
	CreateToken(
		ctx context.Context, id connectors.Identity, name, person string, expires time.Duration,
	) (permissions.Secret, permissions.Token, error)
	// Tokens lists the tokens that are not revoked.
	Tokens(ctx context.Context, id connectors.Identity) ([]permissions.Token, error)
	// RevokeToken revokes one token by its id, or all of a name.
	RevokeToken(ctx context.Context, id connectors.Identity, name string) ([]permissions.Token, error)

	// Events lists at most limit events after seq that this person may see, and returns how far it looked: where to
	// continue. An after before everything that is kept is refused with [permissions.CodeGone], except 0, which is from the
	// beginning of what is kept.
	Events(ctx context.Context, id connectors.Identity, after int64, limit int) (list []permissions.Event, seen int64, err error)
	// Changed returns a channel that is closed when there may be new events.
	Changed() <-chan struct{}

	// Audit lists at most limit entries of the daemon's chain after seq, oldest first; for the operator only.
	Audit(ctx context.Context, id connectors.Identity, after int64, limit int) ([]permissions.Entry, error)
	// Verify checks every audit chain and returns their heads; for the operator only.
	Verify(ctx context.Context, id connectors.Identity, told ...func(done, all int64)) ([]permissions.Head, error)
	// Invite makes a link by which the person of that name pairs an account.
	Invite(ctx context.Context, id connectors.Identity, name, via string) (connectors.Invitation, error)
	// Guest waits until an account has used the link.
	Guest(ctx context.Context, id connectors.Identity, code string) (connectors.PairingCandidate, error)
	// Pair pairs the candidate with that address with its person, and returns the account that was paired before, if another.
	Pair(ctx context.Context, id connectors.Identity, code, address string) (now, was permissions.Pairing, err error)
	// Dismiss ends an invitation.
	Dismiss(ctx context.Context, id connectors.Identity, code string) error
	// Unpair removes a person's paired account.
	Unpair(ctx context.Context, id connectors.Identity, name, via string) (permissions.Pairing, error)

	// Locks lists the people who are locked, StoppedAgents the agents that are stopped.
	Locks() []permissions.Lock
	StoppedAgents() []permissions.Lock
	// Suspended lists what is suspended since the store was restored.
	Suspended(ctx context.Context, id connectors.Identity) (permissions.Suspended, error)
	// MissingRows lists the rows that were missing at the start although the audit has them open, as the records that close them.
	MissingRows() []permissions.Record
	// Reinstate reactivates what the names mean, or everything without names, and returns it.
	Reinstate(ctx context.Context, id connectors.Identity, names []string) (permissions.Suspended, error)

	// Subscribe follows every committed change.
	Subscribe(buffer int) *registry.Feed
	// View returns a row with its code, copies and waiters.
	View(ctx context.Context, r permissions.Request) (permissions.RequestView, error)
	// Health maps each channel that reports its health to what is wrong with it and with people's accounts there, or nil.
	Health() map[string]error
	// ReachableVia maps each person to the channels by which they can be reached.
	ReachableVia() map[string][]string
	// Contacts lists all enabled channels, with whom each can reach now.
	Contacts() []connectors.Contact
	// Waiting is how many requests wait for an identity, and since when the oldest does; zero without any.
	Waiting(ctx context.Context, id connectors.Identity) (count int, since time.Time, err error)
	// Ready is nil while requests can be stored and answered; otherwise the error says what to do.
	Ready(ctx context.Context) error
}
