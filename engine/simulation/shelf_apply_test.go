package simulation

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Apply is [registry.Store].
func (s *shelf) Apply(_ context.Context, id permissions.ID, e permissions.Transition) (permissions.Change, error) {
	var c permissions.Change
	var refused error
	err := s.write(func() error {
		r, err := s.find(id)
		if err != nil {
			return err
		}
		before := r.Request
		if s.wrong.row != nil {
			before = s.wrong.row(before, e)
		}
		c = permissions.Change{Before: before, After: before}
		if s.known(e) {
			return nil
		}
		if s.stopped != "" && allows(e) {
			refused = permissions.Stopped(s.stopped)
			return nil
		}
		if c, refused = s.step(before, e); refused == nil && !c.Empty() {
			c.After = asStored(c.After)
			return s.commit(c)
		}
		return nil
	})
	if err != nil {
		return permissions.Change{}, err
	}
	return c, refused
}

// allows reports whether e may not happen while everything is stopped.
func allows(e permissions.Transition) bool {
	switch e.(type) {
	case permissions.Cast, permissions.Reply, permissions.Use:
		return true
	}
	return false
}

// known reports whether e is a vote that came before.
func (t *rows) known(e permissions.Transition) bool {
	cast, votes := e.(permissions.Cast)
	if !votes || cast.Vote.Key == "" {
		return false
	}
	return slices.ContainsFunc(t.requests, func(r row) bool {
		return slices.ContainsFunc(r.Votes, func(v permissions.Vote) bool { return v.Key == cast.Vote.Key })
	})
}

// step is [permissions.Step], but that nothing is used that rests on grants that are over.
func (t *rows) step(before permissions.Request, e permissions.Transition) (permissions.Change, error) {
	c, refused := permissions.Step(before, e)
	use, uses := e.(permissions.Use)
	if refused != nil || (!uses && !c.ApprovedAndUsed()) {
		return c, refused
	}
	if !uses {
		use.At = c.After.UsedAt
	}
	if t.borne(before, use.At) {
		return c, nil
	}
	if cast, votes := e.(permissions.Cast); votes {
		cast.Use = nil
		return permissions.Step(before, cast)
	}
	if before.UsedAt.IsZero() {
		return permissions.Step(before, permissions.Void{At: use.At})
	}
	return permissions.Change{Before: before, After: before}, permissions.ErrNoUse
}

// borne reports whether, at that time, one of the grants that r left behind is in force, if it left any, and all on which
// it rests.
func (t *rows) borne(r permissions.Request, at time.Time) bool {
	left, live := 0, 0
	under := map[permissions.ID]bool{}
	for _, g := range t.grants {
		inForce := g.open(at) && !g.CreatedAt.After(kept(at))
		if g.Request == r.ID {
			left++
			if inForce {
				live++
			}
		}
		under[g.ID] = inForce && g.Caller == r.Caller.Name
	}
	return (left == 0 || live > 0) && !slices.ContainsFunc(r.Grants, func(id permissions.ID) bool { return !under[id] })
}

// open reports whether the grant is neither revoked nor over at that time.
func (g grant) open(at time.Time) bool {
	return g.RevokedAt.IsZero() && !g.ended && (g.Until.IsZero() || g.Until.After(kept(at)))
}

// commit writes all of a change.
func (s *shelf) commit(c permissions.Change) error {
	i := int(c.Before.Number) - 1
	s.requests[i].Request = c.After
	s.askAnew(c)
	lapsed := c.Before.LapsedAt.IsZero() && !c.After.LapsedAt.IsZero()
	if (c.Voided() || lapsed) && !c.Before.Caller.IsOurs() {
		s.requests[i].keyless = true
	}
	if c.Before.UsedAt.IsZero() && !c.After.UsedAt.IsZero() && c.Before.DecidedVia != permissions.ViaGrant {
		if err := s.useGrants(c.Before, c.After.UsedAt); err != nil {
			return err
		}
	}
	for _, g := range c.Grants {
		g.Until, g.CreatedAt = kept(g.Until), kept(g.CreatedAt)
		s.grants = append(s.grants, grant{Grant: g})
	}
	for _, r := range c.Records {
		s.tell(r)
	}
	if c.Voided() {
		s.takeBack(c)
	}
	for _, n := range c.Notices {
		s.leave(n)
	}
	return nil
}

