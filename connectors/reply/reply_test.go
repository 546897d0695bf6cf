package reply_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/connectors/reply/replytest"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

const code = "K7F3Q"

var offered = replytest.Offered

var (
	permission = offered(permissions.KindPermission, nil)
	tool       = offered(permissions.KindTool, nil)
	stranger   = offered(permissions.KindTool, func(r *permissions.Request) {
		r.Session, r.Widest = "", permissions.Once
	})
	risky = offered(permissions.KindTool, func(r *permissions.Request) { r.HighRisk = true })
	step  = offered(permissions.KindTool, func(r *permissions.Request) {
		r.Tool, r.Calls = "", []permissions.Call{{N: 1, Tool: "a"}, {N: 2, Tool: "b"}}
	})
	resume  = offered(permissions.KindPause, func(r *permissions.Request) { r.Mode = permissions.ModeContinue })
	confirm = offered(permissions.KindPause, func(r *permissions.Request) { r.Mode = permissions.ModeConfirm })
	choices = offered(permissions.KindClarification, func(r *permissions.Request) {
		r.Choices = []string{"blog", "mail to all", "3", "nowhere", "?", "y"}
	})
)

// Options that begin like words of one's own.
var (
	others = offered(permissions.KindClarification, func(r *permissions.Request) {
		r.Choices = []string{"other", "o brother"}
	})
	colons = offered(permissions.KindClarification, func(r *permissions.Request) {
		r.Choices = []string{"Other: later", "o"}
	})
	glued = offered(permissions.KindClarification, func(r *permissions.Request) {
		r.Choices = []string{"orange", "other:later"}
	})
	letter = offered(permissions.KindClarification, func(r *permissions.Request) { r.Choices = []string{"x", "o"} })
)

var (
	allow  = permissions.Allow
	once   = permissions.Allow(permissions.Once)
	deny   = permissions.Deny
	choose = permissions.Choose
)

func decides(a permissions.Answer) reply.Reply {
	return reply.Reply{Meaning: reply.Decides, Answer: a}
}

func because(call int, comment string) reply.Reply {
	return reply.Reply{Meaning: reply.Decides, Answer: deny, Call: call, Comment: comment}
}

func own(words string) reply.Reply {
	return reply.Reply{Meaning: reply.Decides, Answer: permissions.Other, Comment: words}
}

func call(a permissions.Answer, n int) reply.Reply {
	return reply.Reply{Meaning: reply.Decides, Answer: a, Call: n}
}

func really(a permissions.Answer) reply.Reply {
	return reply.Reply{Meaning: reply.Decides, Answer: a, Really: true}
}

