// Package tools has the tools of our own agents: files, commands, the network. A tool decides nothing: its caller has
// asked. The kernel limits it to its [Workspace], in a separate process (agents/sandbox).
package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/agents/schema"
	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// Workspace is what a tool may access during one call.
type Workspace struct {
	Workspace    string            // absolute, without symbolic links; base of relative paths. Set by In; empty: none
	Tags         []permissions.Tag // tags held for this call; the workspace is readable, and writable with @workspace
	AllowPrivate []netip.Prefix    // private addresses that fetch_url may reach
	Search       string            // URL of the service for web_search
	Unseen       bool              // no plan looks into the file that it changes
	held         *folder           // the workspace
}

// Plan is what a call would do, as people are shown it. Planning changes nothing.
type Plan struct {
	Needs        []permissions.Tag  // required tags; people are asked for the missing ones
	AffectedPath string             // the file or folder that it changes or reads; empty: none
	Details      string             // shown to people besides the input; may be empty
	Was          []permissions.Rows // of the file that it changes, shown to people around the change
	// Basis identifies what the plan was made from, such as a file's content. Run refuses if that has changed: what was
	// shown is what runs. It is stored with the call.
	Basis string
	// Links are the symbolic links of the workspace on the way to what is changed, and where each led. Run refuses if they are others.
	Links string
}

// Outcome is the result of a call.
type Outcome struct {
	Text      string // for the model, bounded
	Error     bool
	Exit      *int              // a command's exit code
	Artifacts []agents.Artifact // the full output if Text is cut; Step and Call are not set here
	Pause     string            // if not empty, the person has to see it with this text before the model does
	Left      string            // how a process of it was left, see [Left]
}

// ErrLeft is [sandbox.ErrLeft].
var ErrLeft = sandbox.ErrLeft

// Left is [sandbox.Left].
func Left(err error) string { return sandbox.Left(err) }

// Tool is one tool. Implementations are stateless and safe for concurrent use.
type Tool interface {
	// Spec describes the tool for models.
	Spec() models.Tool
	// Plan returns what the call would do, without doing it. It may read files within the place's tags. The error is
	// for the model: what is wrong with the input and what would be right.
	Plan(ctx context.Context, p Workspace, input json.RawMessage) (Plan, error)
	// Run does it, within the place's tags. A failure is an Outcome with Error set. Soon after ctx all its processes end.
	Run(ctx context.Context, p Workspace, input json.RawMessage, plan Plan) Outcome
}

// All are the tools for files, commands and pages, sandboxed by s.
func All(s *sandbox.Sandbox) []Tool {
	return []Tool{
		typed[readInput]{readFile{s}}, typed[listInput]{listFiles{s}}, typed[searchInput]{searchFiles{s}}, typed[writeInput]{writeFile{s}},
		typed[editInput]{editFile{s}}, typed[commandInput]{runCommand{s}}, typed[fetchInput]{fetchURL{}}, typed[webSearchInput]{webSearch{}},
	}
}

// typed makes a [Tool] of what does its work with a decoded input.
type typed[In any] struct{ worker[In] }

type worker[In any] interface {
	spec() models.Tool // without the schema
	plan(ctx context.Context, p Workspace, in In) (Plan, error)
	run(ctx context.Context, p Workspace, in In, plan Plan) (Outcome, error)
}

func (t typed[In]) Spec() models.Tool {
	spec := t.spec()
	spec.Schema = schema.Of[In]()
	return spec
}

func (t typed[In]) Plan(ctx context.Context, p Workspace, input json.RawMessage) (plan Plan, err error) {
	in, err := t.decode(input)
	if err == nil {
		plan, err = t.plan(ctx, p, in)
	}
	return plan, err
}

func (t typed[In]) Run(ctx context.Context, p Workspace, input json.RawMessage, plan Plan) (o Outcome) {
	in, err := t.decode(input)
	if err == nil {
		o, err = t.run(ctx, p, in, plan)
	}
	if err != nil {
		return failed(err)
	}
	return o
}

// decode is [schema.Decode] with the input's own check, if it has one. The error is for the model.
func (t typed[In]) decode(input []byte) (in In, err error) {
	if in, err = schema.Decode[In](t.spec().Name, input); err != nil {
		return in, err
	}
	if c, checks := any(in).(interface{ check() (In, error) }); checks {
		return c.check()
	}
	return in, nil
}

// The names of the sandboxed operations.
const (
	opContent = "tools.content"
	opLines   = "tools.lines"
	opList    = "tools.list"
	opSearch  = "tools.search"
	opPut     = "tools.put"
)

// Operations are the tools' sandboxed operations; pass them to [sandbox.Main].
func Operations() map[string]sandbox.Operation {
	return map[string]sandbox.Operation{
		opContent: operation(content), opLines: operation(lines), opList: operation(list), opSearch: operation(search),
		opPut: operation(put),
	}
}

