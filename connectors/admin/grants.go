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

func (r *routes) registerGrants() {
	list := get("grants", "/v1/grants", "List the grants in force that the caller may see")
	serve(r, list, func(ctx context.Context, _ *struct{}) ([]wire.Grant, error) {
		found, err := r.engine.Grants(ctx, who(ctx))
		return wire.Each(found, wire.FromGrant), err
	})
	revoke := remove("revoke", "/v1/grants/{id}", "Take back a grant, and tell what ran under it")
	serve(r, revoke, func(ctx context.Context, in *idInput) (revoked, error) {
		took, err := r.engine.Revoke(ctx, who(ctx), in.ID)
		return revokedOf(took), err
	})
	stop := long(post("stop", "/v1/stop-all", "Cancel all that is pending, and refuse what is new"))
	serve(r, stop, func(ctx context.Context, _ *struct{}) (stopped, error) {
		n, err := r.engine.StopAll(ctx, who(ctx))
		return stopped{Cancelled: n}, err
	})
	resume := post("resume", "/v1/resume", "End what stop-all began")
	serve(r, resume, func(ctx context.Context, _ *struct{}) (struct{}, error) {
		return struct{}{}, r.engine.Resume(ctx, who(ctx))
	})
}

func revokedOf(took permissions.Revoked) revoked {
	return revoked{wire.FromGrant(took.Grant), plainly(took.Ran)}
}

// Void withdraws an unused approval, by its request's id or code, and the grants that it created.
func (c *Client) Void(ctx context.Context, _ connectors.Identity, name string) (permissions.RequestView, error) {
	return c.row(ctx, http.MethodPost, requestPath(name)+"/void")
}

// Grants lists the grants in force that this account may see, oldest first.
func (c *Client) Grants(ctx context.Context, _ connectors.Identity) ([]permissions.Grant, error) {
	return fetchEach(ctx, c, "/v1/grants", 0, wire.Grant.Permissions)
}

// Revoke revokes a grant and returns what ran under it, newest first.
func (c *Client) Revoke(ctx context.Context, _ connectors.Identity, grant permissions.ID) (permissions.Revoked, error) {
	told, err := ask[revoked](ctx, c, http.MethodDelete, "/v1/grants/"+url.PathEscape(string(grant)), nil, 0)
	if err != nil {
		return permissions.Revoked{}, err
	}
	return told.Revoked()
}

func (told revoked) Revoked() (permissions.Revoked, error) {
	g, err := told.Grant.Permissions()
	if err != nil {
		return permissions.Revoked{}, err
	}
	ran, err := wire.TryEach(told.Ran, wire.Request.Permissions)
	return permissions.Revoked{Grant: g, Ran: ran}, err
}

type stopped struct {
	Cancelled int `json:"cancelled"`
}

// StopAll cancels everything that is pending and refuses new requests until [Client.Resume]. It returns how many requests
// it cancelled.
func (c *Client) StopAll(ctx context.Context, _ connectors.Identity) (cancelled int, err error) {
	told, err := ask[stopped](ctx, c, http.MethodPost, "/v1/stop-all", nil, wire.MaxWait) // much may be pending
	return told.Cancelled, err
}

// Resume ends a stop. Without one it changes nothing.
func (c *Client) Resume(ctx context.Context, _ connectors.Identity) error {
	_, err := ask[struct{}](ctx, c, http.MethodPost, "/v1/resume", nil, 0)
	return err
}
