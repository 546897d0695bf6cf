// Package timing has what workers share: the clock, a signal that wakes one, and a pause that ends early.
package timing

import (
	"context"
	"time"
)

// Clock is the source of time.
type Clock struct {
	// Now is the wall clock. It can be set.
	Now func() time.Time
	// Elapsed is the monotonic time since some start. It cannot be set, and includes suspension of the machine.
	Elapsed func() time.Duration
}

// Stamp is the current time in the unit that the store keeps.
func (c Clock) Stamp() time.Time { return c.Now().UTC().Truncate(time.Microsecond) }

// Signal wakes one worker. A notification while the worker is awake wakes it once more.
type Signal chan struct{}

// NewSignal creates a signal.
func NewSignal() Signal { return make(Signal, 1) }

// Notify wakes the worker. It never blocks.
func (b Signal) Notify() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// Pause waits for d, or returns the error of ctx.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
