package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

const fayID = "4242"

// samAt and kimAt are the others, by their accounts on this machine.
var (
	samAt = connectors.Identity{Via: "cli", UID: 3000}
	kimAt = connectors.Identity{Via: "cli", UID: 4000}
)

// known is a team in which fay has an account everywhere.
func known() engine.Settings {
	s := team()
	s.Editor = true
	s.People[0] = s.People[0].WithAddress("telegram", fayID).WithAddress("whatsapp", number)
	return s
}

// lock locks a person, which must succeed.
func (s *env) lock(id connectors.Identity, name string) permissions.Lock {
	s.t.Helper()
	l, err := s.Lock(s.t.Context(), id, name, time.Time{})
	if err != nil {
		s.t.Fatal(err)
	}
	return l.Lock
}

// locked returns the names of the locked people.
func (s *env) locked() (names []string) {
	for _, l := range s.Locks() {
		names = append(names, l.Person)
	}
	return names
}

// TestNothingFromALockedPersonCounts tries every way in, by every account, right after the lock.
func TestNothingFromALockedPersonCounts(t *testing.T) {
	f, s, k := phones()
	everywhere := known()
	everywhere.People[0] = everywhere.People[0].WithAddress("fays-phone", "1")
	st := newEnv(t, everywhere, f, s, k)
	caller := permissions.CallerUID(fayUID)
	question := st.dialog(caller, which())
	asked := st.submit(self, keyed(network("x"), "1"))
	st.shown(f.Memory, 2)
	if l := st.lock(samAt, "fay"); l.By != "sam" || !slices.Equal(l.Accounts, []string{
		"fays-phone:1", "telegram:4242", "uid:2000", "whatsapp:" + number,
	}) {
		t.Errorf("the lock: %+v", l)
	}
	ctx, id := t.Context(), asked.ID
	for name, try := range map[string]func(who connectors.Identity) error{
		"an answer": func(who connectors.Identity) error {
			_, err := st.OnPermission(ctx, connectors.Decision{From: who, Request: id, Answer: allow()})
			return err
		},
		"a denial": func(who connectors.Identity) error {
			_, err := st.OnPermission(ctx, connectors.Decision{From: who, Request: id, Answer: permissions.Deny})
			return err
		},
		"a button": func(who connectors.Identity) error {
			c := f.Copies()[0]
			if who.Via = "fays-phone"; who.Address != "" {
				who.Address = "1"
			}
			_, err := st.OnPermission(ctx, connectors.Decision{From: who, Button: c.First.Button, Ref: c.Ref, Answer: allow()})
			return err
		},
		"a look": func(who connectors.Identity) error {
			_, err := st.Preview(ctx, connectors.Decision{From: who, Request: id})
			return err
		},
		"a message": func(who connectors.Identity) error {
			return st.OnMessage(ctx, connectors.Message{From: who, Text: "go on", Key: "k"})
		},
		"an order": func(who connectors.Identity) error {
			_, err := st.Order(ctx, who, permissions.OrderStop, "k")
			return err
		},
		"an agent": func(who connectors.Identity) error { _, err := st.Use(ctx, who, "helper"); return err },
		"agents":   func(who connectors.Identity) error { _, err := st.Agents(ctx, who); return err },
		"pending":  func(who connectors.Identity) error { _, err := st.Pending(ctx, who, "", 1); return err },
		"show":     func(who connectors.Identity) error { _, err := st.Show(ctx, who, string(id)); return err },
		"cancel":   func(who connectors.Identity) error { _, err := st.Cancel(ctx, who, string(id)); return err },
		"void":     func(who connectors.Identity) error { _, err := st.Void(ctx, who, string(id)); return err },
		"grants":   func(who connectors.Identity) error { _, err := st.Grants(ctx, who, "", 99); return err },
		"revoke":   func(who connectors.Identity) error { _, err := st.Revoke(ctx, who, "x"); return err },
		"stop":     func(who connectors.Identity) error { _, err := st.StopAll(ctx, who); return err },
		"resume":   func(who connectors.Identity) error { return st.Resume(ctx, who) },
		"sessions": func(who connectors.Identity) error { _, err := st.Sessions(ctx, who, true, "", 1); return err },
		"events":   func(who connectors.Identity) error { _, _, err := st.Events(ctx, who, 0, 1); return err },
		"waiting":  func(who connectors.Identity) error { _, _, err := st.Waiting(ctx, who); return err },
		"whoami":   func(who connectors.Identity) error { _, err := st.Who(who); return err },
		"lock": func(who connectors.Identity) error {
			_, err := st.Lock(ctx, who, "sam", time.Time{})
			return err
		},
		"unlock": func(who connectors.Identity) error { _, _, err := st.Unlock(ctx, who, "fay"); return err },
		"the editor": func(connectors.Identity) error {
			_, err := st.Reply(ctx, caller, question.Request.ID, permissions.Choose(1), question.Request.Digest)
			return err
		},
	} {
		for account, who := range map[string]connectors.Identity{
			"by telegram": {Via: "telegram", UID: permissions.NoUID, Address: fayID},
			"by whatsapp": dialled(number, ""), "by admin.sock": {Via: "cli", UID: fayUID}, "by an inbox": {Via: "terminal", UID: fayUID},
		} {
			t.Run("A8/"+name+" "+account, func(t *testing.T) {
				began := time.Now()
				refused(t, try(who), permissions.CodeLocked)
				if took := time.Since(began); took > time.Second {
					t.Errorf("it took %s", took)
				}
			})
		}
	}
	if got := st.locked(); !slices.Equal(got, []string{"fay"}) {
		t.Errorf("locked are %v", got)
	}
}

