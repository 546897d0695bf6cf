package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/internal/own"
)

// pipe is a named pipe that sandboxed processes hold open while they live.
func pipe(t *testing.T) (dir, name string) {
	t.Helper()
	dir = tempFiles(t)
	name = filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, name
}

// gone waits until nobody holds the pipe open.
func gone(t *testing.T, held *os.File) {
	t.Helper()
	if err := held.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(held); err != nil {
		t.Errorf("somebody lives on: %v", err)
	}
}

// What a command leaves running: in its group, in its own session, double-forked, ignoring signals, and stopped.
const leftovers = `exec 3>pipe
sleep 600 &
setsid sleep 600 &
(setsid sh -c 'sleep 600 & setsid setsid sleep 600 & exit' &)
sh -c 'trap "" TERM INT HUP; while :; do sleep 600; done' &
sh -c 'kill -STOP $$' &
`

// Nothing outlives its command.
func TestNothingOutlivesItsCommand(t *testing.T) {
	for _, mode := range []Mode{On, Off} {
		t.Run(string(mode), func(t *testing.T) {
			dir, name := pipe(t)
			cmd, release, err := New(Options{Mode: mode}).Command(t.Context(), Policy{Write: []string{dir}, Dir: dir},
				"/bin/sh", "-c", leftovers+"exit 7")
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			held, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer held.Close()
			if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 7 {
				t.Errorf("it ended with %v", err)
			}
			gone(t, held)
		})
	}
}

// When the context ends or release is called, a command ends with all its descendants.
func TestACommandIsEnded(t *testing.T) {
	for _, how := range []string{"context", "release", "the supervisor is killed"} {
		t.Run(how, func(t *testing.T) {
			dir, name := pipe(t)
			ctx, end := context.WithCancel(t.Context())
			defer end()
			left := leftovers
			if how == "the supervisor is killed" { // its session's first group can still be found
				left = "exec 3>pipe; sleep 600 &\n"
			}
			cmd, release, err := New(Options{}).Command(ctx, Policy{Write: []string{dir}, Dir: dir}, "/bin/sh", "-c", left+"wait")
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			held, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer held.Close()
			switch how {
			case "context":
				end()
			case "release":
				release()
			default:
				_ = cmd.Process.Kill()
			}
			if err := cmd.Wait(); err == nil {
				t.Error("it ended well")
			}
			release()
			if how == "the supervisor is killed" {
				killGroup(cmd) // again, in case release came before its end
			}
			gone(t, held)
		})
	}
}

// chains is a program of processes each of which forks its successor and exits, faster than anybody can look for them; they start
// each other anew where one is missing. They hold the pipe open, and write into it once they run. After two seconds they end by
// themselves, and leave a file.
const chains = `#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
enum { N = 6 };
static volatile double *beat; // when each chain was last alive, and how many processes there were
static int held;
static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
static void chain(int me, double end) {
	for (int round = 0;; round++) {
		double at = now();
		if (at > end) {
			open("outlived", O_CREAT | O_WRONLY, 0600);
			_exit(0);
		}
		beat[me] = at;
		if (beat[N] >= 0 && ++beat[N] > 200) {
			write(held, "x", 1);
			beat[N] = -1e9;
		}
		int other = rand() % N;
		if (other != me && at - beat[other] > .02) {
			beat[other] = at;
			if (fork() == 0) me = other;
		}
		if (round % 4 == 0) setsid();
		if (fork() > 0) _exit(0);
		srand(getpid());
	}
}
int main(int argc, char **argv) {
	double end = now() + 2;
	signal(SIGCHLD, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	beat = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	held = open("pipe", O_WRONLY);
	for (int i = 0; i < N; i++)
		if (fork() == 0) {
			for (int fd = 0; fd < 3; fd++) close(fd);
			chain(i, end);
		}
	while (argc == 1 && now() < end) usleep(10000);
	while (beat[N] >= 0) usleep(1000);
	return 0;
}`

