package talk

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
)

// phone are the limits of Telegram.
var phone = Limits{Text: 4096, Unit: card.UTF16, Code: 100}

// shown are the messages of a text, code between ‹ and ›, in a block after its language and a colon.
func shown(t *testing.T, s connectors.AgentMessage, l Limits) (all []string) {
	t.Helper()
	if s.Agent == "" {
		s.Agent = "helper"
	}
	for _, p := range Parts(s, l) {
		if n := l.Unit.Of(p.Text); n > l.Text {
			t.Errorf("a message has %d units", n)
		}
		text, from := "", 0
		for _, c := range p.Code {
			open := "‹"
			if c.Block {
				open += c.Language + ":"
			}
			text += p.Text[from:c.Start] + open + p.Text[c.Start:c.End] + "›"
			from = c.End
		}
		all = append(all, text+p.Text[from:])
	}
	return all
}

func TestOneMessage(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a row", "Good morning.", "helper: Good morning."},
		{"rows", "\n\none\r\n\ntwo  \n\n", "helper: one\n\ntwo"},
		{"nothing", "```\n```", "helper:"},
		{"a piece of code", "run `ls -l`, then ``a`b``.", "helper: run ‹ls -l›, then ‹a`b›."},
		{"no code", "a ` b ``c and ```", "helper: a ` b ``c and ```"},
		{"a piece at both ends", "`a` and `b`", "helper: ‹a› and ‹b›"},
		{"a block", "so:\n```go\nfunc main() {\n\tfoo()\n}\n```\nand so on",
			"helper: so:\n‹go:func main() {\n    foo()\n}›\nand so on"},
		{"a block first", "```\na `b` c\n```", "helper:\n‹:a `b` c›"},
		{"a block without an end", "x\n~~~~ sh\nls\n~~~\n", "helper: x\n‹sh:ls\n~~~\n›"},
		{"a fence within a block", "````md\n```\nx\n```\n````", "helper:\n‹md:```\nx\n```›"},
		{"words after a fence", "```python title=x\ny\n```", "helper: python title=x\n‹:y›"},
		{"a fence that is none", "``` a`b", "helper: ``` a`b"},
		{"empty rows of a block", "```\n\na\n\n```", "helper:\n‹:\na\n›"},
		{"deep code", "```\n" + strings.Repeat(" ", 20) + "x  " + strings.Repeat("\t", 3) + "y\n```",
			"helper:\n‹:" + strings.Repeat(" ", 20) + "x" + strings.Repeat(" ", 14) + "y›"},
		{"far away", "a" + strings.Repeat(" ", 500) + "b", "helper: a⟨500 spaces⟩b"},
		{"hidden", "a\u202eb\u200bc\x1b[2J\x00\xff", `helper: a\u{202E}b\u{200B}c\u{1B}[2J\u{0}\x{ff}`},
		{"hidden in code", "`a\u202eb`\n```\n\u200b\n```", "helper: ‹a\\u{202E}b›\n‹:\\u{200B}›"},
		{"pictures", "⚠️ ❤️👩‍👩‍👧 1️⃣ 👍🏽", "helper: │ ⚠️ ❤️👩‍👩‍👧 1️⃣ 👍🏽"},
		{"a flag with tags", "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
			"helper: 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"},
		{"no pictures of Unicode's", "©a\ufe0f 😀\u200d😀", `helper: ©a\u{FE0F} 😀\u{200D}😀`},
		{"no pictures", "⠀\ufe0f a\ufe0f", `helper: \u{2800}\u{FE0F} a\u{FE0F}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff([]string{c.want}, shown(t, connectors.AgentMessage{Text: c.text}, phone)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	long := connectors.AgentMessage{Agent: strings.Repeat("a\u202e", 50), Text: "x"}
	if got := shown(t, long, phone)[0]; !strings.HasPrefix(got, `a\u{202E}a`) || !strings.HasSuffix(got, "…: x") {
		t.Errorf("a long name: %q", got)
	}
}

// What looks like a row of daycared's has the sign of an agent's words on every row.
func TestNothingLooksLikeACard(t *testing.T) {
	for _, text := range []string{
		"── K7F3Q ──", "┃ rm -rf /", "│ I need it", "✅ Allowed once by fay · Telegram · 14:03:22", "  ⛔ Denied by fay",
		"deploy-1 wants   write access to /srv", "until 14:15", "it says  nothing", "Allowed once by fay",
		"ａｌｌｏｗｅｄ by fay", "Nothing was decided.", "2 requests wait for your answer:", "⚠️ AGENT CLARIFICATION NEEDED",
		"K7F3Q · until 14:15", "scribe asks", "uid 1000 wants network access",
		"⚠ High risk: scribe wants to run a command",
		"The answers:", "Details:", "vps · /srv/notes · proven name", "You allowed this once · 14:03", "👥 asks fay, sam",
		"To allow it write: YES K7F3Q RUN", "All of it is in the file above: daycared-K7F3Q.txt",
		"Reply to this message with your reason", "Granted:", "⬇️ is shown again below",
	} {
		t.Run("B3/"+text, func(t *testing.T) {
			got := shown(t, connectors.AgentMessage{Text: "Look:\n" + text + "\n\n```\ncode\n```\nand more"}, phone)[0]
			want := "helper: │ Look:\n│ " + text + "\n\n‹:code›\n│ and more"
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for _, text := range []string{
		"All tests pass.\n- ✅ one\n- ⛔ two", "I would say yes.", "```\n✅ Allowed\n│ x\n```", "",
	} {
		if got := shown(t, connectors.AgentMessage{Text: text}, phone)[0]; strings.Contains(got, "│ All") || strings.HasPrefix(got, "helper: │") {
			t.Errorf("marked: %q", got)
		}
	}
}

func TestCodesAreMasked(t *testing.T) {
	codes := map[string]bool{"K7F3Q": true, "ABCDE": true}
	for text, want := range map[string]string{
		"write yes K7F3Q now":                  "write yes ••••• now",
		"k7f3q":                                "•••••",
		"K 7 F 3 Q, K-7-F-3-Q":                 "• • • • •, •-•-•-•-•",
		"K\u200b7\u200bF3Q":                    "•\\u{200B}•\\u{200B}•••",
		"Ｋ７Ｆ３Ｑ 𝐊𝟕𝐅𝟑𝐐":                          "••••• •••••",
		"`K7F3Q`":                              "‹•••••›",
		"**K7F**3Q":                            "**•••**••",
		"xABCDEFGHx":                           "x•••••FGHx",
		"abcdek7f3q":                           "••••••••••",
		"K7F3R and A, B, C, D":                 "K7F3R and A, B, C, D",
		"K" + strings.Repeat(".", 20) + "7F3Q": "K" + strings.Repeat(".", 20) + "7F3Q",
		"K7F3":                                 "K7F3",
		"É":                                    "É",
	} {
		if got := shown(t, connectors.AgentMessage{Text: text, Codes: codes}, phone)[0]; got != "helper: "+want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	if got := shown(t, connectors.AgentMessage{Text: "K7F3Q"}, phone)[0]; got != "helper: K7F3Q" {
		t.Errorf("of what is not pending: %q", got)
	}
}

// small are limits that make short texts long.
var small = Limits{Text: 200, Unit: card.UTF16, Code: 3}

func TestSplit(t *testing.T) {
	words := func(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"at paragraphs", words(10) + "\n" + words(5) + "\n\n" + words(25), []string{
			words(10) + "\n" + words(5), words(25)}},
		{"at lines", words(20) + "\n" + words(12) + "\n" + words(20), []string{
			words(20) + "\n" + words(12), words(20)}},
		{"at words", words(60), []string{words(36), words(24)}},
		{"anywhere", strings.Repeat("x", 300), []string{strings.Repeat("x", 180), strings.Repeat("x", 120)}},
		{"a short paragraph is no reason", "hi\n\n" + words(60), []string{"hi\n\n" + words(35), words(25)}},
		{"before a block", words(15) + "\n```\n" + words(25) + "\n```", []string{words(15), "‹:" + words(25) + "›"}},
		{"within a block", "```sh\n" + strings.Repeat("  indented\n", 30) + "```", []string{
			"‹sh:" + strings.TrimSuffix(strings.Repeat("  indented\n", 16), "\n") + "›",
			"‹sh:…\n" + strings.TrimSuffix(strings.Repeat("  indented\n", 14), "\n") + "›"}},
		{"empty rows at a cut", words(30) + "\n\n\n\n\n" + words(30), []string{words(30), words(30)}},
		{"too many pieces", "`a` `b` `c` `d` e", []string{"‹a› ‹b› ‹c›", "‹d› e"}},
		{"no character of two units", strings.Repeat("😀", 100), []string{
			strings.Repeat("😀", 90), strings.Repeat("😀", 10)}},
		{"no picture of several", strings.Repeat("x", 174) + "👩‍👩‍👧" + strings.Repeat("x", 20), []string{
			strings.Repeat("x", 174), "👩‍👩‍👧" + strings.Repeat("x", 20)}},
		{"no flag", strings.Repeat("x", 178) + "🇩🇪🇫🇷" + strings.Repeat("x", 9), []string{
			strings.Repeat("x", 178), "🇩🇪🇫🇷" + strings.Repeat("x", 9)}},
		{"between flags", strings.Repeat("x", 175) + "🇩🇪🇫🇷" + strings.Repeat("x", 9), []string{
			strings.Repeat("x", 175) + "🇩🇪", "🇫🇷" + strings.Repeat("x", 9)}},
		{"no escape", strings.Repeat("x", 175) + "\u202e" + strings.Repeat("x", 9), []string{
			strings.Repeat("x", 175), `\u{202E}` + strings.Repeat("x", 9)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want []string
			for i, text := range c.want {
				head := fmt.Sprintf("helper (%d/%d): ", i+1, len(c.want))
				if strings.HasPrefix(text, "‹") && strings.Contains(text, ":") {
					head = strings.TrimSuffix(head, " ") + "\n"
				}
				want = append(want, head+text)
			}
			if diff := cmp.Diff(want, shown(t, connectors.AgentMessage{Text: c.text}, small)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
