package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/sandbox"
)

type listFiles struct{ box *sandbox.Sandbox }

type listInput struct {
	Path  string `json:"path" size:"1..4096" default:"." say:"the folder: absolute, or relative to the workspace"`
	Glob  string `json:"glob" say:"only paths that match, below the folder, as in **/*.go"`
	Depth int    `json:"depth" size:"1..20" say:"how many folders deep; 2 if it is left out, or 20 with a glob"`
}

// Limits of a listing.
const (
	maxListed = 1000
	maxWalked = 200_000
	maxDepth  = 20
)

func (listFiles) spec() models.Tool {
	return models.Tool{Name: "list_files", Description: "List files below a folder, sorted; folders end " +
		"in /, symbolic links in @ and are not followed. At most 1000 are listed. In the workspace nobody is asked."}
}

func (in listInput) check() (listInput, error) {
	if in.Depth == 0 {
		if in.Depth = 2; in.Glob != "" {
			in.Depth = maxDepth
		}
	}
	return in, checkGlob(in.Glob)
}

func checkGlob(glob string) error {
	if glob != "" && !doublestar.ValidatePattern(glob) {
		return fmt.Errorf("%q is no glob; write it as in **/*.go", glob)
	}
	return nil
}

func (listFiles) plan(_ context.Context, p Workspace, in listInput) (Plan, error) {
	return p.planReading(in.Path)
}

// listOf is the input of list, and hits its result and that of search.
type (
	listOf struct {
		Spot  spot
		Glob  string
		Depth int
	}
	hits struct {
		Lines   []string
		Skipped int    // files
		Cut     string // why there may be more
	}
)

func (t listFiles) run(ctx context.Context, p Workspace, in listInput, _ Plan) (Outcome, error) {
	var h hits
	name, err := runSandboxed(ctx, t.box, p, in.Path, opList, func(s spot) any { return listOf{s, in.Glob, in.Depth} }, &h)
	if err != nil {
		return Outcome{}, fmt.Errorf("list %s: %w", name, err)
	}
	return h.outcome(), nil
}

func (h hits) outcome() Outcome {
	if len(h.Lines) == 0 {
		h.Lines = []string{"(nothing)"}
	}
	if h.Skipped > 0 {
		h.Lines = append(h.Lines, fmt.Sprintf("(%d files were passed over: binary, above %d bytes, or not to be read)", h.Skipped, maxSearched))
	}
	if h.Cut != "" {
		h.Lines = append(h.Lines, "("+h.Cut+")")
	}
	return Outcome{Text: strings.Join(h.Lines, "\n")}
}

// end returns the hits of a walk that ended with err; enough is why there may be more.
func (h hits) end(err error, enough string) (hits, error) {
	switch {
	case errors.Is(err, errEnough):
		h.Cut, err = enough, nil
	case errors.Is(err, errTooMany):
		h.Cut, err = err.Error(), nil
	}
	return h, err
}

// walk visits what is below a spot, by relative paths in order, without following links and without unreadable folders.
func (s spot) walk(depth int, visit func(root *os.Root, inRoot, rel string, e fs.DirEntry) error) error {
	if s.Root == "" {
		return errors.New("it is a file; name a folder")
	}
	return s.at(func(root *os.Root) error {
		info, err := root.Stat(s.Name)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return errors.New("it is no folder")
		}
		walked := 0
		return fs.WalkDir(root.FS(), s.Name, func(name string, e fs.DirEntry, unseen error) error {
			rel := strings.TrimPrefix(strings.TrimPrefix(name, s.Name), "/")
			if s.Name == "." {
				rel = name
			}
			switch walked++; {
			case walked > maxWalked:
				return errTooMany
			case unseen != nil && e != nil && e.IsDir():
				return fs.SkipDir
			case unseen != nil || name == s.Name:
				return nil //nolint:nilerr // what cannot be looked at is passed over
			}
			if err := visit(root, name, rel, e); err != nil {
				return err
			}
			if e.IsDir() && strings.Count(rel, "/")+1 >= depth {
				return fs.SkipDir
			}
			return nil
		})
	})
}

// Reasons to end a walk early; no errors for the caller.
var (
	errTooMany = fmt.Errorf("only the first %d files were looked at; name a folder below", maxWalked)
	errEnough  = errors.New("there is more")
)

