package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/daycared/daycared/permissions"
)

func (t *rows) copiesOf(id permissions.ID) (found []permissions.Copy) {
	for _, c := range t.copies {
		if c.Request == id {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b permissions.Copy) int {
		return cmp.Or(cmp.Compare(a.Person, b.Person), cmp.Compare(a.Connector, b.Connector))
	})
	return found
}

func (t *rows) copyAt(c permissions.Copy) *permissions.Copy {
	i := slices.IndexFunc(t.copies, func(o permissions.Copy) bool {
		return o.Request == c.Request && o.Person == c.Person && o.Connector == c.Connector
	})
	if i < 0 {
		return nil
	}
	return &t.copies[i]
}

// Copies lists the copies of a request.
func (s *shelf) Copies(_ context.Context, ids ...permissions.ID) (copies []permissions.Copy, err error) {
	err = s.read(func() error {
		for _, id := range ids {
			copies = append(copies, s.copiesOf(id)...)
		}
		return nil
	})
	return copies, err
}

// list gives the requests after the one named of which is says so.
func (s *shelf) list(after permissions.ID, limit int, is func(*row) bool) (ids []permissions.ID, err error) {
	err = s.read(func() error {
		number, err := s.position(after)
		for i := range s.requests {
			if r := &s.requests[i]; err == nil && r.Number > number && len(ids) < limit && is(r) {
				ids = append(ids, r.ID)
			}
		}
		return err
	})
	return ids, err
}

// StaleCopies lists the requests of which this connector's copy is not up to date.
func (s *shelf) StaleCopies(_ context.Context, connector string, after permissions.ID, limit int) ([]permissions.ID, error) {
	return s.list(after, limit, func(r *row) bool {
		return slices.ContainsFunc(s.copies, func(c permissions.Copy) bool {
			return c.Request == r.ID && c.Connector == connector && c.Failed == "" && c.Shown < r.Revision
		})
	})
}

// RequestsWithoutCopies lists the pending requests of which somebody who is asked has no copy, or one that failed.
func (s *shelf) RequestsWithoutCopies(_ context.Context, after permissions.ID, limit int) ([]permissions.ID, error) {
	return s.list(after, limit, func(r *row) bool {
		return r.State == permissions.Pending && slices.ContainsFunc(r.Asked, func(person string) bool {
			live, failed := false, false
			for _, c := range s.copies {
				if c.Request == r.ID && c.Person == person {
					live, failed = live || c.Failed == "", failed || c.Failed != ""
				}
			}
			return !live || failed
		})
	})
}

// MarkShown notes that a copy was sent or edited.
func (s *shelf) MarkShown(_ context.Context, c permissions.Copy, was string) error {
	return s.write(func() error {
		if _, err := s.find(c.Request); err != nil {
			return err
		}
		one := s.copyAt(c)
		if one == nil {
			first := c
			first.Ref, first.SentAt = was, time.Time{}
			s.copies = append(s.copies, first)
			one = s.copyAt(c)
		}
		if one.Ref != was && (one.Ref != c.Ref || c.Ref == "") {
			if one.Ref != "" {
				return &permissions.OtherMessageError{Ref: one.Ref}
			}
			return nil
		}
		first := one.SentAt.IsZero() && !c.SentAt.IsZero()
		if one.Burst != "" && one.Ref == "" && c.Ref != "" {
			one.SentAt, one.ChannelTime = kept(c.SentAt), kept(c.ChannelTime)
		}
		one.Ref, one.Shown, one.Burst, one.Failed = c.Ref, c.Shown, c.Burst, ""
		if one.ChannelTime.IsZero() && !c.ChannelTime.IsZero() {
			one.ChannelTime = kept(c.ChannelTime)
		}
		if first {
			one.SentAt = kept(c.SentAt)
			s.tell(permissions.Record{
				Type: permissions.RequestShown, At: c.SentAt, Request: c.Request, Via: c.Connector,
				Detail: map[string]string{"to": one.Person},
			})
		}
		return nil
	})
}

// MarkNamed notes the Ref under which a copy that has none is about to be sent.
func (s *shelf) MarkNamed(_ context.Context, c permissions.Copy) error {
	return s.write(func() error {
		if one := s.copyAt(c); one != nil && one.Ref == "" {
			one.Ref = c.Ref
		}
		return nil
	})
}

// MarkFailed notes that a copy will never be shown.
func (s *shelf) MarkFailed(_ context.Context, c permissions.Copy) error {
	return s.write(func() error {
		if _, err := s.find(c.Request); err != nil {
			return err
		}
		if one := s.copyAt(c); one != nil {
			if !c.SentAt.IsZero() || one.SentAt.IsZero() {
				one.Failed = c.Failed
			}
			return nil
		}
		s.copies = append(s.copies, c)
		return nil
	})
}

