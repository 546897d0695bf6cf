package whatsapptest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"
)

func TestWaysToAnswer(t *testing.T) {
	s := New(t)
	fay := s.Person(fayNumber, "Fay")
	c := linked(t, s)
	card := c.says(fayNumber, "Approve K7F3Q?")
	if _, err := fay.Gets(within(t), saying("Approve K7F3Q?")); err != nil {
		t.Fatal(err)
	}

	e := c.gets(fay.Quotes(card, "yes"))
	about := e.Message.GetExtendedTextMessage().GetContextInfo()
	if e.Message.GetExtendedTextMessage().GetText() != "yes" || about.GetStanzaID() != card ||
		about.GetQuotedMessage().GetConversation() != "Approve K7F3Q?" || about.GetParticipant() != c.Store.LID.ToNonAD().String() {
		t.Errorf("the quote came as %v", e.Message)
	}
	e = c.gets(fay.Reacts(card, "👍🏽"))
	if r := e.Message.GetReactionMessage(); r.GetText() != "👍🏽" || r.GetKey().GetID() != card || r.GetKey().GetFromMe() ||
		e.Info.Type != "reaction" {
		t.Errorf("the reaction came as %v", e.Message)
	}
	e = c.gets(fay.Reacts(card, ""))
	if r := e.Message.GetReactionMessage(); r.GetText() != "" || r.GetKey().GetID() != card {
		t.Errorf("its removal came as %v", e.Message)
	}
	if m, ok := fay.Message(card); !ok || len(m.Reactions) != 0 {
		t.Errorf("fay sees %+v", m)
	}
	no := fay.Says("no")
	c.gets(no)
	e = c.gets(fay.Edits(no, "yes"))
	if edit := e.Message.GetProtocolMessage(); !e.IsEdit || edit.GetKey().GetID() != no ||
		edit.GetEditedMessage().GetConversation() != "yes" || e.Info.Edit != types.EditAttributeMessageEdit {
		t.Errorf("the edit came as %+v", e)
	}
	if m, _ := fay.Message(no); m.Text != "yes" || len(m.Before) != 1 || m.Before[0] != "no" {
		t.Errorf("fay sees %+v", m)
	}
	e = c.gets(fay.Forwards("YES K7F3Q"))
	if !e.Message.GetExtendedTextMessage().GetContextInfo().GetIsForwarded() {
		t.Errorf("the forwarded message came as %v", e.Message)
	}
	e = c.gets(fay.Revokes(no))
	if e.Message.GetProtocolMessage().GetType() != waE2E.ProtocolMessage_REVOKE || e.Info.Edit != types.EditAttributeSenderRevoke {
		t.Errorf("the revocation came as %v", e.Message)
	}
	if m, _ := fay.Message(no); !m.Revoked {
		t.Errorf("fay sees %+v", m)
	}
}

func TestWhatThePersonSees(t *testing.T) {
	s := New(t)
	fay := s.Person(fayNumber, "Fay")
	c := linked(t, s)
	card := c.says(fayNumber, "Approve?")
	answer := fay.Says("yes")
	c.gets(answer)

	c.sends(fayNumber, c.BuildEdit(fay.LID(), card, &waE2E.Message{Conversation: proto.String("Allowed.")}))
	m, err := fay.Gets(within(t), saying("Allowed."))
	if err != nil || m.ID != card || len(m.Before) != 1 || m.Before[0] != "Approve?" {
		t.Fatalf("fay sees %+v, %v", m, err)
	}
	c.sends(fayNumber, c.BuildReaction(fay.LID(), fay.LID(), answer, "✅"))
	if m, err := fay.Sees(within(t), func(m Message) bool { return m.Reactions[s.Number()] == "✅" }); err != nil || m.ID != answer {
		t.Errorf("fay sees %+v, %v", m, err)
	}
	// A reaction that says that the message is the account's own is for a message that there is not.
	c.sends(fayNumber, c.BuildReaction(fay.LID(), types.EmptyJID, answer, "⛔"))
	quote := c.sends(fayNumber, &waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{
		Text: proto.String("so be it"), ContextInfo: &waE2E.ContextInfo{StanzaID: &answer, Participant: proto.String(fay.LID().String())},
	}})
	if m, err := fay.Gets(within(t), saying("so be it")); err != nil || m.ID != quote || m.Quotes != answer {
		t.Errorf("fay sees %+v, %v", m, err)
	}
	if m, _ := fay.Message(answer); m.Reactions[s.Number()] != "✅" {
		t.Errorf("fay sees %+v", m)
	}
	s.Advance(editable)
	c.sends(fayNumber, c.BuildEdit(fay.LID(), card, &waE2E.Message{Conversation: proto.String("Too late.")}))
	c.sends(fayNumber, c.BuildRevoke(fay.LID(), types.EmptyJID, quote))
	if _, err := fay.Gets(within(t), func(m Message) bool { return m.ID == quote && m.Revoked }); err != nil {
		t.Error(err)
	}
	if m, _ := fay.Message(card); m.Text != "Allowed." {
		t.Errorf("after the time for edits fay sees %+v", m)
	}
	if all := fay.Messages(); len(all) != 3 || all[0].ID != card || all[1].ID != answer || all[2].ID != quote {
		t.Errorf("the chat is %+v", all)
	}
}