func operation[In, Out any](do func(In) (Out, error)) sandbox.Operation {
	return func(input json.RawMessage) (any, error) {
		var in In
		if err := json.Unmarshal(input, &in); err != nil {
			return nil, fmt.Errorf("read what is to be done: %w", err)
		}
		out, err := do(in)
		return out, wire.Plain(err)
	}
}

// How many bytes of a call's output are kept, and how many the model gets; half from the start, half from the end.
const (
	keptBytes = 1 << 20
	toldBytes = 16 << 10
)

// headTail keeps the start and the end of what is written to it. The zero value is ready.
type headTail struct {
	head, tail []byte
	total      int
}

// Write never fails.
func (e *headTail) Write(p []byte) (int, error) {
	const half = keptBytes / 2
	n := len(p)
	e.total += n
	if room := half - len(e.head); room > 0 {
		take := min(room, len(p))
		e.head, p = append(e.head, p[:take]...), p[take:]
	}
	e.tail = append(e.tail, p...)
	if len(e.tail) > 2*half { // occasionally, so that each byte is moved a few times only
		e.tail = append([]byte(nil), e.tail[len(e.tail)-half:]...)
	}
	return n, nil
}

// kept returns both parts; missing is the number of bytes between them.
func (e *headTail) kept() (head, tail []byte, missing int) {
	tail = e.tail
	if len(tail) > keptBytes/2 {
		tail = tail[len(tail)-keptBytes/2:]
	}
	return e.head, tail, e.total - len(e.head) - len(tail)
}

// cut is the text in at most so many bytes, with a note of what is left out.
func (e *headTail) cut(most int) string {
	head, tail, missing := e.kept()
	if missing == 0 {
		head, tail = append(bytes.Clone(head), tail...), nil
	}
	if over := len(head) + len(tail) - most; over > 0 {
		if missing == 0 {
			head, tail = head[:most/2], head[len(head)-most/2:]
		} else {
			head, tail = head[:min(len(head), most/2)], tail[max(0, len(tail)-most/2):]
		}
		missing = e.total - len(head) - len(tail)
	}
	if missing == 0 {
		return readable(head)
	}
	return fmt.Sprintf("%s\n… %d bytes are left out here …\n%s", readable(head), missing, readable(tail))
}

func (e *headTail) modelText(name string) (text string) {
	if e.total == 0 {
		return ""
	}
	if _, _, missing := e.kept(); missing > 0 {
		text = fmt.Sprintf("\nof %s, %d of %d bytes are not kept anywhere", name, missing, e.total)
	}
	return text + "\n" + name + ":\n" + e.cut(toldBytes)
}

