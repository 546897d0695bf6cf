package rules

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Suggestion is a rule for one agent that would have saved prompts.
type Suggestion struct {
	Allow       string         `json:"rule"`  // one pattern
	Agent       string         `json:"agent"` // the caller's proven name; empty: nobody's
	In          string         `json:"in"`    // the folder; empty: any
	Description string         `json:"says"`  // in words: what it covers, and what it does not
	Saved       int            `json:"saved"` // prompts, given the suggestions before it
	Last        string         `json:"last"`  // the latest call that it covers
	Of          permissions.ID `json:"-"`     // the request of that call
	NotCovered  []string       `json:"not"`
	Patterns    int            `json:"patterns"` // see [Patterns]
}

// Rule returns the rule that the suggestion would make.
func (s Suggestion) Rule() Rule { return Proposal{Allow: []string{s.Allow}, In: s.In}.Rule(s.Agent) }

const (
	fewCalls = 3 // fewer are no reason for a rule
	fewDays  = 2
	maxTried = 8 // of the most frequent acts of a group, each of which may lead to another pattern
)

// Suggest suggests rules from calls that people allowed: for each agent and folder by program and subcommand, file, host or tool. Nothing
// is suggested for what a person has denied the like of, for a single day, or for fewer than three calls. The suggestion that saves most
// is the first; what each saves is counted given those before it.
func (s *Set) Suggest(past []PastCall) []Suggestion {
	all := s.examineAll(past)
	denied := map[string]bool{} // kinds that a person denied, whoever's call it was
	for _, p := range all {
		for _, i := range p.j.items {
			denied[groupKey(i)] = denied[groupKey(i)] || p.Denied && !i.hidden
		}
	}
	var found []*suggested
	of := groups(all)
	for _, key := range slices.Sorted(maps.Keys(of)) {
		if of := of[key]; !denied[of.kind] {
			found = append(found, of.suggest(all)...)
		}
	}
	return rankSuggestions(found, all)
}

// act is one act of a call.
type act struct {
	of *examinedCall
	i  item
	n  int // its place among the call's open items
}

// group are acts of one agent that are alike, in one folder and the folders in it.
type group struct {
	agent, folder, kind string
	acts                []act
}

func groups(all []*examinedCall) map[string]*group {
	found := map[string]*group{}
	outermost := func(of *examinedCall) string {
		folder := of.folder()
		for _, p := range all {
			if other := p.folder(); p.Call.Agent == of.Call.Agent && other != "" && permissions.Within(other, folder) {
				folder = other
			}
		}
		return folder
	}
	in := map[string]string{} // by agent and folder
	for _, p := range all {
		if !p.Allowed || p.risk != "" || p.asked > 0 || len(p.j.doubts) > 0 {
			continue
		}
		place := p.Call.Agent + "\x00" + p.folder()
		if _, known := in[place]; !known {
			in[place] = outermost(p)
		}
		for n, i := range p.open {
			g := &group{agent: p.Call.Agent, folder: in[place], kind: groupKey(i)}
			key := strings.Join([]string{g.agent, g.folder, g.kind}, "\x00")
			if found[key] == nil {
				found[key] = g
			}
			found[key].acts = append(found[key].acts, act{p, i, n})
		}
	}
	return found
}

// isFrequentEnough reports whether acts are reason enough for a rule.
func isFrequentEnough(acts []act) bool {
	calls, days := map[*examinedCall]bool{}, map[string]bool{}
	for _, a := range acts {
		calls[a.of], days[a.of.At.UTC().Format(time.DateOnly)] = true, true
	}
	return len(calls) >= fewCalls && len(days) >= fewDays
}

// suggested is a suggestion with the acts that it covers.
type suggested struct {
	Suggestion
	set    *Set
	covers []act
}

func (s *suggested) coveredOf(acts []act) (covered []act) {
	for _, a := range acts {
		if a.of.isAllowedBy(s.set, a.i) {
			covered = append(covered, a)
		}
	}
	return covered
}