// TestARemovalWorksOnOpenPrompts: A8's promise that prompts on a stolen phone are useless.
func TestARemovalWorksOnOpenPrompts(t *testing.T) {
	t.Run("A8/a removal works within a second on open prompts", func(t *testing.T) {
		f, s, k := phones()
		st := newEnv(t, team(), f, s, k)
		call := st.ask(t.Context(), network("deploy"))
		id := st.shown(f.Memory, 1).Request.ID
		st.shown(s.Memory, 1)
		if r := f.must(t, id, allow()); len(r.Votes) != 1 {
			t.Fatal("her vote is not there")
		}
		began := time.Now()
		st.lock(samAt, "fay")
		st.edited(f.Memory, 1, func(p connectors.Prompt) bool { return p.Locked })
		if took := time.Since(began); took > time.Second {
			t.Errorf("the card lost its buttons after %s", took)
		}
		card := st.shown(k.Memory, 1) // at once, since too few are left
		if r := card.Request; len(r.Votes) > 0 || !slices.Equal(r.Asked, []string{"sam", "kim"}) {
			t.Errorf("asked are %v, votes %v", r.Asked, r.Votes)
		}
		s.must(t, id, allow())
		if r := k.must(t, id, allow()); r.State != permissions.Approved {
			t.Errorf("after two of two: %s", r.State)
		}
		st.get(call)
		st.edited(f.Memory, 1, func(p connectors.Prompt) bool { return p.Request.State == permissions.Approved })
		unlocked(t, st, operator, true)
		_, err := f.Do(t.Context(), connectors.Decision{Button: card.Button, Answer: permissions.Deny})
		if err == nil {
			t.Error("an old button decides after the unlock")
		}
	})
}

// TestACardOfSeveralStaysForTheOthers: in a group, only the locked person's presses do not count.
func TestACardOfSeveralStaysForTheOthers(t *testing.T) {
	t.Run("A8/a card in a group", func(t *testing.T) {
		h := newGroupChannel()
		s := teamIn("group:ops")
		s.Routes[0].Quorum = 1
		st := newEnv(t, s, h)
		call := st.ask(t.Context(), network("together"))
		st.shown(h.Memory, 1)
		st.lock(samAt, "fay")
		st.edited(h.Memory, 1, func(p connectors.Prompt) bool { return slices.Equal(p.Request.Asked, []string{"sam"}) && !p.Locked })
		_, err := h.presses(t, "fay", h.Copies()[0], allow())
		refused(t, err, permissions.CodeLocked)
		if _, err := h.presses(t, "sam", h.Copies()[0], allow()); err != nil {
			t.Error(err)
		}
		if r := st.get(call); r.State != permissions.Approved || r.DecidedBy != "sam" {
			t.Errorf("%s by %s", r.State, r.DecidedBy)
		}
	})
}

