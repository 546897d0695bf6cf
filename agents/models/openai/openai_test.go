package openai

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/modeltest"
	"github.com/daycared/daycared/agents/models/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) { modeltest.Conform(t, modeltest.OpenAI, build) }

// TestRecorded checks the result of each recorded stream exactly.
func TestRecorded(t *testing.T) { modeltest.Replay(t, "testdata", build) }

func build(s modeltest.Setup) (modeltest.Made, error) {
	return New(provider.ModelOptions{Name: s.Name, BaseURL: s.URL, Key: s.Key, Most: s.Most, Link: s.Link})
}

// asking is a server and a model that uses it, once per test.
func asking(t *testing.T, change func(*provider.ModelOptions)) (*modeltest.Server, *provider.Model) {
	t.Helper()
	s := modeltest.New(t)
	o := provider.ModelOptions{Name: "m", BaseURL: s.URL(modeltest.OpenAI),
		Link: provider.Options{Retry: provider.Retry{Tries: 2, Wait: time.Millisecond}}}
	if change != nil {
		change(&o)
	}
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return s, m
}

// Deviations of servers that are almost OpenAI.
func TestServersOfOthers(t *testing.T) {
	two := []models.Call{
		{ID: "x", Tool: "read", Input: json.RawMessage(`{"a":1}`)},
		{ID: "y", Tool: "read", Input: json.RawMessage(`{"a":2}`)},
	}
	chunk := func(delta, finish string) string {
		return `data: {"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}` + "\n\n"
	}
	piece := func(arguments string) string {
		return `{"tool_calls":[{"index":0,"id":"x","function":{"name":"read","arguments":"` + arguments + `"}}]}`
	}
	tests := []struct {
		name string
		a    modeltest.Answer
		want models.Reply // empty ids are not compared
	}{
		{"no ids", modeltest.Answer{Calls: two, Odd: modeltest.Deviations{NoIDs: true}}, models.Reply{Calls: ids(two, "", "")}},
		{"all are the first", modeltest.Answer{Calls: two, Odd: modeltest.Deviations{NoIndex: true}}, models.Reply{Calls: two}},
		{"both", modeltest.Answer{Calls: two, Odd: modeltest.Deviations{NoIndex: true, NoIDs: true}}, models.Reply{Calls: ids(two, "", "")}},
		{"both, in one piece", modeltest.Answer{Calls: two, Pieces: 1, Odd: modeltest.Deviations{NoIndex: true, NoIDs: true}},
			models.Reply{Calls: ids(two, "", "")}},
		{"stop, though it calls", modeltest.Answer{Calls: two, Finish: "stop"}, models.Reply{Calls: two}},
		{"an odd reason", modeltest.Answer{Text: "hi", Finish: "eos_token"}, models.Reply{Text: "hi"}},
		{"no reason", modeltest.Answer{Text: "hi", Odd: modeltest.Deviations{NoFinish: true}}, models.Reply{Text: "hi"}},
		{"no end", modeltest.Answer{Text: "hi", Odd: modeltest.Deviations{NoDone: true}}, models.Reply{Text: "hi"}},
		{"chunks without a choice", modeltest.Answer{Text: "hi", Odd: modeltest.Deviations{NoChoice: true}}, models.Reply{Text: "hi"}},
		{"a refusal in words", modeltest.Answer{Raw: chunk(`{"refusal":"I can't."}`, `"stop"`)}, models.Reply{Text: "I can't."}},
		{"nulls", modeltest.Answer{Raw: chunk(`{"content":null,"tool_calls":null}`, `null`) + chunk(`{"content":"hi"}`, `"stop"`)},
			models.Reply{Text: "hi"}},
		{"no space before the data", modeltest.Answer{Raw: strings.ReplaceAll(chunk(`{"content":"hi"}`, `"stop"`), "data: ", "data:")},
			models.Reply{Text: "hi"}},
		{"another choice", modeltest.Answer{Raw: `data: {"choices":[{"index":1,"delta":{"content":"no"}}]}` + "\n\n" +
			chunk(`{"content":"hi"}`, `"stop"`)}, models.Reply{Text: "hi"}},
		{"the name with every piece", modeltest.Answer{Raw: chunk(piece(`{\"a\"`), "null") + chunk(piece(`:1}`), `"tool_calls"`)},
			models.Reply{Calls: two[:1]}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, m := asking(t, nil)
			s.Queue(test.a)
			got, err := m.Reply(t.Context(), modeltest.Hello(), nil)
			if err != nil {
				t.Fatal(err)
			}
			got.Usage = models.Usage{}
			seen := map[string]bool{}
			for i, c := range got.Calls {
				if c.ID == "" || seen[c.ID] {
					t.Errorf("the id %q", c.ID)
				}
				seen[c.ID] = true
				if i < len(test.want.Calls) && test.want.Calls[i].ID == "" {
					got.Calls[i].ID = ""
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func ids(calls []models.Call, ids ...string) []models.Call {
	calls = append([]models.Call(nil), calls...)
	for i, id := range ids {
		calls[i].ID = id
	}
	return calls
}

func TestRepliesThatAreNone(t *testing.T) {
	nameless := `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x","function":{"arguments":"{}"}}]},` +
		`"finish_reason":"stop"}]}` + "\n\n"
	exceeds := `data: {"error":{"code":400,"message":"exceeds the available context size"}}` + "\n\n"
	twice := `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"read","name":"write",` +
		`"arguments":"{}"}}]},"finish_reason":"stop"}]}` + "\n\n"
	for name, test := range map[string]struct {
		a    modeltest.Answer
		kind error
	}{
		"the filter":      {modeltest.Answer{Text: "hm", Finish: "content_filter"}, models.ErrRefused},
		"an error":        {modeltest.Answer{Text: "hm", Finish: "error"}, models.ErrAway},
		"a nameless tool": {modeltest.Answer{Raw: nameless}, models.ErrAway},
		"another's error": {modeltest.Answer{Raw: exceeds}, models.ErrTooLong},
		"a name twice":    {modeltest.Answer{Raw: twice}, models.ErrAway},
	} {
		s, m := asking(t, nil)
		s.Answer(func(modeltest.Request) modeltest.Answer { return test.a })
		if reply, err := m.Reply(t.Context(), modeltest.Hello(), nil); !errors.Is(err, test.kind) || len(reply.Calls) > 0 {
			t.Errorf("%s: %+v, %v", name, reply, err)
		}
	}
}

// Only the configuration counts, whatever the environment contains.
func TestEnvironment(t *testing.T) {
	other := modeltest.New(t)
	t.Setenv("OPENAI_BASE_URL", other.URL(modeltest.OpenAI))
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_WEBHOOK_SECRET"} {
		t.Setenv(name, "leaked")
	}
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Custom: leaked\nAuthorization: Bearer leaked")
	for _, key := range []models.Key{"", "ours"} {
		s, m := asking(t, func(o *provider.ModelOptions) { o.Key = key })
		s.Queue(modeltest.Say("hi"))
		if _, err := m.Reply(t.Context(), modeltest.Hello(), nil); err != nil {
			t.Fatal(err)
		}
		header := s.Requests()[0].Header
		for name, values := range header {
			if strings.Contains(strings.Join(values, " "), "leaked") {
				t.Errorf("%s: %q", name, values)
			}
		}
		want := http.Header{}
		if key != "" {
			want.Set("Authorization", "Bearer ours")
		}
		if diff := cmp.Diff(want.Values("Authorization"), header.Values("Authorization")); diff != "" {
			t.Error(diff)
		}
	}
	if n := len(other.Requests()); n > 0 {
		t.Errorf("%d requests went where the environment says", n)
	}
	if m, err := New(provider.ModelOptions{Name: "m"}); err != nil || m.Link.Base() != Base+"/" {
		t.Errorf("without an address: %v", err)
	}
}

func TestOptions(t *testing.T) {
	s, m := asking(t, func(o *provider.ModelOptions) {
		o.Most, o.Price = 100, models.Price{Read: 2_500_000, Written: 10_000_000}
	})
	s.Queue(modeltest.Say("hi"))
	if _, err := m.Reply(t.Context(), modeltest.Hello(), nil); err != nil {
		t.Fatal(err)
	}
	if r := s.Requests()[0]; r.Most != 100 || r.Model != "m" || !strings.Contains(string(r.Body), `"max_tokens"`) {
		t.Errorf("asked %s", r.Body)
	}
	if m.Name() != "m" || m.Window() != Window || m.Cost(models.Usage{Read: 1000, Written: 100}) != 3500 {
		t.Errorf("%s %d %d", m.Name(), m.Window(), m.Cost(models.Usage{Read: 1000, Written: 100}))
	}
	own, err := New(provider.ModelOptions{Name: "m", Most: 100, Window: 5})
	if err != nil || own.Window() != 5 {
		t.Fatal(err)
	}
	if body, err := json.Marshal(own.Dialect.(*dialect).params(modeltest.Hello())); err != nil ||
		!strings.Contains(string(body), `"max_completion_tokens":100`) || strings.Contains(string(body), `"max_tokens"`) {
		t.Errorf("OpenAI itself is asked with %s, %v", body, err)
	}
	_, err = New(provider.ModelOptions{Name: "m", BaseURL: "https://fay:SECRET@example.com"})
	if err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("an address with a password: %v", err)
	}
}
