package tools

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/edits"
)

// write_file and edit_file: people see the difference, and it is applied to the file that it was made from, or not at all.

type writeFile struct{ box *sandbox.Sandbox }

type writeInput struct {
	Path    string `json:"path" need:"yes" size:"1..4096" say:"the file: absolute, or relative to the workspace"`
	Content string `json:"content" need:"yes" size:"..1048576" unit:"bytes" say:"the whole new content"`
}

func (writeFile) spec() models.Tool {
	return models.Tool{Name: "write_file", Description: "Write a whole text file, at most 1 MiB: a new " +
		"one, with the folders it lies in, or instead of one that is there. People are shown the difference. To change a part, use edit_file."}
}

func (t writeFile) plan(ctx context.Context, p Workspace, in writeInput) (Plan, error) {
	plan, was, err := planChange(ctx, t.box, p, in.Path)
	if err != nil {
		return Plan{}, err
	}
	switch {
	case plan.Basis == "":
		plan.Details = "What is there now may not be looked at."
	case was.There && !isText(was.Text):
		plan.Details = fmt.Sprintf("Instead of %d bytes that are no text (%s).", len(was.Text), was.Basis)
	case was.There && string(was.Text) == in.Content:
		return Plan{}, errors.New("the file holds exactly that already")
	default:
		plan.Was, err = rowsAround(t.spec().Name, in, was)
	}
	return plan, err
}

// rowsAround returns what people are shown of a file around a change.
func rowsAround(tool string, in any, was fileContent) ([]permissions.Rows, error) {
	input, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("show what is around a change: %w", err)
	}
	e, _ := edits.Of(tool, input) // an input of our own tools
	return e.Around(string(was.Text), was.There), nil
}

func (t writeFile) run(ctx context.Context, p Workspace, in writeInput, plan Plan) (Outcome, error) {
	tag, err := p.heldTag("@write", in.Path)
	if err != nil {
		return Outcome{}, err
	}
	if err := p.sameLinks(tag, plan); err != nil {
		return Outcome{}, err
	}
	return replace(ctx, t.box, p, tag, []byte(in.Content), plan.Basis)
}

type editFile struct{ box *sandbox.Sandbox }

type editInput struct {
	Path string `json:"path" need:"yes" size:"1..4096" say:"the file: absolute, or relative to the workspace"`
	Old  string `json:"old_text" need:"yes" size:"1.." say:"the text to replace, exactly as it is there, with enough around it to occur once"`
	New  string `json:"new_text" need:"yes" say:"what to put in its place"`
	All  bool   `json:"replace_all" default:"false" say:"replace every occurrence instead of the only one"`
}

func (editFile) spec() models.Tool {
	return models.Tool{Name: "edit_file", Description: "Replace text in a file. old_text must occur " +
		"exactly once, or set replace_all. People are shown the difference. Read the file first; line ends may be written as \\n."}
}

func (t editFile) plan(ctx context.Context, p Workspace, in editInput) (Plan, error) {
	plan, was, err := planChange(ctx, t.box, p, in.Path)
	if err != nil {
		return Plan{}, err
	}
	if plan.Basis == "" {
		plan.Details = "The file may not be looked at."
		return plan, nil
	}
	if _, err := in.apply(was); err != nil {
		return Plan{}, err
	}
	plan.Was, err = rowsAround(t.spec().Name, in, was)
	return plan, err
}

func (t editFile) run(ctx context.Context, p Workspace, in editInput, plan Plan) (Outcome, error) {
	tag, err := p.heldTag("@write", in.Path)
	if err != nil {
		return Outcome{}, err
	}
	was, err := contentOf(ctx, t.box, p, tag)
	if err != nil {
		return Outcome{}, err
	}
	if plan.Basis != "" && plan.Basis != was.Basis {
		return Outcome{}, fmt.Errorf("%s: %w", tag.Path(), errChanged)
	}
	if err := p.sameLinks(tag, plan); err != nil {
		return Outcome{}, err
	}
	text, err := in.apply(was)
	if err != nil {
		return Outcome{}, err
	}
	return replace(ctx, t.box, p, tag, text, was.Basis)
}

func (in editInput) check() (editInput, error) {
	switch in.Old {
	case "":
		return in, errors.New("old_text is empty; to make a file, use write_file")
	case in.New:
		return in, errors.New("old_text and new_text are the same")
	}
	return in, nil
}

