package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/viper"

	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/permissions"
)

// Load reads the configuration file at path, lays it over the defaults and the environment over both, and checks the result. An
// empty path means no file. environ is in the format of [os.Environ]; an empty variable counts as not set. The error is
// [Problems] if the configuration is invalid, else that of opening or reading the file.
func Load(path string, environ []string) (*Config, error) {
	return Check(path, environ, Accounts{})
}

// Accounts reports whether the machine knows accounts and groups by name. A nil function is not called.
type Accounts struct {
	User, Group func(name string) bool
}

// Check is [Load] and also asks the machine, so that unknown accounts are reported with everything else.
func Check(path string, environ []string, known Accounts) (*Config, error) {
	var data []byte
	if path != "" {
		var err error
		if data, err = read(path); err != nil {
			return nil, fmt.Errorf("read configuration: %w", err)
		}
	}
	return whole(check(path, data, environ, known))
}

// whole returns the configuration if nothing is wrong.
func whole(cfg *Config, err error) (*Config, error) {
	if err != nil {
		return nil, err
	}
	return cfg, nil
}

// Places returns data_dir and the sockets of a file that [Load] refuses, nothing else; ok is false if a problem may concern them. A file
// that is no YAML may have lost what it said: it has to name them all.
func Places(path string, environ []string) (cfg *Config, ok bool) {
	data, err := read(path)
	if err != nil {
		return nil, false
	}
	isYAML := document(&report{bad: map[string]bool{}}, data) != nil
	if !isYAML {
		data = placesIn(data)
	}
	cfg, err = check(path, data, environ, Accounts{})
	var found Problems
	if cfg == nil || !isYAML && (cfg.DataDir == "" || cfg.API.AgentSocket == "" || cfg.API.AdminSocket == "") {
		return cfg, false
	}
	return cfg, (errors.As(err, &found) || !isYAML && err == nil) && !slices.ContainsFunc(found, func(p Problem) bool {
		name := p.Key
		if unknown, is := strings.CutPrefix(p.Text, `unknown key "`); is { // a problem of the key above it
			name, _, _ = strings.Cut(unknown, `"`)
		}
		return name == "" || permissions.Nearest(name[strings.LastIndexByte(name, '.')+1:], placeKeys) != ""
	})
}

// placesIn returns the top-level keys of a file that is no YAML, with the values of those that say where its daemon is.
func placesIn(data []byte) (kept []byte) {
	says := false
	for line := range bytes.Lines(data) {
		key, _, _ := strings.Cut(string(line), ":")
		switch isKey := len(key) < len(line) && strings.Trim(key, "abcdefghijklmnopqrstuvwxyz_") == ""; {
		case isKey && (key == "data_dir" || key == "api"), says && line[0] <= ' ':
			kept, says = append(kept, line...), true
		case isKey:
			kept, says = append(kept, key+":\n"...), false
		case line[0] > ' ':
			says = false
		}
	}
	return kept
}

// placeKeys are the keys that say where a daemon is, and the keys above them.
var placeKeys = []string{"data_dir", "api", "agent_socket", "admin_socket"}

// ReadFile reads at most limit bytes of a regular file whose file system answers. Opening or reading another kind, such as a pipe, could
// block.
func ReadFile(path string, limit int64) ([]byte, error) {
	return own.LookUp(path, func() ([]byte, error) { return readFile(path, limit) })
}

func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("is not a regular file")}
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// read reads the file, up to the size limit.
func read(path string) ([]byte, error) {
	text, err := ReadFile(path, maxSize+1)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w; name a file that exists, or none: then it is looked for in DAYCARED_CONFIG, "+
			"~/.config/daycared/config.yaml and /etc/daycared/config.yaml", err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w for this account; use the daemon's account, or let this one read it", err)
	case errors.Is(err, syscall.EISDIR):
		return nil, fmt.Errorf("%s is a folder; name the file in it, as in %s", path, filepath.Join(path, "config.yaml"))
	}
	return text, err
}

// parse is Load for the content of the file.
func parse(file string, data []byte, environ []string) (*Config, error) {
	return whole(check(file, data, environ, Accounts{}))
}

// check is Check for the content of the file. With an error it returns what could be read, if anything.
func check(file string, data []byte, environ []string, known Accounts) (*Config, error) {
	r := &report{
		file: file, lines: map[string]int{}, vars: map[string]string{}, bad: map[string]bool{}, in: map[string]bool{},
	}
	v := viper.New()
	defaults := reflect.ValueOf(Default()).Elem()
	for _, k := range root.settings() {
		v.SetDefault(k.path, at(defaults, k.path).Interface())
	}
	if doc := document(r, data); doc != nil {
		w := walk{r}
		if !w.rejectAnchors(doc, "") {
			return nil, r.err()
		}
		if err := v.MergeConfigMap(w.section(doc, root, "")); err != nil {
			return nil, fmt.Errorf("merge %s: %w", file, err)
		}
	}
	warnings := environment(r, v, environ)

	cfg := Default()
	cfg.File, cfg.from, cfg.origins = file, r, map[string]string{}
	for _, k := range root.settings() {
		assign(at(reflect.ValueOf(cfg).Elem(), k.path), k, v.Get(k.path))
	}
	for path, line := range r.lines {
		cfg.origins[path] = place(onOneLine(filepath.Base(file)), line)
	}
	maps.Copy(cfg.origins, r.vars)
	checkConsistency(r, cfg)
	r.checkAccounts(cfg, known)
	faults := r.unworkable(cfg)
	if len(r.found) > 0 { // report everything together
		r.found = append(r.found, faults...)
		return cfg, r.err()
	}
	for i := range cfg.People {
		cfg.People[i].Location = cmp.Or(cfg.People[i].Location, time.Local)
	}
	for i := range cfg.Routes {
		cfg.Routes[i].Quorum = cmp.Or(cfg.Routes[i].Quorum, 1)
	}
	cfg.complete(r)
	cfg.Faults, cfg.Warnings = faults, slices.Concat(warnings, warn(r, cfg))
	return cfg, nil
}

