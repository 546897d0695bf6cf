package wiretest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/daycared/daycared/permissions"
)

// store keeps requests in memory. It is as much of a [permissions.Store] as a test of a door needs.
type store struct {
	mu     sync.Mutex
	rows   map[permissions.ID]permissions.Request
	order  []permissions.ID
	copies map[permissions.ID][]permissions.Copy
	audit  []permissions.Entry
	fail   error // of every method, when set
}

var _ permissions.Store = (*store)(nil)

func (s *store) Open(_ context.Context, o permissions.Opening) (permissions.Request, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return permissions.Request{}, false, s.fail
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
	return r, true, nil
}

func (s *store) Apply(_ context.Context, id permissions.ID, e permissions.Event) (permissions.Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return permissions.Change{}, s.fail
	}
	r, found := s.rows[id]
	if !found {
		return permissions.Change{}, permissions.Unknown(string(id))
	}
	c, err := permissions.Step(r, e)
	if err != nil {
		return c, err
	}
	s.rows[id] = c.After
	for _, record := range c.Records {
		e := permissions.Entry{Chain: "test", Seq: int64(len(s.audit) + 1), Record: record}
		if n := len(s.audit); n > 0 {
			e.Prev = s.audit[n-1].Hash
		}
		e.Hash = e.ComputeHash()
		s.audit = append(s.audit, e)
	}
	return c, nil
}

func (s *store) Read(_ context.Context, id permissions.ID) (permissions.Request, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, found := s.rows[id]
	if s.fail != nil {
		return r, s.fail
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

// pending lists at most limit pending rows put to asked (empty: to anybody) after the one named.
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
