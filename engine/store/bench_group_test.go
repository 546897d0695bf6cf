package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// BenchmarkThroughput measures how many requests per second so many callers open and decide durably, each waiting for
// one commit before the next. A minimal group writer alternates with it on the same disk, which writes the same columns
// to the same tables and reads nothing.
func BenchmarkThroughput(b *testing.B) {
	for callers, each := range map[int]int{1: 300, 100: 100, 1000: 20} {
		b.Run("callers-"+strconv.Itoa(callers), func(b *testing.B) {
			s, same := newStore(b), newBareSame(b)
			var whole, alike []float64
			for b.Loop() {
				whole = append(whole, rate(callers, each, func() { decided(b, s) }))
				alike = append(alike, rate(callers, each, same.decide))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(whole), "decided/s")
			b.ReportMetric(median(alike), "same-schema/s")
			b.ReportMetric(median(divide(whole, alike)), "of-same-schema")
		})
	}
}

// realAsk is a request with a copy in an open inbox, as most have.
func realAsk() permissions.Opening {
	o := newAsk()
	o.Copies = []permissions.Copy{{
		Request: o.Request.ID, Person: "fay", Connector: "admin", Ref: "1", Button: permissions.NewButton(), Shown: permissions.ShownAlways,
		DueAt: o.Request.CreatedAt, SentAt: o.Request.CreatedAt,
	}}
	return o
}

// fayAllowsACall is her answer to a call that waits, which uses it in the same commit.
func fayAllowsACall() permissions.Cast {
	c := fayAllows()
	c.Use = &permissions.Use{At: c.Vote.At}
	return c
}

func decided(b testing.TB, s *Store) {
	r, _, err := s.Open(context.Background(), realAsk())
	if err == nil {
		_, err = s.Apply(context.Background(), r.ID, fayAllowsACall())
	}
	if err != nil {
		b.Error(err)
	}
}

// TestTheBareWriterWritesTheRowsOfTheStore runs both writers of BenchmarkThroughput once, in every table with the same rows.
func TestTheBareWriterWritesTheRowsOfTheStore(t *testing.T) {
	s, same := newStore(t), newBareSame(t)
	decided(t, s)
	same.decide()
	count := func(ctx context.Context, q interface {
		QueryRowContext(context.Context, string, ...any) *sql.Row
	}, table string) (rows int) {
		if err := q.QueryRowContext(ctx, `SELECT COUNT(*) FROM `+table).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	for _, table := range []string{"requests", "copies", "votes", "audit"} {
		stored, bare := count(t.Context(), s.writer, table), count(t.Context(), same.conn, table)
		if stored == 0 || stored != bare {
			t.Errorf("%s has %d rows of the store and %d of the bare writer", table, stored, bare)
		}
	}
}

// rate is how often per second do ends, with concurrent callers.
func rate(callers, each int, do func()) float64 {
	var all sync.WaitGroup
	start := time.Now()
	for range callers {
		all.Go(func() {
			for range each {
				do()
			}
		})
	}
	all.Wait()
	return float64(callers*each) / time.Since(start).Seconds()
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

func divide(some, by []float64) []float64 {
	ratios := make([]float64, len(some))
	for i := range some {
		ratios[i] = some[i] / by[i]
	}
	return ratios
}

// bare is a minimal group writer: one goroutine takes all that is queued into one transaction.
type bare struct {
	b      testing.TB
	conn   *sql.Conn
	jobs   chan bareJob
	insert func() (string, func())
	update func(id string) func()
}

type bareJob struct {
	do   func()
	done chan struct{}
}

func (w *bare) run() {
	for j := range w.jobs {
		group := []bareJob{j}
		for more := true; more && len(group) < maxGroup; {
			select {
			case j, more = <-w.jobs:
				if more {
					group = append(group, j)
				}
			default:
				more = false
			}
		}
		w.exec("BEGIN IMMEDIATE")
		for _, j := range group {
			j.do()
		}
		w.exec("COMMIT")
		for _, j := range group {
			close(j.done)
		}
	}
}

func (w *bare) exec(text string, args ...any) {
	if _, err := w.conn.ExecContext(context.Background(), text, args...); err != nil {
		w.b.Error(err)
	}
}

func (w *bare) commit(do func()) {
	j := bareJob{do: do, done: make(chan struct{})}
	w.jobs <- j
	<-j.done
}

func (w *bare) decide() {
	id, insert := w.insert()
	w.commit(insert)
	w.commit(w.update(id))
}

func newBareWriter(b testing.TB, db *sql.DB) *bare {
	b.Helper()
	conn, err := db.Conn(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	w := &bare{b: b, conn: conn, jobs: make(chan bareJob, maxGroup)}
	var ended sync.WaitGroup
	ended.Go(w.run)
	b.Cleanup(func() { close(w.jobs); ended.Wait(); _ = conn.Close() })
	return w
}

// newBareSame writes the rows of Open and Apply for a request that one person allows, with constant bytes for hashes and seals.
func newBareSame(b testing.TB) *bare {
	b.Helper()
	s := newStore(b)
	w := newBareWriter(b, s.writer)
	insertRow := `INSERT INTO requests (` + insertedColumns + `) VALUES (` + parameters(insertedColumns) + `)`
	updateRow := `UPDATE requests SET (` + changedColumns + `) = (` + parameters(changedColumns) + `) WHERE id = ` +
		parameter(strings.Count(changedColumns, ",")+2)
	seq := int64(0)
	var n atomic.Int64
	mac := make([]byte, sha256.Size)
	entry := func(r permissions.Request, what permissions.Record) {
		seq++
		w.exec(addEntry, s.entryRow(&permissions.Entry{Chain: s.chain, Seq: seq, Record: what}, r.Number, r.Digest)...)
	}
	var asked sync.Map
	w.insert = func() (string, func()) {
		o := realAsk()
		r, shown := o.Request, o.Copies[0]
		r.Number = n.Add(1)
		asked.Store(string(r.ID), r)
		args := append(append(fixedFields(&r), changingFields(&r)...),
			int64(0), mac, false, nothingShown, false, mac, int64(0), r.Number)
		return string(r.ID), func() {
			w.exec(insertRow, args...)
			w.exec(insertCopy, append(copyFields(&shown), mac)...)
			for _, record := range append(permissions.Opened(r), firstShown(shown)...) {
				entry(r, record)
			}
		}
	}
	w.update = func(id string) func() {
		asked, _ := asked.LoadAndDelete(id)
		r, _ := asked.(permissions.Request)
		c, err := permissions.Step(r, fayAllowsACall())
		if err != nil {
			b.Error(err)
		}
		v := *c.Vote
		return func() {
			w.exec(updateRow, append(changingFields(&c.After), int64(0), mac, id)...)
			w.exec(addVote, append([]any{r.Number}, voteFields(&v)...)...)
			for _, record := range c.Records {
				entry(r, record)
			}
		}
	}
	return w
}
