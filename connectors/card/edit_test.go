package card_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/edits"
	"github.com/daycared/daycared/permissions/edits/editstest"
)

// whatsapp are the limits of a chat with long messages.
var whatsapp = card.Limits{Text: 20_000, Unit: card.Characters, Rows: 200, Changes: 30, Document: 2 << 20}

// editing is a hook's question about a call, of which the hook has read the file.
func editing(t *testing.T, tool string, members map[string]any, file string, exists bool) permissions.Request {
	t.Helper()
	raw, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	e, ok := edits.Of(tool, raw)
	if !ok {
		t.Fatalf("%s %s is no edit", tool, raw)
	}
	return request(permissions.KindTool, func(r *permissions.Request) {
		r.Caller.Name, r.Agent, r.Claimed, r.Hook = "uid:1000", "claude-code", true, "claude-code"
		r.Cwd, r.Tool, r.Input, r.Rows = "/srv/shop", tool, raw, e.Around(file, exists)
		r.AffectedPath = e.Path
	})
}

// diffIn is the diff that a message has as a block or as its document, without the row about its end.
func diffIn(m card.Message) (rows []string, found bool) {
	if m.Document != nil && m.Document.Type == "text/x-diff" {
		_, text, _ := strings.Cut("\n"+string(m.Document.Body), "\n+++ ")
		rows = strings.Split(strings.TrimSuffix(text, "\n"), "\n")[1:]
		return rows, true
	}
	for _, part := range m.Parts {
		if part.Role == card.Action && part.Lang == "diff" {
			return strings.Split(part.Text, "\n"), m.Document == nil
		}
	}
	return nil, false
}

// TestTheShownDiffGivesTheFile: what a card or its file shows of an edit, applied to the file, is the file that is written, in every
// dialect, with the limits of both chats.
func TestTheShownDiffGivesTheFile(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(7, 8))
	some := func(most int) string {
		var b strings.Builder
		for range g.IntN(most) {
			b.WriteString([]string{
				"}\n", "\tx := 1\n", "\t\ty\tz // 👨‍👩‍👧\n", "    if a {\n", "--- a\n", "+++ b\n", "@@ -1 +1 @@\n", "```\n", "\n", "│ x\n",
				"K7F3Q · until 14:00\n", "b\n",
			}[g.IntN(12)])
		}
		return b.String()
	}
	shown := map[string]int{}
	for range 300 {
		file := some(12)
		if g.IntN(3) == 0 {
			file = some(400)
		}
		rows := strings.SplitAfter(file, "\n")
		from := g.IntN(len(rows))
		to := from + g.IntN(min(len(rows)-from, 4)+1)
		if g.IntN(4) == 0 {
			to = from + g.IntN(len(rows)-from+1)
		}
		before, after := strings.Join(rows[from:to], ""), some(8)
		content := strings.Join(rows[:from], "") + after + strings.Join(rows[to:], "")
		for _, c := range []struct {
			tool string
			in   map[string]any
			swap bool
		}{
			{"Edit", map[string]any{"file_path": "/srv/shop/a.go", "old_string": before, "new_string": after, "replace_all": false}, true},
			{"replace", map[string]any{"file_path": "/srv/shop/a.go", "old_string": before, "new_string": after}, true},
			{"edit", map[string]any{"filePath": "/srv/shop/a.go", "oldString": before, "newString": after}, true},
			{"edit", map[string]any{"path": "/srv/shop/a.go", "old_str": before, "new_str": after}, true},
			{"edit_file", map[string]any{"path": "/srv/shop/a.go", "old_text": before, "new_text": after}, true},
			{"MultiEdit", map[string]any{"file_path": "/srv/shop/a.go", "edits": []any{
				map[string]any{"old_string": before, "new_string": after},
			}}, true},
			{"replace_string_in_file", map[string]any{"filePath": "/srv/shop/a.go", "oldString": before, "newString": after}, true},
			{"Write", map[string]any{"file_path": "/srv/shop/a.go", "content": content}, false},
			{"write_file", map[string]any{"path": "/srv/shop/a.go", "content": content}, false},
			{"create", map[string]any{"path": "/srv/shop/a.go", "file_text": content}, false},
		} {
			if c.swap && (before == "" || strings.Count(file, before) != 1) || content == file {
				continue
			}
			r := editing(t, c.tool, c.in, file, true)
			for chat, l := range map[string]card.Limits{"telegram": telegram, "whatsapp": whatsapp} {
				m := fitted(t, connectors.Prompt{Request: r, Code: "K7F3Q"}, card.Options{Reveal: true}, l)
				diff, found := diffIn(m)
				if !found {
					t.Fatalf("%s: %s %q of %q has no diff:\n%s", chat, c.tool, c.in, file, m.Text)
				}
				if got, err := editstest.Apply(file, diff); err != nil || got != content {
					t.Fatalf("%s: %s %q of %q: the diff gives %q, %v, not %q:\n%s", chat, c.tool, c.in, file, got, err, content, strings.Join(diff, "\n"))
				}
				shown[fmt.Sprint(c.tool, m.Document != nil)]++
			}
		}
	}
	for _, tool := range []string{"Edit", "replace", "edit", "edit_file", "MultiEdit", "Write", "write_file", "create"} {
		if shown[tool+"true"] < 10 || shown[tool+"false"] < 10 {
			t.Errorf("%s is shown %d times in a text and %d times in a file", tool, shown[tool+"false"], shown[tool+"true"])
		}
	}
}

