package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

// begun commits an agent's session that waits at a card.
func begun(t *testing.T, s *Store) permissions.AgentSession {
	t.Helper()
	at := time.Now()
	x := permissions.AgentSession{
		ID: permissions.NewID(at), Agent: "helper", Person: "fay", Status: permissions.AwaitingUser, Version: 1, CreatedAt: at, ChangedAt: at,
		Step: []byte(`{"n":1,"given":["@network"],"state":"WAIT_ACK","words":"<a>","tags":["@write:/srv"]}`),
	}
	if err := s.Commit(t.Context(), agents.Commit{Session: x, Records: []permissions.Record{agents.StatusOf(x)}}); err != nil {
		t.Fatal(err)
	}
	return x
}

// distrusted expects that a session has no step for anybody.
func distrusted(t *testing.T, s *Store, x permissions.AgentSession) {
	t.Helper()
	got, err := s.AgentSession(t.Context(), x.ID)
	if !errors.Is(err, permissions.ErrRow) || !strings.Contains(err.Error(), "session "+string(x.ID)) || got.ID != x.ID || got.Step != nil {
		t.Errorf("it is read: %+v, %v", got, err)
	}
	for _, agent := range []string{x.Agent, "other"} {
		if now, _, err := s.CurrentSession(t.Context(), agent); err != nil || now.Step != nil {
			t.Errorf("the current one of %s has the step %s, %v", agent, now.Step, err)
		}
	}
}

// TestASessionThatWasChangedHasNoStep: whatever of an agent's session somebody changes, nobody goes on with it, and verify names it.
func TestASessionThatWasChangedHasNoStep(t *testing.T) {
	for _, change := range []string{
		`step = '{}'`, `agent = 'other'`, `person = 'sam'`, `parent = id`, `request = 'R'`, `version = version + 1`, `created_at = 1`,
		`status = 'idle'`, `audited = audited + 100`, `mac = ''`, `mac = (SELECT mac FROM tokens)`,
	} {
		t.Run("H1/"+change, func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			x := begun(t, o.Store)
			if err := o.SetDebug(t.Context(), x.ID, true); err != nil {
				t.Fatal(err)
			}
			if got, err := o.AgentSession(t.Context(), x.ID); err != nil || len(got.Step) == 0 {
				t.Fatalf("before: %+v, %v", got, err)
			}
			meddle(t, o.Store, "UPDATE sessions SET "+change)
			distrusted(t, o.Store, x)
			if _, err := o.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "session "+string(x.ID)) {
				t.Errorf("verify says %v", err)
			}
		})
	}
}

// TestASessionThatWasPutBackHasNoStep: its seal is valid; the audit, and in the same process its version, are later.
func TestASessionThatWasPutBackHasNoStep(t *testing.T) {
	for name, records := range map[string]func(permissions.AgentSession) []permissions.Record{
		"H1/with an entry":    func(x permissions.AgentSession) []permissions.Record { return []permissions.Record{agents.StatusOf(x)} },
		"H1/without an entry": func(permissions.AgentSession) []permissions.Record { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			x := begun(t, o.Store)
			meddle(t, o.Store, "CREATE TABLE kept.earlier AS SELECT * FROM sessions")
			next := x
			next.Version++
			if err := o.Commit(t.Context(), agents.Commit{Session: next, Records: records(next)}); err != nil {
				t.Fatal(err)
			}
			if _, err := o.Verify(t.Context()); err != nil {
				t.Fatal(err)
			}
			meddle(t, o.Store, "DELETE FROM sessions; INSERT INTO sessions SELECT * FROM kept.earlier")
			distrusted(t, o.Store, x)
			if records(next) == nil {
				return
			}
			if _, err := o.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "session "+string(x.ID)) {
				t.Errorf("verify says %v", err)
			}
			if err := o.Close(); err != nil {
				t.Fatal(err)
			}
			distrusted(t, reopen(t, o.path), x)
		})
	}
}

