package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Apply implements [registry.Store]. With an error of [permissions.Step], and with the refusal while everything is stopped, the
// Change holds the unchanged row. Using an approval whose grants are no longer in force revokes it instead (see borne).
func (s *Store) Apply(ctx context.Context, id permissions.ID, e permissions.Transition) (permissions.Change, error) {
	if by := s.halt.Load(); by != nil && permissions.PreventedByStop(e) {
		c, resumed, err := s.refuse(ctx, id, e, *by)
		if !resumed {
			return c, err
		}
	}
	var c permissions.Change
	var refused error
	err := s.enter(ctx, &writeJob{of: id, ctx: context.WithoutCancel(ctx), do: func(ctx context.Context, t *tx) error {
		before, err := s.current(ctx, t, id)
		if err != nil {
			return err
		}
		c, refused = permissions.Change{Before: before, After: before}, nil
		if seen, err := voteKnown(ctx, t, e); seen || err != nil {
			return err
		}
		if t.stopped != "" && permissions.PreventedByStop(e) {
			refused = permissions.Stopped(t.stopped)
			return nil
		}
		if permissions.PreventedByStop(e) {
			if err := s.server.checkClosed(); err != nil {
				return err
			}
		}
		if _, uses := e.(permissions.Use); uses && s.usedBefore(before) {
			refused = permissions.ErrNoUse
			return nil
		}
		if c, refused, err = s.step(ctx, t, before, e); err != nil {
			return err
		}
		if refused == nil && !c.Empty() {
			c.After = asStored(c.After)
			s.commit(ctx, t, c)
		}
		return nil
	}})
	if err != nil {
		return permissions.Change{}, err
	}
	return c, refused
}

// step is [permissions.Step], except that it never uses an approval that depends on grants that are over.
func (s *Store) step(
	ctx context.Context, from source, before permissions.Request, e permissions.Transition,
) (c permissions.Change, refused, err error) {
	c, refused = permissions.Step(before, e)
	use, uses := e.(permissions.Use)
	if refused != nil || (!uses && !c.ApprovedAndUsed()) {
		return c, refused, nil
	}
	if !uses {
		use.At = c.After.UsedAt
	}
	held, err := s.grantsInForce(ctx, from, before, use.At)
	if held || err != nil {
		return c, nil, err
	}
	if cast, votes := e.(permissions.Cast); votes { // voting is allowed; using the approval fails later
		cast.Use = nil
		c, refused = permissions.Step(before, cast)
		return c, refused, nil
	}
	c, refused = revokeUnlessUsed(before, use.At)
	return c, refused, nil
}

// refuse is Apply while everything is stopped. It does not wait for a write, because cancelling all requests may take long. It returns
// resumed if the row that it read may be of after the stop.
func (s *Store) refuse(
	ctx context.Context, id permissions.ID, e permissions.Transition, by string,
) (c permissions.Change, resumed bool, err error) {
	seen := false
	err = s.read(ctx, func(from source) error {
		own, err := readIdentity(ctx, from)
		if resumed = err != nil || own.stoppedBy == ""; resumed { // or somebody changed the rows: a write finds out
			return nil
		}
		by = own.stoppedBy
		r, err := s.load(ctx, from, id)
		if err != nil {
			return err
		}
		c = permissions.Change{Before: r, After: r}
		seen, err = voteKnown(ctx, from, e)
		return err
	})
	switch {
	case err != nil || resumed:
		return permissions.Change{}, resumed, err
	case seen:
		return c, false, nil
	}
	return c, false, permissions.Stopped(by)
}

// usedBefore reports whether an approval was used in an earlier life: what it allowed is not done again.
func (s *Store) usedBefore(r permissions.Request) bool {
	return !r.UsedAt.IsZero() && r.UsedAt.Before(s.restoredAt)
}

const countKey = `SELECT COUNT(*) FROM request_votes WHERE key = $1 AND key <> ''`

// voteKnown reports whether the vote e was stored before.
func voteKnown(ctx context.Context, from source, e permissions.Transition) (bool, error) {
	cast, votes := e.(permissions.Cast)
	if !votes || cast.Vote.Key == "" {
		return false, nil
	}
	n, err := count(ctx, from, countKey, cast.Vote.Key)
	return n > 0, err
}

