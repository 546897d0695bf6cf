package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mau.fi/whatsmeow"
	"go.uber.org/goleak"

	"github.com/daycared/daycared/connectors/whatsapp/whatsapptest"
)

func TestMain(m *testing.M) {
	whatsmeow.KeepAliveIntervalMin, whatsmeow.KeepAliveIntervalMax = 200*time.Millisecond, 300*time.Millisecond
	whatsmeow.KeepAliveResponseDeadline = time.Second
	failed := m.Run()
	left := goleak.Find(abandoned, unanswered)
	for late := time.Now().Add(patience); left != nil && time.Now().Before(late); { // what ends takes as long as the machine needs
		left = goleak.Find(abandoned, unanswered)
	}
	if left != nil && failed == 0 {
		fmt.Fprintln(os.Stderr, "goroutines are left:", left)
		failed = 1
	}
	os.Exit(failed)
}

// The library leaves behind its reader, when a connection ends while a frame is on its way, and for 75 seconds a question
// that it asks by itself after a message, when the connection ends before that is answered.
var (
	abandoned  = goleak.IgnoreAnyFunction("go.mau.fi/whatsmeow/socket.(*FrameSocket).readPump")
	unanswered = goleak.IgnoreAnyFunction("go.mau.fi/whatsmeow.(*Client).issuePrivacyTokenAndSave")
)

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// hand is a guide whose codes go to a phone at once.
type hand struct {
	t       testing.TB
	phone   *whatsapptest.Phone
	scanned []string
	said    []string
}

func (h *hand) Scan(code string, _ time.Duration) {
	h.scanned = append(h.scanned, code)
	if err := h.phone.Scans(soon(h.t), code); err != nil {
		h.said = append(h.said, err.Error())
	}
}

func (h *hand) Type(code string) {
	if err := h.phone.Types(soon(h.t), code); err != nil {
		h.said = append(h.said, err.Error())
	}
}

func (h *hand) Passkey(context.Context, string) (string, error) { return "", errors.New("no passkey") }

func (h *hand) Compare(context.Context, string) (bool, error) { return true, nil }

func (h *hand) Say(text string) { h.said = append(h.said, text) }

func linking(t testing.TB, s *whatsapptest.Server) Linking {
	return Linking{
		Path: filepath.Join(t.TempDir(), "whatsapp.db"), HTTP: s.Client(), AutoVersion: true, Log: slog.New(slog.DiscardHandler),
	}
}

func TestLinkByCodes(t *testing.T) {
	for name, change := range map[string]func(*Linking, *whatsapptest.Server){
		"scanned":              func(*Linking, *whatsapptest.Server) {},
		"scanned, as expected": func(o *Linking, s *whatsapptest.Server) { o.Number = "+" + s.Number() },
		"typed":                func(o *Linking, s *whatsapptest.Server) { o.Number, o.ByCode = "+"+s.Number(), true },
	} {
		t.Run(name, func(t *testing.T) {
			s := whatsapptest.New(t)
			o := linking(t, s)
			change(&o, s)
			h := &hand{t: t, phone: s.Phone()}
			number, err := Link(soon(t), o, h)
			if err != nil || number != "+"+s.Number() {
				t.Fatalf("%q, %v; %q", number, err, h.said)
			}
			number, err = Link(soon(t), o, h)
			if !errors.Is(err, ErrLinked) || number != "+"+s.Number() {
				t.Errorf("once more: %q, %v", number, err)
			}
		})
	}
}

func TestAnUnexpectedNumberIsRefused(t *testing.T) {
	s := whatsapptest.New(t)
	o := linking(t, s)
	o.Number = "+4915112345678"
	_, err := Link(soon(t), o, &hand{t: t, phone: s.Phone()})
	if !errors.Is(err, ErrOtherNumber) || !strings.Contains(err.Error(), "+"+s.Number()) {
		t.Fatalf("%v", err)
	}
	o.Number = ""
	if _, err := Link(soon(t), o, &hand{t: t, phone: s.Phone()}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
