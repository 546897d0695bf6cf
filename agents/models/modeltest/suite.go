package modeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/provider"
)

// Setup configures a model of the suite.
type Setup struct {
	URL  string
	Key  models.Key
	Name string // of the model
	Most int64  // most reply tokens; 0: the model's default
	Link provider.Options
}

// Made is a model that the suite can close.
type Made interface {
	models.Model
	Close()
}

const (
	suiteKey     = "sk-suite/SECRET+key=="
	suiteSeconds = 20 // time limit for what takes milliseconds
)

// stage is a server and a model that uses it.
type stage struct {
	*Server
	d     Dialect
	model models.Model
	heard []string
	log   bytes.Buffer
}

// Conform is the suite that every provider has to pass, in its dialect.
func Conform(t *testing.T, d Dialect, build func(Setup) (Made, error)) {
	play := func(name string, link provider.Options, f func(ctx context.Context, t *testing.T, s *stage)) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), suiteSeconds*time.Second)
			defer cancel()
			s := &stage{Server: New(t), d: d}
			if link.Retry.Wait == 0 {
				link.Retry.Wait = time.Millisecond
			}
			link.Log = slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			m, err := build(Setup{URL: s.URL(d), Key: suiteKey, Name: "m", Link: link})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(m.Close)
			s.model = m
			f(ctx, t, s)
		})
	}
	none := provider.Options{}
	play("words come as they are written", none, words)
	play("a reply shows before it is whole", none, slowly)
	play("calls", none, calls)
	play("inputs that are no objects, and ids twice", none, oddCalls)
	play("a conversation comes as it was", none, conversation)
	play("a reply that is cut off", none, cutOff)
	play("many at once", none, atOnce)
	play("what passes is tried again", none, passes)
	play("the tries are bounded", provider.Options{Retry: provider.Retry{Tries: 3}}, bounded)
	play("the provider says that it does not pass", none, stays)
	play("a longer wait than ours is the caller's", none, laterOn)
	play("a stream that breaks is tried again whole", none, broken)
	play("silence", provider.Options{Silence: 50 * time.Millisecond, Retry: provider.Retry{Tries: 2}}, silence)
	play("the caller leaves", none, leaves)
	play("an event has a longest", provider.Options{Retry: provider.Retry{Tries: 1}}, longEvent)
	play("faults and what they mean", none, faults)
	play("nothing goes elsewhere", none, elsewhere)
	play("the key is in no text", none, secret)
}

func (s *stage) ask(ctx context.Context, p models.Prompt) (models.Reply, error) {
	s.heard = nil
	return s.model.Reply(ctx, p, func(words string) { s.heard = append(s.heard, words) })
}

