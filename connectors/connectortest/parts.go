package connectortest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

var (
	allowOnce = connectors.Decision{Answer: permissions.Allow(permissions.Once)}
	deny      = connectors.Decision{Answer: permissions.Deny}
)

// answers gives every kind of request every sort of answer.
func answers(t *testing.T, b *bench) {
	answer := func(a permissions.Answer) connectors.Decision { return connectors.Decision{Answer: a} }
	allow := func(s permissions.Scope) connectors.Decision { return answer(permissions.Allow(s)) }
	reason := connectors.Decision{Answer: permissions.Deny, Comment: "keep old/"}
	const permission, tool, pause = permissions.KindPermission, permissions.KindTool, permissions.KindPause
	for _, c := range []struct {
		name   string
		kind   permissions.Kind
		change func(*permissions.Request)
		does   connectors.Decision
		state  permissions.State
	}{
		{"permission once", permission, nil, allowOnce, permissions.Approved},
		{"permission session", permission, nil, allow(permissions.Session), permissions.Approved},
		{"permission 15m", permission, nil, allow(permissions.For(15 * time.Minute)), permissions.Approved},
		{"permission denied", permission, nil, deny, permissions.Denied},
		{"tool once", tool, nil, allowOnce, permissions.Approved},
		{"tool session", tool, nil, allow(permissions.SessionTool), permissions.Approved},
		{"tool denied with a reason", tool, nil, reason, permissions.Denied},
		{"step allowed whole", tool, step(3), allowOnce, permissions.Approved},
		{"pause continued", pause, nil, answer(permissions.Continue), permissions.Answered},
		{"pause interrupted", pause, nil, answer(permissions.Interrupt), permissions.Answered},
		{"confirm yes", pause, confirm, allowOnce, permissions.Approved},
		{"confirm no", pause, confirm, deny, permissions.Denied},
		{"confirm interrupted", pause, confirm, answer(permissions.Interrupt), permissions.Answered},
		{"clarification", permissions.KindClarification, nil, answer(permissions.Choose(2)), permissions.Answered},
		{"clarification in words", permissions.KindClarification, nil,
			connectors.Decision{Answer: permissions.Other, Comment: "look at staging first"}, permissions.Answered},
	} {
		p, ref := b.send(t, c.kind, c.change)
		b.Do(t, p, c.does)
		after := b.decided(t, p, c.does)
		if after.State != c.state || after.Answer != c.does.Answer {
			t.Errorf("%s: the request is %s, %s; want %s, %s", c.name, after.State, after.Answer, c.state, c.does.Answer)
		}
		p.Request = after
		b.edit(t, ref, p)
	}
}

// oneAfterTheOther answers requests that wait together, in the order in which they came.
func oneAfterTheOther(t *testing.T, b *bench) {
	var prompts []connectors.Prompt
	for range 5 {
		p, _ := b.send(t, permissions.KindPermission, nil)
		prompts = append(prompts, p)
	}
	for i, p := range prompts {
		does := allowOnce
		if i%2 == 1 {
			does = deny
		}
		b.Do(t, p, does)
		b.decided(t, p, does)
	}
}

func highRiskTwice(t *testing.T, b *bench) {
	p, _ := b.send(t, permissions.KindTool, highRisk)
	does := connectors.Decision{Answer: permissions.Allow(permissions.Once), Really: true}
	b.Do(t, p, does)
	if after := b.decided(t, p, does); after.State != permissions.Approved {
		t.Errorf("the request is %s; want approved", after.State)
	}
}

func callByCall(t *testing.T, b *bench) {
	p, ref := b.send(t, permissions.KindTool, step(2))
	first := connectors.Decision{Answer: permissions.Allow(permissions.Once), Call: 1}
	b.Do(t, p, first)
	p.Request = b.decided(t, p, first)
	if p.Request.State != permissions.Pending {
		t.Fatalf("the request is %s after one of two calls; want pending", p.Request.State)
	}
	b.edit(t, ref, p)
	second := connectors.Decision{Answer: permissions.Deny, Call: 2, Comment: "not that one"}
	b.Do(t, p, second)
	after := b.decided(t, p, second)
	if after.State != permissions.Approved || after.Calls[1].Answer != permissions.Deny {
		t.Errorf("the request is %s, call 2 %q; want approved, deny", after.State, after.Calls[1].Answer)
	}
}

