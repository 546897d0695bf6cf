package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/spf13/cobra"

	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

// auditFilter is which entries of the audit are listed.
type auditFilter struct {
	listing
	agent, request string
}

// auditRow is an entry for people: of a fixed width, so that a long chain need not be in memory whole.
const auditRow = "%-6v  %-24s  %-20s  %-5s  %-26s  %-16s  %s\n"

func (c *CLI) auditCommand() *cobra.Command {
	f := auditFilter{}
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List what happened, oldest first; audit verify checks the chain",
		Example: "  daycared audit --since 24h\n" +
			"  daycared audit --request K7F3Q\n" +
			"  daycared audit --agent deploy-1 --since 2026-11-01 --json",
		Long: "List what happened, oldest first: the number of the entry in its chain, when, what, the code and the id of the\n" +
			"request that it is about (- for none, or one that is no longer kept), who did it, and through what.\n" +
			"With --json one object a line, which has besides the details, the entry's hash and that of the entry before.",
		Args: arguments(cobra.NoArgs),
		RunE: c.atDesk(func(cmd *cobra.Command, _ []string, client *admin.Client) error {
			return c.audit(cmd.Context(), client, f)
		}),
	}
	f.flags(cmd, "print one JSON object a line")
	cmd.Flags().StringVar(&f.agent, "agent", "", "list what is about requests of this agent, by its name or the account's, as in uid:1000")
	cmd.Flags().StringVar(&f.request, "request", "", "list what is about this request, by its id or its code")
	cmd.AddCommand(c.verifyCommand())
	return cmd
}

// mostTold is how many requests the audit remembers while it is listed.
const mostTold = 4096