// Whatever ends a command ends processes that fork faster than anybody can look for them.
func TestChainsOfProcessesAreEnded(t *testing.T) {
	built := filepath.Join(tempFiles(t), "chains")
	write(t, built+".c", chains)
	if out, err := exec.CommandContext(t.Context(), "gcc", "-o", built, built+".c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, how := range []string{"context", "release", "its own end", "the daemon is killed", "context, without a sandbox"} {
		t.Run(how, func(t *testing.T) {
			dir, name := pipe(t)
			o := Options{}
			if strings.HasSuffix(how, "without a sandbox") {
				o.Mode = Off
			}
			program := filepath.Join(dir, "chains")
			if err := os.Link(built, program); err != nil {
				t.Fatal(err)
			}
			ctx, end := context.WithCancel(t.Context())
			defer end()
			argv := []string{program}
			if how == "its own end" {
				argv = append(argv, "soon")
			}
			cmd, release, err := New(o).Command(ctx, Policy{Write: []string{dir}, Dir: dir}, argv...)
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			if how == "the daemon is killed" {
				cmd = exec.CommandContext(ctx, self(), "probe", "daemon", dir, program)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			held, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer held.Close()
			if _, err := held.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			switch how {
			case "context", "context, without a sandbox":
				end()
			case "release":
				release()
			case "the daemon is killed":
				_ = cmd.Process.Kill()
			}
			gone(t, held)
			if _, err := os.Stat(filepath.Join(dir, "outlived")); !os.IsNotExist(err) {
				t.Error("they went on as long as they wanted")
				_ = cmd.Process.Kill() // the supervisor: it may have thousands to reap
			}
			_ = cmd.Wait()
		})
	}
}

// A killed daemon takes its programs with it.
func TestTheDaemonIsKilled(t *testing.T) {
	dir, name := pipe(t)
	parent := exec.CommandContext(t.Context(), self(), "probe", "daemon", dir, "/bin/sh", "-c", leftovers+"wait")
	parent.Stderr = os.Stderr
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	gone(t, held)
}

// daemon is a process that starts a command and waits for it.
func daemon(dir string, argv []string) error {
	cmd, release, err := New(Options{Scratch: dir}).Command(context.Background(), Policy{Write: []string{dir}, Dir: dir}, argv...)
	if err != nil {
		return err
	}
	defer release()
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// startPiped starts a command with pipes as its input and output.
func startPiped(t *testing.T, cmd *exec.Cmd) (in io.WriteCloser, out io.Reader) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err = cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return in, out
}

// Streams are the caller's, as a server on stdin and stdout needs; signals reach the command.
func TestStreamsAndSignals(t *testing.T) {
	cmd, release, err := New(Options{}).Command(t.Context(), Policy{},
		"/bin/sh", "-c", `trap 'echo heard; exit 3' TERM; while read line; do echo "<$line>"; done; sleep 600 & wait`)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	in, out := startPiped(t, cmd)
	lines := bufio.NewScanner(out)
	for _, word := range []string{"one", "two"} {
		fmt.Fprintln(in, word)
		if !lines.Scan() || lines.Text() != "<"+word+">" {
			t.Fatalf("it says %q", lines.Text())
		}
	}
	in.Close()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if !lines.Scan() || lines.Text() != "heard" {
		t.Errorf("it says %q", lines.Text())
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("it ended with %v", err)
	}
}

// A stream ends when the command closes it, not only with the command.
func TestAStreamThatIsClosed(t *testing.T) {
	cmd, release, err := New(Options{}).Command(t.Context(), Policy{}, "/bin/sh", "-c", "echo one; exec >&-; read line; exit 4")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	in, out := startPiped(t, cmd)
	if said, err := io.ReadAll(out); err != nil || string(said) != "one\n" {
		t.Errorf("it said %q: %v", said, err)
	}
	in.Close()
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 4 {
		t.Errorf("it ended with %v", err)
	}
}

func TestExitCodes(t *testing.T) {
	dir := tempFiles(t, "file")
	for _, c := range []struct {
		says string
		code int
		argv []string
	}{
		{"", 0, []string{"true"}},
		{"", 9, []string{"/bin/sh", "-c", "exit 9"}},
		{"", 128 + 9, []string{"/bin/sh", "-c", "kill -9 $$"}},
		{"daycared sandbox: start: ", NotStarted, []string{"no-such-program"}},
		{"daycared sandbox: start ", NotStarted, []string{filepath.Join(dir, "secret")}},
		{"daycared sandbox: there is no command", NotStarted, nil},
	} {
		write(t, filepath.Join(dir, "secret"), "#!/bin/sh\n")
		_ = os.Chmod(filepath.Join(dir, "secret"), 0o755)
		if said, code := run(t, New(Options{}), Policy{}, c.argv...); code != c.code || !strings.HasPrefix(said, c.says) {
			t.Errorf("%q ended with %d, saying %q", c.argv, code, said)
		}
	}
	walls := Policy{Read: []string{dir}, Dir: dir, Home: dir}
	if place := os.Getenv(counting); place != "" { // for its coverage data
		walls.Write = append(walls.Write, own.Resolve(place))
	}
	write(t, filepath.Join(dir, "strange"), "no program")
	_ = os.Chmod(filepath.Join(dir, "strange"), 0o755)
	for _, w := range []Policy{walls, {Write: walls.Write}} {
		for program, says := range map[string]string{
			filepath.Join(dir, "strange"): "daycared sandbox: start ", "no-such-program": "daycared sandbox: start: ",
		} {
			if said, code := run(t, New(Options{}), w, program); code != NotStarted || !strings.HasPrefix(said, says) {
				t.Errorf("%s ended with %d, saying %q", program, code, said)
			}
		}
	}
	long := strings.Repeat("x", 100_000) // longer than a pipe's buffer
	if said, code := run(t, New(Options{}), Policy{}, "/bin/sh", "-c", "echo ${#1}", "sh", long); code != 0 || said != "100000\n" {
		t.Errorf("a long command ended with %d, saying %.200q", code, said)
	}
}

// A scratch folder is removed even if a command removed its own permissions.
// Whatever has got a scratch folder's name, or that of a folder in it, in the meantime: the mode of what it leads to is not set.
func TestAScratchFolderThatIsALink(t *testing.T) {
	dir := tempFiles(t, "out/secret")
	out := filepath.Join(dir, "out")
	if err := os.Chmod(out, 0o500); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("out", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	makeRemovable(filepath.Join(dir, "link"))
	makeRemovable(filepath.Join(dir, "gone"))
	if info, err := os.Stat(out); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("it is %v, %v", info, err)
	}
	makeRemovable(out)
	if info, err := os.Stat(out); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("a folder is %v, %v", info, err)
	}
}