// suggest returns patterns for the acts of a group, that which covers most first.
func (g *group) suggest(all []*examinedCall) (found []*suggested) {
	past := slices.DeleteFunc(slices.Clone(all), func(p *examinedCall) bool {
		return p.Call.Agent != g.agent || !permissions.Within(g.folder, p.folder()) ||
			!slices.ContainsFunc(p.open, func(i item) bool { return groupKey(i) == g.kind })
	})
	rest := slices.Clone(g.acts)
	tried := map[string]bool{}
	for isFrequentEnough(rest) {
		var best *suggested
		for _, a := range mostFrequent(rest, tried) {
			next := a.suggest(g, past, rest)
			if tried[a.i.text()] = next == nil; next != nil && (best == nil || len(next.covers) > len(best.covers)) {
				best = next
			}
		}
		if best == nil {
			return found
		}
		found = append(found, best)
		rest = slices.DeleteFunc(rest, func(a act) bool { return a.of.isAllowedBy(best.set, a.i) })
		for _, a := range rest {
			if text := a.i.text(); len(best.NotCovered) < maxNot && !slices.Contains(best.NotCovered, text) {
				best.NotCovered = append(best.NotCovered, permissions.Brief(text, maxLine))
			}
		}
	}
	return found
}

// mostFrequent returns the most frequent acts of which the words were not tried, each once, the latest of them.
func mostFrequent(acts []act, tried map[string]bool) (most []act) {
	count, last := map[string]int{}, map[string]act{}
	for _, a := range acts {
		if text := a.i.text(); !tried[text] {
			count[text]++
			last[text] = a
		}
	}
	texts := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), strings.Compare(a, b))
	})
	for _, text := range texts[:min(maxTried, len(texts))] {
		most = append(most, last[text])
	}
	return most
}

// suggest returns what is proposed for an act, if it covers enough of a group's.
func (a act) suggest(g *group, past []*examinedCall, rest []act) *suggested {
	text, says, why := a.of.pattern(a.i, past)
	if why != "" {
		return nil
	}
	next := &suggested{Suggestion: Suggestion{
		Allow: text, Agent: g.agent, In: g.folder, Description: says, NotCovered: []string{}, Patterns: Patterns(text),
	}}
	var err error
	if next.set, err = mustCompile(next.Rule()); err != nil {
		return nil
	}
	if next.covers = next.coveredOf(rest); !isFrequentEnough(next.covers) {
		return nil
	}
	next.In = commonFolder(next.covers)
	if next.set, err = mustCompile(next.Rule()); err != nil {
		return nil
	}
	return next
}

// commonFolder returns the innermost folder that all of these calls are in; empty if one is in none.
func commonFolder(acts []act) string {
	in := acts[0].of.folder()
	for _, a := range acts {
		for folder := a.of.folder(); !permissions.Within(in, folder); in = path.Dir(in) {
			if folder == "" {
				return ""
			}
		}
	}
	return in
}

// rankSuggestions orders suggestions by what each adds to those before it. One act of several is worth its share of a prompt, until nothing
// else is left; a suggestion without which no prompt is saved is left out.
func rankSuggestions(found []*suggested, all []*examinedCall) (ordered []Suggestion) {
	open := map[*examinedCall]map[int]bool{}
	for _, p := range all {
		open[p] = map[int]bool{}
		for n := range p.open {
			open[p][n] = true
		}
	}
	worth := func(s *suggested) (sum float64) {
		for _, a := range s.covers {
			if open[a.of][a.n] {
				sum += 1 / float64(len(open[a.of]))
			}
		}
		return sum
	}
	var order []*suggested
	for len(found) > 0 {
		best := slices.MaxFunc(found, func(a, b *suggested) int { return cmp.Compare(worth(a), worth(b)) })
		found = slices.DeleteFunc(found, func(s *suggested) bool { return s == best })
		if worth(best) == 0 {
			break
		}
		for _, a := range best.covers {
			if delete(open[a.of], a.n); len(open[a.of]) == 0 {
				best.Saved++
			}
		}
		order = append(order, best)
	}
	for _, s := range order {
		last := -1
		for n, a := range s.covers {
			if len(open[a.of]) == 0 && (last < 0 || a.of.At.After(s.covers[last].of.At)) {
				last = n
			}
		}
		if last >= 0 {
			s.Last, s.Of = s.covers[last].of.line(), s.covers[last].of.Request
			ordered = append(ordered, s.Suggestion)
		}
	}
	return ordered
}

// Patterns returns how many patterns a text is without its alternatives: a|b counts as two.
func Patterns(text string) int {
	parts, quoted, err := split(text)
	if err != nil {
		return 1
	}
	n := 1
	for i, part := range parts {
		if !quoted[i] {
			n *= 1 + strings.Count(part, "|")
		}
	}
	return n
}
