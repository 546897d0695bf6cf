package own

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// patience is how long one step of a look-up may take.
	patience = time.Second
	// maxHung is how many look-ups of a caller may hang; each holds a thread.
	maxHung = 4
)

// Watched runs look-ups in file systems that may never answer: one on a network, or one that an agent's own program serves.
type Watched struct {
	mu   sync.Mutex
	hung map[string]int // by caller
}

// Run runs look, which counts its steps, for a caller, and reports whether it is done. It waits for a step no longer than patience, and
// begins nothing for a caller of whom maxHung look-ups hang. One that hangs goes on by itself, and ends when its file system answers.
func (w *Watched) Run(caller string, steps *atomic.Uint64, look func()) bool {
	if w.count(caller, 0) >= maxHung {
		return false
	}
	done := make(chan func(), 1) // what is called then raises the panic of look, if any, in the caller
	go func() {
		ended := func() {}
		defer func() { done <- ended }()
		defer func() {
			if p := recover(); p != nil {
				text := fmt.Sprintf("%v\n%s", p, debug.Stack())
				ended = func() { panic(text) }
			}
		}()
		look()
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for before := steps.Load(); ; {
		select {
		case ended := <-done:
			ended()
			return true
		case <-timer.C:
		}
		now := steps.Load()
		if now == before {
			w.count(caller, 1)
			go func() {
				<-done
				w.count(caller, -1)
			}()
			return false
		}
		before = now
		timer.Reset(patience)
	}
}

// count adds to how many look-ups of a caller hang, and returns how many do.
func (w *Watched) count(caller string, more int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hung == nil {
		w.hung = map[string]int{}
	}
	w.hung[caller] += more
	n := w.hung[caller]
	if n == 0 {
		delete(w.hung, caller)
	}
	return n
}
