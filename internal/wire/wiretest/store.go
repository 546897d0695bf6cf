package wiretest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/registry"
)

// store keeps requests in memory, with as much of [registry.Store] as the tests of a server need.
type store struct {
	mu      sync.Mutex
	rows    map[permissions.ID]permissions.Request
	order   []permissions.ID
	copies  map[permissions.ID][]permissions.Copy
	grants  []permissions.Grant
	tokens  []permissions.Token
	stopped string // by whom
	audit   []permissions.Entry
	pruned  int64         // number of audit entries pruned from the start
	changed chan struct{} // closed by the next audit entry
	fail    error         // of every method, if set
}

var _ registry.Store = (*store)(nil)

func newStore() *store {
	return &store{
		rows: map[permissions.ID]permissions.Request{}, copies: map[permissions.ID][]permissions.Copy{},
		changed: make(chan struct{}),
	}
}

func (s *store) Open(_ context.Context, o permissions.Opening) (permissions.Request, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return permissions.Request{}, false, s.fail
	}
	if s.stopped != "" {
		return permissions.Request{}, false, permissions.Stopped(s.stopped)
	}
	for _, id := range s.order {
		r := s.rows[id]
		same := r.Digest == o.Request.Digest
		switch {
		case r.Key != "" && r.Key == o.Request.Key && !same:
			return permissions.Request{}, false, permissions.KeyTaken()
		case r.Key == o.Request.Key && same && (r.Key != "" || r.State == permissions.Pending):
			return r, false, nil
		}
	}
	if o.PerCaller > 0 && len(s.order) >= o.PerCaller {
		return permissions.Request{}, false, permissions.Limit(time.Minute)
	}
	r := o.Request
	r.Number = int64(len(s.order) + 1)
	s.rows[r.ID], s.copies[r.ID] = r, o.Copies
	s.order = append(s.order, r.ID)
	s.record(permissions.Record{Type: permissions.RequestCreated, At: r.CreatedAt, Request: r.ID, Actor: r.Caller.Name})
	return r, true, nil
}

func (s *store) Apply(_ context.Context, id permissions.ID, e permissions.Transition) (permissions.Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return permissions.Change{}, s.fail
	}
	r, found := s.rows[id]
	if !found {
		return permissions.Change{}, permissions.Unknown(string(id))
	}
	if _, use := e.(permissions.Use); use && s.stopped != "" {
		return permissions.Change{}, permissions.Stopped(s.stopped)
	}
	return s.apply(r, e)
}

// apply commits an event's change. The caller holds the lock, as for record.
func (s *store) apply(r permissions.Request, e permissions.Transition) (permissions.Change, error) {
	c, err := permissions.Step(r, e)
	if err != nil {
		return c, err
	}
	s.rows[r.ID] = c.After
	s.grants = append(s.grants, c.Grants...)
	for i := range s.grants {
		if g := &s.grants[i]; c.Voided() && g.Request == r.ID {
			g.RevokedAt = c.After.VoidAt
		}
	}
	for _, record := range c.Records {
		s.record(record)
	}
	return c, nil
}

func (s *store) record(r permissions.Record) {
	e := permissions.Entry{Chain: "test", Seq: int64(len(s.audit) + 1), Record: r}
	if n := len(s.audit); n > 0 {
		e.Prev = s.audit[n-1].Hash
	}
	e.Hash = e.ComputeHash()
	s.audit = append(s.audit, e)
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *store) Read(_ context.Context, id permissions.ID) (permissions.Request, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, found := s.rows[id]
	if s.fail != nil {
		return permissions.Request{}, s.fail
	}
	if !found {
		return r, permissions.Unknown(string(id))
	}
	return r, nil
}

func (s *store) Due(
	context.Context, time.Time, time.Duration, int,
) (due []permissions.Due, next time.Time, err error) {
	return nil, time.Time{}, nil
}

func (s *store) EndGrantsNow(
	context.Context, []permissions.ID, time.Time,
) (ended []permissions.Grant, err error) {
	return nil, nil
}

func (s *store) EndGrants(context.Context, time.Time, int) (ended []permissions.Grant, next time.Time, err error) {
	return nil, time.Time{}, nil
}

func (s *store) Stop(_ context.Context, by, via string, at time.Time) (cancelled []permissions.Request, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return nil, s.fail
	}
	for _, id := range s.order {
		if c, err := s.apply(s.rows[id], permissions.Withdraw{By: by, Via: via, At: at}); err == nil {
			cancelled = append(cancelled, c.After)
		}
	}
	s.stopped = by
	s.record(permissions.Record{Type: permissions.AllStopped, At: at, Actor: by, Via: via})
	return cancelled, nil
}

// pending lists at most limit pending rows for asked (empty: anybody) after the given one.
func (s *store) pending(asked string, after permissions.ID, limit int) (rows []permissions.Request, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	started := after == ""
	for _, id := range s.order {
		r := s.rows[id]
		if started && len(rows) < limit && r.State == permissions.Pending &&
			(asked == "" || slices.Contains(r.Asked, asked)) {
			rows = append(rows, r)
		}
		started = started || id == after
	}
	return rows, s.fail
}

// byCode finds the row of a code.
func (s *store) byCode(coder permissions.Coder, code string) (permissions.ID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _ := coder.Decode(code)
	for _, id := range s.order {
		if s.rows[id].Number == n {
			return id, nil
		}
	}
	return "", permissions.Unknown(code)
}
