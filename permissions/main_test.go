package permissions

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is when every request of these tests is opened, and dusk its deadline.
var (
	noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	dusk = noon.Add(15 * time.Minute)
)

// must returns the value of a call that cannot fail.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func tags(texts ...string) []Tag { return must(ParseTags(texts)) }

// everyScope is configured in these tests.
var everyScope = []Scope{Once, SessionTool, Session, For(15 * time.Minute), Always}

// pending is a row as the engine drafts it: r, to be answered by fay or sam, with every scope on offer.
func pending(r Request) Request {
	r.ID, r.Number, r.Revision, r.Version = NewID(noon), 1, 1, DigestVersion
	r.State, r.CreatedAt, r.Deadline = Pending, noon, dusk
	if r.Caller.Name == "" {
		r.Caller = Caller{Name: "agent:scribe", UID: NoUID}
	}
	r.Asked, r.Quorum = []string{"fay", "sam"}, max(r.Quorum, 1)
	r.Digest = ComputeDigest(r)
	r.Options = Offer(r, everyScope, Scope{})
	return r
}

// The requests that most tests are about.
func permissionRequest() Request {
	return pending(Request{
		Kind: KindPermission, Tags: tags("@network", "@write:/srv/www"), Reason: "deploy", Session: "s1",
	})
}

func toolRequest() Request {
	return pending(Request{Kind: KindTool, Tool: "write_file", Input: []byte(`{"path":"a"}`), Session: "s1"})
}

// suggesting is what a hook asks whose agent suggests two changes of its own permissions.
func suggesting() Request {
	return pending(Request{
		Kind: KindTool, Tool: "Bash", Input: []byte(`{"command":"ls"}`), Session: "s1", Hook: "claude-code", Choices: []string{"add a", "add b"},
	})
}

// theirs is r as asked by an agent that the daemon does not run.
func theirs(r Request) Request {
	r.Caller = Caller{Name: "token:scribe", UID: NoUID}
	return r
}

func stepRequest() Request {
	return pending(Request{Kind: KindTool, Session: "s1", Calls: []Call{
		{N: 1, Tool: "write_file", Input: []byte(`{"path":"a"}`)},
		{N: 2, Tool: "fetch_url", Input: []byte(`{"url":"b"}`)},
		{N: 3, Tool: "write_file", Input: []byte(`{"path":"c"}`)},
	}})
}

// endingRequest is a step of which one call ends the run if it is denied.
func endingRequest() Request {
	r := stepRequest()
	r.Calls[1].EndsRun = true
	return r
}

func pauseRequest() Request {
	return pending(Request{Kind: KindPause, Mode: ModeContinue, Message: "look"})
}

func confirmRequest() Request {
	return pending(Request{Kind: KindPause, Mode: ModeConfirm, Message: "go?"})
}

func clarification() Request {
	return pending(Request{Kind: KindClarification, Message: "where?", Choices: []string{"blog", "mail", "nowhere"}})
}

// vote is a person's answer, a minute after noon.
func vote(by string, a Answer) Cast {
	return Cast{Really: true, Vote: Vote{By: by, Via: "terminal", Answer: a, At: noon.Add(time.Minute)}}
}

func voteOn(call int, by string, a Answer) Cast {
	c := vote(by, a)
	c.Vote.Call = call
	return c
}

// after returns the row after events that Step must all accept.
func after(t testing.TB, r Request, events ...Transition) Request {
	t.Helper()
	for _, e := range events {
		c, err := Step(r, e)
		if err != nil {
			t.Fatalf("Step(%s, %T %+v): %v", r.State, e, e, err)
		}
		r = c.After
	}
	return r
}
