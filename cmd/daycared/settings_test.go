package main

import (
	"os"
	"os/user"
	"path/filepath"
	"reflect"
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
	cfg.People = []config.Person{{Name: "fay", User: me.Username}, {Name: "sam", Addresses: map[string]string{"telegram": "7"}}}
	s, err := settings(cfg, config.Paths{}, uid)
	if err != nil {
		t.Fatal(err)
	}
	if fay, sam := s.People[0], s.People[1]; fay.UID != uid || sam.UID != permissions.NoUID || sam.Addresses["telegram"] != "7" {
		t.Errorf("fay has uid %d, sam %d; want %d and none", fay.UID, sam.UID, uid)
	}
	cfg.File, cfg.People[1].User = "c.yaml", "nobody-by-this-name"
	_, err = settings(cfg, config.Paths{}, uid)
	const want = `c.yaml: people.user: this machine does not know the account "nobody-by-this-name"; `
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("settings = %v; want %s", err, want)
	}
}

// TestAReloadPutsNoSandboxUp: what runs without a sandbox since the start is asked about, although the new configuration has one.
func TestAReloadPutsNoSandboxUp(t *testing.T) {
	cfg := config.Default()
	cfg.Agents, cfg.Sandbox, cfg.Sandboxed = []config.Agent{{Name: "helper"}}, true, true
	for _, walled := range []bool{true, false} {
		next, err := settings(cfg, config.Paths{}, os.Getuid())
		if err != nil {
			t.Fatal(err)
		}
		keepAgents(&next, next, walled)
		if got := next.Policies[permissions.AgentCaller("helper").Name].Sandboxed; got != walled || next.Policy.Sandboxed != walled {
			t.Errorf("with a sandbox at the start %t: commands in it run unasked: %t, %t", walled, got, next.Policy.Sandboxed)
		}
	}
}

// TestTwoNamesOfOneAccountAreOnePerson: an account with two names cannot be two people, who would vote twice.
func TestTwoNamesOfOneAccountAreOnePerson(t *testing.T) {
	uids := map[string]string{"fay": "1001", "fay2": "1001", "sam": "1002"}
	lookup := func(name string) (*user.User, error) { return &user.User{Username: name, Uid: uids[name]}, nil }
	cfg := config.Default()
	cfg.File = "c.yaml"
	cfg.People = []config.Person{
		{Name: "fay", User: "fay"}, {Name: "kim", Addresses: map[string]string{"telegram": "7"}},
		{Name: "lee", Addresses: map[string]string{"telegram": "8"}}, {Name: "sam", User: "sam"},
	}
	if _, err := people(cfg, lookup); err != nil {
		t.Error(err)
	}
	cfg.People[3].User = "fay2"
	const want = "c.yaml: people.user: fay2 and fay are two names of one account (uid 1001), which is that of fay; no two people may share it"
	if _, err := people(cfg, lookup); err == nil || err.Error() != want {
		t.Errorf("people = %v; want %s", err, want)
	}
}

// TestEveryFileOfTheConfigurationIsItsOwn checks that every configured file that the daemon reads is among its own files: a new
// key must be added, or say here why it is not.
func TestEveryFileOfTheConfigurationIsItsOwn(t *testing.T) {
	var walk func(v reflect.Value, at, kind string)
	var keys []string
	cfg := config.Default()
	walk = func(v reflect.Value, at, kind string) {
		switch {
		case kind == "path":
			v.SetString("/of/" + at)
			keys = append(keys, at)
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.IsExported() {
					name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
					walk(v.Field(i), strings.Trim(at+"."+name, "."), f.Tag.Get("is"))
				}
			}
		case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			walk(v.Index(0), at, "")
		}
	}
	walk(reflect.ValueOf(cfg).Elem(), "", "")
	if len(keys) < 6 {
		t.Errorf("only %q name files", keys)
	}
	own := ownFiles(cfg, config.Paths{DataDir: cfg.DataDir})
	for _, key := range keys {
		t.Run("B7/"+key, func(t *testing.T) {
			if !slices.Contains(own, "/of/"+key) {
				t.Errorf("%s is not among %s", key, strings.Join(own, ", "))
			}
		})
	}
}

// TestOwnFilesAreFoundByEveryName checks that a link to the data directory is covered as well as its target.
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
