package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine/store/storetest"
	"github.com/daycared/daycared/permissions"
)

// The rules that always hold, one test each. Rule 13, about what the daemon starts, is tested where it starts things.

// An answer at the very moment of asking finds the caller waiting, and one that arrives while nobody waits is read from
// the row.
func TestRule01TheRowIsTheTruthAWaiterIsOnlyNotified(t *testing.T) {
	settings := usual()
	settings.Limits.PendingPerCaller = 0
	m := connectortest.NewMemory(fayAt("memory"), connectortest.Always(allow()))
	st := newEnv(t, settings, m)
	calls := make([]<-chan answer, 100)
	for i := range calls {
		calls[i] = st.ask(t.Context(), network(fmt.Sprint("at once ", i)))
	}
	for _, call := range calls {
		if r := st.get(call); r.State != permissions.Approved {
			t.Fatal(r.State)
		}
	}
	silent := connectortest.NewMemory(fayAt("memory"), nil)
	st.restart(silent)
	ctx, leave := context.WithCancel(t.Context())
	q := network("kept")
	q.Key = "k"
	call := st.ask(ctx, q)
	id := st.shown(silent, 1).Request.ID
	leave()
	<-call
	if _, err := silent.Do(t.Context(), connectors.Decision{Request: id, Answer: allow()}); err != nil {
		t.Fatal(err)
	}
	st.restart(connectortest.NewMemory(fayAt("memory"), nil))
	if r := st.get(st.ask(t.Context(), q)); r.ID != id || r.State != permissions.Approved {
		t.Errorf("%s of %s", r.State, r.ID)
	}
}

