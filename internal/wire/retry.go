package wire

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// NewTries is how often our clients try a lost connection again: after 50 ms at first, then up to a second apart.
func NewTries() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 50*time.Millisecond, time.Second
	return b
}

// Pause waits for d, or returns the error of ctx.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Gone tells whether an error is only about the connection, so that trying again may help.
func Gone(err error) bool { return errors.Is(err, ErrLost) || errors.Is(err, ErrUnreachable) }
