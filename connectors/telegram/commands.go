package telegram

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

// menu is what Telegram offers to complete, for enrolled chats.
var menu = []map[string]string{
	{"command": "pending", "description": "What waits for your answer"},
	{"command": "grants", "description": "What you have granted"},
	{"command": "revoke", "description": "Take a grant back: /revoke ID"},
	{"command": "agents", "description": "Your agents, and which one reads you"},
	{"command": "use", "description": "Write to another agent: /use NAME"},
	{"command": "status", "description": "What your agent does, and what waits"},
	{"command": "new", "description": "Begin a new session with your agent"},
	{"command": "quit", "description": "End your agent's session"},
	{"command": "stop", "description": "Stop your agent's work; /stop all cancels and refuses everything"},
	{"command": "whoami", "description": "Who you are here"},
	{"command": "help", "description": "How to answer"},
}

// roster knows who is enrolled. A desk that is one has everybody's chat given the menu; else it is given to whoever
// writes.
type roster interface{ People() []connectors.Person }

// menuEvery is how often it is looked for people who are enrolled, or no longer.
const menuEvery = 30 * time.Second

// menus gives the chats of people who are enrolled the menu, and takes it from those who are no longer, until ctx ends.
// What fails for now is tried again with the next look; where nothing can be written, once the person writes.
func (d *desktop) menus(ctx context.Context) error {
	given := map[int64]bool{} // false: in vain
	look := time.NewTicker(menuEvery)
	defer look.Stop()
	for ctx.Err() == nil {
		if all, ok := d.desk.(roster); ok {
			d.align(ctx, given, all.People())
		}
		select {
		case <-ctx.Done():
		case <-look.C:
		case chat := <-d.wrote:
			if !given[chat] {
				d.offer(ctx, given, chat)
			}
		}
	}
	return nil
}

// align gives the menu to people who have none yet, and takes it from chats that are nobody's any more.
func (d *desktop) align(ctx context.Context, given map[int64]bool, people []connectors.Person) {
	enrolled := map[int64]bool{}
	for _, p := range people {
		enrolled[p.Telegram] = true
		if _, tried := given[p.Telegram]; p.Telegram != 0 && !tried {
			d.offer(ctx, given, p.Telegram)
		}
	}
	for chat := range given {
		if enrolled[chat] {
			continue
		}
		if err := d.api.call(ctx, "deleteMyCommands", map[string]any{"scope": inChat(chat)}, nil); !temporary(err) {
			delete(given, chat)
		}
	}
}

func (d *desktop) offer(ctx context.Context, given map[int64]bool, chat int64) {
	err := d.api.call(ctx, "setMyCommands", map[string]any{"commands": menu, "scope": inChat(chat)}, nil)
	if err != nil {
		d.log.Debug("the menu was not given to a chat", "chat", chat, "err", err)
	}
	if !temporary(err) {
		given[chat] = err == nil
	}
}

// inChat is the scope of a menu that one chat alone sees.
func inChat(chat int64) any { return map[string]any{"type": "chat", "chat_id": chat} }

// greet has the menu given to a chat of somebody who is somebody here, if it has none.
func (d *desktop) greet(chat int64) {
	select {
	case d.wrote <- chat:
	default: // there will be other messages
	}
}

// command does what a message that begins with a slash says.
func (d *desktop) command(ctx context.Context, u update, id connectors.Identity, who connectors.Person) error {
	m := u.Message
	name, rest, _ := strings.Cut(m.Text, " ")
	name, _, _ = strings.Cut(strings.ToLower(name), "@") // /pending@our_bot
	rest = strings.TrimSpace(rest)
	words, err := d.obey(ctx, u, id, who, name, rest)
	var refusal *permissions.Refusal
	if errors.As(err, &refusal) {
		words, err = card.Visible(refusal.Text), nil
	}
	if err != nil {
		return err
	}
	d.aside(ctx, func(ctx context.Context) error { return d.reply(ctx, ref{m.Chat.ID, m.ID}, words) })
	return nil
}

func (d *desktop) obey(
	ctx context.Context, u update, id connectors.Identity, who connectors.Person, name, rest string,
) (string, error) {
	switch name {
	case "/pending":
		return d.pending(ctx, id, who)
	case "/grants":
		return d.grants(ctx, id, who)
	case "/revoke":
		return d.revoke(ctx, id, who, rest)
	case "/stop":
		if strings.EqualFold(rest, "all") {
			n, err := d.desk.StopAll(ctx, id)
			return stopped(n), err
		}
		return d.order(ctx, u, id, permissions.OrderStop)
	case "/quit":
		return d.order(ctx, u, id, permissions.OrderQuit)
	case "/new":
		return d.order(ctx, u, id, permissions.OrderNew)
	case "/agents":
		return d.agents(ctx, id)
	case "/use":
		return d.use(ctx, id, rest)
	case "/status":
		return d.status(ctx, id)
	case "/whoami":
		return whoami(who.Name, id.Telegram), nil
	case "/start", "/help":
		return help(), nil
	}
	return "There is no command " + card.Visible(clipTo(name, 40)) + ". " + help(), nil
}

func (d *desktop) pending(ctx context.Context, id connectors.Identity, who connectors.Person) (string, error) {
	waiting, err := d.desk.Pending(ctx, id, "", mostOpen)
	if err != nil {
		return "", err
	}
	if by := d.desk.StoppedBy(); by != "" {
		return "Everything was stopped by " + card.Visible(by) + "; nothing is asked until resume.", nil
	}
	if len(waiting) == 0 {
		return "Nothing waits for your answer.", nil
	}
	prompts := make([]connectors.Prompt, len(waiting))
	for i, s := range waiting {
		prompts[i] = connectors.Prompt{Request: s.Request, Code: s.Code, Waiting: s.Waiting}
	}
	return strings.Join(card.Reminder(prompts, d.options(who)), "\n"), nil
}

func (d *desktop) grants(ctx context.Context, id connectors.Identity, who connectors.Person) (string, error) {
	grants, err := d.desk.Grants(ctx, id)
	if err != nil {
		return "", err
	}
	if len(grants) == 0 {
		return "Nothing is granted.", nil
	}
	rows := []string{"Granted:"}
	for _, g := range grants {
		rows = append(rows, card.InForce(g, d.options(who)), "   /revoke "+string(g.ID))
	}
	return strings.Join(rows, "\n"), nil
}

// revoke takes back a grant by its id, or an approval that was not used by its code.
func (d *desktop) revoke(
	ctx context.Context, id connectors.Identity, who connectors.Person, name string,
) (string, error) {
	if name == "" {
		return "Say which: /revoke and the id of a grant (see /grants), or the code of an approval that was not used.", nil
	}
	if len(name) == permissions.CodeLength {
		s, err := d.desk.Void(ctx, id, strings.ToUpper(name))
		if err != nil {
			return "", err
		}
		return card.Settled(s.Request, d.options(who)), nil
	}
	revoked, err := d.desk.Revoke(ctx, id, permissions.ID(strings.ToUpper(name)))
	if err != nil {
		return "", err
	}
	return strings.Join(card.Revoked(revoked.Grant, revoked.Ran, d.options(who)), "\n"), nil
}

func stopped(n int) string {
	return fmt.Sprintf("⛔ Stopped. %d requests were cancelled; nothing is asked until resume.", n)
}
