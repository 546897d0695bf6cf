package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMake runs what make and its tools promise, as a user does: on machines that lack something, in a clone and in an
// unpacked archive. Each script has a tree of only the Makefile, go.mod and the tools. Its PATH has every Debian's
// programs, git and make, no compiler, and what the script puts into bin.
func TestMake(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/make",
		Setup: func(e *testscript.Env) error {
			bin, tree := filepath.Join(e.WorkDir, "bin"), filepath.Join(e.WorkDir, "tree")
			for _, folder := range []string{bin, filepath.Join(tree, "tools"), filepath.Join(tree, "cmd", "daycared")} {
				if err := os.MkdirAll(folder, 0o700); err != nil {
					return err
				}
			}
			stubs, err := filepath.Glob(filepath.Join(bin, "*"))
			if err != nil {
				return err
			}
			for _, stub := range stubs {
				if err := os.Chmod(stub, 0o700); err != nil {
					return err
				}
			}
			for _, program := range []string{"awk", "cat", "chmod", "cp", "cut", "dirname", "env", "find", "git", "head", "install", "ls",
				"make", "mkdir", "rm", "sed", "sh", "sort", "tail", "tar", "touch", "tr", "uname"} {
				found, err := exec.LookPath(program)
				if err != nil {
					return err
				}
				if program == "make" {
					e.Setenv("MAKE", found)
				}
				if err := os.Symlink(found, filepath.Join(bin, program)); err != nil {
					return err
				}
			}
			for _, file := range []string{".gitattributes", "Makefile", "go.mod", "cmd/daycared/archive.txt",
				"tools/current.sh", "tools/need.sh", "tools/version.sh"} {
				text, err := os.ReadFile(filepath.Join(root, file))
				if err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(tree, file), text, 0o700); err != nil {
					return err
				}
			}
			e.Setenv("PATH", bin)
			e.Setenv("GOFLAGS", "")
			return nil
		},
	})
}
