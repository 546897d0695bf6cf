package hooks

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/acts"
	"github.com/daycared/daycared/permissions/edits"
)

// maxInline is the maximum size in bytes of an input that fits a question unchanged. A question has at most 64 KiB in all.
const maxInline = 32 << 10

// maxRead is the maximum size in bytes of a file that is read to show what stands around a change.
const maxRead = 8 << 20

// ReadContext reads, on this machine, the file that the call changes, those that it follows and the history of the agent's session, and
// adds what people need of them to the question. What cannot be read, or is no plain text file, is left out.
func (c *Call) ReadContext() {
	r := &c.Request
	c.lookAtSkills()
	c.lookAtServer()
	c.lookElsewhere()
	title, prompt := titleAndPrompt(newest(c.history))
	r.SessionTitle, r.LastPrompt = cmp.Or(r.SessionTitle, title), cmp.Or(r.LastPrompt, prompt)
	e, ok := edits.Of(r.Tool, r.Input)
	if !ok || r.AffectedPath == "" || r.AffectedPath != affected(r.Cwd, e.Path) {
		return
	}
	text, whole, err := readFile(r.AffectedPath, maxRead)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.Rows = e.Around("", false)
	case whole && utf8.ValidString(text) && !strings.Contains(text, "\x00"):
		r.Rows = e.Around(text, true)
	}
}

// readFile returns the beginning of a plain file, of so many bytes at most. whole is false if there is more, or it cannot be read.
func readFile(name string, most int64) (text string, whole bool, err error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the account's own; a pipe would wait for its writer
	if err != nil {
		return "", false, err
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", false, err
	}
	read, err := io.ReadAll(io.LimitReader(f, most+1))
	return string(read), err == nil && int64(len(read)) <= most, err
}

// lookElsewhere says of a call in which Gemini CLI is to change a file that is not there that it may change another one: it looks for
// one whose name ends so in all of its folders.
func (c *Call) lookElsewhere() {
	var all members
	if c.dialect != "gemini" || c.Request.Tool != "replace" || json.Unmarshal(c.Request.Input, &all) != nil {
		return
	}
	name := all.optionalText("file_path")
	if _, err := os.Lstat(filepath.Join(c.Request.Cwd, name)); err != nil && name != "" && !filepath.IsAbs(name) {
		all[acts.FileElsewhere] = json.RawMessage(`"Gemini CLI changes any file whose name ends so"`)
		c.Request.Input = all.encode()
	}
}

// writePrefixed writes text with a prefix on every line. A final newline starts no further line.
func writePrefixed(out *strings.Builder, prefix, text string) {
	if text == "" {
		return
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		out.WriteString(prefix + line + "\n")
	}
}

// fit moves an input that is too large for a question into the details, which people receive as a file. The question then
// identifies it by its hash.
func fit(r *permissions.Request) error {
	if len(r.Input) <= maxInline {
		return nil
	}
	var m members
	if json.Unmarshal(r.Input, &m) != nil {
		return fmt.Errorf("the input of %s is no object", r.Tool)
	}
	var out strings.Builder
	shortFirst := func(a, b string) int { return cmp.Or(cmp.Compare(len(m[a]), len(m[b])), cmp.Compare(a, b)) }
	for _, name := range slices.SortedFunc(maps.Keys(m), shortFirst) {
		value := string(m[name])
		if text := m.optionalText(name); text != "" {
			value = text
		}
		fmt.Fprintf(&out, "%q, %d bytes:\n", name, len(value))
		writePrefixed(&out, "    ", value)
	}
	if out.Len() > permissions.MaxDetails {
		return fmt.Errorf("the input of %s has %d bytes, more than can be shown to anybody", r.Tool, len(r.Input))
	}
	sum := sha256.Sum256(r.Input)
	r.Details = out.String()
	r.Input = json.RawMessage(fmt.Sprintf(`{"input_bytes":%d,"input_sha256":%q}`, len(r.Input), hex.EncodeToString(sum[:])))
	return nil
}
