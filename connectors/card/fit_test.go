package card_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

// telegram are the limits of a chat with short messages.
var telegram = card.Limits{Text: 4096, Unit: card.UTF16, Rows: 10, Document: 50 << 20}

func TestFit(t *testing.T) {
	command := func(rows int) permissions.Request {
		return request(permissions.KindTool, func(r *permissions.Request) {
			quoted, _ := json.Marshal(strings.TrimSuffix(strings.Repeat("echo one\n", rows), "\n"))
			r.Tool, r.Input, r.Host, r.HighRisk = "bash", input(fmt.Sprintf(`{"command":%s}`, quoted)), "vps", true
			r.Reason = "because"
		})
	}
	for _, c := range []struct {
		name   string
		r      permissions.Request
		l      card.Limits
		want   string
		tooBig bool
	}{
		{"details", request(permissions.KindPermission, func(r *permissions.Request) {
			r.Tags, r.Reason, r.Details = []permissions.Tag{permissions.Network}, "because", strings.Repeat("row\n", 19)+"end"
		}), card.Limits{Text: 600, Rows: 2}, `
scribe wants network access
│ because
Details:
│ row
│ row
… 18 more rows
details of 20 rows, 79 bytes
All of it is in the file above: daycared-K7F3Q.txt
an agent of daycared
K7F3Q · until 14:15 UTC`, false},
		{"the action", command(99), card.Limits{Text: 600}, `
⚠ High risk: scribe wants to run a command
  echo one
  echo one
  echo one
  echo one
  echo one
  echo one
  echo one
… 85 more rows
  echo one
  echo one
  echo one
  echo one
  echo one
  echo one
  echo one
Runs with bash
Not readable before it runs.
│ because
a command of 99 rows
All of it is in the file above: daycared-K7F3Q.txt
Not all of what it wants is shown here: read the whole before you answer.
vps · an agent of daycared
K7F3Q · until 14:15 UTC`, false},
		{"no documents", command(99), card.Limits{Text: 500, Document: -1}, `
⚠ High risk: scribe wants to run a command
  echo one
  echo one
  echo one
  echo one
… 91 more rows
  echo one
  echo one
  echo one
  echo one
Runs with bash
Not readable before it runs.
│ because
a command of 99 rows
Too big to be shown here whole (1243 bytes): it cannot be allowed here.
Not all of what it wants is shown here: read the whole before you answer.
vps · an agent of daycared
K7F3Q · until 14:15 UTC`, true},
		{"no room at all", command(99), card.Limits{Text: 100}, `
A request is too big to be shown here; it cannot be allowed here. Its code: K7F3Q`, true},
		{"a long name", request(permissions.KindTool, func(r *permissions.Request) {
			r.Agent, r.Claimed, r.Tool, r.AffectedPath = strings.Repeat("a", 200), true, strings.Repeat("t", 200), "/"+strings.Repeat("p", 4000)
			r.Caller.Name = "uid:1000"
		}), card.Limits{Text: 800}, `
"` + strings.Repeat("a", 39) + `…" wants to use "` + strings.Repeat("t", 39) + `…"
The action: 1 row
All of it is in the file above: daycared-K7F3Q.txt
Not all of what it wants is shown here: read the whole before you answer.
unproven name, from uid 1000
K7F3Q · until 14:15 UTC`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, o := connectors.Prompt{Request: c.r, Code: "K7F3Q"}, card.Options{Now: c.r.Deadline} // nothing is said relative to it
			m := card.Fit(p, o, c.l)
			want := c.want
			if m.Document != nil {
				want = strings.NewReplacer("SIZE", fmt.Sprint(len(m.Document.Body)),
					"DIGEST", strings.TrimPrefix(m.Document.Digest.Short(), "sha256:")).Replace(want)
			}
			if diff := cmp.Diff(want, "\n"+m.Text); diff != "" || m.TooBig != c.tooBig {
				t.Errorf("too big: %v\n%s", m.TooBig, diff)
			}
			fitted(t, p, o, c.l)
		})
	}
}

// TestFitShowsWhatFitsWhole: a card within the limits is the card, and nothing else is sent.
func TestFitShowsWhatFitsWhole(t *testing.T) {
	for _, r := range every() {
		p := connectors.Prompt{Request: r, Code: "K7F3Q"}
		whole := card.Card(p, card.Options{Width: 60})
		l := card.Limits{Text: utf8.RuneCountInString(whole)}
		if m := card.Fit(p, card.Options{Width: 60}, l); m.Text != whole || m.Document != nil || m.TooBig {
			t.Errorf("%s %s is sent as\n%s", r.Kind, r.State, m.Text)
		}
		if m := card.Fit(p, card.Options{Width: 60}, card.Limits{Text: l.Text - 1}); m.Text == whole || (m.Document == nil && !m.TooBig) {
			t.Errorf("%s %s is sent whole although it is too long:\n%s", r.Kind, r.State, m.Text)
		}
	}
}