// unknownAccount has somebody try who is not asked: another account where the channel has any, and else the person at a
// request that is not theirs.
func unknownAccount(t *testing.T, b *bench) {
	if b.Stranger != nil {
		p, _ := b.send(t, permissions.KindPermission, nil)
		b.Stranger(t, p)
		b.Do(t, p, deny) // comes after the stranger's, and finds the request as it was
		for {
			if got := b.in.next(t); got.err == nil {
				if got.decision.Answer != permissions.Deny {
					t.Errorf("the stranger's answer was taken: %+v", got.decision)
				}
				return
			}
		}
	}
	refusalTold(t, b)
}

// refusalTold checks that a person whose answer is refused is told why, and that the request stays as it was.
func refusalTold(t *testing.T, b *bench) {
	p, _ := b.send(t, permissions.KindPermission, func(r *permissions.Request) { r.Asked = []string{"somebody else"} })
	b.Do(t, p, allowOnce)
	var refusal *permissions.Refusal
	if got := b.in.next(t); !errors.As(got.err, &refusal) {
		t.Fatalf("the handler answered %v; want a refusal", got.err)
	}
	b.Sees(t, refusal.Text)
	if r := b.in.row(p); r.State != permissions.Pending {
		t.Errorf("the request is %s; want pending", r.State)
	}
}

// settledElsewhere checks that a card says how its request ended, whoever ended it.
func settledElsewhere(t *testing.T, b *bench) {
	for i, c := range []struct {
		kind permissions.Kind
		end  func(permissions.Request) permissions.Transition
		says string
	}{
		{permissions.KindPermission, func(r permissions.Request) permissions.Transition {
			return permissions.Reroute{Asked: append(r.Asked, "robin"), At: r.CreatedAt}
		}, ""},
		{permissions.KindTool, func(r permissions.Request) permissions.Transition {
			return permissions.Withdraw{By: "kim", Via: "cli", At: r.CreatedAt.Add(time.Minute)}
		}, "kim"},
		{permissions.KindPermission, func(r permissions.Request) permissions.Transition {
			return permissions.Expire{At: r.Deadline}
		}, "⌛"},
		{permissions.KindClarification, func(r permissions.Request) permissions.Transition {
			return permissions.Expire{At: r.Deadline}
		}, "first option taken"},
	} {
		p, ref := b.send(t, c.kind, nil)
		b.Sees(t, p.Code)
		p = b.in.elsewhere(t, p, c.end(p.Request))
		if p.Request.State == permissions.Pending { // somebody who was added decides
			c.says = fmt.Sprint("reason ", i)
			p = b.in.elsewhere(t, p, permissions.Cast{Vote: permissions.Vote{
				By: "robin", Via: "telegram", Answer: permissions.Deny, Comment: c.says, At: p.Request.CreatedAt,
			}})
		}
		b.edit(t, ref, p)
		b.Sees(t, c.says)
	}
	b.in.none(t)
	p, _ := b.send(t, permissions.KindPermission, nil) // and the next can be answered
	b.Do(t, p, deny)
	b.decided(t, p, deny)
}

// lateAnswer has the person answer what was settled meanwhile, and the channel not been told yet.
func lateAnswer(t *testing.T, b *bench) {
	p, _ := b.send(t, permissions.KindPermission, nil)
	b.Sees(t, p.Code)
	settled := b.in.elsewhere(t, p, permissions.Withdraw{By: "robin", Via: "cli", At: p.Request.CreatedAt})
	b.Do(t, p, allowOnce)
	var refusal *permissions.Refusal
	if got := b.in.next(t); !errors.As(got.err, &refusal) || refusal.Code != permissions.CodeSettled {
		t.Fatalf("the handler answered %v; want that it is settled", got.err)
	}
	b.Sees(t, "Too late")
	if r := b.in.row(p); r.State != settled.Request.State {
		t.Errorf("the request is %s; want %s as before", r.State, settled.Request.State)
	}
}