func TestAScratchFolderIsRemovedWithoutPermissions(t *testing.T) {
	dir := tempFiles(t, "scratch/a/b/c")
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with its changed state
		if os.Getuid() == 0 {  // root may remove anything
			for _, name := range []string{"", "scratch", "scratch/a", "scratch/a/b", "scratch/a/b/c"} {
				_ = os.Chown(filepath.Join(dir, name), 65534, 65534)
			}
			_ = os.Chmod(filepath.Dir(dir), 0o755)
			_ = unix.Setfsuid(65534)
		}
		_ = os.Chmod(filepath.Join(dir, "scratch/a/b"), 0)
		_ = os.Chmod(filepath.Join(dir, "scratch/a"), 0o500)
		removeScratch(filepath.Join(dir, "scratch"))
	}()
	<-done
	if _, err := os.Stat(filepath.Join(dir, "scratch")); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestDescendants(t *testing.T) {
	// 1 ─ 10 ─ 20 ─ 30      2 is separate; 40 and 41 are each other's parents, as in a torn snapshot
	parents := map[int]int{1: 0, 2: 0, 10: 1, 20: 10, 21: 10, 30: 20, 40: 41, 41: 40, 50: 49}
	got := descendants(10, parents)
	slices.Sort(got)
	if want := []int{20, 21, 30}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if parents := processes(); parents[os.Getpid()] != os.Getppid() {
		t.Errorf("the parent of %d is %d", os.Getpid(), parents[os.Getpid()])
	}
}

// An operation ends when its context does.
func TestAnOperationIsEnded(t *testing.T) {
	_, name := pipe(t)
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- New(Options{}).Do(ctx, Policy{Write: []string{name}}, "probe", []string{"hold", name}, new(any))
	}()
	held, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	end()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	gone(t, held)
}
