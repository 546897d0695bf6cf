package telegram

import (
	"fmt"
	"strconv"
	"strings"
)

// ref names a message: its chat and its number there. Both are Telegram's, and neither changes, but for a group that
// becomes a supergroup.
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

// refOf is the name of a message that came in.
func refOf(m *message) string {
	if m == nil {
		return ""
	}
	return ref{m.Chat.ID, m.ID}.String()
}
