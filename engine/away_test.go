package engine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// oneOf is a team whose route asks fay alone, and the others after half the time.
func oneOf() engine.Settings {
	s := team()
	s.Routes[0].Ask, s.Routes[0].Quorum, s.Routes[0].Escalate.To = []string{"fay"}, 1, []string{"kim", "sam"}
	return s
}

// away has a person be away for some hours; to may be empty.
func (s *env) away(who connectors.Person, hours int, to string) {
	s.t.Helper()
	id := connectors.Identity{Via: "cli", UID: who.UID}
	if err := s.SetAway(s.t.Context(), id, s.now().Add(time.Duration(hours)*time.Hour), to); err != nil {
		s.t.Fatal(err)
	}
}

// asked waits until a request has these recipients.
func (s *env) asked(id permissions.ID, want ...string) permissions.Request {
	s.t.Helper()
	var r permissions.Request
	s.eventually("it asks "+want[len(want)-1], func() bool {
		var err error
		r, err = s.rows.Read(s.t.Context(), id)
		return err == nil && slices.Equal(r.Asked, want)
	})
	return r
}

// details returns those of the audit entries of a type.
func (s *env) details(of permissions.Type) (all []map[string]string) {
	s.t.Helper()
	entries, err := s.rows.Audit(s.t.Context(), "", 0, 1000)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Type == of {
			all = append(all, e.Detail)
		}
	}
	return all
}

// TestWhileAPersonIsAwayOthersAreAsked: at once, only whom they named, and what waits already as well; they may still answer.
func TestWhileAPersonIsAwayOthersAreAsked(t *testing.T) {
	f, o, k := phones()
	st := newEnv(t, oneOf(), f, o, k)
	before := st.ask(t.Context(), network("before"))
	held := st.shown(f.Memory, 1).Request.ID
	st.away(fay, 48, "kim")
	st.asked(held, "fay", "kim")
	p := st.shown(k.Memory, 1)
	if len(p.Away) != 1 || p.Away[0].Person != "fay" || p.Needed {
		t.Errorf("kim's card says %+v, %v", p.Away, p.Needed)
	}
	st.edited(f.Memory, 1, func(p connectors.Prompt) bool { return len(p.Away) == 1 })
	f.must(t, held, allow())
	if r := st.get(before); r.DecidedBy != "fay" {
		t.Errorf("%s decided what fay held", r.DecidedBy)
	}
	call := st.ask(t.Context(), network("meanwhile"))
	p = st.shown(k.Memory, 2)
	r := st.asked(p.Request.ID, "fay", "kim")
	if !slices.Equal(r.EscalateTo, []string{"sam"}) || r.EscalateAt.IsZero() || r.Revision != 1 {
		t.Errorf("%v are asked later, at %v; revision %d", r.EscalateTo, r.EscalateAt, r.Revision)
	}
	if len(f.Copies()) != 1 || len(o.Copies()) != 0 {
		t.Errorf("fay was sent %d cards, and sam %d", len(f.Copies()), len(o.Copies()))
	}
	k.must(t, r.ID, allow())
	st.get(call)
	if all := st.details(permissions.RequestEscalated); len(all) != 2 || all[0]["away"] != "fay" || all[1]["to"] != "kim" {
		t.Errorf("the audit says %v", all)
	}
	if all := st.details(permissions.PersonAway); len(all) != 1 || all[0]["person"] != "fay" || all[0]["to"] != "kim" {
		t.Errorf("the audit says %v", all)
	}
}

// TestTheAbsenceOfALockedPersonDoesNotCount: whoever has their phone does not choose who is asked instead.
func TestTheAbsenceOfALockedPersonDoesNotCount(t *testing.T) {
	f, o, k := phones()
	st := newEnv(t, oneOf(), f, o, k)
	st.away(fay, 48, "kim")
	if _, err := st.Lock(t.Context(), operator, "fay", time.Time{}); err != nil {
		t.Fatal(err)
	}
	st.ask(t.Context(), network("x"))
	isFay := func(name string) bool { return name == "fay" } // asked in vain, until the pass that follows the lock is over
	id := st.shown(o.Memory, 1).Request.ID
	st.eventually("kim and sam are asked", func() bool {
		r, err := st.rows.Read(t.Context(), id)
		return err == nil && slices.Equal(slices.DeleteFunc(slices.Clone(r.Asked), isFay), []string{"kim", "sam"})
	})
	if len(st.Absences()) != 0 {
		t.Errorf("%v are away", st.Absences())
	}
}

