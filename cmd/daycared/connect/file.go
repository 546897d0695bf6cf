package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// File is one settings file of an agent, and our entries in it.
type File struct {
	Path    string
	Or      string  // the path used instead if it exists and Path does not; empty: none
	entries []entry // in JSON, with or without comments
	block   string  // in TOML
	whole   string  // the whole file, recognized as ours by its beginning
	strict  string  // an agent that does not read a file with any of refuses; empty: none
	refuses []string
}

// What an agent may refuse in JSON.
const (
	comments = "a comment"
	commas   = "a comma too many"
	marks    = "a byte order mark"
)

// mark is a byte order mark, which may start a file.
const mark = "\ufeff"

// entry is one entry of ours in a JSON file.
type entry struct {
	path    []string
	value   any
	dialect string // of a hook, an element of the list at path; empty: the member at path
	usual   bool   // set only if nothing is there, and never removed
}

func member(value any, path ...string) entry { return entry{path: path, value: value} }
func usual(value any, path ...string) entry  { return entry{path: path, value: value, usual: true} }
func element(value any, dialect string, path ...string) entry {
	return entry{path: path, value: value, dialect: dialect}
}

// Install returns text with our entries added or updated. It returns text unchanged if they are up to date.
func (f File) Install(text string) (string, error) {
	if f.whole != "" {
		if clean, err := f.Remove(text); err != nil || strings.TrimSpace(clean) != "" {
			return "", errors.New("it is not daycared's; move it away first")
		}
		return f.whole, nil
	}
	if f.block != "" {
		text, marked := strings.CutPrefix(text, mark)
		next, err := installBlock(text, f.block)
		return withMark(next, marked && err == nil), err
	}
	if err := f.ignored(text); err != nil {
		return "", err
	}
	return f.edit(text, (*editor).put)
}

// Remove returns text without our entries. It returns text unchanged if there are none.
func (f File) Remove(text string) (string, error) {
	if f.whole != "" {
		if first, _, _ := strings.Cut(f.whole, "\n"); strings.HasPrefix(text, first+"\n") {
			text = ""
		}
		return text, nil
	}
	if f.block != "" {
		text, marked := strings.CutPrefix(text, mark)
		next, err := removeBlock(text)
		return withMark(next, marked && err == nil), err
	}
	return f.edit(text, (*editor).take)
}

// Missing lists our hooks that text lacks.
func (f File) Missing(text string) (names []string) {
	for _, e := range f.entries {
		clean, err := File{entries: []entry{e}}.Remove(text)
		if e.dialect != "" && e.value != nil && err == nil && clean == text {
			names = append(names, e.path[len(e.path)-1])
		}
	}
	return names
}

// edit applies change for each entry, keeping a byte order mark.
func (f File) edit(text string, change func(*editor, entry) error) (string, error) {
	text, marked := strings.CutPrefix(text, mark)
	root, err := parse(text)
	if err != nil {
		return "", err
	}
	e := &editor{root: &root, indent: "  "} // or the indentation of the first member
	if o, ok := root.Value.(*hujson.Object); ok && len(o.Members) > 0 {
		before := string(o.Members[0].Name.BeforeExtra)
		if at := strings.LastIndexByte(before, '\n'); at >= 0 && len(before) > at+1 && strings.TrimSpace(before[at:]) == "" {
			e.indent = before[at+1:]
		}
	}
	for _, entry := range f.entries {
		if err := change(e, entry); err != nil {
			return "", err
		}
	}
	return withMark(e.text(text), marked), nil
}

// withMark puts a byte order mark before text, if it had one.
func withMark(text string, marked bool) string {
	if marked {
		return mark + text
	}
	return text
}

