package telegram

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// usualUpdates are so many that the test takes a few seconds; FLOOD_UPDATES sets another number.
const (
	usualUpdates = 300
	inParallel   = 12 // questions at a time
	maxRounds    = 10
)

// TestAFloodOverABadNetwork has people press, write and be pestered while three calls in ten fail in every way: each
// question is answered as its person did, once, each card ends in its final state, and no update is left.
func TestAFloodOverABadNetwork(t *testing.T) {
	updates := usualUpdates
	if text := os.Getenv("FLOOD_UPDATES"); text != "" {
		var err error
		if updates, err = strconv.Atoi(text); err != nil {
			t.Fatalf("FLOOD_UPDATES: %v", err)
		}
	}
	f := &flood{rand: rand.New(rand.NewPCG(4, 2)), each: max(25, updates/inParallel/maxRounds)}
	f.env = newEnv(t, impatient, f.people)
	f.server.Redeliver(2, true, 9)
	f.server.FailRate(0.3, 11, telegramtest.TooManyRequests(time.Second), telegramtest.InternalError(),
		telegramtest.BadGateway(), telegramtest.Reset(), telegramtest.ReplyLost(), telegramtest.Hang())
	deadline := time.Now().Add(30 * time.Minute)
	for number := 0; f.made < updates; number += inParallel {
		f.round(number)
		if time.Now().After(deadline) {
			t.Fatal("it takes too long")
		}
	}
	f.server.FailRate(0, 0)
	f.within(2*time.Minute, "every copy is up to date", f.upToDate)
	f.drained()
	votes := f.audited(permissions.RequestVoted)
	settled := f.audited(permissions.RequestSettled)
	for id, want := range f.answers {
		r, err := f.rows.Read(t.Context(), id)
		if err != nil || r.Answer != want || r.State == permissions.Pending || len(r.Votes) > 1 || votes[id] > 1 || settled[id] != 1 {
			t.Errorf("%s was answered %s (%s, %d votes, settled %d times, %v); want %s once",
				r.Reason, r.Answer, r.State, votes[id], settled[id], err, want)
		}
	}
	t.Logf("%d updates, %d questions, %d calls", f.made, len(f.answers), len(f.server.Calls()))
}

// flood is people, what they were asked, and what they answered.
type flood struct {
	*env
	rand    *rand.Rand
	each    int // updates for each question, of which one decides
	made    int
	answers map[permissions.ID]permissions.Answer
}

func (f *flood) people(s *env) {
	f.answers = map[permissions.ID]permissions.Answer{}
	s.settings.Routes = nil
	for i := range inParallel {
		name := fmt.Sprintf("p%d", i)
		s.enrol(name, int64(3000+i)).Start("")
		tag, err := permissions.ParseTag("@read:/" + name)
		if err != nil {
			s.t.Fatal(err)
		}
		s.settings.Routes = append(s.settings.Routes, engine.Route{Tags: []permissions.Tag{tag}, Ask: []string{name}})
	}
}

// round asks everybody one question, and has each answer it in the midst of much else.
func (f *flood) round(number int) {
	f.t.Helper()
	calls := make([]<-chan ended, inParallel)
	answers := make([]permissions.Answer, inParallel)
	reason := func(i int) string { return fmt.Sprintf("number %d.", number+i) }
	for i := range inParallel {
		q := network(reason(i))
		tag, err := permissions.ParseTag(fmt.Sprintf("@read:/p%d/%d", i, number)) // what was denied twice is not asked again
		if err != nil {
			f.t.Fatal(err)
		}
		q.Tags = []permissions.Tag{tag}
		calls[i] = f.ask(q)
	}
	for i := range inParallel {
		answers[i] = f.answer(fmt.Sprintf("p%d", i), f.patiently(fmt.Sprintf("p%d", i), reason(i)))
	}
	for i := range inParallel {
		select {
		case a := <-calls[i]:
			if a.err != nil {
				f.t.Fatal(a.err)
			}
			f.answers[a.ID] = answers[i]
		case <-time.After(2 * time.Minute):
			f.t.Fatalf("%s is not answered", reason(i))
		}
	}
}

// patiently waits for a card, of which there may be several as answers are lost: the one that the daemon knows of.
func (f *flood) patiently(who, reason string) (m telegramtest.Message) {
	f.t.Helper()
	f.within(2*time.Minute, who+" sees "+reason, func() bool {
		rows, err := f.rows.Pending(f.t.Context(), who, "", 10)
		if err != nil || len(rows) != 1 || rows[0].Reason != reason {
			return false
		}
		copies, err := f.rows.Copies(f.t.Context(), rows[0].ID)
		if err != nil || len(copies) != 1 {
			return false
		}
		r, err := parseRef(copies[0].Ref)
		if err != nil {
			return false
		}
		found := false
		m, found = f.phones[who].Message(int(r.message))
		return found
	})
	return m
}

// answer makes one person answer a card while others try, in any order; exactly one answer decides.
func (f *flood) answer(who string, m telegramtest.Message) permissions.Answer {
	f.t.Helper()
	person, eve := f.phones[who], f.phones["eve"]
	allow, deny, want := data(f.t, m, "Allow once"), data(f.t, m, "⛔ Deny"), permissions.Deny
	code, _ := codeOf(m)
	decide := func() { person.TapsData(m.ID, deny) }
	switch f.rand.IntN(3) {
	case 0:
		decide, want = func() { person.TapsData(m.ID, allow) }, permissions.Allow(permissions.Once)
	case 1:
		decide, want = func() { person.Writes("yes " + code) }, permissions.Allow(permissions.Once)
	}
	noise := []func(){
		func() { eve.TapsData(m.ID, allow) },
		func() { eve.Writes("yes " + code) },
		func() { f.phones["sam"].TapsData(m.ID, deny) },
		func() { f.phones["sam"].Writes("no " + code) },
		func() { person.TapsData(m.ID, strings.ToUpper(allow)) },
		func() { person.TapsData(m.ID+100000, allow) },
		func() { person.Writes("yes please") },
		func() { person.Writes("/pending") },
	}
	at := f.rand.IntN(f.each)
	for n := range f.each {
		if n == at {
			decide()
		} else {
			noise[f.rand.IntN(len(noise))]()
		}
		f.made++
	}
	return want
}
