package engine_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/permissions"
)

// screen is a memory whose prompts end with its process.
type screen struct{ *connectortest.Memory }

func (screen) Ephemeral() {}

// message is a channel that cannot edit its messages.
type message struct{ m *connectortest.Memory }

func (c message) Name() string                                      { return c.m.Name() }
func (c message) Run(ctx ctx) error                                 { return c.m.Run(ctx) }
func (c message) Bind(in connectors.Services)                       { c.m.Bind(in) }
func (c message) Send(ctx ctx, p connectors.Prompt) (string, error) { return c.m.Send(ctx, p) }

func TestShowUndeliverable(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(m *connectortest.Memory)
		text    string
	}{
		{"known before", func(m *connectortest.Memory) { m.FailReach(&connectors.UnreachableError{Reason: "fay is on the moon"}) },
			"Permission request could not be delivered: fay is on the moon."},
		{"found when sending", func(m *connectortest.Memory) {
			m.FailSend(-1, &connectors.UnreachableError{Reason: "fay has blocked the bot"})
		},
			"Permission request could not be delivered: fay has blocked the bot."},
	} {
		t.Run("E1/"+c.name, func(t *testing.T) {
			m := connectortest.NewMemory(fayAt("memory"), nil)
			c.prepare(m)
			st := newEnv(t, usual(), m)
			r := st.get(st.ask(t.Context(), network("x")))
			if got := permissions.Result(r); got.Text != c.text || got.Exit != permissions.ExitUndeliverable {
				t.Errorf("%q, exit %d", got.Text, got.Exit)
			}
			pause := permissions.Request{Kind: permissions.KindPause, Mode: permissions.ModeContinue, Message: "look"}
			if got := permissions.Result(st.get(st.ask(t.Context(), pause))); got.Text != "Nobody to ask; continuing." || got.Error {
				t.Errorf("a pause: %q", got.Text)
			}
		})
	}
}

func TestShowNobodyIsHere(t *testing.T) {
	s := usual()
	s.Routes[0].Ask = []string{"kim"}
	st := newEnv(t, s, connectortest.NewMemory(fayAt("memory"), nil))
	// Both the opening and the re-routing at the start may be first to find who is still configured.
	whys := []string{"kim is not configured", "too few of the people who were asked are left in the configuration"}
	if r := st.get(st.ask(t.Context(), network("x"))); !slices.Contains(whys, r.Failure) {
		t.Errorf("%s: %s", r.State, r.Failure)
	}
	s.Routes[0].Agents = []string{"deploy-*"}
	st.Configure(s)
	_, err := st.Ask(t.Context(), self, network("no route"))
	refused(t, err, permissions.CodeNoRoute)
	st = newEnv(t, usual())
	if r := st.get(st.ask(t.Context(), network("x"))); r.Failure != "no channel is switched on" {
		t.Errorf("%s: %s", r.State, r.Failure)
	}
}

// A channel that is away is retried, and the request waits meanwhile.
func TestShowTriesAgain(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), connectortest.Always(allow()))
	m.FailSend(2, errors.New("the network is away"))
	st := newEnv(t, usual(), m)
	if r := st.get(st.ask(t.Context(), network("x"))); r.State != permissions.Approved {
		t.Error(r.State)
	}
}

// A channel that stays away for longer than deliver_within is unreachable.
func TestShowGivesUp(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	m.FailSend(-1, errors.New("the network is away"))
	st := newEnv(t, usual(), m)
	call := st.ask(t.Context(), network("x"))
	for {
		rows, err := st.rows.Pending(t.Context(), "", "", 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) == 1 {
			break
		}
	}
	st.advance(3 * time.Minute)
	if r := st.get(call); r.State != permissions.Undeliverable || r.Failure != "the network is away" {
		t.Errorf("%s: %s", r.State, r.Failure)
	}
}

