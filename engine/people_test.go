package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

func TestAQuorumOfTwoWithAThirdByEscalation(t *testing.T) {
	t.Run("A8/a quorum of two", func(t *testing.T) {
		f, s, k := phones()
		st := newEnv(t, team(), f, s, k)
		call := st.ask(t.Context(), network("deploy"))
		id := st.shown(f.Memory, 1).Request.ID
		st.shown(s.Memory, 1)
		r := f.must(t, id, allow())
		if r.State != permissions.Pending || len(r.Votes) != 1 {
			t.Fatalf("after one of two: %s, %d votes", r.State, len(r.Votes))
		}
		for _, p := range []*phone{f, s} { // every copy says 1 of 2
			st.edited(p.Memory, 1, func(p connectors.Prompt) bool { return len(p.Request.Votes) == 1 })
		}
		if _, err := k.says(t, id, allow()); err == nil {
			t.Fatal("kim decided before the escalation")
		}
		st.advance(8 * time.Minute)
		card := st.shown(k.Memory, 1)
		if len(card.Request.Votes) != 1 || !slices.Equal(card.Request.Asked, []string{"fay", "sam", "kim"}) {
			t.Fatalf("kim sees %v, asked are %v", card.Request.Votes, card.Request.Asked)
		}
		if r := k.must(t, id, allow()); r.State != permissions.Approved {
			t.Fatalf("after two of two: %s", r.State)
		}
		if got := st.get(call); got.State != permissions.Approved || got.Scope != permissions.Once {
			t.Fatalf("the asker got %s", got.State)
		}
		for _, p := range []*phone{f, s, k} {
			st.edited(p.Memory, 1, func(p connectors.Prompt) bool { return p.Request.State == permissions.Approved })
		}
	})
}

func TestTheFirstWhoCannotBeReachedEscalatesAtOnce(t *testing.T) {
	for _, how := range []string{"known before", "found out by sending"} {
		t.Run(how, func(t *testing.T) {
			f, s, k := phones()
			blocked := &connectors.UnreachableError{Reason: "sam has blocked the bot"}
			if how == "known before" {
				s.FailReach(blocked)
			} else {
				s.FailSend(-1, blocked)
			}
			st := newEnv(t, team(), f, s, k)
			call := st.ask(t.Context(), network("deploy"))
			id := st.shown(f.Memory, 1).Request.ID
			st.shown(k.Memory, 1)
			f.must(t, id, allow())
			k.must(t, id, allow())
			if got := st.get(call); got.State != permissions.Approved {
				t.Errorf("the asker got %s", got.State)
			}
		})
	}
}

func TestFewerThanTheQuorumCanBeReached(t *testing.T) {
	f, s, k := phones()
	s.FailSend(-1, &connectors.UnreachableError{Reason: "sam has blocked the bot"})
	k.FailReach(&connectors.UnreachableError{Reason: "kim was never paired"})
	st := newEnv(t, team(), f, s, k)
	got := st.get(st.ask(t.Context(), network("deploy")))
	text := permissions.Result(got).Text
	if got.State != permissions.Undeliverable || !strings.Contains(text, "sam has blocked the bot") ||
		!strings.Contains(text, "kim was never paired") || strings.Contains(text, "fay has") {
		t.Errorf("%s: %s", got.State, text)
	}
}

// A person's channels are tried in order, the next when one fails for good, and only one of them is used.
func TestAPersonsChannelsInTheirOrder(t *testing.T) {
	settings := usual()
	person := fay
	person.Via = []string{"telegram", "whatsapp", "web"}
	settings.People = []connectors.Person{person, sam}
	telegram, whatsapp, other := newPhone(fay, "telegram"), newPhone(fay, "whatsapp"), newPhone(fay, "pager")
	st := newEnv(t, settings, other, whatsapp, telegram)

	first := st.ask(t.Context(), network("the first works"))
	telegram.must(t, st.shown(telegram.Memory, 1).Request.ID, allow())
	st.get(first)

	telegram.FailSend(-1, &connectors.UnreachableError{Reason: "fay has blocked the bot"})
	second := st.ask(t.Context(), network("the first is refused"))
	whatsapp.must(t, st.shown(whatsapp.Memory, 1).Request.ID, allow())
	st.get(second)

	telegram.FailSend(1, errors.New("no network"))
	third := st.ask(t.Context(), network("the first is away and comes back"))
	card := st.shown(telegram.Memory, 2)
	telegram.must(t, card.Request.ID, allow())
	st.get(third)

	telegram.FailReach(&connectors.UnreachableError{Reason: "telegram is off"})
	whatsapp.FailSend(-1, &connectors.UnreachableError{Reason: "whatsapp is logged out"})
	last := st.get(st.ask(t.Context(), network("all are refused")))
	text := permissions.Result(last).Text
	for _, why := range []string{"telegram is off", "whatsapp is logged out", "web is not switched on"} {
		if !strings.Contains(text, why) {
			t.Errorf("%s does not say %s", text, why)
		}
	}
	if n := len(other.Copies()) + len(whatsapp.Copies()) - 1; n != 0 {
		t.Errorf("%d copies too many", n)
	}
}

