package mcp

import (
	"slices"
	"sync"
	"time"

	"github.com/daycared/daycared/permissions"
)

const (
	mostLeft = 10_000        // who left and is remembered
	keepLeft = 2 * time.Hour // longer than any request waits and its answer is kept
)

// question is what somebody asks, by which they are known when they ask it again.
type question struct {
	caller string
	digest permissions.Digest
}

func questionOf(c permissions.Caller, q permissions.Request) question {
	q.Caller, q.Version = c, permissions.DigestVersion
	return question{c.Name, permissions.ComputeDigest(q)}
}

// leaver is a call that went away, or was answered by somebody who did not hear it.
type leaver struct {
	id      permissions.ID
	call    string // its name at the desk: an approval that was handed to it is its own
	caller  permissions.Caller
	message string // the id of its JSON-RPC message; empty where it is not known
	n       uint64 // tells two that are alike apart
	at      time.Time
}

// memory are those who left without an answer.
type memory struct {
	mu    sync.Mutex
	all   map[question][]leaver
	added uint64
	order []question // one for every leaver ever added and not yet looked at for its age, the oldest first
}

func newMemory() *memory { return &memory{all: map[question][]leaver{}} }

// add remembers one, and gives it its number.
func (m *memory) add(about question, l leaver) leaver {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.added++
	l.n, l.at = m.added, time.Now()
	m.all[about] = append(m.all[about], l)
	m.order = append(m.order, about)
	for len(m.order) > mostLeft {
		m.drop(m.order[0])
		m.order = m.order[1:]
	}
	return l
}

// drop forgets the longest gone of those who asked that. The lock is held.
func (m *memory) drop(about question) {
	if rest := m.all[about]; len(rest) > 1 {
		m.all[about] = rest[1:]
		return
	}
	delete(m.all, about)
}

// take finds the one that went longest ago, for a call that asks the same.
func (m *memory) take(about question) (leaver, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.all[about]) > 0 {
		l := m.all[about][0]
		m.drop(about)
		if time.Since(l.at) < keepLeft {
			return l, true
		}
	}
	return leaver{}, false
}

// forget forgets those who waited for a request whose answer has been given.
func (m *memory) forget(about question, id permissions.ID) {
	m.strike(about, func(l leaver) bool { return l.id == id })
}

// claim forgets one, and tells whether it was still there: whoever comes back takes its place.
func (m *memory) claim(about question, one leaver) bool {
	return m.strike(about, func(l leaver) bool { return l.n == one.n })
}

func (m *memory) strike(about question, gone func(leaver) bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.all[about])
	rest := slices.DeleteFunc(m.all[about], gone)
	if m.all[about] = rest; len(rest) == 0 {
		delete(m.all, about)
	}
	return len(rest) < before
}

// of finds those who went for the messages of a caller with that id, within so long.
func (m *memory) of(caller, message string, within time.Duration) (found []regret) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for about, list := range m.all {
		for _, l := range list {
			if about.caller == caller && l.message == message && time.Since(l.at) < within {
				found = append(found, regret{about: about, leaver: l})
			}
		}
	}
	return found
}
