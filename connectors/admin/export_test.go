package admin

import (
	"context"
	"net/url"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// Routes are the patterns of all that deciders may reach.
func (c *Connector) Routes() []string { return c.newServer().Routes() }

// Session returns one session. No command of ours asks for one.
func (c *Client) Session(ctx context.Context, id permissions.ID) (wire.Session, error) {
	return fetch[wire.Session](ctx, c, "/v1/sessions/"+url.PathEscape(string(id)))
}
