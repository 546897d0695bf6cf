package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"rsc.io/qr"

	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/permissions"
)

// dialogue asks questions on a terminal. Its methods return [errLeft] if the input ends.
type dialogue struct {
	in  *os.File
	out io.Writer
}

// errLeft is returned when the input ends before an answer.
var errLeft = &problem{Text: "left before the end", Code: codeEnded, Exit: permissions.ExitCancelled}

func (d dialogue) say(format string, args ...any) {
	fmt.Fprintln(d.out, wrapRows(card.Spell(permissions.EscapeControls(fmt.Sprintf(format, args...))), widthOf(d.out)))
}

// ask reads a line; an empty one means usual.
func (d dialogue) ask(ctx context.Context, question, usual string) (string, error) {
	if usual != "" {
		question += " [" + usual + "]"
	}
	line, err := d.line(ctx, question+": ", false)
	return cmp.Or(line, usual), err
}

// yes asks a yes-or-no question; y and yes mean yes, and an empty line means usual.
func (d dialogue) yes(ctx context.Context, question string, usual bool) (bool, error) {
	hint := " [y/N] "
	if usual {
		hint = " [Y/n] "
	}
	terminal.Discard(d.in)
	line, err := d.line(ctx, question+hint, false)
	switch strings.ToLower(line) {
	case "":
		return usual && err == nil, err
	case "y", "yes":
		return true, err
	}
	return false, err
}

func (d dialogue) secret(ctx context.Context, question string) (string, error) {
	line, err := d.line(ctx, question, true)
	d.say("")
	return line, err
}

func (d dialogue) line(ctx context.Context, question string, hidden bool) (string, error) {
	line, err := terminal.ReadLine(ctx, d.in, d.out, question, hidden)
	switch {
	case err == nil:
		return strings.TrimSpace(line), nil
	case ctx.Err() != nil, errors.Is(err, io.EOF):
		d.say("")
		return "", errLeft
	}
	return "", fmt.Errorf("read the answer: %w", err)
}

// quietZone is the width in modules of the light margin of a QR code; the standard says four, but readers need two.
const quietZone = 2

// qrCode draws text as a QR code, two modules per character, for light text on a dark background; empty if there is no room.
func qrCode(text string, columns int) string {
	code, err := qr.Encode(text, qr.L)
	if err != nil || code.Size+2*quietZone > columns {
		return ""
	}
	light := func(x, y int) bool { return y < code.Size+quietZone && !code.Black(x, y) } // outside the code nothing is black
	var b strings.Builder
	for y := -quietZone; y < code.Size+quietZone; y += 2 {
		for x := -quietZone; x < code.Size+quietZone; x++ {
			switch up, down := light(x, y), light(x, y+1); {
			case up && down:
				b.WriteRune('█')
			case up:
				b.WriteRune('▀')
			case down:
				b.WriteRune('▄')
			default:
				b.WriteByte(' ')
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// link prints an address, and its QR code if that fits.
func (d dialogue) link(address string) {
	d.say("\n  %s\n", address)
	columns, _, err := term.GetSize(int(d.in.Fd()))
	if err != nil {
		return
	}
	if code := qrCode(address, columns); code != "" {
		fmt.Fprintln(d.out, code)
	}
}

// withOwnRows are commands whose output is not wrapped: they have their own screen, or print what is pasted or read by programs.
var withOwnRows = []string{
	"serve", "inbox", "demo", "setup", "pair", "link", "mcp", "hook", "run", "connect", "completion", "reference", "config show",
}

// fit wraps a command's terminal output at words; flush writes an incomplete last row. Output to files and pipes is not wrapped.
func (c *CLI) fit(cmd *cobra.Command, args []string) (flush func()) {
	if slices.Contains(withOwnRows, pathOf(cmd)) || slices.Contains(args, "--json") {
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

// widthOf is the width of a terminal in cells, 0 for anything else.
func widthOf(w io.Writer) int {
	f, isFile := w.(*os.File)
	if !isFile {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 10 { // a smaller width means that it is unknown
		return 0
	}
	return width
}

// width is the width of standard output in cells, 0 if it is not a terminal.
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

	mu    sync.Mutex // output and progress are written concurrently
	begun []byte     // an incomplete row
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
	_, _ = io.WriteString(f.to, wrapRows(string(f.begun), f.width)) // the terminal may be closed
	f.begun = nil
}

func wrapRows(text string, width int) string { return card.Wrap(text, width, 2) }
