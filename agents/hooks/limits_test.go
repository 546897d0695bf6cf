package hooks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/edits"
)

// TestLimits tests each limit with a value just within it and one just beyond.
func TestLimits(t *testing.T) {
	text := func(n int) json.RawMessage {
		return json.RawMessage(`"` + strings.Repeat("x", n) + `"`)
	}
	moves := func(input string) bool { // from the input to the details
		r := permissions.Request{Tool: "t", Input: json.RawMessage(input)}
		return fit(&r) == nil && r.Details != ""
	}
	head := len(fmt.Sprintf("%q, %d bytes:\n    \n", "a", permissions.MaxDetails))
	for name, c := range map[string]struct {
		most int
		met  func(n int) bool
	}{
		"rows of a file": {permissions.MaxRows, func(n int) bool {
			e, _ := edits.Of("Write", json.RawMessage(`{"content":"","path":"/a"}`))
			return e.Around(strings.Repeat("x", n), true) != nil
		}},
		"an input in the question": {maxInline - len(`{"a":""}`), func(n int) bool {
			return !moves(`{"a":` + string(text(n)) + `}`)
		}},
		"an input in the details": {permissions.MaxDetails - head, func(n int) bool {
			return moves(`{"a":` + string(text(n)) + `}`)
		}},
		"what a hook is given": {MaxInput, func(n int) bool {
			_, err := Dialect{}.Read([]byte(strings.Repeat(" ", n)))
			return strings.Contains(err.Error(), "given nothing")
		}},
		"a path that is a tag's": {permissions.MaxTagPath - 1, func(n int) bool { return affected("/", strings.Repeat("x", n)) != "" }},
		"a text that is whole":   {7, func(n int) bool { return permissions.Brief(strings.Repeat("é", n), 7) == strings.Repeat("é", n) }},
		"how long a hook may take": {int(maxWithin), func(n int) bool {
			d, err := parseTimeout(time.Duration(n).String(), 0)
			return err == nil && d == time.Duration(n)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if !c.met(c.most) {
				t.Errorf("%d is too many", c.most)
			}
			if c.met(c.most + 1) {
				t.Errorf("%d is not too many", c.most+1)
			}
		})
	}
	if got := permissions.Brief("éééééééé", 7); got != "éééééé…" {
		t.Errorf("shortened: %s", got)
	}
	if d, err := parseTimeout("1s", 0); err != nil || d != time.Second {
		t.Errorf("a second: %s, %v", d, err)
	}
	if got := string(members{"<": json.RawMessage("1")}.encode()); got != `{"<":1}` {
		t.Errorf("encoded: %s", got)
	}
}

// TestHowLongHooksMayTakeByThemselves: the defaults are the makers' timeouts, less a margin for the answer.
func TestHowLongHooksMayTakeByThemselves(t *testing.T) {
	want := map[string]time.Duration{
		"claude-code": 590 * time.Second, "codex": 590 * time.Second, "copilot": 25 * time.Second, "cursor": 50 * time.Second,
		"gemini": 50 * time.Second, "opencode": 590 * time.Second, "vscode": 25 * time.Second,
	}
	for _, d := range dialects {
		if d.Within != want[d.Name] {
			t.Errorf("%s: %s", d.Name, d.Within)
		}
	}
}

// late answers when its time is over, and records the time left for cancelling.
type late struct {
	approves bool
	err      error
	forgoes  time.Duration
	left     permissions.Request // when its hook leaves it
	lost     error
}

func (l *late) Ask(ctx context.Context, c permissions.Caller, q permissions.Request) (permissions.Request, error) {
	<-ctx.Done()
	if !l.approves {
		return q, l.err
	}
	return mixed{change: func(*permissions.Request) {}}.Ask(ctx, c, q)
}

func (l *late) Recall(context.Context, permissions.Caller, permissions.Recall) (int, error) {
	return 0, nil
}

func (l *late) LeaveOrCancel(
	ctx context.Context, _ permissions.Caller, _ permissions.ID, _, _ string,
) (permissions.RequestView, error) {
	end, _ := ctx.Deadline()
	l.forgoes = time.Until(end)
	return permissions.RequestView{Request: l.left}, cmp.Or(l.lost, ctx.Err())
}

