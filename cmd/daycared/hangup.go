package main

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// untilHangup is ctx until nobody reads standard output any more, where that is a pipe or a socket: an agent that was
// killed, or that closed its end, is told nothing. over ends the watching and joins it.
func (c *CLI) untilHangup(ctx context.Context) (watched context.Context, over func()) {
	watched, end := context.WithCancel(ctx)
	out, isFile := c.Out.(*os.File)
	wake, stop, err := os.Pipe()
	if !isFile || err != nil {
		return watched, end
	}
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		if hangsUp(int(out.Fd()), int(wake.Fd())) {
			end()
		}
	}()
	return watched, func() {
		_ = stop.Close() // wakes the one that watches
		<-joined
		_ = wake.Close()
		end()
	}
}

// hangsUp waits until nobody reads fd any more, or until something happens to wake; it tells whether it was the former.
func hangsUp(fd, wake int) bool {
	watched := []unix.PollFd{{Fd: int32(fd)}, {Fd: int32(wake), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(watched, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil, n == 0, watched[1].Revents != 0, watched[0].Revents&unix.POLLNVAL != 0:
			return false
		case watched[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0:
			return true
		}
	}
}
