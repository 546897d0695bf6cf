package engine_test

import (
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

func asking(tags ...permissions.Tag) permissions.Request {
	return permissions.Request{Kind: permissions.KindPermission, Tags: tags, Reason: "x"}
}

// The first matching route says who is asked and for how long. A claimed name matches only a star.
func TestRouteFirstMatchWins(t *testing.T) {
	srv, err := permissions.ParseTag("@write:/srv")
	if err != nil {
		t.Fatal(err)
	}
	below, err := permissions.ParseTag("@read:/srv/www")
	if err != nil {
		t.Fatal(err)
	}
	s := usual()
	s.Routes = []engine.Route{
		{Agents: []string{"uid:1000"}, Tags: []permissions.Tag{srv}, Ask: []string{"sam"}, Timeout: 2 * time.Hour},
		{Tools: []string{"git_*"}, Ask: []string{"sam"}},
		{Kinds: []permissions.Kind{permissions.KindPause}, Ask: []string{"sam"}},
		{Agents: []string{"deploy-*"}, Ask: []string{"sam"}},
		{Agents: []string{"*"}, Ask: []string{"fay"}},
	}
	claimed := network("x")
	claimed.Agent, claimed.Claimed = "deploy-1", true
	step := tool("", "")
	step.Tool, step.Input = "", nil
	step.Calls = []permissions.Call{{Tool: "git_push", Input: json.RawMessage("{}")}, {Tool: "rm", Input: json.RawMessage("{}")}}
	for _, c := range []struct {
		name    string
		q       permissions.Request
		asked   string
		timeout time.Duration
	}{
		{"by tag, below the route's", asking(below), "sam", 2 * time.Hour},
		{"a tag besides", asking(below, permissions.Network), "fay", 15 * time.Minute},
		{"by tool", tool("git_push", "{}"), "sam", 15 * time.Minute},
		{"every call of a step has to match", step, "fay", 15 * time.Minute},
		{"by kind", permissions.Request{Kind: permissions.KindPause, Mode: permissions.ModeConfirm, Message: "?"}, "sam", 15 * time.Minute},
		{"a claimed name", claimed, "fay", 15 * time.Minute},
	} {
		t.Run("C5/"+c.name, func(t *testing.T) {
			m := connectortest.NewMemory(fayAt("memory"), nil)
			st := newEnv(t, s, m)
			call := st.ask(t.Context(), c.q)
			r := st.shown(m, 1).Request
			if r.Asked[0] != c.asked || r.Timeout() != c.timeout {
				t.Errorf("asked %s for %s", r.Asked, r.Timeout())
			}
			if _, err := st.Withdraw(t.Context(), self, r.ID); err != nil {
				t.Fatal(err)
			}
			st.get(call)
		})
	}
}

// A step of several calls is one prompt, and each call is answered separately.
func TestStepCallByCall(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	q := permissions.Request{Kind: permissions.KindTool, Calls: []permissions.Call{
		{Tool: "write_file", Input: json.RawMessage(`{"b":1, "a":2}`)}, {Tool: "fetch_url", Input: json.RawMessage(`{}`)},
	}}
	call := st.ask(t.Context(), q)
	card := st.shown(m, 1)
	if got := string(card.Request.Calls[0].Input); got != `{"a":2,"b":1}` {
		t.Errorf("shown %s", got)
	}
	for n, a := range []permissions.Answer{allow(), permissions.Deny} {
		if _, err := m.Do(t.Context(), connectors.Decision{Request: card.Request.ID, Answer: a, Call: n + 1}); err != nil {
			t.Fatal(err)
		}
	}
	r := st.get(call)
	if r.State != permissions.Approved || r.Calls[0].Answer != allow() || r.Calls[1].Answer != permissions.Deny {
		t.Errorf("%s: %+v", r.State, r.Calls)
	}
	q.Calls[1].Input = json.RawMessage(`{"a":1,"a":2}`)
	_, err := st.Ask(t.Context(), self, q)
	refused(t, err, permissions.CodeInvalid)
}

// Three wrong tries take the first option, marked as nobody's.
func TestDefaultedClarification(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	q := permissions.Request{Kind: permissions.KindClarification, Message: "where?", Choices: []string{"blog", "mail"}}
	call := st.ask(t.Context(), q)
	if _, err := m.Do(t.Context(), connectors.Decision{Request: st.shown(m, 1).Request.ID, Default: true}); err != nil {
		t.Fatal(err)
	}
	r := st.get(call)
	want := "blog\n(no valid answer in three tries; first option taken)"
	if got := permissions.Result(r); got.Text != want || got.Exit != 4 || r.DecidedBy != "" {
		t.Errorf("%q, exit %d, by %q", got.Text, got.Exit, r.DecidedBy)
	}
}

// A call cannot take the place of another caller's, nor find its request by id.
func TestAskByAnothersID(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	q := network("x")
	q.ID, q.Call = permissions.NewID(time.Now()), "call-1"
	call := st.ask(t.Context(), q)
	r := st.shown(m, 1).Request
	if r.ID != q.ID {
		t.Errorf("the proposed id was not taken: %s", r.ID)
	}
	_, err := st.Ask(t.Context(), permissions.CallerUID(askerUID+1), q)
	refused(t, err, permissions.CodeUnknown)
	if _, err := st.Withdraw(t.Context(), self, r.ID); err != nil {
		t.Fatal(err)
	}
	st.get(call)
	q.ID, q.Call = "01ARZ3NDEKTSV4RRFFQ69G5FAV", "call-2" // of 2016
	call = st.ask(t.Context(), q)
	if r := st.shown(m, 2).Request; r.ID == q.ID {
		t.Error("an id of long ago was taken")
	}
	if _, err := st.Withdraw(t.Context(), self, st.shown(m, 2).Request.ID); err != nil {
		t.Fatal(err)
	}
	st.get(call)
}

// An approval that was taken back before its call returned is not found.
func TestAskFindsItsApprovalTakenBack(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	c, leave := withCancel(t.Context())
	q := network("x")
	q.ID, q.Key = permissions.NewID(time.Now()), "k"
	call := st.ask(c, q)
	id := st.shown(m, 1).Request.ID
	st.waiting(id, 1)
	leave()
	if a := <-call; !errors.Is(a.err, c.Err()) {
		t.Fatal(a.err)
	}
	if _, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: allow()}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.rows.Apply(t.Context(), id, permissions.Void{By: "fay", Via: "cli", At: st.now()}); err != nil {
		t.Fatal(err)
	}
	if r := st.get(st.ask(t.Context(), q)); permissions.Result(r).Text != "Permission was given and taken back before it was used." {
		t.Errorf("%s: %s", r.State, permissions.Result(r).Text)
	}
}

