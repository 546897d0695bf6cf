package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

func (c *CLI) pendingCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "pending",
		Short: "List what waits for an answer",
		Args:  arguments(cobra.NoArgs),
		RunE: c.atDesk(func(cmd *cobra.Command, _ []string, client *admin.Client) error {
			me, err := client.WhoAmI(cmd.Context())
			if err != nil {
				return err
			}
			if note := stopNote(me); note != "" {
				c.say("%s; it goes on with: daycared resume", note)
			}
			list, err := pages(func(after permissions.ID) ([]permissions.Standing, error) {
				return client.List(cmd.Context(), after, 0)
			}, func(s permissions.Standing) permissions.ID { return s.Request.ID })
			if err != nil {
				return err
			}
			if asJSON {
				views := make([]wire.Request, len(list))
				for i, s := range list {
					views[i] = wire.From(s, true)
				}
				return c.json(views)
			}
			if len(list) == 0 {
				c.say("nothing waits for an answer")
			}
			table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
			for _, s := range list {
				left := time.Until(s.Request.Deadline).Truncate(time.Second)
				fmt.Fprintf(table, "%s\t%s\t%s\t%s left\t%d waiting%s\n", s.Code, card.Visible(s.Request.Who()),
					oneRow(card.Wants(s.Request)), left, s.Waiting, quorum(s.Request))
			}
			return table.Flush()
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func (c *CLI) showCommand() *cobra.Command {
	asJSON, reveal := false, false
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one request whole, by its id or its code",
		Args:  arguments(cobra.ExactArgs(1), theRequest),
		RunE: c.atDesk(func(cmd *cobra.Command, args []string, client *admin.Client) error {
			s, err := client.Show(cmd.Context(), args[0])
			if err != nil {
				return nearRequest(cmd.Context(), client, args[0], err)
			}
			if asJSON {
				return c.json(wire.From(s, true))
			}
			options := here(cmd.Context(), client)
			options.Reveal = reveal
			fmt.Fprintln(c.Out, card.Card(connectors.Prompt{Request: s.Request, Code: s.Code, Waiting: s.Waiting}, options))
			if s.Request.State != permissions.Pending {
				fmt.Fprintln(c.Out, card.Settled(s.Request, options))
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&reveal, "reveal", false, "show what is masked because it looks like a secret")
	return cmd
}

func (c *CLI) auditCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List what happened, oldest first; audit verify checks the chain",
		Args:  arguments(cobra.NoArgs),
		RunE: c.atDesk(func(cmd *cobra.Command, _ []string, client *admin.Client) error {
			entries, err := wholeAudit(cmd.Context(), client)
			if err != nil {
				return err
			}
			if asJSON {
				views := make([]admin.Entry, len(entries))
				for i, e := range entries {
					views[i] = admin.FromEntry(e)
				}
				return c.json(views)
			}
			zone := here(cmd.Context(), client).Location
			table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
			for _, e := range entries {
				fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\n", e.Seq, stamp(e.At, zone), e.Type, e.Request,
					card.Visible(e.Actor), e.Via)
			}
			return table.Flush()
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	cmd.AddCommand(c.verifyCommand())
	return cmd
}

// verifyCommand checks the chains; --head says which entry somebody remembers, so that a cut-off end is noticed.
func (c *CLI) verifyCommand() *cobra.Command {
	head := ""
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that no entry of the audit was changed or taken out",
		Args:  arguments(cobra.NoArgs),
		RunE: c.atDesk(func(cmd *cobra.Command, _ []string, client *admin.Client) error {
			heads, err := client.Verify(cmd.Context())
			if err != nil {
				return err
			}
			if err := c.remembered(cmd, client, head); err != nil {
				return err
			}
			oldest, err := client.Audit(cmd.Context(), 0, 1) // of the daemon's own chain
			if err != nil {
				return err
			}
			for _, e := range heads {
				first := int64(1)
				if len(oldest) > 0 && oldest[0].Chain == e.Chain {
					first = oldest[0].Seq
				}
				fmt.Fprintf(c.Out, "chain %s: %s, verified, head %d:%s\n", e.Chain, entries(first, e.Seq), e.Seq, e.Hash)
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&head, "head", "", "SEQ:HASH of an entry seen earlier, which must still be there")
	return cmd
}

// entries says how many entries of a chain there are, and which, where its start was deleted.
func entries(first, last int64) string {
	if first == 1 {
		return fmt.Sprintf("%d entries", last)
	}
	return fmt.Sprintf("%d entries (%d to %d)", last-first+1, first, last)
}

// remembered tells what became of the entry that somebody remembers. The chain was found to be sound.
func (c *CLI) remembered(cmd *cobra.Command, client *admin.Client, head string) error {
	if head == "" {
		return nil
	}
	number, hash, _ := strings.Cut(head, ":")
	seq, err := strconv.ParseInt(number, 10, 64)
	if err != nil || seq < 1 {
		return usage("--head is SEQ:HASH, as audit verify prints it, not %q", head)
	}
	want, err := permissions.ParseDigest(hash)
	if err != nil {
		return usage("--head: %s", err)
	}
	found, err := client.Audit(cmd.Context(), seq-1, 1)
	if err != nil {
		return err
	}
	if len(found) > 0 && found[0].Seq > seq {
		return fmt.Errorf("entry %d is no longer kept; its deletion is signed off", seq)
	}
	if len(found) == 0 || found[0].Hash != want {
		return fmt.Errorf("entry %d is not the one remembered: the audit was cut off or written anew", seq)
	}
	return nil
}

// quorum is how many of the people needed have allowed, as one more cell, where more than one is needed.
func quorum(r permissions.Request) string {
	if r.Quorum < 2 {
		return ""
	}
	allowed := map[string]bool{}
	for _, v := range r.Votes {
		if _, ok := v.Answer.Scope(); ok {
			allowed[v.By] = true
		}
	}
	return fmt.Sprintf("\t%d of %d", len(allowed), r.Quorum)
}

// oneRow is the first row of a text, and how many follow. The whole is what show shows.
func oneRow(text string) string {
	first, rest, more := strings.Cut(text, "\n")
	if !more {
		return first
	}
	return fmt.Sprintf("%s … (+%d rows)", first, strings.Count(rest, "\n")+1)
}

// pages reads a listing to its end; place is where the next page goes on after the last item of one.
func pages[T, P any](read func(after P) ([]T, error), place func(T) P) ([]T, error) {
	var all []T
	var after P
	for {
		page, err := read(after)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
		after = place(page[len(page)-1])
	}
}

// wholeAudit is the daemon's chain from its first entry.
func wholeAudit(ctx context.Context, client *admin.Client) ([]permissions.Entry, error) {
	return pages(func(after int64) ([]permissions.Entry, error) { return client.Audit(ctx, after, 0) },
		func(e permissions.Entry) int64 { return e.Seq })
}

// mostNear is among how many requests that wait the nearest one is looked for.
const mostNear = 1000

// nearRequest adds to a refusal of an unknown code or id the nearest one of what waits.
func nearRequest(ctx context.Context, client *admin.Client, name string, refused error) error {
	if !isUnknown(refused) {
		return refused
	}
	list, err := client.List(ctx, "", mostNear)
	if err != nil {
		return refused
	}
	names := make([]string, len(list))
	for i, s := range list {
		if names[i] = s.Code; len(name) != permissions.CodeLength {
			names[i] = string(s.Request.ID)
		}
	}
	near := permissions.Nearest(name, names)
	if near == "" {
		return refused
	}
	r := list[slices.Index(names, near)].Request
	return adding(refused, near+" ("+card.Visible(r.Who())+" wants "+oneRow(card.Wants(r))+")")
}

// adding adds to a refused name the one that may be meant, if there is one.
func adding(refused error, near string) error {
	var refusal *permissions.Refusal
	if near == "" || !errors.As(refused, &refusal) {
		return refused
	}
	with := *refusal
	with.Text += " Did you mean " + near + "?"
	return &with
}

// unknown refuses a name as the daemon does.
func unknown(format string, args ...any) error {
	return &permissions.Refusal{Code: permissions.CodeUnknown, Exit: permissions.ExitUnknown, Text: fmt.Sprintf(format, args...)}
}

// settled tells on stdout how a request stands now.
func (c *CLI) settled(ctx context.Context, client *admin.Client, r permissions.Request) {
	fmt.Fprintln(c.Out, card.Settled(r, here(ctx, client)))
}

// here is how a card is written for whoever runs this command: in their time zone, and in this machine's where the
// daemon does not know who that is.
func here(ctx context.Context, client *admin.Client) card.Options {
	me, _ := client.WhoAmI(ctx)
	return card.Options{Now: time.Now(), Location: me.Location()}
}

func (c *CLI) json(v any) error {
	encoder := json.NewEncoder(c.Out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}