// prefix is the prefix of our environment variables.
const prefix = "DAYCARED_"

// commandLine are the variables that commands read themselves.
var commandLine = []string{"DAYCARED_CONFIG", "DAYCARED_SOCKET", "DAYCARED_ADMIN_SOCKET", "DAYCARED_TOKEN_FILE", "DAYCARED_URL"}

// variable returns the environment variable of a key: DAYCARED_API_AGENT_SOCKET.
func variable(path string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// environment lays the variables over the file. They are checked like the file's values and then passed to viper one by one,
// because its AutomaticEnv would take them unchecked, and from the process instead of environ.
func environment(r *report, v *viper.Viper, environ []string) (warnings Problems) {
	names := slices.Clone(commandLine)
	keys := map[string]key{}
	for _, k := range root.settings() {
		keys[variable(k.path)] = k
		if !k.list && !k.table {
			names = append(names, variable(k.path))
		}
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, prefix) || value == "" || slices.Contains(commandLine, name) {
			continue
		}
		k, ok := keys[name]
		if !ok {
			warnings = append(warnings, Problem{Where: name, Text: "no such variable; " + suggest(name, names)})
		} else if k.list {
			r.variable(name, k.path, "%s is a list; write it into the file", k.path)
		} else if k.table {
			r.variable(name, k.path, "%s has a number for each tool; write them into the file", k.path)
		} else if parsed, err := k.leaf.parse(value); err != nil {
			r.variable(name, k.path, "%v", err)
		} else {
			r.vars[k.path] = name
			v.Set(k.path, parsed)
		}
	}
	return warnings
}

// at returns the field of a key in a struct.
func at(v reflect.Value, path string) reflect.Value {
	s := root
	for name := range strings.SplitSeq(path, ".") {
		k, _ := s.find(name)
		v, s = v.Field(k.field), k.inner
	}
	return v
}

// assign sets a key's field to viper's value: a value of the field's type, or the walk's lists and maps.
func assign(field reflect.Value, k key, value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, inner := range k.inner.keys {
			switch v, ok := value[inner.name]; {
			case ok && inner.entry:
				all := field.Field(inner.field)
				if all.IsNil() {
					all.Set(reflect.MakeMap(all.Type()))
				}
				all.SetMapIndex(reflect.ValueOf(inner.name), reflect.ValueOf(v))
			case ok:
				assign(field.Field(inner.field), inner, v)
			}
		}
	case []any:
		field.SetZero()
		for i, item := range value {
			field.Set(reflect.Append(field, reflect.Zero(field.Type().Elem())))
			assign(field.Index(i), k, item)
		}
	default:
		field.Set(reflect.ValueOf(value))
	}
}

// Find returns the configuration file to load: that of the flag, else of DAYCARED_CONFIG, else the first that exists of
// ~/.config/daycared/config.yaml and /etc/daycared/config.yaml. A named file need not exist; [Load] reports that. found is false
// if there is none.
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

// Paths are the absolute paths of the daemon's files.
type Paths struct {
	DataDir     string
	Database    string // URL; empty: SQLite in DataDir
	AgentSocket string
	AdminSocket string
	AdminKey    string
	AuditKey    string
	LogFile     string
	Credentials string // of a service; empty: none
}

// SystemFile is the configuration of the system service.
const SystemFile = "/etc/daycared/config.yaml"

// Folders of services, and of daemons that root runs.
const (
	serviceData = "/var/lib/daycared"
	serviceRun  = "/run/daycared"
)

// Paths returns where the files are for a daemon that runs as uid with environ. Configured paths win. Otherwise the data is in
// $STATE_DIRECTORY (set by systemd for services), in /var/lib/daycared for root, in $XDG_STATE_HOME/daycared, or in
// ~/.local/state/daycared. The sockets are in /run/daycared for root and services, in $XDG_RUNTIME_DIR/daycared, or with the
// data. An account without a home is a service's.
func (c *Config) Paths(uid int, environ []string) Paths {
	data := cmp.Or(c.DataDir, dataDir(uid, environ))
	run := cmp.Or(runDir(uid, environ), data)
	return Paths{
		DataDir:     data,
		Database:    c.Database,
		AgentSocket: cmp.Or(c.API.AgentSocket, filepath.Join(run, "agent.sock")),
		AdminSocket: cmp.Or(c.API.AdminSocket, filepath.Join(run, "admin.sock")),
		AdminKey:    filepath.Join(data, "admin.key"),
		AuditKey:    cmp.Or(c.Audit.KeyFile, filepath.Join(data, "audit.key")),
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

// runDir returns where the sockets are if not with the data. A service of the user's systemd has $XDG_RUNTIME_DIR as well as
// $RUNTIME_DIRECTORY, one of the system only the latter.
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

// folder returns the first absolute path of a variable. XDG says to ignore relative ones; systemd may set several, with colons between.
func folder(environ []string, name string) string {
	dir, _, _ := strings.Cut(lookup(environ, name), ":")
	if !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Clean(dir)
}

// lookup returns the value of a variable; the last one counts.
func lookup(environ []string, name string) (value string) {
	for _, entry := range environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}
