package card

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// What is written from right to left is laid out by itself in chats, spelled out in terminals, and named.
func TestRightToLeft(t *testing.T) {
	for text, want := range map[string]string{
		"":              "",
		"/srv/א/1":      "/srv/\u2068א\u2069/1",
		"mv אב ג":       "mv \u2068אב\u2069 \u2068ג\u2069",
		"2 ב 3":         "2 \u2068ב\u2069 3",
		"١٢/٣":          "\u2068١٢\u2069/\u2068٣\u2069",
		"שָׁלוֹם!":      "\u2068שָׁלוֹם\u2069!",
		"漢字 aé e\u0301": "漢字 aé e\u0301",
	} {
		if got := Isolate(text); got != want {
			t.Errorf("%q is %q; want %q", text, got, want)
		}
	}
	if a, b := Isolate(Visible("/srv/\u2068א\u2069/1")), Isolate(Visible("/srv/א/1")); a == b || strings.Count(a, FSI) != 1 {
		t.Errorf("whoever writes an isolate writes %q", a)
	}
	r := permissions.Request{
		Kind: permissions.KindTool, Tool: "run_command", Input: []byte(`{"command":"mv /srv/א/1 /srv/ב/2"}`), Reason: "שלום",
	}
	p := connectors.Prompt{Request: r, Code: "K7F3Q"}
	if c := Card(p, Options{}); !strings.Contains(c, `⚠ runs from right to left: "א", "ב"`) {
		t.Errorf("nothing is said of it:\n%s", c)
	}
	c := Card(p, Options{Width: 80})
	if !strings.Contains(c, `mv /srv/\u{5D0}/1 /srv/\u{5D1}/2`) || !strings.Contains(c, "│ שלום") || strings.ContainsAny(c, "אב"+FSI) {
		t.Errorf("in a terminal:\n%s", c)
	}
	for row := range strings.Lines(Card(connectors.Prompt{Request: permissions.Request{
		Kind: permissions.KindTool, Tool: "run_command", Input: []byte(`{"command":"` + strings.Repeat("א", 90) + `✅ Allowed"}`),
	}}, Options{Width: 40})) {
		if Cells(strings.TrimSuffix(row, "\n")) > 40 {
			t.Errorf("a row of %d cells: %q", Cells(row), row)
		}
	}
}

// TestHostsAreFoundWordByWord: the quick search finds the hosts that the expression finds in the whole text.
func TestHostsAreFoundWordByWord(t *testing.T) {
	pieces := strings.Split("a bc A_ é 1 / @ : - . .com .io a.de \n -. xy_", " ")
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "text"), "")
		if got, want := hostsIn(text), asciiHost().FindAllString(text, -1); !slices.Equal(got, want) {
			t.Fatalf("%q has %q; want %q", text, got, want)
		}
	})
}
