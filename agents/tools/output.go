package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/daycared/daycared/agents"
)

// How many bytes of what a call wrote are kept, and how many of them the model is told; half are of the beginning, half
// of the end.
const (
	keptBytes = 1 << 20
	toldBytes = 16 << 10
)

// ends keeps the beginning and the end of what is written to it. The zero value is ready.
type ends struct {
	head, tail []byte
	total      int
}

// Write never fails.
func (e *ends) Write(p []byte) (int, error) {
	const half = keptBytes / 2
	n := len(p)
	e.total += n
	if room := half - len(e.head); room > 0 {
		take := min(room, len(p))
		e.head, p = append(e.head, p[:take]...), p[take:]
	}
	e.tail = append(e.tail, p...)
	if len(e.tail) > 2*half { // now and then, so that each byte is moved a few times only
		e.tail = append([]byte(nil), e.tail[len(e.tail)-half:]...)
	}
	return n, nil
}

// kept is what is kept, in two parts; missing bytes lie between them.
func (e *ends) kept() (head, tail []byte, missing int) {
	tail = e.tail
	if len(tail) > keptBytes/2 {
		tail = tail[len(tail)-keptBytes/2:]
	}
	return e.head, tail, e.total - len(e.head) - len(tail)
}

// cut is text of at most so many bytes, saying what is left out.
func (e *ends) cut(most int) string {
	head, tail, missing := e.kept()
	if missing == 0 {
		head, tail = append(bytes.Clone(head), tail...), nil
	}
	if over := len(head) + len(tail) - most; over > 0 {
		if missing == 0 {
			head, tail = head[:most/2], head[len(head)-most/2:]
		} else {
			head, tail = head[:min(len(head), most/2)], tail[max(0, len(tail)-most/2):]
		}
		missing = e.total - len(head) - len(tail)
	}
	if missing == 0 {
		return readable(head)
	}
	return fmt.Sprintf("%s\n… %d bytes are left out here …\n%s", readable(head), missing, readable(tail))
}

// told is what the model is told of a stream.
func (e *ends) told(name string) (text string) {
	if e.total == 0 {
		return ""
	}
	if _, _, missing := e.kept(); missing > 0 {
		text = fmt.Sprintf("\nof %s, %d of %d bytes are not kept anywhere", name, missing, e.total)
	}
	return text + "\n" + name + ":\n" + e.cut(toldBytes)
}

// readable makes UTF-8 of what a program wrote.
func readable(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// artifact is the whole, as far as it is kept.
func (e *ends) artifact(of agents.ArtifactType) agents.Artifact {
	_, _, missing := e.kept()
	content, _ := json.Marshal(map[string]any{ // of text and numbers: it cannot fail
		"text": e.cut(keptBytes), "bytes": e.total, "missing": missing,
	})
	return agents.Artifact{Type: of, Content: content}
}
