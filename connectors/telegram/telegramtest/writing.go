package telegramtest

import (
	"regexp"
	"strings"
	"unicode/utf16"
)

// Writes sends a text and returns the message's id.
func (p *Person) Writes(text string) int { return p.Replies(0, text) }

// Replies answers a message with a text, and returns the new message's id.
func (p *Person) Replies(to int, text string) int {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	return p.say(&message{Message: Message{Text: text, ReplyTo: to}})
}

// Formats is Replies with a text that is formatted as a whole.
func (p *Person) Formats(to int, text, as string) int {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	whole := []Entity{{Type: as, Length: units(text)}}
	return p.say(&message{Message: Message{Text: text, ReplyTo: to, Entities: whole}})
}

// Sends sends a file and returns the message's id.
func (p *Person) Sends(name string, bytes []byte, caption string) int {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	return p.say(&message{Message: Message{Text: caption, Document: p.server.keepFile(name, bytes)}})
}

// say sends a message. The lock is held.
func (p *Person) say(m *message) int {
	s := p.server
	if p.chat.kind == private {
		p.who.started = true
	}
	m.From, m.senderChat, m.Thread, m.topic = p.sender(), p.behind(), p.thread, p.thread != 0
	m.Entities = append(m.Entities, s.detect(m.Text)...)
	s.add(p.chat, m)
	s.tell("message", m)
	return m.ID
}

// Speaks sends a voice message as an answer to another one (0: to none), and returns its id.
func (p *Person) Speaks(to int) int {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	voice := object{"file_id": "voice", "file_unique_id": "voice", "duration": 3}
	return p.say(&message{Message: Message{ReplyTo: to}, service: object{"voice": voice}})
}

// Edits changes a message that the person wrote.
func (p *Person) Edits(id int, text string) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	m := p.server.message(p.chat.id, id)
	if m == nil {
		return
	}
	m.keep(p.server.now())
	m.Text, m.Entities = text, p.server.detect(text)
	p.server.tell("edited_message", m)
	p.server.change()
}

// Deletes deletes a message for everybody. The bot hears nothing of it.
func (p *Person) Deletes(id int) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	if m := p.server.message(p.chat.id, id); m != nil {
		m.Deleted = true
		p.server.change()
	}
}

// Forwards sends a copy of a message of the chat to another chat of the person, and returns its id there. The copy has
// no buttons.
func (p *Person) Forwards(id int, to *Person) int {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	m := p.server.message(p.chat.id, id)
	if m == nil {
		return 0
	}
	from := m.From
	forwarded := &message{
		Message: Message{Text: m.Text, Document: m.Document, ForwardFrom: &from},
		service: object{"forward_origin": object{"type": "user", "date": m.SentAt.Unix(), "sender_user": from}},
	}
	return to.say(forwarded)
}

// Picks sends a message that another bot wrote, of those that it offers to be sent in the person's name, as an answer to
// a message (0: to none), and returns its id.
func (p *Person) Picks(bot User, to int, text string) int {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	bot.IsBot = true
	return p.say(&message{Message: Message{Text: text, ReplyTo: to}, through: &bot})
}

// Reacts sets the person's reactions to a message, each an emoji; none takes them back. The bot hears of it if it asked
// for message_reaction, in groups only as an administrator.
func (p *Person) Reacts(id int, emoji ...string) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	s := p.server
	m := s.message(p.chat.id, id)
	if m == nil {
		return
	}
	reactions := []object{}
	for _, e := range emoji {
		reactions = append(reactions, object{"type": "emoji", "emoji": e})
	}
	if m.felt == nil {
		m.felt = map[int64][]object{}
	}
	old := m.felt[p.who.user.ID]
	if old == nil {
		old = []object{}
	}
	m.felt[p.who.user.ID] = reactions
	update := object{
		"chat": p.chat.wire(), "message_id": id, "date": s.now().Unix(), "old_reaction": old, "new_reaction": reactions,
	}
	if behind := p.behind(); behind != nil {
		update["actor_chat"] = behind
	} else {
		update["user"] = p.who.user
	}
	if p.chat.reaches() && (p.chat.kind == private || p.chat.bot == administrator) {
		s.emit("message_reaction", messageLife, update)
	}
	s.change()
}

// tell makes an update of a message, if the bot may see it. The lock is held.
func (s *Server) tell(kind string, m *message) {
	c := s.chats[m.Chat]
	if c.kind == channel {
		kind = strings.Replace(kind, "message", "channel_post", 1)
	}
	if c.reaches() && s.hears(c, m) {
		s.emit(kind, messageLife, s.wire(m))
	}
}

// reaches reports whether what happens in the chat can reach the bot.
func (c *chat) reaches() bool {
	if c.kind == private {
		return !c.person.blocked
	}
	return c.bot == member || c.bot == administrator || c.bot == restricted
}

// hears reports whether the privacy mode lets the bot see a message: in groups, commands that are not for another bot,
// replies to it, its name, and service messages; all that is written, as an administrator.
func (s *Server) hears(c *chat, m *message) bool {
	if c.kind == private || c.kind == channel || s.readsAll || c.bot == administrator || m.service != nil {
		return true
	}
	if answered := s.message(c.id, m.ReplyTo); answered != nil && answered.FromBot {
		return true
	}
	own := "@" + strings.ToLower(s.bot.Username)
	for _, e := range m.Entities {
		name := strings.ToLower(e.Of(m.Text))
		_, other, addressed := strings.Cut(name, "@")
		switch {
		case e.Type == "mention" && name == own:
			return true
		case e.Type == "bot_command" && (!addressed || "@"+other == own):
			return true
		}
	}
	return false
}

var detected = regexp.MustCompile(`(^|[\s(])(/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?|@[A-Za-z0-9_]{3,32})\b`)

// detect marks commands and names in what a person writes.
func (s *Server) detect(text string) (found []Entity) {
	for _, at := range detected.FindAllStringSubmatchIndex(text, -1) {
		e := Entity{Type: "mention", Offset: units(text[:at[4]]), Length: len(utf16.Encode([]rune(text[at[4]:at[5]])))}
		if text[at[4]] == '/' {
			e.Type = "bot_command"
		}
		found = append(found, e)
	}
	return found
}
