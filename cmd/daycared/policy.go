package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/acts"
	"github.com/daycared/daycared/permissions/rules"
)

// asLinks is said of judgements of calls whose links are not known.
const asLinks = "Where links lead is not stored, nor whose an agent was: names are judged as if they lead where they say, and rules for " +
	"people hold for nobody."

// policyTest is what policy test is asked.
type policyTest struct{ rules, since, command, agent string }

func (c *CLI) policyCommand() *cobra.Command {
	p := policyTest{}
	cmd := newCommand("policy", nil, func(*cobra.Command, []string) error {
		return usage("say policy test")
	})
	test := newCommand("test [FILE|-]", arguments(cobra.MaximumNArgs(1), "one file at most"), func(cmd *cobra.Command, args []string) error {
		return c.testPolicy(cmd.Context(), p, args)
	})
	test.Flags().StringVar(&p.rules, "rules", "", "configuration file whose rules are tried (default: those in force)")
	test.Flags().StringVar(&p.since, "since", "30d", "judge the stored calls that are not older")
	test.Flags().StringVarP(&p.command, "command", "c", "", "explain this one command, in this folder")
	test.Flags().StringVar(&p.agent, "agent", "", "with --command: the agent that runs it")
	cmd.AddCommand(test)
	return cmd
}

func (c *CLI) testPolicy(ctx context.Context, p policyTest, args []string) error {
	today, name, err := c.rulesOf("")
	if err != nil {
		return err
	}
	next, against := today, "no rules"
	if p.rules != "" {
		if next, _, err = c.rulesOf(p.rules); err != nil {
			return err
		}
		name, against = p.rules, cmp.Or(name, "no rules")
	}
	switch {
	case p.command != "" && len(args) > 0:
		return usage("--command is one command, and FILE are others; leave one of the two out")
	case p.command != "":
		return c.explainCommand(next, p)
	}
	var calls []rules.PastCall
	if len(args) == 1 {
		data, err := c.readCalls(args[0])
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
			return c.testCases(args[0], data)
		}
		if calls, err = linesOf(args[0], data); err != nil {
			return err
		}
	} else if calls, err = c.stored(ctx, p.since); err != nil {
		return err
	}
	if p.rules == "" {
		today = nil
	}
	return c.compare(calls, today, next, cmp.Or(name, "no configuration"), against)
}

// rulesOf returns the rules of a configuration file and its name; of the one in force without one. What is wrong in it is wrong usage.
func (c *CLI) rulesOf(file string) (set *rules.Set, name string, err error) {
	var cfg *config.Config
	if file != "" {
		cfg, err = config.Load(file, c.Environ)
	} else if cfg, _, err = c.load(); c.hidden(err) {
		cfg, err = config.Load("", c.Environ)
	}
	if err != nil {
		return nil, "", usage("%s", err)
	}
	set, found := rules.Compile(cfg.PermissionRules())
	if err := rules.FirstError(found); err != nil {
		return nil, "", usage("%s", err)
	}
	return set, cfg.File, nil
}

// stored returns the settled calls of the daemon that are not older than since.
func (c *CLI) stored(ctx context.Context, since string) (calls []rules.PastCall, err error) {
	client, err := c.adminClient()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	at := here(ctx, client)
	from, err := parseSince(since, at.Now, at.Location)
	if err != nil {
		return nil, err
	}
	all, err := pages(func(after permissions.ID) ([]permissions.Request, error) {
		return client.History(ctx, permissions.HistoryQuery{Since: from, After: after})
	}, func(r permissions.Request) permissions.ID { return r.ID })
	for _, r := range all {
		for _, call := range r.ToolCalls() {
			calls = append(calls, pastOf(r, call))
		}
	}
	return calls, err
}

