package config

import (
	"slices"
	"testing"
)

func TestFind(t *testing.T) {
	const mine, etc = "/home/fay/.config/daycared/config.yaml", "/etc/daycared/config.yaml"
	home := []string{"HOME=/home/fay"}
	for _, test := range []struct {
		name, flag string
		environ    []string
		exist      []string
		want       string
		found      bool
	}{
		{"flag", "x.yaml", append(home, "DAYCARED_CONFIG=/y.yaml"), []string{mine, etc}, "x.yaml", true},
		{"variable", "", append(home, "DAYCARED_CONFIG=/y.yaml"), []string{mine, etc}, "/y.yaml", true},
		{"empty variable", "", append(home, "DAYCARED_CONFIG="), []string{mine, etc}, mine, true},
		{"home", "", home, []string{mine, etc}, mine, true},
		{"machine", "", home, []string{etc}, etc, true},
		{"no home", "", nil, []string{mine, etc}, etc, true},
		{"odd home", "", []string{"HOME=here"}, []string{"here/.config/daycared/config.yaml"}, "", false},
		{"none", "", home, nil, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			exists := func(p string) bool { return slices.Contains(test.exist, p) }
			if got, found := Find(test.flag, test.environ, exists); got != test.want || found != test.found {
				t.Errorf("got %q, %v", got, found)
			}
		})
	}
}

func TestPaths(t *testing.T) {
	in := func(data, run string) Paths {
		return Paths{
			DataDir: data, AgentSocket: run + "/agent.sock", AdminSocket: run + "/admin.sock",
			AdminKey: data + "/admin.key", AuditKey: data + "/audit.key", LogFile: data + "/daycared.log",
		}
	}
	named := Paths{
		DataDir: "/srv/d", AgentSocket: "/a.sock", AdminSocket: "/b.sock",
		AdminKey: "/srv/d/admin.key", AuditKey: "/srv/d/audit.key", LogFile: "/srv/d/daycared.log",
	}
	const state = "/home/fay/.local/state/daycared"
	for _, test := range []struct {
		name    string
		text    string
		uid     int
		environ []string
		want    Paths
	}{
		{"named", "data_dir: /srv/d\napi: {agent_socket: /a.sock, admin_socket: /b.sock}\n", 0,
			[]string{"STATE_DIRECTORY=/s"}, named},
		{"root", "", 0, []string{"HOME=/root", "XDG_RUNTIME_DIR=/run/user/0", "XDG_STATE_HOME=/x"},
			in("/var/lib/daycared", "/run/daycared")},
		{"a person", "", 1000, []string{"HOME=/home/fay", "XDG_RUNTIME_DIR=/run/user/1000"},
			in(state, "/run/user/1000/daycared")},
		{"no session", "", 1000, []string{"HOME=/home/fay"}, in(state, state)},
		{"state home", "", 1000, []string{"HOME=/home/fay", "XDG_STATE_HOME=/x/"}, in("/x/daycared", "/x/daycared")},
		{"relative", "", 1000, []string{"HOME=/home/fay", "XDG_STATE_HOME=x", "XDG_RUNTIME_DIR=y"}, in(state, state)},
		{"data_dir", "data_dir: /srv/d\n", 1000, []string{"HOME=/home/fay"}, in("/srv/d", "/srv/d")},
		{"service", "", 999, []string{"STATE_DIRECTORY=/var/lib/daycared:/var/lib/more"},
			in("/var/lib/daycared", "/run/daycared")},
		{"service with its folder", "", 999, []string{"STATE_DIRECTORY=/var/lib/daycared", "RUNTIME_DIRECTORY=/run/daycared"},
			in("/var/lib/daycared", "/run/daycared")},
		{"service of a person", "", 1000,
			[]string{"HOME=/home/fay", "STATE_DIRECTORY=" + state, "XDG_RUNTIME_DIR=/run/user/1000"},
			in(state, "/run/user/1000/daycared")},
		{"nothing known", "", 999, nil, in("/var/lib/daycared", "/var/lib/daycared")},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := load(t, test.text).Paths(test.uid, test.environ); got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}