func TestUnits(t *testing.T) {
	for unit, want := range map[card.Unit]int{card.Characters: 4, card.UTF16: 5, card.Bytes: 10} {
		if got := unit.Of("aé漢𝄞"); got != want {
			t.Errorf("unit %d: %d; want %d", unit, got, want)
		}
	}
}

// fitted checks what holds for every message: the text is within the limits, the marks cover it, and either the text is
// the whole card, or the document is, or nothing may be allowed.
func fitted(t interface {
	Helper()
	Fatalf(string, ...any)
}, p connectors.Prompt, o card.Options, l card.Limits) card.Message {
	t.Helper()
	m, whole := card.Fit(p, o, l), card.Card(p, o)
	size := map[card.Unit]int{
		card.Characters: utf8.RuneCountInString(m.Text), card.UTF16: len(utf16.Encode([]rune(m.Text))), card.Bytes: len(m.Text),
	}[l.Unit]
	if l.Text > 0 && size > l.Text || !utf8.ValidString(m.Text) {
		t.Fatalf("a text of %d, more than %d, or not UTF-8:\n%s", size, l.Text, m.Text)
	}
	switch {
	case m.Document == nil && !m.TooBig && m.Text != whole:
		t.Fatalf("not the whole card, and no document:\n%s", m.Text)
	case m.Document != nil && m.Document.Type == "text/plain" && string(m.Document.Body) != whole+"\n":
		t.Fatalf("the document is not the whole card:\n%s", m.Document.Body)
	case m.Document != nil && m.Document.Digest != sha256.Sum256(m.Document.Body):
		t.Fatalf("the document has another digest")
	case m.Document != nil && l.Document != 0 && len(m.Document.Body) > l.Document:
		t.Fatalf("the document has %d bytes, more than %d", len(m.Document.Body), l.Document)
	case m.Document != nil && strings.ContainsFunc(m.Document.Name, func(c rune) bool { return c <= ' ' || c > '~' || c == '/' }):
		t.Fatalf("the document is called %q", m.Document.Name)
	}
	var shown []string
	for _, part := range m.Parts {
		text := card.Plain(part.Text)
		sign := map[card.Role]string{card.Action: "  ", card.Words: "│ "}[part.Role]
		shown = append(shown, sign+strings.ReplaceAll(text, "\n", "\n"+sign))
	}
	if text := strings.Join(shown, "\n"); o.Width == 0 && text != m.Text {
		t.Fatalf("the parts\n%s\nare not the text\n%s", text, m.Text)
	}
	return m
}

// TestFitIsWithinLimits fills every field to its limit with text that grows when it is shown.
func TestFitIsWithinLimits(t *testing.T) {
	bits := rapid.SampledFrom([]string{
		"x", " ", "\n", "\u202e", "\U000e0041", "漢", "😀", `"`, `\u{`, "⟨9", "‹secret", "│", "aа ", "e\u0301", strings.Repeat("word ", 50),
		strings.Repeat("y", 300), "ghp_0123456789012345678901234567890123456 ",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := func(label string, most int) string {
			unit := strings.Join(rapid.SliceOfN(bits, 1, 4).Draw(t, label), "")
			n := rapid.SampledFrom([]int{0, 1, 5, most}).Draw(t, label+" length")
			s := []rune(strings.Repeat(unit, n/utf8.RuneCountInString(unit)+1))
			return string(s[:min(n, len(s))])
		}
		r := rapid.SampledFrom(every()).Draw(t, "request")
		fill(&r, "x")
		r.Agent, r.Host, r.Cwd = text("agent", permissions.MaxName), text("host", permissions.MaxName), text("cwd", 4096)
		r.Reason, r.Message, r.Details = text("reason", 2000), text("message", 4000), text("details", 20_000)
		r.Tool, r.AffectedPath, r.EnvHash = text("tool", 200), text("path", 4096), text("hash", 200)
		r.Claimed, r.HighRisk, r.Caller.Name = rapid.Bool().Draw(t, "claimed"), rapid.Bool().Draw(t, "risk"), "uid:1"
		r.Quorum = rapid.IntRange(1, 3).Draw(t, "quorum")
		quoted, _ := json.Marshal(text("command", 10_000))
		r.Input = quoted
		for i := range r.Calls {
			r.Calls[i].Input, r.Calls[i].AffectedPath = input(fmt.Sprintf(`{"command":%s}`, quoted)), r.AffectedPath
		}
		for range rapid.SampledFrom([]int{0, 50}).Draw(t, "names") {
			r.EnvNames = append(r.EnvNames, r.Host)
		}
		if r.Kind == permissions.KindClarification {
			for i := range 18 {
				r.Choices = append(r.Choices, fmt.Sprint(i)+text("choice", 199))
			}
		}
		p := connectors.Prompt{Request: r, Code: "K7F3Q"}
		o := card.Options{Width: rapid.SampledFrom([]int{0, 24, 39, 40, 80}).Draw(t, "width"), Reveal: rapid.Bool().Draw(t, "reveal")}
		l := card.Limits{
			Text: rapid.OneOf(rapid.IntRange(1, 300), rapid.SampledFrom([]int{0, 1024, 4096, 65536})).Draw(t, "text"),
			Unit: card.Unit(rapid.IntRange(0, 2).Draw(t, "unit")),
			Rows: rapid.SampledFrom([]int{0, 10}).Draw(t, "rows"), Document: rapid.SampledFrom([]int{-1, 0, 10_000}).Draw(t, "document"),
		}
		m := fitted(t, p, o, l)
		if l.Text < 4096 || m.Document == nil && m.TooBig {
			return
		}
		lines := strings.Split(m.Text, "\n")
		if m.TooBig || !strings.HasPrefix(lines[len(lines)-1], "K7F3Q · until ") {
			t.Fatalf("a text of %d has no room for its terms:\n%s", l.Text, m.Text)
		}
	})
}

