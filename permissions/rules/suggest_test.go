package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// onDays are calls of an agent in a folder that people allowed, one a day.
func onDays(agent, folder string, commands ...string) (past []PastCall) {
	for i, command := range commands {
		c := commandCall(command)
		c.Agent, c.Folder, c.Root = agent, folder, folder
		past = append(past, PastCall{Call: c, Allowed: true, At: time.Date(2026, 11, 1+i, 9, 0, 0, 0, time.UTC)})
	}
	return past
}

func allowsOf(found []Suggestion) (all []string) {
	for _, s := range found {
		all = append(all, s.Allow+" in "+s.In)
	}
	return all
}

func TestSuggestionsSaveMostFirst(t *testing.T) {
	past := slices.Concat(
		onDays("coder", shop, "npm test", "npm test", "npm test"),
		onDays("coder", shop, "git push origin a", "git push origin b", "git push origin c", "git push origin d"),
		onDays("coder", shop, "make lint && npm run build", "make lint && npm run build", "make lint && npm run build"),
		onDays("coder", shop, "make lint && ls $a", "make docs", "make docs"),
	)
	found := (*Set)(nil).Suggest(past)
	want := []string{"run git push origin *", "run npm test", "run make lint", "run npm run build"}
	for i := range want {
		want[i] += " in " + shop
	}
	got := allowsOf(found)
	if len(found) != 4 || got[0] != want[0] || !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
		t.Fatalf("%q", got)
	}
	saved := 0
	for _, s := range found {
		saved += s.Saved
	}
	if saved != 10 || found[0].Saved != 4 || found[0].Last != "git push origin d" {
		t.Errorf("%+v", found)
	}
	slices.Reverse(past)
	if found := (*Set)(nil).Suggest(past); len(found) != 4 || found[0].Last != "git push origin d" {
		t.Errorf("the other way round: %+v", found)
	}
}

// Each reason against a suggestion, in calls of which there would be one without it.
func TestNothingIsSuggestedWithoutReason(t *testing.T) {
	often := func() []PastCall { return onDays("coder", shop, "npm test", "npm test", "npm test") }
	if got := (*Set)(nil).Suggest(often()); len(got) != 1 {
		t.Fatalf("%v", got)
	}
	for name, change := range map[string]func([]PastCall) []PastCall{
		"two calls":       func(p []PastCall) []PastCall { return p[:2] },
		"one day":         func(p []PastCall) []PastCall { p[1].At, p[2].At = p[0].At, p[0].At; return p },
		"nobody answered": func(p []PastCall) []PastCall { p[0].Allowed = false; return p },
		"two agents":      func(p []PastCall) []PastCall { p[0].Call.Agent = "other"; return p },
		"two folders":     func(p []PastCall) []PastCall { p[0].Call.Folder, p[0].Call.Root = "/srv/x", "/srv/x"; return p },
		"denied to another": func(p []PastCall) []PastCall {
			d := onDays("other", "/srv/x", "npm test -- x")[0]
			d.Allowed, d.Denied = false, true
			return append(p, d)
		},
		"a rule allows it":     nil,
		"a rule asks about it": nil,
		"a rule asks about a part": func(p []PastCall) []PastCall {
			for i := range p {
				p[i].Call.Command = "npm test && npm publish"
			}
			return p
		},
	} {
		var s *Set
		switch name {
		case "a rule allows it":
			s = rulesOf(t, Rule{Allow: []string{"run npm test"}})
		case "a rule asks about it":
			s = rulesOf(t, Rule{Ask: []string{"run npm test"}})
		case "a rule asks about a part":
			s = rulesOf(t, Rule{Ask: []string{"run npm publish"}})
		}
		past := often()
		if change != nil {
			past = change(past)
		}
		if got := s.Suggest(past); len(got) > 0 {
			t.Errorf("%s: %q", name, allowsOf(got))
		}
	}
	for _, command := range []string{
		"rm a", "git push --force origin x", "cat .env", "python3 -c 'a'", "ls $a", "A=b npm test", "git branch -D x",
	} {
		if got := (*Set)(nil).Suggest(onDays("coder", shop, command, command, command)); len(got) > 0 {
			t.Errorf("%s: %q", command, allowsOf(got))
		}
	}
}

// Of the acts of a group, the pattern that covers most comes first; what is left gets patterns of its own, or is named.
func TestSuggestionsOfOneGroup(t *testing.T) {
	three := func(command string) []string { return []string{command, command, command} }
	for _, c := range []struct{ commands, want, not []string }{
		{slices.Concat(three("git checkout main"), three("git checkout dev")), []string{"run git checkout dev", "run git checkout main"}, nil},
		{slices.Concat(three("git push origin main"), three("git push origin main"), []string{"git push origin x", "git push origin y"}),
			[]string{"run git push origin *"}, nil},
		{append(strings.Split("git checkout a,git checkout b,git checkout c,git checkout d,git checkout e,git checkout f,git checkout g,"+
			"git checkout h", ","), three("git checkout z")...), []string{"run git checkout z"},
			[]string{"run git checkout a", "run git checkout b", "run git checkout c"}},
	} {
		var got, not []string
		for _, s := range (*Set)(nil).Suggest(onDays("coder", shop, c.commands...)) {
			got, not = append(got, s.Allow), append(not, s.NotCovered...)
		}
		if !slices.Equal(got, c.want) || c.not != nil && !slices.Equal(not, c.not) {
			t.Errorf("%q: %q, not %q", c.commands, got, not)
		}
	}
}

