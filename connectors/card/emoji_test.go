package card_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

// parts are emoji of several code points, by how they are built alone (UTS #51, ED-15a): which of them Unicode recommends
// is another matter.
var parts = regexp.MustCompile(`[0-9#*]\x{FE0F}?\x{20E3}|` +
	`[\p{So}\p{Sm}\p{Po}\p{Pd}ℹ][\x{1F3FB}-\x{1F3FF}]?\x{FE0F}?[\x{E0061}-\x{E007A}]*\x{E007F}?` +
	`(\x{200D}\p{So}[\x{1F3FB}-\x{1F3FF}]?\x{FE0F}?)*`)

// hidesOutsideEmoji reports whether anything is not seen in text but within emoji.
func hidesOutsideEmoji(text string) bool {
	return strings.ContainsFunc(parts.ReplaceAllString(text, ""), func(c rune) bool {
		return hiddenOnScreen(c) || unicode.In(c, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point, unicode.Me)
	})
}

const england = "🏴\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F"

// TestEmojiStayWhole: what is only read keeps the emoji that Unicode recommends, and nothing else that is not seen.
func TestEmojiStayWhole(t *testing.T) {
	for _, whole := range []string{
		"❤️", "⚠️ careful", "hi 👨‍👩‍👧 ☀️", "👩‍💻👩🏽‍💻", "1️⃣ 2️⃣#️⃣*️⃣", "🏳️‍🌈🏴‍☠️🏳️‍⚧️", england + " " + england, "👁️‍🗨️", "🧑🏻‍🤝‍🧑🏿",
		"🫱🏻‍🫲🏿", "👩🏻‍❤️‍💋‍👨🏿", "❤️‍🔥", "🏃🏽‍♀️‍➡️", "↔️ ©️ ℹ️ ‼️ ㊗️ ▶️", "🇩🇪🇫🇷", "👍🏽", "😶‍🌫️", "漢❤️字", "I❤️NY", "☝🏿", "♥",
	} {
		if got := card.Prose(whole); got != whole {
			t.Errorf("Prose(%q) = %q", whole, got)
		}
		if got := card.Spell(card.Prose(whole)); strings.ContainsFunc(got, func(c rune) bool {
			return c == '\uFE0F' || c == '\u200D' || c == '\u20E3' || unicode.Is(unicode.Cf, c)
		}) || read(got) != whole {
			t.Errorf("Spell(%q) = %q", whole, got)
		}
	}
	for text, want := range map[string]string{
		"a\u200Db":                `a\u{200D}b`,
		"a\uFE0Fb ─\uFE0F":        `a\u{FE0F}b ─\u{FE0F}`,
		"\uFE0F❤\uFE0F\uFE0F":     `\u{FE0F}❤️\u{FE0F}`,
		"❤\uFE0E":                 `❤\u{FE0E}`,
		"1\uFE0F 1\u20E3 a\u20E3": "1" + `\u{FE0F}` + " 1\u20E3 a" + `\u{20E3}`,
		"room1\uFE0F\u20E3":       `room1\u{FE0F}\u{20E3}`,
		"xℹ\uFE0F":                `xℹ\u{FE0F}`,
		"👨\u200D":                 `👨\u{200D}`,
		"😀\u200D😀":                `😀\u{200D}😀`,
		"❤️\u200D😀 ❤️\u200D\u200D🔥":          `❤️\u{200D}😀 ❤️\u{200D}\u{200D}🔥`,
		"👩\u200D💻\u200D":                     "👩‍💻" + `\u{200D}`,
		"🇩\uFE0F🇪 🇩🇪\uFE0F":                  `🇩\u{FE0F}🇪 🇩🇪\u{FE0F}`,
		"x\U000E0067\U000E0062\U000E007F":    `x\u{E0067}\u{E0062}\u{E007F}`,
		"🏴\U000E0075\U000E0073\U000E007F":    `🏴\u{E0075}\u{E0073}\u{E007F}`,
		"😀\U000E0067\U000E007F ⠀\u200D⠀":     `😀\u{E0067}\u{E007F} \u{2800}\u{200D}\u{2800}`,
		england[:len(england)-4] + " \u202E": `🏴\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067} \u{202E}`,
	} {
		t.Run("B2/"+want, func(t *testing.T) {
			if got := card.Prose(text); got != want || read(got) != text {
				t.Errorf("Prose(%q)\n got %s\nwant %s", text, got, want)
			}
			if got := card.Visible(text); strings.ContainsAny(got, "\uFE0F\u200D\u20E3\U000E007F") {
				t.Errorf("Visible(%q) = %q", text, got)
			}
		})
	}
}

// TestEmojiOnCards: chats show the emoji of what is said and of what is written into files as they are; what runs is
// exact, and a terminal shows neither, since how wide they are there cannot be known.
func TestEmojiOnCards(t *testing.T) {
	input := func(members ...string) []byte {
		all := map[string]string{}
		for i := 0; i < len(members); i += 2 {
			all[members[i]] = members[i+1]
		}
		raw, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	const star = "⭐️👩‍💻"
	spelled := card.Visible(star)
	tags, err := permissions.ParseTags([]string{"@write:/" + star})
	if err != nil {
		t.Fatal(err)
	}
	said := permissions.Request{
		Kind: permissions.KindTool, Tool: "run_command", Input: input("command", "rm "+star), Reason: star, Details: star,
	}
	edit := permissions.Request{
		Kind: permissions.KindTool, Tool: "Edit", Input: input("file_path", "/"+star, "new_string", star, "argument", star),
	}
	asked := permissions.Request{Kind: permissions.KindClarification, Message: star, Choices: []string{star}}
	tagged := permissions.Request{Kind: permissions.KindPermission, Tags: tags}
	denied := permissions.Request{Kind: permissions.KindTool, State: permissions.Denied, DecidedBy: "fay", Comment: star}
	for name, c := range map[string]struct {
		r       permissions.Request
		kept    int
		exactly []string
	}{
		"command": {said, 2, []string{"rm " + spelled}},
		"edit":    {edit, 1, []string{"file_path: /" + spelled, "argument: " + spelled}},
		"choices": {asked, 3, nil}, // the first one again, as what is taken in the end
		"tag":     {tagged, 0, []string{"/" + spelled}},
		"comment": {denied, 1, nil},
	} {
		t.Run("B2/"+name, func(t *testing.T) {
			p := connectors.Prompt{Request: c.r, Code: "K7F3Q"}
			text := func(o card.Options) string {
				if c.r.State == permissions.Denied {
					return card.Settled(c.r, o)
				}
				return card.Card(p, o)
			}
			for _, reveal := range []bool{false, true} {
				got := text(card.Options{Reveal: reveal})
				if n := strings.Count(got, star); n != c.kept {
					t.Errorf("%d emoji stay; want %d:\n%s", n, c.kept, got)
				}
				for _, exact := range c.exactly {
					if !strings.Contains(got, exact) {
						t.Errorf("there is no %s:\n%s", exact, got)
					}
				}
			}
			if got := text(card.Options{Width: 100}); strings.ContainsAny(got, "\uFE0F\u200D") || !strings.Contains(got, spelled) {
				t.Errorf("in a terminal:\n%s", got)
			}
		})
	}
}