// ignored returns why the agent does not read a file with this text, nil if it does.
func (f File) ignored(text string) error {
	refused := func(at int, what string) error {
		return fmt.Errorf("%s reads none of it, since line %d has %s; take that out first", f.strict, 1+strings.Count(text[:at], "\n"), what)
	}
	text, marked := strings.CutPrefix(text, mark)
	if marked && slices.Contains(f.refuses, marks) {
		return refused(0, marks)
	}
	plain, err := hujson.Parse([]byte(text))
	if err != nil || plain.IsStandard() {
		return nil //nolint:nilerr // what is no JSON at all is said by parse
	}
	plain.Standardize() // replaces comments and trailing commas by spaces
	standard := plain.Pack()
	for at := 0; at < min(len(text), len(standard)); at++ {
		switch comment := text[at] == '/'; {
		case text[at] == standard[at]:
		case !comment && slices.Contains(f.refuses, commas):
			return refused(at, commas)
		case comment && slices.Contains(f.refuses, comments):
			return refused(at, comments)
		case comment:
			end := map[bool]string{false: "\n", true: "*/"}[text[at+1] == '*']
			length := strings.Index(text[at+2:], end)
			if length < 0 {
				return nil
			}
			at += 1 + length + len(end)
		}
	}
	return nil
}

// Pinned reports whether every command of ours in text names its daemon, so that the environment cannot.
func (f File) Pinned(text string) bool {
	if f.block != "" {
		_, block, _ := strings.Cut(text, blockBegin)
		block, _, _ = strings.Cut(block, blockEnd)
		return strings.Count(block, "--socket")+strings.Count(block, "--url") >= 6 // of its server and its hooks
	}
	if f.whole != "" {
		return strings.Contains(text, `"--socket"`) || strings.Contains(text, `"--url"`)
	}
	for _, entry := range f.entries {
		at, err := jsonAt(text, entry.path)
		if err != nil {
			return false
		}
		ours, list := []any{at}, entry.dialect != ""
		if list {
			ours, _ = at.([]any)
		}
		for _, one := range ours {
			words := fmt.Sprint(one)
			if one == nil || entry.usual || list && !strings.Contains(words, hookOf(entry.dialect)) {
				continue
			}
			if !strings.Contains(words, "--socket ") && !strings.Contains(words, "--url ") {
				return false
			}
		}
	}
	return true
}

// hookOf is a substring that identifies the command line of our hook.
func hookOf(dialect string) string { return " hook " + dialect + " --within " }

// decides reports whether a command line is our deciding hook; one with --notice decides nothing.
func decides(command, dialect string) bool {
	return strings.Contains(command, hookOf(dialect)) && !strings.Contains(command, " --notice")
}

// Empty reports whether text contains only what Remove leaves of a file that Install created.
func (f File) Empty(text string) bool {
	fresh, err := f.Install("")
	if err != nil {
		return false
	}
	left, err := f.Remove(fresh)
	return err == nil && same(left, text)
}

