package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/permissions"
)

type ctx = context.Context

func withCancel(parent ctx) (ctx, context.CancelFunc) { return context.WithCancel(parent) }

// A caller reads its own requests only, and reading uses nothing.
func TestFindReturnsOnlyTheCallersRequests(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	c, leave := withCancel(t.Context())
	call := st.ask(c, network("x"))
	card := st.shown(m, 1)
	st.waiting(card.Request.ID, 1)
	_, err := st.Find(t.Context(), permissions.CallerUID(askerUID+1), card.Request.ID)
	refused(t, err, permissions.CodeUnknown)
	_, err = st.Await(t.Context(), permissions.CallerUID(askerUID+1), card.Request.ID)
	refused(t, err, permissions.CodeUnknown)
	_, err = st.Withdraw(t.Context(), permissions.CallerUID(askerUID+1), card.Request.ID)
	refused(t, err, permissions.CodeUnknown)

	soon, done := context.WithTimeout(t.Context(), time.Millisecond)
	defer done()
	if s, err := st.Await(soon, self, card.Request.ID); err != nil || s.Request.State != permissions.Pending || len(s.Copies) != 1 {
		t.Errorf("%s, %v", s.Request.State, err)
	}
	leave()
	<-call
	gone, end := withCancel(t.Context())
	end()
	if s, err := st.Await(gone, self, card.Request.ID); err != nil || s.Request.State != permissions.Pending {
		t.Errorf("%s, %v", s.Request.State, err)
	}
	waiting := make(chan permissions.RequestView, 1)
	go func() {
		s, err := st.Await(t.Context(), self, card.Request.ID)
		if err != nil {
			t.Error(err)
		}
		waiting <- s
	}()
	st.waiting(card.Request.ID, 1)
	if _, err := m.Do(t.Context(), connectors.Decision{Request: card.Request.ID, Answer: allow()}); err != nil {
		t.Fatal(err)
	}
	if s := <-waiting; s.Request.State != permissions.Approved || !s.Request.UsedAt.IsZero() || s.Request.CollectedAt.IsZero() {
		t.Errorf("%s, used %v", s.Request.State, s.Request.UsedAt)
	}
	if s, err := st.Find(t.Context(), self, card.Request.ID); err != nil || !s.Request.UsedAt.IsZero() {
		t.Errorf("used %v, %v", s.Request.UsedAt, err)
	}
	_, err = st.Withdraw(t.Context(), self, card.Request.ID)
	refused(t, err, permissions.CodeSettled)
}

// What was approved while nobody waited is told to whoever reads it only as long as it would be handed over.
func TestAnUnusedApprovalIsJudgedAgainWhenItIsRead(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	r := st.approved(m, tool("deploy", `{"n":1}`), allow(), true)
	used := st.approved(m, tool("deploy", `{"n":2}`), allow(), false)
	allowed := func(when string) {
		t.Helper()
		for _, id := range []permissions.ID{r.ID, used.ID} {
			if s, err := st.Find(t.Context(), self, id); err != nil || s.Request.State != permissions.Approved {
				t.Errorf("%s: %s, %v", when, s.Request.State, err)
			}
		}
	}
	denied := func(code permissions.Code) {
		t.Helper()
		_, err := st.Find(t.Context(), self, r.ID)
		refused(t, err, code)
		_, err = st.Await(t.Context(), self, r.ID)
		refused(t, err, code)
		if s, err := st.Find(t.Context(), self, used.ID); err != nil || s.Request.State != permissions.Approved {
			t.Errorf("what was handed over: %s, %v", s.Request.State, err)
		}
	}
	if _, err := st.StopAll(t.Context(), boss); err != nil {
		t.Fatal(err)
	}
	denied(permissions.CodeStopped)
	if err := st.Resume(t.Context(), boss); err != nil {
		t.Fatal(err)
	}
	allowed("resumed")
	if _, _, err := st.StopAgent(t.Context(), boss, self.Name); err != nil {
		t.Fatal(err)
	}
	denied(permissions.CodeStopped)
	if _, err := st.ResumeAgent(t.Context(), boss, self.Name); err != nil {
		t.Fatal(err)
	}
	allowed("the agent is resumed")
	s := usual()
	s.Policy.Forbidden = []string{"deploy"}
	st.Configure(s)
	denied(permissions.CodeForbidden)
	st.Configure(usual())
	allowed("no longer forbidden")
	st.advance(usual().Approvals.RedeemWindow)
	denied(permissions.CodeNoUse)
}

