package telegramtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Message is a message as the people of its chat see it now.
type Message struct {
	Chat   int64
	ID     int
	Thread int  // of a forum
	From   User // empty for what a channel itself posts
	// FromBot tells that the bot under test sent it.
	FromBot     bool
	SentAt      time.Time
	Text        string // a document's is its caption
	Entities    []Entity
	Keyboard    [][]Button  // under the message
	ForceReply  *ForceReply // it asks for a reply
	Document    *Document
	ReplyTo     int // the message that it answers
	Silent      bool
	Protected   bool // against forwarding and saving
	NoPreview   bool // of links
	Edits       int
	History     []Version // what it was before, oldest first
	Reactions   []string  // the bot's, as emoji
	Deleted     bool
	MigratedTo  int64 // a service message: the group is now this supergroup
	NewMembers  []User
	ForwardFrom *User
}

// Version is what a message was before an edit.
type Version struct {
	Text     string
	Entities []Entity
	Keyboard [][]Button
	Until    time.Time
}

// Document is a file in a message.
type Document struct {
	FileID, Name, MIME string
	Bytes              []byte
}

// message is a Message with what only the server knows.
type message struct {
	Message
	senderChat object
	markup     *markup
	preview    object // link_preview_options
	edited     time.Time
	service    object // fields of a service message, and where a forwarded one came from
	through    *User  // the bot whose words it has
	topic      bool
	lost       bool               // the bot cannot see it any more
	felt       map[int64][]object // reactions of people, by their ids
}

// Messages are what was written in a chat, by the bot and by people, oldest first, and what became of it.
func (s *Server) Messages(chat int64) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.messages(chat)
}

func (s *Server) messages(chat int64) (all []Message) {
	if c := s.chats[chat]; c != nil {
		for _, m := range c.log {
			all = append(all, m.copy())
		}
	}
	return all
}

func (m *message) copy() Message {
	c := m.Message
	c.Entities, c.History = slices.Clone(c.Entities), slices.Clone(c.History)
	c.Reactions = slices.Clone(c.Reactions)
	return c
}

// Forget makes a message inaccessible to the bot, as an old one may become: it cannot be edited, and a tap on it comes
// without it.
func (s *Server) Forget(chat int64, id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.message(chat, id); m != nil {
		m.lost = true
	}
}

// message finds a message that was not deleted. The lock is held.
func (s *Server) message(chat int64, id int) *message {
	c := s.chats[chat]
	if c == nil || c.byID[id] == nil || c.byID[id].Deleted {
		return nil
	}
	return c.byID[id]
}

// sees returns the newest message of the bot in a chat that fits, once there is one.
func (s *Server) sees(ctx context.Context, chat int64, fits func(Message) bool) (found Message, err error) {
	err = s.wait(ctx, time.Time{}, func() bool {
		c := s.chats[chat]
		for i := len(c.log) - 1; i >= 0; i-- {
			if m := c.log[i]; m.FromBot && !m.Deleted && fits(m.copy()) {
				found = m.copy()
				return true
			}
		}
		return false
	})
	if err == nil {
		return found, nil
	}
	var texts []string
	for _, m := range s.Messages(chat) {
		if m.FromBot && !m.Deleted {
			texts = append(texts, m.Text)
		}
	}
	return Message{}, fmt.Errorf("no such message was seen, but %q: %w", texts, err)
}

// add gives a message its number and place. The lock is held.
func (s *Server) add(c *chat, m *message) *message {
	if c.counts() {
		c.last++
		m.ID = c.last
	} else {
		s.lastMessage++
		m.ID = s.lastMessage
	}
	m.Chat, m.SentAt = c.id, s.now()
	m.FromBot = m.From.ID == s.bot.ID
	c.log = append(c.log, m)
	c.byID[m.ID] = m
	s.change()
	return m
}

// keep notes what a message was, before it is edited.
func (m *message) keep(now time.Time) {
	m.History = append(m.History, Version{Text: m.Text, Entities: m.Entities, Keyboard: m.Keyboard, Until: now})
	m.Edits++
	m.edited = now
}

// wire is a message as the Bot API tells it. The lock is held.
func (s *Server) wire(m *message) object {
	o := s.wireAlone(m)
	if answered := s.message(m.Chat, m.ReplyTo); answered != nil {
		o["reply_to_message"] = s.wireAlone(answered)
	}
	return o
}

// wireAlone leaves out the message that it answers.
func (s *Server) wireAlone(m *message) object {
	c := s.chats[m.Chat]
	o := object{"message_id": m.ID, "date": m.SentAt.Add(-s.behind).Unix(), "chat": c.wire()}
	for name, value := range m.service {
		o[name] = value
	}
	if m.From.ID != 0 && c.kind != channel {
		o["from"] = m.From
	}
	if m.senderChat != nil {
		o["sender_chat"] = m.senderChat
	}
	if m.through != nil {
		o["via_bot"] = *m.through
	}
	if m.Thread != 0 {
		o["message_thread_id"] = m.Thread
	}
	if m.topic {
		o["is_topic_message"] = true
	}
	if !m.edited.IsZero() {
		o["edit_date"] = m.edited.Unix()
	}
	if m.Protected {
		o["has_protected_content"] = true
	}
	if m.preview != nil {
		o["link_preview_options"] = m.preview
	}
	if len(m.Keyboard) > 0 {
		o["reply_markup"] = m.markup.json
	}
	text, entities := "text", "entities"
	if m.Document != nil {
		text, entities = "caption", "caption_entities"
		o["document"] = object{
			"file_id": m.Document.FileID, "file_unique_id": unique(m.Document.FileID), "file_name": m.Document.Name,
			"mime_type": m.Document.MIME, "file_size": len(m.Document.Bytes),
		}
	}
	if m.Text != "" {
		o[text] = m.Text
	}
	if len(m.Entities) > 0 {
		o[entities] = m.Entities
	}
	return o
}

// unique names a file, whatever bot has it.
func unique(fileID string) string { return "U" + strings.TrimPrefix(fileID, "F") }
