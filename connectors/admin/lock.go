package admin

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// Lock is a person who is locked, or was until now, as programs read it.
type Lock struct {
	Person    string    `json:"person"`
	Locked    bool      `json:"locked" doc:"false once they are unlocked"`
	LockedAt  time.Time `json:"locked_at"`
	LockedBy  string    `json:"locked_by"`
	Via       string    `json:"via"`
	Unlocking []string  `json:"unlocking" doc:"people who have said that it may end; it takes two, or the operator"`
	Holds     []string  `json:"holds,omitempty" doc:"other names under which the configuration has now whoever is locked by it"`
	Already   bool      `json:"already,omitempty" doc:"they were locked before, and nothing is new"`
	Unsaved   bool      `json:"unsaved,omitempty" doc:"it could not be stored yet: a restart before it is forgets it"`

	Voided  []wire.Request `json:"voided,omitempty" doc:"approvals that were not used, and are taken back"`
	Used    []wire.Request `json:"used,omitempty" doc:"approvals that were used before"`
	Revoked []revoked      `json:"revoked,omitempty" doc:"grants that are taken back, and what ran under them"`
}

func fromLock(l permissions.Locked, over bool) Lock {
	w := Lock{
		Person: l.Person, Locked: !over, LockedAt: l.At.UTC(), LockedBy: l.By, Via: l.Via,
		Holds: l.Holds, Already: l.Already, Unsaved: l.Unsaved != nil,
		Unlocking: wire.Each(l.Unlocking, func(said string) string { return strings.Split(said, " (")[0] }), // without their account
		Voided:    plainly(l.Voided), Used: plainly(l.Used),
	}
	for _, took := range l.Revoked {
		w.Revoked = append(w.Revoked, revoked{wire.FromGrant(took.Grant), plainly(took.Ran)})
	}
	return w
}

type (
	lockInput struct {
		Name string `path:"name" maxLength:"200"`
		Body struct {
			Since time.Time `json:"since,omitzero" doc:"take back what the person has given since then"`
		}
	}
	unlockInput struct {
		Name string `path:"name" maxLength:"200"`
	}
)

// registerLocks registers the routes of locks.
func (r *routes) registerLocks() {
	lock := post("lock", "/v1/people/{name}/lock", "Have nothing count that comes from a person's accounts")
	serve(r, lock, func(ctx context.Context, in *lockInput) (Lock, error) {
		l, err := r.desk.Lock(ctx, who(ctx), in.Name, in.Body.Since)
		return fromLock(l, false), err
	})
	unlock := remove("unlock", "/v1/people/{name}/lock", "End a lock: the operator at once, else two people")
	serve(r, unlock, func(ctx context.Context, in *unlockInput) (Lock, error) {
		l, over, err := r.desk.Unlock(ctx, who(ctx), in.Name)
		return fromLock(permissions.Locked{Lock: l}, over), err
	})
}

// plainly are requests as programs read them.
func plainly(all []permissions.Request) []wire.Request {
	return wire.Each(all, func(q permissions.Request) wire.Request { return wire.From(permissions.Standing{Request: q}, true) })
}

// Lock has nothing count any more that comes from a person's accounts, and takes back what they gave since a time, unless
// that is zero.
func (c *Client) Lock(ctx context.Context, name string, since time.Time) (l Lock, err error) {
	var in lockInput
	in.Body.Since = since
	return l, c.wire.Call(ctx, http.MethodPost, lockPath(name), c.header(""), in.Body, wire.MaxWait, &l)
}

// Unlock ends that, or says that it takes somebody else.
func (c *Client) Unlock(ctx context.Context, name string) (l Lock, err error) {
	return l, c.wire.Call(ctx, http.MethodDelete, lockPath(name), c.header(""), nil, 0, &l)
}

func lockPath(name string) string { return "/v1/people/" + url.PathEscape(name) + "/lock" }
