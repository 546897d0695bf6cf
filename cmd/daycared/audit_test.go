package main

import (
	"slices"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// TestNewestMatching: the last matching entries are found from the end of the chain, across gaps, and what is far before them is not read.
func TestNewestMatching(t *testing.T) {
	var chain []permissions.Entry
	for _, part := range [][2]int64{{40, 3000}, {2_000_001, 2_000_500}} {
		for seq := part[0]; seq <= part[1]; seq++ {
			chain = append(chain, permissions.Entry{Seq: seq, Record: permissions.Record{At: time.Unix(seq, 0)}})
		}
	}
	pages := 0
	read := func(after int64) ([]permissions.Entry, error) {
		pages++
		i, _ := slices.BinarySearchFunc(chain, after+1, func(e permissions.Entry, seq int64) int { return int(e.Seq - seq) })
		if after < 0 {
			i = max(len(chain)+int(after), 0)
		}
		return chain[i:min(i+1000, len(chain))], nil
	}
	for _, c := range []struct {
		every, since   int64
		limit, pages   int
		first, matched int64
	}{
		{1, 0, 7, 2, 2_000_494, 7}, {100, 0, 5, 2, 2_000_100, 5}, {100, 0, 6, 20, 3000, 6}, {1500, 0, 9, 30, 1500, 2},
		{100, 2_000_200, 9, 4, 2_000_200, 4}, {7_000_000, 0, 3, 40, 0, 0},
	} {
		pages = 0
		since := time.Unix(c.since, 0)
		got, err := newestMatching(read, since, c.limit, func(e permissions.Entry) (bool, error) {
			return e.Seq%c.every == 0 && !e.At.Before(since), nil
		})
		if err != nil || int64(len(got)) != c.matched || pages > c.pages || len(got) > 0 && got[0].Seq != c.first ||
			!slices.IsSortedFunc(got, func(a, b permissions.Entry) int { return int(a.Seq - b.Seq) }) {
			t.Errorf("%+v: %d after %d pages, %v: %v", c, len(got), pages, err, got[:min(1, len(got))])
		}
	}
}
