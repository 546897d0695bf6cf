package whatsapptest

import (
	"slices"
	"testing"

	"go.mau.fi/whatsmeow/types/events"
)

func retried(all []Stanza) bool {
	return slices.ContainsFunc(all, func(s Stanza) bool { return s.Is("receipt", "retry") })
}

// The client cannot read a message, asks for it, and gets it.
func TestClientAsksAgain(t *testing.T) {
	for _, garbled := range []int{1, 3} {
		s := New(t)
		fay := s.Person(fayNumber, "Fay")
		c := linked(t, s)
		c.gets(fay.Says("hello"))
		s.Garble(garbled)
		answer := fay.Says("YES K7F3Q")
		if u := await[*events.UndecryptableMessage](c); u.Info.ID != answer {
			t.Errorf("undecryptable: %+v", u)
		}
		if e := c.gets(answer); e.Message.GetConversation() != "YES K7F3Q" || e.RetryCount != garbled {
			t.Errorf("after %d garbled ones it came as %+v", garbled, e)
		}
		if err := s.Acknowledged(within(t)); err != nil {
			t.Errorf("%v: %+v", err, s.Waiting())
		}
		c.gets(fay.Says("goodbye"))
	}
}

func TestClientAsksAgainInAGroup(t *testing.T) {
	s := New(t)
	fay := s.Person(fayNumber, "Fay").In(s.Group())
	c := linked(t, s)
	s.Garble(1)
	answer := fay.Says("yes")
	e := await(c, func(m *events.Message) bool { return m.Info.ID == answer && m.Message.GetConversation() == "yes" })
	if !e.Info.IsGroup {
		t.Errorf("it came as %+v", e)
	}
}

// The account's own phone answers what the client asks it for: a copy that does not come from the sender's session.
func TestOwnPhoneResends(t *testing.T) {
	s := New(t)
	fay := s.Person(fayNumber, "Fay")
	c := linked(t, s)
	s.Phone().Resends()
	s.Garble(10)
	answer := fay.Says("YES K7F3Q")
	if err := s.AwaitStanzas(within(t), retried); err != nil {
		t.Fatal(err)
	}
	s.Garble(-10)
	e := await(c, func(m *events.Message) bool { return m.Info.ID == answer && m.UnavailableRequestID != "" })
	if e.SourceWebMsg == nil || e.Message.GetConversation() != "YES K7F3Q" {
		t.Errorf("the copy came as %+v", e)
	}
}

// A phone cannot read a message, asks for it, and gets it.
func TestPhoneAsksAgain(t *testing.T) {
	for _, blind := range []int{1, 2} {
		s := New(t)
		fay := s.Person(fayNumber, "Fay")
		c := linked(t, s)
		c.says(fayNumber, "hello")
		fay.CannotRead(blind)
		card := c.says(fayNumber, "Approve?")
		if m, err := fay.Gets(within(t), saying("Approve?")); err != nil || m.ID != card {
			t.Errorf("after %d times fay got %+v, %v", blind, m, err)
		}
	}
}

func TestChangedIdentity(t *testing.T) {
	for name, change := range map[string]func(*Person){
		"by LID": (*Person).ChangesPhone, "by number": func(p *Person) { p.ByNumber().ChangesPhone() },
	} {
		t.Run(name, func(t *testing.T) {
			s := New(t)
			fay := s.Person(fayNumber, "Fay")
			c := linked(t, s)
			c.says(fayNumber, "hello")
			c.gets(fay.Says("hello"))
			change(fay)
			if e := await[*events.IdentityChange](c); e.Implicit || (e.JID != fay.LID() && e.JID != fay.JID()) {
				t.Errorf("changed: %+v", e)
			}
			c.says(fayNumber, "who are you?")
			if _, err := fay.Gets(within(t), saying("who are you?")); err != nil {
				t.Error(err)
			}
			c.gets(fay.Says("me"))
		})
	}
}

func TestChangedIdentityUnnoticed(t *testing.T) {
	s := New(t)
	fay := s.Person(fayNumber, "Fay")
	c := linked(t, s)
	c.gets(fay.Says("hello"))
	fay.ChangesPhoneUnnoticed()
	answer := fay.Says("YES K7F3Q")
	if e := await[*events.IdentityChange](c); !e.Implicit || e.JID.ToNonAD() != fay.LID() {
		t.Errorf("changed: %+v", e)
	}
	c.gets(answer)
}
