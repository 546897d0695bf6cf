package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// Ledger is the part of a store for runtimes of our own agents, besides the engine's.
type Ledger interface {
	engine.Store

	Commit(ctx context.Context, c agents.Commit) error
	CurrentSession(ctx context.Context, agent string) (permissions.AgentSession, bool, error)
	SessionWaiting(ctx context.Context, request permissions.ID) (permissions.AgentSession, bool, error)
	Turns(ctx context.Context, session permissions.ID) ([]agents.Turn, error)
	Post(ctx context.Context, p agents.Post) error
	Posts(ctx context.Context, session permissions.ID, limit int) ([]agents.Post, error)
	Executions(ctx context.Context, session permissions.ID, step int) ([]agents.Execution, error)
	Timetable(ctx context.Context, agent string) (agents.Timetable, bool, error)
	SetTimetable(ctx context.Context, t agents.Timetable) error
}

// ledger is the same store as [Ledger].
func ledger(t *testing.T, s engine.Store) Ledger {
	t.Helper()
	l, ok := s.(Ledger)
	if !ok {
		t.Fatalf("%T keeps no sessions", s)
	}
	return l
}

// begun is a new session of fay's.
func begun(agent string) permissions.AgentSession {
	return permissions.AgentSession{
		ID: permissions.NewID(noon), Agent: agent, Person: "fay", Status: permissions.Idle, Model: "qwen3", Version: 1,
		CreatedAt: noon, ChangedAt: noon, Step: json.RawMessage(`{"at":"PLAN","n":1}`),
	}
}

// commit stores c, which must succeed.
func commit(t *testing.T, s engine.Store, c agents.Commit) permissions.AgentSession {
	t.Helper()
	if err := ledger(t, s).Commit(t.Context(), c); err != nil {
		t.Fatalf("commit: %v", err)
	}
	return c.Session
}

// moved is a session's next version, a minute later.
func moved(s permissions.AgentSession, change ...func(*permissions.AgentSession)) permissions.AgentSession {
	s.Version++
	s.ChangedAt = s.ChangedAt.Add(time.Minute)
	for _, c := range change {
		c(&s)
	}
	return s
}

func ended(at time.Time) func(*permissions.AgentSession) {
	return func(s *permissions.AgentSession) { s.EndedAt = at }
}

func waitsFor(id permissions.ID) func(*permissions.AgentSession) {
	return func(s *permissions.AgentSession) {
		s.Status, s.Request, s.Tool = permissions.AwaitingUser, id, "run_command"
	}
}

func session(t *testing.T, s engine.Store, id permissions.ID) permissions.AgentSession {
	t.Helper()
	got, err := s.AgentSession(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// testSessions: a row is what its last commit says, and can be found.
func testSessions(t *testing.T, b Backend) {
	s := b.Open(t)
	_, err := s.AgentSession(t.Context(), "01J0000000000000000000NONE")
	refusedWith(t, err, permissions.CodeUnknown)
	first := commit(t, s, agents.Commit{Session: begun("helper")})
	child := begun("helper/research")
	child.Parent, child.Step = first.ID, nil
	commit(t, s, agents.Commit{Session: child})
	sams := begun("coder")
	sams.Person = "sam"
	commit(t, s, agents.Commit{Session: sams})
	same(t, "as it began", session(t, s, first.ID), first)

	first = commit(t, s, agents.Commit{Session: moved(first, waitsFor("01JREQUEST"), func(a *permissions.AgentSession) {
		a.Model, a.Tokens, a.Cost, a.Step = "larger", 1<<40, 12_000_000, json.RawMessage(`{"at": "WAIT_ACK"}`)
	})})
	s = b.Reopen(t, s)
	same(t, "as it went on", session(t, s, first.ID), first)
	waiting := func(id permissions.ID, want ...permissions.AgentSession) {
		t.Helper()
		got, found, err := ledger(t, s).SessionWaiting(t.Context(), id)
		if err != nil || found != (len(want) > 0) || (found && got.ID != want[0].ID) {
			t.Errorf("for %q waits %v %s, %v", id, found, got.ID, err)
		}
	}
	waiting("01JREQUEST", first)
	waiting("01JANOTHER")
	waiting("")

	first = commit(t, s, agents.Commit{Session: moved(first, ended(noon.Add(time.Hour)))})
	waiting("01JREQUEST")
	same(t, "as it ended", session(t, s, first.ID), first)
	for _, c := range []struct {
		person string
		want   []permissions.AgentSession
	}{{"", byID(first, child, sams)}, {"fay", byID(first, child)}, {"sam", byID(sams)}, {"kim", nil}} {
		got, err := s.AgentSessions(t.Context(), c.person, "", 9)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "the sessions of "+c.person, got, c.want)
		for i := range got {
			page, err := s.AgentSessions(t.Context(), c.person, got[i].ID, 1)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "a page", page, got[i+1:min(i+2, len(got))])
		}
	}
}

