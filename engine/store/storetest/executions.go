package storetest

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

func executions(t *testing.T, s engine.Store, id permissions.ID, step int) []agents.Execution {
	t.Helper()
	all, err := ledger(t, s).Executions(t.Context(), id, step)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// calls are two calls of a session's second step: a finished one and a running one.
func calls(id permissions.ID) []agents.Execution {
	exit := 3
	return []agents.Execution{
		{
			Session: id, Step: 2, Call: 1, Tool: "run_command", Arguments: []byte(`{"command":"ls <dir> & more"}`),
			Began: noon, Ended: noon.Add(1500 * time.Millisecond), Exit: &exit, Error: "exit status 3",
		},
		{Session: id, Step: 2, Call: 2, Tool: "read_file", Arguments: []byte(`{"path":"/a"}`), Began: noon.Add(time.Second)},
	}
}

// testExecutions: a call has one row with its state.
func testExecutions(t *testing.T, b Backend) {
	s := b.Open(t)
	a := begun("helper")
	both := calls(a.ID)
	began := both[0]
	began.Ended, began.Exit, began.Error = time.Time{}, nil, ""
	commit(t, s, agents.Commit{Session: a, Executions: []agents.Execution{both[1], began}})
	same(t, "begun", executions(t, s, a.ID, 2), []agents.Execution{began, both[1]})
	a = commit(t, s, agents.Commit{Session: moved(a), Executions: both[:1]})
	third := both[1]
	third.Step, third.Session = 3, "which the commit says"
	third.Ended, third.Success = third.Began, true
	commit(t, s, agents.Commit{Session: moved(a), Executions: []agents.Execution{third}})
	s = b.Reopen(t, s)
	same(t, "ended", executions(t, s, a.ID, 2), both)
	third.Session = a.ID
	same(t, "of the next step", executions(t, s, a.ID, 3), []agents.Execution{third})
	same(t, "of none", executions(t, s, a.ID, 4), []agents.Execution(nil))
}

// testToolFinished: a finished call is one event, however often its row is written, and a list has all of them.
func testToolFinished(t *testing.T, b Backend) {
	s := b.Open(t)
	a := begun("helper")
	both := calls(a.ID)
	both[0].AffectedPath = "/srv/x"
	a = commit(t, s, agents.Commit{Session: a, Executions: both})
	both[1].Ended, both[1].Success = both[1].Began, true
	a = commit(t, s, agents.Commit{Session: moved(a), Executions: both})
	commit(t, s, agents.Commit{Session: moved(a), Executions: both})
	list, err := s.ExecutionsOf(t.Context(), a.ID, 0, 9)
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	both[0].ID, both[1].ID = list[0].ID, list[1].ID
	same(t, "the calls", list, both)
	page, err := s.ExecutionsOf(t.Context(), a.ID, list[0].ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "a page", page, both[1:])
	commit(t, s, agents.Commit{Session: moved(moved(a)), Artifacts: []agents.Artifact{
		{Step: both[1].Step, Call: both[1].Call, Type: agents.ArtifactStdout, Content: json.RawMessage(`{"text":"<out>"}`)},
		{Step: both[1].Step, Type: agents.ArtifactPrompt, Content: json.RawMessage(`{}`)},
	}})
	artifacts := func(of permissions.ID, execution, after int64, limit int) (kinds []agents.ArtifactType) {
		t.Helper()
		list, err := s.ArtifactsOf(t.Context(), of, execution, after, limit)
		if err != nil {
			t.Error(err)
		}
		for i, x := range list {
			if kinds = append(kinds, x.Type); x.ID <= after || i > 0 && x.ID <= list[i-1].ID {
				t.Errorf("after %d they are numbered %+v", after, list)
			}
			if x.Type == agents.ArtifactStdout && (x.Execution != both[1].ID || string(x.Content) != `{"text":"<out>"}`) ||
				x.Type == agents.ArtifactPrompt && x.Execution != 0 {
				t.Errorf("one is %+v", x)
			}
		}
		return kinds
	}
	same(t, "what came of the session", artifacts(a.ID, 0, 0, 9), []agents.ArtifactType{agents.ArtifactStdout, agents.ArtifactPrompt})
	same(t, "a page of it", artifacts(a.ID, 0, 0, 1), []agents.ArtifactType{agents.ArtifactStdout})
	same(t, "the next page", artifacts(a.ID, 0, 1, 1), []agents.ArtifactType{agents.ArtifactPrompt})
	same(t, "what came of a call", artifacts(a.ID, both[1].ID, 0, 9), []agents.ArtifactType{agents.ArtifactStdout})
	same(t, "what came of another call", artifacts(a.ID, both[0].ID, 0, 9), []agents.ArtifactType(nil))
	same(t, "what came of another session", artifacts("another", 0, 0, 9), []agents.ArtifactType(nil))
	told, _ := eventsAfter(t, s, 0, 9)
	same(t, "events", len(told), 2)
	for i, h := range told {
		same(t, "the type", h.Type, permissions.ToolFinished)
		same(t, "the actor", h.Actor, "agent:helper")
		same(t, "the time", h.At, both[i].Ended)
		same(t, "the detail", h.Detail, map[string]string{
			"session": string(a.ID), "person": a.Person, "agent": "helper", "execution": strconv.FormatInt(both[i].ID, 10),
			"tool": both[i].Tool, "success": strconv.FormatBool(both[i].Success), "affected_path": both[i].AffectedPath,
		})
	}
	verified(t, s)
}

// testSessionEnded: the end of a session is one event, however often its row is written afterwards.
func testSessionEnded(t *testing.T, b Backend) {
	s := b.Open(t)
	a := commit(t, s, agents.Commit{Session: begun("helper")})
	a = moved(a)
	a.EndedAt, a.Request = noon.Add(time.Minute), "01J"
	a = commit(t, s, agents.Commit{Session: a, Records: []permissions.Record{agents.StatusOf(a)}})
	commit(t, s, agents.Commit{Session: moved(a)})
	told, _ := eventsAfter(t, s, 0, 9)
	same(t, "events", len(told), 2)
	same(t, "the type", told[1].Type, permissions.SessionEnded)
	same(t, "the time", told[1].At, a.EndedAt)
	same(t, "the request", told[1].Request, permissions.ID(""))
	same(t, "the detail", told[1].Detail, map[string]string{"session": string(a.ID), "person": a.Person, "agent": "helper"})
	verified(t, s)
}

// testCommitWhole: a commit with an invalid part stores nothing.
func testCommitWhole(t *testing.T, b Backend) {
	s := b.Open(t)
	detail := map[string]string{"session": "01J", "person": "fay"}
	a := commit(t, s, agents.Commit{
		Session: begun("helper"), Records: []permissions.Record{{Type: "BEGAN", At: noon, Detail: detail}},
	})
	err := ledger(t, s).Commit(t.Context(), agents.Commit{
		Session: moved(a), Turns: said(`1`), Executions: calls(a.ID), Records: []permissions.Record{{Type: "LOST"}},
		Artifacts: []agents.Artifact{{Step: 2, Type: "a type that there is not"}},
	})
	if err == nil || !strings.Contains(err.Error(), "does not work") {
		t.Errorf("got %v", err)
	}
	same(t, "the session", session(t, s, a.ID), a)
	if n := len(turns(t, s, a.ID)) + len(executions(t, s, a.ID, 2)); n != 0 {
		t.Errorf("%d turns and executions are there", n)
	}
	all := entries(t, s)
	same(t, "audited", len(all), 1)
	same(t, "what the audit has", all[0].Detail, detail)
	verified(t, s)
}

// testPruneSessions: an ended session loses its words first, then the rest; an open one loses what it dropped.
func testPruneSessions(t *testing.T, b Backend) {
	s := b.Open(t)
	full := func(agent string) permissions.AgentSession {
		a := begun(agent)
		commit(t, s, agents.Commit{
			Session: a, Turns: said(`1`, `2`, `3`), Executions: calls(a.ID),
			Artifacts: []agents.Artifact{{Step: 2, Call: 1, Type: agents.ArtifactStdout, Content: []byte(`"x"`)}, {Type: agents.ArtifactPrompt}},
		})
		for _, key := range []string{"1", "2"} {
			if err := ledger(t, s).Post(t.Context(), agents.Post{Session: a.ID, Key: key, Text: "x", At: noon}); err != nil {
				t.Fatal(err)
			}
		}
		all, err := ledger(t, s).Posts(t.Context(), a.ID, 1)
		if err != nil {
			t.Fatal(err)
		}
		return commit(t, s, agents.Commit{Session: moved(a), Drops: 1, Taken: []int64{all[0].Number}})
	}
	live := full("helper")
	old := full("coder")
	old = commit(t, s, agents.Commit{Session: moved(old, ended(tapped))})
	young := full("nightly")
	young = commit(t, s, agents.Commit{Session: moved(young, ended(tapped.Add(day)))})
	keep := permissions.Keep{Payloads: 30 * day, Requests: 90 * day}

	left := func(a permissions.AgentSession) int {
		t.Helper()
		waiting, err := ledger(t, s).Posts(t.Context(), a.ID, 9)
		if err != nil {
			t.Fatal(err)
		}
		return len(turns(t, s, a.ID)) + len(waiting)
	}
	prune(t, s, keep, tapped.Add(30*day), 2)
	same(t, "nothing is old enough", session(t, s, old.ID), old)
	prune(t, s, keep, tapped.Add(30*day+time.Microsecond), 2)
	old.Step = nil
	same(t, "the session is there", session(t, s, old.ID), old)
	worded := calls(old.ID)
	for i := range worded {
		worded[i].Arguments, worded[i].Error = json.RawMessage("null"), ""
	}
	same(t, "what it did", executions(t, s, old.ID, 2), worded)
	same(t, "what the young did", executions(t, s, young.ID, 2), calls(young.ID))
	if left(old) != 0 || left(young) != 3 || left(live) != 3 {
		t.Errorf("left are %d, %d and %d", left(old), left(young), left(live))
	}
	if rounds := prune(t, s, keep, tapped.Add(30*day+time.Microsecond), 1); rounds != 1 {
		t.Error("what was pruned is looked at again")
	}

	prune(t, s, permissions.Keep{Requests: 90 * day}, tapped.Add(90*day+time.Microsecond), 2)
	_, err := s.AgentSession(t.Context(), old.ID)
	refusedWith(t, err, permissions.CodeUnknown)
	same(t, "the young", session(t, s, young.ID), young)
	prune(t, s, permissions.Keep{Requests: 90 * day}, tapped.Add(400*day), 3)
	_, err = s.AgentSession(t.Context(), young.ID)
	refusedWith(t, err, permissions.CodeUnknown)
	same(t, "what goes on", session(t, s, live.ID), live)
	same(t, "what it did", executions(t, s, live.ID, 2), calls(live.ID))
	if left(live) != 3 {
		t.Errorf("of what goes on %d are left", left(live))
	}
}
