package telegram

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/permissions"
)

var redraw = flag.Bool("cards", false, "write the cards of testdata/cards anew")

// noon is when the requests of these tests are made. In Berlin it is 13:00.
var noon = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

const aButton = "1z-AbCdEfGhIjKlMnOpQrStUv"

func fay(t testing.TB) connectors.Person {
	t.Helper()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return connectors.Person{Name: "fay", Addresses: map[string]string{Name: "1234"}, Location: berlin}
}

// prompt is fay's copy of a request made at noon, with a quarter of an hour to go.
func prompt(t testing.TB, kind permissions.Kind, change func(*permissions.Request)) connectors.Prompt {
	t.Helper()
	to := fay(t)
	r := connectortest.Request(kind, to, 7, func(r *permissions.Request) {
		r.Agent, r.Host, r.Cwd = "scribe", "vps", "/srv/notes"
		if change != nil {
			change(r)
		}
	})
	r.ID, r.CreatedAt, r.Deadline = "01K00000000000000000000000", noon, noon.Add(15*time.Minute)
	return connectors.Prompt{Request: r, Code: "K7F3Q", To: to, Button: aButton}
}

// after is the prompt after events.
func after(t testing.TB, p connectors.Prompt, events ...permissions.Transition) connectors.Prompt {
	t.Helper()
	for _, e := range events {
		c, err := permissions.Step(p.Request, e)
		if err != nil {
			t.Fatal(err)
		}
		p.Request = c.After
	}
	return p
}

// vote is a person's answer, 41 seconds after noon.
func vote(by, via string, a permissions.Answer, change func(*permissions.Vote)) permissions.Cast {
	v := permissions.Vote{By: by, Via: via, Answer: a, At: noon.Add(41 * time.Second)}
	if change != nil {
		change(&v)
	}
	return permissions.Cast{Really: true, Vote: v}
}

func command(text string) func(*permissions.Request) {
	return func(r *permissions.Request) {
		quoted, _ := json.Marshal(map[string]string{"command": text})
		r.Tool, r.Input = "run_command", quoted
	}
}

func calls(n int) func(*permissions.Request) {
	return func(r *permissions.Request) {
		r.Tool, r.Input = "", nil
		for i := range n {
			in := json.RawMessage(fmt.Sprintf(`{"path":"notes-%d.md"}`, i+1))
			r.Calls = append(r.Calls, permissions.Call{N: i + 1, Tool: "write_file", Input: in})
		}
	}
}

func both(changes ...func(*permissions.Request)) func(*permissions.Request) {
	return func(r *permissions.Request) {
		for _, change := range changes {
			change(r)
		}
	}
}

func highRisk(r *permissions.Request) { r.HighRisk = true }

func confirm(r *permissions.Request) { r.Mode = permissions.ModeConfirm }

func twoOf(names ...string) func(*permissions.Request) {
	return func(r *permissions.Request) { r.Quorum, r.Asked = 2, names }
}

func oneOf(names ...string) func(*permissions.Request) {
	return func(r *permissions.Request) { r.Asked = names }
}

func details(text string) func(*permissions.Request) {
	return func(r *permissions.Request) { r.Details = text }
}

func reason(text string) func(*permissions.Request) {
	return func(r *permissions.Request) { r.Reason = text }
}

// edited is a call of a hook that edits a file, of which it tells some rows.
func edited(tool, before, after string, was ...permissions.Rows) func(*permissions.Request) {
	return func(r *permissions.Request) {
		members := map[string]any{"file_path": "/srv/notes/cart.go", "old_string": before, "new_string": after, "replace_all": false}
		if tool == "Write" {
			members = map[string]any{"file_path": "/srv/notes/cart.go", "content": after}
		}
		r.Agent, r.Claimed, r.Caller, r.Hook = "claude-code", true, permissions.CallerUID(1000), "claude-code"
		r.Tool, r.Cwd, r.AffectedPath, r.Rows = tool, "/srv/notes", "/srv/notes/cart.go", was
		r.Input, _ = json.Marshal(members) // cannot fail
	}
}

