package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// fault is a failure of a running daemon's store.
type fault struct {
	name string
	// befalls causes it, and returns how to repair it.
	befalls func(l *loop) (mend func())
	says    []string // the expected diagnosis and remedy
	restart bool     // a restart is needed, as the remedy says; otherwise a repair is enough
}

// TestR8 makes the store fail under a running daemon, as realistically as the machine allows. Nothing is granted, /readyz and
// all callers get the cause and the remedy, and pending requests can be answered after the repair.
func TestR8(t *testing.T) {
	library := badDisk(t)
	for _, f := range []fault{
		{"full disk", fullDisk, []string{"the disk under ", " is full; free some space, nothing needs a restart"}, false},
		{"files may not grow", noGrowth, []string{"may not grow", "LimitFSIZE", "nothing needs a restart"}, false},
		{"read-only disk", diskThat("write", unix.EROFS), []string{" cannot be written ", "writable for the daemon's account"}, false},
		{"writing fails", diskThat("write", unix.EIO), []string{"the disk under ", " fails ", "check the disk"}, false},
		{"syncing fails", diskThat("sync", unix.EIO), []string{"the disk under ", " fails ", "check the disk"}, false},
		{"locked by another process", locked, []string{"another process holds the store ", "nothing needs a restart"}, false},
		{"moved away", moved, []string{"is no longer there", "put the file or a backup back in its place"}, false},
		{"overwritten", overwritten, []string{"is damaged", "stop daycared and put a backup in its place: daycared restore FILE"}, true},
	} {
		t.Run("D10/"+f.name, func(t *testing.T) {
			t.Parallel()
			l := newLoop(t)
			l.env = []string{"LD_PRELOAD=" + library, "BAD_DISK=" + filepath.Join(l.dir, "disk")}
			if f.name == "full disk" {
				smallDisk(l)
			}
			l.begin()
			l.suffers(f)
		})
	}
}

// suffers causes the fault while a question is pending, and checks the effects.
func (l *loop) suffers(f fault) {
	ctx, done := context.WithTimeout(l.ctx, patient)
	defer done()
	told, id := l.standing(ctx, "before")
	mend := f.befalls(l)

	var all sync.WaitGroup
	for who, tries := range map[string]func() error{
		"/readyz of the people": func() error { return l.people.Ready(ctx) },
		"the status of /readyz": func() error { return l.unready(ctx) },
		"who decides": func() error {
			_, err := l.people.OnPermission(ctx, connectors.Decision{Request: id, Answer: permissions.Allow(permissions.Once)})
			return err
		},
		"who asks": func() error {
			_, err := l.agents.Put(ctx, networkFor("meanwhile"))
			return err
		},
	} {
		all.Go(func() {
			err := tries()
			for _, words := range f.says {
				if err == nil || !strings.Contains(err.Error(), words) {
					l.t.Errorf("%s: %v, without %q", who, err, words)
				}
			}
		})
	}
	all.Wait()
	select {
	case r := <-told:
		l.t.Fatalf("its agent is told %s", r.State)
	case <-l.done:
		l.t.Fatal("the daemon has ended")
	default:
	}
	if f.restart {
		l.kill()
	}
	mend()
	if f.restart {
		l.rise("")
	}
	l.goesOn(id, told)
}

// unready is the text of /readyz with status 503.
func (l *loop) unready(ctx context.Context) error {
	status, text, err := l.get(ctx, "/readyz")
	if err != nil || status != http.StatusServiceUnavailable {
		return fmt.Errorf("status %d, %w", status, err)
	}
	return errors.New(text)
}

// get makes a plain call to agent.sock on a new connection.
func (l *loop) get(ctx context.Context, path string) (status int, text string, err error) {
	socket := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(l.dir, "agent"))
	}}
	defer socket.CloseIdleConnections()
	call, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://daycared"+path, nil)
	if err != nil {
		return 0, "", err
	}
	answer, err := socket.RoundTrip(call)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body), err
}

func networkFor(reason string) permissions.Request {
	return permissions.Request{
		Kind: permissions.KindPermission, Tags: []permissions.Tag{permissions.Network}, Reason: reason, Key: reason,
	}
}

