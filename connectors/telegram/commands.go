package telegram

import (
	"context"
	"time"

	"github.com/daycared/daycared/connectors"
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
	{"command": "resume", "description": "Go on after /stop all"},
	{"command": "lock", "description": "A phone was stolen: /lock NAME, or /lock for yourself"},
	{"command": "unlock", "description": "End that: /unlock NAME, by two people"},
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
