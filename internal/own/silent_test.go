package own

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestALandmarkThatDoesNotAnswer is on a remote file system that does not answer: whatever lies there, or may, is refused, and all else is
// found as before, with one delay for everybody.
func TestALandmarkThatDoesNotAnswer(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(home, name) }
	for _, folder := range []string{"far/lower", "data", "ws", "ov"} {
		if err := os.MkdirAll(at(folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("far/instructions", at("linked")), os.Symlink("../far", at("ws/link")), os.WriteFile(at("mounts"), []byte(
		"1 1 8:1 / / rw - ext4 /dev/a rw\n2 1 0:9 / "+at("far")+" rw - fuse.sshfs far rw\n"+
			"3 1 0:10 / "+at("ov")+" rw - overlay o rw,lowerdir="+at("far/lower")+":"+at("data")+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	was, how := table, probe
	t.Cleanup(func() { table, probe = was, how })
	table = at("mounts")
	files := []string{at("data"), at("linked")}
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		var asked atomic.Int64
		probe = func(path string) {
			if !strings.HasPrefix(path, at("far")) && path != at("linked") && !strings.HasPrefix(path, at("ws/link")) {
				t.Errorf("another process looks at %s", path)
			}
			asked.Add(1)
			<-answers
		}
		found := func(name string) bool {
			for _, what := range NewSearch(files, new(atomic.Uint64)).names {
				if rest, within := strings.CutPrefix(at(name), what); within && (rest == "" || rest[0] == '/') {
					return true
				}
			}
			return false
		}
		began := time.Now()
		for name, want := range map[string]bool{"far/x": true, "ov/x": true, "data/x": true, "ws/x": false, "other": false} {
			if got := found(name); got != want {
				t.Errorf("without an answer, %s: %v", name, got)
			}
		}
		<-time.After(2 * reuseFor)
		if found("ws/x") || time.Since(began) > stepTimeout+2*reuseFor || asked.Load() > 4 {
			t.Errorf("it took %v, and %d looks", time.Since(began), asked.Load())
		}
		close(answers)
		synctest.Wait()
		<-time.After(2 * reuseFor)
		for name, want := range map[string]bool{"far/x": false, "far/instructions": true, "ov/x": true, "ws/x": false} {
			if got := found(name); got != want {
				t.Errorf("with an answer, %s: %v", name, got)
			}
		}
		if _, silent := Find(files, at("ws/link/x")); silent {
			t.Error("what a link leads to is refused, though it answers")
		}
	})
}

// TestAnotherProcessLooksFirst: where none of ours may hang.
func TestAnotherProcessLooksFirst(t *testing.T) {
	probe("/nowhere/at all")
	if !isRemote(strings.Fields("1 1 0:9 / /far rw - nfs4 a:/b rw")) || isRemote(strings.Fields("1 1 8:1 / / rw - xfs a rw")) {
		t.Error("NFS counts as local, or XFS as remote")
	}
	_, err := LookUpFor("eve", "/", func() (int, error) { return 7, os.ErrExist })
	if !errors.Is(err, os.ErrExist) {
		t.Errorf("the look's own error is %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		defer close(answers)
		err := Do("/etc", func() error { <-answers; return nil })
		if !errors.Is(err, ErrSilent) || err.Error() != "/etc: its file system does not answer" {
			t.Errorf("a look that hangs is %v", err)
		}
	})
}
