package hooks

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Desk is what hooks need of whoever puts questions to people. It cannot decide.
type Desk interface {
	// Ask puts a question and waits. When ctx ends first, the request is returned as it stands, with the error of ctx.
	Ask(ctx context.Context, caller permissions.Caller, q permissions.Request) (permissions.Request, error)
	// Withdraw cancels a pending request of this caller's.
	Withdraw(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.Standing, error)
}

// ErrLeft is the cause of a context that ended because the process stops, and not because the agent ended its hook: the
// request stands.
var ErrLeft = errors.New("the daemon stops")

// withdrawWithin bounds how long cancelling takes, when the agent has ended its hook.
const withdrawWithin = 3 * time.Second

// Decide puts a call to people. It returns at the latest shortly after within, and then the request stands; when ctx
// ends before, the agent has ended the hook, and the request is cancelled (see [ErrLeft]). There is a verdict always.
func Decide(ctx context.Context, desk Desk, caller permissions.Caller, c Call, within time.Duration) Verdict {
	q := c.Request
	q.ID = permissions.NewID(time.Now()) // proposed, so that it can be cancelled before the first reply
	limited, done := context.WithTimeout(ctx, within)
	defer done()
	r, err := desk.Ask(limited, caller, q)
	if err == nil || ctx.Err() == nil {
		if err != nil && limited.Err() != nil {
			err = limited.Err() // whatever a lost connection was called
		}
		return Judge(r, err)
	}
	if errors.Is(context.Cause(ctx), ErrLeft) {
		return Judge(r, context.DeadlineExceeded)
	}
	work, finished := context.WithTimeout(context.WithoutCancel(ctx), withdrawWithin)
	defer finished()
	if _, err := desk.Withdraw(work, caller, cmp.Or(r.ID, q.ID)); err != nil {
		return Verdict{Reason: "The hook was ended, and its question may stand: " + err.Error() + "."}
	}
	return Verdict{Reason: "The hook was ended, and its question was cancelled."}
}
