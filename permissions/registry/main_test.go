package registry

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/daycared/daycared/permissions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is when every request of these tests is opened.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// must returns the value of a call that cannot fail.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// pending is a row as the engine drafts it: r, to be answered by fay or sam.
func pending(r permissions.Request) permissions.Request {
	r.ID, r.Number, r.Revision, r.Version = permissions.NewID(noon), 1, 1, permissions.DigestVersion
	r.State, r.CreatedAt, r.Deadline = permissions.Pending, noon, noon.Add(15*time.Minute)
	r.Caller = permissions.Caller{Name: "agent:scribe", UID: permissions.NoUID}
	r.Asked, r.Quorum = []string{"fay", "sam"}, 1
	r.Digest = permissions.ComputeDigest(r)
	everyScope := []permissions.Scope{
		permissions.Once, permissions.SessionTool, permissions.Session, permissions.For(15 * time.Minute), permissions.Always,
	}
	r.Options = permissions.Offer(r, everyScope, permissions.Scope{})
	return r
}

// The requests that most tests are about.
func permissionRequest() permissions.Request {
	return pending(permissions.Request{
		Kind: permissions.KindPermission, Tags: must(permissions.ParseTags([]string{"@network", "@write:/srv/www"})),
		Reason: "deploy", Session: "s1",
	})
}

func toolRequest() permissions.Request {
	return pending(permissions.Request{
		Kind: permissions.KindTool, Tool: "write_file", Input: []byte(`{"path":"a"}`), Session: "s1",
	})
}

// theirs is r as asked by an agent that the daemon does not run.
func theirs(r permissions.Request) permissions.Request {
	r.Caller = permissions.Caller{Name: "token:scribe", UID: permissions.NoUID}
	return r
}

func clarification() permissions.Request {
	return pending(permissions.Request{
		Kind: permissions.KindClarification, Message: "where?", Choices: []string{"blog", "mail", "nowhere"},
	})
}

// vote is a person's answer, a minute after noon.
func vote(by string, a permissions.Answer) permissions.Cast {
	return permissions.Cast{Really: true, Vote: permissions.Vote{By: by, Via: "terminal", Answer: a, At: noon.Add(time.Minute)}}
}
