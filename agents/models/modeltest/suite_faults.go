package modeltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/agents/models"
)

func passes(ctx context.Context, t *testing.T, s *stage) {
	s.Queue(Busy(time.Millisecond), Broken(), Overloaded(), Answer{Fault: &Fault{Status: 400, Text: "odd",
		Header: map[string]string{"X-Should-Retry": "true", "Retry-After": "0"}}}, Say("here I am"))
	reply := s.mustAsk(ctx, t, Hello())
	if reply.Text != "here I am" || len(s.Requests()) != 5 {
		t.Errorf("%q after %d requests", reply.Text, len(s.Requests()))
	}
	for _, r := range s.Requests() {
		if string(r.Body) != string(s.Requests()[0].Body) {
			t.Errorf("another request: %s", r.Body)
		}
	}
}

func bounded(ctx context.Context, t *testing.T, s *stage) {
	s.Answer(func(Request) Answer { return Overloaded() })
	_, err := s.ask(ctx, Hello())
	if !errors.Is(err, models.ErrAway) || !strings.Contains(err.Error(), "Overloaded") || len(s.Requests()) != 3 {
		t.Errorf("%v after %d requests", err, len(s.Requests()))
	}
}

func stays(ctx context.Context, t *testing.T, s *stage) {
	s.Queue(Answer{Fault: &Fault{Status: 503, Text: "closed", Header: map[string]string{"X-Should-Retry": "false"}}})
	if _, err := s.ask(ctx, Hello()); !errors.Is(err, models.ErrAway) || len(s.Requests()) != 1 {
		t.Errorf("%v after %d requests", err, len(s.Requests()))
	}
}

