package config

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
)

// minDuration and maxDuration bound all durations.
const (
	minDuration = time.Second
	maxDuration = 365 * 24 * time.Hour
)

// day is the unit of retention times, which minKeep and maxKeep bound.
const (
	day     = 24 * time.Hour
	minKeep = day
	maxKeep = 36500 * day
)

// maxDelay is the longest time that something may be kept from a person.
const maxDelay = 5 * time.Minute

// parseDuration parses a duration with units, as in 15m or 1h30m.
func parseDuration(s string) (any, error) {
	return parseWithin(s, minDuration, maxDuration, "too short")
}

// parseDelay parses a short duration, or zero.
func parseDelay(s string) (any, error) { return parseWithin(s, 0, maxDelay, "not a time to wait") }

func parseWithin(s string, least, most time.Duration, short string) (any, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s is not a duration; write %s", quote(s), mendDuration(s))
	case d < least:
		return nil, fmt.Errorf("%s is %s; write %s or more", quote(s), short, formatDuration(least))
	case d > most:
		return nil, fmt.Errorf("%s is too long; write %s or less", quote(s), formatDuration(most))
	}
	return d, nil
}

// inWords matches a duration as people write it: a number and a unit, maybe with spaces and the unit spelt out.
var inWords = regexp.MustCompile(`^(?i)\s*([0-9]{1,6})\s*([a-z]*)\s*$`)

// mendDuration returns the duration that was probably meant.
func mendDuration(s string) string {
	m := inWords.FindStringSubmatch(s)
	if m == nil {
		return "a number and its unit, as in 90s, 15m or 4h"
	}
	n := cmp.Or(strings.TrimLeft(m[1], "0"), "1")
	switch strings.ToLower(m[2]) {
	case "":
		return fmt.Sprintf("%sm for minutes or %ss for seconds", n, n)
	case "s", "sec", "secs", "second", "seconds":
		return n + "s"
	case "m", "min", "mins", "minute", "minutes":
		return n + "m"
	case "h", "hr", "hrs", "hour", "hours":
		return n + "h"
	case "d", "day", "days":
		days, _ := strconv.Atoi(n) // at most six digits
		return strconv.Itoa(24*days) + "h"
	}
	return n + "s, " + n + "m or " + n + "h"
}

// formatDuration omits the zeros at the end of [time.Duration.String]: 15m, not 15m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

var wholeDays = regexp.MustCompile(`^([0-9]{1,6})d$`)

// parseDays parses whole days, as in 90d, or another duration, as in 720h.
func parseDays(s string) (any, error) {
	var d time.Duration
	if m := wholeDays.FindStringSubmatch(s); m != nil {
		days, _ := strconv.Atoi(m[1]) // at most six digits
		d = day * time.Duration(min(days, int(maxKeep/day)+1))
	} else {
		var err error
		if d, err = time.ParseDuration(s); err != nil {
			return nil, fmt.Errorf("%s is not a number of days; write %s", quote(s), mendDays(s))
		}
	}
	switch {
	case d < minKeep:
		return nil, fmt.Errorf("%s is too short; write %s or more", quote(s), formatDays(minKeep))
	case d > maxKeep:
		return nil, fmt.Errorf("%s is too long; write %s or less", quote(s), formatDays(maxKeep))
	}
	return d, nil
}

// mendDays returns the number of days that was probably meant.
func mendDays(s string) string {
	m := inWords.FindStringSubmatch(s)
	if m == nil {
		return "whole days, as in 90d"
	}
	each := map[string]int{
		"": 1, "day": 1, "days": 1, "d": 1, "w": 7, "week": 7, "weeks": 7, "month": 30, "months": 30,
		"y": 365, "year": 365, "years": 365,
	}[strings.ToLower(m[2])]
	if each == 0 {
		return mendDuration(s)
	}
	n, _ := strconv.Atoi(m[1]) // at most six digits
	return strconv.Itoa(max(n, 1)*each) + "d"
}

// formatDays formats whole days as such: 90d, not 2160h.
func formatDays(d time.Duration) string {
	if d%day == 0 {
		return strconv.Itoa(int(d/day)) + "d"
	}
	return formatDuration(d)
}

// exampleHours is the example if it is unclear what was meant.
const exampleHours = "22:00-07:00"

// clock matches a span in the exact format: two times of day with all their digits.
var clock = regexp.MustCompile(`^([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])$`)

