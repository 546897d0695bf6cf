package mcp_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/daycared/daycared/agents/mcp"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

const impatience = 300 * time.Millisecond

// impatient calls like clients that give up after a period without progress.
type impatient struct {
	*sdk.ClientSession
	mu       sync.Mutex
	timer    *time.Timer
	progress []float64
	first    string // the first progress message
	last     string
}

func (s *env) impatient(era string) *impatient {
	s.t.Helper()
	i := &impatient{}
	c := sdk.NewClient(&sdk.Implementation{Name: "tester", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			i.mu.Lock()
			defer i.mu.Unlock()
			i.progress = append(i.progress, r.Params.Progress)
			i.first, i.last = cmp.Or(i.first, r.Params.Message), r.Params.Message
			i.timer.Reset(impatience)
		},
	})
	session, err := c.Connect(s.t.Context(), &sdk.StreamableClientTransport{
		Endpoint: s.url, HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, MaxRetries: -1,
	}, &sdk.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = session.Close() })
	i.ClientSession = session
	return i
}

var errImpatient = errors.New("the operation timed out")

// call calls, and gives up after that period.
func (i *impatient) call(ctx context.Context, name string, with any, token any) <-chan result {
	ctx, cancel := context.WithCancelCause(ctx)
	i.mu.Lock()
	i.timer = time.AfterFunc(impatience, func() { cancel(errImpatient) })
	i.mu.Unlock()
	done := make(chan result, 1)
	go func() {
		p := &sdk.CallToolParams{Name: name, Arguments: with}
		if token != nil {
			p.SetProgressToken(token)
		}
		r, err := i.CallTool(ctx, p)
		i.mu.Lock()
		i.timer.Stop()
		i.mu.Unlock()
		done <- result{r, errors.Join(err, context.Cause(ctx))}
		cancel(nil)
	}()
	return done
}

// Progress holds a call for twenty client timeouts.
func TestProgressHoldsACallForTwentyTimeouts(t *testing.T) {
	t.Parallel()
	s := newEnv(t, func(o *mcp.Options) { o.Every = impatience / 10 })
	for _, era := range []string{legacy, modern} {
		t.Run("D7/"+era, func(t *testing.T) {
			t.Parallel()
			c := s.impatient(era)
			waits := c.call(t.Context(), "pause", arguments{"message": "look, " + era, "mode": "confirm"}, "p")
			select {
			case r := <-waits:
				t.Fatalf("it ended: %v", r.err)
			case <-time.After(20 * impatience):
			}
			for _, r := range s.atLeast(1) {
				if strings.HasSuffix(r.Message, era) {
					s.decide(r.ID, permissions.Allow(permissions.Once), "")
				}
			}
			if got := s.get(waits); textOf(t, got) != "Approved." {
				t.Errorf("%q", textOf(t, got))
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			for i, n := range c.progress {
				if n != float64(i+1) {
					t.Fatalf("progress %v", c.progress)
				}
			}
			if len(c.progress) < 20 {
				t.Errorf("only %d progress messages", len(c.progress))
			}
		})
	}
}

// Progress names a channel that does not deliver the question, until it does.
func TestProgressNamesAChannelThatDoesNotDeliver(t *testing.T) {
	s := newEnv(t, func(o *mcp.Options) { o.Every = impatience / 10 })
	s.fay.FailSend(1<<30, errors.New("the network is down"))
	c := s.impatient(modern)
	says := func(want bool) func() bool {
		return func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.progress) > 1 && strings.HasSuffix(c.last, " Not delivered yet by telegram.") == want
		}
	}
	arguments := arguments{"permissions": []string{"@network"}, "reason": "docs", "timeout_minutes": 5}
	waits := c.call(t.Context(), "request_permission", arguments, "p")
	wiretest.Eventually(t, "it says who does not deliver", says(true))
	s.fay.FailSend(0, nil)
	wiretest.Eventually(t, "it is delivered", says(false))
	s.decide(s.atLeast(1)[0].ID, permissions.Allow(permissions.Once), "")
	s.get(waits)
}

