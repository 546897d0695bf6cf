package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/permissions"
)

// usualPending is the default of PENDING, the number of requests pending at the start.
const usualPending = 100_000

// BenchmarkServe measures the time from the execution of the real binary to its first answer at the admin socket, with a list of
// the pending requests, and from SIGTERM, during a Telegram long poll, to its end; alternately with many pending requests and
// with none.
func BenchmarkServe(b *testing.B) {
	many := usualPending
	if n, err := strconv.Atoi(os.Getenv("PENDING")); err == nil {
		many = n
	}
	server := telegramtest.New(b)
	binary := filepath.Join(b.TempDir(), "daycared")
	build := exec.CommandContext(b.Context(), "go", "build", "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	full, empty := newHome(b, binary, server), newHome(b, binary, server)
	full.live(0) // creates the store
	empty.live(0)
	full.fill(many)
	b.Run("pending-"+strconv.Itoa(many), func(b *testing.B) {
		var starts, stops, bare, ratios, fullStops []float64
		for b.Loop() {
			start, stop := full.live(min(many, 1))
			least, leastStop := empty.live(0)
			starts, stops = append(starts, start.Seconds()), append(stops, leastStop.Seconds())
			fullStops = append(fullStops, stop.Seconds())
			bare, ratios = append(bare, least.Seconds()), append(ratios, start.Seconds()/least.Seconds())
		}
		for _, all := range [][]float64{starts, stops, bare, ratios, fullStops} {
			slices.Sort(all)
		}
		middle := len(starts) / 2
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(starts[middle], "s-to-serving")
		b.ReportMetric(bare[middle], "s-with-none")
		b.ReportMetric(ratios[middle], "of-with-none")
		b.ReportMetric(stops[middle], "s-to-end")
		b.ReportMetric(fullStops[middle], "s-to-end-of-cards")
	})
}

// home holds the files of one daemon.
type home struct {
	b      *testing.B
	binary string
	dir    string
	server *telegramtest.Server
}

func newHome(b *testing.B, binary string, server *telegramtest.Server) *home {
	b.Helper()
	dir, err := os.MkdirTemp("", "dc") // sockets need short paths
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	me, err := user.Current()
	if err != nil {
		b.Fatal(err)
	}
	config := "people: [{name: fay, user: %q, telegram: 1000}]\nroutes: [{ask: [fay]}]\n" +
		"connectors: {terminal: {enabled: false}, telegram: {enabled: true, token_file: %s/token, api_url: %q}}\n" +
		"api: {agent_socket: %s/agent, admin_socket: %s/admin, admin_reachable: true}\ndata_dir: %s/data\n"
	config = fmt.Sprintf(config, me.Username, dir, server.URL(), dir, dir, dir)
	for name, text := range map[string]string{"c.yaml": config, "token": server.Token()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return &home{b: b, binary: binary, dir: dir, server: server}
}

// live runs the daemon once, and returns how long it took to serve (to list at least this many requests) and to end.
func (h *home) live(atLeast int) (start, stop time.Duration) {
	h.b.Helper()
	log, err := os.Create(filepath.Join(h.dir, "log"))
	if err != nil {
		h.b.Fatal(err)
	}
	defer log.Close()
	daemon := exec.Command(h.binary, "serve", "--config", filepath.Join(h.dir, "c.yaml"))
	daemon.Stderr = log
	people := admin.NewClient(filepath.Join(h.dir, "admin"), filepath.Join(h.dir, "data", "admin.key"))
	defer people.Close()
	ctx, done := context.WithTimeout(h.b.Context(), time.Minute)
	defer done()
	began := time.Now()
	if err := daemon.Start(); err != nil {
		h.b.Fatal(err)
	}
	_, err = backoff.Retry(ctx, func() (int, error) {
		list, err := people.List(ctx, "", 1)
		if err == nil && len(list) < atLeast {
			err = backoff.Permanent(fmt.Errorf("it lists %d", len(list)))
		}
		return len(list), err
	}, backoff.WithBackOff(backoff.NewConstantBackOff(time.Millisecond)), backoff.WithMaxElapsedTime(time.Minute))
	start = time.Since(began)
	if err == nil {
		err = h.server.Polling(ctx)
	}
	began = time.Now()
	_ = daemon.Process.Signal(syscall.SIGTERM)
	if ended := daemon.Wait(); err != nil || ended != nil {
		text, _ := os.ReadFile(log.Name())
		h.b.Fatalf("%v, %v\n%s", err, ended, text)
	}
	return start, time.Since(began)
}

// fill stores this many pending requests, each with a card on fay's phone.
func (h *home) fill(many int) {
	h.b.Helper()
	rows, err := store.Open(h.b.Context(), store.Options{
		Path: filepath.Join(h.dir, "data", storeName), Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		h.b.Fatal(err)
	}
	const atOnce = 256
	var all sync.WaitGroup
	for first := range atOnce {
		all.Go(func() {
			for n := first; n < many && !h.b.Failed(); n += atOnce {
				if _, _, err := rows.Open(h.b.Context(), waiting(n)); err != nil {
					h.b.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := rows.Close(); err != nil || h.b.Failed() {
		h.b.Fatal(err)
	}
}

// waiting is a remote agent's request that was just shown.
func waiting(n int) permissions.Opening {
	now := time.Now().UTC().Truncate(time.Microsecond)
	r := permissions.Request{
		ID: permissions.NewID(now), Revision: 1, Version: permissions.DigestVersion, Kind: permissions.KindTool, Tool: "write_file",
		Input: fmt.Appendf(nil, `{"path":"/srv/www/%d"}`, n), Caller: permissions.Caller{Name: "token:scribe", UID: permissions.NoUID},
		Asked: []string{"fay"}, Quorum: 1, State: permissions.Pending, CreatedAt: now, Deadline: now.Add(24 * time.Hour),
	}
	r.Digest = permissions.ComputeDigest(r)
	r.Options = permissions.Offer(r, []permissions.Scope{permissions.Once}, permissions.Scope{})
	return permissions.Opening{Request: r, Copies: []permissions.Copy{{
		Request: r.ID, Person: "fay", Connector: "telegram", Ref: fmt.Sprint(n), Button: permissions.NewButton(), Shown: r.Revision,
		DueAt: now, SentAt: now,
	}}}
}