func same(a, b string) bool {
	if strings.TrimSpace(a) == strings.TrimSpace(b) {
		return true
	}
	x, errX := standard([]byte(a))
	y, errY := standard([]byte(b))
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// standard converts JSON with comments to canonical JSON.
func standard(text []byte) ([]byte, error) {
	plain, err := hujson.Standardize(bytes.TrimPrefix(text, []byte(mark)))
	if err != nil {
		return nil, err
	}
	return permissions.CanonicalJSON(plain)
}

var errShape = errors.New("is something else there than expected")

// parse parses a settings file; empty text is an empty object.
func parse(text string) (hujson.Value, error) {
	if strings.TrimSpace(text) == "" {
		text = "{}\n"
	}
	root, err := hujson.Parse([]byte(text))
	if err != nil {
		return root, fmt.Errorf("it is not JSON: %s", strings.TrimPrefix(err.Error(), "hujson: "))
	}
	if _, ok := root.Value.(*hujson.Object); !ok {
		return root, fmt.Errorf("it holds no JSON object")
	}
	if _, err := standard([]byte(text)); err != nil { // rejects duplicate members, of which the wrong one could be changed
		return root, err
	}
	return root, nil
}

// mine reports whether a list element is our hook.
func mine(v *hujson.Value, dialect string) bool {
	packed, err := standard(v.Pack())
	_, commands := commandsOf(packed)
	return err == nil && slices.ContainsFunc(commands, func(c string) bool { return strings.Contains(c, hookOf(dialect)) })
}

// commandsOf returns what a hook matches and the command lines that it runs; none if it is no hook.
func commandsOf(packed []byte) (matcher string, commands []string) {
	var hook struct {
		Matcher, Command, Bash string
		Hooks                  []struct{ Command string }
	}
	if json.Unmarshal(packed, &hook) != nil {
		return "", nil
	}
	commands = []string{hook.Command, hook.Bash}
	for _, h := range hook.Hooks {
		commands = append(commands, h.Command)
	}
	return hook.Matcher, commands
}

// editor changes a JSON document in place and preserves the formatting of everything else.
type editor struct {
	root    *hujson.Value
	indent  string
	changed bool
}

// text is the edited document, or was if nothing changed.
func (e *editor) text(was string) string {
	if !e.changed {
		return was
	}
	return string(e.root.Pack())
}

func (e *editor) margin(depth int) string { return "\n" + strings.Repeat(e.indent, depth) }

// value formats v for a nesting depth.
func (e *editor) value(v any, depth int) (hujson.Value, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent(strings.Repeat(e.indent, depth), e.indent)
	if err := enc.Encode(v); err != nil {
		return hujson.Value{}, err
	}
	parsed, err := hujson.Parse(bytes.TrimSpace(out.Bytes()))
	if err != nil {
		return hujson.Value{}, err
	}
	parsed.BeforeExtra = hujson.Extra(" ")
	return parsed, nil
}

// put adds or updates an entry, or removes one without a value.
func (e *editor) put(n entry) error {
	if n.value == nil {
		return e.take(n)
	}
	path := n.path
	if n.dialect == "" {
		path = n.path[:len(n.path)-1]
	}
	at := e.root
	for depth, name := range path {
		object, ok := at.Value.(*hujson.Object)
		if !ok {
			return fmt.Errorf("%s: %w", strings.Join(path[:depth], "."), errShape)
		}
		found := memberOf(object, name)
		if found < 0 {
			var empty any = map[string]any{}
			if n.dialect != "" && depth == len(path)-1 {
				empty = []any{}
			}
			if err := e.insert(object, name, empty, depth+1); err != nil {
				return err
			}
			found = len(object.Members) - 1
		}
		at = &object.Members[found].Value
	}
	if n.dialect != "" {
		return e.putElement(at, n)
	}
	return e.putMember(at, n)
}

func (e *editor) putMember(at *hujson.Value, n entry) error {
	object, ok := at.Value.(*hujson.Object)
	if !ok {
		return fmt.Errorf("%s: %w", strings.Join(n.path[:len(n.path)-1], "."), errShape)
	}
	name := n.path[len(n.path)-1]
	found := memberOf(object, name)
	switch {
	case found < 0:
		return e.insert(object, name, n.value, len(n.path))
	case n.usual:
		return nil
	}
	return e.replace(&object.Members[found].Value, n.value, len(n.path))
}

func (e *editor) putElement(at *hujson.Value, n entry) error {
	list, ok := at.Value.(*hujson.Array)
	if !ok {
		return fmt.Errorf("%s: %w", strings.Join(n.path, "."), errShape)
	}
	depth := len(n.path) + 1
	for i := range list.Elements {
		if mine(&list.Elements[i], n.dialect) {
			return e.replace(&list.Elements[i], n.value, depth)
		}
	}
	v, err := e.value(n.value, depth)
	if err != nil {
		return err
	}
	e.changed = true
	v.BeforeExtra = e.after(&list.AfterExtra, depth)
	if last := len(list.Elements) - 1; last >= 0 && list.Elements[last].AfterExtra != nil {
		v.AfterExtra = hujson.Extra{}
	}
	list.Elements = append(list.Elements, v)
	return nil
}

// insert appends a member to an object. A comment after the last member stays before it.
func (e *editor) insert(object *hujson.Object, name string, value any, depth int) error {
	v, err := e.value(value, depth)
	if err != nil {
		return err
	}
	e.changed = true
	m := hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(name)}, Value: v}
	m.Name.BeforeExtra = e.after(&object.AfterExtra, depth)
	if last := len(object.Members) - 1; last >= 0 && object.Members[last].Value.AfterExtra != nil {
		m.Value.AfterExtra = hujson.Extra{}
	}
	object.Members = append(object.Members, m)
	return nil
}

