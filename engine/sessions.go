package engine

import (
	"context"
	"errors"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Sessions lists at most limit sessions of agents of ours that this identity may see, after the one named (empty: from
// the first), by id: its own, the operator everybody's. Only with ended also those that have.
func (e *Engine) Sessions(
	ctx context.Context, id connectors.Identity, ended bool, after permissions.ID, limit int,
) ([]permissions.Sitting, error) {
	who, err := e.Who(id)
	if err != nil {
		return nil, err
	}
	if id.Operator {
		who = ""
	}
	var found []permissions.AgentSession
	if ended {
		found, err = e.store.AgentSessions(ctx, who, after, limit)
	} else {
		found, err = e.openSessions(ctx, who, after, limit)
	}
	if err != nil {
		return nil, broken(err)
	}
	list := make([]permissions.Sitting, 0, len(found))
	for _, s := range found {
		sitting, err := e.sitting(ctx, s)
		if err != nil {
			return nil, err
		}
		list = append(list, sitting)
	}
	return list, nil
}

// openSessions are those of somebody's (empty: everybody's) that go on.
func (e *Engine) openSessions(
	ctx context.Context, who string, after permissions.ID, limit int,
) (mine []permissions.AgentSession, err error) {
	for {
		all, err := e.store.OpenSessions(ctx, after, page)
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
		if len(all) < page {
			return mine, nil
		}
	}
}

// Session gives one session, to its person and to the operator.
func (e *Engine) Session(ctx context.Context, id connectors.Identity, session permissions.ID) (permissions.Sitting, error) {
	who, err := e.Who(id)
	if err != nil {
		return permissions.Sitting{}, err
	}
	s, err := e.store.AgentSession(ctx, session)
	if err == nil && !id.Operator && s.Person != who {
		err = permissions.UnknownSession(string(session))
	}
	if err != nil {
		return permissions.Sitting{}, broken(err)
	}
	return e.sitting(ctx, s)
}

func (e *Engine) sitting(ctx context.Context, s permissions.AgentSession) (permissions.Sitting, error) {
	if s.Request == "" {
		return permissions.Sitting{Session: s}, nil
	}
	r, err := e.store.Read(ctx, s.Request)
	var refusal *permissions.Refusal
	if errors.As(err, &refusal) && refusal.Code == permissions.CodeUnknown {
		err = nil
	}
	return permissions.Sitting{Session: s, WaitsOn: r}, broken(err)
}