// Of a concurrent decision, deadline and withdrawal, one settles the request; the losers learn which.
func TestRule02OneCompareAndSetSettlesARequest(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	for i := range 20 {
		q := network("x")
		q.Tags, _ = permissions.ParseTags([]string{fmt.Sprint("@read:/srv/", i)}) // a question that was denied twice is not asked again
		call := st.ask(t.Context(), q)
		id := st.shown(m, i+1).Request.ID
		ends := make(chan permissions.State, 3)
		for _, try := range []func() (permissions.Request, error){
			func() (permissions.Request, error) {
				return m.Do(t.Context(), connectors.Decision{Request: id, Answer: allowFor(quarter), Key: fmt.Sprint("tap ", i)})
			},
			func() (permissions.Request, error) {
				return m.Do(t.Context(), connectors.Decision{Request: id, Answer: permissions.Deny})
			},
			func() (permissions.Request, error) {
				s, err := st.Withdraw(t.Context(), self, id)
				if err != nil {
					s.Request, _ = st.rows.Read(t.Context(), id)
				}
				return s.Request, err
			},
		} {
			go func() {
				r, err := try()
				var refusal *permissions.Refusal
				if err != nil && (!errors.As(err, &refusal) || refusal.Code != permissions.CodeSettled) {
					t.Errorf("a loser is told %v", err)
				}
				ends <- r.State
			}()
		}
		got := st.get(call)
		for range 3 {
			if state := <-ends; state != got.State {
				t.Fatalf("one says %s, the asker got %s", state, got.State)
			}
		}
		grants, err := st.Grants(t.Context(), boss, "", 99)
		if err != nil || (len(grants) == 1) != (got.State == permissions.Approved) {
			t.Fatalf("%s and %d grants, %v", got.State, len(grants), err)
		}
		for _, g := range grants {
			if _, err := st.Revoke(t.Context(), boss, g.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A decision's claims about the request beyond its id are ignored.
func TestRule03EverythingButIdAnswerAndWhoIsReadFromTheRow(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	call := st.ask(t.Context(), network("x"))
	r := st.shown(m, 1).Request
	for _, d := range []connectors.Decision{
		{Answer: allow(), Shown: permissions.Digest{1}},
		{Answer: allowFor(permissions.Always)}, {Answer: "allow_2000h"}, {Answer: "ALLOW_ONCE"}, {Answer: permissions.Choose(1)},
		{Answer: allow(), Call: 1}, {Answer: "", Default: true},
	} {
		d.Request = r.ID
		var refusal *permissions.Refusal
		if _, err := m.Do(t.Context(), d); !errors.As(err, &refusal) {
			t.Errorf("%+v was taken: %v", d, err)
		}
	}
	st.mustBePending(r.ID)
	if _, err := m.Do(t.Context(), connectors.Decision{Request: r.ID, Answer: allow(), Shown: r.Digest}); err != nil {
		t.Fatal(err)
	}
	st.get(call)
}

// Fifty unknown accounts press a button in the right chat: nothing changes, they are told, and it is audited up to a
// limit.
func TestRule04TheAccountIsCheckedNotTheChat(t *testing.T) {
	t.Run("A1/fifty unknown accounts", func(t *testing.T) {
		m := connectortest.NewMemory(fayAt("memory"), nil)
		st := newEnv(t, usual(), m)
		st.ask(t.Context(), network("x"))
		id := st.shown(m, 1).Request.ID
		for i := range 50 {
			unknown := connectors.Identity{Via: "memory", UID: permissions.NoUID, Address: "4242"}
			if i%2 == 0 {
				unknown = connectors.Identity{Via: "memory", UID: sam.UID} // a person, but not a recipient
			}
			_, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: allow(), From: unknown})
			refused(t, err, permissions.CodeNotYours)
		}
		st.mustBePending(id)
		entries, err := st.rows.Audit(t.Context(), "", 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		audited := 0
		for _, e := range entries {
			if e.Type == permissions.DecisionRefused && e.Request == id {
				audited++
			}
		}
		if audited < 2 || audited > 20 {
			t.Errorf("%d of 50 are audited", audited)
		}
	})
}

func TestRule05TheAskerNeverDecides(t *testing.T) {
	for _, c := range []struct {
		name    string
		caller  permissions.Caller
		from    connectors.Identity
		answer  permissions.Answer
		same    bool
		allowed bool
	}{
		{"allows at the admin socket", self, connectors.Identity{Via: "cli", UID: askerUID}, allow(), false, false},
		{"denies there", self, connectors.Identity{Via: "cli", UID: askerUID}, permissions.Deny, false, true},
		{"allows there where that is allowed", self, connectors.Identity{Via: "cli", UID: askerUID}, allow(), true, true},
		{"allows on the phone", self, connectors.Identity{Via: "telegram", UID: permissions.NoUID, Address: "17"}, allow(), false, true},
		{"allows what came over loopback from anybody", permissions.Caller{Name: "token:x", UID: permissions.AnyUID},
			connectors.Identity{Via: "cli", UID: askerUID}, allow(), false, false},
		{"allows what a token of the same account asked", permissions.Caller{Name: "token:x", UID: askerUID},
			connectors.Identity{Via: "cli", UID: askerUID}, allow(), false, false},
	} {
		t.Run("A3/"+c.name, func(t *testing.T) {
			s := usual()
			s.People = []connectors.Person{{Name: "fay", UID: askerUID, Addresses: map[string]string{"telegram": "17"}, Location: time.UTC}}
			s.AllowSameUser = c.same
			m := connectortest.NewMemory(c.from, nil)
			st := newEnv(t, s, m)
			if _, _, err := st.CreateToken(t.Context(), boss, "x", "", 0); err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = st.Ask(t.Context(), c.caller, network("x")) }()
			id := st.shown(m, 1).Request.ID
			_, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: c.answer})
			if c.allowed && err != nil {
				t.Error(err)
			}
			if !c.allowed {
				refused(t, err, permissions.CodeOwnAsk)
			}
			if r, err := st.rows.Read(t.Context(), id); err != nil || (r.State == permissions.Pending) == c.allowed {
				t.Errorf("it is %s, %v", r.State, err)
			}
		})
	}
}

func TestRule06SilenceIsNeverConsentAndNeverADenial(t *testing.T) {
	confirm := permissions.Request{Kind: permissions.KindPause, Mode: permissions.ModeConfirm, Message: "go?"}
	goOn := permissions.Request{Kind: permissions.KindPause, Mode: permissions.ModeContinue, Message: "look"}
	where := permissions.Request{Kind: permissions.KindClarification, Message: "where?", Choices: []string{"blog", "mail"}}
	for _, c := range []struct {
		q     permissions.Request
		state permissions.State
		exit  int
		err   bool
	}{
		{network("x"), permissions.Expired, permissions.ExitNobody, true},
		{tool("write_file", `{}`), permissions.Expired, permissions.ExitNobody, true},
		{confirm, permissions.Expired, permissions.ExitNobody, true},
		{goOn, permissions.Expired, permissions.ExitYes, false},
		{where, permissions.Answered, permissions.ExitNobody, false},
	} {
		t.Run("D2/"+string(c.state), func(t *testing.T) {
			m := connectortest.NewMemory(fayAt("memory"), nil)
			st := newEnv(t, usual(), m)
			call := st.ask(t.Context(), c.q)
			st.shown(m, 1)
			st.advance(time.Hour)
			r := st.get(call)
			o := permissions.Result(r)
			if r.State != c.state || r.DecidedBy != "" || o.Exit != c.exit || o.Error != c.err {
				t.Errorf("%s %s: %s by %q, %+v", c.q.Kind, c.q.Mode, r.State, r.DecidedBy, o)
			}
			if grants, err := st.Grants(t.Context(), boss, "", 99); err != nil || len(grants) != 0 {
				t.Errorf("silence left %v, %v", grants, err)
			}
		})
	}
}

