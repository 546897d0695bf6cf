package store

import (
	"context"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/daycared/daycared/permissions"
)

const (
	// mostRows is how many requests are kept in memory: as many as are asked and answered within a moment.
	mostRows = 2048
	// mostText is how long what one says may be together, in bytes. Most are far shorter; those that show a whole file are
	// read when they are needed.
	mostText = 8 << 10
)

// rows are the requests that were written last, as they stand in the file or in the transaction that writes just now. What
// is asked is answered, used and noted as seen soon after, and none of that has to read the row again while others wait.
//
// They belong to whoever has the turn to write, and nobody else writes the file. Every statement that changes what
// [requestColumns] are of a request keeps or drops it here; when a transaction comes to nothing, or somebody else did write
// the file, all are dropped.
type rows struct {
	lru *simplelru.LRU[permissions.ID, permissions.Request]
}

func newRows() *rows {
	lru, err := simplelru.NewLRU[permissions.ID, permissions.Request](mostRows, nil)
	if err != nil {
		panic(err) // it is for a size below one
	}
	return &rows{lru}
}

func (m *rows) keep(r permissions.Request) {
	if text(r) > mostText {
		m.drop(r.ID)
		return
	}
	m.lru.Add(r.ID, r)
}

// text is how long what may be long in a request is together.
func text(r permissions.Request) int {
	n := len(r.Input) + len(r.AffectedPath) + len(r.Details) + len(r.Message) + len(r.Reason) + len(r.Comment) + len(r.Failure)
	for _, c := range r.Calls {
		n += len(c.Input) + len(c.AffectedPath) + len(c.Comment)
	}
	for _, v := range r.Votes {
		n += len(v.Comment)
	}
	for _, o := range r.Options {
		n += len(o.Label)
	}
	return n
}

func (m *rows) drop(id permissions.ID) { m.lru.Remove(id) }

func (m *rows) dropAll() { m.lru.Purge() }

// current is the request of that id as it stands in the transaction, or a refusal.
func (s *Store) current(ctx context.Context, t *tx, id permissions.ID) (permissions.Request, error) {
	if r, kept := t.rows.lru.Get(id); kept {
		return r, nil
	}
	return s.load(ctx, t, id)
}