// TestANewFileIsItsContent: a new file is shown as it is, in its language, and where it does not fit as a diff against nothing.
func TestANewFileIsItsContent(t *testing.T) {
	for _, c := range []struct{ path, language, content string }{
		{"/srv/shop/a.go", "go", "package a\n\n\tvar x int\n"},
		{"/srv/shop/notes", "", "no end"},
		{"/srv/shop/long.py", "py", strings.Repeat("print(1)\n", 2000)},
	} {
		r := editing(t, "Write", map[string]any{"file_path": c.path, "content": c.content}, "", false)
		m := card.Fit(connectors.Prompt{Request: r, Code: "K7F3Q"}, card.Options{}, telegram)
		if m.Document != nil {
			diff, _ := diffIn(m)
			if got, err := editstest.Apply("", diff); err != nil || got != c.content {
				t.Errorf("%s: the file gives %q, %v", c.path, got, err)
			}
		} else if got := m.Parts[1]; got.Lang != c.language || got.Text != strings.TrimSuffix(c.content, "\n") {
			t.Errorf("%s is shown as %+v", c.path, got)
		}
		if !strings.Contains(m.Text, "There is no such file yet, as the hook found.") || strings.Contains(m.Text, `"content"`) {
			t.Errorf("%s:\n%s", c.path, m.Text)
		}
	}
}

// TestALongEditKeepsItsEnds: a card whose edit does not fit has the first and the last hunk, and of each what is removed and what is
// added; the whole is a file with the name of the other one, a type and a caption.
func TestALongEditKeepsItsEnds(t *testing.T) {
	var file, content strings.Builder
	for i := range 600 {
		fmt.Fprintf(&file, "row %d of the old file, which is long enough\n", i)
		if i < 100 || i >= 150 && i < 450 || i >= 550 {
			fmt.Fprintf(&content, "row %d of the old file, which is long enough\n", i)
		} else {
			fmt.Fprintf(&content, "row %d of the new file, which is long enough\n", i)
		}
	}
	r := editing(t, "Write", map[string]any{"file_path": "/srv/shop/cart.go", "content": content.String()}, file.String(), true)
	r.Digest = permissions.ComputeDigest(r)
	for chat, l := range map[string]card.Limits{"telegram": telegram, "whatsapp": whatsapp} {
		m := fitted(t, connectors.Prompt{Request: r, Code: "K7F3Q"}, card.Options{}, l)
		for _, want := range []string{
			"claude-code wants to write cart.go +150 −150\n", "\n  -row 100 ", "\n  +row 100 ", "\n  -row 549 ", "\n  +row 549 ",
			" more rows\n", "All of it is in the file above: cart.go.diff\n",
			"Not all of what it wants is shown here: read the whole before you answer.", "Rows of the file as the hook read them.",
		} {
			if !strings.Contains(m.Text, want) {
				t.Errorf("%s: %q is not in\n%s", chat, want, m.Text)
			}
		}
		d := m.Document
		if want := "K7F3Q · the whole edit: +150 −150 in cart.go · " + r.ShownDigest().String(); d == nil || d.Name != "cart.go.diff" ||
			d.Type != "text/x-diff" || d.Caption != want || r.ShownDigest() == r.Digest {
			t.Errorf("%s: the file is %+v", chat, d)
		}
		if removed, added := strings.Count(m.Text, "\n  -"), strings.Count(m.Text, "\n  +"); max(removed-added, added-removed) > 4 {
			t.Errorf("%s: %d rows that are removed and %d that are added", chat, removed, added)
		}
		if m.Unseen {
			t.Errorf("%s: the card has nothing of the action", chat)
		}
	}
}

