package whatsapp

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// A message that cannot be decrypted is asked for again by the library. Who wrote it is asked only when that did not help,
// and an unknown sender is not.
func TestWhatCannotBeRead(t *testing.T) {
	const again = "I could not read your message"
	s := newEnv(t)
	s.wa.redeliveryWait = 2 * time.Second
	call, _, code := s.asked("garbled once.")
	s.server.Garble(1)
	yes := s.phones["fay"].Says("yes " + code)
	s.get(call, permissions.Approved) // it came again by itself
	s.marked("fay", yes, "✅")

	call, _, code = s.asked("garbled for good.")
	s.server.Garble(100)
	s.phones["fay"].Says("yes " + code)
	s.phones["eve"].Says("yes " + code)
	s.sees("fay", again)
	s.server.Garble(-100)
	s.waits(call)
	for who, n := range map[string]int{"fay": 1, "eve": 0} {
		if got := s.count(who, again); got != n {
			t.Errorf("%s is asked %d times to write again; want %d", who, got, n)
		}
	}
}

// The library reports every redelivery of an undecryptable message. Its author is asked once, and the memory of messages
// from unknown senders is bounded.
func TestWhatCannotBeReadIsAskedForOnce(t *testing.T) {
	s := newEnv(t)
	d := newHandler(s.wa)
	chat := types.NewJID(numbers["fay"], types.DefaultUserServer)
	for range 5 {
		d.unread(t.Context(), &events.UndecryptableMessage{Info: types.MessageInfo{
			MessageSource: types.MessageSource{Chat: chat, Sender: chat}, ID: "1",
		}})
	}
	d.work.Wait()
	if n := s.count("fay", "I could not read your message"); n != 1 {
		t.Errorf("fay is asked %d times to write one message again", n)
	}
	for i := range 2 * maxRemembered {
		d.noteUnreadable(strconv.Itoa(i))
	}
	if n := d.unreadable.Len(); n > maxRemembered {
		t.Errorf("%d messages are remembered", n)
	}
}

// What WhatsApp does not take since nobody wrote first is not tried again: that is what accounts are banned for.
func TestARefusalIsNotPressed(t *testing.T) {
	s := newEnv(t)
	s.server.RefuseMessages(100, 463)
	s.phones["fay"].Says("hello")
	s.acknowledged()
	given := make(chan struct{})
	go func() {
		s.wa.work.Wait()
		close(given)
	}()
	select {
	case <-given:
	case <-soon(t).Done():
		t.Error("it is still tried")
	}
	tries := 0
	for _, sent := range s.server.Stanzas() {
		if sent.Is("message", "") {
			tries++
		}
	}
	if tries != 1 {
		t.Errorf("tried %d times", tries)
	}
}

// All that waits is one reminder, which replies to the last of the cards.
func TestReminders(t *testing.T) {
	s := newEnv(t, func(s *env) { s.settings.Approvals.Remind = []engine.Moment{{Percent: 50}} })
	_, _, first := s.asked("the first.")
	_, m, second := s.asked("the second.")
	s.server.Advance(8 * time.Minute)
	reminder := s.answers("fay", m.ID, "2 requests wait for your answer")
	if !strings.Contains(reminder.Text, first) || !strings.Contains(reminder.Text, second) {
		t.Errorf("the reminder: %s", reminder.Text)
	}
	s.says("fay", "/pending", first)
	if n := s.count("fay", "2 requests wait"); n != 2 { // once, and in the answer to /pending
		t.Errorf("reminded %d times", n-1)
	}
}

