// Package aside runs deep calls on a short-lived goroutine, so that a goroutine that waits for a person keeps a small stack.
//
// A goroutine's stack grows to its deepest call and shrinks only later. Thousands of calls wait for people at a time, and reading
// and storing a question on the same goroutine made each cost twice what its connection costs.
package aside

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// Run runs what on another goroutine and waits for it. A panic of what is raised in the caller, with its stack as text.
func Run(what func()) {
	var doing sync.WaitGroup
	var panicked string
	doing.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				panicked = fmt.Sprintf("%v\n%s", p, debug.Stack())
			}
		}()
		what()
	})
	doing.Wait()
	if panicked != "" {
		panic(panicked)
	}
}
