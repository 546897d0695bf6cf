package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// busy is an error of a channel that asks to pause for that long.
type busy time.Duration

func (b busy) Error() string             { return fmt.Sprintf("busy for %v", time.Duration(b)) }
func (b busy) RetryAfter() time.Duration { return time.Duration(b) }

// recordingChannel is a channel of everybody that records its calls, and fails as a test says.
type recordingChannel struct {
	*phone

	mu    sync.Mutex
	fails map[string][]error // by person: the errors of the next calls
	calls map[string][]time.Time
}

func newRecordingChannel() *recordingChannel {
	return &recordingChannel{phone: newPhone(fay, "crowd"), fails: map[string][]error{}, calls: map[string][]time.Time{}}
}

// Reach knows everybody.
func (c *recordingChannel) Reach(connectors.Person) error { return nil }

// use is one call for a person.
func (c *recordingChannel) use(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[name] = append(c.calls[name], time.Now())
	if len(c.fails[name]) == 0 {
		return nil
	}
	err := c.fails[name][0]
	c.fails[name] = c.fails[name][1:]
	return err
}

func (c *recordingChannel) failing(name string, errs ...error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fails[name], c.calls[name] = errs, nil
}

// gaps returns the times between the calls for a person.
func (c *recordingChannel) gaps(name string) (all []time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.calls[name] {
		if i > 0 {
			all = append(all, c.calls[name][i].Sub(c.calls[name][i-1]))
		}
	}
	return all
}

func (c *recordingChannel) Send(ctx context.Context, p connectors.Prompt) (string, error) {
	if err := c.use(p.To.Name); err != nil {
		return "", fmt.Errorf("send: %w", err)
	}
	return c.phone.Send(ctx, p)
}

func (c *recordingChannel) Edit(ctx context.Context, ref string, p connectors.Prompt) error {
	if err := c.use(p.To.Name); err != nil {
		return fmt.Errorf("edit: %w", err)
	}
	return c.phone.Edit(ctx, ref, p)
}

func (c *recordingChannel) Notify(ctx context.Context, n connectors.Notice) error {
	if err := c.use(n.To.Name); err != nil {
		return fmt.Errorf("tell: %w", err)
	}
	return c.phone.Notify(ctx, n)
}

// waits are the pauses that a channel asks for, in virtual time.
var waits = []time.Duration{3 * time.Second, 17 * time.Second, 40 * time.Second, 300 * time.Second}

// inTime checks that a channel was left alone for exactly as long as it asked, plus a tenth at most.
func inTime(t *testing.T, what string, got []time.Duration, want ...time.Duration) {
	t.Helper()
	ok := len(got) == len(want)
	for i := range got {
		ok = ok && got[i] >= want[i] && got[i] <= want[i]+want[i]/10
	}
	if !ok {
		t.Errorf("%s: it was left alone for %v; want %v", what, got, want)
	}
}

// inVirtualTime runs a test in virtual time.
func inVirtualTime(t *testing.T, s engine.Settings, c connectors.Connector, do func(*testing.T, *env)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		st := &env{t: t, dir: t.TempDir(), settings: s, people: []connectors.Connector{c}, pruneEvery: time.Minute}
		st.open()
		t.Cleanup(func() { <-time.After(time.Second) }) // until idle goroutines have ended
		defer func() { st.stop() }()
		do(t, st)
	})
}

func TestACardIsTriedAgainWhenItsChannelSaysSo(t *testing.T) {
	for _, wait := range waits {
		t.Run("E2/"+wait.String(), func(t *testing.T) {
			c, s := newRecordingChannel(), usual()
			s.Approvals.DeliverWithin = time.Hour
			inVirtualTime(t, s, c, func(t *testing.T, st *env) {
				c.failing("fay", busy(wait), busy(wait))
				call := st.ask(t.Context(), network("x"))
				<-time.After(2*wait + wait/2)
				inTime(t, "the card", c.gaps("fay"), wait, wait)
				id := st.shown(c.Memory, 1).Request.ID
				c.failing("fay", busy(wait))
				if _, err := c.says(t, id, permissions.Deny); err != nil {
					t.Fatal(err)
				}
				st.get(call)
				<-time.After(wait + wait/5)
				inTime(t, "its end", c.gaps("fay"), wait)
				st.edited(c.Memory, 1, func(p connectors.Prompt) bool { return p.Request.State == permissions.Denied })
			})
		})
	}
}

// One copy of a request has to pause, and another fails for some other reason: each is retried in its time.
func TestCopiesOfARequestAreTriedEachInItsTime(t *testing.T) {
	c, s := newRecordingChannel(), usual()
	s.Routes = []engine.Route{{Ask: []string{"fay", "sam"}}}
	inVirtualTime(t, s, c, func(t *testing.T, st *env) {
		c.failing("fay", busy(40*time.Second), busy(3*time.Second))
		c.failing("sam", errors.New("no network"), errors.New("no network"), busy(10*time.Second))
		st.ask(t.Context(), network("x"))
		<-time.After(time.Minute)
		inTime(t, "fay's", c.gaps("fay"), 40*time.Second, 3*time.Second)
		sams := c.gaps("sam") // before the last, it is tried whenever the request is processed
		inTime(t, "sam's", sams[min(2, len(sams)):], 10*time.Second)
	})
}

