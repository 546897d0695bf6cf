package whatsapptest

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

// What the client fails to handle comes again with its next connection, and is handled once.
func TestRedelivery(t *testing.T) {
	s := New(t)
	fay := s.Person(fayNumber, "Fay")
	c := linked(t, s)
	var refused atomic.Int32
	first := make(chan struct{})
	c.fails(func(e any) bool {
		_, ok := e.(*events.Message)
		if !ok || refused.Add(1) > 1 {
			return false
		}
		close(first)
		return true
	})
	answer := fay.Says("YES K7F3Q")
	<-first
	if waiting := s.Waiting(); len(waiting) != 1 || waiting[0].ID() != answer {
		t.Fatalf("waiting: %+v", waiting)
	}
	s.Cut()
	await[*events.Connected](c)
	if e := c.gets(answer); e.Message.GetConversation() != "YES K7F3Q" {
		t.Errorf("redelivered as %+v", e)
	}
	if err := s.Acknowledged(within(t)); err != nil {
		t.Fatalf("%v: %+v", err, s.Waiting())
	}
	s.Redeliver()
	// The same once more is known, and acknowledged.
	fay.Echoes(answer)
	if err := s.Acknowledged(within(t)); err != nil {
		t.Fatal(err)
	}
	// Encrypted anew it is another one.
	fay.Repeats(answer)
	c.gets(answer)
	if n := refused.Load(); n != 3 {
		t.Errorf("%d events, want 3", n)
	}
	if m, _ := fay.Message(answer); len(fay.Messages()) != 1 || !m.Delivered {
		t.Errorf("fay sees %+v", fay.Messages())
	}
}

func TestOfflineQueue(t *testing.T) {
	s := New(t)
	fay := s.Person(fayNumber, "Fay")
	c := linked(t, s)
	s.Down()
	await[*events.Disconnected](c)
	var ids []string
	for _, text := range []string{"one", "two", "three"} {
		ids = append(ids, fay.Ago(time.Hour).Says(text))
	}
	card, err := c.SendMessage(within(t), fay.JID(), nil)
	if err == nil {
		t.Errorf("sent %+v while the server was down", card)
	}
	if err := s.Up(); err != nil {
		t.Fatal(err)
	}
	await[*events.Connected](c)
	for _, id := range ids {
		if e := c.gets(id); time.Since(e.Info.Timestamp) < 59*time.Minute {
			t.Errorf("%s is of %v", id, e.Info.Timestamp)
		}
	}
	await(c, func(e *events.OfflineSyncCompleted) bool { return e.Count == 3 })
	if err := s.Acknowledged(within(t)); err != nil {
		t.Error(err)
	}
}

// The connection is cut after the client has handled a message, at its receipt. The message comes again, and the client
// knows that it has it.
func TestCutAtTheReceipt(t *testing.T) {
	s := New(t)
	fay := s.Person(fayNumber, "Fay")
	c := linked(t, s)
	s.CutAt(BeforeReceiving, func(s Stanza) bool { return s.Is("receipt", "") })
	answer := fay.Says("YES K7F3Q")
	c.gets(answer)
	await[*events.Connected](c)
	if err := s.Acknowledged(within(t)); err != nil {
		t.Fatal(err)
	}
	if n := count(c, func(e *events.Message) bool { return e.Info.ID == answer }); n != 0 {
		t.Errorf("handled %d times more", n)
	}
}

func TestCutAtAMessage(t *testing.T) {
	for name, where := range map[string]Where{
		"its stanza is lost": BeforeReceiving, "its ack is lost": AfterReceiving,
	} {
		t.Run(name, func(t *testing.T) {
			s := New(t)
			fay := s.Person(fayNumber, "Fay")
			c := linked(t, s)
			s.CutAt(where, func(s Stanza) bool { return s.Is("message", "") })
			card := c.says(fayNumber, "Approve?") // the library sends it once more
			if _, err := fay.Gets(within(t), func(m Message) bool { return m.ID == card }); err != nil {
				t.Fatal(err)
			}
			if got := fay.Messages(); len(got) != 1 {
				t.Errorf("fay got %+v", got)
			}
			if err := s.Acknowledged(within(t)); err != nil {
				t.Error(err)
			}
			if slices.ContainsFunc(s.Stanzas(), func(s Stanza) bool { return s.Is("ack", "retry") }) {
				t.Error("fay's phone asked for what it had")
			}
		})
	}
	for name, where := range map[string]Where{"before it": BeforeSending, "after it": AfterSending} {
		t.Run("it is cut "+name, func(t *testing.T) {
			s := New(t)
			fay := s.Person(fayNumber, "Fay")
			c := linked(t, s)
			s.CutAt(where, func(s Stanza) bool { return s.Is("message", "") })
			answer := fay.Says("yes")
			c.gets(answer)
			await[*events.Connected](c)
			if err := s.Acknowledged(within(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLostAck(t *testing.T) {
	s := New(t)
	fay := s.Person(fayNumber, "Fay")
	c := linked(t, s)
	s.LoseAcks(1)
	sent, err := c.SendMessage(within(t), fay.JID(), message("Approve?"), whatsmeow.SendRequestExtra{Timeout: time.Second})
	if err == nil {
		t.Fatalf("sent %+v", sent)
	}
	// It has arrived all the same, and the client is told so.
	await(c, func(r *events.Receipt) bool {
		return r.Type == types.ReceiptTypeDelivered && r.MessageIDs[0] == sent.ID
	})
	c.says(fayNumber, "and the next")
	if _, err := fay.Gets(within(t), saying("and the next")); err != nil {
		t.Error(err)
	}
}

func TestStanzas(t *testing.T) {
	s := New(t)
	c := linked(t, s)
	c.says(s.Person(fayNumber, "Fay").Number(), "x")
	all := s.Stanzas()
	for _, want := range []struct{ tag, kind string }{{"iq", "set"}, {"iq", "get"}, {"message", "text"}} {
		if !slices.ContainsFunc(all, func(s Stanza) bool { return s.Is(want.tag, want.kind) && s.Connection == 2 }) {
			t.Errorf("no %s %s among %d stanzas", want.kind, want.tag, len(all))
		}
	}
	if v := s.Violations(); len(v) != 0 {
		t.Errorf("violations: %q", v)
	}
}