// standing asks a loop's first question, and returns once its agent was told that it is pending: before that, a failing store
// refuses it without a retry.
func (l *loop) standing(ctx context.Context, name string) (told <-chan permissions.Request, id permissions.ID) {
	known := make(chan permissions.ID, 1)
	l.agents.Progress = func(s permissions.RequestView) {
		select {
		case known <- s.Request.ID:
		default: // of this or a later question
		}
	}
	told = l.ask(ctx, name, "@read:/q")
	select {
	case id = <-known:
	case <-l.ctx.Done():
		l.t.FailNow()
	}
	return told, id
}

// goesOn checks that a question is unchanged by the failure, and that people and agents can continue.
func (l *loop) goesOn(id permissions.ID, told <-chan permissions.Request) {
	l.await("the daemon to be ready", l.people.Ready)
	if r, err := l.read(id); err != nil || r.State != permissions.Pending || len(r.Votes) != 0 {
		l.t.Errorf("it is %s with %d votes, %v", r.State, len(r.Votes), err)
	}
	if list, err := l.people.List(l.ctx, "", 0); err != nil || len(list) != 1 {
		l.t.Errorf("%d are pending, %v", len(list), err)
	}
	l.decide("before", permissions.Allow(permissions.Once), permissions.Approved)
	l.ended("before", <-told, permissions.Approved)
	l.question("after")
	l.finish(0)
}

// badDisk builds the library of testdata/disk.
func badDisk(t *testing.T) string {
	cc, err := exec.Command("go", "env", "CC").Output()
	if err != nil {
		t.Fatal(err)
	}
	library := filepath.Join(t.TempDir(), "disk.so")
	args := append(strings.Fields(string(cc)), "-shared", "-fPIC", "-o", library, "testdata/disk/disk.c")
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return library
}

// diskThat makes one system call fail.
func diskThat(call string, with unix.Errno) func(l *loop) func() {
	return func(l *loop) func() {
		path := filepath.Join(l.dir, "disk")
		if err := os.WriteFile(path, fmt.Appendf(nil, "%s %d", call, with), 0o600); err != nil {
			l.t.Fatal(err)
		}
		return func() { os.Remove(path) }
	}
}

// smallDisk puts the data directory on a small file system, if this account may mount one.
func smallDisk(l *loop) {
	data := filepath.Join(l.dir, "data")
	if err := makeDataDir(data, os.Getuid()); err != nil {
		l.t.Fatal(err)
	}
	err := unix.Mount("daycared", data, "tmpfs", 0, "size=4m,mode=0700")
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return
	}
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		l.kill()
		if err := unix.Unmount(data, 0); err != nil {
			l.t.Error(err)
		}
	})
}