// Three requests within a minute while a person chats with their agent: what is on the phone afterwards.
func TestTranscript(t *testing.T) {
	helper := newScribe("helper", permissions.Running)
	s := newEnv(t, func(s *env) { s.agents, s.settings.Approvals.Timeout = append(s.agents, helper), 10*time.Minute })
	fay := s.phones["fay"]
	fay.Says("good morning")
	s.sees("fay", "helper: heard: good morning")
	one, m1, code1 := s.asked("to fetch the news.")
	s.server.Advance(20 * time.Second)
	fay.Says("what for?")
	s.sees("fay", "helper: heard: what for?")
	_, m2, _ := s.asked("to read the mail.")
	s.server.Advance(20 * time.Second)
	three, m3, code3 := s.asked("to write a letter.")
	yes := fay.Says("yes " + code1)
	s.get(one, permissions.Approved)
	s.marked("fay", yes, "✅")
	no := fay.Says("no " + code3 + " because I write it myself")
	s.get(three, permissions.Denied)
	s.marked("fay", no, "⛔")
	s.becomes("fay", m1.ID, "✅ *You allowed this once*")
	s.becomes("fay", m3.ID, "⛔ *You denied this*")
	s.server.Advance(10 * time.Minute)
	s.becomes("fay", m2.ID, "⌛")
	s.acknowledged()

	var got []string
	for _, m := range fay.Messages() {
		line, _, _ := strings.Cut(plain(m.Text), "\n")
		if m.From == fay.Number() {
			line = "fay: " + line + " " + m.Reactions[s.server.Number()]
		}
		got = append(got, strings.TrimSpace(line))
	}
	transcript := strings.Join(got, "\n")
	at := 0
	for _, want := range []string{
		"fay: good morning", "helper: heard: good morning", "✅ *You allowed this once* · ", "fay: what for?",
		"helper: heard: what for?", "⌛ *", "⛔ *You denied this* · ", "fay: yes " + code1 + " ✅",
		"fay: no " + code3 + " because I write it myself ⛔",
	} {
		next := strings.Index(transcript[at:], want)
		if next < 0 {
			t.Fatalf("no %q behind the first %d bytes of\n%s", want, at, transcript)
		}
		at += next
	}
}

// No person gets messages faster than the limits, whatever sends them.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, began := newPace(), time.Now()
		for range numberBurst + 10 {
			if err := p.wait(t.Context(), "+491700000001"); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 10*numberEvery {
			t.Errorf("%d messages to one number took %s", numberBurst+10, took)
		}
		began = time.Now()
		p = newPace()
		for i := range allBurst + 2*maxNumbers {
			if err := p.wait(t.Context(), "+4917"+strings.Repeat("1", i/100)+string(rune('0'+i%10))); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took < 2*maxNumbers*allEvery-time.Second {
			t.Errorf("%d messages took %s", allBurst+2*maxNumbers, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := p.wait(ctx, "+491700000001"); err == nil {
			t.Error("what nobody waits for any more may be sent")
		}
	})
}

// What stands in the file alone is allowed by a reply to the file alone: neither a reply to the card, nor its code, nor a thumb allows
// it. It is denied by any of them.
func TestWhatIsInTheFileAloneIsAllowedByAReplyToTheFile(t *testing.T) {
	s := newEnv(t)
	fay := s.phones["fay"]
	input := `{"text":"` + strings.Repeat("x", 3*maxText) + `"}`
	call := s.ask(toolCall("post", input))
	m, code := s.card("fay", "Read the file above, then reply to the file: *yes* or *no*")
	s.server.Advance(2 * time.Second)
	for name, try := range map[string]func(){
		"a reply to the card": func() { fay.Quotes(m.ID, "yes") },
		"its code":            func() { fay.Says("yes " + code) },
		"a thumb":             func() { fay.Reacts(m.ID, "👍") },
	} {
		before := s.count("fay", "Nothing was allowed: what "+code+" wants is not on its card.")
		try()
		s.until(name+" is refused", func() bool {
			return s.count("fay", "Nothing was allowed: what "+code+" wants is not on its card.") > before
		})
		s.waits(call)
	}
	fay.Quotes(m.ID+documented, "yes")
	s.get(call, permissions.Approved)
	again := s.ask(toolCall("publish", input))
	_, code = s.card("fay", "`publish`")
	fay.Says("no " + code)
	s.get(again, permissions.Denied)
}
