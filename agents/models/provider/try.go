package provider

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/daycared/daycared/agents/models"
)

// Try calls once until it gives a reply, its fault does not pass by itself, the tries are spent, or ctx ends. Before
// each try but the first it calls again. The error is a *models.Error, or that of ctx.
func (l *Link) Try(ctx context.Context, once func() (models.Reply, error), again func()) (models.Reply, error) {
	steps := backoff.NewExponentialBackOff()
	steps.InitialInterval, steps.MaxInterval = l.retry.Wait, 30*time.Second
	var last error
	begun := false
	reply, err := backoff.Retry(ctx, func() (models.Reply, error) {
		if begun {
			again()
		}
		begun = true
		reply, err := once()
		last = err
		var fault *Fault
		switch {
		case err == nil:
			return reply, nil
		case !errors.As(err, &fault) || !fault.Passes || fault.After > l.retry.Longest:
			return reply, backoff.Permanent(err)
		case fault.After > 0:
			return reply, &backoff.RetryAfterError{Duration: fault.After}
		}
		return reply, err
	}, backoff.WithBackOff(steps), backoff.WithMaxTries(uint(l.retry.Tries)), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(_ error, in time.Duration) {
			l.log.Debug("a model is asked again", "in", in, "err", last)
		}))
	var fault *Fault
	switch {
	case err == nil:
		return reply, nil
	case ctx.Err() != nil:
		return models.Reply{}, ctx.Err()
	case errors.As(last, &fault):
		return models.Reply{}, &models.Error{Kind: fault.kind, Text: fault.Text, After: fault.After}
	}
	return models.Reply{}, err
}