// pastOf returns a stored call with its outcome.
func pastOf(r permissions.Request, call permissions.Call) rules.PastCall {
	dialect := r.Hook
	if r.Caller.IsOurs() {
		dialect = cmp.Or(dialect, acts.Daycared)
	}
	ended := r.ForCall(call)
	person := ended.DecidedBy != "" && ended.DecidedVia != permissions.ViaGrant
	return rules.PastCall{
		Call: rules.Call{
			Agent: r.Caller.ProvenName(), Dialect: dialect, Tool: call.Tool, Input: call.Input, Folder: r.Cwd, Root: r.Cwd,
			Resolve: asNamed, At: time.Now(),
		},
		Request: r.ID, At: r.CreatedAt, Allowed: person && ended.State == permissions.Approved,
		Denied: person && ended.State == permissions.Denied,
	}
}

func (c *CLI) readCalls(file string) (data []byte, err error) {
	if file == "-" {
		data, err = io.ReadAll(c.In)
	} else {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, usage("read the calls: %s", err)
	}
	return data, nil
}

const aLine = `{"tool":"Bash","input":{"command":"ls"},"cwd":"/srv/code"}`

// linesOf reads one call a line.
func linesOf(file string, data []byte) (calls []rules.PastCall, err error) {
	lines, n := bufio.NewScanner(bytes.NewReader(data)), 0
	lines.Buffer(nil, len(data)+1)
	for lines.Scan() {
		if n++; len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var l struct {
			Tool, Cwd, Agent, Hook, Person string
			Input                          json.RawMessage
			TS                             time.Time
			Allowed, Denied                bool
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, usage("%s:%d: it is no call: %s; write one as in %s", file, n, err, aLine)
		}
		if l.Tool == "" {
			return nil, usage("%s:%d: it names no tool; write one as in %s", file, n, aLine)
		}
		calls = append(calls, rules.PastCall{At: l.TS, Allowed: l.Allowed, Denied: l.Denied, Call: rules.Call{
			Agent: l.Agent, Person: l.Person, Dialect: cmp.Or(l.Hook, acts.DialectOf(l.Tool)), Tool: l.Tool, Input: l.Input,
			Folder: l.Cwd, Root: l.Cwd, Resolve: asNamed, At: time.Now(),
		}})
	}
	return calls, lines.Err()
}

// verdicts counts calls by what rules do with them.
type verdicts struct {
	Ask   int `json:"ask"`
	Allow int `json:"allow"`
	Deny  int `json:"deny"`
}

func (v *verdicts) add(e rules.Effect) {
	switch e {
	case rules.Allow:
		v.Allow++
	case rules.Deny:
		v.Deny++
	default:
		v.Ask++
	}
}

// toolCount counts the calls of one tool.
type toolCount struct {
	Tool   string   `json:"tool"`
	Before verdicts `json:"before"`
	After  verdicts `json:"after"`
}

// judgement is a call that rules judge in another way than before.
type judgement struct {
	Tool   string       `json:"tool"`
	Agent  string       `json:"agent,omitempty"`
	Call   string       `json:"call"`
	Before rules.Effect `json:"before"`
	After  rules.Effect `json:"after"`
	Rule   int          `json:"rule,omitempty"`
	By     string       `json:"by,omitempty"`
	Why    string       `json:"why,omitempty"`
	Denied bool         `json:"denied,omitempty"` // by a person, and rules would allow it
	Times  int          `json:"times"`
}

// compared is what policy test found.
type compared struct {
	Rules    string       `json:"rules"`
	Against  string       `json:"against"`
	Patterns int          `json:"patterns"`
	Tools    []*toolCount `json:"tools"`
	All      toolCount    `json:"all"`
	Changes  []*judgement `json:"changes"`
	Denied   int          `json:"denied_allowed"`
}

