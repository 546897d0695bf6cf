//go:build !linux

package engine

import "time"

// elapsed is the monotonic time since this process began. It may exclude suspension, which the wall clock includes.
func elapsed() time.Duration { return time.Since(began) }

var began = time.Now()