// AddCopies adds the copies that are not there yet.
func (s *shelf) AddCopies(_ context.Context, copies []permissions.Copy) error {
	return s.write(func() error {
		for _, c := range copies {
			if _, err := s.find(c.Request); err != nil {
				return err
			}
			if s.copyAt(c) == nil {
				c.DueAt, c.SentAt = kept(c.DueAt), kept(c.SentAt)
				s.copies = append(s.copies, c)
			}
		}
		return nil
	})
}

// Burst lists the copies that one message lists.
func (s *shelf) Burst(_ context.Context, connector, person, ref string) (all []permissions.Copy, err error) {
	err = s.read(func() error {
		for _, c := range s.copies {
			if ref != "" && c.Burst == ref && c.Connector == connector && c.Person == person {
				all = append(all, c)
			}
		}
		return nil
	})
	slices.SortFunc(all, byRequest)
	return all, err
}

// LiveCopies lists this connector's copies that people see of the newest pending requests.
func (s *shelf) LiveCopies(_ context.Context, connector string, limit int) (all []permissions.Copy, err error) {
	err = s.read(func() error {
		for _, r := range slices.Backward(s.requests) {
			if r.State != permissions.Pending || limit == 0 {
				continue
			}
			limit--
			for _, c := range s.copiesOf(r.ID) {
				if c.Connector == connector && c.Failed == "" && c.Ref != "" {
					all = append(all, c)
				}
			}
		}
		return nil
	})
	slices.SortFunc(all, byRequest)
	return all, err
}

// ShowAgain has this connector's copies of pending requests brought up to date.
func (s *shelf) ShowAgain(_ context.Context, connector string, anew bool) (were []permissions.Copy, err error) {
	err = s.write(func() error {
		were = s.forget(connector, anew)
		return nil
	})
	slices.SortFunc(were, byRequest)
	return were, err
}

func byRequest(a, b permissions.Copy) int {
	return cmp.Or(cmp.Compare(a.Request, b.Request), cmp.Compare(a.Person, b.Person))
}

func (t *rows) forget(connector string, anew bool) (were []permissions.Copy) {
	for i, c := range t.copies {
		r, err := t.find(c.Request)
		if err != nil || r.State != permissions.Pending || c.Connector != connector || c.Failed != "" || c.Ref == "" {
			continue
		}
		were = append(were, c)
		t.copies[i].Shown = 0
		if anew {
			t.copies[i].Ref = ""
		}
	}
	return were
}

// SendAgain has one copy sent again.
func (s *shelf) SendAgain(_ context.Context, c permissions.Copy) error {
	return s.write(func() error {
		for i, cp := range s.copies {
			if cp.Request == c.Request && cp.Person == c.Person && cp.Connector == c.Connector && cp.Group == c.Group {
				s.copies[i].Shown, s.copies[i].Ref = 0, ""
			}
		}
		return nil
	})
}

// ForgetCopies prepares a forgetful connector's start.
func (s *shelf) ForgetCopies(_ context.Context, connector string) error {
	return s.write(func() error {
		lags := map[permissions.ID]bool{}
		for _, c := range s.copies {
			r, err := s.find(c.Request)
			lags[c.Request] = lags[c.Request] || (err == nil && c.Failed == "" && c.Shown < r.Revision)
		}
		s.forget(connector, true)
		for i, c := range s.copies {
			r, err := s.find(c.Request)
			if err != nil || r.State == permissions.Pending || c.Connector != connector || c.Failed != "" || !lags[c.Request] {
				continue
			}
			s.copies[i].Shown = r.Revision
			if c.Ref == "" {
				s.copies[i].Failed = "settled before it was shown"
			}
		}
		return nil
	})
}

// leave keeps a notice. A reminder that is still to be sent stands for those that come after it.
func (s *shelf) leave(n permissions.Notice) {
	i := slices.IndexFunc(s.notices, func(o permissions.Notice) bool {
		return n.About == permissions.AboutWaiting && o.About == n.About && o.To == n.To && o.Group == n.Group
	})
	if i >= 0 {
		s.notices[i].Urgent = s.notices[i].Urgent || n.Urgent
		return
	}
	s.made++
	n.CreatedAt = kept(n.CreatedAt)
	n.ID = permissions.ID(fmt.Sprintf("%013d-%06d", n.CreatedAt.UnixMilli()+1<<42, s.made)) // a day may be long ago
	s.notices = append(s.notices, n)
}

// Notices lists those that are still to be sent.
func (s *shelf) Notices(_ context.Context, after permissions.ID, limit int) (found []permissions.Notice, err error) {
	err = s.read(func() error {
		for _, n := range s.notices {
			if n.ID > after {
				found = append(found, n)
			}
		}
		return nil
	})
	slices.SortFunc(found, func(a, b permissions.Notice) int { return cmp.Compare(a.ID, b.ID) })
	return found[:min(len(found), limit)], err
}

// DeleteNotice strikes out a notice.
func (s *shelf) DeleteNotice(_ context.Context, id permissions.ID) error {
	return s.write(func() error {
		s.notices = slices.DeleteFunc(s.notices, func(n permissions.Notice) bool { return n.ID == id })
		return nil
	})
}