// TestAnAbsenceEndsByItself: the person is asked again about what still waits, and about what is new.
func TestAnAbsenceEndsByItself(t *testing.T) {
	for name, ends := range map[string]func(*env){
		"by time, for good": func(st *env) {
			st.advance(5 * time.Minute)
			st.eventually("it is written down", func() bool { return len(st.details(permissions.PersonBack)) == 1 })
			st.setWallClock(-3 * time.Minute)
		},
		"by word": func(st *env) {
			if err := st.SetAway(st.t.Context(), fayAt("cli"), time.Time{}, ""); err != nil {
				st.t.Fatal(err)
			}
			if all := st.details(permissions.PersonBack); len(all) != 1 || all[0]["person"] != "fay" {
				st.t.Errorf("the audit says %v", all)
			}
			refused(st.t, st.SetAway(st.t.Context(), fayAt("cli"), time.Time{}, ""), permissions.CodeInvalid)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, o, k := phones()
			st := newEnv(t, oneOf(), f, o, k)
			if err := st.SetAway(t.Context(), fayAt("cli"), st.now().Add(4*time.Minute), ""); err != nil {
				t.Fatal(err)
			}
			call := st.ask(t.Context(), network("x"))
			id := st.shown(k.Memory, 1).Request.ID
			st.shown(o.Memory, 1)
			st.eventually("the card says so", func() bool { return len(k.Copies()[0].Last.Away) == 1 })
			ends(st)
			if p := st.shown(f.Memory, 1); p.Request.ID != id {
				t.Errorf("fay is asked %s", p.Request.ID)
			}
			st.edited(k.Memory, 1, func(p connectors.Prompt) bool { return len(p.Away) == 0 })
			f.must(t, id, allow())
			st.get(call)
			st.ask(t.Context(), network("y"))
			if r := st.shown(f.Memory, 2).Request; !slices.Equal(r.Asked, []string{"fay"}) {
				t.Errorf("%v are asked", r.Asked)
			}
		})
	}
}

// TestAnAbsenceNeverShrinksAQuorum: two are needed as before, and whoever is away is asked where the others are too few.
func TestAnAbsenceNeverShrinksAQuorum(t *testing.T) {
	f, o, k := phones()
	st := newEnv(t, team(), f, o, k)
	st.away(fay, 1, "sam")
	call := st.ask(t.Context(), network("x"))
	id := st.shown(o.Memory, 1).Request.ID
	st.asked(id, "fay", "sam", "kim") // sam alone is too few
	st.shown(k.Memory, 1)
	if r := o.must(t, id, allow()); r.State != permissions.Pending {
		t.Fatalf("one of two decided it: %s", r.State)
	}
	k.must(t, id, allow())
	if r := st.get(call); r.Quorum != 2 || len(r.Votes) != 2 {
		t.Errorf("%d of %d votes", len(r.Votes), r.Quorum)
	}
	st.away(kim, 1, "")
	st.ask(t.Context(), network("y"))
	if p := st.shown(f.Memory, 1); !p.Needed || len(p.Away) != 2 {
		t.Errorf("fay's card says %+v, %v", p.Away, p.Needed)
	}
	st.shown(k.Memory, 2)
}

// TestAnAbsenceGivesNobodyARight: whom a route doesn't name is never asked; without anybody else the person is asked, and told so.
func TestAnAbsenceGivesNobodyARight(t *testing.T) {
	s := oneOf()
	alone := s.Routes[0]
	alone.Kinds, alone.Escalate.To = []permissions.Kind{permissions.KindPermission}, nil
	others := alone
	others.Kinds, others.Escalate.To = []permissions.Kind{permissions.KindTool}, []string{"sam"}
	s.Routes = []engine.Route{alone, others, s.Routes[0]}
	f, o, k := phones()
	st := newEnv(t, s, f, o, k)
	st.away(fay, 1, "kim")
	st.ask(t.Context(), network("x"))
	p := st.shown(f.Memory, 1)
	if !p.Needed || len(p.Away) != 1 || !slices.Equal(p.Request.Asked, []string{"fay"}) {
		t.Errorf("%v are asked: %+v, %v", p.Request.Asked, p.Away, p.Needed)
	}
	_, err := k.says(t, p.Request.ID, allow())
	refused(t, err, permissions.CodeNotYours)
	call := st.ask(t.Context(), tool("write_file", `{"path":"a"}`))
	if r := st.shown(o.Memory, 1).Request; !slices.Equal(r.Asked, []string{"fay", "sam"}) { // kim may not decide it
		t.Errorf("%v are asked", r.Asked)
	}
	_, err = k.says(t, o.Copies()[0].First.Request.ID, allow())
	refused(t, err, permissions.CodeNotYours)
	o.must(t, o.Copies()[0].First.Request.ID, allow())
	st.get(call)
	if n := len(k.Copies()); n != 0 {
		t.Errorf("kim was sent %d cards", n)
	}
}