func TestWhatOnlyALockedPersonIsAsked(t *testing.T) {
	f, _, _ := phones()
	st := newEnv(t, usual(), f)
	call := st.ask(t.Context(), network("x"))
	st.shown(f.Memory, 1)
	st.lock(fayAt("fays-phone"), "") // from an account of her own
	r := st.get(call)
	said := strings.Contains(r.Failure, "locked: fay") || // by the lock itself, or by an earlier check of the request
		r.Failure == "fay is locked until: daycared unlock fay"
	if r.State != permissions.Undeliverable || !said {
		t.Errorf("what was pending: %s, %s", r.State, r.Failure)
	}
	r = st.get(st.ask(t.Context(), network("y")))
	if r.State != permissions.Undeliverable || r.Failure != "fay is locked until: daycared unlock fay" {
		t.Errorf("what is new: %s, %s", r.State, r.Failure)
	}
	unlocked(t, st, operator, true)
	call = st.ask(t.Context(), network("z"))
	f.must(t, st.shown(f.Memory, 2).Request.ID, allow())
	st.get(call)
}

// TestAPressAfterALockThatEndedARequest: E3/whoever was asked alone, and is locked no more, is told how the request ended, not that it was
// never theirs.
func TestAPressAfterALockThatEndedARequest(t *testing.T) {
	f, _, _ := phones()
	st := newEnv(t, usual(), f)
	call := st.ask(t.Context(), network("x"))
	st.shown(f.Memory, 1)
	card := f.Copies()[0]
	press := func(from connectors.Identity) error {
		_, err := st.OnPermission(t.Context(), connectors.Decision{From: from, Button: card.First.Button, Ref: card.Ref, Answer: allow()})
		return err
	}
	st.lock(operator, "fay")
	if r := st.get(call); r.State != permissions.Undeliverable {
		t.Fatalf("it is %s", r.State)
	}
	refused(t, press(fayAt("fays-phone")), permissions.CodeLocked)
	unlocked(t, st, operator, true)
	refused(t, press(fayAt("fays-phone")), permissions.CodeSettled)
	refused(t, press(connectors.Identity{Via: "fays-phone", UID: samAt.UID}), permissions.CodeNotYours)
}

// TestACardComesBackWithItsPerson: an unlocked person is asked about all pending requests, including those that were
// asked meanwhile.
func TestACardComesBackWithItsPerson(t *testing.T) {
	s := usual()
	s.Routes[0].Ask = []string{"fay", "sam"}
	f, other, _ := phones()
	st := newEnv(t, s, f, other)
	before := st.ask(t.Context(), network("before"))
	first := st.shown(f.Memory, 1).Request.ID
	st.lock(samAt, "fay")
	st.edited(f.Memory, 1, func(p connectors.Prompt) bool { return p.Locked })
	meanwhile := st.ask(t.Context(), network("meanwhile"))
	st.shown(other.Memory, 2)
	if n := len(f.Copies()); n != 1 {
		t.Errorf("she was sent %d cards", n)
	}
	unlocked(t, st, operator, true)
	st.edited(f.Memory, 1, func(p connectors.Prompt) bool { return !p.Locked })
	f.must(t, first, allow())
	f.must(t, st.shown(f.Memory, 2).Request.ID, allow())
	st.get(before)
	st.get(meanwhile)
}

// writing asks for a path, whose parts may have had routes of their own.
func writing() permissions.Request {
	tags, _ := permissions.ParseTags([]string{"@write:/e"})
	return permissions.Request{Kind: permissions.KindPermission, Tags: tags, Reason: "x"}
}

// TestWhoWasLockedIsAskedAgainAboutAPath: also after a reload.
func TestWhoWasLockedIsAskedAgainAboutAPath(t *testing.T) {
	for _, escalates := range []bool{false, true} {
		s := team()
		s.Routes[0].Quorum = 1
		if !escalates {
			s.Routes[0].Escalate.To = nil
		}
		f, other, k := phones()
		st := newEnv(t, s, f, other, k)
		call := st.ask(t.Context(), writing())
		id := st.shown(f.Memory, 1).Request.ID
		st.lock(samAt, "fay")
		st.edited(f.Memory, 1, func(p connectors.Prompt) bool { return p.Locked && p.To.Name == "fay" })
		s.Approvals.Timeout++
		st.Configure(s)
		unlocked(t, st, operator, true)
		st.edited(f.Memory, 1, func(p connectors.Prompt) bool { return !p.Locked })
		f.must(t, id, permissions.Deny)
		if r := st.get(call); r.State != permissions.Denied || slices.Contains(r.Asked, "kim") {
			t.Errorf("escalates %v: it is %s, and asked are %v", escalates, r.State, r.Asked)
		}
	}
}

