package rules

import (
	"slices"
	"strings"
	"testing"

	"github.com/daycared/daycared/permissions/acts"
)

// Appending to a text that parses, after a blank, one of these, or putting an assignment before it, never turns ask into allow. A text
// that does not parse or ends in a backslash is another text with more behind it.
func FuzzAppendingNeverAllows(f *testing.F) {
	all := ownBypasses(f)
	for _, rules := range all.Ask {
		for _, r := range rules {
			for _, c := range r.Commands {
				f.Add(c)
			}
		}
	}
	for _, c := range all.Allow {
		f.Add(c.Command)
	}
	own := Rule{Env: []string{"CI"}, Allow: []string{
		"run git diff --stat", "run git push origin *", "run git commit -m *", "run go test|vet [-v] [-run *] ./...",
		"run npm test", "run x", "write ./**", "run sort ...",
	}}
	s := rulesOf(f, Rule{Use: "builtin:read-only"}, Rule{Use: "builtin:git-local"}, Rule{Use: "builtin:workspace-edits"}, own, side)
	f.Fuzz(func(t *testing.T, text string) {
		if len(acts.ReadCommand(text, shop).Acts) == 0 || strings.HasSuffix(text, "\\") || judged(s, text).Effect == Allow {
			return
		}
		for _, more := range []string{" ; x", " && x", " | x", " & x", " $(x)", " > made", "\nx"} {
			if v := judged(s, text+more); v.Effect == Allow {
				t.Errorf("%q asks, and is allowed with %q behind it", text, more)
			}
		}
		if v := judged(s, "CI=1 "+text); v.Effect == Allow {
			t.Errorf("%q asks, and is allowed with an assignment before it", text)
		}
	})
}

// TestFewWordsOfAKnownProgramAreJudged: whatever is looked for behind a program may not be there.
func TestFewWordsOfAKnownProgramAreJudged(t *testing.T) {
	s := rulesOf(t, Rule{Deny: []string{"read ./a.txt", "fetch evil.org", "write ./docs/**", "run pip install", "run tar -x"}},
		Rule{Use: "builtin:read-only"}, Rule{Use: "builtin:git-local"}, Rule{Use: "builtin:workspace-edits"})
	programs := slices.Concat(runners, writers, texts)
	for _, list := range wordLists {
		programs = slices.Concat(programs, list)
	}
	slices.Sort(programs)
	for _, listed := range slices.Compact(programs) {
		name, _, _ := strings.Cut(listed, ":")
		command := strings.ReplaceAll(name, "_", " ")
		for _, more := range []string{"", " -", " ''", " -m", " docs"} {
			c := Call{Command: command + more, Folder: shop, Root: shop}
			if v := s.Judge(c); len(v.Acts) == 0 && len(v.Reasons) == 0 {
				t.Errorf("%q: nothing is said of it", c.Command)
			}
			NamesToResolve(c, 1000)
		}
		if v := judged(s, command+" a.txt a.txt"); v.Effect == Allow && !slices.Contains(texts, command) {
			t.Errorf("%q is allowed to name a file that is denied", command)
		}
	}
}