// TestWhoeverIsAwayIsAskedIfOthersCannotBeReached: an absence makes nothing undeliverable.
func TestWhoeverIsAwayIsAskedIfOthersCannotBeReached(t *testing.T) {
	f, _, _ := phones()
	st := newEnv(t, oneOf(), f)
	st.away(fay, 1, "kim")
	call := st.ask(t.Context(), network("x"))
	f.must(t, st.shown(f.Memory, 1).Request.ID, allow())
	if r := st.get(call); r.State != permissions.Approved {
		t.Errorf("%s: %s", r.State, r.Failure)
	}
}

// TestAnAbsenceStays: across a restart, a change of the configuration and a lock, while which it does not count, and no longer than it
// was to be.
func TestAnAbsenceStays(t *testing.T) {
	f, o, k := phones()
	st := newEnv(t, oneOf(), f, o, k)
	st.away(fay, 3, "kim")
	holds := func(when string) {
		t.Helper()
		if all := st.Absences(); len(all) != 1 || all[0].Person != "fay" || all[0].To != "kim" {
			t.Errorf("%s: %+v", when, all)
		}
	}
	st.restart(phonesAgain(f, o, k)...)
	holds("after a restart")
	st.Configure(oneOf())
	holds("after a reload")
	st.lock(samAt, "fay")
	if all := st.Absences(); len(all) != 0 {
		t.Errorf("who is locked is away: %+v", all)
	}
	refused(t, st.SetAway(t.Context(), fayAt("cli"), time.Time{}, ""), permissions.CodeLocked)
	if _, _, err := st.Unlock(t.Context(), operator, "fay"); err != nil {
		t.Fatal(err)
	}
	holds("after she is unlocked")
	without := oneOf()
	without.People, without.Routes[0].Ask, without.Routes[0].Escalate.To = []connectors.Person{sam, kim}, []string{"sam"}, []string{"kim"}
	st.Configure(without)
	if all := st.Absences(); len(all) != 0 {
		t.Errorf("who is not configured is away: %+v", all)
	}
	st.Configure(oneOf())
	st.advance(4 * time.Hour)
	if all := st.Absences(); len(all) != 0 {
		t.Errorf("who is back is away: %+v", all)
	}
}

// TestTheLanguageOfAnAppStays: across a restart, below a configured one.
func TestTheLanguageOfAnAppStays(t *testing.T) {
	f, o, k := phones()
	st := newEnv(t, oneOf(), f, o, k)
	at := fayAt(f.Name())
	at.Language = "de-AT"
	reads := func(when string, id connectors.Identity, want i18n.Language) {
		t.Helper()
		if p, err := st.Person(id); err != nil || p.Language != want {
			t.Errorf("%s %s reads %q, %v; want %q", when, p.Name, p.Language, err, want)
		}
	}
	reads("at first", at, "de")
	st.restart(phonesAgain(f, o, k)...)
	reads("after a restart", fayAt(f.Name()), "de")
	reads("after a restart", samAt, "")
	configured := oneOf()
	configured.People[0].Language = i18n.English
	st.Configure(configured)
	reads("as configured", at, i18n.English)
}

func phonesAgain(all ...*phone) (again []connectors.Connector) {
	for _, p := range all {
		again = append(again, newPhone(p.owner, p.Name()))
	}
	return again
}

// TestAnAbsenceThatCannotBe: each is refused with the reason, and changes nothing.
func TestAnAbsenceThatCannotBe(t *testing.T) {
	st := newEnv(t, oneOf(), connectortest.NewMemory(fayAt("m"), nil))
	hour := st.now().Add(time.Hour)
	for want, c := range map[string]struct {
		id    connectors.Identity
		until time.Time
		to    string
		code  permissions.Code
	}{
		"over":    {fayAt("cli"), st.now().Add(-time.Second), "", permissions.CodeInvalid},
		"long":    {fayAt("cli"), st.now().Add(61 * 24 * time.Hour), "", permissions.CodeInvalid},
		"herself": {fayAt("cli"), hour, "fay", permissions.CodeInvalid},
		"nobody":  {fayAt("cli"), hour, "eve", permissions.CodeUnknown},
		"unable":  {connectors.Identity{Via: "cli", UID: sam.UID}, hour, "kim", permissions.CodeInvalid},
		"unknown": {connectors.Identity{Via: "cli", UID: 4711}, hour, "", permissions.CodeNotYours},
	} {
		err := st.SetAway(t.Context(), c.id, c.until, c.to)
		if permissions.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", want, err, c.code)
		}
	}
	if all := st.Absences(); len(all)+len(st.details(permissions.PersonAway)) != 0 {
		t.Errorf("%+v are away", all)
	}
}