// Each channel that is away is tried for its own time.
func TestTheNextChannelHasItsOwnTime(t *testing.T) {
	settings := usual()
	person := fay
	person.Via = []string{"telegram", "whatsapp"}
	settings.People = []connectors.Person{person, sam}
	telegram, whatsapp := newPhone(fay, "telegram"), newPhone(fay, "whatsapp")
	telegram.FailSend(-1, errors.New("no network"))
	whatsapp.FailSend(1, errors.New("no network"))
	st := newEnv(t, settings, telegram, whatsapp)
	call := st.ask(t.Context(), network("x"))
	st.pending(1)
	st.advance(3 * time.Minute)
	whatsapp.must(t, st.shown(whatsapp.Memory, 1).Request.ID, permissions.Deny)
	if got := st.get(call); got.State != permissions.Denied {
		t.Errorf("the asker got %s", got.State)
	}
}

// A person who leaves the configuration is no longer asked and their vote is dropped; new people of the routes are asked
// as well.
func TestPeopleAreRemovedAndAddedWhileARequestIsPending(t *testing.T) {
	t.Run("A8/removed while a request is pending", func(t *testing.T) {
		f, s, k := phones()
		settings := team()
		settings.Routes[0].Escalate.To = nil
		st := newEnv(t, settings, f, s, k)
		call := st.ask(t.Context(), network("deploy"))
		id := st.shown(f.Memory, 1).Request.ID
		f.must(t, id, allow())

		next := settings
		next.People = []connectors.Person{sam, kim}
		next.Routes = slices.Clone(settings.Routes)
		next.Routes[0].Ask = []string{"sam", "kim"}
		st.Configure(next)
		card := st.shown(k.Memory, 1)
		if len(card.Request.Votes) != 0 || !slices.Equal(card.Request.Asked, []string{"sam", "kim"}) {
			t.Fatalf("kim sees %v, asked are %v", card.Request.Votes, card.Request.Asked)
		}
		_, err := f.says(t, id, allow())
		refused(t, err, permissions.CodeNotYours)
		s.must(t, id, allow())
		k.must(t, id, allow())
		if got := st.get(call); got.State != permissions.Approved || len(got.Votes) != 2 {
			t.Errorf("the asker got %s with %d votes", got.State, len(got.Votes))
		}

		last := st.ask(t.Context(), network("once more"))
		st.shown(k.Memory, 2)
		next.People = []connectors.Person{sam}
		st.Configure(next)
		if got := st.get(last); got.State != permissions.Undeliverable {
			t.Errorf("with one person left of two it takes: %s", got.State)
		}
	})
}

// TestACardOfWhoIsNotAskedAnyMoreHasNoButtons: who left the configuration and came back is nobody new, but is not asked about a path.
func TestACardOfWhoIsNotAskedAnyMoreHasNoButtons(t *testing.T) {
	settings := team()
	settings.Routes[0].Ask, settings.Routes[0].Escalate.To = []string{"fay", "sam", "kim"}, nil
	f, s, k := phones()
	st := newEnv(t, settings, f, s, k)
	st.ask(t.Context(), writing())
	id := st.shown(f.Memory, 1).Request.ID
	without := settings
	without.People = []connectors.Person{sam, kim}
	st.Configure(without)
	st.asked(id, "sam", "kim")
	st.Configure(settings)
	s.must(t, id, allow())
	var last connectors.Prompt
	st.eventually("her card shows the vote", func() bool {
		last = f.Copies()[0].Last
		return len(last.Request.Votes) == 1
	})
	if !last.Locked || last.To.Name != "" || !slices.Equal(last.Request.Asked, []string{"sam", "kim"}) {
		t.Errorf("asked are %v, and her card is locked %v, to %q", last.Request.Asked, last.Locked, last.To.Name)
	}
}

// People who are removed while the daemon is down are removed too.
func TestAPersonWhoIsRemovedWhileTheDaemonIsDown(t *testing.T) {
	f, s, k := phones()
	st := newEnv(t, team(), f, s, k)
	st.ask(t.Context(), network("deploy"))
	id := st.shown(f.Memory, 1).Request.ID
	f.must(t, id, allow())
	st.settings.People = []connectors.Person{sam, kim}
	st.settings.Routes[0].Ask = []string{"sam"}
	f, s, k = phones()
	st.restart(f, s, k)
	_, err := f.says(t, id, permissions.Deny)
	refused(t, err, permissions.CodeNotYours)
	s.must(t, id, allow())
	st.advance(8 * time.Minute)
	st.shown(k.Memory, 1)
	if r := k.must(t, id, allow()); r.State != permissions.Approved || slices.ContainsFunc(r.Votes, func(v permissions.Vote) bool {
		return v.By == "fay"
	}) {
		t.Errorf("%s by %v", r.State, r.Votes)
	}
}