// TestALockDoesNotEndAnEscalation: who is locked when it comes is asked once they are not, also after a restart.
func TestALockDoesNotEndAnEscalation(t *testing.T) {
	for _, at := range []string{"before it", "after it", "after a restart"} {
		t.Run(at, func(t *testing.T) {
			s := usual()
			s.Routes[0].Ask, s.Routes[0].Escalate.Moment, s.Routes[0].Escalate.To = []string{"sam"}, engine.Moment{Percent: 50}, []string{"fay"}
			f, other, _ := phones()
			st := newEnv(t, s, f, other)
			st.ask(t.Context(), writing())
			id := st.shown(other.Memory, 1).Request.ID
			st.lock(samAt, "fay")
			if at == "before it" {
				unlocked(t, st, operator, true)
			}
			st.advance(8 * time.Minute)
			if at != "before it" {
				st.eventually("the escalation", func() bool { return len(st.details(permissions.RequestEscalated)) == 1 })
				if told := st.details(permissions.RequestEscalated)[0]; told["to"] != "" || told["locked"] != "fay" {
					t.Errorf("the audit says %v", told)
				}
				st.asked(id, "sam")
			}
			if at == "after a restart" {
				f, other, _ = phones()
				st.restart(f, other)
			}
			if at != "before it" {
				unlocked(t, st, operator, true)
			}
			st.shown(f.Memory, 1)
			if r := f.must(t, id, allow()); r.State != permissions.Approved {
				t.Errorf("it is %s", r.State)
			}
		})
	}
}

// TestWhoIsLockedWhenItIsAskedIsAskedLater: cards say who is asked indeed.
func TestWhoIsLockedWhenItIsAskedIsAskedLater(t *testing.T) {
	s := usual()
	s.Routes[0].Ask = []string{"fay", "sam"}
	f, other, _ := phones()
	st := newEnv(t, s, f, other)
	st.lock(samAt, "fay")
	st.ask(t.Context(), writing())
	card := st.shown(other.Memory, 1)
	if !slices.Equal(card.Request.Asked, []string{"sam"}) {
		t.Errorf("asked are %v", card.Request.Asked)
	}
	unlocked(t, st, operator, true)
	st.shown(f.Memory, 1)
	st.asked(card.Request.ID, "sam", "fay")
}

// TestAnEarlyEscalationAsksTheLockedOnceTheyAreNot: as one that comes by the time does, whoever is locked first.
func TestAnEarlyEscalationAsksTheLockedOnceTheyAreNot(t *testing.T) {
	s := team()
	s.Routes[0].Ask, s.Routes[0].Quorum, s.Routes[0].Escalate.To = []string{"sam"}, 1, []string{"fay", "kim"}
	f, other, k := phones()
	st := newEnv(t, s, f, other, k)
	st.ask(t.Context(), writing())
	id := st.shown(other.Memory, 1).Request.ID
	st.lock(kimAt, "fay")
	st.lock(kimAt, "sam")
	st.asked(id, "kim")
	told := st.details(permissions.RequestEscalated)
	if len(told) != 1 || told[0]["to"] != "kim" || !strings.Contains(told[0]["locked"], "fay") {
		t.Errorf("the audit says %v", told)
	}
	unlocked(t, st, operator, true)
	st.shown(f.Memory, 1)
	f.must(t, id, permissions.Deny)
}

// TestOnlyLockedPeopleAreLeftToEscalateTo: nobody waits for them.
func TestOnlyLockedPeopleAreLeftToEscalateTo(t *testing.T) {
	s := usual()
	s.Routes[0].Ask, s.Routes[0].Escalate.Moment, s.Routes[0].Escalate.To = []string{"sam"}, engine.Moment{Percent: 50}, []string{"fay"}
	f, other, _ := phones()
	st := newEnv(t, s, f, other)
	call := st.ask(t.Context(), writing())
	st.shown(other.Memory, 1)
	st.lock(samAt, "fay")
	st.lock(operator, "sam")
	if r := st.get(call); r.State != permissions.Undeliverable || !strings.Contains(r.Failure, "locked") {
		t.Errorf("it is %s: %s", r.State, r.Failure)
	}
}

