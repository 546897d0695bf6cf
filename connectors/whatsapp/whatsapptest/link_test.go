package whatsapptest

import (
	"strings"
	"testing"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

func TestLinkAndTalk(t *testing.T) {
	s := New(t)
	fay := s.Person(fayNumber, "Fay")
	c := linked(t, s)
	card := c.says(fayNumber, "Approve K7F3Q?")
	m, err := fay.Gets(within(t), saying("Approve K7F3Q?"))
	if err != nil || m.ID != card || m.From != s.Number() {
		t.Fatalf("fay got %+v, %v", m, err)
	}
	if m, err := s.Phone().Sees(within(t), fay, saying("Approve K7F3Q?")); err != nil || m.ID != card {
		t.Errorf("the account's phone shows %+v, %v", m, err)
	}
	e := c.gets(fay.Says("YES K7F3Q"))
	if e.Message.GetConversation() != "YES K7F3Q" || e.Info.Sender.ToNonAD() != fay.LID() || e.Info.SenderAlt.ToNonAD() != fay.JID() ||
		e.Info.PushName != "Fay" || e.Info.IsFromMe || e.Info.IsGroup {
		t.Errorf("the client got %+v", e.Info)
	}
	if err := s.Acknowledged(within(t)); err != nil {
		t.Errorf("not acknowledged: %v", err)
	}
}

func TestLinkByCode(t *testing.T) {
	s := New(t)
	c := newClient(t, s)
	c.offered()
	code, err := c.PairPhone(within(t), "+"+s.Number(), true, whatsmeow.PairClientChrome, "Chrome (Linux)")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Phone().Types(within(t), strings.ToLower(code)); err != nil {
		t.Fatal(err)
	}
	await[*events.PairSuccess](c)
	await[*events.Connected](c)
	if !s.Phone().Linked() {
		t.Error("not linked")
	}
}

func TestWrongCodes(t *testing.T) {
	s := New(t)
	c := newClient(t, s)
	if err := s.Phone().Types(within(t), "ABCD-EFGH"); err == nil {
		t.Error("a code that nobody shows was taken")
	}
	qr := c.offered()
	if _, err := c.PairPhone(within(t), s.Number(), true, whatsmeow.PairClientChrome, "daycared"); err == nil {
		t.Error("a name that is none of a browser was taken")
	}
	if _, err := c.PairPhone(within(t), s.Number(), true, whatsmeow.PairClientChrome, "Chrome (Linux)"); err != nil {
		t.Fatal(err)
	}
	if err := s.Phone().Types(within(t), "ABCD-EFGH"); err == nil || s.Phone().Linked() {
		t.Errorf("a wrong code: %v", err)
	}
	other := newClient(t, s)
	parts := strings.Split(other.offered(), ",")
	parts[0] = strings.Split(qr, ",")[0]
	for _, bad := range []string{"https://example.com", strings.Join(parts, ","), strings.Replace(qr, "2@", "3@", 1)} {
		if err := s.Phone().Scans(within(t), bad); err == nil || s.Phone().Linked() {
			t.Errorf("%s was taken: %v", bad, err)
		}
	}
}

// A client may refuse the number that scans its code.
func TestClientRefusesNumber(t *testing.T) {
	s := New(t)
	c := newClient(t, s)
	c.PrePairCallback = func(jid types.JID, _, _ string) bool { return jid.User != s.Number() }
	if err := s.Phone().Scans(within(t), c.offered()); err == nil || s.Phone().Linked() {
		t.Fatalf("linked: %v", err)
	}
	await[*events.PairError](c)
}

func TestRestart(t *testing.T) {
	s := New(t)
	fay := s.Person(fayNumber, "Fay")
	c := linked(t, s)
	c.Disconnect()
	if err := s.Disconnected(within(t)); err != nil {
		t.Fatal(err)
	}
	old := fay.Ago(1).Says("while you were away")
	device, err := c.store.GetFirstDevice(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again := restart(t, s, c.store, device)
	if err := again.Connect(); err != nil {
		t.Fatal(err)
	}
	if err := s.Connected(within(t)); err != nil {
		t.Fatal(err)
	}
	if p := await[*events.OfflineSyncPreview](again); p.Messages != 1 || p.Total != 1 {
		t.Errorf("the preview is %+v", p)
	}
	if e := again.gets(old); e.Message.GetConversation() != "while you were away" {
		t.Errorf("got %+v", e)
	}
	await[*events.OfflineSyncCompleted](again)
	again.says(fayNumber, "I am back")
	if _, err := fay.Gets(within(t), saying("I am back")); err != nil {
		t.Error(err)
	}
}

func TestUnlinked(t *testing.T) {
	s := New(t)
	c := linked(t, s)
	s.Phone().Unlinks()
	if e := await[*events.LoggedOut](c); e.OnConnect {
		t.Errorf("got %+v", e)
	}
	// Linked anew, it is another device.
	c = restart(t, s, c.store, c.store.NewDevice())
	c.scan()
	if id := c.Store.ID; id.Device != 2 {
		t.Errorf("linked as %s", id)
	}
	if err := c.Logout(within(t)); err != nil || s.Phone().Linked() {
		t.Errorf("logged out: %v", err)
	}
}

func TestUnlinkedWhileAway(t *testing.T) {
	s := New(t)
	fay := s.Person(fayNumber, "Fay")
	c := linked(t, s)
	c.Disconnect()
	if err := s.Disconnected(within(t)); err != nil {
		t.Fatal(err)
	}
	s.Phone().Unlinks()
	fay.Says("is anybody there?")
	if err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	if e := await[*events.LoggedOut](c); !e.OnConnect || e.Reason != events.ConnectFailureLoggedOut {
		t.Errorf("got %+v", e)
	}
	if all := s.Phone().Messages(fay); len(all) != 1 || len(s.Waiting()) != 0 {
		t.Errorf("the phone shows %+v, and there wait %+v", all, s.Waiting())
	}
}

func TestLinkingAgainUnlinksTheFirst(t *testing.T) {
	s := New(t)
	first := linked(t, s)
	second := linked(t, s)
	await[*events.LoggedOut](first)
	fay := s.Person(fayNumber, "Fay")
	second.gets(fay.Says("hello"))
}
