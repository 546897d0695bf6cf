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

// Call is a tool call that a hook asks about.
type Call struct {
	// Request is the question about the call, without an ID or a host.
	Request permissions.Request
	// Recall, if Via is set, matches requests that need no answer any more: the hook reports an event and decides nothing.
	Recall permissions.Recall

	// Keyboard says that the agent's own dialog asks too; see [Call.Attended].
	Keyboard bool

	dialect    string
	expected   string // the configured dialect
	event      string
	answer     func(c Call, v Verdict) any // the event's output; nil: it has none
	echo       string                      // the input returned with an allowed call; empty: none
	questions  []permissions.Request       // what the call asks instead of whether it may run
	dialogAsks bool                        // without answers, the agent's own dialog asks them
	mode       string
	history    string                   // the agent's transcript file
	roots      []string                 // the folders that are open in the editor
	given      json.RawMessage          // the tool's original input; nil: not read completely
	leadsNow   func() permissions.Leads // where its names lead now; nil: nobody looks
	quiet      bool                     // an empty reply means not allowed
	refused    string                   // why the agent refused the call
	suggested  []json.RawMessage        // unchanged, in the order of the request's choices
	resolve    func(path string) string // where a name leads; nil: as own.Resolve says
}

// Read parses a hook's input. Its error is text for the agent's log; the Call returned with an error can still be answered.
func (d Dialect) Read(input []byte) (Call, error) {
	nothing := Call{dialect: d.Name}
	input = bytes.TrimPrefix(input, []byte("\ufeff")) // Cursor writes a byte order mark on Windows
	if len(input) > MaxInput {
		return nothing, fmt.Errorf("the hook was given more than %d bytes", MaxInput)
	}
	if len(bytes.TrimSpace(input)) == 0 {
		return nothing, fmt.Errorf("the hook was given nothing")
	}
	canonical, err := permissions.CanonicalJSON(input) // rejects duplicate members, which are ambiguous
	if err != nil {
		return nothing, fmt.Errorf("what the hook was given cannot be read: %w", err)
	}
	var m members
	if err := json.Unmarshal(canonical, &m); err != nil || m == nil {
		return nothing, fmt.Errorf("the hook was given something else than a JSON object")
	}
	named := d.Name
	d = d.detect(m)
	mode, history := m.optionalText("permission_mode"), m.optionalText("transcript_path")
	title, prompt := m.optionalText("session_title"), m.optionalText("last_prompt")
	c, err := d.read(m)
	c.Request.SessionTitle = permissions.Brief(title, permissions.MaxTitle)
	c.Request.LastPrompt = permissions.Brief(prompt, permissions.MaxPrompt)
	c.dialect, c.expected, c.mode, c.history = d.Name, named, mode, history
	if err == nil && c.Request.Tool != "" {
		err = c.addHookMembers(m)
	}
	if err == nil {
		c.question(d.askTool)
	}
	if err == nil && c.Request.Tool != "" {
		c.given = c.Request.Input
		err = c.complete(d.Name)
	}
	if r := c.Request; c.questions != nil {
		c.Recall.Session, c.Recall.Agent, c.Recall.Kind = r.Session, d.Name, permissions.KindClarification
	} else {
		c.Recall.Session, c.Recall.Agent, c.Recall.Tool, c.Recall.Input = r.Session, d.Name, r.Tool, r.Input
	}
	return c, err
}

// Within is how long the call may take, given the configured time. An agent that runs a hook from another agent's settings may
// have a shorter timeout.
func (c Call) Within(told time.Duration) time.Duration {
	if d, found := Find(c.dialect); found && c.dialect != c.expected {
		return min(told, d.Within)
	}
	return told
}

// metadata are the members that do not affect what runs. Each is text or a number unless metadataShapes has its type.
var metadata = []string{
	"session_id", "sessionId", "conversation_id", "generation_id", "turn_id", "prompt_id", "tool_use_id", "callID", "agent_id", "agent_type",
	"agent_message", "hook_event_name", "hookEventName", "timestamp", "transcript_path", "cwd", "workspace_roots", "model", "effort",
	"permission_mode", "permission_suggestions", "permissionSuggestions", "user_email", "cursor_version", "session_title", "last_prompt",
}

// metadataShapes are the types of structured metadata.
var metadataShapes = map[string]func() any{
	"workspace_roots":        func() any { return &[]string{} },
	"effort":                 func() any { return &struct{ Level string }{} },
	"permission_suggestions": func() any { return &[]suggestion{} },
	"permissionSuggestions":  func() any { return &[]suggestion{} },
}

