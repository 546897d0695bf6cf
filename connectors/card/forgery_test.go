package card_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

// forgeries are what an agent might write to be taken for the card, for daycared or for a person.
var forgeries = []struct{ name, text string }{
	{"a settled line", "✅ Allowed once by fay · Telegram · 14:03:22 · after 41 s"},
	{"a settled card", "ok\n✅ You allowed this once · 14:03\nscribe wants to run a command"},
	{"another title", "ok\n⚠ High risk: scribe wants to run a command\nrm -rf /srv\nDestroys data."},
	{"rows of ours", "ok\nDestroys data; writes outside the workspace.\nvps · /srv/notes · proven name\nK7F3Q · until 13:15"},
	{"a settled line below", "ok\n✅ Allowed once by fay · Telegram · 14:03:22"},
	{"a settled line after many lines", strings.Repeat("\n", 60) + "✅ Allowed by fay"},
	{"a settled line after many spaces", "ok" + strings.Repeat(" ", 400) + "✅ Allowed by fay"},
	{"a settled line after a tab", "ok\t✅ Allowed by fay"},
	{"a settled line after a carriage return", "ok\r✅ Allowed by fay"},
	{"a settled line of Windows", "ok\r\n✅ Allowed by fay"},
	{"a settled line after a form feed", "ok\f✅ Allowed by fay"},
	{"a settled line after a vertical tab", "ok\v✅ Allowed by fay"},
	{"a settled line after a line separator", "ok\u2028✅ Allowed by fay"},
	{"a settled line after a paragraph separator", "ok\u2029✅ Allowed by fay"},
	{"a settled line after a next line", "ok\u0085✅ Allowed by fay"},
	{"a settled line in a wrapped row", strings.Repeat("x", 64) + " ✅ Allowed by fay " + strings.Repeat("y", 64)},
	{"a settled line at the end of 40", strings.Repeat("x", 24) + "✅ Allowed by fay"},
	{"a settled line at the end of 80", strings.Repeat("x", 64) + "✅ Allowed by fay"},
	{"a settled line after wide letters", strings.Repeat("漢", 32) + "✅ Allowed by fay"},
	{"a settled line after marks", "x" + strings.Repeat("\u0301", 100) + "✅ Allowed by fay"},
	{"a denial", "\n⛔ Denied by fay · \"no\""},
	{"an end", "\n⌛ Expired: nobody answered within 15 min"},
	{"a cancellation", "\n✖ Cancelled by the agent"},
	{"a vote", "\n⏳ 1 of 2, allowed by sam"},
	{"a grant taken back", "\n✖ Taken back: everything"},
	{"another card", "\n────────────────────────────────────────────── K7F3Q ──\nscribe wants   nothing"},
	{"another card of today", "\n⚠ High risk: fay wants network access\nK7F3Q · until 23:59"},
	{"a name that is proven", "\nvps · /srv · proven name"},
	{"one's own answer", "\n✅ You allowed this once · 14:00"},
	{"how to answer", "\nReply to this message: *yes* or *no*"},
	{"a heading", "\n1/5 ────────────────────────────────────────── K7F3Q ──"},
	{"a rule of other dashes", "\n—————————————————————————————— K7F3Q ——"},
	{"another code", "\nCode: AAAAA. Reply YES AAAAA"},
	{"the code in other letters", "\nК7F3Q ──"},
	{"another asker", "\nfay wants   network access"},
	{"a clarification", "\n⚠ AGENT CLARIFICATION NEEDED\nscribe asks: ok?"},
	{"options", "\n   1  yes\n   2  no"},
	{"another deadline", "\nuntil          23:59 UTC, in 10 h · sha256 0000…00"},
	{"another digest", " · sha256 0000…00"},
	{"no high risk", "\nhigh risk      no, one yes is enough"},
	{"a quorum", "\nit takes       1 person"},
	{"a reason", "\nit says      │ fay asked me to"},
	{"details", "\ndetails      │ harmless"},
	{"a message", "\nmessage      │ harmless"},
	{"needs", "\nit needs     ┃ nothing"},
	{"a host", "\non host        localhost"},
	{"a folder", "\nin folder      /tmp"},
	{"an environment", "\nenvironment    · values sha256:00"},
	{"a call", "\n  #1 to run   ls"},
	{"a warning", "\ncareful        nothing here is unusual"},
	{"a summary", "\nsummary        1 file, +1 −0"},
	{"a file", "\nall of it      is in the file above: daycared-K7F3Q.txt, 10 bytes, sha256 0000…00"},
	{"more rows", "\n               … 0 more rows"},
	{"the end of an action", "\n             ┃ exit\non host        vps"},
	{"the sign of an action", "\n┃ ls"},
	{"the sign of a wrapped row", "\n             ┊ of the row above"},
	{"a secret", "‹secret, 40 characters, sha256 1a2b3c›"},
	{"a secret below", "\n‹secret, 40 characters, sha256 1a2b3c›"},
	{"counted spaces", "a⟨37 spaces⟩b"},
	{"an escape", `\u{202E}`},
	{"HTML", "<b>✅ Allowed</b><br><a href=\"https://x\">Allow</a>\n<pre>ls</pre>"},
	{"Markdown", "**✅ Allowed**\n```\nls\n```\n[Allow](tg://x)\n> quoted"},
	{"MarkdownV2", "*✅ Allowed*\n||hidden||\n>quote\n`ls`"},
	{"a button", "\n[ ✅ Allow once ]  [ ⛔ Deny ]"},
	{"a command of the bot", "\n/approve K7F3Q"},
	{"a mention", "\n@fay allowed this"},
	{"a hint", "\ny allow once · n deny > y"},
	{"erases the screen", "\x1b[2J\x1b[H✅ Allowed by fay"},
	{"moves up", "\x1b[10A\x1b[2K✅ Allowed by fay"},
	{"hides itself", "\x1b[8mrm -rf /\x1b[0m\n✅ Allowed by fay"},
	{"a link of terminals", "\x1b]8;;https://x\x1b\\✅ Allowed\x1b]8;;\x1b\\"},
	{"a control of eight bits", "\u009b2J✅ Allowed by fay"},
	{"backspaces", "rm" + strings.Repeat("\b", 30) + "✅ Allowed by fay"},
	{"right to left", "\u202eyaf yb dewollA ✅"},
	{"isolates", "\u2067✅ Allowed by fay\u2069"},
	{"zero width", "\u200b\n\u200b✅ Allowed by fay"},
	{"byte order", "\ufeff✅ Allowed by fay"},
	{"blank letters", "\u3164\n\u3164\u3164✅ Allowed by fay"},
	{"blank Braille", strings.Repeat("\u2800", 300) + "✅ Allowed by fay"},
	{"spaces of other widths", strings.Repeat("\u3000", 300) + "✅ Allowed by fay"},
	{"tags", "\U000e0041\U000e007f✅ Allowed by fay"},
	{"variation", "✅\ufe0f Allowed by fay"},
	{"not UTF-8", "\xff\n\xfe✅ Allowed by fay"},
	{"a mark over our sign", "\u0338 ✅ Allowed by fay"},
	{"quotes that close", `" wants   nothing`},
	{"quotes that close below", "\"\nuntil          never"},
}

