package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// What is over grants nothing, however it is found.

// askAndLeave asks, and leaves if there is no answer soon.
func (s *env) askAndLeave(who permissions.Caller, q permissions.Request) (permissions.Request, error) {
	s.t.Helper()
	ctx, done := context.WithTimeout(s.t.Context(), time.Second)
	defer done()
	return s.Ask(ctx, who, q)
}

// approved asks a question and returns its answer as the asker got it; with without, the asker left before.
func (s *env) approved(m *connectortest.Memory, q permissions.Request, a permissions.Answer, without bool) permissions.Request {
	s.t.Helper()
	ctx, leave := context.WithCancel(s.t.Context())
	defer leave()
	n := len(m.Copies()) + 1
	call := s.ask(ctx, q)
	id := s.shown(m, n).Request.ID
	if without {
		leave()
		<-call
	}
	if _, err := m.Do(s.t.Context(), connectors.Decision{Request: id, Answer: a, Really: true}); err != nil {
		s.t.Fatal(err)
	}
	if !without {
		return s.get(call)
	}
	r, err := s.rows.Read(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// revoked revokes the only grant.
func (s *env) revoked() {
	s.t.Helper()
	grants, err := s.Grants(s.t.Context(), boss, "", 99)
	if err != nil || len(grants) != 1 {
		s.t.Fatalf("%v, %v", grants, err)
	}
	if _, err := s.Revoke(s.t.Context(), boss, grants[0].ID); err != nil {
		s.t.Fatal(err)
	}
}

// eventually waits until ok is true.
func (s *env) eventually(what string, ok func() bool) {
	s.t.Helper()
	over := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-over:
			s.t.Fatal(what)
		}
	}
}

func TestAnApprovalThatIsOverIsNotFoundAgain(t *testing.T) {
	month := 29 * 24 * time.Hour
	keyed := func(q permissions.Request) permissions.Request {
		q.Key = "k"
		return q
	}
	for _, c := range []struct {
		name    string
		q       permissions.Request
		answer  permissions.Answer
		without bool // the asker left before the answer
		then    func(*env, permissions.Request)
		byKey   bool // asked again with the key alone, without its id
	}{
		{"its time is over", network("x"), allowFor(quarter), false,
			func(st *env, _ permissions.Request) { st.advance(20 * time.Minute) }, false},
		{"revoked", network("x"), allowFor(quarter), false, func(st *env, _ permissions.Request) { st.revoked() }, false},
		{"revoked, by its key", keyed(network("x")), allowFor(quarter), false, func(st *env, _ permissions.Request) { st.revoked() }, true},
		{"revoked before it was collected", keyed(network("x")), allowFor(quarter), true,
			func(st *env, _ permissions.Request) { st.revoked() }, true},
		{"once, under a key, a month ago", keyed(network("x")), allow(), false,
			func(st *env, _ permissions.Request) { st.advance(month) }, false},
		{"once, read and never used, a month ago", network("x"), allow(), true, func(st *env, r permissions.Request) {
			if _, err := st.Find(st.t.Context(), self, r.ID); err != nil {
				st.t.Fatal(err)
			}
			st.advance(month)
		}, false},
		{"not collected, and the clock was set back", keyed(network("x")), allow(), true, func(st *env, r permissions.Request) {
			st.lapse(r.ID)
			st.setWallClock(-15 * time.Minute)
		}, true},
		{"not collected, and the window is longer now", keyed(network("x")), allow(), true, func(st *env, r permissions.Request) {
			st.lapse(r.ID)
			longer := usual()
			longer.Approvals.RedeemWindow = time.Hour
			st.Configure(longer)
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := connectortest.NewMemory(fayAt("memory"), nil)
			st := newEnv(t, usual(), m)
			r := st.approved(m, c.q, c.answer, c.without)
			c.then(st, r)
			again := c.q
			if !c.byKey {
				again.ID = r.ID
			}
			got, err := st.askAndLeave(self, again)
			if got.State == permissions.Approved || (err == nil && got.State == permissions.Pending) {
				t.Errorf("it is %s, %v", got.State, err)
			}
		})
	}
}

// lapse lets the redeem window of an uncollected answer pass.
func (s *env) lapse(id permissions.ID) {
	s.t.Helper()
	s.advance(20 * time.Minute)
	s.eventually("it does not lapse", func() bool {
		r, err := s.rows.Read(s.t.Context(), id)
		return err == nil && !r.LapsedAt.IsZero()
	})
}

// A permission that was held when a request was asked, and revoked while the rest is pending, is not granted with the
// rest.
func TestAHeldPermissionThatIsRevokedMeanwhile(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	st.approved(m, network("docs"), allowFor(quarter), false)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	call := st.ask(ctx, tagged("", "@network", "@write:/srv/www"))
	card := st.shown(m, 2)
	if len(card.Request.Missing()) != 1 {
		t.Fatalf("put to people: %v", card.Request.Missing())
	}
	st.revoked()
	if _, err := m.Do(t.Context(), connectors.Decision{Request: card.Request.ID, Answer: allow()}); err != nil {
		t.Fatal(err)
	}
	if got := st.get(call); permissions.Result(got).Exit == permissions.ExitYes {
		t.Errorf("it is %s: %s", got.State, permissions.Result(got).Text)
	}
}

