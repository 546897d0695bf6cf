package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

var (
	helper = permissions.AgentCaller("helper")
	child  = permissions.AgentCaller("helper/research")
	nobody = permissions.AgentCaller("stray")
)

// owned are settings without a route for our own agents: helper is fay's, with some holdings and its own policy.
func owned() engine.Settings {
	s := usual()
	s.Routes = []engine.Route{{Agents: []string{"deploy-*"}, Ask: []string{"sam"}}}
	s.Bindings = map[string]permissions.Binding{helper.Name: {Agent: "helper", Person: "fay"}}
	s.Holdings = map[string][]permissions.Tag{helper.Name: {permissions.Workspace}}
	s.Policies = map[string]permissions.Policy{helper.Name: {
		Auto: []string{"read_file"}, Gated: []string{"write_file"}, Forbidden: []string{"run_command"},
	}}
	return s
}

// keyed is a request of step k of session s1.
func keyed(q permissions.Request, k string) permissions.Request {
	q.Key, q.Session = k, "s1"
	return q
}

// submit submits a request, which must be accepted.
func (s *env) submit(caller permissions.Caller, q permissions.Request) permissions.Request {
	s.t.Helper()
	r, err := s.Approvals().Submit(s.t.Context(), caller, q)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// use uses an approval, which must succeed.
func (s *env) use(caller permissions.Caller, id permissions.ID, call string) permissions.Request {
	s.t.Helper()
	r, err := s.Approvals().Use(s.t.Context(), caller, id, call)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// A submitted request is found by its key whatever its state, and an approval is used once.
func TestSubmitAndUse(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, owned(), f)
	q := keyed(tool("write_file", `{"path":"a"}`), "s1/1")
	q.Background = false
	r := st.submit(helper, q)
	if r.State != permissions.Pending || !slices.Equal(r.Asked, []string{"fay"}) || r.Background || r.Agent != "helper" {
		t.Fatalf("%+v", r)
	}
	if again := st.submit(helper, q); again.ID != r.ID {
		t.Errorf("it was asked again: %s", again.ID)
	}
	other := q
	other.Tool = "another"
	_, err := st.Approvals().Submit(t.Context(), helper, other)
	refused(t, err, permissions.CodeKeyTaken)
	other.Key = ""
	_, err = st.Approvals().Submit(t.Context(), helper, other)
	refused(t, err, permissions.CodeInvalid)
	_, err = st.Approvals().Use(t.Context(), helper, r.ID, "s1/1")
	refused(t, err, permissions.CodeNoUse)

	f.must(t, st.shown(f.Memory, 1).Request.ID, allow())
	_, err = st.Approvals().Read(t.Context(), child, r.ID)
	refused(t, err, permissions.CodeUnknown)
	_, err = st.Approvals().Use(t.Context(), child, r.ID, "s1/1")
	refused(t, err, permissions.CodeUnknown)
	_, err = st.Approvals().Use(t.Context(), helper, r.ID, "")
	refused(t, err, permissions.CodeInvalid)
	if got, err := st.Approvals().Read(t.Context(), helper, r.ID); err != nil || got.State != permissions.Approved || !got.UsedAt.IsZero() {
		t.Errorf("reading it: %+v, %v", got, err)
	}
	used := st.use(helper, r.ID, "s1/1")
	if used.UsedCall != "s1/1" || used.UsedAt.IsZero() {
		t.Errorf("%+v", used)
	}
	if again := st.use(helper, r.ID, "s1/1"); !again.UsedAt.Equal(used.UsedAt) || again.Revision != used.Revision {
		t.Error("the same call again is another use")
	}
	_, err = st.Approvals().Use(t.Context(), helper, r.ID, "another")
	refused(t, err, permissions.CodeNoUse)
	st.advance(31 * 24 * time.Hour)
	if again := st.submit(helper, q); again.ID != r.ID {
		t.Errorf("a month later it was asked again: %s", again.ID)
	}
}

// Of many concurrent uses of one approval, one succeeds.
func TestUsedByOne(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, owned(), f)
	r := st.submit(helper, keyed(network("x"), "k"))
	f.must(t, st.shown(f.Memory, 1).Request.ID, allow())
	var mu sync.Mutex
	won := map[string]bool{}
	var group sync.WaitGroup
	for _, call := range []string{"a", "b", "c", "d", "e", "f"} {
		group.Go(func() {
			if _, err := st.Approvals().Use(t.Context(), helper, r.ID, call); err == nil {
				mu.Lock()
				won[call] = true
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if len(won) != 1 {
		t.Errorf("used by %v", won)
	}
}

// An approval that lapsed uncollected, as during downtime, is not lost to a session.
func TestLapsedAndUsed(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, owned(), f)
	q := keyed(network("x"), "k")
	r := st.submit(helper, q)
	f.must(t, st.shown(f.Memory, 1).Request.ID, allow())
	st.advance(time.Hour)
	f.edited(t, st, func(p connectors.Prompt) bool { return !p.Request.LapsedAt.IsZero() })
	st.restart(newPhone(fay, "fays-phone"))
	if got := st.submit(helper, q); got.ID != r.ID || got.State != permissions.Approved {
		t.Fatalf("%s of %s", got.State, got.ID)
	}
	st.use(helper, r.ID, "k")
}

// edited waits until ok accepts the first prompt.
func (p *phone) edited(t *testing.T, st *env, ok func(connectors.Prompt) bool) {
	t.Helper()
	st.edited(p.Memory, 1, ok)
}

// An approval is checked again at its use.
func TestUseLooksAgain(t *testing.T) {
	for name, c := range map[string]struct {
		change func(st *env, s *engine.Settings)
		code   permissions.Code
	}{
		"forbidden by now": {func(_ *env, s *engine.Settings) {
			s.Policies = map[string]permissions.Policy{helper.Name: {Forbidden: []string{"write_file"}}}
		}, permissions.CodeForbidden},
		"the daemon's own by now": {func(_ *env, s *engine.Settings) { s.Own = []string{"/srv"} }, permissions.CodeOwnFiles},
		"not held any more":       {func(_ *env, s *engine.Settings) { s.Holdings = nil }, permissions.CodeNoUse},
		"stopped": {func(st *env, _ *engine.Settings) {
			if _, err := st.StopAll(st.t.Context(), boss); err != nil {
				st.t.Fatal(err)
			}
		}, permissions.CodeStopped},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPhone(fay, "fays-phone")
			st := newEnv(t, owned(), f)
			q := keyed(tool("write_file", `{"path":"a"}`), "k")
			tags, err := permissions.ParseTags([]string{"@workspace", "@write:/srv/www"})
			if err != nil {
				t.Fatal(err)
			}
			q.Tags = tags
			r := st.submit(helper, q)
			if !slices.Equal(r.Held, []permissions.Tag{permissions.Workspace}) || len(r.Grants) != 0 {
				t.Errorf("held %v under %v", r.Held, r.Grants)
			}
			f.must(t, st.shown(f.Memory, 1).Request.ID, allow())
			s := owned()
			c.change(st, &s)
			st.Configure(s)
			_, err = st.Approvals().Use(t.Context(), helper, r.ID, "k")
			refused(t, err, c.code)
		})
	}
}

// An approval that depends on a grant ends with it, even if nobody was asked.
func TestUseOfWhatRestsOnAGrant(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, owned(), f)
	st.submit(helper, keyed(network("first"), "1"))
	f.must(t, st.shown(f.Memory, 1).Request.ID, allowFor(permissions.Session))
	if held, err := st.Approvals().Held(t.Context(), helper, "s1"); err != nil ||
		!slices.Equal(held, []permissions.Tag{permissions.Workspace, permissions.Network}) {
		t.Errorf("held %v, %v", held, err)
	}
	if held, err := st.Approvals().Held(t.Context(), helper, "s2"); err != nil || len(held) != 1 {
		t.Errorf("in another session %v, %v", held, err)
	}
	second := st.submit(helper, keyed(network("second"), "2"))
	if second.State != permissions.Approved || second.DecidedVia != permissions.ViaGrant || len(second.Grants) != 1 {
		t.Fatalf("%+v", second)
	}
	if _, err := st.Revoke(t.Context(), boss, second.Grants[0]); err != nil {
		t.Fatal(err)
	}
	_, err := st.Approvals().Use(t.Context(), helper, second.ID, "2")
	refused(t, err, permissions.CodeNoUse)
}

