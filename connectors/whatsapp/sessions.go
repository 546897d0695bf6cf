package whatsapp

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
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
//
// The library also leaves out, with a line in the log only, each device that it cannot encrypt for, and sends the message to the rest: a
// message of which the person's phone was left out has failed.
type sessions struct {
	store.SessionStore
	device *store.Device

	turn    chan struct{} // of capacity 1
	mu      sync.Mutex
	changes map[string]int // of sessions, by address
	read    map[string]int // the changes of a session that was read outside of a turn
}

// serializeSessions has the library use the sessions of a device in turns.
func serializeSessions(d *store.Device) {
	s := &sessions{SessionStore: d.Sessions, device: d, turn: make(chan struct{}, 1), changes: map[string]int{}, read: map[string]int{}}
	d.Sessions, d.Identities, d.EventBuffer = s, identities{d.Identities}, decryptions{d.EventBuffer, s}
}

// use is what a context is for: one turn, if it is held, or the changes of the sessions that were read without one.
type use struct {
	held   *sessions
	read   map[string]int
	phones map[string]bool // addresses of other people's phones that the message is for, and is not encrypted for yet
	fail   context.CancelCauseFunc
}

type useKey struct{}

// encrypting returns the context of sending a message; end ends its turn, which it takes itself, and returns [errNotEncrypted] if the
// library sent it without what a phone can read.
func encrypting(ctx context.Context) (sending context.Context, end func() error) {
	ctx, fail := context.WithCancelCause(ctx)
	u := &use{fail: fail}
	return context.WithValue(ctx, useKey{}, u), func() error {
		u.end()
		fail(nil)
		return u.left()
	}
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

// left returns an error if the message is not encrypted for every phone that it is for.
func (u *use) left() error {
	if len(u.phones) > 0 {
		return errNotEncrypted
	}
	return nil
}

var (
	// errSessionChanged is that of encrypting a message again.
	errSessionChanged = errors.New("the session was used for another message meanwhile")
	errNotEncrypted   = errors.New("the message could not be encrypted for the person's phone")
)

// GetManySessions begins the turn of what sends. If there is no session with somebody, WhatsApp is asked for their keys first, which may
// take long: the turn then begins when the sessions are written.
func (s *sessions) GetManySessions(ctx context.Context, addresses []string) (map[string][]byte, error) {
	u := useOf(ctx)
	if u == nil {
		return s.SessionStore.GetManySessions(ctx, addresses)
	}
	if err := u.begin(ctx, s); err != nil {
		return nil, err
	}
	u.phones = s.phonesOf(addresses)
	all, err := s.SessionStore.GetManySessions(ctx, addresses)
	if slices.ContainsFunc(addresses, func(at string) bool { return all[at] == nil }) {
		u.read = s.changesOf(addresses)
		u.end()
	}
	return all, err
}

// PutManySessions ends the turn of what sends.
func (s *sessions) PutManySessions(ctx context.Context, all map[string][]byte) error {
	if u := useOf(ctx); u != nil {
		defer u.end()
		maps.DeleteFunc(u.phones, func(at string, _ bool) bool { return all[at] != nil })
		if err := u.left(); err != nil {
			return err
		}
		if u.held == nil {
			if err := u.begin(ctx, s); err != nil {
				return err
			}
			if !maps.Equal(s.changesOf(slices.Collect(maps.Keys(u.read))), u.read) {
				return errSessionChanged // it is sent again
			}
		}
	}
	for at := range all {
		s.noteChange(at)
	}
	return s.SessionStore.PutManySessions(ctx, all)
}

// phonesOf returns which addresses are of phones of other people; what is linked to a phone has another number than 0 as its device.
func (s *sessions) phonesOf(addresses []string) map[string]bool {
	pn, lid := s.device.GetJID().ToNonAD(), s.device.GetLID().ToNonAD()
	phones := map[string]bool{}
	for _, at := range addresses {
		if strings.HasSuffix(at, ":0") && at != pn.SignalAddress().String() && at != lid.SignalAddress().String() {
			phones[at] = true
		}
	}
	return phones
}

// changesOf returns how often sessions have changed.
func (s *sessions) changesOf(addresses []string) map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]int{}
	for _, at := range addresses {
		all[at] = s.changes[at]
	}
	return all
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

// identities are those of a device. The library goes on without the phone whose identity cannot be read or written, unless the context of
// sending has ended.
type identities struct{ store.IdentityStore }

func (i identities) IsTrustedIdentity(ctx context.Context, at string, key [32]byte) (bool, error) {
	trusted, err := i.IdentityStore.IsTrustedIdentity(ctx, at, key)
	return trusted, endOnError(ctx, err)
}

func (i identities) PutIdentity(ctx context.Context, at string, key [32]byte) error {
	return endOnError(ctx, i.IdentityStore.PutIdentity(ctx, at, key))
}

// endOnError ends the context of sending if there is an error, which it returns.
func endOnError(ctx context.Context, err error) error {
	if u := useOf(ctx); err != nil && u != nil && u.fail != nil {
		u.fail(err)
	}
	return err
}

// decryptions are those of a device, each in one turn.
type decryptions struct {
	store.EventBuffer
	sessions *sessions
}

func (d decryptions) DoDecryptionTxn(ctx context.Context, f func(context.Context) error) error {
	return d.sessions.inTurn(ctx, func(ctx context.Context, _ bool) error { return d.EventBuffer.DoDecryptionTxn(ctx, f) })
}
