package config

import (
	"cmp"
	"path/filepath"
	"strings"
)

// Find says which configuration file to load: the one of the flag, else of DAYCARED_CONFIG, else the first that exists
// of ~/.config/daycared/config.yaml and /etc/daycared/config.yaml. A file that was named is the one, whether it exists
// or not; [Load] tells. found is false when there is none.
func Find(flag string, environ []string, exists func(string) bool) (path string, found bool) {
	if named := cmp.Or(flag, lookup(environ, "DAYCARED_CONFIG")); named != "" {
		return named, true
	}
	var places []string
	if home := lookup(environ, "HOME"); filepath.IsAbs(home) {
		places = append(places, filepath.Join(home, ".config/daycared/config.yaml"))
	}
	for _, p := range append(places, SystemFile) {
		if exists(p) {
			return p, true
		}
	}
	return "", false
}

// Paths are where the daemon's files are. All are absolute.
type Paths struct {
	DataDir     string
	AgentSocket string
	AdminSocket string
	AdminKey    string
	LogFile     string
	Credentials string // those of a service; empty where it has none
}

// SystemFile is the configuration of the machine's own service.
const SystemFile = "/etc/daycared/config.yaml"

// Where services are, and what root runs.
const (
	serviceData = "/var/lib/daycared"
	serviceRun  = "/run/daycared"
)

// Paths says where the files are for a daemon that runs as uid with environ. What the configuration names stands. Else
// the data is in $STATE_DIRECTORY (which systemd gives to services), in /var/lib/daycared for root, in
// $XDG_STATE_HOME/daycared, or in ~/.local/state/daycared; the sockets are in /run/daycared for root and services, in
// $XDG_RUNTIME_DIR/daycared, or with the data. An account without a home is a service's.
func (c *Config) Paths(uid int, environ []string) Paths {
	data := cmp.Or(c.DataDir, dataDir(uid, environ))
	run := cmp.Or(runDir(uid, environ), data)
	return Paths{
		DataDir:     data,
		AgentSocket: cmp.Or(c.API.AgentSocket, filepath.Join(run, "agent.sock")),
		AdminSocket: cmp.Or(c.API.AdminSocket, filepath.Join(run, "admin.sock")),
		AdminKey:    filepath.Join(data, "admin.key"),
		LogFile:     filepath.Join(data, "daycared.log"),
		Credentials: folder(environ, "CREDENTIALS_DIRECTORY"),
	}
}

func dataDir(uid int, environ []string) string {
	if dir := folder(environ, "STATE_DIRECTORY"); dir != "" {
		return dir
	}
	if uid == 0 {
		return serviceData
	}
	if dir := folder(environ, "XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "daycared")
	}
	if home := folder(environ, "HOME"); home != "" {
		return filepath.Join(home, ".local/state/daycared")
	}
	return serviceData
}

// runDir is where the sockets are when they are not with the data. systemd gives $RUNTIME_DIRECTORY to whoever asks for
// one; a service of the user's own manager has $XDG_RUNTIME_DIR, too, and a service of the system has not.
func runDir(uid int, environ []string) string {
	if dir := folder(environ, "RUNTIME_DIRECTORY"); dir != "" {
		return dir
	}
	if uid == 0 {
		return serviceRun
	}
	if dir := folder(environ, "XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "daycared")
	}
	if lookup(environ, "STATE_DIRECTORY") != "" {
		return serviceRun
	}
	return ""
}

// folder is the first absolute path of a variable. The XDG base directory specification has relative ones ignored;
// systemd may give several, separated by colons.
func folder(environ []string, name string) string {
	dir, _, _ := strings.Cut(lookup(environ, name), ":")
	if !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Clean(dir)
}

// lookup is the value of a variable, of which the last one counts.
func lookup(environ []string, name string) (value string) {
	for _, entry := range environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}