func TestParseAnswers(t *testing.T) {
	for _, c := range []struct {
		line string
		r    permissions.Request
		want reply.Reply
	}{
		{"y", permission, decides(once)},
		{"  YES \t", permission, decides(once)},
		{"Allow", tool, decides(once)},
		{"approve", confirm, decides(once)},
		{"yes once", tool, decides(once)},
		{"yes k7f3q", tool, decides(once)},
		{"y session", permission, decides(allow(permissions.Session))},
		{"YES 15M", permission, decides(allow(permissions.For(15 * time.Minute)))},
		{"yes 900s", permission, decides(allow(permissions.For(15 * time.Minute)))},
		{"yes session_tool", tool, decides(allow(permissions.SessionTool))},
		{"yes session", tool, decides(allow(permissions.Session))},
		{"yes always K7F3Q", permission, decides(allow(permissions.Always))},
		{"a", permission, decides(allow(permissions.Session))},
		{"T", tool, decides(allow(permissions.SessionTool))},
		{"A", tool, decides(allow(permissions.Session))},
		{"n", tool, decides(deny)},
		{"No", permission, decides(deny)},
		{"deny K7F3Q", permission, decides(deny)},
		{"n because you would delete old/", tool, because(0, "you would delete old/")},
		{"no K7F3Q BECAUSE not now", tool, because(0, "not now")},
		{"r keep old/", tool, because(0, "keep old/")},
		{"R   Don't do it, OK?", tool, because(0, "Don't do it, OK?")},
		{"r #2 is my street", tool, because(0, "#2 is my street")},
		{"r", tool, reply.Reply{Meaning: reply.Reason, Answer: deny}},
		{"n because", tool, reply.Reply{Meaning: reply.Reason, Answer: deny}},
		{"y #2", step, call(once, 2)},
		{"y #2 15m", step, call(allow(permissions.For(15*time.Minute)), 2)},
		{"y 15m #2", step, call(allow(permissions.For(15*time.Minute)), 2)},
		{"t #1", step, call(allow(permissions.SessionTool), 1)},
		{"a #1", step, call(allow(permissions.Session), 1)},
		{"n #2", step, call(deny, 2)},
		{"n #2 because why", step, because(2, "why")},
		{"n #2 because", step, reply.Reply{Meaning: reply.Reason, Answer: deny, Call: 2}},
		{"r #1 why", step, because(1, "why")},
		{"r #1", step, reply.Reply{Meaning: reply.Reason, Answer: deny, Call: 1}},
		{"y", step, decides(once)},
		{"yes K7F3Q", risky, really(once)},
		{"y k7f3q", risky, really(once)},
		{"t K7F3Q", risky, really(allow(permissions.SessionTool))},
		{"yes K7F3Q 15m", risky, really(allow(permissions.For(15 * time.Minute)))},
		{"yes 15m K7F3Q", risky, really(allow(permissions.For(15 * time.Minute)))},
		{"n", risky, decides(deny)},
		{"r no", risky, because(0, "no")},
		{"", resume, decides(permissions.Continue)},
		{"   ", resume, decides(permissions.Continue)},
		{"continue", resume, decides(permissions.Continue)},
		{"i", resume, decides(permissions.Interrupt)},
		{"ESC", resume, decides(permissions.Interrupt)},
		{reply.Esc, resume, decides(permissions.Interrupt)},
		{"s", permission, reply.Reply{Meaning: reply.Shows}},
		{"Show", risky, reply.Reply{Meaning: reply.Shows}},
		{"s", choices, reply.Reply{Meaning: reply.Shows}},
		{reply.Esc, confirm, decides(permissions.Interrupt)},
		{"i", confirm, decides(permissions.Interrupt)},
		{"y", confirm, decides(once)},
		{"r too early", confirm, because(0, "too early")},
		{"1", choices, decides(choose(1))},
		{" mail to all ", choices, decides(choose(2))},
		{"3", choices, decides(choose(3))},
		{"nowhere", choices, decides(choose(4))},
		{"?", choices, decides(choose(5))},
		{"y", choices, decides(choose(6))},
		{"o look at staging first", choices, own("look at staging first")},
		{"O  2", choices, own("2")},
		{"other: blog, then mail", choices, own("blog, then mail")},
		{"Other:neither", choices, own("neither")},
		{"o", choices, reply.Reply{Meaning: reply.Reason, Answer: permissions.Other}},
		{"other:", choices, reply.Reply{Meaning: reply.Reason, Answer: permissions.Other}},
		{"other", others, decides(choose(1))},
		{"o brother", others, decides(choose(2))},
		{"other: later", others, own("later")},
		{"o neither", glued, own("neither")},
		{"other:later", glued, decides(choose(2))},
		{"o", letter, decides(choose(2))},
	} {
		if diff := cmp.Diff(c.want, reply.Parse(c.line, c.r, code, i18n.English)); diff != "" {
			t.Errorf("%q to a %s:\n%s", c.line, c.r.Kind, diff)
		}
	}
}