// affectsCall reports whether a member's canonical value may affect what runs.
func affectsCall(name string, value json.RawMessage) bool {
	plain := strings.ContainsRune(`"-0123456789`, rune(value[0])) // a text or a number
	switch {
	case slices.Contains([]string{"null", `""`, "[]", "{}"}, string(value)):
		return false
	case !slices.Contains(metadata, name):
		return true
	case plain || metadataShapes[name] == nil:
		return !plain
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	return d.Decode(metadataShapes[name]()) != nil
}

// hookPrefix marks members of a question's input that came from the hook. A tool's own members must not have it.
const hookPrefix = "hook."

// addHookMembers adds the hook's remaining members to the input, such as the tool's server, except metadata.
func (c *Call) addHookMembers(left members) error {
	var all members
	_ = json.Unmarshal(c.Request.Input, &all) // an object
	for name := range all {
		if strings.HasPrefix(name, hookPrefix) {
			return fmt.Errorf("the input of %s has a member %q, and only what hooks say beside an input is called that", c.Request.Tool, name)
		}
	}
	for name, value := range left {
		if affectsCall(name, value) {
			all[hookPrefix+name] = value
		}
	}
	c.Request.Input = all.encode()
	if all[hookPrefix+"mcp_context"] != nil && !strings.HasPrefix(c.Request.Tool, "mcp_") {
		c.Request.Tool = "mcp__" + c.Request.Tool // never mistaken for one of the agent's own tools
	}
	return nil
}

// ForgetServer leaves out of the question how the server of the called tool was started, if by that command: it is daycared's own.
func (c *Call) ForgetServer(command []string) {
	const context = hookPrefix + "mcp_context"
	var all members
	var server struct {
		Command, URL, TCP string
		Args              []string
	}
	if json.Unmarshal(c.Request.Input, &all) != nil || json.Unmarshal(all[context], &server) != nil {
		return
	}
	if server.URL+server.TCP == "" && slices.Equal(append([]string{server.Command}, server.Args...), command) {
		delete(all, context)
		c.Request.Input = all.encode()
	}
}

// complete fills in and validates the question.
func (c *Call) complete(dialect string) error {
	r := &c.Request
	r.Kind, r.Hook, r.Agent, r.Claimed = permissions.KindTool, dialect, dialect, true
	if r.Session == "" {
		return fmt.Errorf("the hook was not told the session")
	}
	if !filepath.IsAbs(r.Cwd) {
		return fmt.Errorf("the hook was not told the working directory, but %q", r.Cwd)
	}
	if slices.Contains(shells[dialect], r.Tool) { // the model's description of the command, shown as the reason
		var m members
		if json.Unmarshal(r.Input, &m) != nil {
			return fmt.Errorf("the input of %s is no object", r.Tool)
		}
		r.Reason = permissions.Brief(cmp.Or(m.optionalText("description"), r.Reason), permissions.MaxReason)
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

// shells are each dialect's built-in tools that run a command and take a description of it.
var shells = map[string][]string{
	"claude-code": {"Bash"}, "codex": {"Bash"}, "copilot": {"bash", "Bash"}, "cursor": {"Shell"}, "gemini": {"run_shell_command"},
	"opencode": {"bash"},
}

// members are the members of a canonical JSON object.
type members map[string]json.RawMessage

// text removes and returns a member that must be non-empty text.
func (m members) text(name string) (string, error) {
	defer delete(m, name)
	var s string
	if json.Unmarshal(m[name], &s) != nil || s == "" {
		return "", fmt.Errorf("the hook was given no %s", name)
	}
	return s, nil
}

// optionalText returns the first of the named members that is non-empty text.
func (m members) optionalText(names ...string) string {
	for _, name := range names {
		var s string
		if json.Unmarshal(m[name], &s) == nil && s != "" {
			return s
		}
	}
	return ""
}

// object removes and returns a member that must be an object, or text that contains one.
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

// pathMembers are the members by which tools name a file.
var pathMembers = []string{"file_path", "notebook_path", "filePath", "absolute_path", "path"}

// use sets the question's tool and its complete input.
func (c *Call) use(tool string, input json.RawMessage) {
	r := &c.Request
	r.Tool, r.Input = tool, input
	var m members
	if json.Unmarshal(input, &m) != nil {
		return
	}
	r.AffectedPath = affected(r.Cwd, m.optionalText(pathMembers...))
}

// tool returns a tool's name and input.
func (m members) tool() (name string, input json.RawMessage, err error) {
	if name, err = m.text("tool_name"); err == nil {
		input, err = m.object("tool_input")
	}
	return name, input, err
}

// encode returns the object as canonical JSON.
func (m members) encode() json.RawMessage {
	text, _ := json.Marshal(m) // cannot fail: the values are JSON
	canonical, err := permissions.CanonicalJSON(text)
	if err != nil {
		return text
	}
	return canonical
}

// affected returns the absolute path of the file that a call names; empty if there is none.
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

// projectFolderVars are the environment variables that give hooks the folder in which the session began, by dialect.
var projectFolderVars = map[string]string{"claude-code": "CLAUDE_PROJECT_DIR", "gemini": "GEMINI_PROJECT_DIR"}

// Harmless reports whether the call was read completely and needs no approval: reading and editing in the agent's folder (except
// files that are executed later), building and testing. It is false for a hook that runs because the agent's own rules ask.
func (c Call) Harmless(env func(string) string) bool {
	if c.given == nil || c.questions != nil || strings.EqualFold(c.event, "permissionRequest") {
		return false
	}
	read, links := true, own.Follow()
	resolve := func(name string) string {
		to, known := links.Leads(name)
		read = read && known
		return to
	}
	folder, root := resolve(c.Request.Cwd), resolve(c.project(env))
	w := acts.Workspace{Root: root, Resolve: resolve}
	if !w.Reads(folder) || !isProjectFolder(root, env) {
		return false
	}
	return w.HarmlessCall(c.dialect, c.Request.Tool, c.given, folder) && read
}

// project is the folder in which the session began, as the agent names it.
func (c Call) project(env func(string) string) string {
	if told := env(projectFolderVars[c.dialect]); filepath.IsAbs(told) {
		return filepath.Clean(told)
	}
	return c.Request.Cwd
}

// isProjectFolder reports whether a folder can be a project: it contains neither the home folder nor a program on PATH, and CDPATH
// does not redirect cd.
func isProjectFolder(root string, env func(string) string) bool {
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