// audit prints the entries as they come, so that a long chain is never in memory whole.
func (c *CLI) audit(ctx context.Context, client *admin.Client, f auditFilter) error {
	zone := here(ctx, client).Location
	since, err := f.begin(zone)
	if err != nil {
		return err
	}
	only, err := idOf(ctx, client, f.request)
	if err != nil {
		return err
	}
	told, err := lru.New[permissions.ID, permissions.Standing](mostTold)
	if err != nil {
		return err
	}
	request := func(id permissions.ID) (permissions.Standing, error) { return lookUp(ctx, client, told, id) }
	list := func(e permissions.Entry) error {
		if f.asJSON {
			return c.json(admin.FromEntry(e))
		}
		about, err := request(e.Request)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.Out, auditRow, e.Seq, stamp(e.At, zone), e.Type, dash(about.Code), dash(string(e.Request)),
			dash(card.Visible(e.Actor)), e.Via)
		return err
	}
	headed := f.asJSON
	head := func() { // once something was heard of the daemon
		if !headed {
			fmt.Fprintf(c.Out, auditRow, "SEQ", "TIME", "TYPE", "CODE", "REQUEST", "BY", "VIA")
		}
		headed = true
	}
	var last []permissions.Entry // of those that are listed, where --limit says how many
	err = eachEntry(ctx, client, func(e permissions.Entry) error {
		head()
		if e.At.Before(since) || only != "" && e.Request != only {
			return nil
		}
		if f.agent != "" {
			if about, err := request(e.Request); err != nil || !asks(about.Request, f.agent) {
				return err
			}
		}
		if f.limit == 0 {
			return list(e)
		}
		if last = append(last, e); len(last) == 2*f.limit {
			last = append(last[:0], last[f.limit:]...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	head()
	for _, e := range last[max(len(last)-f.limit, 0):] {
		if err := list(e); err != nil {
			return err
		}
	}
	return nil
}

// idOf is the id of a request that is named by it or by its code; empty where none is named.
func idOf(ctx context.Context, client *admin.Client, name string) (permissions.ID, error) {
	if name == "" {
		return "", nil
	}
	s, err := client.Show(ctx, name)
	if err != nil {
		return "", nearRequest(ctx, client, name, err)
	}
	return s.Request.ID, nil
}

// lookUp is the request of an id, zero where there is none or it is no longer kept; told remembers it.
func lookUp(
	ctx context.Context, client *admin.Client, told *lru.Cache[permissions.ID, permissions.Standing], id permissions.ID,
) (s permissions.Standing, err error) {
	if id == "" {
		return s, nil
	}
	if s, known := told.Get(id); known {
		return s, nil
	}
	if s, err = client.Show(ctx, string(id)); isUnknown(err) || isCode(err, permissions.CodeGone) {
		err = nil
	}
	if err == nil {
		told.Add(id, s)
	}
	return s, err
}

// asks reports whether r is asked by an agent of that name, or by the account or the token of that name.
func asks(r permissions.Request, name string) bool {
	return r.ID != "" && (r.Agent == name || r.Caller.Name == name || strings.HasSuffix(r.Caller.Name, ":"+name))
}

// dash stands for what there is none of in a table.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// eachEntry hands over the daemon's chain from its first entry.
func eachEntry(ctx context.Context, client *admin.Client, take func(permissions.Entry) error) error {
	after := int64(0)
	for {
		page, err := client.Audit(ctx, after, 0)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, e := range page {
			if err := take(e); err != nil {
				return err
			}
			after = e.Seq
		}
	}
}

// verifyCommand checks the chains; --head says which entry somebody remembers, so that a cut-off end is noticed.
func (c *CLI) verifyCommand() *cobra.Command {
	head, asJSON := "", false
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that no entry of the audit was changed or taken out",
		Long: "Check every entry of the audit against the one before it: that none was changed, and none taken out between two others.\n" +
			"What was cut off at the end is noticed by whoever remembers a head, and names it with --head.",
		Example: "  daycared audit verify\n" +
			"  daycared audit verify --head 17:sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		Args: arguments(cobra.NoArgs),
		RunE: c.atDesk(func(cmd *cobra.Command, _ []string, client *admin.Client) error {
			heads, err := client.Verify(cmd.Context())
			if err != nil {
				return err
			}
			if err := c.remembered(cmd, client, head); err != nil {
				return err
			}
			sound := make([]soundChain, 0, len(heads))
			for _, e := range heads {
				if asJSON {
					sound = append(sound, soundChain{e.Chain, e.First, e.Seq, e.Entries, e.Hash.String()})
					continue
				}
				fmt.Fprintf(c.Out, "chain %s: %s, verified, head %d:%s\n", e.Chain, entries(e.First, e.Seq, e.Entries), e.Seq, e.Hash)
			}
			if asJSON {
				return c.json(sound)
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	cmd.Flags().StringVar(&head, "head", "", "SEQ:HASH of an entry seen earlier, which must still be there")
	return cmd
}

// soundChain is a chain that was verified, as programs read it.
type soundChain struct {
	Chain string `json:"chain"`
	First int64  `json:"first"`
	Last  int64  `json:"last"`
	Count int    `json:"count"` // there are gaps where the store was restored
	Hash  string `json:"hash"`  // of the last entry
}

// entries says how many entries of a chain there are, and from which to which, where its start was deleted or the store was
// restored.
func entries(first, last int64, count int) string {
	if int64(count) == last {
		return fmt.Sprintf("%d entries", last)
	}
	return fmt.Sprintf("%d entries (%d to %d)", count, first, last)
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
	if len(found) > 0 && found[0].Seq > seq && found[0].Type == permissions.StoreRestored {
		return fmt.Errorf("entry %d is in the gap of a restore: the store was put back from a copy made before it; see entry %d",
			seq, found[0].Seq)
	}
	if len(found) > 0 && found[0].Seq > seq {
		return fmt.Errorf("entry %d is no longer kept; its deletion is signed off", seq)
	}
	if len(found) == 0 || found[0].Hash != want {
		return fmt.Errorf("entry %d is not the one remembered: the audit was cut off or written anew", seq)
	}
	return nil
}
