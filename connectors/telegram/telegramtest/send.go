package telegramtest

import (
	"fmt"
	"mime"
	"path/filepath"
	"slices"
	"strings"
)

// maxFile is what a document may weigh, in bytes.
const maxFile = 50 << 20

func (s *Server) sendMessage(q *query) (any, *failure) {
	c, refused := s.writable(q)
	if refused != nil {
		return nil, refused
	}
	if q.values["text"] == "" {
		return nil, badRequest("message text is empty")
	}
	text, entities, refused := s.formatted(q, "text", "entities")
	switch {
	case refused != nil:
		return nil, refused
	case blank(text):
		return nil, badRequest("text must be non-empty")
	case units(text) > maxText:
		return nil, badRequest("message is too long")
	}
	return s.send(c, q, &message{Message: Message{Text: text, Entities: entities}})
}

func (s *Server) sendDocument(q *query) (any, *failure) {
	c, refused := s.writable(q)
	if refused != nil {
		return nil, refused
	}
	document, refused := s.document(q)
	if refused != nil {
		return nil, refused
	}
	caption, entities, refused := s.formatted(q, "caption", "caption_entities")
	switch {
	case refused != nil:
		return nil, refused
	case units(caption) > maxCaption:
		return nil, badRequest("message caption is too long")
	}
	return s.send(c, q, &message{Message: Message{Text: caption, Entities: entities, Document: document}})
}

// document takes the file of a call, or finds the one sent before that it names.
func (s *Server) document(q *query) (*Document, *failure) {
	file, uploaded := q.file("document")
	known := s.files[q.values["document"]]
	switch {
	case !uploaded && known != nil:
		return known, nil
	case !uploaded && q.values["document"] == "":
		return nil, badRequest("there is no document in the request")
	case !uploaded:
		return nil, badRequest("wrong file identifier/HTTP URL specified")
	case len(file.bytes) == 0:
		return nil, badRequest("file must be non-empty")
	case len(file.bytes) > maxFile:
		return nil, &failure{code: 413, description: "Request Entity Too Large"}
	}
	return s.keepFile(file.name, file.bytes), nil
}

// keepFile gives a file its name. The lock is held.
func (s *Server) keepFile(name string, bytes []byte) *Document {
	kind, _, _ := strings.Cut(mime.TypeByExtension(filepath.Ext(name)), ";")
	if kind == "" {
		kind = "application/octet-stream"
	}
	s.lastFile++
	d := &Document{FileID: fmt.Sprintf("F%d", s.lastFile), Name: name, MIME: kind, Bytes: bytes}
	s.files[d.FileID] = d
	return d
}

// send takes what all kinds of messages share, and sends.
func (s *Server) send(c *chat, q *query, m *message) (any, *failure) {
	if c.bot == restricted || c.mute && c.bot == member {
		return nil, badRequest("not enough rights to send text messages to the chat")
	}
	markup, refused := q.markup()
	if refused != nil {
		return nil, refused
	}
	m.use(markup)
	if m.ReplyTo, refused = s.replyTo(c, q); refused != nil {
		return nil, refused
	}
	if m.Thread = int(q.integer("message_thread_id", 0)); m.Thread != 0 {
		if _, ok := c.topics[m.Thread]; !ok {
			return nil, badRequest("message thread not found")
		}
	} else if answered := s.message(c.id, m.ReplyTo); answered != nil {
		m.Thread = answered.Thread
	}
	m.topic = m.Thread != 0
	var preview struct {
		IsDisabled bool `json:"is_disabled"`
	}
	if _, err := q.decode("link_preview_options", &preview); err != nil {
		return nil, badRequest("can't parse link preview options: %v", err)
	}
	if m.NoPreview = preview.IsDisabled || q.flag("disable_web_page_preview"); m.NoPreview {
		m.preview = object{"is_disabled": true}
	}
	m.From, m.Silent, m.Protected = s.bot, q.flag("disable_notification"), q.flag("protect_content")
	if c.kind == channel {
		m.senderChat = c.wire()
	}
	return s.wire(s.add(c, m)), nil
}

// use puts markup on a message.
func (m *message) use(markup *markup) {
	m.markup, m.Keyboard, m.ForceReply = markup, nil, nil
	if markup != nil {
		m.Keyboard, m.ForceReply = markup.keyboard, markup.force
	}
}

// replyTo is the message that a call answers, 0 for none.
func (s *Server) replyTo(c *chat, q *query) (int, *failure) {
	var reply struct {
		MessageID int   `json:"message_id"`
		ChatID    int64 `json:"chat_id"`
		Anyway    bool  `json:"allow_sending_without_reply"`
	}
	given, err := q.decode("reply_parameters", &reply)
	if err != nil {
		return 0, badRequest("can't parse reply parameters: %v", err)
	}
	if !given {
		reply.MessageID, reply.Anyway = int(q.integer("reply_to_message_id", 0)), q.flag("allow_sending_without_reply")
	}
	m := s.message(c.id, reply.MessageID)
	switch {
	case reply.MessageID == 0 || reply.Anyway && (m == nil || m.lost):
		return 0, nil
	case m == nil || m.lost || reply.ChatID != 0 && reply.ChatID != c.id:
		return 0, badRequest("message to be replied not found")
	}
	return reply.MessageID, nil
}

func (s *Server) sendChatAction(q *query) (any, *failure) {
	if _, refused := s.writable(q); refused != nil {
		return nil, refused
	}
	if !slices.Contains([]string{
		"typing", "upload_photo", "record_video", "upload_video", "record_voice", "upload_voice", "upload_document",
		"choose_sticker", "find_location", "record_video_note", "upload_video_note",
	}, q.values["action"]) {
		return nil, badRequest("wrong parameter action in request")
	}
	return true, nil
}
