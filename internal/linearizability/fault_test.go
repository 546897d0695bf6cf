package linearizability_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// A store with any one fault is detected: the check can fail.
func TestAFaultIsFound(t *testing.T) {
	faults := []struct {
		name    string
		through func(engine.Store) engine.Store
	}{
		{"a second decision is taken", func(s engine.Store) engine.Store { return &doubled{memory{Store: s}} }},
		{"an approval for once is given out twice", func(s engine.Store) engine.Store { return &generous{s} }},
		{"a reader is told what was before", func(s engine.Store) engine.Store { return &stale{memory{Store: s}} }},
		{"a vote counts twice", func(s engine.Store) engine.Store { return &twofold{s} }},
		{"an answer counts after the time is over", func(s engine.Store) engine.Store { return &timeless{s} }},
		{"a tap that comes again is another", func(s engine.Store) engine.Store { return &keyless{s} }},
		{"the kill switch cancels nothing", func(s engine.Store) engine.Store { return &unstopped{s} }},
	}
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			const most = 40_000 // calls; a few hundred are enough except for the stop
			s := newEnv(t, fault.through)
			all := &tally{}
			k := &switches{clock: s.clock, who: "fay", at: s.people["fay"]}
			err := s.run(t.Context(), 8, 8, uint64(time.Now().UnixNano()), most, all, k)
			var found *violation
			if !errors.As(err, &found) {
				t.Fatalf("%d calls, and nothing was found but %v\n%s", all.calls.Load(), err, all)
			}
			t.Logf("found after %d calls, in a history of %d", all.calls.Load(), len(found.ops))
		})
	}
}

// memory keeps every row as it was while pending.
type memory struct {
	engine.Store
	rows sync.Map
}

func (m *memory) Apply(ctx context.Context, id permissions.ID, e permissions.Transition) (permissions.Change, error) {
	c, err := m.Store.Apply(ctx, id, e)
	if err == nil && c.Settled() {
		m.rows.Store(id, c.Before)
	}
	return c, err
}

func (m *memory) before(id permissions.ID) (permissions.Request, bool) {
	r, known := m.rows.Load(id)
	if !known {
		return permissions.Request{}, false
	}
	return r.(permissions.Request), true
}

// doubled loses the compare-and-set: the second is told that it decided.
type doubled struct{ memory }

func (d *doubled) Apply(ctx context.Context, id permissions.ID, e permissions.Transition) (permissions.Change, error) {
	c, err := d.memory.Apply(ctx, id, e)
	if was, known := d.before(id); known && errors.Is(err, permissions.ErrSettled) {
		return permissions.Step(was, e)
	}
	return c, err
}

// generous forgets that an approval was used.
type generous struct{ engine.Store }

func (g *generous) Apply(ctx context.Context, id permissions.ID, e permissions.Transition) (permissions.Change, error) {
	c, err := g.Store.Apply(ctx, id, e)
	_, use := e.(permissions.Use)
	if use && errors.Is(err, permissions.ErrNoUse) && c.Before.State == permissions.Approved && c.Before.VoidAt.IsZero() {
		return permissions.Change{Before: c.Before, After: c.Before}, nil
	}
	return c, err
}

// stale tells a reader of an answer that there is none yet.
type stale struct{ memory }

func (s *stale) Apply(ctx context.Context, id permissions.ID, e permissions.Transition) (permissions.Change, error) {
	c, err := s.memory.Apply(ctx, id, e)
	_, reads := e.(permissions.Collect)
	if was, known := s.before(id); known && reads && err == nil {
		c.After = was
	}
	return c, err
}

// twofold counts an approval for a second person as well.
type twofold struct{ engine.Store }

func (f *twofold) Apply(ctx context.Context, id permissions.ID, e permissions.Transition) (permissions.Change, error) {
	c, err := f.Store.Apply(ctx, id, e)
	cast, votes := e.(permissions.Cast)
	if err != nil || !votes || c.Vote == nil || c.After.State != permissions.Pending {
		return c, err
	}
	for _, other := range c.After.Asked {
		if !c.After.HasVoted(other) {
			cast.Vote.By, cast.Vote.Key = other, ""
			return f.Store.Apply(ctx, id, cast)
		}
	}
	return c, err
}

// timeless stops time for deciders.
type timeless struct{ engine.Store }

func (p *timeless) Apply(ctx context.Context, id permissions.ID, e permissions.Transition) (permissions.Change, error) {
	switch event := e.(type) {
	case permissions.Expire:
		return permissions.Change{}, permissions.ErrNotDue
	case permissions.Cast:
		event.Vote.At = event.Vote.At.Add(-time.Hour)
		e = event
	}
	return p.Store.Apply(ctx, id, e)
}

// keyless does not recognise a repeated tap, and takes it for a new one.
type keyless struct{ engine.Store }

func (k *keyless) Apply(ctx context.Context, id permissions.ID, e permissions.Transition) (permissions.Change, error) {
	if cast, votes := e.(permissions.Cast); votes {
		cast.Vote.Key = ""
		e = cast
	}
	return k.Store.Apply(ctx, id, e)
}

// unstopped ignores a stop.
type unstopped struct{ engine.Store }

func (u *unstopped) Stop(context.Context, string, string, time.Time) ([]permissions.Request, error) {
	return nil, nil
}

func (u *unstopped) Resume(context.Context, string, string, bool, time.Time) error { return nil }
