// Package aside runs deep calls on other goroutines, so that a goroutine that waits for a person keeps a small stack.
//
// A goroutine's stack grows to its deepest call and shrinks only later. Thousands of calls wait for people at a time, and reading
// and storing a question on the same goroutine made each cost twice what its connection costs.
package aside

import (
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// idleFor is how long a goroutine whose stack has grown waits for the next call, which then need not grow one.
const idleFor = 50 * time.Millisecond

// Pool runs calls on goroutines of its own.
type Pool struct {
	calls chan *call // to those that are idle
}

// NewPool returns an empty pool.
func NewPool() Pool { return Pool{make(chan *call)} }

type call struct {
	what     func()
	panicked string
	done     sync.WaitGroup
}

// Run runs what on one of them and waits for it. A panic of what is raised in the caller, with its stack as text.
func (p Pool) Run(what func()) {
	c := &call{what: what}
	c.done.Add(1)
	select {
	case p.calls <- c:
	default:
		go p.work(c)
	}
	c.done.Wait()
	if c.panicked != "" {
		panic(c.panicked)
	}
}

// work runs c and what comes next, until nothing has come for idleFor.
func (p Pool) work(c *call) {
	idle := time.NewTimer(idleFor)
	for {
		c.run()
		idle.Reset(idleFor)
		select {
		case c = <-p.calls:
		case <-idle.C:
			return
		}
	}
}

func (c *call) run() {
	defer c.done.Done()
	defer func() {
		if p := recover(); p != nil {
			c.panicked = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
	}()
	c.what()
}
