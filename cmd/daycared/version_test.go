package main

import (
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

func TestVersionOf(t *testing.T) {
	t.Parallel()
	module := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "965d8d1aa00bb11cc22dd33ee44ff55aa66bb77c"}
	modified := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	const clone = "$Format:%(describe:tags=true)$\n$Format:%h$\n"
	for _, c := range []struct {
		name, linked string
		info         *debug.BuildInfo
		archived     string
		want         string
	}{
		{"make", "v1.2.3", module("v9.9.9", commit), "v8.8.8\nabcdef0\n", "v1.2.3"},
		{"go install", "", module("v1.2.3"), clone, "v1.2.3"},
		{"go build in a clone", "", module("v0.0.0-20261122170000-965d8d1aa00b+dirty", commit, modified), clone,
			"v0.0.0-20261122170000-965d8d1aa00b+dirty"},
		{"a commit alone", "", module("(devel)", commit), clone, "965d8d1aa00b"},
		{"changed since", "", module("(devel)", commit, modified), clone, "965d8d1aa00b-dirty"},
		{"archive of a tag", "", module("(devel)"), "v1.2.3\nabcdef0\n", "v1.2.3"},
		{"archive before any tag", "", module("(devel)"), "\nabcdef0\n", "abcdef0"},
		{"archive by an old git", "", module("(devel)"), "%(describe:tags=true)\nabcdef0\n", "abcdef0"},
		{"clone without stamps", "", module("(devel)"), clone, "devel"},
		{"no module", "", nil, clone, "devel"},
	} {
		if got := versionOf(c.linked, c.info, c.archived); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Every command waits until all packages are initialized, so none of ours may compile what few commands need.
func TestNoPackageIsSlowToInitialize(t *testing.T) {
	t.Parallel()
	var trace strings.Builder
	start := exec.CommandContext(t.Context(), os.Args[0], "-test.list=^$")
	start.Env, start.Stderr = append(os.Environ(), "GODEBUG=inittrace=1"), &trace
	if err := start.Run(); err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile(`(?m)^init (\S*daycared\S*) .* ([0-9]+) bytes,`).FindAllStringSubmatch(trace.String(), -1)
	if len(all) < 10 {
		t.Errorf("packages that are initialized: %q", all)
	}
	for _, m := range all {
		if bytes, _ := strconv.Atoi(m[2]); bytes > 500_000 {
			t.Errorf("%s allocates %d bytes before main begins", m[1], bytes)
		}
	}
}
