package whatsapp

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/reply/replytest"
	"github.com/daycared/daycared/connectors/talk"
	"github.com/daycared/daycared/permissions"
)

// agentText makes what an agent may write to have a card look like another.
var agentText = rapid.StringOf(rapid.OneOf(
	rapid.SampledFrom([]rune("*_~`>-•1.) 漢\n\r\t\u2060\u200b\u200e\u202e\u2066\ufeff\U000e0041\u0085\u2028\x1b│┃─✅⛔K7F3Q")), rapid.Rune(),
))

// bolded are words of ours in bold.
var bolded = regexp.MustCompile(`(^| )\*([^*\s][^*]*[^*\s]|[^*\s])\*([ .]|$)`)

// isolated is a word that is laid out by itself.
var isolated = regexp.MustCompile("\u2068[^\u2068\u2069\\s]+\u2069")

// unformatted checks a text that is outside of fences: nothing in it begins a format, or is not seen, but the marks around
// what is written from right to left.
func unformatted(t *rapid.T, text string) {
	text = isolated.ReplaceAllStringFunc(text, func(word string) string {
		if bare := strings.Trim(word, card.FSI+card.PDI); card.Isolate(bare) == word {
			return bare
		}
		return word
	})
	runes := []rune(text)
	for i, r := range runes {
		guarded := i+1 < len(runes) && runes[i+1] == '\u2060'
		if strings.ContainsRune("*_~`", r) && !guarded {
			t.Fatalf("%q formats: %q", r, text)
		}
		if r != '\u2060' && r != '\n' && (unicode.Is(unicode.Cf, r) || unicode.IsControl(r)) && r != '\u200d' {
			t.Fatalf("%U is not seen: %q", r, text)
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		for _, sign := range []string{"> ", "- ", "* ", "1. ", "# "} {
			if strings.HasPrefix(line, sign) {
				t.Fatalf("%q is a %q: %q", line, sign, text)
			}
		}
	}
}

// onlyOurs checks a text: whatever is outside of its blocks, quotes and codes is ours.
func onlyOurs(t *rapid.T, text string) {
	blocks := strings.Split(text, fence)
	if len(blocks)%2 == 0 {
		t.Fatalf("a block is open: %q", text)
	}
	for i, block := range blocks {
		if i%2 == 1 {
			if strings.TrimSpace(block) == "" && block != "" || strings.HasPrefix(block, " ") || strings.Contains(block, "`") {
				t.Fatalf("a block is %q: %q", block, text)
			}
			continue
		}
		for row := range strings.SplitSeq(block, "\n") {
			said, isQuote := strings.CutPrefix(row, "> ")
			if isQuote {
				unformatted(t, said)
				continue
			}
			spans := strings.Split(strings.ReplaceAll(row, "`\u2060", ""), "`")
			if len(spans)%2 == 0 {
				t.Fatalf("a code is open: %q", row)
			}
			for j := 0; j < len(spans); j += 2 {
				unformatted(t, bolded.ReplaceAllString(spans[j], "$1$2$3"))
				if strings.ContainsAny(spans[j], "漢│┃─✅") {
					t.Fatalf("an agent's words stand outside of quotes, blocks and codes in %q: %q", row, text)
				}
			}
		}
	}
}

// Whatever an agent writes, what is outside of blocks, quotes and codes is ours, and formats nothing but our own words: so
// however a phone wraps it, no row there is an agent's.
func TestNothingChangesHowACardLooks(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	kinds := replytest.Waiting(noon)
	draws := func(t *rapid.T) {
		o := rapid.SampledFrom(kinds).Draw(t, "kind")
		r := o.Request
		r.State, r.CreatedAt, r.Deadline = permissions.Pending, noon, noon.Add(time.Hour)
		r.Agent, r.Claimed = agentText.Draw(t, "agent"), rapid.Bool().Draw(t, "claimed")
		r.Reason, r.Details, r.Message = agentText.Draw(t, "reason"), agentText.Draw(t, "details"), agentText.Draw(t, "message")
		r.Host, r.Cwd, r.Tool = agentText.Draw(t, "host"), agentText.Draw(t, "cwd"), agentText.Draw(t, "tool")
		if rapid.IntRange(0, 40).Draw(t, "long") == 7 {
			r.Reason, r.Details = strings.Repeat(r.Reason, 100), strings.Repeat(r.Details, 2000)
		}
		if len(r.Choices) > 0 {
			r.Choices = rapid.SliceOfN(agentText, 2, 5).Draw(t, "choices")
		}
		if rapid.Bool().Draw(t, "settled") {
			r.State, r.Answer, r.DecidedBy = permissions.Denied, permissions.Deny, "fay"
			r.Comment, r.DecidedAt = agentText.Draw(t, "comment"), noon.Add(time.Minute)
		}
		p := connectors.Prompt{Request: r, Code: o.Code, Waiting: 1, To: connectors.Person{Name: "fay", Location: time.UTC}}
		text := show(p, noon).Text
		onlyOurs(t, text)
		g := permissions.Grant{Caller: "token:" + r.Agent, Tool: r.Tool, By: "fay", CreatedAt: noon}
		for _, n := range []connectors.Notice{
			{About: permissions.AboutWaiting, Waiting: []connectors.Prompt{p, p}}, {About: permissions.AboutEnded, Grant: g},
			{About: permissions.AboutRevoked, Grant: g, Ran: []permissions.Request{r}},
			{About: permissions.AboutUnknownSenders, UnknownSenders: permissions.UnknownSenders{List: []permissions.UnknownSender{
				{Via: "telegram", Account: "6666", Name: r.Agent, At: noon},
			}}},
			{About: permissions.AboutText, By: "uid:1000", At: noon,
				CallerMessage: permissions.CallerMessage{Agent: r.Agent, Title: r.Reason, Text: r.Details}},
		} {
			n.To = p.To
			onlyOurs(t, renderNotice(n, noon))
		}
		onlyOurs(t, spelled("Granted:\n"+card.InForce(g, card.Options{Now: noon})))
		onlyOurs(t, spelled(card.Outcome(r, card.Options{Now: noon}).Text))
		onlyOurs(t, spelled(card.Name(r.Agent)+" stops what it works on."))
		if n := utf8.RuneCountInString(text); n > 65_536 {
			t.Fatalf("%d characters", n)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		for range 10 { // 1,000 requests
			draws(t)
		}
	})
}

// Whatever an agent says, only its code is formatted.
func TestOnlyCodeIsFormatted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := connectors.AgentMessage{Agent: "helper", Text: agentText.Draw(t, "text")}
		for _, part := range talk.Parts(s, talk.Limits{Text: maxSaid, Unit: card.Characters}) {
			text := renderMessage(part)
			blocks := strings.Split(text, fence)
			if len(blocks)%2 == 0 {
				t.Fatalf("a fence is open: %q", text)
			}
			for i := 0; i < len(blocks); i += 2 {
				spans := strings.Split(strings.ReplaceAll(blocks[i], "`\u2060", ""), "`")
				if len(spans)%2 == 0 {
					t.Fatalf("a sign of code is open: %q", text)
				}
				for j := 0; j < len(spans); j += 2 {
					for k, r := range []rune(spans[j]) {
						next := []rune(spans[j])[k+1:]
						if strings.ContainsRune("*_~", r) && (len(next) == 0 || next[0] != '\u2060') {
							t.Fatalf("%q formats: %q", r, text)
						}
					}
				}
			}
		}
	})
}

