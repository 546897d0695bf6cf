package telegramtest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"syscall"
	"testing"
	"time"
)

func TestFaults(t *testing.T) {
	s := New(t)
	started(t, s)
	send := func(ctx context.Context) (reply, error) {
		return try(ctx, s, "sendMessage", "chat_id", "42", "text", "x")
	}

	s.FailNext("sendMessage", 2, TooManyRequests(2500*time.Millisecond))
	must(t, s, nil, "getMe")
	for range 2 {
		r, err := send(within(t))
		if err != nil || r.status != 429 || r.ErrorCode != 429 || r.Parameters.RetryAfter != 3 ||
			r.Description != "Too Many Requests: retry after 3" {
			t.Errorf("%+v, %v", r, err)
		}
	}
	s.FailNext("", 1, Refuse(403, "Forbidden: bot was blocked by the user"))
	if r, err := send(within(t)); err != nil || r.ErrorCode != 403 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, f := range []Fault{InternalError(), BadGateway()} {
		s.FailNext("", 1, f)
		r, err := send(within(t))
		var syntax *json.SyntaxError
		if !errors.As(err, &syntax) || r.status != f.code {
			t.Errorf("%v: %+v, %v", f, r, err)
		}
	}
	s.FailNext("", 1, Reset())
	if _, err := send(within(t)); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.EOF) {
		t.Errorf("reset: %v", err)
	}
	if n := len(s.Messages(42)); n != 1 {
		t.Errorf("%d messages were sent in spite of it", n-1)
	}
	s.FailNext("", 1, ReplyLost())
	if r, err := send(within(t)); err == nil {
		t.Errorf("reply lost: %+v", r)
	}
	if n := len(s.Messages(42)); n != 2 {
		t.Errorf("%d messages were sent without a reply", n-1)
	}
	if r, err := send(within(t)); err != nil || !r.OK {
		t.Errorf("after all faults: %+v, %v", r, err)
	}
}

func TestHangAndSlow(t *testing.T) {
	s := New(t)
	started(t, s)
	s.FailNext("sendMessage", 1, Hang())
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_ = s.AwaitCalls(within(t), func(c []Call) bool { return len(c) == 1 })
		cancel()
	}()
	if _, err := try(ctx, s, "sendMessage", "chat_id", "42", "text", "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("hang: %v", err)
	}
	if err := s.AwaitCalls(within(t), func(c []Call) bool { return !c[0].Ended.IsZero() }); err != nil {
		t.Error(err)
	}
	s.FailNext("sendMessage", 1, Slow(time.Hour))
	done := make(chan reply)
	go func() {
		r, _ := try(t.Context(), s, "sendMessage", "chat_id", "42", "text", "x")
		done <- r
	}()
	if err := s.AwaitCalls(within(t), func(c []Call) bool { return len(c) == 2 && c[1].Ended.IsZero() }); err != nil {
		t.Fatal(err)
	}
	s.Advance(time.Hour)
	if r := <-done; !r.OK {
		t.Errorf("slow: %+v", r)
	}
	if n := len(s.Messages(42)); n != 2 {
		t.Errorf("%d messages, want one", n-1)
	}
}

func TestFailForGood(t *testing.T) {
	s := New(t)
	s.FailNext("getMe", -1, InternalError())
	for range 3 {
		if _, err := try(within(t), s, "getMe"); err == nil {
			t.Error("no fault")
		}
	}
	s.FailNext("getMe", 0, Fault{})
	must(t, s, nil, "getMe")
}

func TestFailRate(t *testing.T) {
	s := New(t)
	outcomes := func(seed uint64) (all []int) {
		before := len(s.Calls())
		s.FailRate(0.3, seed, TooManyRequests(time.Second), InternalError(), Reset())
		for range 200 {
			_, _ = try(within(t), s, "getMe")
		}
		for _, c := range s.Calls()[before:] {
			all = append(all, c.Code)
		}
		return all
	}
	first, again := outcomes(5), outcomes(5)
	count := map[int]int{}
	for i, code := range first {
		count[code]++
		if again[i] != code {
			t.Fatal("the same seed fails other calls")
		}
	}
	if ok := count[http.StatusOK]; ok < 110 || ok > 170 || count[0] == 0 || count[429] == 0 || count[500] == 0 {
		t.Errorf("outcomes: %v", count)
	}
	s.FailRate(0, 0)
	must(t, s, nil, "getMe")
}

func TestDownAndUp(t *testing.T) {
	s := New(t)
	fay := started(t, s)
	poll := hanging(t, s, "timeout", "50")
	s.Down()
	if r, ok := <-poll; ok {
		t.Errorf("a poll outlived the server: %+v", r)
	}
	if _, err := try(within(t), s, "getMe"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("while down: %v", err)
	}
	fay.Writes("while you were away")
	s.Down()
	if err := errors.Join(s.Up(), s.Up()); err != nil {
		t.Fatal(err)
	}
	if got := getUpdates(t, s); len(got) != 1 {
		t.Errorf("%d updates from the time when it was down", len(got))
	}
	if n := len(s.Messages(42)); n != 2 {
		t.Errorf("%d messages are known", n)
	}
}

func TestCloseEndsWhatHangs(t *testing.T) {
	s, err := Serve(Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.FailNext("getMe", 1, Hang())
	failed := make(chan error, 2)
	for _, method := range []string{"getMe", "getUpdates?timeout=50"} {
		go func() {
			_, err := try(t.Context(), s, method)
			failed <- err
		}()
	}
	if err := errors.Join(s.Polling(within(t)), s.AwaitCalls(within(t), func(c []Call) bool { return len(c) == 2 })); err != nil {
		t.Fatal(err)
	}
	s.Close()
	for range 2 {
		if err := <-failed; err == nil {
			t.Error("a call was answered")
		}
	}
	s.Close()
}
