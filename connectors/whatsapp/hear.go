package whatsapp

import (
	"strings"
	"time"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

// heard is a message as far as it may count: what somebody wrote, or the emoji that they put on a message.
type heard struct {
	source   types.MessageSource
	id       string
	at       time.Time
	text     string
	quotes   string // the id of the message that it replies to or reacts on; empty: none
	reaction bool   // text is an emoji, empty when it was taken back
	onOwn    bool   // it is on a message of its author's
	unread   string // what it is that is not read, as a person calls it; empty for what nobody sends by hand
	author   string // of what it replies to or reacts on, and the chat of that, as its author says; empty: not said
	chat     string
}

// onOurs tells whether what it replies to or reacts on is, as its author has it, of this account's in the chat with it.
// Apps write one address in several ways, so only the user in it is compared.
func (h heard) onOurs(number, lid types.JID) bool {
	chat, noChat := types.ParseJID(h.chat)
	author, noAuthor := types.ParseJID(h.author)
	switch {
	case h.onOwn || noChat != nil || noAuthor != nil:
		return false
	case chat.Server == types.GroupServer || chat.Server == types.BroadcastServer || chat.Server == types.NewsletterServer:
		return false
	case h.author == "" || author.User == number.User:
		return true
	case author.Server == types.HiddenUserServer && lid.IsEmpty(): // it was not told yet
		return true
	}
	return author.User != "" && author.User == lid.User
}

// hear says what a message is, or why it is nothing that anybody may have decided by: only what one person wrote to this
// account, from their own device, once, and in their own words.
func hear(e *events.Message) (h heard, not string) {
	i := e.Info
	h = heard{source: i.MessageSource, id: i.ID, at: i.Timestamp}
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
		if e.IsEdit {
			h.unread = "edited messages"
		}
		return h, "it changes an earlier message"
	}
	switch {
	case m.GetReactionMessage() != nil:
		r := m.GetReactionMessage()
		h.reaction, h.text, h.quotes = true, plainEmoji(r.GetText()), r.GetKey().GetID()
		h.onOwn, h.author, h.chat = r.GetKey().GetFromMe(), r.GetKey().GetParticipant(), r.GetKey().GetRemoteJID()
		if h.quotes == "" {
			return h, "it is a reaction on nothing"
		}
		return h, ""
	case m.GetExtendedTextMessage() != nil:
		x := m.GetExtendedTextMessage()
		h.text, h.quotes = asWritten(x.GetText()), x.GetContextInfo().GetStanzaID()
		h.author, h.chat = x.GetContextInfo().GetParticipant(), x.GetContextInfo().GetRemoteJID()
		if handedOn(x.GetContextInfo()) {
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

// media is what a message without a text holds, as a person calls it.
func media(m *waE2E.Message) string {
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

// isCopy is what is said of a copy that the account's own phone sent, of a message that could not be decrypted. Who wrote
// it is only what that phone says.
const isCopy = "it is a copy from the account's own phone"

// private tells whether a chat is that with one person.
func private(chat types.JID) bool {
	return chat.Server == types.DefaultUserServer || chat.Server == types.HiddenUserServer
}

func handedOn(c *waE2E.ContextInfo) bool {
	return c.GetIsForwarded() || c.GetForwardingScore() > 0 || c.GetForwardedNewsletterMessageInfo() != nil
}

// plainEmoji is an emoji without the tone of a skin and without marks of how it is to be drawn.
func plainEmoji(text string) string {
	return strings.Map(func(r rune) rune {
		if (r >= 0x1F3FB && r <= 0x1F3FF) || r == 0xFE0F || r == 0xFE0E {
			return -1
		}
		return r
	}, strings.TrimSpace(text))
}
