package agenthost

import (
	"context"
	"math"
	"slices"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

// Sessions lists at most limit sessions of our own agents that this identity may see, by id, after the one named (empty:
// from the first): its own, for the operator everybody's. Ended ones are included only with ended.
func (a *Hosts) Sessions(
	ctx context.Context, id connectors.Identity, ended bool, after permissions.ID, limit int,
) ([]permissions.SessionView, error) {
	who, err := a.dir.MaySeeRequestsOf(id)
	if err != nil {
		return nil, err
	}
	var found []permissions.AgentSession
	if ended {
		found, err = a.store.AgentSessions(ctx, who, after, limit)
	} else {
		found, err = a.openSessions(ctx, who, after, limit)
	}
	if err != nil {
		return nil, shared.Broken(err)
	}
	list := make([]permissions.SessionView, 0, len(found))
	for _, s := range found {
		sitting, err := a.sessionView(ctx, s)
		if err != nil {
			return nil, err
		}
		list = append(list, sitting)
	}
	return list, nil
}

// IsOpen reports whether an agent of ours has a session that has not ended, at whatever daemon, of a person (empty: of anybody).
func (a *Hosts) IsOpen(ctx context.Context, who, agent string) (bool, error) {
	all, err := a.openSessions(ctx, who, "", math.MaxInt)
	return slices.ContainsFunc(all, func(s permissions.AgentSession) bool { return s.Agent == agent }), err
}

// openSessions lists a person's sessions (empty: everybody's) that have not ended.
func (a *Hosts) openSessions(
	ctx context.Context, who string, after permissions.ID, limit int,
) (mine []permissions.AgentSession, err error) {
	for {
		all, err := a.store.OpenSessions(ctx, after, shared.Page)
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			after = s.ID
			if who == "" || s.Person == who {
				mine = append(mine, s)
			}
			if len(mine) == limit {
				return mine, nil
			}
		}
		if len(all) < shared.Page {
			return mine, nil
		}
	}
}

// Session returns one session, to its person and to the operator.
func (a *Hosts) Session(ctx context.Context, id connectors.Identity, session permissions.ID) (permissions.SessionView, error) {
	who, err := a.dir.Who(id)
	if err != nil {
		return permissions.SessionView{}, err
	}
	s, err := a.store.AgentSession(ctx, session)
	if err == nil && !id.Operator && s.Person != who {
		err = permissions.UnknownSession(string(session))
	}
	if err != nil {
		return permissions.SessionView{}, shared.Broken(err)
	}
	return a.sessionView(ctx, s)
}

// Debug switches the logging of each state of a session's run, for its person and for the operator.
func (a *Hosts) Debug(ctx context.Context, id connectors.Identity, session permissions.ID, on bool) (permissions.SessionView, error) {
	if _, err := a.Session(ctx, id, session); err != nil {
		return permissions.SessionView{}, err
	}
	if err := a.store.SetDebug(ctx, session, on); err != nil {
		return permissions.SessionView{}, shared.Broken(err)
	}
	return a.Session(ctx, id, session)
}

// Executions lists at most limit calls of a session after the one with that ID, to its person and to the operator.
func (a *Hosts) Executions(
	ctx context.Context, id connectors.Identity, session permissions.ID, after int64, limit int,
) ([]permissions.Execution, error) {
	if _, err := a.Session(ctx, id, session); err != nil {
		return nil, err
	}
	all, err := a.store.ExecutionsOf(ctx, session, after, limit)
	return all, shared.Broken(err)
}

// Artifacts lists at most limit artifacts of a session after the one with that ID, to its person and to the operator:
// those of one execution, or of the whole session if that is 0.
func (a *Hosts) Artifacts(
	ctx context.Context, id connectors.Identity, session permissions.ID, execution, after int64, limit int,
) ([]permissions.Artifact, error) {
	if _, err := a.Session(ctx, id, session); err != nil {
		return nil, err
	}
	all, err := a.store.ArtifactsOf(ctx, session, execution, after, limit)
	return all, shared.Broken(err)
}

func (a *Hosts) sessionView(ctx context.Context, s permissions.AgentSession) (permissions.SessionView, error) {
	if s.Request == "" {
		return permissions.SessionView{Session: s}, nil
	}
	r, err := a.store.Read(ctx, s.Request)
	if permissions.CodeOf(err) == permissions.CodeUnknown {
		err = nil
	}
	return permissions.SessionView{Session: s, WaitsOn: r}, shared.Broken(err)
}
