package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

func (c *CLI) pendingCommand() *cobra.Command {
	return c.adminCommand("pending", nil, func(cmd *cobra.Command, _ []string, client *admin.Client) error {
		me, since, err := c.begin(cmd.Context(), client)
		if err != nil {
			return err
		}
		if note := stopNote(me); note != "" {
			c.say("%s; it goes on with: daycared resume", note)
		}
		l := pendingList{listPrinter: listPrinter{CLI: c}}
		size := 0 // the first page is the daemon's usual one, to print something soon
		err = listed(c, since, func(after permissions.ID) ([]permissions.RequestView, error) {
			page, err := client.List(cmd.Context(), after, size)
			size = laterPages
			return page, err
		}, func(s permissions.RequestView) (permissions.ID, time.Time) { return s.Request.ID, s.Request.CreatedAt }, l.print)
		return cmp.Or(err, l.end())
	})
}

// laterPages is how many requests are read at a time after the first page.
const laterPages = 200

// listPrinter prints a list as it arrives, as one table or as one array in JSON.
type listPrinter struct {
	*CLI
	printed int
	widest  []string // the widest cells of the first page, by which the others are aligned
}

func (l *listPrinter) item(v any) error {
	l.printed++
	if _, err := io.WriteString(l.Out, map[bool]string{true: "[", false: ","}[l.printed == 1]); err != nil {
		return err
	}
	return l.jsonItem(v)
}

// table prints a page, the first cells of each row in columns.
func (l *listPrinter) table(columns int, page [][]string) error {
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	if l.widest != nil {
		fmt.Fprintln(table, strings.Join(l.widest, "\t")+"\t")
	}
	widest := make([]string, columns)
	for _, cells := range page {
		fmt.Fprintln(table, strings.Join(cells, "\t"))
		for i := range widest {
			if utf8.RuneCountInString(cells[i]) > utf8.RuneCountInString(widest[i]) {
				widest[i] = cells[i]
			}
		}
		l.printed++
	}
	if err := table.Flush(); err != nil {
		return err
	}
	lines := text.Bytes()
	if l.widest != nil {
		_, lines, _ = bytes.Cut(lines, []byte("\n"))
	} else if len(page) > 0 {
		l.widest = widest
	}
	_, err := l.Out.Write(lines)
	return err
}

// end closes the array, or says what an empty list means.
func (l *listPrinter) end(none string) (err error) {
	switch {
	case l.asJSON:
		_, err = io.WriteString(l.Out, map[bool]string{true: "[]\n", false: "]\n"}[l.printed == 0])
	case l.printed == 0:
		l.say("%s", none)
	}
	return err
}

// pendingList prints pending requests.
type pendingList struct {
	listPrinter
	cut bool // a text is shortened
}

func (l *pendingList) print(page []permissions.RequestView) error {
	var rows [][]string
	for _, s := range page {
		if l.asJSON {
			if err := l.item(wire.From(s, true)); err != nil {
				return err
			}
			continue
		}
		wants := oneRow(card.Wants(s.Request))
		rows = append(rows, []string{
			s.Code, oneRow(card.Visible(s.Request.AgentLabel())), wants, time.Until(s.Request.Deadline).Truncate(time.Second).String() + " left",
			fmt.Sprintf("%d waiting%s%s", s.Waiting, quorum(s.Request), map[bool]string{true: "\thigh risk"}[s.Request.HighRisk]),
		})
		l.cut = l.cut || strings.Contains(wants, " …")
	}
	return l.table(4, rows)
}

func (l *pendingList) end() error {
	if l.cut {
		defer l.say("what has … is cut here; all of it: daycared show CODE")
	}
	return l.listPrinter.end("nothing waits for an answer")
}

// listing holds the flags of the commands that list.
type listing struct {
	limit int
	since string
}

// unlimited is the default of --limit.
const unlimited = math.MaxInt

// begin parses --since by the daemon's clock; the zero time means no limit.
func (l *listing) begin(at card.Options) (time.Time, error) {
	if l.limit < 1 {
		return time.Time{}, usage("--limit is how many to list, 1 or more, not %d", l.limit)
	}
	if l.since == "" {
		return time.Time{}, nil
	}
	return parseSince(l.since, at.Now, at.Location)
}

// begin returns who lists, and since when in their time zone.
func (c *CLI) begin(ctx context.Context, client *admin.Client) (me admin.Me, since time.Time, err error) {
	if me, err = client.WhoAmI(ctx); err == nil {
		since, err = c.listing.begin(at(me))
	}
	return me, since, err
}