// TestWhatAnEditSaysBesidesIsShown: a member of the input that the diff does not show is on the card or in its file, with its name.
func TestWhatAnEditSaysBesidesIsShown(t *testing.T) {
	for tool, in := range map[string]map[string]any{
		"Write":                  {"file_path": "/srv/shop/a", "content": "x\n", "mode": "0777"},
		"Edit":                   {"file_path": "/srv/shop/a", "old_string": "a", "new_string": "b", "mode": "0777"},
		"MultiEdit":              {"file_path": "/srv/a", "edits": []any{map[string]any{"old_string": "a", "new_string": "b"}}, "mode": "0777"},
		"replace_string_in_file": {"filePath": "/srv/shop/a", "oldString": "a", "newString": "b", "mode": "0777"},
		"apply_patch":            {"input": "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch", "mode": "0777"},
		"NotebookEdit":           {"notebook_path": "/srv/shop/a", "new_source": "x", "mode": "0777"},
	} {
		for _, size := range []int{1, 20_000} {
			if in["content"] != nil {
				in["content"] = strings.Repeat("x\n", size)
			}
			r := editing(t, tool, in, "a\n", true)
			m := fitted(t, connectors.Prompt{Request: r, Code: "K7F3Q"}, card.Options{}, telegram)
			all := m.Text
			if m.Document != nil {
				all = string(m.Document.Body)
			}
			if !strings.Contains(all, "\n  mode: 0777\n") || !strings.Contains(all, "The call says besides:\n") {
				t.Errorf("%s of %d: the mode is not in\n%.600s", tool, size, all)
			}
		}
	}
}

// TestTheDigestCoversRowsOfFiles: two cards of a call that differ by what was told of its file have different digests.
func TestTheDigestCoversRowsOfFiles(t *testing.T) {
	g := rand.New(rand.NewPCG(9, 10))
	seen := map[string]permissions.Digest{}
	r := editing(t, "Write", map[string]any{"file_path": "/srv/shop/a", "content": "1\n2\n3\n4\n5\n"}, "", true)
	r.Digest = permissions.ComputeDigest(r)
	for range 400 {
		r.Rows = nil
		if g.IntN(20) > 0 {
			text := strings.Join([]string{"1\n", "2\n", "x\n", "\n"}[g.IntN(4):][:1], "") + []string{"", "3\n", "3"}[g.IntN(3)]
			r.Rows = []permissions.Rows{{First: g.IntN(4), Text: text, After: g.IntN(4)}}
		}
		shown := card.Card(connectors.Prompt{Request: r, Code: "K7F3Q"}, card.Options{})
		for other, digest := range seen {
			if digest == r.ShownDigest() && other != shown {
				t.Fatalf("one digest of\n%s\nand of\n%s", shown, other)
			}
		}
		seen[shown] = r.ShownDigest()
	}
	if len(seen) < 20 {
		t.Errorf("only %d cards were compared", len(seen))
	}
}