// compare judges calls by two sets of rules.
func (c *CLI) compare(calls []rules.PastCall, before, after *rules.Set, name, against string) error {
	found := compared{
		Rules: name, Against: against, Patterns: patternsOf(after), Tools: []*toolCount{}, Changes: []*judgement{}, All: toolCount{Tool: "all"},
	}
	tools, changes := map[string]*toolCount{}, map[string]*judgement{}
	for _, p := range calls {
		was, is := before.Judge(p.Call), after.Judge(p.Call)
		if p.Denied && is.Effect == rules.Allow {
			found.Denied++
		}
		t := tools[p.Call.Tool]
		if t == nil {
			t = &toolCount{Tool: p.Call.Tool}
			tools[p.Call.Tool], found.Tools = t, append(found.Tools, t)
		}
		for _, t := range []*toolCount{t, &found.All} {
			t.Before.add(was.Effect)
			t.After.add(is.Effect)
		}
		one := &judgement{Tool: p.Call.Tool, Agent: p.Call.Agent, Call: rules.Line(p.Call), Before: cmp.Or(was.Effect, rules.Ask),
			After: cmp.Or(is.Effect, rules.Ask), Rule: is.Rule, Why: is.Why, Denied: p.Denied && is.Effect == rules.Allow}
		if one.Before == one.After && !one.Denied {
			continue
		}
		for _, a := range is.Acts {
			if a.Rule == is.Rule && a.Effect == is.Effect {
				one.By = a.By
			}
		}
		key := fmt.Sprint(*one)
		if changes[key] == nil {
			changes[key], found.Changes = one, append(found.Changes, one)
		}
		changes[key].Times++
	}
	slices.SortStableFunc(found.Tools, func(a, b *toolCount) int { return b.calls() - a.calls() })
	slices.SortStableFunc(found.Changes, func(a, b *judgement) int { return b.Times - a.Times })
	if err := c.printCompared(found); err != nil {
		return err
	}
	if found.Denied > 0 {
		return exitCode(permissions.ExitNo)
	}
	return nil
}

func (t *toolCount) calls() int { return t.After.Ask + t.After.Allow + t.After.Deny }

// patternsOf counts the patterns of a set; one with alternatives is as many.
func patternsOf(s *rules.Set) (n int) {
	for _, text := range s.Texts() {
		n += rules.Patterns(text)
	}
	return n
}

// maxChanges is how many changes are printed; all are in the JSON.
const maxChanges = 40

func (c *CLI) printCompared(found compared) error {
	if c.asJSON {
		return c.json(found)
	}
	c.print("With the rules of %s (%d patterns), against %s. %s\n\n", found.Rules, found.Patterns, found.Against, asLinks)
	table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	for _, t := range append(found.Tools, &found.All) {
		fmt.Fprintf(table, "%s\task %d → %d · allow %d → %d · deny %d → %d\n", spelled(t.Tool), t.Before.Ask, t.After.Ask,
			t.Before.Allow, t.After.Allow, t.Before.Deny, t.After.Deny)
	}
	if err := table.Flush(); err != nil || len(found.Changes) == 0 {
		return err
	}
	c.print("\nchanged:\n")
	for i, one := range found.Changes {
		if i == maxChanges && !one.Denied {
			c.print("  and %d more, all of them with --json\n", len(found.Changes)-maxChanges)
		}
		if i >= maxChanges && !one.Denied {
			continue
		}
		c.print("  %s → %s  %s%s%s\n", one.Before, one.After, one.Call, times(one.Times), byRule(one.Rule, one.By))
		if one.Denied {
			c.print("    a person denied it, and these rules allow it\n")
		}
	}
	return nil
}

func times(n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf(" (%d times)", n)
}

func byRule(rule int, by string) string {
	switch {
	case rule == 0:
		return ""
	case by == "":
		return fmt.Sprintf("  [rule %d]", rule)
	}
	return fmt.Sprintf("  [rule %d, %s]", rule, by)
}

// asNamed is where a name leads if it says so. What has an extension is taken for a file, and the workspace for a repository: with a slash
// behind it, a file leads nowhere.
func asNamed(name string) string {
	at := filepath.Clean(name)
	isFile := filepath.Ext(strings.TrimPrefix(filepath.Base(at), ".")) != "" || strings.HasSuffix(at, "/.git/HEAD")
	if strings.HasSuffix(name, "/") && isFile {
		return ""
	}
	return at
}