// newest returns the items that are not older than since, at most the limit newest ones, in the order of list, oldest first.
func newest[T any](list []T, since time.Time, limit int, at func(T) time.Time) []T {
	list = slices.DeleteFunc(list, func(v T) bool { return at(v).Before(since) })
	return list[max(len(list)-limit, 0):]
}

// listed prints what is listed, page by page as it is read.
func listed[T any](
	c *CLI, since time.Time, read func(after permissions.ID) ([]T, error), place func(T) (permissions.ID, time.Time), show func([]T) error,
) error {
	left := c.listing.limit // what comes meanwhile is not listed
	begin := permissions.ID("")
	if left < math.MaxInt32 {
		begin = permissions.ID("-" + strconv.Itoa(left))
	}
	return eachPage(begin, read, func(v T) permissions.ID { id, _ := place(v); return id }, func(page []T) error {
		page = page[:min(len(page), left)]
		left -= len(page)
		return show(newest(page, since, unlimited, func(v T) time.Time { _, at := place(v); return at }))
	})
}

func (c *CLI) showCommand() *cobra.Command {
	reveal := false
	cmd := c.adminCommand("show ID", arguments(cobra.ExactArgs(1), theRequest),
		func(cmd *cobra.Command, args []string, client *admin.Client) error {
			s, err := client.Show(cmd.Context(), args[0])
			if err != nil {
				return nearRequest(cmd.Context(), client, args[0], err)
			}
			if c.asJSON {
				return c.json(wire.From(s, true))
			}
			options := here(cmd.Context(), client)
			options.Reveal, options.Width = reveal, cmp.Or(c.width(), math.MaxInt) // output to a pager is for a terminal too
			fmt.Fprintln(c.Out, card.Card(connectors.Prompt{Request: s.Request, Code: s.Code, Waiting: s.Waiting, Recent: s.Recent}, options))
			fmt.Fprintln(c.Out, s.Request.ShownDigest())
			if s.Request.State != permissions.Pending {
				fmt.Fprintln(c.Out, card.Spell(card.Settled(s.Request, options)))
			}
			return nil
		})
	cmd.Flags().BoolVar(&reveal, "reveal", false, "show what is masked because it looks like a secret")
	return cmd
}

// quorum is a table cell with the number of approvals and of those needed, if more than one is needed.
func quorum(r permissions.Request) string {
	if r.Quorum < 2 {
		return ""
	}
	return fmt.Sprintf("\t%d of %d", len(card.Approvers(r)), r.Quorum)
}

const longestRow = 60 // maximum length of a text in a list, in characters

// oneRow is the first row of a text, shortened with …, and the number of further rows. The show command prints it all.
func oneRow(text string) string {
	first, rest, more := strings.Cut(card.Spell(text), "\n")
	end := ""
	if row := []rune(first); len(row) > longestRow {
		first, end = string(row[:longestRow]), " …"
	}
	if more {
		end = fmt.Sprintf(" … (+%d rows)", strings.Count(rest, "\n")+1)
	}
	return first + end
}

// pages reads all pages of a listing; place returns the cursor after an item.
func pages[T, P any](read func(after P) ([]T, error), place func(T) P) (all []T, err error) {
	err = eachPage(*new(P), read, place, func(page []T) error {
		all = append(all, page...)
		return nil
	})
	return all, err
}

// eachPage calls take with each page of a listing after a place, of which little has to be in memory.
func eachPage[T, P any](after P, read func(after P) ([]T, error), place func(T) P, take func(page []T) error) error {
	debug.SetGCPercent(25)
	for {
		page, err := read(after)
		if err != nil || len(page) == 0 {
			return err
		}
		after = place(page[len(page)-1])
		if err := take(page); err != nil {
			return err
		}
	}
}

// maxNear is how many pending requests are searched for a similar code or id.
const maxNear = 1000

// nearRequest adds the most similar pending request to the refusal of an unknown code or id.
func nearRequest(ctx context.Context, client *admin.Client, name string, refused error) error {
	if permissions.CodeOf(refused) != permissions.CodeUnknown {
		return refused
	}
	list, err := client.List(ctx, "", maxNear)
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
	return adding(refused, near+" ("+spelled(r.AgentLabel())+" wants "+oneRow(card.Wants(r))+")")
}

