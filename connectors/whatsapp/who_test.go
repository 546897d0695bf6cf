package whatsapp

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/proto/waWeb"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"

	"github.com/daycared/daycared/connectors/whatsapp/whatsapptest"
	"github.com/daycared/daycared/permissions"
)

// A sender is the same person whichever of their ids comes with the message.
func TestAPersonByEachName(t *testing.T) {
	for name, as := range map[string]func(*whatsapptest.Person) *whatsapptest.Person{
		"LID and number": func(p *whatsapptest.Person) *whatsapptest.Person { return p },
		"number and LID": (*whatsapptest.Person).ByNumber, "LID alone": (*whatsapptest.Person).ByLIDAlone,
		"number alone": (*whatsapptest.Person).ByNumberAlone,
	} {
		s := newEnv(t) // what was denied twice is not asked again
		fay := s.phones["fay"]
		who := as(fay)
		call, m, code := s.asked("by " + name + ".")
		who.Says("yes " + code)
		s.get(call, permissions.Approved)
		s.becomes("fay", m.ID, "You allowed this once")
		call, m, _ = s.asked("by " + name + ", quoted.")
		who.Quotes(m.ID, "no")
		s.get(call, permissions.Denied)
		call, m, _ = s.asked("by " + name + ", thumb.")
		who.Reacts(m.ID, "👍")
		s.get(call, permissions.Approved)
		s.until("three decisions", func() bool { return s.desk.decisions() == 3 })
		for _, d := range s.desk.taken() {
			if d.From.Address != "+"+numbers["fay"] || d.From.Alias != fay.LID().User {
				t.Errorf("decided from %s, %s", d.From.Address, d.From.Alias)
			}
		}
	}
}

// What does not come from the person alone, from their own device and in their own words, decides nothing.
func TestWhoDecidesNothing(t *testing.T) {
	s := newEnv(t)
	fay, sam, eve := s.phones["fay"], s.phones["sam"], s.phones["eve"]
	early := fay.Says("what is this about?")
	denied, _, past := s.asked("denied.")
	no := fay.Says("no " + past)
	s.get(denied, permissions.Denied)
	s.marked("fay", no, "⛔")
	call, m, code := s.asked("waits.")
	yes := "yes " + code

	group := s.server.Group()
	fay.In(group).Says(yes)
	fay.In(group).Quotes(m.ID, "yes")
	fay.In(group).Reacts(m.ID, "👍")
	fay.ToMany().Says(yes)
	fay.OnStatus().Says(yes)
	fay.Forwards(yes)
	fay.Edits(early, yes)
	fay.Edits(no, yes)
	fay.Revokes(no)
	s.server.Phone().Writes(fay, yes)
	s.server.Phone().WritesToSelf(yes)
	s.server.Desktop().Writes(fay, yes)
	s.server.Desktop().WritesToSelf(yes)
	fay.Ago(time.Hour).Says(yes)
	fay.Ago(time.Hour).Quotes(m.ID, "yes")
	ghost := s.server.Person("491700000999", "ghost").ByLIDAlone()
	ghost.Says(yes)
	ghost.Quotes(m.ID, "yes")
	for range 3 {
		eve.Says(yes)
		eve.Quotes(m.ID, "yes")
		eve.Reacts(m.ID, "👍")
	}
	says := sam.Says(yes)
	quotes := sam.Quotes(m.ID, "yes")
	sam.Reacts(m.ID, "👍")
	s.answers("sam", says, "not yours")
	s.answers("sam", quotes, "not yours")
	s.acknowledged()
	s.waits(call)
	if n := s.desk.decisions(); n != 1 {
		t.Errorf("%d decisions; want fay's no alone", n)
	}
	fay.Says(yes)
	s.get(call, permissions.Approved)

	for name, p := range map[string]*whatsapptest.Person{"eve": eve, "ghost": ghost} {
		for _, m := range p.Messages() {
			if m.From == s.server.Number() {
				t.Errorf("%s, who is nobody here, is told %q", name, m.Text)
			}
		}
	}
	want := []permissions.UnknownSender{{Via: Name, Account: "+" + numbers["eve"], Alias: eve.LID().User, Name: "eve"}}
	if got := s.desk.unknown(); !slices.Equal(got, want) {
		t.Errorf("strangers: %+v; want eve once", got)
	}
	s.sees("fay", "eve")
}

