package telegramtest

// Group is a group, supergroup, forum or channel. It is safe for concurrent use.
type Group struct {
	server *Server
	chat   *chat
}

// Group makes a group of people, the first its creator. The bot is not in it.
func (s *Server) Group(title string, people ...*Person) *Group { return s.group(group, title, people) }

// Supergroup makes a supergroup of people, the first its creator.
func (s *Server) Supergroup(title string, people ...*Person) *Group {
	return s.group(supergroup, title, people)
}

// Forum makes a supergroup with topics.
func (s *Server) Forum(title string, people ...*Person) *Group {
	g := s.group(supergroup, title, people)
	g.chat.forum = true
	return g
}

// Channel makes a channel, the first of the people its creator.
func (s *Server) Channel(title string, people ...*Person) *Group {
	return s.group(channel, title, people)
}

func (s *Server) group(kind, title string, people []*Person) *Group {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastGroup++
	id := -s.lastGroup
	if kind != group {
		id -= 1_000_000_000_000
	}
	c := newChat(id, kind, title)
	for i, p := range people {
		c.members[p.who.user.ID] = member
		if i == 0 {
			c.members[p.who.user.ID] = creator
		}
	}
	s.chats[id] = c
	return &Group{server: s, chat: c}
}

// ID is the chat's id, which is negative.
func (g *Group) ID() int64 { return g.chat.id }

// Messages are what its members see.
func (g *Group) Messages() []Message { return g.server.Messages(g.chat.id) }

// AddsBot adds the bot; to a channel, as an administrator.
func (g *Group) AddsBot(by *Person) {
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	if g.chat.kind == channel {
		g.server.changeBot(g.chat, by.who.user, administrator)
		return
	}
	g.server.changeBot(g.chat, by.who.user, member)
	g.service(by, object{"new_chat_members": []User{g.server.bot}}, func(m *Message) {
		m.NewMembers = []User{g.server.bot}
	})
}

// PromotesBot makes the bot an administrator.
func (g *Group) PromotesBot(by *Person) { g.changesBot(by, administrator) }

// KicksBot removes the bot for good.
func (g *Group) KicksBot(by *Person) { g.changesBot(by, kicked) }

func (g *Group) changesBot(by *Person, status string) {
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	g.server.changeBot(g.chat, by.who.user, status)
}

// MutesBot leaves the bot in a supergroup and lets it write nothing.
func (g *Group) MutesBot(by *Person) { g.changesBot(by, restricted) }

// MutesAll lets no member write anything; the bot gets no update about it.
func (g *Group) MutesAll() {
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	g.chat.mute = true
}

// DeletesTopic deletes a topic, with what is in it.
func (g *Group) DeletesTopic(thread int) {
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	delete(g.chat.topics, thread)
	for _, m := range g.chat.log {
		m.Deleted = m.Deleted || m.Thread == thread
	}
	g.server.change()
}

// HasBot reports whether the bot is in it.
func (g *Group) HasBot() bool {
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	return g.chat.reaches()
}

// Topic opens a topic of a forum and returns its message_thread_id.
func (g *Group) Topic(by *Person, name string) int {
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	thread := g.chat.last + 1 // a topic is named by the message that opens it
	g.chat.topics[thread] = name
	g.service(by.InThread(thread), object{"forum_topic_created": object{"name": name, "icon_color": 7322096}}, nil)
	return thread
}

// Posts sends a text in the name of a channel, and returns the message's id.
func (g *Group) Posts(text string) int {
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	m := &message{Message: Message{Text: text}, senderChat: g.chat.wire()}
	m.Entities = g.server.detect(text)
	g.server.add(g.chat, m)
	g.server.tell("message", m)
	return m.ID
}

// Migrates upgrades a group to a supergroup, which it returns. The bot is told in both, and refused in the old one; that
// it is in the new one it is told before it can know what that is, as may happen.
func (g *Group) Migrates(by *Person) *Group {
	s := g.server
	s.mu.Lock()
	s.lastGroup++
	next := newChat(-1_000_000_000_000-s.lastGroup, supergroup, g.chat.title)
	for id, status := range g.chat.members {
		next.members[id] = status
	}
	s.chats[next.id] = next
	to := &Group{server: s, chat: next}
	g.chat.migratedTo = next.id
	next.bot = left
	s.changeBot(next, by.who.user, g.chat.bot)
	g.service(by, object{"migrate_to_chat_id": next.id}, func(m *Message) { m.MigratedTo = next.id })
	to.service(by, object{"migrate_from_chat_id": g.chat.id}, nil)
	s.mu.Unlock()
	return to
}

// service writes a service message. The lock is held.
func (g *Group) service(by *Person, fields object, fill func(*Message)) {
	m := &message{service: fields}
	m.From, m.Thread, m.topic = by.who.user, by.thread, by.thread != 0
	if fill != nil {
		fill(&m.Message)
	}
	g.server.add(g.chat, m)
	g.server.tell("message", m)
}