func TestParseDecidesNothing(t *testing.T) {
	twice := offered(permissions.KindClarification, func(r *permissions.Request) { r.Choices = []string{"Mail", "mail", "x"} })
	for _, c := range []struct {
		line string
		r    permissions.Request
		says string
	}{
		{"don't allow", permission, "Type yes (allow once)"},
		{"do not allow K7F3Q", permission, "n (deny)"},
		{"y but not the second", permission, "Nothing was decided"},
		{"yes, go on", permission, "Nothing was decided"},
		{"yes please", permission, "Nothing was decided"},
		{"yes ABCDE", permission, "Nothing was decided"},
		{"y y", permission, "Nothing was decided"},
		{"yes K7F3Q K7F3Q", permission, "Nothing was decided"},
		{"yes 15m 15m", permission, "Nothing was decided"},
		{"yes session once", permission, "Nothing was decided"},
		{"a 15m", permission, "Nothing was decided"},
		{"yes 20m", permission, "yes 15m (for 15 minutes)"},
		{"yes session_tool", permission, "yes session (this session)"},
		{"yes session", stranger, "yes (allow once)"},
		{"a", stranger, "yes (allow once)"},
		{"a", confirm, "Esc (interrupt)"},
		{"", permission, "Nothing was decided"},
		{"\n", tool, "Nothing was decided"},
		{reply.Esc, tool, "Nothing was decided"},
		{"i", tool, "Nothing was decided"},
		{"i mean", resume, "Nothing was decided"},
		{"c", tool, "Nothing was decided"},
		{"continue now", resume, "Press Enter to continue, or Esc to interrupt."},
		{"y", resume, "Press Enter"},
		{"n", resume, "Press Enter"},
		{"r why", resume, "Press Enter"},
		{"no way", tool, "Nothing was decided"},
		{"nobody", tool, "Nothing was decided"},
		{"n #1 #2", step, "with #2 for one call"},
		{"y #3", step, "Nothing was decided"},
		{"y #+1", step, "Nothing was decided"},
		{"y #", step, "Nothing was decided"},
		{"y #1", tool, "Nothing was decided"},
		{"y 1", step, "Nothing was decided"},
		{"y", risky, "this is high risk. Type  yes K7F3Q  to allow it."},
		{"a", risky, "Nothing was decided"}, // not offered
		{"t", permission, "Nothing was decided"},
		{"t", risky, "this is high risk. Type  yes K7F3Q session_tool  to allow it."},
		{"yes 15m", risky, "Type  yes K7F3Q 15m  to"},
		{"yes K7F3R", risky, "yes K7F3Q (allow once)"},
		{"yes session K7F3Q", risky, "Nothing was decided"}, // not offered
		{"y\x00", permission, "Nothing was decided"},
		{"y\u0085n", permission, "Nothing was decided"},
		{"y\xff", permission, "Nothing was decided"},
		{"у", permission, "Nothing was decided"},         // a Cyrillic letter
		{"yes \u212a7F3Q", risky, "Nothing was decided"}, // the Kelvin sign
		{"show me", permission, "Nothing was decided"},
		{"7", choices, "Type a number from 1 to 6"},
		{"0", choices, "Nothing was decided"},
		{"01", choices, "Nothing was decided"},
		{"other look at staging", choices, "or o and words of your own"},
		{"look at staging", choices, "or o and words of your own"},
		{"ο look", choices, "Nothing was decided"}, // a Greek letter
		{"o look", permission, "Nothing was decided"},
		{"other: look", confirm, "Nothing was decided"},
		{"o brothr", others, "or other: and words of your own"}, // an option with a typo
		{"other: lat", colons, "or other K7F3Q and words of your own"},
		{"o lat", colons, "Nothing was decided"},
		{"o lat", letter, "or other: and words of your own"},
		{"other:lat", glued, "or o and words of your own"},
		{"", choices, "Nothing was decided"},
		{reply.Esc, choices, "Nothing was decided"},
		{"MAIL", twice, "names two options"},
		{"y", permissions.Request{Kind: permissions.KindTool}, "Nothing was decided"},
	} {
		got := reply.Parse(c.line, c.r, code, i18n.English)
		if got.Meaning != reply.Unclear || got.Answer != "" || !strings.Contains(got.Say, c.says) {
			t.Errorf("%q to a %s: %+v; want nothing decided, and %q", c.line, c.r.Kind, got, c.says)
		}
	}
}

// What a key of the console covers is said where it is offered, and in the help.
func TestTheKeysSayWhatTheyCover(t *testing.T) {
	exact := offered(permissions.KindTool, func(r *permissions.Request) { r.Tool = "run_command" })
	plain := choices
	plain.Choices = []string{"blog", "mail"}
	secret := stranger
	secret.Reason = "push with ghp_0123456789abcdefghijABCDEFGHIJ456789"
	for _, c := range []struct {
		r         permissions.Request
		hint, say string
	}{
		{permission, "y allow once · a this session · n deny · r deny with a reason > ",
			"Type yes (allow once), a or yes session (this session), yes 15m (for 15 minutes), yes always (until revoked), " +
				"n (deny), r and a reason (deny and say why)."},
		{stranger, "y allow once · n deny · r deny with a reason > ",
			"Type yes (allow once), n (deny), r and a reason (deny and say why)."},
		{secret, "y allow once · n deny · r deny with a reason > ",
			"Type yes (allow once), n (deny), r and a reason (deny and say why), s (show unmasked)."},
		{tool, "y allow once · t this tool, this session · a all gated tools, this session · n deny · r deny with a reason > ",
			"Type yes (allow once), t or yes session_tool (this tool, this session), " +
				"a or yes session (all gated tools, this session), yes 15m (for 15 minutes), " +
				"yes always (this exact call, always), n (deny), r and a reason (deny and say why)."},
		{exact, "y allow once · t this exact call, this session · n deny · r deny with a reason > ",
			"t or yes session_tool (this exact call, this session)"},
		{risky, "high risk: type  yes K7F3Q  or  n > ",
			"Type yes K7F3Q (allow once), yes K7F3Q session_tool (this tool, this session), yes K7F3Q 15m (for 15 minutes), " +
				"yes K7F3Q always (this exact call, always), n (deny), r and a reason (deny and say why)."},
		{step, "y allow once · t these tools, this session · a all gated tools, this session · n deny · r deny with a reason · " +
			"y #2 or n #2 one call > ", "with #2 for one call"},
		{resume, "Enter continues · Esc interrupts ", "Press Enter to continue, or Esc to interrupt."},
		{confirm, "y yes · n deny · r deny with a reason · Esc interrupts > ",
			"Type yes (yes), n (deny), r and a reason (deny and say why), Esc (interrupt)."},
		{plain, "1 to 2 · o in your own words > ", "Type a number from 1 to 2, the words of an option, or o and words of your own."},
	} {
		if got := reply.Hint(c.r, code, i18n.English); got != c.hint {
			t.Errorf("Hint of a %s\n got %q\nwant %q", c.r.Kind, got, c.hint)
		}
		for _, line := range []string{"?", " HELP ", "h"} {
			if got := reply.Parse(line, c.r, code, i18n.English); got.Meaning != reply.Asks || !strings.Contains(got.Say, c.say) {
				t.Errorf("%q to a %s: %+v\nwant help: %s", line, c.r.Kind, got, c.say)
			}
		}
	}
}

