package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/permissions"
)

// idChannel is a phone whose channel allocates message ids before sending. Confirmations of its sends may get lost.
type idChannel struct {
	*phone

	mu    sync.Mutex
	names int
	lost  int      // how many confirmations are still to be lost
	sent  []string // the message ids
	seen  func(p connectors.Prompt)
	edits []string
}

var _ connectors.MessageIDAllocator = (*idChannel)(nil)

func (n *idChannel) AllocateID(p connectors.Prompt) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names++
	return fmt.Sprintf("%s-%d", p.Code, n.names)
}

func (n *idChannel) Send(_ context.Context, p connectors.Prompt) (string, error) {
	n.mu.Lock()
	n.sent = append(n.sent, p.Ref)
	lost, seen := n.lost > 0, n.seen
	n.lost--
	n.mu.Unlock()
	if seen != nil {
		seen(p)
	}
	if lost {
		return "", errors.New("nobody confirmed it")
	}
	_, err := n.Memory.Send(context.Background(), p)
	return p.Ref, err
}

func (n *idChannel) Edit(_ context.Context, ref string, _ connectors.Prompt) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.edits = append(n.edits, ref)
	return nil
}

// The id is stored before anything is sent, and a retry uses the same.
func TestACardIsNamedBeforeItIsSent(t *testing.T) {
	n := &idChannel{phone: newPhone(fay, "fays-phone"), lost: 2}
	st := newEnv(t, usual())
	n.seen = func(p connectors.Prompt) {
		copies, err := st.rows.Copies(t.Context(), p.Request.ID)
		if err != nil || len(copies) != 1 || copies[0].Ref != p.Ref || p.Ref == "" || !copies[0].SentAt.IsZero() {
			t.Errorf("sent as %q, and the store has %+v, %v", p.Ref, copies, err)
		}
	}
	st.restart(n)
	call := st.ask(t.Context(), network("x"))
	p := st.shown(n.Memory, 1)
	n.must(t, p.Request.ID, allow())
	st.get(call)
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.sent) != 3 || n.names != 1 || n.sent[0] != n.sent[2] {
		t.Errorf("it was named %d times, and sent as %q", n.names, n.sent)
	}
}

// What failed to be sent counts as shown to nobody, whether or not its id was named before: its code is told in other places, too.
func TestACardThatCouldNotBeSentIsNotShown(t *testing.T) {
	named := &idChannel{phone: newPhone(fay, "fays-phone"), lost: 1000}
	memory := connectortest.NewMemory(fayAt("memory"), nil)
	memory.FailSend(-1, errors.New("not now"))
	for via, channel := range map[string]connectors.Connector{"fays-phone": named, "memory": memory} {
		st := newEnv(t, usual(), channel)
		q := network(via)
		begun, err := st.Begin(t.Context(), self, q)
		if err != nil {
			t.Fatal(err)
		}
		st.eventually("no send has failed", func() bool {
			s, err := st.Find(t.Context(), self, begun.Request.ID)
			return err == nil && len(s.Delayed) > 0
		})
		if _, err := st.SendAgain(t.Context(), fayAt(via), begun.Code); err != nil { // to ask for it is not to see it
			t.Fatal(err)
		}
		all, err := st.Pending(t.Context(), fayAt(via), "", 10)
		if err != nil || len(all) != 1 || len(all[0].Copies) != 1 || !all[0].Copies[0].SentAt.IsZero() {
			t.Errorf("%s: %+v, %v", via, all, err)
		}
	}
}

// TestACardThatAnEarlierProcessMayHaveSentIsNotShown: what it had named and not seen confirmed is shown once this process has sent it, and
// since it did.
func TestACardThatAnEarlierProcessMayHaveSentIsNotShown(t *testing.T) {
	lost := func() *idChannel { return &idChannel{phone: newPhone(fay, "fays-phone"), lost: 1000} }
	st := newEnv(t, usual(), lost())
	begun, err := st.Begin(t.Context(), self, network("x"))
	if err != nil {
		t.Fatal(err)
	}
	st.eventually("its card is not named", func() bool {
		copies, err := st.rows.Copies(t.Context(), begun.Request.ID)
		return err == nil && len(copies) == 1 && copies[0].Ref != ""
	})
	n := lost()
	st.restart(n)
	st.eventually("no send has failed", func() bool {
		s, err := st.Find(t.Context(), self, begun.Request.ID)
		return err == nil && len(s.Delayed) > 0
	})
	all, err := st.Pending(t.Context(), fayAt("fays-phone"), "", 10)
	if err != nil || len(all) != 1 || len(all[0].Copies) != 1 || !all[0].Copies[0].SentAt.IsZero() {
		t.Errorf("%+v, %v", all, err)
	}
	n.mu.Lock()
	n.lost = 0
	n.mu.Unlock()
	p := st.shown(n.Memory, 1)
	st.noted("fays-phone", p.Request.ID)
	copies, err := st.rows.Copies(t.Context(), p.Request.ID)
	if err != nil || len(copies) != 1 || !copies[0].SentAt.After(copies[0].DueAt) {
		t.Errorf("it is noted as %+v, %v", copies, err)
	}
}

// A request that was settled while the arrival of its prompt was unknown is settled on that prompt.
func TestWhatMayHaveArrivedIsEdited(t *testing.T) {
	t.Run("E3/what may have arrived", func(t *testing.T) {
		n := &idChannel{phone: newPhone(fay, "fays-phone"), lost: 1000}
		tried := make(chan connectors.Prompt, 1000)
		n.seen = func(p connectors.Prompt) { tried <- p }
		st := newEnv(t, usual(), n)
		call := st.ask(t.Context(), network("x"))
		p := <-tried
		n.must(t, p.Request.ID, permissions.Deny)
		if r := st.get(call); r.State != permissions.Denied {
			t.Error(r.State)
		}
		st.noted("fays-phone", p.Request.ID)
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.edits) == 0 || n.edits[0] != p.Ref {
			t.Errorf("edited were %q, and it was sent as %q", n.edits, p.Ref)
		}
	})
}