// fullDisk fills the small disk; without one, writes fail as on a full disk.
func fullDisk(l *loop) func() {
	var fs unix.Statfs_t
	data := filepath.Join(l.dir, "data")
	if err := unix.Statfs(data, &fs); err != nil {
		l.t.Fatal(err)
	}
	if fs.Blocks*uint64(fs.Bsize) > 4<<20 {
		return diskThat("write", unix.ENOSPC)(l)
	}
	ballast, err := os.Create(filepath.Join(data, "ballast"))
	if err != nil {
		l.t.Fatal(err)
	}
	defer ballast.Close()
	if _, err := io.Copy(ballast, endless{}); !errors.Is(err, unix.ENOSPC) {
		l.t.Fatalf("fill the disk: %v", err)
	}
	for l.people.Ready(l.ctx) == nil { // the last page of the log has room for some more writes
	}
	return func() { os.Remove(ballast.Name()) }
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// noGrowth sets the daemon's maximum file size.
func noGrowth(l *loop) func() {
	var was unix.Rlimit
	limit := func(next, was *unix.Rlimit) {
		if err := unix.Prlimit(l.daemon.Process.Pid, unix.RLIMIT_FSIZE, next, was); err != nil {
			l.t.Fatal(err)
		}
	}
	limit(nil, &was)
	limit(&unix.Rlimit{Cur: 0, Max: was.Max}, nil)
	return func() { limit(&was, nil) }
}

// locked holds the write lock, as another process that uses the file would.
func locked(l *loop) func() {
	const writing = 120 // WAL_WRITE_LOCK, https://www.sqlite.org/walformat.html#wal_locks
	shared, err := os.OpenFile(filepath.Join(l.dir, "data", storeName+"-shm"), os.O_RDWR, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	l.await("the lock", func(context.Context) error {
		return unix.FcntlFlock(shared.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: writing, Len: 1})
	})
	return func() { shared.Close() }
}

func moved(l *loop) func() {
	path := filepath.Join(l.dir, "data", storeName)
	if err := os.Rename(path, path+".away"); err != nil {
		l.t.Fatal(err)
	}
	return func() { os.Rename(path+".away", path) }
}

// overwritten corrupts every page but the first, in the file and its log. A backup repairs it.
func overwritten(l *loop) func() {
	restore := l.backup()
	spoil(l, storeName, 4096)
	spoil(l, storeName+"-wal", 32)
	_, _ = l.people.List(l.ctx, "", 0) // pages read before are cached
	return restore
}

// backup makes a backup, and returns how to restore it.
func (l *loop) backup() (restore func()) {
	data, path := filepath.Join(l.dir, "data"), filepath.Join(l.dir, "backup.db")
	if out, err := exec.Command(l.binary, "--config", filepath.Join(l.dir, "c.yaml"), "backup", path).CombinedOutput(); err != nil {
		l.t.Fatalf("%v\n%s", err, out)
	}
	return func() {
		l.restored = true
		left, _ := filepath.Glob(filepath.Join(data, storeName+"*")) // the pattern is valid
		for _, file := range left {
			if err := os.Rename(file, file+".damaged"); err != nil {
				l.t.Fatal(err)
			}
		}
		if err := os.Rename(path, filepath.Join(data, storeName)); err != nil {
			l.t.Fatal(err)
		}
	}
}

// spoil overwrites a file of the data directory after its first bytes.
func spoil(l *loop, name string, behind int64) {
	f, err := os.OpenFile(filepath.Join(l.dir, "data", name), os.O_RDWR, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(strings.Repeat("damage! ", int(info.Size()-behind)/8)), behind); err != nil {
		l.t.Fatal(err)
	}
}

// TestAStartOnAFullDiskWaits: a daemon that finds no disk space at its start, the first or one after a death, is not ready, says
// why, and becomes ready when there is space.
func TestAStartOnAFullDiskWaits(t *testing.T) {
	library := badDisk(t)
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprintf("first %t", first), func(t *testing.T) {
			t.Parallel()
			l := newLoop(t)
			l.env = []string{"LD_PRELOAD=" + library, "BAD_DISK=" + filepath.Join(l.dir, "disk")}
			smallDisk(l)
			var told <-chan permissions.Request
			var id permissions.ID
			if !first {
				l.begin()
				told, id = l.standing(l.ctx, "before")
				l.kill()
			} else {
				l.parts.connectors = []string{"terminal: {enabled: false}"}
				if err := os.WriteFile(filepath.Join(l.dir, "c.yaml"), []byte(l.parts.config(l.dir)), 0o600); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(l.kill)
			}
			mend := fullDisk(l)
			rises := func() (risen chan struct{}) {
				risen = make(chan struct{})
				go func() {
					defer close(risen)
					l.rise("")
				}()
				l.await("the daemon to say that it is not ready", func(ctx context.Context) error {
					err := l.unready(ctx)
					if err == nil || !strings.Contains(err.Error(), "free some space, nothing needs a restart") {
						return fmt.Errorf("it says: %w", err)
					}
					return nil
				})
				return risen
			}
			risen := rises()
			out, err := exec.Command(l.binary, "--config", filepath.Join(l.dir, "c.yaml"), "stop").CombinedOutput()
			if <-risen; err != nil || l.daemon.ProcessState.ExitCode() != 0 {
				t.Errorf("it is ended with %v, and %v:\n%s", l.daemon.ProcessState, err, out)
			}
			risen = rises()
			if _, err := l.agents.Put(l.ctx, networkFor("meanwhile")); err == nil ||
				!strings.Contains(err.Error(), "nothing is granted") {
				t.Errorf("who asks is told: %v", err)
			}
			status := exec.Command(l.binary, "--config", filepath.Join(l.dir, "c.yaml"), "status")
			out, err = status.CombinedOutput()
			if err == nil || status.ProcessState.ExitCode() != permissions.ExitOther ||
				!strings.Contains(string(out), "daycared runs, and is not ready: ") || !strings.Contains(string(out), l.dir) ||
				!strings.Contains(string(out), "free some space") {
				t.Errorf("status says, with %v:\n%s", err, out)
			}
			out, err = exec.Command(l.binary, "--config", filepath.Join(l.dir, "c.yaml"), "doctor").CombinedOutput()
			if err == nil || !strings.Contains(string(out), "free some space") || strings.Contains(string(out), "start it with") {
				t.Errorf("doctor says, with %v:\n%s", err, out)
			}
			mend()
			<-risen
			if first {
				l.question("after")
				return
			}
			l.goesOn(id, told)
		})
	}
}