// Configured people are told once a minute that what they sent is not read; nobody else is.
func TestWhatIsNotReadIsSaid(t *testing.T) {
	s := newEnv(t)
	call, _, code := s.asked("waits.")
	fay, eve := s.phones["fay"], s.phones["eve"]
	voice := func() *waE2E.Message { return &waE2E.Message{AudioMessage: &waE2E.AudioMessage{PTT: proto.Bool(true)}} }
	eve.Sends(voice())
	s.answers("fay", fay.Sends(voice()), "I can't read voice messages, so nothing was decided.")
	fay.Sends(&waE2E.Message{StickerMessage: &waE2E.StickerMessage{}})
	fay.Sends(&waE2E.Message{PollUpdateMessage: &waE2E.PollUpdateMessage{}})
	s.acknowledged()
	s.server.Advance(61 * time.Second)
	photo := fay.Sends(&waE2E.Message{ImageMessage: &waE2E.ImageMessage{Caption: proto.String("yes " + code)}})
	s.answers("fay", photo, "I can't read photos, so nothing was decided. Please write it as a new message, as in: no "+code)
	s.server.Advance(61 * time.Second)
	s.answers("fay", fay.Edits(fay.Says("/whoami"), "yes "+code),
		"I can't read edited messages, so the edit changed nothing of what was decided. Please")
	s.acknowledged()
	s.waits(call)
	if said := s.got("fay"); strings.Contains(said, "stickers") || strings.Count(said, "I can't read") != 3 {
		t.Errorf("fay is told %s", said)
	}
	if said := s.got("eve"); strings.Contains(said, "I can't") {
		t.Errorf("eve is told %s", said)
	}
}

// A message counts only as what the sender's own device sent, once.
func TestOnlyMessagesOfTheSendersDeviceCount(t *testing.T) {
	fay, bot := types.NewJID("491700000001", types.DefaultUserServer), types.NewJID("4915200000001", types.DefaultUserServer)
	text := &waE2E.Message{Conversation: proto.String("yes K7F3Q")}
	for name, change := range map[string]func(*events.Message){
		"from this account":         func(e *events.Message) { e.Info.IsFromMe = true },
		"by another device of it":   func(e *events.Message) { e.Info.DeviceSentMeta = &types.DeviceSentMeta{} },
		"in a group":                func(e *events.Message) { e.Info.IsGroup = true },
		"in a channel":              func(e *events.Message) { e.Info.Chat.Server = types.NewsletterServer },
		"in somebody else's chat":   func(e *events.Message) { e.Info.Chat = bot },
		"to a list":                 func(e *events.Message) { e.Info.BroadcastListOwner = fay },
		"to many":                   func(e *events.Message) { e.Info.Multicast = true },
		"a copy of the phone's":     func(e *events.Message) { e.SourceWebMsg = &waWeb.WebMessageInfo{} },
		"a copy that was asked for": func(e *events.Message) { e.UnavailableRequestID = "1" },
		"an edit":                   func(e *events.Message) { e.IsEdit = true },
		"marked as an edit":         func(e *events.Message) { e.Info.Edit = types.EditAttributeMessageEdit },
		"revoked":                   func(e *events.Message) { e.Info.Edit = types.EditAttributeSenderRevoke },
		"no text":                   func(e *events.Message) { e.Message = &waE2E.Message{AudioMessage: &waE2E.AudioMessage{}} },
		"a poll's vote":             func(e *events.Message) { e.Message = &waE2E.Message{PollUpdateMessage: &waE2E.PollUpdateMessage{}} },
		"out of a channel": func(e *events.Message) {
			e.Message = &waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{Text: proto.String("yes K7F3Q"),
				ContextInfo: &waE2E.ContextInfo{ForwardedNewsletterMessageInfo: &waE2E.ContextInfo_ForwardedNewsletterMessageInfo{}}}}
		},
		"two texts": func(e *events.Message) {
			e.Message.ExtendedTextMessage = &waE2E.ExtendedTextMessage{Text: proto.String("no K7F3Q")}
		},
		"a text and a photo": func(e *events.Message) {
			e.Message.ImageMessage = &waE2E.ImageMessage{Caption: proto.String("no K7F3Q")}
		},
		"a reaction on nothing": func(e *events.Message) { e.Message = &waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{}} },
		"a reaction that is edited": func(e *events.Message) {
			e.Message = &waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{Text: proto.String("👍")}}
			e.Info.Edit = types.EditAttributeMessageEdit
		},
	} {
		t.Run("A7/"+name, func(t *testing.T) {
			e := &events.Message{Info: types.MessageInfo{
				MessageSource: types.MessageSource{Chat: fay, Sender: fay}, ID: "1",
			}, Message: proto.CloneOf(text)}
			if h, not := decode(e); not != "" || h.text != "yes K7F3Q" {
				t.Fatalf("heard %q, %s", h.text, not)
			}
			change(e)
			if _, not := decode(e); not == "" {
				t.Errorf("%s: it is heard", name)
			}
		})
	}
}

// The sender is the message's Sender: another id that comes with it does not replace it.
func TestTheSenderIsTheSender(t *testing.T) {
	s := newEnv(t)
	lids := s.wa.client.Load().Store.LIDs
	fay, eve := s.phones["fay"], s.phones["eve"]
	got, err := senderOf(t.Context(), lids, types.MessageSource{Sender: eve.JID(), SenderAlt: fay.JID()})
	if err != nil || got.number != "+"+numbers["eve"] {
		t.Errorf("from eve's number, as fay's: %+v, %v", got, err)
	}
	got, err = senderOf(t.Context(), lids, types.MessageSource{Sender: eve.LID(), SenderAlt: fay.LID()})
	if err != nil || got.lid != eve.LID().User || got.number == "+"+numbers["fay"] {
		t.Errorf("from eve's LID, as fay's: %+v, %v", got, err)
	}
	now := s.server.Now()
	s.wa.clock("", time.Time{})
	if at := s.wa.theirTime(now); at.Sub(now).Abs() > time.Minute {
		t.Errorf("after a confirmation without a time it is %v", at)
	}
}

