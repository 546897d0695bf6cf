package wiretest

import (
	"context"
	"slices"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Void revokes an approval.
func (d *Desk) Void(ctx context.Context, id connectors.Identity, name string) (permissions.RequestView, error) {
	s, err := d.Show(ctx, id, name)
	if err != nil {
		return s, err
	}
	who, _ := d.Who(id)
	c, err := d.Registry.Resolve(ctx, s.Request.ID, permissions.Void{By: who, Via: id.Via, At: time.Now().UTC()})
	if err != nil {
		return permissions.RequestView{}, permissions.Refused(err)
	}
	return d.View(ctx, c.After)
}

// Grants lists those in force.
func (d *Desk) Grants(_ context.Context, id connectors.Identity) (list []permissions.Grant, err error) {
	who, err := d.Who(id)
	if err != nil {
		return nil, err
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	for _, g := range d.store.grants {
		if g.RevokedAt.IsZero() && (id.Operator || slices.Contains(d.store.rows[g.Request].Asked, who)) {
			list = append(list, g)
		}
	}
	return list, d.store.fail
}

// Revoke revokes a grant. It reports the request that created it as what ran under it.
func (d *Desk) Revoke(_ context.Context, id connectors.Identity, grant permissions.ID) (permissions.Revoked, error) {
	who, err := d.Who(id)
	if err != nil {
		return permissions.Revoked{}, err
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	for i := range d.store.grants {
		g := &d.store.grants[i]
		r := d.store.rows[g.Request]
		if g.ID != grant || (!id.Operator && !slices.Contains(r.Asked, who)) {
			continue
		}
		g.RevokedAt = time.Now().UTC()
		d.store.record(permissions.Record{
			Type: permissions.GrantRevoked, At: g.RevokedAt, Request: g.Request, Actor: who, Via: id.Via,
			Detail: map[string]string{"grant": string(g.ID)},
		})
		return permissions.Revoked{Grant: *g, Ran: []permissions.Request{r}}, d.store.fail
	}
	return permissions.Revoked{}, permissions.UnknownGrant(grant)
}

// Sessions lists Sittings.
func (d *Desk) Sessions(
	_ context.Context, id connectors.Identity, ended bool, after permissions.ID, limit int,
) (list []permissions.SessionView, err error) {
	who, err := d.Who(id)
	if err != nil {
		return nil, err
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	for _, s := range d.Sittings {
		mine := id.Operator || s.Session.Person == who
		if mine && (ended || s.Session.EndedAt.IsZero()) && s.Session.ID > after && len(list) < limit {
			list = append(list, s)
		}
	}
	return list, d.store.fail
}

// Session returns one of Sittings.
func (d *Desk) Session(
	ctx context.Context, id connectors.Identity, session permissions.ID,
) (permissions.SessionView, error) {
	all, err := d.Sessions(ctx, id, true, "", len(d.Sittings))
	if err != nil {
		return permissions.SessionView{}, err
	}
	for _, s := range all {
		if s.Session.ID == session {
			return s, nil
		}
	}
	return permissions.SessionView{}, permissions.UnknownSession(string(session))
}

// Debug switches one of Sittings.
func (d *Desk) Debug(ctx context.Context, id connectors.Identity, session permissions.ID, on bool) (permissions.SessionView, error) {
	s, err := d.Session(ctx, id, session)
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	for i := range d.Sittings {
		if d.Sittings[i].Session.ID == session && err == nil {
			d.Sittings[i].Session.Debug, s.Session.Debug = on, on
		}
	}
	return s, err
}

// Executions lists Calls.
func (d *Desk) Executions(
	ctx context.Context, id connectors.Identity, session permissions.ID, after int64, limit int,
) (list []permissions.Execution, err error) {
	_, err = d.Session(ctx, id, session)
	for _, c := range d.Calls {
		if c.Session == session && c.ID > after && len(list) < limit && err == nil {
			list = append(list, c)
		}
	}
	return list, err
}

// Artifacts lists Products.
func (d *Desk) Artifacts(
	ctx context.Context, id connectors.Identity, session permissions.ID, execution, after int64, limit int,
) (list []permissions.Artifact, err error) {
	_, err = d.Session(ctx, id, session)
	for _, a := range d.Products {
		if (execution == 0 || a.Execution == execution) && a.ID > after && len(list) < limit && err == nil {
			list = append(list, a)
		}
	}
	return list, err
}

// StopAll stops everything.
func (d *Desk) StopAll(ctx context.Context, id connectors.Identity) (cancelled int, err error) {
	who, err := d.Who(id)
	if err != nil {
		return 0, err
	}
	return d.Registry.StopAll(ctx, who, id.Via)
}

// Resume is for the operator and whoever stopped.
func (d *Desk) Resume(_ context.Context, id connectors.Identity) error {
	who, err := d.Who(id)
	if err != nil {
		return err
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	switch {
	case d.store.fail != nil:
		return d.store.fail
	case d.store.stopped == "":
		return nil
	case !id.Operator && who != d.store.stopped:
		return permissions.NotYours()
	}
	d.store.stopped = ""
	d.store.record(permissions.Record{Type: permissions.AllResumed, At: time.Now().UTC(), Actor: who, Via: id.Via})
	return nil
}

// Health returns Channels.
func (d *Desk) Health() map[string]error { return d.Channels }

// ReachableVia lead to fay by phone.
func (d *Desk) ReachableVia() map[string][]string {
	return map[string][]string{"fay": {"telephone"}, "sam": {}}
}

// Contacts lists Channels; each reaches fay while it has no error.
func (d *Desk) Contacts() (all []connectors.Contact) {
	for name, err := range d.Channels {
		all = append(all, connectors.Contact{Channel: name, Health: err, People: map[string]error{"fay": nil}})
	}
	return all
}

// Waiting counts pending requests of all askers.
func (d *Desk) Waiting(context.Context, connectors.Identity) (count int, since time.Time, err error) {
	rows, err := d.store.pending("", "", 1000)
	if len(rows) > 0 {
		since = rows[0].CreatedAt
	}
	return len(rows), since, err
}

// StoppedBy is who stopped.
func (d *Desk) StoppedBy() string {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	return d.store.stopped
}

// CreateToken makes a token.
func (d *Desk) CreateToken(
	_ context.Context, id connectors.Identity, name, person string, expires time.Duration,
) (permissions.Secret, permissions.Token, error) {
	if !id.Operator {
		return "", permissions.Token{}, permissions.OperatorOnly()
	}
	if err := permissions.CheckTokenName(name); err != nil {
		return "", permissions.Token{}, permissions.Invalid(err)
	}
	secret, now := permissions.NewSecret(), time.Now().UTC()
	hash, _ := secret.Hash()
	t := permissions.Token{ID: permissions.NewID(now), Name: name, Person: person, Hash: hash, CreatedAt: now}
	if expires != 0 {
		t.ExpiresAt = now.Add(expires)
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	d.store.tokens = append(d.store.tokens, t)
	return secret, t, d.store.fail
}

// Tokens lists those that are not revoked.
func (d *Desk) Tokens(_ context.Context, id connectors.Identity) (list []permissions.Token, err error) {
	if !id.Operator {
		return nil, permissions.OperatorOnly()
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	for _, t := range d.store.tokens {
		if t.RevokedAt.IsZero() {
			list = append(list, t)
		}
	}
	return list, d.store.fail
}

// RevokeToken revokes by id or name.
func (d *Desk) RevokeToken(_ context.Context, id connectors.Identity, name string) (list []permissions.Token, err error) {
	if !id.Operator {
		return nil, permissions.OperatorOnly()
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	for i := range d.store.tokens {
		t := &d.store.tokens[i]
		if t.RevokedAt.IsZero() && (t.Name == name || string(t.ID) == name) {
			t.RevokedAt = time.Now().UTC()
			list = append(list, *t)
		}
	}
	if len(list) == 0 {
		return nil, permissions.Unknown(name)
	}
	return list, d.store.fail
}

// Prove finds who asks with a token.
func (d *Desk) Prove(_ context.Context, secret permissions.Secret, uid int) (permissions.Caller, error) {
	hash, ok := secret.Hash()
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	if d.store.fail != nil {
		return permissions.Caller{}, d.store.fail
	}
	for _, t := range d.store.tokens {
		if ok && t.Hash == hash && t.Valid(time.Now()) {
			return t.Caller(uid), nil
		}
	}
	return permissions.Caller{}, permissions.UnknownToken()
}

// Bear returns ctx unchanged: revoking a token ends no call here.
func (*Desk) Bear(ctx context.Context, _ permissions.Secret) (_ context.Context, done func()) {
	return ctx, func() {}
}

// Events lists events.
func (d *Desk) Events(
	_ context.Context, id connectors.Identity, after int64, limit int,
) (list []permissions.Event, seen int64, err error) {
	who, err := d.Who(id)
	if err != nil {
		return nil, 0, err
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	switch {
	case d.store.fail != nil:
		return nil, 0, d.store.fail
	case after > 0 && after < d.store.pruned:
		return nil, 0, permissions.Pruned(d.store.pruned + 1)
	}
	seen = after
	for _, e := range d.store.audit[min(max(after, d.store.pruned), int64(len(d.store.audit))):] {
		if limit--; limit < 0 {
			break
		}
		seen = e.Seq
		r := d.store.rows[e.Request]
		h := permissions.Event{Entry: e, Session: r.Session, Asked: r.Asked}.Locate()
		if e.Type.HasWords() {
			h.About = r
		}
		if slices.Contains(permissions.EventsOf(), e.Type) && (id.Operator || h.VisibleTo(who)) {
			list = append(list, h)
		}
	}
	return list, seen, nil
}

// Prune drops the audit entries before seq first.
func (d *Desk) Prune(first int64) {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	d.store.pruned = first - 1
}

// Changed returns a channel that the next audit entry closes.
func (d *Desk) Changed() <-chan struct{} {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	return d.store.changed
}
