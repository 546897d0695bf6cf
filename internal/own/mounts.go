package own

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/daycared/daycared/permissions"
)

// mount is a row of Linux's /proc/self/mountinfo: the folder of a file system that is mounted, and where.
type mount struct {
	device, root, at string
	layers           []string // of an overlay: the folders that it shows
}

// mounts returns the mounts of this process, in their order; none where there is no such file.
func mounts() (all []mount) {
	text, _ := os.ReadFile("/proc/self/mountinfo")
	for row := range strings.Lines(string(text)) {
		if f := strings.Fields(row); len(f) > 4 {
			all = append(all, mount{f[2], unescape.Replace(f[3]), unescape.Replace(f[4]), layers(f)})
		}
	}
	return all
}

// layers returns the folders that the overlay of a row shows; none of another file system.
func layers(row []string) (folders []string) {
	if at := slices.Index(row, "-"); at < 0 || at+1 >= len(row) || row[at+1] != "overlay" {
		return nil
	}
	for option := range strings.SplitSeq(row[len(row)-1], ",") {
		name, value, _ := strings.Cut(option, "=")
		if slices.Contains([]string{"lowerdir", "lowerdir+", "datadir+", "upperdir"}, name) {
			folders = append(folders, strings.Split(unescape.Replace(value), ":")...)
		}
	}
	return folders
}

// unescape replaces what the kernel escapes in the names of a row.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// mounted returns under which other names the files are seen because a folder around them, or one in them, is mounted elsewhere.
func mounted(files []string, all []mount) (names []string) {
	for _, file := range files {
		var in mount
		for _, m := range all { // of two at one place, the later one is seen
			if permissions.Within(m.at, file) && len(m.at) >= len(in.at) {
				in = m
			}
		}
		where := filepath.Join(in.root, strings.TrimPrefix(file, in.at))
		for _, m := range all {
			var shown []string
			if in.at != "" && m.device == in.device {
				shown = append(shown, m.shows(where))
			}
			for _, layer := range m.layers {
				if rest, below := strings.CutPrefix(file+"/", layer+"/"); below {
					shown = append(shown, m.shows("/"+strings.TrimSuffix(rest, "/")))
				} else if permissions.Within(file, layer) {
					shown = append(shown, m.at)
				}
			}
			for _, name := range shown {
				if name != "" && !slices.Contains(files, name) && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// shows returns under which name a mount shows a file of its file system, or what lies in it; empty: it does not.
func (m mount) shows(file string) string {
	switch {
	case permissions.Within(m.root, file):
		return filepath.Join(m.at, strings.TrimPrefix(file, m.root))
	case permissions.Within(file, m.root):
		return m.at
	}
	return ""
}
