package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// job is the demo's pattern: a smaller request after a denial, and a question that decides what comes next.
const job = `
turns:
  - {name: hello, after: start, said: '(?i)^publish (\w+)', say: 'I publish {{match.1}}.', calls: [
      {tool: write_file, input: {path: notes.md, lines: [1, 2.5, true, null, "for {{ match.1 }}"], more: {"<b>": "{{match.2}}"}}},
      {tool: read_file}]}
  - {name: smaller, after: hello, result: 'denied.*"(.*)"', error: false, calls: [
      {tool: write_file, input: {path: '{{match.1}}/notes.md'}}]}
  - {name: stop, after: [hello, smaller], error: true, say: "It failed: {{result}}"}
  - {name: which, after: [hello, smaller], calls: [{tool: ask_user, input: {message: 'Where, after {{result.1}}?', options: [blog, mail]}}]}
  - {name: blog, after: which, result: ^blog, say: 'To the blog, as you said to {{said}}.'}
  - {name: mail, after: which, result: ^mail, calls: [{tool: pause, input: {message: ready}}, {tool: start_agent, input: {name: nightly}}]}
  - {name: done, after: mail, asked: publish, say: Done.}
  - {name: after_done, after: [done, blog], said: again, say: 'Once more, {{said}}'}
  - {name: chat, said: '', say: 'You wrote "{{said}}".'}
`

// player plays a script against results, by tool, and the person's texts.
type player struct {
	t        *testing.T
	m        *script.Model
	messages []models.Message
}

func (p *player) says(text string) { p.add(models.Message{Role: models.User, Text: text}) }

func (p *player) add(m models.Message) { p.messages = append(p.messages, m) }

// turn asks, and answers the calls of the reply.
func (p *player) turn(results ...models.Result) models.Reply {
	p.t.Helper()
	var heard strings.Builder
	ask := func(m models.Model) models.Reply {
		reply, err := m.Reply(p.t.Context(), models.Prompt{Messages: p.messages}, func(words string) { heard.WriteString(words) })
		if err != nil {
			p.t.Fatal(err)
		}
		return reply
	}
	reply := ask(p.m)
	if heard.String() != reply.Text {
		p.t.Errorf("heard %q of %q", heard.String(), reply.Text)
	}
	if diff := cmp.Diff(reply, ask(parse(p.t, job))); diff != "" { // another process replies the same
		p.t.Error(diff)
	}
	p.add(models.Message{Role: models.Assistant, Text: reply.Text, Calls: reply.Calls})
	if len(reply.Calls) != len(results) {
		p.t.Fatalf("%d results for %v", len(results), reply.Calls)
	}
	if len(results) > 0 {
		for i := range results {
			results[i].ID = reply.Calls[i].ID
		}
		p.add(models.Message{Role: models.Results, Results: results})
	}
	return reply
}

