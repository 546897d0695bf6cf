package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/rules"
)

// hastyWithin is the time within which a decision is hasty: nobody has read a card by then.
const hastyWithin = 2 * time.Second

func (c *CLI) reportCommand() *cobra.Command {
	since := ""
	cmd := c.adminCommand("report", nil, func(cmd *cobra.Command, _ []string, client *admin.Client) error {
		me, err := client.WhoAmI(cmd.Context())
		if err != nil {
			return err
		}
		now := me.Now
		from, err := parseSince(since, now, me.Location())
		if err != nil {
			return err
		}
		made := newReport(from, now, me.Location())
		err = eachPage("", func(after permissions.ID) ([]permissions.Request, error) {
			return client.History(cmd.Context(), permissions.HistoryQuery{Since: from, Limit: laterPages, After: after})
		}, func(r permissions.Request) permissions.ID { return r.ID }, func(page []permissions.Request) error {
			for _, r := range page {
				made.add(r)
			}
			return nil
		})
		if err != nil {
			return err
		}
		grants, err := allGrants(cmd.Context(), client)
		if err != nil {
			return err
		}
		set, _, err := c.rulesOf("")
		if err != nil {
			return err
		}
		made.end(grants, set)
		if c.asJSON {
			return c.json(made)
		}
		return c.printReport(made)
	})
	cmd.Flags().StringVar(&since, "since", "7d", "what was decided since: 24h, 7d, 14:00, 2026-11-20 or 2026-11-20T14:00")
	return cmd
}

// report is what people were asked in a period, the outcomes, and what they were not asked. Only requests that are settled, and whose
// words are still kept, count.
type report struct {
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	Prompts int       `json:"prompts"` // requests that people were asked about
	outcomes
	Unasked     saved              `json:"unasked"`
	PerDay      spread             `json:"per_day"`
	PerHour     spread             `json:"per_hour"` // of the hours with a prompt
	Decide      pace               `json:"decide"`
	Agents      []reportRow        `json:"agents"`
	People      []reportRow        `json:"people"` // prompts: what was put to that person; the rest: what that person decided
	Tools       []reportRow        `json:"tools"`
	Candidates  []rules.Suggestion `json:"candidates"` // rules that would have saved prompts, best first
	UnusedGrant []wire.Grant       `json:"grants_never_used"`

	zone        *time.Location
	days, hours map[string]int // prompts by when they were asked
	took        []time.Duration
	calls       []rules.PastCall
	by          map[*[]reportRow]map[string]*reportRow
}

// outcomes counts prompts by outcome.
type outcomes struct {
	Allowed  int `json:"allowed"`
	Denied   int `json:"denied"`
	Answered int `json:"answered"` // questions
	Expired  int `json:"expired"`
	Ended    int `json:"ended"`       // cancelled or withdrawn, or answered at the agent's keyboard
	Lost     int `json:"undelivered"` // nobody was reached
}

// saved counts calls that nobody was asked about.
type saved struct {
	Rules  int `json:"rules"`
	Grants int `json:"grants"`
	Policy int `json:"policy"` // tools.auto, and questions that an agent's own dialog asks
}

// spread is how prompts are spread over days or hours.
type spread struct {
	Median float64 `json:"median"`
	Most   int     `json:"most"`
	At     string  `json:"most_at"` // the day, or the hour's beginning, in the reader's time zone
}

// pace is how long people took.
type pace struct {
	P50   float64 `json:"p50_seconds"`
	P95   float64 `json:"p95_seconds"`
	Hasty int     `json:"under_two_seconds"`
}

type reportRow struct {
	Name    string `json:"name"`
	Prompts int    `json:"prompts"`
	outcomes
	Hasty int `json:"under_two_seconds"`
}

