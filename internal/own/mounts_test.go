package own

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestMountsOfWhatIsOwn: what is mounted elsewhere is found there, be it the file, a folder around it or one in it, and nothing else is.
func TestMountsOfWhatIsOwn(t *testing.T) {
	at := func(device, root, at string, layers ...string) mount { return mount{device, root, at, layers, false} }
	all := []mount{
		at("8:1", "/", "/"), at("8:2", "/", "/var"), at("0:5", "/", "/proc"),
		at("8:2", "/lib/daycared", "/srv/ws/whole"), at("8:2", "/lib/daycared/keys", "/srv/ws/part"), at("8:2", "/", "/mnt/around"),
		at("8:2", "/lib/daycared-2", "/srv/ws/other"), at("8:1", "/lib/daycared", "/srv/ws/elsewhere"),
		at("8:1", "/etc/daycared.yaml", "/srv/ws/c"),
		at("0:40", "/@home", "/home"), at("0:40", "/@home/fay/d", "/srv/ws/sub"), // as of btrfs
		at("0:50", "/", "/srv/ws/ov", "/var/lib/daycared", "/var/lib"), at("0:50", "/daycared", "/srv/ws/ov2", "/var/lib/daycared", "/var/lib"),
		at("0:51", "/", "/merged", "/usr/lib"),
		at("8:1", "/opt/d/data", "/x/e"), at("0:52", "/", "/srv/ws/bound", "/x/e"), at("0:53", "/", "/srv/ws/twice", "/nowhere", "/srv/ws/bound"),
		at("0:54", "/", "/all", "/"), // not what is mounted below
	}
	for file, want := range map[string][]string{
		"/var/lib/daycared": {
			"/srv/ws/whole", "/srv/ws/part", "/mnt/around/lib/daycared", "/srv/ws/ov", "/srv/ws/ov2",
		},
		"/etc/daycared.yaml": {"/srv/ws/c", "/all/etc/daycared.yaml"},
		"/home/fay/d/data":   {"/srv/ws/sub/data"},
		"/opt/d/data":        {"/x/e", "/srv/ws/bound", "/all/opt/d/data", "/srv/ws/twice"},
		"/usr/bin/daycared":  {"/all/usr/bin/daycared"},
		"/proc/x":            nil,
	} {
		if got := otherNames([]string{file}, all); !slices.Equal(got, want) {
			t.Errorf("%s is also %q, want %q", file, got, want)
		}
	}
	doubtful := []mount{
		at("0:60", "/", "/", ""), at("0:60", "/srv/a", "/srv/b", ""), at("0:61", "/", "/home", ""), at("0:62", "/", "/srv/ws/s", "/home", ""),
		at("0:63", "/", "/usr", ""),
	}
	if got := otherNames([]string{"/home/fay/d"}, doubtful); !slices.Equal(got, []string{"/srv/ws/s"}) {
		t.Errorf("in doubt, %q", got)
	}
	dir := t.TempDir()
	if err := os.Symlink(Resolve(dir), dir+"/link"); err != nil {
		t.Fatal(err)
	}
	if got := follow([]string{".", dir + "/gone", dir + "/link"}, nil); !slices.Equal(got, []string{"", "", Resolve(dir)}) {
		t.Errorf("layers lead to %q", got)
	}
	row := strings.Fields("36 35 0:5 / /ov rw - overlay over\\040lay rw,lowerdir=/a\\040b:/c,upperdir=/d,workdir=/e,lowerdir+=/f,lowerdir=::")
	if got := layers(row); !slices.Equal(got, []string{"/a b", "/c", "/d", "/f"}) || layers([]string{"1", "-", "ext4", "lowerdir=/a"}) != nil {
		t.Errorf("an overlay shows %q", got)
	}
	if got := otherNames([]string{"/x"}, nil); got != nil {
		t.Errorf("without mounts, %q", got)
	}
}
