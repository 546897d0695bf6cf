// Package aside does things on a goroutine of their own, for the sake of the one that they are done for.
//
// A goroutine's stack is as large as it ever had to be, and shrinks only later, when little of it is used. A call that
// waits for a person keeps its goroutine for as long, and thousands of calls do: what goes deep, such as reading the
// question and storing it, made each of them cost twice what the connection costs. So that is done aside, and the
// goroutine that waits afterwards has never held more than a few frames.
package aside

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// Do does something aside, and returns when that is done. When it panics, whoever called does, with a text that says
// where it was.
func Do(what func()) {
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
