package tools

import (
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

// held are the tags of a place, with what its workspace is to it: a folder to read, and with [permissions.Workspace] one to
// write.
func (p Place) held() []permissions.Tag {
	tags := slices.Clone(p.Tags)
	if reading, writing, ok := p.workspace(); ok {
		tags = append(tags, reading)
		if slices.Contains(p.Tags, permissions.Workspace) {
			tags = append(tags, writing)
		}
	}
	return tags
}

// workspace is the workspace as tags.
func (p Place) workspace() (reading, writing permissions.Tag, ok bool) {
	reading, err := permissions.ParseTag("@read:" + p.Workspace)
	if err != nil {
		return reading, writing, false
	}
	writing, err = permissions.ParseTag("@write:" + p.Workspace)
	return reading, writing, err == nil
}

// missing are the tags that people are to be asked for, of those that a call needs: to write in the workspace, that is
// [permissions.Workspace].
func (p Place) missing(wanted ...permissions.Tag) (tags []permissions.Tag) {
	_, writing, ok := p.workspace()
	for _, t := range permissions.Missing(wanted, p.held()) {
		if ok && writing.Covers(t) {
			t = permissions.Workspace
		}
		if !slices.Contains(tags, t) {
			tags = append(tags, t)
		}
	}
	return tags
}

// tag reads a path of an input and makes it what is to be held for it: verb is @read or @write. A relative path starts in
// the workspace. An odd path is refused rather than repaired.
func (p Place) tag(verb, name string) (permissions.Tag, error) {
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
	t, err := permissions.ParseTag(verb + ":" + whole)
	if err != nil {
		return permissions.Tag{}, err
	}
	if t.Path() != whole { // ParseTag drops space at the end
		return permissions.Tag{}, fmt.Errorf("%q ends in space, which is not taken", name)
	}
	return t, nil
}

// spot is a file or folder as it is opened: by a name below a folder, which it cannot leave, whatever symbolic links say.
// Without a Root the name is absolute, and the walls let nothing else be opened.
type spot struct{ Root, Name string }

// spot finds, for a tag that is held, the widest held folder that it lies in, and the walls that hold it there.
func (p Place) spot(t permissions.Tag) (spot, sandbox.Walls, error) {
	root := ""
	for _, h := range p.held() {
		if r := h.Path(); h.Covers(t) && (root == "" || len(r) < len(root)) && isFolder(r) {
			root = r
		}
	}
	write := strings.HasPrefix(t.String(), "@write:")
	if root == "" {
		if !write {
			return spot{Name: t.Path()}, sandbox.Walls{Read: []string{t.Path()}}, nil
		}
		// One file is granted. It is put in place by renaming, which is its folder's business.
		root = path.Dir(t.Path())
		if !isFolder(root) {
			return spot{}, sandbox.Walls{}, fmt.Errorf("the folder %s does not exist", root)
		}
	}
	name, err := filepath.Rel(root, t.Path())
	if err != nil {
		return spot{}, sandbox.Walls{}, err
	}
	if root, err = p.real(root); err != nil {
		return spot{}, sandbox.Walls{}, err
	}
	w := sandbox.Walls{Read: []string{root}}
	if write {
		w = sandbox.Walls{Write: []string{root}}
	}
	return spot{root, name}, w, nil
}

// real is where a folder is. The workspace's name is the operator's, who may have symbolic links in it; any other path is
// to be what people were shown.
func (p Place) real(folder string) (string, error) {
	if folder != p.Workspace {
		return folder, nil
	}
	leads, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return "", fmt.Errorf("look at the workspace: %w", err)
	}
	return leads, nil
}

// walls are those of a command: all that is held, and there. What is asked for by name has to be there.
func (p Place) walls(asked []permissions.Tag) (w sandbox.Walls, err error) {
	for _, t := range append(p.held(), asked...) {
		if t.Path() == "" {
			continue
		}
		name, err := p.real(t.Path())
		if err != nil {
			return w, err
		}
		leads, err := filepath.EvalSymlinks(name)
		switch {
		case slices.Contains(asked, t) && errors.Is(err, os.ErrNotExist):
			return w, fmt.Errorf("%s does not exist; make it with write_file, or name its folder", name)
		case !slices.Contains(asked, t) && (err != nil || leads != name):
			continue // it is not there now, or a symbolic link that leads elsewhere than people were shown
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

// mustHold refuses a call for which something is not held. Whoever runs tools has asked for it; this is the last to look.
func (p Place) mustHold(needs []permissions.Tag) error {
	if lacking := p.missing(needs...); len(lacking) > 0 {
		return fmt.Errorf("there is no %s", permissions.DescribeTags(lacking))
	}
	return nil
}

// failed is what becomes of a call that could not be done.
func failed(err error) Outcome { return Outcome{Text: err.Error(), Error: true} }