// storedLater fails to store a decision once. The channel gives it again, or the person does.
func storedLater(t *testing.T, b *bench) {
	b.in.mu.Lock()
	b.in.failures = 1
	b.in.mu.Unlock()
	p, _ := b.send(t, permissions.KindPermission, nil)
	b.Do(t, p, allowOnce)
	if got := b.in.next(t); !errors.Is(got.err, errStore) {
		t.Fatalf("the handler answered %v; want %v", got.err, errStore)
	}
	b.Do(t, p, allowOnce)
	if after := b.decided(t, p, allowOnce); after.State != permissions.Approved {
		t.Errorf("the request is %s; want approved", after.State)
	}
}

// badLine checks that over a line that is slow, loses, repeats and reorders, every answer is taken once, also one that could not
// be stored at first; that whatever comes again has the key by which it is known; and that every outcome is shown.
func badLine(t *testing.T, b *bench) {
	if b.Line == nil {
		return
	}
	b.Line(Line{Slow: 5 * time.Millisecond, Lost: 0.3, Repeated: 0.5, Mixed: true})
	type sent struct {
		connectors.Prompt
		ref  string
		does connectors.Decision
	}
	open := map[permissions.ID]sent{}
	for i := range 10 {
		p, ref := b.send(t, permissions.KindPermission, nil)
		does := allowOnce
		if i%2 == 1 {
			does = deny
		}
		open[p.Request.ID] = sent{p, ref, does}
	}
	b.in.mu.Lock()
	b.in.failures = 3
	b.in.mu.Unlock()
	for _, s := range open {
		b.Do(t, s.Prompt, s.does)
	}
	taken := map[string]permissions.ID{} // by the key of what came
	for len(open) > 0 {
		got := b.in.next(t)
		if errors.Is(got.err, errStore) {
			continue
		}
		r := got.after
		if known, again := taken[got.decision.Key]; got.err != nil || got.decision.Key == "" || again && known != r.ID {
			t.Fatalf("%+v: %v, for what is %s, %s", got.decision, got.err, r.ID, r.State)
		}
		taken[got.decision.Key] = r.ID
		s, waits := open[r.ID]
		if !waits {
			continue
		}
		if delete(open, r.ID); r.Answer != s.does.Answer {
			t.Errorf("%s was answered %s; want %s", s.Code, r.Answer, s.does.Answer)
		}
		s.Request = r
		b.edit(t, s.ref, s.Prompt)
	}
	b.Line(Line{})
	p, _ := b.send(t, permissions.KindPermission, nil)
	b.Do(t, p, deny) // comes after everything that still came again
	for {
		switch got := b.in.next(t); {
		case got.after.ID == p.Request.ID:
			return
		case got.err != nil || taken[got.decision.Key] != got.after.ID:
			t.Fatalf("in the end came %+v: %v", got.decision, got.err)
		}
	}
}

// hostileWords checks that what agents write cannot erase, hide or reorder what the person sees.
func hostileWords(t *testing.T, b *bench) {
	const evil = "fine\x1b[2J\x1b[H\u202egnp.\u200b\U000e0041\u0085\nnext"
	b.send(t, permissions.KindPermission, func(r *permissions.Request) {
		r.Agent, r.Claimed, r.Reason, r.Details, r.Host, r.Cwd = evil, true, evil, evil, evil, evil
	})
	b.Sees(t, "next")
	for _, hidden := range []string{"\x1b[2J", "\x1b[H", "\u202e", "\u200b", "\U000e0041", "\u0085"} {
		if strings.Contains(b.Seen(), hidden) {
			t.Errorf("the person gets %q as it is", hidden)
		}
	}
}

func reached(t *testing.T, b *bench) {
	reacher, ok := b.Connector.(connectors.ReachabilityChecker)
	if !ok {
		return
	}
	p, _ := b.send(t, permissions.KindPermission, nil)
	b.Do(t, p, deny)
	b.decided(t, p, deny)
	if err := reacher.Reach(b.To); err != nil {
		t.Errorf("Reach = %v; want nil of somebody who has just answered", err)
	}
}

func ends(t *testing.T, b *bench) {
	p, _ := b.send(t, permissions.KindPermission, nil)
	b.Sees(t, p.Code)
	b.stop(t)
	if _, err := b.Connector.Send(context.Background(), p); err == nil {
		t.Errorf("Send = nil after the end of Run; want an error")
	} else if errors.Is(err, connectors.ErrUnreachable) {
		t.Errorf("Send = %v after the end of Run, for good; want that it is tried again", err)
	}
	b.in.none(t)
}
