package whatsapptest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"
)

func message(text string) *waE2E.Message { return &waE2E.Message{Conversation: proto.String(text)} }

func TestRefusedLogins(t *testing.T) {
	again := func(t *testing.T, r Refusal) *client {
		t.Helper()
		s := New(t)
		c := linked(t, s)
		s.RefuseLogins(1, r)
		s.Cut()
		return c
	}
	t.Run("logged out", func(t *testing.T) {
		if e := await[*events.LoggedOut](again(t, LoggedOut())); !e.OnConnect || e.Reason != events.ConnectFailureLoggedOut {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("main device gone", func(t *testing.T) {
		if e := await[*events.LoggedOut](again(t, MainDeviceGone())); e.Reason != events.ConnectFailureMainDeviceGone {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("banned", func(t *testing.T) {
		e := await[*events.TemporaryBan](again(t, Banned(101, time.Hour)))
		if e.Code != events.TempBanSentToTooManyPeople || e.Expire != time.Hour {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("outdated", func(t *testing.T) { await[*events.ClientOutdated](again(t, Outdated())) })
	for name, r := range map[string]Refusal{"unavailable": Unavailable(), "internal error": InternalError()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // the library waits before it comes back
			c := again(t, r)
			await[*events.Disconnected](c)
			await[*events.Connected](c)
		})
	}
}

func TestRefuseForGood(t *testing.T) {
	s := New(t)
	c := newClient(t, s)
	c.EnableAutoReconnect = false
	s.RefuseLogins(-1, Outdated())
	for range 2 {
		if err := c.Connect(); err != nil {
			t.Fatal(err)
		}
		await[*events.ClientOutdated](c)
		c.Disconnect()
	}
	s.RefuseLogins(0, Refusal{})
	c.scan()
}

// A client that learns of the version from the web page is let in again.
func TestRequiredVersion(t *testing.T) {
	before := store.GetWAVersion()
	t.Cleanup(func() { store.SetWAVersion(before) })
	s := New(t)
	c := linked(t, s)
	s.Requires(before[2] + 7)
	s.Cut()
	await[*events.ClientOutdated](c)
	http := s.Client()
	defer http.CloseIdleConnections()
	version, err := whatsmeow.GetLatestVersion(within(t), http)
	if err != nil || version[2] != before[2]+7 {
		t.Fatalf("the version is %v, %v", version, err)
	}
	store.SetWAVersion(*version)
	c.Disconnect()
	if err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	await[*events.Connected](c)
}

func TestStreamErrors(t *testing.T) {
	s := New(t)
	c := linked(t, s)
	s.StreamError(503)
	await[*events.Disconnected](c)
	await[*events.Connected](c)
	s.StreamError(599)
	if e := await[*events.StreamError](c); e.Code != "599" {
		t.Errorf("got %+v", e)
	}
	await[*events.Connected](c)
	s.Replace()
	await[*events.StreamReplaced](c)
}

// Two clients with one identity replace each other.
func TestReplaced(t *testing.T) {
	s := New(t)
	first := linked(t, s)
	device, err := first.store.GetFirstDevice(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second := restart(t, s, first.store, device)
	if err := second.Connect(); err != nil {
		t.Fatal(err)
	}
	await[*events.Connected](second)
	await[*events.StreamReplaced](first)
	second.gets(s.Person(fayNumber, "Fay").Says("hello"))
}

func TestSilence(t *testing.T) {
	s := New(t)
	fay := s.Person(fayNumber, "Fay")
	c := linked(t, s)
	s.Silence()
	answer := fay.Says("yes")
	await[*events.KeepAliveTimeout](c)
	await[*events.Connected](c)
	c.gets(answer)
	c.Disconnect()
	if err := s.Disconnected(within(t)); err != nil {
		t.Error(err)
	}
}

func TestRefusedMessages(t *testing.T) {
	s := New(t)
	fay := s.Person(fayNumber, "Fay")
	c := linked(t, s)
	send := func(to types.JID) error {
		_, err := c.SendMessage(within(t), to, message("Approve?"))
		return err
	}
	s.RefuseMessages(1, 463)
	if err := send(fay.JID()); !errors.Is(err, whatsmeow.ErrServerReturnedError) || !strings.Contains(err.Error(), "463") {
		t.Errorf("refused: %v", err)
	}
	s.RefuseColdContacts()
	if err := send(fay.JID()); !errors.Is(err, whatsmeow.ErrServerReturnedError) || !strings.Contains(err.Error(), "463") {
		t.Errorf("cold: %v", err)
	}
	if got := fay.Messages(); len(got) != 0 {
		t.Errorf("fay got %+v", got)
	}
	c.gets(fay.Says("pair 4F7K2"))
	if err := send(fay.JID()); err != nil {
		t.Errorf("to one who wrote: %v", err)
	}
	if err := send(types.NewJID("4999999999", types.DefaultUserServer)); err == nil {
		t.Error("sent to nobody")
	}
	in, err := c.IsOnWhatsApp(within(t), []string{"+" + fayNumber, "+4999999999"})
	if err != nil || len(in) != 2 || !in[0].IsIn || in[0].JID != fay.LID() || in[1].IsIn {
		t.Errorf("on WhatsApp: %+v, %v", in, err)
	}
	fay.Deletes()
	if err := send(fay.JID()); !errors.Is(err, whatsmeow.ErrServerReturnedError) {
		t.Errorf("to an account that is gone: %v", err)
	}
}

func TestBlocked(t *testing.T) {
	s := New(t)
	fay := s.Person(fayNumber, "Fay")
	c := linked(t, s)
	fay.Blocks()
	c.says(fayNumber, "Approve?")
	if got := fay.Messages(); len(got) != 0 {
		t.Errorf("fay got %+v", got)
	}
}

func TestTimelock(t *testing.T) {
	s := New(t)
	c := linked(t, s)
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	s.Timelocks(until)
	if e := await[*events.NotifyAccountReachoutTimelock](c); !e.IsActive || !e.TimeEnforcementEnds.Equal(until) {
		t.Errorf("got %+v", e)
	}
	s.Timelocks(time.Time{})
	if e := await[*events.NotifyAccountReachoutTimelock](c); e.IsActive {
		t.Errorf("got %+v", e)
	}
}

func TestFewKeysLeft(t *testing.T) {
	s := New(t)
	c := linked(t, s)
	s.mu.Lock()
	s.linked.preKeys = s.linked.preKeys[:fewKeys]
	s.mu.Unlock()
	c.gets(s.Person(fayNumber, "Fay").Says("hello"))
	err := s.wait(within(t), func() bool { return len(s.linked.preKeys) > 2*fewKeys })
	if err != nil {
		t.Errorf("the client sends no more keys: %v", err)
	}
}