// Evaluate says what would be needed, without asking anybody.
func TestJudge(t *testing.T) {
	st := newEnv(t, owned(), newPhone(fay, "fays-phone"))
	held := network("x")
	held.Tags = []permissions.Tag{permissions.Workspace}
	for name, c := range map[string]struct {
		caller permissions.Caller
		q      permissions.Request
		ask    bool
		code   permissions.Code
	}{
		"runs":                        {helper, tool("read_file", "{}"), false, ""},
		"asks":                        {helper, tool("write_file", "{}"), true, ""},
		"held":                        {helper, held, false, ""},
		"not the child's":             {child, held, true, ""},
		"forbidden":                   {helper, tool("run_command", "{}"), false, permissions.CodeForbidden},
		"forbidden to the child":      {child, tool("run_command", "{}"), false, permissions.CodeForbidden},
		"no question":                 {helper, permissions.Request{Kind: permissions.KindPermission}, false, permissions.CodeInvalid},
		"nobody to ask":               {nobody, network("x"), false, permissions.CodeNoRoute},
		"nobody has to be asked then": {nobody, tool("read_file", "{}"), false, ""},
	} {
		v, err := st.Approvals().Evaluate(t.Context(), c.caller, c.q)
		if c.code != "" {
			refused(t, err, c.code)
		} else if err != nil || v.Ask != c.ask {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
	if _, err := st.StopAll(t.Context(), boss); err != nil {
		t.Fatal(err)
	}
	_, err := st.Approvals().Evaluate(t.Context(), helper, tool("read_file", "{}"))
	refused(t, err, permissions.CodeStopped)
	_, err = st.Approvals().Held(t.Context(), helper, "s1")
	refused(t, err, permissions.CodeStopped)
	_, err = st.Approvals().Submit(t.Context(), helper, keyed(network("x"), "k"))
	refused(t, err, permissions.CodeStopped)
	if rows, err := st.rows.Pending(t.Context(), "", "", 9); err != nil || len(rows) != 0 {
		t.Errorf("%d wait, %v", len(rows), err)
	}
}

// A child of one of our agents asks that agent's person; routes come first, including a route for everybody.
func TestAChildAsksItsAgentsPerson(t *testing.T) {
	f, s, _ := phones()
	settings := owned()
	settings.Routes = append(settings.Routes, engine.Route{
		Agents: []string{"helper"}, Tags: []permissions.Tag{permissions.Events}, Ask: []string{"sam"},
	})
	st := newEnv(t, settings, f, s)
	if r := st.submit(child, keyed(network("x"), "1")); !slices.Equal(r.Asked, []string{"fay"}) {
		t.Errorf("asked %v", r.Asked)
	}
	q := keyed(network("x"), "2")
	q.Tags = []permissions.Tag{permissions.Events}
	if r := st.submit(helper, q); !slices.Equal(r.Asked, []string{"sam"}) {
		t.Errorf("asked %v", r.Asked)
	}
	_, err := st.Approvals().Submit(t.Context(), nobody, keyed(network("x"), "3"))
	refused(t, err, permissions.CodeNoRoute)
	_, err = st.Ask(t.Context(), self, network("x"))
	refused(t, err, permissions.CodeNoRoute)
	settings.Routes = []engine.Route{{Agents: []string{"*"}, Ask: []string{"sam"}}}
	st.Configure(settings)
	if r := st.submit(child, keyed(network("y"), "4")); !slices.Equal(r.Asked, []string{"sam"}) {
		t.Errorf("asked %v", r.Asked)
	}
}

// Only our own agents may say that they are in the background.
func TestBackgroundIsNotTheCallersToSay(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	settings := owned()
	settings.Routes = []engine.Route{{Agents: []string{"*"}, Ask: []string{"fay"}}}
	st := newEnv(t, settings, f)
	q := keyed(network("x"), "1")
	q.Background, q.Foreground = true, "helper"
	if r := st.submit(child, q); !r.Background || r.Foreground != "helper" {
		t.Errorf("%+v", r)
	}
	q = network("theirs")
	q.Foreground = "helper"
	st.ask(t.Context(), q)
	if r := st.shown(f.Memory, 2).Request; !r.Background || r.Foreground != "" {
		t.Errorf("background %v of %q", r.Background, r.Foreground)
	}
}

// A request for later may wait longer than one for now, but not for ever.
func TestScheduledRequestsWaitLonger(t *testing.T) {
	st := newEnv(t, owned(), newPhone(fay, "fays-phone"))
	q := keyed(network("tonight"), "1")
	q.Session, q.WantedTimeout = "", 20*time.Hour
	if r := st.submit(helper, q); r.Timeout() != 20*time.Hour {
		t.Errorf("it waits for %s", r.Timeout())
	}
	q.Key, q.Reason, q.WantedTimeout = "2", "next week", 25*time.Hour
	if r := st.submit(helper, q); r.Timeout() != 24*time.Hour {
		t.Errorf("it waits for %s", r.Timeout())
	}
}

// Prompts never say that nobody waits for a session of ours.
func TestASessionAlwaysWaits(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, owned(), f)
	r := st.submit(helper, keyed(network("x"), "1"))
	check := func() {
		t.Helper()
		s, err := st.Find(t.Context(), helper, r.ID)
		if err != nil || s.Waiting != 1 || !s.Request.LeftAt.IsZero() {
			t.Errorf("%d wait, left %s, %v", s.Waiting, s.Request.LeftAt, err)
		}
	}
	check()
	if p := st.shown(f.Memory, 1); p.Waiting != 1 {
		t.Errorf("the card says that %d wait", p.Waiting)
	}
	st.restart(newPhone(fay, "fays-phone"))
	check()
}

// A request that reaches nobody ends at once, and says why.
func TestSubmitToNobody(t *testing.T) {
	st := newEnv(t, owned(), newPhone(sam, "sams-phone"))
	if r := st.submit(helper, keyed(network("x"), "1")); r.State != permissions.Undeliverable || r.Failure == "" {
		t.Errorf("%s, %q", r.State, r.Failure)
	}
}

func TestSubmitIsLimited(t *testing.T) {
	settings := owned()
	settings.Limits.PendingPerCaller = 2
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, settings, f)
	st.submit(helper, keyed(network("a"), "a"))
	st.submit(helper, keyed(network("b"), "b"))
	_, err := st.Approvals().Submit(t.Context(), helper, keyed(network("c"), "c"))
	refused(t, err, permissions.CodeLimit)
	st.submit(helper, keyed(network("b"), "b"))
}

