package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// presence knows the processes of this machine that wait for an answer and said how long they are there. One that is gone before
// was ended, and nobody needs its answer: an agent that is interrupted may kill its hook without a word. A daemon that was
// started anew learns of them when they ask again.
type presence struct {
	mu sync.Mutex
	of map[string]process // by the caller and the call's name
}

// process is one that waits.
type process struct {
	caller permissions.Caller
	id     permissions.ID
	call   string
	pid    int
	start  string // when the process began, as the kernel has it; empty where that is not to be known
	until  time.Time
}

const (
	// lookEvery is how often it is looked whether they are there.
	lookEvery = 2 * time.Second
	// early is how much earlier than it said a process may end by itself.
	early = 2 * time.Second
)

// note is told how a call ended: q is as it stands.
func (p *presence) note(ctx context.Context, in *askInput, q *permissions.Request) {
	pid := wire.PeerPID(ctx)
	if in.Call == "" || pid == 0 {
		return
	}
	caller := CallerOf(ctx)
	key := caller.Name + "/" + in.Call
	stays, err := time.ParseDuration(in.Stays)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil || stays <= early || q.State != permissions.Pending {
		delete(p.of, key)
		return
	}
	was, known := p.of[key]
	if !known || was.pid != pid {
		was = process{pid: pid, start: began(pid)}
	}
	was.caller, was.id, was.call, was.until = caller, q.ID, in.Call, time.Now().Add(stays-early)
	p.of[key] = was
}

// watch withdraws what those asked that are gone, until ctx ends.
func (p *presence) watch(ctx context.Context, desk Desk) error {
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		}
		for _, gone := range p.gone() {
			_ = desk.Killed(ctx, gone.caller, gone.id, gone.call) // what cannot be cancelled stands, as it did
		}
	}
}

// gone are those that are, each once.
func (p *presence) gone() (all []process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, w := range p.of {
		switch {
		case time.Now().After(w.until):
			delete(p.of, key)
		case w.over():
			delete(p.of, key)
			all = append(all, w)
		}
	}
	return all
}

// over reports whether the process is certainly gone.
func (w process) over() bool {
	if errors.Is(syscall.Kill(w.pid, 0), syscall.ESRCH) {
		return true
	}
	now := began(w.pid)
	return w.start != "" && now != "" && now != w.start || now == zombie
}

const zombie = "it has ended, and nobody has noticed"

// began is when a process began, as Linux tells it (proc(5)); empty where that is not to be known.
func began(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, found := bytes.Cut(text[bytes.LastIndexByte(text, ')')+1:], []byte(" "))
	fields := bytes.Fields(rest)
	switch {
	case err != nil || !found || len(fields) < 20:
		return ""
	case fields[0][0] == 'Z' || fields[0][0] == 'X':
		return zombie
	}
	return string(fields[19])
}
