package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/daycared/daycared/permissions"
)

// Apply is [permissions.Store]. Beside an error of [permissions.Step], and beside the refusal while everything is
// stopped, the Change holds the row as it is.
func (s *Store) Apply(ctx context.Context, id permissions.ID, e permissions.Event) (permissions.Change, error) {
	var c permissions.Change
	var refused error
	err := s.write(ctx, func(ctx context.Context, t *tx) error {
		before, err := load(ctx, t, id)
		if err != nil {
			return err
		}
		c = permissions.Change{Before: before, After: before}
		if seen, err := known(ctx, t, e); seen || err != nil {
			return err
		}
		if refused = halted(t, e); refused == nil {
			c, refused = permissions.Step(before, e)
		}
		if refused == nil && !c.Empty() {
			c.After = asStored(c.After)
			return s.commit(ctx, t, c)
		}
		return nil
	})
	if err != nil {
		return permissions.Change{}, err
	}
	return c, refused
}

// halted refuses what may not happen while everything is stopped: nothing is allowed, and no approval is used.
func halted(t *tx, e permissions.Event) error {
	switch e.(type) {
	case permissions.Cast, permissions.Use:
		if t.stopped != "" {
			return permissions.Stopped(t.stopped)
		}
	}
	return nil
}

const readRequest = `SELECT ` + requestColumns + ` FROM requests WHERE id = $1`

// load reads one request by its id, or refuses.
func load(ctx context.Context, from source, id permissions.ID) (permissions.Request, error) {
	r, err := one(ctx, from, readRequest, id)
	if errors.Is(err, sql.ErrNoRows) {
		return r, permissions.Unknown(string(id))
	}
	return r, err
}

const countKey = `SELECT COUNT(*) FROM votes WHERE key = $1 AND key <> ''`

// known tells whether e is a vote that came before.
func known(ctx context.Context, t *tx, e permissions.Event) (bool, error) {
	cast, votes := e.(permissions.Cast)
	if !votes || cast.Vote.Key == "" {
		return false, nil
	}
	n := 0
	err := t.QueryRowContext(ctx, countKey, cast.Vote.Key).Scan(&n)
	return n > 0, err
}

const changedColumns = changingColumns + `, remind_at`

var updateRequest = func() string {
	n := strings.Count(changedColumns, ",") + 1
	return `UPDATE requests SET (` + changedColumns + `) = (` + parameters(changedColumns) + `) ` +
		`WHERE number = ` + parameter(n+1) + ` AND revision = ` + parameter(n+2)
}()

// commit writes all of a change, if the row is still the one that it was made from.
func (s *Store) commit(ctx context.Context, t *tx, c permissions.Change) error {
	args := append(changingFields(&c.After), micros(reminding(c.After)), c.Before.Number, c.Before.Revision)
	result, err := t.ExecContext(ctx, updateRequest, args...)
	if err != nil {
		return err
	}
	if n, _ := result.RowsAffected(); n != 1 {
		return damaged("request "+string(c.Before.ID), fmt.Errorf("%d rows have its number and revision", n))
	}
	if c.Vote != nil {
		if err := insertVote(ctx, t, c.Before.ID, *c.Vote); err != nil {
			return err
		}
	}
	if err := dropVotes(ctx, t, c); err != nil {
		return err
	}
	for _, g := range c.Grants {
		if err := insertGrant(ctx, t, g); err != nil {
			return err
		}
	}
	for _, record := range c.Records {
		if err := s.append(ctx, t, record); err != nil {
			return err
		}
	}
	if c.Voided() {
		if err := s.takeBack(ctx, t, c); err != nil {
			return err
		}
	}
	for _, n := range c.Notices {
		if err := insertNotice(ctx, t, n); err != nil {
			return err
		}
	}
	if c.Settled() {
		t.pending--
	}
	return nil
}

const addVote = `INSERT INTO votes (request, n, voter, via, answer, call, comment, at, key) ` +
	`VALUES ($1, (SELECT COALESCE(MAX(n), 0) + 1 FROM votes WHERE request = $1), $2, $3, $4, $5, $6, $7, $8)`

func insertVote(ctx context.Context, t *tx, id permissions.ID, v permissions.Vote) error {
	_, err := t.ExecContext(ctx, addVote, id, v.By, v.Via, v.Answer, v.Call, v.Comment, instant{&v.At}, v.Key)
	return err
}

const deleteVotes = `DELETE FROM votes WHERE request = $1 AND voter = $2`

// dropVotes deletes the votes of the people whose votes the change took out.
func dropVotes(ctx context.Context, t *tx, c permissions.Change) error {
	for _, v := range c.Before.Votes {
		if slices.ContainsFunc(c.After.Votes, func(kept permissions.Vote) bool { return kept.By == v.By }) {
			continue
		}
		if _, err := t.ExecContext(ctx, deleteVotes, c.Before.ID, v.By); err != nil {
			return err
		}
	}
	return nil
}
