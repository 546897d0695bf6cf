package whatsapp

import (
	"strings"
	"time"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"github.com/daycared/daycared/connectors/conversation"
	"github.com/daycared/daycared/permissions/i18n"
)

// incoming is a message that may count: a text, or an emoji on a message.
type incoming struct {
	source   types.MessageSource
	id       string
	at       time.Time
	text     string
	quotes   string      // id of the message that it replies or reacts to, or empty
	reaction bool        // text is an emoji, empty if it was removed
	onOwn    bool        // it reacts to a message of its own author
	changes  string      // id of the message that it edits or deletes, or empty
	unread   i18n.Phrase // what kind of content is not read, in a person's words; empty for what nobody sends by hand
	author   string      // author and chat of the message that it replies or reacts to, as the sender states them; may be empty
	chat     string
}

// onOurs reports whether, according to the sender, it replies or reacts to a message of this account in their chat. Apps
// write one address in several ways, so only its user is compared.
func (h incoming) onOurs(number, lid types.JID) bool {
	chat, noChat := types.ParseJID(h.chat)
	author, noAuthor := types.ParseJID(h.author)
	switch {
	case h.onOwn || noChat != nil || noAuthor != nil:
		return false
	case chat.Server == types.GroupServer || chat.Server == types.BroadcastServer || chat.Server == types.NewsletterServer:
		return false
	case h.author == "" || author.User == number.User:
		return true
	case author.Server == types.HiddenUserServer && lid.IsEmpty(): // our LID is not known yet
		return true
	}
	return author.User != "" && author.User == lid.User
}

// decode decodes a message, or says why it cannot be an answer. Only what one person wrote to this account counts: from their
// own device, once, and in their own words.
func decode(e *events.Message) (h incoming, not string) {
	i := e.Info
	h = incoming{source: i.MessageSource, id: i.ID, at: i.Timestamp}
	switch {
	case i.IsFromMe || i.DeviceSentMeta != nil:
		return h, "it was sent from this account"
	case i.IsGroup || !private(i.Chat) || i.Chat.ToNonAD() != i.Sender.ToNonAD():
		return h, "it is not from a chat with one person"
	case len(i.BroadcastRecipients) > 0 || !i.BroadcastListOwner.IsEmpty() || i.Multicast:
		return h, "it was sent to many"
	case e.SourceWebMsg != nil || e.UnavailableRequestID != "":
		return h, isCopy
	}
	m := e.Message
	takenBack := m.GetReactionMessage() != nil && m.GetReactionMessage().GetText() == ""
	if e.IsEdit || m.GetProtocolMessage() != nil || (i.Edit != types.EditAttributeEmpty && !takenBack) {
		if p := m.GetProtocolMessage(); p.GetType() == waE2E.ProtocolMessage_REVOKE || p.GetType() == waE2E.ProtocolMessage_MESSAGE_EDIT {
			h.changes = p.GetKey().GetID()
		}
		if e.IsEdit {
			h.unread = conversation.Edited
		}
		return h, "it changes an earlier message"
	}
	switch {
	case isSeveral(m):
		return h, "it says several things at once"
	case m.GetReactionMessage() != nil:
		r := m.GetReactionMessage()
		h.reaction, h.text, h.quotes = true, plainEmoji(r.GetText()), r.GetKey().GetID()
		h.onOwn, h.author, h.chat = r.GetKey().GetFromMe(), r.GetKey().GetParticipant(), r.GetKey().GetRemoteJID()
		if h.quotes == "" {
			return h, "it is a reaction on nothing"
		}
		return h, ""
	case m.GetExtendedTextMessage() != nil:
		x, c := m.GetExtendedTextMessage(), m.GetExtendedTextMessage().GetContextInfo()
		h.text, h.quotes = asWritten(x.GetText()), c.GetStanzaID()
		h.author, h.chat = c.GetParticipant(), c.GetRemoteJID()
		if c.GetIsForwarded() || c.GetForwardingScore() > 0 || c.GetForwardedNewsletterMessageInfo() != nil {
			h.unread = "forwarded messages"
			return h, "it holds somebody else's words"
		}
		return h, ""
	case m.GetConversation() != "":
		h.text = asWritten(m.GetConversation())
		return h, ""
	}
	h.unread = media(m)
	return h, "it is no text"
}

// isSeveral reports whether a message has more than one of what is read, which no app of WhatsApp's writes.
func isSeveral(m *waE2E.Message) bool {
	n := 0
	for _, is := range []bool{m.GetReactionMessage() != nil, m.GetExtendedTextMessage() != nil, m.GetConversation() != "", media(m) != ""} {
		if is {
			n++
		}
	}
	return n > 1
}

// media is what a message without text contains, in a person's words.
func media(m *waE2E.Message) i18n.Phrase {
	switch {
	case m.GetAudioMessage() != nil:
		return "voice messages"
	case m.GetImageMessage() != nil:
		return "photos"
	case m.GetStickerMessage() != nil:
		return "stickers"
	case m.GetVideoMessage() != nil || m.GetPtvMessage() != nil:
		return "videos"
	case m.GetDocumentMessage() != nil:
		return "files"
	}
	return ""
}

// isCopy marks a copy, from the account's own phone, of an undecryptable message. Its author is only that phone's claim.
const isCopy = "it is a copy from the account's own phone"

func private(chat types.JID) bool {
	return chat.Server == types.DefaultUserServer || chat.Server == types.HiddenUserServer
}

// plainEmoji removes skin tones and variation selectors.
func plainEmoji(text string) string {
	return strings.Map(func(r rune) rune {
		if (r >= 0x1F3FB && r <= 0x1F3FF) || r == 0xFE0F || r == 0xFE0E {
			return -1
		}
		return r
	}, strings.TrimSpace(text))
}
