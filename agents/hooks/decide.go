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
	// Forgo cancels a pending request of this caller's, unless another call than the one of that name (empty for one that has
	// returned) waits for it.
	Forgo(ctx context.Context, caller permissions.Caller, id permissions.ID, call string) (permissions.Standing, error)
}

// ErrLeft is the cause of a context that ended because the process stops, and not because the agent ended its hook: the
// request stands.
var ErrLeft = errors.New("the daemon stops")

// withdrawWithin bounds how long cancelling takes, when the agent has ended its hook.
const withdrawWithin = 3 * time.Second

// Decide puts a call to people. It returns at the latest shortly after within, and then the request stands; when ctx
// ends before, the agent has ended the hook, and the request is cancelled (see [ErrLeft]), unless another hook waits with
// the same call. There is a verdict always.
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
	left, err := desk.Forgo(work, caller, cmp.Or(r.ID, q.ID), q.Call)
	switch {
	case err != nil:
		return Verdict{Reason: "The hook was ended, and its question may stand: " + err.Error() + "."}
	case left.Request.State == permissions.Pending:
		return Verdict{Reason: "The hook was ended, and its question stands: another one waits with the same call."}
	}
	return Verdict{Reason: "The hook was ended, and its question was cancelled."}
}