// TestAStopOnAFullDiskHolds: nothing is asked or allowed any more, the stop is reported as not saved, and once there is space,
// pending requests are cancelled.
func TestAStopOnAFullDiskHolds(t *testing.T) {
	t.Run("D10/stop-all on a full disk", func(t *testing.T) {
		l := newLoop(t)
		l.env = []string{"LD_PRELOAD=" + badDisk(t), "BAD_DISK=" + filepath.Join(l.dir, "disk")}
		smallDisk(l)
		l.begin()
		told, id := l.standing(l.ctx, "before")
		mend := fullDisk(l)
		stop := exec.Command(l.binary, "--config", filepath.Join(l.dir, "c.yaml"), "stop-all")
		out, err := stop.CombinedOutput()
		if err == nil || stop.ProcessState.ExitCode() != permissions.ExitOther ||
			!strings.Contains(string(out), "Everything is stopped now: ") || !strings.Contains(string(out), " is full; free some space") {
			t.Errorf("it says, with %v:\n%s", err, out)
		}
		halted := func(what string, err error) {
			if refusal := (*permissions.Refusal)(nil); !errors.As(err, &refusal) || refusal.Code != permissions.CodeStopped {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err = l.people.OnPermission(l.ctx, connectors.Decision{Request: id, Answer: permissions.Allow(permissions.Once)})
		halted("who allows", err)
		_, err = l.agents.Put(l.ctx, networkFor("meanwhile"))
		halted("who asks", err)
		mend()
		if r := <-told; r.State != permissions.Cancelled {
			t.Errorf("what waited is %s", r.State)
		}
		l.kill()
		l.rise("")
		_, err = l.agents.Put(l.ctx, networkFor("after a restart"))
		halted("who asks after a restart", err)
		l.finish(0)
	})
}

// TestR8AtItsStart: a daemon does not start on a damaged store, and says what to do; with the backup it starts, and pending
// requests can be answered.
func TestR8AtItsStart(t *testing.T) {
	for _, behind := range []int64{0, 4096} {
		t.Run("D10/"+fmt.Sprintf("behind %d bytes", behind), func(t *testing.T) {
			t.Parallel()
			l := newLoop(t)
			l.begin()
			ctx, done := context.WithTimeout(l.ctx, patient)
			defer done()
			told, id := l.standing(ctx, "before")
			restore := l.backup()
			if err := l.daemon.Process.Signal(unix.SIGTERM); err != nil {
				t.Fatal(err)
			}
			<-l.done
			spoil(l, storeName, behind)

			serve := exec.CommandContext(ctx, l.binary, "serve", "--config", filepath.Join(l.dir, "c.yaml"))
			out, err := serve.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "is damaged") || !strings.Contains(string(out), "put a backup in its place") {
				t.Errorf("it says, with %v:\n%s", err, out)
			}
			restore()
			l.rise("")
			l.goesOn(id, told)
		})
	}
}
