package store

import (
	"context"
	"database/sql"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

// BenchmarkOpenApply compares a durable request and decision with the least that SQLite does: an insert and an update of a
// small row by prepared statements of one connection, each of which commits itself. They alternate on the same disk.
func BenchmarkOpenApply(b *testing.B) {
	for _, pending := range []int{0, 100, 100_000} {
		b.Run("pending-"+strconv.Itoa(pending), func(b *testing.B) {
			s := newStore(b)
			add, change := newBare(b)
			crowd(b, s, pending)
			var whole, limit []time.Duration
			for b.Loop() {
				start := time.Now()
				r := insert(b, s)
				if _, err := s.Apply(context.Background(), r.ID, fayAllows()); err != nil {
					b.Fatal(err)
				}
				middle := time.Now()
				commit(b, add, string(r.ID))
				commit(b, change, string(r.ID))
				whole, limit = append(whole, middle.Sub(start)), append(limit, time.Since(middle))
			}
			slices.Sort(whole)
			slices.Sort(limit)
			for name, p := range map[string]int{"p50": 50, "p99": 99} {
				w, l := whole[len(whole)*p/100], limit[len(limit)*p/100]
				b.ReportMetric(float64(w.Microseconds()), "µs-"+name)
				b.ReportMetric(float64(l.Microseconds()), "µs-two-commits-"+name)
				b.ReportMetric(float64(w)/float64(l), "ratio-"+name)
			}
		})
	}
}

// BenchmarkCrowded compares a request and its decision while a hundred thousand are pending with the same while a hundred are.
func BenchmarkCrowded(b *testing.B) {
	many, few := newStore(b), newStore(b)
	crowd(b, many, 100_000)
	crowd(b, few, 100)
	b.Run("pending-100000", func(b *testing.B) {
		took := map[*Store][]time.Duration{}
		for b.Loop() {
			for _, s := range []*Store{many, few} {
				start := time.Now()
				r := insert(b, s)
				if _, err := s.Apply(context.Background(), r.ID, fayAllows()); err != nil {
					b.Fatal(err)
				}
				took[s] = append(took[s], time.Since(start))
			}
		}
		b.ReportMetric(0, "ns/op")
		slices.Sort(took[many])
		slices.Sort(took[few])
		for name, p := range map[string]int{"p50": 50, "p99": 99} {
			m, f := took[many][len(took[many])*p/100], took[few][len(took[few])*p/100]
			b.ReportMetric(float64(m.Microseconds()), "µs-"+name)
			b.ReportMetric(float64(f.Microseconds()), "µs-with-100-"+name)
			b.ReportMetric(float64(m)/float64(f), "ratio-"+name)
		}
	})
}

// BenchmarkStart opens a store with many pending requests, up to the daemon's first call.
func BenchmarkStart(b *testing.B) {
	s := newStore(b)
	crowd(b, s, 100_000)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, err := Open(context.Background(), options(s.path))
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := s.Due(context.Background(), time.Now(), time.Minute, 500); err != nil {
			b.Fatal(err)
		}
		insert(b, s)
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func newBare(b *testing.B) (add, change *sql.Stmt) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "bare.db")
	if err := create(path); err != nil {
		b.Fatal(err)
	}
	db := connect(path, time.Second, 1, "_journal_mode=WAL&_synchronous=FULL")
	b.Cleanup(func() { _ = db.Close() })
	prepare := func(text string) *sql.Stmt {
		s, err := db.PrepareContext(context.Background(), text)
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	commit(b, prepare("CREATE TABLE bare (id TEXT PRIMARY KEY, state INTEGER)"))
	return prepare("INSERT INTO bare (id, state) VALUES ($1, 0)"), prepare("UPDATE bare SET state = 1 WHERE id = $1")
}

func commit(b *testing.B, s *sql.Stmt, args ...any) {
	b.Helper()
	if _, err := s.ExecContext(context.Background(), args...); err != nil {
		b.Fatal(err)
	}
}

// crowd inserts n pending requests in one transaction.
func crowd(b testing.TB, s *Store, n int) {
	b.Helper()
	err := s.write(context.Background(), func(ctx context.Context, t *tx) error {
		for range n {
			row, err := makeRow(newAsk())
			if err == nil {
				_, err = s.insert(ctx, t, row)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkCommit is a durable step of one session among many waiting ones, and what a start reads of them.
func BenchmarkCommit(b *testing.B) {
	for _, open := range []int{0, 10_000} {
		b.Run("open-"+strconv.Itoa(open), func(b *testing.B) {
			s := newStore(b)
			_, err := s.writer.ExecContext(context.Background(), `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n `+
				`WHERE n < $1) INSERT INTO sessions SELECT n, '0' || n, 1, 'agent' || n, 'fay', '', 'awaiting_user', 'm', 1, 0, 'r' || n, `+
				`'t', 1, 1, 0, 0, FALSE, '{"at":"WAIT_ACK"}' FROM n WHERE $1 > 0`, open)
			if err != nil {
				b.Fatal(err)
			}
			c := agents.Commit{
				Session: permissions.AgentSession{ID: permissions.NewID(time.Now()), Agent: "helper"},
				Turns:   []agents.Turn{{Content: []byte(`{"role":"user","text":"hello"}`)}},
			}
			for b.Loop() {
				c.Session.Version++
				if err := s.Commit(context.Background(), c); err != nil {
					b.Fatal(err)
				}
			}
			start, after := time.Now(), permissions.ID("")
			for {
				page, err := s.OpenSessions(context.Background(), after, 500)
				if err != nil {
					b.Fatal(err)
				}
				if len(page) == 0 {
					break
				}
				after = page[len(page)-1].ID
			}
			b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms-reading-all-open")
		})
	}
}