// TestSecretsInADiffAreMasked: in what is removed, what is added, and in rows of the file.
func TestSecretsInADiffAreMasked(t *testing.T) {
	token := func(c string) string { return "ghp_" + strings.Repeat(c, 36) }
	file := "url: x\ntoken: " + token("a") + "\ntoken: " + token("b") + "\n"
	r := editing(t, "Edit", map[string]any{
		"file_path": "/srv/shop/conf.yaml", "old_string": "token: " + token("b"), "new_string": "token: " + token("c"),
	}, file, true)
	p := connectors.Prompt{Request: r, Code: "K7F3Q"}
	shown := card.Card(p, card.Options{})
	if strings.Contains(shown, "ghp_") || strings.Count(shown, "‹secret, 40 characters") != 3 || !card.HasSecret(r) {
		t.Errorf("it is shown as\n%s", shown)
	}
	m := card.Fit(p, card.Options{}, card.Limits{Text: 600, Changes: 1})
	if m.Document == nil || strings.Contains(string(m.Document.Body), "ghp_") {
		t.Errorf("the file is %+v", m.Document)
	}
	if open := card.Card(p, card.Options{Reveal: true}); strings.Count(open, "ghp_") != 3 {
		t.Errorf("revealed it is\n%s", open)
	}
}

// TestWhiteSpaceOfAnEditIsSaid: tabs and emoji are shown as themselves, and an edit of white space says so.
func TestWhiteSpaceOfAnEditIsSaid(t *testing.T) {
	in := map[string]any{"file_path": "/srv/shop/a.go", "old_string": "\tx", "new_string": "\t\tx"}
	r := editing(t, "Edit", in, "👨‍👩‍👧\n\tx // ☀️\n", true)
	m := card.Fit(connectors.Prompt{Request: r, Code: "K7F3Q"}, card.Options{}, telegram)
	want := "@@ -1,2 +1,2 @@\n 👨‍👩‍👧\n-\tx // ☀️\n+\t\tx // ☀️"
	if m.Parts[1].Text != want || !strings.Contains(m.Text, "to edit a.go +1 −1 (only white space)\n") {
		t.Errorf("it is\n%s", m.Text)
	}
}

// TestNothingOfALongRowIsSeen: a card that has no room for a single row of its action says so to the channel.
func TestNothingOfALongRowIsSeen(t *testing.T) {
	r := editing(t, "Write", map[string]any{"file_path": "/srv/shop/min.js", "content": strings.Repeat("x", 9000)}, "", false)
	m := fitted(t, connectors.Prompt{Request: r, Code: "K7F3Q"}, card.Options{}, telegram)
	if !m.Unseen || m.TooBig || m.Document == nil || m.Document.Name != "min.js.diff" {
		t.Errorf("unseen %t, %+v:\n%s", m.Unseen, m.Document, m.Text)
	}
	r = editing(t, "Write", map[string]any{"file_path": "/srv/shop/min.js", "content": strings.Repeat("x\n", 9000)}, "", false)
	if m := fitted(t, connectors.Prompt{Request: r, Code: "K7F3Q"}, card.Options{}, telegram); m.Unseen {
		t.Errorf("rows of the action are there:\n%s", m.Text)
	}
}

// TestNothingOfALongCallIsSeen: what a hook had no room for is in the details alone, of which the text has at most a part.
func TestNothingOfALongCallIsSeen(t *testing.T) {
	r := permissions.Request{
		Kind: permissions.KindTool, Hook: "claude-code", Tool: "WebFetch", Cwd: "/srv/shop",
		Input:   json.RawMessage(`{"input_bytes":80042,"input_sha256":"` + strings.Repeat("ab", 32) + `"}`),
		Details: "\"prompt\", 1 bytes:\n    x\n\"url\", 80019 bytes:\n    https://e.example/?" + strings.Repeat("q", 80000) + "\n",
	}
	p := connectors.Prompt{Request: r, Code: "K7F3Q"}
	if m := fitted(t, p, card.Options{}, telegram); !m.Unseen || m.TooBig || m.Document == nil {
		t.Errorf("unseen %t, %+v:\n%s", m.Unseen, m.Document, m.Text)
	}
	if m := card.Fit(p, card.Options{}, card.Limits{}); m.Unseen {
		t.Error("all of it is there")
	}
	p.Request.Hook = "" // an agent's own words
	if m := fitted(t, p, card.Options{}, telegram); m.Unseen {
		t.Error("all of its input is there")
	}
}

