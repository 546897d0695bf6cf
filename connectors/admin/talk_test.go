package admin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/daycared/daycared/connectors"
)

func saying(text string) connectors.AgentMessage {
	return connectors.AgentMessage{To: connectors.Person{Name: "fay"}, Agent: "helper", Text: text}
}

// What an agent says is sent when one inbox of its person was written, whatever became of the others, and nobody else
// gets it.
func TestSaidIsSentOnceItIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{}, nil)
		one, leaveOne := c.inboxes.enter("fay")
		two, leaveTwo := c.inboxes.enter("fay")
		others, leaveOthers := c.inboxes.enter("sam")
		defer leaveOthers()
		defer leaveTwo()
		done := make(chan error, 1)
		var ref string
		talk := func(ctx context.Context) {
			go func() {
				var err error
				ref, _, err = c.SendMessage(ctx, saying("hello"))
				done <- err
			}()
			synctest.Wait()
		}
		talk(t.Context())
		if len(done) > 0 {
			t.Fatal("it counts as sent before anything was written")
		}
		leaveOne() // with what it has not written
		if p, open := <-one; open {
			t.Errorf("what nobody writes is kept: %+v", p)
		}
		synctest.Wait()
		if len(done) > 0 {
			t.Fatal("it is not waited for the other inbox")
		}
		p := <-two
		p.report(true)
		if err := <-done; err != nil || ref == "" || p.said.Ref != ref || p.said.Text != "helper: hello" || p.said.Agent != "helper" {
			t.Errorf("%q, %v: %+v", ref, err, p.said)
		}
		if len(others) > 0 {
			t.Error("somebody else is told")
		}

		talk(t.Context())
		(<-two).report(false)
		if err := <-done; err == nil || connectors.ReadySignal(err) != nil || errors.Is(err, connectors.ErrUnreachable) {
			t.Errorf("nobody wrote it: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		talk(ctx)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("nobody says what became of it: %v", err)
		}
	})
}

// While its person has no inbox open, what an agent says waits for one, and is not given up.
func TestSaidWaitsForAnInbox(t *testing.T) {
	c := New(Options{}, nil)
	_, _, err := c.SendMessage(t.Context(), saying("hello"))
	back := connectors.ReadySignal(err)
	if back == nil || errors.Is(err, connectors.ErrUnreachable) || err.Error() != "fay has no inbox open just now" {
		t.Fatalf("Talk = %v", err)
	}
	_, _, again := c.SendMessage(t.Context(), saying("hello"))
	_, leave := c.inboxes.enter("sam")
	select {
	case <-back:
		t.Error("somebody else's inbox ends the waiting")
	default:
	}
	leave()
	_, leave = c.inboxes.enter("fay")
	<-back
	<-connectors.ReadySignal(again)
	leave()
	_, _, err = c.SendMessage(t.Context(), saying("hello"))
	select {
	case <-connectors.ReadySignal(err):
		t.Error("an inbox that has closed ends the waiting")
	default:
	}
}

// A stream that does not keep up is not waited for.
func TestALaggingStreamIsNotWaitedFor(t *testing.T) {
	c := New(Options{}, nil)
	_, leave := c.inboxes.enter("fay")
	defer leave()
	for range feedBuffer {
		c.inboxes.send("fay", delivery{lines: []string{"x"}})
	}
	if _, _, err := c.SendMessage(t.Context(), saying("hello")); err == nil || connectors.ReadySignal(err) != nil {
		t.Errorf("Talk = %v", err)
	}
}

// A part that is not there is nothing to send.
func TestNoSuchPart(t *testing.T) {
	c := New(Options{}, nil)
	s := saying(strings.Repeat("word ", 2000))
	s.Part = 9
	if ref, more, err := c.SendMessage(t.Context(), s); ref != "" || more || err != nil {
		t.Errorf("Talk = %q, %v, %v", ref, more, err)
	}
}
