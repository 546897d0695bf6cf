package card_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

var now = time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)

// request is a pending one of the agent scribe.
func request(kind permissions.Kind, change func(*permissions.Request)) permissions.Request {
	r := permissions.Request{
		Kind: kind, Caller: permissions.Caller{Name: "agent:scribe"}, Agent: "scribe", State: permissions.Pending,
		Quorum: 1, CreatedAt: now, Deadline: now.Add(15 * time.Minute), Digest: permissions.Digest{0x4f, 0x3a, 31: 0x91},
	}
	if change != nil {
		change(&r)
	}
	return r
}

func tag(text string) permissions.Tag {
	t, err := permissions.ParseTag(text)
	if err != nil {
		panic(err)
	}
	return t
}

func input(text string) json.RawMessage { return json.RawMessage(text) }

func TestCard(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		r    permissions.Request
		o    card.Options
		want string
	}{
		{"permission", request(permissions.KindPermission, func(r *permissions.Request) {
			r.Tags, r.Reason = []permissions.Tag{tag("@write:/srv/site")}, "I need to save the notes there."
		}), card.Options{Heading: "1/5", Now: now, Width: 80}, `
1/5 · scribe wants write access to /srv/site
│ I need to save the notes there.
an agent of daycared
K7F3Q · until 14:15 UTC`},
		{"claimed, from afar, of two people", request(permissions.KindPermission, func(r *permissions.Request) {
			r.Caller.Name, r.Agent, r.Claimed, r.Host, r.Cwd = "uid:1000", "deploy-1", true, "vps", "/srv/ci"
			r.Tags = []permissions.Tag{tag("@network"), tag("@events"), tag("@read:/srv")}
			r.Held = []permissions.Tag{tag("@events")}
			r.Reason, r.Message, r.Details = "deploy\nv42", "soon", "long\nlist"
			r.Quorum, r.Votes = 2, []permissions.Vote{{By: "sam", Answer: permissions.Allow(permissions.Once)}}
			r.LeftAt, r.EnvNames, r.EnvHash = now, []string{"PATH", "MY VAR"}, "sha256:00"
		}), card.Options{Now: now, Width: 80, Location: berlin}, `
deploy-1 wants 2 permissions
  network access
  read access to /srv
Environment: PATH "MY VAR" · values sha256:00
│ deploy
│ v42
Message:
│ soon
Details:
│ long
│ list
It takes 2 people: 1 of 2, allowed by sam.
Nobody waits for it just now; an answer is kept for the agent.
vps · /srv/ci · unproven name, from uid 1000
K7F3Q · until 15:15`},
		{"command", request(permissions.KindTool, func(r *permissions.Request) {
			r.Tool, r.Input, r.HighRisk = "run_command", input(`{"command":"rm -rf site/old && ./publish.sh"}`), true
			r.Tags, r.Deadline = []permissions.Tag{tag("@network")}, now.Add(90*time.Second)
		}), card.Options{Now: now, Width: 80}, `
⚠ High risk: scribe wants to run a command
  rm -rf site/old &&
  ./publish.sh
It also needs:
  network access
Destroys data: "rm -rf site/old"
an agent of daycared
K7F3Q · until 14:01 UTC`},
		{"command of several lines, too long", request(permissions.KindTool, func(r *permissions.Request) {
			r.Tool, r.Input = "bash", input(`{"command":"cd x\necho one two three four five six seven"}`)
			r.Deadline = now.Add(36 * time.Hour)
		}), card.Options{Now: now, Width: 28}, `
scribe wants to run a
┊  command
  cd x
  echo one two three four
┊  five six seven
Runs with bash
an agent of daycared
K7F3Q · until 23 Nov 02:00
┊  UTC`},
		{"one call too many", request(permissions.KindTool, func(r *permissions.Request) {
			r.Tool, r.Input, r.ExceededRate = "read_file", input(`{"path":"a"}`), 600
		}), card.Options{Now: now, Width: 80}, `
scribe wants to use read_file
  path: a
Asked because it is beyond the 600 calls a minute that may run unasked.
an agent of daycared
K7F3Q · until 14:15 UTC`},
		{"one call too many of one", request(permissions.KindTool, func(r *permissions.Request) {
			r.Tool, r.Input, r.ExceededRate = "read_file", input(`{"path":"a"}`), 1
		}), card.Options{Now: now, Width: 80}, `
scribe wants to use read_file
  path: a
Asked because it is beyond the 1 call a minute that may run unasked.
an agent of daycared
K7F3Q · until 14:15 UTC`},
		{"a deadline in another year", request(permissions.KindPermission, func(r *permissions.Request) {
			r.Deadline = now.Add(365 * 24 * time.Hour)
		}), card.Options{Now: now, Width: 80}, `
scribe wants 0 permissions
an agent of daycared
K7F3Q · until 21 Nov 2027 14:00 UTC`},
		{"step", request(permissions.KindTool, func(r *permissions.Request) {
			r.Calls = []permissions.Call{
				{N: 1, Tool: "write_file", Input: input(`{"content":"a\nb","path":"n.md"}`), AffectedPath: "/srv/n.md"},
				{N: 2, Tool: "run_command", Input: input(`{"command":"ls"}`)},
				{N: 3, Tool: "list files", Input: input(`null`)},
			}
		}), card.Options{}, `
scribe wants 3 things
#1 Write n.md (2 rows, no newline at the end)
  a
  b
It replaces all that is in the file now.
Affects /srv/n.md
#2 Run a command
  ls
#3 Use "list files"
an agent of daycared
K7F3Q · until 14:15 UTC`},
		{"pause", request(permissions.KindPause, func(r *permissions.Request) {
			r.Mode, r.Message = permissions.ModeContinue, "look at site/notes.md before it goes out."
		}), card.Options{Now: now, AgentLabel: "the scribe"}, `
the scribe paused
│ look at site/notes.md before it goes out.
If nobody answers by 14:15 UTC, it continues.
an agent of daycared
K7F3Q · until 14:15 UTC`},
		{"confirm", request(permissions.KindPause, func(r *permissions.Request) {
			r.Mode, r.Message, r.Reason = permissions.ModeConfirm, "publish?\nnow?", "it is ready"
		}), card.Options{Now: now.Add(time.Hour)}, `
scribe asks
│ publish?
│ now?
It says:
│ it is ready
an agent of daycared
K7F3Q · until 14:15 UTC`},
		{"clarification", request(permissions.KindClarification, func(r *permissions.Request) {
			r.Message, r.Choices = "announce where?", []string{"blog", "mail", "nowhere"}
			r.Deadline = now.Add(5 * time.Minute)
		}), card.Options{Now: now}, `
scribe asks
│ announce where?
The answers:
│ 1  blog
│ 2  mail
│ 3  nowhere
If nobody answers by 14:05 UTC: "blog"
an agent of daycared
K7F3Q · until 14:05 UTC`},
		{"clarification of a hook that takes several answers", request(permissions.KindClarification, func(r *permissions.Request) {
			r.Hook, r.Message, r.Choices = "claude-code", "announce where?"+permissions.SeveralAnswers, []string{"blog", "mail"}
			r.Deadline = now.Add(5 * time.Minute)
		}), card.Options{Now: now, Language: "de"}, `
scribe fragt
│ announce where?
Die Antworten, von denen mehrere geschrieben werden können:
│ 1  blog
│ 2  mail
Antwortet bis 14:05 UTC niemand, bleibt es unbeantwortet.
ein Agent von daycared
K7F3Q · bis 14:05 UTC`},
		{"clarification of a hook, which denies without an answer", request(permissions.KindClarification, func(r *permissions.Request) {
			r.Hook, r.Message, r.Choices = "claude-code", "announce where?", []string{"blog", "mail"}
			r.Deadline = now.Add(5 * time.Minute)
		}), card.Options{Now: now}, `
scribe asks
│ announce where?
The answers:
│ 1  blog
│ 2  mail
If nobody answers by 14:05 UTC, it is not answered.
an agent of daycared
K7F3Q · until 14:05 UTC`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := "\n" + card.Card(connectors.Prompt{Request: c.r, Code: "K7F3Q"}, c.o)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCardInput(t *testing.T) {
	deep := strings.Repeat("[", 13) + strings.Repeat("]", 13)
	for _, c := range []struct {
		name string
		r    permissions.Request
		want string
	}{
		{"one tag", request(permissions.KindPermission, func(r *permissions.Request) {
			r.Tags = []permissions.Tag{tag("@write:/srv/www")}
		}), "write access to /srv/www"},
		{"command", request(permissions.KindTool, func(r *permissions.Request) {
			r.Tool, r.Input = "run_command", input(`{"command":"rm -rf x"}`)
		}), "to run rm -rf x"},
		{"command with more", request(permissions.KindTool, func(r *permissions.Request) {
			r.Tool, r.Input = "run_command", input(`{"command":"ls","cwd":"/"}`)
		}), "to use run_command\ncommand: ls\ncwd: /"},
		{"another tool's command", request(permissions.KindTool, func(r *permissions.Request) {
			r.Tool, r.Input = "launch", input(`["ls"]`)
		}), "to use launch\n" + `[
  "ls"
]`},
		{"empty command", request(permissions.KindTool, func(r *permissions.Request) {
			r.Tool, r.Input = "sh", input(`{"command":""}`)
		}), `to use sh command: ""`},
		{"nested beyond measure", request(permissions.KindTool, func(r *permissions.Request) {
			r.Tool, r.Input = "x", input(deep)
		}), "to use x " + deep},
		{"brackets in text", request(permissions.KindTool, func(r *permissions.Request) {
			r.Tool, r.Input = "x", input(`"[[[[[[[[[[[[[[[\"[{"`)
		}), `to use x "[[[[[[[[[[[[[[[\"[{"`},
		{"not JSON", request(permissions.KindTool, func(r *permissions.Request) {
			r.Tool, r.Input = "x", input("{\x1b")
		}), `to use x {\u{1B}`},
		{"clarification", request(permissions.KindClarification, func(r *permissions.Request) {
			r.Message, r.Choices = "where?", []string{"a", "b\n  9  c"}
		}), "where?\n1  a\n2  b" + `\u{A}  9  c`},
	} {
		t.Run("B4/"+c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, card.Wants(c.r)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// fill puts text into every string of a request that somebody else writes.
func fill(r *permissions.Request, text string) {
	r.Agent, r.Host, r.Cwd, r.Tool, r.AffectedPath, r.EnvHash = text, text, text, text, text, text
	r.Message, r.Details, r.Reason, r.Comment = text, text, text, text
	r.DecidedBy, r.DecidedVia, r.Failure = text, text, text
	r.Caller.Name, r.Session, r.Key = text, text, text
	r.EnvNames, r.Choices = []string{text}, []string{text, text + "2"}
	quoted, _ := json.Marshal(text)
	r.Input = input(fmt.Sprintf(`{"command":%s}`, quoted))
	for i := range r.Calls {
		r.Calls[i].Tool, r.Calls[i].Input, r.Calls[i].AffectedPath, r.Calls[i].Comment = text, r.Input, text, text
	}
	if len(r.Rows) > 0 {
		r.Tool, r.Input = "Edit", input(fmt.Sprintf(`{"file_path":%s,"new_string":%s,"old_string":"x","besides":%[1]s}`, quoted, quoted))
		r.Rows = []permissions.Rows{{First: 1, Text: text + "\nx\n" + text}}
	}
	once := permissions.Allow(permissions.Once)
	r.Votes = []permissions.Vote{{By: text, Answer: once}, {By: text + "2", Answer: once}}
}

// every is a request of each kind and state.
func every() (all []permissions.Request) {
	for _, kind := range []permissions.Kind{
		permissions.KindPermission, permissions.KindTool, "edit", "step", permissions.KindPause, permissions.KindClarification,
	} {
		for _, state := range []permissions.State{
			permissions.Pending, permissions.Approved, permissions.Denied, permissions.Answered, permissions.Expired,
			permissions.Cancelled, permissions.Undeliverable,
		} {
			all = append(all, request(kind, func(r *permissions.Request) {
				r.State, r.Answer, r.Scope = state, permissions.Choose(1), permissions.Once
				r.Tags = []permissions.Tag{tag("@read:/srv/\u202e\u200b")}
				if kind == "edit" {
					r.Kind, r.Hook, r.Rows = permissions.KindTool, "claude-code", []permissions.Rows{{}}
				}
				if kind == "step" {
					r.Kind = permissions.KindTool
					r.Calls = []permissions.Call{{N: 1, Answer: permissions.Deny}, {N: 2}}
				}
			}))
		}
	}
	return all
}

// TestNothingIsHidden renders hostile text in every field of every kind and state: nothing comes out as it went in, and
// no row of a card starts with it.
func TestNothingIsHidden(t *testing.T) {
	for name, evil := range map[string]string{
		"erases the screen": "\x1b[2J\x1b[1;1H",
		"bidi":              "\u202e\u2066",
		"zero width":        "\u200b\ufeff\U000e0041\u00ad",
		"a settled card":    "ok\n✅ Allowed once by you · terminal · after 4 s",
		"a card":            "ok\n1/5 ─────── K7F3Q ──\nscribe wants   network access\nuntil          14:15 UTC",
		"a prompt":          "ok\ny allow once · n deny > y\n\n",
		"carriage return":   "evil\rscribe wants   nothing",
		"over the edge":     strings.Repeat("x ", 33) + strings.Repeat("✅ Allowed once by you ", 20),
		"wide, to the edge": strings.Repeat("漢", 100) + "✅ Allowed by you",
		"not UTF-8":         "\xff\xfe\x80",
	} {
		t.Run("B1/"+name, func(t *testing.T) {
			for _, r := range every() {
				fill(&r, evil)
				p := connectors.Prompt{Request: r, Code: evil, To: connectors.Person{Name: evil}}
				for what, text := range map[string]string{
					"Card":    card.Card(p, card.Options{Width: 80, Heading: evil, Now: now}),
					"Card as": card.Card(p, card.Options{Width: 80, AgentLabel: evil}),
					"Wants":   card.Wants(r),
					"Settled": card.Settled(r, card.Options{Notes: []string{evil}}),
				} {
					if i := strings.IndexFunc(text, hiddenOnScreen); i >= 0 {
						t.Fatalf("%s of %s %s shows %+q", what, r.Kind, r.State, text[i:min(i+8, len(text))])
					}
					if what == "Settled" && strings.Contains(text, "\n") {
						t.Fatalf("Settled of %s %s is more than a line:\n%s", r.Kind, r.State, text)
					}
				}
				p.Code = "K7F3Q"
				rows(t, card.Card(p, card.Options{Width: 80}))
			}
		})
	}
}

// TestWhatIsOnlySaidIsMarked: a path that neither we nor the input name is said to be affected, and one that differs from
// the input's is warned of.
func TestWhatIsOnlySaidIsMarked(t *testing.T) {
	for _, c := range []struct{ name, caller, cwd, input, affected, want, careful string }{
		{"ours", "agent:scribe", "/srv", `{"path":"a"}`, "/real/a", "Affects /real/a", ""},
		{"as the input says", "uid:0", "", `{"path":"/srv/a","lines":"x"}`, "/srv/a", "Affects /srv/a", ""},
		{"in its folder", "uid:0", "/srv", `{"file_path":"x/../a"}`, "/srv/a", "Affects /srv/a", ""},
		{"another", "uid:0", "", `{"path":"/etc/cron.d/x"}`, "/srv/a", "It says it affects /srv/a",
			`it says it affects "/srv/a"; the input names "/etc/cron.d/x"`},
		{"one of two", "uid:0", "", `{"path":"/srv/a","file":"/etc/passwd"}`, "/srv/a", "It says it affects /srv/a",
			`it says it affects "/srv/a"; the input names "/etc/passwd"`},
		{"none", "uid:0", "", `{"x":"/srv/a"}`, "/srv/a", "It says it affects /srv/a", ""},
		{"no object", "uid:0", "", `["/srv/a"]`, "/srv/a", "It says it affects /srv/a", ""},
	} {
		r := request(permissions.KindTool, func(r *permissions.Request) {
			r.Caller.Name, r.Agent, r.Tool, r.Input = c.caller, "", "write_file", input(c.input)
			r.Cwd, r.AffectedPath = c.cwd, c.affected
		})
		step := r
		step.Tool, step.Input, step.AffectedPath = "", nil, ""
		step.Calls = []permissions.Call{{N: 1, Tool: r.Tool, Input: r.Input, AffectedPath: r.AffectedPath}}
		for _, r := range []permissions.Request{r, step} {
			shown := card.Card(connectors.Prompt{Request: r}, card.Options{})
			if !strings.Contains(shown, "\n"+c.want+"\n") {
				t.Errorf("%s: want %q in\n%s", c.name, c.want, shown)
			}
			if _, got, _ := strings.Cut(shown, "⚠ "); !strings.HasPrefix(got, c.careful) || (got == "") != (c.careful == "") {
				t.Errorf("%s: want careful %q in\n%s", c.name, c.careful, shown)
			}
		}
	}
}

func hiddenOnScreen(c rune) bool {
	return c != '\n' && c != ' ' && !unicode.IsGraphic(c) || c == '\u202e'
}

// rows checks that every row but the first few, which begin with a name, begins with words of ours or with a mark.
func rows(t *testing.T, text string) {
	t.Helper()
	for i, row := range strings.Split(text, "\n")[1:] {
		start := row
		for _, ours := range []string{
			"  ", "│", "┊", "Environment:", "It says", "Message:", "Details:", "It also needs:", "The answers:", "⚠ ", "#1 ", "#2 ",
			"Affects", "The call says besides:", "Rows of the file as", "Runs with", "If nobody", "\"", "in \"", "unproven name", "proven name",
			"K7F3Q · until ",
		} {
			if strings.HasPrefix(start, ours) {
				start = ""
			}
		}
		if start != "" && i > 1 { // the name of the agent comes first
			t.Fatalf("a row begins %q in\n%s", start, text)
		}
	}
}

// On a narrow terminal every continued row has a sign, and none is narrower than 20 cells.
func TestNarrowCard(t *testing.T) {
	r := request(permissions.KindPermission, func(r *permissions.Request) {
		r.Tags, r.Cwd, r.Reason = []permissions.Tag{permissions.Network}, "/home/fay/site", "fetch the docs before the build"
	})
	p := connectors.Prompt{Request: r, Code: "GKT39"}
	want := `1/5 · scribe wants
┊  network access
│ fetch the docs
┊  before the build
in /home/fay/site ·
┊  an agent of
┊  daycared
GKT39 · until 14:15
┊  UTC`
	for _, width := range []int{1, 20} {
		if got := card.Card(p, card.Options{Heading: "1/5", Now: now, Width: width}); got != want {
			t.Errorf("at %d:\n%s\nwant\n%s", width, got, want)
		}
	}
}

// TestWrappedRowsAreWhole checks that wrapping loses nothing and keeps to the width.
func TestWrappedRowsAreWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reason := rapid.StringOfN(rapid.SampledFrom([]rune("ab c漢é✅·")), 1, 400, -1).Draw(t, "reason")
		r := request(permissions.KindPermission, func(r *permissions.Request) {
			r.Tags, r.Reason = []permissions.Tag{permissions.Network}, reason
		})
		width := rapid.IntRange(0, 120).Draw(t, "width")
		got := ""
		for _, row := range strings.Split(card.Card(connectors.Prompt{Request: r}, card.Options{Width: width}), "\n") {
			if most := max(width, 20); width > 0 && len([]rune(row)) > most {
				t.Fatalf("a row of %d characters, more than %d: %q", len([]rune(row)), most, row)
			}
			if rest, begins := strings.CutPrefix(row, "│ "); begins {
				got = rest
			} else if rest, goes := strings.CutPrefix(row, "┊ "); goes && got != "" {
				got += rest
			}
		}
		if want := card.Visible(reason); !strings.HasPrefix(got, want) {
			t.Fatalf("the reason %q is shown as %q", want, got)
		}
	})
}

// TestDifferentRequestsLookDifferent changes one thing that people decide about, and looks at the card without its
// digest.
func TestDifferentRequestsLookDifferent(t *testing.T) {
	fields := map[string]func(*permissions.Request, string){
		"agent":   func(r *permissions.Request, s string) { r.Agent = "x" + s },
		"host":    func(r *permissions.Request, s string) { r.Host = s },
		"cwd":     func(r *permissions.Request, s string) { r.Cwd = s },
		"reason":  func(r *permissions.Request, s string) { r.Reason = s },
		"details": func(r *permissions.Request, s string) { r.Details = s },
		"tool":    func(r *permissions.Request, s string) { r.Tool = "x" + s },
		"path":    func(r *permissions.Request, s string) { r.AffectedPath = s },
		"command": func(r *permissions.Request, s string) {
			quoted, _ := json.Marshal("x" + s)
			r.Tool, r.Input = "run_command", input(fmt.Sprintf(`{"command":%s}`, quoted))
		},
	}
	for name, set := range fields {
		t.Run("B3/"+name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				a, b := request(permissions.KindTool, nil), request(permissions.KindTool, nil)
				a.Tool, b.Tool = "write_file", "write_file"
				text := nasty().Filter(func(s string) bool { return name != "command" || strings.ToValidUTF8(s, "") == s })
				set(&a, text.Draw(t, "a"))
				set(&b, text.Draw(t, "b"))
				same := reflect.DeepEqual(a, b)
				if cards := show(a) == show(b); cards != same {
					t.Fatalf("equal requests: %v, equal cards: %v\n%s\n%s", same, cards, show(a), show(b))
				}
			})
		})
	}
}