func newReport(since, until time.Time, zone *time.Location) *report {
	m := &report{
		Since: since.UTC().Truncate(time.Second), Until: until.UTC().Truncate(time.Second), zone: zone,
		days: map[string]int{}, hours: map[string]int{},
		Agents: []reportRow{}, People: []reportRow{}, Tools: []reportRow{}, by: map[*[]reportRow]map[string]*reportRow{},
	}
	for day := since.In(zone); !day.After(until); day = day.AddDate(0, 0, 1) { // a day without a prompt counts
		m.days[day.Format(time.DateOnly)] = 0
	}
	return m
}

// add counts one settled request.
func (m *report) add(r permissions.Request) {
	if r.DecidedVia == permissions.ViaGrant {
		switch {
		case len(r.Grants) > 0:
			m.Unasked.Grants++
		case r.DecidingRule(permissions.RuleAllows) != "":
			m.Unasked.Rules++
		default:
			m.Unasked.Policy++
		}
		return
	}
	m.Prompts++
	for _, call := range r.ToolCalls() {
		m.calls = append(m.calls, pastOf(r, call))
	}
	m.count(r.State)
	asked := r.CreatedAt.In(m.zone)
	m.days[asked.Format(time.DateOnly)]++
	m.hours[asked.Format("2006-01-02 15:00")]++
	fast := 0
	if took := r.DecidedAt.Sub(r.CreatedAt); decidedByPeople(r) {
		m.took = append(m.took, took)
		if took < hastyWithin {
			fast = 1
		}
	}
	m.Decide.Hasty += fast
	tools := r.ToolNames()
	if len(tools) == 0 {
		tools = []string{string(r.Kind)}
	}
	for _, row := range append([]*reportRow{m.row(&m.Agents, r.Caller.Name)}, m.rowsOf(&m.Tools, tools)...) {
		row.Prompts++
		row.count(r.State)
		row.Hasty += fast
	}
	for _, row := range m.rowsOf(&m.People, r.Asked) {
		row.Prompts++
	}
	voted := map[string]bool{}
	for _, v := range r.Votes {
		if row := m.row(&m.People, v.By); !voted[v.By] && decidedByPeople(r) {
			row.count(r.State)
			if v.At.Sub(r.CreatedAt) < hastyWithin {
				row.Hasty++
			}
			voted[v.By] = true
		}
	}
}

// decidedByPeople reports whether a person's answer settled r.
func decidedByPeople(r permissions.Request) bool {
	return r.DecidedBy != "" && slices.Contains([]permissions.State{permissions.Approved, permissions.Denied, permissions.Answered}, r.State)
}

func (t *outcomes) count(s permissions.State) {
	switch s {
	case permissions.Approved:
		t.Allowed++
	case permissions.Denied:
		t.Denied++
	case permissions.Answered:
		t.Answered++
	case permissions.Expired:
		t.Expired++
	case permissions.Undeliverable:
		t.Lost++
	default:
		t.Ended++
	}
}

func (m *report) rowsOf(list *[]reportRow, names []string) (rows []*reportRow) {
	for _, name := range names {
		if row := m.row(list, name); !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
	}
	return rows
}

// row returns the row of a name in a list, which [report.end] fills.
func (m *report) row(list *[]reportRow, name string) *reportRow {
	if m.by[list] == nil {
		m.by[list] = map[string]*reportRow{}
	}
	if m.by[list][name] == nil {
		m.by[list][name] = &reportRow{Name: name}
	}
	return m.by[list][name]
}

// end computes what takes all requests, given the grants and the rules in force.
func (m *report) end(grants []permissions.Grant, set *rules.Set) {
	m.Candidates = append([]rules.Suggestion{}, set.Suggest(m.calls)...)
	for list, rows := range m.by {
		for _, row := range rows {
			*list = append(*list, *row)
		}
		slices.SortFunc(*list, func(a, b reportRow) int {
			return cmp.Or(cmp.Compare(b.Prompts, a.Prompts), cmp.Compare(a.Name, b.Name))
		})
	}
	m.PerDay, m.PerHour = spreadOf(m.days), spreadOf(m.hours)
	slices.Sort(m.took)
	m.Decide.P50, m.Decide.P95 = percentile(m.took, 50).Seconds(), percentile(m.took, 95).Seconds()
	grants = slices.DeleteFunc(grants, func(g permissions.Grant) bool { return g.Used > 0 })
	m.UnusedGrant = wire.Map(grants, wire.FromGrant)
}