// explainCommand prints what a command does, which rule covers each act, and why it is asked about.
func (c *CLI) explainCommand(set *rules.Set, p policyTest) error {
	folder, err := os.Getwd()
	if err != nil {
		return err
	}
	call := rules.Call{Agent: p.agent, Command: p.command, Folder: folder, Root: folder, At: time.Now(), Resolve: func(name string) string {
		to, known := own.Follow().Leads(name)
		if !known {
			return ""
		}
		return to
	}}
	v := set.Judge(call)
	for i := range v.Acts {
		v.Acts[i].Effect = cmp.Or(v.Acts[i].Effect, rules.Ask)
	}
	input, _ := json.Marshal(map[string]string{"command": p.command}) // a text
	risks := acts.ReadCall(permissions.Request{Cwd: folder}, permissions.Call{Tool: "run_command", Input: input}).Risks
	if c.asJSON {
		return c.json(map[string]any{
			"command": p.command, "folder": folder, "effect": cmp.Or(v.Effect, rules.Ask), "rule": v.Rule, "why": v.Why, "exact": v.Exact,
			"acts": append([]rules.Judged{}, v.Acts...), "reasons": append([]string{}, v.Reasons...), "high_risk": append([]acts.Risk{}, risks...),
		})
	}
	table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	for _, a := range v.Acts {
		told := strings.TrimSpace(byRule(a.Rule, a.By))
		if told == "" && a.Effect == rules.Allow {
			told = "reading in the workspace needs no rule"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", a.Effect, oneRow(spelled(a.Text)), cmp.Or(told, spelled(a.Reason)))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, reason := range v.Reasons {
		if !slices.ContainsFunc(v.Acts, func(a rules.Judged) bool { return a.Reason == reason }) {
			c.print("ask  %s\n", reason)
		}
	}
	for _, risk := range risks {
		c.print("high risk: it %s, so only a rule without a wildcard allows it\n", risk)
	}
	c.print("→ %s%s\n", cmp.Or(v.Effect, rules.Ask), byRule(v.Rule, v.Why))
	return nil
}

// cases is a file of commands, each with the rule that must not, or must, allow it.
type cases struct {
	Workspace string
	Cases     []struct{ ID, Rule, Command, Load string }
	Repeat    []struct {
		ID, Rule, Before, After, First, Then, Part, Last string
		Times                                            int
	}
	Ask map[string][]struct {
		Rule     string
		Commands []string
	}
	Refuse []string
	Deny   []struct{ ID, Allow, Deny, Command, Want string }
	Allow  []struct {
		ID, Command string
		Rules, Env  []string
	}
}

// testCases judges the commands of a file, each by its own rules and those for ls, cat, echo and true. Folders link and out lead to /etc.
func (c *CLI) testCases(file string, data []byte) error {
	var all cases
	if err := yaml.Unmarshal(data, &all); err != nil {
		return usage("%s: it is neither calls, one a line as JSON, nor a file of cases: %s", file, err)
	}
	t := caseTest{root: cmp.Or(all.Workspace, "/workspace"), groups: map[string]*counted{}, wrong: []string{}}
	t.askAll(all)
	for _, one := range all.Deny {
		t.judge("denied", cmp.Or(one.Want, "ask"), one.Command, false, allowing(one.Allow), rules.Rule{Deny: []string{patternOf(one.Deny)}})
	}
	for _, one := range all.Allow {
		rule := allowing(one.Rules...)
		rule.Env = one.Env
		t.judge("allowed", "allow", one.Command, false, rule)
	}
	if len(t.groups) == 0 {
		return usage("%s: it has no cases; write them under cases, deny and allow", file)
	}
	if err := c.printCases(t.groups, t.wrong); err != nil {
		return err
	}
	switch {
	case t.slips:
		return exitCode(permissions.ExitNo)
	case len(t.wrong) > 0:
		return exitCode(permissions.ExitOther)
	}
	return nil
}

// caseTest judges cases of a workspace, and counts them by group.
type caseTest struct {
	root   string
	groups map[string]*counted
	wrong  []string
	slips  bool // one is allowed that must not be
}

// askAll judges the cases that must be asked about.
func (t *caseTest) askAll(all cases) {
	for _, one := range all.Cases {
		t.judge(caseGroup(one.ID), "ask", one.Command, one.Load == "refuse", allowing(one.Rule))
	}
	for _, one := range all.Repeat {
		text := one.First + strings.Repeat(one.Before+one.Part, one.Times) + one.After + one.Last + strings.Repeat(one.Then, one.Times)
		t.judge("repeated", "ask", text, false, allowing(one.Rule))
	}
	for _, group := range slices.Sorted(maps.Keys(all.Ask)) {
		for _, of := range all.Ask[group] {
			for _, command := range of.Commands {
				t.judge(group, "ask", command, false, allowing(of.Rule))
			}
		}
	}
	for _, text := range all.Refuse {
		t.judge("refused rules", "ask", text, true, allowing(text))
	}
}

// judge judges a command by its own rules, which must not load if they are refused.
func (t *caseTest) judge(group, want, command string, refused bool, given ...rules.Rule) {
	set, found := rules.Compile(append(given, allowing("true", "ls ...", "cat ...", "echo ...")))
	if err := rules.FirstError(found); err != nil || refused {
		t.note(group, command, "judged by a rule that must load, or must not", (err != nil) == refused)
		return
	}
	effect := cmp.Or(set.Judge(rules.Call{Command: command, Folder: t.root, Root: t.root, Resolve: t.resolve}).Effect, rules.Ask)
	right := effect == rules.Effect(want) || want == "ask" && effect != rules.Allow
	t.slips = t.slips || !right && effect == rules.Allow
	t.note(group, command, "judged "+string(effect)+", and must be "+want, right)
}

func (t *caseTest) note(group, command, got string, right bool) {
	if t.groups[group] == nil {
		t.groups[group] = &counted{}
	}
	if t.groups[group].All++; right {
		t.groups[group].Right++
		return
	}
	t.wrong = append(t.wrong, fmt.Sprintf("%s: %q is %s", group, permissions.Brief(command, 200), got))
}

func (t *caseTest) resolve(name string) string {
	for _, link := range []string{t.root + "/link", t.root + "/out"} {
		if permissions.Within(link, filepath.Clean(name)) || strings.HasPrefix(name, link+"/") { // before ".."
			return filepath.Clean("/etc" + strings.TrimPrefix(name, link))
		}
	}
	return filepath.Clean(name)
}

func allowing(texts ...string) (r rules.Rule) {
	for _, text := range texts {
		r.Allow = append(r.Allow, patternOf(text))
	}
	return r
}

// counted is how many cases of a group are judged as they must be.
type counted struct {
	Right int `json:"right"`
	All   int `json:"all"`
}

func (c *CLI) printCases(groups map[string]*counted, wrong []string) error {
	if c.asJSON {
		return c.json(map[string]any{"groups": groups, "wrong": wrong})
	}
	table, sum := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0), counted{}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		fmt.Fprintf(table, "%s\t%d of %d\n", spelled(group), groups[group].Right, groups[group].All)
		sum.Right, sum.All = sum.Right+groups[group].Right, sum.All+groups[group].All
	}
	fmt.Fprintf(table, "all\t%d of %d are judged as they must be\n", sum.Right, sum.All)
	for _, text := range wrong {
		c.say("%s", text)
	}
	return table.Flush()
}

