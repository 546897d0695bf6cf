package runtime_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

// The runtime leaves sessions of other parts' agents alone, and ends those of unknown agents.
func TestSessionsOfOthers(t *testing.T) {
	s := newEnv(t)
	sit := func(agent string) permissions.ID {
		now := s.now().UTC()
		is := permissions.AgentSession{
			ID: permissions.NewID(now), Agent: agent, Person: "fay", Status: permissions.Running, Version: 1, CreatedAt: now,
			ChangedAt: now, Step: json.RawMessage(`{"turns":"in words of its own"}`),
		}
		if agent == "gone" {
			is.Step = json.RawMessage(`{}`)
		}
		if err := s.rows.Commit(t.Context(), agents.Commit{Session: is}); err != nil {
			t.Fatal(err)
		}
		return is.ID
	}
	s.others = []string{"coder"}
	s.restart() // the next runtime knows of it
	coder, gone := sit("coder"), sit("gone")
	s.restart()
	for late := time.After(patience); ; {
		s.rows.mu.Lock()
		changed := s.rows.changed
		s.rows.mu.Unlock()
		if is, err := s.rows.AgentSession(t.Context(), gone); err != nil || !is.EndedAt.IsZero() {
			break
		}
		select {
		case <-changed:
		case <-late:
			t.Fatal("the session of an agent that nobody knows goes on")
		}
	}
	if is, err := s.rows.AgentSession(t.Context(), coder); err != nil || is.Version != 1 || !is.EndedAt.IsZero() {
		t.Errorf("it is %+v, %v", is, err)
	}
}
