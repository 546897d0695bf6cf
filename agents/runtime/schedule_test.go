package runtime_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/runtime"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/permissions"
)

// nightly is a child agent of helper that runs at three, and requests its permissions at nine the evening before.
func nightly(asks bool) runtime.Agent {
	midnight := func(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }
	a := runtime.Agent{
		Name: "nightly", Person: "fay", Parent: "helper", Prompt: "Write the report.",
		Model: modelFunc(func(turn int, p models.Prompt) models.Reply {
			if turn == 0 {
				return calls("look", noteA)
			}
			return says("the report: " + newest(p))
		}),
		Schedule: &runtime.Schedule{
			Next: func(after time.Time) time.Time {
				next := midnight(after).Add(3 * time.Hour)
				if !next.After(after) {
					next = next.Add(24 * time.Hour)
				}
				return next
			},
			AskAt: func(run time.Time) time.Time { return run.Add(-6 * time.Hour) },
		},
		Tools: []tools.Tool{noteTool{name: "look", needs: func(string) []permissions.Tag {
			return []permissions.Tag{permissions.Network}
		}}},
	}
	if asks {
		a.Schedule.Needs = []permissions.Tag{permissions.Network}
	}
	return a
}

// noon waits until noon of the bubble, which begins at midnight.
func noon() { <-time.After(12 * time.Hour) }

// hearer repeats what it was told.
var hearer = modelFunc(func(_ int, p models.Prompt) models.Reply { return says("told: " + newest(p)) })

func TestASchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noon()
		s := newEnv(t, helper(hearer), nightly(true))
		<-time.After(9 * time.Hour)
		r := s.card(1)
		if at := time.Now().UTC().Format("15:04"); at != "21:00" || r.Agent != "nightly" || !r.Background || r.Foreground != "helper" ||
			!strings.Contains(r.Reason, "My run at 2000-01-02 03:00 UTC will need this: Write the report.") {
			t.Errorf("at %s it asks %+v", at, r)
		}
		<-time.After(2 * time.Hour)
		s.answer(r, once)
		<-time.After(4 * time.Hour)
		s.waitMessage("[agent nightly] I am done.\n│ │ the report: wrote a")
		if at := time.Now().UTC().Format("02 15:04"); at != "02 03:00" || len(s.phone.Copies()) != 1 {
			t.Errorf("it ran at %s, after %d cards", at, len(s.phone.Copies()))
		}
		<-time.After(18 * time.Hour)
		s.card(2) // the next evening it asks again: the permission was for one run
	})
}

// TestAScheduleThatNobodyAllows: silence is not consent. The run still starts, and asks when it needs the permission.
func TestAScheduleThatNobodyAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noon()
		s := newEnv(t, helper(hearer), nightly(true))
		<-time.After(9 * time.Hour)
		s.card(1)
		<-time.After(6*time.Hour + time.Minute)
		r := s.card(2)
		if at := time.Now().UTC().Format("02 15:04"); !strings.HasPrefix(at, "02 03:0") || r.Tool != "look" || len(r.Missing()) != 1 {
			t.Errorf("at %s it asks %+v", at, r)
		}
		s.answer(r, permissions.Deny)
		s.waitMessage("the report: Tool look denied by the user.")
	})
}

// TestAScheduleAcrossAStop: permissions survive a restart, and a missed run is made up for once.
func TestAScheduleAcrossAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noon()
		s := newEnv(t, helper(hearer), nightly(true))
		<-time.After(9 * time.Hour)
		s.answer(s.card(1), once)
		s.stop()
		<-time.After(30 * time.Hour)
		s.open()
		s.waitMessage("[agent nightly] I am done.\n│ │ the report: wrote a")
		if s.file("a") != "one\n" {
			t.Errorf("it ran as often as this: %q", s.file("a"))
		}
	})
}

func TestAScheduleWithoutNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := nightly(false)
		a.Tools = nil
		noon()
		s := newEnv(t, helper(hearer), a)
		for range 2 {
			<-time.After(24 * time.Hour)
			s.waitMessage("the report: wrote a")
		}
		synctest.Wait()
		if s.file("a") != "one\none\n" {
			t.Errorf("after two nights there is %q", s.file("a"))
		}
	})
}