// TestFitOfTheLargest are requests of every kind with every field as long as it may be, in what grows most.
func TestFitOfTheLargest(t *testing.T) {
	for grow, size := range map[string]int{
		"\U000e0041": permissions.MaxDetails, "\n": permissions.MaxDetails, "\x01": 1 << 16, `"`: 1 << 16, "x": 1 << 16, "😀": 1 << 16,
		"e\u0301": 1 << 16,
	} {
		t.Run(fmt.Sprintf("B1/%+q", grow), func(t *testing.T) {
			for _, r := range []permissions.Request{
				request(permissions.KindPermission, nil), request(permissions.KindTool, nil), request(permissions.KindClarification, nil),
				request(permissions.KindPause, nil),
			} {
				long := func(n int) string { return string([]rune(strings.Repeat(grow, n))[:n]) }
				r.Agent, r.Claimed, r.Host, r.Cwd, r.EnvHash = long(200), true, long(200), long(4096), long(200)
				r.Message, r.Reason, r.Details = long(4000), long(2000), strings.Repeat(grow, size/len(grow))
				r.HighRisk, r.Quorum, r.LeftAt = true, 3, now
				for i := range 50 {
					r.Tags = append(r.Tags, tag(fmt.Sprintf("@read:/%d%s", i, strings.Repeat("\u202e", 1300))))
					r.EnvNames = append(r.EnvNames, long(200))
					if r.Kind == permissions.KindTool {
						quoted, _ := json.Marshal(long(200))
						r.Calls = append(r.Calls, permissions.Call{N: i + 1, Tool: long(60), Input: quoted, AffectedPath: long(4096)})
					}
					if r.Kind == permissions.KindClarification && i < 20 {
						r.Choices = append(r.Choices, long(200))
					}
				}
				p := connectors.Prompt{Request: r, Code: "K7F3Q"}
				m := fitted(t, p, card.Options{Width: 60, Now: now}, telegram)
				for _, want := range []string{"⚠ High risk: ", "All of it ", "Not all ", "It takes ", "\nK7F3Q · until "} {
					if m.TooBig || !strings.Contains(m.Text, want) {
						t.Errorf("%s of %q does not say %q:\n%s", r.Kind, grow, want, m.Text)
					}
				}
				if r.Kind != permissions.KindPause || size < permissions.MaxDetails {
					return
				}
				if m := card.Fit(p, card.Options{}, card.Limits{Text: 4096, Document: 1 << 20}); !m.TooBig || m.Document != nil {
					t.Errorf("%s of %q is not too big for a document of 1 MiB", r.Kind, grow)
				}
			}
		})
	}
}

func TestLinesAreWrappedAtWords(t *testing.T) {
	for _, tt := range []struct {
		text, want  string
		width, hang int
	}{
		{"y allow once · n deny · r deny with a reason > ", "y allow once · n\ndeny · r deny\nwith a reason > ", 18, 0},
		{"one two three", "one two three", 13, 0},
		{"one two three", "one two\nthree", 12, 0},
		{"one two three", "one two three", 0, 0},
		{"one\ntwo three\n", "one\ntwo\nthree\n", 6, 0},
		{"abcdefgh ij", "abcdefgh\nij", 4, 0},
		{"世界 世界", "世界\n世界", 5, 0},
		{"世界", "世界", 1, 0},
		{"", "", 5, 0},
		{"\n\n", "\n\n", 5, 2},
		{"short\n", "short\n", 12, 2},
		{"one two three four\n", "one two\n  three four\n", 12, 2},
		{"  one two three\n", "  one two\n    three\n", 12, 2},
		{"/a/path/that/is/longer then\n", "/a/path/that/is/longer\n  then\n", 12, 2},
		{"go /a/path/that/is/longer", "go\n  /a/path/that/is/longer", 12, 2},
		{"exactly ten!\nx\n", "exactly ten!\nx\n", 12, 2},
		{"✅ Allowed by you\n", "✅ Allowed\n  by you\n", 12, 2},
	} {
		if got := card.Wrap(tt.text, tt.width, tt.hang); got != tt.want {
			t.Errorf("Wrap(%q, %d, %d) = %q, want %q", tt.text, tt.width, tt.hang, got, tt.want)
		}
	}
}
