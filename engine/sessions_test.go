package engine_test

import (
	"testing"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// storeSession stores a session of an agent.
func (s *env) storeSession(a permissions.AgentSession) permissions.AgentSession {
	s.t.Helper()
	a.ID, a.Version, a.CreatedAt, a.ChangedAt = permissions.NewID(s.now()), 1, s.now().UTC(), s.now().UTC()
	if err := s.rows.Commit(s.t.Context(), agents.Commit{Session: a}); err != nil {
		s.t.Fatal(err)
	}
	return a
}

// Sessions are visible to their person and to the operator, with the request that they wait for.
func TestSessionsAreTheirPersons(t *testing.T) {
	st := newEnv(t, owned(), newPhone(fay, "fays-phone"))
	r := st.submit(helper, keyed(network("to see"), "1"))
	waits := st.storeSession(permissions.AgentSession{Agent: "helper", Person: "fay", Request: r.ID})
	lost := st.storeSession(permissions.AgentSession{Agent: "coder", Person: "fay", Request: "01J0000000000000000000NONE"})
	sams := st.storeSession(permissions.AgentSession{Agent: "nightly", Person: "sam"})
	over := st.storeSession(permissions.AgentSession{Agent: "helper", Person: "fay", EndedAt: st.now()})
	atFay, atSam := connectors.Identity{Via: "cli", UID: fay.UID}, connectors.Identity{Via: "cli", UID: sam.UID}
	for name, c := range map[string]struct {
		id    connectors.Identity
		ended bool
		limit int
		want  []permissions.ID
	}{
		"fay's":        {atFay, false, 9, []permissions.ID{waits.ID, lost.ID}},
		"a page":       {atFay, false, 1, []permissions.ID{waits.ID}},
		"with the old": {atFay, true, 9, []permissions.ID{waits.ID, lost.ID, over.ID}},
		"sam's":        {atSam, true, 9, []permissions.ID{sams.ID}},
		"everybody's":  {boss, true, 9, []permissions.ID{waits.ID, lost.ID, sams.ID, over.ID}},
	} {
		list, err := st.Sessions(t.Context(), c.id, c.ended, "", c.limit)
		if err != nil {
			t.Fatal(err)
		}
		got := map[permissions.ID]bool{}
		for _, s := range list {
			got[s.Session.ID] = true
			if (s.Session.ID == waits.ID) != (s.WaitsOn.Reason == "to see") {
				t.Errorf("%s: %+v waits on %+v", name, s.Session, s.WaitsOn)
			}
		}
		for _, id := range c.want {
			if name != "a page" && !got[id] {
				t.Errorf("%s: %s is missing", name, id)
			}
		}
		if len(list) != len(c.want) {
			t.Errorf("%s: %d of %d", name, len(list), len(c.want))
		}
	}
	if s, err := st.Session(t.Context(), atFay, waits.ID); err != nil || s.WaitsOn.ID != r.ID {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := st.Session(t.Context(), boss, sams.ID); err != nil || s.Session.Agent != "nightly" {
		t.Errorf("%+v, %v", s, err)
	}
	_, err := st.Session(t.Context(), atSam, waits.ID)
	refused(t, err, permissions.CodeUnknown)
	unknown := connectors.Identity{Via: "cli", UID: 4242}
	_, err = st.Session(t.Context(), unknown, waits.ID)
	refused(t, err, permissions.CodeNotYours)
	_, err = st.Sessions(t.Context(), unknown, false, "", 9)
	refused(t, err, permissions.CodeNotYours)
}

// Events for agents' front ends carry the text of the request, while it is stored, for those whom it concerns.
func TestDialogEventsCarryTheRequestsText(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, owned(), f)
	q := keyed(permissions.Request{
		Kind: permissions.KindClarification, Message: "Which?", Choices: []string{"a", "b"},
	}, "1")
	r := st.submit(helper, q)
	f.must(t, st.shown(f.Memory, 1).Request.ID, permissions.Choose(2))
	a := st.storeSession(permissions.AgentSession{Agent: "helper", Person: "fay"})
	detail := map[string]string{"session": string(a.ID), "person": "fay"}
	for _, about := range []permissions.ID{r.ID, "01J0000000000000000000NONE"} {
		err := st.rows.Record(t.Context(), permissions.Record{Type: permissions.WaitAckEnter, Request: about, Detail: detail})
		if err != nil {
			t.Fatal(err)
		}
	}
	told := map[permissions.Type][]permissions.Event{}
	list, _, err := st.Events(t.Context(), connectors.Identity{Via: "cli", UID: fay.UID}, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range list {
		told[h.Type] = append(told[h.Type], h)
		if h.Type.HasRequestText() != (h.About.ID == r.ID) && h.Request == r.ID {
			t.Errorf("%s is told about %+v", h.Type, h.About)
		}
	}
	if len(told[permissions.DialogRequested]) != 1 || len(told[permissions.DialogResponded]) != 1 ||
		told[permissions.DialogResponded][0].About.Choice() != "b" {
		t.Errorf("told %+v", told)
	}
	if acks := told[permissions.WaitAckEnter]; len(acks) != 2 || acks[0].Session != string(a.ID) || acks[1].About.ID != "" {
		t.Errorf("told %+v", acks)
	}
	others, _, err := st.Events(t.Context(), connectors.Identity{Via: "cli", UID: sam.UID}, 0, 100)
	if err != nil || len(others) != 0 {
		t.Errorf("sam is told %+v, %v", others, err)
	}
}