// TestALockStays: across restarts and changes of the configuration.
func TestALockStays(t *testing.T) {
	at := func(st *env) string {
		name, err := st.Who(connectors.Identity{Via: "telegram", UID: permissions.NoUID, Address: fayID})
		if refusal := (*permissions.Refusal)(nil); errors.As(err, &refusal) {
			return string(refusal.Code)
		}
		return name
	}
	for name, change := range map[string]func(s *engine.Settings){
		"A8/a restart":  func(*engine.Settings) {},
		"A8/a new name": func(s *engine.Settings) { s.People[0].Name = "fae" },
		"A8/the account of somebody else": func(s *engine.Settings) {
			s.People[0], s.People[1] = s.People[0].WithAddress("telegram", ""), s.People[1].WithAddress("telegram", fayID)
		},
		"A8/a new account": func(s *engine.Settings) {
			s.People[0] = connectors.Person{Name: "fay", UID: permissions.NoUID, Addresses: map[string]string{"telegram": fayID}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := newEnv(t, known(), newPhone(fay, "fays-phone"))
			if got := at(st); got != "fay" {
				t.Fatalf("before, the account is %q", got)
			}
			st.lock(samAt, "fay")
			next := known()
			next.People = slices.Clone(next.People)
			change(&next)
			st.Configure(next)
			if got := at(st); got != "locked" {
				t.Errorf("after a reload, the account is %q", got)
			}
			st.settings = next
			st.restart(newPhone(fay, "fays-phone"))
			if got := at(st); got != "locked" {
				t.Errorf("after a restart, the account is %q", got)
			}
		})
	}
}

// TestALockVoidsLinks: nobody is paired as a locked person.
func TestALockVoidsLinks(t *testing.T) {
	s := usual()
	s.People = []connectors.Person{{Name: "fay", UID: permissions.NoUID}, sam}
	l := newPairingChannel()
	st := newEnv(t, s, l)
	i, err := st.Invite(t.Context(), operator, "fay", "telegram")
	if err != nil {
		t.Fatal(err)
	}
	l.come[i.Code] = connectors.PairingCandidate{Address: "666", Name: "a thief"}
	st.lock(samAt, "fay")
	_, _, err = st.Pair(t.Context(), operator, i.Code, "666")
	refused(t, err, permissions.CodeGone)
	_, err = st.Invite(t.Context(), operator, "fay", "telegram")
	refused(t, err, permissions.CodeLocked)
	if !slices.Equal(l.told, []string{"dismissed " + i.Code}) {
		t.Errorf("told: %v", l.told)
	}
}

// TestTheOperatorsPersonIsLocked: the operator continues without a person, and can unlock but not decide.
func TestTheOperatorsPersonIsLocked(t *testing.T) {
	s := usual()
	s.UID = fayUID
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, s, f)
	call := st.ask(t.Context(), network("x"))
	id := st.shown(f.Memory, 1).Request.ID
	st.lock(samAt, "fay")
	_, err := st.OnPermission(t.Context(), connectors.Decision{From: operator, Request: id, Answer: allow()})
	if err == nil {
		t.Error("the operator decides for her")
	}
	_, err = st.Who(connectors.Identity{Via: "terminal", UID: permissions.NoUID, Console: true})
	refused(t, err, permissions.CodeLocked)
	if name, err := st.Who(operator); err != nil || name != engine.OperatorName {
		t.Errorf("the operator is %q, %v", name, err)
	}
	st.get(call)
	unlocked(t, st, operator, true)
}

// slowVotes is a store that delays a vote, so that a lock may come first.
type slowVotes struct {
	engine.Store
	voting, locking chan struct{}
}

func (s *slowVotes) Apply(ctx context.Context, id permissions.ID, e permissions.Transition) (permissions.Change, error) {
	if _, votes := e.(permissions.Cast); votes {
		s.voting <- struct{}{}
		select {
		case <-s.locking:
		case <-time.After(200 * time.Millisecond):
		}
	}
	return s.Store.Apply(ctx, id, e)
}

func (s *slowVotes) PutLock(
	ctx context.Context, l permissions.Lock, r permissions.Record, told ...permissions.Notice,
) error {
	err := s.Store.PutLock(ctx, l, r, told...)
	close(s.locking)
	return err
}

