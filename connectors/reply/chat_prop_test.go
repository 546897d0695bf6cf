package reply_test

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/connectors/reply/replytest"
	"github.com/daycared/daycared/permissions"
)

// The shapes of a message that allows, in small letters and with single spaces: with the codes, and without in a reply
// to a card.
var (
	allowing = regexp.MustCompile(`^(` + yesWord + `( [2-9a-hj-kmnp-z]{5})+( ` + scopeWord + `)?( #[1-9])?( ` + scopeWord + `)?( ` + runWord +
		`)?|[2-9a-hj-kmnp-z]{5} ` + yesWord + `)$`)
	saysOther     = regexp.MustCompile(`^([2-9a-hj-kmnp-z]{5}\s+)?(other|anders):|^(other|anders)\s+[2-9a-hj-kmnp-z]{5}\b`)
	allowingReply = regexp.MustCompile(`^(` + yesWord + `( ` + scopeWord + `)?( #[1-9])?( ` + scopeWord + `)?|👍(\x{fe0f}|🏻|🏼|🏽|🏾|🏿)?)$`)
	// In a reply to a card a scope alone allows, too: it may follow the code.
	scopeAlone = regexp.MustCompile(`^` + scopeWord + `$`)
	runLast    = regexp.MustCompile(` ` + runWord + `$`)
)

// The words of such a message in every language.
const (
	yesWord   = `(yes|allow|approve|ja|erlauben|erlaube)`
	scopeWord = `(once|session_tool|session|always|einmal|sitzung|immer|[0-9][0-9.hms]*|[0-9]+ (minutes?|hours?|minuten?|stunden?))`
	runWord   = `(run|ausf(ü|Ü|u\x{308})hren|ausfuehren)`
)

// ends are what ends a line.
const ends = "\r\n\v\f\u0085\u2028\u2029"

// allowances are the decisions that allow.
func allowances(said reply.Result) (all []connectors.Decision) {
	for _, d := range said.Decisions {
		if _, ok := d.Answer.Scope(); ok {
			all = append(all, d)
		}
	}
	return all
}

// small is a text with its ASCII letters small, its spaces single, and without single stops, commas and exclamation marks at
// the end of words; nothing else is changed.
func small(text string) string {
	text = strings.TrimSpace(text)
	text = strings.Map(func(c rune) rune {
		if 'A' <= c && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return c
	}, text)
	var words []string
	for word := range strings.FieldsFuncSeq(text, func(c rune) bool { return unicode.IsSpace(c) && !strings.ContainsRune(ends, c) }) {
		if bare := strings.TrimRight(word, ".,!"); !strings.Contains(word[len(bare):], "..") {
			word = bare
		}
		if word != "" {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

// check is what holds for every message.
func check(t interface{ Fatalf(string, ...any) }, m reply.Message, said reply.Result) {
	byID := map[permissions.ID]reply.Open{}
	for _, o := range waiting {
		byID[o.Request.ID] = o
	}
	text := small(m.Text)
	for _, d := range said.Decisions {
		o := byID[d.Request]
		switch {
		case d.Answer == permissions.Other && !saysOther.MatchString(text):
			t.Fatalf("%+v answers in words without saying so", m)
		case d.Answer == permissions.Other && o.Request.TakesWords() && d.Comment != "":
		case !o.Request.Offers(d.Answer):
			t.Fatalf("%+v: %s is not offered by %s", m, d.Answer, d.Code)
		case d.Code != o.Code || d.Shown != o.Request.Digest || m.At.Before(o.ShownAt), o.ShownAt.IsZero() && d.Answer != permissions.Deny:
			t.Fatalf("%+v decides about what was not shown before: %+v", m, d)
		case m.Quotes == "" && !strings.Contains(text, strings.ToLower(d.Code)):
			t.Fatalf("%+v decides about %s without naming it", m, d.Code)
		}
	}
	for _, d := range allowances(said) {
		o := byID[d.Request]
		switch {
		case !allowing.MatchString(text) && (m.Quotes != d.Code || !allowingReply.MatchString(text) && !scopeAlone.MatchString(text)):
			t.Fatalf("%+v allows %s", m, d.Code)
		case d.Comment != "":
			t.Fatalf("%+v allows with a reason", m)
		case o.Request.HighRisk && (!d.Really || m.Reaction || len(said.Decisions) > 1):
			t.Fatalf("%+v allows high risk", m)
		case o.Request.HighRisk && !m.Console && !runLast.MatchString(text):
			t.Fatalf("%+v allows high risk without RUN", m)
		case !o.Request.HighRisk && d.Really:
			t.Fatalf("%+v says a second yes that nobody asked for", m)
		}
	}
	if len(said.Decisions) > 0 && (said.PassOn || said.Bare || said.Reply != "" || len(said.Unknown)+len(said.Unseen) > 0) {
		t.Fatalf("%+v decides, and yet %+v", m, said)
	}
	if said.PassOn && !said.Command {
		for _, o := range waiting {
			if regexp.MustCompile(`(?i)\b` + o.Code + `\b`).MatchString(m.Text) {
				t.Fatalf("%+v is passed on with the code of what waits", m)
			}
		}
	}
}

// words are those of the grammar, of codes, and others that people write.
var words = strings.Fields(`yes no allow approve deny K7F3Q M2P4R R5SKY STEP2 RSTEP PAUSE CNFRM CH5SE NEW22 ZZZZ9 k7f3q
	because run session session_tool once always 15m 900s 20m #1 #2 #3 continue interrupt 1 2 blog don't not never but please
	and 👍 👎 👍🏽 YES No y n ok ſ yeſ ｙｅｓ уes K7F3Q, other other: OTHER: o CH5SE: yes! K7F3Q? yes. (yes / #`)

// message makes messages of the words, and some of anything.
func messages() *rapid.Generator[reply.Message] {
	return rapid.Custom(func(t *rapid.T) reply.Message {
		word := rapid.OneOf(rapid.SampledFrom(words), rapid.SampledFrom(words), rapid.String())
		list := rapid.SliceOfN(word, 0, 6).Draw(t, "words")
		between := rapid.SampledFrom([]string{" ", " ", "  ", "\t", "\n", "\u00a0"}).Draw(t, "between")
		return reply.Message{
			Text:     strings.Join(list, between),
			Quotes:   rapid.SampledFrom([]string{"", "", "K7F3Q", "R5SKY", "CH5SE", "ZZZZ9"}).Draw(t, "quotes"),
			Reaction: rapid.IntRange(0, 5).Draw(t, "reaction") == 0,
			Console:  rapid.Bool().Draw(t, "console"),
			At:       noon.Add(time.Duration(rapid.IntRange(-1, 3).Draw(t, "at"))),
		}
	})
}

func TestWhatHoldsForEveryMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := messages().Draw(t, "message")
		check(t, m, reply.Read(m, waiting))
	})
}