// byID sorts sessions by id, which is random for those of one moment.
func byID(all ...permissions.AgentSession) []permissions.AgentSession {
	for i := range all {
		for k := i; k > 0 && all[k].ID < all[k-1].ID; k-- {
			all[k], all[k-1] = all[k-1], all[k]
		}
	}
	return all
}

// testOpenSessions: the open sessions, and the newest of each agent.
func testOpenSessions(t *testing.T, b Backend) {
	s := b.Open(t)
	current := func(agent string, want permissions.ID) {
		t.Helper()
		got, found, err := ledger(t, s).CurrentSession(t.Context(), agent)
		if err != nil || found != (want != "") || got.ID != want {
			t.Errorf("the current session of %s is %s, %v; want %s", agent, got.ID, err, want)
		}
	}
	current("helper", "")
	older := commit(t, s, agents.Commit{Session: begun("helper")})
	newer := commit(t, s, agents.Commit{Session: begun("helper")})
	other := commit(t, s, agents.Commit{Session: begun("coder")})
	current("helper", newer.ID)
	current("coder", other.ID)
	open := func(after permissions.ID, limit int) []permissions.AgentSession {
		t.Helper()
		got, err := ledger(t, s).OpenSessions(t.Context(), after, limit)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	all := byID(older, newer, other)
	same(t, "what goes on", open("", 9), all)
	same(t, "a page", open(all[0].ID, 1), all[1:2])
	newer = commit(t, s, agents.Commit{Session: moved(newer, ended(noon))})
	current("helper", older.ID)
	same(t, "what still goes on", open("", 9), byID(older, other))
	commit(t, s, agents.Commit{Session: moved(older, ended(noon))})
	current("helper", "")
}

// testStale: of two commits made from the same row one is stored completely, and the other not at all.
func testStale(t *testing.T, b Backend) {
	s := b.Open(t)
	first := commit(t, s, agents.Commit{Session: begun("helper")})
	missing := moved(begun("helper"))
	skips := moved(moved(first))
	for what, stale := range map[string]permissions.AgentSession{
		"is there already": first, "was never there": missing, "skips a version": skips,
	} {
		err := ledger(t, s).Commit(t.Context(), agents.Commit{
			Session: stale, Turns: []agents.Turn{{Content: []byte(`"lost"`)}}, Records: []permissions.Record{{Type: "LOST"}},
		})
		if !errors.Is(err, agents.ErrStale) || errors.Is(err, permissions.ErrBroken) {
			t.Errorf("one that %s: %v", what, err)
		}
	}
	if n := len(entries(t, s)) + len(turns(t, s, first.ID)); n != 0 {
		t.Errorf("%d turns and records of what was not stored", n)
	}

	const racers = 8
	for version := range 5 {
		before := session(t, s, first.ID)
		var won atomic.Int32
		var group sync.WaitGroup
		for n := range racers {
			group.Go(func() {
				err := ledger(t, s).Commit(t.Context(), agents.Commit{
					Session: moved(before, func(a *permissions.AgentSession) { a.Tool = fmt.Sprint(n) }),
					Turns:   []agents.Turn{{Content: fmt.Appendf(nil, "%d", n), At: noon}},
				})
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, agents.ErrStale):
					t.Error(err)
				}
			})
		}
		group.Wait()
		after := session(t, s, first.ID)
		all := turns(t, s, first.ID)
		if won.Load() != 1 || after.Version != before.Version+1 || len(all) != version+1 ||
			string(all[version].Content) != after.Tool {
			t.Errorf("%d won; version %d after %d, %d turns, the last %s, tool %s",
				won.Load(), after.Version, before.Version, len(all), all[len(all)-1].Content, after.Tool)
		}
	}
}