// One that was not revoked counts as used.
func TestAHeldPermissionIsCountedWithTheRest(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	st.approved(m, network("docs"), allowFor(quarter), false)
	st.approved(m, tagged("", "@network", "@write:/srv/www"), allow(), false)
	grants, err := st.Grants(t.Context(), boss, "", 99)
	if err != nil || len(grants) != 1 || grants[0].Used != 1 {
		t.Errorf("%+v, %v", grants, err)
	}
}

func TestAGrantIsNotProlongedByAClockThatIsSetBack(t *testing.T) {
	for _, restartFirst := range []bool{true, false} {
		t.Run(fmt.Sprintf("D6/a grant, restarted first %v", restartFirst), func(t *testing.T) {
			m := connectortest.NewMemory(fayAt("memory"), nil)
			st := newEnv(t, usual(), m)
			st.approved(m, network("docs"), allowFor(quarter), false)
			if restartFirst {
				m = connectortest.NewMemory(fayAt("memory"), nil)
				st.restart(m)
			}
			st.advance(14 * time.Minute)
			st.setWallClock(-13 * time.Minute)
			st.advance(10 * time.Minute) // 24 minutes after the answer, which was for 15
			if !restartFirst {
				if _, err := st.askAndLeave(self, network("in between")); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("before the restart: %v", err)
				}
				wiretest.Eventually(t, "it is stored that the grant is over", func() bool {
					live, err := st.rows.GrantsInForce(t.Context(), "", st.now(), "", 9)
					return err == nil && len(live) == 0
				})
				m = connectortest.NewMemory(fayAt("memory"), nil)
				st.restart(m)
			}
			if got, err := st.askAndLeave(self, network("afterwards")); got.State == permissions.Approved {
				t.Errorf("restarted first %v: it is %s via %s, %v", restartFirst, got.State, got.DecidedVia, err)
			}
		})
	}
}

func TestATokenThatIsOverStaysOver(t *testing.T) {
	st := newEnv(t, usual(), connectortest.NewMemory(fayAt("memory"), nil))
	secret, _, err := st.CreateToken(t.Context(), boss, "deploy", "", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	st.advance(2 * time.Hour)
	_, err = st.Prove(t.Context(), secret, 1)
	refused(t, err, permissions.CodeToken)
	st.setWallClock(-90 * time.Minute)
	_, err = st.Prove(t.Context(), secret, 1)
	refused(t, err, permissions.CodeToken)
}

// The limit of prompts applies only to requests that prompt somebody.
func TestTheLimitOfPromptsRefusesNothingThatPromptsNobody(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	s := usual()
	s.Limits.PromptsPerMinute = 2
	st := newEnv(t, s, m)
	st.approved(m, network("docs"), allowFor(quarter), false)
	q := tagged("", "@write:/srv/www")
	q.Key = "k"
	st.approved(m, q, allow(), false)
	if r, err := st.askAndLeave(self, network("held")); err != nil || r.State != permissions.Approved {
		t.Errorf("held: %s, %v", r.State, err)
	}
	if r, err := st.askAndLeave(self, q); err != nil || r.State != permissions.Approved {
		t.Errorf("by its key: %s, %v", r.State, err)
	}
	_, err := st.askAndLeave(self, tagged("", "@read:/new"))
	refused(t, err, permissions.CodeLimit)
}

// Calls that propose the same id or the same name get no other question's answer.
func TestTwoQuestionsUnderOneName(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	first := network("docs")
	first.Call, first.ID = "c1", permissions.NewID(st.now())
	r, err := st.askAndLeave(self, first)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	second := tagged("", "@write:/srv/www")
	second.Call, second.ID = "", first.ID
	_, err = st.askAndLeave(self, second)
	refused(t, err, permissions.CodeKeyTaken)
	if _, err := m.Do(t.Context(), connectors.Decision{Request: r.ID, Answer: allow()}); err != nil {
		t.Fatal(err)
	}
	second.Call, second.ID = "c1", ""
	if got, err := st.askAndLeave(self, second); got.State == permissions.Approved {
		t.Errorf("another question's approval: %s, %v", got.State, err)
	}
}

// However two calls race with one id, neither is told that the store is broken.
func TestRacingCallsWithOneID(t *testing.T) {
	settings := usual()
	settings.Limits.PendingPerCaller = 0
	m := connectortest.NewMemory(fayAt("memory"), connectortest.Always(permissions.Deny))
	st := newEnv(t, settings, m)
	for range 20 {
		id := permissions.NewID(st.now())
		ends := make(chan error, 2)
		for _, q := range []permissions.Request{tagged("", "@write:/"+string(id)), tagged("", "@read:/"+string(id))} {
			q.ID = id
			go func() {
				_, err := st.askAndLeave(self, q)
				ends <- err
			}()
		}
		for range 2 {
			var refusal *permissions.Refusal
			if err := <-ends; errors.As(err, &refusal) && refusal.Code != permissions.CodeKeyTaken {
				t.Fatal(err)
			}
		}
	}
}
