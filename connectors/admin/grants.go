package admin

import (
	"context"
	"net/http"
	"net/url"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// revoked is a grant that was taken back, and what had run under it, as programs read it.
type revoked struct {
	Grant wire.Grant     `json:"grant"`
	Ran   []wire.Request `json:"ran" doc:"what was not asked because of it, the newest first"`
}

type (
	grantsOutput  struct{ Body []wire.Grant }
	revokedOutput struct{ Body revoked }
	grantInput    struct {
		ID permissions.ID `path:"id" maxLength:"64"`
	}
)

func (r *routes) void(ctx context.Context, in *named) (*row, error) {
	return r.standing(r.desk.Void(ctx, who(ctx), in.ID))
}

func (r *routes) grants(ctx context.Context, _ *struct{}) (*grantsOutput, error) {
	found, err := r.desk.Grants(ctx, who(ctx))
	if err != nil {
		return nil, r.door.Refuse(err)
	}
	out := &grantsOutput{Body: make([]wire.Grant, len(found))}
	for i, g := range found {
		out.Body[i] = wire.FromGrant(g)
	}
	return out, nil
}

func (r *routes) revoke(ctx context.Context, in *grantInput) (*revokedOutput, error) {
	took, err := r.desk.Revoke(ctx, who(ctx), in.ID)
	if err != nil {
		return nil, r.door.Refuse(err)
	}
	out := &revokedOutput{Body: revoked{Grant: wire.FromGrant(took.Grant), Ran: make([]wire.Request, len(took.Ran))}}
	for i, q := range took.Ran {
		out.Body.Ran[i] = wire.From(permissions.Standing{Request: q}, true)
	}
	return out, nil
}

// Void takes back an approval that was not used, by its request's id or code, with the grants that it left behind.
func (c *Client) Void(ctx context.Context, name string) (permissions.Standing, error) {
	var w wire.Request
	if err := c.wire.Call(ctx, http.MethodPost, requestPath(name)+"/void", c.header(""), nil, 0, &w); err != nil {
		return permissions.Standing{}, err
	}
	return w.Standing()
}

// Grants lists the grants in force that this account may see, oldest first.
func (c *Client) Grants(ctx context.Context) ([]permissions.Grant, error) {
	var list []wire.Grant
	if err := c.get(ctx, "/v1/grants", &list); err != nil {
		return nil, err
	}
	found := make([]permissions.Grant, len(list))
	for i, w := range list {
		g, err := w.Permissions()
		if err != nil {
			return nil, err
		}
		found[i] = g
	}
	return found, nil
}

// Revoke takes a grant back and tells what ran under it, the newest first.
func (c *Client) Revoke(ctx context.Context, grant permissions.ID) (permissions.Revoked, error) {
	var told revoked
	path := "/v1/grants/" + url.PathEscape(string(grant))
	if err := c.wire.Call(ctx, http.MethodDelete, path, c.header(""), nil, 0, &told); err != nil {
		return permissions.Revoked{}, err
	}
	g, err := told.Grant.Permissions()
	if err != nil {
		return permissions.Revoked{}, err
	}
	took := permissions.Revoked{Grant: g}
	for _, w := range told.Ran {
		q, err := w.Permissions()
		if err != nil {
			return permissions.Revoked{}, err
		}
		took.Ran = append(took.Ran, q)
	}
	return took, nil
}
