package simulation

import (
	"slices"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// wrong is what is broken about a store on purpose.
type wrong struct {
	row     func(permissions.Request, permissions.Transition) permissions.Request // what a change is made from, instead of the row
	hurry   time.Duration                                                         // deadlines come so much too early
	mute    permissions.Type                                                      // what the audit does not tell
	forgets bool                                                                  // the last commit, when the daemon dies
}

// unsettled is the row as it was before it was settled: a compare-and-set that compares nothing.
func unsettled(r permissions.Request, e permissions.Transition) permissions.Request {
	if _, votes := e.(permissions.Cast); votes && r.State != permissions.Pending {
		r.State, r.Answer, r.DecidedBy, r.DecidedAt, r.Votes = permissions.Pending, "", "", time.Time{}, nil
	}
	return r
}

func unused(r permissions.Request, e permissions.Transition) permissions.Request {
	if _, uses := e.(permissions.Use); uses {
		r.UsedAt, r.UsedCall = time.Time{}, ""
	}
	return r
}

func alone(r permissions.Request, _ permissions.Transition) permissions.Request {
	r.Quorum = 1
	return r
}

func endless(r permissions.Request, e permissions.Transition) permissions.Request {
	if _, ends := e.(permissions.Expire); ends {
		r.State = permissions.Expired // as if it were over already
	}
	return r
}

func overruled(r permissions.Request, _ permissions.Transition) permissions.Request {
	r.Votes = slices.DeleteFunc(slices.Clone(r.Votes), func(v permissions.Vote) bool { return v.By == "sam" })
	return r
}

// TestTheCheckerFindsBrokenStores: each of these stores is found out within so many days.
func TestTheCheckerFindsBrokenStores(t *testing.T) {
	for name, w := range map[string]wrong{
		"a commit that was acknowledged is lost with the daemon": {forgets: true},
		"two outcomes of one request":                            {row: unsettled},
		"an approval that is used twice":                         {row: unused},
		"a quorum of one":                                        {row: alone},
		"a vote that vanishes":                                   {row: overruled},
		"a deadline that comes early":                            {hurry: 20 * time.Second},
		"a deadline that does not come":                          {row: endless},
		"an audit that does not tell what was settled":           {mute: permissions.RequestSettled},
		"an audit that does not tell who voted":                  {mute: permissions.RequestVoted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const within = 150
			for seed := uint64(1); seed <= within; seed++ {
				if found := day(t, seed, w).judge.found; len(found) > 0 {
					t.Logf("seed %d: %s", seed, found[0])
					return
				}
			}
			t.Errorf("nobody noticed on %d days", within)
		})
	}
}
