package admin

import (
	"context"
	"net/url"
	"strconv"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// Which sessions are listed.
const (
	openSessions = "open" // that go on
	allSessions  = "all"  // that are kept
)

type (
	sessionsInput struct {
		State string         `query:"state" enum:"open,all" default:"open" doc:"open: those that go on"`
		After permissions.ID `query:"after" maxLength:"64" doc:"the last id of the page before"`
		Limit int            `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	}
	sessionsOutput struct{ Body []wire.Session }
	sessionInput   struct {
		ID permissions.ID `path:"id" maxLength:"64"`
	}
	sessionOutput struct{ Body wire.Session }
)

func (r *routes) sessions(ctx context.Context, in *sessionsInput) (*sessionsOutput, error) {
	found, err := r.desk.Sessions(ctx, who(ctx), in.State == allSessions, in.After, in.Limit)
	if err != nil {
		return nil, r.door.Refuse(err)
	}
	out := &sessionsOutput{Body: make([]wire.Session, len(found))}
	for i, s := range found {
		out.Body[i] = wire.FromSitting(s)
	}
	return out, nil
}

func (r *routes) session(ctx context.Context, in *sessionInput) (*sessionOutput, error) {
	found, err := r.desk.Session(ctx, who(ctx), in.ID)
	if err != nil {
		return nil, r.door.Refuse(err)
	}
	return &sessionOutput{Body: wire.FromSitting(found)}, nil
}

// Sessions lists at most limit sessions of agents of ours after the one named, by id, also those that have ended if they
// are asked for; 0 is as many as the daemon gives.
func (c *Client) Sessions(ctx context.Context, ended bool, after permissions.ID, limit int) ([]wire.Session, error) {
	query := url.Values{"state": {openSessions}}
	if ended {
		query.Set("state", allSessions)
	}
	if after != "" {
		query.Set("after", string(after))
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var list []wire.Session
	err := c.get(ctx, "/v1/sessions?"+query.Encode(), &list)
	return list, err
}

// Session gives one session.
func (c *Client) Session(ctx context.Context, id permissions.ID) (wire.Session, error) {
	var s wire.Session
	err := c.get(ctx, "/v1/sessions/"+url.PathEscape(string(id)), &s)
	return s, err
}