func show(r permissions.Request) string {
	return card.Card(connectors.Prompt{Request: r, Code: "K7F3Q"}, card.Options{Width: 80, Now: now})
}

// TestACallSaysWhatMattersFirst lays out inputs: what matters most first, the rest as name: value, and nothing left out.
func TestACallSaysWhatMattersFirst(t *testing.T) {
	for _, c := range []struct{ name, tool, input, want string }{
		{"an issue", "create_issue", `{"assignees":["fay"],"body":"It is\nbroken\n","draft":false,"labels":[],"owner":"acme",` +
			`"repo":"shop","title":"Cart: negative total"}`, `
title: Cart: negative total
owner: acme
repo: shop
assignees: ["fay"]
draft: false
labels: []
body: |
  It is
  broken`},
		{"a page", "fetch", `{"headers":{"accept":"text/html","x":"0123456789012345678901234567890123456789"},` +
			`"url":"https://example.org/a?b=c"}`, `
url: https://example.org/a?b=c
headers:
  accept: text/html
  x: 0123456789012345678901234567890123456789`},
		{"a list of objects", "batch", `{"items":[{"a":"0123456789012345678901234567890123456789","b":2},[1],"x\ny","z"],"n":1}`, `
n: 1
items:
  - {"a":"0123456789012345678901234567890123456789","b":2}
  - [1]
  - |-
    x
    y
  - z`},
		{"what looks like something else", "x", `{"a":"1","b":1,"c":"true","d":"{}","e":"","f":" x",` +
			`"g":"x ","h":"| x","i":"- x","k: l":"m","n":null,"o":"\"x\""}`, `
a: "1"
b: 1
c: "true"
d: "{}"
e: ""
f: " x"
g: "x "
h: "| x"
i: "- x"
"k: l": m
n: null
o: "\"x\""`},
		{"rows that cannot be seen", "x", `{"a":"x\n\n","b":"\nx","c":"x\n\ny","d":"\ttab","e":"\u202e"}`, `
a: "x\n\n"
b: "\nx"
d: \u{9}tab
e: "\u202e"
c: |-
  x

  y`},
		{"a secret", "x", `{"password":"ghp_0123456789012345678901234567890123456"}`, ""},
	} {
		r := request(permissions.KindTool, func(r *permissions.Request) { r.Tool, r.Input = c.tool, input(c.input) })
		got := card.Wants(r)
		if want := "to use " + c.tool + c.want; c.want != "" && got != want {
			t.Errorf("%s: %s", c.name, cmp.Diff(want, got))
		}
		if c.want == "" && (strings.Contains(got, "ghp_") || !strings.Contains(got, "password: ")) {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

// TestWhatStandsBesideACommandStandsBelowIt: the block is the command alone, and each other member of the input has a row of ours.
func TestWhatStandsBesideACommandStandsBelowIt(t *testing.T) {
	r := request(permissions.KindTool, func(r *permissions.Request) {
		r.Tool, r.Reason = "Bash", "Run the tests"
		r.Input = input(`{"command":"npm test","cwd":"/srv/a b","description":"Run the tests","timeout":120000}`)
	})
	want := `scribe wants to run a command
  npm test
Runs with Bash
With "cwd: /srv/a b"
With "timeout: 120000"
The agent describes it as:
│ Run the tests
an agent of daycared
K7F3Q · until 14:15 UTC`
	if got := card.Card(connectors.Prompt{Request: r, Code: "K7F3Q"}, card.Options{}); got != want {
		t.Error(cmp.Diff(want, got))
	}
	r.Input = input(`{"command":"npm test","env":"A=1\nB=2"}`)
	if got := card.Wants(r); got != "to use Bash\ncommand: npm test\nenv: |-\n  A=1\n  B=2" {
		t.Errorf("with several rows beside it:\n%s", got)
	}
}

// What the agent did before stands in one row of ours: its words as code, and nobody else's request.
func TestACardSaysWhatItsAgentDidBefore(t *testing.T) {
	call := func(command string, s permissions.State) permissions.Request {
		return permissions.Request{
			Kind: permissions.KindTool, Tool: "Bash", Hook: "claude-code", Caller: permissions.Caller{Name: "coder"}, State: s,
			Input: json.RawMessage(`{"command":` + strconv.Quote(command) + `}`),
		}
	}
	did := permissions.RecentActivity{
		Allowed: 4, Denied: 1, AllowedBefore: 9, AllowedBy: "fay",
		Last: []permissions.Request{call("go test ./...", permissions.Approved), call("git push · until 23:59", permissions.Denied)},
	}
	for _, c := range []struct {
		name string
		did  permissions.RecentActivity
		self string
		in   i18n.Language
		want string
	}{
		{"all", did, "fay", i18n.English,
			"Last 10 min: 4 allowed, 1 denied: «go test ./...», ⛔ «git push · until 23:59» · " +
				"the same words were allowed 9 times in 30 days, last by you"},
		{"German", did, "sam", i18n.Language("de"),
			"Letzte 10 Min.: 4 erlaubt, 1 abgelehnt: «go test ./...», ⛔ «git push · until 23:59» · " +
				"derselbe Wortlaut wurde in 30 Tagen 9-mal erlaubt, zuletzt von fay"},
		{"once before", permissions.RecentActivity{AllowedBefore: 1, AllowedBy: "sam"}, "fay", i18n.English,
			"The same words were allowed 1 time in 30 days, last by sam"},
		{"of others", permissions.RecentActivity{Denied: 2}, "fay", i18n.English, "Last 10 min: 0 allowed, 2 denied"},
		{"what it says", permissions.RecentActivity{Title: "Cart\n\u202esums", Prompt: "use ghp_0123456789abcdefghijABCDEFGHIJ012345"}, "fay",
			i18n.English, `By the agent's own word, its session is «"Cart \u{202E}sums"» · ` +
				`it was last told «"use ‹secret, 40 characters, sha256 d8fe76›"».`},
		{"the prompt alone", permissions.RecentActivity{Prompt: "los"}, "fay", i18n.Language("de"),
			`Nach eigener Angabe des Agenten: zuletzt aufgetragen wurde ihm «"los"».`},
		{"nothing", permissions.RecentActivity{}, "fay", i18n.English, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := connectors.Prompt{Request: call("ls", permissions.Pending), Code: "K7F3Q", Recent: c.did}
			m := card.Fit(p, card.Options{Self: c.self, Language: c.in}, card.Limits{})
			got := ""
			for _, part := range m.Parts {
				for text, name := range part.Spans {
					if name {
						text = "«" + text + "»"
					}
					got += text
				}
				got += "\n"
			}
			if c.want == "" {
				if p.Recent = (permissions.RecentActivity{}); strings.Contains(got, "allowed") {
					t.Errorf("a row about nothing:\n%s", got)
				}
			} else if !strings.Contains("\n"+got, "\n"+c.want+"\n") {
				t.Errorf("%q is not in:\n%s", c.want, got)
			}
		})
	}
}

// A card that fits without what the agent did before does not become a file for it.
func TestWhatItsAgentDidBeforeMakesNoFile(t *testing.T) {
	p := connectors.Prompt{Code: "K7F3Q", Request: permissions.Request{
		Kind: permissions.KindTool, Tool: "look", Caller: permissions.Caller{Name: "coder"}, Input: json.RawMessage(`{"at":"x"}`),
	}}
	size := len(card.Fit(p, card.Options{}, card.Limits{}).Text)
	p.Recent = permissions.RecentActivity{Allowed: 1}
	long := card.Fit(p, card.Options{}, card.Limits{}).Text
	if len(long) <= size {
		t.Fatalf("no row:\n%s", long)
	}
	if m := card.Fit(p, card.Options{}, card.Limits{Text: size, Unit: card.Bytes}); m.Document != nil || m.TooBig || len(m.Text) != size {
		t.Errorf("%d bytes, a file: %t:\n%s", len(m.Text), m.Document != nil, m.Text)
	}
	if m := card.Fit(p, card.Options{}, card.Limits{Text: len(long), Unit: card.Bytes}); m.Text != long {
		t.Errorf("the row is missing where there is room:\n%s", m.Text)
	}
}

// TestTheCardOfASkillWhoseFileIsNotFoundSaysSo, in both languages: it is high risk for that.
func TestTheCardOfASkillWhoseFileIsNotFoundSaysSo(t *testing.T) {
	says := map[i18n.Language]string{
		"":   "The hook found no file of that name: what it does is not known.",
		"de": "Der Hook hat keine Datei dieses Namens gefunden: Was es tut, ist nicht bekannt.",
	}
	for members, want := range map[string]bool{
		`"hook.commands":["",0]`: true, `"args":{"hook.files":["/x"]},"hook.commands":["",0]`: true, `"args":"none"`: false,
		`"hook.commands":["make $1",0],"hook.files":["/srv/.claude/skills/a/SKILL.md"]`: false,
	} {
		for language, text := range says {
			r := request(permissions.KindTool, func(r *permissions.Request) {
				r.Tool, r.Hook, r.Input = "Skill", "claude-code", input(`{"skill":"a",`+members+`}`)
			})
			got := card.Card(connectors.Prompt{Request: r, Code: "K7F3Q"}, card.Options{Language: language})
			if strings.Contains(got, text) != want {
				t.Errorf("%s: the card is\n%s", members, got)
			}
		}
	}
}