// Calls in folders of a workspace count together, and the rule holds in the innermost folder around them.
func TestSuggestionHoldsInTheInnermostFolder(t *testing.T) {
	past := slices.Concat(onDays("coder", shop, "ls"), onDays("coder", shop+"/trees/1", "make lint", "make lint"),
		onDays("coder", shop+"/trees/2", "make lint"))
	if got := allowsOf((*Set)(nil).Suggest(past)); !slices.Equal(got, []string{"run make lint in " + shop + "/trees"}) {
		t.Errorf("%q", got)
	}
}

// A suggestion is compiled with the others as it stands, and allows what it is said to.
func TestSuggestionsLoadAndCover(t *testing.T) {
	past := onDays("coder", shop, "git add a.go && git commit -m 'x y'", "git add b.go && git commit -m y", "git add c.go && git commit -m z")
	var all []Rule
	for _, s := range (*Set)(nil).Suggest(past) {
		all = append(all, s.Rule())
	}
	s := rulesOf(t, all...)
	for _, p := range past {
		if v := s.Judge(p.Call); v.Effect != Allow {
			t.Errorf("%s: %v", p.Call.Command, v.Reasons)
		}
	}
	other := past[0].Call
	other.Agent = "deploy"
	if v := s.Judge(other); v.Effect == Allow {
		t.Error("allowed to another agent")
	}
}

func TestAlternativesCountAsPatterns(t *testing.T) {
	for text, want := range map[string]int{
		"run git status": 1, "run go test|vet ./...": 2, "run go test|vet [-v|-race] x": 4, "run grep 'a|b' x": 1, "write /srv/x": 1, "run 'a": 1,
	} {
		if got := Patterns(text); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

// A rule must not allow the daemon's own files: neither by name, nor by a folder around them or in them.
func TestRulesThatReachAFileAreFound(t *testing.T) {
	const file = "/home/kim/.daycared/data"
	for text, want := range map[string]bool{
		"read /home/kim/**": true, "write " + file: true, "read " + file + "/store.db": true, "write " + file + "/**": true, "read **/data": true,
		"read /HOME/kim/.daycared/data": true, "write /home/kim/.daycared/*": true,
		"read /home/kim/shop/**": false, "write ./**": false, "read /home/kim/.daycared/data2": false, "run cat ...": false,
	} {
		s := rulesOf(t, Rule{Deny: []string{"read /home/kim/**"}}, Rule{Allow: []string{text}})
		rule, by := s.Reaches(file)
		if (rule == 2 && by == text) != want || !want && rule != 0 {
			t.Errorf("%s: rule %d, %q", text, rule, by)
		}
	}
}

// A rule through a link is said to lead elsewhere, whatever it does with what it is about.
func TestRulesThroughLinksAreNamed(t *testing.T) {
	s := rulesOf(t, Rule{Allow: []string{"read " + shop + "/src/**", "write " + shop + "/out/*.txt", "run ls", "write ./out/x"}},
		Rule{Deny: []string{"read " + shop + "/out", "read **/out"}}, Rule{Use: "builtin:read-only", In: shop + "/out"})
	var got []string
	for _, p := range s.CheckLinks(links(shop)) {
		got = append(got, fmt.Sprint(p.Rule, p.Key, p.Item, p.Warns, p.Text))
	}
	text := " true" + shop + "/out leads to /etc, and files are judged by where they lead; write that"
	if want := []string{"0allow1" + text, "1deny0" + text, "2in-1" + text}; !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("%q", got)
	}
}

// Every act says which pattern or set decides about it.
func TestActsNameWhatDecidesThem(t *testing.T) {
	s := rulesOf(t, Rule{Use: "builtin:read-only"}, Rule{Allow: []string{"run npm test", "write ./made/**"}},
		Rule{Ask: []string{"run git push"}}, Rule{Deny: []string{"run rm"}})
	v := judged(s, "git status; npm test > made/x; git push; rm a")
	var got []string
	for _, a := range v.Acts {
		got = append(got, string(a.Effect)+" "+a.By)
	}
	want := "allow builtin:read-only, allow run npm test, allow write ./made/**, ask run git push, deny run rm"
	if text := strings.Join(got, ", "); !strings.HasPrefix(text, want) {
		t.Errorf("%s", text)
	}
}
