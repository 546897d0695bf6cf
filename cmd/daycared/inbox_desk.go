package main

import (
	"context"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/permissions"
)

// inboxDesk is the daemon's desk as the terminal of an inbox needs it, so that agents are talked to there as they are on
// the daemon's own console. Who its person is, the socket has proved: identities are not read.
type inboxDesk struct {
	*admin.Client
	person connectors.Person
}

var _ terminal.Desk = inboxDesk{}

// Person is the one who this account is.
func (d inboxDesk) Person(connectors.Identity) (connectors.Person, error) { return d.person, nil }

// Agents are those that this account can write to.
func (d inboxDesk) Agents(ctx context.Context, _ connectors.Identity) ([]permissions.Presence, error) {
	return d.Client.Agents(ctx)
}

// Use has another agent read what is typed.
func (d inboxDesk) Use(ctx context.Context, _ connectors.Identity, name string) (agent string, err error) {
	return d.Client.Use(ctx, name)
}

// Order has the agent obey.
func (d inboxDesk) Order(ctx context.Context, _ connectors.Identity, o permissions.Order, key string) (string, error) {
	return d.Client.Order(ctx, o, key)
}

// Pending is what waits for this account. What the inbox was shown, this terminal was.
func (d inboxDesk) Pending(
	ctx context.Context, id connectors.Identity, after permissions.ID, limit int,
) ([]permissions.Standing, error) {
	all, err := d.List(ctx, after, limit)
	for _, s := range all {
		for i := range s.Copies {
			if s.Copies[i].Connector == admin.Name {
				s.Copies[i].Connector, s.Copies[i].Ref = id.Via, string(s.Request.ID)
			}
		}
	}
	return all, err
}

// Grants are those that this account sees.
func (d inboxDesk) Grants(ctx context.Context, _ connectors.Identity) ([]permissions.Grant, error) {
	return d.Client.Grants(ctx)
}

// Revoke takes a grant back.
func (d inboxDesk) Revoke(ctx context.Context, _ connectors.Identity, grant permissions.ID) (permissions.Revoked, error) {
	return d.Client.Revoke(ctx, grant)
}

// Void takes an approval back.
func (d inboxDesk) Void(ctx context.Context, _ connectors.Identity, name string) (permissions.Standing, error) {
	return d.Client.Void(ctx, name)
}

// StopAll stops everything.
func (d inboxDesk) StopAll(ctx context.Context, _ connectors.Identity) (cancelled int, err error) {
	return d.Client.StopAll(ctx)
}

// StoppedBy is who stopped everything, as far as the daemon says so in time.
func (d inboxDesk) StoppedBy() string {
	ctx, done := context.WithTimeout(context.Background(), askTime)
	defer done()
	me, err := d.WhoAmI(ctx)
	if err != nil || me.StoppedBy == nil {
		return ""
	}
	return *me.StoppedBy
}

// askTime bounds how long the daemon is asked that.
const askTime = 3 * time.Second
