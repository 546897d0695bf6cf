// Package own decides whether a path is one of the daemon's own: its data, configuration, secrets, sockets and binary, its
// processes, and the devices through which all of that can be read. It looks at where names lead, by symbolic links that
// are there and by those that lead to what is not there yet, and by those of /proc. What is asked for, what an agent is
// given and what the sandbox opens are judged by this one rule.
//
// A hard link and a bind mount are not seen: they have no name to follow.
package own

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Find returns what of the daemon's own a path is, lies in, or covers, and whether there is any. The files are absolute.
func Find(files []string, path string) (what string, found bool) {
	names := []string{filepath.Clean(path), Resolve(path)}
	for _, file := range files {
		for _, f := range []string{filepath.Clean(file), Resolve(file)} {
			if slices.ContainsFunc(names, func(n string) bool { return meet(n, f) }) {
				return file, true
			}
		}
	}
	for _, name := range names {
		for _, file := range memory {
			if meet(name, file) {
				return file, true
			}
		}
		if what, found := process(name); found {
			return what, true
		}
	}
	if info, err := os.Stat(names[1]); err == nil && info.Mode()&(os.ModeDevice|os.ModeCharDevice) == os.ModeDevice {
		return names[1], true // a disk: every file is on one
	}
	return "", false
}

// memory is what has the memory of everything in it.
var memory = []string{"/dev/mem", "/dev/kmem", "/dev/port", "/proc/kcore"}

// process finds a process of the daemon's: itself, and those that it started. A link of /proc that cannot be followed may
// lead to anything.
func process(path string) (what string, found bool) {
	if path == "/proc" {
		return path, true
	}
	rest, below := strings.CutPrefix(path, "/proc/")
	if !below {
		return "", false
	}
	parts := strings.Split(rest, "/")
	pid, err := strconv.Atoi(parts[0])
	if err != nil {
		return "", false
	}
	if slices.ContainsFunc(parts[1:], func(p string) bool { return slices.Contains(links, p) }) {
		return path, true
	}
	for steps := 0; pid > 1 && steps < 1000; steps++ {
		group, parent := family(pid)
		if group == os.Getpid() {
			return "/proc/" + parts[0], true
		}
		pid = parent
	}
	return "", false
}

// links are the names of links, and of folders of links, in the folder of a process.
var links = []string{"root", "cwd", "exe", "fd", "map_files"}

// family is the process that a thread belongs to, and its parent; 0 where it is gone.
func family(pid int) (group, parent int) {
	status, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	for line := range bytes.Lines(status) {
		name, value, _ := strings.Cut(string(line), ":")
		switch name {
		case "Tgid":
			group, _ = strconv.Atoi(strings.TrimSpace(value))
		case "PPid":
			parent, _ = strconv.Atoi(strings.TrimSpace(value))
		}
	}
	return group, parent
}

// mostLinks is how many symbolic links are followed for one path; the kernel follows 40.
const mostLinks = 100

// Resolve is where an absolute path leads by symbolic links. What is not there, or may not be looked at, keeps its name.
func Resolve(path string) string {
	at, rest, followed := "/", strings.Split(filepath.Clean(path), "/"), 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		target, err := os.Readlink(next)
		if err != nil || followed == mostLinks {
			at = next
			continue
		}
		followed++
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return at
}

// meet reports whether one clean path is the other, or lies in it.
func meet(a, b string) bool { return within(a, b) || within(b, a) }

func within(outer, inner string) bool {
	return inner == outer || outer == "/" || strings.HasPrefix(inner, outer+"/")
}
