package simulation

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// shelf is what the way of a request needs of an [engine.Store], in memory. It outlives the engines over it, as a disk
// does. What it has no method for, no day here comes to: the embedded store is nil.
type shelf struct {
	engine.Store
	now   func() time.Time
	coder permissions.Coder
	after func(was, is *rows) // sees every commit; nil: nobody
	wrong wrong               // what is broken on purpose

	mu sync.Mutex
	rows
}

// rows are all that is kept. What is in them is replaced and never changed in place.
type rows struct {
	requests  []row // by number
	copies    []permissions.Copy
	grants    []grant
	uses      []use
	notices   []permissions.Notice
	waits     []permissions.Wait
	audit     []permissions.Entry
	made      int // notices
	stopped   string
	stoppedAt time.Time
	alive     time.Time
	cursors   map[string]int64
}

type row struct {
	permissions.Request
	keyless bool // its key finds it no more
}

type grant struct {
	permissions.Grant
	ended bool
}

type use struct {
	grant  permissions.ID
	number int64
}

const chain = "simulated"

func newShelf(now func() time.Time, key byte) *shelf {
	return &shelf{now: now, coder: permissions.Coder{Key: [32]byte{key}}}
}

// write does one change whole, or not at all.
func (s *shelf) write(do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.rows
	s.requests, s.copies = slices.Clone(s.requests), slices.Clone(s.copies)
	s.grants, s.uses, s.notices = slices.Clone(s.grants), slices.Clone(s.uses), slices.Clone(s.notices)
	s.audit = slices.Clip(s.audit)
	if err := do(); err != nil {
		s.rows = was
		return err
	}
	if s.after != nil {
		s.after(&was, &s.rows)
	}
	return nil
}

func (s *shelf) read(do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return do()
}

// kept is a time as a store keeps it.
func kept(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond).Round(0)
}

// asStored is r as a later read gives it.
func asStored(r permissions.Request) permissions.Request {
	r.Leads = permissions.Leads{}
	for _, t := range []*time.Time{
		&r.CreatedAt, &r.Deadline, &r.EscalateAt, &r.DecidedAt, &r.UsedAt, &r.CollectedAt, &r.VoidAt, &r.LapsedAt, &r.LeftAt,
		&r.EarlierAt,
	} {
		*t = kept(*t)
	}
	r.Reminders = slices.Clone(r.Reminders)
	for i, t := range r.Reminders {
		r.Reminders[i] = kept(t)
	}
	r.Votes = slices.Clone(r.Votes)
	for i := range r.Votes {
		r.Votes[i].At = kept(r.Votes[i].At)
	}
	r.WantedTimeout, r.HookStage, r.Harmless, r.FollowUpExpected, r.OnlyTitle, r.ProcessTimeout, r.Call = 0, "", false, false, false, 0, ""
	return r
}

func (t *rows) find(id permissions.ID) (*row, error) {
	if i := slices.IndexFunc(t.requests, func(r row) bool { return r.ID == id }); i >= 0 {
		return &t.requests[i], nil
	}
	return nil, permissions.Unknown(string(id))
}

// position is the number of a request, 0 for none.
func (t *rows) position(id permissions.ID) (int64, error) {
	if id == "" {
		return 0, nil
	}
	r, err := t.find(id)
	if err != nil {
		return 0, err
	}
	return r.Number, nil
}

// Open is [registry.Store].
func (s *shelf) Open(_ context.Context, o permissions.Opening) (r permissions.Request, created bool, err error) {
	err = s.write(func() error {
		if s.stopped != "" {
			return permissions.Stopped(s.stopped)
		}
		found, err := s.joined(&o)
		if err != nil {
			return err
		}
		if found != nil {
			r = found.Request
			return nil
		}
		if err := s.limited(o); err != nil {
			return err
		}
		r, err = s.insert(o)
		if created = true; err == nil && r.State == permissions.Pending && o.Wait.Kind != "" {
			o.Wait.Request = r.ID
			s.waits = append(slices.Clone(s.waits), o.Wait)
		}
		return err
	})
	if err != nil {
		return permissions.Request{}, false, err
	}
	return r, created, nil
}

// ahead is how far what happened may lie in the future before the clock counts as set back.
const ahead = time.Minute

