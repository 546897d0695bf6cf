package admin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Token is a token as programs read it: never its secret.
type Token struct {
	ID        permissions.ID `json:"id"`
	Name      string         `json:"name"`
	CreatedAt time.Time      `json:"created_at"`
	ExpiresAt *time.Time     `json:"expires_at"` // null: never
	UsedAt    *time.Time     `json:"used_at"`    // last, to the minute
	RevokedAt *time.Time     `json:"revoked_at"`
	// SuspendedAt is since when it proves nothing, because the store was restored.
	SuspendedAt *time.Time `json:"suspended_at"`
}

// FromToken is t as programs read it.
func FromToken(t permissions.Token) Token {
	return Token{
		ID: t.ID, Name: t.Name, CreatedAt: t.CreatedAt.UTC(), ExpiresAt: orNullTime(t.ExpiresAt),
		UsedAt: orNullTime(t.UsedAt), RevokedAt: orNullTime(t.RevokedAt),
		SuspendedAt: orNullTime(t.SuspendedAt),
	}
}

func fromTokens(list []permissions.Token) []Token {
	made := make([]Token, len(list))
	for i, t := range list {
		made[i] = FromToken(t)
	}
	return made
}

func orNullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// wish is a token as it is asked for.
type wish struct {
	Name    string `json:"name" maxLength:"64" doc:"what routes know the agent by"`
	Expires string `json:"expires,omitzero" doc:"how long it is valid, such as 720h; without it, for ever"`
}

// created is a new token with its secret, which is told this once.
type created struct {
	Token  Token  `json:"token"`
	Secret string `json:"secret"`
}

type (
	wishInput     struct{ Body wish }
	createdOutput struct{ Body created }
	tokensOutput  struct{ Body []Token }
	tokenInput    struct {
		ID string `path:"id" maxLength:"64" doc:"an id or a name"`
	}
)

var errExpires = errors.New("expires must be a duration of at least 1s, such as 720h")

func (r *routes) createToken(ctx context.Context, in *wishInput) (*createdOutput, error) {
	var expires time.Duration
	if in.Body.Expires != "" {
		var err error
		if expires, err = time.ParseDuration(in.Body.Expires); err != nil || expires < time.Second {
			return nil, r.door.Refuse(permissions.Invalid(errExpires))
		}
	}
	secret, t, err := r.desk.CreateToken(ctx, who(ctx), in.Body.Name, expires)
	if err != nil {
		return nil, r.door.Refuse(err)
	}
	return &createdOutput{Body: created{Token: FromToken(t), Secret: string(secret)}}, nil
}

func (r *routes) tokens(ctx context.Context, _ *struct{}) (*tokensOutput, error) {
	return r.listed(r.desk.Tokens(ctx, who(ctx)))
}

func (r *routes) revokeToken(ctx context.Context, in *tokenInput) (*tokensOutput, error) {
	return r.listed(r.desk.RevokeToken(ctx, who(ctx), in.ID))
}

func (r *routes) listed(list []permissions.Token, err error) (*tokensOutput, error) {
	if err != nil {
		return nil, r.door.Refuse(err)
	}
	return &tokensOutput{Body: fromTokens(list)}, nil
}

// CreateToken makes a token for an agent; expires is how long it is valid, 0 for ever. The secret is told this once.
func (c *Client) CreateToken(
	ctx context.Context, name string, expires time.Duration,
) (permissions.Secret, Token, error) {
	w := wish{Name: name}
	if expires != 0 {
		w.Expires = expires.String()
	}
	var told created
	err := c.wire.Call(ctx, http.MethodPost, "/v1/tokens", c.header(""), w, 0, &told)
	return permissions.Secret(told.Secret), told.Token, err
}

// Tokens lists the tokens that are not revoked.
func (c *Client) Tokens(ctx context.Context) (list []Token, err error) {
	return list, c.get(ctx, "/v1/tokens", &list)
}

// RevokeToken revokes one token by its id, or all of a name, and returns them.
func (c *Client) RevokeToken(ctx context.Context, name string) (list []Token, err error) {
	path := "/v1/tokens/" + url.PathEscape(name)
	return list, c.wire.Call(ctx, http.MethodDelete, path, c.header(""), nil, 0, &list)
}