// After a restart, callers have a minute to return before prompts say that nobody waits.
func TestAbsenceIsToldAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := connectortest.NewMemory(fayAt("memory"), nil)
		st := &env{t: t, dir: t.TempDir(), settings: usual(), people: []connectors.Connector{m}}
		st.open()
		c, kill := withCancel(t.Context())
		call := st.ask(c, network("x"))
		id := st.shown(m, 1).Request.ID
		st.waiting(id, 1)
		kill()
		<-call
		st.restart(connectortest.NewMemory(fayAt("memory"), nil)) // before any prompt says so
		defer func() { st.stop() }()
		<-time.After(59 * time.Second)
		if r, err := st.rows.Read(t.Context(), id); err != nil || !r.LeftAt.IsZero() {
			t.Errorf("told after less than a minute: %s, %v", r.LeftAt, err)
		}
		<-time.After(2 * time.Second)
		synctest.Wait()
		if r, err := st.rows.Read(t.Context(), id); err != nil || r.LeftAt.IsZero() {
			t.Errorf("nobody was told, %v", err)
		}
	})
}

// The id of one question does not answer another.
func TestAskByIDWithOtherContent(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), connectortest.Always(allow()))
	st := newEnv(t, usual(), m)
	q := network("x")
	q.Key = "k"
	q.ID = st.get(st.ask(t.Context(), q)).ID
	other := tool("run_command", `{"command":"rm -rf /"}`)
	other.ID = q.ID
	_, err := st.Ask(t.Context(), self, other)
	refused(t, err, permissions.CodeKeyTaken)
	if r := st.get(st.ask(t.Context(), q)); r.ID != q.ID {
		t.Error("the question itself was not found by its id")
	}
}

