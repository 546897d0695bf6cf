package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
)

// TestR14: two hundred agents and people ask, answer, leave and return, and everything that they opened is released.
func TestR14(t *testing.T) {
	const visits, slack = 200, 10 // a leak per visit would be many times that
	l := newLoop(t)
	l.begin()
	var warm sync.WaitGroup
	for i := range visits / 10 { // opens all connections to the store in advance
		warm.Go(func() { l.visit(fmt.Sprintf("first %d.", i)) })
	}
	warm.Wait()
	files, goroutines := l.held(t.Context())
	for i := range visits {
		l.visit(fmt.Sprintf("visit %d.", i))
	}
	l.await("everything to be let go", func(ctx context.Context) error {
		if f, g := l.held(ctx); f > files+slack || g > goroutines+slack {
			return fmt.Errorf("%d files are open and %d goroutines run, after %d and %d", f, g, files, goroutines)
		}
		return nil
	})
	l.finish(0)
}

// visit is one question on its own connections, and another whose agent leaves and returns to cancel it.
func (l *loop) visit(name string) {
	l.question(name)
	ctx, leave := context.WithCancel(l.ctx)
	defer leave()
	gone := make(chan error, 1)
	go func() {
		_, err := l.agents.Put(ctx, networkFor(name+" left"))
		gone <- err
	}()
	id := l.pending(name + " left").Request.ID
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		l.violated("%s (%s): who left is told %v", name, id, err)
	}
	if _, err := l.agents.Cancel(l.ctx, id); err != nil {
		l.violated("%s (%s) cannot be cancelled: %v", name, id, err)
	}
	l.agents.Close()
	l.people.Close()
}

var runs = regexp.MustCompile(`(?m)^go_goroutines (\d+)$`)

// held is the daemon's number of open files and goroutines.
func (l *loop) held(ctx context.Context) (files, goroutines int) {
	open, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(l.daemon.Process.Pid), "fd"))
	if err != nil {
		l.violated("count open files: %v", err)
	}
	_, text, err := l.get(ctx, "/metrics")
	if err != nil {
		l.violated("count goroutines: %v", err)
	}
	if found := runs.FindStringSubmatch(text); found != nil {
		goroutines, _ = strconv.Atoi(found[1])
	}
	if goroutines == 0 {
		l.violated("/metrics tells of no goroutines:\n%s", text)
	}
	return len(open), goroutines
}