// list lists what is below a folder, in a sandbox.
func list(order listOf) (h hits, err error) {
	err = order.Spot.walk(order.Depth, func(_ *os.Root, _, rel string, e fs.DirEntry) error {
		if order.Glob != "" {
			if ok, _ := doublestar.Match(order.Glob, rel); !ok {
				return nil
			}
		}
		if len(h.Lines) == maxListed {
			return errEnough
		}
		h.Lines = append(h.Lines, marked(rel, e))
		return nil
	})
	return h.end(err, fmt.Sprintf("there are more than these %d; name a folder below, or a glob", maxListed))
}

func marked(rel string, e fs.DirEntry) string {
	rel = strings.ToValidUTF8(path.Clean(rel), "\uFFFD")
	if strings.ContainsFunc(rel, func(r rune) bool { return r < ' ' }) {
		rel = fmt.Sprintf("%q", rel)
	}
	switch {
	case e.IsDir():
		return rel + "/"
	case e.Type()&fs.ModeSymlink != 0:
		return rel + "@"
	}
	return rel
}

type searchFiles struct{ box *sandbox.Sandbox }

type searchInput struct {
	Pattern string `json:"pattern" need:"yes" size:"1.." say:"a regular expression (RE2), looked for line by line"`
	Path    string `json:"path" size:"1..4096" default:"." say:"the folder: absolute, or relative to the workspace"`
	Glob    string `json:"glob" say:"only in files that match, below the folder, as in **/*.go"`
	NoCase  bool   `json:"ignore_case" default:"false" say:"take capital and small letters as the same"`
}

// Limits of a search.
const (
	maxFound     = 200
	maxSearched  = 4 << 20
	maxFoundLine = 300
)

func (searchFiles) spec() models.Tool {
	return models.Tool{Name: "search_files", Description: "Search the text files below a folder for a " +
		"regular expression. Gives path:line: text, at most 200 lines. Binary files, those above 4 MiB and .git are passed over. " +
		"In the workspace nobody is asked."}
}

func (in searchInput) check() (searchInput, error) {
	if in.NoCase {
		in.Pattern = "(?i)" + in.Pattern
	}
	if _, err := regexp.Compile(in.Pattern); err != nil {
		return in, fmt.Errorf("the pattern is no regular expression of RE2: %w", err)
	}
	return in, checkGlob(in.Glob)
}

func (searchFiles) plan(_ context.Context, p Workspace, in searchInput) (Plan, error) {
	return p.planReading(in.Path)
}

type searchOf struct {
	Spot          spot
	Pattern, Glob string
}

func (t searchFiles) run(ctx context.Context, p Workspace, in searchInput, _ Plan) (Outcome, error) {
	var h hits
	name, err := runSandboxed(ctx, t.box, p, in.Path, opSearch, func(s spot) any { return searchOf{s, in.Pattern, in.Glob} }, &h)
	if err != nil {
		return Outcome{}, fmt.Errorf("search %s: %w", name, err)
	}
	return h.outcome(), nil
}

// search finds a pattern in the files below a folder, in a sandbox.
func search(order searchOf) (h hits, err error) {
	pattern, err := regexp.Compile(order.Pattern)
	if err != nil {
		return h, err
	}
	err = order.Spot.walk(maxDepth, func(root *os.Root, inRoot, rel string, e fs.DirEntry) error {
		switch ok, _ := doublestar.Match(order.Glob, rel); {
		case e.IsDir() && e.Name() == ".git":
			return fs.SkipDir
		case !e.Type().IsRegular() || order.Glob != "" && !ok:
			return nil
		}
		text, err := searchable(root, inRoot)
		if err != nil {
			h.Skipped++
			return nil //nolint:nilerr // what cannot be read is counted
		}
		return h.addMatches(pattern, rel, text)
	})
	return h.end(err, fmt.Sprintf("there are more than these %d; search more narrowly", maxFound))
}

// searchable reads a file that can be searched.
func searchable(root *os.Root, name string) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSearched+1))
	if err == nil && (len(text) > maxSearched || !isText(text)) {
		err = errors.New("it is no text, or too much")
	}
	return text, err
}

// addMatches adds the matching lines of one file.
func (h *hits) addMatches(pattern *regexp.Regexp, name string, text []byte) error {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimRight(line, "\r\n")
		if !pattern.Match(line) {
			continue
		}
		if len(h.Lines) == maxFound {
			return errEnough
		}
		if len(line) > maxFoundLine {
			line = append(bytes.ToValidUTF8(bytes.Clone(line[:maxFoundLine]), nil), " …"...)
		}
		h.Lines = append(h.Lines, fmt.Sprintf("%s:%d: %s", strings.ToValidUTF8(name, "\uFFFD"), n, line))
	}
	return nil
}