// People see the requests to them; the operator sees everything and may not decide it.
func TestPeopleSeeOnlyRequestsToThem(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	call := st.ask(t.Context(), network("x"))
	card := st.shown(m, 1)
	id, code := string(card.Request.ID), card.Code
	fayHere := connectors.Identity{Via: "cli", UID: fayUID}
	samHere := connectors.Identity{Via: "cli", UID: sam.UID}
	operator := connectors.Identity{Via: "cli", UID: 0, Operator: true}
	nobody := connectors.Identity{Via: "cli", UID: 77}
	for _, who := range []connectors.Identity{fayHere, operator} {
		for _, name := range []string{id, code} {
			if s, err := st.Show(t.Context(), who, name); err != nil || s.Code != code {
				t.Errorf("show %s: %s, %v", name, s.Code, err)
			}
		}
		if list, err := st.Pending(t.Context(), who, "", 10); err != nil || len(list) != 1 {
			t.Errorf("%d pending, %v", len(list), err)
		}
	}
	if list, err := st.Pending(t.Context(), samHere, "", 10); err != nil || len(list) != 0 {
		t.Errorf("sam sees %d, %v", len(list), err)
	}
	_, err := st.Show(t.Context(), samHere, id)
	refused(t, err, permissions.CodeUnknown)
	_, err = st.Show(t.Context(), nobody, id)
	refused(t, err, permissions.CodeNotYours)
	_, err = st.Pending(t.Context(), nobody, "", 10)
	refused(t, err, permissions.CodeNotYours)
	_, err = st.Cancel(t.Context(), samHere, id)
	refused(t, err, permissions.CodeUnknown)
	_, err = st.Audit(t.Context(), fayHere, 0, 10)
	refused(t, err, permissions.CodeNotYours)
	_, err = st.Verify(t.Context(), fayHere)
	refused(t, err, permissions.CodeNotYours)
	if entries, err := st.Audit(t.Context(), operator, 0, 10); err != nil || len(entries) == 0 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	if heads, err := st.Verify(t.Context(), operator); err != nil || len(heads) != 1 {
		t.Errorf("%d heads, %v", len(heads), err)
	}
	if s, err := st.Withdraw(t.Context(), self, card.Request.ID); err != nil || s.Request.State != permissions.Cancelled {
		t.Errorf("%s, %v", s.Request.State, err)
	}
	if r := st.get(call); permissions.Result(r).Text != "Permission request cancelled." {
		t.Error(permissions.Result(r).Text)
	}
	if err := st.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// Without people in the configuration, everything goes to the operator.
func TestWithoutPeopleTheOperatorDecides(t *testing.T) {
	s := usual()
	s.People, s.Routes = nil, nil
	m := connectortest.NewMemory(connectors.Identity{Via: "terminal", Console: true, UID: permissions.NoUID}, connectortest.Always(allow()))
	st := newEnv(t, s, m)
	if r := st.get(st.ask(t.Context(), network("x"))); r.DecidedBy != "operator" {
		t.Errorf("decided by %s", r.DecidedBy)
	}
	if who, err := st.Who(connectors.Identity{UID: 5, Operator: true}); err != nil || who != "operator" {
		t.Errorf("%s, %v", who, err)
	}
	_, err := st.Who(connectors.Identity{UID: 5})
	refused(t, err, permissions.CodeNotYours)
}
