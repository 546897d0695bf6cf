package wire

import (
	"fmt"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Grant is a grant as programs read it. A member without a value is null, a list without members is []. Times are UTC.
type Grant struct {
	ID        permissions.ID `json:"id"`
	Caller    string         `json:"caller"`
	Session   *string        `json:"session"`
	Tags      []string       `json:"permissions"`
	Tool      *string        `json:"tool"`
	Call      *string        `json:"call"` // digest of the one call that it covers
	Until     *time.Time     `json:"until"`
	Request   permissions.ID `json:"request"`
	By        string         `json:"by"`
	CreatedAt *time.Time     `json:"created_at"`
	RevokedAt *time.Time     `json:"revoked_at"`
	Used      int            `json:"used"`
	// SuspendedAt is since when it opens nothing, because the store was restored.
	SuspendedAt *time.Time `json:"suspended_at"`
}

// FromGrant is g as programs read it.
func FromGrant(g permissions.Grant) Grant {
	w := Grant{
		ID: g.ID, Caller: g.Caller, Session: orNull(g.Session), Tags: each(g.Tags, permissions.Tag.String),
		Tool: orNull(g.Tool), Until: orNullTime(g.Until), Request: g.Request, By: g.By,
		CreatedAt: orNullTime(g.CreatedAt), RevokedAt: orNullTime(g.RevokedAt), Used: g.Used,
		SuspendedAt: orNullTime(g.SuspendedAt),
	}
	if g.Call != (permissions.Digest{}) {
		w.Call = orNull(g.Call.String())
	}
	return w
}

// Permissions is the grant that w tells of. The error says which member has no meaning here.
func (w Grant) Permissions() (permissions.Grant, error) {
	tags, err := permissions.ParseTags(w.Tags)
	if err != nil {
		return permissions.Grant{}, fmt.Errorf("read grant %s: %w", w.ID, err)
	}
	var call permissions.Digest
	if w.Call != nil {
		if call, err = permissions.ParseDigest(*w.Call); err != nil {
			return permissions.Grant{}, fmt.Errorf("read grant %s: %w", w.ID, err)
		}
	}
	return permissions.Grant{
		ID: w.ID, Caller: w.Caller, Session: value(w.Session), Tags: tags, Tool: value(w.Tool), Call: call,
		Until: value(w.Until), Request: w.Request, By: w.By, CreatedAt: value(w.CreatedAt),
		RevokedAt: value(w.RevokedAt), Used: w.Used, SuspendedAt: value(w.SuspendedAt),
	}, nil
}
