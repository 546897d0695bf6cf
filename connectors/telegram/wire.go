package telegram

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/daycared/daycared/permissions/i18n"
)

// The subset of the Bot API's objects that is used, see https://core.telegram.org/bots/api.

type update struct {
	ID       int64     `json:"update_id"`
	Message  *message  `json:"message"`
	Edited   *message  `json:"edited_message"`
	Callback *callback `json:"callback_query"`
	Member   *member   `json:"my_chat_member"`
	Reaction *reaction `json:"message_reaction"`
}

// wanted are the kinds of update that polls ask for.
var wanted = []string{"message", "edited_message", "callback_query", "my_chat_member", "message_reaction"}

type user struct {
	ID        int64  `json:"id"`
	IsBot     bool   `json:"is_bot"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	Language  string `json:"language_code"`
}

type chat struct {
	ID   int64  `json:"id"`
	Type string `json:"type"` // private, group, supergroup, channel
}

type message struct {
	ID         int64    `json:"message_id"`
	Thread     int64    `json:"message_thread_id"`
	From       *user    `json:"from"`        // absent in channels
	SenderChat *chat    `json:"sender_chat"` // an anonymous administrator or a channel
	Chat       chat     `json:"chat"`
	Date       int64    `json:"date"` // seconds since 1970; 0 if the message is inaccessible
	Text       string   `json:"text"`
	Entities   []entity `json:"entities"`
	Caption    string   `json:"caption"`
	ReplyTo    *message `json:"reply_to_message"`
	Forward    *origin  `json:"forward_origin"`
	Through    *user    `json:"via_bot"`             // the bot whose words the sender picked
	Business   *user    `json:"sender_business_bot"` // the bot that wrote for the account
	MigrateTo  int64    `json:"migrate_to_chat_id"`

	// What a message may have instead of a text; only its presence is used.
	Voice     *medium  `json:"voice"`
	VideoNote *medium  `json:"video_note"`
	Photo     []medium `json:"photo"`
	Sticker   *medium  `json:"sticker"`
	Video     *medium  `json:"video"`
	Animation *medium  `json:"animation"`
	Audio     *medium  `json:"audio"`
	Document  *medium  `json:"document"`
}

type medium struct{}

// media is what a message without text contains, in a person's words; empty for what nobody sends by hand.
func (m *message) media() i18n.Phrase {
	switch {
	case m.Voice != nil:
		return "voice messages"
	case len(m.Photo) > 0:
		return "photos"
	case m.Sticker != nil:
		return "stickers"
	case m.Video != nil || m.VideoNote != nil || m.Animation != nil:
		return "videos"
	case m.Audio != nil || m.Document != nil:
		return "files"
	}
	return ""
}

// by reports whether a message, if there is one, is of that account.
func (m *message) by(account int64) bool { return m != nil && m.From != nil && m.From.ID == account }

// isForeign reports whether the words are somebody else's.
func (m *message) isForeign() bool { return m.Forward != nil || m.Through != nil || m.Business != nil }

// hasHiddenWords reports whether its author struck a part of the words out, quotes or hides it.
func (m *message) hasHiddenWords() bool {
	return slices.ContainsFunc(m.Entities, func(e entity) bool {
		return slices.Contains([]string{"strikethrough", "spoiler", asQuote, asFolded}, e.Type)
	})
}

// origin is present if a message was forwarded.
type origin struct{}

type callback struct {
	ID      string   `json:"id"`
	From    user     `json:"from"`
	Message *message `json:"message"` // may be missing or inaccessible
	Data    string   `json:"data"`
}

// reaction is a change of somebody's reactions to a message.
type reaction struct {
	Chat chat  `json:"chat"`
	ID   int64 `json:"message_id"`
	From *user `json:"user"` // absent for a chat
	Date int64 `json:"date"`
	New  []struct {
		Emoji string `json:"emoji"` // only of Telegram's own
	} `json:"new_reaction"`
}

// member is a change of the bot's own membership in a chat.
type member struct {
	Chat chat `json:"chat"`
	From user `json:"from"`
	New  struct {
		Status string `json:"status"`            // member, administrator, left, kicked, restricted
		Write  *bool  `json:"can_send_messages"` // only if restricted
	} `json:"new_chat_member"`
}

// entity formats a part of a text. Offset and Length are UTF-16 code units.
type entity struct {
	Type   string `json:"type"` // bold, code, pre, blockquote, expandable_blockquote
	Offset int    `json:"offset"`
	Length int    `json:"length"`

	Language string `json:"language,omitempty"` // of a pre
}

// mention is an entity of type text_mention, which notifies a user.
type mention struct {
	entity
	User struct {
		ID        int64  `json:"id"`
		IsBot     bool   `json:"is_bot"`
		FirstName string `json:"first_name"`
	} `json:"user"`
}

type key struct {
	Text  string `json:"text"`
	Data  string `json:"callback_data"` // at most 64 bytes
	Style string `json:"style,omitempty"`
}

// keyboard is a message's reply_markup with buttons; without rows it removes them.
type keyboard struct {
	Rows [][]key `json:"inline_keyboard"`
}

// forceReply asks the client to open a reply to the message.
type forceReply struct {
	Force       bool   `json:"force_reply"`
	Placeholder string `json:"input_field_placeholder,omitempty"` // 1 to 64 characters
	Selective   bool   `json:"selective,omitempty"`
}

// ref identifies a message by its chat and its id there. Both are stable, except when a group becomes a supergroup.
type ref struct{ chat, message int64 }

func (r ref) String() string {
	return strconv.FormatInt(r.chat, 10) + ":" + strconv.FormatInt(r.message, 10)
}

func parseRef(text string) (ref, error) {
	chat, number, found := strings.Cut(text, ":")
	c, err := strconv.ParseInt(chat, 10, 64)
	m, again := strconv.ParseInt(number, 10, 64)
	if !found || err != nil || again != nil {
		return ref{}, fmt.Errorf("%q names no message", text)
	}
	return ref{chat: c, message: m}, nil
}

func refOf(m *message) string {
	if m == nil {
		return ""
	}
	return ref{m.Chat.ID, m.ID}.String()
}