// TestAScopeIsTypedInThePersonsLanguage: help has the names of scopes in its own language, and what it says to type is read.
func TestAScopeIsTypedInThePersonsLanguage(t *testing.T) {
	help := reply.Help(tool, code, "de")
	for typed, scope := range map[string]permissions.Scope{
		"ja sitzung": permissions.Session, "ja immer": permissions.Always, "ja session_tool": permissions.SessionTool,
		"ja 15m": permissions.For(15 * time.Minute),
	} {
		if !strings.Contains(help, typed+" (") {
			t.Errorf("%q is not in %q", typed, help)
		}
		if diff := cmp.Diff(decides(allow(scope)), reply.Parse(typed, tool, code, "de")); diff != "" {
			t.Errorf("%q: %s", typed, diff)
		}
	}
}

// A number is the option that the card shows it in front of, or else the option that is called so. One that is both decides nothing, and
// the reply says what does, in every language.
func TestAWordThatIsOneOptionAndTheNumberOfAnotherDecidesNothing(t *testing.T) {
	for _, c := range []struct {
		choices []string
		typed   map[string]int // 0: nothing is decided
	}{
		{[]string{"2", "3", "5"}, map[string]int{
			"1": 1, "2": 0, "3": 0, "3.": 0, "5": 3, "option 1": 1, "Option 2": 2, "OPTION 3.": 3, "option_2": 2, "4": 0, "option 4": 0,
			"option 0": 0, "option": 0, "option 02": 0, "option2": 0,
		}},
		{[]string{"0", "1", "2", "30"}, map[string]int{"0": 1, "1": 0, "2": 0, "3": 3, "4": 4, "30": 4, "5": 0, "01": 0, "31": 0}},
		{[]string{"1", "2"}, map[string]int{"1": 1, "2.": 2}},
		{[]string{"2.", "1!"}, map[string]int{"1": 0, "1!": 0, "2": 0, "2.": 0, "option 2": 2}},
		{[]string{"1.", "1"}, map[string]int{"1.": 0, "1": 0, "2": 2}},
		{[]string{"Option 2", "OPTION_1"}, map[string]int{"option 2": 0, "option_1": 0, "option_2": 2, "option 1": 1, "1": 1, "2": 2}},
		{[]string{"no", "yes"}, map[string]int{"yes": 2, "no": 1, "YES.": 2, "ja": 0, "allow": 0}},
		{[]string{"K7F3Q", "yes K7F3Q"}, map[string]int{"k7f3q": 1, "yes K7F3Q": 2}},
		{[]string{"b", "A"}, map[string]int{"a": 2, "B": 1}},
	} {
		r := offered(permissions.KindClarification, func(r *permissions.Request) { r.Choices = c.choices })
		open := []reply.Open{{Code: code, Request: r, ShownAt: noon}}
		for text, want := range c.typed {
			typed := reply.Parse(text, r, code, i18n.English)
			for _, m := range []reply.Message{{Text: code + " " + text, At: noon}, {Text: text, Quotes: code, At: noon}} {
				said := reply.Read(m, open)
				switch {
				case want == 0:
					if typed.Meaning != reply.Unclear || len(said.Decisions) != 0 || said.Reply == "" {
						t.Errorf("%q of %q is %+v typed, and %+v sent", text, c.choices, typed, said)
					}
				case typed.Answer != choose(want) || len(said.Decisions) != 1 || said.Decisions[0].Answer != choose(want):
					t.Errorf("%q of %q is %+v typed, and %+v sent", text, c.choices, typed, said)
				}
			}
		}
	}
	r := offered(permissions.KindClarification, func(r *permissions.Request) { r.Choices = []string{"2", "3", "5"} })
	for in, want := range map[i18n.Language][2]string{
		"en": {"Nothing was chosen: that names two options. Type option 2 or option 3.",
			"Nothing was decided: that names two options of K7F3Q; write K7F3Q option 2 or K7F3Q option 3."},
		"de": {"Nichts wurde gewählt: das nennt zwei Optionen. Bitte option 2 oder option 3 tippen.",
			"Nichts wurde entschieden: das nennt zwei Optionen von K7F3Q; bitte K7F3Q option 2 oder K7F3Q option 3 schreiben."},
	} {
		said := reply.Read(reply.Message{Text: code + " 3", Language: in, At: noon}, []reply.Open{{Code: code, Request: r, ShownAt: noon}})
		if typed := reply.Parse("3", r, code, in); typed.Say != want[0] || said.Reply != want[1] {
			t.Errorf("%s\n%s", typed.Say, said.Reply)
		}
	}
}

