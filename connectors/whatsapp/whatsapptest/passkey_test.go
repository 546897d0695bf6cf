package whatsapptest

import (
	"testing"

	"go.mau.fi/whatsmeow/types/events"
)

func TestPasskey(t *testing.T) {
	s := New(t)
	passkey := s.Phone().AsksForPasskey()
	c := newClient(t, s)
	qr := c.offered()
	scanned := make(chan error, 1)
	go func() { scanned <- s.Phone().Scans(within(t), qr) }()
	asked := await[*events.PairPasskeyRequest](c)
	if s.Phone().Code() != "" {
		t.Error("the phone shows a code too early")
	}
	answer, err := passkey.Signs(asked.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SendPasskeyResponse(within(t), answer); err != nil {
		t.Fatal(err)
	}
	if e := await[*events.PairPasskeyConfirmation](c); e.Code == "" || e.Code != s.Phone().Code() || !e.SkipHandoffUX {
		t.Errorf("the client shows %+v, the phone %q", e, s.Phone().Code())
	}
	if err := c.SendPasskeyConfirmation(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := <-scanned; err != nil {
		t.Fatal(err)
	}
	await[*events.PairSuccess](c)
	await[*events.Connected](c)
	c.gets(s.Person(fayNumber, "Fay").Says("hello"))
}

func TestWrongPasskey(t *testing.T) {
	s := New(t)
	s.Phone().AsksForPasskey()
	for name, passkey := range map[string]func() *Passkey{
		"another": newPasskey,
		"of the same name": func() *Passkey {
			p := newPasskey()
			p.id = s.passkey.id
			return p
		},
	} {
		c := newClient(t, s)
		qr := c.offered()
		scanned := make(chan error, 1)
		go func() { scanned <- s.Phone().Scans(within(t), qr) }()
		answer, err := passkey().Signs(await[*events.PairPasskeyRequest](c).PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SendPasskeyResponse(within(t), answer); err == nil {
			t.Errorf("%s: it was taken", name)
		}
		if err := <-scanned; err == nil || s.Phone().Linked() {
			t.Errorf("%s: linked: %v", name, err)
		}
		if err := c.SendPasskeyResponse(within(t), answer); err == nil {
			t.Errorf("%s: it was taken the second time", name)
		}
	}
}