// For our own agents there is no rest after two denials: the runtime ends the asking after three in a row.
func TestOurAgentsAskAgainAfterTwoDenials(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, owned(), f)
	for i, key := range []string{"a", "b"} {
		st.submit(helper, keyed(network("the same"), key))
		f.must(t, st.shown(f.Memory, i+1).Request.ID, permissions.Deny)
	}
	if r := st.submit(helper, keyed(network("the same"), "c")); r.State != permissions.Pending {
		t.Errorf("the third is %s", r.State)
	}
}

// The end of a session ends its grants and its pending requests.
func TestEndSession(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, owned(), f)
	st.submit(helper, keyed(network("x"), "1"))
	f.must(t, st.shown(f.Memory, 1).Request.ID, allowFor(permissions.Session))
	waits := st.submit(child, keyed(tool("write_file", "{}"), "2"))
	other := keyed(tool("write_file", "{}"), "3")
	other.Session = "s2"
	others := st.submit(helper, other)
	for range 2 {
		if err := st.Approvals().EndSession(t.Context(), helper, "s1"); err != nil {
			t.Fatal(err)
		}
	}
	if held, err := st.Approvals().Held(t.Context(), helper, "s1"); err != nil || len(held) != 1 {
		t.Errorf("held %v, %v", held, err)
	}
	if r, err := st.Approvals().Read(t.Context(), child, waits.ID); err != nil || r.State != permissions.Cancelled {
		t.Errorf("what waited is %s, %v", r.State, err)
	}
	if r, err := st.Approvals().Read(t.Context(), helper, others.ID); err != nil || r.State != permissions.Pending {
		t.Errorf("what another session asks is %s, %v", r.State, err)
	}
	refused(t, st.Approvals().EndSession(t.Context(), helper, ""), permissions.CodeInvalid)
	refused(t, st.Approvals().EndSession(t.Context(), self, "s1"), permissions.CodeInvalid)
}