// askAnew forgets the failed copies of everybody whom the change asks as well.
func (t *rows) askAnew(c permissions.Change) {
	t.copies = slices.DeleteFunc(t.copies, func(cp permissions.Copy) bool {
		return cp.Request == c.Before.ID && cp.Failed != "" &&
			slices.Contains(c.After.Asked, cp.Person) && !slices.Contains(c.Before.Asked, cp.Person)
	})
}

// useGrants notes that r needed nobody's answer, at least to a part of it, because of grants.
func (t *rows) useGrants(r permissions.Request, at time.Time) error {
	for _, id := range r.Grants {
		i := slices.IndexFunc(t.grants, func(g grant) bool { return g.ID == id && g.Caller == r.Caller.Name && g.open(at) })
		if i < 0 {
			return permissions.UnknownGrant(id)
		}
		t.grants[i].Used++
		if until := at.Add(t.grants[i].Idle()); t.grants[i].Idle() > 0 && until.After(t.grants[i].Until) {
			t.grants[i].Until = until
		}
		t.uses = append(t.uses, use{id, r.Number})
	}
	return nil
}

// takeBack revokes what an approval that was taken back had left behind.
func (s *shelf) takeBack(c permissions.Change) {
	last := c.Records[len(c.Records)-1]
	for i, g := range s.grants {
		if g.Request == c.Before.ID && g.RevokedAt.IsZero() && !g.ended {
			s.grants[i].RevokedAt = kept(c.After.VoidAt)
			s.releaseKeys(g.Grant)
			s.tell(grantRecord(permissions.GrantRevoked, g.Grant, last.Actor, last.Via, c.After.VoidAt))
		}
	}
}

// releaseKeys sees to it that no key finds what a grant that is over had approved.
func (t *rows) releaseKeys(g permissions.Grant) {
	if (permissions.Caller{Name: g.Caller}).IsOurs() {
		return
	}
	for i, r := range t.requests {
		if r.ID == g.Request || slices.Contains(t.uses, use{g.ID, r.Number}) {
			t.requests[i].keyless = r.keyless || r.Key != ""
		}
	}
}

// Read is [registry.Store].
func (s *shelf) Read(_ context.Context, id permissions.ID) (r permissions.Request, err error) {
	err = s.read(func() error {
		found, err := s.find(id)
		if err == nil {
			r = found.Request
		}
		return err
	})
	return r, err
}

// Stop is [registry.Store].
func (s *shelf) Stop(_ context.Context, by, via string, at time.Time) (cancelled []permissions.Request, err error) {
	err = s.write(func() error {
		if s.stopped == "" {
			s.stopped = by
			if by == "" {
				s.stopped = "daycared"
			}
			s.stoppedAt = at
			pending := 0
			for _, r := range s.requests {
				if r.State == permissions.Pending {
					pending++
				}
			}
			s.tell(permissions.Record{
				Type: permissions.AllStopped, At: at, Actor: by, Via: via, Detail: map[string]string{"pending": decimal(pending)},
			})
		}
		told := map[string]bool{by: true}
		var people []string
		for _, r := range slices.Clone(s.requests) {
			if r.State != permissions.Pending {
				continue
			}
			c, err := permissions.Step(r.Request, permissions.Withdraw{By: by, Via: via, At: at})
			if errors.Is(err, permissions.ErrLate) {
				c, err = permissions.Step(r.Request, permissions.Expire{At: at})
			}
			if err != nil {
				return err
			}
			c.After = asStored(c.After)
			if err := s.commit(c); err != nil {
				return err
			}
			cancelled = append(cancelled, c.After)
			for _, person := range r.Asked {
				if !told[person] {
					told[person], people = true, append(people, person)
				}
			}
		}
		slices.Sort(people)
		for _, person := range people {
			s.leave(permissions.Notice{To: person, About: permissions.AboutStopped, By: by, CreatedAt: at})
		}
		return nil
	})
	return cancelled, err
}

// Resume ends what Stop began.
func (s *shelf) Resume(_ context.Context, by, via string, force bool, at time.Time) error {
	return s.write(func() error {
		switch {
		case s.stopped == "":
			return nil
		case !force && by != s.stopped:
			return permissions.NotYours()
		}
		s.stopped = ""
		s.tell(permissions.Record{Type: permissions.AllResumed, At: at, Actor: by, Via: via})
		return nil
	})
}

// StoppedBy is who stopped everything, or empty.
func (s *shelf) StoppedBy(context.Context) (by string, at time.Time, err error) {
	err = s.read(func() error {
		by, at = s.stopped, s.stoppedAt
		return nil
	})
	return by, at, err
}