func spreadOf(counts map[string]int) (s spread) {
	var all []int
	for at, n := range counts {
		all = append(all, n)
		if n > s.Most || n == s.Most && n > 0 && at < s.At {
			s.Most, s.At = n, at
		}
	}
	slices.Sort(all)
	if n := len(all); n > 0 {
		s.Median = float64(all[(n-1)/2]+all[n/2]) / 2
	}
	return s
}

// percentile returns the smallest of the sorted times that p percent do not exceed; 0 of none.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(math.Ceil(p/100*float64(len(sorted))))-1]
}

func (c *CLI) printReport(m *report) error {
	fmt.Fprintf(c.Out, "Since %s: %d prompts\n", stamp(m.Since, m.zone), m.Prompts)
	if m.Prompts > 0 {
		fmt.Fprintf(c.Out, "  a day: median %g, most %d on %s · an hour: median %g, most %d from %s\n",
			m.PerDay.Median, m.PerDay.Most, m.PerDay.At, m.PerHour.Median, m.PerHour.Most, m.PerHour.At)
		fmt.Fprintf(c.Out, "  %s\n", m.outcomes)
	}
	if len(m.took) > 0 {
		fmt.Fprintf(c.Out, "  decided within %s (median), %s (95 %%); in under two seconds: %d\n",
			roughly(m.Decide.P50), roughly(m.Decide.P95), m.Decide.Hasty)
	}
	fmt.Fprintf(c.Out, "Nobody was asked: by rules %d, by grants %d, by tools.auto %d\n", m.Unasked.Rules, m.Unasked.Grants, m.Unasked.Policy)
	table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	for _, part := range []struct {
		title string
		rows  []reportRow
	}{{"agent", m.Agents}, {"person", m.People}, {"tool", m.Tools}} {
		if len(part.rows) > 0 {
			fmt.Fprintf(table, "\n%s\tprompts\n", part.title)
		}
		for _, row := range part.rows {
			fmt.Fprintf(table, "%s\t%d\t%s\n", oneRow(spelled(row.Name)), row.Prompts, row.outcomes)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i, s := range m.Candidates {
		if i == 0 {
			fmt.Fprint(c.Out, "\nCandidates for rules; daycared suggest says what they cover, and gives them:\n")
		}
		who, where := cmp.Or(s.Agent, "anyone"), cmp.Or(s.In, "any folder")
		c.print("%s\n  would have saved %d prompts of %s in %s\n", s.Allow, s.Saved, who, where)
	}
	for i, g := range m.UnusedGrant {
		if i == 0 {
			fmt.Fprint(c.Out, "\nGrants never used; daycared revoke ID takes one back:\n")
		}
		fmt.Fprintf(c.Out, "%s  %s, by %s since %s\n", g.ID.Short(), spelled(g.Caller), spelled(g.By), when(wire.Value(g.CreatedAt), m.zone))
	}
	return nil
}

func (t outcomes) String() string {
	var all []string
	for _, part := range []struct {
		what string
		n    int
	}{
		{"allowed", t.Allowed}, {"denied", t.Denied}, {"answered", t.Answered}, {"nobody in time", t.Expired},
		{"ended before", t.Ended}, {"nobody reached", t.Lost},
	} {
		if part.n > 0 {
			all = append(all, fmt.Sprintf("%s %d", part.what, part.n))
		}
	}
	return strings.Join(all, " · ")
}

// roughly is a number of seconds as people say it.
func roughly(seconds float64) time.Duration {
	span := time.Duration(seconds * float64(time.Second))
	if span < 10*time.Second {
		return span.Round(100 * time.Millisecond)
	}
	return span.Round(time.Second)
}
