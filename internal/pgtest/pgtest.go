// Package pgtest runs a PostgreSQL for the tests of one process: in a folder of its own, on a unix socket and loopback, under another
// account if the tests run as root, which PostgreSQL refuses. It ends with the process, even one that is killed.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Cluster is a running PostgreSQL.
type Cluster struct {
	dir, bin string
	port     int
	account  *syscall.Credential
	settings []string

	mu   sync.Mutex
	made int                 // databases
	free map[string][]string // those that no test uses any more, by their kind
	run  *exec.Cmd
	tied io.Closer // what keeps it running
}

// shared is the cluster of the tests of a process that need no own one.
var shared = sync.OnceValues(func() (*Cluster, error) { return Start("fsync=off", "full_page_writes=off", "synchronous_commit=off") })

// Database is [Open] for a test, which fails without PostgreSQL.
func Database(t testing.TB, kind string, prepare func(url string, used bool) error) string {
	t.Helper()
	url, release, err := Open(kind, prepare)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := release(); err != nil {
			t.Error(err)
		}
	})
	return url
}

// Open returns the URL of a database in a cluster that all tests of the process share: an empty one, or one of this kind that was
// released, because making one takes several times as long as deleting all rows. prepare does either. Nothing there survives a crash of
// the machine. Without PostgreSQL, the error says what to install. It is safe for concurrent use.
func Open(kind string, prepare func(url string, used bool) error) (url string, release func() error, err error) {
	c, err := shared()
	if err != nil {
		return "", nil, err
	}
	c.mu.Lock()
	last := len(c.free[kind]) - 1
	name, used := "", last >= 0
	if used {
		name, c.free[kind] = c.free[kind][last], c.free[kind][:last]
	} else {
		c.made++
		name = fmt.Sprintf("test_%d", c.made)
	}
	c.mu.Unlock()
	ctx := context.Background()
	if !used {
		err = c.exec(ctx, "CREATE DATABASE "+name)
	}
	if err == nil {
		err = prepare(c.URL(name), used)
	}
	return c.URL(name), func() error {
		err := c.exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.free[kind] = append(c.free[kind], name)
		return err
	}, err
}

// programs is the folder of PostgreSQL's programs.
func programs() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres") // the pattern is valid
	newest := func() (at string) {
		version := 0
		for _, path := range found {
			if n, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))); err == nil && n > version {
				version, at = n, path
			}
		}
		return at
	}()
	if newest != "" {
		return filepath.Dir(newest), nil
	}
	at, err := exec.LookPath("postgres")
	if err != nil {
		return "", errors.New("PostgreSQL is missing: apt-get install postgresql")
	}
	return filepath.Dir(at), nil
}

// Start makes a cluster with these settings and starts it. The caller closes it, or leaves it to the end of the process.
func Start(settings ...string) (*Cluster, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	c := &Cluster{bin: bin, settings: settings, free: map[string][]string{}}
	if c.dir, err = os.MkdirTemp("", "daycared-pg-"); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		if c.account, err = otherAccount(); err != nil {
			return nil, err
		}
		if err := os.Chown(c.dir, int(c.account.Uid), int(c.account.Gid)); err != nil {
			return nil, err
		}
	}
	made := c.command(filepath.Join(bin, "initdb"), "-D", c.data(), "-U", "daycared", "--auth=trust", "--encoding=UTF8", "--locale=C",
		"--no-sync")
	if said, err := made.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, said)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c.port = l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it listens on TCP
	if err := l.Close(); err != nil {
		return nil, err
	}
	return c, c.Run()
}

// otherAccount is an account that is not root's.
func otherAccount() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(found.Uid, 10, 32)
		gid, bad := strconv.ParseUint(found.Gid, 10, 32)
		if errors.Join(err, bad) == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no account postgres or nobody")
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	command := exec.Command(name, args...)
	command.Dir = c.dir
	command.SysProcAttr = &syscall.SysProcAttr{Credential: c.account, Setpgid: true} // a ^C is for the tests
	return command
}

// runs starts PostgreSQL, and ends it when its input ends, as it does with the process that wrote to it. The folder goes with it, unless
// it is to be started again.
const runs = `"$0"/postgres "$@" >>log 2>&1 &
cat >/dev/null
kill -QUIT $!
wait
[ -e again ] || rm -rf "$PWD"`

// Run starts the cluster again after a Stop, and waits until it answers.
func (c *Cluster) Run() error {
	args := []string{"-c", runs, c.bin, "-D", c.data(), "-k", c.dir, "-p", strconv.Itoa(c.port)}
	for _, setting := range append([]string{"listen_addresses=127.0.0.1", "shared_buffers=32MB", "max_connections=200",
		"autovacuum=off", "log_min_messages=warning"}, c.settings...) {
		args = append(args, "-c", setting)
	}
	_ = os.Remove(filepath.Join(c.dir, "again")) // a first start has none
	run := c.command("/bin/sh", args...)
	tied, err := run.StdinPipe()
	if err != nil {
		return err
	}
	if err := run.Start(); err != nil {
		return err
	}
	c.mu.Lock()
	c.run, c.tied = run, tied
	c.mu.Unlock()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(30 * time.Second); ; <-tick.C {
		err := c.exec(context.Background(), "SELECT 1")
		if err == nil {
			return nil
		}
		if time.Now().After(until) {
			said, _ := os.ReadFile(filepath.Join(c.dir, "log")) // without it, the error says less
			return fmt.Errorf("PostgreSQL does not answer: %w\n%s", err, said)
		}
	}
}

// Stop stops the cluster at once, as a crash of PostgreSQL does. It can be run again.
func (c *Cluster) Stop() error {
	f, err := os.Create(filepath.Join(c.dir, "again"))
	if err == nil {
		err = errors.Join(f.Close(), c.end())
	}
	return err
}

// Close stops the cluster and deletes it.
func (c *Cluster) Close() error { return c.end() }

func (c *Cluster) end() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.tied.Close()
	_ = c.run.Wait() // its status is that of the last command
	return err
}

// Socket is the URL of a database of the cluster by its unix socket, which is there even where the settings leave out loopback.
func (c *Cluster) Socket(database string) string {
	return fmt.Sprintf("postgres://daycared@/%s?host=%s&port=%d", database, url.QueryEscape(c.dir), c.port)
}

// URL is that of a database of the cluster.
func (c *Cluster) URL(database string) string {
	return fmt.Sprintf("postgres://daycared@127.0.0.1:%d/%s?sslmode=disable", c.port, database)
}

func (c *Cluster) exec(ctx context.Context, text string, args ...any) error {
	conn, err := pgx.Connect(ctx, c.Socket("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }() // nothing is open on it
	_, err = conn.Exec(ctx, text, args...)
	return err
}
