// Package rules decides by what a call does whether it is allowed, asked about or denied: which commands it runs with which words, which
// files it reads and writes, which hosts it reaches and which tools it calls. Package acts reads the call; what it cannot read completely
// is never allowed, but deny and ask rules still see what was found in it.
//
// The language is described in docs/rules.md. A [Set] is immutable and safe for concurrent use; it reads no file itself.
package rules

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/acts"
)

// Effect is what a rule does with the calls that it fits.
type Effect string

// The effects, the strongest first.
const (
	Deny  Effect = "deny"
	Ask   Effect = "ask"
	Allow Effect = "allow"
)

// Rule is one rule as it is written. It has one of Allow, Ask, Deny and Use.
type Rule struct {
	Allow, Ask, Deny []string
	Use              string   // the name of a starter set, see [Sets]
	Agents           []string // patterns of proven names; empty: every caller
	People           []string // the owners of agents; empty: whoever owns it
	In               string   // the folder that the call is in; empty: any
	Env              []string // variables that a command may set
	Until            time.Time
	Why              string
	Fits, Not        []string // commands that it covers and does not, checked by [Compile]
}

// Set is a list of rules, indexed by program.
type Set struct {
	rules    []*compiled
	programs map[Effect]map[string][]*pattern          // of patterns that run
	others   map[Effect]map[kind][]*pattern            // of hosts and tools
	paths    map[Effect]map[kind]map[string][]*pattern // of files, by a part that their names have; empty: by none
	guarding []*pattern                                // of files, of deny and ask rules
}

func newSet() *Set {
	s := &Set{
		programs: map[Effect]map[string][]*pattern{},
		others:   map[Effect]map[kind][]*pattern{},
		paths:    map[Effect]map[kind]map[string][]*pattern{},
	}
	for _, e := range []Effect{Deny, Ask, Allow} {
		s.programs[e], s.others[e] = map[string][]*pattern{}, map[kind][]*pattern{}
		s.paths[e] = map[kind]map[string][]*pattern{reads: {}, writes: {}}
	}
	return s
}

// compiled is a rule that was checked.
type compiled struct {
	Rule
	n        int // counted from 1
	effect   Effect
	patterns []*pattern
	set      *starter
}

// Problem is what is wrong with a rule. Rule is its index, and Key the member: allow, ask, deny, use, env, fits or not.
type Problem struct {
	Rule  int
	Key   string
	Item  int // the index in the member's list; -1: the member itself
	Text  string
	Warns bool // it is allowed, but hardly intended
}

func (p Problem) Error() string { return fmt.Sprintf("rule %d: %s", p.Rule+1, p.Text) }

// Compile checks rules and indexes them. A set with problems other than warnings must not be used.
func Compile(all []Rule) (*Set, []Problem) {
	s := newSet()
	var found []Problem
	for i, r := range all {
		c := &compiled{Rule: r, n: i + 1}
		found = append(found, c.compile(i)...)
		s.rules = append(s.rules, c)
		for _, p := range c.patterns {
			s.index(p)
		}
	}
	return s, append(found, s.warnCovered()...)
}

// FirstError returns the first problem that is no warning, nil if there is none.
func FirstError(found []Problem) error {
	for _, p := range found {
		if !p.Warns {
			return p
		}
	}
	return nil
}

func (s *Set) index(p *pattern) {
	e := p.rule.effect
	switch p.kind {
	case reads, writes:
		key := p.path.key()
		if s.paths[e][p.kind][key] = append(s.paths[e][p.kind][key], p); e != Allow {
			s.guarding = append(s.guarding, p)
		}
		return
	case fetches, tools:
		s.others[e][p.kind] = append(s.others[e][p.kind], p)
		return
	}
	for _, name := range p.starts {
		s.programs[e][name] = append(s.programs[e][name], p)
	}
}

// files returns the patterns of a kind that may be about a file of these names, in the order of their rules.
func (s *Set) files(e Effect, k kind, names []string) []*pattern {
	by := s.paths[e][k]
	if len(by) == 0 {
		return nil
	}
	all := slices.Clone(by[""])
	seen := map[string]bool{"": true}
	for _, name := range names {
		for part := range strings.SplitSeq(strings.ToLower(name), "/") {
			if !seen[part] {
				all, seen[part] = append(all, by[part]...), true
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *pattern) int { return a.rule.n - b.rule.n })
	return all
}

// Len returns how many rules there are.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.rules)
}

// complaint notes a problem with an item of a rule's member.
type complaint func(key string, item int, format string, args ...any)

func (c *compiled) compile(at int) (found []Problem) {
	bad := func(key string, item int, format string, args ...any) {
		found = append(found, Problem{Rule: at, Key: key, Item: item, Text: fmt.Sprintf(format, args...)})
	}
	given := c.parseOwn(bad)
	if c.Use != "" {
		given++
		c.parseUsed(bad)
	}
	if given != 1 {
		bad("", -1, "a rule allows, asks, denies or uses a starter set; write one of allow, ask, deny and use")
	}
	c.checkConditions(bad)
	if len(found) == 0 {
		found = append(found, c.checkExamples(at)...)
	}
	return found
}

