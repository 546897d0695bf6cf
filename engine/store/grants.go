package store

import (
	"context"
	"time"

	"github.com/daycared/daycared/permissions"
)

const grantColumns = `id, caller, session, tags, tool, call, until, request, granted_by, created_at, revoked_at, used`

func grantFields(g *permissions.Grant) []any {
	return []any{
		&g.ID, &g.Caller, &g.Session, list[permissions.Tag]{&g.Tags}, &g.Tool, digest{&g.Call}, end{&g.Until}, &g.Request,
		&g.By, instant{&g.CreatedAt}, instant{&g.RevokedAt}, &g.Used,
	}
}

var addGrant = `INSERT INTO grants (` + grantColumns + `) VALUES (` + parameters(grantColumns) + `)`

func insertGrant(ctx context.Context, t *tx, g permissions.Grant) error {
	_, err := t.ExecContext(ctx, addGrant, grantFields(&g)...)
	return err
}

const readGrants = `SELECT ` + grantColumns + ` FROM grants WHERE caller = $1 AND revoked_at = 0 ` +
	`AND until > $2 ORDER BY id`

const revokeGrants = `UPDATE grants SET revoked_at = $1 WHERE caller = $2 AND request = $3 AND revoked_at = 0`

// Grants lists the grants of a caller that are neither revoked nor over at now.
func (s *Store) Grants(ctx context.Context, caller string, now time.Time) (grants []permissions.Grant, err error) {
	err = s.read(ctx, func(from source) error {
		grants, err = collect(ctx, from, "a grant", grantFields, readGrants, caller, now.UnixMicro())
		return err
	})
	return grants, err
}
