package hooks

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/permissions/acts"
)

// projects are the environment variables that give hooks the folder in which the session began, by dialect.
var projects = map[string]string{"claude-code": "CLAUDE_PROJECT_DIR", "gemini": "GEMINI_PROJECT_DIR"}

// Harmless reports whether the call was read completely and needs no approval: reading and editing in the agent's folder (except
// files that are executed later), building and testing. It is false for a hook that runs because the agent's own rules ask.
func (c Call) Harmless(env func(string) string) bool {
	if c.given == nil || c.questions != nil || strings.EqualFold(c.event, "permissionRequest") {
		return false
	}
	folder := own.Resolve(c.Request.Cwd)
	root := folder
	if told := env(projects[c.dialect]); filepath.IsAbs(told) {
		root = own.Resolve(told)
	}
	w := acts.Workspace{Root: root, Resolve: own.Resolve}
	if !w.Reads(folder) || !narrow(root, env) {
		return false
	}
	return w.HarmlessCall(c.dialect, c.Request.Tool, c.given, folder)
}

// narrow reports whether a folder is a plausible project folder: it contains neither the home folder nor a program on PATH, and
// CDPATH does not redirect cd.
func narrow(root string, env func(string) string) bool {
	holds := func(name string) bool {
		path, err := filepath.Rel(root, own.Resolve(name))
		return err != nil || filepath.IsLocal(path)
	}
	home := env("HOME")
	return filepath.IsAbs(home) && !holds(home) && env("CDPATH") == "" &&
		!slices.ContainsFunc(filepath.SplitList(env("PATH")), func(in string) bool {
			return !filepath.IsAbs(in) || holds(in)
		})
}
