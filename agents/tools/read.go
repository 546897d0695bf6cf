package tools

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/sandbox"
)

type readFile struct{ box *sandbox.Sandbox }

type readInput struct {
	Path   string `json:"path" need:"yes" size:"1..4096" say:"the file: absolute, or relative to the workspace"`
	Offset int    `json:"offset" size:"1.." default:"1" say:"the line to begin with"`
	Limit  *int   `json:"limit" size:"1.." default:"2000" say:"how many lines; more than 2000 do not come at once"`
}

// Limits of reading a file.
const (
	maxLines    = 2000
	maxLine     = 2000      // bytes per line
	maxTold     = 64 << 10  // bytes for the model
	maxReadable = 256 << 20 // bytes of a file
)

func (readFile) spec() models.Tool {
	return models.Tool{Name: "read_file", Description: "Read a text file, by lines. At most 2000 lines and " +
		"64 KiB come at once; the rest by offset. In the workspace nobody is asked; elsewhere people are asked for read access."}
}

func (readFile) plan(_ context.Context, p Workspace, in readInput) (Plan, error) {
	return p.planReading(in.Path)
}

func (p Workspace) planReading(name string) (Plan, error) {
	tag, err := p.tag("@read", name)
	if err != nil {
		return Plan{}, err
	}
	return Plan{Needs: p.missing(tag), AffectedPath: tag.Path()}, nil
}

// linesOf is the input of lines, and chunk its result.
type (
	linesOf struct {
		Spot          spot
		Offset, Limit int
	}
	chunk struct {
		Text  string
		First int // line number, from 1
		Last  int // 0: none
		More  bool
		Cut   bool // a line was too long
	}
)

func (t readFile) run(ctx context.Context, p Workspace, in readInput, _ Plan) (Outcome, error) {
	order := linesOf{Offset: in.Offset, Limit: maxLines}
	if in.Limit != nil {
		order.Limit = min(*in.Limit, maxLines)
	}
	var c chunk
	name, err := runSandboxed(ctx, t.box, p, in.Path, opLines, func(s spot) any { order.Spot = s; return order }, &c)
	if err != nil {
		return Outcome{}, fmt.Errorf("read %s: %w", name, err)
	}
	switch {
	case c.Last == 0 && order.Offset > 1:
		return Outcome{}, fmt.Errorf("%s has fewer than %d lines", name, order.Offset)
	case c.Last == 0:
		c.Text = "(the file is empty)"
	}
	if c.Cut {
		c.Text += fmt.Sprintf("\n(lines are cut after %d bytes)", maxLine)
	}
	if c.More {
		c.Text += fmt.Sprintf("\n(lines %d to %d; more follow, with offset %d)", c.First, c.Last, c.Last+1)
	}
	return Outcome{Text: c.Text}, nil
}

func runSandboxed(
	ctx context.Context, box *sandbox.Sandbox, p Workspace, path, operation string, order func(spot) any, found any,
) (name string, err error) {
	tag, err := p.tag("@read", path)
	if err != nil {
		return path, err
	}
	if err := p.requireTags(tag); err != nil {
		return tag.Path(), err
	}
	where, walls, err := p.spot(tag)
	if err != nil {
		return tag.Path(), err
	}
	return tag.Path(), box.Do(ctx, walls, operation, order(where), found)
}

// lines reads some lines of a file, in a sandbox.
func lines(order linesOf) (c chunk, err error) {
	f, info, err := order.Spot.open()
	if err != nil {
		return c, err
	}
	defer f.Close()
	if info.Size() > maxReadable {
		return c, fmt.Errorf("it has %d bytes, more than %d", info.Size(), maxReadable)
	}
	r := bufio.NewReaderSize(io.LimitReader(f, maxReadable), maxTold)
	head, _ := r.Peek(8 << 10)
	if bytes.IndexByte(head, 0) >= 0 {
		return c, fmt.Errorf("it is no text: %d bytes", info.Size())
	}
	var text strings.Builder
	for n := 1; ; n++ {
		line, cut, err := nextLine(r)
		switch {
		case errors.Is(err, io.EOF):
			c.Text = text.String()
			return c, nil
		case err != nil:
			return c, err
		case n < order.Offset:
			continue
		case n >= order.Offset+order.Limit || text.Len()+len(line) > maxTold:
			c.Text, c.More = text.String(), true
			return c, nil
		case !isText(line) && !cut:
			return c, fmt.Errorf("line %d is no text in UTF-8", n)
		}
		if c.First == 0 {
			c.First = n
		}
		c.Last, c.Cut = n, c.Cut || cut
		text.WriteString(strings.ToValidUTF8(string(line), "\uFFFD"))
	}
}

// nextLine reads a line with its line end, and drops what exceeds the limit.
func nextLine(r *bufio.Reader) (line []byte, cut bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if keep := min(len(part), maxLine-len(line)); keep > 0 {
			line = append(line, part[:keep]...)
			cut = cut || keep < len(part)
		} else if len(part) > 0 {
			cut = true
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) > 0:
			err = nil
		}
		if cut && err == nil {
			line = append(line, '\n')
		}
		return line, cut, err
	}
}

// Whole is read_file for programs that write back what they read: it returns exactly the requested lines, or nothing.
func Whole(s *sandbox.Sandbox) Tool { return typed[readInput]{wholeFile{readFile{s}}} }

type wholeFile struct{ readFile }

func (wholeFile) spec() models.Tool {
	return models.Tool{Name: "read_file", Description: "Read a text file of at most 1 MiB, or some of its lines, exactly as they are."}
}

func (t wholeFile) run(ctx context.Context, p Workspace, in readInput, _ Plan) (Outcome, error) {
	tag, err := p.heldTag("@read", in.Path)
	if err != nil {
		return Outcome{}, err
	}
	was, err := contentOf(ctx, t.box, p, tag)
	switch {
	case err != nil:
		return Outcome{}, err
	case !was.There:
		return Outcome{}, fmt.Errorf("read %s: there is no such file", tag.Path())
	case !isText(was.Text):
		return Outcome{}, fmt.Errorf("read %s: it is no text in UTF-8", tag.Path())
	}
	return Outcome{Text: string(in.selectLines(was.Text))}, nil
}

// selectLines are the requested lines of a text.
func (in readInput) selectLines(text []byte) []byte {
	for range in.Offset - 1 {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			return nil
		}
		text = text[end+1:]
	}
	if in.Limit == nil {
		return text
	}
	n := 0
	for range *in.Limit {
		end := bytes.IndexByte(text[n:], '\n')
		if end < 0 {
			return text
		}
		n += end + 1
	}
	return text[:n]
}
