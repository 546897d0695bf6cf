package main

import (
	"testing"
	"time"
)

func TestTimesNameTheirZone(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 7, 1, 21, 30, 0, 0, time.UTC) // 23:30 in Berlin
	for _, c := range []struct {
		at   time.Time
		zone *time.Location
		want string
	}{
		{now.Add(10 * time.Minute), time.UTC, "21:40 UTC"},
		{now.Add(10 * time.Minute), berlin, "23:40 CEST"},
		{now.Add(time.Hour), berlin, "2026-07-02 00:30 CEST"},
		{now.Add(time.Hour), time.UTC, "22:30 UTC"},
		{now.Add(-365 * 24 * time.Hour), time.UTC, "2025-07-01 21:30 UTC"},
		{now.AddDate(0, 5, 0), berlin, "2026-12-01 22:30 CET"},
	} {
		if got := whenAt(now, c.at, c.zone); got != c.want {
			t.Errorf("%s in %s: %q, want %q", c.at, c.zone, got, c.want)
		}
	}
	if got := stamp(now, berlin); got != "2026-07-01 23:30:00 CEST" {
		t.Error(got)
	}
}

func TestSince(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, berlin)
	for text, want := range map[string]string{
		"90s": "2026-07-01T11:58:30+02:00", "2h": "2026-07-01T10:00:00+02:00", "7d": "2026-06-24T12:00:00+02:00",
		"08:15": "2026-07-01T08:15:00+02:00", "23:00": "2026-06-30T23:00:00+02:00", "08:15:30": "2026-07-01T08:15:30+02:00",
		"2026-03-01": "2026-03-01T00:00:00+01:00", "2026-03-01 14:00": "2026-03-01T14:00:00+01:00",
		"2026-03-01T14:00": "2026-03-01T14:00:00+01:00", "2026-03-01T14:00:00Z": "2026-03-01T14:00:00Z",
	} {
		at, err := parseSince(text, now, berlin)
		if err != nil || at.Format(time.RFC3339) != want {
			t.Errorf("--since %s: %s (%v), want %s", text, at.Format(time.RFC3339), err, want)
		}
	}
	for _, text := range []string{"", "soon", "-2h", "0s", "7", "25:00", "2026-13-01", "20260301", "99999999d"} {
		if at, err := parseSince(text, now, berlin); err == nil {
			t.Errorf("--since %q: %s, want a refusal", text, at)
		}
	}
}
