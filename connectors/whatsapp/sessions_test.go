package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.mau.fi/whatsmeow/store"
	"golang.org/x/sync/errgroup"

	"github.com/daycared/daycared/connectors/whatsapp/whatsapptest"
)

// TestWhatIsSentWhileOthersWriteArrives: what is sent and what comes in the same chat do not use a key of it twice.
func TestWhatIsSentWhileOthersWriteArrives(t *testing.T) {
	s := newEnv(t)
	fay := s.phones["fay"]
	fay.Says("/pending")
	s.acknowledged()
	const many = 200
	var both errgroup.Group
	both.Go(func() error {
		for range many {
			fay.Says("hi")
		}
		return nil
	})
	both.Go(func() error {
		for i := range many {
			to := ref{fay.JID().User, fmt.Sprintf("SENT%d", i)}
			err := context.Canceled // another message may take its turn, as a slow one's
			for errors.Is(err, context.Canceled) && t.Context().Err() == nil {
				_, err = s.wa.queue.send(t.Context(), s.wa.client.Load(), ref{"+" + to.number, to.id}, text(to.id))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err := both.Wait(); err != nil {
		t.Fatal(err)
	}
	for i := range many {
		id := fmt.Sprintf("SENT%d", i)
		if _, err := fay.Gets(soon(t), func(m whatsapptest.Message) bool { return m.ID == id }); err != nil {
			t.Errorf("%s did not arrive: %v", id, err)
		}
	}
}

// TestASessionIsUsedInOneStep: what sends reads a session as what was decrypted last has left it.
func TestASessionIsUsedInOneStep(t *testing.T) {
	s := newEnv(t)
	device := s.wa.client.Load().Store
	const at = "491700009999:0"
	if err := device.Sessions.PutSession(t.Context(), at, []byte("first")); err != nil {
		t.Fatal(err)
	}
	read := make(chan string, 1)
	for i := range 50 {
		now := fmt.Sprint(i)
		err := device.EventBuffer.DoDecryptionTxn(t.Context(), func(ctx context.Context) error {
			begun := make(chan struct{})
			go func() {
				sending, end := encrypting(t.Context())
				close(begun)
				all, err := device.Sessions.GetManySessions(sending, []string{at})
				if err != nil {
					t.Error(err)
				}
				_ = end() // nothing is sent
				read <- string(all[at])
			}()
			<-begun
			_, err := device.Sessions.GetSession(ctx, at)
			return errors.Join(err, device.Sessions.PutSession(ctx, at, []byte(now)))
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := <-read; got != now {
			t.Fatalf("what sends reads %q, while %q was written", got, now)
		}
	}
}

// TestAMessageIsNotEncryptedAgainWithAnOldSession: the phone asks for it once more.
func TestAMessageIsNotEncryptedAgainWithAnOldSession(t *testing.T) {
	s := newEnv(t)
	device := s.wa.client.Load().Store
	const at = "491700009999:0"
	write := func(ctx context.Context) error { return device.Sessions.PutSession(ctx, at, []byte("again")) }
	for name, meanwhile := range map[string]func() error{
		"something is decrypted": func() error { return device.EventBuffer.DoDecryptionTxn(t.Context(), write) },
		"something is sent": func() error {
			sending, end := encrypting(t.Context())
			_, err := device.Sessions.GetManySessions(sending, []string{at})
			return errors.Join(err, device.Sessions.PutManySessions(sending, map[string][]byte{at: []byte("sent")}), end())
		},
	} {
		if _, err := device.Sessions.GetSession(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		if err := meanwhile(); err != nil {
			t.Fatal(err)
		}
		if err := write(t.Context()); !errors.Is(err, errSessionChanged) {
			t.Errorf("%s meanwhile: %v", name, err)
		}
		_, err := device.Sessions.GetSession(t.Context(), at)
		if err := errors.Join(err, write(t.Context())); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
}

// TestAKeyThatDoesNotComeHoldsUpNothing: what is sent to somebody without a session leaves the turn while WhatsApp is asked for their key,
// and is sent again if a session with one of them has changed meanwhile.
func TestAKeyThatDoesNotComeHoldsUpNothing(t *testing.T) {
	s := newEnv(t)
	device := s.wa.client.Load().Store
	const at, other = "491700009999:0", "491700009998:0"
	for i, changed := range []bool{true, false} {
		sending, end := encrypting(t.Context())
		if all, err := device.Sessions.GetManySessions(sending, []string{at, other}); err != nil || all[other] != nil {
			t.Fatal(all, err)
		}
		s.says("fay", "/pending", "Nothing waits")
		if changed {
			err := device.EventBuffer.DoDecryptionTxn(t.Context(), func(ctx context.Context) error {
				return device.Sessions.PutSession(ctx, at, []byte("decrypted"))
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		sent := []byte("sent")
		err := errors.Join(device.Sessions.PutManySessions(sending, map[string][]byte{at: sent, other: sent}), end())
		if errors.Is(err, errSessionChanged) != changed || !changed && err != nil {
			t.Errorf("%d: written with %v", i, err)
		}
	}
	s.says("fay", "/pending", "Nothing waits")
}

// TestASendThatFailsEndsItsTurn.
func TestASendThatFailsEndsItsTurn(t *testing.T) {
	s := newEnv(t)
	device := s.wa.client.Load().Store
	const at = "491700009999:0"
	sending, end := encrypting(t.Context())
	err := device.Sessions.PutSession(t.Context(), at, []byte("x"))
	if _, failed := device.Sessions.GetManySessions(sending, []string{at}); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if err := end(); !errors.Is(err, errNotEncrypted) {
		t.Error(err)
	}
	s.says("fay", "/pending", "Nothing waits")
}

// TestAMessageThatThePhoneCannotReadHasFailed: the library sends it to whatever else it is for.
func TestAMessageThatThePhoneCannotReadHasFailed(t *testing.T) {
	s := newEnv(t)
	s.says("fay", "/pending", "Nothing waits")
	device := s.wa.client.Load().Store
	at, own := s.phones["fay"].LID().SignalAddress().String(), device.GetLID().ToNonAD().SignalAddress().String()
	to := ref{"+" + s.phones["fay"].JID().User, "LEFTOUT"}
	send := func() error {
		_, err := s.wa.queue.send(t.Context(), s.wa.client.Load(), to, text(to.id))
		return err
	}
	kept := device.Identities
	device.Identities = identities{unreadable{kept}}
	if err := send(); !errors.Is(err, errUnreadable) {
		t.Errorf("sent without the identity of the phone: %v", err)
	}
	device.Identities = kept
	if err := send(); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		asked   []string
		written map[string][]byte
		fails   bool
	}{
		"nothing is encrypted":   {[]string{at, own}, nil, true},
		"for the own phone only": {[]string{at, own}, map[string][]byte{own: {1}}, true},
		"for what is linked":     {[]string{at, "491700009999:3"}, map[string][]byte{"491700009999:3": {1}}, true},
		"all but the own phone":  {[]string{at, own}, map[string][]byte{at: {1}}, false},
		"all but what is linked": {[]string{at, "491700009999:3"}, map[string][]byte{at: {1}}, false},
	} {
		sending, end := encrypting(t.Context())
		_, err := device.Sessions.GetManySessions(sending, c.asked)
		var written error
		if c.written != nil {
			written = device.Sessions.PutManySessions(sending, c.written)
		}
		if ended := end(); err != nil || errors.Is(ended, errNotEncrypted) != c.fails || c.written != nil && (written != nil) != c.fails {
			t.Errorf("%s: %v, %v, %v", name, err, written, ended)
		}
	}
}

var errUnreadable = errors.New("the database does not answer")

type unreadable struct{ store.IdentityStore }

func (unreadable) IsTrustedIdentity(context.Context, string, [32]byte) (bool, error) {
	return false, errUnreadable
}