func TestWithdrawIsForTheCallerAlone(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, owned(), f)
	r := st.submit(helper, keyed(network("x"), "1"))
	refused(t, st.Approvals().Withdraw(t.Context(), child, r.ID, "fay"), permissions.CodeUnknown)
	for range 2 {
		if err := st.Approvals().Withdraw(t.Context(), helper, r.ID, "fay"); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := st.Approvals().Read(t.Context(), helper, r.ID); err != nil || got.State != permissions.Cancelled || got.DecidedBy != "fay" {
		t.Errorf("%s by %q, %v", got.State, got.DecidedBy, err)
	}
	answered := st.submit(helper, keyed(network("y"), "2"))
	f.must(t, answered.ID, permissions.Deny)
	if err := st.Approvals().Withdraw(t.Context(), helper, answered.ID, "fay"); err != nil {
		t.Errorf("of what is settled: %v", err)
	}
}

// Approvals has no method that decides.
func TestApprovalsCannotDecide(t *testing.T) {
	st := newEnv(t, owned(), newPhone(fay, "fays-phone"))
	if _, decides := st.Approvals().(interface {
		OnPermission(context.Context, connectors.Decision) (permissions.Request, error)
	}); decides {
		t.Error("it does")
	}
	if _, asks := st.Approvals().(agents.Asker); asks {
		t.Error("it waits")
	}
}

