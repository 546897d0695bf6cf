package whatsapp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"github.com/daycared/daycared/connectors/whatsapp/whatsapptest"
)

// owner is a guide whose owner scans beside what else is asked, as people do.
type owner struct {
	t       *testing.T
	server  *whatsapptest.Server
	scan    func(n int, code string) bool // whether it is scanned
	passkey func(n int, request string) (string, error)
	compare func(code string) (bool, error)

	mu      sync.Mutex
	codes   []string
	asked   int
	said    []string
	results []error
	work    sync.WaitGroup
}

func (o *owner) Scan(code string, life time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if life <= 0 {
		o.t.Errorf("a code lives for %s", life)
	}
	o.codes = append(o.codes, code)
	if n := len(o.codes); o.scan == nil || o.scan(n, code) {
		o.work.Go(func() {
			err := o.server.Phone().Scans(soon(o.t), code)
			o.mu.Lock()
			defer o.mu.Unlock()
			o.results = append(o.results, err)
		})
	}
}

func (o *owner) Type(code string) { o.Scan(code, 1) }

func (o *owner) Passkey(_ context.Context, request string) (string, error) {
	o.asked++
	return o.passkey(o.asked, request)
}

func (o *owner) Compare(_ context.Context, code string) (bool, error) { return o.compare(code) }

func (o *owner) Say(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.said = append(o.said, text)
}

// tries links, and waits for the phone.
func (o *owner) tries(ctx context.Context, l Linking) (string, error) {
	number, err := Link(ctx, l, o)
	o.work.Wait()
	return number, err
}

func (o *owner) saw(text string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Contains(strings.Join(o.said, "\n"), text)
}

// Some accounts take their passkey as well, whose answer is pasted, and a code that is compared.
func TestLinkWithAPasskey(t *testing.T) {
	lost := errors.New("the terminal is gone")
	for name, c := range map[string]struct {
		passkey func(n int, request string, key *whatsapptest.Passkey) (string, error)
		err     string
	}{
		"right, at the second try": {},
		"nobody there":             {passkey: func(int, string, *whatsapptest.Passkey) (string, error) { return "", lost }, err: lost.Error()},
		"another answer": {
			passkey: func(int, string, *whatsapptest.Passkey) (string, error) { return `{}`, nil }, err: "answer with the passkey",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := whatsapptest.New(t)
			key := s.Phone().AsksForPasskey()
			o := &owner{t: t, server: s}
			o.passkey = func(n int, request string) (string, error) {
				if c.passkey != nil {
					return c.passkey(n, request, key)
				}
				if n == 1 {
					return "not JSON", nil
				}
				var asked types.WebAuthnPublicKey
				if err := json.Unmarshal([]byte(request), &asked); err != nil {
					return "", err
				}
				response, err := key.Signs(&asked)
				if err != nil {
					return "", err
				}
				text, err := json.Marshal(response)
				return string(text), err
			}
			ctx, stop := context.WithTimeout(t.Context(), patience)
			defer stop()
			l := linking(t, s)
			number, err := Link(ctx, l, o)
			if c.err == "" {
				if err != nil || number != "+"+s.Number() || !o.saw("not the JSON of an answer") {
					t.Errorf("%s, %v; %q", number, err, o.said)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.err) || s.Phone().Linked() {
				t.Errorf("%v; want %s", err, c.err)
			}
			s.Down() // or the phone would wait
			o.work.Wait()
		})
	}
}

// Where the library does not confirm by itself, the code that the phone shows has to be the same.
func TestTheCodeThatThePhoneShows(t *testing.T) {
	s := whatsapptest.New(t)
	a, err := openFile(t.Context(), linking(t, s).Path, debugLog{slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	device, err := a.device(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := New(Options{HTTP: s.Client(), Now: time.Now, Log: slog.New(slog.DiscardHandler)}, nil)
	gone := errors.New("the terminal is gone")
	for _, x := range []struct {
		same bool
		err  error
		want string
	}{{false, nil, "somebody else may be linking"}, {true, gone, gone.Error()}, {true, nil, "confirm the passkey"}} {
		compared := ""
		g := &owner{t: t, compare: func(code string) (bool, error) { compared = code; return x.same, x.err }}
		l := &linker{guide: g, cli: c.newClient(device, func(any) bool { return true })}
		err := l.compare(t.Context(), &events.PairPasskeyConfirmation{Code: "ABCD-1234"})
		if err == nil || !strings.Contains(err.Error(), x.want) || compared != "ABCD-1234" {
			t.Errorf("%v; want %s", err, x.want)
		}
	}
}

// When the codes are over there are new ones, and a phone that is too late with an old one does nothing.
func TestCodesEnd(t *testing.T) {
	s := whatsapptest.New(t)
	s.Down()
	l := linking(t, s)
	o := &owner{t: t, server: s}
	o.scan = func(n int, code string) bool {
		switch n {
		case 1:
			s.Cut()
			return false
		case 2:
			if err := s.Phone().Scans(soon(t), o.codes[0]); err == nil || s.Phone().Linked() {
				t.Errorf("an old code was scanned: %v", err)
			}
		}
		return true
	}
	time.AfterFunc(100*time.Millisecond, func() { _ = s.Up() })
	number, err := o.tries(soon(t), l)
	if err != nil || number != "+"+s.Number() || !o.saw("cannot be reached") || !o.saw("The codes are over") {
		t.Errorf("%s, %v; %q", number, err, o.said)
	}
}

// Giving up ends the linking, and nothing is linked.
func TestLinkingIsGivenUp(t *testing.T) {
	s := whatsapptest.New(t)
	ctx, stop := context.WithCancel(t.Context())
	o := &owner{t: t, server: s, scan: func(int, string) bool { stop(); return false }}
	if _, err := o.tries(ctx, linking(t, s)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	s.Down()
	ctx, stop = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := o.tries(ctx, linking(t, s)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while it is down: %v", err)
	}
	l := linking(t, s)
	l.Path = t.TempDir()
	if _, err := o.tries(t.Context(), l); err == nil {
		t.Error("a folder was linked")
	}
}

// A version that is too old is replaced while linking, unless that is off.
func TestLinkAnOutdatedClient(t *testing.T) {
	was := store.GetWAVersion()
	t.Cleanup(func() { store.SetWAVersion(was) })
	s := whatsapptest.New(t)
	s.Requires(was[2] + 1000)
	l := linking(t, s)
	l.AutoVersion = false
	o := &owner{t: t, server: s}
	if _, err := o.tries(soon(t), l); err == nil || !strings.Contains(err.Error(), "update daycared") {
		t.Errorf("without a new version: %v", err)
	}
	l.AutoVersion = true
	if number, err := o.tries(soon(t), l); err != nil || number != "+"+s.Number() {
		t.Errorf("%s, %v; %q", number, err, o.said)
	}
}

// A number that is none cannot be asked for a code.
func TestNoCodeForNoNumber(t *testing.T) {
	s := whatsapptest.New(t)
	l := linking(t, s)
	l.Number, l.ByCode = "+1", true
	o := &owner{t: t, server: s}
	if _, err := o.tries(soon(t), l); err == nil || !strings.Contains(err.Error(), "ask WhatsApp for a code to type") {
		t.Errorf("%v", err)
	}
}
