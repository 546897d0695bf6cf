package api_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daycared/daycared/client"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/internal/server"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

type outcome struct {
	r   permissions.Request
	err error
}

// background asks in a goroutine; told receives the progress.
func background(ctx context.Context, c *client.Client, q permissions.Request) (told chan wire.Request, done chan outcome) {
	told, done = make(chan wire.Request, 100), make(chan outcome, 1)
	c.Progress = func(s permissions.RequestView) { told <- wire.From(s, false) }
	go func() {
		s, err := c.Put(ctx, q)
		done <- outcome{s.Request, err}
	}()
	return told, done
}

func TestAskWaitsForTheAnswer(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	var mu sync.Mutex
	calls := map[string]bool{}
	env.Asks = func(c permissions.Caller, q permissions.Request) {
		mu.Lock()
		defer mu.Unlock()
		calls[q.Call] = true
		if c != permissions.CallerUID(os.Getuid()) {
			t.Errorf("asked by %+v", c)
		}
	}
	serve(t, socket, env)
	told, done := background(t.Context(), newClient(t, socket), wiretest.Question("docs"))
	w := <-told
	env.Deliver(t, w.ID)
	if shown := <-told; len(shown.Delivered) != 1 || shown.ID != w.ID {
		t.Errorf("shown: %+v", shown)
	}
	decide(t, env, w.ID, permissions.Allow(permissions.Once))
	got := <-done
	if got.err != nil || got.r.State != permissions.Approved || got.r.ID != w.ID {
		t.Errorf("%v, %v", got.r.State, got.err)
	}
	if text := permissions.Result(got.r).Text; text != "Permission granted for network access." {
		t.Errorf("result %q", text)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(calls) != 1 || calls[""] {
		t.Errorf("one question had the calls %v", calls)
	}
}

func TestARefusalEndsAsking(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	_, err := newClient(t, socket).Put(t.Context(), permissions.Request{Kind: "wish"})
	var refusal *permissions.Refusal
	if !errors.As(err, &refusal) || refusal.Code != permissions.CodeInvalid {
		t.Errorf("%v", err)
	}
}

func TestNoDaemonIsToldAtOnce(t *testing.T) {
	began := time.Now()
	_, err := newClient(t, wiretest.Socket(t)).Put(t.Context(), wiretest.Question("x"))
	if !errors.Is(err, client.ErrUnreachable) || time.Since(began) > time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}

func TestLeavingIsNotCancelling(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	asked := make(chan struct{}, 100)
	env.Asks = func(permissions.Caller, permissions.Request) { asked <- struct{}{} }
	serve(t, socket, env)
	ctx, cancel := context.WithCancel(t.Context())
	c := newClient(t, socket)
	told, done := background(ctx, c, wiretest.Question("x"))
	w := <-told
	<-asked
	<-asked // between two calls the waiter is kept; the second call takes it over
	wiretest.Eventually(t, "somebody waits", func() bool { return env.Waiters(w.ID) == 1 })
	cancel()
	got := <-done
	if !errors.Is(got.err, context.Canceled) || got.r.ID != w.ID || got.r.State != permissions.Pending {
		t.Errorf("left with %v, %v", got.r.State, got.err)
	}
	wiretest.Eventually(t, "nobody waits", func() bool { return env.Waiters(w.ID) == 0 })
	if s, err := c.Get(t.Context(), w.ID, 0); err != nil || s.Request.State != permissions.Pending {
		t.Errorf("the request is %v, %v", s.Request.State, err)
	}
}

func TestARestartIsSurvived(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	stop := serve(t, socket, env)
	told, done := background(t.Context(), newClient(t, socket), wiretest.Question("x"))
	w := <-told
	wiretest.Eventually(t, "somebody waits", func() bool { return env.Waiters(w.ID) == 1 })
	if took := stop(); took > time.Second {
		t.Errorf("stopping in the middle of a long poll took %s", took)
	}
	serve(t, socket, env)
	wiretest.Eventually(t, "it waits again", func() bool { return env.Waiters(w.ID) == 1 })
	decide(t, env, w.ID, permissions.Deny)
	if got := <-done; got.err != nil || got.r.State != permissions.Denied || got.r.ID != w.ID {
		t.Errorf("%v, %v", got.r.State, got.err)
	}
}

// TestAStoreThatFailsIsWaitedFor: the request stays pending, and people can answer it when the store is back.
func TestAStoreThatFailsIsWaitedFor(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	asker, lost := newClient(t, socket), make(chan error, 100)
	asker.Lost = func(err error) { lost <- err }
	told, done := background(t.Context(), asker, wiretest.Question("x"))
	w := <-told
	env.Fail(permissions.Broken("free some space"))
	select {
	case err := <-lost:
		if !strings.Contains(err.Error(), "free some space") {
			t.Errorf("told of it: %v", err)
		}
	case got := <-done:
		t.Fatalf("given up: %v", got.err)
	}
	env.Fail(nil)
	<-told // the store is back
	decide(t, env, w.ID, permissions.Allow(permissions.Once))
	if got := <-done; got.err != nil || got.r.State != permissions.Approved || got.r.ID != w.ID {
		t.Errorf("%v, %v", got.r.State, got.err)
	}
	if len(lost) > 0 {
		t.Errorf("told once more: %v", <-lost)
	}
}

func TestWhatWasDecidedDuringARestartIsTold(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	stop := serve(t, socket, env)
	told, done := background(t.Context(), newClient(t, socket), wiretest.Question("x"))
	w := <-told
	stop()
	decide(t, env, w.ID, permissions.Allow(permissions.Once))
	serve(t, socket, env)
	if got := <-done; got.err != nil || got.r.State != permissions.Approved || got.r.ID != w.ID {
		t.Errorf("%v, %v", got.r.State, got.err)
	}
}

func TestAfterTheDeadlineALostDaemonIsUnreachable(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	stop := serve(t, socket, env)
	q := wiretest.Question("x")
	q.WantedTimeout = 1500 * time.Millisecond
	told, done := background(t.Context(), newClient(t, socket), q)
	w := <-told
	stop()
	got := <-done
	if !errors.Is(got.err, client.ErrUnreachable) || got.r.ID != w.ID || got.r.State != permissions.Pending {
		t.Errorf("%v, %v", got.r.State, got.err)
	}
	if now := time.Now(); now.Before(w.Until()) {
		t.Errorf("given up %s early", w.Until().Sub(now))
	}
}

func TestLeavingWhileTheDaemonIsAway(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	stop := serve(t, socket, env)
	ctx, cancel := context.WithCancel(t.Context())
	told, done := background(ctx, newClient(t, socket), wiretest.Question("x"))
	<-told
	stop()
	cancel()
	if got := <-done; !errors.Is(got.err, context.Canceled) {
		t.Errorf("%v", got.err)
	}
}

// A daemon that dies before it answers may have stored the question, so the question is asked again.
func TestALostFirstAnswerIsAskedForAgain(t *testing.T) {
	t.Run("D7/a lost first answer", func(t *testing.T) {
		socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
		l, err := server.Listen(socket, "")
		if err != nil {
			t.Fatal(err)
		}
		_, done := background(t.Context(), newClient(t, socket), wiretest.Question("x"))
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		var first sync.Once
		env.Asks = func(permissions.Caller, permissions.Request) {
			first.Do(func() {
				go func() {
					wiretest.Eventually(t, "opened", func() bool { return len(env.PendingIDs()) == 1 })
					decide(t, env, env.PendingIDs()[0], permissions.Allow(permissions.Once))
				}()
			})
		}
		if err := errors.Join(l.Close(), c.(*net.UnixConn).Close()); err != nil {
			t.Fatal(err)
		}
		serve(t, socket, env)
		if got := <-done; got.err != nil || got.r.State != permissions.Approved {
			t.Errorf("%v, %v", got.r.State, got.err)
		}
	})
}

// An approval for once goes to one call; the other call's question becomes a new request, which its caller follows.
func TestACallThatIsAskedAnewIsFollowed(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	q := wiretest.Question("both")
	first, firstDone := background(t.Context(), newClient(t, socket), q)
	w := <-first
	second, secondDone := background(t.Context(), newClient(t, socket), q)
	if joined := <-second; joined.ID != w.ID {
		t.Fatalf("the second did not join: %s, %s", joined.ID, w.ID)
	}
	wiretest.Eventually(t, "both wait", func() bool { return env.Waiters(w.ID) == 2 })
	decide(t, env, w.ID, permissions.Allow(permissions.Once))
	if got := <-firstDone; got.err != nil || got.r.ID != w.ID {
		t.Errorf("the first: %v, %v", got.r.ID, got.err)
	}
	anew := <-second
	if anew.ID == w.ID {
		t.Fatal("the second was not asked anew")
	}
	decide(t, env, anew.ID, permissions.Deny)
	if got := <-secondDone; got.err != nil || got.r.ID != anew.ID || got.r.State != permissions.Denied {
		t.Errorf("the second: %v %v, %v", got.r.ID, got.r.State, got.err)
	}
}

// hasty is an env whose first wait ends just as the answer arrives: the row is settled, but not given to the call.
type hasty struct {
	*wiretest.Env
	asked, redeemed atomic.Bool
}

func (h *hasty) AskDeferred(
	ctx context.Context, until time.Time, c permissions.Caller, question func() (permissions.Request, error),
) (*permissions.Request, error) {
	if !h.asked.Swap(true) {
		r, err := h.Env.AskDeferred(ctx, until, c, question)
		_, decided := h.Decide(r.ID, permissions.Allow(permissions.Once), "")
		return r, errors.Join(err, decided)
	}
	if !h.redeemed.Swap(true) {
		q, err := question()
		s, _ := h.Find(ctx, c, q.ID)
		return &s.Request, errors.Join(context.DeadlineExceeded, err)
	}
	return h.Env.AskDeferred(ctx, until, c, question)
}

func TestAnAnswerCountsOnlyForTheCallThatGotIt(t *testing.T) {
	socket, env := wiretest.Socket(t), &hasty{Env: wiretest.NewEnv(t)}
	serve(t, socket, env)
	s, err := newClient(t, socket).Put(t.Context(), wiretest.Question("x"))
	if err != nil || s.Request.State != permissions.Approved || !env.redeemed.Load() {
		t.Errorf("%v, %v", s.Request.State, err)
	}
}

// Only the row of the asked request counts as an answer: a proxy may mix up responses, and a false daemon may return another
// request's approval.
func TestARowOfAnotherRequestIsNoAnswer(t *testing.T) {
	tags, err := permissions.ParseTags([]string{"@network"})
	if err != nil {
		t.Fatal(err)
	}
	asked := permissions.Request{Kind: permissions.KindPermission, Tags: tags, Reason: "docs", Agent: "a", Claimed: true}
	for name, c := range map[string]struct {
		change func(*permissions.Request)
		after  func(*permissions.Request) // applied after the digest is computed
		right  bool
	}{
		"its own": {right: true},
		"of another name": {right: true, change: func(r *permissions.Request) {
			r.Caller = permissions.Caller{Name: "token:x", UID: permissions.NoUID}
		}},
		"a tool's": {change: func(r *permissions.Request) { r.Kind, r.Tool, r.Tags = permissions.KindTool, "zz", nil }},
		"other tags": {change: func(r *permissions.Request) {
			r.Tags, _ = permissions.ParseTags([]string{"@write:/"})
		}},
		"other tags behind the digest": {after: func(r *permissions.Request) { r.Tags, _ = permissions.ParseTags([]string{"@write:/"}) }},
		"another reason":               {change: func(r *permissions.Request) { r.Reason = "other" }},
		"another agent":                {change: func(r *permissions.Request) { r.Agent = "b" }},
		"no digest":                    {after: func(r *permissions.Request) { r.Digest = permissions.Digest{} }},
	} {
		t.Run("D9/"+name, func(t *testing.T) {
			r := asked
			r.ID, r.Caller, r.Version = permissions.NewID(time.Now()), permissions.CallerUID(1000), permissions.DigestVersion
			r.State, r.Answer, r.Scope = permissions.Approved, permissions.Allow(permissions.Once), permissions.Once
			r.DecidedBy, r.DecidedVia, r.DecidedAt = "fay", "telegram", time.Now()
			if c.change != nil {
				c.change(&r)
			}
			r.Digest = permissions.ComputeDigest(r)
			if c.after != nil {
				c.after(&r)
			}
			told, err := wire.Encode(wire.From(permissions.RequestView{Request: r}, false))
			if err != nil {
				t.Fatal(err)
			}
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(told) }))
			defer s.Close()
			asker, err := client.New(client.Options{URL: s.URL})
			if err != nil {
				t.Fatal(err)
			}
			defer asker.Close()
			view, err := asker.Put(t.Context(), asked)
			got := view.Request
			if c.right != (err == nil) || c.right != (got.State == permissions.Approved) || !c.right && !errors.Is(err, client.ErrOtherRow) {
				t.Errorf("asked: %s, %v", got.State, err)
			}
			if s, err := asker.Begin(t.Context(), asked); c.right != (err == nil) || c.right != (s.Request.ID != "") {
				t.Errorf("begun: %s, %v", s.Request.ID, err)
			}
			other := permissions.NewID(time.Now())
			for call, ask := range map[string]func(permissions.ID) (permissions.RequestView, error){
				"get":    func(id permissions.ID) (permissions.RequestView, error) { return asker.Get(t.Context(), id, 0) },
				"cancel": func(id permissions.ID) (permissions.RequestView, error) { return asker.Cancel(t.Context(), id) },
				"leave":  func(id permissions.ID) (permissions.RequestView, error) { return asker.Leave(t.Context(), id, "") },
				"reply": func(id permissions.ID) (permissions.RequestView, error) {
					return asker.Reply(t.Context(), id, permissions.Choose(1), r.Digest)
				},
			} {
				if s, err := ask(other); !errors.Is(err, client.ErrOtherRow) || s.Request.ID != "" {
					t.Errorf("%s of another id: %s, %v", call, s.Request.ID, err)
				}
				if _, err := ask(r.ID); err != nil {
					t.Errorf("%s: %v", call, err)
				}
			}
			if _, err := asker.Reply(t.Context(), r.ID, permissions.Choose(1), permissions.Digest{1}); !errors.Is(err, client.ErrOtherRow) {
				t.Errorf("an answer to something else: %v", err)
			}
		})
	}
}