// adding adds a suggestion to the refusal of a name, if there is one.
func adding(refused error, near string) error {
	var refusal *permissions.Refusal
	if near == "" || !errors.As(refused, &refusal) {
		return refused
	}
	with := *refusal
	with.Text += " Did you mean " + near + "?"
	return &with
}

// printSettled prints a request's current state on stdout.
func (c *CLI) printSettled(ctx context.Context, client *admin.Client, s permissions.RequestView) error {
	if c.asJSON {
		return c.json(wire.From(s, true))
	}
	_, err := fmt.Fprintln(c.Out, card.Spell(card.Settled(s.Request, here(ctx, client))))
	return err
}

// here returns the card options for the person who runs this command: their time zone, or this machine's if the daemon does not
// know the person.
func here(ctx context.Context, client *admin.Client) card.Options {
	me, _ := client.WhoAmI(ctx)
	return at(me)
}

// at is the time by the daemon's clock, in the person's zone.
func at(me admin.Me) card.Options { return card.Options{Now: me.Now, Location: me.Location()} }

// json prints a value for programs, on one row. Control characters in other people's text are escaped (as in \u0085), so that
// they cannot control a terminal.
func (c *CLI) json(v any) error {
	if err := c.jsonItem(v); err != nil {
		return err
	}
	_, err := io.WriteString(c.Out, "\n")
	return err
}

// jsonItem is json without the end of the row.
func (c *CLI) jsonItem(v any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := c.Out.Write(harmlessJSON(bytes.TrimSuffix(text.Bytes(), []byte("\n"))))
	return err
}

// harmlessJSON escapes what controls a terminal or cannot be seen in JSON; of ASCII it is escaped already.
func harmlessJSON(text []byte) []byte {
	unseen := func(c rune) bool {
		return c > '~' && (card.Hidden(c) || !unicode.In(c, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S))
	}
	if bytes.IndexFunc(text, unseen) < 0 {
		return text
	}
	var b []byte
	for _, c := range string(text) {
		if !unseen(c) {
			b = utf8.AppendRune(b, c)
			continue
		}
		for _, unit := range utf16.Encode([]rune{c}) {
			b = fmt.Appendf(b, `\u%04x`, unit)
		}
	}
	return b
}

func (c *CLI) grantsCommand() *cobra.Command {
	return c.adminCommand("grants", nil, func(cmd *cobra.Command, _ []string, client *admin.Client) error {
		me, since, err := c.begin(cmd.Context(), client)
		if err != nil {
			return err
		}
		l := listPrinter{CLI: c}
		err = listed(c, since, func(after permissions.ID) ([]permissions.Grant, error) {
			return client.Grants(cmd.Context(), connectors.Identity{}, after, laterPages)
		}, func(g permissions.Grant) (permissions.ID, time.Time) { return g.ID, g.CreatedAt }, func(page []permissions.Grant) error {
			return l.grants(cmd.Context(), client, me, page)
		})
		return cmp.Or(err, l.end("nothing is granted for longer than once"))
	})
}

func (l *listPrinter) grants(ctx context.Context, client *admin.Client, me admin.Me, page []permissions.Grant) error {
	var rows [][]string
	for _, g := range page {
		if l.asJSON {
			if err := l.item(wire.FromGrant(g)); err != nil {
				return err
			}
			continue
		}
		var s permissions.RequestView
		if g.Call != (permissions.Digest{}) {
			s, _ = client.Show(ctx, string(g.Request)) // it may not be kept any more
		}
		why := sinceRestored(!g.SuspendedAt.IsZero())
		if g.Suspended != "" {
			why += "\tsuspended: " + spelled(g.Suspended)
		}
		rows = append(rows, []string{
			g.ID.Short(), dash(g.Code), covers(g, s), spelled(g.Caller), lasts(g, me.Location()), fmt.Sprintf("used %d", g.Used),
			"by " + spelled(g.By) + why,
		})
	}
	return l.table(6, rows)
}

func allGrants(ctx context.Context, client *admin.Client) ([]permissions.Grant, error) {
	return pages(func(after permissions.ID) ([]permissions.Grant, error) {
		return client.Grants(ctx, connectors.Identity{}, after, 0)
	}, func(g permissions.Grant) permissions.ID { return g.ID })
}

