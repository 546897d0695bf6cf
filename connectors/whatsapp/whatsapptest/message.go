package whatsapptest

import (
	"context"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"go.mau.fi/whatsmeow/proto/waE2E"
)

const (
	// longest is how long a text may be, in characters. Apps cut longer ones.
	longest = 65_536
	// editable is how long others' phones take edits of a message.
	editable = 20 * time.Minute
)

// Message is a message as somebody sees it on their phone.
type Message struct {
	ID        string
	From      string // the sender's number
	At        time.Time
	Text      string // or the caption of a document
	Quotes    string // the id of the message that it answers
	Forwarded bool
	Document  *Document
	Reactions map[string]string // emoji, by the number of who reacted
	Before    []string          // the texts that it had before it was edited, the oldest first
	Revoked   bool
	Delivered bool // of the person's own: a device of the account has it
	Read      bool
	Raw       *waE2E.Message // as it was sent first, or edited last
}

func (m *Message) copy() Message {
	c := *m
	c.Reactions, c.Before = maps.Clone(m.Reactions), slices.Clone(m.Before)
	return c
}

func copies(chat []*Message) []Message {
	var all []Message
	for _, m := range chat {
		all = append(all, m.copy())
	}
	return all
}

func find(chat []*Message, id string) *Message {
	for _, m := range chat {
		if m.ID == id {
			return m
		}
	}
	return nil
}

// sees waits for a message of a chat.
func (s *Server) sees(ctx context.Context, a *account, chat string, fits func(Message) bool) (found Message, err error) {
	err = s.wait(ctx, func() bool {
		for _, m := range slices.Backward(a.chats[chat]) {
			if found = m.copy(); fits(found) {
				return true
			}
		}
		return false
	})
	if err != nil {
		return Message{}, err
	}
	return found, nil
}

// note shows a message in a chat on somebody's phone, or does to an older one what it says. The lock is held.
func (s *Server) note(a *account, chat string, from *account, id string, at time.Time, m *waE2E.Message) {
	m = unwrap(m)
	author := from.pn.User
	defer s.change()
	switch change := m.GetProtocolMessage(); {
	case change != nil:
		old := find(a.chats[chat], change.GetKey().GetID())
		switch {
		case old == nil || old.From != author || old.Revoked:
		case change.GetType() == waE2E.ProtocolMessage_MESSAGE_EDIT && at.Sub(old.At) <= editable:
			old.Before = append(old.Before, old.Text)
			old.write(s, unwrap(change.GetEditedMessage()))
		case change.GetType() == waE2E.ProtocolMessage_REVOKE:
			old.Revoked = true
		}
	case m.GetReactionMessage() != nil:
		key := m.GetReactionMessage().GetKey()
		// The key is as who reacts sees it. Phones do not find a message by a wrong one.
		if old := find(a.chats[chat], key.GetID()); old != nil && key.GetFromMe() == (old.From == author) {
			if emoji := m.GetReactionMessage().GetText(); emoji == "" {
				delete(old.Reactions, author)
			} else {
				old.Reactions[author] = emoji
			}
		}
	case find(a.chats[chat], id) != nil: // phones show a message once
	default:
		shown := &Message{ID: id, From: author, At: at, Reactions: map[string]string{}}
		shown.write(s, m)
		a.chats[chat] = append(a.chats[chat], shown)
	}
}

// write gives a message its content.
func (m *Message) write(s *Server, raw *waE2E.Message) {
	m.Raw = raw
	long, doc := raw.GetExtendedTextMessage(), raw.GetDocumentMessage()
	about := long.GetContextInfo()
	switch {
	case long != nil:
		m.Text = long.GetText()
	case doc != nil:
		m.Text, about = doc.GetCaption(), doc.GetContextInfo()
		m.Document = s.open(doc)
	default:
		m.Text = raw.GetConversation()
	}
	m.Quotes, m.Forwarded = about.GetStanzaID(), about.GetIsForwarded()
	if n := utf8.RuneCountInString(m.Text); n > longest {
		s.violate("a text has %d characters, and WhatsApp's apps cut it at %d", n, longest)
	}
}

// unwrap takes a message out of what only says how to treat it.
func unwrap(m *waE2E.Message) *waE2E.Message {
	for {
		inner := m.GetDeviceSentMessage().GetMessage()
		for _, f := range []*waE2E.FutureProofMessage{
			m.GetEphemeralMessage(), m.GetViewOnceMessage(), m.GetDocumentWithCaptionMessage(), m.GetEditedMessage(),
		} {
			if f.GetMessage() != nil {
				inner = f.GetMessage()
			}
		}
		if inner == nil {
			return m
		}
		m = inner
	}
}