// Nobody waits longer than the route or the configuration allows: a longer timeout is shortened, also for our own
// agents' sessions.
func TestATimeoutAboveTheMostIsShortened(t *testing.T) {
	s := owned()
	s.Approvals.MaxTimeout = 30 * time.Minute
	s.Routes = []engine.Route{
		{Kinds: []permissions.Kind{permissions.KindPermission}, Ask: []string{"fay"}, Timeout: 10 * time.Minute}, {Ask: []string{"fay"}},
	}
	confirm := permissions.Request{Kind: permissions.KindPause, Mode: permissions.ModeConfirm, Message: "?", Session: "s1"}
	for _, c := range []struct {
		name         string
		q            permissions.Request
		wanted, want time.Duration
	}{
		{"below the route's", network("a"), 5 * time.Minute, 5 * time.Minute},
		{"above the route's", network("b"), time.Hour, 10 * time.Minute},
		{"above max_timeout", confirm, time.Hour, 30 * time.Minute},
	} {
		c.q.WantedTimeout, c.q.Session = c.wanted, "s1"
		t.Run("by an unknown account, "+c.name, func(t *testing.T) {
			m := newPhone(fay, "fays-phone")
			st := newEnv(t, s, m)
			st.ask(t.Context(), c.q)
			if r := st.shown(m.Memory, 1).Request; r.Timeout() != c.want {
				t.Errorf("it waits for %s", r.Timeout())
			}
		})
		t.Run("by an agent of ours, "+c.name, func(t *testing.T) {
			st := newEnv(t, s, newPhone(fay, "fays-phone"))
			if r := st.submit(helper, keyed(c.q, "1")); r.Timeout() != c.want {
				t.Errorf("it waits for %s", r.Timeout())
			}
		})
	}
}

// A pause that continues keeps its own time under a route's timeout, unless the route names its kind.
func TestARoutesTimeoutIsForQuestionsThatItNames(t *testing.T) {
	question := permissions.Request{Kind: permissions.KindClarification, Message: "?", Choices: []string{"a", "b"}}
	pause := permissions.Request{Kind: permissions.KindPause, Mode: permissions.ModeContinue, Message: "look"}
	confirm := permissions.Request{Kind: permissions.KindPause, Mode: permissions.ModeConfirm, Message: "?"}
	named := []permissions.Kind{permissions.KindClarification, permissions.KindPause}
	for _, c := range []struct {
		name  string
		kinds []permissions.Kind
		route time.Duration
		q     permissions.Request
		want  time.Duration
	}{
		{"a question", nil, 4 * time.Hour, question, 5 * time.Minute},
		{"a question that is named", named, 4 * time.Hour, question, 4 * time.Hour},
		{"a question, a short route", nil, time.Minute, question, time.Minute},
		{"a pause that continues", nil, 4 * time.Hour, pause, 15 * time.Minute},
		{"a pause that is named", named, 4 * time.Hour, pause, 4 * time.Hour},
		{"a pause that confirms", nil, 4 * time.Hour, confirm, 4 * time.Hour},
		{"a permission", nil, 4 * time.Hour, network("x"), 4 * time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := usual()
			s.Routes = []engine.Route{{Kinds: c.kinds, Ask: []string{"fay"}, Timeout: c.route}}
			m := connectortest.NewMemory(fayAt("memory"), nil)
			st := newEnv(t, s, m)
			st.ask(t.Context(), c.q)
			if r := st.shown(m, 1).Request; r.Timeout() != c.want {
				t.Errorf("it waits for %s", r.Timeout())
			}
		})
	}
}

// TestWhatAChatShows says that a route, or a channel, keeps what is asked for out of chats, and out of nothing else.
func TestWhatAChatShows(t *testing.T) {
	r := network("plum")
	for _, c := range []struct {
		name, channel string
		route         bool
		titles        map[string]bool
		only          bool
	}{
		{"everything", "telegram", false, nil, false},
		{"a channel's titles", "telegram", false, map[string]bool{"telegram": true}, true},
		{"another channel's titles", "whatsapp", false, map[string]bool{"telegram": true}, false},
		{"a route's titles", "whatsapp", true, nil, true},
		{"the terminal", "terminal", true, map[string]bool{"terminal": true}, false},
		{"the inbox", "admin", true, map[string]bool{"telegram": true}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := usual()
			s.Routes, s.OnlyTitles = []engine.Route{{Ask: []string{"fay"}, OnlyTitle: c.route}}, c.titles
			if shown := s.Shown(r, c.channel); shown.OnlyTitle != c.only || (shown.Reason == "") != c.only {
				t.Errorf("shown: %+v", shown)
			}
		})
	}
}
