package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/daycared/daycared/connectors"
)

// exampleHours stand where nobody can tell what was meant.
const exampleHours = "22:00-07:00"

// clock is a span as the configuration has it: two times of the day, each with all its digits.
var clock = regexp.MustCompile(`^([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])$`)

// parseHours reads a span of every day, which may go past midnight.
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

// minutes is the minute of the day, of which the digits are known to be right.
func minutes(hour, minute string) int {
	h, _ := strconv.Atoi(hour)
	m, _ := strconv.Atoi(minute)
	return h*60 + m
}

func formatHours(h connectors.Hours) string {
	return fmt.Sprintf("%02d:%02d-%02d:%02d", h.From/60, h.From%60, h.To/60, h.To%60)
}

// oclock is a time of the day as people write it: 9, 9:30, 21.30, 0930, 9h, 9pm.
var oclock = regexp.MustCompile(`^([0-9]{1,2})(?:[:.h]?([0-9]{2}))?h?(am|pm)?$`)

// mendHours is the span that was meant, if that is clear.
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

// mendTime is the minute of the day that was probably meant. Midnight may be 24:00, too.
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
