package linearizability_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/daycared/daycared/permissions"
)

// scenario is one question and its concurrent clients.
type scenario struct {
	*env
	*history
	tally    *tally
	name     string
	kind     permissions.Kind
	timeout  string
	proposed string        // id proposed by the first caller
	left     chan struct{} // closed when nobody asks any more
}

// simClient is one client, which makes one call at a time.
type simClient struct {
	*scenario
	n    int
	rand *rand.Rand
}

// runScenario runs that many clients concurrently, each with its own random generator, and returns when all are done.
func (s *env) runScenario(ctx context.Context, name string, seed uint64, clients int, t *tally, k *switches) *history {
	dice := func(n int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(n))) }
	d := dice(0)
	quorum := 1 + d.IntN(3)
	q := &question{keyed: d.IntN(3) == 0, quorum: quorum, asked: asked(quorum)}
	sc := &scenario{
		env: s, history: newHistory(q, k), tally: t, name: name, kind: permissions.KindTool,
		timeout: fmt.Sprintf("%dms", 1000+d.IntN(3000)), proposed: string(permissions.NewID(s.clock.now())),
		left: make(chan struct{}),
	}
	if d.IntN(2) == 0 {
		sc.kind = permissions.KindPermission
	}
	sc.ids = []string{sc.proposed}
	var callers, others sync.WaitGroup
	for n := range clients {
		p := &simClient{sc, n, dice(n + 1)}
		if n%8 < 3 {
			callers.Go(func() { p.asks(ctx) })
			continue
		}
		others.Go(func() {
			p.await()
			if n%8 < 7 {
				p.decides(ctx)
			} else {
				p.interferes(ctx)
			}
		})
	}
	callers.Wait()
	close(sc.left)
	others.Wait()
	return sc.history
}

// await waits until there is a request, most of the time.
func (p *simClient) await() {
	if p.chance(8) {
		return
	}
	select {
	case <-p.there:
	case <-p.left: // else everything may be stopped
	}
}

// chance is true once in n times.
func (p *simClient) chance(n int) bool { return p.rand.IntN(n) == 0 }

// patience is how long this client waits for a reply; 0 is forever. An impatient client is often gone before the reply.
func (p *simClient) patience() time.Duration {
	if !p.chance(12) {
		return 0
	}
	return time.Duration(100+p.rand.IntN(3000)) * time.Microsecond
}

// do makes a call and records it.
func (p *simClient) do(
	ctx context.Context, c *caller, d deed, id, method, path string, header map[string]string, body any,
) call {
	made := c.do(ctx, method, path, header, body, p.patience())
	if ctx.Err() != nil {
		return made
	}
	p.add(p.n, d, id, made)
	p.switches.count(ctx, p.tally.count(d, made))
	return made
}

// asks is an agent: it asks, asks again while it waits, leaves, and comes back.
func (p *simClient) asks(ctx context.Context) {
	waits := []string{"0s", "0s", "1ms", "3ms", "10ms"}
	header := map[string]string{}
	name := fmt.Sprintf("%s-%d", p.name, p.n)
	if named := !p.chance(5); named {
		header["Daycared-Call"] = name
	}
	switch {
	case p.n == 0:
		header["Daycared-Request"] = p.proposed
	case p.chance(2):
		header["Daycared-Request"] = string(permissions.NewID(p.clock.now()))
	}
	for try := range 5 {
		who := fmt.Sprintf("call %d", p.n)
		if header["Daycared-Call"] == "" { // each different
			who = fmt.Sprintf("call %d.%d", p.n, try)
		}
		body := p.body(waits[p.rand.IntN(len(waits))])
		made := p.do(ctx, p.agents, deed{act: ask, who: who}, "", "POST", "/v1/requests", header, body)
		switch {
		case ctx.Err() != nil:
			return
		case made.reply.word == told && made.reply.row.state == pending:
			header["Daycared-Request"] = made.shown.ID
		case made.reply.word == told && p.chance(3):
			p.do(ctx, p.agents, deed{act: read}, made.shown.ID, "GET", "/v1/requests/"+made.shown.ID, nil, nil)
			return
		case made.reply.word == told && p.chance(2):
			return
		case made.reply.word == refused: // denied twice
			return
		}
	}
}

// body is the question.
func (p *simClient) body(wait string) map[string]any {
	body := map[string]any{
		"kind": p.kind, "session": "s", "reason": p.name, "timeout": p.timeout, "wait": wait,
	}
	route := quorums[p.question.quorum]
	if p.kind == permissions.KindTool {
		body["tool"], body["input"] = route, map[string]any{"scene": p.name}
	} else {
		body["permissions"] = []string{"@read:/" + route + "/" + p.name}
	}
	if p.question.keyed {
		body["key"] = p.name
	}
	return body
}

// pick is a request to act on: usually the newest.
func (p *simClient) pick() string {
	ids := p.known()
	if p.chance(3) {
		return ids[p.rand.IntN(len(ids))]
	}
	return ids[len(ids)-1]
}

// decides is a person who taps, sometimes twice, and changes their mind.
func (p *simClient) decides(ctx context.Context) {
	who := p.question.asked[p.rand.IntN(len(p.question.asked))]
	if p.chance(12) {
		who = "eve"
	}
	for tap := range 1 + p.rand.IntN(4) {
		d := deed{act: allow, who: who, tap: fmt.Sprintf("%s-%d-%d", p.name, p.n, tap)}
		answer := "allow_once"
		if p.chance(1 + 2*p.question.quorum) {
			d.act, answer = deny, "deny"
		}
		id := p.pick()
		for again := true; again; {
			made := p.do(ctx, p.people[who], d, id, "POST", "/v1/requests/"+id+"/decision", nil,
				map[string]any{"answer": answer, "comment": d.tap})
			again = ctx.Err() == nil && (made.reply.word == lost || p.chance(4))
		}
	}
}

// interferes cancels, revokes and reads.
func (p *simClient) interferes(ctx context.Context) {
	for range 2 + p.rand.IntN(4) {
		id := p.pick()
		who := p.question.asked[p.rand.IntN(len(p.question.asked))]
		at, path := p.people[who], "/v1/requests/"+id
		switch p.rand.IntN(10) {
		case 0:
			p.do(ctx, p.agents, deed{act: cancel}, id, "POST", path+"/cancel", nil, struct{}{})
		case 1:
			p.do(ctx, at, deed{act: cancel, who: who}, id, "POST", path+"/cancel", nil, struct{}{})
		case 2, 3, 4:
			p.do(ctx, at, deed{act: void, who: who}, id, "POST", path+"/void", nil, struct{}{})
		case 5, 6:
			p.do(ctx, at, deed{act: read, who: who}, id, "GET", path, nil, nil)
		default:
			p.do(ctx, p.agents, deed{act: read}, id, "GET", path+"?wait=2ms", nil, nil)
		}
	}
}
