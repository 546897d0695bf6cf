package store

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/internal/pgtest"
	"github.com/daycared/daycared/permissions"
)

// idleDaemons have four connections each: one writes, one listens, two read.
const idleDaemons = 250

// BenchmarkIdleDaemons: what so many daemons that have nothing to do cost PostgreSQL, by its processes' own times: each listens, looks for
// what others wrote, says that it runs, and tries for a lease that another one has.
func BenchmarkIdleDaemons(b *testing.B) {
	cluster, err := pgtest.Start("max_connections=2000", "shared_buffers=128MB")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cluster.Close() }) // it is deleted
	ctx, stop := context.WithCancel(b.Context())
	var work sync.WaitGroup
	for i := range idleDaemons {
		o := options(filepath.Join(b.TempDir(), "daycared.db"))
		if o.Server = cluster.Socket("postgres"); i > 0 {
			o.KeyFile = filepath.Join(filepath.Dir(o.Path), "..", "001", "audit.key")
		}
		s, err := Open(ctx, o)
		if err != nil {
			b.Fatal(err)
		}
		work.Go(func() { _ = s.Follow(ctx, func(context.Context, []permissions.Entry) error { return nil }) })
		work.Go(func() { _ = s.AcquireLease(ctx, "chats") })
		b.Cleanup(func() { _ = s.Close() })
	}
	db, err := sql.Open("pgx", cluster.Socket("postgres"))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	connections, pid := 0, 0
	err = db.QueryRowContext(ctx, `SELECT COUNT(*), pg_backend_pid() FROM pg_stat_activity WHERE application_name = 'daycared'`).
		Scan(&connections, &pid)
	if err != nil {
		b.Fatal(err)
	}
	const lasting = 30 * time.Second
	for b.Loop() {
		before := serverTimes(b, pid)
		<-time.After(lasting)
		used := serverTimes(b, pid) - before
		b.ReportMetric(float64(connections), "connections")
		b.ReportMetric(100*used.Seconds()/lasting.Seconds(), "%-of-a-core")
		b.ReportMetric(1000*used.Seconds()/lasting.Seconds()/idleDaemons, "ms/s-each")
	}
	stop()
	work.Wait()
}

// serverTimes is the processor time of PostgreSQL, given one of its processes.
func serverTimes(b *testing.B, pid int) (sum time.Duration) {
	b.Helper()
	fields := func(pid string) []string {
		text, _ := os.ReadFile("/proc/" + pid + "/stat") // it may have ended
		_, after, _ := strings.Cut(string(text), ") ")
		return strings.Fields(after)
	}
	main := fields(strconv.Itoa(pid))[1]
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		b.Fatal(err)
	}
	ticks := 0
	for _, dir := range all {
		f := fields(filepath.Base(dir))
		times := f[min(11, len(f)):min(13, len(f))]
		if filepath.Base(dir) == main {
			times = f[11:15] // with those of processes that have ended
		} else if len(f) == 0 || f[1] != main {
			continue
		}
		for _, text := range times {
			n, err := strconv.Atoi(text)
			if err != nil {
				b.Fatal(fmt.Errorf("read %s: %w", dir, err))
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
