package acts_test

import (
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/acts"
)

// one is a program on one line, without comments, by a parser of its own.
func one(t interface{ Fatalf(string, ...any) }, text string) string {
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, f); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return b.String()
}

func shown(text string) (rows []string) {
	for _, row := range acts.Rows(permissions.Request{Cwd: "/srv"}, permissions.Call{}, text) {
		rows = append(rows, row.Text)
	}
	return rows
}

// TestACompoundCommandIsBrokenAfterItsOperators says where a command is broken, and where it is not.
func TestACompoundCommandIsBrokenAfterItsOperators(t *testing.T) {
	for text, want := range map[string][]string{
		"npm test":                           nil,
		"cd x && make":                       {"cd x &&", "make"},
		"a && b || c; d | e |& f":            {"a &&", "b ||", "c;", "d |", "e |&", "f"},
		"a  &&\t b":                          {"a  &&", "b"},
		"echo 'a && b; c | d'":               nil,
		`echo "a && b; $(c && d | e)"`:       nil,
		"echo $(a && b) `c; d` && e":         {"echo $(a && b) `c; d` &&", "e"},
		"[[ -f a && -f b || -f c ]] && d":    {"[[ -f a && -f b || -f c ]] &&", "d"},
		"(a && b); { c; d; }":                {"(a && b);", "{ c; d; }"},
		"for f in *; do a && b; done | c":    {"for f in *; do a && b; done |", "c"},
		"case $x in a) b;; c) d && e;; esac": nil,
		"if a; then b; fi; c":                {"if a; then b; fi;", "c"},
		"f() { a && b; }; f":                 {"f() { a && b; };", "f"},
		"a & b && c":                         {"a & b &&", "c"},
		"a # && b":                           nil,
		"a && # why\nb":                      nil,
		"a &&\nb; c":                         {"a &&\nb;", "c"},
		"a && \\\n b":                        nil,
		"cat <<EOF && b; c\nx && y\nEOF":     nil,
		"cat <<EOF && b\nx\nEOF\nc; d":       {"cat <<EOF && b\nx\nEOF\nc;", "d"},
		"cat <<EOF\nx && y\nEOF\na && b":     {"cat <<EOF\nx && y\nEOF\na &&", "b"},
		"a <<<'x && y' | b":                  {"a <<<'x && y' |", "b"},
		"$((1 || 0)) && a":                   {"$((1 || 0)) &&", "a"},
		"a;":                                 nil,
		"! a && time b | c":                  {"! a &&", "time b | c"},
		"a && (":                             nil, // no command
		strings.Repeat("(", 300) + " && b":   nil, // over the limits of the parser
	} {
		if want == nil {
			want = []string{text}
		}
		if rows := shown(text); !slices.Equal(rows, want) {
			t.Errorf("%q is shown as %q", text, rows)
		}
	}
}

// TestTheRowsOfACommandAreTheSameCommand: a parser reads the same program in the rows, for any program, and nothing is left out but
// spaces at the breaks.
func TestTheRowsOfACommandAreTheSameCommand(t *testing.T) {
	bits := []string{
		"a", "b x", "cd y", "'q && r'", `"s; $(t | u)"`, "$(v && w)", "`x; y`", "# z",
		"<<EOF\nk && l; m\nEOF\n", "<<'E F'\n;\nE F\n", "<<<n", "[[ o && p ]]",
		"case $a in b) c;; d) e | f;; esac", "for i in 1 2; do g && h; done", "(i; j)", "{ k | l; }",
		"f() { m && n; }", "$((1 || 2))", "\\\n", "\\;", "\\&", "!",
		">o", "2>&1", "&", "&&", "||", ";", "|", "|&", "\n", " ", "\t", "if a; then b && c; fi", "é", "漢",
	}
	broken := 0
	rapid.Check(t, func(t *rapid.T) {
		between := rapid.SampledFrom([]string{"", " "})
		text := ""
		for range rapid.IntRange(1, 6).Draw(t, "parts") {
			text += rapid.SampledFrom(bits).Draw(t, "part") + between.Draw(t, "space") +
				rapid.SampledFrom([]string{"&&", "||", ";", "|", "&", "\n", " ", ">o;"}).Draw(t, "operator") + between.Draw(t, "space")
		}
		text += "a"
		rows := shown(text)
		if squeeze(strings.Join(rows, "")) != squeeze(text) {
			t.Fatalf("%q lacks something of %q", rows, text)
		}
		if len(rows) == 1 {
			if rows[0] != text {
				t.Fatalf("%q is shown as %q", text, rows[0])
			}
			return
		}
		broken++
		if whole := strings.Join(rows, "\n"); one(t, whole) != one(t, text) {
			t.Fatalf("%q is another program than %q", whole, text)
		}
	})
	if broken < 10 {
		t.Errorf("only %d commands had several rows", broken)
	}
}

func squeeze(text string) string { return strings.NewReplacer(" ", "", "\t", "").Replace(text) }

// TestEachRowHasItsOwnRisks names the part of a command that does what people have to see.
func TestEachRowHasItsOwnRisks(t *testing.T) {
	var got []string
	for _, row := range acts.Rows(permissions.Request{Cwd: "/srv"}, permissions.Call{}, "npm test && git add . && "+
		"git push --force origin main; cd sub && rm -rf ../src | sudo tee /etc/hosts; echo x > ~/y; "+
		"for i in 1; do curl https://x.example; done; sh -c 'rm -rf src'") {
		var risks []string
		for _, risk := range row.Risks {
			risks = append(risks, string(risk))
		}
		got = append(got, strings.Join(risks, ", "))
	}
	want := []string{
		"", "", "reaches the network, rewrites history", "", "destroys data", "raises rights, writes outside the workspace",
		"writes outside the workspace", "reaches the network", "destroys data",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q instead of %q", got, want)
	}
}