// If the caller wants more time than people have, the first progress message and the result say so.
func TestAShortenedTimeoutIsTold(t *testing.T) {
	const short = "the timeout was shortened from 60 minutes to 10 minutes"
	for _, era := range []string{legacy, modern} {
		for _, c := range []struct {
			minutes     int
			first, want string
		}{
			{60, "Waiting for an answer; " + short + ".", "Permission granted for workspace write access.\n(" + short + ")"},
			{10, "Waiting for an answer.", "Permission granted for workspace write access."},
		} {
			t.Run(fmt.Sprint(era, " ", c.minutes), func(t *testing.T) {
				s := newEnv(t, func(o *mcp.Options) { o.Every = impatience / 10 })
				i := s.impatient(era)
				waits := i.call(t.Context(), "request_permission", arguments{
					"permission": "@workspace", "reason": "x", "timeout_minutes": c.minutes,
				}, "p")
				r := s.pending(1)[0]
				if r.Timeout() != 10*time.Minute {
					t.Errorf("it waits for %s", r.Timeout())
				}
				s.decide(r.ID, permissions.Allow(permissions.Once), "")
				if got := textOf(t, s.get(waits)); got != c.want {
					t.Errorf("the result is %q", got)
				}
				i.mu.Lock()
				defer i.mu.Unlock()
				if i.first != c.first {
					t.Errorf("the first progress message says %q", i.first)
				}
			})
		}
	}
}

// Without a progress token there is no progress, and a client that gives up and asks again gets the decision made meanwhile.
func TestWhoDropsAndAsksAgainGetsTheDecision(t *testing.T) {
	for _, era := range []string{legacy, modern} {
		for _, try := range []struct {
			name, tool string
			with       arguments
			answer     permissions.Answer
			want       string
		}{
			{"allowed", "request_permission", network, permissions.Allow(permissions.Once), "Permission granted for network access."},
			{"denied", "request_permission", network, permissions.Deny, "Permission denied for network access."},
			{"chosen", "ask_user", choose, permissions.Choose(2), "mail"},
			{"a tool", "approve_tool", shell, permissions.Allow(permissions.Once),
				`{"behavior":"allow","updatedInput":{"command":"rm -rf build","n":1e2}}`},
		} {
			t.Run("D3/"+era+" "+try.name, func(t *testing.T) {
				t.Parallel()
				s := newEnv(t, nil)
				c := s.impatient(era)
				if r := <-c.call(t.Context(), try.tool, try.with, nil); !errors.Is(r.err, errImpatient) {
					t.Fatalf("it did not give up: %v", r.err)
				}
				r := s.pending(1)[0]
				s.waits(r.ID, 0) // the end of the waiting was noticed
				if r := <-c.call(t.Context(), try.tool, try.with, nil); !errors.Is(r.err, errImpatient) {
					t.Fatalf("it did not give up again: %v", r.err)
				}
				s.waits(r.ID, 0)
				s.decide(r.ID, try.answer, "")
				if got := textOf(t, s.get(call(t.Context(), c.ClientSession, try.tool, try.with))); got != try.want {
					t.Errorf("asked again: %q", got)
				}
				if n := s.asked(); n != 1 {
					t.Errorf("fay was asked %d times", n)
				}
				// An answer is given once: a later identical question is asked.
				later := call(t.Context(), c.ClientSession, try.tool, try.with)
				next := s.pending(1)[0]
				if next.ID == r.ID {
					t.Error("an old answer stands for a new question")
				}
				s.decide(next.ID, try.answer, "")
				s.get(later)
			})
		}
	}
}

// A retry joins a request that is still pending.
func TestWhoAsksAgainJoins(t *testing.T) {
	s := newEnv(t, nil)
	stdio := s.stdio(nil)
	for name, c := range map[string]*sdk.ClientSession{legacy: s.client(legacy), modern: s.client(modern), "stdio": stdio} {
		t.Run("D7/"+name, func(t *testing.T) {
			before := s.asked()
			confirm := arguments{"message": "send it by " + name + "?", "mode": "confirm"} // distinct, since three denials end the asking
			ctx, drop := context.WithCancel(t.Context())
			first := call(ctx, c, "pause", confirm)
			r := s.pending(1)[0]
			s.waits(r.ID, 1)
			drop()
			<-first
			s.waits(r.ID, 0)
			again := call(t.Context(), c, "pause", confirm)
			s.waits(r.ID, 1)
			s.decide(r.ID, permissions.Deny, "")
			if got := textOf(t, s.get(again)); got != "Denied." || s.asked() != before+1 {
				t.Errorf("%s: %q, asked %d times", name, got, s.asked()-before)
			}
		})
	}
}

