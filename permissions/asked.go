package permissions

import (
	"slices"
	"strings"
	"time"
)

// tooFew is why a request ends when the configuration leaves fewer people than its quorum.
const tooFew = "too few of the people who were asked are left in the configuration"

// reroute replaces the people who are asked, now and on escalation. The undecisive votes of those who are no longer
// asked drop; the request stays pending, since only a vote decides, unless too few are left for any decision.
func reroute(r Request, e Reroute) Change {
	if r.EscalateAt.IsZero() { // the escalation came meanwhile, or there was none: who was to wait for it does not
		for _, p := range e.EscalateTo {
			if slices.Contains(r.Asked, p) && !slices.Contains(e.Asked, p) {
				e.Asked = append(slices.Clone(e.Asked), p)
			}
		}
	}
	later := slices.DeleteFunc(slices.Clone(e.EscalateTo), func(p string) bool { return slices.Contains(e.Asked, p) })
	if slices.Equal(e.Asked, r.Asked) && slices.Equal(later, r.EscalateTo) {
		return Change{Before: r, After: r}
	}
	after := r
	after.Revision++
	after.Asked, after.EscalateTo = slices.Clone(e.Asked), later
	if len(later) == 0 {
		after.EscalateTo, after.EscalateAt = nil, time.Time{}
	}
	after.Votes = slices.DeleteFunc(slices.Clone(r.Votes), func(v Vote) bool {
		return !slices.Contains(e.Asked, v.By) && len(r.open(v)) > 0
	})
	told := record(RequestRerouted, r, "", "", e.At, "asked", strings.Join(e.Asked, ", "))
	if len(after.Asked)+len(after.EscalateTo) >= r.Quorum {
		return Change{Before: r, After: after, Records: []Record{told}}
	}
	c := settle(after, Undeliverable, "", "", e.At)
	c.Before, c.After.Failure = r, tooFew
	c.After.Revision = r.Revision + 1
	c.Records = append([]Record{told}, c.Records...)
	return c
}

// escalate asks those who were to be asked later. Whoever is asked already stays so; there is no second escalation.
func escalate(r Request, e Escalate) Change {
	if len(r.EscalateTo) == 0 {
		return Change{Before: r, After: r}
	}
	after := r
	after.Revision++
	after.Asked = append(slices.Clone(r.Asked), r.EscalateTo...)
	after.EscalateTo, after.EscalateAt = nil, time.Time{}
	told := record(RequestEscalated, r, "", "", e.At, "to", strings.Join(r.EscalateTo, ", "))
	return Change{Before: r, After: after, Records: []Record{told}, Notices: after.inPlace(e.At)}
}

// inPlace reminds those who are asked in the place where r is shown to all of them: an edit makes no sound.
func (r Request) inPlace(at time.Time) []Notice {
	if r.Place == "" {
		return nil
	}
	return []Notice{{Place: r.Place, About: AboutWaiting, Subject: r.ID, Urgent: r.HighRisk, CreatedAt: at}}
}

// remind tells those who have not answered, each and where they are asked together, and strikes out the reminders whose
// time has come.
func remind(r Request, e Remind) Change {
	after := r
	after.Reminders = slices.DeleteFunc(slices.Clone(r.Reminders), func(at time.Time) bool { return !at.After(e.At) })
	if len(after.Reminders) == len(r.Reminders) {
		return Change{Before: r, After: r}
	}
	c := Change{Before: r, After: after}
	for _, person := range r.Asked {
		if !slices.ContainsFunc(r.Votes, func(v Vote) bool { return v.By == person && v.Call == 0 }) {
			c.Notices = append(c.Notices, Notice{To: person, About: AboutWaiting, Subject: r.ID, Urgent: r.HighRisk, CreatedAt: e.At})
		}
	}
	if len(c.Notices) > 0 {
		c.Notices = append(c.Notices, r.inPlace(e.At)...)
	}
	return c
}

// extend moves the deadline, only ever to a later time.
func extend(r Request, e Extend) Change {
	if !e.Until.After(r.Deadline) {
		return Change{Before: r, After: r}
	}
	after := r
	after.Revision++
	after.Deadline = e.Until
	told := record(RequestExtended, r, "", "", e.At, "until", e.Until.UTC().Format(time.RFC3339))
	return Change{Before: r, After: after, Records: []Record{told}}
}
