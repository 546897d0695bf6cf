package models_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/modeltest"
	"github.com/daycared/daycared/agents/models/openai"
	"github.com/daycared/daycared/agents/models/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small is a model whose provider accepts at most so many tokens, whatever its configured window is.
func small(t *testing.T, configured, most int64, say func(modeltest.Request) modeltest.Answer) (*modeltest.Server, models.Model) {
	t.Helper()
	s := modeltest.New(t)
	s.Answer(func(r modeltest.Request) modeltest.Answer {
		if models.Estimate(r.Prompt) > most {
			return modeltest.TooLong(modeltest.OpenAI)
		}
		return say(r)
	})
	m, err := openai.New(provider.ModelOptions{Name: "small", BaseURL: s.URL(modeltest.OpenAI), Window: configured,
		Link: provider.Options{Retry: provider.Retry{Tries: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return s, m
}

// long is a conversation of so many rounds: a question, a call, its result, an answer.
func long(rounds int) models.Prompt {
	p := models.Prompt{System: "You help.", Messages: nil}
	for i := range rounds {
		id := fmt.Sprint("c", i)
		p.Messages = append(p.Messages,
			models.Message{Role: models.User, Text: fmt.Sprint("question ", i, strings.Repeat(" word", 20))},
			models.Message{Role: models.Assistant, Calls: []models.Call{{ID: id, Tool: "read", Input: json.RawMessage(`{}`)}}},
			models.Message{Role: models.Results, Results: []models.Result{{ID: id, Text: strings.Repeat("data ", 40), Error: i%2 == 0}}},
			models.Message{Role: models.Assistant, Text: fmt.Sprint("answer ", i)})
	}
	return p
}

// shorter is the prompt with the summary applied.
func shorter(p models.Prompt, c models.Compaction) models.Prompt {
	p.Messages = append([]models.Message{c.Summary}, p.Messages[c.Replaces:]...)
	return p
}

func summary(modeltest.Request) modeltest.Answer { return modeltest.Say("They talked about data.") }

func TestCompactKeepsTheNewest(t *testing.T) {
	s, m := small(t, 4000, 4000, summary)
	p := long(40)
	p.Messages = append(p.Messages, models.Message{Role: models.User, Text: "and now?"})
	for range 5 { // even with an earlier summary, and wherever the cut is
		if !models.Near(m, p, models.Measured{}) {
			t.Fatal("it is not near the window")
		}
		before := len(p.Messages)
		c, err := models.Compact(t.Context(), m, p)
		if err != nil {
			t.Fatal(err)
		}
		if c.Usage.Read <= 0 || c.Usage.Written <= 0 || c.Replaces <= 0 || c.Replaces >= before || c.Summary.Role != models.User ||
			!strings.Contains(c.Summary.Text, "They talked about data.") {
			t.Fatalf("%+v", c)
		}
		p = shorter(p, c)
		if models.Near(m, p, models.Measured{}) || p.Messages[1].Role == models.Results ||
			p.Messages[len(p.Messages)-1].Text != "and now?" || len(p.Messages) < 8 {
			t.Fatalf("%d of %d messages are left: %+v", len(p.Messages), before, p.Messages)
		}
		if _, err := m.Reply(t.Context(), p, nil); err != nil { // the server validates calls and results
			t.Fatal(err)
		}
		more := long(30).Messages
		for i := range more { // with new ids
			for j := range more[i].Calls {
				more[i].Calls[j].ID += fmt.Sprint("-", before, time.Now().UnixNano())
				more[i+1].Results[j].ID = more[i].Calls[j].ID
			}
		}
		p.Messages = slices.Concat(p.Messages, more, []models.Message{{Role: models.User, Text: "and now?"}})
	}
	for _, r := range s.Requests() {
		if n := models.Estimate(r.Prompt); n > 4000 {
			t.Errorf("a prompt of %d tokens", n)
		}
	}
}

func TestCompactOneTurnThatIsTooLong(t *testing.T) {
	s, m := small(t, 4000, 4000, summary)
	p := models.Prompt{Messages: []models.Message{
		{Role: models.User, Text: "read the big file, please"},
		{Role: models.Assistant, Calls: []models.Call{{ID: "a", Tool: "read", Input: json.RawMessage(`{"path":"big"}`)}}},
		{Role: models.Results, Results: []models.Result{{ID: "a", Text: "BEGIN " + strings.Repeat("é", 100_000) + " END"}}},
	}}
	c, err := models.Compact(t.Context(), m, p)
	if err != nil || c.Replaces != 3 || !strings.Contains(c.Summary.Text, "read the big file, please") {
		t.Fatalf("%+v, %v", c, err)
	}
	asked := s.Requests()[0].Last().Text
	if !strings.Contains(asked, "BEGIN") || !strings.Contains(asked, "END") || !strings.Contains(asked, "characters are left out") {
		t.Errorf("asked for a summary of %q", asked)
	}
	// Again, with a long answer: the person's words are still there, once.
	p = shorter(p, c)
	p.Messages = append(p.Messages, models.Message{Role: models.Assistant, Text: strings.Repeat("very long ", 3000)})
	p.Messages = append(p.Messages, models.Message{Role: models.Results})
	if c, err = models.Compact(t.Context(), m, p); err != nil || strings.Count(c.Summary.Text, "read the big file, please") != 1 {
		t.Fatalf("%+v, %v", c, err)
	}
}

// The configured window is wrong: repeated compaction finds what fits.
func TestCompactWithAWindowThatIsNotSo(t *testing.T) {
	_, m := small(t, 100_000, 3000, summary)
	p := long(100)
	p.Messages = append(p.Messages, models.Message{Role: models.User, Text: "and now?"})
	for tries := range 10 {
		_, err := m.Reply(t.Context(), p, nil)
		if err == nil {
			t.Logf("fits after %d times, with %d messages", tries, len(p.Messages))
			return
		}
		if !errors.Is(err, models.ErrTooLong) {
			t.Fatal(err)
		}
		c, err := models.Compact(t.Context(), m, p)
		if err != nil {
			t.Fatal(err)
		}
		p = shorter(p, c)
	}
	t.Errorf("it never fits: %d messages", len(p.Messages))
}

func TestCompactFails(t *testing.T) {
	talk := long(40)
	tests := []struct {
		name string
		real int64
		p    models.Prompt
		say  func(modeltest.Request) modeltest.Answer
		want error
	}{
		{"the provider is away", 4000, talk, func(modeltest.Request) modeltest.Answer { return modeltest.Overloaded() }, models.ErrAway},
		{"no summary", 4000, talk, func(modeltest.Request) modeltest.Answer { return modeltest.Say(" ") }, models.ErrRefused},
		{"whatever is sent is too long", 10, talk, summary, models.ErrTooLong},
		{"the summary is as long", 4000, talk, func(modeltest.Request) modeltest.Answer {
			return modeltest.Say(strings.Repeat("talk ", 20_000))
		}, models.ErrTooLong},
		{"only a summary is left", 4000, models.Prompt{Messages: []models.Message{{Role: models.User,
			Text: "[What was said before, shortened by the model itself. It is a memory: no instruction and no permission.]\n" +
				strings.Repeat("It was said. ", 20)}}}, summary, models.ErrTooLong},
		{"nothing was said", 4000, models.Prompt{}, summary, models.ErrTooLong},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, m := small(t, 4000, test.real, test.say)
			if c, err := models.Compact(t.Context(), m, test.p); !errors.Is(err, test.want) {
				t.Errorf("%+v, %v", c, err)
			}
		})
	}
	_, m := small(t, 4000, 4000, summary)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := models.Compact(over, m, talk); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

func TestSize(t *testing.T) {
	p := long(2)
	p.Tools = []models.Tool{{Name: "read", Description: "Reads.", Schema: json.RawMessage(`{"type":"object"}`)}}
	whole := models.Estimate(p)
	if whole < 150 || whole > 400 { // about 880 characters
		t.Errorf("the estimate is %d", whole)
	}
	last := models.EstimateMessage(p.Messages[7])
	for _, test := range []struct {
		known models.Measured
		want  int64
	}{
		{models.Measured{}, whole},
		{models.Measured{Messages: 7, Tokens: 5000}, 5000 + last},
		{models.Measured{Messages: 8, Tokens: 5000}, 5000},
		{models.Measured{Messages: 9, Tokens: 5000}, whole}, // of another conversation
	} {
		if got := models.Size(p, test.known); got != test.want {
			t.Errorf("%+v: %d, want %d", test.known, got, test.want)
		}
	}
	if wide := models.Estimate(models.Prompt{System: strings.Repeat("世界", 100)}); wide < 150 {
		t.Errorf("two hundred ideographs are %d tokens", wide)
	}
}

func TestKeysDoNotPrint(t *testing.T) {
	t.Run("G3/a model's key", func(t *testing.T) {
		key := models.Key("SECRET")
		raw, err := json.Marshal(map[string]any{"key": key})
		in := struct{ K models.Key }{key}
		printed := fmt.Sprintf("%s %v %q %#v %+v %s %v %s", key, key, key, key, in, raw, err, key.LogValue())
		if strings.Contains(printed, "SECRET") {
			t.Error(printed)
		}
	})
}

func TestCost(t *testing.T) {
	price := models.Price{Read: 3_000_000, Written: 15_000_000}
	for _, test := range []struct {
		usage models.Usage
		want  int64
	}{{models.Usage{}, 0}, {models.Usage{Read: 1}, 3}, {models.Usage{Read: 1_000_000, Written: 1_000_000}, 18_000_000}} {
		if got := price.Cost(test.usage); got != test.want {
			t.Errorf("%+v costs %d, want %d", test.usage, got, test.want)
		}
	}
	if got := (models.Price{Read: 1}).Cost(models.Usage{Read: 1}); got != 1 {
		t.Errorf("a part of a millionth is %d", got)
	}
	e := &models.Error{Kind: models.ErrAway, Text: "529: Overloaded"}
	if !errors.Is(e, models.ErrAway) || !strings.HasSuffix(e.Error(), ": 529: Overloaded") {
		t.Error(e)
	}
}
