package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// Programs of others come from npm, in the versions of a lock file below testdata/npm, and stay in the cache of whoever
// runs the tests. The script command, with the folder of such a file:
//
//	npm FOLDER   have its programs, and the node that they want, on the PATH

func npmCommands() scriptCommands { return scriptCommands{"npm": npm} }

func npm(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: npm FOLDER")
	}
	bin, err := installed(args[0])
	if err != nil {
		ts.Fatalf("%v", err)
	}
	// The node that came with them, by its real path: npm 9 makes no link to it.
	node, err := filepath.Glob(filepath.Join(bin, "..", "node-"+runtime.GOOS+"-*", "bin"))
	ts.Check(err)
	ts.Setenv("PATH", strings.Join(append(node, bin, ts.Getenv("PATH")), string(filepath.ListSeparator)))
}

// installing serializes installations, which scripts share.
var installing sync.Mutex

// installed returns the folder with the programs of testdata/npm/NAME. The folder's name is the hash of the lock file, and it
// gets that name when it is complete.
func installed(name string) (bin string, err error) {
	installing.Lock()
	defer installing.Unlock()
	from := filepath.Join("testdata", "npm", name)
	lock, err := os.ReadFile(filepath.Join(from, "package-lock.json"))
	if err != nil {
		return "", fmt.Errorf("read what to install: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir() // an account without a home
	}
	whole := filepath.Join(cache, "daycared-tests", fmt.Sprintf("npm-%s-%.8x", name, sha256.Sum256(lock)))
	bin = filepath.Join(whole, "node_modules", ".bin")
	if _, err := os.Stat(bin); err == nil {
		return bin, nil
	}
	if err := os.MkdirAll(filepath.Dir(whole), 0o700); err != nil {
		return "", err
	}
	part, err := os.MkdirTemp(filepath.Dir(whole), "part-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(part)
	if err := os.CopyFS(part, os.DirFS(from)); err != nil {
		return "", err
	}
	if err := install(part); err != nil {
		return "", err
	}
	if err := os.Rename(part, whole); err != nil && !errors.Is(err, os.ErrExist) { // another run was faster
		return "", err
	}
	return bin, nil
}

func install(folder string) error {
	if _, err := exec.LookPath("npm"); err != nil {
		return errors.New("npm is missing on this machine, and what is tested here needs it: install Node.js, https://nodejs.org")
	}
	ctx, done := context.WithTimeout(context.Background(), 5*time.Minute)
	defer done()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("npm cannot install what is tested here; that needs a network once (%w: %s)", err, first)
	}
	return nil
}
