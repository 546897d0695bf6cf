package modeltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/provider"
)

var update = flag.Bool("update", false, "write what the recorded streams give, instead of comparing it")

// huge replaces the word HUGE in a recorded answer.
var huge = strings.Repeat("x", 200_000)

// recorded is a recording: a provider's answers, one per attempt, and the expected outcome.
//
// It is a txtar archive. The optional section "ask" is the prompt as JSON. Each section "answer" is a response: status, headers, an
// empty line, and the body without its last line break. The header Replay names what text cannot express: cut (the connection
// breaks after the body), crlf (lines end with CR LF), huge (see [huge]), raw (the body is a Go string without quotes and with its
// line breaks removed). The section "want" is what the server received and the caller got.
type recorded struct {
	ask     asked
	answers []answer
	want    string
}

type asked struct {
	Name   string
	Most   int64
	Prompt models.Prompt
}

type answer struct {
	status int
	header http.Header
	body   string
	cut    bool
}

// Replay plays every recording of a folder to a model, unsplit and in small packets, and compares what was sent and returned.
func Replay(t *testing.T, dir string, build func(Setup) (Made, error)) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings in %s: %v", dir, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			archive := txtar.Parse(data)
			r, err := record(archive)
			if err != nil {
				t.Fatal(err)
			}
			for _, packet := range []int{0, 7, 1} {
				got := r.play(t, packet, build)
				if *update && packet == 0 {
					r.want = got
					keep(t, file, archive, got)
				}
				if diff := cmp.Diff(strings.Split(r.want, "\n"), strings.Split(got, "\n")); diff != "" {
					t.Fatalf("in packets of %d bytes: %s", packet, diff)
				}
			}
		})
	}
}

func keep(t *testing.T, file string, archive *txtar.Archive, want string) {
	t.Helper()
	archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return f.Name == "want" })
	archive.Files = append(archive.Files, txtar.File{Name: "want", Data: []byte(want)})
	if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
		t.Fatal(err)
	}
}

func record(archive *txtar.Archive) (recorded, error) {
	r := recorded{ask: asked{Name: "m", Prompt: Hello()}}
	for _, f := range archive.Files {
		switch f.Name {
		case "ask":
			if err := strictly(f.Data, &r.ask); err != nil {
				return r, err
			}
		case "answer":
			a, err := recordAnswer(string(f.Data))
			if err != nil {
				return r, err
			}
			r.answers = append(r.answers, a)
		case "want":
			r.want = string(f.Data)
		default:
			return r, fmt.Errorf("a section %q", f.Name)
		}
	}
	if len(r.answers) == 0 {
		return r, errors.New("no answer")
	}
	return r, nil
}

func recordAnswer(text string) (answer, error) {
	head, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(head, "\n")
	a := answer{header: http.Header{}, body: strings.TrimSuffix(body, "\n")}
	var err error
	if a.status, err = strconv.Atoi(lines[0]); err != nil {
		return a, err
	}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		switch name + " " + value {
		case "Replay cut":
			a.cut = true
		case "Replay crlf":
			a.body = strings.ReplaceAll(a.body, "\n", "\r\n")
		case "Replay huge":
			a.body = strings.ReplaceAll(a.body, "HUGE", huge)
		case "Replay raw":
			if a.body, err = strconv.Unquote(`"` + strings.ReplaceAll(a.body, "\n", "") + `"`); err != nil {
				return a, err
			}
		default:
			a.header.Set(name, value)
		}
	}
	return a, nil
}

// play asks once and records what was sent and returned.
func (r recorded) play(t *testing.T, packet int, build func(Setup) (Made, error)) string {
	t.Helper()
	var mu sync.Mutex
	var sent []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		mu.Lock()
		n := len(sent)
		sent = append(sent, written(q, body))
		mu.Unlock()
		r.answers[min(n, len(r.answers)-1)].write(w, packet)
	}))
	defer s.Close()
	m, err := build(Setup{URL: s.URL + "/base", Key: suiteKey, Name: r.ask.Name, Most: r.ask.Most,
		Link: provider.Options{Retry: provider.Retry{Tries: len(r.answers), Wait: time.Millisecond}}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var out strings.Builder
	reply, err := m.Reply(t.Context(), r.ask.Prompt, func(words string) { fmt.Fprintf(&out, "heard %q\n", words) })
	var e *models.Error
	switch {
	case errors.As(err, &e):
		fmt.Fprintf(&out, "error %q, after %v\n", e.Error(), e.After)
	case err != nil:
		t.Fatal(err)
	default:
		r.reply(&out, reply)
	}
	for i, request := range sent {
		if request != sent[0] {
			t.Errorf("request %d is another: %s", i, request)
		}
	}
	all := fmt.Sprintf("%srequests %d\n%s", sent[0], len(sent), out.String())
	return strings.ReplaceAll(strings.ReplaceAll(all, s.URL, "URL"), huge, "HUGE")
}

// reply records a reply. Ids that the provider did not give are random.
func (r recorded) reply(w io.Writer, reply models.Reply) {
	fmt.Fprintf(w, "text %q\n", reply.Text)
	for _, c := range reply.Calls {
		given := slices.ContainsFunc(r.answers, func(a answer) bool { return strings.Contains(a.body, c.ID) })
		if !given {
			c.ID = fmt.Sprintf("made, %d letters", len(c.ID))
		}
		fmt.Fprintf(w, "call %q %q %q\n", c.ID, c.Tool, c.Input)
	}
	fmt.Fprintf(w, "read %d, written %d, cut %v\n", reply.Usage.Read, reply.Usage.Written, reply.Cut)
}

// written is a request: the headers that the dialects require, and the body with its keys in order.
func written(q *http.Request, body []byte) string {
	text := q.Method + " " + q.URL.String() + "\n"
	for _, name := range []string{"Anthropic-Version", "Authorization", "Content-Type", "X-Api-Key"} {
		for _, value := range q.Header.Values(name) {
			text += name + ": " + value + "\n"
		}
	}
	var out bytes.Buffer
	var v any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if d.Decode(&v) != nil || e.Encode(v) != nil {
		return text + strconv.Quote(string(body)) + "\n"
	}
	return text + out.String()
}

// write writes the response in packets of so many bytes; 0: in one.
func (a answer) write(w http.ResponseWriter, packet int) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	body := []byte(a.body)
	if packet == 0 || len(body) > len(huge) {
		packet = max(len(body), 1)
	}
	for piece := range slices.Chunk(body, packet) {
		_, _ = w.Write(piece)
		_ = http.NewResponseController(w).Flush()
	}
	if a.cut {
		panic(http.ErrAbortHandler)
	}
}