func caseGroup(id string) string {
	group, _, _ := strings.Cut(id, "-")
	return cmp.Or(group, "cases")
}

// patternOf is a pattern of a file of cases: one that runs is written without its kind.
func patternOf(text string) string {
	if k, _, _ := strings.Cut(text, " "); slices.Contains([]string{"run", "read", "write", "fetch", "tool"}, k) {
		return text
	}
	return "run " + text
}

// suggesting is what suggest is asked.
type suggesting struct {
	since      string
	apply, yes bool
}

func (c *CLI) suggestCommand() *cobra.Command {
	o := suggesting{}
	cmd := newCommand("suggest [FILE|-]", arguments(cobra.MaximumNArgs(1), "one file at most"), func(cmd *cobra.Command, args []string) error {
		return c.suggest(cmd.Context(), o, args)
	})
	cmd.Flags().StringVar(&o.since, "since", "30d", "look at the calls that are not older")
	cmd.Flags().BoolVar(&o.apply, "apply", false, "ask about each rule, and give those that are right")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "with --apply: give all of them")
	return cmd
}

func (c *CLI) suggest(ctx context.Context, o suggesting, args []string) error {
	switch {
	case o.apply && (len(args) > 0 || c.asJSON):
		return usage("--apply is for the calls that the daemon has stored, and asks about each rule; leave out the file and --json")
	case o.yes && !o.apply:
		return usage("--yes is for --apply")
	case o.apply && !o.yes && !terminal.IsTerminal(c.In):
		return usage("--apply asks about each rule; without a terminal, add --yes")
	}
	set, _, err := c.rulesOf("")
	if err != nil {
		return err
	}
	var calls []rules.PastCall
	if len(args) == 1 {
		data, err := c.readCalls(args[0])
		if err != nil {
			return err
		}
		if calls, err = linesOf(args[0], data); err != nil {
			return err
		}
		for i := range calls { // a file without answers
			calls[i].Allowed = !calls[i].Denied
		}
	} else if calls, err = c.stored(ctx, o.since); err != nil {
		return err
	}
	return c.suggested(ctx, o, set.Suggest(calls), len(calls))
}