// One channel of two is enough, and every copy shows the outcome.
func TestShowEveryCopyIsBroughtUpToDate(t *testing.T) {
	t.Run("E3/every copy", func(t *testing.T) {
		blocked := connectortest.NewMemory(fayAt("blocked"), nil)
		blocked.FailSend(-1, &connectors.UnreachableError{Reason: "blocked"})
		here, there := connectortest.NewMemory(fayAt("here"), nil), connectortest.NewMemory(fayAt("there"), nil)
		plain := connectortest.NewMemory(fayAt("plain"), nil)
		st := newEnv(t, usual(), blocked, here, there, message{plain})
		call := st.ask(t.Context(), network("x"))
		card := st.shown(here, 1)
		st.shown(there, 1)
		st.shown(plain, 1)
		if _, err := here.Do(t.Context(), connectors.Decision{Request: card.Request.ID, Answer: permissions.Deny}); err != nil {
			t.Fatal(err)
		}
		denied := func(p connectors.Prompt) bool {
			return p.Request.State == permissions.Denied && p.Request.DecidedVia == "here"
		}
		st.edited(here, 1, denied)
		st.edited(there, 1, denied)
		if last := st.shown(plain, 2); !denied(last) {
			t.Errorf("a channel that cannot edit was sent %s", last.Request.State)
		}
		if r := st.get(call); r.State != permissions.Denied {
			t.Error(r.State)
		}
	})
}

// TestShowAfterARestart: pending requests stay pending and are shown again on a screen that forgot them, and overdue
// ones expire before any old button works.
func TestShowAfterARestart(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), screen{m})
	ctx, kill := withCancel(t.Context())
	call := st.ask(ctx, network("x"))
	card := st.shown(m, 1)
	late := network("soon over")
	late.WantedTimeout = time.Minute
	other := st.ask(ctx, late)
	over := st.shown(m, 2)
	kill()
	<-call
	<-other

	st.advance(2 * time.Minute)
	again := connectortest.NewMemory(fayAt("memory"), nil)
	st.restart(screen{again})
	shown := st.shown(again, 1)
	if shown.Request.ID != card.Request.ID || shown.Request.State != permissions.Pending || shown.Code != card.Code {
		t.Errorf("shown again: %s of %s", shown.Request.State, shown.Request.ID)
	}
	if r, err := st.rows.Read(t.Context(), over.Request.ID); err != nil || r.State != permissions.Expired {
		t.Errorf("%s, %v", r.State, err)
	}
	_, err := again.Do(t.Context(), connectors.Decision{Request: over.Request.ID, Answer: allow()})
	refused(t, err, permissions.CodeSettled)

	rejoined := st.ask(t.Context(), network("x")) // the same question finds its row
	st.waiting(card.Request.ID, 1)
	if _, err := again.Do(t.Context(), connectors.Decision{Request: card.Request.ID, Answer: allow()}); err != nil {
		t.Fatal(err)
	}
	if r := st.get(rejoined); r.ID != card.Request.ID || r.State != permissions.Approved {
		t.Errorf("%s of %s", r.State, r.ID)
	}
	if len(again.Copies()) != 1 {
		t.Errorf("%d cards after the restart", len(again.Copies()))
	}
}

// TestShowPersonRemoved: a settled request is edited although another copy never succeeds.
func TestShowPersonRemoved(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	m.FailSend(-1, errors.New("away"))
	s := usual()
	st := newEnv(t, s, m)
	call := st.ask(t.Context(), network("x"))
	for {
		if rows, err := st.rows.Pending(t.Context(), "", "", 1); err != nil {
			t.Fatal(err)
		} else if len(rows) == 1 {
			break
		}
	}
	s.People = []connectors.Person{sam}
	st.Configure(s)
	const why = "too few of the people who were asked are left in the configuration"
	if r := st.get(call); r.State != permissions.Undeliverable || r.Failure != why {
		t.Errorf("%s: %s", r.State, r.Failure)
	}
}