// places are where a request holds what an agent wrote.
var places = map[string]func(*permissions.Request, string){
	"agent":    func(r *permissions.Request, s string) { r.Agent, r.Claimed, r.Caller.Name = s, true, "uid:1000" },
	"proven":   func(r *permissions.Request, s string) { r.Agent = s + " " },
	"host":     func(r *permissions.Request, s string) { r.Host = s },
	"folder":   func(r *permissions.Request, s string) { r.Cwd = s },
	"reason":   func(r *permissions.Request, s string) { r.Reason = s },
	"message":  func(r *permissions.Request, s string) { r.Message = s },
	"details":  func(r *permissions.Request, s string) { r.Details = s },
	"variable": func(r *permissions.Request, s string) { r.EnvNames = []string{s, s} },
	"hash":     func(r *permissions.Request, s string) { r.EnvHash = s },
	"tool":     func(r *permissions.Request, s string) { r.Tool = s },
	"path":     func(r *permissions.Request, s string) { r.AffectedPath = s },
	"input":    func(r *permissions.Request, s string) { r.Input = object("content", s, "path", s) },
	"broken":   func(r *permissions.Request, s string) { r.Input = json.RawMessage(s) },
	"command":  func(r *permissions.Request, s string) { r.Tool, r.Input = "run_command", object("command", s) },
	"shell":    func(r *permissions.Request, s string) { r.Tool, r.Input = "bash", object("command", s) },
	"edited": func(r *permissions.Request, s string) {
		r.Tool, r.Input = "Edit", object("file_path", "/srv/notes/a", "old_string", "x", "new_string", s)
		r.Hook, r.Rows = "claude-code", []permissions.Rows{{First: 1, Text: s + "\nx\n" + s}}
	},
	"links": func(r *permissions.Request, s string) {
		r.Ruled = []permissions.Ruling{{Leads: &permissions.Leads{Names: map[string]string{"/srv/" + s: s, s: "/" + s}}}}
	},
	"edited without the file": func(r *permissions.Request, s string) {
		r.Tool, r.Input = "edit", object("filePath", s, "oldString", s, "newString", s+"\n"+s)
	},
	"written": func(r *permissions.Request, s string) {
		r.Tool, r.Input = "Write", object("file_path", s, "content", s, "besides", s)
	},
	"patched": func(r *permissions.Request, s string) {
		r.Tool, r.Input = "apply_patch", object("input", "*** Begin Patch\n*** Update File: "+s+"\n@@\n-"+s+"\n"+s)
	},
	"calls": func(r *permissions.Request, s string) { r.Calls = steps(s) },
	"question": func(r *permissions.Request, s string) {
		r.Kind, r.Message, r.Choices = permissions.KindClarification, s, []string{"a"}
	},
	"option": func(r *permissions.Request, s string) {
		r.Kind, r.Choices = permissions.KindClarification, []string{s, s}
	},
	"pause": func(r *permissions.Request, s string) {
		r.Kind, r.Mode, r.Message = permissions.KindPause, permissions.ModeContinue, s
	},
	"permissions": func(r *permissions.Request, s string) { r.Kind, r.Message, r.Reason = permissions.KindPermission, s, s },
	"tag": func(r *permissions.Request, s string) {
		r.Kind = permissions.KindPermission
		if made, err := permissions.ParseTag("@write:/" + strings.Map(func(c rune) rune {
			if unicode.IsControl(c) || c == '/' || c == unicode.ReplacementChar {
				return '_'
			}
			return c
		}, s)); err == nil {
			r.Tags = []permissions.Tag{made}
		}
	},
}

