package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/conversation"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

func (c *CLI) inboxCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "inbox",
		Short:   "Answer here, in this terminal",
		Example: "  daycared inbox",
		Long: "Answer here, in this terminal, as the person that this account is. While the inbox is open, that person can be reached.\n" +
			"Agents of theirs whose connector is admin are talked to here, too: /help says how.",
		Args: arguments(cobra.NoArgs),
		RunE: c.atDesk(func(cmd *cobra.Command, _ []string, client *admin.Client) error {
			me, err := client.WhoAmI(cmd.Context())
			if err != nil {
				return err
			}
			person := connectors.Person{Name: me.Name, UID: c.UID, Location: me.Location()}
			ctx, leave := context.WithCancel(cmd.Context())
			defer leave()
			screen := terminal.New(terminal.Options{
				In: c.In, Out: c.Out, UID: c.UID, Self: me.Name, Now: time.Now, Quit: leave, Closed: leave, Log: quiet(),
				Account: "The daemon knows this account by its uid.", Leave: "q leaves the inbox.",
			})
			if err := screen.Reach(person); err != nil {
				return usage("inbox needs a terminal: %s", err)
			}
			welcome := func() {
				c.say("you answer as %s; q leaves", me.Name)
				c.say("questions appear here, with the keys that answer them; agents ask with daycared ask, as an account of their own; " +
					"/help says more")
				if note := stopNote(me); note != "" {
					c.say("%s", note)
				}
			}
			desk := inboxInbound{Client: client, person: person}
			return (&inbox{client: client, handler: desk, screen: screen, person: person, opened: welcome}).run(ctx)
		}),
	}
}

// inbox shows on a terminal what the daemon says is waiting, and sends back what the person does: the terminal
// connector, in another process than the daemon.
type inbox struct {
	client  *admin.Client
	handler connectors.Handler // of what the person does: the client, or what else there is for them to do
	screen  screen
	person  connectors.Person
	opened  func()                    // called when the person can be reached, before anything is shown; may be nil
	said    func(admin.Said)          // what agents say; nil: it is shown as it comes
	shown   map[permissions.ID]string // the screen's names of what waits
}

// screen is a connector that can edit and say something of its own, as the terminal is.
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
			return i.screen.Run(ctx, i.handler)
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

// update shows a request that is new here, and edits one that has changed.
func (i *inbox) update(ctx context.Context, s permissions.RequestView) error {
	r := s.Request
	ref, known := i.shown[r.ID]
	if !known && r.State != permissions.Pending {
		return nil
	}
	prompt := connectors.Prompt{Request: r, Code: s.Code, Waiting: s.Waiting, To: i.person}
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

// say shows a message that asks nothing, whole. On a screen that has closed there is nobody to read it.
func (i *inbox) say(lines []string) {
	row := func(line string) string { return card.Spell(permissions.Harmless(line)) } // they were rendered for a chat
	_ = i.screen.Say(strings.Join(wire.Each(lines, row), "\n"))
}

// inboxInbound is the daemon's desk as the terminal of an inbox needs it, so that agents are talked to there as they are on
// the daemon's own console. Who its person is, the socket has proved: identities are not read.
type inboxInbound struct {
	*admin.Client
	person connectors.Person
}

var _ conversation.Desk = inboxInbound{}

// Person is the one who this account is.
func (d inboxInbound) Person(connectors.Identity) (connectors.Person, error) { return d.person, nil }

// Pending is what waits for this account. What the inbox was shown, this terminal was.
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

// StoppedBy is who stopped everything, as far as the daemon says so in time.
func (d inboxInbound) StoppedBy() string {
	ctx, done := context.WithTimeout(context.Background(), askTime)
	defer done()
	me, err := d.WhoAmI(ctx)
	if err != nil || me.StoppedBy == nil {
		return ""
	}
	return *me.StoppedBy
}

// askTime bounds how long the daemon is asked that.
const askTime = 3 * time.Second