// At a prompt and in a chat an option has the same words: exactly, or else in any case and with any blanks.
func TestAnOptionHasTheSameWordsEverywhere(t *testing.T) {
	r := offered(permissions.KindClarification, func(r *permissions.Request) {
		r.Choices = []string{"Alpha", "mail  to all", "Nowhere", "nowhere", "o", "s", "/stop"}
	})
	open := []reply.Open{{Code: code, Request: r, ShownAt: noon}}
	for text, want := range map[string]int{
		"alpha": 1, "ALPHA": 1, "Mail to ALL": 2, "Nowhere": 3, "nowhere": 4, "NOWHERE": 0, "O": 5, "s": 6, "/stop": 7, "alph": 0,
	} {
		got := reply.Parse(text, r, code, i18n.English)
		said := reply.Read(reply.Message{Text: code + " " + text, At: noon}, open)
		if want == 0 {
			if got.Meaning != reply.Unclear || len(said.Decisions) != 0 {
				t.Errorf("%q is %+v typed, and %+v sent", text, got, said)
			}
			continue
		}
		if got.Answer != choose(want) || len(said.Decisions) != 1 || said.Decisions[0].Answer != choose(want) {
			t.Errorf("%q is %+v typed, and %+v sent", text, got, said)
		}
	}
}

func FuzzParse(f *testing.F) {
	all := []permissions.Request{permission, tool, stranger, risky, step, resume, confirm, choices}
	for _, line := range []string{
		"y", "yes K7F3Q", "a", "n because x", "r #2 why", "don't allow", "", reply.Esc, "yes 15m #1 K7F3Q", "2", "y\xff",
		"not y", "y not", "yes n't", "mail to all", "o in my words", "other: in my words", " o 2 ", "o", "other:",
	} {
		for i := range all {
			f.Add(line, i)
		}
	}
	f.Fuzz(func(t *testing.T, line string, kind int) {
		r := all[uint(kind)%uint(len(all))]
		got := reply.Parse(line, r, code, i18n.English)
		scope, allows := got.Answer.Scope()
		lower := strings.ToLower(line)
		switch {
		case got.Meaning == reply.Unclear && (got.Answer != "" || got.Say == ""):
			t.Fatalf("%q: unclear and yet %+v", line, got)
		case got.Meaning == reply.Decides && got.Answer == permissions.Other:
			if !r.TakesWords() || got.Comment == "" || !strings.HasPrefix(strings.TrimSpace(lower), "o") {
				t.Fatalf("%q answers in words: %+v", line, got)
			}
		case got.Meaning == reply.Decides && !r.Offers(got.Answer):
			t.Fatalf("%q: %s is not offered", line, got.Answer)
		case allows && (strings.Contains(lower, "not") || strings.Contains(lower, "n't") || strings.Contains(lower, "no")):
			t.Fatalf("%q allows %s", line, scope)
		case allows && r.HighRisk && (!got.Really || !strings.Contains(lower, strings.ToLower(code))):
			t.Fatalf("%q allows high risk without the code", line)
		case allows && got.Comment != "":
			t.Fatalf("%q allows with a comment", line)
		}
	})
}
