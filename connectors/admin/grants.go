package admin

import (
	"context"
	"net/http"
	"net/url"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// revoked is the JSON form of a revoked grant and of what had run under it.
type revoked struct {
	Grant wire.Grant     `json:"grant"`
	Ran   []wire.Request `json:"ran" doc:"what was not asked because of it, the newest first"`
}

type grantInput struct {
	ID permissions.ID `path:"id" maxLength:"64"`
}

func (r *routes) void(ctx context.Context, in *named) (wire.Request, error) {
	return told(r.desk.Void(ctx, who(ctx), in.ID))
}

func (r *routes) grants(ctx context.Context, _ *struct{}) ([]wire.Grant, error) {
	found, err := r.desk.Grants(ctx, who(ctx))
	return wire.Each(found, wire.FromGrant), err
}

func (r *routes) revoke(ctx context.Context, in *grantInput) (revoked, error) {
	took, err := r.desk.Revoke(ctx, who(ctx), in.ID)
	return revoked{wire.FromGrant(took.Grant), plainly(took.Ran)}, err
}

// Void withdraws an unused approval, by its request's id or code, and the grants that it created.
func (c *Client) Void(ctx context.Context, _ connectors.Identity, name string) (permissions.RequestView, error) {
	return c.row(ctx, http.MethodPost, requestPath(name)+"/void")
}

// Grants lists the grants in force that this account may see, oldest first.
func (c *Client) Grants(ctx context.Context, _ connectors.Identity) ([]permissions.Grant, error) {
	var list []wire.Grant
	if err := c.get(ctx, "/v1/grants", &list); err != nil {
		return nil, err
	}
	return wire.TryEach(list, wire.Grant.Permissions)
}

// Revoke revokes a grant and returns what ran under it, newest first.
func (c *Client) Revoke(ctx context.Context, _ connectors.Identity, grant permissions.ID) (permissions.Revoked, error) {
	var told revoked
	path := "/v1/grants/" + url.PathEscape(string(grant))
	if err := c.wire.Call(ctx, http.MethodDelete, path, c.header(""), nil, 0, &told); err != nil {
		return permissions.Revoked{}, err
	}
	return told.Revoked()
}

// Revoked converts it.
func (told revoked) Revoked() (permissions.Revoked, error) {
	g, err := told.Grant.Permissions()
	if err != nil {
		return permissions.Revoked{}, err
	}
	ran, err := wire.TryEach(told.Ran, wire.Request.Permissions)
	return permissions.Revoked{Grant: g, Ran: ran}, err
}

// stopped is the result of stop-all.
type stopped struct {
	Cancelled int `json:"cancelled"`
}

func (r *routes) stop(ctx context.Context, _ *struct{}) (stopped, error) {
	n, err := r.desk.StopAll(ctx, who(ctx))
	return stopped{Cancelled: n}, err
}

func (r *routes) resume(ctx context.Context, _ *struct{}) (struct{}, error) {
	return struct{}{}, r.desk.Resume(ctx, who(ctx))
}

// StopAll cancels everything that is pending and refuses new requests until [Client.Resume]. It returns how many requests
// it cancelled.
func (c *Client) StopAll(ctx context.Context, _ connectors.Identity) (cancelled int, err error) {
	var told stopped
	// Much may be pending.
	err = c.wire.Call(ctx, http.MethodPost, "/v1/stop-all", c.header(""), nil, wire.MaxWait, &told)
	return told.Cancelled, err
}

// Resume ends a stop. Without one it changes nothing.
func (c *Client) Resume(ctx context.Context, _ connectors.Identity) error {
	return c.wire.Call(ctx, http.MethodPost, "/v1/resume", c.header(""), nil, 0, nil)
}