// TestCards compares what people see with testdata/cards; with -cards it rewrites that.
func TestCards(t *testing.T) {
	const permission, tool = permissions.KindPermission, permissions.KindTool
	const pause, clarification = permissions.KindPause, permissions.KindClarification
	once := permissions.Allow(permissions.Once)
	no := func(comment string) func(*permissions.Vote) { return func(v *permissions.Vote) { v.Comment = comment } }
	call := func(n int) func(*permissions.Vote) { return func(v *permissions.Vote) { v.Call = n } }
	long := prompt(t, tool, both(command("make"), details(strings.Repeat("a row of details\n", 300))))
	quiet := prompt(t, permission, nil)
	quiet.Silent = true
	longEdit := prompt(t, tool,
		edited("Edit", strings.Repeat("an old row of the file\n", 200), strings.Repeat("a new row of the file\n", 200)))
	cards := map[string]outgoing{
		"permission":       show(prompt(t, permission, nil), noon),
		"permission-quiet": show(quiet, noon),
		"permission-several": show(prompt(t, permission, func(r *permissions.Request) {
			r.Agent, r.Claimed, r.Caller = "deploy-1", true, permissions.CallerUID(1000)
			r.Tags = []permissions.Tag{permissions.Network, permissions.Workspace}
		}), noon),
		"permission-quorum": show(prompt(t, permission, twoOf("fay", "sam")), noon),
		"permission-quorum-voted": edit(after(t, prompt(t, permission, twoOf("fay", "sam")),
			vote("sam", "whatsapp", once, nil)), noon),
		"permission-quorum-mine": edit(after(t, prompt(t, permission, twoOf("fay", "sam")),
			vote("fay", "cli", once, nil)), noon),
		"permission-left": edit(after(t, prompt(t, permission, nil), permissions.Leave{At: noon}), noon),
		"permission-away": away(prompt(t, permission, nil), noon),
		"tool-command":    show(prompt(t, tool, command("rm -rf site/old && ./publish.sh")), noon),
		"tool-script":     show(prompt(t, tool, command("set -e\n\ncd site\n./publish.sh  --all")), noon),
		"tool-input": show(prompt(t, tool, func(r *permissions.Request) {
			r.Tool, r.Input = "write_file", json.RawMessage(`{"content":"<b>hi</b>","path":"a.html"}`)
			r.AffectedPath, r.Tags = "/srv/notes/a.html", []permissions.Tag{permissions.Workspace}
		}), noon),
		"edit": show(prompt(t, tool, edited("Edit", "sum := 0", "sum := 1",
			permissions.Rows{First: 3, Text: "func Total() int {\n\tsum := 0\n\treturn sum // 👩‍👧\n"})), noon),
		"edit-unread":       show(prompt(t, tool, both(edited("Edit", "one\ntwo", "one\n2"), reason("because"))), noon),
		"edit-new":          show(prompt(t, tool, edited("Write", "", "package cart\n\n\tvar x int\n", permissions.Rows{})), noon),
		"edit-replaced":     show(prompt(t, tool, edited("Write", "", "# Notes\n")), noon),
		"edit-long":         show(longEdit, noon),
		"edit-long-allowed": edit(after(t, longEdit, vote("fay", "telegram", once, nil)), noon.Add(time.Minute)),
		"edit-no-row-fits":  show(prompt(t, tool, edited("Write", "", strings.Repeat("x", 9000), permissions.Rows{})), noon),
		"tool-hostile-name": show(prompt(t, tool, func(r *permissions.Request) {
			r.Tool, r.Input = `ls" for 1 minute, then "everything else that there is`, json.RawMessage(`{}`)
		}), noon),
		"tool-high-risk": show(prompt(t, tool, both(command("mkfs /dev/sda"), highRisk)), noon),
		"tool-html": show(prompt(t, tool, both(command("echo '<pre>&amp;</pre>'"),
			reason("<b>bold</b> *not* _this_ [x](http://evil)"))), noon),
		"tool-invisible": show(prompt(t, tool, both(command("rm \u202efdp.exe\u200b x\u030a y\u0333"),
			reason("fine\x1b[2J\n✅ Allowed once by fay"))), noon),
		"tool-signed":  show(prompt(t, tool, command("┃ ls")), noon),
		"tool-letters": show(prompt(t, tool, both(command("echo 😀 שלום 👩‍👧 漢字"), reason("مرحبا 🎉\n𝄞"))), noon),
		"tool-allowed": edit(after(t, prompt(t, tool, command("./publish.sh")),
			vote("fay", "telegram", once, nil)), noon.Add(time.Minute)),
		"tool-allowed-session": edit(after(t, prompt(t, tool, command("./publish.sh")),
			vote("fay", "telegram", permissions.Allow(permissions.SessionTool), nil)), noon.Add(time.Minute)),
		"tool-denied": edit(after(t, prompt(t, tool, both(command("set -e\n./publish.sh"), oneOf("fay", "sam"))),
			vote("sam", "whatsapp", permissions.Deny, no("keep old/"))), noon.Add(time.Minute)),
		"tool-taken-back": edit(after(t, prompt(t, tool, command("./publish.sh")),
			vote("fay", "telegram", once, nil),
			permissions.Void{By: "fay", Via: "cli", At: noon.Add(time.Minute)}), noon.Add(time.Hour)),
		"tool-expired": edit(after(t, prompt(t, tool, command("./publish.sh")),
			permissions.Expire{At: noon.Add(15 * time.Minute)}), noon.Add(time.Hour)),
		"tool-cancelled": edit(after(t, prompt(t, tool, command("./publish.sh")),
			permissions.Withdraw{At: noon.Add(time.Minute)}), noon.Add(time.Hour)),
		"tool-undeliverable": edit(after(t, prompt(t, tool, command("./publish.sh")),
			permissions.GiveUp{Reason: "fay has blocked the bot", At: noon.Add(time.Minute)}), noon.Add(time.Hour)),
		"tool-details":       show(prompt(t, tool, both(command("make"), details(strings.Repeat("row\n", 9)+"end"))), noon),
		"tool-document":      show(long, noon),
		"tool-document-edit": edit(after(t, long, vote("fay", "telegram", once, nil)), noon.Add(time.Minute)),
		"tool-too-big":       show(prompt(t, tool, both(command("make"), details(strings.Repeat("\n", 900_000)+"x"))), noon),
		"tool-long-reason":   show(prompt(t, tool, reason(strings.Repeat("because of this ", 20))), noon),
		"step":               show(prompt(t, tool, calls(3)), noon),
		"step-one-denied":    edit(after(t, prompt(t, tool, calls(3)), vote("fay", "cli", permissions.Deny, call(2))), noon),
		"step-settled": edit(after(t, prompt(t, tool, calls(2)),
			vote("fay", "telegram", permissions.Deny, call(2)), vote("fay", "telegram", once, call(1))), noon.Add(time.Minute)),
		"step-high-risk":  show(prompt(t, tool, both(calls(2), highRisk)), noon),
		"step-many":       show(prompt(t, tool, calls(50)), noon),
		"pause-continue":  show(prompt(t, pause, nil), noon),
		"pause-continued": edit(after(t, prompt(t, pause, nil), vote("fay", "telegram", permissions.Continue, nil)), noon),
		"pause-confirm":   show(prompt(t, pause, confirm), noon),
		"clarification":   show(prompt(t, clarification, nil), noon),
		"clarification-long": show(prompt(t, clarification, func(r *permissions.Request) {
			r.Choices = []string{"⛔ Deny", strings.Repeat("a long way to say it ", 9), "אפשרות"}
		}), noon),
		"clarification-chosen": edit(after(t, prompt(t, clarification, nil),
			vote("fay", "telegram", permissions.Choose(2), nil)), noon.Add(time.Minute)),
		"clarification-timed-out": edit(after(t, prompt(t, clarification, nil),
			permissions.Expire{At: noon.Add(15 * time.Minute)}), noon.Add(time.Hour)),
	}
	for name, out := range cards {
		t.Run(name, func(t *testing.T) {
			sound(t, out)
			path := filepath.Join("testdata", "cards", name+".txt")
			got := drawn(out)
			if *redraw {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
	files, err := filepath.Glob(filepath.Join("testdata", "cards", "*.txt"))
	if err != nil || len(files) != len(cards) {
		t.Errorf("%d cards are kept, and %d shown (%v)", len(files), len(cards), err)
	}
}

// Details that end in a newline stay folded when the request is settled.
func TestFoldedDetailsStayFolded(t *testing.T) {
	p := prompt(t, permissions.KindPermission, details(strings.Repeat("a row\n", 12)))
	settled := after(t, p, vote("fay", Name, permissions.Allow(permissions.Once), nil))
	for _, out := range []outgoing{show(p, noon), edit(settled, noon)} {
		text := drawn(out)
		folded, rows := strings.Index(text, "<"+asFolded+">"), strings.LastIndex(text, "a row\n")
		if folded < 0 || folded > rows || !strings.Contains(text[rows:], "</"+asFolded+">") {
			t.Errorf("the details are not in a folded quote: %+v\n%s", out.Entities, out.Text)
		}
	}
}

// drawn is a message as testdata/cards has it.
func drawn(out outgoing) string {
	var b strings.Builder
	if d := out.Document; d != nil {
		fmt.Fprintf(&b, "(%s, %d bytes, %s)\n", d.Name, len(d.Body), d.Digest.Short())
	}
	if out.Silent {
		b.WriteString("(silent)\n")
	}
	if out.TooBig {
		b.WriteString("(too big)\n")
	}
	units, at := utf16.Encode([]rune(out.Text)), 0
	for _, e := range out.Entities {
		b.WriteString(string(utf16.Decode(units[at:e.Offset])))
		at = e.Offset + e.Length
		fmt.Fprintf(&b, "<%s>%s</%[1]s>", e.Type, string(utf16.Decode(units[e.Offset:at])))
	}
	b.WriteString(string(utf16.Decode(units[at:])) + "\n")
	for _, row := range out.Keyboard.Rows {
		for _, k := range row {
			fmt.Fprintf(&b, "[%s → %s %s]", k.Text, strings.TrimPrefix(k.Data, aButton+"."), k.Style)
		}
		b.WriteString("\n")
	}
	return b.String()
}
