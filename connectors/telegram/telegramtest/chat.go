package telegramtest

import (
	"hash/fnv"
	"strconv"
)

// User is a person or a bot.
type User struct {
	ID           int64  `json:"id"`
	IsBot        bool   `json:"is_bot"`
	FirstName    string `json:"first_name"`
	LastName     string `json:"last_name,omitempty"`
	Username     string `json:"username,omitempty"`
	LanguageCode string `json:"language_code,omitempty"`
}

// The accounts that Telegram puts in the place of whoever hides behind a group or a channel.
var (
	groupAnonymousBot = User{ID: 1087968824, IsBot: true, FirstName: "Group", Username: "GroupAnonymousBot"}
	channelBot        = User{ID: 136817688, IsBot: true, FirstName: "Channel", Username: "Channel_Bot"}
)

// account is somebody's relation to the bot.
type account struct {
	user                        User
	started, blocked, suspended bool
}

// The kinds of chats, and what somebody can be in one, in the words of the Bot API.
const (
	private    = "private"
	group      = "group"
	supergroup = "supergroup"
	channel    = "channel"

	creator       = "creator"
	administrator = "administrator"
	member        = "member"
	left          = "left"
	kicked        = "kicked"
	restricted    = "restricted"
)

// chat is a conversation that the bot may be part of.
type chat struct {
	id         int64
	kind       string
	title      string
	person     *account         // of a private chat
	bot        string           // what the bot is here; empty where it never was
	members    map[int64]string // what people are here
	forum      bool
	mute       bool // its members may write nothing
	topics     map[int]string
	migratedTo int64
	last       int // message
	log        []*message
	byID       map[int]*message
}

func newChat(id int64, kind, title string) *chat {
	return &chat{
		id: id, kind: kind, title: title, members: map[int64]string{}, topics: map[int]string{}, byID: map[int]*message{},
	}
}

// counts reports whether the chat numbers its messages itself.
func (c *chat) counts() bool { return c.kind == supergroup || c.kind == channel }

// wire is the chat as the Bot API tells it.
func (c *chat) wire() object {
	o := object{"id": c.id, "type": c.kind}
	if c.kind != private {
		o["title"] = c.title
		if c.forum {
			o["is_forum"] = true
		}
		return o
	}
	o["first_name"] = c.person.user.FirstName
	if c.person.user.LastName != "" {
		o["last_name"] = c.person.user.LastName
	}
	if c.person.user.Username != "" {
		o["username"] = c.person.user.Username
	}
	return o
}

// instance names the chat in callback queries.
func (c *chat) instance() string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(strconv.FormatInt(c.id, 10)))
	return strconv.FormatInt(int64(h.Sum64()), 10)
}

// chatOf finds the chat that a call names. The lock is held.
func (s *Server) chatOf(q *query) (*chat, *failure) {
	if q.values["chat_id"] == "" {
		return nil, badRequest("chat_id is empty")
	}
	c := s.chats[q.integer("chat_id", 0)]
	if c == nil || c.kind != private && c.bot == "" {
		return nil, badRequest("chat not found")
	}
	return c, nil
}

// writable finds the chat that a call names, if the bot may write there. The lock is held.
func (s *Server) writable(q *query) (*chat, *failure) {
	c, refused := s.chatOf(q)
	switch {
	case refused != nil:
		return nil, refused
	case c.kind == private && c.person.suspended:
		return nil, forbidden("user is deactivated")
	case c.kind == private && c.person.blocked:
		return nil, forbidden("bot was blocked by the user")
	case c.kind == private && !c.person.started:
		return nil, forbidden("bot can't initiate conversation with a user")
	case c.migratedTo != 0:
		refused = badRequest("group chat was upgraded to a supergroup chat")
		refused.migrateTo = c.migratedTo
		return nil, refused
	case c.bot == kicked:
		return nil, forbidden("bot was kicked from the " + c.kind + " chat")
	case c.bot == left:
		return nil, forbidden("bot is not a member of the " + c.kind + " chat")
	case c.kind == channel && c.bot != administrator:
		return nil, badRequest("need administrator rights in the channel chat")
	}
	return c, nil
}

// membership is what somebody is in a chat, as the Bot API tells it.
func membership(u User, status string) object {
	o := object{"status": status, "user": u}
	switch status {
	case creator:
		o["is_anonymous"] = false
	case administrator:
		for _, right := range []string{
			"can_be_edited", "is_anonymous", "can_manage_chat", "can_delete_messages", "can_manage_video_chats",
			"can_restrict_members", "can_promote_members", "can_change_info", "can_invite_users", "can_post_stories",
			"can_edit_stories", "can_delete_stories", "can_send_welcome_messages",
		} {
			o[right] = right == "can_manage_chat" || right == "can_delete_messages"
		}
	case kicked:
		o["until_date"] = 0
	case restricted:
		o["until_date"], o["is_member"] = 0, true
		for _, right := range memberRights {
			o[right] = false
		}
	}
	return o
}

// memberRights are what members of a group may, or those that are restricted may not.
var memberRights = []string{
	"can_send_messages", "can_send_audios", "can_send_documents", "can_send_photos", "can_send_videos",
	"can_send_video_notes", "can_send_voice_notes", "can_send_polls", "can_send_other_messages",
	"can_add_web_page_previews", "can_react_to_messages", "can_edit_tag", "can_change_info", "can_invite_users",
	"can_pin_messages", "can_manage_topics",
}
