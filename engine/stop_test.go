package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// Everything pending is cancelled within two seconds, every grant suspended, new requests and unused approvals refused,
// across a restart, until resume.
func TestStopAllUntilResume(t *testing.T) {
	t.Run("F1/stop all", func(t *testing.T) {
		f := newPhone(fay, "fays-phone")
		settings := usual()
		settings.Limits.PendingPerCaller = 0
		st := newEnv(t, settings, f)
		granted := st.ask(t.Context(), tagged("s1", "@read:/srv"))
		f.must(t, st.shown(f.Memory, 1).Request.ID, allowFor(permissions.Session))
		st.get(granted)
		ctx, leave := context.WithCancel(t.Context())
		unused := tagged("s1", "@write:/srv")
		unused.Key = "unused"
		left := st.ask(ctx, unused)
		id := st.shown(f.Memory, 2).Request.ID
		leave()
		<-left
		f.must(t, id, allow())

		const many = 200
		calls := make([]<-chan answer, many)
		for i := range calls {
			calls[i] = st.ask(t.Context(), network(fmt.Sprint("number ", i)))
		}
		st.shown(f.Memory, 2+many)
		began := time.Now()
		atFay := connectors.Identity{Via: "cli", UID: fay.UID}
		n, err := st.StopAll(t.Context(), atFay)
		if err != nil || n != many {
			t.Fatalf("cancelled %d, %v", n, err)
		}
		for _, call := range calls {
			if r := st.get(call); r.State != permissions.Cancelled || r.DecidedBy != "fay" {
				t.Fatalf("%s by %s", r.State, r.DecidedBy)
			}
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %s", took)
		}

		check := func() {
			t.Helper()
			for _, q := range []permissions.Request{network("new"), tagged("s1", "@read:/srv"), unused, tool("read_file", `{}`)} {
				_, err := st.Ask(t.Context(), self, q)
				refused(t, err, permissions.CodeStopped)
				if err.Error() != "Stopped by fay; nothing is asked until resume." {
					t.Errorf("told %q", err)
				}
			}
			if st.StoppedBy() != "fay" {
				t.Errorf("stopped by %q", st.StoppedBy())
			}
		}
		check()
		f = newPhone(fay, "fays-phone")
		st.restart(f)
		check()

		err = st.Resume(t.Context(), connectors.Identity{Via: "cli", UID: sam.UID})
		refused(t, err, permissions.CodeNotYours)
		if err := st.Resume(t.Context(), boss); err != nil || st.StoppedBy() != "" {
			t.Fatalf("stopped by %q, %v", st.StoppedBy(), err)
		}
		if r := st.get(st.ask(t.Context(), tagged("s1", "@read:/srv"))); r.DecidedVia != permissions.ViaGrant {
			t.Errorf("the grant is %s via %s", r.State, r.DecidedVia)
		}
		if r := st.get(st.ask(t.Context(), unused)); r.State != permissions.Approved || r.UsedAt.IsZero() {
			t.Errorf("the approval is %s", r.State)
		}
	})
}

func TestUnknownAccountsCannotStopOrResume(t *testing.T) {
	st := newEnv(t, usual(), connectortest.NewMemory(fayAt("memory"), nil))
	unknown := connectors.Identity{Via: "cli", UID: 4242}
	_, err := st.StopAll(t.Context(), unknown)
	refused(t, err, permissions.CodeNotYours)
	refused(t, st.Resume(t.Context(), unknown), permissions.CodeNotYours)
}