// TestADecisionComesBeforeALockOrIsNone: one in progress when the lock comes is committed before it.
func TestADecisionComesBeforeALockOrIsNone(t *testing.T) {
	t.Run("A8/a decision under way", func(t *testing.T) {
		slow := &slowVotes{voting: make(chan struct{}, 10), locking: make(chan struct{})}
		st := &env{t: t, dir: t.TempDir(), settings: usual(), people: []connectors.Connector{newPhone(fay, "fays-phone")}}
		st.through = func(s engine.Store) engine.Store {
			slow.Store = s
			return slow
		}
		st.open()
		t.Cleanup(func() { st.stop() })
		r := st.submit(self, keyed(network("x"), "1"))
		decided := make(chan error, 1)
		decide := func() error {
			_, err := st.OnPermission(context.Background(), connectors.Decision{From: fayAt("cli"), Request: r.ID, Answer: allow()})
			return err
		}
		go func() { decided <- decide() }()
		<-slow.voting
		st.lock(samAt, "fay")
		if err := <-decided; err != nil {
			t.Fatal(err)
		}
		entries, err := st.rows.Audit(t.Context(), "", 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		approved := slices.IndexFunc(entries, func(e permissions.Entry) bool { return e.Type == permissions.RequestSettled })
		locked := slices.IndexFunc(entries, func(e permissions.Entry) bool { return e.Type == permissions.PersonLocked })
		if approved < 0 || locked < approved {
			t.Errorf("the approval is entry %d, the lock %d", approved, locked)
		}
		refused(t, decide(), permissions.CodeLocked)
	})
}

// TestALockTakesBackWhatWasGiven since a time, and lists what ran.
func TestALockTakesBackWhatWasGiven(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, usual(), f)
	old := st.approved(f.Memory, tool("write_file", `{"n":0}`), allow(), true)
	st.advance(time.Hour)
	since := st.now().Add(-time.Minute)
	unused := st.approved(f.Memory, tool("write_file", `{"n":1}`), allow(), true)
	told := st.approved(f.Memory, tool("write_file", `{"n":2}`), allow(), true) // its agent reads it, and goes on
	if _, err := st.Find(t.Context(), self, told.ID); err != nil {
		t.Fatal(err)
	}
	used := st.approved(f.Memory, network("used"), allow(), false)
	granted := st.approved(f.Memory, tagged("granted", "@read:/srv"), allowFor(permissions.For(15*time.Minute)), false)
	ran := st.get(st.ask(t.Context(), tagged("ran", "@read:/srv")))
	if ran.DecidedVia != permissions.ViaGrant {
		t.Fatalf("it did not run under the grant: %s", ran.DecidedVia)
	}
	done, err := st.Lock(t.Context(), operator, "fay", since)
	if err != nil {
		t.Fatal(err)
	}
	ids := func(all []permissions.Request) (ids []permissions.ID) {
		for _, r := range all {
			ids = append(ids, r.ID)
		}
		return ids
	}
	if got := ids(done.Voided); !slices.Equal(got, []permissions.ID{unused.ID}) {
		t.Errorf("taken back: %v", got)
	}
	if got := ids(done.Used); !slices.Equal(got, []permissions.ID{told.ID, used.ID, granted.ID}) {
		t.Errorf("used: %v", got)
	}
	if len(done.Revoked) != 1 || done.Revoked[0].Grant.Request != granted.ID ||
		!slices.Equal(ids(done.Revoked[0].Ran), []permissions.ID{ran.ID}) {
		t.Errorf("revoked: %+v", done.Revoked)
	}
	if g, err := st.Grants(t.Context(), operator, "", 99); err != nil || len(g) > 0 {
		t.Errorf("grants: %v, %v", g, err)
	}
	if r, err := st.rows.Read(t.Context(), unused.ID); err != nil || r.VoidAt.IsZero() || r.VoidedBy == "" {
		t.Errorf("the unused one: %v", err)
	}
	if r, err := st.rows.Read(t.Context(), told.ID); err != nil || r.VoidAt.IsZero() {
		t.Errorf("the one that was told: %v", err)
	}
	if r, err := st.rows.Read(t.Context(), old.ID); err != nil || !r.VoidAt.IsZero() {
		t.Errorf("the one of before: %v", err)
	}
}

// TestAStoreThatFailsLocksAllTheSame: an unsaved lock holds until a restart.
func TestAStoreThatFailsLocksAllTheSame(t *testing.T) {
	st := newEnv(t, usual(), newPhone(fay, "fays-phone"))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := st.Lock(gone, samAt, "fay", time.Time{}); err != nil {
		t.Errorf("for whoever has left: %v", err)
	}
	st.stop()
	if _, err := st.Lock(t.Context(), operator, "sam", time.Time{}); err == nil {
		t.Error("the store is closed")
	}
	if !slices.Equal(st.locked(), []string{"fay", "sam"}) {
		t.Errorf("locked are %v", st.locked())
	}
}