// after returns the whitespace and comments for an appended element: those before the closing bracket, which moves to its own line.
func (e *editor) after(closing *hujson.Extra, depth int) hujson.Extra {
	before := strings.TrimRight(string(*closing), " \t\r\n") + e.margin(depth)
	*closing = hujson.Extra(e.margin(depth - 1))
	return hujson.Extra(before)
}

// replace sets a value, unless it is equal already.
func (e *editor) replace(at *hujson.Value, value any, depth int) error {
	v, err := e.value(value, depth)
	if err != nil {
		return err
	}
	if same(string(at.Pack()), string(v.Pack())) {
		return nil
	}
	at.Value, e.changed = v.Value, true
	return nil
}

// take removes an entry, and the containers that are empty then.
func (e *editor) take(n entry) error {
	if n.usual {
		return nil
	}
	parents := []*hujson.Object{}
	at := e.root
	for _, name := range n.path[:len(n.path)-1] {
		object, ok := at.Value.(*hujson.Object)
		if !ok {
			return nil
		}
		found := memberOf(object, name)
		if found < 0 {
			return nil
		}
		parents = append(parents, object)
		at = &object.Members[found].Value
	}
	object, ok := at.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	name := n.path[len(n.path)-1]
	found := memberOf(object, name)
	if found < 0 || (n.dialect != "" && !e.takeElements(&object.Members[found].Value, n.dialect)) {
		return nil
	}
	e.drop(object, found)
	for i, parent := range slices.Backward(parents) {
		child := memberOf(parent, n.path[i])
		if inner, ok := parent.Members[child].Value.Value.(*hujson.Object); !ok || len(inner.Members) > 0 {
			break
		}
		e.drop(parent, child)
	}
	return nil
}

// takeElements removes our hooks from a list, and reports whether the list is empty.
func (e *editor) takeElements(at *hujson.Value, dialect string) (empty bool) {
	list, ok := at.Value.(*hujson.Array)
	if !ok {
		return false
	}
	before, comma := len(list.Elements), false
	if before > 0 {
		comma = list.Elements[before-1].AfterExtra != nil
	}
	list.Elements = slices.DeleteFunc(list.Elements, func(v hujson.Value) bool { return mine(&v, dialect) })
	if len(list.Elements) == before {
		return false
	}
	e.changed = true
	if last := len(list.Elements) - 1; last >= 0 {
		list.Elements[last].AfterExtra = commaAfter(list.Elements[last].AfterExtra, comma)
	}
	return len(list.Elements) == 0
}

// drop removes a member. A comment before it stays.
func (e *editor) drop(object *hujson.Object, i int) {
	e.changed = true
	last := len(object.Members) - 1
	comma := object.Members[last].Value.AfterExtra != nil
	kept := strings.TrimRight(string(object.Members[i].Name.BeforeExtra), " \t\r\n")
	object.Members = slices.Delete(object.Members, i, i+1)
	next := &object.AfterExtra
	if i < len(object.Members) {
		next = &object.Members[i].Name.BeforeExtra
	}
	*next = hujson.Extra(kept + string(*next))
	if last = len(object.Members) - 1; last >= 0 {
		object.Members[last].Value.AfterExtra = commaAfter(object.Members[last].Value.AfterExtra, comma)
	} else if strings.TrimSpace(string(object.AfterExtra)) == "" {
		object.AfterExtra = nil
	}
}

// commaAfter sets or removes the trailing comma of the last element: there is one if extra is not nil.
func commaAfter(extra hujson.Extra, comma bool) hujson.Extra {
	switch {
	case !comma && strings.TrimSpace(string(extra)) == "":
		return nil
	case comma && extra == nil:
		return hujson.Extra{}
	}
	return extra
}

// memberOf is the index of a member; -1 if there is none.
func memberOf(object *hujson.Object, name string) int {
	return slices.IndexFunc(object.Members, func(m hujson.ObjectMember) bool {
		l, ok := m.Name.Value.(hujson.Literal)
		return ok && l.String() == name
	})
}

