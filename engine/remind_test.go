package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/daycared/daycared/engine"
)

// A reminder blocks the next for a minute: what it named is not named again, and news waits until then. An unsent
// reminder blocks nothing.
func TestAReminderBlocksTheNextForAMinute(t *testing.T) {
	named := func(c *recordingChannel) (all []int) {
		c.phone.mu.Lock()
		defer c.phone.mu.Unlock()
		for _, n := range c.told {
			all = append(all, len(n.Waiting))
		}
		return all
	}
	for name, do := range map[string]func(t *testing.T, c *recordingChannel, st *env) []int{
		"a burst": func(t *testing.T, _ *recordingChannel, st *env) []int {
			for i := range 20 {
				st.ask(t.Context(), network(fmt.Sprintf("one of many, %d", i)))
				<-time.After(time.Second)
			}
			<-time.After(14 * time.Minute)
			return []int{20, 20} // at half the time, and at four fifths of it
		},
		"what is new": func(t *testing.T, c *recordingChannel, st *env) []int {
			st.ask(t.Context(), network("old"))
			<-time.After(7*time.Minute + 25*time.Second)
			brief := network("new")
			brief.WantedTimeout = 2 * time.Minute // with a reminder after one
			st.ask(t.Context(), brief)
			<-time.After(15 * time.Second)
			briefer := network("newer")
			briefer.WantedTimeout = time.Minute
			st.ask(t.Context(), briefer) // with a reminder after half a minute
			<-time.After(30 * time.Second)
			if n := len(named(c)); n != 1 {
				t.Errorf("%d reminders within a minute", n)
			}
			<-time.After(45 * time.Second)
			return []int{2, 3}
		},
		"one that failed": func(t *testing.T, c *recordingChannel, st *env) []int {
			st.ask(t.Context(), network("x"))
			<-time.After(7 * time.Minute)
			c.failing("fay", errors.New("no network"))
			<-time.After(3 * time.Minute)
			return []int{1}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, s := newRecordingChannel(), usual()
			s.Approvals.Remind = []engine.Moment{{Percent: 50}, {Percent: 80}}
			inVirtualTime(t, s, c, func(t *testing.T, st *env) {
				want := do(t, c, st)
				if got := named(c); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("reminders of %v requests; want %v", got, want)
				}
			})
		})
	}
}

// A group is reminded as a person is: of all that waits there, and not again of the same within a minute.
func TestAGroupIsRemindedOnceAMinute(t *testing.T) {
	h, s := newGroupChannel(), teamIn("group:ops")
	s.Approvals.Remind = []engine.Moment{{Percent: 50}}
	inVirtualTime(t, s, h, func(t *testing.T, st *env) {
		for i := range 6 {
			st.ask(t.Context(), network(fmt.Sprintf("one of many, %d", i)))
			<-time.After(time.Second)
		}
		<-time.After(9 * time.Minute)
		told := h.Told()
		if len(told) != 2 || told[0].Group != "group:ops" || len(told[0].Waiting) != 6 || len(told[1].Waiting) != 6 {
			t.Errorf("%d reminders: %v", len(told), told) // the second since kim is asked as well
		}
	})
}
