package anthropic

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
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

func TestConformance(t *testing.T) { modeltest.Conform(t, modeltest.Anthropic, build) }

// TestRecorded checks the result of each recorded stream exactly.
func TestRecorded(t *testing.T) { modeltest.Replay(t, "testdata", build) }

func build(s modeltest.Setup) (modeltest.Made, error) {
	return New(provider.ModelOptions{Name: s.Name, BaseURL: s.URL, Key: s.Key, Most: s.Most, Link: s.Link})
}

// asking is a server and a model that uses it.
func asking(t *testing.T, change func(*provider.ModelOptions)) (*modeltest.Server, *provider.Model) {
	t.Helper()
	s := modeltest.New(t)
	o := provider.ModelOptions{Name: "m", BaseURL: s.URL(modeltest.Anthropic),
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

func event(data string) string { return "event: " + kind(data) + "\ndata: " + data + "\n\n" }

func kind(data string) string {
	var e struct{ Type string }
	_ = json.Unmarshal([]byte(data), &e)
	return e.Type
}

const start = `{"type":"message_start","message":{"id":"1","type":"message","role":"assistant","content":[],"model":"m",` +
	`"usage":{"input_tokens":1,"cache_creation_input_tokens":20,"cache_read_input_tokens":300,"output_tokens":1}}}`

func TestStreams(t *testing.T) {
	stop := event(`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}`) + event(`{"type":"message_stop"}`)
	s, m := asking(t, nil)
	s.Queue(modeltest.Answer{Raw: event(start) +
		event(`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`) +
		event(`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`) +
		event(`{"type":"content_block_stop","index":0}`) +
		event(`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"One."}}`) +
		event(`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"Two."}}`) +
		event(`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"a","name":"read","input":{"a":1}}}`) +
		event(`{"type":"something_new","index":3}`) + stop})
	got, err := m.Reply(t.Context(), modeltest.Hello(), nil)
	want := models.Reply{Text: "One.\n\nTwo.", Usage: models.Usage{Read: 321, Written: 9},
		Calls: []models.Call{{ID: "a", Tool: "read", Input: json.RawMessage(`{"a":1}`)}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// TestWhatAnEventCosts: one event of a provider cannot exhaust the daemon's memory. An input of empty lists takes
// thirty times its length once decoded.
func TestWhatAnEventCosts(t *testing.T) {
	const length, most = 8 << 20, 64 << 20
	s, m := asking(t, nil)
	lists := strings.Repeat("[],", length/3) + "[]"
	s.Answer(func(modeltest.Request) modeltest.Answer {
		return modeltest.Answer{Raw: "event: x\ndata: " +
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","name":"a","input":[` + lists + "]}}\n\n"}
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := m.Reply(t.Context(), modeltest.Hello(), nil)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > most || !errors.Is(err, models.ErrAway) {
		t.Errorf("an event of %d bytes took %d bytes, and is %v", length, took, err)
	}
}

func TestRepliesThatAreNone(t *testing.T) {
	nameless := event(start) +
		event(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"","input":{}}}`) +
		event(`{"type":"message_stop"}`)
	twice := event(start) + // another parser could pick the other one
		event(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"read","input":{"a":1},`+
			`"input":{"a":2}}}`) +
		event(`{"type":"message_stop"}`)
	failed := func(kind, text string) modeltest.Answer {
		return modeltest.Answer{Raw: event(start) + event(`{"type":"error","error":{"type":"`+kind+`","message":"`+text+`"}}`)}
	}
	for name, test := range map[string]struct {
		a    modeltest.Answer
		kind error
		n    int
	}{
		"a refusal":       {modeltest.Answer{Text: "hm", Finish: "refusal"}, models.ErrRefused, 1},
		"a nameless tool": {modeltest.Answer{Raw: nameless}, models.ErrAway, 2},
		"too long":        {failed("invalid_request_error", "input length and max_tokens exceed context limit"), models.ErrTooLong, 1},
		"the request":     {failed("invalid_request_error", "messages: odd"), models.ErrRefused, 1},
		"overloaded":      {failed("overloaded_error", "Overloaded"), models.ErrAway, 2},
		"an input twice":  {modeltest.Answer{Raw: twice}, models.ErrAway, 2},
	} {
		s, m := asking(t, nil)
		s.Answer(func(modeltest.Request) modeltest.Answer { return test.a })
		_, err := m.Reply(t.Context(), modeltest.Hello(), nil)
		if !errors.Is(err, test.kind) || len(s.Requests()) != test.n || strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s: %v after %d", name, err, len(s.Requests()))
		}
	}
}

// Only the configuration counts, whatever the environment and the home folder contain.
func TestEnvironment(t *testing.T) {
	other := modeltest.New(t)
	home := t.TempDir()
	for _, dir := range []string{"", "configs", "profiles"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		profile := []byte(`{"base_url":"` + other.URL(modeltest.Anthropic) + `"}`)
		if err := os.WriteFile(filepath.Join(home, dir, "default.json"), profile, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("ANTHROPIC_CONFIG_DIR", home)
	t.Setenv("ANTHROPIC_BASE_URL", other.URL(modeltest.Anthropic))
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE", "ANTHROPIC_ORGANIZATION_ID",
		"ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_IDENTITY_TOKEN", "ANTHROPIC_WORKSPACE_ID"} {
		t.Setenv(name, "leaked")
	}
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Custom: leaked\nX-Api-Key: leaked")
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
		if sent := header.Get("X-Api-Key"); sent != string(key) || len(header.Values("X-Api-Key")) > 0 && key == "" {
			t.Errorf("the key was sent as %q", sent)
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
		o.Most, o.Price = 100, models.Price{Read: 3_000_000, Written: 15_000_000}
	})
	s.Queue(modeltest.Say("hi"))
	p := modeltest.Hello() // another provider's ids
	p.Messages = append(p.Messages,
		models.Message{Role: models.Assistant, Calls: []models.Call{{ID: "functions.read:0", Tool: "read", Input: json.RawMessage(`{}`)}}},
		models.Message{Role: models.Results, Results: []models.Result{{ID: "functions.read:0", Text: "x"}}})
	if _, err := m.Reply(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if r := s.Requests()[0]; r.Most != 100 || r.Model != "m" {
		t.Errorf("asked %s", r.Body)
	}
	if m.Name() != "m" || m.Window() != Window || m.Cost(models.Usage{Read: 1000, Written: 100}) != 4500 {
		t.Errorf("%s %d %d", m.Name(), m.Window(), m.Cost(models.Usage{Read: 1000, Written: 100}))
	}
	if _, err := New(provider.ModelOptions{Name: "m", BaseURL: "ftp://SECRET"}); err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("an address of another kind: %v", err)
	}
}
