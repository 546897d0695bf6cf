package dispatch

import (
	"sync"
	"time"
)

// A person who approves many cards in a row may not read them: after hastyMost approvals within hastySpan each card can be allowed only
// when readTime has passed since the last one, and since it was shown.
const (
	hastyMost = 5
	hastySpan = 20 * time.Second
	readTime  = 2 * time.Second
)

// approvals has when people approved last in chats, at most hastyMost each. It is kept in memory only. It is safe for concurrent use.
type approvals struct {
	mu   sync.Mutex
	last map[string][]time.Time // by person, oldest first
}

// NoteApproval notes that a person approved a request in a chat.
func (d *Dispatch) NoteApproval(person string) {
	a := &d.approved
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last == nil {
		a.last = map[string][]time.Time{}
	}
	a.last[person] = append(a.last[person], d.clock.Now())
	a.last[person] = a.last[person][max(0, len(a.last[person])-hastyMost):]
}

// AllowableAt returns when a card that was shown at a time can be allowed by a person; the zero time if they are not hasty.
func (d *Dispatch) AllowableAt(person string, shown time.Time) time.Time {
	a, now := &d.approved, d.clock.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.last[person]
	if len(all) < hastyMost || now.Sub(all[0]).Abs() >= hastySpan {
		return time.Time{}
	}
	at := all[hastyMost-1]
	if shown.After(at) {
		at = shown
	}
	return at.Add(readTime)
}
