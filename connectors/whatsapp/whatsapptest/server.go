package whatsapptest

import (
	"fmt"
	"regexp"
	"sync"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/store"
)

// Options are what a server is to be. The zero Options will do.
type Options struct {
	// TB is the test that a violation fails. Without one, look at [Server.Violations].
	TB testing.TB
	// Number is the phone number of the account that a client is linked to, digits only.
	Number string
}

// Server is WhatsApp with one account that a client can be linked to. It is safe for concurrent use.
type Server struct {
	tb testing.TB

	mu         sync.Mutex    // guards all below, and is never held while waiting
	changed    chan struct{} // closed and replaced with every change
	skipped    time.Duration // what Advance added to the clock
	addr       string
	era        *era // nil while it is down
	violations []string
	stanzas    []Stanza
	faults     faults
	oldest     uint32 // the oldest version of a client that is served
	latest     uint32 // the version that the web page tells

	lastID      int
	lastGroup   int
	connections int
	conns       map[*conn]bool
	conn        *conn      // of the linked device, nil while it is away
	linked      *companion // nil while no client is linked
	lastDevice  uint16
	linking     *linking // what a phone is about to link
	passkey     *Passkey // that is asked for, or nil
	bot         *account
	accounts    map[string]*account // by number, and by the user of their LID
	letters     map[string]*letter  // what people sent, by id
	media       map[string][]byte   // by path
	presence    string
	typing      []Typing
}

var digits = regexp.MustCompile(`^[1-9][0-9]{6,14}$`)

// New starts a server that is closed with the test, and fails it for every violation.
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
	if o.Number == "" {
		o.Number = "15550001111"
	}
	if !digits.MatchString(o.Number) {
		return nil, fmt.Errorf("start a WhatsApp server: a number is 7 to 15 digits, the first not 0")
	}
	trust()
	s := &Server{
		tb: o.TB, changed: make(chan struct{}), addr: "127.0.0.1:0", latest: store.GetWAVersion()[2],
		conns: map[*conn]bool{}, accounts: map[string]*account{}, letters: map[string]*letter{}, media: map[string][]byte{},
	}
	s.bot = s.register(o.Number, "Daycared")
	if err := s.Up(); err != nil {
		return nil, err
	}
	return s, nil
}

// Number is the phone number of the account that a client is linked to.
func (s *Server) Number() string { return s.bot.pn.User }

// Close ends the server and every connection. Nothing of it is left when it returns.
func (s *Server) Close() { s.Down() }

// Violations are what the client sent that WhatsApp does not know, so far.
func (s *Server) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.violations...)
}

// violate notes a violation. The lock is held.
func (s *Server) violate(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	s.violations = append(s.violations, what)
	if s.tb != nil {
		s.tb.Errorf("not as WhatsApp has it: %s", what)
	}
	s.change()
}

// newID is an id of a stanza or a message that was not used yet. The lock is held.
func (s *Server) newID() string {
	s.lastID++
	return fmt.Sprintf("3EB0%016X", s.lastID)
}
