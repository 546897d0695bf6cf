package whatsapptest

import (
	"context"
	"fmt"
	"time"

	"go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// account is somebody on WhatsApp, with one phone.
type account struct {
	pn, lid types.JID
	name    string
	phone   *vault
	desktop *vault                // of the account under test, when it has one
	chats   map[string][]*Message // by the number of the other, or the address of the group

	gone    bool // deleted
	blocks  bool // hears nothing of the account under test
	wrote   bool // to the account under test
	away    bool
	mail    []piece // that came meanwhile
	blind   int     // messages that the phone cannot read
	retries map[string]int
	resends bool           // the phone answers a linked device that asks for a copy
	shared  map[string]int // the linked device that has the key of a group
}

// Person is somebody with a phone, in their chat with the account. [Person.In] and its like give the same person
// elsewhere, or otherwise known. It is safe for concurrent use.
type Person struct {
	server *Server
	who    *account
	via    route
	where  types.JID     // a group, or a broadcast list
	ago    time.Duration // how old is what they send
}

// route is what a stanza tells of its sender.
type route int

const (
	lidWithNumber route = iota
	numberWithLID
	lidAlone
	numberAlone
)

// Person is the person with this number, digits only, who is called name. Somebody new joins WhatsApp thereby.
func (s *Server) Person(number, name string) *Person {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !digits.MatchString(number) {
		panic(fmt.Sprintf("whatsapptest: %q is no phone number", number))
	}
	a := s.accounts[number]
	if a == nil {
		a = s.register(number, name)
	}
	a.name = name
	return &Person{server: s, who: a}
}

func (s *Server) register(number, name string) *account {
	n := len(s.accounts)
	a := &account{
		pn:   types.NewJID(number, types.DefaultUserServer),
		lid:  types.NewJID(fmt.Sprint(100_000_000_000_001+n*1001), types.HiddenUserServer),
		name: name, phone: newVault(uint32(1000 + n)), chats: map[string][]*Message{},
		retries: map[string]int{}, shared: map[string]int{},
	}
	s.accounts[a.pn.User], s.accounts[a.lid.User] = a, a
	return a
}

// Number is the person's phone number, digits only.
func (p *Person) Number() string { return p.who.pn.User }

// JID is the person's address by their number.
func (p *Person) JID() types.JID { return p.who.pn }

// LID is the person's address that hides the number.
func (p *Person) LID() types.JID { return p.who.lid }

// ByNumber is the person as known by their number, with the LID beside it. By default it is the other way round.
func (p *Person) ByNumber() *Person { return p.known(numberWithLID) }

// ByLIDAlone is the person as known by their LID, without a number.
func (p *Person) ByLIDAlone() *Person { return p.known(lidAlone) }

// ByNumberAlone is the person as known by their number, without a LID.
func (p *Person) ByNumberAlone() *Person { return p.known(numberAlone) }

func (p *Person) known(via route) *Person {
	q := *p
	q.via = via
	return &q
}

// In is the person in a group.
func (p *Person) In(g *Group) *Person {
	q := *p
	q.where = g.jid
	return &q
}

// ToMany is the person writing to a broadcast list that the account is on.
func (p *Person) ToMany() *Person {
	q := *p
	q.where = types.NewJID("1700000000", types.BroadcastServer)
	return &q
}

// OnStatus is the person posting their status.
func (p *Person) OnStatus() *Person {
	q := *p
	q.where = types.StatusBroadcastJID
	return &q
}

// Ago is the person some time ago: what they send was sent then, and has come only now.
func (p *Person) Ago(d time.Duration) *Person {
	q := *p
	q.ago = d
	return &q
}

// Leaves switches the phone off: nothing is delivered to it until it is switched on again.
func (p *Person) Leaves() {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.who.away = true
}

// Returns switches the phone on, which gets what it has missed.
func (p *Person) Returns() {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	mail := p.who.mail
	p.who.away, p.who.mail = false, nil
	for _, piece := range mail {
		p.server.arrive(p.who, piece)
	}
}

// Blocks blocks the account. It is not told, and what it sends is never delivered.
func (p *Person) Blocks() {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.who.blocks = true
}

// Deletes deletes the person's account for good: they are not on WhatsApp any more.
func (p *Person) Deletes() {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.who.gone = true
}

// CannotRead lets the phone fail to decrypt the next n messages. It asks for each of them again.
func (p *Person) CannotRead(n int) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.who.blind += n
}

// ChangesPhone gives the person another phone, as after it was lost, or the number was taken over: it has an identity
// of its own, and no sessions. The account is told, about the address that the person is known by.
func (p *Person) ChangesPhone() {
	p.ChangesPhoneUnnoticed()
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	from := p.who.lid
	if p.via == numberWithLID || p.via == numberAlone {
		from = p.who.pn
	}
	s.deliver(binary.Node{
		Tag:     "notification",
		Attrs:   binary.Attrs{"from": from, "id": s.newID(), "t": stamp(s.now()), "type": "encrypt"},
		Content: []binary.Node{{Tag: "identity"}},
	})
}

// ChangesPhoneUnnoticed does the same without telling the account, which finds out by the next message.
func (p *Person) ChangesPhoneUnnoticed() {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.who.phone = newVault(p.who.phone.registration + 5000)
	p.who.retries, p.who.shared = map[string]int{}, map[string]int{}
}

// Messages are what the person sees in the chat, or the group.
func (p *Person) Messages() []Message {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	return copies(p.who.chats[p.chat()])
}

// Message is one message of the chat as it is now, and false where there is none.
func (p *Person) Message(id string) (Message, bool) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	if m := find(p.who.chats[p.chat()], id); m != nil {
		return m.copy(), true
	}
	return Message{}, false
}

// Gets waits until a message of the account fits, and returns the newest that does. fits must not call the server.
func (p *Person) Gets(ctx context.Context, fits func(Message) bool) (Message, error) {
	return p.Sees(ctx, func(m Message) bool { return m.From == p.server.Number() && fits(m) })
}

// Sees waits until a message of the chat fits, whoever wrote it, and returns the newest that does. fits must not call
// the server.
func (p *Person) Sees(ctx context.Context, fits func(Message) bool) (Message, error) {
	return p.server.sees(ctx, p.who, p.chat(), fits)
}

// chat is the key of the person's chat.
func (p *Person) chat() string {
	if !p.where.IsEmpty() {
		return p.where.String()
	}
	return p.server.bot.pn.User
}