// TestATimetableThatWasChangedCountsAsNone, and verify names it.
func TestATimetableThatWasChangedCountsAsNone(t *testing.T) {
	for _, change := range []string{`asked = 'R'`, `next_at = 1`, `mac = ''`, `agent = 'other'`} {
		t.Run("H1/"+change, func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			if err := o.SetTimetable(t.Context(), agents.Timetable{Agent: "nightly", Next: time.Now(), Asked: "-"}); err != nil {
				t.Fatal(err)
			}
			if _, found, err := o.Timetable(t.Context(), "nightly"); !found || err != nil {
				t.Fatalf("before: %t, %v", found, err)
			}
			meddle(t, o.Store, "UPDATE timetables SET "+change)
			for _, agent := range []string{"nightly", "other"} {
				if tt, found, err := o.Timetable(t.Context(), agent); found || tt.Asked != "" || err != nil {
					t.Errorf("%s: %+v, %t, %v", agent, tt, found, err)
				}
			}
			if _, err := o.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "timetable of ") {
				t.Errorf("verify says %v", err)
			}
		})
	}
}

// TestAnAbsenceThatWasChangedCountsAsNone: its person is asked, and verify names it.
func TestAnAbsenceThatWasChangedCountsAsNone(t *testing.T) {
	for _, change := range []string{`until_at = until_at + 1`, `to_name = 'eve'`, `person = 'kim'`, `at = 1`, `via = ''`, `mac = ''`} {
		t.Run(change, func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			now := moment(micros(time.Now()))
			a := permissions.Absence{Person: "fay", Until: now.Add(time.Hour), To: "sam", At: now, Via: "telegram"}
			if err := o.PutAbsence(t.Context(), a, a.Record(permissions.PersonAway, "telegram", now)); err != nil {
				t.Fatal(err)
			}
			if all, err := o.Absences(t.Context()); len(all) != 1 || err != nil {
				t.Fatalf("before: %+v, %v", all, err)
			}
			if _, err := o.Verify(t.Context()); err != nil {
				t.Fatal(err)
			}
			meddle(t, o.Store, "UPDATE away SET "+change)
			if all, err := o.Absences(t.Context()); len(all) != 0 || err != nil {
				t.Errorf("read: %+v, %v", all, err)
			}
			if _, err := o.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "absence of ") {
				t.Errorf("verify says %v", err)
			}
		})
	}
}

// TestAProposalThatWasChangedCountsAsNone: nobody can confirm it, and verify names it.
func TestAProposalThatWasChangedCountsAsNone(t *testing.T) {
	for _, change := range []string{
		`person = 'kim'`, `proposed_by = 'kim'`, `proposed_from = 'uid:7'`, `proposed_at = proposed_at + 1`, `account = '7'`, `alias = '7'`,
		`name = 'Sam'`, `mac = x''`,
	} {
		t.Run(change, func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			now := moment(micros(time.Now()))
			s := permissions.UnknownSender{Via: "telegram", Account: "6666", Name: "Eve", At: now}
			if err := o.AddUnknownSender(t.Context(), s, "fay"); err != nil {
				t.Fatal(err)
			}
			s.Proposed = permissions.ProposedPairing{Person: "sam", By: "fay", From: "telegram:2001", At: now}
			if err := o.PutProposal(t.Context(), s, s.Record(permissions.PairingProposed, "fay", "telegram", now), nil); err != nil {
				t.Fatal(err)
			}
			if all, err := o.Senders(t.Context()); err != nil || len(all) != 1 || all[0] != s {
				t.Fatalf("before: %+v, %v", all, err)
			}
			if _, err := o.Verify(t.Context()); err != nil {
				t.Fatal(err)
			}
			meddle(t, o.Store, "UPDATE strangers SET "+change)
			if all, err := o.Senders(t.Context()); err != nil || len(all) != 1 || all[0].Proposed.Person != "" {
				t.Errorf("read: %+v, %v", all, err)
			}
			if _, err := o.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "proposal to pair ") {
				t.Errorf("verify says %v", err)
			}
		})
	}
}