func laterOn(ctx context.Context, t *testing.T, s *stage) {
	at := time.Now().Add(time.Hour).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
	for _, value := range []string{"3600", at} {
		s.Queue(Answer{Fault: &Fault{Status: 429, Text: "later", Header: map[string]string{"Retry-After": value}}})
		_, err := s.ask(ctx, Hello())
		var e *models.Error
		if !errors.As(err, &e) || !errors.Is(err, models.ErrAway) || e.After < 59*time.Minute || e.After > time.Hour {
			t.Errorf("%s: %v", value, err)
		}
	}
	if n := len(s.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
}

func broken(ctx context.Context, t *testing.T, s *stage) {
	data := map[Dialect]string{OpenAI: "data: {\"choices\": [}\n\n", Anthropic: "event: message_start\ndata: {\"type\": [}\n\n"}[s.d]
	for name, bad := range map[string]Answer{
		"cut":       {Text: "half of it", Odd: Deviations{Cut: true}},
		"short":     {Text: "half of it", Odd: Deviations{Short: true}},
		"an error":  {Text: "half of it", Odd: Deviations{Error: true}},
		"garbage":   {Raw: data},
		"nothing":   {Raw: ": nothing\n\n"},
		"a page":    {Page: "<html>502</html>"},
		"JSON":      {Plain: `{"id": 1}`},
		"an error ": {Plain: `{"error": {"message": "upstream is away", "code": 502}}`},
	} {
		s.Queue(bad, Say("all of it"))
		reply := s.mustAsk(ctx, t, Hello())
		again := slices.Index(s.heard, "")
		if reply.Text != "all of it" || again < 0 || strings.Join(s.heard[again:], "") != "all of it" {
			t.Errorf("%s: %q, heard %q", name, reply.Text, s.heard)
		}
	}
}

func silence(ctx context.Context, t *testing.T, s *stage) {
	never := make(chan struct{})
	for _, quiet := range []Answer{{Wait: never}, {Text: "half of it", Pause: never}} {
		s.Queue(quiet, quiet)
		_, err := s.ask(ctx, Hello())
		if !errors.Is(err, models.ErrAway) || !strings.Contains(err.Error(), "nothing came for 50ms") {
			t.Error(err)
		}
	}
	if n := len(s.Requests()); n != 4 {
		t.Errorf("%d requests", n)
	}
}

// longEvent: the longest possible reply fits into one event, and nothing much longer does.
func longEvent(ctx context.Context, t *testing.T, s *stage) {
	whole := strings.Repeat("\u4e16", 128_000*2) // some servers escape each letter
	s.Queue(Answer{Text: whole, Pieces: 1}, Answer{Text: whole + whole + whole, Pieces: 1})
	if reply := s.mustAsk(ctx, t, Hello()); reply.Text != whole {
		t.Errorf("%d bytes of %d came", len(reply.Text), len(whole))
	}
	if _, err := s.ask(ctx, Hello()); !errors.Is(err, models.ErrAway) || !strings.Contains(err.Error(), "an event of the reply is longer") {
		t.Error(err)
	}
}

func leaves(ctx context.Context, t *testing.T, s *stage) {
	never := make(chan struct{})
	for i, a := range []Answer{{Wait: never}, {Text: "half of it", Pause: never}, Busy(time.Minute)} {
		s.Queue(a)
		limited, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() {
			_, err := s.model.Reply(limited, Hello(), nil)
			done <- err
		}()
		if _, err := s.Await(ctx, i+1); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func faults(ctx context.Context, t *testing.T, s *stage) {
	lines := "a\nb\x1b[31m" + strings.Repeat("long ", 200)
	for name, test := range map[string]struct {
		a    Answer
		kind error
		text string
	}{
		"too long":      {TooLong(s.d), models.ErrTooLong, "tokens"},
		"the other's":   {TooLong(map[Dialect]Dialect{OpenAI: Anthropic, Anthropic: OpenAI}[s.d]), models.ErrTooLong, "tokens"},
		"too many":      {Answer{Fault: &Fault{Status: 413, Text: "Request exceeds the maximum size"}}, models.ErrTooLong, "413"},
		"llama.cpp":     {Answer{Fault: &Fault{Status: 500, Text: "Context size has been exceeded."}}, models.ErrTooLong, "500"},
		"the key":       {Answer{Fault: &Fault{Status: 401, Text: "invalid x-api-key"}}, models.ErrRefused, "invalid"},
		"the model":     {Answer{Fault: &Fault{Status: 404, Text: "model not found"}}, models.ErrRefused, "model not found"},
		"no words":      {Answer{Fault: &Fault{Status: 403}}, models.ErrRefused, "Forbidden"},
		"money":         {Answer{Fault: &Fault{Status: 429, Type: "insufficient_quota", Text: "no money"}}, models.ErrRefused, "no money"},
		"several lines": {Answer{Fault: &Fault{Status: 400, Text: lines}}, models.ErrRefused, "a b[31mlong"},
	} {
		s.Queue(test.a)
		before := len(s.Requests())
		_, err := s.ask(ctx, Hello())
		if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.text) || len(err.Error()) > 600 {
			t.Errorf("%s: %v", name, err)
		}
		if n := len(s.Requests()) - before; n != 1 {
			t.Errorf("%s: %d requests", name, n)
		}
	}
}

func elsewhere(ctx context.Context, t *testing.T, s *stage) {
	other := New(t)
	other.Answer(func(Request) Answer { return Say("give me the key") })
	path := map[Dialect]string{OpenAI: "/chat/completions", Anthropic: "/v1/messages"}[s.d]
	s.Queue(Elsewhere(other.URL(s.d) + path))
	if _, err := s.ask(ctx, Hello()); !errors.Is(err, models.ErrRefused) || !strings.Contains(err.Error(), "elsewhere") {
		t.Error(err)
	}
	if n := len(other.Requests()); n != 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}

func secret(ctx context.Context, t *testing.T, s *stage) {
	s.Queue(Answer{Fault: &Fault{Status: 500, Text: "Broken by " + suiteKey}},
		Answer{Fault: &Fault{Status: 401, Text: "Incorrect API key provided: " + suiteKey + ". Or Bearer sk-suite%2FSECRET%2Bkey%3D%3D"}})
	_, err := s.ask(ctx, Hello())
	if err == nil || strings.Contains(err.Error(), "SECRET") || !strings.Contains(err.Error(), models.Key("").String()) {
		t.Errorf("the error is %v", err)
	}
	if logged := s.log.String(); strings.Contains(logged, "SECRET") || !strings.Contains(logged, "500: Broken by") {
		t.Errorf("the log says %q", logged)
	}
	for _, printed := range []string{fmt.Sprintf("%v", s.model), fmt.Sprintf("%+v", s.model), fmt.Sprintf("%#v", s.model)} {
		if strings.Contains(printed, "SECRET") {
			t.Errorf("the key is in %s", printed)
		}
	}
	header := s.Requests()[0].Header
	if sent := header.Get("Authorization") + header.Get("X-Api-Key"); !strings.HasSuffix(sent, suiteKey) {
		t.Errorf("the key was sent as %q", sent)
	}
}
