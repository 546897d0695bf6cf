package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

func hears(t *testing.T, s engine.Store, m permissions.Message, most int) {
	t.Helper()
	if err := s.AddMessage(t.Context(), m, most); err != nil {
		t.Fatal(err)
	}
}

// unheard compares an agent's undelivered messages. Their numbers are the store's, but grow.
func unheard(t *testing.T, s engine.Store, agent string, limit int, want ...permissions.Message) []permissions.Message {
	t.Helper()
	got, err := s.UndeliveredMessages(t.Context(), agent, limit)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(permissions.Message{}, "Number"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("what %s does not have yet (-want +got):\n%s", agent, diff)
	}
	for i := 1; i < len(got); i++ {
		if got[i].Number <= got[i-1].Number {
			t.Errorf("message %d comes after %d", got[i].Number, got[i-1].Number)
		}
	}
	return got
}

func heardBy(agent string, n int) permissions.Message {
	return permissions.Message{
		Key: fmt.Sprintf("telegram:7:%d", n), Agent: agent, From: "fay", Text: fmt.Sprintf("message %d\n\u202e", n),
		CreatedAt: noon.Add(time.Duration(n) * time.Second),
	}
}

// testMessages: messages wait in order until their agent has them; duplicates are dropped.
func testMessages(t *testing.T, b Backend) {
	s := b.Open(t)
	unheard(t, s, "helper", 9)
	for n := range 3 {
		hears(t, s, heardBy("helper", n), 3)
	}
	hears(t, s, heardBy("coder", 8), 3)
	err := s.AddMessage(t.Context(), heardBy("helper", 3), 3)
	refusedWith(t, err, permissions.CodeLimit)
	again := heardBy("helper", 1)
	again.Text, again.Agent = "another text, and for another agent", "coder"
	hears(t, s, again, 3)
	unheard(t, s, "coder", 9, heardBy("coder", 8))
	unheard(t, s, "helper", 2, heardBy("helper", 0), heardBy("helper", 1))

	s = b.Reopen(t, s)
	all := unheard(t, s, "helper", 9, heardBy("helper", 0), heardBy("helper", 1), heardBy("helper", 2))
	for range 2 {
		if err := s.MarkDelivered(t.Context(), all[1].Number, noon.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	unheard(t, s, "helper", 9, heardBy("helper", 0), heardBy("helper", 2))
	hears(t, s, heardBy("helper", 1), 3) // delivered again, after it was received
	hears(t, s, heardBy("helper", 3), 3) // there is room again
	unheard(t, s, "helper", 9, heardBy("helper", 0), heardBy("helper", 2), heardBy("helper", 3))
}

// testOrders: of an executed order only the key is kept, and it never counts as undelivered.
func testOrders(t *testing.T, b Backend) {
	s := b.Open(t)
	knows := func(key string, want bool) {
		t.Helper()
		if got, err := s.HasMessage(t.Context(), key); err != nil || got != want {
			t.Errorf("%s is known: %v, %v", key, got, err)
		}
	}
	order := heardBy("helper", 1)
	order.ReceivedAt = noon
	knows(order.Key, false)
	hears(t, s, order, 0)
	knows(order.Key, true)
	hears(t, s, order, 0)
	unheard(t, s, "helper", 9)
	hears(t, s, heardBy("helper", 2), 1)
	knows(heardBy("helper", 2).Key, true)
}

// unsaid compares an agent's unsent messages.
func unsaid(
	t *testing.T, s engine.Store, agent string, limit int, want ...permissions.AgentMessage,
) []permissions.AgentMessage {
	t.Helper()
	got, err := s.UnsentAgentMessages(t.Context(), agent, limit)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(permissions.AgentMessage{}, "Number"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("what %s has still to say (-want +got):\n%s", agent, diff)
	}
	return got
}

func saidBy(agent string, n int) permissions.AgentMessage {
	return permissions.AgentMessage{
		Key: fmt.Sprintf("turn %d", n), Binding: permissions.Binding{Agent: agent, Person: "fay", Via: "telegram"},
		Text: strings.Repeat(fmt.Sprintf("utterance %d\n", n), n+1), CreatedAt: noon.Add(time.Duration(n) * time.Second),
	}
}

func says(t *testing.T, s engine.Store, u permissions.AgentMessage, most int) {
	t.Helper()
	if err := s.AddAgentMessage(t.Context(), u, most); err != nil {
		t.Fatal(err)
	}
}

func sent(t *testing.T, s engine.Store, u permissions.AgentMessage, ref string, done bool) {
	t.Helper()
	if err := s.MarkAgentMessageSent(t.Context(), u, ref, done, noon); err != nil {
		t.Fatal(err)
	}
}

// testUtterances: an agent's messages wait in order until all of each was sent; duplicates are dropped.
func testUtterances(t *testing.T, b Backend) {
	s := b.Open(t)
	unsaid(t, s, "helper", 9)
	for n := range 3 {
		says(t, s, saidBy("helper", n), 3)
	}
	says(t, s, saidBy("coder", 0), 3) // keys are per agent
	err := s.AddAgentMessage(t.Context(), saidBy("helper", 3), 3)
	refusedWith(t, err, permissions.CodeLimit)
	says(t, s, saidBy("helper", 1), 3)
	unsaid(t, s, "helper", 1, saidBy("helper", 0))
	all := unsaid(t, s, "helper", 9, saidBy("helper", 0), saidBy("helper", 1), saidBy("helper", 2))

	half := all[0]
	half.Sent = 1
	sent(t, s, half, "1:10", false)
	s = b.Reopen(t, s)
	want := saidBy("helper", 0)
	want.Sent = 1
	unsaid(t, s, "helper", 9, want, saidBy("helper", 1), saidBy("helper", 2))
	half.Sent = 2
	sent(t, s, half, "1:11", true)
	unsaid(t, s, "helper", 9, saidBy("helper", 1), saidBy("helper", 2))
	says(t, s, saidBy("helper", 0), 3) // repeated after it was sent
	unsaid(t, s, "helper", 9, saidBy("helper", 1), saidBy("helper", 2))
	sent(t, s, all[1], "", true) // undeliverable

	keyless := saidBy("helper", 9)
	keyless.Key = ""
	says(t, s, keyless, 9)
	says(t, s, keyless, 9)
	unsaid(t, s, "helper", 9, saidBy("helper", 2), keyless, keyless)
	unsaid(t, s, "coder", 9, saidBy("coder", 0))
}

// testAuthors: the author of an agent's message is known by its name in the channel, for the agent's last thousand messages.
func testAuthors(t *testing.T, b Backend) {
	s := b.Open(t)
	author := func(via, ref, want string) {
		t.Helper()
		if got, err := s.Author(t.Context(), via, ref); err != nil || got != want {
			t.Errorf("%s at %s is from %q, %v; want %q", ref, via, got, err, want)
		}
	}
	author("telegram", "1:1", "")
	say := func(agent string, n int, ref string) {
		t.Helper()
		says(t, s, saidBy(agent, n), 9)
		all, err := s.UnsentAgentMessages(t.Context(), agent, 1)
		if err != nil || len(all) != 1 {
			t.Fatalf("%d are to be said, %v", len(all), err)
		}
		sent(t, s, all[0], ref, true)
	}
	say("coder", 0, "1:1")
	const kept = 1000
	for n := range kept + 2 {
		say("helper", n, fmt.Sprintf("2:%d", n))
	}
	say("coder", 1, "1:2")
	say("coder", 2, "1:2") // the channel reused the name: the last counts
	s = b.Reopen(t, s)
	author("telegram", "1:1", "coder")
	author("telegram", "1:2", "coder")
	author("whatsapp", "1:1", "")
	author("telegram", "2:1", "")
	author("telegram", "2:2", "helper")
	author("telegram", fmt.Sprintf("2:%d", kept+1), "helper")
	says(t, s, saidBy("helper", kept+1), 9) // is still known
	unsaid(t, s, "helper", 9)
	says(t, s, saidBy("helper", 0), 9) // is not
	unsaid(t, s, "helper", 9, saidBy("helper", 0))
}

func testForeground(t *testing.T, b Backend) {
	s := b.Open(t)
	is := func(person, via, want string) {
		t.Helper()
		if got, err := s.Foreground(t.Context(), person, via); err != nil || got != want {
			t.Errorf("%s talks to %q at %s, %v; want %q", person, got, via, err, want)
		}
	}
	choose := func(person, via, agent string) {
		t.Helper()
		if err := s.SetForeground(t.Context(), permissions.Binding{Agent: agent, Person: person, Via: via}); err != nil {
			t.Fatal(err)
		}
	}
	is("fay", "telegram", "")
	choose("fay", "telegram", "helper")
	choose("fay", "whatsapp", "helper")
	choose("sam", "telegram", "nightly")
	choose("fay", "telegram", "coder")
	s = b.Reopen(t, s)
	is("fay", "telegram", "coder")
	is("fay", "whatsapp", "helper")
	is("sam", "telegram", "nightly")
}

func testPendingNumbers(t *testing.T, b Backend) {
	s := b.Open(t)
	first, second := open(t, s, ask(numbered(1))), open(t, s, ask(numbered(2)))
	apply(t, s, first.ID, vote(permissions.Deny))
	third := open(t, s, ask(numbered(3), of("sam")))
	got, err := s.PendingNumbers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the numbers", got, []int64{second.Number, third.Number})
}

// testPruneChat: undelivered messages go with requests' words, the keys of the others with the requests.
func testPruneChat(t *testing.T, b Backend) {
	s := b.Open(t)
	hears(t, s, heardBy("helper", 0), 9)
	hears(t, s, heardBy("helper", 1), 9)
	order := heardBy("coder", 0)
	order.Key, order.ReceivedAt = "an order", noon
	hears(t, s, order, 9)
	says(t, s, saidBy("helper", 0), 9)
	says(t, s, saidBy("helper", 1), 9)
	says(t, s, saidBy("coder", 0), 9)
	u := unsaid(t, s, "coder", 9, saidBy("coder", 0))[0]
	sent(t, s, u, "1:1", true)
	if err := s.MarkAgentMessageSent(t.Context(), u, "1:2", true, noon.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	known := func(want bool) {
		t.Helper()
		if got, err := s.HasMessage(t.Context(), order.Key); err != nil || got != want {
			t.Errorf("the order is known: %v, %v", got, err)
		}
		says(t, s, saidBy("coder", 0), 9)
		if want {
			unsaid(t, s, "coder", 9)
		} else {
			unsaid(t, s, "coder", 9, saidBy("coder", 0))
		}
	}

	keep := permissions.Keep{Payloads: 30 * day, Requests: 90 * day}
	prune(t, s, keep, noon.Add(30*day), 2)
	unheard(t, s, "helper", 9, heardBy("helper", 0), heardBy("helper", 1))
	if rounds := prune(t, s, keep, noon.Add(30*day+time.Microsecond), 1); rounds != 4 {
		t.Errorf("%d rounds of one each for three rows", rounds)
	}
	unheard(t, s, "helper", 9, heardBy("helper", 1))
	unsaid(t, s, "helper", 9, saidBy("helper", 1))
	known(true)
	for ref, want := range map[string]string{"1:1": "", "1:2": "coder"} {
		if got, err := s.Author(t.Context(), "telegram", ref); err != nil || got != want {
			t.Errorf("%s is from %q, %v", ref, got, err)
		}
	}
	prune(t, s, keep, noon.Add(90*day), 1)
	known(true)
	prune(t, s, keep, noon.Add(90*day+time.Microsecond), 1)
	known(false)
}
