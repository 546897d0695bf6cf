//go:build !linux

package engine

import "time"

// elapsed is the time since this process began, by the clock that cannot be set. It may not count a suspended machine's
// sleep; the clock on the wall does.
func elapsed() time.Duration { return time.Since(began) }

var began = time.Now()