// sentCopy shows a request to fay as a message.
func sentCopy(t *testing.T, s *Store, r permissions.Request, ref string) permissions.Copy {
	t.Helper()
	at := moment(micros(time.Now()))
	c := permissions.Copy{Request: r.ID, Person: "fay", Connector: "telegram", Button: ref + "x", DueAt: at}
	if err := s.AddCopies(t.Context(), []permissions.Copy{c}); err != nil {
		t.Fatal(err)
	}
	c.Ref, c.Shown, c.SentAt, c.ChannelTime = ref, r.Revision, at, at
	if err := s.MarkShown(t.Context(), c, ""); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestACopyThatWasChangedIsNoMessage: an answer that quotes a message is for the request that was shown in it, and for no other.
func TestACopyThatWasChangedIsNoMessage(t *testing.T) {
	for _, change := range []string{
		`ref = CASE ref WHEN 'm1' THEN 'm2' ELSE 'm1' END`, `connector = 'whatsapp'`, `person = 'sam'`, `place = '-1'`, `sent_at = 1`,
		`dated = 1`, `since = 1`, `mac = ''`,
	} {
		t.Run("A5/"+change, func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			other := insert(t, o.Store)
			for ref, r := range map[string]permissions.Request{"m1": o.waiting, "m2": other} {
				c := sentCopy(t, o.Store, r, ref)
				if got, err := o.Copies(t.Context(), r.ID); err != nil || !slices.Contains(got, c) {
					t.Fatalf("before: %+v, %v", got, err)
				}
			}
			meddle(t, o.Store, "UPDATE request_copies SET "+change+" WHERE ref <> ''")
			for _, r := range []permissions.Request{o.waiting, other} {
				all, err := o.Copies(t.Context(), r.ID)
				if err != nil || slices.ContainsFunc(all, func(c permissions.Copy) bool { return c.Ref != "" || !c.SentAt.IsZero() }) {
					t.Errorf("it is shown as %+v, %v", all, err)
				}
			}
			if live, err := o.LiveCopies(t.Context(), "telegram", 9); err != nil ||
				slices.ContainsFunc(live, func(c permissions.Copy) bool { return c.Ref != "" }) {
				t.Errorf("%+v are shown, %v", live, err)
			}
			if _, err := o.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "copy of request ") {
				t.Errorf("verify says %v", err)
			}
		})
	}
}

// TestAListThatWasChangedShowsNothing: a request of a list gets no message of its own, and no other list, by a change of its row; what has
// a message of its own joins no list.
func TestAListThatWasChangedShowsNothing(t *testing.T) {
	for change, of := range map[string]string{"": "m1", "x": "m1", "m9": "m1", "m1": "m3"} {
		for was, opened := range map[string]string{"a list": "", "an opened one": "m2"} {
			t.Run("A5/"+was+" becomes "+change, func(t *testing.T) {
				o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
				c := sentCopy(t, o.Store, o.waiting, of)
				if of == "m1" {
					c.Burst, c.Ref = of, cmp.Or(opened, of)
					if err := o.MarkShown(t.Context(), c, of); err != nil {
						t.Fatal(err)
					}
				}
				meddle(t, o.Store, "UPDATE request_copies SET burst = $1 WHERE ref <> ''", change)
				all, err := o.Copies(t.Context(), o.waiting.ID)
				shows := func(c permissions.Copy) bool {
					return c.Burst != "" || of == "m1" && (c.Ref != "" || !c.SentAt.IsZero())
				}
				if err != nil || slices.ContainsFunc(all, shows) {
					t.Errorf("it is shown as %+v, %v", all, err)
				}
				if listed, err := o.Burst(t.Context(), "telegram", "fay", change); err != nil || len(listed) != 0 {
					t.Errorf("listed are %+v, %v", listed, err)
				}
				if _, err := o.Verify(t.Context()); of == "m1" && (err == nil || !strings.Contains(err.Error(), "copy of request ")) {
					t.Errorf("verify says %v", err)
				}
			})
		}
	}
}