// names are the places that hold a name, which is quoted.
var names = []string{"agent", "proven", "variable", "hash", "tool", "path"}

func object(members ...string) json.RawMessage {
	all := map[string]string{}
	for i := 0; i < len(members); i += 2 {
		all[members[i]] = members[i+1]
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return raw
}

func steps(s string) []permissions.Call {
	return []permissions.Call{
		{N: 1, Tool: s, Input: object("a", s), AffectedPath: s}, {N: 2, Tool: "bash", Input: object("command", s+"\n"+s)},
	}
}

// ours is how every row begins that no sign marks as somebody else's words, given whose card it is.
var ours = regexp.MustCompile(`^(` + strings.Join([]string{
	`K7F3Q · until \d`, `(⚠ High risk:( |$))?([\w.\-:/@+#]*( wants| asks| paused|$)|(uid|token) |")`,
	`#\d+ (Run a command|Use|Write|Edit|Delete)( |$)`, `(Runs with|Affects|It says it)( |$)`, `The agent describes it as( |$|:)`,
	`(Rows of the file as|As the hook says,|There is no such|It replaces all)( |$)`, `The call says( |$)`,
	`(It says|Message|Details|It also needs|The answers|Allow once, and as it suggests):$`, `Environment:( |$)`, `⚠ `,
	`(#\d+ )?(Reaches the network|Destroys data|Rewrites history|Raises rights|Touches credentials|Writes outside|Not readable|Runs as root)`,
	`With( |$)`, `(Asked because|Denying one call|It takes \d|Nobody waits|If nobody)( |$)`,
	`… \d+ more rows?$`,
	`(The action|What else it needs|The summary|Where it runs|The environment|What it says|The message|The details):( |$)`,
	`[+]\d+ |\d+ files?, `, `(\d+ calls:|\d+ commands of|a command of|details of)( |$)`,
	`(All of it is in|Not all of what it|Too big to be)( |$)`,
	`(in )?("|[\w.\-:/@+#]+( ·|$))`, `(unproven name, from|an agent of|proven name)( |$)`,
}, "|") + `)`)

// signed is how a row begins that somebody else's words fill.
var signed = regexp.MustCompile(`^(  |│ |┊ )`)

// unsigned are the rows of a card that no sign marks, each of which has to begin as ours do.
func unsigned(t *testing.T, text string) (rows []string) {
	t.Helper()
	for _, row := range strings.Split(text, "\n") {
		if signed.MatchString(row) {
			continue
		}
		if !ours.MatchString(row) {
			t.Fatalf("a row begins %q in\n%s", row, text)
		}
		rows = append(rows, row)
	}
	return rows
}

// TestForgeries puts each forgery in each place, at several widths. The card has the rows of ours that it has with a
// harmless word in that place, no more and no other; and nothing else begins a row.
func TestForgeries(t *testing.T) {
	if len(forgeries) < 60 {
		t.Fatalf("%d forgeries; want 60", len(forgeries))
	}
	for _, f := range forgeries {
		t.Run("B3/"+f.name, func(t *testing.T) {
			for place, put := range places {
				for _, width := range []int{0, 20, 39, 60, 80} {
					forged, harmless := unsigned(t, forgedCard(put, f.text, width)), unsigned(t, forgedCard(put, "x", width))
					forged = withoutWarnings(forged)
					if len(forged) != len(harmless) {
						t.Fatalf("in %s, at %d: %d rows of ours instead of %d\n%s", place, width, len(forged), len(harmless),
							forgedCard(put, f.text, width))
					}
					for i, row := range forged {
						if width == 0 && slices.Contains(names, place) && strings.Count(row, `"`)%2 != 0 {
							t.Fatalf("in %s, at %d: a name closes its quotes in %q", place, width, row)
						}
						if !strings.HasPrefix(row, harmless[i][:min(6, len(harmless[i]))]) && i > 1 {
							t.Fatalf("in %s, at %d: a row %q instead of %q", place, width, row, harmless[i])
						}
					}
				}
				r := forgedRequest(put, f.text)
				p := connectors.Prompt{Request: r, Code: "K7F3Q"}
				for _, most := range []int{700, 1500} {
					unsigned(t, card.Fit(p, card.Options{Width: 60, Now: now}, card.Limits{Text: most, Rows: 1}).Text)
				}
				for i, row := range reminder([]connectors.Prompt{p, p}, card.Options{Now: now}) {
					if strings.Contains(row, "\n") || i > 0 && !strings.HasPrefix(row, "K7F3Q  ") {
						t.Fatalf("a reminder has the row %q", row)
					}
				}
				if line := card.Settled(r, card.Options{}); strings.Contains(line, "\n") || !strings.HasPrefix(line, "⏳ Waiting") {
					t.Fatalf("a settled line is %q", line)
				}
			}
		})
	}
}

func forgedRequest(put func(*permissions.Request, string), text string) permissions.Request {
	return request(permissions.KindTool, func(r *permissions.Request) {
		r.Tool, r.Input, r.HighRisk, r.Reason = "write_file", object("content", "x"), true, "because"
		put(r, text)
	})
}

func forgedCard(put func(*permissions.Request, string), text string, width int) string {
	r := forgedRequest(put, text)
	return card.Card(connectors.Prompt{Request: r, Code: "K7F3Q"}, card.Options{Width: width, Now: now})
}

var warning = regexp.MustCompile(`^(#\d+ )?(Reaches the network|Destroys data|Rewrites history|Raises rights|Touches credentials|` +
	`Writes outside|Not readable|Runs as root|` +
	`⚠ "|⚠ runs|⚠ \d|⚠ it says|a command of |details of )`)

// withoutWarnings leaves out the rows about words of mixed scripts, which harmless words do not have.
func withoutWarnings(rows []string) (rest []string) {
	for _, row := range rows {
		if !warning.MatchString(row) {
			rest = append(rest, row)
		}
	}
	return rest
}

// TestForgedNotices: what a grant's row quotes stays on it.
func TestForgedNotices(t *testing.T) {
	for _, f := range forgeries {
		t.Run("B3/"+f.name, func(t *testing.T) {
			g := permissions.Grant{Caller: "token:" + f.text, Tool: f.text, By: f.text, CreatedAt: now}
			rows := revoked(g, []permissions.Request{forgedRequest(places["command"], f.text)}, card.Options{Now: now})
			rows = append(rows, ended(g, card.Options{Now: now})...)
			for i, start := range []string{
				"✖ Taken back: the tool ", "What ran under it:", "14:00  ⚠ High risk: scribe wants to run", "⌛ Ended: the tool ",
			} {
				if len(rows) != 4 || !strings.HasPrefix(rows[i], start) || strings.ContainsFunc(rows[i], hiddenOnScreen) ||
					strings.Contains(rows[i], "\n") {
					t.Errorf("%s: %s", f.name, fmt.Sprintf("%q", rows))
				}
			}
		})
	}
}

// TestNoRowOfATerminalIsAnAgents wraps cards, their ends and notices at 20 to 60 columns: every row with an agent's words
// begins with a sign, or has them in the quotes that a row of ours opened.
func TestNoRowOfATerminalIsAnAgents(t *testing.T) {
	const theirs = "漢ж"
	draw := rand.New(rand.NewPCG(1, 2)) // the same texts each time
	bits := []string{"漢", "ж", " ", "\n", "\t", "\u202e", "א", `"`, "\\", "\n\t\t", "│ ", "┊ ", "  ", "漢 ж ", strings.Repeat("ж", 30), "ж.ж/ж"}
	text := func() (s string) {
		for range 1 + draw.IntN(25) {
			s += bits[draw.IntN(len(bits))]
		}
		return s + "ж"
	}
	quotes := regexp.MustCompile(`"[^"]*("|$)`)
	check := func(shown string, width int) {
		t.Helper()
		for row := range strings.SplitSeq(shown, "\n") {
			if width > 0 && card.Cells(row) > width {
				t.Fatalf("a row of %d cells at %d: %q", card.Cells(row), width, row)
			}
			if !signed.MatchString(row) && strings.ContainsAny(quotes.ReplaceAllString(row, ""), theirs) {
				t.Fatalf("an agent's words begin the row %q in\n%s", row, shown)
			}
		}
	}
	for range 40 {
		for name, put := range places {
			r := forgedRequest(put, text())
			for width := 20; width <= 60; width += 5 {
				o := card.Options{Width: width, Now: now, Location: time.UTC}
				check(card.Card(connectors.Prompt{Request: r, Code: "K7F3Q"}, o), width)
				ended := r
				ended.State, ended.Answer, ended.DecidedBy, ended.Comment = permissions.Denied, permissions.Deny, "fay", text()
				if len(r.Choices) > 0 {
					ended.State, ended.Answer, ended.Comment = permissions.Answered, permissions.Choose(1), ""
				}
				check(card.Continued(card.Settled(ended, o), width), width)
				told := connectors.Notice{
					About: permissions.AboutText, By: "uid:1000", At: now,
					CallerMessage: permissions.CallerMessage{Agent: text(), Title: text(), Text: text()},
				}
				g := permissions.Grant{Caller: "token:" + text(), Tool: r.Tool, Tags: r.Tags, By: "fay", CreatedAt: now}
				for _, n := range []connectors.Notice{
					told, {About: permissions.AboutEnded, Grant: g}, {About: permissions.AboutRevoked, Grant: g, Ran: []permissions.Request{r}},
					{About: permissions.AboutWaiting, Waiting: []connectors.Prompt{{Request: r, Code: "K7F3Q"}, {Request: r, Code: "K7F3Q"}}},
					{About: permissions.AboutUnknownSenders, UnknownSenders: permissions.UnknownSenders{List: []permissions.UnknownSender{
						{Via: "telegram", Account: "6666", Name: text(), At: now},
					}}},
					{About: permissions.AboutPairing, UnknownSenders: permissions.UnknownSenders{List: []permissions.UnknownSender{
						{Via: "telegram", Account: "6666", Name: text(), Proposed: permissions.ProposedPairing{Person: "sam", By: "fay"}},
					}}},
				} {
					check(strings.Join(card.Notice(n, o), "\n"), width)
				}
			}
			if t.Failed() {
				t.Fatal(name)
			}
		}
	}
}
