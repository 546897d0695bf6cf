package connectortest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// texts has the person write answers, each to a request of its own. CODE stands for its code.
func texts(t *testing.T, b *bench) {
	if b.Writes == nil {
		return
	}
	answer := func(a permissions.Answer) connectors.Decision { return connectors.Decision{Answer: a} }
	allow := func(s permissions.Scope) connectors.Decision { return answer(permissions.Allow(s)) }
	const permission, tool, pause = permissions.KindPermission, permissions.KindTool, permissions.KindPause
	const clarification = permissions.KindClarification
	for _, c := range []struct {
		text   string
		kind   permissions.Kind
		change func(*permissions.Request)
		want   connectors.Decision
	}{
		{"yes CODE", permission, nil, allowOnce},
		{"Allow CODE", tool, nil, allowOnce},
		{"APPROVE CODE", pause, confirm, allowOnce},
		{"CODE yes", permission, nil, allowOnce},
		{"yes CODE session", permission, nil, allow(permissions.Session)},
		{"yes CODE session", tool, nil, allow(permissions.SessionTool)},
		{"yes CODE 15m", tool, nil, allow(permissions.For(15 * time.Minute))},
		{"no CODE", permission, nil, deny},
		{"deny CODE because keep old/", tool, nil, connectors.Decision{Answer: permissions.Deny, Comment: "keep old/"}},
		{"CODE no because Why?", tool, nil, connectors.Decision{Answer: permissions.Deny, Comment: "Why?"}},
		{"yes CODE RUN", tool, highRisk, connectors.Decision{Answer: permissions.Allow(permissions.Once), Really: true}},
		{"continue CODE", pause, nil, answer(permissions.Continue)},
		{"CODE interrupt", pause, nil, answer(permissions.Interrupt)},
		{"CODE 2", clarification, nil, answer(permissions.Choose(2))},
		{"CODE Nowhere", clarification, nil, answer(permissions.Choose(3))},
		{"CODE other: nowhere yet", clarification, nil,
			connectors.Decision{Answer: permissions.Other, Comment: "nowhere yet"}},
	} {
		p, ref := b.send(t, c.kind, c.change)
		b.Writes(t, p, strings.ReplaceAll(c.text, "CODE", p.Code))
		p.Request = b.decided(t, p, c.want)
		b.edit(t, ref, p)
	}
	p, ref := b.send(t, permission, nil)
	for _, text := range []string{
		"don't allow CODE", "yes CODE but change the date", "yes CODE no", "yes CODE?", "CODE", "yeſ CODE", "yes CODE 20m",
		"ｙｅｓ CODE", "> yes CODE", "yes please",
	} {
		b.Writes(t, p, strings.ReplaceAll(text, "CODE", p.Code))
	}
	b.Writes(t, p, "no "+p.Code)
	p.Request = b.decided(t, p, deny) // of all those texts, the first decision
	b.edit(t, ref, p)
}

// told has the person told what asks nothing, by a connector that can.
func told(t *testing.T, b *bench) {
	teller, tells := b.Connector.(connectors.Notifier)
	if !tells {
		return
	}
	p, _ := b.send(t, permissions.KindPermission, nil)
	b.Sees(t, p.Code)
	n := connectors.Notice{To: b.To, About: permissions.AboutWaiting, Waiting: []connectors.Prompt{p}}
	if err := teller.Notify(context.Background(), n); err != nil {
		t.Fatalf("Tell = %v", err)
	}
	b.Sees(t, "1 request waits for your answer:")
	b.in.none(t)
	b.Do(t, p, deny) // what waits can still be answered
	b.decided(t, p, deny)
	b.stop(t)
	if err := teller.Notify(context.Background(), n); err == nil || errors.Is(err, connectors.ErrUnreachable) {
		t.Errorf("Tell = %v after the end of Run; want an error for now", err)
	}
}
