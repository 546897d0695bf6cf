package timing

import (
	"time"

	"golang.org/x/sys/unix"
)

// Elapsed is the time since the machine was started, including suspension.
func Elapsed() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return time.Since(began)
	}
	return time.Duration(t.Nano())
}

var began = time.Now()
