package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// When is a moment in the time that a request has: a share of that time, or a while after the request was made. The
// zero When is none.
type When struct {
	Percent int           // of the time from start to deadline, 1 to 99; 0 where After says it
	After   time.Duration // since the start; 0 where Percent says it
}

// String is the moment as the configuration has it: 50% or 10m.
func (w When) String() string {
	if w.Percent > 0 {
		return strconv.Itoa(w.Percent) + "%"
	}
	return formatDuration(w.After)
}

// share is a part of the time: digits and a percent sign.
var share = regexp.MustCompile(`^([0-9]{1,6})%$`)

// parseWhen reads a share of the time, as in 50%, or a duration.
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
	return When{After: d.(time.Duration)}, nil //nolint:errcheck // it is what parseDuration gives
}
