package whatsapp

import (
	"context"
	"time"

	"github.com/daycared/daycared/internal/wire"
)

const (
	// asideTime is how long what is said beside the cards is tried.
	asideTime = time.Minute
	// farewell is what a stop leaves of that.
	farewell = 500 * time.Millisecond
)

// aside sends something that nothing waits for: no decision, and no other message. It is tried for a while, and for a
// moment longer when ctx ends.
func (c *Connector) aside(ctx context.Context, send func(context.Context) error) {
	c.asideAfter(ctx, 0, send)
}

func (c *Connector) asideAfter(ctx context.Context, delay time.Duration, send func(context.Context) error) {
	c.work.Go(func() {
		lasting, done := context.WithTimeout(context.WithoutCancel(ctx), delay+asideTime)
		defer done()
		defer context.AfterFunc(ctx, func() { time.AfterFunc(farewell, done) })()
		if wire.Pause(lasting, delay) != nil {
			return
		}
		tries := c.newTries()
		for {
			err := send(lasting)
			if err == nil {
				return
			}
			if refusal(err) != nil || wire.Pause(lasting, tries.NextBackOff()) != nil {
				c.log.Debug("something was not sent", "err", err)
				return
			}
		}
	})
}