// TestFileNamesOfDiffs: a file is named after the other one only if that is a plain name.
func TestFileNamesOfDiffs(t *testing.T) {
	for path, want := range map[string]string{
		"/srv/shop/cart.go": "cart.go.diff", "/srv/.env": ".env.diff", "/srv/a b": "daycared-K7F3Q.diff",
		"/srv/x\u202egp.exe": "daycared-K7F3Q.diff",
		"/srv/-rf":           "daycared-K7F3Q.diff", "/srv/" + strings.Repeat("n", 61): "daycared-K7F3Q.txt", "/srv/漢": "daycared-K7F3Q.diff",
	} {
		r := editing(t, "Write", map[string]any{"file_path": path, "content": strings.Repeat("x\n", 5000)}, "", false)
		m := fitted(t, connectors.Prompt{Request: r, Code: "K7F3Q"}, card.Options{}, telegram)
		if m.Document == nil || m.Document.Name != want {
			t.Errorf("%q: the file is %+v", path, m.Document)
		}
	}
}

// TestFitOfEdits: whatever is edited, by whatever words about the file, is within the limits of both chats, and nothing of what is
// written is missing from the card or its file.
func TestFitOfEdits(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(11, 12))
	some := func(most int) string {
		var b strings.Builder
		for range g.IntN(most) {
			b.WriteString([]string{
				"x", "\n", "\t", "    ", "```", "\u202e", "漢", "😀", "\x1b[2J", "\r\n", strings.Repeat("long ", 80), "K7F3Q · until", "│ ",
			}[g.IntN(13)])
		}
		return b.String()
	}
	for range 400 {
		tool, in := "Edit", map[string]any{"file_path": "/srv/" + some(3) + "/n" + some(3), "old_string": some(200), "new_string": some(300)}
		switch g.IntN(4) {
		case 0:
			tool, in = "Write", map[string]any{"file_path": "/srv/n" + some(3), "content": some(1000)}
		case 1:
			tool, in = "apply_patch", map[string]any{
				"input": "*** Begin Patch\n*** Update File: n" + some(3) + "\n@@\n-" + some(200) + "\n+" + some(300),
			}
		}
		r := editing(t, tool, in, "", true)
		r.Rows = []permissions.Rows{{First: g.IntN(5), Text: some(100) + fmt.Sprint(in["old_string"]) + some(100), After: g.IntN(5)}}
		r.Reason, r.Details = some(50), some(100)
		for _, l := range []card.Limits{telegram, whatsapp} {
			m := fitted(t, connectors.Prompt{Request: r, Code: "K7F3Q"}, card.Options{}, l)
			if n := 0; l.Changes > 0 && m.Document != nil {
				for _, part := range m.Parts {
					if part.Lang == "diff" {
						n += strings.Count(part.Text, "\n") + 1
					}
				}
				if n > l.Changes {
					t.Fatalf("%d rows of the edit:\n%s", n, m.Text)
				}
			}
			rows := strings.Split(m.Text, "\n")
			if m.TooBig || !strings.HasPrefix(rows[len(rows)-1], "K7F3Q · until ") {
				t.Fatalf("%s %q cannot be allowed:\n%s", tool, in, m.Text)
			}
			all := m.Text
			if m.Document != nil {
				all = string(m.Document.Body)
			}
			for _, name := range []string{"new_string", "content"} {
				text, _ := in[name].(string)
				for row := range strings.SplitSeq(text, "\n") {
					if row = strings.TrimRight(row, " \t\r"); row != "" && !strings.ContainsAny(row, "\t ") && !strings.Contains(all, card.Prose(row)) {
						t.Fatalf("%s %q: %q is not in\n%s", tool, in, row, all)
					}
				}
			}
		}
	}
}