func TestReceipts(t *testing.T) {
	s := New(t)
	fay := s.Person(fayNumber, "Fay")
	c := linked(t, s)
	fay.Leaves()
	first, second := c.says(fayNumber, "one"), c.says(fayNumber, "two")
	if got := fay.Messages(); len(got) != 0 {
		t.Fatalf("a phone that is off got %+v", got)
	}
	fay.Returns()
	for _, id := range []string{first, second} {
		await(c, func(r *events.Receipt) bool { return r.Type == types.ReceiptTypeDelivered && r.MessageIDs[0] == id })
	}
	fay.Reads()
	if r := await(c, func(r *events.Receipt) bool { return r.Type == types.ReceiptTypeRead }); len(r.MessageIDs) != 2 ||
		r.Sender.ToNonAD() != fay.LID() {
		t.Errorf("read: %+v", r)
	}
	answer := fay.Says("yes")
	c.gets(answer)
	if err := c.MarkRead(within(t), []string{answer}, time.Now(), fay.LID(), fay.LID()); err != nil {
		t.Fatal(err)
	}
	if _, err := fay.Sees(within(t), func(m Message) bool { return m.ID == answer && m.Delivered && m.Read }); err != nil {
		t.Error(err)
	}
	c.Store.PushName = "Daycared"
	if err := c.SendPresence(within(t), types.PresenceAvailable); err != nil {
		t.Fatal(err)
	}
	if err := c.SendChatPresence(within(t), fay.LID(), types.ChatPresenceComposing, types.ChatPresenceMediaText); err != nil {
		t.Fatal(err)
	}
	err := s.AwaitStanzas(within(t), func(all []Stanza) bool {
		return slices.ContainsFunc(all, func(s Stanza) bool { return s.Is("chatstate", "") })
	})
	if typing := s.Typings(); err != nil || len(typing) != 1 || typing[0].To != fayNumber || typing[0].State != "composing" ||
		s.Presence() != "available" {
		t.Errorf("typing %+v, presence %q, %v", typing, s.Presence(), err)
	}
}

func TestWaysToBeKnown(t *testing.T) {
	s := New(t)
	fay := s.Person(fayNumber, "Fay")
	c := linked(t, s)
	e := c.gets(fay.ByLIDAlone().Says("from a LID"))
	if e.Info.Sender.ToNonAD() != fay.LID() || !e.Info.SenderAlt.IsEmpty() {
		t.Errorf("by LID alone: %+v", e.Info.MessageSource)
	}
	if pn, err := c.Store.LIDs.GetPNForLID(t.Context(), fay.LID()); err != nil || !pn.IsEmpty() {
		t.Errorf("the client knows %s, %v", pn, err)
	}
	e = c.gets(fay.ByNumber().Says("from a number"))
	if e.Info.Sender.ToNonAD() != fay.JID() || e.Info.SenderAlt.ToNonAD() != fay.LID() {
		t.Errorf("by number: %+v", e.Info.MessageSource)
	}
	c.gets(fay.ByLIDAlone().Says("now it is known"))
	if pn, err := c.Store.LIDs.GetPNForLID(t.Context(), fay.LID()); err != nil || pn != fay.JID() {
		t.Errorf("the client knows %s, %v", pn, err)
	}
	bob := s.Person("4915100000002", "Bob")
	e = c.gets(bob.ByNumberAlone().Says("from a number alone"))
	if e.Info.Sender.ToNonAD() != bob.JID() || !e.Info.SenderAlt.IsEmpty() {
		t.Errorf("by number alone: %+v", e.Info.MessageSource)
	}
	c.says(bob.Number(), "and back")
	if _, err := bob.Gets(within(t), saying("and back")); err != nil {
		t.Error(err)
	}
}

