package engine_test

import (
	"context"
	"slices"
	"testing"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// TestEventsAreFollowedByTheirHolder: in the session and by the agent that hold the grant, and while they hold it. It
// sees what the grantors may see.
func TestEventsAreFollowedByTheirHolder(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	s := usual()
	s.Routes = append([]engine.Route{{Tags: []permissions.Tag{permissions.Network}, Ask: []string{"sam"}}}, s.Routes...)
	st := newEnv(t, s, m, connectortest.NewMemory(connectors.Identity{Via: "sam", UID: sam.UID}, nil))
	ctx := t.Context()
	follow := func(caller permissions.Caller, session, agent string) ([]permissions.Event, error) {
		list, _, err := st.EventsFor(ctx, caller, session, agent, 0, 500)
		return list, err
	}
	_, err := follow(self, "s1", "")
	refused(t, err, permissions.CodeForbidden)
	hers := st.approved(m, tagged("s1", "@events"), allowFor(permissions.Session), false)
	theirs := st.ask(ctx, tagged("s1", "@network")) // asks sam
	st.pending(1)
	list, err := follow(self, "s1", "")
	if err != nil || !slices.ContainsFunc(list, func(h permissions.Event) bool { return h.Request == hers.ID }) {
		t.Errorf("its holder sees %+v, %v", list, err)
	}
	for _, h := range list {
		if !h.VisibleTo("fay") {
			t.Errorf("it sees %+v, which fay may not", h)
		}
	}
	for _, another := range []struct {
		caller         permissions.Caller
		session, agent string
	}{{self, "s2", ""}, {self, "s1", "codex"}, {other, "s1", ""}, {permissions.Caller{Name: permissions.Anonymous}, "s1", ""}} {
		_, err := follow(another.caller, another.session, another.agent)
		refused(t, err, permissions.CodeForbidden)
	}
	for range 2 {
		if err := st.CountFollow(ctx, self, "s1", ""); err != nil {
			t.Error(err)
		}
	}
	if grants, err := st.Grants(ctx, boss, "", 99); err != nil || len(grants) != 1 || grants[0].Used != 2 {
		t.Errorf("after two streams its grants are %+v, %v", grants, err)
	}
	st.pending(1) // it asks people nothing
	refused(t, st.CountFollow(ctx, self, "s2", ""), permissions.CodeForbidden)
	st.pending(1)
	st.revoked()
	_, err = follow(self, "s1", "")
	refused(t, err, permissions.CodeForbidden)
	if _, err := st.StopAll(ctx, boss); err != nil {
		t.Fatal(err)
	}
	_, err = follow(self, "s1", "")
	refused(t, err, permissions.CodeStopped)
	<-theirs
}

// TestExternalAgentsHaveAForegroundAgent: that of the first recipient who has one.
func TestExternalAgentsHaveAForegroundAgent(t *testing.T) {
	h := newChatEnv(t)
	for _, front := range []string{"helper", "coder"} {
		if _, err := h.Use(t.Context(), fayAt(chatVia), front); err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		call := h.ask(ctx, network("for "+front))
		if r := h.pending(1)[0]; !r.Background || r.Foreground != front {
			t.Errorf("while fay talks to %s: background %v of %q", front, r.Background, r.Foreground)
		}
		if _, err := h.StopAll(t.Context(), boss); err != nil {
			t.Fatal(err)
		}
		if err := h.Resume(t.Context(), boss); err != nil {
			t.Fatal(err)
		}
		leave()
		<-call
	}
}
