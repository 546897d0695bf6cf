package simulation

import (
	"math/rand/v2"
	"time"
)

// weather is how likely what goes wrong is on one day, in thousandths of a call.
type weather struct {
	fail, lose, kill [3]int // by side
	hold             [3]int
	full             bool // the disk is
	jumps, suspends  bool
	stops            bool
}

// forecast draws the weather of a day: one in six is fine, and on the others some of everything may go wrong.
func forecast(draw *rand.Rand) (f weather) {
	if draw.IntN(6) == 0 {
		return f
	}
	rate := func() (rates [3]int) {
		if draw.IntN(2) == 0 {
			return rates
		}
		for i := range rates {
			rates[i] = draw.IntN(4) * draw.IntN(25)
		}
		return rates
	}
	f.fail, f.lose, f.hold = rate(), rate(), rate()
	f.kill = rate()
	for i := range f.kill {
		f.kill[i] /= 4
	}
	f.jumps, f.suspends, f.stops = draw.IntN(3) == 0, draw.IntN(4) == 0, draw.IntN(5) == 0
	return f
}

// fault draws what becomes of a call.
func (f weather) fault(draw *rand.Rand, at side) verdict {
	n := draw.IntN(1000)
	for _, v := range []struct {
		rate int
		is   verdict
	}{{f.fail[at], fails}, {f.lose[at], loses}, {f.kill[at], kills}, {f.kill[at], killsAfter}} {
		if n -= v.rate; n < 0 {
			return v.is
		}
	}
	if f.full && at == writing {
		return fails
	}
	return passes
}

// delay draws for how long a call is held back.
func (f weather) delay(draw *rand.Rand, at side) time.Duration {
	if f.hold[at] == 0 || draw.IntN(1000) >= f.hold[at] {
		return 0
	}
	longest := 3 * time.Second // a disk
	if at == sending {
		longest = 20 * time.Second
	}
	return time.Duration(draw.Int64N(int64(longest))).Round(time.Millisecond) + time.Millisecond
}
