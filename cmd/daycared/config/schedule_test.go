package config

import (
	"testing"
	"time"
)

func TestNextRun(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	at := func(text string) time.Time {
		t.Helper()
		v, err := time.ParseInLocation("2006-01-02 15:04", text, berlin)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	nightly := Schedule{Cron: "30 2 * * *", Location: berlin, AskAt: Clock{Given: true, Hour: 21}}
	for _, test := range []struct {
		name             string
		s                Schedule
		after, next, ask time.Time
	}{
		{"the same night", nightly, at("2026-11-21 02:29"), at("2026-11-21 02:30"), at("2026-11-20 21:00")},
		{"strictly after", nightly, at("2026-11-21 02:30"), at("2026-11-22 02:30"), at("2026-11-21 21:00")},
		{"told in another zone", nightly, at("2026-11-21 02:29").UTC(), at("2026-11-21 02:30"), at("2026-11-20 21:00")},
		{"the hour that is not there", nightly, at("2026-03-29 00:00"), at("2026-03-29 03:30"), at("2026-03-28 21:00")},
		{"the hour that is there twice", nightly, at("2026-10-25 00:00"), at("2026-10-25 00:00").Add(150 * time.Minute), at("2026-10-24 21:00")},
		{"once of the two", nightly, at("2026-10-25 00:00").Add(150 * time.Minute), at("2026-10-26 02:30"), at("2026-10-25 21:00")},
		{"in every hour", Schedule{Cron: "30 * * * *", Location: berlin}, at("2026-10-25 00:00").Add(150 * time.Minute),
			at("2026-10-25 00:00").Add(210 * time.Minute), at("2026-10-25 00:00").Add(210 * time.Minute)},
		{"asked on the same day", Schedule{Cron: "0 22 * * 1", Location: berlin, AskAt: nightly.AskAt}, at("2026-11-21 00:00"),
			at("2026-11-23 22:00"), at("2026-11-23 21:00")},
		{"asked at once", Schedule{Cron: "@daily", Location: berlin}, at("2026-11-21 12:00"), at("2026-11-22 00:00"), at("2026-11-22 00:00")},
		{"every so often", Schedule{Every: 90 * time.Minute}, at("2026-11-21 12:00"), at("2026-11-21 13:30"), at("2026-11-21 13:30")},
		{"never", Schedule{}, at("2026-11-21 12:00"), time.Time{}, time.Time{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			next := test.s.Next(test.after)
			if !next.Equal(test.next) {
				t.Errorf("the next run is %v, want %v", next, test.next)
			}
			if ask := test.s.Ask(next); !ask.Equal(test.ask) {
				t.Errorf("asked at %v, want %v", ask, test.ask)
			}
		})
	}
}

func TestBadSchedules(t *testing.T) {
	const right = `; write minute, hour, day, month and day of the week, as in "0 3 * * *"`
	for text, want := range map[string]string{
		"cron: often":        `1: agents.schedule.cron: "often" is no cron expression` + right,
		"cron: 0 0 3 * * *":  `1: agents.schedule.cron: "0 0 3 * * *" is no cron expression` + right,
		"cron: '61 * * * *'": `1: agents.schedule.cron: "61 * * * *" is no cron expression` + right,
		"cron: '0 0 31 2 *'": `1: agents.schedule.cron: "0 0 31 2 *" never comes` + right,
		"cron: '@every 1h'":  `1: agents.schedule.cron: "@every 1h" is a duration, which has a key of its own; write it as every: 1h`,
		"cron: 'TZ=UTC 0 3 * *'": `1: agents.schedule.cron: "TZ=UTC 0 3 * *" holds a zone, which has a key of its own; ` +
			`write it as timezone: Europe/Berlin`,
		"every: 1":         `1: agents.schedule.every: "1" is not a duration; write 1m for minutes or 1s for seconds`,
		"ask_at: 9pm":      `1: agents.schedule.ask_at: "9pm" is no time of the day; write "21:00"`,
		"ask_at: evening":  `1: agents.schedule.ask_at: "evening" is no time of the day; write it as in "21:00"`,
		"ask_at: 7.30":     `1: agents.schedule.ask_at: YAML reads 7.30 as a number; write it in quotes: ask_at: "07:30"`,
		"needs: [network]": `1: agents.schedule.needs: unknown permission "network"; did you mean @network?`,
		"timezone: Berlin": `1: agents.schedule.timezone: unknown time zone "Berlin"; did you mean Europe/Berlin?`,
	} {
		if got := lines(t, "agents: [{name: a, schedule: {"+text+"}}]\n"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