// joined is the request that o joins, nil for none. It notes in o which answer is over.
func (t *rows) joined(o *permissions.Opening) (*row, error) {
	want, now := o.Request, kept(o.Request.CreatedAt)
	if r, err := t.find(want.ID); err == nil {
		if r.Caller.Name != want.Caller.Name || r.Digest != want.Digest {
			return nil, permissions.KeyTaken()
		}
		return r, nil
	}
	if want.Key != "" {
		return t.byKey(o, now)
	}
	if want.State != permissions.Pending || want.Caller.Name == permissions.Anonymous {
		return nil, nil
	}
	var equal, left *row
	for i := range t.requests {
		r := &t.requests[i]
		if r.Caller.Name != want.Caller.Name || r.Session != want.Session || r.Digest != want.Digest || r.Key != "" {
			continue
		}
		if r.State == permissions.Pending && r.Deadline.After(now) && equal == nil {
			equal = r
		}
		withdrawn := r.State == permissions.Cancelled && r.DecidedBy == ""
		waits := r.State != permissions.Pending && r.CollectedAt.IsZero() && r.LapsedAt.IsZero() && r.UsedAt.IsZero() && !withdrawn &&
			r.DecidedVia != permissions.ViaGrant && r.DecidedAt.After(now.Add(-o.RedeemWindow)) && !r.DecidedAt.After(now.Add(ahead))
		if waits && (left == nil || r.DecidedAt.Before(left.DecidedAt)) {
			left = r
		}
	}
	if equal != nil {
		return equal, nil
	}
	return left, nil
}

func (t *rows) byKey(o *permissions.Opening, now time.Time) (*row, error) {
	want := o.Request
	i := slices.IndexFunc(t.requests, func(r row) bool {
		return r.Caller.Name == want.Caller.Name && r.Key == want.Key && !r.keyless
	})
	if i < 0 {
		return nil, nil
	}
	r := &t.requests[i]
	fresh := r.LapsedAt.IsZero() && r.VoidAt.IsZero() && now.Before(r.DecidedAt.Add(o.RedeemWindow)) && !r.DecidedAt.After(now.Add(ahead))
	switch {
	case r.State != permissions.Pending && !want.Caller.IsOurs() && (!fresh || r.AllowedByPolicy() && want.State == permissions.Pending):
		r.keyless = true
		if r.Answer != "" && !r.TimedOut && !r.Defaulted && r.Digest == want.Digest {
			o.Request.EarlierAt = r.DecidedAt
		}
		return nil, nil
	case r.Digest != want.Digest:
		return nil, permissions.KeyTaken()
	}
	return r, nil
}

// limited refuses a request beyond the limits, and what was denied twice a moment ago.
func (t *rows) limited(o permissions.Opening) error {
	want := o.Request
	if want.State != permissions.Pending {
		return nil
	}
	now := kept(want.CreatedAt)
	var denied []time.Time
	pending, mine := 0, 0
	for _, r := range t.requests {
		own := r.Caller.Name == want.Caller.Name
		if r.State == permissions.Pending {
			pending++
			if own {
				mine++
			}
		}
		if own && r.State == permissions.Denied && permissions.ActionDigest(r.Request) == permissions.ActionDigest(want) &&
			r.DecidedAt.After(now.Add(-o.CoolDown)) && !r.DecidedAt.After(now.Add(ahead+24*time.Hour)) {
			denied = append(denied, r.DecidedAt)
		}
	}
	slices.SortFunc(denied, func(a, b time.Time) int { return b.Compare(a) })
	const retry = 10 * time.Second
	switch {
	case o.CoolDown > 0 && len(denied) >= 2:
		return permissions.CoolingDown(denied[1].Sub(want.CreatedAt.Add(-o.CoolDown)))
	case o.PromptPause > 0:
		return permissions.Limit(o.PromptPause, "prompts_per_minute", "requests_per_hour", "bytes_per_hour")
	case o.Total > 0 && pending >= o.Total:
		return permissions.Limit(retry, "pending_total")
	case o.PerCaller > 0 && mine >= o.PerCaller:
		return permissions.Limit(retry, "pending_per_caller")
	}
	return nil
}

// insert adds the row, its copies, its uses of grants and its audit records.
func (s *shelf) insert(o permissions.Opening) (permissions.Request, error) {
	r := asStored(o.Request)
	r.Votes, r.Number = nil, int64(len(s.requests)+1)
	s.requests = append(s.requests, row{Request: r})
	for _, c := range o.Copies {
		c.Request = r.ID
		c.DueAt, c.SentAt = kept(c.DueAt), kept(c.SentAt)
		s.copies = append(s.copies, c)
	}
	if r.State == permissions.Approved {
		if err := s.useGrants(r, r.CreatedAt); err != nil {
			return r, err
		}
	}
	for _, record := range permissions.Opened(r) {
		s.tell(record)
	}
	return r, nil
}