// TestAStartSealsListsFromBeforeOnce: a copy whose seal does not cover its list yet stays on it, and the first start seals it with it and
// says so. Later a seal of before holds no more, also not if what the store says of itself is put back, too.
func TestAStartSealsListsFromBeforeOnce(t *testing.T) {
	o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
	c := sentCopy(t, o.Store, o.waiting, "m1")
	c.Burst = c.Ref
	err := o.write(t.Context(), func(ctx context.Context, t *tx) error {
		t.exec(ctx, writeSeals, 1)
		former := copyGate
		former.sealed = sealedWithoutList
		t.exec(ctx, upsertCopy, former.args(o.seals, c)...)
		return sealIdentity(ctx, t, o.seals)
	})
	meddle(t, o.Store, "CREATE TABLE kept.copies AS SELECT * FROM request_copies; "+
		"CREATE TABLE kept.own AS SELECT seals, mac, shut FROM meta; UPDATE kept.copies SET burst = ''")
	if err := errors.Join(err, o.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := VerifyFile(t.Context(), options(o.path)); err != nil {
		t.Errorf("before: %v", err)
	}
	s := reopen(t, o.path)
	if listed, err := s.Burst(t.Context(), "telegram", "fay", "m1"); err != nil || len(listed) != 1 || listed[0] != c {
		t.Errorf("listed are %+v, %v", listed, err)
	}
	all, err := s.Audit(t.Context(), "", 0, 1000)
	if last := all[len(all)-1]; err != nil || last.Type != permissions.AuditKeyed || last.Detail[sealsDetail] != "2" {
		t.Errorf("the last entry is %+v, %v", last, err)
	}
	if _, err := s.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	for _, own := range []string{"", "; UPDATE meta SET (seals, mac, shut) = (SELECT seals, mac, shut FROM kept.own)"} {
		meddle(t, s, "DELETE FROM request_copies; INSERT INTO request_copies SELECT * FROM kept.copies"+own)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = reopen(t, o.path)
		all, err := s.Copies(t.Context(), o.waiting.ID)
		if err != nil || slices.ContainsFunc(all, func(c permissions.Copy) bool { return c.Ref != "" }) {
			t.Errorf("%s: it is shown as %+v, %v", own, all, err)
		}
		if _, err := s.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "copy of request ") {
			t.Errorf("%s: verify says %v", own, err)
		}
	}
}

// TestTheCopiesOfEveryRequestAreSealedAnew: they are read in pages of a thousand requests, so that a large store needs no large memory.
func TestTheCopiesOfEveryRequestAreSealedAnew(t *testing.T) {
	s := newStore(t)
	var all []permissions.ID
	for range 1001 {
		all = append(all, insert(t, s).ID)
	}
	err := s.write(t.Context(), func(ctx context.Context, t *tx) error {
		former, at := copyGate, moment(micros(time.Now()))
		former.sealed = sealedWithoutList
		for _, id := range all {
			for _, person := range []string{"fay", "sam"} {
				c := permissions.Copy{Request: id, Person: person, Connector: "telegram", Ref: person + string(id), Shown: 1, SentAt: at}
				t.exec(ctx, upsertCopy, former.args(s.seals, c)...)
			}
		}
		t.exec(ctx, writeSeals, 1)
		return sealIdentity(ctx, t, s.seals)
	})
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, s.path)
	copies, err := s.Copies(t.Context(), all...)
	if err != nil || len(copies) != 2*len(all) {
		t.Fatalf("%d copies, %v", len(copies), err)
	}
	for _, c := range copies {
		if c.Ref != c.Person+string(c.Request) {
			t.Errorf("a copy is %+v", c)
		}
	}
}

// TestCopiesAreSealedAnewByOneDaemonAlone: one of before would not know their seals.
func TestCopiesAreSealedAnewByOneDaemonAlone(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	former := openOn(t.Context(), t, path, url)
	err := former.write(t.Context(), func(ctx context.Context, t *tx) error {
		t.exec(ctx, writeSeals, 1)
		return sealIdentity(ctx, t, former.seals)
	})
	if err != nil {
		t.Fatal(err)
	}
	with := options(path)
	with.Server = url
	if s, err := Open(t.Context(), with); err == nil || !strings.Contains(err.Error(), "1 other daemons use") {
		t.Errorf("opened beside it: %v, %v", s, err)
	}
	if err := former.Close(); err != nil {
		t.Fatal(err)
	}
	if s := openOn(t.Context(), t, path, url); s.countUnsealed() > 0 {
		t.Error("rows count as changed")
	}
}

