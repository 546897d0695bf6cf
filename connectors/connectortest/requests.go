package connectortest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Request makes a pending request of a kind as an engine would: asked of to, with options, a digest, an hour to go.
// change, which may be nil, fits it to the test before options and digest are made.
func Request(
	kind permissions.Kind, to connectors.Person, number int64, change func(*permissions.Request),
) permissions.Request {
	now := time.Now().UTC().Truncate(time.Second)
	r := permissions.Request{
		ID: permissions.NewID(now), Number: number, Revision: 1, Version: permissions.DigestVersion, Kind: kind,
		Caller: permissions.Caller{Name: "token:scribe", UID: permissions.NoUID}, Session: "notes",
		Asked: []string{to.Name}, Quorum: 1, CreatedAt: now, Deadline: now.Add(time.Hour), State: permissions.Pending,
	}
	switch kind {
	case permissions.KindPermission:
		r.Tags, r.Reason = []permissions.Tag{permissions.Network}, "to fetch the docs"
	case permissions.KindTool:
		r.Tool, r.Input = "run_command", json.RawMessage(`{"command":"./publish.sh"}`)
	case permissions.KindPause:
		r.Mode, r.Message = permissions.ModeContinue, "look at notes.md"
	case permissions.KindClarification:
		r.Message, r.Choices = "announce where?", []string{"blog", "mail", "nowhere"}
	}
	if change != nil {
		change(&r)
	}
	r.Options = permissions.Offer(r, []permissions.Scope{
		permissions.Once, permissions.SessionTool, permissions.Session, permissions.For(15 * time.Minute),
	}, r.Widest)
	r.Digest = permissions.ComputeDigest(r)
	return r
}

// code is a code for the n-th request of a test.
func code(n int64) string { return permissions.Coder{}.Encode(n) }

// step makes a request one about several calls.
func step(n int) func(*permissions.Request) {
	return func(r *permissions.Request) {
		r.Tool, r.Input = "", nil
		for i := range n {
			r.Calls = append(r.Calls, permissions.Call{
				N: i + 1, Tool: "write_file", Input: json.RawMessage(fmt.Sprintf(`{"path":"notes-%d.md"}`, i+1)),
			})
		}
	}
}

func confirm(r *permissions.Request)  { r.Mode = permissions.ModeConfirm }
func highRisk(r *permissions.Request) { r.HighRisk = true }
