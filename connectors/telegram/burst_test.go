package telegram

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// few has people get two cards, then lists.
func few(s *env) { s.settings.Limits.MaxCards = 2 }

// calling is a call of a gated tool, whose card has as many characters as wanted at least.
func calling(tool, name string, long int) permissions.Request {
	input, _ := json.Marshal(map[string]string{"path": "/srv/" + name, "content": strings.Repeat("x", long)})
	return permissions.Request{
		Kind: permissions.KindTool, Tool: tool, Input: input, Reason: "for " + name, Key: name, Session: "s", Agent: "helper",
	}
}

// list waits for the newest list with so many requests, and until it may be answered.
func (s *env) list(n int) telegramtest.Message {
	s.t.Helper()
	m := s.sees("fay", fmt.Sprintf("%d request", n), func(m telegramtest.Message) bool {
		return strings.HasPrefix(m.Text, fmt.Sprintf("%d request", n))
	})
	s.until("the list is noted", s.upToDate)
	s.server.Advance(secondStep)
	return m
}

// burst fills fay's chat with two cards, and then asks the others, which join one list.
func (s *env) burst(all ...permissions.Request) (calls []<-chan ended, m telegramtest.Message) {
	s.t.Helper()
	for _, name := range []string{"first", "second"} {
		s.ask(network(name))
		s.card("fay", name)
	}
	for i, q := range all {
		calls = append(calls, s.ask(q))
		s.until("it waits", func() bool {
			n, err := s.CountPending(s.t.Context())
			return err == nil && n == 3+i
		})
	}
	return calls, s.list(len(all))
}

func buttons(m telegramtest.Message) []string {
	return wire.Map(slices.Concat(m.Keyboard...), func(b telegramtest.Button) string { return b.Text })
}

// A burst is one card, in which each request stands with a way into it, and which everything is answered by; edits show what settled.
// The requests before it have their own cards.
func TestABurstIsOneCard(t *testing.T) {
	s := newEnv(t, few)
	calls, list := s.burst(network("third"), network("fourth"), network("fifth"))
	if sent := len(s.calls("fay", "sendMessage")); sent != 3 {
		t.Errorf("%d messages; want two cards and a list", sent)
	}
	want := []string{"✅ Allow all", "⛔ Deny all", "👁 1", "👁 2", "👁 3"}
	if got := buttons(list); !slices.Equal(got, want) {
		t.Errorf("the buttons are %q; want %q", got, want)
	}
	for _, call := range calls {
		s.waits(call)
	}
	s.taps("fay", list, "Allow all", "✅ You allowed 3.")
	for _, call := range calls {
		s.get(call, permissions.Approved)
	}
	m := s.becomes("fay", list.ID, "3 requests")
	if n := strings.Count(m.Text, "✅ You allowed this once"); n != 3 {
		t.Errorf("the list shows %d as allowed:\n%s", n, m.Text)
	}
	s.waits(s.ask(network("first"))) // it is among no list's
}

// TestWhatComesAfterAListHasEndedBeginsAnother: an edit of the old one makes no sound, and that is above newer messages.
func TestWhatComesAfterAListHasEndedBeginsAnother(t *testing.T) {
	s := newEnv(t, few)
	calls, list := s.burst(network("third"), network("fourth"))
	s.taps("fay", list, "Allow all", "✅ You allowed 2.")
	for _, call := range calls {
		s.get(call, permissions.Approved)
	}
	s.waits(s.ask(network("fifth")))
	if next := s.list(1); next.ID == list.ID {
		t.Errorf("it stands in the list that had ended:\n%s", next.Text)
	}
}

// Whoever answers each request as it comes has a card for each.
func TestAnsweredRequestsAreNoBurst(t *testing.T) {
	s := newEnv(t, few)
	for _, name := range []string{"one", "two", "three", "four"} {
		call := s.ask(network(name + "."))
		m := s.card("fay", name+".")
		s.until("the card is noted", s.upToDate)
		s.taps("fay", m, "Allow once", "✅")
		s.get(call, permissions.Approved)
	}
}

// What joined a list after it was shown is not answered with all of it, and the person is told.
func TestAListDecidesWhatWasShownOnly(t *testing.T) {
	s := newEnv(t, few)
	calls, list := s.burst(network("third"), network("fourth"))
	stale := s.button("fay", list, "Allow all")
	s.server.Advance(5 * time.Second)
	late := s.ask(network("fifth"))
	grown := s.list(3)
	if grown.ID != list.ID {
		t.Fatal("the fifth is on another list")
	}
	s.toast(s.phones["fay"].TapsData(list.ID, stale),
		"The list has changed since it was shown, or was only just sent, so nothing was decided.")
	s.toast(s.phones["fay"].TapsData(list.ID, strings.Replace(stale, "allow_once", "deny", 1)), "The list has changed")
	for _, call := range append(calls, late) {
		s.waits(call)
	}
	s.taps("fay", grown, "Deny all", "⛔ You denied 3.")
	for _, call := range append(calls, late) {
		s.get(call, permissions.Denied)
	}
}