func TestTheNarrowestScopeOfSeveralVotes(t *testing.T) {
	f, s, k := phones()
	settings := team()
	settings.Approvals.Scopes = append(settings.Approvals.Scopes, permissions.For(time.Hour), permissions.Always)
	st := newEnv(t, settings, f, s, k)
	for i, c := range []struct{ fay, sam, want permissions.Scope }{
		{permissions.Session, permissions.Once, permissions.Once},
		{permissions.Session, permissions.Session, permissions.Session},
		{permissions.For(time.Hour), permissions.For(15 * time.Minute), permissions.For(15 * time.Minute)},
		{permissions.Always, permissions.For(time.Hour), permissions.For(time.Hour)},
		{permissions.Session, permissions.For(15 * time.Minute), permissions.Once},
		{permissions.Session, permissions.Always, permissions.Once},
	} {
		q := network(fmt.Sprint("case ", i))
		q.Session = fmt.Sprint("s", i)
		q.Tags, _ = permissions.ParseTags([]string{fmt.Sprint("@read:/srv/", i)})
		call := st.ask(t.Context(), q)
		id := st.shown(f.Memory, i+1).Request.ID
		f.must(t, id, allowFor(c.fay))
		s.must(t, id, allowFor(c.sam))
		if got := st.get(call); got.Scope != c.want {
			t.Errorf("%v and %v give %v, not %v", c.fay, c.sam, got.Scope, c.want)
		}
	}
}

// One vote a person, through any channel; an allowance may become a denial and never back.
func TestOneVoteAPersonThroughAnyChannel(t *testing.T) {
	f, s, k := phones()
	second := newPhone(fay, "fays-tablet")
	st := newEnv(t, team(), f, second, s, k)
	call := st.ask(t.Context(), network("deploy"))
	id := st.shown(f.Memory, 1).Request.ID
	f.must(t, id, allow())
	if r := second.must(t, id, allow()); r.State != permissions.Pending || len(r.Votes) != 1 {
		t.Fatalf("fay voted twice: %s, %v", r.State, r.Votes)
	}
	if r := second.must(t, id, permissions.Deny); r.State != permissions.Denied {
		t.Fatalf("one denial: %s", r.State)
	}
	_, err := f.says(t, id, allow())
	refused(t, err, permissions.CodeSettled)
	if got := st.get(call); got.State != permissions.Denied {
		t.Errorf("the asker got %s", got.State)
	}
}

// However many people and channels answer at once, there is one outcome, and everybody is told the same.
func TestSixtyFourRacingVotersHaveOneOutcome(t *testing.T) {
	t.Run("D4/racing voters", func(t *testing.T) {
		f, s, k := phones()
		settings := team()
		settings.Routes[0].Ask, settings.Routes[0].Escalate.To = []string{"fay", "sam", "kim"}, nil
		st := newEnv(t, settings, f, s, k)
		for round := range 8 {
			call := st.ask(t.Context(), tagged("", fmt.Sprint("@read:/srv/", round)))
			id := st.shown(f.Memory, round+1).Request.ID
			answers := []permissions.Answer{allow(), allowFor(permissions.For(15 * time.Minute)), permissions.Deny, allow()}
			var racing sync.WaitGroup
			ends := make(chan permissions.Request, 64)
			for i := range 64 {
				p := []*phone{f, s, k}[i%3]
				racing.Go(func() {
					r, err := p.says(t, id, answers[(i+round)%len(answers)])
					var refusal *permissions.Refusal
					if err != nil && !errors.As(err, &refusal) {
						t.Error(err)
					}
					ends <- r
				})
			}
			racing.Wait()
			got := st.get(call)
			for range 64 {
				if r := <-ends; r.State != permissions.Pending && (r.State != got.State || r.Answer != got.Answer || r.DecidedBy != got.DecidedBy) {
					t.Fatalf("somebody was told %s by %s, the asker %s by %s", r.State, r.DecidedBy, got.State, got.DecidedBy)
				}
			}
			settled := 0
			entries, err := st.rows.Audit(t.Context(), "", 0, 10000)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if e.Request == id && e.Type == permissions.RequestSettled {
					settled++
				}
			}
			if settled != 1 {
				t.Fatalf("it was settled %d times", settled)
			}
		}
	})
}
