// Package own decides whether a path is one of the daemon's own: its data, configuration, secrets, sockets and binary, its
// processes, and the devices through which all of that can be read. It looks at where names lead, by symbolic links that
// are there and by those that lead to what is not there yet, and by those of /proc. What is asked for, what an agent is
// given and what the sandbox opens are judged by this one rule.
//
// A hard link and a bind mount are not seen: they have no name to follow.
package own

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Find returns what of the daemon's own a path is, lies in, or covers, and whether there is any. The files are absolute.
func Find(files []string, path string) (what string, found bool) {
	names := []string{filepath.Clean(path), Resolve(path), Resolve(filepath.Clean(path))}
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

// mostTokens is how many of an input are judged, and longest how long a path can be.
const mostTokens, longest = 1000, 4096

// Input judges the names and texts of a tool's input, which is JSON, where the tool runs in that folder: found reports that one is
// the path of something of the daemon's own, and may that one could lead there, or cannot be followed.
func Input(files []string, folder string, input []byte) (found, may bool) {
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber()
	for n := 0; ; n++ {
		token, err := d.Token()
		if err != nil || n == mostTokens {
			return found, may || err == nil
		}
		if text, is := token.(string); is {
			is, could := leads(files, folder, strings.TrimSpace(text))
			found, may = found || is, may || could
		}
	}
}

// leads judges one text. A glob may lead wherever the folder does that it begins with.
func leads(files []string, folder, text string) (found, may bool) {
	if u, err := url.Parse(text); err == nil && u.Scheme == "file" {
		text, may = u.Path, u.Path == ""
	}
	may = may || strings.HasPrefix(text, "~") || strings.HasPrefix(text, "$") && strings.Contains(text, "/") ||
		slices.ContainsFunc(files, func(f string) bool { return strings.Contains(text, f) || strings.Contains(text, Resolve(f)) })
	if text == "" || len(text) > longest {
		return false, may
	}
	paths := []string{text}
	if at := strings.Index(text, "/"); at > 0 && at < len(text)-1 { // as in @/x
		paths = append(paths, text[at:])
	}
	if at := strings.IndexAny(text, "*?[{"); at >= 0 {
		paths = append(paths, text[:strings.LastIndex(text[:at], "/")+1])
		may = may || strings.Contains(text[at:], "../")
	}
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			path = folder + "/" + path
		}
		what, hit := Find(files, path)
		around := strings.HasPrefix(Resolve(what), strings.TrimSuffix(Resolve(path), "/")+"/")
		found, may = found || hit && !around && filepath.IsAbs(text), may || hit
	}
	return found, may
}

// memory is what has the memory of everything in it, or is another thing for each process.
var memory = []string{"/dev/mem", "/dev/kmem", "/dev/port", "/proc/kcore", "/dev/fd"}

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
		return path, strings.HasSuffix(parts[0], "self") // another one for each process
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
	at, rest, followed := "/", strings.Split(path, "/"), 0
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
		if err != nil || followed == mostLinks || strings.HasPrefix(next, "/proc/self") || strings.HasPrefix(next, "/proc/thread-self") {
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