// Apps write our address in several ways, and some leave it out.
func TestWhatIsOurs(t *testing.T) {
	number, lid := types.NewADJID("15550001111", 0, 7), types.NewADJID("77", 0, 7)
	lid.Server = types.HiddenUserServer
	for _, c := range []struct {
		h    incoming
		want bool
	}{
		{incoming{}, true}, {incoming{author: "15550001111@s.whatsapp.net"}, true}, {incoming{author: "15550001111:7@s.whatsapp.net"}, true},
		{incoming{author: "15550001111@c.us", chat: "15550001111@c.us"}, true}, {incoming{author: "77@lid", chat: "77@lid"}, true},
		{incoming{author: "78@lid"}, false}, {incoming{author: "491@s.whatsapp.net"}, false}, {incoming{author: "@lid"}, false},
		{incoming{onOwn: true}, false}, {incoming{chat: "1@g.us"}, false}, {incoming{chat: "status@broadcast"}, false},
		{incoming{chat: "1@newsletter"}, false},
	} {
		if got := c.h.onOurs(number, lid); got != c.want {
			t.Errorf("by %q in %q: %v", c.h.author, c.h.chat, got)
		}
	}
	if !(incoming{author: "77@lid"}).onOurs(number, types.EmptyJID) {
		t.Error("a reply is lost where our LID is not known yet")
	}
}

// A reply and a thumb are an answer on what is ours alone, whatever id they name.
func TestOnSomebodyElsesMessage(t *testing.T) {
	t.Run("A7/on somebody else's message", func(t *testing.T) {
		s := newEnv(t)
		fay, eve := s.phones["fay"], s.phones["eve"].JID().String()
		call, m, _ := s.asked("whose is it?")
		group := s.server.Group().JID().String()
		for _, k := range []*waCommon.MessageKey{
			{FromMe: proto.Bool(true)}, {Participant: &eve}, {RemoteJID: &group}, {Participant: proto.String("a.b.c@lid")},
		} {
			k.ID = &m.ID
			fay.Sends(&waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{Key: k, Text: proto.String("👍")}})
			if k.GetFromMe() {
				continue // which replies do not say
			}
			fay.Sends(&waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{
				Text:        proto.String("yes"),
				ContextInfo: &waE2E.ContextInfo{StanzaID: &m.ID, Participant: k.Participant, RemoteJID: k.RemoteJID},
			}})
		}
		s.acknowledged()
		if n := s.desk.decisions(); n != 0 {
			t.Fatalf("%d decisions by what is on somebody else's messages", n)
		}
		number := s.server.Number() + "@s.whatsapp.net"
		fay.Sends(&waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{
			Text: proto.String("yes"), ContextInfo: &waE2E.ContextInfo{StanzaID: &m.ID, Participant: &number, RemoteJID: &number},
		}})
		s.get(call, permissions.Approved)
	})
}

// Whoever has another phone is nobody until they are enrolled again: from when WhatsApp says so, and, where it does not,
// from before the first message that came with the new keys.
func TestNewKeysSuspend(t *testing.T) {
	for name, change := range map[string]struct {
		phone func(*whatsapptest.Person)
		fails int
	}{
		"told of the LID":                     {func(p *whatsapptest.Person) { p.ChangesPhone() }, 0},
		"told of the number":                  {func(p *whatsapptest.Person) { p.ByNumber().ChangesPhone() }, 0},
		"told, while it cannot be stored":     {func(p *whatsapptest.Person) { p.ChangesPhone() }, 2},
		"not told":                            {func(p *whatsapptest.Person) { p.ChangesPhoneUnnoticed() }, 0},
		"not told, while it cannot be stored": {func(p *whatsapptest.Person) { p.ChangesPhoneUnnoticed() }, 1},
	} {
		t.Run("A2/"+name, func(t *testing.T) {
			s := newEnv(t)
			fay := s.phones["fay"]
			call, _, code := s.asked("before.")
			fay.Says("hello") // a session in both directions
			s.acknowledged()
			s.desk.mu.Lock()
			s.desk.unheld = change.fails
			s.desk.mu.Unlock()
			change.phone(fay)
			s.acknowledged()
			fay.Says("yes " + code)
			want := []string{Name + " +" + numbers["fay"]}
			s.until("fay is suspended", func() bool { return slices.Equal(s.desk.held(), want) })
			s.acknowledged()
			s.get(call, permissions.Undeliverable) // there is nobody else to ask
			late := slices.ContainsFunc(s.desk.held(), func(who string) bool { return !strings.HasSuffix(who, numbers["fay"]) })
			if n := s.desk.decisions(); n != 0 || late {
				t.Errorf("%d decisions by somebody with new keys; suspended %q", n, s.desk.held())
			}
		})
	}
}
