package telegramtest

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// defaultToken has the form of a token and says that it is none.
const defaultToken = "123456789:TEST-TOKEN-THAT-IS-NOT-A-SECRET-000"

var tokenForm = regexp.MustCompile(`^[0-9]+:[A-Za-z0-9_-]{35}$`)

// Options are what a server is to be. The zero Options will do.
type Options struct {
	// TB is the test that a violation of the schema fails. Without one, look at [Server.Violations].
	TB testing.TB
	// Token is the bot's, the bot's id before the colon.
	Token string
	// Bot is how the bot is called.
	Bot User
	// ReadsAll switches the privacy mode off: the bot sees all that is written in its groups.
	ReadsAll bool
}

// Server is a Bot API server with one bot. It is safe for concurrent use.
type Server struct {
	tb       testing.TB
	token    string
	bot      User
	readsAll bool
	schema   *schema
	methods  map[string]method

	mu         sync.Mutex    // guards all below, and is never held while waiting
	changed    chan struct{} // closed and replaced with every change
	skipped    time.Duration // what Advance added to the clock
	behind     time.Duration // that messages are dated before that
	addr       string
	era        *era // nil while it is down
	violations []Violation
	calls      []Call
	faults     faults

	lastMessage int // of private chats and groups, which count together
	lastFile    int
	lastTap     int
	lastGroup   int64
	accounts    map[int64]*account
	chats       map[int64]*chat
	files       map[string]*Document
	taps        map[string]*Tap
	commands    map[string][]Command
	description string

	queue updates
}

// New starts a server that is closed with the test, and fails it for every violation of the schema.
func New(tb testing.TB) *Server {
	tb.Helper()
	s, err := Serve(Options{TB: tb})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

// Serve starts a server. Whoever calls it calls Close.
func Serve(o Options) (*Server, error) {
	if o.Token == "" {
		o.Token = defaultToken
	}
	if !tokenForm.MatchString(o.Token) {
		return nil, fmt.Errorf("start a Bot API server: a token is an id, a colon and 35 characters")
	}
	o.Bot.IsBot = true
	id, _, _ := strings.Cut(o.Token, ":")
	o.Bot.ID, _ = strconv.ParseInt(id, 10, 64)
	if o.Bot.FirstName == "" {
		o.Bot.FirstName = "Daycared"
	}
	if o.Bot.Username == "" {
		o.Bot.Username = "daycared_test_bot"
	}
	schema, err := loadSchema()
	if err != nil {
		return nil, fmt.Errorf("start a Bot API server: %w", err)
	}
	s := &Server{
		tb: o.TB, token: o.Token, bot: o.Bot, readsAll: o.ReadsAll, schema: schema, methods: methods(),
		changed: make(chan struct{}), addr: "127.0.0.1:0", lastGroup: 4_000_000, lastMessage: 10,
		accounts: map[int64]*account{}, chats: map[int64]*chat{}, files: map[string]*Document{},
		taps: map[string]*Tap{}, commands: map[string][]Command{},
		queue: newUpdates(),
	}
	s.faults.rand = rand.New(rand.NewPCG(1, 1))
	if err := s.Up(); err != nil {
		return nil, err
	}
	return s, nil
}

// URL is the base of all addresses, to be used as api_url: methods are at URL/botTOKEN/METHOD, files at
// URL/file/botTOKEN/PATH. It stays the same while the server is down.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "http://" + s.addr
}

// Token is the bot's token.
func (s *Server) Token() string { return s.token }

// Bot is the bot.
func (s *Server) Bot() User { return s.bot }

// Close ends the server, whatever hangs in it, and every connection. Nothing of it is left when it returns.
func (s *Server) Close() { s.Down() }

// Violation is something received or emitted that the Bot API does not know.
type Violation struct {
	What   string // "sendMessage request", "getMe result", "callback_query update" …
	Detail string
}

// Violations are what did not fit the schema so far.
func (s *Server) Violations() []Violation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Violation(nil), s.violations...)
}

// violate notes a violation. The lock is held.
func (s *Server) violate(what, detail string) {
	s.violations = append(s.violations, Violation{What: what, Detail: detail})
	if s.tb != nil {
		s.tb.Errorf("%s is not as the Bot API has it: %s", what, detail)
	}
}