// apply applies the edit. In a file with CRLF line ends, an edit's LF means CRLF.
func (in editInput) apply(was fileContent) ([]byte, error) {
	switch {
	case !was.There:
		return nil, errors.New("there is no such file; to make it, use write_file")
	case !isText(was.Text):
		return nil, errors.New("it is no text file")
	}
	before, after := in.Old, in.New
	if crlf(was.Text) {
		before, after = toCRLF(before), toCRLF(after)
	}
	n := bytes.Count(was.Text, []byte(before))
	size := len(was.Text) + n*(len(after)-len(before))
	switch {
	case n == 0:
		return nil, errors.New("old_text does not occur in the file; read it again, and copy the text exactly")
	case n > 1 && !in.All:
		return nil, fmt.Errorf("old_text occurs %d times; add what is around it, or set replace_all", n)
	case size > maxFile: // it may be more than the machine has
		return nil, fmt.Errorf("the file would have %d bytes, more than %d", size, maxFile)
	}
	return bytes.ReplaceAll(was.Text, []byte(before), []byte(after)), nil
}

// crlf reports whether every line of a text ends with CRLF.
func crlf(text []byte) bool {
	n := bytes.Count(text, []byte("\n"))
	return n > 0 && n == bytes.Count(text, []byte("\r\n"))
}

func toCRLF(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
}

// planChange returns what a change of a file needs, and the file's content if it may be read. If not, Basis is empty: the
// daemon does not read for the agent what the agent may not.
func planChange(ctx context.Context, box *sandbox.Sandbox, p Workspace, name string) (Plan, fileContent, error) {
	tag, err := p.tag("@write", name)
	if err != nil {
		return Plan{}, fileContent{}, err
	}
	plan := Plan{Needs: p.missing(tag), AffectedPath: tag.Path()}
	if plan.Links, err = p.linksTo(tag); err != nil {
		return plan, fileContent{}, err
	}
	reading, err := p.tag("@read", name)
	if err != nil || p.Unseen || len(p.missing(reading)) > 0 {
		return plan, fileContent{}, err
	}
	was, err := contentOf(ctx, box, p, reading)
	plan.Basis = was.Basis
	return plan, was, err
}

// maxLinks is how many links the kernel follows.
const maxLinks = 40

// linksTo is [Workspace.links] where the file system answers.
func (p Workspace) linksTo(tag permissions.Tag) (string, error) {
	return own.LookUpFor("writing in "+p.Workspace, path.Dir(tag.Path()), func() (string, error) { return p.links(tag), nil })
}

// sameLinks refuses other links than those of a plan.
func (p Workspace) sameLinks(tag permissions.Tag, plan Plan) error {
	now, err := p.linksTo(tag)
	if err == nil && now != plan.Links {
		err = fmt.Errorf("%s: %w", tag.Path(), errChanged)
	}
	return err
}

// links are the symbolic links of the workspace on the way to a file's folder there, and where each leads.
func (p Workspace) links(tag permissions.Tag) (all string) {
	if p.held == nil || p.held.root == nil || !permissions.Within(p.Workspace, tag.Path()) {
		return ""
	}
	name, _ := filepath.Rel(p.Workspace, path.Dir(tag.Path())) // which it contains
	for from := 0; from < len(name) && strings.Count(all, "\n") < maxLinks; {
		end := len(name)
		if i := strings.IndexByte(name[from:], '/'); i >= 0 {
			end = from + i
		}
		to, err := p.held.root.Readlink(name[:end])
		switch {
		case errors.Is(err, syscall.EINVAL): // it is no link
			from = end + 1
			continue
		case err != nil: // there is nothing yet
			return all
		}
		all += fmt.Sprintf("%q leads to %q\n", name[:end], to)
		if path.IsAbs(to) {
			return all // out of the workspace
		}
		name, from = path.Join(path.Dir(name[:end]), to, name[end:]), 0
	}
	return all
}

func contentOf(ctx context.Context, box *sandbox.Sandbox, p Workspace, tag permissions.Tag) (was fileContent, err error) {
	reading, err := permissions.ParseTag("@read:" + tag.Path())
	if err != nil {
		return was, err
	}
	where, walls, err := p.spot(reading)
	if err == nil {
		err = box.Do(ctx, walls, opContent, where, &was)
	}
	if errors.Is(err, fs.ErrNotExist) { // only the file is granted, and it does not exist
		return fileContent{Basis: nothing}, nil
	}
	if err != nil {
		return was, fmt.Errorf("read %s: %w", tag.Path(), err)
	}
	return was, nil
}

