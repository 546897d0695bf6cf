package directory

import (
	"context"
	"slices"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

// NoteMissing looks once, after the start, for rows that are open by the audit and that somebody deleted. It may take a while.
func (d *Directory) NoteMissing(ctx context.Context) error {
	all, err := d.store.Missing(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		d.log.Error("look for rows that are missing", "err", err)
	case len(all) > 0:
		d.log.Warn("rows deleted behind daycared's back: each is in force again if it is put back; close them as daycared doctor says",
			"missing", len(all))
	}
	d.mu.Lock()
	d.missing = all
	d.mu.Unlock()
	return nil //nolint:nilerr // it was logged
}

// MissingRows lists what NoteMissing found and nobody has closed since.
func (d *Directory) MissingRows() []permissions.Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.missing)
}

// FindMissing returns the missing rows that a name denotes (see [permissions.ResolveID]), also the name of an agent with tokens, if refused
// says that there is none with a row.
func (d *Directory) FindMissing(ctx context.Context, refused error, closes permissions.Type, name string) ([]permissions.Record, error) {
	if permissions.CodeOf(refused) != permissions.CodeUnknown {
		return nil, refused
	}
	all, err := d.store.Missing(ctx)
	all = slices.DeleteFunc(all, func(r permissions.Record) bool { return r.Type != closes })
	var ids []permissions.ID
	for _, r := range all {
		ids = append(ids, permissions.ID(r.RowName()))
	}
	id, ambiguous := permissions.ResolveID(name, ids)
	all = slices.DeleteFunc(all, func(r permissions.Record) bool { return r.RowName() != string(id) && r.Detail["name"] != name })
	switch {
	case err != nil:
		return nil, err
	case ambiguous != nil && len(all) == 0:
		return nil, ambiguous
	case len(all) == 0:
		return nil, refused
	}
	return all, nil
}

// CloseMissing closes rows that FindMissing found. The error says that it was done, or why not.
func (d *Directory) CloseMissing(ctx context.Context, id connectors.Identity, who string, all []permissions.Record) error {
	if err := d.store.CloseMissing(ctx, all, who, id.Via, d.clock.Stamp()); err != nil {
		return shared.Broken(err)
	}
	closed := func(r permissions.Record) bool {
		return slices.ContainsFunc(all, func(o permissions.Record) bool { return o.Type == r.Type && o.RowName() == r.RowName() })
	}
	d.mu.Lock()
	d.missing = slices.DeleteFunc(d.missing, closed)
	d.mu.Unlock()
	return permissions.ClosedMissing(all)
}