// parseHours parses a daily span, which may include midnight.
func parseHours(s string) (any, error) {
	m := clock.FindStringSubmatch(s)
	if m == nil {
		if meant, ok := mendHours(s); ok {
			return nil, fmt.Errorf("%s is no span of hours; write %q", quote(s), meant)
		}
		begin, end, _ := strings.Cut(s, "-")
		for _, t := range []string{begin, end} {
			if _, ok := mendTime(strings.TrimSpace(t)); !ok && s != begin {
				return nil, fmt.Errorf("%s is no span of hours, since %s is no time of the day; write it as in %q",
					quote(s), quote(t), exampleHours)
			}
		}
		return nil, fmt.Errorf("%s is no span of hours; write it as in %q", quote(s), exampleHours)
	}
	h := connectors.Hours{From: minutes(m[1], m[2]), To: minutes(m[3], m[4])}
	if h.From == h.To {
		return nil, fmt.Errorf("%s ends when it begins; write two different times, as in %q, or leave it out for none",
			quote(s), exampleHours)
	}
	return h, nil
}

// minutes returns the minute of the day of valid digits.
func minutes(hour, minute string) int {
	h, _ := strconv.Atoi(hour)
	m, _ := strconv.Atoi(minute)
	return h*60 + m
}

func formatHours(h connectors.Hours) string {
	return fmt.Sprintf("%02d:%02d-%02d:%02d", h.From/60, h.From%60, h.To/60, h.To%60)
}

// oclock matches a time of day as people write it: 9, 9:30, 21.30, 0930, 9h, 9pm.
var oclock = regexp.MustCompile(`^([0-9]{1,2})(?:[:.h]?([0-9]{2}))?h?(am|pm)?$`)

// mendHours returns the span that was meant, if that is clear.
func mendHours(s string) (meant string, ok bool) {
	s = strings.NewReplacer(" ", "", "–", "-", "—", "-", "to", "-").Replace(strings.ToLower(s))
	begin, end, _ := strings.Cut(s, "-")
	from, known := mendTime(begin)
	to, alsoKnown := mendTime(end)
	if !known || !alsoKnown || from == to {
		return "", false
	}
	return formatHours(connectors.Hours{From: from, To: to}), true
}

// mendTime returns the minute of the day that was probably meant. 24:00 is midnight as well.
func mendTime(s string) (minute int, ok bool) {
	m := oclock.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	hour, _ := strconv.Atoi(m[1])
	minute, _ = strconv.Atoi(m[2])
	if m[3] != "" {
		if hour < 1 || hour > 12 {
			return 0, false
		}
		hour %= 12
		if m[3] == "pm" {
			hour += 12
		}
	}
	if hour > 24 || minute > 59 || hour == 24 && minute > 0 {
		return 0, false
	}
	return (hour%24)*60 + minute, true
}

// When is a moment in a request's time: a percentage of it, or a duration since its creation. The zero When is none.
type When struct {
	Percent int           // of the time from start to deadline, 1 to 99; 0: After is set
	After   time.Duration // since the start; 0: Percent is set
}

// String formats the moment as in the configuration: 50% or 10m.
func (w When) String() string {
	if w.Percent > 0 {
		return strconv.Itoa(w.Percent) + "%"
	}
	return formatDuration(w.After)
}

var share = regexp.MustCompile(`^([0-9]{1,6})%$`)

// parseWhen parses a percentage, as in 50%, or a duration.
func parseWhen(s string) (any, error) {
	if m := share.FindStringSubmatch(s); m != nil {
		percent, _ := strconv.Atoi(m[1]) // at most six digits
		if percent < 1 || percent > 99 {
			return nil, fmt.Errorf("%s is not between the beginning and the end; write 1%% to 99%%", quote(s))
		}
		return When{Percent: percent}, nil
	}
	if strings.Contains(s, "%") {
		return nil, fmt.Errorf("%s is not a share of the time; write a whole number and %%, as in 50%%", quote(s))
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return nil, fmt.Errorf("%s has no unit; write a share of the time, as in 50%%, or a duration, as in 10m", quote(s))
	}
	d, err := parseDuration(s)
	if err != nil {
		return nil, fmt.Errorf("%w; or a share of the time, as in 50%%", err)
	}
	return When{After: d.(time.Duration)}, nil //nolint:errcheck // parseDuration returns a Duration
}
