package main

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/daycared/daycared/connectors/card"
)

// withOwnRows are the commands whose output is not for a reader of rows: they have a screen of their own, or print what
// is pasted or read by a program.
var withOwnRows = []string{
	"serve", "inbox", "demo", "setup", "pair", "link", "mcp", "hook", "run", "connect", "completion", "reference", "config show",
}

// fit has what a command says to a terminal wrapped at words; flush writes what is left in the end. Nothing is wrapped
// where it goes to a file or a pipe.
func (c *CLI) fit(cmd *cobra.Command, args []string) (flush func()) {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	if slices.Contains(withOwnRows, path) || slices.Contains(args, "--json") {
		return func() {}
	}
	var rows []*fitted
	wrapped := func(w io.Writer) io.Writer {
		if widthOf(w) == 0 {
			return w
		}
		f := &fitted{to: w, width: widthOf(w)}
		rows = append(rows, f)
		return f
	}
	c.Out, c.Err = wrapped(c.Out), wrapped(c.Err)
	return func() {
		for _, f := range rows {
			f.flush()
		}
	}
}

// widthOf is how many cells a row of a terminal has, 0 of anything else.
func widthOf(w io.Writer) int {
	f, isFile := w.(*os.File)
	if !isFile {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 10 { // one that small does not say what it is
		return 0
	}
	return width
}

// width is how many cells a row on standard output has, 0 where that is no terminal.
func (c *CLI) width() int {
	if f, wrapped := c.Out.(*fitted); wrapped {
		return f.width
	}
	return widthOf(c.Out)
}

// fitted writes whole rows to a terminal, wrapped.
type fitted struct {
	to    io.Writer
	width int

	mu    sync.Mutex // a command may say that it waits while it prints
	begun []byte     // of a row whose end has not come
}

func (f *fitted) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun = append(f.begun, p...)
	end := bytes.LastIndexByte(f.begun, '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	_, err := io.WriteString(f.to, wrapRows(string(f.begun[:end]), f.width))
	f.begun = f.begun[end:]
	return len(p), err
}

func (f *fitted) flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = io.WriteString(f.to, wrapRows(string(f.begun), f.width)) // whoever closed the terminal reads nothing
	f.begun = nil
}

// wrapRows breaks rows that are longer than width at spaces; what follows is set in below its beginning. A word that is
// longer stands alone and whole, so that it can be copied. A width of 0 breaks nothing.
func wrapRows(text string, width int) string {
	if width == 0 {
		return text
	}
	var b strings.Builder
	for row := range strings.Lines(text) {
		line, ended := strings.CutSuffix(row, "\n")
		words := strings.TrimLeft(line, " ")
		indent := len(line) - len(words)
		below := strings.Repeat(" ", min(indent+2, width/3))
		for first := true; ; first = false {
			if first && card.Cells(line) > width {
				line = line[:min(indent, width/3)] + words
			}
			head, rest := cutAt(line, width)
			b.WriteString(head)
			if rest == "" {
				break
			}
			b.WriteByte('\n')
			line = below + rest
		}
		if ended {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// cutAt is as much of a line as fits, up to a space that is not at its beginning, and the rest without that space.
func cutAt(line string, width int) (head, rest string) {
	if card.Cells(line) <= width {
		return line, ""
	}
	start := len(line) - len(strings.TrimLeft(line, " "))
	cut, cells := -1, 0
	for i, c := range line {
		if c == ' ' && i > start {
			if cut >= 0 && cells > width {
				break
			}
			cut = i
			if cells > width { // the first word is too long by itself
				break
			}
		}
		cells += card.Cells(string(c))
	}
	if cut < 0 {
		return line, ""
	}
	return strings.TrimRight(line[:cut], " "), strings.TrimLeft(line[cut:], " ")
}
