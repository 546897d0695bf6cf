package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/permissions"
)

// TestDenyAndStopThisAgent: what the agent waits for is denied, it asks nothing under any name and uses nothing that it was allowed until
// whoever stopped it resumes it, also after a restart. Other agents go on.
func TestDenyAndStopThisAgent(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	ctx, other := t.Context(), permissions.CallerUID(1001)
	granted := st.ask(ctx, network("docs"))
	if _, err := m.Do(ctx, connectors.Decision{Request: st.shown(m, 1).Request.ID, Answer: allowFor(quarter)}); err != nil {
		t.Fatal(err)
	}
	st.get(granted)
	gone, leave := context.WithCancel(ctx)
	unused := st.ask(gone, tagged("s1", "@read:/srv"))
	id := st.shown(m, 2).Request.ID
	leave()
	<-unused
	if _, err := m.Do(ctx, connectors.Decision{Request: id, Answer: allow()}); err != nil {
		t.Fatal(err)
	}
	first, second := st.ask(ctx, tagged("s1", "@events")), st.ask(ctx, tagged("s2", "@events"))
	if _, err := st.Begin(ctx, other, tagged("s1", "@events")); err != nil {
		t.Fatal(err)
	}
	st.shown(m, 5)
	code := ""
	for _, c := range m.Copies()[2:] {
		if c.First.Request.Caller == self {
			code = c.First.Code
		}
	}
	for name, who := range map[string]connectors.Identity{code: samAt, "uid:1000": samAt, "nobody": boss} {
		_, _, err := st.StopAgent(ctx, who, name)
		refused(t, err, permissions.CodeUnknown)
	}
	l, ended, err := st.StopAgent(ctx, fayAt("memory"), code)
	if err != nil || ended != 2 || l.Agent() != "uid:1000" || l.By != "fay" {
		t.Fatalf("%+v, %d, %v", l, ended, err)
	}
	for _, call := range []<-chan answer{first, second} {
		if r := st.get(call); r.State != permissions.Denied || r.DecidedBy != "fay" {
			t.Errorf("%s by %q", r.State, r.DecidedBy)
		}
	}
	if left := st.pending(1); left[0].Caller != other {
		t.Errorf("%s waits", left[0].Caller.Name)
	}
	for range 2 {
		for name, q := range map[string]permissions.Request{
			"what was granted": network("docs"), "what was allowed": tagged("s1", "@read:/srv"),
			"another name": {
				Kind: permissions.KindPermission, Tags: []permissions.Tag{permissions.Network}, Reason: "x", Agent: "new", Session: "s9",
			},
			"what runs unasked": tool("read_file", `{}`),
		} {
			if _, err := st.Ask(ctx, self, q); permissions.CodeOf(err) != permissions.CodeStopped {
				t.Errorf("%s: %v", name, err)
			}
		}
		if held, err := st.Approvals().Held(ctx, self, "s1"); permissions.CodeOf(err) != permissions.CodeStopped {
			t.Errorf("it holds %v, %v", held, err)
		}
		_, err := st.Tell(ctx, self, "fay", permissions.AboutText, permissions.CallerMessage{Text: "please"})
		refused(t, err, permissions.CodeStopped)
		_, err = st.ResumeAgent(ctx, samAt, "uid:1000")
		refused(t, err, permissions.CodeNotYours)
		m = connectortest.NewMemory(fayAt("memory"), nil)
		st.restart(m)
	}
	if _, _, err := st.StopAgent(ctx, fayAt("memory"), "uid:1000"); err != nil { // changes nothing
		t.Fatal(err)
	}
	if _, err := st.ResumeAgent(ctx, fayAt("memory"), "uid:1000"); err != nil {
		t.Fatal(err)
	}
	_, err = st.ResumeAgent(ctx, boss, "uid:1000")
	refused(t, err, permissions.CodeUnknown)
	for _, q := range []permissions.Request{network("docs"), tagged("s1", "@read:/srv")} {
		if r := st.get(st.ask(ctx, q)); r.State != permissions.Approved {
			t.Errorf("afterwards it is %s", r.State)
		}
	}
	entries, err := st.rows.Audit(ctx, "", 0, 1000)
	var said []permissions.Type
	for _, e := range entries {
		if e.Detail["person"] == permissions.StopOf("uid:1000") {
			said = append(said, e.Type)
		}
	}
	if err != nil || !slices.Equal(said, []permissions.Type{permissions.AgentStopped, permissions.AgentResumed}) {
		t.Errorf("the audit has %v, %v", said, err)
	}
	if _, err := st.Verify(ctx, boss); err != nil {
		t.Error(err)
	}
}

// TestTheOperatorsStopOfAnAgentIsTheOperators: it replaces a person's. It is not the lock of a person, and holds for what the agent starts.
func TestTheOperatorsStopOfAnAgentIsTheOperators(t *testing.T) {
	st := newEnv(t, usual(), connectortest.NewMemory(fayAt("memory"), nil))
	ctx, child := t.Context(), permissions.Caller{Name: "agent:helper/x", UID: permissions.NoUID}
	if _, err := st.Begin(ctx, child, network("docs")); err != nil {
		t.Fatal(err)
	}
	asked := st.pending(1)[0]
	for _, who := range []connectors.Identity{fayAt("memory"), boss} {
		if l, _, err := st.StopAgent(ctx, who, string(asked.ID)); err != nil || l.Agent() != "agent:helper" {
			t.Fatalf("%+v, %v", l, err)
		}
	}
	_, err := st.Ask(ctx, permissions.Caller{Name: "agent:helper/y", UID: permissions.NoUID}, network("docs"))
	refused(t, err, permissions.CodeStopped)
	_, err = st.ResumeAgent(ctx, fayAt("memory"), "helper")
	refused(t, err, permissions.CodeNotYours)
	_, _, err = st.Unlock(ctx, boss, permissions.StopOf("agent:helper"))
	refused(t, err, permissions.CodeUnknown)
	_, err = st.Lock(ctx, fayAt("memory"), permissions.StopOf("agent:helper"), time.Time{})
	refused(t, err, permissions.CodeUnknown)
	if by := st.StoppedAgents()[0].By; by != "operator" {
		t.Errorf("it is stopped by %q", by)
	}
	if len(st.Locks()) > 0 {
		t.Errorf("locked: %+v", st.Locks())
	}
	if _, err := st.ResumeAgent(ctx, boss, "helper"); err != nil || len(st.StoppedAgents()) > 0 {
		t.Errorf("%v, %+v", err, st.StoppedAgents())
	}
}