// A finger that comes down just as a list grows decides nothing.
func TestATapOnAListThatJustGrew(t *testing.T) {
	s := newEnv(t, few)
	calls, list := s.burst(network("third"))
	s.server.Advance(5 * time.Second)
	calls = append(calls, s.ask(network("fourth")))
	grown := s.sees("fay", "2 requests", func(m telegramtest.Message) bool { return m.ID == list.ID })
	s.until("the list is noted", s.upToDate)
	s.taps("fay", grown, "Allow all", "The list has changed")
	for _, call := range calls {
		s.waits(call)
	}
}

// "Allow all" leaves out what is of high risk, which "Deny all" does not.
func TestAListNeverAllowsHighRisk(t *testing.T) {
	s := newEnv(t, few)
	risky := calling("run_command", "risky", 1)
	calls, list := s.burst(network("third"), risky)
	if !strings.Contains(list.Text, "⚠ High risk: ") || !slices.Contains(buttons(list), "✅ Allow 1 of 2") {
		t.Errorf("the list is %q with %q", list.Text, buttons(list))
	}
	s.taps("fay", list, "Allow 1 of 2", "✅ You allowed 1.")
	s.get(calls[0], permissions.Approved)
	s.waits(calls[1])
	left := s.sees("fay", "allowed this once", func(m telegramtest.Message) bool { return m.ID == list.ID && m.Edits > 0 })
	s.taps("fay", left, "Deny all", "⛔ You denied 1.")
	s.get(calls[1], permissions.Denied)
}

// "Allow all" leaves out what is in a file alone, also once it was opened: its own card asks whether the file was read.
func TestAListAllowsNothingThatIsInAFileAlone(t *testing.T) {
	s := newEnv(t, few)
	input, _ := json.Marshal(map[string]string{"file_path": "/srv/min.js", "content": strings.Repeat("x", 9000)})
	hidden := calling("Write", "hidden", 1)
	hidden.Input = input
	calls, list := s.burst(network("third"), hidden)
	if !slices.Contains(buttons(list), "✅ Allow 1 of 2") {
		t.Errorf("its buttons are %q", buttons(list))
	}
	s.toast(s.phones["fay"].TapsData(list.ID, s.button("fay", list, "👁 2")), "is shown again below.")
	s.card("fay", "min.js")
	s.until("it is noted", s.upToDate)
	s.server.Advance(secondStep)
	s.taps("fay", list, "Allow 1 of 2", "✅ You allowed 1.")
	s.get(calls[0], permissions.Approved)
	s.waits(calls[1])
}

// As long as something does not stand whole in the list and was not opened, all cannot be allowed, by the button or by its data. An
// opened request is a card of its own below the list, and is answered there or with the others.
func TestAListIsOpenedBeforeAllIsAllowed(t *testing.T) {
	s := newEnv(t, few)
	calls, list := s.burst(network("third"), calling("write_file", "long", 500), calling("write_file", "longer", 600))
	if strings.Contains(list.Text, strings.Repeat("x", 100)) || !strings.Contains(list.Text, "Not all of it is here: open it.") {
		t.Errorf("the list has all of it:\n%s", list.Text)
	}
	s.taps("fay", list, "✅ Allow all: first open 2, 3", "Nothing was allowed: open 2, 3 first")
	_, after, _ := strings.Cut(list.Text, "open it. ")
	s.says("fay", "yes "+anyCode.FindString(after), "has not been shown to you yet; look at it first")
	s.waits(calls[1])
	for _, n := range []string{"👁 2", "👁 3"} {
		s.toast(s.phones["fay"].TapsData(list.ID, s.button("fay", list, n)), "is shown again below.")
	}
	own := s.card("fay", strings.Repeat("x", 600))
	if own.ReplyTo != list.ID {
		t.Errorf("the card replies to %d, not to the list", own.ReplyTo)
	}
	s.taps("fay", own, "Allow once", "✅")
	s.get(calls[2], permissions.Approved)
	now := s.sees("fay", "3 requests", func(m telegramtest.Message) bool {
		return m.ID == list.ID && slices.Contains(buttons(m), "✅ Allow all") && !slices.Contains(buttons(m), "👁 3")
	})
	s.taps("fay", now, "Allow all", "✅ You allowed 2.")
	s.get(calls[0], permissions.Approved)
	s.get(calls[1], permissions.Approved)
}