// TestANewLifeTakesBackWhatASessionHasForOnce: B6/its run keeps neither what was allowed it once nor what it was given.
func TestANewLifeTakesBackWhatASessionHasForOnce(t *testing.T) {
	const want = `{"n":1,"state":"WAIT_ACK","words":"<a>"}`
	for name, renew := range map[string]func(t *testing.T, o *populatedStore) Options{
		"B6/a restore": func(t *testing.T, o *populatedStore) Options {
			o.restoredFrom(t)
			return options(o.path)
		},
		"B6/a new key": func(t *testing.T, o *populatedStore) Options {
			if err := o.Close(); err != nil {
				t.Fatal(err)
			}
			with := options(o.path)
			with.NewKey = true
			return with
		},
		"B6/a store without its mark": func(t *testing.T, o *populatedStore) Options {
			if err := errors.Join(o.Close(), os.Remove(markName(o.path))); err != nil {
				t.Fatal(err)
			}
			return options(o.path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			x := begun(t, o.Store)
			s, err := Open(t.Context(), renew(t, o))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			if got, err := s.AgentSession(t.Context(), x.ID); err != nil || string(got.Step) != want {
				t.Errorf("the step is %s, %v", got.Step, err)
			}
			if _, err := s.Verify(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("B6/a new key without the old one", func(t *testing.T) {
		o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
		x := begun(t, o.Store)
		with := options(o.path)
		if err := errors.Join(o.Close(), os.Remove(with.keyFile())); err != nil {
			t.Fatal(err)
		}
		with.NewKey = true
		s, err := Open(t.Context(), with)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		distrusted(t, s, x)
	})
}

// before19 reverts a store to the schema and seals of before migration 19, and keeps what it says of itself then.
func before19(t *testing.T, o *populatedStore) {
	t.Helper()
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	for _, do := range []func(context.Context, *sql.DB) error{statements(oldColumns...), oldSeals(o.seals)} {
		if err := change(t.Context(), o.path, do); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAnUpgradeSealsMoreOnce: rows from before wider seals are sealed as they are, but not those whose seal did not hold.
func TestAnUpgradeSealsMoreOnce(t *testing.T) {
	t.Run("H1/as it was", func(t *testing.T) {
		o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
		x := begun(t, o.Store)
		c := sentCopy(t, o.Store, o.waiting, "m1")
		before19(t, o)
		if _, err := VerifyFile(t.Context(), options(o.path)); err != nil {
			t.Errorf("before: %v", err)
		}
		s := reopen(t, o.path)
		if got, err := s.AgentSession(t.Context(), x.ID); err != nil || string(got.Step) != string(x.Step) {
			t.Errorf("the step is %s, %v", got.Step, err)
		}
		if due, _, err := s.Due(t.Context(), time.Now().Add(2*time.Hour), 3*time.Hour, 9); err != nil ||
			!slices.ContainsFunc(due, func(d permissions.Due) bool { return d.ID == o.waiting.ID }) || s.countUnsealed() > 0 {
			t.Errorf("due are %+v, %v, and %d rows count as changed", due, err, s.countUnsealed())
		}
		if got, err := s.Copies(t.Context(), o.waiting.ID); err != nil || !slices.Contains(got, c) {
			t.Errorf("the copies are %+v, %v", got, err)
		}
		if _, err := s.Apply(t.Context(), o.waiting.ID, fayAllows()); err != nil {
			t.Error(err)
		}
		if _, err := s.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		all, err := s.Audit(t.Context(), "", 0, 1000)
		keyed := slices.IndexFunc(all, func(e permissions.Entry) bool { return e.Detail[sealsDetail] == "2" })
		if err != nil || keyed < 0 || all[keyed].Type != permissions.AuditKeyed || all[keyed].Detail["requests"] != "5" ||
			all[keyed].Detail["sessions"] != "1" || len(restorations(t, s)) != 0 {
			t.Errorf("%d of %+v, %v", keyed, all, err)
		}
	})
	t.Run("A3/a request that was changed before", func(t *testing.T) {
		o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
		before19(t, o)
		if err := change(t.Context(), o.path, statements(`UPDATE requests SET quorum = 0 WHERE state = 'pending'`)); err != nil {
			t.Fatal(err)
		}
		s := reopen(t, o.path)
		_, err := s.Apply(t.Context(), o.waiting.ID, fayAllows())
		unwell(t, "decide", err, string(o.waiting.ID), "does not carry the seal")
	})
	t.Run("H1/what the store says of itself is put back", func(t *testing.T) {
		o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
		before19(t, o)
		if err := change(t.Context(), o.path, statements("ATTACH '"+o.path+".kept' AS kept", "CREATE TABLE kept.earlier AS SELECT chain, "+
			"code_key, stopped_by, stopped_at, restored_at, numbers_above, mac, shut FROM meta")); err != nil {
			t.Fatal(err)
		}
		s := reopen(t, o.path)
		x := begun(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := change(t.Context(), o.path, statements("ATTACH '"+o.path+".kept' AS kept", "UPDATE meta SET seals = 0, "+
			"(mac, shut) = (SELECT mac, shut FROM kept.earlier)", "UPDATE sessions SET step = '{}', mac = ''")); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			s := reopen(t, o.path)
			distrusted(t, s, x)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
