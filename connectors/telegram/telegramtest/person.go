package telegramtest

import (
	"context"
	"slices"
)

// Person is somebody with a phone, in one chat: at first their private chat with the bot. [Person.In] and its like give
// the same person elsewhere. It is safe for concurrent use.
type Person struct {
	server *Server
	who    *account
	chat   *chat
	thread int
	hidden bool  // behind the group
	as     *chat // behind this channel
}

// Person is the person with this account. Somebody new has not started the bot yet.
func (s *Server) Person(u User) *Person {
	s.mu.Lock()
	defer s.mu.Unlock()
	who := s.accounts[u.ID]
	if who == nil {
		who = &account{user: u}
		s.accounts[u.ID] = who
		c := newChat(u.ID, private, "")
		c.person = who
		s.chats[u.ID] = c
	}
	who.user = u
	return &Person{server: s, who: who, chat: s.chats[u.ID]}
}

// User is who the person is.
func (p *Person) User() User {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	return p.who.user
}

// Chat is the id of the chat that the person is in.
func (p *Person) Chat() int64 { return p.chat.id }

// In is the person in a group or channel.
func (p *Person) In(g *Group) *Person {
	return &Person{server: p.server, who: p.who, chat: g.chat}
}

// InThread is the person in a topic of the same forum.
func (p *Person) InThread(thread int) *Person {
	return &Person{server: p.server, who: p.who, chat: p.chat, thread: thread, hidden: p.hidden, as: p.as}
}

// Anonymously is the person as an administrator who hides behind the group.
func (p *Person) Anonymously() *Person {
	return &Person{server: p.server, who: p.who, chat: p.chat, thread: p.thread, hidden: true}
}

// AsChannel is the person behind a channel of theirs.
func (p *Person) AsChannel(g *Group) *Person {
	return &Person{server: p.server, who: p.who, chat: p.chat, thread: p.thread, as: g.chat}
}

// sender is whom the Bot API names as the sender. The lock is held.
func (p *Person) sender() User {
	switch {
	case p.hidden:
		return groupAnonymousBot
	case p.as != nil:
		return channelBot
	}
	return p.who.user
}

// behind is the chat behind which the person hides, or nil.
func (p *Person) behind() object {
	switch {
	case p.hidden:
		return p.chat.wire()
	case p.as != nil:
		return p.as.wire()
	}
	return nil
}

// Start presses Start, with the payload of a link or none, and returns the message's id. It unblocks a blocked bot.
func (p *Person) Start(payload string) int {
	p.Unblocks()
	if payload != "" {
		payload = " " + payload
	}
	return p.Writes("/start" + payload)
}

// Blocks blocks the bot.
func (p *Person) Blocks() { p.block(true) }

// Unblocks unblocks it, and does nothing where it was not blocked.
func (p *Person) Unblocks() { p.block(false) }

func (p *Person) block(yes bool) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	if p.who.blocked == yes {
		return
	}
	p.who.blocked = yes
	was, is := member, kicked
	if !yes {
		was, is = kicked, member
	}
	p.server.emit("my_chat_member", messageLife, object{
		"chat": p.server.chats[p.who.user.ID].wire(), "from": p.who.user, "date": p.server.now().Unix(),
		"old_chat_member": membership(p.server.bot, was), "new_chat_member": membership(p.server.bot, is),
	})
	p.server.change()
}

// Deactivates deletes the person's account. The bot hears nothing of it.
func (p *Person) Deactivates() {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.who.suspended = true
	p.server.change()
}

// Messages are what the person sees in the chat.
func (p *Person) Messages() []Message {
	return slices.DeleteFunc(p.server.Messages(p.chat.id), func(m Message) bool { return m.Deleted })
}

// Message is one message of the chat as it is now, and false where there is none, or it was deleted.
func (p *Person) Message(id int) (Message, bool) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	m := p.server.message(p.chat.id, id)
	if m == nil {
		return Message{}, false
	}
	return m.copy(), true
}

// Sees waits until a message of the bot in the chat fits, and returns the newest that does. fits must not call the
// server.
func (p *Person) Sees(ctx context.Context, fits func(Message) bool) (Message, error) {
	return p.server.sees(ctx, p.chat.id, fits)
}