// TestTheOperatorsStopHolds: neither an earlier nor a later stopper can end it.
func TestTheOperatorsStopHolds(t *testing.T) {
	person := connectors.Identity{Via: "cli", UID: sam.UID}
	for name, first := range map[string]connectors.Identity{"before": person, "after": operator} {
		t.Run("A8/a person stopped "+name, func(t *testing.T) {
			s := team()
			st := newEnv(t, s, newPhone(fay, "fays-phone"))
			for _, id := range []connectors.Identity{first, person, operator, person} {
				if _, err := st.StopAll(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
			if by := st.StoppedBy(); by != engine.OperatorName {
				t.Errorf("stopped by %q", by)
			}
			refused(t, st.Resume(t.Context(), person), permissions.CodeNotYours)
			st.restart(newPhone(fay, "fays-phone"))
			refused(t, st.Resume(t.Context(), person), permissions.CodeNotYours)
			if err := st.Resume(t.Context(), operator); err != nil || st.StoppedBy() != "" {
				t.Errorf("stopped by %q, %v", st.StoppedBy(), err)
			}
		})
	}
}

// TestAStopThatCouldNotBeSaved holds at once: nothing is asked, allowed or used. It is stored as soon as the store
// recovers, or at shutdown, and survives a restart.
func TestAStopThatCouldNotBeSaved(t *testing.T) {
	for name, saved := range map[string]func(st *env){
		"D10/the disk has room again": func(st *env) { st.pending(0) },
		"D10/the daemon ends":         func(*env) {},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPhone(fay, "fays-phone")
			st, disk := newFullDiskEnv(t, usual(), f)
			granted := st.approved(f.Memory, tagged("s1", "@read:/srv"), allowFor(permissions.Session), false)
			unused := st.approved(f.Memory, tool("write_file", `{"n":1}`), allow(), true)
			waits := st.submit(self, keyed(network("deploy"), "waits"))
			disk.full.Store(true)
			_, err := st.StopAll(t.Context(), fayAt("cli"))
			refused(t, err, permissions.CodeBroken)
			for _, words := range []string{"Everything is stopped now: ", "not saved yet: ", "the disk is full", "A restart before it is saved"} {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("it says %v, not %q", err, words)
				}
			}
			held := func() {
				t.Helper()
				if by := st.StoppedBy(); by != "fay" {
					t.Errorf("stopped by %q", by)
				}
				r, err := st.OnPermission(t.Context(), connectors.Decision{From: fayAt("cli"), Request: waits.ID, Answer: allow()})
				refused(t, err, permissions.CodeStopped)
				if r.ID != waits.ID {
					t.Errorf("beside the refusal is %+v", r)
				}
				for _, q := range []permissions.Request{network("new"), tagged("s1", "@read:/srv"), tool("write_file", `{"n":1}`)} {
					_, err := st.Ask(t.Context(), self, q)
					refused(t, err, permissions.CodeStopped)
				}
			}
			held()
			refused(t, st.Resume(t.Context(), operator), permissions.CodeBroken)
			refused(t, st.Resume(t.Context(), samAt), permissions.CodeNotYours)
			held()
			for id, was := range map[permissions.ID]permissions.Request{granted.ID: granted, unused.ID: unused} {
				if r, err := st.rows.Read(t.Context(), id); err != nil || !r.UsedAt.Equal(was.UsedAt) {
					t.Errorf("%s was used at %s, %v", id, r.UsedAt, err)
				}
			}
			disk.full.Store(false)
			saved(st)
			st.restart(newPhone(fay, "fays-phone"))
			if by := st.StoppedBy(); by != "fay" {
				t.Errorf("after a restart, stopped by %q", by)
			}
			if r, err := st.rows.Read(t.Context(), waits.ID); err != nil || r.State != permissions.Cancelled {
				t.Errorf("what waited is %s, %v", r.State, err)
			}
			if err := st.Resume(t.Context(), operator); err != nil || st.StoppedBy() != "" {
				t.Errorf("resumed: %v, stopped by %q", err, st.StoppedBy())
			}
			if r := st.get(st.ask(t.Context(), tagged("s1", "@read:/srv"))); r.DecidedVia != permissions.ViaGrant {
				t.Errorf("the grant is %s via %s", r.State, r.DecidedVia)
			}
		})
	}
}

// TestAStopThatLeavesSomething is stored nevertheless, says what is left, and ends with resume.
func TestAStopThatLeavesSomething(t *testing.T) {
	st, disk := newFullDiskEnv(t, usual(), newPhone(fay, "fays-phone"))
	disk.left.Store(true)
	_, err := st.StopAll(t.Context(), fayAt("cli"))
	refused(t, err, permissions.CodeBroken)
	if by, _, unread := st.rows.StoppedBy(t.Context()); by != "fay" || unread != nil || strings.Contains(err.Error(), "not saved") ||
		!strings.Contains(err.Error(), "Everything is stopped: ") {
		t.Errorf("stopped by %q, %v; it says %v", by, unread, err)
	}
	if err := st.Resume(t.Context(), fayAt("cli")); err != nil {
		t.Fatal(err)
	}
	ask, leave := context.WithTimeout(t.Context(), 0)
	defer leave()
	if r, err := st.Ask(ask, self, network("goes on")); r.State != permissions.Pending {
		t.Errorf("%s, %v", r.State, err)
	}
}

// TestAResumeOfAStopThatCouldNotBeSaved stores the stop first, and then ends it.
func TestAResumeOfAStopThatCouldNotBeSaved(t *testing.T) {
	t.Run("D10/the operator stops after a person, and nothing is stored", func(t *testing.T) {
		st, disk := newFullDiskEnv(t, usual(), newPhone(fay, "fays-phone"))
		disk.full.Store(true)
		for _, id := range []connectors.Identity{fayAt("cli"), operator, fayAt("cli")} {
			_, err := st.StopAll(t.Context(), id)
			refused(t, err, permissions.CodeBroken)
		}
		disk.full.Store(false)
		refused(t, st.Resume(t.Context(), fayAt("cli")), permissions.CodeNotYours)
		if err := st.Resume(t.Context(), operator); err != nil {
			t.Fatal(err)
		}
		ask, leave := context.WithTimeout(t.Context(), 0)
		defer leave()
		if r, err := st.Ask(ask, self, network("goes on")); r.State != permissions.Pending {
			t.Errorf("%s, %v", r.State, err)
		}
		entries, err := st.rows.Audit(t.Context(), "", 0, 100)
		stopped := slices.IndexFunc(entries, func(e permissions.Entry) bool {
			return e.Type == permissions.AllStopped && e.Actor == engine.OperatorName
		})
		if err != nil || stopped < 0 {
			t.Errorf("the audit says nothing of the stop: %v", err)
		}
	})
}

// Everybody but the stopper is notified.
func TestAStopIsToldToThoseWhoWereAsked(t *testing.T) {
	f, s, k := phones()
	st := newEnv(t, team(), f, s, k)
	st.ask(t.Context(), network("deploy"))
	st.shown(s.Memory, 1)
	if _, err := st.StopAll(t.Context(), connectors.Identity{Via: "cli", UID: fay.UID}); err != nil {
		t.Fatal(err)
	}
	if n := s.notice(t); said(n) != "⛔ Everything was stopped by fay; nothing is asked until resume." {
		t.Errorf("sam is told %q", said(n))
	}
}
