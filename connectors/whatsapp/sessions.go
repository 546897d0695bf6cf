package whatsapp

import (
	"context"
	"errors"
	"sync"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// sessions makes each use of a Signal session one step: it is read, a message is encrypted or decrypted with its next key, and it is
// written. The library does not: what it sends and what it gets at the same time can use one key twice, and the phone drops the message
// that comes second without a word.
//
// Decrypting, and encrypting what [queue.send] sends, take turns. The library also encrypts again what a phone could not read, and says
// nothing when it begins and ends; that fails if the session has changed meanwhile, and the phone asks once more.
type sessions struct {
	store.SessionStore

	turn    chan struct{} // of capacity 1
	mu      sync.Mutex
	changes map[string]int // of sessions, by address
	read    map[string]int // the changes of a session that was read outside of a turn
}

// oneAtATime has the library use the sessions of a device in turns.
func oneAtATime(d *store.Device) {
	s := &sessions{SessionStore: d.Sessions, turn: make(chan struct{}, 1), changes: map[string]int{}, read: map[string]int{}}
	d.Sessions, d.EventBuffer = s, decryptions{d.EventBuffer, s}
}

// use is what a context is for: one turn, if it is held.
type use struct{ held *sessions }

type useKey struct{}

// encrypting returns the context of sending a message; end ends its turn, which it takes itself.
func encrypting(ctx context.Context) (sending context.Context, end func()) {
	u := &use{}
	return context.WithValue(ctx, useKey{}, u), u.end
}

func useOf(ctx context.Context) *use {
	u, _ := ctx.Value(useKey{}).(*use)
	return u
}

func (u *use) begin(ctx context.Context, s *sessions) error {
	if u.held != nil {
		return nil
	}
	select {
	case s.turn <- struct{}{}:
		u.held = s
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (u *use) end() {
	if u.held != nil {
		<-u.held.turn
		u.held = nil
	}
}

// errSessionChanged is that of encrypting a message again.
var errSessionChanged = errors.New("the session was used for another message meanwhile")

// GetManySessions begins the turn of what sends.
func (s *sessions) GetManySessions(ctx context.Context, addresses []string) (map[string][]byte, error) {
	if u := useOf(ctx); u != nil {
		if err := u.begin(ctx, s); err != nil {
			return nil, err
		}
	}
	return s.SessionStore.GetManySessions(ctx, addresses)
}

// PutManySessions ends the turn of what sends.
func (s *sessions) PutManySessions(ctx context.Context, all map[string][]byte) error {
	for at := range all {
		s.noteChange(at)
	}
	err := s.SessionStore.PutManySessions(ctx, all)
	if u := useOf(ctx); u != nil {
		u.end()
	}
	return err
}

func (s *sessions) GetSession(ctx context.Context, at string) ([]byte, error) {
	if useOf(ctx) == nil {
		s.mu.Lock()
		s.read[at] = s.changes[at]
		s.mu.Unlock()
	}
	return s.SessionStore.GetSession(ctx, at)
}

func (s *sessions) PutSession(ctx context.Context, at string, session []byte) error {
	return s.inTurn(ctx, func(ctx context.Context, outside bool) error {
		s.mu.Lock()
		changed := s.changes[at] != s.read[at]
		s.mu.Unlock()
		if outside && changed {
			return errSessionChanged
		}
		s.noteChange(at)
		return s.SessionStore.PutSession(ctx, at, session)
	})
}

func (s *sessions) MigratePNToLID(ctx context.Context, pn, lid types.JID) error {
	return s.inTurn(ctx, func(ctx context.Context, _ bool) error { return s.SessionStore.MigratePNToLID(ctx, pn, lid) })
}

// inTurn calls f in a turn; outside: that was not held before.
func (s *sessions) inTurn(ctx context.Context, f func(ctx context.Context, outside bool) error) error {
	u := useOf(ctx)
	if u != nil && u.held != nil {
		return f(ctx, false)
	}
	u = &use{}
	if err := u.begin(ctx, s); err != nil {
		return err
	}
	defer u.end()
	return f(context.WithValue(ctx, useKey{}, u), true)
}

func (s *sessions) noteChange(at string) {
	s.mu.Lock()
	s.changes[at]++
	s.mu.Unlock()
}

// decryptions are those of a device, each in one turn.
type decryptions struct {
	store.EventBuffer
	sessions *sessions
}

func (d decryptions) DoDecryptionTxn(ctx context.Context, f func(context.Context) error) error {
	return d.sessions.inTurn(ctx, func(ctx context.Context, _ bool) error { return d.EventBuffer.DoDecryptionTxn(ctx, f) })
}
