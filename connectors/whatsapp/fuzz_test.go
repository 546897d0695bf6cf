package whatsapp

import (
	"strings"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"

	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/connectors/reply/replytest"
)

// heardSeeds are messages as phones encrypt them.
func heardSeeds() []*waE2E.Message {
	about := newID("K7F3Q")
	quote := func(id string, change func(*waE2E.ContextInfo)) *waE2E.Message {
		c := &waE2E.ContextInfo{StanzaID: &id, Participant: proto.String("15550001111@s.whatsapp.net")}
		change(c)
		return &waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{Text: proto.String("yes"), ContextInfo: c}}
	}
	react := func(text, id string, own bool) *waE2E.Message {
		return &waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{Text: &text, Key: &waCommon.MessageKey{ID: &id, FromMe: &own}}}
	}
	return []*waE2E.Message{
		{}, {Conversation: proto.String("yes K7F3Q")}, {Conversation: proto.String("ye" + joiner + "s K7F3Q")},
		{Conversation: proto.String("don't allow K7F3Q")}, {Conversation: proto.String("YES R5SKY RUN")},
		quote(about, func(*waE2E.ContextInfo) {}), quote("3EB0", func(*waE2E.ContextInfo) {}),
		quote(about, func(c *waE2E.ContextInfo) { c.IsForwarded = proto.Bool(true) }),
		quote(about, func(c *waE2E.ContextInfo) { c.ForwardingScore = proto.Uint32(4) }),
		quote(about, func(c *waE2E.ContextInfo) { c.Participant = proto.String("77@lid") }),
		quote(about, func(c *waE2E.ContextInfo) { c.Participant = proto.String("15550001111:7@s.whatsapp.net") }),
		quote(about, func(c *waE2E.ContextInfo) { c.Participant = proto.String("15550001112@s.whatsapp.net") }),
		quote(about, func(c *waE2E.ContextInfo) { c.RemoteJID = proto.String("1@g.us") }),
		react("👍🏽", about, false), react("👍", about, true), react("", about, false), react("👎\ufe0f", "", false),
		{Conversation: proto.String("yes K7F3Q"), ProtocolMessage: &waE2E.ProtocolMessage{}},
		{EphemeralMessage: &waE2E.FutureProofMessage{Message: &waE2E.Message{Conversation: proto.String("yes K7F3Q")}}},
	}
}

// FuzzHear hears what any bytes decrypt to: what changes an earlier message or holds somebody else's words is not heard,
// what replies to a card counts as that only where the card is ours, and what is heard allows only in so many words.
func FuzzHear(f *testing.F) {
	for _, m := range heardSeeds() {
		raw, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, false, "")
		f.Add(raw, true, "1")
	}
	f.Add([]byte("\x0a\x05yes\xff\xfe"), false, "7")
	noon, fay := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), types.NewJID("491700000001", types.DefaultUserServer)
	ours, lid := types.NewJID("15550001111", types.DefaultUserServer), types.NewJID("77", types.HiddenUserServer)
	waiting := replytest.Waiting(noon)
	f.Fuzz(func(t *testing.T, raw []byte, edit bool, mark string) {
		m := &waE2E.Message{}
		if proto.Unmarshal(raw, m) != nil {
			return
		}
		h, not := decode(&events.Message{Message: m, IsEdit: edit, Info: types.MessageInfo{
			MessageSource: types.MessageSource{Chat: fay, Sender: fay}, ID: "1", Edit: types.EditAttribute(mark), Timestamp: noon,
		}})
		if not != "" {
			return
		}
		quoted := m.GetExtendedTextMessage().GetContextInfo()
		switch {
		case edit || m.GetProtocolMessage() != nil || mark != "" && (!h.reaction || h.text != ""):
			t.Fatalf("%v changes another, and is heard as %+v", m, h)
		case !h.reaction && (quoted.GetIsForwarded() || quoted.GetForwardingScore() > 0):
			t.Fatalf("%v was handed on, and is heard as %+v", m, h)
		}
		from := reply.Message{Text: h.text, Reaction: h.reaction, At: noon}
		if h.quotes != "" && h.onOurs(ours, lid) {
			user, _, _ := strings.Cut(h.author, "@")
			user, _, _ = strings.Cut(user, ":")
			user, _, _ = strings.Cut(user, ".") // who hosts the account
			if h.author != "" && user != ours.User && user != lid.User || strings.HasSuffix(h.chat, "@g.us") {
				t.Fatalf("what %q wrote in %q is taken for ours", h.author, h.chat)
			}
			from.Quotes = codeOf(h.quotes)
		}
		text := strings.ToLower(h.text)
		for _, d := range reply.Read(from, waiting).Decisions {
			_, allows := d.Answer.Scope()
			yes := strings.Contains(text, "yes") || strings.Contains(text, "allow") || strings.Contains(text, "approve") || text == "👍"
			if allows && (!yes || strings.Contains(text, "not") || strings.Contains(text, "n't")) {
				t.Fatalf("%q allows %s", h.text, d.Code)
			}
			if !strings.Contains(text, strings.ToLower(d.Code)) && from.Quotes != d.Code {
				t.Fatalf("%q, to %q, decides about %s", h.text, from.Quotes, d.Code)
			}
		}
	})
}

// FuzzPairCode: a code is brought only by who types it behind its word, and an id of a message holds a request's code
// only where it is as ours are.
func FuzzPairCode(f *testing.F) {
	for _, text := range []string{
		"pair ABCDEFGH", "PAIR abcdefgh", " pair\tABCDEFGH\n", "pair ABCDEFG", "pair ABCDEFGHJ", "pairABCDEFGH", "pair ABCD EFGH",
		"pair \u017fBCDEFG", "pa\u0131r ABCDEFGH", "pair\u00a0ABCDEFGH", "please pair ABCDEFGH", "pair", "pair \xff2345678",
		"3EB04B374633510A0B0C0D", "3EB04b374633510a0b0c0d", "3eb04B374633510A0B0C0D", "3EB0CB374633510A0B0C0D", "3EB04B374633510A0B0C0D00",
		"3EB03031494C4F0A0B0C0D", "3EB0" + strings.Repeat("Z", 18), "3EB0",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		code, is := pairCode(text)
		strange := strings.ContainsFunc(code, func(c rune) bool { return !strings.ContainsRune(codeLetters, c) })
		if is && !strange && len(code) == codeLength { // one that may be out
			words := strings.Fields(text)
			if len(words) != 2 || !strings.EqualFold(words[0], "pair") || len(words[1]) != codeLength || !strings.EqualFold(words[1], code) {
				t.Fatalf("%q brings %q", text, code)
			}
		}
		if code := codeOf(text); code != "" {
			again := newID(code)
			if about := len(again) - 2*randomBytes; len(text) != len(again) || !strings.EqualFold(text[:about], again[:about]) {
				t.Fatalf("%q is about %q, of which the id is %q", text, code, again)
			}
		}
	})
}