func TestRule07UnreachableIsAnAnswer(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	m.FailSend(-1, &connectors.UnreachableError{Reason: "fay has blocked the bot"})
	st := newEnv(t, usual(), m)
	r := st.get(st.ask(t.Context(), network("refused")))
	if text := permissions.Result(r).Text; text != "Permission request could not be delivered: fay has blocked the bot." {
		t.Error(text)
	}
	m.FailSend(-1, errors.New("no network"))
	away := st.ask(t.Context(), network("away"))
	st.pending(1)
	st.advance(time.Minute)
	if list, err := st.Pending(t.Context(), boss, "", 10); err != nil || len(list) != 1 {
		t.Fatalf("given up early: %v, %v", list, err)
	}
	st.advance(2 * time.Minute)
	if r := st.get(away); r.State != permissions.Undeliverable {
		t.Errorf("away for too long: %s", r.State)
	}
	m.FailSend(0, nil)
	st.ask(t.Context(), network("shown"))
	id := st.shown(m, 1).Request.ID
	m.FailReach(&connectors.UnreachableError{Reason: "logged out"})
	m.FailSend(-1, &connectors.UnreachableError{Reason: "logged out"})
	st.advance(10 * time.Minute)
	st.mustBePending(id)
	again := connectortest.NewMemory(fayAt("memory"), nil)
	again.FailReach(&connectors.UnreachableError{Reason: "logged out"})
	st.restart(again)
	st.mustBePending(id)
}

// Every line of what will run is on the prompt, invisible characters are spelled out, and a changed request is not
// approved.
func TestRule08NothingIsApprovedThatWasNotShownWhole(t *testing.T) {
	var script strings.Builder
	for i := range 300 {
		fmt.Fprintf(&script, "echo step %d\n", i)
	}
	script.WriteString("rm -rf /srv/\u202egnp.exe")
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	q := tool("run_command", fmt.Sprintf(`{"command":%q}`, script.String()))
	q.Reason = "tidy up\n✅ Allowed once by fay"
	st.ask(t.Context(), q)
	p := st.shown(m, 1)
	text := card.Card(p, card.Options{})
	for i := range 300 {
		if !strings.Contains(text, fmt.Sprintf("\n  echo step %d\n", i)) {
			t.Fatalf("step %d is not on the card", i)
		}
	}
	if !strings.Contains(text, `rm -rf /srv/\u{202E}gnp.exe`) || !strings.Contains(text, "\n│ tidy up\n│ ✅ Allowed once by fay\n") {
		t.Errorf("the card says\n%s", text[len(text)-400:])
	}
	_, err := m.Do(t.Context(), connectors.Decision{Request: p.Request.ID, Answer: allow(), Really: true, Shown: permissions.Digest{7}})
	refused(t, err, permissions.CodeNotYours)
	_, err = m.Do(t.Context(), connectors.Decision{Request: p.Request.ID, Answer: allow()})
	refused(t, err, permissions.CodeReally)
}

// If the configuration forbids a call between its approval and its use, it is not used. An approval for once is used
// once.
func TestRule09WhatWasShownIsWhatRuns(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	ctx, leave := context.WithCancel(t.Context())
	q := tool("write_file", `{"path":"a"}`)
	q.Key = "k"
	call := st.ask(ctx, q)
	id := st.shown(m, 1).Request.ID
	leave()
	<-call
	if _, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: allow()}); err != nil {
		t.Fatal(err)
	}
	stricter := usual()
	stricter.Policy.Forbidden = []string{"write_*"}
	st.Configure(stricter)
	_, err := st.Ask(t.Context(), self, q)
	refused(t, err, permissions.CodeForbidden)
	if r, err := st.rows.Read(t.Context(), id); err != nil || !r.UsedAt.IsZero() {
		t.Errorf("it was used all the same: %v, %v", r.UsedAt, err)
	}
	st.Configure(usual())
	changed := q
	changed.Input = []byte(`{"path":"b"}`)
	_, err = st.Ask(t.Context(), self, changed)
	refused(t, err, permissions.CodeKeyTaken)
	if r := st.get(st.ask(t.Context(), q)); r.State != permissions.Approved || permissions.ComputeDigest(r) != r.Digest {
		t.Errorf("%s", r.State)
	}
	st.ask(t.Context(), tool("write_file", `{"path":"a"}`)) // without the key it is another use
	st.shown(m, 2)
}

