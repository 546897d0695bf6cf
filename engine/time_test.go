package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

const tenYears = 10 * 365 * 24 * time.Hour

// jumps are changes of the clock.
var jumps = []struct {
	name string
	do   func(*env)
}{
	{"ten years forward", func(st *env) { st.setWallClock(tenYears) }},
	{"ten years back", func(st *env) { st.setWallClock(-tenYears) }},
	{"an hour suspended", func(st *env) { st.advance(time.Hour) }},
}

// TestTimeIsNeverEarlyAndNothingIsRevived applies each jump to everything that has a time, in eighteen cases.
func TestTimeIsNeverEarlyAndNothingIsRevived(t *testing.T) {
	cases := 0
	for _, subject := range []struct {
		name string
		do   func(t *testing.T, st *env, f *phone, jump func(*env), back bool)
	}{
		{"a pending request", jumpPending},
		{"a pending request across a restart", jumpRestart},
		{"an old answer after a restart", jumpOldAnswer},
		{"a grant for a time", jumpGrant},
		{"an answer that is kept under a key", jumpKey},
		{"what has expired", jumpExpired},
	} {
		for _, j := range jumps {
			cases++
			t.Run("D6/"+subject.name+", "+j.name, func(t *testing.T) {
				f := newPhone(fay, "fays-phone")
				st := newEnv(t, usual(), f)
				subject.do(t, st, f, j.do, j.name == "ten years back")
			})
		}
	}
	if cases != 18 {
		t.Errorf("%d cases", cases)
	}
}

// TestARestartBesideOtherDaemonsGivesNoMoreThanTheWholeTime: what was asked before is measured by who sends, also where the clock was set
// back meanwhile.
func TestARestartBesideOtherDaemonsGivesNoMoreThanTheWholeTime(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, usual(), f)
	_, r := st.begin(f)
	st.stop()
	st.setWallClock(-tenYears)
	st.people, st.awaits = []connectors.Connector{newPhone(fay, "fays-phone")}, func(context.Context) bool { return true }
	st.open()
	st.mustBePending(r.ID)
	for began := time.Now(); time.Since(began) < 5*time.Second; st.advance(15 * time.Minute) { // it is measured soon
		_, _ = st.Find(t.Context(), self, r.ID)
		if got, err := st.rows.Read(t.Context(), r.ID); err == nil && got.State == permissions.Expired {
			return
		}
	}
	t.Error("it has more than its time again")
}

// begin asks and waits for the prompt.
func (s *env) begin(f *phone) (<-chan answer, permissions.Request) {
	s.t.Helper()
	n := len(f.Copies())
	call := s.ask(s.t.Context(), network("x"))
	return call, s.shown(f.Memory, n+1).Request
}

// mustBePending checks that a request is pending after the deadlines were processed.
func (s *env) mustBePending(id permissions.ID) {
	s.t.Helper()
	if _, err := s.Find(s.t.Context(), self, id); err != nil {
		s.t.Fatal(err)
	}
	if r, err := s.rows.Read(s.t.Context(), id); err != nil || r.State != permissions.Pending {
		s.t.Fatalf("it is %s, %v", r.State, err)
	}
}

func jumpPending(t *testing.T, st *env, f *phone, jump func(*env), back bool) {
	call, r := st.begin(f)
	jump(st)
	if back {
		st.advance(14 * time.Minute)
		if _, err := f.says(t, r.ID, "nonsense"); err == nil { // any input makes the engine compare the clocks
			t.Fatal("nonsense was taken")
		}
		st.mustBePending(r.ID)
		st.advance(time.Minute)
	}
	_, err := f.says(t, r.ID, allow())
	refused(t, err, permissions.CodeSettled)
	if got := st.get(call); got.State != permissions.Expired {
		t.Errorf("the asker got %s", got.State)
	}
}

func jumpRestart(t *testing.T, st *env, f *phone, jump func(*env), back bool) {
	_, r := st.begin(f)
	st.stop()
	jump(st)
	f = newPhone(fay, "fays-phone")
	st.people = []connectors.Connector{f}
	began := time.Now()
	st.open()
	if back { // it has its time again, and no more
		st.mustBePending(r.ID)
		return
	}
	got, err := st.rows.Read(t.Context(), r.ID)
	if err != nil || got.State != permissions.Expired || time.Since(began) > 2*time.Second {
		t.Errorf("%s after the start it is %s, %v", time.Since(began), got.State, err)
	}
}

// An answer that was given in time but is read late does not count; one in time does.
func jumpOldAnswer(t *testing.T, st *env, f *phone, jump func(*env), back bool) {
	_, r := st.begin(f)
	st.stop()
	jump(st)
	f = newPhone(fay, "fays-phone")
	st.people = []connectors.Connector{f}
	st.open()
	got, err := f.Do(t.Context(), connectors.Decision{Request: r.ID, Answer: allow(), Key: "telegram:bot:17"})
	if back {
		if err != nil || got.State != permissions.Approved {
			t.Errorf("%s, %v", got.State, err)
		}
		return
	}
	refused(t, err, permissions.CodeSettled)
	if got.State != permissions.Expired {
		t.Errorf("it is %s", got.State)
	}
}

