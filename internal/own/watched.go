package own

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// stepTimeout is how long one step of a look-up may take.
	stepTimeout = time.Second
	// parts is how many parts of that time have to pass without a step. While this process is halted, and the look with it, one passes.
	parts = 10
	// maxHung is how many look-ups of a caller may hang; each holds a thread.
	maxHung = 4
)

// Watched runs look-ups in file systems that may never answer: one on a network, or one that an agent's own program serves.
type Watched struct {
	StepTimeout time.Duration // 0: a second
	most        int           // 0: maxHung
	mu          sync.Mutex
	hung        map[string]int // by caller
}

// folders are look-ups in agents' folders and in files that the configuration names, by their paths, and those of callers.
var folders Watched

// ErrSilent says that a file system does not answer.
var ErrSilent = errors.New("its file system does not answer")

// LookUp returns what a look at a path finds, or within a second [ErrSilent].
func LookUp[T any](path string, look func() (T, error)) (T, error) {
	return LookUpFor(path, path, look)
}

// LookUpFor is [LookUp] for a caller, of whose looks four may hang, wherever.
func LookUpFor[T any](caller, path string, look func() (T, error)) (T, error) {
	return ask(&folders, caller, path, remote(mounts()), new(atomic.Uint64), look)
}

// Do is [LookUp] for a look that finds nothing but an error.
func Do(path string, look func() error) error {
	_, err := LookUp(path, func() (struct{}, error) { return struct{}{}, look() })
	return err
}

// ask is [Watched.Run] for a look that finds something.
func ask[T any](w *Watched, caller, path string, places []string, steps *atomic.Uint64, look func() (T, error)) (T, error) {
	type answer struct {
		found T
		err   error
	}
	got := make(chan answer, 1)
	if !w.Run(caller, steps, func() {
		probeRemote(path, places)
		found, err := look()
		got <- answer{found, err}
	}) {
		return answer{}.found, fmt.Errorf("%s: %w", path, ErrSilent)
	}
	a := <-got
	return a.found, a.err
}

// Run runs look, which counts its steps, for a caller, and reports whether it is done. It waits for a step no longer than patience, and
// begins nothing for a caller of whom maxHung look-ups hang. One that hangs goes on by itself, and ends when its file system answers.
func (w *Watched) Run(caller string, steps *atomic.Uint64, look func()) bool {
	patience := cmp.Or(w.StepTimeout, stepTimeout)
	if w.Full(caller) {
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
	ticker := time.NewTicker(patience / parts)
	defer ticker.Stop()
	for before, silent := steps.Load(), 0; silent < parts; {
		select {
		case ended := <-done:
			ended()
			return true
		case <-ticker.C:
		}
		if now := steps.Load(); now != before {
			before, silent = now, 0
		} else {
			silent++
		}
	}
	w.count(caller, 1)
	go func() {
		<-done
		w.count(caller, -1)
	}()
	return false
}

// Full reports whether so many look-ups of a caller hang that no other is begun.
func (w *Watched) Full(caller string) bool { return w.count(caller, 0) >= cmp.Or(w.most, maxHung) }

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