// parseOwn reads the patterns that a rule writes itself, and returns how many effects they have.
func (c *compiled) parseOwn(bad complaint) (given int) {
	for _, of := range []struct {
		effect Effect
		texts  []string
	}{{Deny, c.Deny}, {Ask, c.Ask}, {Allow, c.Allow}} {
		if len(of.texts) == 0 {
			continue
		}
		given++
		c.effect = of.effect
		for i, text := range of.texts {
			if err := c.add(text); err != nil {
				bad(string(of.effect), i, "%v", err)
			}
		}
	}
	return given
}

// parseUsed reads the patterns of the starter set that a rule uses.
func (c *compiled) parseUsed(bad complaint) {
	c.effect = Allow
	set, known := starters[c.Use]
	if !known {
		bad("use", -1, "there is no starter set %q; there are %s", c.Use, strings.Join(Sets(), ", "))
		return
	}
	c.set = &set
	for _, text := range set.rules {
		if err := c.add(text); err != nil {
			bad("use", -1, "%v", err)
		}
	}
}

// add reads a pattern of the rule's effect.
func (c *compiled) add(text string) error {
	p, err := parse(text, c.effect)
	if err != nil {
		return err
	}
	p.rule = c
	c.patterns = append(c.patterns, p)
	return nil
}

// checkConditions checks where, for whom and with which variables a rule holds.
func (c *compiled) checkConditions(bad complaint) {
	if c.In != "" && (!filepath.IsAbs(c.In) || filepath.Clean(c.In) != c.In) {
		bad("in", -1, "%q is no clean, absolute folder; write it as in /srv/code", c.In)
	}
	for i, name := range c.Agents {
		if _, err := path.Match(name, ""); name == "" || err != nil {
			bad("agents", i, "%q is no pattern of names", name)
		}
	}
	for i, name := range c.Env {
		switch {
		case name == "" || name[0] >= '0' && name[0] <= '9' ||
			strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789") != "":
			bad("env", i, "%q is no name of a variable", name)
		case decidesPrograms(name):
			bad("env", i, "%s decides what programs run, so no rule lets a command set it; leave it out", name)
		case c.effect != Allow:
			bad("env", i, "a rule that does not allow holds whatever variables are set; leave env out")
		}
	}
}

// checkExamples checks what fits and what does not, in a workspace without links.
func (c *compiled) checkExamples(at int) (found []Problem) {
	alone := newSet()
	alone.rules = []*compiled{c}
	for _, p := range c.patterns {
		alone.index(p)
	}
	agent, person := "", ""
	if len(c.Agents) > 0 {
		agent = strings.ReplaceAll(c.Agents[0], "*", "x")
	}
	if len(c.People) > 0 {
		person = c.People[0]
	}
	for _, of := range []struct {
		key   string
		texts []string
		want  bool
	}{{"fits", c.Fits, true}, {"not", c.Not, false}} {
		for i, text := range of.texts {
			folder := cmp.Or(c.In, "/workspace")
			v := alone.Judge(Call{
				Agent: agent, Person: person, Command: text, Folder: folder, Root: folder, Resolve: filepath.Clean, now: c.Until.Add(-1),
			})
			if (v.Effect == c.effect) == of.want {
				continue
			}
			problem := Problem{Rule: at, Key: of.key, Item: i, Text: fmt.Sprintf("%q is covered, and must not be", text)}
			if of.want {
				problem.Text = fmt.Sprintf("%q is not covered: %s", text, cmp.Or(strings.Join(v.Reasons, "; "), "no pattern fits"))
			}
			found = append(found, problem)
		}
	}
	return found
}

// Reaches returns the first allow pattern that covers a file, or a folder around or in it, and its rule; 0: none does.
func (s *Set) Reaches(file string) (rule int, text string) {
	for _, k := range []kind{reads, writes} {
		for _, p := range slices.Concat(slices.Collect(maps.Values(s.paths[Allow][k]))...) {
			if !p.path.here && (p.path.fits(file, "", true) || permissions.Within(file, p.path.prefix)) {
				return p.rule.n, p.text
			}
		}
	}
	return 0, ""
}

// CheckLinks warns of patterns whose folder, or whose rule's folder, leads elsewhere on this machine: names are judged by where they lead,
// so such an allow rule never holds, and another one only for what is named in that way.
func (s *Set) CheckLinks(resolve func(name string) string) (found []Problem) {
	warn := func(r *compiled, key string, item int, name string) {
		if to := resolve(name); to != name {
			found = append(found, Problem{Rule: r.n - 1, Key: key, Item: item, Warns: true,
				Text: fmt.Sprintf("%s leads to %s, and files are judged by where they lead; write that", name, to)})
		}
	}
	for _, r := range s.rules {
		if r.In != "" {
			warn(r, "in", -1, r.In)
		}
		for i, p := range r.patterns {
			if (p.kind == reads || p.kind == writes) && !p.path.here && r.set == nil {
				warn(r, string(r.effect), i, p.path.prefix)
			}
		}
	}
	return found
}