// The first and last line of our block in a TOML file.
const (
	blockBegin = "# daycared: begin; daycared connect writes this, and takes it out with --remove"
	blockEnd   = "# daycared: end"
)

var errBlock = errors.New("our part of it begins and does not end; take it out by hand")

// codexBlock is our part of Codex's configuration. TOML tables may be anywhere, so ours come last.
func (p Target) codexBlock() string {
	args := wire.Map(append(slices.Clone(p.Command[1:]), "mcp"), strconv.Quote)
	lines := []string{
		blockBegin,
		"[mcp_servers.daycared]",
		"command = " + strconv.Quote(p.Command[0]),
		"args = [" + strings.Join(args, ", ") + "]",
		fmt.Sprintf("tool_timeout_sec = %d", int(waits.Seconds())),
	}
	for _, hook := range []struct {
		event   string
		matcher bool
		seconds int
		command string
	}{
		{"PreToolUse", true, int(waits.Seconds()), p.hook("codex")}, {"PermissionRequest", true, int(waits.Seconds()), p.hook("codex")},
		{"Interrupt", false, tells, p.hook("codex")}, {"SessionEnd", false, tells, p.hook("codex")}, {"Stop", false, tells, p.notice("codex")},
	} {
		lines = append(lines, "", "[[hooks."+hook.event+"]]")
		if hook.matcher {
			lines = append(lines, `matcher = ".*"`, "")
		}
		lines = append(lines, "[[hooks."+hook.event+".hooks]]", `type = "command"`, "command = "+strconv.Quote(hook.command),
			fmt.Sprintf("timeout = %d", hook.seconds))
	}
	return strings.Join(append(lines, blockEnd, ""), "\n")
}

// shut is what we add to Codex's features, on a line of its own: a command has no terminal, so nothing can be typed into one that runs.
// Codex calls no hook for that.
const shut = "unified_exec_tty = false # daycared: no hook is called for what is typed into a command that runs"

// installBlock appends the block to a file, and adds [shut] unless the file sets that. It fails if the result would not be valid TOML.
func installBlock(text, block string) (string, error) {
	set := func(text string) bool { return valueAt(".toml", text, terminalsOff) != nil }
	if strings.Contains(text, block) && set(text) {
		return text, nil
	}
	rest, err := removeBlock(text)
	if err != nil {
		return "", err
	}
	if err := readsAsTOML(rest); err != nil {
		return "", err
	}
	for _, with := range []string{features.ReplaceAllString(rest, "$0\n"+shut), "features." + shut + "\n" + rest} {
		if !set(rest) && set(with) {
			rest = with
		}
	}
	if rest != "" {
		rest = strings.TrimRight(rest, "\n") + "\n\n"
	}
	if err := readsAsTOML(rest + block); err != nil {
		return "", fmt.Errorf("it has something of the same name already, beside which ours cannot stand: %w", err)
	}
	return rest + block, nil
}

var (
	// terminalsOff is the key that [shut] sets.
	terminalsOff = []string{"features", "unified_exec_tty"}
	// features matches the line of the table that has it.
	features = regexp.MustCompile(`(?m)^[ \t]*\[[ \t]*features[ \t]*\][ \t\r]*(#.*)?$`)
)

func readsAsTOML(text string) error {
	var tables map[string]any
	return toml.Unmarshal([]byte(text), &tables)
}

// removeBlock removes the block and the empty line before it, and the lines of [shut].
func removeBlock(text string) (string, error) {
	text = strings.NewReplacer("features."+shut+"\n", "", shut+"\n", "").Replace(text)
	before, after, found := strings.Cut(text, blockBegin)
	if !found {
		return text, nil
	}
	_, after, found = strings.Cut(after, blockEnd)
	if !found {
		return "", errBlock
	}
	before, after = strings.TrimRight(before, "\n"), strings.TrimLeft(after, "\n")
	switch {
	case before == "":
		return after, nil
	case after == "":
		return before + "\n", nil
	}
	return before + "\n\n" + after, nil
}