func readable(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// artifact is the full text as far as it was kept.
func (e *headTail) artifact(of agents.ArtifactType) agents.Artifact {
	_, _, missing := e.kept()
	content, _ := json.Marshal(map[string]any{ // strings and numbers are encodable
		"text": e.cut(keptBytes), "bytes": e.total, "missing": missing,
	})
	return agents.Artifact{Type: of, Content: content}
}

// tags are the tags of a place with its workspace's: a folder to read, and with [permissions.Workspace] to write.
func (p Workspace) tags() []permissions.Tag {
	tags := slices.Clone(p.Tags)
	if reading, writing, ok := p.workspace(); ok {
		tags = append(tags, reading)
		if slices.Contains(p.Tags, permissions.Workspace) {
			tags = append(tags, writing)
		}
	}
	return tags
}

// missing are the tags to ask people for, of those that a call needs; [permissions.Workspace] stands for writing in it.
func (p Workspace) missing(wanted ...permissions.Tag) (tags []permissions.Tag) {
	_, writing, ok := p.workspace()
	for _, t := range permissions.Missing(wanted, p.tags()) {
		if ok && writing.Covers(t) {
			t = permissions.Workspace
		}
		if !slices.Contains(tags, t) {
			tags = append(tags, t)
		}
	}
	return tags
}

// tag converts an input's path to a tag; verb is @read or @write. An unusual path is refused, not repaired.
func (p Workspace) tag(verb, name string) (permissions.Tag, error) {
	whole := name
	if !path.IsAbs(name) {
		if p.Workspace == "" {
			return permissions.Tag{}, fmt.Errorf("%q is a relative path, and there is no workspace; write it absolutely", name)
		}
		if name == ".." || strings.HasPrefix(name, "../") {
			return permissions.Tag{}, fmt.Errorf("%q leads out of the workspace; write it absolutely", name)
		}
		if c := path.Clean(name); c != name {
			return permissions.Tag{}, fmt.Errorf("%q is not clean; write it as %q", name, c)
		}
		whole = path.Join(p.Workspace, name)
	}
	whole, in := p.inWorkspace(whole)
	if in {
		if _, err := p.Held(); err != nil {
			return permissions.Tag{}, err
		}
	}
	t, err := permissions.ParseTag(verb + ":" + whole)
	if err != nil {
		return permissions.Tag{}, err
	}
	if t.Path() != whole { // ParseTag trims trailing spaces
		return permissions.Tag{}, fmt.Errorf("%q ends in space, which is not taken", name)
	}
	return t, nil
}

// spot is a file or folder to open: a name below a root folder, which symbolic links cannot leave. Without a Root the
// name is absolute, and only the sandbox restricts it.
type spot struct {
	Root, Name string
	Held       sandbox.Folder // what Root has to be or to lie in; zero: anything
}

// spot finds the widest held folder that contains a held tag's path, and the policy for it.
func (p Workspace) spot(t permissions.Tag) (spot, sandbox.Policy, error) {
	root := ""
	for _, h := range p.tags() {
		r := h.Path()
		if !h.Covers(t) || root != "" && len(r) >= len(root) {
			continue
		}
		switch is, err := isFolder(r); {
		case err != nil:
			return spot{}, sandbox.Policy{}, err
		case is:
			root = r
		}
	}
	write := strings.HasPrefix(t.String(), "@write:")
	if root == "" {
		if !write {
			return spot{Name: t.Path()}, sandbox.Policy{Read: []string{t.Path()}}, nil
		}
		// Only one file is granted. Replacing it renames a file in its folder.
		root = path.Dir(t.Path())
		switch is, err := isFolder(root); {
		case err != nil:
			return spot{}, sandbox.Policy{}, err
		case !is:
			return spot{}, sandbox.Policy{}, fmt.Errorf("the folder %s does not exist", root)
		}
	}
	name, err := filepath.Rel(root, t.Path())
	if err != nil {
		return spot{}, sandbox.Policy{}, err
	}
	w := sandbox.Policy{Read: []string{root}}
	if write {
		w = sandbox.Policy{Write: []string{root}}
	}
	if p.Workspace != "" && permissions.Within(p.Workspace, root) {
		if w.Held, err = p.Held(); err != nil {
			return spot{}, w, err
		}
	}
	return spot{root, name, w.Held}, w, nil
}

// policyFor is the policy of a command: all that is held and exists. What it asks for by name has to exist.
func (p Workspace) policyFor(asked []permissions.Tag) (w sandbox.Policy, err error) {
	if w.Held, err = p.Held(); err != nil {
		return w, err
	}
	for _, t := range append(p.tags(), asked...) {
		if t.Path() == "" {
			continue
		}
		name := t.Path()
		leads, err := own.LookUp(name, func() (string, error) { return filepath.EvalSymlinks(name) })
		switch {
		case slices.Contains(asked, t) && errors.Is(err, own.ErrSilent):
			return w, err
		case slices.Contains(asked, t) && errors.Is(err, os.ErrNotExist):
			return w, fmt.Errorf("%s does not exist; make it with write_file, or name its folder", name)
		case !slices.Contains(asked, t) && (err != nil || leads != name):
			continue // missing, or a symbolic link to somewhere else than shown
		case strings.HasPrefix(t.String(), "@write:"):
			w.Write = append(w.Write, name)
		default:
			w.Read = append(w.Read, name)
		}
	}
	return w, nil
}

// isFolder returns an error only where p does not answer.
func isFolder(p string) (bool, error) {
	return own.LookUp(p, func() (bool, error) {
		info, err := os.Stat(p)
		return err == nil && info.IsDir(), nil
	})
}

// requireTags refuses a call without the tags that it needs. Callers have asked already; this is the last check.
func (p Workspace) requireTags(needs ...permissions.Tag) error {
	if lacking := p.missing(needs...); len(lacking) > 0 {
		return fmt.Errorf("there is no %s", permissions.DescribeTags(lacking))
	}
	return nil
}

// heldTag is [Workspace.tag] for a call that runs.
func (p Workspace) heldTag(verb, name string) (permissions.Tag, error) {
	t, err := p.tag(verb, name)
	if err == nil {
		err = p.requireTags(t)
	}
	return t, err
}

// failed is the outcome of a call that could not be done.
func failed(err error) Outcome {
	left := Left(err)
	switch {
	case left != "": // however long it took
	case errors.Is(err, ErrMoved): // whatever it was needed for
		err = ErrMoved
	case errors.Is(err, context.DeadlineExceeded):
		err = errors.New("it took too long, and was ended")
	case errors.Is(err, context.Canceled):
		err = errors.New("it was ended before it was done")
	}
	return Outcome{Text: err.Error(), Error: true, Left: left}
}
