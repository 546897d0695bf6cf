package own

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/daycared/daycared/permissions"
)

// mount is a row of Linux's table of mounts: the folder of a file system that is mounted, and where.
type mount struct {
	device, root, at string
	layers           []string // of an overlay: the folders that it shows; empty: it cannot be followed
	remote           bool     // another machine or program answers for it, or does not
}

// table is the file; only tests set it.
var table = "/proc/self/mountinfo"

// mounts returns the mounts of this process, in their order; none where there is no such file.
func mounts() (all []mount) {
	text, _ := os.ReadFile(table)
	for row := range strings.Lines(string(text)) {
		if f := strings.Fields(row); len(f) > 4 {
			all = append(all, mount{f[2], unescape.Replace(f[3]), unescape.Replace(f[4]), layers(f), isRemote(f)})
		}
	}
	return all
}

// isRemote reports whether the file system of a row is of a remote kind.
func isRemote(row []string) bool {
	at := slices.Index(row, "-")
	if at < 0 || at+1 >= len(row) {
		return false
	}
	kind, _, _ := strings.Cut(row[at+1], ".") // as in fuse.sshfs
	return slices.Contains([]string{"fuse", "fuseblk", "virtiofs", "nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "autofs"}, kind)
}

// remote returns where the remote ones of some mounts are.
func remote(all []mount) (places []string) {
	for _, m := range all {
		if m.remote {
			places = append(places, m.at)
		}
	}
	return places
}

// remoteMountOf returns the remote file system to which a path leads; empty: none does. It looks at nothing there.
func remoteMountOf(path string, places []string) string {
	if len(places) > 0 {
		left := MaxLinks
		if at, there, _ := walk(path, &left, func(at string) bool { return slices.Contains(places, at) }); there {
			return at
		}
	}
	return ""
}

// probeRemote has another process look at a path that leads to a remote file system: a thread of ours that hangs there would keep our
// process from ending.
func probeRemote(path string, places []string) {
	if remoteMountOf(path, places) != "" {
		probe(path)
	}
}

// probe does that; only tests set it.
var probe = func(path string) {
	look := exec.CommandContext(context.Background(), "/bin/sh", "-c", `test -e "$1"`, "sh", path) //nolint:gosec // it runs nothing
	look.Dir, look.Env = "/", []string{}
	_ = look.Run() // whatever is there
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
	return slices.DeleteFunc(folders, func(f string) bool { return f == "" }) // before layers of data alone is an empty one
}

// follow resolves layers. One that is relative or gone may be any folder.
func follow(layers, places []string) []string {
	for i, layer := range layers {
		probeRemote(layer, places)
		if _, err := os.Stat(layer); err != nil || !filepath.IsAbs(layer) {
			layers[i] = ""
		} else {
			layers[i] = resolve(layer)
		}
	}
	return layers
}

// unescape replaces what the kernel escapes in the names of a row.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// system are where an overlay of the system's own lies, whose layers often are gone: a container's, a live system's, systemd's extensions.
var system = []string{"/", "/usr", "/etc", "/opt"}

// otherNames returns under which other names the files are seen because a folder around them, or one in them, is mounted elsewhere. In
// doubt, that is every overlay of which a layer cannot be followed.
func otherNames(files []string, all []mount) (names []string) {
	for _, m := range all {
		if slices.Contains(m.layers, "") && !slices.ContainsFunc(all, func(o mount) bool {
			return o.device == m.device && (slices.Contains(system, o.at) ||
				slices.ContainsFunc(files, func(file string) bool { return permissions.Within(o.at, file) }))
		}) {
			names = append(names, m.at)
		}
	}
	folders := make([][]mount, len(all)) // of the layers of each
	for i, m := range all {
		for _, layer := range m.layers {
			device, root := locate(layer, all)
			folders[i] = append(folders[i], mount{device: device, root: root, at: "/"})
		}
	}
	seen := slices.Concat(files, names)
	for n := 0; n < len(seen); n++ { // a mount of a mount, too
		device, where := locate(seen[n], all)
		for i, m := range all {
			var shown []string
			if device != "" && m.device == device {
				shown = append(shown, m.nameOf(where))
			}
			for l, layer := range m.layers {
				folder := folders[i][l]
				in := folder.nameOf(where)
				switch {
				case layer == "":
				case in != "" && folder.device == device:
					shown = append(shown, m.nameOf(in))
				case permissions.Within(seen[n], layer):
					shown = append(shown, m.at)
				}
			}
			for _, name := range shown {
				if name != "" && !slices.ContainsFunc(seen, func(known string) bool { return permissions.Within(known, name) }) {
					seen, names = append(seen, name), append(names, name)
				}
			}
		}
	}
	return names
}

// locate returns on which device a path lies, and where there; nothing without a mount around it.
func locate(path string, all []mount) (device, where string) {
	var in mount
	for _, m := range all { // of two at one place, the later one is seen
		if permissions.Within(m.at, path) && len(m.at) >= len(in.at) {
			in = m
		}
	}
	return in.device, filepath.Join(in.root, strings.TrimPrefix(path, in.at))
}

// nameOf returns under which name a mount shows a file of its file system, or what lies in it; empty: it does not.
func (m mount) nameOf(file string) string {
	switch {
	case permissions.Within(m.root, file):
		return filepath.Join(m.at, strings.TrimPrefix(file, m.root))
	case permissions.Within(file, m.root):
		return m.at
	}
	return ""
}
