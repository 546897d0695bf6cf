package conversation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

// mostNamed is how much of an unknown command is said back, in characters.
const mostNamed = 40

// commands are all that there are, but for /start, which is what Telegram's own button writes.
var commands = []string{
	"/pending", "/grants", "/revoke", "/agents", "/use", "/status", "/stop", "/quit", "/new", "/whoami", "/help",
}

// IsCommand tells whether a text begins with one of the commands, for channels where a slash may begin something else.
func IsCommand(text string) bool {
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(text)), " ")
	return slices.Contains(commands, name)
}

// command does what the text of a message says that begins with a slash.
func (r *Reader) command(ctx context.Context, m Message, text string) (string, error) {
	name, rest, _ := strings.Cut(text, " ")
	name, _, _ = strings.Cut(strings.ToLower(name), "@") // /pending@our_bot
	rest = strings.TrimSpace(rest)
	switch name {
	case "/pending":
		return r.pending(ctx, m.From, m.Who)
	case "/grants":
		return r.grants(ctx, m.From, m.Who)
	case "/revoke":
		return r.revoke(ctx, m.From, m.Who, rest)
	case "/stop":
		if strings.EqualFold(rest, "all") {
			n, err := r.Desk.StopAll(ctx, m.From)
			return stopped(n), err
		}
		return r.order(ctx, m, permissions.OrderStop)
	case "/quit":
		return r.order(ctx, m, permissions.OrderQuit)
	case "/new":
		return r.order(ctx, m, permissions.OrderNew)
	case "/agents":
		return r.agents(ctx, m.From)
	case "/use":
		return r.use(ctx, m.From, rest)
	case "/status":
		return r.status(ctx, m.From)
	case "/whoami":
		return "You are " + card.Visible(m.Who.Name) + " here. " + r.Account(m.From), nil
	case "/start", "/help":
		return r.Help, nil
	}
	unknown := []rune(name)
	if len(unknown) > mostNamed {
		unknown = append(unknown[:mostNamed-1], '…')
	}
	return "There is no command " + card.Visible(string(unknown)) + ". " + r.Help, nil
}

func (r *Reader) pending(ctx context.Context, id connectors.Identity, who connectors.Person) (string, error) {
	waiting, err := r.Desk.Pending(ctx, id, "", mostOpen)
	if err != nil {
		return "", err
	}
	if by := r.Desk.StoppedBy(); by != "" {
		return "Everything was stopped by " + card.Visible(by) + "; nothing is asked until resume.", nil
	}
	if len(waiting) == 0 {
		return "Nothing waits for your answer.", nil
	}
	prompts := make([]connectors.Prompt, len(waiting))
	for i, s := range waiting {
		prompts[i] = connectors.Prompt{Request: s.Request, Code: s.Code, Waiting: s.Waiting}
	}
	return strings.Join(card.Reminder(prompts, r.told(who)), "\n"), nil
}

func (r *Reader) grants(ctx context.Context, id connectors.Identity, who connectors.Person) (string, error) {
	grants, err := r.Desk.Grants(ctx, id)
	if err != nil {
		return "", err
	}
	if len(grants) == 0 {
		return "Nothing is granted.", nil
	}
	rows := []string{"Granted:"}
	for _, g := range grants {
		rows = append(rows, card.InForce(g, r.told(who)), "   /revoke "+string(g.ID))
	}
	return strings.Join(rows, "\n"), nil
}

// revoke takes back a grant by its id, or an approval that was not used by its code.
func (r *Reader) revoke(
	ctx context.Context, id connectors.Identity, who connectors.Person, name string,
) (string, error) {
	if name == "" {
		return "Say which: /revoke and the id of a grant (see /grants), or the code of an approval that was not used.", nil
	}
	if len(name) == permissions.CodeLength {
		s, err := r.Desk.Void(ctx, id, strings.ToUpper(name))
		if err != nil {
			return "", err
		}
		return card.Settled(s.Request, r.told(who)), nil
	}
	revoked, err := r.Desk.Revoke(ctx, id, permissions.ID(strings.ToUpper(name)))
	if err != nil {
		return "", err
	}
	return strings.Join(card.Revoked(revoked.Grant, revoked.Ran, r.told(who)), "\n"), nil
}

func stopped(n int) string {
	were := "s were"
	if n == 1 {
		were = " was"
	}
	return fmt.Sprintf("⛔ Stopped. %d request%s cancelled; nothing is asked until resume.", n, were)
}
