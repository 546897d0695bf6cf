//go:build !linux

package timing

import "time"

// Elapsed is the monotonic time since this process began. It may exclude suspension, which the wall clock includes.
func Elapsed() time.Duration { return time.Since(began) }

var began = time.Now()
