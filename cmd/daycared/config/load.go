package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/viper"
)

// Load reads the configuration file at path, lays it over the defaults and the environment over both, and checks the
// whole. Without a path there is no file. environ is as [os.Environ] gives it; a variable that is set to nothing
// counts as not set.
//
// The error is [Problems] when what was read is not right, else that of opening or reading the file.
func Load(path string, environ []string) (*Config, error) {
	return Check(path, environ, Accounts{})
}

// Accounts says which accounts and groups the machine knows by name. What is nil is not asked.
type Accounts struct {
	User, Group func(name string) bool
}

// Check is [Load] that also asks the machine, so that an account that it does not know is reported with everything else.
func Check(path string, environ []string, known Accounts) (*Config, error) {
	var data []byte
	if path != "" {
		var err error
		if data, err = read(path); err != nil {
			return nil, fmt.Errorf("read configuration: %w", err)
		}
	}
	return check(path, data, environ, known)
}

// read is the file, as far as a configuration goes.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w; name a file that exists, or none: then it is looked for in DAYCARED_CONFIG, "+
			"~/.config/daycared/config.yaml and /etc/daycared/config.yaml", err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w for this account; use the daemon's account, or let this one read it", err)
	case err != nil:
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder; name the file in it, as in %s", path, filepath.Join(path, "config.yaml"))
	}
	return io.ReadAll(io.LimitReader(f, maxSize+1))
}

// parse is Load for what was read from the file.
func parse(file string, data []byte, environ []string) (*Config, error) {
	return check(file, data, environ, Accounts{})
}

// check is Check for what was read from the file.
func check(file string, data []byte, environ []string, known Accounts) (*Config, error) {
	r := newReport(file)
	v := viper.New()
	defaults := reflect.ValueOf(Default()).Elem()
	for _, k := range root.settings() {
		v.SetDefault(k.path, at(defaults, k.path).Interface())
	}
	if doc := document(r, data); doc != nil {
		w := walk{r}
		if !w.literal(doc, "") {
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
	for path, name := range r.vars {
		cfg.origins[path] = name
	}
	rules(r, cfg)
	r.accounts(cfg, known)
	faults := r.unworkable(cfg)
	if len(r.found) > 0 { // all is told at once
		r.found = append(r.found, faults...)
		return nil, r.err()
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

// prefix begins every variable that is ours.
const prefix = "DAYCARED_"

// commandLine are the variables that commands read themselves.
var commandLine = []string{"DAYCARED_CONFIG", "DAYCARED_SOCKET", "DAYCARED_ADMIN_SOCKET", "DAYCARED_TOKEN_FILE", "DAYCARED_URL"}

// variable is the environment variable that sets a key: DAYCARED_API_AGENT_SOCKET.
func variable(path string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// environment lays the variables over the file. They are handed to viper one by one, after the same checks as the
// file's values: its own AutomaticEnv would take them unchecked, and from the process rather than from environ.
func environment(r *report, v *viper.Viper, environ []string) (warnings Problems) {
	names := slices.Clone(commandLine)
	keys := map[string]key{}
	for _, k := range root.settings() {
		keys[variable(k.path)] = k
		if !k.list {
			names = append(names, variable(k.path))
		}
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, prefix) || value == "" || slices.Contains(commandLine, name) {
			continue
		}
		k, ok := keys[name]
		if path, isLater := laterVariable(name); isLater {
			r.variable(name, path, "this version does not have %s yet; unset it", path)
		} else if !ok {
			warnings = append(warnings, Problem{Where: name, Text: "no such variable; " + suggest(name, names)})
		} else if k.list {
			r.variable(name, k.path, "%s is a list; write it into the file", k.path)
		} else if parsed, err := k.leaf.parse(value); err != nil {
			r.variable(name, k.path, "%v", err)
		} else {
			r.vars[k.path] = name
			v.Set(k.path, parsed)
		}
	}
	return warnings
}

// laterVariable is the key of a later version that a variable sets, or sets something of.
func laterVariable(name string) (path string, ok bool) {
	for _, p := range later {
		if name == variable(p) || strings.HasPrefix(name, variable(p)+"_") {
			return p, true
		}
	}
	return "", false
}

// at is the field of a key in a struct.
func at(v reflect.Value, path string) reflect.Value {
	s := root
	for name := range strings.SplitSeq(path, ".") {
		k, _ := s.find(name)
		v, s = v.Field(k.field), k.inner
	}
	return v
}

// assign puts what viper gives for a key into its field: a value of the field's own type, or the lists and maps that
// the walk made.
func assign(field reflect.Value, k key, value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, inner := range k.inner.keys {
			if v, ok := value[inner.name]; ok {
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
