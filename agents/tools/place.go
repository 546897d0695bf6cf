package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/permissions"
)

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
	Held       sandbox.Folder // the required identity of Root; zero: any
}

// spot finds the widest held folder that contains a held tag's path, and the policy for it.
func (p Workspace) spot(t permissions.Tag) (spot, sandbox.Policy, error) {
	root := ""
	for _, h := range p.tags() {
		if r := h.Path(); h.Covers(t) && (root == "" || len(r) < len(root)) && isFolder(r) {
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
		if !isFolder(root) {
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
	if root == p.Workspace {
		if w.Held, err = p.Held(); err != nil {
			return spot{}, w, err
		}
	}
	return spot{root, name, w.Held}, w, nil
}

// walls is the policy of a command: all that is held and exists. What it asks for by name has to exist.
func (p Workspace) walls(asked []permissions.Tag) (w sandbox.Policy, err error) {
	if w.Held, err = p.Held(); err != nil {
		return w, err
	}
	for _, t := range append(p.tags(), asked...) {
		if t.Path() == "" {
			continue
		}
		name := t.Path()
		leads, err := filepath.EvalSymlinks(name)
		switch {
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

func isFolder(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.IsDir()
}

// mustHold refuses a call without the tags that it needs. Callers have asked already; this is the last check.
func (p Workspace) mustHold(needs ...permissions.Tag) error {
	if lacking := p.missing(needs...); len(lacking) > 0 {
		return fmt.Errorf("there is no %s", permissions.DescribeTags(lacking))
	}
	return nil
}

// heldTag is [Workspace.tag] for a call that runs.
func (p Workspace) heldTag(verb, name string) (permissions.Tag, error) {
	t, err := p.tag(verb, name)
	if err == nil {
		err = p.mustHold(t)
	}
	return t, err
}

// failed is the outcome of a call that could not be done.
func failed(err error) Outcome {
	switch {
	case errors.Is(err, ErrMoved): // whatever it was needed for
		err = ErrMoved
	case errors.Is(err, context.DeadlineExceeded):
		err = errors.New("it took too long, and was ended")
	case errors.Is(err, context.Canceled):
		err = errors.New("it was ended before it was done")
	}
	return Outcome{Text: err.Error(), Error: true}
}