func replace(ctx context.Context, box *sandbox.Sandbox, p Workspace, tag permissions.Tag, text []byte, basis string) (Outcome, error) {
	where, walls, err := p.spot(tag)
	there := false
	if err == nil {
		err = box.Do(ctx, walls, opPut, putInput{where, text, basis}, &there)
	}
	if err != nil {
		return Outcome{}, fmt.Errorf("write %s: %w", tag.Path(), err)
	}
	verb := "made"
	if there {
		verb = "changed"
	}
	return Outcome{Text: fmt.Sprintf("%s %s: %d bytes", verb, tag.Path(), len(text))}, nil
}

// folder is a workspace as of the daemon's start. It is held open, so that no other folder gets its device and inode numbers.
type folder struct {
	sandbox.Folder
	name string // as configured, perhaps with symbolic links
	root *os.Root
	err  error // why it could not be opened
}

// In returns the place with a workspace, which is resolved now and never again: another folder that gets its name later
// is not the workspace. If it cannot be opened, every use fails with the reason.
func (p Workspace) In(workspace string) Workspace {
	if workspace == "" {
		return p
	}
	f := &folder{name: workspace}
	p.Workspace, p.held = workspace, f
	opened, err := own.LookUp(workspace, func() (o folder, err error) { return open(workspace) })
	switch {
	case errors.Is(err, own.ErrSilent):
		f.err = fmt.Errorf("open the workspace when daycared starts: %w; restart daycared when it does", err)
	case err != nil:
		f.err = fmt.Errorf("open the workspace when daycared starts: %w; make it, and restart daycared", err)
	default:
		*f, p.Workspace = opened, opened.Path
	}
	return p
}

// open opens the folder to which a name leads.
func open(name string) (f folder, err error) {
	f.name = name
	leads, err := filepath.EvalSymlinks(name)
	if err != nil {
		return f, err
	}
	if f.root, err = rootOf(leads); err != nil {
		return f, err
	}
	info, err := f.root.Stat(".")
	if err != nil {
		return f, err
	}
	f.Folder = sandbox.FolderOf(leads, info)
	return f, nil
}

// rootOf is [os.OpenRoot], which would wait for a writer of a named pipe.
func rootOf(name string) (*os.Root, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	}
	return os.OpenRoot(name)
}

// ErrMoved means that the workspace's path leads to another folder than at the daemon's start.
var ErrMoved = errors.New("This was not run: the workspace is another folder by now.") //nolint:revive,staticcheck // a sentence for people

// Folder identifies the workspace by device and inode, for a question's digest; empty without one.
func (p Workspace) Folder() string {
	if p.held == nil || p.held.err != nil {
		return ""
	}
	return fmt.Sprintf("device %d, inode %d", p.held.Dev, p.held.Ino)
}

// Held is the workspace's identity for checking at each opening, or [ErrMoved] if it changed.
func (p Workspace) Held() (sandbox.Folder, error) {
	switch {
	case p.Workspace == "":
		return sandbox.Folder{}, nil
	case p.held == nil:
		return sandbox.Folder{}, fmt.Errorf("%w It was not opened when daycared started.", ErrMoved) //nolint:revive,staticcheck // as above
	case p.held.err != nil:
		return sandbox.Folder{}, p.held.err
	}
	return own.LookUp(p.Workspace, func() (sandbox.Folder, error) {
		leads, err := filepath.EvalSymlinks(p.held.name)
		if err != nil || leads != p.Workspace {
			return sandbox.Folder{}, ErrMoved
		}
		if info, err := os.Stat(leads); err != nil || p.held.Check(leads, info) != nil {
			return sandbox.Folder{}, ErrMoved
		}
		return p.held.Folder, nil
	})
}

// inWorkspace resolves an absolute path below the workspace's configured name, and reports whether it is there.
func (p Workspace) inWorkspace(whole string) (string, bool) {
	if p.Workspace == "" {
		return whole, false
	}
	names := []string{p.Workspace}
	if p.held != nil {
		names = append(names, p.held.name)
	}
	for _, name := range names {
		if rest, ok := strings.CutPrefix(whole, strings.TrimSuffix(name, "/")); ok && (rest == "" || rest[0] == '/') {
			return cmp.Or(strings.TrimSuffix(p.Workspace, "/")+rest, "/"), true
		}
	}
	return whole, false
}

func (p Workspace) workspace() (reading, writing permissions.Tag, ok bool) {
	reading, err := permissions.ParseTag("@read:" + p.Workspace)
	if err != nil {
		return reading, writing, false
	}
	writing, err = permissions.ParseTag("@write:" + p.Workspace)
	return reading, writing, err == nil
}
