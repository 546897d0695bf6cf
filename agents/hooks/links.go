package hooks

import (
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/text/unicode/norm"

	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/rules"
)

// maxNames is the most bytes of names in a call that are resolved.
const maxNames = 8 * permissions.MaxLeads

// FollowLinks has people told where the names in the call lead, and the call denied if that is otherwise when they have answered.
func (c *Call) FollowLinks(env func(string) string) {
	c.Request.Leads = c.Leads(env)
	c.follow = func() permissions.Leads { return c.Leads(env) }
}

// Leads resolves the links of the names in the call on this machine, and of those that may stand in its text. It has no root outside a
// project's folder, and where a program that is named without a folder may be one of the project's. Of many names, it has those alone
// that lead elsewhere than they say, and of too many, none.
func (c Call) Leads(env func(string) string) (l permissions.Leads) {
	root := c.project(env)
	if c.given == nil || c.questions != nil {
		return l
	}
	if isProjectFolder(own.Resolve(root), env) {
		l.Root = root
	}
	l.Names = map[string]string{}
	input, _ := c.Request.Whole(c.Request.ToolCalls()[0])
	names, text, whole := rules.Names(rules.Call{
		Dialect: c.dialect, Tool: c.Request.Tool, Input: input, Folder: c.Request.Cwd, Root: root,
	}, maxNames)
	links := own.Follow()
	for _, name := range names {
		if to, known := links.Leads(name); known {
			l.Names[name] = to
		} else {
			whole = false // and no rule allows it
		}
	}
	found, all := linksIn(text, c.Request.Cwd, env("HOME"), links)
	for name, to := range found {
		if !slices.ContainsFunc(names, func(other string) bool { return other == name || strings.HasPrefix(other, name+"/") }) {
			l.Names[name] = to
		}
	}
	tooMany := func() bool {
		size := 0
		for name, to := range l.Names {
			size += len(name) + len(to)
		}
		return size > permissions.MaxLeads
	}
	if l.Unknown = !whole || !all; tooMany() {
		far := l.Elsewhere()
		if l = (permissions.Leads{Unknown: l.Unknown}); far != nil {
			l.Names = far.Names
		}
	}
	if tooMany() {
		return permissions.Leads{Unknown: true}
	}
	return l
}

// LeadsOf resolves the links of a tool call of a dialect that another door than the hook's was given, as [Call.Leads] does. It returns
// [ErrNoFiles] if that takes too long.
func LeadsOf(dialect string, q permissions.Request, env func(string) string) (permissions.Leads, error) {
	return InTime(lookWithin, func() (permissions.Leads, error) {
		return Call{dialect: dialect, given: q.Input, Request: q}.Leads(env), nil
	})
}

// maxSearched is how many bytes of text are searched for names, of which a file costs at least so many as readingEntry.
const maxSearched, readingEntry = 256 << 20, 4096

// linkSearch finds the links whose names stand in a text, at whatever place: which part of it a program takes for a name is not known.
type linkSearch struct {
	text  string
	left  int // of maxSearched
	links *own.Links
	seen  map[string]bool
	found map[string]string // where they lead, by their names
	all   bool              // all of them are found
}

var (
	// escaped matches a letter as it is in an address, in JSON, or in code.
	escaped = regexp.MustCompile(`(?:%|\\x)[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\u\{[0-9A-Fa-f]{1,6}\}|\\U[0-9A-Fa-f]{8}|` +
		`\\[0-3][0-7]{2}`)
	// namesProc matches the folder in which links lead to what processes have open.
	namesProc = regexp.MustCompile(`/proc($|[^\w-])`)
)

// unescaped is the letter of what escaped matches.
func unescaped(part string) string {
	if octet, is := strings.CutPrefix(part, "%"); is {
		part = `\x` + octet
	}
	if code, is := strings.CutPrefix(part, `\u{`); is {
		part = fmt.Sprintf(`\U%08s`, strings.TrimSuffix(code, "}"))
	}
	letter, wide, _, err := strconv.UnquoteChar(part, 0)
	switch {
	case err != nil:
		return part
	case wide:
		return string(letter)
	}
	return string([]byte{byte(letter)})
}

// linksIn finds the links that stand in a text: in a folder, in the home if a name may begin there, in the folders above where it says ..,
// in the root where absolute names stand, and in each folder of those that stands in it, too. Without all, there may be more.
func linksIn(text, folder, home string, links *own.Links) (found map[string]string, all bool) {
	if text == "" || !filepath.IsAbs(folder) {
		return nil, text == ""
	}
	for plain, n := text, 0; n < 2; n++ { // some of it twice
		plain = html.UnescapeString(escaped.ReplaceAllStringFunc(plain, unescaped))
		text += "\n" + plain
	}
	s := &linkSearch{
		text: folded(text), left: maxSearched, links: links, seen: map[string]bool{}, found: map[string]string{},
		all: !namesProc.MatchString(text),
	}
	s.lookAround(own.Resolve(folder), true)
	if filepath.IsAbs(home) && (strings.Contains(text, "~") || strings.Contains(text, "HOME")) {
		s.lookAround(own.Resolve(home), true)
	}
	if strings.Contains(text, "/") {
		s.look("/", "/", false)
	}
	return s.found, s.all && s.left >= 0
}

// folded is a text in which a name is found as the file systems that fold letters find it.
func folded(text string) string { return strings.ToLower(norm.NFC.String(text)) }

// lookAround looks at a folder, and at those above if names may lead there.
func (s *linkSearch) lookAround(folder string, told bool) {
	s.look(folder, "", told)
	for at := folder; strings.Contains(s.text, "..") && at != "/" && s.left >= 0; at = filepath.Dir(at) {
		s.look(filepath.Dir(at), "", told && filepath.Dir(at) != "/")
	}
}

// look looks at the entries of a folder, given without links, that stand in the text after a prefix. It tells of the links in it if others
// than the machine's administrator can make some, or if told.
func (s *linkSearch) look(folder, prefix string, told bool) {
	if s.seen[folder] || s.left < 0 || slices.Contains([]string{"/proc", "/sys"}, folder) {
		return
	}
	s.seen[folder] = true
	info, err := os.Stat(folder)
	if err == nil && !told {
		stat, ok := info.Sys().(*syscall.Stat_t)
		told = !ok || stat.Uid != 0 || info.Mode().Perm()&0o022 != 0
	}
	for _, e := range s.list(folder) {
		if !strings.Contains(s.text, prefix+folded(e.Name())) {
			continue
		}
		at := filepath.Join(folder, e.Name())
		switch {
		case e.IsDir():
			s.look(at, "", told && folder != "/")
		case e.Type()&fs.ModeSymlink != 0:
			to, known := s.links.Leads(at)
			if !known {
				s.all = false
				continue
			}
			if told {
				s.found[at] = to
			}
			s.lookAround(to, told)
		}
	}
}

// list returns the entries of a folder, as many as may be looked at.
func (s *linkSearch) list(folder string) []fs.DirEntry {
	most := s.left/max(len(s.text), readingEntry) + 1
	f, err := os.OpenFile(folder, os.O_RDONLY|syscall.O_DIRECTORY, 0) //nolint:gosec // names alone; a pipe would wait
	var entries []fs.DirEntry
	if err == nil {
		entries, err = f.ReadDir(most)
		_ = f.Close() // it was only read
	}
	if s.left -= len(entries) * max(len(s.text), readingEntry); err != nil &&
		!errors.Is(err, io.EOF) && !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, fs.ErrNotExist) {
		s.all = false
	}
	return entries
}
