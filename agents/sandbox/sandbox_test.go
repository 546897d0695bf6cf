package sandbox

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/daycared/daycared/internal/own"
)

// The daemon's files are never accessible, by any name, existing or not.
func TestTheDaemonsOwn(t *testing.T) {
	dir := tempFiles(t, "ws/file", "state/daycared/db", "home/.config/x")
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, folder := range []string{"linked/deep", "hard"} {
		if err := os.MkdirAll(at(folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(at("linked/deep/key"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(at("linked/deep/key"), at("hard/key")); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"alias": "state", "ws/state": "../state", "soft": "linked"} {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		own  []string
		w    Policy
		want error
	}{
		{"apart", []string{at("state/daycared")}, Policy{Write: []string{at("ws")}, Read: []string{at("home")}}, nil},
		{"a name that begins alike", []string{at("ws2")}, Policy{Write: []string{at("ws")}}, nil},
		{"a sibling", []string{at("state/daycared/key")}, Policy{Read: []string{at("state/daycared/db")}}, nil},
		{"the same", []string{at("state")}, Policy{Read: []string{at("state")}}, ErrOwn},
		{"within", []string{at("state")}, Policy{Read: []string{at("state/daycared/db")}}, ErrOwn},
		{"covering", []string{at("state/daycared/db")}, Policy{Write: []string{dir}}, ErrOwn},
		{"everything", []string{at("state")}, Policy{Read: []string{"/"}}, ErrOwn},
		{"not there yet", []string{at("home/.config/daycared/config.yaml")}, Policy{Write: []string{at("home")}}, ErrOwn},
		{"by a link to it", []string{at("alias/daycared")}, Policy{Write: []string{at("state/daycared")}}, ErrOwn},
		{"not there yet, by a link", []string{at("alias/new/sock")}, Policy{Write: []string{at("state")}}, ErrOwn},
		{"in what everybody may read", []string{"/usr/local/etc/daycared.yaml"}, Policy{}, ErrOwn},
		{"an account's name is in what everybody may read", []string{"/etc/passwd"}, Policy{}, ErrOwn},
		{"beside what everybody may read", []string{"/etc/daycared/config.yaml"}, Policy{}, nil},
		{"a hard link, in what everybody may read perhaps", []string{at("linked/deep/key")}, Policy{Write: []string{at("hard")}}, ErrOwn},
		{"a hard link from a folder, in what everybody may read perhaps", []string{at("soft")}, Policy{Read: []string{at("hard/key")}}, ErrOwn},
		{"its binary, named", []string{self()}, Policy{Read: []string{self()}}, nil},
		{"its binary, named, to write", []string{self()}, Policy{Write: []string{self()}}, ErrOwn},
		{"its binary, to write", nil, Policy{Write: []string{filepath.Dir(self())}}, ErrOwn},
		{"its binary, to read", nil, Policy{Read: []string{filepath.Dir(self())}}, nil},
	} {
		t.Run("B7/"+c.name, func(t *testing.T) {
			s := New(Options{Own: append([]string{""}, c.own...)})
			if err := s.checkPolicy(c.w); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", c.name, err)
			}
			if ready := s.Ready(); (ready != nil) != strings.Contains(c.name, "in what everybody") {
				t.Errorf("%s: ready: %v", c.name, ready)
			}
			if c.want == nil {
				return
			}
			if _, _, err := s.Command(t.Context(), c.w, "true"); !errors.Is(err, c.want) {
				t.Errorf("%s: a command: %v", c.name, err)
			}
			if err := s.Do(t.Context(), c.w, "read", "x", new(string)); !errors.Is(err, c.want) {
				t.Errorf("%s: an operation: %v", c.name, err)
			}
		})
	}
}

// A policy is what people were shown: no path leads elsewhere, or is missing.
func TestOddPaths(t *testing.T) {
	dir := tempFiles(t, "real/file")
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"", ".", "relative", dir + "/", dir + "/../x", dir + "//real", filepath.Join(dir, "link"),
		filepath.Join(dir, "link/file"), filepath.Join(dir, "missing")} {
		t.Run("C2/"+strings.ReplaceAll(p, dir, "…"), func(t *testing.T) {
			for _, w := range []Policy{{Read: []string{p}}, {Write: []string{p}}, {Dir: p}} {
				if p == "" && w.Dir == "" && w.Read == nil && w.Write == nil {
					continue // no folder was named
				}
				if _, _, err := New(Options{}).Command(t.Context(), w, "true"); err == nil {
					t.Errorf("%+v is taken", w)
				}
			}
		})
	}
}

// An operation runs in a sandbox and returns its result.
func TestOperations(t *testing.T) {
	dir := tempFiles(t, "ws/file", "out/secret")
	s, w := New(Options{}), Policy{Read: []string{filepath.Join(dir, "ws")}}
	if place := os.Getenv(counting); place != "" { // for its coverage data
		w.Write = append(w.Write, own.Resolve(place))
	}
	var text string
	if err := s.Do(t.Context(), w, "read", filepath.Join(dir, "ws/file"), &text); err != nil || text != "of ws/file" {
		t.Errorf("it read %q: %v", text, err)
	}
	var fault *Fault
	if err := s.Do(t.Context(), w, "read", filepath.Join(dir, "out/secret"), &text); !errors.As(err, &fault) ||
		!strings.Contains(err.Error(), "permission denied") {
		t.Errorf("outside: %v", err)
	}
	for _, args := range [][]string{{"family", "2", "1"}, {"family", "1", "1"}, {"io_uring"}} {
		if err := s.Do(t.Context(), w, "probe", args, new(any)); !errors.As(err, &fault) {
			t.Errorf("%q: %v", args, err)
		}
	}
	for _, name := range []string{"unknown", "unwritable", "noisy"} {
		if err := s.Do(t.Context(), w, name, "", new(any)); err == nil || errors.As(err, &fault) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Do(t.Context(), w, "read", make(chan int), &text); err == nil {
		t.Error("it was told what cannot be written down")
	}
	if err := New(Options{Mode: Off}).Do(t.Context(), Policy{}, "read", filepath.Join(dir, "out/secret"), &text); err != nil {
		t.Errorf("without walls: %v", err)
	}
}

// An invalid spec is refused.
func TestOrders(t *testing.T) {
	for _, text := range []string{"", "{", `{"Operation":"none"}`, `{"Operation":"read","Read":["relative/../x"]}`} {
		out := &bytes.Buffer{}
		if code := asOperation(strings.NewReader(text), out, nil); code != NotStarted || out.Len() > 0 {
			t.Errorf("%q ended with %d, saying %q", text, code, out)
		}
	}
	if code := asOperation(iotest.ErrReader(errors.New("torn")), io.Discard, nil); code != NotStarted {
		t.Errorf("a torn order ended with %d", code)
	}
	out := &bytes.Buffer{}
	name := filepath.Join(tempFiles(t, "file"), "file")
	order := `{"Operation":"read","Off":true,"Input":"` + name + `"}`
	if code := asOperation(strings.NewReader(order), out, operations); code != 0 || out.String() != `{"output":"of file"}` {
		t.Errorf("ended with %d, saying %q", code, out)
	}
	out.Reset()
	order = `{"Operation":"read","Off":true,"Input":"` + name + `/none"}`
	if code := asOperation(strings.NewReader(order), out, operations); code != 0 || !strings.HasPrefix(out.String(), `{"error":`) {
		t.Errorf("ended with %d, saying %q", code, out)
	}
}

func TestChecking(t *testing.T) {
	for _, p := range Check() {
		if !p.Holds || p.Why != "" || p.Name == "" {
			t.Errorf("on this kernel: %+v", p)
		}
	}
	t.Parallel()
	Main(nil) // in a process that no sandbox started: it returns
}
