package telegram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions/timing"
)

// groupChecks holds the state of the groups that routes name. It is safe for concurrent use.
type groupChecks struct {
	look timing.Signal // check them now

	mu    sync.Mutex
	wrong map[string]string // what is wrong and what to do, by group
}

func (r *groupChecks) health() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	texts := slices.Sorted(maps.Values(r.wrong))
	if len(texts) == 0 {
		return nil
	}
	return connectors.GroupError(strings.Join(texts, "; "))
}

// note records what is wrong with a group and reports whether that is news.
func (r *groupChecks) note(place, wrong string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	news := r.wrong[place] != wrong
	if delete(r.wrong, place); wrong != "" {
		r.wrong[place] = wrong
	}
	return news
}

func (r *groupChecks) keep(places []connectors.Group) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.wrong {
		if !slices.ContainsFunc(places, func(p connectors.Group) bool { return p.Name == name && p.Routed }) {
			delete(r.wrong, name)
		}
	}
}

const (
	// newGroupsEvery is how often new groups are checked, knownGroupsEvery how often known ones.
	newGroupsEvery, knownGroupsEvery = 30 * time.Second, 10 * time.Minute
)

// inspect checks until ctx ends whether the bot is in the groups that routes name and may write there.
func (d *handler) inspect(ctx context.Context) error {
	seen := map[string]time.Time{}
	for ctx.Err() == nil {
		if places, err := d.in.Groups(ctx); err == nil {
			d.groups.keep(places)
			for _, p := range places {
				if p.Routed && time.Since(seen[p.Name]) >= knownGroupsEvery && d.checkGroup(ctx, p) {
					seen[p.Name] = time.Now()
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(newGroupsEvery):
		case <-d.groups.look:
			clear(seen)
		}
	}
	return nil
}

// checkGroup checks one group; false means that it has to be checked again soon.
func (d *handler) checkGroup(ctx context.Context, p connectors.Group) (done bool) {
	at, err := parsePlace(p.Now)
	if err != nil {
		return true // of another channel
	}
	if _, err := d.Bot(ctx); err != nil { // caches the bot's name, which is removed from messages
		return false
	}
	wrong, err := d.groupProblem(ctx, at)
	lost := wrong == isAbsent || wrong == isMuted
	switch {
	case err != nil:
		return false
	case wrong != "":
		wrong = fmt.Sprintf("group %d: %s", at.chat, wrong)
	case p.Now != p.Name:
		was, _ := parsePlace(p.Name)
		wrong = fmt.Sprintf("group %d has become the supergroup %d: write chat: %[2]d into its routes", was.chat, at.chat)
	}
	if d.groups.note(p.Name, wrong) {
		if why, _, _ := strings.Cut(wrong, ";"); lost { // Telegram may not have reported it
			err = d.in.ChatLost(ctx, Name, "", p.Now, why)
		} else if wrong == "" {
			err = d.in.ChatRecovered(ctx, Name, "", p.Now)
		}
		d.log.Warn("group check", "chat", at.chat, "result", cmp.Or(wrong, "ok"), "err", err)
	}
	return wrong == "" || p.Now != p.Name
}

const (
	isAbsent = "the bot is not in it; add it, or take the chat out of the routes"
	isMuted  = "the bot may not write there; let it, or make it an administrator"
)

// denied reports whether a right is given and false.
func denied(right *bool) bool { return right != nil && !*right }

// groupProblem returns why the bot cannot ask in a group and what to do about it, or empty.
func (d *handler) groupProblem(ctx context.Context, at spot) (wrong string, err error) {
	params := map[string]any{"chat_id": at.chat}
	var room struct {
		Forum       bool `json:"is_forum"`
		Permissions struct {
			Write *bool `json:"can_send_messages"`
		} `json:"permissions"`
	}
	if err := d.api.call(ctx, "getChat", params, &room); err != nil {
		if _, gone := goneIn(err); gone {
			return isAbsent, nil
		}
		return "", err
	}
	var self struct {
		Status string `json:"status"`
		Write  *bool  `json:"can_send_messages"` // only if restricted
	}
	params["user_id"] = d.bot
	if err := d.api.call(ctx, "getChatMember", params, &self); err != nil {
		if _, gone := goneIn(err); gone {
			return isAbsent, nil
		}
		return "", err
	}
	switch {
	case self.Status == "left" || self.Status == "kicked":
		return isAbsent, nil
	case self.Status == "restricted" && denied(self.Write), self.Status == "member" && denied(room.Permissions.Write):
		return isMuted, nil
	case at.thread != 0 && !room.Forum:
		return "it has no topics; take thread out of the route", nil
	}
	return "", nil
}

// Place is the id of a group, or of a thread in it, in routes and copies. A chat's id is negative; thread 0 is none.
func Place(chat, thread int64) string {
	name := Name + ":" + strconv.FormatInt(chat, 10)
	if thread != 0 {
		name += "/" + strconv.FormatInt(thread, 10)
	}
	return name
}

// spot is where messages go: a person's chat, a group, or a thread of one.
type spot struct{ chat, thread int64 }

var errPlace = errors.New("not a Telegram group")

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

func (s spot) into(params map[string]any) map[string]any {
	params["chat_id"] = s.chat
	if s.thread != 0 {
		params["message_thread_id"] = s.thread
	}
	return params
}

// IsGroup is [connectors.GroupChannel].
func (c *Connector) IsGroup(place string) bool {
	_, err := parsePlace(place)
	return err == nil
}

// spotOf is where a person is written to: in a group, or in their own chat.
func (c *Connector) spotOf(p connectors.Person, place string) (spot, error) {
	if place == "" {
		return spot{chat: chatWith(p)}, c.Reach(p)
	}
	at, err := parsePlace(place)
	if err != nil {
		return spot{}, &connectors.UnreachableError{Reason: err.Error()}
	}
	return at, nil
}
