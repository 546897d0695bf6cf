package telegramtest

import (
	"slices"
	"time"
)

// deletable is how long the bot may delete a message in a chat of which it is no administrator.
const deletable = 48 * time.Hour

// target finds the message that a call is about, if the bot can see it. missing is what to say if not.
func (s *Server) target(q *query, missing string) (*chat, *message, *failure) {
	c, refused := s.writable(q)
	if refused != nil {
		return nil, nil, refused
	}
	id := int(q.integer("message_id", 0))
	if id == 0 {
		return nil, nil, badRequest("message identifier is not specified")
	}
	m := s.message(c.id, id)
	if m == nil || m.lost {
		return nil, nil, badRequest("%s", missing)
	}
	return c, m, nil
}

// editable finds the message that a call edits.
func (s *Server) editable(q *query) (*message, *failure) {
	_, m, refused := s.target(q, "message to edit not found")
	switch {
	case refused != nil:
		return nil, refused
	case !m.FromBot || !m.markup.inline() || m.service != nil:
		return nil, badRequest("message can't be edited")
	}
	return m, nil
}

func (s *Server) editMessageText(q *query) (any, *failure) {
	if q.values["text"] == "" {
		return nil, badRequest("message text is empty")
	}
	m, refused := s.editable(q)
	if refused != nil {
		return nil, refused
	}
	if m.Document != nil {
		return nil, badRequest("there is no text in the message to edit")
	}
	text, entities, refused := s.formatted(q, "text", "entities")
	switch {
	case refused != nil:
		return nil, refused
	case blank(text):
		return nil, badRequest("text must be non-empty")
	case units(text) > maxText:
		return nil, badRequest("MESSAGE_TOO_LONG")
	}
	return s.edit(q, m, text, entities)
}

func (s *Server) editMessageReplyMarkup(q *query) (any, *failure) {
	m, refused := s.editable(q)
	if refused != nil {
		return nil, refused
	}
	return s.edit(q, m, m.Text, m.Entities)
}

// edit changes a message. A keyboard that is not given again is gone.
func (s *Server) edit(q *query, m *message, text string, entities []Entity) (any, *failure) {
	markup, refused := q.markup()
	switch {
	case refused != nil:
		return nil, refused
	case !markup.inline():
		return nil, badRequest("inline keyboard expected")
	case text == m.Text && slices.EqualFunc(entities, m.Entities, sameEntity) && markup.same(m.markup):
		return nil, badRequest("message is not modified: specified new message content and reply markup are exactly the " +
			"same as a current content and reply markup of the message")
	}
	m.keep(s.now())
	m.Text, m.Entities = text, entities
	m.use(markup)
	s.change()
	return s.wire(m), nil
}

func sameEntity(a, b Entity) bool {
	if a.User != nil && b.User != nil && a.User.ID == b.User.ID {
		a.User, b.User = nil, nil
	}
	return a == b
}

func (s *Server) deleteMessage(q *query) (any, *failure) {
	c, m, refused := s.target(q, "message to delete not found")
	switch {
	case refused != nil:
		return nil, refused
	case c.bot != administrator && s.now().Sub(m.SentAt) >= deletable:
		return nil, badRequest("message can't be deleted for everyone")
	case !m.FromBot && c.kind != private && c.bot != administrator:
		return nil, badRequest("message can't be deleted")
	}
	m.Deleted = true
	s.change()
	return true, nil
}

func (s *Server) setMessageReaction(q *query) (any, *failure) {
	_, m, refused := s.target(q, "message to react not found")
	if refused != nil {
		return nil, refused
	}
	var reactions []struct {
		Type  string `json:"type"`
		Emoji string `json:"emoji"`
	}
	if _, err := q.decode("reaction", &reactions); err != nil {
		return nil, badRequest("can't parse reaction types JSON object")
	}
	if len(reactions) > 1 {
		return nil, badRequest("REACTIONS_TOO_MANY")
	}
	m.Reactions = nil
	for _, r := range reactions {
		if r.Type != "emoji" || !slices.Contains(s.schema.reactions, r.Emoji) {
			return nil, badRequest("REACTION_INVALID")
		}
		m.Reactions = append(m.Reactions, r.Emoji)
	}
	s.change()
	return true, nil
}