// Nothing of a list is lost in a restart: its buttons still answer what it showed, and it is brought up to date.
func TestAListOutlivesARestart(t *testing.T) {
	s := newEnv(t, few)
	_, list := s.burst(network("third"), network("fourth"))
	s.stop()
	s.told("fay", notRunning)
	for _, m := range s.phones["fay"].Messages() {
		if m.ID == list.ID && (!strings.HasPrefix(m.Text, "2 requests") || len(m.Keyboard) > 0) {
			t.Errorf("while the daemon is stopped, the list is %q with %q", m.Text, buttons(m))
		}
	}
	s.open()
	s.sees("fay", "2 requests", func(m telegramtest.Message) bool { return m.ID == list.ID && len(m.Keyboard) > 0 })
	back := s.list(2)
	if back.ID != list.ID || back.Text != list.Text {
		t.Errorf("the list is %d, %q; was %d, %q", back.ID, back.Text, list.ID, list.Text)
	}
	s.taps("fay", back, "Deny all", "⛔ You denied 2.")
	s.becomes("fay", list.ID, "⛔ You denied this")
}

// Nobody but its person answers a list, not by its data either, and words that quote it are no answer.
func TestAListIsItsPersonsAlone(t *testing.T) {
	s := newEnv(t, few)
	calls, list := s.burst(network("third"), network("fourth"))
	data := s.button("fay", list, "Allow all")
	for _, who := range []string{"eve"} {
		s.toast(s.phones[who].TapsData(list.ID, data), "This is not yours to decide.")
	}
	s.phones["fay"].Replies(list.ID, "yes")
	s.drained()
	for _, call := range calls {
		s.waits(call)
	}
	for _, bad := range []string{"all.allow_once.", "all.deny", "all.allow_always." + data, "all.allow_session.x"} {
		s.toast(s.phones["fay"].TapsData(list.ID, bad), "othing was ")
	}
	for _, call := range calls {
		s.waits(call)
	}
}

// A list in a chat that shows no more than titles has none of what is asked for, and allows nothing; the notice of a grant that has
// ended has no path.
func TestAChatOfTitlesListsAndEndsWithoutWhatIsAskedFor(t *testing.T) {
	s := newEnv(t, few, func(s *env) { s.settings.OnlyTitles = map[string]bool{Name: true} })
	tag, err := permissions.ParseTag("@read:/srv/plum")
	if err != nil {
		t.Fatal(err)
	}
	reads := permissions.Request{Kind: permissions.KindPermission, Tags: []permissions.Tag{tag}, Reason: "plum", Agent: "helper"}
	granted := s.ask(reads)
	s.card("fay", "helper wants")
	s.until("the card is noted", s.upToDate)
	s.decide("fay", permissions.Allow(permissions.For(15*time.Minute)))
	s.get(granted, permissions.Approved)
	s.server.Advance(16 * time.Minute)
	if _, err := s.Grants(t.Context(), identity(ids["fay"]), "", 99); err != nil {
		t.Fatal(err)
	}
	s.told("fay", "⌛ Ended: read access for")

	var calls []<-chan ended
	for n := range 5 {
		calls = append(calls, s.ask(calling("write_file", fmt.Sprintf("plum%d", n), 10)))
		s.until("it waits", func() bool {
			waiting, err := s.CountPending(t.Context())
			return err == nil && waiting == n+1
		})
		s.until("it is shown", s.upToDate)
	}
	list := s.list(3)
	if got, want := buttons(list), []string{"⛔ Deny all", "👁 1", "👁 2", "👁 3"}; !slices.Equal(got, want) {
		t.Errorf("the buttons are %q; want %q", got, want)
	}
	b, err := s.Burst(t.Context(), identity(ids["fay"]), ref{ids["fay"], int64(list.ID)}.String())
	if err != nil || len(b.Items) != 3 {
		t.Fatal(b, err)
	}
	allow := allPrefix + string(permissions.Allow(permissions.Once)) + "." + b.Digest()
	s.toast(s.phones["fay"].TapsData(list.ID, allow), "Nothing was left to decide")
	s.taps("fay", list, "👁 1", "is shown again below")
	s.until("the card is noted", s.upToDate)
	s.toast(s.phones["fay"].TapsData(list.ID, allow), "Nothing was left to decide")
	for _, call := range calls {
		s.waits(call)
	}
	s.server.Advance(secondStep)
	s.taps("fay", list, "⛔ Deny all", "You denied 3")
	for _, call := range calls[2:] {
		s.get(call, permissions.Denied)
	}
	for _, m := range s.phones["fay"].Messages() {
		if contains(m, "plum") {
			t.Errorf("said %q", m.Text)
		}
	}
}

