package simulation

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// verdict is what becomes of one call.
type verdict int

const (
	passes verdict = iota
	fails          // before it took effect
	loses          // after it took effect: whoever called does not learn it
	kills          // the daemon is killed before it took effect
	killsAfter
	buried // the daemon is dead already
)

func (v verdict) String() string {
	return [...]string{"", " FAILS", " DONE, AND FAILS", " KILLED BEFORE", " KILLED AFTER", " DEAD"}[v]
}

// side is what a call is made to.
type side int

const (
	reading side = iota
	writing
	sending
)

// whose marks the context of what a program or a channel does, so that two who do the same are told apart.
type whose struct{}

func marked(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, whose{}, who)
}

// crossing is a call that stops at the gate.
type crossing struct {
	side  side
	what  string // calls of the same words are one to the driver
	until int64  // by the bubble's clock: it is held back
	apart bool   // only for a moment, so that no two requests are of one millisecond
	goes  chan verdict
}

// gate is between one life of the daemon and the world. Nothing passes it before the driver says so.
type gate struct {
	arrived chan struct{} // somebody stands there

	mu      sync.Mutex
	waiting []*crossing
	dead    bool
}

func newGate() *gate { return &gate{arrived: make(chan struct{}, 1)} }

var errDead = errors.New("the daemon was killed")

// cross waits until the driver says what becomes of a call, or ctx ends before.
func (g *gate) cross(ctx context.Context, at side, what string) (verdict, error) {
	if who, is := ctx.Value(whose{}).(string); is {
		what += ", for " + who
	}
	c := &crossing{side: at, what: what, goes: make(chan verdict, 1)}
	g.mu.Lock()
	if g.dead {
		g.mu.Unlock()
		return buried, errDead
	}
	g.waiting = append(g.waiting, c)
	g.mu.Unlock()
	select {
	case g.arrived <- struct{}{}:
	default:
	}
	select {
	case v := <-c.goes:
		if v == buried {
			return v, errDead
		}
		return v, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	i := slices.Index(g.waiting, c)
	if i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	g.mu.Unlock()
	if i >= 0 {
		return fails, ctx.Err()
	}
	if v := <-c.goes; v != buried { // the driver was faster
		return v, nil
	}
	return buried, errDead
}

// take takes every call of the same words as c out of those that wait.
func (g *gate) take(c *crossing) (all []*crossing) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = slices.DeleteFunc(g.waiting, func(o *crossing) bool {
		same := o.what == c.what
		if same {
			all = append(all, o)
		}
		return same
	})
	return all
}

// at is who stands at the gate, each sort once, in an order that does not depend on who came first.
func (g *gate) at() []*crossing {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := slices.Clone(g.waiting)
	slices.SortStableFunc(all, func(a, b *crossing) int {
		switch {
		case a.what < b.what:
			return -1
		case a.what > b.what:
			return 1
		}
		return 0
	})
	return slices.CompactFunc(all, func(a, b *crossing) bool { return a.what == b.what })
}

// close ends a life: nothing passes any more.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dead = true
	for _, c := range g.waiting {
		c.goes <- buried
	}
	g.waiting = nil
}

// through makes a call, as far as the driver lets it. failed makes the error of one that fails.
func through[T any](
	ctx context.Context, g *gate, at side, what string, failed func() error, do func() (T, error),
) (out T, done bool, err error) {
	var none T
	v, err := g.cross(ctx, at, what)
	if err != nil {
		return none, false, err
	}
	switch v {
	case fails:
		return none, false, failed()
	case kills:
		return none, false, errDead
	}
	out, err = do()
	switch v {
	case loses:
		return none, true, failed()
	case killsAfter:
		return none, true, errDead
	}
	return out, true, err
}

// back puts a call back that was taken out.
func (g *gate) back(c *crossing) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, c)
}
