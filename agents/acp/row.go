package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

type step struct {
	Conversation sdk.SessionId `json:"conversation,omitempty"` // the agent's id of it; empty: not begun yet
	Turns        int           `json:"turns"`                  // number of turns begun

	Asks []permissions.ID `json:"asks,omitempty"` // the newest turn's pending requests
	Runs []int            `json:"runs,omitempty"` // its calls whose rows are not finished
}

func (s step) encode() json.RawMessage {
	text, _ := json.Marshal(s) // always encodable
	return text
}

// stepOf is the state of a session as far as it is readable.
func stepOf(s permissions.AgentSession) (at step) {
	_ = json.Unmarshal(s.Step, &at)
	return at
}

// run sets the calls whose rows are not finished.
func (s step) run(all []agents.Execution) step {
	for _, x := range all {
		s.Runs = slices.DeleteFunc(slices.Clone(s.Runs), func(n int) bool { return n == x.Call })
		if x.Ended.IsZero() {
			s.Runs = append(s.Runs, x.Call)
		}
	}
	return s
}

// row is the agent's session in the store. Nothing else writes it, except to end it when the agent is no longer configured.
type row struct {
	store agents.SessionStore
	agent *Agent

	mu      sync.Mutex
	read    bool
	session permissions.AgentSession // without an ID: no session
}

func (r *row) open(ctx context.Context) (permissions.AgentSession, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.load(ctx)
	return r.session, r.session.ID != "", err
}

// load reads the row once. The caller holds the lock.
func (r *row) load(ctx context.Context) error {
	if r.read {
		return nil
	}
	s, open, err := r.store.CurrentSession(ctx, r.agent.o.Name)
	if err != nil {
		return err
	}
	// The agent has a new owner, who must not see the old chat, or somebody else changed the row.
	if open && (s.Person != r.agent.o.Person || s.Step == nil) {
		if err := r.disown(ctx, s); err != nil {
			return err
		}
		open = false
	}
	if !open {
		s = permissions.AgentSession{}
	}
	r.session, r.read = s, true
	return nil
}

// disown ends the session of a former owner and its grants.
func (r *row) disown(ctx context.Context, s permissions.AgentSession) error {
	if err := r.agent.approvals.EndSession(ctx, s.Caller(), string(s.ID)); err != nil {
		return err
	}
	c := agents.Commit{}
	if s.Status == permissions.Running || s.Status == permissions.AwaitingUser {
		end, err := r.agent.interrupted(ctx, stepOf(s))
		if err != nil {
			return err
		}
		end(&s, &c)
	}
	now := r.agent.stamp()
	s.Version++
	s.Status, s.Request, s.Tool, s.ChangedAt, s.EndedAt = permissions.Idle, "", "", now, now
	c.Session, c.Records = s, append(c.Records, agents.StatusOf(s))
	return r.store.Commit(ctx, c)
}

// current is the open session, or a new one.
func (r *row) current(ctx context.Context) (permissions.AgentSession, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(ctx); err != nil || r.session.ID != "" {
		return r.session, err
	}
	now := r.agent.stamp()
	s := permissions.AgentSession{
		ID: permissions.NewID(now), Agent: r.agent.o.Name, Person: r.agent.o.Person, Status: permissions.Idle, Model: "acp",
		Version: 1, CreatedAt: now, ChangedAt: now, Step: step{}.encode(),
	}
	err := r.store.Commit(ctx, agents.Commit{
		Session: s, Records: []permissions.Record{agents.StatusOf(s)},
		Artifacts: []agents.Artifact{agents.ArtifactOf(agents.ArtifactSession, map[string]any{
			"session_id": s.ID, "agent": s.Agent, "model": s.Model, "timestamp": now,
			"workspace": r.agent.o.Program.Place.Workspace, "folder": r.agent.o.Program.Place.Folder(),
		})},
	})
	if err != nil {
		return s, err
	}
	r.session = s
	return s, nil
}

func (r *row) step() (s step, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := json.Unmarshal(r.session.Step, &s); err != nil {
		return s, fmt.Errorf("read where session %s stands: %w", r.session.ID, err)
	}
	return s, nil
}

// change stores what do makes of the open session, and what belongs to it. Without a session it does nothing.
func (r *row) change(ctx context.Context, do func(*permissions.AgentSession, *agents.Commit)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for again := false; ; again = true {
		if err := r.load(ctx); err != nil || r.session.ID == "" {
			return err
		}
		next, c := r.session, agents.Commit{}
		next.Version++
		next.ChangedAt = r.agent.stamp()
		do(&next, &c)
		if len(c.Executions) > 0 {
			next.Step = stepOf(next).run(c.Executions).encode()
		}
		if next.Status != r.session.Status {
			c.Records = append(c.Records, agents.StatusOf(next))
		}
		c.Session = next
		err := r.store.Commit(ctx, c)
		if errors.Is(err, agents.ErrStale) && !again { // an earlier commit succeeded although it seemed to fail
			r.read = false
			continue
		}
		if err != nil {
			return err
		}
		if r.session = next; !next.EndedAt.IsZero() {
			r.session = permissions.AgentSession{}
		}
		r.agent.setActivity(next.Status)
		return nil
	}
}