func turns(t *testing.T, s engine.Store, id permissions.ID) []agents.Turn {
	t.Helper()
	all, err := ledger(t, s).Turns(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func said(words ...string) (all []agents.Turn) {
	for i, w := range words {
		all = append(all, agents.Turn{Content: json.RawMessage(w), At: noon.Add(time.Duration(i) * time.Second)})
	}
	return all
}

// testTurns: a transcript keeps its order and numbers, even when a summary replaces its start.
func testTurns(t *testing.T, b Backend) {
	s := b.Open(t)
	other := commit(t, s, agents.Commit{Session: begun("coder"), Turns: said(`"of another"`)})
	a := commit(t, s, agents.Commit{Session: begun("helper"), Turns: said(`{"role":"user","text":"<hi> & \u202e"}`, `2`)})
	a = commit(t, s, agents.Commit{Session: moved(a), Turns: said(`3`), Drops: 0})
	want := said(`{"role":"user","text":"<hi> & \u202e"}`, `2`, `3`)
	want[2].At = noon
	number := func(from int64, all []agents.Turn) []agents.Turn {
		for i := range all {
			all[i].Seq = from + int64(i)
		}
		return all
	}
	same(t, "the transcript", turns(t, s, a.ID), number(1, want))
	a = commit(t, s, agents.Commit{Session: moved(a), Turns: said(`"summary"`), Drops: 9})
	same(t, "the summary", turns(t, s, a.ID), number(4, said(`"summary"`)))
	prune(t, s, permissions.Keep{Payloads: day}, noon.Add(30*day), 1)
	a = commit(t, s, agents.Commit{Session: moved(a), Drops: 4})
	prune(t, s, permissions.Keep{Payloads: day}, noon.Add(30*day), 1)
	s = b.Reopen(t, s)
	commit(t, s, agents.Commit{Session: moved(a), Turns: said(`5`)})
	same(t, "no number comes again", turns(t, s, a.ID), number(5, said(`5`)))
	same(t, "the other's", turns(t, s, other.ID), number(1, said(`"of another"`)))
}

func posts(t *testing.T, s engine.Store, id permissions.ID, limit int, want ...agents.Post) []agents.Post {
	t.Helper()
	got, err := ledger(t, s).Posts(t.Context(), id, limit)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(agents.Post{}, "Number"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("what waits (-want +got):\n%s", diff)
	}
	return got
}

// testPosts: posts wait in order until a commit takes them, duplicates are dropped, and their number is bounded.
func testPosts(t *testing.T, b Backend) {
	s := b.Open(t)
	a := commit(t, s, agents.Commit{Session: begun("helper")})
	other := commit(t, s, agents.Commit{Session: begun("coder")})
	post := func(id permissions.ID, n int) agents.Post {
		return agents.Post{
			Session: id, Key: fmt.Sprint("key ", n), From: "fay", Text: fmt.Sprint("text ", n), Silent: n%2 == 1, Chain: n,
			At: noon.Add(time.Duration(n) * time.Second),
		}
	}
	give := func(p agents.Post) {
		t.Helper()
		if err := ledger(t, s).Post(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 3 {
		give(post(a.ID, n))
	}
	give(post(other.ID, 1))
	again := post(a.ID, 1)
	again.Text = "another text"
	give(again)
	posts(t, s, a.ID, 2, post(a.ID, 0), post(a.ID, 1))
	all := posts(t, s, a.ID, 9, post(a.ID, 0), post(a.ID, 1), post(a.ID, 2))
	others := posts(t, s, other.ID, 9, post(other.ID, 1))

	a = commit(t, s, agents.Commit{Session: moved(a), Taken: []int64{all[0].Number, all[2].Number, others[0].Number}})
	s = b.Reopen(t, s)
	give(post(a.ID, 2)) // repeated after it was taken
	posts(t, s, a.ID, 9, post(a.ID, 1))
	posts(t, s, other.ID, 9, post(other.ID, 1)) // not a's

	keyless, unknown := post(a.ID, 7), post("01J0000000000000000000NONE", 7)
	keyless.Key = ""
	refusedWith(t, ledger(t, s).Post(t.Context(), keyless), permissions.CodeInvalid)
	refusedWith(t, ledger(t, s).Post(t.Context(), unknown), permissions.CodeUnknown)
	commit(t, s, agents.Commit{Session: moved(other, ended(noon))})
	refusedWith(t, ledger(t, s).Post(t.Context(), post(other.ID, 8)), permissions.CodeUnknown)
	const most = 1000
	whole := most - 1
	for n := range whole / 2 {
		p := post(a.ID, 10+n)
		p.From = "agent:coder"
		give(p)
	}
	for _, from := range []string{"agent:coder", ""} { // only the person may use the rest
		p := post(a.ID, 9)
		p.From = from
		refusedWith(t, ledger(t, s).Post(t.Context(), p), permissions.CodeLimit)
	}
	for n := range whole - whole/2 {
		give(post(a.ID, 10+whole/2+n))
	}
	refusedWith(t, ledger(t, s).Post(t.Context(), post(a.ID, 10+most)), permissions.CodeLimit)
	give(post(a.ID, 10)) // a duplicate
}

// testTimetables: the last one set counts.
func testTimetables(t *testing.T, b Backend) {
	s := b.Open(t)
	if tt, found, err := ledger(t, s).Timetable(t.Context(), "nightly"); found || err != nil {
		t.Errorf("%v, %v", tt, err)
	}
	for _, want := range []agents.Timetable{
		{Agent: "nightly", Next: noon}, {Agent: "weekly", Next: noon}, {Agent: "nightly", Next: noon.Add(day), Asked: "01J"},
	} {
		if err := ledger(t, s).SetTimetable(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		s = b.Reopen(t, s)
		got, found, err := ledger(t, s).Timetable(t.Context(), want.Agent)
		if err != nil || !found {
			t.Fatalf("found %v, %v", found, err)
		}
		same(t, "the timetable", got, want)
	}
}
