package hooks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/acts"
)

// Call is one call of a tool that a hook asks about.
type Call struct {
	// Request is the question that it makes. It has no id yet, and no host.
	Request permissions.Request
	// Moot, if Via is set, is what needs no answer any more: the hook was called after something happened, and decides nothing.
	Moot permissions.Recall

	// Keyboard says that the agent's own dialog asks whoever is at its keyboard, too; see [Call.Attended].
	Keyboard bool

	dialect   string
	named     string // the dialect that it was to be of
	event     string
	answer    func(c Call, v Verdict) any // nil: there is no answer of this event's own shape
	echo      string                      // the input that an allowed call is given back; empty: none has to be
	questions []question                  // what the call asks instead of whether it may run
	mode      string
	history   string            // the agent's own file of the session
	given     json.RawMessage   // the input as it was; nil: it was not read
	quiet     bool              // whatever is not allowed is said by silence
	refused   string            // why the agent has refused the call already
	suggested []json.RawMessage // as they came, in the order of the request's choices
}

// Read understands what a hook was given. An error says what is wrong with it, in words for whoever reads the agent's
// log; the Call beside it can still be answered.
func (d Dialect) Read(input []byte) (Call, error) {
	nothing := Call{dialect: d.Name}
	input = bytes.TrimPrefix(input, []byte("\ufeff")) // Cursor writes a byte order mark on Windows
	if len(input) > MaxInput {
		return nothing, fmt.Errorf("the hook was given more than %d bytes", MaxInput)
	}
	if len(bytes.TrimSpace(input)) == 0 {
		return nothing, fmt.Errorf("the hook was given nothing")
	}
	canonical, err := permissions.CanonicalJSON(input) // a member that is there twice could be read in two ways
	if err != nil {
		return nothing, fmt.Errorf("what the hook was given cannot be read: %w", err)
	}
	var m members
	if err := json.Unmarshal(canonical, &m); err != nil || m == nil {
		return nothing, fmt.Errorf("the hook was given something else than a JSON object")
	}
	named := d.Name
	d = d.spoken(m)
	mode, history := m.maybe("permission_mode"), m.maybe("transcript_path")
	c, err := d.read(d, m)
	c.dialect, c.named, c.mode, c.history = d.Name, named, mode, history
	if err == nil && c.Request.Tool != "" {
		err = c.beside(m)
	}
	if err == nil && c.Request.Tool != "" {
		c.given = c.Request.Input
		err = c.complete(d.Name)
	}
	if r := c.Request; c.questions != nil {
		c.Moot.Session, c.Moot.Agent, c.Moot.Kind = r.Session, d.Name, permissions.KindClarification
	} else {
		c.Moot.Session, c.Moot.Agent, c.Moot.Tool, c.Moot.Input = r.Session, d.Name, r.Tool, r.Input
	}
	return c, err
}

// Within is how long the call may take of what its hook was told. An agent that runs the hook of another's settings may not heed
// how long that one was to wait.
func (c Call) Within(told time.Duration) time.Duration {
	if d, found := Find(c.dialect); found && c.dialect != c.named {
		return min(told, d.Within)
	}
	return told
}

// harmless are the members that do not say what will run, but who asks, when, in which mode, and what an answer could change.
// Each is a text or a number, or has its shape.
var harmless = []string{
	"session_id", "sessionId", "conversation_id", "generation_id", "turn_id", "prompt_id", "tool_use_id", "callID", "agent_id", "agent_type",
	"agent_message", "hook_event_name", "hookEventName", "timestamp", "transcript_path", "cwd", "workspace_roots", "model", "effort",
	"permission_mode", "permission_suggestions", "permissionSuggestions", "user_email", "cursor_version",
}

// shapes are those of harmless members that have parts.
var shapes = map[string]func() any{
	"workspace_roots":        func() any { return &[]string{} },
	"effort":                 func() any { return &struct{ Level string }{} },
	"permission_suggestions": func() any { return &[]suggestion{} },
	"permissionSuggestions":  func() any { return &[]suggestion{} },
}

