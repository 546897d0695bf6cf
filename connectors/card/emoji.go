package card

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"go.mau.fi/util/emojishortcodes"
)

// emojis holds the emoji that Unicode recommends for interchange (UTS #51, RGI) without skin tones and selectors: true is
// a whole one, false the beginning of one.
var emojis = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	add := func(emoji string) {
		emoji = strings.ReplaceAll(emoji, "\uFE0F", "")
		all[emoji] = true
		for end := range emoji {
			if !all[emoji[:end]] {
				all[emoji[:end]] = false
			}
		}
	}
	for emoji := range emojishortcodes.GetMap() {
		add(emoji)
	}
	for _, toned := range []string{"👨\u200D🤝\u200D👨", "👩\u200D🤝\u200D👨", "👩\u200D🤝\u200D👩", "🫱\u200D🫲"} {
		add(toned) // recommended with skin tones only
	}
	return all
})

// emojiAt is the length in bytes of the emoji of several code points that text[at:] begins with, 0 if there is none. A
// digit or a letter within a word begins none.
func emojiAt(text string, at int) (size int) {
	first, n := utf8.DecodeRuneInString(text[at:])
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	if at+n == len(text) || text[at+n] < 0xE2 || inWord(first) && inWord(before) { // what may follow begins with E2, EF, F0, F3
		return 0
	}
	key := make([]byte, 0, 48)
	styled := true // what came last takes no skin tone and no selector
	for i, c := range text[at:] {
		if !styled && (c == '\uFE0F' || c >= 0x1F3FB && c <= 0x1F3FF) {
			styled = true
		} else {
			key = utf8.AppendRune(key, c)
			styled = unseen(c) || c >= 0x1F1E6 && c <= 0x1F1FF // half a flag
		}
		whole, begins := emojis()[string(key)]
		if !begins {
			break
		}
		if whole && i > 0 {
			size = i + utf8.RuneLen(c)
		}
	}
	return size
}

func inWord(c rune) bool { return unicode.In(c, unicode.L, unicode.N) }

// unseen reports whether c is seen within an emoji only.
func unseen(c rune) bool { return hidden(c) || unicode.In(c, unicode.Cf, unicode.Me) }

// spellEmoji is text that [Prose] rendered, with everything escaped that makes one emoji of several code points: how many
// cells of a terminal it takes cannot be known.
func spellEmoji(text string) string {
	if !strings.ContainsFunc(text, unseen) {
		return text
	}
	var b strings.Builder
	for _, c := range text {
		if unseen(c) {
			escape(&b, `\u{`, uint64(c))
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}
