package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/permissions"
)

// dialogue is a conversation on a terminal, question by question. Its errors are those of being left.
type dialogue struct {
	in  *os.File
	out io.Writer
}

// errLeft is the error of a question whose input ended before the answer.
var errLeft = &problem{Text: "left before the end", Code: codeEnded, Exit: permissions.ExitCancelled}

// say writes a row.
func (d dialogue) say(format string, args ...any) {
	fmt.Fprintln(d.out, wrapRows(fmt.Sprintf(format, args...), widthOf(d.out)))
}

// ask asks for a line; Enter alone takes what is usual.
func (d dialogue) ask(ctx context.Context, question, usual string) (string, error) {
	if usual != "" {
		question += " [" + usual + "]"
	}
	line, err := d.line(ctx, question+": ", false)
	if line == "" {
		line = usual
	}
	return line, err
}

// yes asks a question that only y or yes answers with yes, and Enter alone as usual says.
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

// secret asks for a line that is not shown.
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
