package agents

import (
	"context"

	"github.com/daycared/daycared/permissions"
)

// Resident is an agent of our own: somebody's, in whose chat it hears what that person writes, and speaks. Every method
// is safe for concurrent use.
type Resident interface {
	// Bond says whose it is. It never changes, and no two residents have the same name.
	Bond() permissions.Bond
	// Run works until ctx ends; when it returns before, it is run again. Other methods may be called before.
	Run(ctx context.Context, s Speaker) error
	// Hear takes a message, which has been stored for it. Nil means that the resident has stored it itself, or is done
	// with it; after an error or a crash the same message, known by its Key, comes again, before any later one.
	Hear(ctx context.Context, m permissions.Message) error
	// Obey does what its person orders, at once: it returns within a few seconds. The same order may come twice.
	Obey(ctx context.Context, o permissions.Order) error
	// Activity is what it does just now. It does not wait for anything.
	Activity() permissions.Activity
}

// Speaker is what a resident speaks through, to its own person. It cannot decide, nor speak as another. It is safe for
// concurrent use.
type Speaker interface {
	// Say returns nil once the text is stored; it is sent after what was said before, whatever happens meanwhile. The
	// same key again, unless it is empty, changes nothing. A *permissions.Refusal with [permissions.CodeInvalid] means
	// that the text is empty or has more than [permissions.MaxUtterance] bytes, one with [permissions.CodeLimit] that so
	// much is still to be sent that it was not taken.
	Say(ctx context.Context, key, text string) error
	// Working shows the person that the resident works, or no longer. It does not wait for anything.
	Working(on bool)
}