// TestAStopOfAnAgentHoldsAlsoIfItCannotBeStored, and is stored once that is possible.
func TestAStopOfAnAgentHoldsAlsoIfItCannotBeStored(t *testing.T) {
	st, disk := newFullDiskEnv(t, usual(), newPhone(fay, "fays-phone"))
	disk.full.Store(true)
	_, _, err := st.StopAgent(t.Context(), fayAt("memory"), "uid:1000")
	refused(t, err, permissions.CodeBroken)
	if !strings.Contains(err.Error(), "uid:1000 is stopped now, but that is not saved: ") {
		t.Errorf("it says %v", err)
	}
	_, err = st.Ask(t.Context(), self, network("docs"))
	refused(t, err, permissions.CodeStopped)
	disk.full.Store(false)
	st.restart(newPhone(fay, "fays-phone"))
	_, err = st.Ask(t.Context(), self, network("docs"))
	refused(t, err, permissions.CodeStopped)
}

// TestAnAccountThatAgentsAskFromEndsNothingThatHoldsThem: an agent that runs as it could do the same. Its phone may, and the operator.
func TestAnAccountThatAgentsAskFromEndsNothingThatHoldsThem(t *testing.T) {
	s := usual()
	s.People = []connectors.Person{fay.WithAddress("telegram", fayID), sam, kim}
	st, _ := trustEnv(t, s, newPairingChannel())
	ctx, hers := t.Context(), permissions.Caller{Name: "token:coder", UID: fayUID}
	st.writeFromUnknown("6666")
	st.lock(boss, "sam")
	ends := map[string]func(connectors.Identity) error{
		"a stop of the agent": func(id connectors.Identity) error { _, err := st.ResumeAgent(ctx, id, "coder"); return err },
		"a stop":              func(id connectors.Identity) error { return st.Resume(ctx, id) },
		"a lock":              func(id connectors.Identity) error { _, _, err := st.Unlock(ctx, id, "sam"); return err },
		"trust": func(id connectors.Identity) error {
			_, err := st.TrustAgent(ctx, id, "coder", time.Hour, false)
			if permissions.CodeOf(err) == permissions.CodeRule {
				return nil
			}
			return err
		},
		"a pairing": func(id connectors.Identity) error {
			if _, _, err := st.PairSender(ctx, id, "kim", "6666"); err != nil {
				return err
			}
			return st.WithdrawPairing(ctx, id, "kim", "6666")
		},
	}
	for _, asks := range []bool{false, true} {
		if _, _, err := st.StopAgent(ctx, fayAt("cli"), "coder"); err != nil {
			t.Fatal(err)
		}
		if _, err := st.StopAll(ctx, fayAt("cli")); err != nil {
			t.Fatal(err)
		}
		for _, what := range []string{"a stop", "a stop of the agent", "trust", "a lock", "a pairing"} {
			err := ends[what](fayAt("cli"))
			if refusal := permissions.CodeOf(err); asks && err == nil || asks != (refusal == permissions.CodeNotYours) {
				t.Errorf("asks %t, %s: %v", asks, what, err)
			}
			if !asks {
				continue
			}
			phone := connectors.Identity{Via: "telegram", UID: permissions.NoUID, Address: fayID}
			if err := ends[what](phone); err != nil {
				t.Errorf("%s, from a phone: %v", what, err)
			}
		}
		if _, err := st.Ask(ctx, hers, tool("read_file", `{}`)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAnAgentThatAnotherDaemonRunsIsStopped, although this one's configuration does not have it, by its person and nobody else.
func TestAnAgentThatAnotherDaemonRunsIsStopped(t *testing.T) {
	st := newEnv(t, usual(), connectortest.NewMemory(fayAt("memory"), nil))
	ctx := t.Context()
	st.storeSession(permissions.AgentSession{Agent: "far", Person: "fay"})
	st.storeSession(permissions.AgentSession{Agent: "old", Person: "fay", EndedAt: st.now()})
	st.storeSession(permissions.AgentSession{Agent: "sams", Person: "sam"})
	for name, code := range map[string]permissions.Code{"far": "", "old": permissions.CodeUnknown, "sams": permissions.CodeUnknown} {
		_, _, err := st.StopAgent(ctx, fayAt("memory"), name)
		if permissions.CodeOf(err) != code {
			t.Errorf("stop %s: %v", name, err)
		}
	}
	if _, _, err := st.StopAgent(ctx, boss, "agent:sams"); err != nil {
		t.Error(err)
	}
	if _, err := st.ResumeAgent(ctx, fayAt("memory"), "far"); err != nil {
		t.Error(err)
	}
	var stopped []string
	for _, l := range st.StoppedAgents() {
		stopped = append(stopped, l.Agent())
	}
	if !slices.Equal(stopped, []string{"agent:sams"}) {
		t.Errorf("stopped: %q", stopped)
	}
}