// What happens between a list's being on the phone and Telegram's answer allows nothing that was not seen, and finds each of its requests:
// a tap is to be repeated, a lock holds at once.
func TestBetweenAListAndTelegramsAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(s *env)
		toast   string
		state   permissions.State
		says    string
	}{
		"a tap": {func(*env) {}, "or was only just sent", permissions.Approved, "✅ You allowed this once"},
		"a lock": {func(s *env) {
			if _, err := s.Lock(s.t.Context(), operator, "fay", time.Time{}); err != nil {
				s.t.Fatal(err)
			}
		}, "locked", permissions.Undeliverable, "You are locked: nothing from this account counts"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t, few)
			for _, card := range []string{"first", "second"} {
				s.ask(network(card))
				s.card("fay", card)
			}
			s.until("the cards are noted", s.upToDate)
			answer := s.hold()
			call := s.ask(network("third"))
			list := s.card("fay", "1 request")
			all := s.button("fay", list, "Allow all")
			c.happens(s)
			s.toast(s.phones["fay"].TapsData(list.ID, all), c.toast)
			answer()
			s.until("the list is noted", s.upToDate)
			if c.state == permissions.Approved {
				s.waits(call)
				s.server.Advance(secondStep)
				s.taps("fay", list, "Allow all", "✅ You allowed 1.")
			}
			s.get(call, c.state)
			s.becomes("fay", list.ID, c.says)
		})
	}
}

// TestTitlesThatCannotBeEditedAreSentWhole: after a reload that shows more, what its person has deleted is not taken for redrawn.
func TestTitlesThatCannotBeEditedAreSentWhole(t *testing.T) {
	s := newEnv(t, func(s *env) {
		few(s)
		s.settings.OnlyTitles = map[string]bool{Name: true}
	})
	for n, q := range []permissions.Request{network("first"), network("second"), network("third"), calling("write_file", "long", 500)} {
		s.ask(q)
		s.until("it waits", func() bool {
			waiting, err := s.CountPending(t.Context())
			return err == nil && waiting == n+1
		})
		s.until("it is shown", s.upToDate)
	}
	s.list(2)
	for _, m := range s.phones["fay"].Messages() {
		if m.FromBot {
			s.phones["fay"].Deletes(m.ID)
		}
	}
	whole := s.settings
	whole.OnlyTitles = nil
	s.Configure(whole)
	for _, text := range []string{"first", "second", "third", strings.Repeat("x", 500)} {
		s.card("fay", text)
	}
	s.until("the cards are noted", s.upToDate)
	s.server.Advance(secondStep)
	s.taps("fay", s.card("fay", "third"), "Allow once", "✅")
}

// rows is a call of which the card has the beginning, and a file the rest.
func rows() permissions.Request {
	q := calling("write_file", "long", 1)
	q.Input, _ = json.Marshal(map[string]string{"path": "/srv/long", "content": strings.Repeat("a row\n", 2000)})
	return q
}

// TestAnOpenedEntryIsAllowedOnceItsCardHasCome: to open what a list does not show whole is not to see it. What was written before its card
// came allows nothing either.
func TestAnOpenedEntryIsAllowedOnceItsCardHasCome(t *testing.T) {
	s := newEnv(t, few)
	calls, list := s.burst(rows())
	code := anyCode.FindString(list.Text)
	s.server.FailNext("sendDocument", -1, telegramtest.Refuse(500, "Internal Server Error"))
	s.taps("fay", list, "👁 1", "is shown again below.")
	s.until("its file is refused", func() bool { return len(s.calls("fay", "sendDocument")) > 1 })
	s.says("fay", "yes "+code, "has not been shown to you yet; look at it first")
	s.server.FailNext("getUpdates", -1, telegramtest.BadGateway())
	s.polled(1)
	s.phones["fay"].Writes("yes " + code)
	s.server.Advance(2 * time.Second)
	s.server.FailNext("sendDocument", 0, telegramtest.BadGateway())
	s.card("fay", "/srv/long")
	s.until("the card is noted", s.upToDate)
	s.server.FailNext("getUpdates", 0, telegramtest.BadGateway())
	s.told("fay", "your answer is older than the card of "+code)
	s.waits(calls[0])
	s.phones["fay"].Writes("yes " + code)
	s.get(calls[0], permissions.Approved)
}

