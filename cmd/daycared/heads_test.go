package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/permissions"
)

// A head whose publication failed is published again; one that succeeded is not.
func TestHeadsOfTheAuditArePublished(t *testing.T) {
	var taken bytes.Buffer
	refuses := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuses {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("it sends %s of %q", r.Method, r.Header.Get("Content-Type"))
		}
		_, _ = io.Copy(&taken, r.Body)
	}))
	defer server.Close()
	folder := t.TempDir()
	file := filepath.Join(folder, "new", "heads")
	var lines bytes.Buffer
	logs := slog.New(slog.NewTextHandler(&lines, nil))
	for name, c := range map[string]struct {
		to   string
		bad  func()
		good func()
		got  func() string
	}{
		"an address": {server.URL, func() { refuses = true }, func() { refuses = false }, taken.String},
		"a file": {file, func() {}, func() {
			if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
		}, func() string {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}},
		"the log": {"log", nil, nil, lines.String},
	} {
		t.Run("H1/"+name, func(t *testing.T) {
			var seq int64
			broken := errors.New("the store is away")
			p := newPublisher(config.Heads{To: c.to, Every: time.Minute}, func(context.Context) (string, int64, permissions.Digest, error) {
				if seq < 0 {
					return "", 0, permissions.Digest{}, broken
				}
				return "c1", seq, permissions.Digest{byte(seq)}, nil
			}, logs)
			publish := func() error { return p.publish(t.Context(), time.Unix(1_800_000_000, 0)) }
			if err := publish(); err != nil {
				t.Errorf("without an entry: %v", err)
			}
			if seq = -1; !errors.Is(publish(), broken) {
				t.Error("what cannot be read is no error")
			}
			if seq = 7; c.bad != nil {
				c.bad()
				if publish() == nil {
					t.Error("it is not taken, and that is no error")
				}
				c.good()
			}
			for range 2 {
				if err := publish(); err != nil {
					t.Fatal(err)
				}
			}
			if seq = 9; publish() != nil {
				t.Fatal("the next")
			}
			said := strings.Split(strings.TrimSpace(c.got()), "\n")
			if len(said) != 2 || !strings.Contains(said[0], "7:sha256:07") || !strings.Contains(said[1], "9:sha256:09") {
				t.Fatalf("published: %q", said)
			}
			if c.to == "log" {
				return
			}
			var h published
			if err := json.Unmarshal([]byte(said[1]), &h); err != nil || h.Chain != "c1" || h.Seq != 9 ||
				!h.Time.Equal(time.Unix(1_800_000_000, 0)) {
				t.Errorf("%+v, %v", h, err)
			}
		})
	}
	nowhere := newPublisher(config.Heads{}, nil, nil)
	if nowhere.last(); nowhere.run(t.Context()) != nil {
		t.Error("none are to be published, and that is an error")
	}
}

// A failure is logged when it begins and when it is over, and is known meanwhile.
func TestAFailureToPublishHeadsIsLoggedWhenItBeginsAndWhenItEnds(t *testing.T) {
	var lines bytes.Buffer
	broken := errors.New("the store is away")
	p := newPublisher(config.Heads{To: "log"}, func(context.Context) (string, int64, permissions.Digest, error) {
		return "c1", 0, permissions.Digest{}, broken
	}, slog.New(slog.NewTextHandler(&lines, nil)))
	for range 3 {
		p.try(t.Context(), time.Minute)
	}
	if said := lines.String(); p.failed.Load() == nil || strings.Count(said, "\n") != 1 || !strings.Contains(said, "the store is away") {
		t.Errorf("of a failure it says:\n%s", said)
	}
	lines.Reset()
	broken = nil
	for range 3 {
		p.try(t.Context(), time.Minute)
	}
	if said := lines.String(); p.failed.Load() != nil || strings.Count(said, "\n") != 1 || !strings.Contains(said, "published again") {
		t.Errorf("of its end it says:\n%s", said)
	}
}

// The last head is published at the stop, so that entries since the last interval are covered.
func TestTheLastHeadIsPublishedAtTheStop(t *testing.T) {
	file := filepath.Join(t.TempDir(), "heads")
	var seq int64 = 1
	p := newPublisher(config.Heads{To: file, Every: time.Hour}, func(context.Context) (string, int64, permissions.Digest, error) {
		seq++
		return "c1", seq, permissions.Digest{}, nil
	}, slog.New(slog.DiscardHandler))
	p.last()
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), `"head":"2:`) {
		t.Errorf("%s, %v", text, err)
	}
}

// A stop does not wait long for an address that does not answer.
func TestAHangingAddressDoesNotHoldUpAStop(t *testing.T) {
	asked, free := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-free
	}))
	defer server.Close()
	defer close(free)
	p := newPublisher(config.Heads{To: server.URL, Every: time.Hour}, func(context.Context) (string, int64, permissions.Digest, error) {
		return "c1", 1, permissions.Digest{}, nil
	}, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx) }()
	<-asked
	at := time.Now()
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if took := time.Since(at); took > publishWithin/2 {
		t.Errorf("the stop takes %v", took)
	}
}

// TestAHeadThatIsRedirectedIsNotPublished: H1/where it is redirected to, it does not arrive.
func TestAHeadThatIsRedirectedIsNotPublished(t *testing.T) {
	for _, code := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked++; r.URL.Path != "/login" {
				http.Redirect(w, r, "/login", code)
			}
		}))
		if err := post(t.Context(), server.URL, []byte("{}")); err == nil || !strings.Contains(err.Error(), strconv.Itoa(code)) || asked != 1 {
			t.Errorf("%d: %v, after %d calls", code, err, asked)
		}
		server.Close()
	}
}

// TestHeadsAreWrittenToNoFileOfAnother: H1/the lines would make the audit key, or another file of the daemon's, unreadable.
func TestHeadsAreWrittenToNoFileOfAnother(t *testing.T) {
	dir := t.TempDir()
	key, link, heads := filepath.Join(dir, "audit.key"), filepath.Join(dir, "link"), filepath.Join(dir, "heads")
	const text = "0123456789abcdef\n"
	line := []byte(`{"time":"2026-11-29T13:00:00Z","chain":"c","seq":1,"head":"1:sha256:00"}` + "\n")
	if err := errors.Join(os.WriteFile(key, []byte(text), 0o600), os.Symlink(key, link)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{key, link} {
		if err := appendLine(path, line); err == nil || !strings.Contains(err.Error(), "name ") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if got, err := os.ReadFile(key); err != nil || string(got) != text {
		t.Errorf("the key is %q, %v", got, err)
	}
	for range 2 {
		if err := appendLine(heads, line); err != nil {
			t.Error(err)
		}
	}
}

// A pipe without a reader would block the stop.
func TestNoHeadIsWrittenToAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "heads")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if appendLine(pipe, []byte("1\n")) == nil {
		t.Error("it is written to nobody")
	}
	reader, err := os.OpenFile(pipe, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := appendLine(pipe, []byte("1\n")); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("to a pipe with a reader: %v", err)
	}
}