var yes = regexp.MustCompile(`(?i)(^|[\s\p{Z}])(yes|allow|approve)[.,!]*($|[\s\p{Z}])`)

func TestNothingIsAllowedWithoutAYes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := messages().Draw(t, "message")
		m.Text = strings.TrimSpace(m.Text)
		if yes.MatchString(m.Text) || strings.HasPrefix(m.Text, "👍") {
			m.Text = strings.ReplaceAll(yes.ReplaceAllString(m.Text, " "), "👍", "")
			m.Text = yes.ReplaceAllString(m.Text, " ") // yes yes
		}
		if m.Quotes != "" && scopeAlone.MatchString(small(m.Text)) {
			return
		}
		if all := allowances(reply.Read(m, waiting)); len(all) > 0 && !yes.MatchString(m.Text) {
			t.Fatalf("%+v allows: %+v", m, all)
		}
	})
}

// allowed makes messages that allow.
func allowed() *rapid.Generator[reply.Message] {
	word := rapid.SampledFrom([]string{"yes", "allow", "approve", "YES", "Approve"})
	return rapid.Custom(func(t *rapid.T) reply.Message {
		m := reply.Message{At: noon, Text: word.Draw(t, "yes")}
		switch rapid.IntRange(0, 5).Draw(t, "shape") {
		case 0:
			m.Quotes, m.Text = "K7F3Q", rapid.SampledFrom([]string{m.Text, m.Text + "!", m.Text + " 15m", "👍", "👍🏿"}).Draw(t, "quoting")
		case 1:
			m.Text = "k7f3q " + m.Text
		case 2:
			m.Text += " K7F3Q" + rapid.SampledFrom([]string{"", " session", " 15m", " always", " once"}).Draw(t, "scope")
		case 3:
			m.Text += " STEP2" + rapid.SampledFrom([]string{" #1", " #2", " #2 15m", " session_tool"}).Draw(t, "call")
		case 4:
			m.Text += " R5SKY" + rapid.SampledFrom([]string{" RUN", " 15m run"}).Draw(t, "risk")
		case 5:
			m.Text += " K7F3Q M2P4R CNFRM"
		}
		return m
	})
}

// With one more word anywhere, an approval is none. Words of the grammar itself are not tried: with
// them it may be another answer.
func TestAnAllowanceWithOneMoreWordIsNone(t *testing.T) {
	grammar := regexp.MustCompile(`(?i)^(once|session|session_tool|always|run|#[12]|[0-9]+[smh]|[2-9a-z]{5}|)$`)
	rapid.Check(t, func(t *rapid.T) {
		m := allowed().Draw(t, "message")
		if len(allowances(reply.Read(m, waiting))) == 0 {
			t.Fatalf("%+v allows nothing: %s", m, reply.Read(m, waiting).Reply)
		}
		word := rapid.OneOf(
			rapid.SampledFrom([]string{"not", "don't", "never", "no", "yes", "but", "please", "ok", "👍", "👎", "?", "maybe", "ſ"}),
			rapid.StringMatching(`[a-z']{1,12}`), rapid.StringMatching(`\pL{1,8}`), rapid.StringMatching(`\pS`),
		).Filter(func(w string) bool { return !grammar.MatchString(w) }).Draw(t, "word")
		list := strings.Fields(m.Text)
		at := rapid.IntRange(0, len(list)).Draw(t, "at")
		m.Text = strings.Join(append(append(append([]string(nil), list[:at]...), word), list[at:]...), " ")
		if all := allowances(reply.Read(m, waiting)); len(all) > 0 {
			t.Fatalf("%+v allows: %+v", m, all)
		}
	})
}

func FuzzRead(f *testing.F) {
	for _, table := range replytest.Tables() {
		for _, m := range table.Messages {
			f.Add(m.Text, "", false, false, int64(0))
			f.Add(m.Text, "K7F3Q", false, true, int64(1))
		}
	}
	f.Fuzz(func(t *testing.T, text, quotes string, reaction, console bool, after int64) {
		m := reply.Message{Text: text, Quotes: quotes, Reaction: reaction, Console: console, At: noon.Add(time.Duration(after))}
		said := reply.Read(m, waiting)
		check(t, m, said)
		if again := reply.Read(m, waiting); outcome(again) != outcome(said) || again.Reply != said.Reply {
			t.Fatalf("%+v means two things: %+v and %+v", m, said, again)
		}
		if none := reply.Read(m, nil); len(none.Decisions) > 0 {
			t.Fatalf("%+v decides about nothing: %+v", m, none)
		}
	})
}
