package config

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"

	"github.com/daycared/daycared/permissions"
)

// Schedule says when an agent is started by the clock.
type Schedule struct {
	Cron     string            `yaml:"cron" is:"cron"` // five fields, or one of @daily and the like; empty: Every says it
	Every    time.Duration     `yaml:"every"`          // 0: Cron says it
	Location *time.Location    `yaml:"timezone"`       // in which Cron and AskAt are meant: the person's, where none is given
	Needs    []permissions.Tag `yaml:"needs"`          // what a run needs besides what the agent has
	AskAt    Clock             `yaml:"ask_at"`         // when that is asked for, before the run; zero: when it begins
}

// Given tells whether there is a schedule at all.
func (s Schedule) Given() bool { return s.Cron != "" || s.Every != 0 }

// Next is the first run after a time; zero: there is none. Where the clock is put forward over a run, it comes as much
// later; where it is put back, a run at an hour of the day comes once, and those of every hour go on.
func (s Schedule) Next(after time.Time) time.Time {
	if s.Every != 0 {
		return after.Add(s.Every)
	}
	spec, err := cron.ParseStandard(s.Cron)
	if err != nil {
		return time.Time{} // there is no schedule; another one would not have been read
	}
	next := spec.Next(after.In(s.zone()))
	for s.namesHours() && !next.IsZero() && repeated(next) {
		next = spec.Next(next)
	}
	return next
}

// namesHours tells whether the runs are at hours of the day, and not in each of them.
func (s Schedule) namesHours() bool {
	fields := strings.Fields(s.Cron)
	return s.Cron != "@hourly" && (len(fields) < 2 || !strings.HasPrefix(fields[1], "*"))
}

// repeated tells whether the clock stood at the same time before, and was put back since. It is never put back by more
// than three hours.
func repeated(t time.Time) bool {
	_, before := t.Add(-3 * time.Hour).Zone()
	_, now := t.Zone()
	first := t.Add(time.Duration(now-before) * time.Second)
	return now < before && first.Hour() == t.Hour() && first.Minute() == t.Minute()
}

// Ask is when to ask for what the run at that time needs: the last AskAt before it, or the run's own time.
func (s Schedule) Ask(run time.Time) time.Time {
	if !s.AskAt.Given {
		return run
	}
	local := run.In(s.zone())
	at := func(days int) time.Time {
		return time.Date(local.Year(), local.Month(), local.Day()-days, s.AskAt.Hour, s.AskAt.Minute, 0, 0, s.zone())
	}
	if ask := at(0); !ask.After(run) {
		return ask
	}
	return at(1)
}

func (s Schedule) zone() *time.Location {
	if s.Location == nil {
		return time.Local
	}
	return s.Location
}

// minEvery is the shortest time between two runs that is written as a duration; cron has none shorter.
const minEvery = time.Minute

// parseCron reads when something happens again and again, without the zone and the seconds that some add.
func parseCron(s string) (any, error) {
	const right = `write minute, hour, day, month and day of the week, as in "0 3 * * *"`
	switch {
	case strings.Contains(s, "TZ="):
		return nil, fmt.Errorf("%s holds a zone, which has a key of its own; write it as timezone: Europe/Berlin", quote(s))
	case strings.HasPrefix(s, "@every"):
		return nil, fmt.Errorf("%s is a duration, which has a key of its own; write it as every: 1h", quote(s))
	}
	spec, err := cron.ParseStandard(s)
	if err != nil {
		return nil, fmt.Errorf("%s is no cron expression; %s", quote(s), right)
	}
	if spec.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("%s never comes; %s", quote(s), right)
	}
	return s, nil
}

// Clock is a time of the day, to the minute. The zero Clock is none.
type Clock struct {
	Given        bool
	Hour, Minute int
}

// String is the time as the configuration has it: 21:00.
func (c Clock) String() string {
	if !c.Given {
		return ""
	}
	return fmt.Sprintf("%02d:%02d", c.Hour, c.Minute)
}

// exactClock is a time of the day with all its digits.
var exactClock = regexp.MustCompile(`^([01][0-9]|2[0-3]):([0-5][0-9])$`)

func parseClock(s string) (any, error) {
	m := exactClock.FindStringSubmatch(s)
	if m == nil {
		if meant, ok := mendClock(s); ok {
			return nil, fmt.Errorf("%s is no time of the day; write %q", quote(s), meant)
		}
		return nil, fmt.Errorf("%s is no time of the day; write it as in %q", quote(s), "21:00")
	}
	minute := minutes(m[1], m[2])
	return Clock{Given: true, Hour: minute / 60, Minute: minute % 60}, nil
}

// mendClock is the time that was meant, if that is clear.
func mendClock(s string) (meant string, ok bool) {
	minute, ok := mendTime(strings.ToLower(strings.ReplaceAll(s, " ", "")))
	return Clock{Given: true, Hour: minute / 60, Minute: minute % 60}.String(), ok
}
