package main

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/permissions"
)

func TestSettingsKnowAccounts(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.Atoi(me.Uid)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.People = []config.Person{{Name: "fay", User: me.Username}, {Name: "sam", Telegram: 7}}
	s, err := settings(cfg, config.Paths{}, uid)
	if err != nil {
		t.Fatal(err)
	}
	if fay, sam := s.People[0], s.People[1]; fay.UID != uid || sam.UID != permissions.NoUID || sam.Telegram != 7 {
		t.Errorf("fay has uid %d, sam %d; want %d and none", fay.UID, sam.UID, uid)
	}
	cfg.File, cfg.People[1].User = "c.yaml", "nobody-by-this-name"
	_, err = settings(cfg, config.Paths{}, uid)
	const want = `c.yaml: people.user: this machine does not know the account "nobody-by-this-name"; `
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("settings = %v; want %s", err, want)
	}
}

// TestOwnFilesAreFoundByEveryName checks that a link to the data directory is covered as much as what it leads to.
func TestOwnFilesAreFoundByEveryName(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	data, link := filepath.Join(folder, "data"), filepath.Join(folder, "link")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	cfg := config.Default()
	cfg.File = "c.yaml"
	own := ownFiles(cfg, config.Paths{DataDir: link, AgentSocket: "/run/a", AdminSocket: "/run/b", AdminKey: link + "/admin.key"})
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{data, link, "/run/a", "/run/b", link + "/admin.key", filepath.Join(folder, "c.yaml"), binary} {
		if !slices.Contains(own, want) {
			t.Errorf("%s is not among %s", want, strings.Join(own, ", "))
		}
	}
	if i := slices.IndexFunc(own, func(p string) bool { return !filepath.IsAbs(p) }); i >= 0 {
		t.Errorf("%s is not absolute", own[i])
	}
}
