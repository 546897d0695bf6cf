package permissions

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/daycared/daycared/permissions/i18n"
)

// MaxTagPath is the longest path a tag may name, in bytes (Linux's PATH_MAX).
const MaxTagPath = 4096

// Tag is one thing an agent may be allowed to do, as in `@network` or `@write:/srv/www`. The zero Tag covers nothing.
// Tags are comparable values; create them with [ParseTag].
type Tag struct {
	verb string
	path string
}

// The tags without a path.
var (
	Network   = Tag{verb: "@network"}
	Workspace = Tag{verb: "@workspace"}
	Events    = Tag{verb: "@events"} // may read the daemon's events, never decide
)

const (
	verbRead  = "@read"
	verbWrite = "@write"
)

// ParseTag parses a tag. Surrounding space is trimmed; a path must be absolute, clean, in Unicode's normal form C, at
// most [MaxTagPath] bytes and free of control characters, and is refused rather than repaired. The error for an unknown
// word names the nearest known one, or all.
func ParseTag(text string) (Tag, error) {
	text = strings.TrimSpace(text)
	if t := (Tag{verb: text}); slices.Contains([]Tag{Network, Workspace, Events}, t) {
		return t, nil
	}
	verb, p, found := strings.Cut(text, ":")
	if !found || (verb != verbRead && verb != verbWrite) {
		return Tag{}, fmt.Errorf("unknown permission %q; %s", text, suggestTag(verb))
	}
	if err := checkPath(verb, p); err != nil {
		return Tag{}, fmt.Errorf("permission %q: %w", text, err)
	}
	return Tag{verb: verb, path: p}, nil
}

// ParseTags parses tags, dropping repetitions and keeping the order.
func ParseTags(texts []string) ([]Tag, error) {
	var tags []Tag
	for _, text := range texts {
		t, err := ParseTag(text)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(tags, t) {
			tags = append(tags, t)
		}
	}
	return tags, nil
}

func checkPath(verb, p string) error {
	switch {
	case p == "":
		return fmt.Errorf("the path is missing; write it as %s:/absolute/path", verb)
	case len(p) > MaxTagPath:
		return fmt.Errorf("the path is %d bytes long, more than %d", len(p), MaxTagPath)
	case !utf8.ValidString(p):
		return fmt.Errorf("the path is not valid UTF-8")
	case strings.ContainsFunc(p, unicode.IsControl):
		return fmt.Errorf("the path holds a control character")
	case !norm.NFC.IsNormalString(p):
		return fmt.Errorf("the path is not in Unicode normal form C; write it as %q", norm.NFC.String(p))
	case !path.IsAbs(p):
		return fmt.Errorf("the path is not absolute")
	case path.Clean(p) != p:
		return fmt.Errorf("the path is not clean; write it as %s", path.Clean(p))
	}
	return nil
}

// suggestTag says which permission a word was probably meant to be, or which there are.
func suggestTag(word string) string {
	verbs := []string{Network.verb, Workspace.verb, Events.verb, verbRead, verbWrite}
	written := []string{Network.verb, Workspace.verb, Events.verb, verbRead + ":/absolute/path", verbWrite + ":/absolute/path"}
	if at := slices.Index(verbs, Nearest(word, verbs)); at >= 0 {
		return "did you mean " + written[at] + "?"
	}
	return "there are " + strings.Join(written, ", ")
}

// String formats a tag for [ParseTag].
func (t Tag) String() string {
	if t.path == "" {
		return t.verb
	}
	return t.verb + ":" + t.path
}

// Path returns the absolute path of the tag, or empty.
func (t Tag) Path() string { return t.path }

// Covers reports whether holding t permits what u asks. It is lexical, by path segment, and write implies read; symbolic
// links must be checked when the file is accessed.
func (t Tag) Covers(u Tag) bool {
	same := t.verb == u.verb || (t.verb == verbWrite && u.verb == verbRead)
	return same && t.verb != "" && Within(t.path, u.path)
}

// Reaches reports whether t permits a part of what u does: u covers it, or would in its own folder, which t contains.
func (t Tag) Reaches(u Tag) bool {
	return u.Covers(t) || t.path != "" && u.path != "" && Within(t.path, u.path) && u.Covers(Tag{t.verb, u.path})
}

// Touches reports whether t reaches the given clean absolute path, something below it, or a folder that contains it.
func (t Tag) Touches(p string) bool { return t.path != "" && (Within(t.path, p) || Within(p, t.path)) }

// overlaps reports whether holding t and holding u permit anything in common: one path contains the other, and both tags
// allow at least reading.
func (t Tag) overlaps(u Tag) bool { return t == u || (u.path != "" && t.Touches(u.path)) }

// Within reports whether inner equals outer or lies in it. Both are clean and absolute.
func Within(outer, inner string) bool {
	return inner == outer || outer == "/" || strings.HasPrefix(inner, outer+"/")
}

// Describe describes the tag in words, as in "write access to /srv/www".
func (t Tag) Describe(in i18n.Language) string {
	switch t.verb {
	case Network.verb:
		return in.Text("network access")
	case Workspace.verb:
		return in.Text("workspace write access")
	case Events.verb:
		return in.Text("events access")
	case verbRead:
		return t.describeWithPath("read access to %s", in)
	case verbWrite:
		return t.describeWithPath("write access to %s", in)
	}
	return in.Text("nothing")
}

// describeWithPath is what a tag opens, with its path unless a chat shows no more than titles.
func (t Tag) describeWithPath(opens i18n.Phrase, in i18n.Language) string {
	text := in.Sprintf(opens, t.path)
	if t.path == "" {
		text, _, _ = strings.Cut(text, in.Text(" to "))
	}
	return text
}

// DescribeTags describes several tags in words, separated by commas.
func DescribeTags(tags []Tag) string {
	all := make([]string, len(tags))
	for i, t := range tags {
		all[i] = t.Describe(i18n.English)
	}
	return strings.Join(all, ", ")
}

// Missing returns the tags of wanted that none of held covers, in order.
func Missing(wanted, held []Tag) []Tag {
	var missing []Tag
	for _, w := range wanted {
		if !slices.ContainsFunc(held, func(h Tag) bool { return h.Covers(w) }) {
			missing = append(missing, w)
		}
	}
	return missing
}

// MarshalText encodes a tag as a string, for JSON and the store.
func (t Tag) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText decodes a tag with [ParseTag].
func (t *Tag) UnmarshalText(text []byte) (err error) {
	*t, err = ParseTag(string(text))
	return err
}