// tells reports whether a member's value, which is canonical, may say something about what will run.
func tells(name string, value json.RawMessage) bool {
	plain := strings.ContainsRune(`"-0123456789`, rune(value[0])) // a text or a number
	switch {
	case slices.Contains([]string{"null", `""`, "[]", "{}"}, string(value)):
		return false
	case !slices.Contains(harmless, name):
		return true
	case plain || shapes[name] == nil:
		return !plain
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	return d.Decode(shapes[name]()) != nil
}

// besideInput begins the names of those members of a question's input that are not the tool's, but the hook's. No tool's own may.
const besideInput = "hook."

// beside adds to the input what is left of the hook's members, such as the server whose tool it is, unless it is harmless.
func (c *Call) beside(left members) error {
	var all members
	_ = json.Unmarshal(c.Request.Input, &all) // an object
	for name := range all {
		if strings.HasPrefix(name, besideInput) {
			return fmt.Errorf("the input of %s has a member %q, and only what hooks say beside an input is called that", c.Request.Tool, name)
		}
	}
	for name, value := range left {
		if tells(name, value) {
			all[besideInput+name] = value
		}
	}
	c.Request.Input = all.encode()
	if all[besideInput+"mcp_context"] != nil && !strings.HasPrefix(c.Request.Tool, "mcp_") {
		c.Request.Tool = "mcp__" + c.Request.Tool // one of a server is never taken for one of the agent's own
	}
	return nil
}

// complete makes the question whole, and looks whether it can be asked.
func (c *Call) complete(dialect string) error {
	r := &c.Request
	r.Kind, r.Hook, r.Agent, r.Claimed = permissions.KindTool, dialect, dialect, true
	if r.Session == "" {
		return fmt.Errorf("the hook was not told the session")
	}
	if !filepath.IsAbs(r.Cwd) {
		return fmt.Errorf("the hook was not told the working directory, but %q", r.Cwd)
	}
	if slices.Contains(shells[dialect], r.Tool) { // the model's own words for the command, which are shown as such besides
		var m members
		if json.Unmarshal(r.Input, &m) != nil {
			return fmt.Errorf("the input of %s is no object", r.Tool)
		}
		r.Reason = permissions.Brief(cmp.Or(m.maybe("description"), r.Reason), permissions.MaxReason)
	}
	if r.HookStage == permissions.HookDenied {
		why := strings.TrimRight("Its auto mode refused this call: "+c.refused+"\n"+r.Reason, ": \n")
		r.Reason = permissions.Brief(why, permissions.MaxReason)
	}
	if err := fit(r); err != nil {
		return err
	}
	return c.Request.Validate()
}

// shells are each dialect's own tools that run a command and take a description of it. The tools of MCP servers have other
// names.
var shells = map[string][]string{
	"claude-code": {"Bash"}, "codex": {"Bash"}, "copilot": {"bash", "Bash"}, "cursor": {"Shell"}, "gemini": {"run_shell_command"},
	"opencode": {"bash"},
}

// members are those of a JSON object that is canonical.
type members map[string]json.RawMessage

// text takes out a member that must be text, and not empty.
func (m members) text(name string) (string, error) {
	defer delete(m, name)
	var s string
	if json.Unmarshal(m[name], &s) != nil || s == "" {
		return "", fmt.Errorf("the hook was given no %s", name)
	}
	return s, nil
}

// maybe is a member that may be text.
func (m members) maybe(names ...string) string {
	for _, name := range names {
		var s string
		if json.Unmarshal(m[name], &s) == nil && s != "" {
			return s
		}
	}
	return ""
}

// object takes out a member that must be an object, or text that holds one.
func (m members) object(name string) (json.RawMessage, error) {
	defer delete(m, name)
	raw := m[name]
	var text string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		inner, err := permissions.CanonicalJSON(json.RawMessage(text))
		if err != nil {
			return nil, fmt.Errorf("%s cannot be read: %w", name, err)
		}
		raw = inner
	}
	if len(raw) == 0 || raw[0] != '{' {
		return nil, fmt.Errorf("the hook was given no object %s", name)
	}
	return raw, nil
}

// The members by which tools name a file.
var pathMembers = []string{"file_path", "notebook_path", "filePath", "absolute_path", "path"}

// use makes the call of one tool the question. Its input is all that the tool was given.
func (c *Call) use(tool string, input json.RawMessage) {
	r := &c.Request
	r.Tool, r.Input = tool, input
	var m members
	if json.Unmarshal(input, &m) != nil {
		return
	}
	r.AffectedPath = affected(r.Cwd, m.maybe(pathMembers...))
	r.Details = changes(r.AffectedPath, m)
}

// tool is a tool's name and its input.
func (m members) tool() (name string, input json.RawMessage, err error) {
	if name, err = m.text("tool_name"); err == nil {
		input, err = m.object("tool_input")
	}
	return name, input, err
}

// encode is the object again, canonical.
func (m members) encode() json.RawMessage {
	text, _ := json.Marshal(m) // its parts are canonical
	canonical, err := permissions.CanonicalJSON(text)
	if err != nil {
		return text
	}
	return canonical
}

// affected is the file that a call names, as an absolute path; empty when it names none that is one.
func affected(cwd, path string) string {
	switch {
	case path == "" || strings.HasPrefix(path, "~") || strings.Contains(path, "://") || strings.ContainsRune(path, 0):
		return ""
	case !filepath.IsAbs(path):
		path = filepath.Join(cwd, path)
	}
	if path = filepath.Clean(path); utf8.RuneCountInString(path) > permissions.MaxTagPath {
		return ""
	}
	return path
}

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
