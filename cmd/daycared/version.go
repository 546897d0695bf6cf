package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/engine/store"
)

var (
	// linked is the version set by the linker (-X main.linked=…), as make does.
	linked string

	// archived is filled in by git archive: a line with the output of git describe, if there is a tag, and one with the commit.
	//go:embed archive.txt
	archived string

	// version is this binary's version.
	version = func() string {
		info, _ := debug.ReadBuildInfo()
		return versionOf(linked, info, archived)
	}()
)

// versionOf returns the version set by make, or the module version that go install recorded, or that of the unpacked archive.
func versionOf(linked string, info *debug.BuildInfo, archived string) string {
	var module, commit, dirty string
	if info != nil {
		module = strings.TrimSuffix(info.Main.Version, "(devel)")
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				commit = s.Value[:min(len(s.Value), 12)]
			case s.Key == "vcs.modified" && s.Value == "true":
				dirty = "-dirty"
			}
		}
		if commit != "" {
			commit += dirty
		}
	}
	archive := ""
	for line := range strings.Lines(archived) {
		if !strings.Contains(line, "%") { // git archive filled it in
			archive = cmp.Or(archive, strings.TrimSpace(line))
		}
	}
	return cmp.Or(linked, module, commit, archive, "devel")
}

func (c *CLI) versionCommand() *cobra.Command {
	return newCommand("version", nil, func(*cobra.Command, []string) error {
		return c.result(map[string]string{
			"version": version, "go": runtime.Version(), "sqlite": store.LibraryVersion(), "os": runtime.GOOS, "arch": runtime.GOARCH,
		}, "%s\n", versionLine())
	})
}

func versionLine() string {
	return fmt.Sprintf("daycared %s · %s · SQLite %s · %s/%s", version, runtime.Version(), store.LibraryVersion(), runtime.GOOS,
		runtime.GOARCH)
}