// suggested prints suggestions from a number of calls, and with --apply asks about each.
func (c *CLI) suggested(ctx context.Context, o suggesting, found []rules.Suggestion, calls int) error {
	saved, patterns := 0, 0
	for _, s := range found {
		saved, patterns = saved+s.Saved, patterns+s.Patterns
	}
	if c.asJSON {
		all := append([]rules.Suggestion{}, found...)
		return c.json(map[string]any{"calls": calls, "saved": saved, "patterns": patterns, "suggestions": all})
	}
	if len(found) == 0 {
		c.say("nothing to suggest: no kind of call was allowed three times on two days, without a denial of its like")
		return nil
	}
	give := func(rules.Suggestion) error { return nil }
	if o.apply {
		client, err := c.adminClient()
		if err != nil {
			return err
		}
		defer client.Close()
		give = func(s rules.Suggestion) error { return c.give(ctx, client, s, o.yes) }
	}
	var refused error
	for _, s := range found {
		c.print("%s\n  saves %d prompts of %s in %s: %s\n  the last one: %s\n", s.Allow, s.Saved, cmp.Or(s.Agent, "anyone"),
			cmp.Or(s.In, "any folder"), s.Description, s.Last)
		for _, text := range s.NotCovered {
			c.print("  not covered: %s\n", text)
		}
		switch err := give(s); {
		case permissions.CodeOf(err) != "" && permissions.CodeOf(err) != permissions.CodeBroken:
			c.say("not given: %s", err)
			refused = exitCode(permissions.ExitOther)
		case err != nil:
			return err
		}
		c.print("\n")
	}
	c.print("%d rules with %d patterns would have saved %d prompts, of %d calls. %s\n", len(found), patterns, saved, calls, asLinks)
	if !o.apply {
		c.print("Give those that are right with daycared suggest --apply, or write them under rules, with agents and in; " +
			"what they change: daycared policy test --rules FILE\n")
	}
	return refused
}

// give asks whether a rule is right, and gives it.
func (c *CLI) give(ctx context.Context, client *admin.Client, s rules.Suggestion, sure bool) error {
	if !sure {
		question := fmt.Sprintf("Give %s this rule, until it is not used for 30 days?", spelled(cmp.Or(s.Agent, "anyone")))
		if yes, err := (dialogue{in: c.In, out: c.Err}).yes(ctx, question, false); !yes {
			return err
		}
	}
	g, err := client.GiveRule(ctx, s.Of, s.Allow, s.In)
	if err == nil {
		c.print("  given: take it back with daycared revoke %s\n", g.ID.Short())
	}
	return err
}