func (c *CLI) revokeCommand() *cobra.Command {
	return c.adminCommand("revoke ID", arguments(cobra.ExactArgs(1), "the id of a grant, or the id or the code of a request"),
		func(cmd *cobra.Command, args []string, client *admin.Client) error {
			if len(args[0]) != permissions.CodeLength { // a grant has no code
				took, err := client.Revoke(cmd.Context(), connectors.Identity{}, permissions.ID(args[0]))
				if permissions.CodeOf(err) != permissions.CodeUnknown {
					if err == nil {
						err = c.printRevoked(took, here(cmd.Context(), client))
					}
					return err
				}
			}
			s, err := client.Void(cmd.Context(), connectors.Identity{}, args[0])
			if permissions.CodeOf(err) == permissions.CodeUnknown {
				return nearRequest(cmd.Context(), client, args[0], &permissions.Refusal{
					Code: permissions.CodeUnknown, Exit: permissions.ExitUnknown,
					Text: "There is no grant and no request " + spelled(args[0]) + ".",
				})
			}
			if permissions.CodeOf(err) == permissions.CodeNoUse && !c.asJSON {
				return c.usedAlready(cmd.Context(), client, args[0], err)
			}
			if err != nil {
				return err
			}
			return c.printSettled(cmd.Context(), client, s)
		})
}

// usedAlready lists the grants of an approval that cannot be revoked as a whole, and how to revoke them.
func (c *CLI) usedAlready(ctx context.Context, client *admin.Client, name string, refused error) error {
	s, err := client.Show(ctx, name)
	if err != nil {
		return refused
	}
	list, err := allGrants(ctx, client)
	if err != nil {
		return refused
	}
	list = slices.DeleteFunc(list, func(g permissions.Grant) bool { return g.Request != s.Request.ID })
	if len(list) == 0 {
		return refused
	}
	for _, g := range list {
		c.say("it was used; what it granted stands: daycared revoke %s", g.ID.Short())
	}
	return exitCode(permissions.ExitOther)
}

// printRevoked prints a revoked grant, and what ran under it.
func (c *CLI) printRevoked(took permissions.Revoked, o card.Options) error {
	if c.asJSON {
		ran := wire.Map(took.Ran, func(r permissions.Request) wire.Request {
			return wire.From(permissions.RequestView{Request: r}, true)
		})
		return c.json(map[string]any{"grant": wire.FromGrant(took.Grant), "ran": ran})
	}
	for _, line := range card.Notice(connectors.Notice{About: permissions.AboutRevoked, Grant: took.Grant, Ran: took.Ran}, o) {
		fmt.Fprintln(c.Out, card.Spell(line))
	}
	return nil
}

// covers describes what a grant covers; for an exact call, as shown in the request that the grant comes from, if it is known.
func covers(g permissions.Grant, from permissions.RequestView) string {
	words := spelled(permissions.DescribeTags(g.Tags))
	switch {
	case g.IsTrust():
		_, in := g.Rule.Patterns()
		words = "what is read completely and stays in " + spelled(in) + ", trusted"
	case g.Rule != "":
		allow, in := g.Rule.Patterns()
		words = oneRow(strings.Join(allow, ", ")) + " in " + spelled(cmp.Or(in, "any folder"))
		if origin := g.Rule.Origin(); origin != "" {
			words += ", from " + spelled(origin)
		}
	case g.Tool == permissions.AllTools:
		words = "all gated tools except high risk, shells and interpreters"
	case g.Call != (permissions.Digest{}):
		words = "this exact call of " + spelled(g.Tool) + ", asked in request " + cmp.Or(g.Code, from.Code, string(g.Request))
		for _, c := range from.Request.ToolCalls() {
			if permissions.CallDigest(from.Request, c) == g.Call {
				call := card.Wants(permissions.Request{Kind: permissions.KindTool, Tool: c.Tool, Input: c.Input})
				words = "this exact call: " + oneRow(strings.Join(strings.Fields(strings.ReplaceAll(call, "┃ ", " ")), " "))
			}
		}
	case g.Tool != "":
		words = "tool " + spelled(g.Tool)
	}
	if g.Session != "" {
		session := ", session "
		if !(permissions.Caller{Name: g.Caller}).IsOurs() {
			session = ", the session that it calls "
		}
		words += session + spelled(g.Session)
	}
	return words
}

// lasts describes how long a grant lasts.
func lasts(g permissions.Grant, zone *time.Location) string {
	switch {
	case g.Session != "" && !g.Until.IsZero():
		return "for the session, until unused on " + when(g.Until, zone)
	case g.Idle() > 0 && !g.Until.IsZero():
		return "until unused on " + when(g.Until, zone)
	case !g.Until.IsZero():
		return "until " + when(g.Until, zone)
	case g.Session != "":
		return "for the session"
	}
	return "until revoked"
}
