package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/permissions"
)

// Whole is read_file for programs that write back what they have read: it gives the lines exactly as they are, all that
// were asked for, or nothing.
func Whole(s *sandbox.Sandbox) Tool { return wholeFile{readFile{s}} }

type wholeFile struct{ readFile }

func (wholeFile) Spec() models.Tool {
	spec := readFile{}.Spec()
	spec.Description = "Read a text file of at most 1 MiB, or some of its lines, exactly as they are."
	return spec
}

func (t wholeFile) Run(ctx context.Context, p Place, input json.RawMessage, _ Plan) Outcome {
	in, err := decode[reading](input)
	if err != nil {
		return failed(err)
	}
	tag, err := p.tag("@read", in.Path)
	if err == nil {
		err = p.mustHold([]permissions.Tag{tag})
	}
	if err != nil {
		return failed(err)
	}
	was, err := contentOf(ctx, t.box, p, tag)
	switch {
	case err != nil:
		return failed(err)
	case !was.There:
		return failed(fmt.Errorf("read %s: %w", tag.Path(), errors.New("there is no such file")))
	case !isText(was.Text):
		return failed(fmt.Errorf("read %s: it is no text in UTF-8", tag.Path()))
	}
	return Outcome{Text: string(in.of(was.Text))}
}

// of are the lines of a text that are asked for.
func (in reading) of(text []byte) []byte {
	for range max(0, in.Offset-1) {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			return nil
		}
		text = text[end+1:]
	}
	if in.Limit <= 0 {
		return text
	}
	n := 0
	for range in.Limit {
		end := bytes.IndexByte(text[n:], '\n')
		if end < 0 {
			return text
		}
		n += end + 1
	}
	return text[:n]
}
