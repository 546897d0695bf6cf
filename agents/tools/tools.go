// Package tools is what agents of ours can do in the world: files, commands, the network. A tool decides nothing: whoever
// runs it has asked. What it can reach is held by the kernel to what its [Place] says, in a process of its own
// (agents/sandbox).
package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// Place is where a tool is used: what is within its reach for this one call.
type Place struct {
	Agent        string
	Workspace    string            // absolute, without symbolic links; relative paths start here. Set by In; empty: the agent has none
	Tags         []permissions.Tag // what is held for this call; the workspace may be read, and written with @workspace
	AllowPrivate []netip.Prefix    // that fetch_url may reach, though they are private
	Search       string            // the address of the service that web_search asks
	held         *folder           // the workspace
}

// Plan is what a call would do, as people are shown it. Nothing has been done yet.
type Plan struct {
	Needs        []permissions.Tag // what has to be held for it; people are asked for what is not
	AffectedPath string            // the one file or folder that it changes or reads; empty: none
	Details      string            // what people are shown besides the input, as a diff; may be empty
	// Basis is what the plan was made from, as a file's content. Run refuses when that is another by then: what was shown
	// is what runs. It is the tool's own and kept with the call.
	Basis string
}

// Outcome is what a call did.
type Outcome struct {
	Text      string // for the model, bounded
	Error     bool
	Exit      *int              // of a command
	Artifacts []agents.Artifact // the whole of what was bounded; Step and Call are not set here
	Pause     string            // not empty: it is to be shown to the person, with this, before the model is told
}

// Tool is one tool. Implementations are safe for concurrent use and keep nothing between calls.
type Tool interface {
	// Spec is the tool as models are told of it.
	Spec() models.Tool
	// Plan looks at an input and says what the call would do, doing nothing. Within the place's tags it may look at files.
	// The error is for the model: what is wrong with the input and what would be right.
	Plan(ctx context.Context, p Place, input json.RawMessage) (Plan, error)
	// Run does it, within the place's tags. What fails is an Outcome with Error set; it never panics, and it ends soon
	// after ctx does, with all that it started.
	Run(ctx context.Context, p Place, input json.RawMessage, plan Plan) Outcome
}

// All are the tools that touch files, run commands and fetch pages, held by the walls of s.
func All(s *sandbox.Sandbox) []Tool {
	return []Tool{
		readFile{s}, listFiles{s}, searchFiles{s}, writeFile{s}, editFile{s}, runCommand{s}, fetchURL{}, webSearch{},
	}
}

// The names of what runs behind walls in a process of its own.
const (
	opContent = "tools.content"
	opLines   = "tools.lines"
	opList    = "tools.list"
	opSearch  = "tools.search"
	opPut     = "tools.put"
)

// Operations are what tools run behind walls; [sandbox.Main] has to know them.
func Operations() map[string]sandbox.Operation {
	return map[string]sandbox.Operation{
		opContent: operation(content), opLines: operation(lines), opList: operation(list), opSearch: operation(search),
		opPut: operation(put),
	}
}

// operation makes a function one that runs in another process.
func operation[In, Out any](do func(In) (Out, error)) sandbox.Operation {
	return func(input json.RawMessage) (any, error) {
		var in In
		if err := json.Unmarshal(input, &in); err != nil {
			return nil, fmt.Errorf("read what is to be done: %w", err)
		}
		out, err := do(in)
		return out, wire.Plain(err)
	}
}

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
