package config

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// minDuration and maxDuration bound every duration: no time here means anything below a second, and a year is forever.
const (
	minDuration = time.Second
	maxDuration = 365 * 24 * time.Hour
)

// day is what the times for which things are kept are counted in. minKeep and maxKeep bound these: nothing goes on the
// day it came, and a century is forever.
const (
	day     = 24 * time.Hour
	minKeep = day
	maxKeep = 36500 * day
)

// parseDuration reads a duration with its units, as in 15m or 1h30m.
func parseDuration(s string) (any, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s is not a duration; write %s", quote(s), mendDuration(s))
	case d < minDuration:
		return nil, fmt.Errorf("%s is too short; write 1s or more", quote(s))
	case d > maxDuration:
		return nil, fmt.Errorf("%s is too long; write 8760h or less", quote(s))
	}
	return d, nil
}

// maxDelay is for how long something may be kept from somebody.
const maxDelay = 5 * time.Minute

// parseDelay reads a duration that may be none, and is short.
func parseDelay(s string) (any, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s is not a duration; write %s", quote(s), mendDuration(s))
	case d < 0:
		return nil, fmt.Errorf("%s is not a time to wait; write 0s or more", quote(s))
	case d > maxDelay:
		return nil, fmt.Errorf("%s is too long; write 5m or less", quote(s))
	}
	return d, nil
}

// inWords is a duration as people write it: a number and a unit, with space between and the unit spelt out.
var inWords = regexp.MustCompile(`^(?i)\s*([0-9]{1,6})\s*([a-z]*)\s*$`)

// mendDuration is what was probably meant by what is not a duration.
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

// formatDuration leaves out the zeros that [time.Duration.String] ends with: 15m, not 15m0s.
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

// wholeDays is a number of days.
var wholeDays = regexp.MustCompile(`^([0-9]{1,6})d$`)

// parseDays reads whole days, as in 90d, or any other duration, as in 720h.
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

// mendDays is what was probably meant by what is not a number of days.
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

// formatDays writes whole days as such: 90d, not 2160h.
func formatDays(d time.Duration) string {
	if d%day == 0 {
		return strconv.Itoa(int(d/day)) + "d"
	}
	return formatDuration(d)
}
