package simulation

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/daycared/daycared/permissions"
)

func decimal(n int) string { return strconv.Itoa(n) }

// Due is [registry.Store].
func (s *shelf) Due(
	_ context.Context, now time.Time, redeem time.Duration, limit int,
) (due []permissions.Due, next time.Time, err error) {
	now = now.Add(s.wrong.hurry)
	type event struct {
		at  time.Time
		due permissions.Due
	}
	var events []event
	soon := func(at time.Time) {
		if !at.IsZero() && at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	add := func(r *row, at time.Time, e permissions.Transition) {
		if soon(at); !at.IsZero() && !at.After(now) {
			events = append(events, event{at, permissions.Due{ID: r.ID, Event: e}})
		}
	}
	err = s.read(func() error {
		for _, kind := range []permissions.Transition{
			permissions.Expire{At: now}, permissions.Lapse{At: now}, permissions.Escalate{At: now}, permissions.Remind{At: now},
		} {
			for i := range s.requests {
				r := &s.requests[i]
				pending, over := r.State == permissions.Pending, !r.Deadline.After(now)
				switch kind.(type) {
				case permissions.Expire:
					if pending {
						add(r, r.Deadline, kind)
					}
				case permissions.Lapse:
					if r.State == permissions.Approved && r.CollectedAt.IsZero() && r.VoidAt.IsZero() && r.LapsedAt.IsZero() {
						add(r, r.DecidedAt.Add(redeem), kind)
					}
				case permissions.Escalate:
					if pending && !over {
						add(r, r.EscalateAt, kind)
					}
				case permissions.Remind:
					if pending && !over && len(r.Reminders) > 0 {
						add(r, r.Reminders[0], kind)
						for _, at := range r.Reminders {
							soon(at)
						}
					}
				}
			}
		}
		return nil
	})
	slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
	for _, e := range events[:min(len(events), limit)] {
		due = append(due, e.due)
	}
	return due, next, err
}

// Coder gives requests their codes.
func (s *shelf) Coder() permissions.Coder { return s.coder }

// ByCode finds the newest request that has the code.
func (s *shelf) ByCode(ctx context.Context, code string) (r permissions.Request, err error) {
	n, ok := s.Coder().Decode(code)
	if !ok {
		return r, permissions.Unknown(code)
	}
	r, _, err = s.ByNumber(ctx, n)
	if err != nil {
		err = permissions.Unknown(code)
	}
	return r, err
}

// ByNumber finds the request of that number with its copies.
func (s *shelf) ByNumber(_ context.Context, number int64) (r permissions.Request, copies []permissions.Copy, err error) {
	err = s.read(func() error {
		if number < 1 || number > int64(len(s.requests)) {
			return permissions.Unknown("number " + decimal(int(number)))
		}
		r = s.requests[number-1].Request
		copies = s.copiesOf(r.ID)
		return nil
	})
	return r, copies, err
}

// Pending lists what is pending.
func (s *shelf) Pending(_ context.Context, asked string, after permissions.ID, limit int) (found []permissions.Request, err error) {
	fromEnd := 0
	if n, is := strconv.Atoi(string(after)); is == nil && n < 0 { // "-N": the last N
		fromEnd, after = -n, ""
	}
	err = s.read(func() error {
		number, err := s.position(after)
		for _, r := range s.requests {
			if r.State == permissions.Pending && r.Number > number && err == nil && (asked == "" || slices.Contains(r.Asked, asked)) {
				found = append(found, r.Request)
			}
		}
		return err
	})
	if fromEnd > 0 {
		found = found[max(0, len(found)-fromEnd):]
	}
	return found[:min(len(found), limit)], err
}

// CountPending is how many requests are pending.
func (s *shelf) CountPending(ctx context.Context) (int, error) {
	all, err := s.Pending(ctx, "", "", len(s.requests)+1)
	return len(all), err
}

// Grants lists the grants of a caller that are neither revoked nor over at now.
func (s *shelf) Grants(_ context.Context, caller string, now time.Time) (found []permissions.Grant, err error) {
	return s.granted(now, func(g permissions.Grant) bool { return g.Caller == caller }, func(a, b permissions.Grant) int {
		return cmp.Compare(a.ID, b.ID)
	})
}

// DeniedBefore reports whether the same was denied.
func (s *shelf) DeniedBefore(_ context.Context, q permissions.Request, since time.Time) (denied bool, err error) {
	err = s.read(func() error {
		denied = slices.ContainsFunc(s.requests, func(r row) bool {
			return r.State == permissions.Denied && permissions.ActionDigest(r.Request) == permissions.ActionDigest(q) &&
				(r.Session == q.Session || r.DecidedAt.After(since))
		})
		return nil
	})
	return denied, err
}

// History lists what is settled.
func (s *shelf) History(_ context.Context, of permissions.HistoryQuery) (found []permissions.Request, err error) {
	err = s.read(func() error {
		from := slices.IndexFunc(s.requests, func(r row) bool { return r.ID == of.After }) + 1
		for _, r := range s.requests[from:] {
			if r.State != permissions.Pending && !r.DecidedAt.Before(of.Since) && (of.Caller == "" || r.Caller.Name == of.Caller) &&
				(of.Asked == "" || slices.Contains(r.Asked, of.Asked)) && len(found) < of.Limit {
				found = append(found, r.Request)
			}
		}
		return nil
	})
	return found, err
}

// AskedFrom reports whether an account has asked anything since a time, as a caller or as anybody.
func (s *shelf) AskedFrom(_ context.Context, uid int, caller string, since time.Time) (asked bool, err error) {
	err = s.read(func() error {
		asked = slices.ContainsFunc(s.requests, func(r row) bool {
			return (r.Caller.UID == uid || r.Caller.UID == permissions.AnyUID) && (caller == "" || r.Caller.Name == caller) &&
				(r.State == permissions.Pending || !r.DecidedAt.Before(since))
		})
		return nil
	})
	return asked, err
}

// RecentActivity is what a caller did before.
func (s *shelf) RecentActivity(_ context.Context, q permissions.Request, person string) (did permissions.RecentActivity, err error) {
	within := func(r row, span time.Duration) bool {
		return r.Caller.Name == q.Caller.Name && (r.State == permissions.Approved || r.State == permissions.Denied) &&
			!r.DecidedAt.Before(q.CreatedAt.Add(-span)) && r.DecidedAt.Before(q.CreatedAt)
	}
	err = s.read(func() error {
		past := slices.SortedStableFunc(slices.Values(s.requests), func(a, b row) int { return b.DecidedAt.Compare(a.DecidedAt) })
		for _, r := range past {
			if within(r, permissions.RecentSpan) {
				if r.State == permissions.Approved {
					did.Allowed++
				} else {
					did.Denied++
				}
				if len(did.Last) < permissions.MaxLast && slices.Contains(r.Asked, person) {
					did.Last = append(did.Last, r.Request)
				}
			}
			if within(r, permissions.AllowedSpan) && r.State == permissions.Approved && r.DecidedVia != permissions.ViaGrant &&
				permissions.ActionDigest(r.Request) == permissions.ActionDigest(q) {
				did.AllowedBefore++
				if did.AllowedBy == "" {
					did.AllowedBy = r.DecidedBy
				}
			}
		}
		return nil
	})
	return did, err
}

// GrantsInForce lists at most limit grants after one that are neither revoked nor over at now.
func (s *shelf) GrantsInForce(
	_ context.Context, asked string, now time.Time, after permissions.ID, limit int,
) (found []permissions.Grant, err error) {
	found, err = s.granted(now, func(g permissions.Grant) bool {
		r, err := s.find(g.Request)
		return g.ID > after && (asked == "" || (err == nil && slices.Contains(r.Asked, asked)))
	}, func(a, b permissions.Grant) int { return cmp.Compare(a.ID, b.ID) })
	if n, is := strconv.Atoi(string(after)); is == nil && n < 0 { // "-N": the last N
		found = found[max(0, len(found)+n):]
	}
	return found[:min(len(found), limit)], err
}

func (s *shelf) granted(
	now time.Time, is func(permissions.Grant) bool, order func(a, b permissions.Grant) int,
) (found []permissions.Grant, err error) {
	err = s.read(func() error {
		for _, g := range s.grants {
			if g.open(now) && is(g.Grant) {
				found = append(found, g.Grant)
			}
		}
		return nil
	})
	slices.SortFunc(found, order)
	return found, err
}

// Grant gives one grant.
func (s *shelf) Grant(_ context.Context, id permissions.ID) (g permissions.Grant, err error) {
	err = s.read(func() error {
		i := slices.IndexFunc(s.grants, func(g grant) bool { return g.ID == id })
		if i < 0 {
			return permissions.UnknownGrant(id)
		}
		g = s.grants[i].Grant
		return nil
	})
	return g, err
}

// RanUnder lists the requests that a grant made unnecessary to ask, the newest first.
func (s *shelf) RanUnder(_ context.Context, id permissions.ID, limit int) (ran []permissions.Request, err error) {
	err = s.read(func() error {
		ran = s.ran(id, limit)
		return nil
	})
	return ran, err
}

func (t *rows) ran(id permissions.ID, limit int) (ran []permissions.Request) {
	for _, r := range slices.Backward(t.requests) {
		if slices.Contains(t.uses, use{id, r.Number}) && len(ran) < limit {
			ran = append(ran, r.Request)
		}
	}
	return ran
}

// Revoke takes a grant back.
func (s *shelf) Revoke(
	_ context.Context, id permissions.ID, by, via string, at time.Time, limit int,
) (revoked permissions.Revoked, err error) {
	err = s.write(func() error {
		i := slices.IndexFunc(s.grants, func(g grant) bool { return g.ID == id })
		if i < 0 {
			return permissions.UnknownGrant(id)
		}
		g := s.grants[i]
		revoked = permissions.Revoked{Grant: g.Grant, Ran: s.ran(id, limit)}
		if !g.RevokedAt.IsZero() || g.ended {
			return nil
		}
		s.grants[i].RevokedAt = kept(at)
		s.releaseKeys(g.Grant)
		s.tell(grantRecord(permissions.GrantRevoked, g.Grant, by, via, at))
		s.tellAllowers(g.Grant, permissions.Notice{About: permissions.AboutRevoked, By: by, CreatedAt: at})
		return nil
	})
	return revoked, err
}

// EndGrants is [registry.Store].
func (s *shelf) EndGrants(_ context.Context, now time.Time, limit int) (ended []permissions.Grant, next time.Time, err error) {
	soonest := func() (at time.Time) {
		for _, g := range s.grants {
			if g.RevokedAt.IsZero() && !g.ended && !g.Until.IsZero() && (at.IsZero() || g.Until.Before(at)) {
				at = g.Until
			}
		}
		return at
	}
	err = s.read(func() error {
		next = soonest()
		return nil
	})
	if next.IsZero() || next.After(now) {
		return nil, next, err
	}
	err = s.write(func() error {
		var over []int
		for i, g := range s.grants {
			if g.RevokedAt.IsZero() && !g.ended && !g.Until.IsZero() && !g.Until.After(now) {
				over = append(over, i)
			}
		}
		slices.SortStableFunc(over, func(a, b int) int { return s.grants[a].Until.Compare(s.grants[b].Until) })
		for _, i := range over[:min(len(over), limit)] {
			ended = append(ended, s.end(i, now))
		}
		next = soonest()
		return nil
	})
	return ended, next, err
}

// EndGrantsNow is [registry.Store].
func (s *shelf) EndGrantsNow(_ context.Context, ids []permissions.ID, now time.Time) (ended []permissions.Grant, err error) {
	err = s.write(func() error {
		for i, g := range s.grants {
			if slices.Contains(ids, g.ID) && g.RevokedAt.IsZero() && !g.ended {
				ended = append(ended, s.end(i, now))
			}
		}
		return nil
	})
	return ended, err
}

func (s *shelf) end(i int, now time.Time) permissions.Grant {
	g := s.grants[i].Grant
	s.grants[i].ended = true
	s.releaseKeys(g)
	s.tell(grantRecord(permissions.GrantEnded, g, "", "", now))
	if g.Session == "" {
		s.tellAllowers(g, permissions.Notice{About: permissions.AboutEnded, CreatedAt: now})
	}
	return g
}

func grantRecord(what permissions.Type, g permissions.Grant, by, via string, at time.Time) permissions.Record {
	return permissions.Record{
		Type: what, At: at, Request: g.Request, Actor: by, Via: via,
		Detail: map[string]string{"grant": string(g.ID), "used": decimal(g.Used)},
	}
}

// tellAllowers leaves a notice about a grant for everybody who allowed its request, other than whoever caused it.
func (s *shelf) tellAllowers(g permissions.Grant, n permissions.Notice) {
	told := map[string]bool{n.By: true}
	n.Subject = g.ID
	r, err := s.find(g.Request)
	if err != nil {
		return
	}
	for _, v := range r.Votes {
		if _, allows := v.Answer.Scope(); allows && !told[v.By] {
			told[v.By], n.To = true, v.By
			s.leave(n)
		}
	}
}