// Anonymous callers cannot be told apart: none gets an answer that another abandoned.
func TestWhoIsAnonymousFindsNothingAgain(t *testing.T) {
	nobody := permissions.Caller{Name: permissions.Anonymous, UID: permissions.NoUID}
	s := newEnv(t, func(o *mcp.Options) { o.CallerOf = func(context.Context) permissions.Caller { return nobody } })
	c := s.client(legacy)
	ctx, drop := context.WithCancel(t.Context())
	first := call(ctx, c, "pause", confirm)
	r := s.pending(1)[0]
	s.waits(r.ID, 1)
	drop()
	<-first
	s.waits(r.ID, 0)
	s.decide(r.ID, permissions.Allow(permissions.Once), "")
	again := call(t.Context(), c, "pause", confirm)
	s.decide(s.pending(1)[0].ID, permissions.Deny, "")
	if got := textOf(t, s.get(again)); got != "Denied." || s.asked() != 2 {
		t.Errorf("%q, asked %d times", got, s.asked())
	}
}

// An expired request does not answer a later question.
func TestWhatExpiredIsAskedAnew(t *testing.T) {
	t.Run("D3/what expired", func(t *testing.T) {
		s := newEnv(t, nil)
		c := s.client(legacy)
		ctx, drop := context.WithCancel(t.Context())
		first := call(ctx, c, "pause", confirm)
		r := s.pending(1)[0]
		s.waits(r.ID, 1)
		drop()
		<-first
		s.waits(r.ID, 0)
		if _, err := s.Withdraw(t.Context(), bot, r.ID); err != nil {
			t.Fatal(err)
		}
		again := call(t.Context(), c, "pause", confirm)
		s.decide(s.pending(1)[0].ID, permissions.Allow(permissions.Once), "")
		if got := textOf(t, s.get(again)); got != "Approved." {
			t.Errorf("%q", got)
		}
	})
}

// cancelled waits until a request is.
func (s *env) settled(id permissions.ID, want permissions.State) {
	s.t.Helper()
	wiretest.Eventually(s.t, "the request is "+string(want), func() bool {
		r, err := s.rows.Read(s.t.Context(), id)
		return err == nil && r.State == want
	})
}

// A call ended by `cancelled` withdraws its request if the client does not return in time.
func TestCancelledAndNobodyComesBack(t *testing.T) {
	const soon = 200 * time.Millisecond
	s := newEnv(t, func(o *mcp.Options) { o.WithdrawAfter = soon })
	for name, c := range map[string]*sdk.ClientSession{
		"stdio": s.stdio(func(o *mcp.Options) { o.WithdrawAfter = soon }), legacy: s.client(legacy),
	} {
		t.Log(name)
		ctx, cancel := context.WithCancel(t.Context())
		waits := call(ctx, c, "pause", confirm)
		r := s.pending(1)[0]
		s.waits(r.ID, 1)
		at := time.Now()
		cancel()
		if r := <-waits; r.err == nil {
			t.Fatalf("%s: it was not cancelled", name)
		}
		s.settled(r.ID, permissions.Cancelled)
		if took := time.Since(at); took < soon {
			t.Errorf("%s: cancelled after %s", name, took)
		}
	}
}

