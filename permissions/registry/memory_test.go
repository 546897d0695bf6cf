package registry

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// memory is a Store in a map. Its hooks are called without its lock, where other calls may interleave.
type memory struct {
	beforeOpen  func()                                                  // before Open commits
	afterOpen   func(created bool)                                      // after it has
	beforeApply func(id permissions.ID, e permissions.Transition) error // an error is returned instead of applying
	afterApply  func(e permissions.Transition)                          // before the registry knows
	afterDue    func()

	mu           sync.Mutex
	rows         map[permissions.ID]permissions.Request
	grants       []permissions.Grant // not over yet, the soonest first
	broken       error
	brokenGrants error          // of EndGrants only
	damaged      permissions.ID // an unreadable row
	loses        bool           // the operation succeeds, but reports a failure
	applied      []permissions.Transition
}

var _ Store = (*memory)(nil)

func newMemory(rows ...permissions.Request) *memory {
	m := &memory{rows: map[permissions.ID]permissions.Request{}}
	for _, r := range rows {
		m.rows[r.ID] = r
	}
	return m
}

func (m *memory) Open(_ context.Context, o permissions.Opening) (r permissions.Request, created bool, err error) {
	call(m.beforeOpen)
	r, created, err = m.insert(o)
	if err == nil && m.loses {
		return permissions.Request{}, false, permissions.ErrBroken
	}
	if err == nil && m.afterOpen != nil {
		m.afterOpen(created)
	}
	return r, created, err
}

func (m *memory) insert(o permissions.Opening) (r permissions.Request, created bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return permissions.Request{}, false, m.broken
	}
	for _, old := range m.rows {
		if old.Caller.Name != o.Request.Caller.Name {
			continue
		}
		switch {
		case old.Key != "" && old.Key == o.Request.Key && old.Digest != o.Request.Digest:
			return permissions.Request{}, false, permissions.KeyTaken()
		case old.Key != "" && old.Key == o.Request.Key,
			o.Request.Key == "" && old.State == permissions.Pending && old.Digest == o.Request.Digest:
			return old, false, nil
		}
	}
	r = o.Request
	r.Call = ""
	m.rows[r.ID] = r
	return r, true, nil
}

func (m *memory) Apply(ctx context.Context, id permissions.ID, e permissions.Transition) (permissions.Change, error) {
	c, err := m.apply(ctx, id, e)
	if err == nil && m.loses {
		return permissions.Change{}, permissions.ErrBroken
	}
	if m.afterApply != nil {
		m.afterApply(e)
	}
	return c, err
}

