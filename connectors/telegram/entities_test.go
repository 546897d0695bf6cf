package telegram

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/daycared/daycared/connectors/card"
)

func TestEntities(t *testing.T) {
	const text = "a 😀 bé\n x y "
	for _, c := range []struct {
		name  string
		spans []span
		want  []entity
	}{
		{"none", nil, nil},
		{"a letter", []span{{asBold, 0, 1, ""}}, []entity{{asBold, 0, 1, ""}}},
		{"two units in four bytes", []span{{asCode, 2, 6, ""}, {asBold, 7, 10, ""}}, []entity{{asCode, 2, 2, ""}, {asBold, 5, 2, ""}}},
		{"white space at its ends", []span{{asPre, 1, 12, ""}}, []entity{{asPre, 2, 5, ""}}},
		{"white space only", []span{{asPre, 10, 12, ""}}, nil},
		{"empty", []span{{asPre, 3, 3, ""}}, nil},
		{"the end", []span{{asPre, 12, 16, ""}}, []entity{{asPre, 9, 3, ""}}},
		{"within a character", []span{{asPre, 3, 8, ""}, {asPre, 0, 4, ""}}, nil},
		{"overlapping", []span{{asPre, 0, 6, ""}, {asCode, 2, 8, ""}, {asBold, 7, 8, ""}}, []entity{{asPre, 0, 4, ""}, {asBold, 5, 1, ""}}},
		{"past the end", []span{{asPre, 12, 99, ""}}, []entity{{asPre, 9, 3, ""}}},
		{"beyond the end", []span{{asPre, 90, 99, ""}}, nil},
	} {
		if diff := cmp.Diff(c.want, entitiesOf(text, c.spans)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// TestClip says that what is cut has at most so many units, no half character, and is a start of the text.
func TestClip(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"four", 4, "four"}, {"fives", 4, "fiv…"}, {"😀😀", 4, "😀😀"}, {"😀😀😀", 4, "😀…"}, {"a b", 3, "a b"}, {"a bc", 3, "a…"},
		{"\u2068AA", 2, "…"}, {"\u2068AAA", 3, "\u2068…\u2069"}, {"\u2068A\u2069AA", 4, "\u2068A\u2069…"},
		{"\u2069\u2068AAA", 4, "\u2069\u2068A…"},
	} {
		if got := clipTo(c.text, c.most); got != c.want {
			t.Errorf("%q in %d is %q; want %q", c.text, c.most, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text, most := rapid.String().Draw(t, "text"), rapid.IntRange(1, 30).Draw(t, "most")
		got := clipTo(text, most)
		begins := got == text || strings.HasPrefix(text, strings.TrimSuffix(strings.TrimSuffix(got, card.PDI), "…"))
		if card.UTF16.Of(got) > most || !utf8.ValidString(got) || !begins {
			t.Fatalf("%q in %d is %q", text, most, got)
		}
	})
}

func TestVisibleSpellsOutWhatTelegramRemoves(t *testing.T) {
	if got := visible("rm x\u030a y\u0333 z\u033f \u202e é"); got != `rm x\u{30A} y\u{333} z\u{33F} \u{202E} é` {
		t.Errorf("%q", got)
	}
}