func TestCancelledAndAskedAgain(t *testing.T) {
	const soon = 200 * time.Millisecond
	s := newEnv(t, func(o *mcp.Options) { o.WithdrawAfter = soon })
	for name, c := range map[string]*sdk.ClientSession{
		"stdio": s.stdio(func(o *mcp.Options) { o.WithdrawAfter = soon }), legacy: s.client(legacy),
	} {
		t.Run("D7/"+"cancelled over "+name, func(t *testing.T) {
			before := s.asked()
			ctx, cancel := context.WithCancel(t.Context())
			waits := call(ctx, c, "pause", confirm)
			r := s.pending(1)[0]
			s.waits(r.ID, 1)
			cancel()
			<-waits
			again := call(t.Context(), c, "pause", confirm)
			s.waits(r.ID, 1)
			select {
			case got := <-again:
				t.Fatalf("%s: it ended: %v", name, got.err)
			case <-time.After(2 * soon):
			}
			s.decide(r.ID, permissions.Allow(permissions.Once), "")
			if got := textOf(t, s.get(again)); got != "Approved." || s.asked() != before+1 {
				t.Errorf("%s: %q, asked %d times", name, got, s.asked()-before)
			}
		})
	}
}

// A lost connection or the end of standard input never cancels a request.
func TestALostConnectionCancelsNothing(t *testing.T) {
	const soon = 50 * time.Millisecond
	s := newEnv(t, func(o *mcp.Options) { o.WithdrawAfter = soon })
	for _, era := range []string{legacy, modern} {
		drop, status := s.post(era, 7, `{"message":"`+era+`","mode":"confirm"}`)
		if status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
		id := s.pending(1)[0].ID
		s.waits(id, 1)
		drop()
		s.waits(id, 0)
		<-time.After(4 * soon)
		if r, err := s.rows.Read(t.Context(), id); err != nil || r.State != permissions.Pending {
			t.Errorf("%s: %s, %v", era, r.State, err)
		}
		s.decide(id, permissions.Deny, "")
	}
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- mcp.New(mcp.Options{
			Requests: s.Engine, CallerOf: func(context.Context) permissions.Caller { return bot }, WithdrawAfter: soon, Log: wiretest.Quiet,
		}).Serve(context.Background(), in, out)
	}()
	go func() { _, _ = io.Copy(io.Discard, fromServer) }()
	_, _ = io.WriteString(toServer, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",`+
		`"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`+"\n"+`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"pause","arguments":{"message":"x","mode":"confirm"}}}`+"\n")
	id := s.pending(1)[0].ID
	s.waits(id, 1)
	_ = toServer.Close()
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
	s.waits(id, 0)
	if r, err := s.rows.Read(t.Context(), id); err != nil || r.State != permissions.Pending {
		t.Errorf("stdio: %s, %v", r.State, err)
	}
}

// TestAStopEndsTheCallsThatWait, whatever they wait for, while the client still listens. Their requests stay pending.
func TestAStopEndsTheCallsThatWait(t *testing.T) {
	t.Run("D7/over stdio", func(t *testing.T) {
		s := newEnv(t, nil)
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		served := make(chan error, 1)
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			served <- mcp.New(mcp.Options{
				Requests: s.Engine, CallerOf: func(context.Context) permissions.Caller { return bot },
				WithdrawAfter: time.Millisecond, Log: wiretest.Quiet,
			}).Serve(ctx, in, out)
		}()
		go func() { _, _ = io.Copy(io.Discard, fromServer) }()
		_, _ = io.WriteString(toServer, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",`+
			`"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`+"\n"+`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"pause","arguments":{"message":"x","mode":"confirm"}}}`+"\n")
		id := s.pending(1)[0].ID
		s.waits(id, 1)
		stop()
		select {
		case err := <-served:
			if err != nil {
				t.Errorf("serve: %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("it still serves")
			_ = toServer.Close()
			<-served
		}
		s.waits(id, 0)
		if r, err := s.rows.Read(t.Context(), id); err != nil || r.State != permissions.Pending {
			t.Errorf("%s, %v", r.State, err)
		}
	})
}

// post makes a call on a new connection and does not read the answer; drop closes the connection.
func (s *env) post(era string, id int, with string) (drop func(), status int) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	meta := `{"progressToken":"p"}`
	if era == modern {
		meta = `{"io.modelcontextprotocol/protocolVersion":"` + modern + `","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},` +
			`"io.modelcontextprotocol/clientCapabilities":{},"progressToken":"p"}`
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(fmt.Sprintf(
		`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"pause","arguments":%s,"_meta":%s}}`, id, with, meta)))
	if err != nil {
		s.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": era, "Mcp-Method": "tools/call", "Mcp-Name": "pause",
	} {
		request.Header.Set(name, value)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		s.t.Fatal(err)
	}
	if line, err := bufio.NewReader(response.Body).ReadString('\n'); err != nil { // the first progress message is sent at once
		s.t.Fatalf("%q, %v", line, err)
	}
	return func() { cancel(); response.Body.Close() }, response.StatusCode
}

