package hooks

import (
	"errors"
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
	"unicode/utf16"
	"unicode/utf8"

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
	c.leadsNow = func() permissions.Leads { return c.Leads(env) }
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
	input, _ := c.Request.FullInput(c.Request.ToolCalls()[0])
	names, text, whole := rules.NamesToResolve(rules.Call{
		Dialect: c.dialect, Tool: c.Request.Tool, Input: input, Folder: c.Request.Cwd, Root: root,
	}, maxNames)
	if changesFolder.MatchString(text) && env("CDPATH") != "" {
		whole = false
	}
	links := own.Follow()
	for _, name := range names {
		if to, known := links.Leads(name); known {
			l.Names[name] = to
		} else if plain := strings.TrimSuffix(name, "/"); plain == name || l.Names[plain] == "" { // else it is no folder
			whole = false // and no rule allows it
		}
	}
	folders := append([]string{c.Request.Cwd}, c.roots...)
	if strings.HasPrefix(c.Request.Tool, "mcp_") { // its server was started where the session began
		folders = append(folders, root)
	}
	for _, folder := range slices.Compact(folders) {
		found, all := linksIn(text, folder, env("HOME"), links)
		whole = whole && all
		for name, to := range found {
			if !slices.ContainsFunc(names, func(other string) bool { return other == name || strings.HasPrefix(other, name+"/") }) {
				l.Names[name] = to
			}
		}
	}
	tooMany := func() bool {
		size := 0
		for name, to := range l.Names {
			size += len(name) + len(to)
		}
		return size > permissions.MaxLeads
	}
	if l.Unknown = !whole; tooMany() {
		far := l.Symlinks()
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
	return InTime(filesWithin, func() (permissions.Leads, error) {
		return Call{dialect: dialect, given: q.Input, Request: q}.Leads(env), nil
	})
}

// changesFolder matches commands that look for the folder in the environment's CDPATH.
var changesFolder = regexp.MustCompile(`\bcd\b`)

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
	// namesProc matches the folders in which links lead to what processes have open.
	namesProc = regexp.MustCompile(`/(proc|dev/fd)($|[^\w-])`)
	// namesRoot matches the root as a text of its own.
	namesRoot = regexp.MustCompile(`(?m)(^|:)/+$`)
)

// maxReadings is how often a text is decoded: JSON may stand in JSON.
const maxReadings = 8

// readings are a text, what it is when its escapes are decoded, and again while some are left. Without all, there may be more.
func readings(text string) (read []string, all bool) {
	for read = []string{text}; len(read) <= maxReadings; text = read[len(read)-1] {
		next := html.UnescapeString(decode(text))
		if next == text {
			return read, utf8.ValidString(text) // else letters of another encoding
		}
		read = append(read, next)
	}
	return read, false
}

// escape matches a letter as it is in an address, in JSON, or in code: both halves of it, an octet, its code point, an octal octet, or
// itself after a backslash.
var escape = regexp.MustCompile(`^(?is)(?:[%\\]u(d[89ab][\da-f]{2})[%\\]u(d[c-f][\da-f]{2})|(?:%|\\x)([\da-f]{2})|` +
	`(?-i:\\U)([\da-f]{8})|(?-i:[%\\]u)([\da-f]{4})|\\[ux]\{([\da-f]{1,8})\}|\\(?:o\{)?([0-3]?[0-7]{1,2})\}?|\\(.))`)

// decode decodes each escape in a text once.
func decode(text string) string {
	var b strings.Builder
	for {
		i := strings.IndexAny(text, `\%`)
		if i < 0 {
			return b.String() + text
		}
		b.WriteString(text[:i])
		text = text[i:]
		m := escape.FindStringSubmatch(text[:min(len(text), len(`\x{00000000}`))])
		if m == nil {
			b.WriteByte(text[0])
			text = text[1:]
			continue
		}
		text = text[len(m[0]):]
		code, _ := strconv.ParseUint(m[1]+m[3]+m[4]+m[5]+m[6], 16, 32) // the pattern has digits alone
		octal, _ := strconv.ParseUint(m[7], 8, 8)
		switch at := strings.Index("abefnrtv", m[8]); {
		case m[2] != "":
			low, _ := strconv.ParseUint(m[2], 16, 32)
			b.WriteRune(utf16.DecodeRune(rune(code), rune(low)))
		case m[3] != "" || m[7] != "":
			b.WriteByte(byte(code | octal))
		case m[8] == "":
			b.WriteRune(rune(code))
		case at >= 0:
			b.WriteByte("\a\b\x1b\f\n\r\t\v"[at])
		case m[8] != "\n": // else the line goes on
			b.WriteString(m[8])
		}
	}
}

// searched is a text in which the names of links are searched: with what it may be read as, without quotes as for a shell, and with the
// blanks of a form. Without all, there may be more.
func searched(text string) (read string, all bool) {
	texts, all := readings(text)
	read = strings.Join(texts, "\n")
	if strings.ContainsAny(read, "\\'\"") {
		read += "\n" + strings.NewReplacer("\\", "", "'", "", "\"", "").Replace(read)
	}
	if strings.Contains(read, "+") {
		read += "\n" + strings.ReplaceAll(read, "+", " ")
	}
	return folded(read), all && !namesProc.MatchString(read)
}

// isInText reports whether a name stands in the text after a prefix, as it is or with escapes that are decoded.
func (s *linkSearch) isInText(prefix, name string) bool {
	if strings.Contains(s.text, prefix+folded(name)) {
		return true
	}
	read, all := readings(name)
	return len(read) > 1 && (!all || strings.Contains(s.text, prefix+folded(read[len(read)-1])))
}

// linksIn finds the links that stand in a text: in a folder, in the home if a name may begin there, in the folders above where it says ..,
// in the root where absolute names stand, and in each folder of those that stands in it, too. Without all, there may be more.
func linksIn(text, folder, home string, links *own.Links) (found map[string]string, all bool) {
	if text == "" || !filepath.IsAbs(folder) {
		return nil, text == ""
	}
	text, all = searched(text)
	s := &linkSearch{text: text, left: maxSearched, links: links, seen: map[string]bool{}, found: map[string]string{}, all: all}
	s.lookAround(own.Resolve(folder), true)
	if filepath.IsAbs(home) && (strings.Contains(text, "~") || strings.Contains(text, "HOME")) {
		s.lookAround(own.Resolve(home), true)
	}
	switch {
	case namesRoot.MatchString(text): // the name in it may be another text
		s.look("/", "", false)
	case strings.Contains(text, "/"):
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
	if s.seen[folder] || s.left < 0 || permissions.Within("/proc", folder) || folder == "/sys" {
		return
	}
	s.seen[folder] = true
	info, err := os.Stat(folder)
	if err == nil && !told {
		stat, ok := info.Sys().(*syscall.Stat_t)
		told = !ok || stat.Uid != 0 || info.Mode().Perm()&0o022 != 0
	}
	for _, e := range s.list(folder) {
		if !s.isInText(prefix, e.Name()) {
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
