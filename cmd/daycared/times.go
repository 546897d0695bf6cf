package main

import (
	"sync/atomic"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/conversation"
)

// Times for people include their zone, and their date unless it is today. JSON has RFC 3339 in UTC.
const (
	timeOfDay = "15:04 MST"
	dateTime  = "2006-01-02 15:04 MST"
	seconds   = "2006-01-02 15:04:05 MST"
)

// when formats a time for a sentence or a table.
func when(t time.Time, zone *time.Location) string { return whenAt(time.Now(), t, zone) }

func whenAt(now, t time.Time, zone *time.Location) string {
	if t = t.In(zone); t.Format(time.DateOnly) == now.In(zone).Format(time.DateOnly) {
		return t.Format(timeOfDay)
	}
	return t.Format(dateTime)
}

// stamp formats a time in full for a log of events, so that rows can be compared.
func stamp(t time.Time, zone *time.Location) string { return t.In(zone).Format(seconds) }

// maxSpan is longer than any retention.
const maxSpan = 100 * 365 * 24 * time.Hour

// parseSpan parses a duration, see [conversation.ParseSpan].
func parseSpan(text string) (time.Duration, bool) {
	span, ok := conversation.ParseSpan(text)
	return span, ok && span >= time.Second && span <= maxSpan
}

// parseSince parses the start of a period until now: a duration back from now, a date, a time of day (its last occurrence: at
// noon, 23:00 is yesterday's), or both.
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

// zones holds the time zones of the people in the current configuration. It is safe for concurrent use; the zero value is empty.
type zones struct {
	people atomic.Pointer[[]connectors.Person]
}

func (z *zones) set(people []connectors.Person) { z.people.Store(&people) }

// of returns a person's zone, nil if unknown.
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
