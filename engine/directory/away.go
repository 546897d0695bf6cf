package directory

import (
	"context"
	"slices"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

// SetAway is that of [connectors.Inbound]. Requests that are pending follow soon.
func (d *Directory) SetAway(ctx context.Context, id connectors.Identity, until time.Time, to string) error {
	d.pairing.Lock()
	defer d.pairing.Unlock()
	p, err := d.Person(id)
	if err != nil {
		return err
	}
	now := d.clock.Stamp()
	s := d.Settings()
	_, known := s.Person(to)
	a := permissions.Absence{Person: p.Name, Until: until.Truncate(time.Microsecond), To: to, At: now, Via: id.Via}
	record := a.Record(permissions.PersonAway, id.Via, now)
	switch {
	case until.IsZero() && !p.Away.Holds(now):
		return permissions.InvalidInput("you are not away")
	case until.IsZero():
		a = p.Away
		record = p.Away.Record(permissions.PersonBack, id.Via, now)
	case !slices.ContainsFunc(s.People, func(o connectors.Person) bool { return o.Name == p.Name }):
		return permissions.InvalidInput("nobody in people has this account, so nobody can be asked instead")
	case !a.Holds(now):
		return permissions.InvalidInput("that time is over; name a later one")
	case a.Until.Sub(now) > permissions.MaxAbsence:
		return permissions.InvalidInput("that is too long; you can be away for at most %d days", permissions.MaxAbsence/(24*time.Hour))
	case to == p.Name:
		return permissions.InvalidInput("that is you; name somebody else, or nobody")
	case to != "" && !known:
		return d.UnknownPerson(to)
	case to != "" && !s.canDecideFor(to, p.Name):
		return permissions.InvalidInput("no route that asks you lets %s decide; name somebody whom it asks, too, or escalates to", to)
	}
	if err := d.store.PutAbsence(ctx, a, record); err != nil {
		return shared.Broken(err)
	}
	if err := reread(context.WithoutCancel(ctx), d, d.store.Absences, &d.absences); err != nil {
		return shared.Broken(err)
	}
	d.changes.Add(1)
	d.realign(false)
	return nil
}

// EndAbsences writes down which absences are over, so that none comes back with a clock that is set back.
func (d *Directory) EndAbsences(ctx context.Context) error {
	d.pairing.Lock()
	defer d.pairing.Unlock()
	d.mu.Lock()
	all, now := d.absences, d.clock.Stamp()
	d.mu.Unlock()
	if all = slices.DeleteFunc(slices.Clone(all), func(a permissions.Absence) bool { return a.Holds(now) }); len(all) == 0 {
		return nil
	}
	for _, a := range all {
		record := a.Record(permissions.PersonBack, "", now)
		record.Actor = ""
		if err := d.store.PutAbsence(ctx, a, record); err != nil {
			return err
		}
	}
	return reread(ctx, d, d.store.Absences, &d.absences)
}

// AbsenceChanges counts the absences that were set or ended by a word.
func (d *Directory) AbsenceChanges() int64 { return d.changes.Load() }

// Absences returns those that hold now, of people who are configured.
func (d *Directory) Absences() (all []permissions.Absence) {
	for _, p := range d.Settings().People {
		if p.Away.Holds(d.clock.Now()) {
			all = append(all, p.Away)
		}
	}
	return all
}

// canDecideFor reports whether a route that may ask a person lets another one decide, too.
func (s *Settings) canDecideFor(other, person string) bool {
	return slices.ContainsFunc(s.Routes, func(t Route) bool {
		t = t.withOwner(person)
		return slices.Contains(t.Ask, person) && slices.Contains(append(slices.Clone(t.Ask), t.Escalate.To...), other)
	})
}

// present reports whether a recipient can be expected to answer: configured, not locked, and not away.
func (s *Settings) present(name string, at time.Time) bool {
	p, known := s.Person(name)
	return known && p.Locked == "" && !p.Away.Holds(at)
}

// Away returns the absences of recipients of r who have not answered, and whether the others are enough to decide it.
func (s *Settings) Away(r permissions.Request, at time.Time) (away []permissions.Absence, enough bool) {
	left := 0
	for _, name := range r.Asked {
		switch p, _ := s.Person(name); {
		case len(r.Votes) > 0 && r.HasVoted(name) || s.present(name, at):
			left++
		case p.Away.Holds(at):
			away = append(away, p.Away)
		}
	}
	return away, left >= max(r.Quorum, 1)
}

// Absence returns the escalation of r that is due because recipients are away, if any. It asks only people whom r would
// ask later: those whom they named, or all if one named nobody who may decide r, or if too few would be left.
func (s *Settings) Absence(r permissions.Request, at time.Time) (e permissions.Escalate, due bool) {
	away, _ := s.Away(r, at)
	all := false
	for _, a := range away {
		e.Away = append(e.Away, a.Person)
		switch {
		case !s.present(a.To, at):
			all = true
		case slices.Contains(r.EscalateTo, a.To):
			e.To = append(e.To, a.To)
		default:
			all = all || !slices.Contains(r.Asked, a.To)
		}
	}
	asked := r
	asked.Asked = append(slices.Clone(r.Asked), e.To...)
	if _, enough := s.Away(asked, at); all || !enough {
		e.To = s.Unlocked(r.EscalateTo...)
	}
	e.At = at
	return e, len(away) > 0 && len(e.To) > 0
}
