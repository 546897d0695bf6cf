package store

import (
	"context"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/daycared/daycared/permissions"
)

// mostRows is how many requests are kept in memory: some two kilobytes each, and as many as are asked and answered within
// a moment.
const mostRows = 2048

// rows are the requests that were written last, as they stand in the file or in the transaction that writes just now. What
// is asked is answered, used and noted as seen soon after, and none of that has to read the row again while others wait.
//
// They belong to whoever has the turn to write, and nobody else writes the file. Every statement that changes what
// [requestColumns] are of a request keeps or drops it here; when a transaction comes to nothing, all are dropped.
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

func (m *rows) keep(r permissions.Request) { m.lru.Add(r.ID, r) }

func (m *rows) drop(id permissions.ID) { m.lru.Remove(id) }

func (m *rows) dropAll() { m.lru.Purge() }

// load is the request of that id as it stands in the transaction, or a refusal.
func (t *tx) load(ctx context.Context, id permissions.ID) (permissions.Request, error) {
	if r, kept := t.rows.lru.Get(id); kept {
		return r, nil
	}
	return load(ctx, t, id)
}