func TestGroupsAndBroadcasts(t *testing.T) {
	s := New(t)
	fay := s.Person(fayNumber, "Fay")
	c := linked(t, s)
	g := s.Group()
	for _, text := range []string{"first", "second"} {
		id := fay.In(g).Says(text)
		// The key of the group, which comes with the first message, is an event too.
		e := await(c, func(m *events.Message) bool { return m.Info.ID == id && m.Message.GetConversation() != "" })
		if !e.Info.IsGroup || e.Info.Chat != g.JID() || e.Info.Sender.ToNonAD() != fay.LID() || e.Message.GetConversation() != text {
			t.Errorf("in the group: %+v", e)
		}
	}
	e := c.gets(fay.ToMany().Says("to all"))
	if !e.Info.IsIncomingBroadcast() || e.Info.Sender.ToNonAD() != fay.LID() || e.Message.GetConversation() != "to all" {
		t.Errorf("to many: %+v", e)
	}
	if e := c.gets(fay.OnStatus().Says("a day")); e.Info.Chat != types.StatusBroadcastJID {
		t.Errorf("on the status: %+v", e)
	}
	if got := fay.In(g).Messages(); len(got) != 2 || len(fay.Messages()) != 0 {
		t.Errorf("fay sees %+v", got)
	}
}

func TestOwnPhone(t *testing.T) {
	s := New(t)
	fay := s.Person(fayNumber, "Fay")
	c := linked(t, s)
	e := c.gets(s.Phone().Writes(fay, "by hand"))
	if !e.Info.IsFromMe || e.Info.Chat != fay.LID() || e.Info.Sender.Device != 0 || e.Message.GetConversation() != "by hand" {
		t.Errorf("a copy came as %+v", e)
	}
	if m, err := fay.Gets(within(t), saying("by hand")); err != nil || m.ID != e.Info.ID {
		t.Errorf("fay got %+v, %v", m, err)
	}
	e = c.gets(s.Phone().WritesToSelf("yes K7F3Q"))
	if !e.Info.IsFromMe || e.Info.Chat != c.Store.LID.ToNonAD() || e.Info.RecipientAlt.User != s.Number() {
		t.Errorf("to self it came as %+v", e)
	}
	for _, id := range []string{s.Desktop().WritesToSelf("yes"), s.Desktop().Writes(fay, "yes")} {
		if e := c.gets(id); !e.Info.IsFromMe || e.Info.Sender.Device != desktop || e.Message.GetConversation() != "yes" {
			t.Errorf("from the other device it came as %+v", e)
		}
	}
	if all := s.Phone().Messages(fay); len(all) != 2 {
		t.Errorf("the phone shows %+v", all)
	}
}

func TestDocuments(t *testing.T) {
	s := New(t)
	fay := s.Person(fayNumber, "Fay")
	c := linked(t, s)
	details := []byte(strings.Repeat("all of it\n", 1000))
	s.FailMedia(1, 507)
	if _, err := c.Upload(within(t), details, whatsmeow.MediaDocument); err == nil {
		t.Error("an upload that fails did not")
	}
	up, err := c.Upload(within(t), details, whatsmeow.MediaDocument)
	if err != nil {
		t.Fatal(err)
	}
	c.sends(fayNumber, &waE2E.Message{DocumentMessage: &waE2E.DocumentMessage{
		URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256,
		FileSHA256: up.FileSHA256, FileLength: &up.FileLength, FileName: proto.String("K7F3Q.txt"),
		Mimetype: proto.String("text/plain"), Caption: proto.String("the details"),
	}})
	m, err := fay.Gets(within(t), saying("the details"))
	if err != nil || m.Document == nil || m.Document.Name != "K7F3Q.txt" || string(m.Document.Bytes) != string(details) {
		t.Fatalf("fay got %+v, %v", m, err)
	}
	for _, caption := range []string{"", "look"} {
		e := c.gets(fay.SendsDocument(Document{Name: "log.txt", MIME: "text/plain", Bytes: []byte("oops")}, caption))
		got, err := c.Download(within(t), e.Message.GetDocumentMessage())
		if err != nil || string(got) != "oops" || e.Message.GetDocumentMessage().GetCaption() != caption || e.Info.Type != "media" {
			t.Errorf("the client got %q, %v in %v", got, err, e.Message)
		}
	}
}
