package outside

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daycared/daycared/internal/pgtest"
)

// inPostgres makes the commits durable in a PostgreSQL, each group in one round trip with a NOTIFY, by which other bare daemons there
// hear of it.
func (d *bare) inPostgres(url string) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	listens, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	if _, err := listens.Exec(ctx, `LISTEN bare`); err != nil {
		return err
	}
	d.commit = func(group []*bareWrite) error {
		var all pgx.Batch
		var told strings.Builder
		for _, one := range group {
			if one.body != nil {
				all.Queue(`INSERT INTO bare VALUES ($1, 0, $2, '')`, one.id, one.body)
				fmt.Fprintf(&told, "%s asked ", one.id)
				continue
			}
			all.Queue(`UPDATE bare SET state = 1, answer = $1 WHERE id = $2`, one.answer, one.id)
			fmt.Fprintf(&told, "%s %s ", one.id, one.answer)
		}
		all.Queue(`SELECT pg_notify('bare', $1)`, told.String())
		return conn.SendBatch(ctx, &all).Close()
	}
	own := conn.PgConn().PID()
	go func() {
		for {
			n, err := listens.WaitForNotification(ctx)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			if n.PID == own {
				continue
			}
			for words := strings.Fields(n.Payload); len(words) > 1; words = words[2:] {
				if words[1] == "asked" {
					d.asked(words[0])
				} else {
					d.decided(words[0], words[1])
				}
			}
		}
	}()
	return nil
}

// onPostgres makes daemons on one new PostgreSQL with its default durability, which do not run yet.
func onPostgres(b *testing.B, binary string, many int) (all []*measured) {
	b.Helper()
	cluster, err := pgtest.Start()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cluster.Close() })
	url := cluster.URL("postgres")
	if binary == "" {
		conn, err := pgx.Connect(b.Context(), url)
		if err != nil {
			b.Fatal(err)
		}
		_, err = conn.Exec(b.Context(), `CREATE TABLE bare (id TEXT PRIMARY KEY, state INTEGER, body BYTEA, answer TEXT)`)
		if err != nil {
			b.Fatal(err)
		}
		_ = conn.Close(b.Context())
	}
	for range many {
		o := begins(b, binary)
		o.database = url
		if o.auditKey = filepath.Join(o.dir, "audit.key"); len(all) > 0 {
			o.auditKey = all[0].auditKey
		}
		all = append(all, o)
	}
	return all
}