// TestWhatComesAtTheLastMoment: an approval counts even after the deadline, an error is reported as a timeout, and an ended hook
// has a moment to cancel.
func TestWhatComesAtTheLastMoment(t *testing.T) {
	d, _ := Find("gemini")
	c, err := d.Read(given(t, "gemini", "x", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	caller := permissions.CallerUID(1000)
	if v := Decide(t.Context(), &late{approves: true}, caller, c, time.Millisecond); !v.Allowed {
		t.Errorf("an approval: %+v", v)
	}
	v := Decide(t.Context(), &late{err: errors.New("the connection was lost")}, caller, c, time.Millisecond)
	if want := VerdictOf(c.Request, context.DeadlineExceeded); v != want {
		t.Errorf("an error: %+v, want %+v", v, want)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	l := &late{err: context.Canceled}
	if v := Decide(gone, l, caller, c, time.Minute); v.Allowed || l.forgoes < time.Second || l.forgoes > withdrawWithin {
		t.Errorf("it has %s to cancel: %+v", l.forgoes, v)
	}
}

// TestAnAnswerWhileTheHookLeavesCounts; otherwise the agent's own dialog asks.
func TestAnAnswerWhileTheHookLeavesCounts(t *testing.T) {
	green := permissions.Request{Kind: permissions.KindClarification, State: permissions.Answered, Comment: "Green"}
	byTime, byDefault := green, green
	byTime.TimedOut, byDefault.Defaulted = true, true
	for name, l := range map[string]late{
		"answered": {left: green}, "not known": {left: green, lost: errors.New("the connection was lost")}, "not yet": {},
		"nobody in time": {left: byTime}, "the agent's own answer": {left: byDefault},
	} {
		r, v := questioner{ctx: t.Context(), requests: &l}.leave("", "")
		if told := r.Comment == "Green"; told != (name == "answered") || v.Unasked == told {
			t.Errorf("%s: %q, %+v", name, r.Comment, v)
		}
	}
}

// TestLinksThatAreNotLookedAtInTime: what is denied is denied without a look, and what is allowed is not if that does not end.
func TestLinksThatAreNotLookedAtInTime(t *testing.T) {
	d, _ := Find("gemini")
	c, err := d.Read(given(t, "gemini", "x", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	caller := permissions.CallerUID(1000)
	for state, most := range map[permissions.State]time.Duration{permissions.Denied: 0, permissions.Approved: filesWithin} {
		synctest.Test(t, func(t *testing.T) {
			over := make(chan struct{})
			c := c
			c.resolve = func(path string) string { return path }
			c.leadsNow = func() permissions.Leads { <-over; return permissions.Leads{} }
			requests := mixed{change: func(r *permissions.Request) {
				if r.State = state; state == permissions.Denied {
					r.Answer = permissions.Deny
				}
			}}
			began := time.Now()
			if v := Decide(t.Context(), requests, caller, c, time.Hour); v.Allowed || time.Since(began) != most {
				t.Errorf("%s: %+v after %s", state, v, time.Since(began))
			}
			close(over)
		})
	}
}

// TestAHungFileSystemDeniesACall: a hook does not wait for it beyond its time, before it asks and after, and what comes later changes
// nothing.
func TestAHungFileSystemDeniesACall(t *testing.T) {
	d, _ := Find("gemini")
	c, err := d.Read(given(t, "gemini", "x", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	caller := permissions.CallerUID(1000)
	for name, answers := range map[string]int{"before it is asked": 0, "when it was allowed": 1, "beside a keyboard": 0} {
		synctest.Test(t, func(t *testing.T) {
			c, looks, over := c, 0, make(chan struct{})
			c.Keyboard = name == "beside a keyboard"
			c.resolve = func(path string) string {
				if looks++; looks > answers {
					<-over
				}
				return path
			}
			asked := 0
			requests := mixed{change: func(*permissions.Request) { asked++ }}
			began := time.Now()
			var v Verdict
			if c.Keyboard {
				v = Race(t.Context(), &racing{}, caller, c, time.Hour)
			} else {
				v = Decide(t.Context(), requests, caller, c, time.Hour)
			}
			if took := time.Since(began); v != Refuse(ErrNoFiles) || took != filesWithin || asked != answers {
				t.Errorf("%s: %+v after %s and %d questions", name, v, took, asked)
			}
			close(over)
		})
	}
	if got, err := InTime(time.Minute, func() (int, error) { return 7, nil }); err != nil || got != 7 {
		t.Errorf("in time: %d, %v", got, err)
	}
}
