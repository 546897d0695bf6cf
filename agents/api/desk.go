package api

import (
	"context"

	"github.com/daycared/daycared/permissions"
)

// Desk is what this door needs of the engine. It cannot decide what an agent may do.
type Desk interface {
	// Put is [agents.Asker.Ask], for thousands who wait: it needs little of a stack, and keeps no request meanwhile.
	// question says what is asked, again when that has to be asked anew; its error is returned as it is. The answer is
	// never nil.
	Put(
		ctx context.Context, caller permissions.Caller, question func() (permissions.Request, error),
	) (*permissions.Request, error)
	// Find gives a request of this caller's, as it stands. Another's is refused as unknown.
	Find(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.Standing, error)
	// Await is Find once the request is settled; when ctx ends first, as it stands then, with a nil error.
	Await(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.Standing, error)
	// Linger returns when Await would, and needs little of a stack. Another's request is refused as unknown.
	Linger(ctx context.Context, caller permissions.Caller, id permissions.ID) error
	// Withdraw cancels a request of this caller's.
	Withdraw(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.Standing, error)
	// Reply answers a request of this caller's by what the dialog of its own editor brought, which showed what has that
	// digest. What permits anything is refused, and everything where the settings do not allow it.
	Reply(
		ctx context.Context, caller permissions.Caller, id permissions.ID, a permissions.Answer, shown permissions.Digest,
	) (permissions.Standing, error)
	// Forgo takes one call from a request of this caller's, by the call's own name, and cancels it when no other waits.
	Forgo(ctx context.Context, caller permissions.Caller, id permissions.ID, call string) (permissions.Standing, error)
	// Prove is who asks with a token, over a connection of that account. A token that is not valid is refused.
	Prove(ctx context.Context, secret permissions.Secret, uid int) (permissions.Caller, error)
	// Ready is nil while requests can be stored and answered; the error says what to do.
	Ready(ctx context.Context) error
}
