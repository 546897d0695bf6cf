package whatsapptest

import (
	"maps"

	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"google.golang.org/protobuf/proto"
)

// Says writes a message, and returns its id. While no client is linked, only the account's phone gets it.
func (p *Person) Says(text string) string {
	return p.Sends(&waE2E.Message{Conversation: proto.String(text)})
}

// Quotes writes an answer to a message of the chat.
func (p *Person) Quotes(id, text string) string {
	p.server.mu.Lock()
	quoted, author := &waE2E.Message{}, p.server.bot
	if m := find(p.who.chats[p.chat()], id); m != nil {
		quoted, author = proto.CloneOf(m.Raw), p.server.accounts[m.From]
	}
	p.server.mu.Unlock()
	return p.Sends(&waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{
		Text: proto.String(text), ContextInfo: &waE2E.ContextInfo{
			StanzaID: proto.String(id), Participant: proto.String(author.lid.String()), QuotedMessage: quoted,
		},
	}})
}

// Forwards sends on what somebody else wrote.
func (p *Person) Forwards(text string) string {
	return p.Sends(&waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{
		Text: proto.String(text), ContextInfo: &waE2E.ContextInfo{IsForwarded: proto.Bool(true), ForwardingScore: proto.Uint32(1)},
	}})
}

// Reacts sets the person's reaction to a message of the chat, and removes it with an empty emoji.
func (p *Person) Reacts(id, emoji string) string {
	edit := ""
	if emoji == "" {
		edit = revokes
	}
	return p.send(&waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{
		Key: p.key(id), Text: proto.String(emoji), SenderTimestampMS: proto.Int64(p.server.Now().UnixMilli()),
	}}, "reaction", edit)
}

// Edits changes what the person wrote before. Any time may have passed: it is the phone that would not let them.
func (p *Person) Edits(id, text string) string {
	return p.send(&waE2E.Message{EditedMessage: &waE2E.FutureProofMessage{Message: &waE2E.Message{
		ProtocolMessage: &waE2E.ProtocolMessage{
			Key: p.key(id), Type: waE2E.ProtocolMessage_MESSAGE_EDIT.Enum(),
			EditedMessage: &waE2E.Message{Conversation: proto.String(text)},
			TimestampMS:   proto.Int64(p.server.Now().UnixMilli()),
		},
	}}}, "text", edits)
}

// Revokes deletes for everyone what the person wrote.
func (p *Person) Revokes(id string) string {
	return p.send(&waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{
		Key: p.key(id), Type: waE2E.ProtocolMessage_REVOKE.Enum(),
	}}, "text", revokes)
}

// Sends sends any message, and returns its id.
func (p *Person) Sends(m *waE2E.Message) string {
	kind := "text"
	if m.DocumentMessage != nil || m.DocumentWithCaptionMessage != nil || m.ImageMessage != nil || m.AudioMessage != nil {
		kind = "media"
	}
	return p.send(m, kind, "")
}

// Repeats encrypts a message that the person sent once more, with the same id. To the client it is another message.
func (p *Person) Repeats(id string) {
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.letters[id]; l != nil {
		s.post(l)
	}
}

// Echoes delivers a message once more as it is, after the client has acknowledged it.
func (p *Person) Echoes(id string) {
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.letters[id]; l != nil {
		node := l.sealed
		node.Attrs = maps.Clone(node.Attrs)
		s.deliver(node)
	}
}

// key names a message of the chat, as the person sees it.
func (p *Person) key(id string) *waCommon.MessageKey {
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &waCommon.MessageKey{
		RemoteJID: proto.String(s.bot.lid.String()), ID: proto.String(id), FromMe: proto.Bool(false),
	}
	if !p.where.IsEmpty() {
		k.RemoteJID = proto.String(p.where.String())
	}
	if m := find(p.who.chats[p.chat()], id); m != nil {
		k.FromMe = proto.Bool(m.From == p.who.pn.User)
	}
	return k
}

// send posts a message of the person.
func (p *Person) send(m *waE2E.Message, kind, edit string) string {
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &letter{
		id: s.newID(), from: p.who, via: p.via, where: p.where, at: s.now().Add(-p.ago), message: m, kind: kind, edit: edit,
	}
	p.who.wrote = true
	s.letters[l.id] = l
	s.note(p.who, p.chat(), p.who, l.id, l.at, m)
	other := p.who.pn.User
	if !p.where.IsEmpty() {
		other = p.chat()
	}
	s.note(s.bot, other, p.who, l.id, l.at, m)
	s.post(l)
	return l.id
}
