package reply

import (
	"slices"
	"time"

	"github.com/daycared/daycared/permissions"
)

const (
	// mostWrong is how many wrong codes within wrongTime mute a person's text answers for muteTime.
	mostWrong = 10
	wrongTime = 10 * time.Minute
	muteTime  = time.Minute
)

// Guard keeps codes from being guessed: it counts one person's wrong codes, and says when their text answers are not to
// be read. The zero Guard has counted none. It has no clock; it is not safe for concurrent use, so whoever shares it
// between goroutines holds a lock around each call.
type Guard struct {
	wrong []time.Time
	until time.Time
}

// Wrong counts n wrong codes at a time.
func (g *Guard) Wrong(n int, at time.Time) {
	g.wrong = slices.DeleteFunc(g.wrong, func(t time.Time) bool { return at.Sub(t) >= wrongTime })
	for range min(n, mostWrong) {
		g.wrong = append(g.wrong, at)
	}
	if len(g.wrong) >= mostWrong {
		g.wrong, g.until = nil, at.Add(muteTime)
	}
}

// Muted is for how long from at the person's text answers are not read, 0 if they are. A clock that was set back by
// more than a minute ends it.
func (g *Guard) Muted(at time.Time) time.Duration {
	left := g.until.Sub(at)
	if left <= 0 || left > 2*muteTime {
		return 0
	}
	return min(left, muteTime)
}

// SayMuted tells a person for how long their text answers are not read.
func SayMuted(left time.Duration) string {
	again := permissions.SayDuration(left)
	return "Nothing was decided: too many wrong codes. Text answers are read again in " + again + "."
}
