package main

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/daycared/daycared/connectors"
)

// Times that people read name their zone, and their date unless that is today's. JSON has RFC 3339 in UTC instead.
const (
	timeOfDay = "15:04 MST"
	dateTime  = "2006-01-02 15:04 MST"
	seconds   = "2006-01-02 15:04:05 MST"
)

// when is a time in a sentence or a table.
func when(t time.Time, zone *time.Location) string { return whenAt(time.Now(), t, zone) }

func whenAt(now, t time.Time, zone *time.Location) string {
	if t = t.In(zone); t.Format(time.DateOnly) == now.In(zone).Format(time.DateOnly) {
		return t.Format(timeOfDay)
	}
	return t.Format(dateTime)
}

// stamp is a time in a record of what happened: always whole, so that rows can be compared.
func stamp(t time.Time, zone *time.Location) string { return t.In(zone).Format(seconds) }

// maxSpan is longer than anybody keeps anything.
const maxSpan = 100 * 365 * 24 * time.Hour

// parseSpan reads how long something lasts: whole days such as 90d, or a duration such as 720h.
func parseSpan(text string) (time.Duration, bool) {
	span, err := time.ParseDuration(text)
	if digits, isDays := strings.CutSuffix(text, "d"); isDays {
		var days int
		days, err = strconv.Atoi(digits)
		span = time.Duration(min(days, 1e5)) * 24 * time.Hour
	}
	return span, err == nil && span >= time.Second && span <= maxSpan
}

// parseSince reads the beginning of a time that lasts until now: a duration back from now, a date, a time of day (the
// last one, so 23:00 is yesterday's at noon), or both.
func parseSince(text string, now time.Time, zone *time.Location) (time.Time, error) {
	if span, ok := parseSpan(text); ok {
		return now.Add(-span), nil
	}
	now = now.In(zone)
	for _, layout := range []string{"15:04", "15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil {
			y, m, d := now.Date()
			at := time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), 0, zone)
			if at.After(now) {
				at = time.Date(y, m, d-1, t.Hour(), t.Minute(), t.Second(), 0, zone)
			}
			return at, nil
		}
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02 15:04", time.DateTime, "2006-01-02T15:04", "2006-01-02T15:04:05",
		time.RFC3339} {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usage("--since is a duration such as 2h or 7d, a date such as 2026-11-20, a time of day such as 14:00, or "+
		"both as in 2026-11-20T14:00, not %q", text)
}

// zones is where the people of the configuration in force live. It is safe for concurrent use; the zero value knows
// nobody.
type zones struct {
	people atomic.Pointer[[]connectors.Person]
}

func (z *zones) set(people []connectors.Person) { z.people.Store(&people) }

// of is the zone of a person by name, nil where none is known.
func (z *zones) of(name string) *time.Location {
	people := z.people.Load()
	if people == nil {
		return nil
	}
	for _, p := range *people {
		if p.Name == name {
			return p.Location
		}
	}
	return nil
}