// fullDisk is a store that stores no lock while it is full.
type fullDisk struct {
	engine.Store
	full atomic.Bool
	left atomic.Bool // a pending request cannot be cancelled
}

func (f *fullDisk) PutLock(
	ctx context.Context, l permissions.Lock, r permissions.Record, told ...permissions.Notice,
) error {
	if f.full.Load() {
		return errors.Join(permissions.ErrBroken, errors.New("the disk is full"))
	}
	return f.Store.PutLock(ctx, l, r, told...)
}

func (f *fullDisk) Stop(ctx context.Context, by, via string, at time.Time) ([]permissions.Request, error) {
	if f.full.Load() {
		return nil, errors.Join(permissions.ErrBroken, errors.New("the disk is full"))
	}
	cancelled, err := f.Store.Stop(ctx, by, via, at)
	if f.left.Load() {
		err = errors.Join(permissions.ErrBroken, errors.New("1 of what waits could not be cancelled"))
	}
	return cancelled, err
}

// newFullDiskEnv is newEnv over such a store.
func newFullDiskEnv(t *testing.T, s engine.Settings, people ...connectors.Connector) (*env, *fullDisk) {
	disk := &fullDisk{}
	st := &env{t: t, dir: t.TempDir(), settings: s, people: people}
	st.through = func(s engine.Store) engine.Store {
		disk.Store = s
		return disk
	}
	st.open()
	t.Cleanup(func() { st.stop() })
	return st, disk
}

// TestALockThatCouldNotBeSaved is stored as soon as the store recovers, or at shutdown, and survives a restart.
func TestALockThatCouldNotBeSaved(t *testing.T) {
	for name, saved := range map[string]func(st *env){
		"A8/the disk has room again": func(st *env) {
			st.eventually("it is not saved", func() bool { all, err := st.rows.Locks(t.Context()); return err == nil && len(all) == 1 })
			st.eventually("it says that it is not saved", func() bool { return st.Locks()[0].Unsaved == nil })
		},
		"A8/a stop": func(*env) {},
	} {
		t.Run(name, func(t *testing.T) {
			st, disk := newFullDiskEnv(t, known(), newPhone(fay, "fays-phone"))
			disk.full.Store(true)
			_, err := st.Lock(t.Context(), samAt, "fay", st.now())
			refused(t, err, permissions.CodeBroken)
			if !strings.Contains(err.Error(), "fay is locked now, but that is not saved: ") {
				t.Errorf("it says %v", err)
			}
			if all := st.Locks(); len(all) != 1 || all[0].Unsaved == nil {
				t.Errorf("locked: %+v", all)
			}
			disk.full.Store(false)
			saved(st)
			st.restart(newPhone(fay, "fays-phone"))
			if all := st.Locks(); len(all) != 1 || all[0].Person != "fay" || all[0].By != "sam" {
				t.Errorf("after a restart, locked are %+v", all)
			}
			entries, err := st.rows.Audit(t.Context(), "", 0, 100)
			if err != nil || !slices.ContainsFunc(entries, func(e permissions.Entry) bool { return e.Type == permissions.PersonLocked }) {
				t.Errorf("the audit says nothing of it: %v", err)
			}
		})
	}
}

// TestALockOfWhoIsLocked keeps who locked first, and when. Who had agreed to unlock did not know of it.
func TestALockOfWhoIsLocked(t *testing.T) {
	t.Run("A8/locked again", func(t *testing.T) {
		st := newEnv(t, known(), newPhone(fay, "fays-phone"))
		first := st.lock(samAt, "fay")
		unlocked(t, st, samAt, false)
		st.advance(time.Hour)
		again, err := st.Lock(t.Context(), kimAt, "fay", time.Time{})
		if err != nil || !again.Already || again.By != "sam" || !again.At.Equal(first.At) ||
			len(again.Unlocking) > 0 {
			t.Errorf("locked again: %+v, %v", again, err)
		}
		st.restart(newPhone(fay, "fays-phone"))
		unlocked(t, st, kimAt, false)
		unlocked(t, st, samAt, true)
	})
}
