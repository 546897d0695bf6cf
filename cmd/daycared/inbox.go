package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

func (c *CLI) inboxCommand() *cobra.Command {
	return c.adminCommand("inbox", nil, func(cmd *cobra.Command, _ []string, client *admin.Client) error {
		me, err := client.WhoAmI(cmd.Context())
		if err != nil {
			return err
		}
		person := connectors.Person{Name: me.Name, UID: c.UID, Location: me.Location(), Language: me.Language}
		ctx, leave := context.WithCancel(cmd.Context())
		defer leave()
		screen := terminal.New(terminal.Options{
			In: c.In, Out: c.Out, UID: c.UID, Self: me.Name, Now: time.Now, Quit: leave, Closed: leave, Log: quiet(),
			Account: me.Language.Text("The daemon knows this account by its uid."), Leave: me.Language.Text("q leaves the inbox."),
		}, inboxInbound{client, person})
		if err := screen.Reach(person); err != nil {
			return usage("inbox needs a terminal: %s", err)
		}
		welcome := func() {
			c.say("%s", me.Language.Sprintf("you answer as %s; q leaves", me.Name))
			c.say("%s", me.Language.Text("questions appear here, with the keys that answer them; agents ask with daycared ask, as an "+
				"account of their own; /help says more"))
			if note := stopNote(me); note != "" {
				c.say("%s", note)
			}
		}
		return (&inbox{client: client, screen: screen, person: person, opened: welcome}).run(ctx)
	})
}

// inbox is the terminal connector outside the daemon's process: it shows the daemon's pending requests, and sends the answers to it.
type inbox struct {
	client *admin.Client
	screen screen
	person connectors.Person
	opened func()                    // called when the person can be reached, before anything is shown; may be nil
	said   func(admin.Said)          // handles agents' messages; nil: they are shown at once
	shown  map[permissions.ID]string // the screen's message ids of pending requests
}

// screen is a connector that can edit messages and print text, like the terminal.
type screen interface {
	connectors.Connector
	connectors.Editor
	Say(text string) error
}

func (i *inbox) run(ctx context.Context) error {
	i.shown = map[permissions.ID]string{}
	opened := make(chan struct{})
	i.client.Opened = func() {
		if i.opened != nil {
			i.opened()
		}
		close(opened)
	}
	i.client.Noticed = i.say
	i.client.Said = i.said
	if i.said == nil {
		i.client.Said = func(s admin.Said) { _ = i.screen.Say(s.Text) } // as say does
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		select {
		case <-opened:
			return i.screen.Run(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	group.Go(func() error {
		return i.client.Inbox(ctx, func(s permissions.RequestView) error { return i.update(ctx, s) })
	})
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil // left
}

// update shows a new request, or edits one that has changed.
func (i *inbox) update(ctx context.Context, s permissions.RequestView) error {
	r := s.Request
	ref, known := i.shown[r.ID]
	others := i.person.Name != permissions.OperatorName && !slices.Contains(r.Asked, i.person.Name)
	if !known && (r.State != permissions.Pending || others) { // the daemon's own account receives what others are asked, too
		return nil
	}
	prompt := connectors.Prompt{Request: r, Code: s.Code, Waiting: s.Waiting, Recent: s.Recent, To: i.person}
	if known {
		if r.State != permissions.Pending {
			delete(i.shown, r.ID)
		}
		return i.screen.Edit(ctx, ref, prompt)
	}
	ref, err := i.screen.Send(ctx, prompt)
	i.shown[r.ID] = ref
	return err
}

// say shows the lines of a message. Errors of a closed screen are ignored.
func (i *inbox) say(lines []string) {
	row := func(line string) string { return card.Spell(permissions.EscapeControls(line)) } // they were formatted for a chat
	_ = i.screen.Say(strings.Join(wire.Map(lines, row), "\n"))
}

// inboxInbound adapts the admin client for the inbox's terminal, so that people can chat with agents there as on the daemon's
// console. The socket identifies the person, so identities are ignored.
type inboxInbound struct {
	*admin.Client
	person connectors.Person
}

var _ connectors.Inbound = inboxInbound{}

// Person returns the person of this account.
func (d inboxInbound) Person(connectors.Identity) (connectors.Person, error) {
	ctx, done := context.WithTimeout(context.Background(), askTime)
	defer done()
	p := d.person
	if me, err := d.WhoAmI(ctx); err == nil && me.Away != nil {
		p.Away = permissions.Absence{Person: p.Name, Until: me.Away.Until, To: wire.Value(me.Away.To), At: me.Away.Since}
	}
	return p, nil
}

// Pending returns the requests pending for this account. Everything that the inbox received is shown on this terminal.
func (d inboxInbound) Pending(
	ctx context.Context, id connectors.Identity, after permissions.ID, limit int,
) ([]permissions.RequestView, error) {
	all, err := d.List(ctx, after, limit)
	for _, s := range all {
		for i := range s.Copies {
			if s.Copies[i].Connector == admin.Name {
				s.Copies[i].Connector, s.Copies[i].Ref = id.Via, string(s.Request.ID)
			}
		}
	}
	return all, err
}

// StoppedBy returns who stopped everything; empty if nobody did, or if the daemon does not answer in time.
func (d inboxInbound) StoppedBy() string {
	ctx, done := context.WithTimeout(context.Background(), askTime)
	defer done()
	me, err := d.WhoAmI(ctx)
	if err != nil || me.StoppedBy == nil {
		return ""
	}
	return *me.StoppedBy
}

// errLocking is the refusal of everything about locks.
var errLocking = &permissions.Refusal{
	Code: permissions.CodeInvalid, Exit: permissions.ExitUsage, Text: "Nobody is locked or unlocked here; use: daycared lock NAME",
}

// Lock refuses: daycared lock says more about what it does.
func (inboxInbound) Lock(context.Context, connectors.Identity, string, time.Time) (l permissions.Locked, err error) {
	return l, errLocking
}

// Unlock refuses as Lock does.
func (inboxInbound) Unlock(context.Context, connectors.Identity, string) (l permissions.Lock, over bool, err error) {
	return l, false, errLocking
}

// askTime bounds a query of the daemon.
const askTime = 3 * time.Second