func (m *memory) apply(_ context.Context, id permissions.ID, e permissions.Transition) (permissions.Change, error) {
	if m.beforeApply != nil {
		if err := m.beforeApply(id, e); err != nil {
			return permissions.Change{}, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return permissions.Change{}, m.broken
	}
	r, ok := m.rows[id]
	if !ok {
		return permissions.Change{}, permissions.Unknown(string(id))
	}
	m.applied = append(m.applied, e)
	c, err := permissions.Step(r, e)
	if err == nil {
		m.rows[id] = c.After
	}
	return c, err
}

func (m *memory) Read(_ context.Context, id permissions.ID) (permissions.Request, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.rows[id]
	if m.broken != nil || id == m.damaged && ok {
		return permissions.Request{}, cmp.Or(m.broken, permissions.ErrBroken)
	}
	if !ok {
		return permissions.Request{}, permissions.Unknown(string(id))
	}
	return r, nil
}

func (m *memory) Due(_ context.Context, now time.Time, redeem time.Duration, limit int) ([]permissions.Due, time.Time, error) {
	if m.afterDue != nil {
		defer m.afterDue()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return nil, time.Time{}, m.broken
	}
	type entry struct {
		at  time.Time
		due permissions.Due
	}
	var entries []entry
	for _, r := range m.rows {
		if r.State == permissions.Pending {
			entries = append(entries, entry{r.Deadline, permissions.Due{ID: r.ID, Event: permissions.Expire{At: now}}})
		} else if r.State == permissions.Approved && r.CollectedAt.IsZero() && r.VoidAt.IsZero() && r.LapsedAt.IsZero() {
			entries = append(entries, entry{r.DecidedAt.Add(redeem), permissions.Due{ID: r.ID, Event: permissions.Lapse{At: now}}})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return a.at.Compare(b.at) })
	var due []permissions.Due
	for _, e := range entries {
		if e.at.After(now) {
			return due, e.at, nil
		}
		if len(due) < limit {
			due = append(due, e.due)
		}
	}
	return due, time.Time{}, nil
}

// EndGrants ends the grants, in order.
func (m *memory) EndGrants(_ context.Context, now time.Time, limit int) (ended []permissions.Grant, next time.Time, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil || m.brokenGrants != nil {
		return nil, time.Time{}, cmp.Or(m.broken, m.brokenGrants)
	}
	for len(m.grants) > 0 && len(ended) < limit {
		if m.grants[0].Until.After(now) {
			return ended, m.grants[0].Until, nil
		}
		ended, m.grants = append(ended, m.grants[0]), m.grants[1:]
	}
	return ended, time.Time{}, nil
}

func (m *memory) EndGrantsNow(_ context.Context, ids []permissions.ID, _ time.Time) (ended []permissions.Grant, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.grants = slices.DeleteFunc(m.grants, func(g permissions.Grant) bool {
		over := slices.Contains(ids, g.ID)
		if over {
			ended = append(ended, g)
		}
		return over
	})
	return ended, cmp.Or(m.broken, m.brokenGrants)
}

func (m *memory) Stop(_ context.Context, by, via string, at time.Time) (cancelled []permissions.Request, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, r := range m.rows {
		if c, err := permissions.Step(r, permissions.Withdraw{By: by, Via: via, At: at}); err == nil {
			m.rows[id] = c.After
			cancelled = append(cancelled, c.After)
		}
	}
	if m.loses {
		return nil, permissions.ErrBroken
	}
	return cancelled, m.broken
}

func (m *memory) row(id permissions.ID) permissions.Request {
	return must(m.Read(context.Background(), id))
}

// breakDown makes every call fail, until it is given nil.
func (m *memory) breakDown(err error) {
	m.mu.Lock()
	m.broken = err
	m.mu.Unlock()
}

// events returns the types of the applied events.
func (m *memory) events() (types []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.applied {
		types = append(types, fmt.Sprintf("%T", e)[len("permissions."):])
	}
	return types
}

func call(hook func()) {
	if hook != nil {
		hook()
	}
}

// room is a registry over a memory, with a clock that can be set and its log.
type room struct {
	*Registry
	store *memory
	jump  atomic.Int64 // what the wall clock is ahead of time.Now
	began time.Time
	log   *lines
}

const redeemWindow = 10 * time.Minute

func newRoom(rows ...permissions.Request) *room {
	m := &room{store: newMemory(rows...), log: &lines{}, began: time.Now()}
	m.Registry = New(m.store, timing.Clock{Now: m.wall, Elapsed: m.elapsed}, redeemWindow, slog.New(slog.NewTextHandler(m.log, nil)))
	return m
}

func (m *room) elapsed() time.Duration { return time.Since(m.began) }

func (m *room) wall() time.Time { return time.Now().Add(time.Duration(m.jump.Load())) }

// fresh is a request that is opened now, with a deadline in a quarter of an hour; change may modify it.
func (m *room) fresh(change func(*permissions.Request)) permissions.Request {
	r := theirs(toolRequest())
	r.CreatedAt = m.wall().UTC()
	r.ID, r.Deadline = permissions.NewID(r.CreatedAt), r.CreatedAt.Add(15*time.Minute)
	if change != nil {
		change(&r)
	}
	r.Digest = permissions.ComputeDigest(r)
	return r
}

// ask registers a call that must be accepted.
func (m *room) ask(t testing.TB, r permissions.Request) (*Waiter, permissions.Request) {
	t.Helper()
	w, stored, _, err := m.Register(t.Context(), permissions.Opening{Request: r}, false)
	if err != nil {
		t.Fatalf("register: %v", err)
	}
	return w, stored
}

// decide is a person's answer now.
func (m *room) decide(t testing.TB, id permissions.ID, a permissions.Answer) permissions.Change {
	t.Helper()
	c, err := m.Resolve(t.Context(), id, permissions.Cast{Vote: permissions.Vote{By: "fay", Via: "terminal", Answer: a, At: m.wall()}})
	if err != nil {
		t.Fatalf("decide: %v", err)
	}
	return c
}

// rings returns how w was woken; it must have been.
func rings(t testing.TB, w *Waiter) (permissions.State, error) {
	t.Helper()
	over, end := context.WithCancel(t.Context())
	end()
	r, err := w.Wait(over)
	if errors.Is(err, context.Canceled) {
		t.Error("it has not rung")
	}
	return r.State, err
}

// silent checks that w was not woken.
func silent(t testing.TB, w *Waiter) {
	t.Helper()
	over, end := context.WithCancel(t.Context())
	end()
	if r, err := w.Wait(over); !errors.Is(err, context.Canceled) {
		t.Errorf("it rang with %s, %v", r.State, err)
	}
}

// lines is a log with concurrent writers.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return cmp.Or(l.b.String(), "nothing")
}