// TestAFileThatIsRefusedForGoodIsToldToItsCaller: nobody waits for a card that cannot come, whether an entry of a list was opened or not.
func TestAFileThatIsRefusedForGoodIsToldToItsCaller(t *testing.T) {
	for text, fault := range map[string]telegramtest.Fault{
		"413 Request Entity Too Large": telegramtest.Refuse(413, "Request Entity Too Large"),
		"400 Bad Request: no such":     telegramtest.Refuse(400, "Bad Request: no such"),
	} {
		s := newEnv(t, few)
		s.server.FailNext("sendDocument", -1, fault)
		alone := s.get(s.ask(rows()), permissions.Undeliverable)
		q := rows()
		q.Key = "opened"
		calls, list := s.burst(q)
		code := anyCode.FindString(list.Text)
		s.taps("fay", list, "👁 1", "is shown again below.")
		for _, r := range []permissions.Request{alone, s.get(calls[0], permissions.Undeliverable)} {
			if !strings.Contains(r.Failure, "does not take the file that the card needs: sendDocument: "+text) {
				t.Errorf("the caller is told %q", r.Failure)
			}
		}
		s.says("fay", "yes "+code, "Too late: undeliverable")
	}
}

// TestAnEntryOfAListThatIsGoneIsAllowedOnceItsCardHasCome: its person has deleted the list, so what it had gets cards.
func TestAnEntryOfAListThatIsGoneIsAllowedOnceItsCardHasCome(t *testing.T) {
	s := newEnv(t, few)
	calls, list := s.burst(rows())
	code := anyCode.FindString(list.Text)
	s.server.FailNext("sendDocument", -1, telegramtest.Refuse(500, "Internal Server Error"))
	s.phones["fay"].Deletes(list.ID)
	s.server.Advance(5 * time.Second)
	s.ask(network("joins"))
	s.until("its file is refused", func() bool { return len(s.calls("fay", "sendDocument")) > 1 })
	s.says("fay", "yes "+code, "has not been shown to you yet; look at it first")
	s.waits(calls[0])
	s.server.FailNext("sendDocument", 0, telegramtest.BadGateway())
	s.card("fay", "/srv/long")
	s.until("the card is noted", s.upToDate)
	s.server.Advance(time.Second)
	s.phones["fay"].Writes("yes " + code)
	s.get(calls[0], permissions.Approved)
}

// TestWhatAListThatIsNotSentHasIsNotShown: while a list is refused, or waits for its turn, nothing in it can be allowed by its code.
func TestWhatAListThatIsNotSentHasIsNotShown(t *testing.T) {
	s := newEnv(t, few)
	for _, name := range []string{"first", "second"} {
		s.ask(network(name))
		s.card("fay", name)
	}
	s.until("the cards are noted", s.upToDate)
	before := s.called("sendMessage")
	s.server.FailNext("sendMessage", -1, telegramtest.Refuse(500, "Internal Server Error"))
	var calls []<-chan ended
	for i, name := range []string{"third", "fourth"} {
		calls = append(calls, s.ask(network(name)))
		s.until("it waits", func() bool {
			n, err := s.CountPending(t.Context())
			return err == nil && n == 3+i
		})
	}
	s.until("the list is refused for both", func() bool { return s.called("sendMessage") > before+3 })
	s.server.FailNext("sendMessage", 0, telegramtest.BadGateway())
	s.server.FailNext("sendMessage", -1, telegramtest.TooManyRequests(12*time.Second)) // else a call may be under way, and have come
	s.until("it waits for its turn", func() bool {
		return slices.ContainsFunc(s.server.Calls(), func(c telegramtest.Call) bool { return c.Code == 429 && !c.Ended.IsZero() })
	})
	all, err := s.Pending(t.Context(), operator, "", 10)
	if err != nil || len(all) != 4 {
		t.Fatal(all, err)
	}
	s.until("the refusal is noted", func() bool {
		copies, err := s.rows.Copies(t.Context(), all[2].Request.ID, all[3].Request.ID)
		return err == nil && len(copies) == 2 && s.Sending(copies[0]).IsZero() && s.Sending(copies[1]).IsZero()
	})
	for range 3 {
		for _, one := range all[2:] {
			s.phones["fay"].Writes("yes " + one.Code)
		}
		s.drained()
	}
	for _, call := range calls {
		s.waits(call)
	}
	s.server.FailNext("sendMessage", 0, telegramtest.BadGateway())
	s.list(2)
	s.phones["fay"].Writes("yes " + all[2].Code)
	s.get(calls[0], permissions.Approved)
}
