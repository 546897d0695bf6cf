// Package shared has what the services of the engine share: limits, delays, and what they say when the store fails.
package shared

import (
	"context"
	"errors"
	"time"

	"github.com/daycared/daycared/permissions"
)

const (
	// StoreTime bounds one unit of work at the store, even after its caller has left.
	StoreTime = 10 * time.Second
	// Page is how many rows are read at a time.
	Page = 500
	// RanMost bounds how many of the requests that ran under a grant are listed.
	RanMost = 100
	// ReturnGrace is how long after a start callers may take to return before prompts show that nobody waits.
	ReturnGrace = time.Minute
	// RetryDelay is the delay before a failed store operation is retried.
	RetryDelay = time.Second
	// RetryFirst is the first of the growing delays of what is retried until it works.
	RetryFirst = 500 * time.Millisecond
	// RetryMost is the longest of them.
	RetryMost = 30 * time.Second
	// Idle is how long a worker without work sleeps, unless it is woken.
	Idle = time.Hour
)

// Noting returns a context for writing something down about a caller or a chat that may have disconnected.
func Noting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), StoreTime)
}

// Broken turns a store failure into the refusal that the asker reads; other errors are returned unchanged. One that passes by itself
// says when to try again.
func Broken(err error) error {
	if errors.Is(err, permissions.ErrBroken) && !errors.Is(err, permissions.ErrRow) {
		r := permissions.Broken(err.Error())
		if errors.Is(err, permissions.ErrAway) {
			r.After = RetryDelay
		}
		return r
	}
	return Unread(err)
}

// Unread is Broken for read operations.
func Unread(err error) error {
	if errors.Is(err, permissions.ErrBroken) {
		return permissions.Unreadable(err)
	}
	return err
}

// Codes returns the codes of all pending requests.
func Codes(ctx context.Context, s interface {
	Coder() permissions.Coder
	PendingNumbers(ctx context.Context) ([]int64, error)
}) (map[string]bool, error) {
	numbers, err := s.PendingNumbers(ctx)
	if err != nil {
		return nil, err
	}
	codes := make(map[string]bool, len(numbers))
	for _, n := range numbers {
		codes[s.Coder().Encode(n)] = true
	}
	return codes, nil
}