// When the daemon stops, waiting calls are told that the request is pending, and how to continue.
func TestAStopTellsWhoWaits(t *testing.T) {
	for _, era := range []string{legacy, modern} {
		s := newEnv(t, nil)
		c := s.client(era)
		waits := call(t.Context(), c, "pause", confirm)
		r := s.pending(1)[0]
		s.waits(r.ID, 1)
		s.stop()
		got := <-waits
		if got.err != nil {
			t.Errorf("%s: %v", era, got.err)
			continue
		}
		text := textOf(t, got.CallToolResult)
		if !got.IsError || !strings.HasPrefix(text, "Still waiting for an answer.\n") || !strings.Contains(text, string(r.ID)) ||
			beside(t, got.CallToolResult)["state"] != "pending" {
			t.Errorf("%s: %q", era, text)
		}
	}
}

// An approval given to a call whose client had just left belongs to its repetition, whether the client left while the answer was
// fetched or while it was written.
func TestAnAnswerThatNobodyReadIsKept(t *testing.T) {
	t.Run("fetched", func(t *testing.T) {
		late := &lateEnv{}
		s := newEnv(t, func(o *mcp.Options) { late.Requests, o.Requests = o.Requests, late })
		late.slow.Store(true)
		drop, _ := s.post(legacy, 1, `{"message":"send it?","mode":"confirm"}`)
		r := s.pending(1)[0]
		s.waits(r.ID, 1)
		s.decide(r.ID, permissions.Allow(permissions.Once), "")
		wiretest.Eventually(t, "the approval is used", func() bool {
			row, err := s.rows.Read(t.Context(), r.ID)
			return err == nil && !row.UsedAt.IsZero()
		})
		late.slow.Store(false)
		drop()
		wiretest.Eventually(t, "the call has ended", func() bool { return late.under.Load() == 0 })
		if got := textOf(t, s.get(call(t.Context(), s.client(legacy), "pause", confirm))); got != "Approved." || s.asked() != 1 {
			t.Errorf("%q, asked %d times", got, s.asked())
		}
	})
	t.Run("written", func(t *testing.T) {
		s := newEnv(t, nil)
		request := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pause","arguments":{"message":"send it?","mode":"confirm"}}}`))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json, text/event-stream")
		request.Header.Set("MCP-Protocol-Version", legacy)
		over := make(chan struct{})
		go func() {
			defer close(over)
			s.mcp.Handler().ServeHTTP(deaf{httptest.NewRecorder()}, request.WithContext(context.Background()))
		}()
		s.decide(s.pending(1)[0].ID, permissions.Allow(permissions.Once), "")
		<-over
		if got := textOf(t, s.get(call(t.Context(), s.client(legacy), "pause", confirm))); got != "Approved." || s.asked() != 1 {
			t.Errorf("%q, asked %d times", got, s.asked())
		}
	})
}

// deaf accepts no writes.
type deaf struct{ *httptest.ResponseRecorder }

func (deaf) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// lateEnv, while slow, returns an answer only after its call has ended.
type lateEnv struct {
	mcp.Requests
	slow  atomic.Bool
	under atomic.Int64
}

func (d *lateEnv) Ask(ctx context.Context, c permissions.Caller, q permissions.Request) (permissions.Request, error) {
	d.under.Add(1)
	defer d.under.Add(-1)
	slow := d.slow.Load()
	r, err := d.Requests.Ask(ctx, c, q)
	if slow {
		<-ctx.Done()
	}
	return r, err
}

// atLeast waits until n requests are pending.
func (s *env) atLeast(n int) []permissions.Request {
	s.t.Helper()
	var rows []permissions.Request
	wiretest.Eventually(s.t, "some are pending", func() bool {
		var err error
		rows, err = s.rows.Pending(s.t.Context(), "", "", 1000)
		return err == nil && len(rows) >= n
	})
	return rows
}