// BenchmarkOutsidePostgres compares a daemon on PostgreSQL with a bare one on another PostgreSQL with the same settings: one asker, a
// hundred, and what is asked at one of two daemons and decided at the other.
func BenchmarkOutsidePostgres(b *testing.B) {
	binary := built(b)
	for b.Loop() {
		ours, least := onPostgres(b, binary, 2), onPostgres(b, "", 2)
		d, bareD := ours[0].run(), least[0].run()
		ours[1].run()
		least[1].run()
		d.decides(1, time.Second)
		bareD.decides(1, time.Second)
		one, bareOne := d.decides(1, 2*time.Second), bareD.decides(1, 2*time.Second)
		b.ReportMetric(one.p50()*1e6, "p50-µs")
		b.ReportMetric(one.p50()/bareOne.p50(), "of-bare-p50")
		many, bareMany := d.decides(100, 3*time.Second), bareD.decides(100, 3*time.Second)
		b.ReportMetric(many.rate, "decided/s")
		b.ReportMetric(many.rate/bareMany.rate, "of-bare-rate")
		d.decider, bareD.decider = ours[1], least[1]
		d.decides(1, time.Second)
		bareD.decides(1, time.Second)
		across, bareAcross := d.decides(1, 2*time.Second), bareD.decides(1, 2*time.Second)
		b.ReportMetric(across.toldP50()*1e6, "across-µs")
		b.ReportMetric(bareAcross.toldP50()*1e6, "bare-across-µs")
		b.ReportMetric(across.toldP50()/bareAcross.toldP50(), "across-of-bare")
		manyAcross, bareManyAcross := d.decides(100, 3*time.Second), bareD.decides(100, 3*time.Second)
		b.ReportMetric(manyAcross.rate, "across-decided/s")
		b.ReportMetric(manyAcross.rate/bareManyAcross.rate, "across-of-bare-rate")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkOutsidePostgresWaiting has ten thousand calls wait at three daemons on one PostgreSQL, decides them all at the third, and
// reports how long that took, the longest from a decision to its call's answer, and what was not answered.
func BenchmarkOutsidePostgresWaiting(b *testing.B) {
	binary := built(b)
	const calls = 10_000
	for b.Loop() {
		three := onPostgres(b, binary, 3)
		for _, d := range three {
			d.run()
		}
		asked := make(chan string, calls)
		ends := three[2].follow(b.Context(), "/v1/events", func(kind string, data []byte) {
			if id := created(kind, data); id != "" {
				asked <- id
			}
		})
		var decided sync.Map
		var waits sync.WaitGroup
		longest, failed := make(chan time.Duration, calls), make(chan error, 2*calls)
		began := time.Now()
		for n := range calls {
			ask := three[n%3]
			c := ask.client("agent", n)
			waits.Go(func() {
				body := question("50s")
				text, err := ask.call(c, "/v1/requests", body)
				for err == nil && bytes.Contains(text, []byte(`"pending"`)) { // as a client does
					text, err = ask.call(c, "/v1/requests", body)
				}
				end := time.Now()
				id, wrong := approved(text)
				since, _ := decided.Load(id)
				if when, is := since.(time.Time); err == nil && wrong == nil && is {
					longest <- end.Sub(when)
				} else {
					failed <- errors.Join(err, wrong)
				}
				c.CloseIdleConnections()
			})
		}
		ids := make([]string, 0, calls)
		for range calls {
			select {
			case id := <-asked:
				ids = append(ids, id)
			case err := <-failed:
				b.Fatalf("asked %d: %v", len(ids), err)
			}
		}
		b.ReportMetric(time.Since(began).Seconds(), "s-to-ask")
		began = time.Now()
		var deciding sync.WaitGroup
		next := make(chan string)
		for range 32 {
			deciding.Go(func() {
				for id := range next {
					decided.Store(id, time.Now())
					if _, err := three[2].call(three[2].admin, "/v1/requests/"+id+"/decision", `{"answer":"allow_once"}`); err != nil {
						failed <- err
					}
				}
			})
		}
		for _, id := range ids {
			next <- id
		}
		close(next)
		deciding.Wait()
		waits.Wait()
		ends()
		b.ReportMetric(time.Since(began).Seconds(), "s-to-decide")
		if close(failed); len(failed) > 0 {
			b.Errorf("the first of %d that failed: %v", len(failed), <-failed)
		}
		close(longest)
		b.ReportMetric(float64(calls-len(longest)), "lost")
		b.ReportMetric(calls, "calls")
		var most time.Duration
		for one := range longest {
			most = max(most, one)
		}
		b.ReportMetric(most.Seconds(), "s-longest")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkOutsidePostgresTwo compares what two daemons on one PostgreSQL decide a second with what one does, each held to 0.3 of a core by
// a control group, which needs root.
func BenchmarkOutsidePostgresTwo(b *testing.B) {
	binary := built(b)
	for b.Loop() {
		two := onPostgres(b, binary, 2)
		first := two[0].run()
		hold(b, first, 0)
		first.decides(100, time.Second)
		one := first.decides(100, 5*time.Second).rate
		hold(b, two[1].run(), 1)
		first.also = two[1]
		first.decides(100, time.Second)
		both := first.decides(100, 5*time.Second).rate
		b.ReportMetric(one, "decided/s-by-one")
		b.ReportMetric(both, "decided/s-by-both")
		b.ReportMetric(both/one, "of-one")
	}
	b.ReportMetric(0, "ns/op")
}

// hold holds a daemon to 0.3 of a core.
func hold(b *testing.B, d *measured, n int) {
	b.Helper()
	name := fmt.Sprintf("daycared-bench-%d-%d", os.Getpid(), n)
	group, most, quota := "/sys/fs/cgroup/"+name, "cpu.max", "30000 100000"
	if _, err := os.Stat("/sys/fs/cgroup/cpu"); err == nil { // the first version
		group, most, quota = "/sys/fs/cgroup/cpu/"+name, "cpu.cfs_quota_us", "30000"
	}
	err := os.Mkdir(group, 0o755)
	b.Cleanup(func() { _ = os.Remove(group) })
	for file, text := range map[string]string{most: quota, "cgroup.procs": strconv.Itoa(d.process.Process.Pid)} {
		err = errors.Join(err, os.WriteFile(filepath.Join(group, file), []byte(text), 0o644))
	}
	if err != nil {
		b.Fatalf("a control group is needed, and root: %v", err)
	}
}
