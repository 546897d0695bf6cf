package own

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/daycared/daycared/permissions"
)

// mount is a row of Linux's /proc/self/mountinfo: the folder of a file system that is mounted, and where.
type mount struct{ device, root, at string }

// mounts returns the mounts of this process, in their order; none where there is no such file.
func mounts() (all []mount) {
	text, _ := os.ReadFile("/proc/self/mountinfo")
	for row := range strings.Lines(string(text)) {
		if f := strings.Fields(row); len(f) > 4 {
			all = append(all, mount{f[2], unescape.Replace(f[3]), unescape.Replace(f[4])})
		}
	}
	return all
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
			name := m.at
			switch {
			case in.at == "" || m.device != in.device:
				continue
			case permissions.Within(m.root, where):
				name = filepath.Join(m.at, strings.TrimPrefix(where, m.root))
			case !permissions.Within(where, m.root):
				continue
			}
			if !slices.Contains(files, name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