// tell chains a record to the audit.
func (s *shelf) tell(r permissions.Record) {
	if s.wrong.mute == r.Type {
		return
	}
	if r.At.IsZero() {
		r.At = s.now()
	}
	r.At = kept(r.At)
	e := permissions.Entry{Chain: chain, Seq: int64(len(s.audit) + 1), Record: r}
	if n := len(s.audit); n > 0 {
		e.Prev = s.audit[n-1].Hash
	}
	e.Hash = e.ComputeHash()
	s.audit = append(s.audit, e)
}

// Record appends to the audit what changed no request.
func (s *shelf) Record(_ context.Context, r permissions.Record) error {
	return s.write(func() error {
		s.tell(r)
		return nil
	})
}

// Audit lists entries.
func (s *shelf) Audit(_ context.Context, of string, after int64, limit int) (found []permissions.Entry, err error) {
	err = s.read(func() error {
		if after < 0 {
			after = int64(len(s.audit)) + after
		}
		for _, e := range s.audit {
			if e.Seq > after && len(found) < limit && (of == "" || of == chain) {
				found = append(found, e)
			}
		}
		return nil
	})
	return found, err
}

// Verify reads the chain from the start.
func (s *shelf) Verify(context.Context, ...func(done, all int64)) (heads []permissions.Head, err error) {
	err = s.read(func() error {
		last := permissions.Entry{Chain: chain}
		for _, e := range s.audit {
			if e.Seq != last.Seq+1 || e.Prev != last.Hash || e.Hash != e.ComputeHash() {
				return fmt.Errorf("the audit is broken at entry %d", e.Seq)
			}
			last = e
		}
		if last.Seq > 0 {
			heads = append(heads, permissions.Head{Entry: last, First: 1, Entries: len(s.audit)})
		}
		return nil
	})
	return heads, err
}

// NewestTime is the time of the newest entry of the audit.
func (s *shelf) NewestTime(context.Context) (at time.Time, err error) {
	err = s.read(func() error {
		if n := len(s.audit); n > 0 {
			at = s.audit[n-1].At
		}
		return nil
	})
	return at, err
}

// Heartbeat notes that the daemon runs, and returns when it last did so.
func (s *shelf) Heartbeat(_ context.Context, at time.Time) (last time.Time, err error) {
	err = s.write(func() error {
		if last = s.alive; !at.IsZero() {
			s.alive = kept(at)
		}
		return nil
	})
	return last, err
}

// Cursor is a number by its name, at first that of the newest entry.
func (s *shelf) Cursor(ctx context.Context, name string) (n int64, err error) {
	err = s.read(func() error {
		var known bool
		if n, known = s.cursors[name]; !known {
			n = int64(len(s.audit))
		}
		return nil
	})
	return n, errors.Join(err, s.SetCursor(ctx, name, n))
}

// SetCursor stores it.
func (s *shelf) SetCursor(_ context.Context, name string, n int64) error {
	return s.write(func() error {
		cursors := map[string]int64{name: n}
		maps.Copy(cursors, s.cursors)
		cursors[name] = n
		s.cursors = cursors
		return nil
	})
}

// Health is well.
func (s *shelf) Health(context.Context) error { return nil }

// CatchUp returns at once: no other daemon writes here.
func (s *shelf) CatchUp(context.Context) error { return nil }

// Pairings, Suspensions, Locks and Moves are none: nobody is enrolled or locked here, and no group moves.
func (s *shelf) Pairings(context.Context) ([]permissions.Pairing, error)         { return nil, nil }
func (s *shelf) Suspensions(context.Context) ([]permissions.Suspension, error)   { return nil, nil }
func (s *shelf) Locks(context.Context) ([]permissions.Lock, error)               { return nil, nil }
func (s *shelf) GroupRenames(context.Context) ([]permissions.GroupRename, error) { return nil, nil }
func (s *shelf) Tokens(context.Context) ([]permissions.Token, error)             { return nil, nil }
func (s *shelf) Missing(context.Context) ([]permissions.Record, error)           { return nil, nil }

// Absences are none: nobody is away here.
func (s *shelf) Absences(context.Context) ([]permissions.Absence, error) { return nil, nil }

// Languages are none, and PutLanguage stores none: everybody's app is in English here.
func (s *shelf) Languages(context.Context) (map[string]string, error) {
	return map[string]string{}, nil
}
func (s *shelf) PutLanguage(context.Context, string, string) error { return nil }

// PutAbsence is not called.
func (s *shelf) PutAbsence(context.Context, permissions.Absence, permissions.Record) error {
	return errors.New("nobody is away here")
}

// Prune deletes nothing: what is asked here is not old enough.
func (s *shelf) Prune(context.Context, permissions.Keep, time.Time, int) (bool, error) {
	return false, nil
}

// Waits lists what was opened with a request: no call of the simulation is cancelled, shows a dialog or has a process.
func (s *shelf) Waits(context.Context) ([]permissions.Wait, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.waits), nil
}