const changedColumns = changingColumns + `, due_at, mac`

var updateRequest = func() string {
	n := strings.Count(changedColumns, ",") + 1
	return `UPDATE requests SET (` + changedColumns + `) = (` + parameters(changedColumns) + `) ` +
		`WHERE number = ` + parameter(n+1) + ` AND revision = ` + parameter(n+2) + ` AND id = ` + parameter(n+3)
}()

const releaseKey = `UPDATE requests SET key_live = FALSE WHERE number = $1`

// commit writes the whole change if the row still equals c.Before.
func (s *Store) commit(ctx context.Context, t *tx, c permissions.Change) {
	args := append(changingFields(&c.After), dueAt(c.After), s.seals.request(&c.After),
		c.Before.Number, c.Before.Revision, c.Before.ID)
	if t.change(ctx, updateRequest, args...); t.err == nil {
		t.rows.keep(c.After)
	}
	if c.Vote != nil {
		t.exec(ctx, addVote, append([]any{c.Before.Number}, voteFields(c.Vote)...)...)
	}
	dropVotes(ctx, t, c)
	deleteFailedCopies(ctx, t, c)
	over := c.Voided() || c.Before.LapsedAt.IsZero() && !c.After.LapsedAt.IsZero()
	if over && !c.Before.Caller.IsOurs() {
		t.exec(ctx, releaseKey, c.Before.Number)
	}
	if c.Before.UsedAt.IsZero() && !c.After.UsedAt.IsZero() && c.Before.DecidedVia != permissions.ViaGrant {
		t.fail(s.useGrants(ctx, t, c.Before, c.After.UsedAt)) // else counted when the request was opened
	}
	for _, g := range c.Grants {
		t.exec(ctx, addGrant, append(grantGate.args(s.seals, g), 0)...)
	}
	s.append(ctx, t, c.Records...)
	if c.Voided() {
		t.fail(s.revokeGrantsOf(ctx, t, c))
	}
	for _, n := range c.Notices {
		insertNotice(ctx, t, n)
	}
	if c.Settled() {
		t.pending--
		t.unheeded = t.unheeded || c.After.State == permissions.Denied || c.After.State == permissions.Expired || c.After.TimedOut
		t.exec(ctx, `DELETE FROM waits WHERE request = $1`, c.Before.ID)
	}
}

const addVote = `INSERT INTO request_votes (request, n, ` + voteColumns + `) ` +
	`VALUES ($1, (SELECT COALESCE(MAX(n), 0) + 1 FROM request_votes WHERE request = $1), $2, $3, $4, $5, $6, $7, $8, $9, $10)`

const deleteVotes = `DELETE FROM request_votes WHERE request = $1 AND voter = $2 AND call = $3 AND answer = $4`

// dropVotes deletes the votes that the change removed. In a step, a person's vote on one call may go while one on another stays.
func dropVotes(ctx context.Context, t *tx, c permissions.Change) {
	for _, v := range c.Before.Votes {
		same := func(kept permissions.Vote) bool {
			return kept.By == v.By && kept.Call == v.Call && kept.Answer == v.Answer
		}
		if !slices.ContainsFunc(c.After.Votes, same) {
			t.exec(ctx, deleteVotes, c.Before.Number, v.By, v.Call, v.Answer)
		}
	}
}

const deleteFailed = `DELETE FROM request_copies WHERE request = $1 AND person = $2 AND failed <> ''`

// deleteFailedCopies also deletes the failed copies of everybody whom the change asks: what prevented delivery may have passed.
func deleteFailedCopies(ctx context.Context, t *tx, c permissions.Change) {
	for _, person := range c.After.Asked {
		if !slices.Contains(c.Before.Asked, person) {
			t.exec(ctx, deleteFailed, c.Before.Number, person)
			t.rows.dropCopies(c.Before.ID)
		}
	}
}

// revokeUnlessUsed is the change for using r when its grants are over: it is revoked, unless it was used before.
func revokeUnlessUsed(r permissions.Request, at time.Time) (permissions.Change, error) {
	if r.UsedAt.IsZero() {
		return permissions.Step(r, permissions.Void{At: at})
	}
	return permissions.Change{Before: r, After: r}, permissions.ErrNoUse
}
