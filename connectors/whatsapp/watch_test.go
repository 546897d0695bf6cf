package whatsapp

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/whatsapp/whatsapptest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// watcher is the engine as the connector's desk. It counts what arrives, and fails to store on request.
type watcher struct {
	*engine.Engine

	mu        sync.Mutex
	failures  int          // of what comes next
	unheld    int          // suspensions that cannot be stored
	deciding  sync.RWMutex // held by decisions that are being taken
	decided   []connectors.Decision
	suspended []string
	strangers []permissions.UnknownSender
}

var errStore = errors.New("the disk is full")

func (w *watcher) fails() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures--
	return w.failures >= 0
}

func (w *watcher) OnPermission(ctx context.Context, d connectors.Decision) (permissions.Request, error) {
	if w.fails() {
		return permissions.Request{}, errStore
	}
	w.deciding.RLock()
	defer w.deciding.RUnlock()
	r, err := w.Engine.OnPermission(ctx, d)
	if err == nil {
		w.mu.Lock()
		w.decided = append(w.decided, d)
		w.mu.Unlock()
	}
	return r, err
}

func (w *watcher) OnMessage(ctx context.Context, m connectors.Message) error {
	if w.fails() {
		return errStore
	}
	return w.Engine.OnMessage(ctx, m)
}

func (w *watcher) NoteUnknownSender(ctx context.Context, s permissions.UnknownSender) error {
	if w.fails() {
		return errStore
	}
	w.mu.Lock()
	w.strangers = append(w.strangers, s)
	w.mu.Unlock()
	return w.Engine.NoteUnknownSender(ctx, s)
}

func (w *watcher) Suspend(ctx context.Context, via, address string) error {
	w.mu.Lock()
	w.unheld--
	failed := w.unheld >= 0
	if !failed {
		w.suspended = append(w.suspended, via+" "+address)
	}
	w.mu.Unlock()
	if failed {
		return errStore
	}
	return w.Engine.Suspend(ctx, via, address)
}

// decisions is how many decisions were taken.
func (w *watcher) decisions() int { return len(w.taken()) }

// taken are the decisions that were taken, with those that are being taken: whoever asked is told before they end.
func (w *watcher) taken() []connectors.Decision {
	w.deciding.Lock()
	defer w.deciding.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.decided)
}

// unknown are the unknown senders that were reported.
func (w *watcher) unknown() []permissions.UnknownSender {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.strangers)
}

// held are the accounts that were suspended, each once.
func (w *watcher) held() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := slices.Clone(w.suspended)
	slices.Sort(held)
	return slices.Compact(held)
}

// well waits until the account is connected, and sick until it is not, for a reason.
func (s *env) well() {
	s.t.Helper()
	s.until("it is connected", func() bool { return s.wa.Health() == nil })
}

func (s *env) sick(why string) {
	s.t.Helper()
	s.until("health says "+why, func() bool {
		err := s.wa.Health()
		return err != nil && strings.Contains(err.Error(), why)
	})
}

// acknowledged waits until all that was sent to the account was handled.
func (s *env) acknowledged() {
	s.t.Helper()
	if err := s.server.Acknowledged(soon(s.t)); err != nil {
		s.t.Fatalf("not everything is acknowledged: %v\n%s", err, s.logged)
	}
}

// answers waits for the account's reply to a person's message.
func (s *env) answers(who, id, text string) whatsapptest.Message {
	s.t.Helper()
	m, err := s.phones[who].Gets(soon(s.t), func(m whatsapptest.Message) bool {
		return m.Quotes == id && strings.Contains(plain(m.Text), text)
	})
	if err != nil {
		s.t.Fatalf("%s is not answered %q: %v\n%s\n%s", who, text, err, s.got(who), s.logged)
	}
	return m
}

// says writes a message, and waits for the reply.
func (s *env) says(who, text, want string) whatsapptest.Message {
	s.t.Helper()
	return s.answers(who, s.phones[who].Says(text), want)
}

// got is what a person received, in one text.
func (s *env) got(who string) string {
	var all strings.Builder
	for _, m := range s.phones[who].Messages() {
		if m.From == s.server.Number() {
			all.WriteString(plain(strings.Join(append(slices.Clone(m.Before), m.Text), "\n")) + "\n---\n")
		}
	}
	return all.String()
}

// count is how many messages of the account's hold a text.
func (s *env) count(who, text string) (n int) {
	for _, m := range s.phones[who].Messages() {
		if m.From == s.server.Number() && strings.Contains(m.Text, text) {
			n++
		}
	}
	return n
}

// marked waits for an emoji on a person's message.
func (s *env) marked(who, id, emoji string) {
	s.t.Helper()
	_, err := s.phones[who].Sees(soon(s.t), func(m whatsapptest.Message) bool {
		return m.ID == id && m.Reactions[s.server.Number()] == emoji
	})
	if err != nil {
		s.t.Fatalf("%s's message is not marked %s: %v\n%s", who, emoji, err, s.logged)
	}
}

// plain is a text without what keeps WhatsApp from formatting it.
func plain(text string) string { return strings.ReplaceAll(text, "\u2060", "") }

// asked starts a call that fay is asked about.
func (s *env) asked(reason string) (call <-chan ended, m whatsapptest.Message, code string) {
	s.t.Helper()
	call = s.ask(network(reason))
	m, code = s.card("fay", reason)
	return call, m, code
}
