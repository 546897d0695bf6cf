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

	"golang.org/x/sync/errgroup"

	"github.com/daycared/daycared/internal/server"
	"github.com/daycared/daycared/permissions"
)

// presence tracks local processes that wait for an answer and have declared how long they will live. One that disappears earlier
// was killed, as an interrupted agent may do with its hook, so its request is withdrawn. After a restart, the engine lists the
// processes that were waiting.
type presence struct {
	mu sync.Mutex
	of map[string]map[string]process // by the caller's and the call's name
}

// process is one waiting process.
type process struct {
	caller permissions.Caller
	id     permissions.ID
	call   string
	pid    int
	start  string // its start time as reported by the kernel; empty if unknown
	until  time.Time
}

const (
	// lookEvery is the interval between checks.
	lookEvery = 2 * time.Second
	// early is the tolerance for processes that exit by themselves before their declared time.
	early = 2 * time.Second
	// maxProcesses is the maximum number of processes of one caller. What further ones ask waits until its time is over.
	maxProcesses = 1000
	// maxChanges is how many processes that have ended are reported to the engine at the same time.
	maxChanges = 64
)

// note records how a call ended, with q as the request's state. It returns what must be stored (or deleted, if it has no process),
// to survive a restart. The store deletes the processes of settled requests with them.
func (p *presence) note(ctx context.Context, a *asking, q *permissions.Request) (changes []permissions.Wait) {
	pid := server.PeerPID(ctx)
	if a.call == "" || pid == 0 {
		return nil
	}
	caller := CallerOf(ctx)
	stays, err := time.ParseDuration(a.stays)
	p.mu.Lock()
	defer p.mu.Unlock()
	was, known := p.of[caller.Name][a.call]
	if known && was.id != q.ID { // the call asks something else by now
		changes = append(changes, permissions.Wait{Request: was.id, Call: a.call})
	}
	if err != nil || stays <= early || q.State != permissions.Pending {
		if p.drop(caller.Name, a.call); known && q.State == permissions.Pending {
			changes = append(changes, permissions.Wait{Request: q.ID, Call: a.call})
		}
		return changes
	}
	if !known && len(p.of[caller.Name]) >= maxProcesses {
		return nil
	}
	same := known && was.pid == pid
	if !same {
		was.pid, was.start = pid, began(pid)
	}
	same = same && was.id == q.ID
	was.caller, was.id, was.call, was.until = caller, q.ID, a.call, time.Now().Add(stays-early)
	if p.put(was); !same {
		changes = append(changes, permissions.Wait{Request: q.ID, Call: was.call, PID: pid, Began: was.start, Until: was.until})
	}
	return changes
}

// put adds or replaces a process. The caller holds the lock, as for drop.
func (p *presence) put(w process) {
	if p.of[w.caller.Name] == nil {
		p.of[w.caller.Name] = map[string]process{}
	}
	p.of[w.caller.Name][w.call] = w
}

func (p *presence) drop(caller, call string) {
	if delete(p.of[caller], call); len(p.of[caller]) == 0 {
		delete(p.of, caller)
	}
}

// recall takes over the processes that waited when the daemon ended. A request is kept while any of its processes lives.
func (p *presence) recall(ctx context.Context, requests Requests) error {
	kept, callers, err := requests.Processes(ctx)
	if err != nil {
		return err
	}
	there := map[permissions.ID]bool{}
	all := make([]process, len(kept))
	for i, w := range kept {
		all[i] = process{caller: callers[i], id: w.Request, call: w.Call, pid: w.PID, start: w.Began, until: w.Until}
		there[w.Request] = there[w.Request] || !all[i].over()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range all {
		if _, back := p.of[w.caller.Name][w.call]; !back && (!w.over() || !there[w.id]) {
			p.put(w)
		}
	}
	return nil
}

// watch withdraws the requests of processes that are gone, until ctx ends.
func (p *presence) watch(ctx context.Context, requests Requests) error {
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	for recalled := false; ; {
		recalled = recalled || p.recall(ctx, requests) == nil
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		}
		gone, late := p.remove()
		var changes errgroup.Group // changes that come together share a commit of the store
		changes.SetLimit(maxChanges)
		for _, w := range gone {
			changes.Go(func() error { // on failure the request stays pending
				_, err := requests.LeaveOrCancel(ctx, w.caller, w.id, w.call, permissions.ViaInterrupt)
				return err
			})
		}
		for _, w := range late {
			changes.Go(func() error { // on failure its row stays until the request is settled
				return requests.KeepProcess(ctx, w.caller, permissions.Wait{Request: w.id, Call: w.call})
			})
		}
		_ = changes.Wait()
	}
}

// remove removes and returns the processes that are gone, and those whose declared time is over.
func (p *presence) remove() (gone, late []process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for caller, calls := range p.of {
		for call, w := range calls {
			switch {
			case time.Now().After(w.until):
				p.drop(caller, call)
				late = append(late, w)
			case w.over():
				p.drop(caller, call)
				gone = append(gone, w)
			}
		}
	}
	return gone, late
}

// over reports whether the process has certainly ended.
func (w process) over() bool {
	if errors.Is(syscall.Kill(w.pid, 0), syscall.ESRCH) {
		return true
	}
	now := began(w.pid)
	return w.start != "" && now != "" && now != w.start || now == zombie
}

const zombie = "it has ended, and nobody has noticed"

// began returns a process's start time as Linux reports it (proc(5)); empty if unknown.
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
