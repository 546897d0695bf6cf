package connectortest_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/permissions"
)

var (
	sam   = connectors.Person{Name: "sam", UID: permissions.NoUID, Addresses: map[string]string{"telegram": "8"}}
	tapBy = map[string]connectors.Identity{
		"fay": tapOf, "sam": {Via: "telegram", UID: permissions.NoUID, Address: "8"},
	}
)

// group is a Memory of several people that runs until the test ends, and what it handed on.
func group(t *testing.T, h connectors.Services, person func(connectors.Prompt) []connectors.Decision) *connectortest.Memory {
	m := connectortest.NewMemory(connectors.Identity{Via: "telegram", UID: permissions.NoUID}, person)
	m.Identities = tapBy
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	m.Bind(h)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
	return m
}

// prompt is a request as sent to somebody.
func prompt(t *testing.T, m *connectortest.Memory, to connectors.Person, n int64, code string) (connectors.Prompt, string) {
	t.Helper()
	p := connectors.Prompt{Request: connectortest.Request(permissions.KindPermission, to, n, nil), Code: code, To: to}
	ref, err := m.Send(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return p, ref
}

func TestMemoryReadsWhatPeopleWrite(t *testing.T) {
	h := &refuser{}
	m := group(t, h, nil)
	p, ref := prompt(t, m, fay, 1, "K7F3Q")
	other, _ := prompt(t, m, sam, 2, "SAM22")
	for _, text := range []string{"yes", "don't allow K7F3Q", "may I ask why?"} {
		if said, err := m.Writes(t.Context(), "fay", text); err != nil || len(said.Decisions) > 0 || len(h.got) > 0 {
			t.Fatalf("%q: %+v, %v", text, said, err)
		}
	}
	if err := m.Sees(t.Context(), "This goes to the agent."); err != nil {
		t.Error(err)
	}
	if _, err := m.Writes(t.Context(), "fay", "yes SAM22"); err != nil { // of which fay knows nothing
		t.Fatal(err)
	}
	if len(h.got) != 1 || h.got[0].Code != "SAM22" || h.got[0].Answer != "" || h.got[0].From != tapOf {
		t.Fatalf("handed on %+v; want only who asks about the code", h.got)
	}
	if _, err := m.Chats(t.Context(), "sam", reply.Message{Text: "👍", Quotes: "SAM22", Reaction: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Writes(t.Context(), "fay", "no K7F3Q because of it"); err != nil {
		t.Fatal(err)
	}
	want := []connectors.Decision{
		{Request: other.Request.ID, Code: "SAM22", Answer: permissions.Allow(permissions.Once), Shown: other.Request.Digest,
			From: tapBy["sam"]},
		{Request: p.Request.ID, Code: "K7F3Q", Answer: permissions.Deny, Comment: "of it", Shown: p.Request.Digest, From: tapOf},
	}
	if diff := cmp.Diff(want, h.got[1:]); diff != "" {
		t.Error(diff)
	}
	p.Request.State = permissions.Denied
	if err := m.Edit(t.Context(), ref, p); err != nil {
		t.Fatal(err)
	}
	if said, _ := m.Writes(t.Context(), "fay", "yes K7F3Q"); said.Guesses != 1 {
		t.Errorf("an answer to what is settled: %+v; want an unknown code", said)
	}
	old := reply.Message{Text: "yes SAM22", At: time.Now().Add(-time.Hour)}
	if said, _ := m.Chats(t.Context(), "sam", old); len(said.Decisions) > 0 || !strings.Contains(m.Seen(), "older than the card") {
		t.Errorf("an old message: %+v", said)
	}
	h.errs = []error{permissions.NotYours()}
	if _, err := m.Writes(t.Context(), "sam", "no SAM22"); err == nil || !strings.Contains(m.Seen(), permissions.NotYours().Text) {
		t.Errorf("Writes = %v; want the refusal, and that it is told", err)
	}
}

func TestMemoryTapsAsWhomItAsked(t *testing.T) {
	h := &signal{refuser: &refuser{}, seen: make(chan struct{}, 2)}
	m := group(t, h, connectortest.Always(permissions.Deny))
	prompt(t, m, sam, 1, "SAM22")
	<-h.seen
	prompt(t, m, fay, 2, "FAY22")
	<-h.seen
	if h.got[0].From != tapBy["sam"] || h.got[1].From != tapOf {
		t.Errorf("decided by %+v and %+v; want by sam and fay", h.got[0].From, h.got[1].From)
	}
}

// signal tells of every decision.
type signal struct {
	*refuser
	seen chan struct{}
}

func (s *signal) OnPermission(ctx context.Context, d connectors.Decision) (permissions.Request, error) {
	r, err := s.refuser.OnPermission(ctx, d)
	s.seen <- struct{}{}
	return r, err
}

func TestMemoryFailsForOnePerson(t *testing.T) {
	m := group(t, &refuser{}, nil)
	away := errors.New("away")
	m.FailFor("sam", 1, away)
	p, _ := prompt(t, m, fay, 1, "FAY22")
	p.To = sam
	if _, err := m.Send(t.Context(), p); !errors.Is(err, away) {
		t.Errorf("Send = %v; want %v", err, away)
	}
	p.Silent = true
	if _, err := m.Send(t.Context(), p); err != nil {
		t.Errorf("Send = %v after one failure", err)
	}
	if c := m.Copies(); len(c) != 2 || c[0].First.Silent || !c[1].First.Silent || c[1].First.To.Name != "sam" {
		t.Errorf("copies are %+v; want a loud one to fay and a silent one to sam", c)
	}
	m.UnreachFor("sam", away)
	if err := m.Reach(sam); !errors.Is(err, away) {
		t.Errorf("Reach(sam) = %v; want %v", err, away)
	}
	if err := m.Reach(fay); err != nil {
		t.Errorf("Reach(fay) = %v; want nil", err)
	}
	m.FailFor("sam", -1, &connectors.UnreachableError{Reason: "blocked"})
	n := connectors.Notice{To: sam, About: permissions.AboutStopped, By: "kim", Silent: true}
	if err := m.Notify(t.Context(), n); !errors.Is(err, connectors.ErrUnreachable) {
		t.Errorf("Tell = %v; want that sam is gone", err)
	}
	n.To = fay
	if err := m.Notify(t.Context(), n); err != nil {
		t.Errorf("Tell = %v", err)
	}
	if err := m.Hears(t.Context(), func(all []connectors.Notice) bool { return len(all) == 1 }); err != nil {
		t.Error(err)
	}
	if told := m.Told(); !reflect.DeepEqual(told, []connectors.Notice{n}) || !strings.Contains(m.Seen(), "stopped by kim") {
		t.Errorf("told %+v", told)
	}
}
