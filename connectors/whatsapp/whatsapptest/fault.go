package whatsapptest

import (
	"strconv"
	"time"

	"go.mau.fi/whatsmeow/binary"
)

// Refusal is a reason to let no client in.
type Refusal struct {
	reason, code int
	expire       time.Duration
}

// LoggedOut refuses a device that was unlinked.
func LoggedOut() Refusal { return Refusal{reason: 401} }

// Banned refuses an account for a time. The code is why: 101 for too many messages to strangers, 102 for too many
// blocks, 103 for too many groups, 104 for too many of the same messages, 106 for broadcasts.
func Banned(code int, expire time.Duration) Refusal {
	return Refusal{reason: 402, code: code, expire: expire}
}

// MainDeviceGone refuses an account whose phone is gone, or that was banned for good.
func MainDeviceGone() Refusal { return Refusal{reason: 403} }

// Outdated refuses a client that is too old.
func Outdated() Refusal { return Refusal{reason: 405} }

// InternalError refuses because of a mistake of the server's own. Clients come back.
func InternalError() Refusal { return Refusal{reason: 500} }

// Unavailable refuses while there is no service. Clients come back.
func Unavailable() Refusal { return Refusal{reason: 503} }

func (r Refusal) node() binary.Node {
	attrs := binary.Attrs{"reason": strconv.Itoa(r.reason), "location": "tst"}
	if r.code != 0 {
		attrs["code"] = strconv.Itoa(r.code)
	}
	if r.expire != 0 {
		attrs["expire"] = strconv.Itoa(int(r.expire.Seconds()))
	}
	return binary.Node{Tag: "failure", Attrs: attrs}
}

// Where is a moment in the life of a stanza.
type Where int

// The moments at which a connection can be cut.
const (
	BeforeReceiving Where = iota // the client's stanza is lost
	AfterReceiving               // what it asks for is done, and the answer lost
	BeforeSending                // the server's stanza is lost, the ones before it are not
	AfterSending                 // the server's stanza arrives, the ones after it do not
)

// faults are what is to come. They are guarded by the server's lock.
type faults struct {
	refusals []Refusal
	forGood  bool // the last refusal stays
	messages []int
	lostAcks int
	holding  bool
	held     []func()
	cutting  []cutting
	garbled  int
	media    []int
	cold     bool
}

type cutting struct {
	where Where
	fits  func(Stanza) bool
}

// RefuseLogins refuses the next n logins, of linked clients and of others; all further ones for n < 0, until n = 0 ends
// that.
func (s *Server) RefuseLogins(n int, r Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.refusals, s.faults.forGood = nil, n < 0
	if n < 0 {
		n = 1
	}
	for range n {
		s.faults.refusals = append(s.faults.refusals, r)
	}
}

func (f *faults) login() (Refusal, bool) {
	if len(f.refusals) == 0 {
		return Refusal{}, false
	}
	r := f.refusals[0]
	if !f.forGood {
		f.refusals = f.refusals[1:]
	}
	return r, true
}

// Requires refuses clients older than a version, the last part of it, as outdated from now on, and lets the web page
// tell that version. Clients that are in stay.
func (s *Server) Requires(version uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oldest, s.latest = version, version
}

// StreamError ends the linked client's connection with an error, as 503.
func (s *Server) StreamError(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.send(s.conn, binary.Node{Tag: "stream:error", Attrs: binary.Attrs{"code": strconv.Itoa(code)}})
	if code == 503 {
		s.bye(s.conn, 0) // what the client learns from is the end
		return
	}
	s.bye(s.conn, lingering)
}

// Replace ends the linked client's connection as if another had logged in as the same device.
func (s *Server) Replace() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.send(s.conn, conflict())
	s.bye(s.conn, lingering)
}

// Silence lets the linked client's connection be, but does and answers nothing any more of what comes over it. What is
// for the client waits for its next connection.
func (s *Server) Silence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.conn.silent = true
	}
}

// CutAt cuts the connection at the next stanza that fits, once. fits must not call the server.
func (s *Server) CutAt(where Where, fits func(Stanza) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.cutting = append(s.faults.cutting, cutting{where, fits})
}

func (f *faults) cuts(where Where, stanza Stanza) bool {
	for i, c := range f.cutting {
		if c.where == where && c.fits(stanza) {
			f.cutting = append(f.cutting[:i:i], f.cutting[i+1:]...)
			return true
		}
	}
	return false
}

// RefuseMessages refuses the client's next n messages with an error, as 463, and delivers none of them.
func (s *Server) RefuseMessages(n, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.faults.messages = append(s.faults.messages, code)
	}
}

// RefuseColdContacts refuses, with 463, every message to people who have not written to the account, from now on.
func (s *Server) RefuseColdContacts() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.cold = true
}

// LoseAcks delivers the client's next n messages, but does not tell it so.
func (s *Server) LoseAcks(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.lostAcks += n
}

// HoldAcks delivers the client's messages from now on, and tells it so, and that phones have them, when the function is
// called that it returns.
func (s *Server) HoldAcks() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.holding = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults.holding = false
		for _, tell := range s.faults.held {
			tell()
		}
		s.faults.held = nil
	}
}

// tell does now, or when it is no longer held back, what tells the client that a message of its was taken or delivered.
// The lock is held.
func (f *faults) tell(do func()) {
	if f.holding {
		f.held = append(f.held, do)
		return
	}
	do()
}

// Garble spoils the next n messages of people, so that it cannot decrypt them. It may ask for each again.
func (s *Server) Garble(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.garbled += n
}

// FailMedia fails the next n uploads and downloads with an HTTP status; n = 0 ends that.
func (s *Server) FailMedia(n, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n == 0 {
		s.faults.media = nil
	}
	for range n {
		s.faults.media = append(s.faults.media, status)
	}
}

// next takes the next of some codes, 0 where there is none.
func next(codes *[]int) int {
	if len(*codes) == 0 {
		return 0
	}
	code := (*codes)[0]
	*codes = (*codes)[1:]
	return code
}
