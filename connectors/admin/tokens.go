package admin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// Token is the JSON form of a token, without its secret.
type Token struct {
	ID        permissions.ID `json:"id"`
	Name      string         `json:"name"`
	Person    string         `json:"person"` // whose agent it is; empty: nobody in particular
	CreatedAt time.Time      `json:"created_at"`
	ExpiresAt *time.Time     `json:"expires_at"` // null: never
	UsedAt    *time.Time     `json:"used_at"`    // last, to the minute
	RevokedAt *time.Time     `json:"revoked_at"`
	// SuspendedAt is since when it is invalid because the store was restored, or null.
	SuspendedAt *time.Time `json:"suspended_at"`
}

// FromToken converts a token.
func FromToken(t permissions.Token) Token {
	return Token{
		ID: t.ID, Name: t.Name, Person: t.Person, CreatedAt: t.CreatedAt.UTC(), ExpiresAt: wire.OrNullTime(t.ExpiresAt),
		UsedAt: wire.OrNullTime(t.UsedAt), RevokedAt: wire.OrNullTime(t.RevokedAt),
		SuspendedAt: wire.OrNullTime(t.SuspendedAt),
	}
}

type wish struct {
	Name    string `json:"name" maxLength:"64" doc:"what routes know the agent by"`
	Person  string `json:"person,omitzero" doc:"whose agent it is, of people in the configuration; without it, nobody's in particular"`
	Expires string `json:"expires,omitzero" doc:"how long it is valid, such as 720h; without it, for ever"`
}

// created is a new token with its secret, which cannot be read again.
type created struct {
	Token  Token  `json:"token"`
	Secret string `json:"secret"`
}

type (
	wishInput  struct{ Body wish }
	tokenInput struct {
		ID string `path:"id" maxLength:"64" doc:"an id or a name"`
	}
)

var errExpires = errors.New("expires must be a duration of at least 1s, such as 720h")

func (r *routes) registerTokens() {
	list := get("tokens", "/v1/tokens", "List the tokens; for the operator")
	serve(r, list, func(ctx context.Context, _ *struct{}) ([]Token, error) {
		list, err := r.engine.Tokens(ctx, who(ctx))
		return wire.Map(list, FromToken), err
	})
	serve(r, post("token", "/v1/tokens", "Make a token, and tell its secret this once"), r.createToken)
	revoke := remove("forget", "/v1/tokens/{id}", "Revoke a token by its id, or all of a name")
	serve(r, revoke, func(ctx context.Context, in *tokenInput) ([]Token, error) {
		list, err := r.engine.RevokeToken(ctx, who(ctx), in.ID)
		return wire.Map(list, FromToken), err
	})
}

func (r *routes) createToken(ctx context.Context, in *wishInput) (created, error) {
	var expires time.Duration
	if in.Body.Expires != "" {
		var err error
		if expires, err = time.ParseDuration(in.Body.Expires); err != nil || expires < time.Second {
			return created{}, permissions.Invalid(errExpires)
		}
	}
	secret, t, err := r.engine.CreateToken(ctx, who(ctx), in.Body.Name, in.Body.Person, expires)
	return created{Token: FromToken(t), Secret: string(secret)}, err
}

// CreateToken makes a token for an agent of a person; an empty person means nobody in particular. expires is its lifetime,
// 0 forever. The secret cannot be read again.
func (c *Client) CreateToken(
	ctx context.Context, name, person string, expires time.Duration,
) (permissions.Secret, Token, error) {
	w := wish{Name: name, Person: person}
	if expires != 0 {
		w.Expires = expires.String()
	}
	told, err := ask[created](ctx, c, http.MethodPost, "/v1/tokens", w, 0)
	return permissions.Secret(told.Secret), told.Token, err
}

// Tokens lists the tokens that are not revoked.
func (c *Client) Tokens(ctx context.Context) ([]Token, error) {
	return fetch[[]Token](ctx, c, "/v1/tokens")
}

// RevokeToken revokes one token by its id, or all of a name, and returns them.
func (c *Client) RevokeToken(ctx context.Context, name string) ([]Token, error) {
	return ask[[]Token](ctx, c, http.MethodDelete, "/v1/tokens/"+url.PathEscape(name), nil, 0)
}

// The values of the query's state.
const (
	openSessions = "open" // that have not ended
	allSessions  = "all"  // that are kept
)

type (
	sessionsInput struct {
		State string         `query:"state" enum:"open,all" default:"open" doc:"open: those that go on"`
		After permissions.ID `query:"after" pattern:"^[0-9A-Za-z]{0,64}$" doc:"the last id of the page before"`
		Limit int            `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	}
	idInput struct {
		ID permissions.ID `path:"id" maxLength:"64"`
	}
	debugInput struct {
		ID   permissions.ID `path:"id" maxLength:"64"`
		Body struct {
			Debug bool `json:"debug"`
		}
	}
	executionsInput struct {
		ID    permissions.ID `path:"id" maxLength:"64"`
		After int64          `query:"after" minimum:"0" doc:"the last id of the page before"`
		Limit int            `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	}
	artifactsInput struct {
		ID        permissions.ID `path:"id" maxLength:"64"`
		Execution int64          `query:"execution" minimum:"0" doc:"those of this one of its executions; 0: all of the session"`
		After     int64          `query:"after" minimum:"0" doc:"the last id of the page before"`
		Limit     int            `query:"limit" minimum:"1" maximum:"100" default:"20"`
	}
)

func (r *routes) registerSessions() {
	sessions := get("sessions", "/v1/sessions", "List the sessions of the caller's agents")
	serve(r, sessions, func(ctx context.Context, in *sessionsInput) ([]wire.Session, error) {
		found, err := r.engine.Sessions(ctx, who(ctx), in.State == allSessions, in.After, in.Limit)
		return wire.Map(found, wire.ListedSession), err
	})
	session := get("session", "/v1/sessions/{id}", "Show one session, and what it waits for")
	serve(r, session, func(ctx context.Context, in *idInput) (wire.Session, error) {
		found, err := r.engine.Session(ctx, who(ctx), in.ID)
		return wire.FromSession(found), err
	})
	debug := post("debug", "/v1/sessions/{id}/debug", "Switch whether each state of a session's run is logged")
	serve(r, debug, func(ctx context.Context, in *debugInput) (wire.Session, error) {
		found, err := r.engine.Debug(ctx, who(ctx), in.ID, in.Body.Debug)
		return wire.FromSession(found), err
	})
	executions := get("executions", "/v1/sessions/{id}/executions", "List the calls of a session, oldest first")
	serve(r, executions, func(ctx context.Context, in *executionsInput) ([]wire.Execution, error) {
		found, err := r.engine.Executions(ctx, who(ctx), in.ID, in.After, in.Limit)
		return wire.Map(found, wire.FromExecution), err
	})
	artifacts := get("artifacts", "/v1/sessions/{id}/artifacts", "List what came of a session or of one of its calls, oldest first")
	serve(r, artifacts, func(ctx context.Context, in *artifactsInput) ([]wire.Artifact, error) {
		found, err := r.engine.Artifacts(ctx, who(ctx), in.ID, in.Execution, in.After, in.Limit)
		return wire.Map(found, wire.FromArtifact), err
	})
}

// Sessions lists at most limit open sessions, with ended all, of our agents after the one given; 0 is the daemon's limit.
func (c *Client) Sessions(ctx context.Context, ended bool, after permissions.ID, limit int) ([]wire.Session, error) {
	state := openSessions
	if ended {
		state = allSessions
	}
	return fetch[[]wire.Session](ctx, c, "/v1/sessions"+page(state, after, limit))
}
