package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/directory"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

// Pending lists what awaits an identity's answer, for the operator everything, oldest first.
func (d *Dispatch) Pending(
	ctx context.Context, id connectors.Identity, after permissions.ID, limit int,
) ([]permissions.RequestView, error) {
	who, err := d.dir.MaySeeRequestsOf(id)
	if err != nil {
		return nil, err
	}
	rows, err := d.store.Pending(ctx, who, after, limit)
	if err != nil {
		return nil, shared.Unread(err)
	}
	ids := make([]permissions.ID, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	all, err := d.store.Copies(ctx, ids...)
	if err != nil {
		return nil, shared.Broken(err)
	}
	of := map[permissions.ID][]permissions.Copy{}
	for _, cp := range all {
		of[cp.Request] = append(of[cp.Request], cp)
	}
	list := make([]permissions.RequestView, 0, len(rows))
	for _, r := range rows {
		standing := d.view(r, of[r.ID])
		for i, cp := range standing.Copies {
			standing.Copies[i] = d.asShown(cp)
		}
		standing.Request = d.dir.Settings().Shown(r, id.Via)
		list = append(list, standing)
	}
	return list, nil
}

// asShown returns a copy with the time since when its person can have seen it: one that is being sent may be answered by its code before
// that is confirmed, and one at a former account of theirs was not shown to them. So the answer does not depend on whether a changed
// account has been applied to the copy.
func (d *Dispatch) asShown(cp permissions.Copy) permissions.Copy {
	c, _ := d.dir.Channel(cp.Connector)
	checker, checks := c.(connectors.AddressChecker)
	p, _ := d.dir.Settings().Person(cp.Person)
	switch {
	case cp.SentAt.IsZero():
		cp.SentAt = d.Sending(cp)
	case checks && cp.Group == "" && !checker.SentTo(cmp.Or(cp.Ref, cp.Burst), p):
		cp.SentAt, cp.ChannelTime = time.Time{}, time.Time{}
	}
	return cp
}

// View returns a row with its code, its copies and its waiters.
func (d *Dispatch) View(ctx context.Context, r permissions.Request) (permissions.RequestView, error) {
	copies, err := d.store.Copies(ctx, r.ID)
	if err != nil {
		return permissions.RequestView{}, shared.Broken(err)
	}
	return d.view(r, copies), nil
}

func (d *Dispatch) view(r permissions.Request, copies []permissions.Copy) permissions.RequestView {
	return permissions.RequestView{
		Request: r, Code: d.store.Coder().Encode(r.Number), Copies: copies, Waiting: d.countWaiting(r),
		Editor:   d.dir.Settings().Editable(r) == nil && r.State == permissions.Pending,
		Keyboard: d.dir.Settings().KeyboardMayAnswer(r), Delayed: d.delayedChannels(r, copies),
	}
}

// delayedChannels returns the channels that do not deliver a pending request although it is due.
func (d *Dispatch) delayedChannels(r permissions.Request, copies []permissions.Copy) (channels []string) {
	for _, c := range d.dispatchers {
		name := c.connector.Name()
		if r.State == permissions.Pending && slices.ContainsFunc(copies, func(cp permissions.Copy) bool {
			return cp.Connector == name && cp.Failed == "" && cp.SentAt.IsZero() && c.isDelayed(cp)
		}) {
			channels = append(channels, name)
		}
	}
	return channels
}

// countWaiting returns how many callers wait for r. A session of ours always counts, even while it rests.
func (d *Dispatch) countWaiting(r permissions.Request) int {
	n := d.registry.Waiting(r.ID)
	if r.State == permissions.Pending && (r.Caller.IsOurs() || d.awaitLease != nil && r.LeftAt.IsZero()) { // perhaps for another daemon
		return max(n, 1)
	}
	return n
}

// Waiting returns how many requests await an identity's answer, for the operator all, and since when; zero if none does.
func (d *Dispatch) Waiting(ctx context.Context, id connectors.Identity) (count int, since time.Time, err error) {
	who, err := d.dir.MaySeeRequestsOf(id)
	if err != nil {
		return 0, time.Time{}, err
	}
	var after permissions.ID
	for {
		rows, err := d.store.Pending(ctx, who, after, shared.Page)
		if err != nil {
			return 0, time.Time{}, shared.Broken(err)
		}
		if count == 0 && len(rows) > 0 {
			since = rows[0].CreatedAt
			if id.Operator {
				count, err = d.CountPending(ctx)
				return count, since, err
			}
		}
		count += len(rows)
		if len(rows) < shared.Page {
			return count, since, nil
		}
		after = rows[len(rows)-1].ID
	}
}

// CountPending returns how many requests are pending.
func (d *Dispatch) CountPending(ctx context.Context) (int, error) {
	n, err := d.store.CountPending(ctx)
	return n, shared.Broken(err)
}

// Show returns one request by its id or its code, to its recipients and to the operator.
func (d *Dispatch) Show(ctx context.Context, id connectors.Identity, name string) (permissions.RequestView, error) {
	r, _, err := d.FindVisible(ctx, id, name)
	if err != nil {
		return permissions.RequestView{}, err
	}
	return d.View(ctx, r)
}

// WithRecentActivity adds what the caller did before a pending request, as an identity may see it.
func (d *Dispatch) WithRecentActivity(ctx context.Context, id connectors.Identity, v permissions.RequestView) permissions.RequestView {
	if who, err := d.dir.Who(id); err == nil && v.Request.State == permissions.Pending {
		v.Recent = d.recentOf(ctx, v.Request, permissions.Copy{Person: who})
	}
	return v
}

// FindVisible returns a request by its id or its code, and the name of the person, who may see it.
func (d *Dispatch) FindVisible(ctx context.Context, id connectors.Identity, name string) (permissions.Request, string, error) {
	who, err := d.dir.Who(id)
	if err != nil {
		return permissions.Request{}, "", err
	}
	ref, code := permissions.ID(name), ""
	if len(name) == permissions.CodeLength {
		ref, code = "", name
	}
	r, err := d.Named(ctx, ref, code)
	if err == nil && !id.Operator && !slices.Contains(r.Asked, who) {
		err = permissions.Unknown(name)
	}
	return r, who, err
}

// Named finds a request by its id or by its code.
func (d *Dispatch) Named(ctx context.Context, id permissions.ID, code string) (permissions.Request, error) {
	if id == "" {
		r, err := d.store.ByCode(ctx, code)
		return r, shared.Broken(err)
	}
	r, err := d.store.Read(ctx, id)
	return r, shared.Broken(err)
}

// Health returns the problem of each connector that reports one, with its clock or the machine's, or with accounts
// there, by the connector's name; nil for a healthy one.
func (d *Dispatch) Health() map[string]error {
	health := map[string]error{}
	for _, c := range d.dispatchers {
		if h, knows := c.connector.(connectors.HealthChecker); knows {
			health[c.connector.Name()] = d.health(h)
		}
		if why := c.skew(); why != nil {
			health[c.connector.Name()] = joinErrors(health[c.connector.Name()], why)
		}
	}
	for _, p := range d.dir.Settings().People {
		ill := slices.Clone(p.Suspended)
		for _, c := range d.dispatchers {
			if isLost(checkReachable(c.connector, p)) {
				ill = append(ill, c.connector.Name())
			}
		}
		for _, via := range ill {
			why := directory.AccountProblem(p, via)
			if c, on := d.dir.Channel(via); on && why == nil {
				why = checkReachable(c, p)
			}
			health[via] = joinErrors(health[via], why)
		}
	}
	return health
}

// health is that of a channel, or nil where another daemon has it.
func (d *Dispatch) health(of connectors.HealthChecker) error {
	if !d.IsSender() {
		return nil
	}
	return of.Health()
}

func joinErrors(before, why error) error {
	if before == nil {
		return why
	}
	return fmt.Errorf("%w; %w", before, why)
}

// ReachableVia returns the channels, without screens, by which each person can be reached, as far as these know.
func (d *Dispatch) ReachableVia() map[string][]string {
	ways := map[string][]string{}
	for _, p := range d.dir.Settings().People {
		ways[p.Name] = []string{}
		for _, c := range d.dispatchers {
			if _, screen := c.connector.(connectors.Screen); !screen && checkReachable(c.connector, p) == nil {
				ways[p.Name] = append(ways[p.Name], c.connector.Name())
			}
		}
	}
	return ways
}

// Contacts returns all enabled channels with the people whom each can reach now; without people, with the operator.
func (d *Dispatch) Contacts() []connectors.Contact {
	s := d.dir.Settings()
	people := s.People
	if len(people) == 0 {
		people = []connectors.Person{s.Operator()}
	}
	contacts := make([]connectors.Contact, len(d.dispatchers))
	for i, c := range d.dispatchers {
		_, screen := c.connector.(connectors.Screen)
		contacts[i] = connectors.Contact{Channel: c.connector.Name(), People: map[string]error{}, Suspended: map[string]error{}}
		if h, knows := c.connector.(connectors.HealthChecker); knows {
			contacts[i].Health = d.health(h)
		}
		for _, p := range people {
			if contacts[i].People[p.Name] = reachNow(c.connector, p); !screen && !d.IsSender() {
				contacts[i].People[p.Name] = checkReachable(c.connector, p)
			}
			if why := directory.AccountProblem(p, c.connector.Name()); why != nil && p.Locked == "" {
				contacts[i].Suspended[p.Name] = why
			}
		}
	}
	return contacts
}

// reachNow returns nil if a person can be reached at a connector now. Unlike [checkReachable] it includes temporary problems.
func reachNow(c connectors.Connector, p connectors.Person) error {
	if err := directory.AccountProblem(p, c.Name()); err != nil {
		return err
	}
	if reacher, knows := c.(connectors.ReachabilityChecker); knows {
		return reacher.Reach(p)
	}
	return nil
}