func (s *stage) mustAsk(ctx context.Context, t *testing.T, p models.Prompt) models.Reply {
	t.Helper()
	reply, err := s.ask(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// Hello is the shortest prompt.
func Hello() models.Prompt {
	return models.Prompt{Messages: []models.Message{{Role: models.User, Text: "hello"}}}
}

func words(ctx context.Context, t *testing.T, s *stage) {
	s.Queue(Answer{Text: "Grüße, 世界!\n\nBye.", Usage: models.Usage{Read: 12, Written: 7}, Odd: Deviations{Comments: true}})
	reply := s.mustAsk(ctx, t, Hello())
	want := models.Reply{Text: "Grüße, 世界!\n\nBye.", Usage: models.Usage{Read: 12, Written: 7}}
	if diff := cmp.Diff(want, reply); diff != "" {
		t.Error(diff)
	}
	if len(s.heard) < 3 || strings.Join(s.heard, "") != want.Text {
		t.Errorf("heard %q", s.heard)
	}
	s.Queue(Answer{Text: "once more", Odd: Deviations{NoUsage: true}})
	reply, err := s.model.Reply(ctx, Hello(), nil)
	if err != nil || reply.Text != "once more" || reply.Usage.Read <= 0 || reply.Usage.Written <= 0 {
		t.Errorf("without a listener, and with nobody saying what was used: %+v, %v", reply, err)
	}
}

func slowly(ctx context.Context, t *testing.T, s *stage) {
	rest, heard := make(chan struct{}), make(chan string, 100)
	s.Queue(Answer{Text: "one two three four", Pieces: 4, Pause: rest})
	done := make(chan error, 1)
	go func() {
		_, err := s.model.Reply(ctx, Hello(), func(words string) { heard <- words })
		done <- err
	}()
	if first := <-heard; first == "" || strings.Contains(first, "four") {
		t.Errorf("first came %q", first)
	}
	close(rest)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func calls(ctx context.Context, t *testing.T, s *stage) {
	for _, n := range []int{1, 3} { // pieces
		s.Queue(Answer{Text: "I write.", Pieces: n, Calls: []models.Call{
			{ID: "call_a", Tool: "write_file", Input: json.RawMessage(`{"path":"ä.txt","content":"a\"b\n"}`)},
			{ID: "call_b", Tool: "list_files", Input: json.RawMessage(`{}`)},
			{ID: "call_c", Tool: "write_file", Input: json.RawMessage(`{"path":"b"}`)},
		}})
		reply := s.mustAsk(ctx, t, withTools(Hello()))
		want := []models.Call{
			{ID: "call_a", Tool: "write_file", Input: json.RawMessage(`{"path":"ä.txt","content":"a\"b\n"}`)},
			{ID: "call_b", Tool: "list_files", Input: json.RawMessage(`{}`)},
			{ID: "call_c", Tool: "write_file", Input: json.RawMessage(`{"path":"b"}`)},
		}
		if diff := cmp.Diff(want, reply.Calls); diff != "" || reply.Text != "I write." || reply.Cut {
			t.Errorf("in %d pieces: %q %s", n, reply.Text, diff)
		}
	}
}

func oddCalls(ctx context.Context, t *testing.T, s *stage) {
	p := withTools(Hello())
	s.Queue(Answer{Calls: []models.Call{
		{ID: "same", Tool: "a", Input: json.RawMessage(`{"path": tru`)},
		{ID: "same", Tool: "b", Input: json.RawMessage(` [1] `)},
		{ID: "other", Tool: "c", Input: json.RawMessage(` `)},
	}}, Answer{Calls: []models.Call{{ID: "same", Tool: "d", Input: json.RawMessage(`{}`)}}}, Say("well"))
	reply := s.mustAsk(ctx, t, p)
	var inputs []string
	for _, c := range reply.Calls {
		inputs = append(inputs, string(c.Input))
	}
	if diff := cmp.Diff([]string{`"{\"path\": tru"`, `"[1]"`, `{}`}, inputs); diff != "" {
		t.Error(diff)
	}
	if _, err := json.Marshal(reply.Calls); err != nil {
		t.Errorf("the calls cannot be kept: %v", err)
	}
	for range 2 { // the reply is sent back, and the provider accepts it
		said := models.Message{Role: models.Assistant, Text: reply.Text, Calls: reply.Calls}
		results := models.Message{Role: models.Results}
		for _, c := range reply.Calls {
			results.Results = append(results.Results, models.Result{ID: c.ID, Text: "no", Error: true})
		}
		p.Messages = append(p.Messages, said, results)
		reply = s.mustAsk(ctx, t, p)
	}
	sent := s.Requests()[1].Prompt.Messages[1].Calls
	if sent[0].ID == sent[1].ID || !strings.Contains(string(sent[0].Input), "tru") {
		t.Errorf("what went back: %s", sent)
	}
}

// withTools adds tools, one of them without a schema.
func withTools(p models.Prompt) models.Prompt {
	p.System = "You are careful."
	p.Tools = []models.Tool{
		{Name: "write_file", Description: "Writes.", Schema: json.RawMessage(
			`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}`)},
		{Name: "list_files", Description: "Lists."},
	}
	return p
}

func conversation(ctx context.Context, t *testing.T, s *stage) {
	p := withTools(Hello())
	p.Messages = append(p.Messages,
		models.Message{Role: models.Assistant, Text: "I look.", Calls: []models.Call{
			{ID: "c1", Tool: "list_files", Input: json.RawMessage(`{}`)},
			{ID: "c2", Tool: "write_file", Input: json.RawMessage(`{"path":"a<b>&c"}`)}}},
		models.Message{Role: models.Results, Results: []models.Result{{ID: "c1", Text: ""}, {ID: "c2", Text: "denied", Error: true}}},
		models.Message{Role: models.Assistant, Text: "Done."},
		models.Message{Role: models.User, Text: "thanks"})
	s.Queue(Say("bye"), Say("bye"))
	s.mustAsk(ctx, t, p)
	got := s.Requests()[0]
	for i, tool := range got.Prompt.Tools {
		var schema struct{ Required []string }
		if err := json.Unmarshal(tool.Schema, &schema); err != nil || len(schema.Required) != 1-i {
			t.Errorf("the schema of %s came as %s", tool.Name, tool.Schema)
		}
		got.Prompt.Tools[i].Schema = p.Tools[i].Schema
	}
	meant := cmp.Transformer("meant", func(raw json.RawMessage) (v any) { // libraries escape differently
		_ = json.Unmarshal(raw, &v)
		return v
	})
	if diff := cmp.Diff(p, got.Prompt, meant); diff != "" {
		t.Error(diff)
	}
	// Turns without text, and consecutive ones of a person.
	p.Messages = append(p.Messages, models.Message{Role: models.Assistant}, models.Message{Role: models.User, Text: "and?"})
	s.mustAsk(ctx, t, p)
	if last := s.Requests()[1].Prompt.Messages; !strings.HasSuffix(last[len(last)-1].Text, "and?") {
		t.Errorf("the last message is %+v", last[len(last)-1])
	}
}

func cutOff(ctx context.Context, t *testing.T, s *stage) {
	finish := map[Dialect]string{OpenAI: "length", Anthropic: "max_tokens"}[s.d]
	s.Queue(Answer{Text: "and then", Finish: finish})
	if reply := s.mustAsk(ctx, t, Hello()); !reply.Cut || reply.Text != "and then" {
		t.Errorf("%+v", reply)
	}
}

func atOnce(ctx context.Context, t *testing.T, s *stage) {
	s.Answer(func(r Request) Answer { return Say("heard " + r.Last().Text) })
	errs := make(chan error, 20)
	for i := range cap(errs) {
		go func() {
			text := fmt.Sprint("number ", i)
			reply, err := s.model.Reply(ctx, models.Prompt{Messages: []models.Message{{Role: models.User, Text: text}}}, nil)
			if err == nil && reply.Text != "heard "+text {
				err = fmt.Errorf("%s was answered with %s", text, reply.Text)
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
