package rules

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/acts"
)

// traced is one call of a trace.
type traced struct {
	Session int
	TS      time.Time
	Cwd     string
	Tool    string
	Input   json.RawMessage

	root string // where the session began
}

// gated reports whether an agent asks about such calls: it does not about those that only read.
func (l traced) gated() bool {
	return slices.Contains(strings.Fields("Bash Edit MultiEdit Write NotebookEdit WebFetch"), l.Tool) || strings.HasPrefix(l.Tool, "mcp__")
}

func (l traced) call() Call {
	return Call{
		Agent: "coder", Dialect: "claude-code", Tool: l.Tool, Input: l.Input, Folder: l.Cwd, Root: l.root, Resolve: filepath.Clean,
	}
}

// halves reads the gated calls of a trace: those of the first half of its sessions, and the others.
func halves(t *testing.T, name string) (first, second []traced) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []traced
	began := map[int]string{}
	var sessions []int
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var l traced
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		if began[l.Session] == "" || !permissions.Within(began[l.Session], l.Cwd) {
			began[l.Session] = l.Cwd
		}
		if l.root = began[l.Session]; l.gated() {
			if all = append(all, l); !slices.Contains(sessions, l.Session) {
				sessions = append(sessions, l.Session)
			}
		}
	}
	early := sessions[:len(sessions)/2]
	for _, l := range all {
		if slices.Contains(early, l.Session) {
			first = append(first, l)
		} else {
			second = append(second, l)
		}
	}
	return first, second
}

// answers gives each call the answer of a sensible person, since a trace has none: what destroys data, raises rights or touches
// credentials is denied, what is high risk for another reason is not answered, and everything else is allowed.
func answers(by *Set, calls []traced) (past []PastCall, denied int) {
	for _, l := range calls {
		p := PastCall{Call: l.call(), At: l.TS}
		switch risk := by.examine(p).risk; {
		case slices.Contains([]string{string(acts.Destroys), string(acts.Rights), string(acts.Secrets)}, risk):
			p.Denied = true
			denied++
		default:
			p.Allowed = risk == ""
		}
		past = append(past, p)
	}
	return past, denied
}

// asks reports whether people are asked about a call, and why: what is high risk is not allowed by a rule with a wildcard.
func asks(s *Set, c Call) (why string) {
	v, at := s.Judge(c), s.examine(PastCall{Call: c})
	switch {
	case v.Effect == Allow && (at.risk == "" || v.Exact):
		return ""
	case at.risk != "":
		return "high risk: " + at.risk
	case len(at.j.doubts) > 0:
		why, _, _ = strings.Cut(at.j.doubts[0], ":")
		return why
	case len(at.open) > 0:
		return "no rule: " + groupKey(at.open[0])
	}
	return "an ask rule"
}

// DAYCARED_TRACE names a file of calls. Rules are suggested from the first half of its sessions, beside the starter sets, and prompts are
// counted on the second half. See make trace.
func TestTrace(t *testing.T) {
	name := os.Getenv("DAYCARED_TRACE")
	if name == "" {
		return // it is no part of this repository
	}
	first, second := halves(t, name)
	sets := []Rule{{Use: "builtin:read-only"}, {Use: "builtin:git-local"}, {Use: "builtin:workspace-edits"}}
	base := rulesOf(t, sets...)
	past, denied := answers(base, first)
	patterns, own := 0, slices.Clone(sets)
	t.Logf("the first half has %d calls, of which %d count as denied; suggested from them:", len(first), denied)
	for _, s := range base.Suggest(past) {
		patterns += Patterns(s.Allow)
		own = append(own, s.Rule())
		if why := WhyNotGiven([]string{s.Allow}); why != "" {
			t.Errorf("%s is suggested, and would not count: %s", s.Allow, why)
		}
		t.Logf("  saves %3d: %s, in %s", s.Saved, s.Allow, s.In)
	}
	t.Logf("%d rules with %d patterns, beside %d starter sets", len(own)-len(sets), patterns, len(sets))
	with := rulesOf(t, own...)
	for _, tools := range [][]string{{"Bash"}, {"Edit", "MultiEdit", "Write", "NotebookEdit"}, nil} {
		count(t, tools, second, base, with)
	}
	variants(t, second, base, with)
}

// count counts the prompts of some tools, or of all, and says what they are.
func count(t *testing.T, tools []string, calls []traced, base, with *Set) {
	t.Helper()
	before, starters, after := 0, 0, 0
	was, is, why := map[string]int{}, map[string]int{}, map[string]int{}
	for _, l := range calls {
		if tools != nil && !slices.Contains(tools, l.Tool) {
			continue
		}
		day := l.TS.Format(time.DateOnly)
		before++
		was[day]++
		if asks(base, l.call()) != "" {
			starters++
		}
		if text := asks(with, l.call()); text != "" {
			after++
			is[day]++
			why[text]++
		}
	}
	median := func(of map[string]int) int {
		var days []int
		for day := range was {
			days = append(days, of[day])
		}
		slices.Sort(days)
		return days[len(days)/2]
	}
	what := strings.Join(tools, ", ")
	if tools == nil {
		what = "all"
	}
	t.Logf("%s: %d prompts without rules, %d with the starter sets, %d with both (%.1f %% fewer); a median day of %d: %d, then %d",
		what, before, starters, after, 100*(1-float64(after)/float64(before)), len(was), median(was), median(is))
	if tools != nil {
		return
	}
	reasons := slices.SortedFunc(maps.Keys(why), func(a, b string) int { return cmp.Or(why[b]-why[a], strings.Compare(a, b)) })
	for _, text := range reasons[:min(20, len(reasons))] {
		t.Logf("  %4d still asked: %s", why[text], text)
	}
}

// lists reports whether a command ends in a program whose -o only changes what it prints.
func lists(command string) bool {
	all := acts.ReadCommand(command, "/").Acts
	return slices.ContainsFunc(all, func(a acts.Act) bool { return slices.Contains([]string{"grep", "rg", "ls"}, a.Words[0]) })
}

// variants counts the dangerous variants of allowed commands that the suggested rules allow. Writing in the workspace is none: a starter
// set allows that.
func variants(t *testing.T, calls []traced, base, with *Set) {
	t.Helper()
	n, commands := 0, map[string]bool{}
	for _, l := range calls {
		var input struct{ Command string }
		if l.Tool != "Bash" || json.Unmarshal(l.Input, &input) != nil || commands[input.Command] ||
			strings.ContainsAny(input.Command, "#") || strings.Contains(input.Command, "<<") || asks(with, l.call()) != "" {
			continue // what follows would be a comment, or the text of a here-document
		}
		commands[input.Command] = true
		for group, forms := range appended {
			for _, form := range forms {
				if strings.HasSuffix(form, "> keep") && !strings.Contains(form, "&") || form == "%s -o keep" && lists(input.Command) {
					continue
				}
				n++
				c := l.call()
				c.Input = commandInput(fmt.Sprintf(form, strings.TrimRight(input.Command, "\n")))
				if with.Judge(c).Effect == Allow && base.Judge(c).Effect != Allow {
					t.Errorf("%s: %s is allowed", group, c.Input)
				}
			}
		}
	}
	t.Logf("%d dangerous variants of %d allowed commands", n, len(commands))
}