// A channel that asks for a longer pause than a prompt is tried is not waited for.
func TestAChannelThatIsBusyForTooLongIsGivenUpInTime(t *testing.T) {
	c := newRecordingChannel()
	inVirtualTime(t, usual(), c, func(t *testing.T, st *env) {
		c.failing("fay", busy(300*time.Second))
		began := time.Now()
		answered := <-st.ask(t.Context(), network("x"))
		r := answered.r
		took, within := time.Since(began), 2*time.Minute
		if answered.err != nil || r.State != permissions.Undeliverable || !strings.Contains(r.Failure, "busy for 5m0s") {
			t.Errorf("it is %s: %s", r.State, r.Failure)
		}
		if took < within || took > within+within/10 || len(c.gaps("fay")) > 0 {
			t.Errorf("it was given up after %v and %d more tries; want %v and none", took, len(c.gaps("fay")), within)
		}
	})
}

// Notices are retried when the channel says so, whatever other notices come meanwhile.
func TestANoticeIsTriedAgainWhenItsChannelSaysSo(t *testing.T) {
	for _, wait := range waits {
		t.Run(wait.String(), func(t *testing.T) {
			c := newRecordingChannel()
			inVirtualTime(t, usual(), c, func(t *testing.T, st *env) {
				c.failing("fay", busy(wait), busy(wait))
				st.writeFromUnknown("6666")
				for range 3 {
					<-time.After(wait / 2)
					st.writeFromUnknown("6666") // wakes the notifier
				}
				<-time.After(wait)
				inTime(t, "the notice", c.gaps("fay"), wait, wait)
				if n := c.notice(t); lists(n) != "6666" {
					t.Errorf("told of %s", lists(n))
				}
			})
		})
	}
}

// A recipient who is asked later is tried as long as those who were asked at once.
func TestALaterCopyIsTriedForItsOwnTime(t *testing.T) {
	c := newRecordingChannel()
	settings := usual()
	settings.Routes[0].Escalate.Moment = engine.Moment{After: 110 * time.Second}
	settings.Routes[0].Escalate.To = []string{"sam"}
	inVirtualTime(t, settings, c, func(t *testing.T, st *env) {
		c.failing("fay", busy(time.Second), busy(118*time.Second))
		c.failing("sam", busy(20*time.Second))
		call := st.ask(t.Context(), network("x"))
		<-time.After(3 * time.Minute)
		inTime(t, "sam's", c.gaps("sam"), 20*time.Second)
		c.must(t, st.pending(1)[0].ID, permissions.Deny)
		if r := (<-call).r; r.DecidedBy != "fay" {
			t.Errorf("%s by %s: %s", r.State, r.DecidedBy, r.Failure)
		}
	})
}

// A call that comes and goes causes an edit every few seconds at most, and other changes are shown at once.
func TestWhoWaitsIsShownNotTooOften(t *testing.T) {
	c, s := newRecordingChannel(), usual()
	s.Routes[0].Ask, s.Routes[0].Quorum = []string{"fay", "sam"}, 2
	inVirtualTime(t, s, c, func(t *testing.T, st *env) {
		for range 20 {
			brief, done := context.WithTimeout(t.Context(), 100*time.Millisecond)
			_, _ = st.Ask(brief, self, network("x"))
			done()
			<-time.After(1400 * time.Millisecond)
		}
		if n := len(c.gaps("fay")); n < 2 || n > 8 {
			t.Errorf("%d edits in 30 seconds", n)
		}
		<-time.After(6 * time.Second) // the last edit that only shows who waits
		before := len(c.gaps("sam"))
		c.must(t, st.pending(1)[0].ID, allow())
		<-time.After(100 * time.Millisecond)
		if n := len(c.gaps("sam")) - before; n != 1 {
			t.Errorf("a vote is shown by %d edits", n)
		}
	})
}

// When a burst is settled at once, faster than its channel takes edits, the newest prompts are edited first: those at
// the end of a chat are the visible ones.
func TestTheNewestCardsAreToldFirstThatTheyAreSettled(t *testing.T) {
	const burst = 20
	c := newRecordingChannel()
	inVirtualTime(t, usual(), c, func(t *testing.T, st *env) {
		for i := range burst {
			st.ask(t.Context(), network(fmt.Sprintf("one of many, %d", i)))
			st.shown(c.Memory, i+1)
		}
		var fails []error
		for range burst {
			fails = append(fails, busy(time.Second), nil)
		}
		c.failing("fay", fails...)
		if _, err := st.StopAll(t.Context(), fayAt("crowd")); err != nil {
			t.Fatal(err)
		}
		told, partly := 0, 0
		for range 100 * burst {
			synctest.Wait()
			cards := c.Copies()
			for told < burst && cards[burst-told-1].Last.Request.State != permissions.Pending {
				told++
			}
			early := 0 // the one that was tried before the others were settled
			for _, card := range cards[:burst-told] {
				if card.Last.Request.State != permissions.Pending {
					early++
				}
			}
			if early > 1 {
				t.Fatalf("%d of %d cards were told before one that is newer", early, burst)
			}
			if told > 0 && told < burst {
				partly++
			}
			<-time.After(100 * time.Millisecond)
		}
		if told != burst || partly < burst {
			t.Errorf("%d of %d cards were told, %d times some of them", told, burst, partly)
		}
	})
}