func parse(t *testing.T, text string) *script.Model {
	t.Helper()
	m, err := script.Parse("job", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAJob(t *testing.T) {
	p := &player{t: t, m: parse(t, job)}
	p.says("Publish it")
	reply := p.turn(models.Result{Text: `denied by fay: "drafts"`}, models.Result{Text: "text"})
	want := []models.Call{
		{ID: "hello-1", Tool: "write_file", Input: json.RawMessage(`{"lines":[1,2.5,true,null,"for it"],"more":{"<b>":""},"path":"notes.md"}`)},
		{ID: "hello-2", Tool: "read_file", Input: json.RawMessage(`{}`)},
	}
	if diff := cmp.Diff(want, reply.Calls); diff != "" || reply.Text != "I publish it." {
		t.Error(reply.Text, diff)
	}
	reply = p.turn(models.Result{Text: "written"})
	if got := string(reply.Calls[0].Input); got != `{"path":"drafts/notes.md"}` || reply.Calls[0].ID != "smaller-3" {
		t.Error(got)
	}
	reply = p.turn(models.Result{Text: "mail"})
	if got := string(reply.Calls[0].Input); got != `{"message":"Where, after written?","options":["blog","mail"]}` {
		t.Error(got)
	}
	// The earlier turns are gone; the last call's id contains the position.
	p.messages = append([]models.Message{{Role: models.User, Text: "publish, in short"}}, p.messages[len(p.messages)-2:]...)
	if reply = p.turn(models.Result{Text: "Resumed."}, models.Result{Text: "started"}); len(reply.Calls) != 2 {
		t.Errorf("%+v", reply)
	}
	if reply = p.turn(); reply.Text != "Done." || reply.Usage.Read == 0 || reply.Usage.Written == 0 {
		t.Errorf("%+v", reply)
	}
	p.says("again")
	p.says("please")
	if reply = p.turn(); reply.Text != "Once more, again\nplease" {
		t.Error(reply.Text)
	}
	for range 3 {
		p.says("hm")
		if reply = p.turn(); reply.Text != `You wrote "hm".` {
			t.Error(reply.Text)
		}
	}
}

func TestScriptBranches(t *testing.T) {
	p := &player{t: t, m: parse(t, job)}
	p.says("publish it")
	p.turn(models.Result{Text: "written"}, models.Result{Text: "no such file", Error: true})
	if reply := p.turn(); reply.Text != "It failed: written\nno such file" {
		t.Error(reply.Text)
	}
	p = &player{t: t, m: parse(t, job)}
	p.says("publish it")
	p.turn(models.Result{Text: "written {{said}}"}, models.Result{Text: "text"})
	if reply := p.turn(models.Result{Text: "blog"}); !strings.Contains(string(reply.Calls[0].Input), "written {{said}}?") {
		t.Errorf("what a tool says is filled in: %s", reply.Calls[0].Input)
	}
	if reply := p.turn(); reply.Text != "To the blog, as you said to publish it." {
		t.Error(reply.Text)
	}
	p.add(models.Message{Role: models.Results, Results: []models.Result{{ID: "another's", Text: strings.Repeat("odd ", 100)}}})
	_, err := p.m.Reply(t.Context(), models.Prompt{Messages: p.messages}, nil)
	if !errors.Is(err, models.ErrRefused) || !strings.Contains(err.Error(), "no turn after blog for: odd odd") || len(err.Error()) > 300 {
		t.Error(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.m.Reply(over, models.Prompt{}, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if p.m.Name() != "job" || p.m.Cost(models.Usage{Read: 1}) != 0 ||
		models.Near(p.m, models.Prompt{Messages: p.messages}, models.Measured{}) {
		t.Errorf("%s is near its window", p.m.Name())
	}
}

// A turn of another model, from before, is skipped.
func TestTurnsOfOthers(t *testing.T) {
	m := parse(t, "turns: [{name: a, after: start, said: go, calls: [{tool: x}]}]")
	reply, err := m.Reply(t.Context(), models.Prompt{Messages: []models.Message{
		{Role: models.User, Text: "hello"},
		{Role: models.Assistant, Calls: []models.Call{{ID: "toolu_1"}}},
		{Role: models.Results, Results: []models.Result{{ID: "toolu_1"}}},
		{Role: models.Assistant, Text: "hi"},
		{Role: models.User, Text: "go"},
	}}, nil)
	if err != nil || reply.Calls[0].ID != "a-2" {
		t.Errorf("%+v, %v", reply, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":        "line 1: there are no turns",
		"# only":  "line 1: there are no turns",
		"turns: ": "there are no turns",
		"- a":     "line 1: cannot unmarshal !!seq",
		"turns: [{name: a, say: x}]\n---\nturns: []":                       "more than one document",
		"turns: [{name: a, say: x}]\nmore: 1":                              "line 2: field more not found",
		"turns:\n- {name: a, say: x, sayd: y}":                             "line 2: field sayd not found",
		"turns:\n- {name: a, say: x, say: y}":                              `line 2: mapping key "say" already defined`,
		"turns:\n- {name: a, say: x}\n- {name: a, say: y}":                 "line 3: the name a is taken",
		"turns:\n- {name: start, say: x}":                                  "line 2: the name start is taken",
		"turns:\n- {name: a b, say: x}":                                    `not "a b"`,
		"turns:\n- {say: x}":                                               `line 2: a turn has a name`,
		"turns:\n- {name: a}":                                              "line 2: the turn a says nothing",
		"turns:\n- {name: a, say: [x]}":                                    "line 2: cannot unmarshal !!seq",
		"turns:\n- {name: a, say: x, after: b}":                            "line 2: there is no turn b",
		"turns:\n- {name: a, say: x, after: [[b]]}":                        "line 2: cannot unmarshal !!seq",
		"turns:\n- {name: a, say: x, said: '('}":                           "line 2: error parsing regexp",
		"turns:\n- {name: a, say: x, said: {a: b}}":                        "line 2: cannot unmarshal !!map",
		"turns:\n- {name: a, say: x, error: maybe}":                        "line 2: cannot unmarshal !!str `maybe` into bool",
		"turns:\n- {name: a, say: x, said: y, result: z}":                  "line 2: the newest message of a cannot be",
		"turns:\n- {name: a, say: '{{nobody}}'}":                           "line 2: what can be filled in is {{said}}",
		"turns:\n- {name: a, calls: x}":                                    "line 2: cannot unmarshal !!str",
		"turns:\n- name: a\n  calls:\n  - {}":                              "line 2: each call of a names its tool",
		"turns:\n- name: a\n  calls:\n  - [x]":                             "line 4: cannot unmarshal !!seq",
		"turns:\n- name: a\n  calls:\n  - {tool: [x]}":                     "line 4: cannot unmarshal !!seq",
		"turns:\n- name: a\n  calls:\n  - {tool: x, input: y}":             "line 4: an input has keys and values",
		"turns:\n- {name: a, calls: [{tool: x, input: {a: .nan}}]}":        "line 2: JSON has no .nan",
		"turns:\n- {name: a, calls: [{tool: x, input: {a: [.inf]}}]}":      "line 2: JSON has no .inf",
		"turns:\n- {name: a, calls: [{tool: x, input: {a: 1, a: 2}}]}":     "line 2: this key is none, or there twice",
		"turns:\n- {name: a, calls: [{tool: x, input: {a: &b 1, c: *b}}]}": "line 2: anchors and aliases",
		"turns:\n- {name: a, calls: [{tool: x, input: {a: '{{ }}'}}]}":     "line 2: what can be filled in",
		"turns: {": "line 1",
	} {
		_, err := script.Parse("job", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "job: ") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
