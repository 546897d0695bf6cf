package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// What [context.Cause] says of a context that a signal ended.
var (
	errInterrupted = errors.New("interrupted")
	errTerminated  = errors.New("terminated")
)

// untilSignal is ctx until the first SIGINT or SIGTERM, which is the cause and has the process drain. The second one
// kills: signals are no longer caught before anybody can know that the context has ended.
func untilSignal(ctx context.Context) (ended context.Context, stop func()) {
	ended, cancel := context.WithCancelCause(ctx)
	signals, over := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer close(over)
		var first os.Signal
		select {
		case first = <-signals:
		case <-ended.Done():
		}
		signal.Stop(signals)
		switch {
		case first == syscall.SIGTERM:
			cancel(errTerminated)
		case first != nil:
			cancel(errInterrupted)
		}
		select {
		case second := <-signals: // it came before they were let go
			if number, ok := second.(syscall.Signal); ok && first != nil {
				_ = syscall.Kill(os.Getpid(), number) // it can only fail for a process that is not there
			}
		default:
		}
	}()
	return ended, func() {
		cancel(nil)
		<-over
	}
}
