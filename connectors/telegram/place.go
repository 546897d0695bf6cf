package telegram

import (
	"errors"
	"strconv"
	"strings"

	"github.com/daycared/daycared/connectors"
)

// Place is what a group, or a thread of it, is called in routes and copies. A chat's id is negative; thread 0 is none.
func Place(chat, thread int64) string {
	name := Name + ":" + strconv.FormatInt(chat, 10)
	if thread != 0 {
		name += "/" + strconv.FormatInt(thread, 10)
	}
	return name
}

// spot is where messages go: a person's chat, a group, or a thread of one.
type spot struct{ chat, thread int64 }

var errPlace = errors.New("this is no group of Telegram's")

func parsePlace(name string) (spot, error) {
	ids, ours := strings.CutPrefix(name, Name+":")
	chat, thread, within := strings.Cut(ids, "/")
	at, err := spot{}, error(nil)
	if at.chat, err = strconv.ParseInt(chat, 10, 64); err != nil || !ours || at.chat >= 0 {
		return spot{}, errPlace
	}
	if at.thread, err = strconv.ParseInt(thread, 10, 64); within && (err != nil || at.thread <= 0) {
		return spot{}, errPlace
	}
	return at, nil
}

// into has a message go there.
func (s spot) into(params map[string]any) map[string]any {
	params["chat_id"] = s.chat
	if s.thread != 0 {
		params["message_thread_id"] = s.thread
	}
	return params
}

// Holds is [connectors.Hall].
func (c *Connector) Holds(place string) bool {
	_, err := parsePlace(place)
	return err == nil
}

// spotOf is where somebody is written to: in a place, or by themselves.
func (c *Connector) spotOf(p connectors.Person, place string) (spot, error) {
	if place == "" {
		return spot{chat: p.Telegram}, c.Reach(p)
	}
	at, err := parsePlace(place)
	if err != nil {
		return spot{}, &connectors.Gone{Why: err.Error()}
	}
	return at, nil
}
