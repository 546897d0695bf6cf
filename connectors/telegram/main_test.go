package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dialed is an api whose every connection leads to answer, without a network: virtual time passes while it waits.
func dialed(t *testing.T, token Token, answer http.HandlerFunc) *api {
	t.Helper()
	l := &listener{come: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: answer, ReadHeaderTimeout: time.Hour}
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(l) })
	a := newAPI(token, "http://telegram.test", slog.New(slog.DiscardHandler))
	transportOf(a).Proxy = nil
	transportOf(a).DialContext = l.dial
	t.Cleanup(func() {
		a.close()
		_ = server.Close()
		served.Wait()
	})
	return a
}

func transportOf(a *api) *http.Transport {
	return a.client.Transport.(*http.Transport)
}

// listener is the end of a network in memory.
type listener struct {
	come   chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.come <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept waits for a connection.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.come:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends it.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr is nowhere.
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// say answers as the Bot API does.
func say(w http.ResponseWriter, result any, refused *apiError) {
	body := map[string]any{"ok": true, "result": result}
	if refused != nil {
		w.WriteHeader(refused.Code)
		body = map[string]any{"ok": false, "error_code": refused.Code, "description": refused.Text}
		if refused.Pause > 0 {
			body["parameters"] = map[string]any{"retry_after": int(refused.Pause / time.Second)}
		}
	}
	_ = json.NewEncoder(w).Encode(body)
}

// line is the end of a bot's line at Telegram: updates wait until a poll confirms them, and polls can be refused.
type line struct {
	t  *testing.T
	mu sync.Mutex

	waiting []string // updates
	rude    bool     // hands over what was confirmed
	refusal *apiError
	cut     bool // connections end without an answer
	hook    string

	came    chan struct{}
	polls   []url.Values
	at      []time.Time // of polls
	away    time.Duration
	logged  bytes.Buffer
	handled []int64
	badGaps int // so many are not mended
	gaps    []time.Duration
}

func newLine(t *testing.T) *line { return &line{t: t, came: make(chan struct{}, 100)} }

// ServeHTTP is the Bot API.
func (l *line) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	l.mu.Lock()
	cut, refusal, hook := l.cut, l.refusal, l.hook
	method := path.Base(r.URL.Path)
	if method == "getUpdates" {
		l.polls, l.at = append(l.polls, r.PostForm), append(l.at, time.Now())
	}
	l.mu.Unlock()
	switch {
	case cut:
		panic(http.ErrAbortHandler)
	case method == "getWebhookInfo":
		say(w, map[string]any{"url": hook, "pending_update_count": 0}, nil)
	case refusal != nil:
		say(w, nil, refusal)
	default:
		l.answer(w, r)
	}
}

// answer answers a poll, when something comes or its time is over.
func (l *line) answer(w http.ResponseWriter, r *http.Request) {
	offset, _ := strconv.ParseInt(r.PostForm.Get("offset"), 10, 64)
	seconds, _ := strconv.Atoi(r.PostForm.Get("timeout"))
	ctx, cancel := context.WithTimeout(r.Context(), time.Duration(seconds)*time.Second)
	defer cancel()
	for {
		l.mu.Lock()
		if !l.rude {
			l.waiting = slices.DeleteFunc(l.waiting, func(raw string) bool {
				var id int64
				n, _ := fmt.Sscanf(raw, `{"update_id":%d`, &id)
				return n == 1 && id < offset
			})
		}
		batch := strings.Join(l.waiting, ",")
		l.mu.Unlock()
		if batch == "" && ctx.Err() == nil {
			select {
			case <-l.came:
			case <-ctx.Done():
			}
			continue
		}
		fmt.Fprintf(w, `{"ok":true,"result":[%s]}`, batch)
		return
	}
}

// change changes how the line is, and adds updates.
func (l *line) change(f func(), updates ...string) {
	l.mu.Lock()
	f()
	l.waiting = append(l.waiting, updates...)
	l.mu.Unlock()
	if len(updates) > 0 {
		l.came <- struct{}{}
	}
}

func (l *line) come(ids ...int64) {
	for _, id := range ids {
		l.change(func() {}, said(id))
	}
}

func said(id int64) string {
	return fmt.Sprintf(`{"update_id":%d,"message":{"message_id":%d,"chat":{"id":5,"type":"private"},"text":"hi"}}`, id, id)
}

// serve runs a poller on a line until play is over, which must end it at once.
func (l *line) serve(handle func(context.Context, update) error, play func(*poller)) {
	a := dialed(l.t, testToken, l.ServeHTTP)
	now := func() time.Time { l.mu.Lock(); defer l.mu.Unlock(); return time.Now().Add(l.away) }
	p := newPoller(a, newState(now), now, slog.New(slog.NewTextHandler(&l.logged, nil)))
	ctx, cancel := context.WithCancel(l.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		err := p.run(ctx, func(ctx context.Context, u update) error {
			err := handle(ctx, u)
			if err == nil {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.handled = append(l.handled, u.ID)
			}
			return err
		}, func(_ context.Context, away time.Duration) error {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.badGaps > 0 {
				l.badGaps--
				return errors.New("the store is not there")
			}
			l.gaps, l.handled = append(l.gaps, away), append(l.handled, 0)
			return nil
		})
		if err != nil {
			l.t.Errorf("the poller ended: %v", err)
		}
	})
	play(p)
	synctest.Wait()
	cancel()
	ended := time.Now()
	running.Wait()
	took := time.Since(ended)
	synctest.Wait() // the line has seen it, too
	if took > time.Second {
		l.t.Errorf("the poller ended only after %v", took)
	}
	if strings.Contains(l.logged.String(), "SECRET") {
		l.t.Errorf("the token is in the log:\n%s", l.logged.String())
	}
}

func (l *line) wantHandled(want ...int64) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if diff := cmp.Diff(want, l.handled); diff != "" {
		l.t.Errorf("handled (0 is a gap): %s", diff)
	}
}

// polled counts the polls.
func (l *line) polled() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.polls)
}