func jumpGrant(t *testing.T, st *env, f *phone, jump func(*env), back bool) {
	call, r := st.begin(f)
	f.must(t, r.ID, allowFor(quarter))
	st.get(call)
	jump(st)
	if back { // a grant from the future is not used
		_, again := st.begin(f)
		f.must(t, again.ID, permissions.Deny)
		st.setWallClock(tenYears - time.Hour) // setting it back by an hour less extends nothing either
		st.advance(15 * time.Minute)
	}
	_, again := st.begin(f)
	if again.ID == r.ID || again.State != permissions.Pending {
		t.Errorf("it is %s", again.State)
	}
}

func jumpKey(t *testing.T, st *env, f *phone, jump func(*env), _ bool) {
	q := network("x")
	q.Key = "k"
	call := st.ask(t.Context(), q)
	first := st.shown(f.Memory, 1).Request
	f.must(t, first.ID, allow())
	if r := st.get(st.ask(t.Context(), q)); r.ID != first.ID {
		t.Fatal("a key does not find its answer")
	}
	st.get(call)
	jump(st)
	st.ask(t.Context(), q)
	if again := st.shown(f.Memory, 2).Request; again.ID == first.ID || again.State != permissions.Pending {
		t.Errorf("the old answer was found: %s", again.State)
	}
}

func jumpExpired(t *testing.T, st *env, f *phone, jump func(*env), _ bool) {
	call, r := st.begin(f)
	st.advance(15 * time.Minute)
	if got := st.get(call); got.State != permissions.Expired {
		t.Fatalf("it is %s", got.State)
	}
	jump(st)
	_, err := f.says(t, r.ID, allow())
	refused(t, err, permissions.CodeSettled)
	f = newPhone(fay, "fays-phone")
	st.restart(f)
	_, err = f.says(t, r.ID, allow())
	refused(t, err, permissions.CodeSettled)
	if got, err := st.rows.Read(t.Context(), r.ID); err != nil || got.State != permissions.Expired {
		t.Errorf("it is %s, %v", got.State, err)
	}
}

// After a start with a clock behind the store's newest entry, earlier grants are not used.
func TestAGrantIsNotProlongedByASetBackAcrossARestart(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, usual(), f)
	call, r := st.begin(f)
	f.must(t, r.ID, allowFor(quarter))
	st.get(call)
	st.advance(10 * time.Minute)
	late := st.ask(t.Context(), network("now the store knows the time"))
	if r := st.get(late); r.DecidedVia != permissions.ViaGrant {
		t.Fatalf("it is %s via %s", r.State, r.DecidedVia)
	}
	st.setWallClock(-5 * time.Minute)
	f = newPhone(fay, "fays-phone")
	st.restart(f)
	call, r = st.begin(f) // so it is asked
	f.must(t, r.ID, allowFor(quarter))
	st.get(call)
	if r := st.get(st.ask(t.Context(), network("what was granted since counts"))); r.DecidedVia != permissions.ViaGrant {
		t.Errorf("it is %s via %s", r.State, r.DecidedVia)
	}
}

// Rows are kept as long as the settings say.
func TestWhatIsOldIsDeletedAndTheAuditSaysSo(t *testing.T) {
	settings := usual()
	settings.Keep = permissions.Keep{Requests: 90 * 24 * time.Hour, Payloads: 30 * 24 * time.Hour, Audit: 400 * 24 * time.Hour}
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, settings, f)
	call, old := st.begin(f)
	f.must(t, old.ID, permissions.Deny)
	st.get(call)
	call, newest := st.begin(f)
	f.must(t, newest.ID, permissions.Deny)
	st.get(call)
	begin := func(days int) {
		t.Helper()
		st.advance(time.Duration(days) * 24 * time.Hour)
		f = newPhone(fay, "fays-phone")
		st.restart(f) // it prunes after the start and every hour
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		ctx, end := context.WithTimeout(t.Context(), 20*time.Second)
		defer end()
		for !ok() {
			select {
			case <-ctx.Done():
				t.Fatal(what)
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	begin(31)
	until("the words are still there", func() bool {
		r, err := st.rows.Read(t.Context(), old.ID)
		return err == nil && r.Reason == "" && r.State == permissions.Denied && r.Digest == old.Digest
	})
	begin(60)
	until("the row is still there", func() bool {
		_, err := st.rows.Read(t.Context(), old.ID)
		var refusal *permissions.Refusal
		return errors.As(err, &refusal) && refusal.Code == permissions.CodeUnknown
	})
	begin(310)
	until("the audit is still there", func() bool {
		entries, err := st.rows.Audit(t.Context(), "", 0, 10)
		return err == nil && len(entries) > 0 && entries[0].Seq > 1
	})
	if heads, err := st.Verify(t.Context(), boss); err != nil || len(heads) != 1 {
		t.Errorf("verified %v, %v", heads, err)
	}
	_, _, err := st.Events(t.Context(), boss, 1, 10)
	refused(t, err, permissions.CodeGone)
	call, r := st.begin(f) // numbers, and so codes, continue
	if r.Number <= newest.Number {
		t.Errorf("number %d after %d", r.Number, newest.Number)
	}
	f.must(t, r.ID, allow())
	st.get(call)
}
