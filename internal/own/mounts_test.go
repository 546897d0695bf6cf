package own

import (
	"slices"
	"testing"
)

// TestMountsOfWhatIsOwn: what is mounted elsewhere is found there, be it the file, a folder around it or one in it, and nothing else is.
func TestMountsOfWhatIsOwn(t *testing.T) {
	all := []mount{
		{"8:1", "/", "/"}, {"8:2", "/", "/var"}, {"0:5", "/", "/proc"},
		{"8:2", "/lib/daycared", "/srv/ws/whole"}, {"8:2", "/lib/daycared/keys", "/srv/ws/part"}, {"8:2", "/", "/mnt/around"},
		{"8:2", "/lib/daycared-2", "/srv/ws/other"}, {"8:1", "/lib/daycared", "/srv/ws/elsewhere"}, {"8:1", "/etc/daycared.yaml", "/srv/ws/c"},
		{"0:40", "/@home", "/home"}, {"0:40", "/@home/fay/d", "/srv/ws/sub"}, // as of btrfs
	}
	for file, want := range map[string][]string{
		"/var/lib/daycared":  {"/srv/ws/whole", "/srv/ws/part", "/mnt/around/lib/daycared"},
		"/etc/daycared.yaml": {"/srv/ws/c"},
		"/home/fay/d/data":   {"/srv/ws/sub/data"},
		"/usr/bin/daycared":  nil,
	} {
		if got := mounted([]string{file}, all); !slices.Equal(got, want) {
			t.Errorf("%s is also %q, want %q", file, got, want)
		}
	}
	if got := mounted([]string{"/x"}, nil); got != nil {
		t.Errorf("without mounts, %q", got)
	}
}
