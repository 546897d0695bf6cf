package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	playbook "github.com/daycared/daycared/agents/models/script"
	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// sheet is a screen that records its rows.
type sheet struct{ rows []string }

func (s *sheet) Name() string                                          { return "terminal" }
func (s *sheet) Run(context.Context) error                             { return nil }
func (s *sheet) Edit(context.Context, string, connectors.Prompt) error { return nil }
func (s *sheet) Say(text string) error                                 { s.rows = append(s.rows, text); return nil }
func (s *sheet) Send(_ context.Context, p connectors.Prompt) (string, error) {
	s.rows = append(s.rows, "? "+string(p.Request.ID))
	return string(p.Request.ID), nil
}

// played is a scene with its screen, and the number of times that it ended.
type played struct {
	*scene
	*sheet
	over, failed int
}

func play(ran func(permissions.Request) (string, error)) *played {
	p := &played{sheet: &sheet{}}
	p.scene = &scene{screen: p.sheet, ran: ran, over: func() { p.over++ }, failed: func() { p.failed++ }}
	return p
}

func (p *played) asksFor(t *testing.T, r permissions.Request) {
	t.Helper()
	if ref, err := p.scene.Send(t.Context(), connectors.Prompt{Request: r}); err != nil || ref != string(r.ID) {
		t.Errorf("Send = %q, %v", ref, err)
	}
}

func (p *played) shows(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(p.rows, want) {
		t.Errorf("it shows %q, want %q", p.rows, want)
	}
	p.rows = nil
}

func words(text string) admin.Said { return admin.Said{Agent: "scribe", Text: "scribe: " + text} }

func finished(outcome string) wire.Event {
	return wire.Event{Type: permissions.RunFinished, Payload: map[string]any{"outcome": outcome, "reason": "model"}}
}

// Messages, cards and the end are shown in order, whatever the order of their arrival.
func TestADemoIsShownInOrder(t *testing.T) {
	p := play(func(r permissions.Request) (string, error) { return "ran " + string(r.ID), nil })
	may := permissions.Request{ID: "1", Kind: permissions.KindPermission, Reason: "I need it."}
	p.asksFor(t, may)
	p.shows(t, "? 1")

	run := permissions.Request{ID: "2", Kind: permissions.KindTool, Reason: "wrote it"}
	p.asksFor(t, run) // before the first is settled
	p.queueMessage(words("wrote it"))
	p.noteEnd(permissions.Request{ID: "9"})
	p.shows(t)
	may.State = permissions.Approved
	p.noteEnd(may)
	p.shows(t, "   scribe wrote it", "? 2")

	run.State = permissions.Approved
	p.noteEnd(run)
	p.noteEnd(run)
	p.queueMessage(words("wrote it")) // again, after a kill
	p.shows(t)
	look := permissions.Request{ID: "3", Kind: permissions.KindPause, Reason: "done\nwith it"}
	p.asksFor(t, look) // before its message
	p.shows(t)
	p.queueMessage(words("done\nwith it"))
	p.shows(t, "   ran 2", "   scribe done\n   with it", "? 3")

	look.State, look.Answer = permissions.Answered, permissions.Interrupt
	p.noteEnd(look)
	for _, e := range []wire.Event{{Type: permissions.SessionStatus}, finished("interrupted")} {
		if err := p.handleEvent(e); err != nil || p.done || p.over != 0 {
			t.Errorf("it is over before its last words: %v", err)
		}
	}
	p.queueMessage(words("I stop here, as you said."))
	p.shows(t, "   scribe: I stop here, as you said.")
	if !p.done || p.over != 1 || p.failed != 0 || p.wrong != nil {
		t.Errorf("it is over %d times, failed %d times, %v", p.over, p.failed, p.wrong)
	}
	if got, want := p.tally(), (tally{asked: 3, allowed: 2, interrupted: 1}); got != want {
		t.Errorf("it counts %+v, want %+v", got, want)
	}
}

// A failed job, or a command that did not run as allowed, ends the demo with an error.
func TestADemoThatFails(t *testing.T) {
	p := play(nil)
	err := p.handleEvent(finished("failed"))
	if fault := p.wrong; err != nil || p.failed != 1 || fault == nil || fault.Error() != "the job has failed: model" {
		t.Errorf("%v, %v", err, fault)
	}
	twice := errors.New("the command ran 2 times")
	p = play(func(permissions.Request) (string, error) { return "", twice })
	r := permissions.Request{ID: "1", Kind: permissions.KindTool, State: permissions.Approved}
	p.asksFor(t, r)
	p.noteEnd(r)
	p.queueMessage(words("published"))
	p.fail(errors.New("and more"))
	if p.failed != 2 || !errors.Is(p.wrong, twice) {
		t.Errorf("%v", p.wrong)
	}
}

// The demo's configuration is valid, whatever its folder is called, with and without a sandbox.
func TestTheDemosConfigurationIsValid(t *testing.T) {
	for name, walls := range map[string]bool{`walls`: true, `no "walls" & more`: false} {
		folder := t.TempDir() + "/" + name
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		d := &demo{folder: folder}
		if err := d.writeFiles(walls); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(d.path("config.yaml"), nil)
		if err != nil {
			t.Fatal(err)
		}
		a := cfg.Agents[0]
		if cfg.Sandbox != walls || a.Connector != admin.Name || a.Workspace != d.path("work") || len(cfg.HighRisk.Tools) > 0 {
			t.Errorf("%+v", cfg)
		}
		turns, err := os.ReadFile(a.Model.File)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := playbook.Parse("turns", turns); err != nil {
			t.Error(err)
		}
		if missing := permissions.Missing([]permissions.Tag{tagOf(t, "@write:"+d.path("site"))}, a.GrantedTags()); len(missing) != 1 {
			t.Error("the site is the agent's already")
		}
	}
}

func tagOf(t *testing.T, text string) permissions.Tag {
	t.Helper()
	tag, err := permissions.ParseTag(text)
	if err != nil {
		t.Fatal(err)
	}
	return tag
}

func TestBrokenPromisesAreListed(t *testing.T) {
	all := []sandbox.Promise{{Name: "no file outside", Holds: true}, {Name: "no TCP", Why: "no Landlock"}, {Name: "no UDP", Why: "no seccomp"}}
	if got := missingPromises(all); got != "no TCP: no Landlock; no UDP: no seccomp" {
		t.Errorf("%q", got)
	}
	if got := missingPromises(all[:1]); got != "" {
		t.Errorf("%q", got)
	}
}