// Unasked calls of our own agents are counted too, and their children share the limit.
func TestAutoCallsOfOursBeyondTheirRateAreAsked(t *testing.T) {
	s := owned()
	s.Limits.AutoPerMinute = map[string]int{"*": 2}
	st := newEnv(t, s, newPhone(fay, "fays-phone"))
	for i, who := range []permissions.Caller{helper, child, helper} {
		if v, err := st.Approvals().Evaluate(t.Context(), who, tool("read_file", `{"path":"a"}`)); err != nil || v.Ask {
			t.Errorf("call %d: %+v, %v", i+1, v, err)
		}
		read := permissions.Request{Kind: permissions.KindTool, Tool: "read_file"}
		if often, want := st.Approvals().OverRate(who, read), i == 2; often != want {
			t.Errorf("call %d is one too many: %v", i+1, often)
		}
	}
}

// An agent of ours cannot ask more by starting others.
func TestChildrenShareTheirPrompts(t *testing.T) {
	s := owned()
	s.Limits.PromptsPerMinute = 2
	st := newEnv(t, s, newPhone(fay, "fays-phone"))
	st.submit(helper, keyed(network("x"), "1"))
	st.submit(child, keyed(network("y"), "2"))
	_, err := st.Approvals().Submit(t.Context(), permissions.AgentCaller("helper/other"), keyed(network("z"), "3"))
	refused(t, err, permissions.CodeLimit)
}