func TestStatesOfCards(t *testing.T) {
	two := permissions.Request{Kind: permissions.KindPermission, State: permissions.Pending, Quorum: 2}
	p := connectors.Prompt{Code: "K7F3Q", Request: two}
	if words := head(p, time.Now()); !strings.Contains(words, "it takes 2 people") {
		t.Errorf("%q", words)
	}
	hidden := replytest.Offered(permissions.KindTool, func(r *permissions.Request) {
		r.Agent, r.Tool, r.Input, r.Cwd = "ci", "Bash", json.RawMessage(`{"command":"plum"}`), "/srv"
		r.Reason, r.Details, r.AffectedPath, r.State = "plum", strings.Repeat("plum\n", 999), "/srv/plum", permissions.Pending
	})
	out := show(connectors.Prompt{Code: "K7F3Q", Request: hidden.Title()}, time.Now())
	if out.Document != nil || strings.Contains(out.Text, "plum") || !strings.HasPrefix(out.Text, "*ci wants to use* `Bash`\n") ||
		!strings.Contains(out.Text, "`/srv`") || !strings.Contains(out.Text, "Reply to this message: *no*\n`K7F3Q`") {
		t.Errorf("a chat of titles is sent %s, and a file: %v", out.Text, out.Document != nil)
	}
	if words := escapeText(strings.Repeat("x", 2*maxWords)); utf8.RuneCountInString(words) != maxWords || !strings.HasSuffix(words, "…") {
		t.Errorf("%d characters", utf8.RuneCountInString(words))
	}
}

// The name of a card holds its code, and no other name does.
func TestNames(t *testing.T) {
	for range 1000 {
		if code := codeOf(newID("")); code != "" {
			t.Fatalf("a name without a code holds %s", code)
		}
	}
	for name, want := range map[string]string{
		newID("K7F3Q"): "K7F3Q", "": "", "3EB0": "", "3EB0XYZ": "", "AC" + newID("K7F3Q"): "", newID("K7F3Q")[:20]: "", newID("k!f3q"): "",
	} {
		if code := codeOf(name); code != want {
			t.Errorf("%s holds %q; want %q", name, code, want)
		}
	}
	for _, text := range []string{"", "+49170", "49170/3EB0", "+49170/", "elsewhere/3EB0"} {
		if r, err := parseRef(text); err == nil {
			t.Errorf("%q is %+v", text, r)
		}
	}
	if r, err := parseRef("+49170/3EB0"); err != nil || r != (ref{"+49170", "3EB0"}) {
		t.Errorf("%+v, %v", r, err)
	}
}