func TestRule10ReadingNeverUsesAnApproval(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	first, second := st.ask(t.Context(), network("x")), st.ask(t.Context(), network("x"))
	id := st.shown(m, 1).Request.ID
	st.waiting(id, 2)
	if _, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: allow()}); err != nil {
		t.Fatal(err)
	}
	anew := st.shown(m, 2).Request.ID // one of the two asks anew
	for range 3 {
		if s, err := st.Find(t.Context(), self, id); err != nil || s.Request.State != permissions.Approved {
			t.Fatal(err)
		}
	}
	if _, err := m.Do(t.Context(), connectors.Decision{Request: anew, Answer: permissions.Deny}); err != nil {
		t.Fatal(err)
	}
	a, b := st.get(first), st.get(second)
	if (a.State == permissions.Approved) == (b.State == permissions.Approved) {
		t.Errorf("approved once: %s and %s", a.State, b.State)
	}
}

func TestRule11LeavingIsNotCancelling(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	ctx, leave := context.WithCancel(t.Context())
	call := st.ask(ctx, network("x"))
	id := st.shown(m, 1).Request.ID
	leave()
	<-call
	st.edited(m, 1, func(p connectors.Prompt) bool { return !p.Request.LeftAt.IsZero() })
	st.mustBePending(id)
	m = connectortest.NewMemory(fayAt("memory"), nil)
	st.restart(m)
	st.mustBePending(id)
	again := st.ask(t.Context(), network("x"))
	st.waiting(id, 1)
	if _, err := st.Withdraw(t.Context(), self, id); err != nil { // explicitly
		t.Fatal(err)
	}
	if r := st.get(again); r.ID != id || r.State != permissions.Cancelled {
		t.Errorf("%s of %s", r.State, r.ID)
	}
}

func TestRule12ALateAnswerIsToldItIsLateAndIsNotKept(t *testing.T) {
	t.Run("D3/a late answer", func(t *testing.T) {
		m := connectortest.NewMemory(fayAt("memory"), nil)
		st := newEnv(t, usual(), m)
		call := st.ask(t.Context(), network("x"))
		id := st.shown(m, 1).Request.ID
		st.advance(15 * time.Minute)
		_, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: allow(), Key: "telegram:bot:1"})
		refused(t, err, permissions.CodeSettled)
		if !strings.HasPrefix(err.Error(), "Too late: ") {
			t.Errorf("told %q", err)
		}
		st.get(call)
		st.ask(t.Context(), network("x"))
		if next := st.shown(m, 2).Request; next.ID == id || next.State != permissions.Pending || len(next.Votes) != 0 {
			t.Errorf("the late answer was kept: %s %v", next.State, next.Votes)
		}
	})
}

func TestRule14AnyDoubtIsNotAGrant(t *testing.T) {
	settings := usual()
	settings.Routes[0].Agents = []string{"uid:1000"}
	settings.Limits.PendingPerCaller = 1
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, settings, m)
	_, err := st.Ask(t.Context(), other, network("no route"))
	refused(t, err, permissions.CodeNoRoute)
	st.ask(t.Context(), network("x"))
	id := st.shown(m, 1).Request.ID
	_, err = st.Ask(t.Context(), self, network("beyond the limit"))
	refused(t, err, permissions.CodeLimit)
	unlock := storetest.Lock(t, st.path())
	_, err = m.Do(t.Context(), connectors.Decision{Request: id, Answer: allow()})
	refused(t, err, permissions.CodeBroken)
	_, err = st.Ask(t.Context(), other, network("nothing can be stored"))
	refused(t, err, permissions.CodeNoRoute) // it is not asked either
	unlock()
	for _, q := range []permissions.Request{
		{Kind: "other"}, {Kind: permissions.KindPermission, Reason: "no tags"}, {Kind: permissions.KindTool},
		{Kind: permissions.KindTool, Tool: "delete_repository", Input: []byte(`{"a":1,"a":2}`)},
	} {
		_, err = st.Ask(t.Context(), self, q)
		refused(t, err, permissions.CodeInvalid)
	}
	st.mustBePending(id)
}