// warnCovered warns of allow patterns that a deny pattern covers wholly.
func (s *Set) warnCovered() (found []Problem) {
	const wild = "\u2026"
	for _, r := range s.rules {
		if r.effect != Allow || r.set != nil {
			continue
		}
		for i, p := range r.patterns {
			for _, by := range s.rules {
				if by.effect == Deny && (len(by.Agents)+len(by.People) == 0) && (by.In == "" || by.In == r.In) && by.Until.IsZero() &&
					slices.ContainsFunc(by.patterns, func(d *pattern) bool { return d.coversAll(p, wild) }) {
					found = append(found, Problem{Rule: r.n - 1, Key: string(Allow), Item: i, Warns: true,
						Text: fmt.Sprintf("%q never holds, because rule %d denies all of it", p.text, by.n)})
				}
			}
		}
	}
	return found
}

// coversAll reports whether a deny pattern catches everything that an allow pattern covers. wild stands for a wildcard.
func (p *pattern) coversAll(of *pattern, wild string) bool {
	switch {
	case p.kind == runs && of.kind == runs:
		var words []string
		for _, w := range of.words {
			if len(w) > 1 {
				return false
			}
			words = append(words, w[0].before+w[0].after)
		}
		return p.catches(words)
	case p.kind == reads && (of.kind == reads || of.kind == writes), p.kind == writes && of.kind == writes:
		name := "/" + strings.Join(of.path.parts, "/")
		name = strings.ReplaceAll(strings.ReplaceAll(name, "**", wild+"/"+wild), "*", wild)
		return of.path.here == p.path.here && p.path.fits(name, "/", false)
	case p.kind != of.kind:
		return false
	case p.kind == fetches:
		return p.fitsHost(strings.ReplaceAll(of.name, "*", wild))
	}
	return p.fitsTool("", strings.ReplaceAll(of.name, "*", wild), Deny)
}

// Lines returns the patterns of one effect with their conditions, as the configuration has them, so that two sets can be compared.
func (s *Set) Lines(e Effect) (all []string) {
	if s == nil {
		return nil
	}
	for _, r := range s.rules {
		if r.effect != e {
			continue
		}
		terms := ""
		if r.In != "" {
			terms = ", in: " + r.In
		}
		if !r.Until.IsZero() {
			terms += ", until: " + r.Until.Add(-1).Format(time.DateOnly) // its end
		}
		for i, names := range [][]string{r.Agents, r.People, r.Env} {
			if len(names) > 0 {
				terms += ", " + []string{"agents", "people", "env"}[i] + ": [" + strings.Join(names, ", ") + "]"
			}
		}
		for _, text := range slices.Concat(r.Allow, r.Ask, r.Deny, []string{r.Use}) {
			if text != "" {
				all = append(all, text+terms)
			}
		}
	}
	return all
}

// Texts returns the patterns of the rules, without those of starter sets.
func (s *Set) Texts() (all []string) {
	if s == nil {
		return nil
	}
	for _, r := range s.rules {
		all = append(all, slices.Concat(r.Allow, r.Ask, r.Deny)...)
	}
	return all
}

// starter is a set of rules that daycared brings along.
type starter struct {
	rules  []string
	runs   func(acts.Workspace, acts.Act) bool
	reads  func(acts.Workspace, string) bool
	writes func(acts.Workspace, string) bool
}

// starters are the sets that a rule can use. What they allow is in the tables of package acts.
var starters = map[string]starter{
	"builtin:read-only": {
		rules: []string{
			"run git stash list", "run git version", "run java -version", "run node|npm|ruby -v", "run python|python3 -V",
			// not of what a file of the workspace may choose the program for, as cargo, rustc, go, pnpm and yarn
			"run node|npm|python|python3|pip|pip3|ruby|perl|git|java|gcc|g++|clang|make|cmake|docker|gh|jq|rg|uv --version",
		},
		runs:  acts.Workspace.OnlyReads,
		reads: acts.Workspace.Reads,
	},
	"builtin:git-local": {rules: []string{
		"run git add [-A] [-u] [-v] [-N] [--all] [--update] ...",
		"run git commit -m * [-a] [-s] [-q] [-v] [-m *] [--signoff] [--all]", "run git commit -am *",
		"run git switch [-c] *", "run git checkout -b *", "run git branch *",
		"run git stash", "run git stash push", "run git stash pop", "run git stash list",
		"run git restore --staged ...", "run git reset", "run git tag *",
	}},
	"builtin:workspace-edits": {writes: acts.Workspace.Writes},
}

// Sets returns the names of the starter sets, the narrowest first.
func Sets() []string {
	return []string{"builtin:read-only", "builtin:git-local", "builtin:workspace-edits"}
}
