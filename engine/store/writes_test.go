package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

// everyWrite returns every writing method, on a store in which each has something to write.
func everyWrite(t *testing.T, s *Store) map[string]func() error {
	t.Helper()
	ctx, now := context.Background(), time.Now()
	quarter := permissions.For(15 * time.Minute)
	o := newAsk()
	o.Request.Options = permissions.Offer(o.Request, []permissions.Scope{quarter}, quarter)
	lasting, _, err := s.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	said := fayAllows()
	said.Vote.Answer = permissions.Allow(quarter)
	c, err := s.Apply(ctx, lasting.ID, said)
	if err != nil {
		t.Fatal(err)
	}
	g := c.Grants[0].ID
	token := permissions.Token{ID: permissions.NewID(now), Name: "deploy", Hash: permissions.Digest{1}, CreatedAt: now}
	if err := s.AddToken(ctx, token, "operator", "cli"); err != nil {
		t.Fatal(err)
	}
	begun := permissions.AgentSession{ID: permissions.NewID(now), Agent: "helper", Version: 1}
	if err := s.Commit(ctx, agents.Commit{Session: begun}); err != nil {
		t.Fatal(err)
	}
	waits := insert(t, s)
	screen := permissions.Copy{Request: waits.ID, Person: "fay", Connector: "terminal"}
	other := permissions.Token{ID: permissions.NewID(now), Name: "other", Hash: permissions.Digest{2}, CreatedAt: now}
	return map[string]func() error{
		"open": func() error { _, _, err := s.Open(ctx, newAsk()); return err },
		"apply": func() error {
			_, err := s.Apply(ctx, waits.ID, permissions.Leave{At: now})
			return err
		},
		"end grants": func() error { _, _, err := s.EndGrants(ctx, now.Add(time.Hour), 9); return err },
		"end grants now": func() error {
			return second(s.EndGrantsNow(ctx, []permissions.ID{g}, now))
		},
		"stop":   func() error { return second(s.Stop(ctx, "fay", "cli", now)) },
		"revoke": func() error { return second(s.Revoke(ctx, g, "fay", "cli", now, 9)) },
		"noted":  func() error { return s.DeleteNotice(ctx, "of no notice") },
		"met": func() error {
			return s.AddUnknownSender(ctx, permissions.UnknownSender{Via: "telegram", Account: "6666", At: now}, "fay")
		},
		"told of": func() error {
			return s.MarkUnknownSendersTold(ctx, permissions.Notice{To: "fay", CreatedAt: now}, permissions.UnknownSenders{UpTo: 1}, now)
		},
		"pair": func() error {
			return second(s.Pair(ctx, permissions.Pairing{Person: "fay", Via: "whatsapp", Address: "+49", PairedAt: now}, "operator", "cli"))
		},
		"suspend":      func() error { return s.Suspend(ctx, "telegram", "4242", "fay", now) },
		"add token":    func() error { return s.AddToken(ctx, other, "operator", "cli") },
		"prove":        func() error { return second(s.VerifyToken(ctx, token.Hash, now)) },
		"revoke token": func() error { return second(s.RevokeToken(ctx, "deploy", "operator", "cli", now)) },
		"add copies":   func() error { return s.AddCopies(ctx, []permissions.Copy{screen}) },
		"shown":        func() error { return s.MarkShown(ctx, screen, "") },
		"named":        func() error { return s.MarkNamed(ctx, screen) },
		"failed":       func() error { return s.MarkFailed(ctx, screen) },
		"send again":   func() error { return s.SendAgain(ctx, screen) },
		"forget":       func() error { return s.ForgetCopies(ctx, "terminal") },
		"record":       func() error { return s.Record(ctx, permissions.Record{Type: "X", At: now}) },
		"hear":         func() error { return s.AddMessage(ctx, permissions.Message{Key: "k", Agent: "helper", From: "fay"}, 9) },
		"heard":        func() error { return s.MarkDelivered(ctx, 1, now) },
		"say":          func() error { return s.AddAgentMessage(ctx, permissions.AgentMessage{Text: "x"}, 9) },
		"said": func() error {
			return s.MarkAgentMessageSent(ctx, permissions.AgentMessage{Number: 1}, "1:1", true, now)
		},
		"choose": func() error { return s.SetForeground(ctx, permissions.Binding{Agent: "helper"}) },
		"commit": func() error {
			return s.Commit(ctx, agents.Commit{Session: permissions.AgentSession{ID: permissions.NewID(now), Version: 1}})
		},
		"post":          func() error { return s.Post(ctx, agents.Post{Session: begun.ID, Key: "k"}) },
		"cursor":        func() error { return second(s.Cursor(ctx, "new")) },
		"set cursor":    func() error { return s.SetCursor(ctx, "new", 1) },
		"end session":   func() error { return second(s.EndSessionGrants(ctx, "", "s-1", now)) },
		"set timetable": func() error { return s.SetTimetable(ctx, agents.Timetable{Agent: "nightly"}) },
		"prune": func() error {
			return second(s.Prune(ctx, permissions.Keep{Payloads: 1, Requests: 1, Audit: 1}, now.Add(time.Hour), 9))
		},
		"health": func() error { return s.Health(ctx) },
	}
}

// TestReadOnly: every write notices a disk that became read-only, and nothing is granted.
func TestReadOnly(t *testing.T) {
	s := newStore(t)
	writes := everyWrite(t, s)
	before, err := s.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec(t, s.writer, "PRAGMA query_only = on")
	for name, write := range writes {
		t.Run("D10/"+name, func(t *testing.T) {
			unwell(t, name, write(), "cannot be written", "writable for the daemon's account")
		})
	}
	if by, _, err := s.StoppedBy(t.Context()); err != nil || by != "" {
		t.Errorf("stopped by %q, %v", by, err)
	}
	if after, err := s.Verify(t.Context()); err != nil || after[0].Hash != before[0].Hash {
		t.Errorf("the audit went on: %v, %v", after, err)
	}
	exec(t, s.writer, "PRAGMA query_only = off")
	insert(t, s)
}

// TestWhatCannotBeAuditedDoesNotHappen: a change with an audit entry fails if the entry cannot be written.
func TestWhatCannotBeAuditedDoesNotHappen(t *testing.T) {
	for _, name := range []string{
		"open", "end grants", "end grants now", "stop", "revoke", "pair", "suspend", "add token", "revoke token", "record", "prune",
	} {
		t.Run("H2/"+name, func(t *testing.T) {
			s := newStore(t)
			write, known := everyWrite(t, s)[name]
			if !known {
				t.Fatal("there is no such write")
			}
			exec(t, s.writer, "CREATE TRIGGER silent BEFORE INSERT ON entries BEGIN SELECT RAISE(ABORT, 'no'); END")
			unwell(t, name, write(), "does not work")
			exec(t, s.writer, "DROP TRIGGER silent")
			if err := write(); err != nil {
				t.Errorf("once it can be audited: %v", err)
			}
		})
	}
}

// TestLost: a moved file would be written without an error, and the next start would lose the writes.
func TestLost(t *testing.T) {
	for _, c := range []struct {
		name  string
		loses func(s *Store, aside string) error
		words []string
	}{
		{"deleted", func(s *Store, _ string) error {
			return os.Remove(s.path)
		}, []string{"no longer there", "put the file or a backup back"}},
		{"moved", func(s *Store, aside string) error {
			return os.Rename(s.path, aside)
		}, []string{"no longer there", "start it again"}},
		{"replaced", func(s *Store, aside string) error {
			return errors.Join(os.Rename(s.path, aside), os.WriteFile(s.path, nil, 0o600))
		}, []string{"replaced by another file", "the right file is in its place"}},
		{"its log deleted", func(s *Store, _ string) error {
			return os.Remove(s.path + logSuffix)
		}, []string{logSuffix + ", a part of the store, was deleted", "SIGTERM", "do not kill it"}},
		{"its log replaced", func(s *Store, _ string) error {
			return errors.Join(os.Remove(s.path+logSuffix), os.WriteFile(s.path+logSuffix, nil, 0o600))
		}, []string{logSuffix + ", a part of the store, was deleted or replaced"}},
		{"the index of its log deleted", func(s *Store, _ string) error {
			return os.Remove(s.path + indexSuffix)
		}, []string{indexSuffix + ", a part of the store, was deleted"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t)
			writes := everyWrite(t, s)
			aside := filepath.Join(s.dir(), "aside.db")
			if err := c.loses(s, aside); err != nil {
				t.Fatal(err)
			}
			for name, write := range writes {
				unwell(t, name, write(), c.words...)
			}
			unwell(t, "a read", second(s.Grants(t.Context(), "uid:1000", time.Now())), c.words...)
			if c.name != "moved" {
				return
			}
			if err := os.Rename(aside, s.path); err != nil {
				t.Fatal(err)
			}
			if err := s.Health(t.Context()); err != nil {
				t.Errorf("after it was put back: %v", err)
			}
			insert(t, s)
		})
	}
}

// TestALogThatWasDeletedIsSavedByAStop: only open connections know its content. The store is unusable, even when the
// file is back, and closing it moves the content into the store.
func TestALogThatWasDeletedIsSavedByAStop(t *testing.T) {
	for _, suffix := range []string{logSuffix, indexSuffix} {
		t.Run(suffix, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "daycared.db")
			s, err := Open(t.Context(), options(path))
			if err != nil {
				t.Fatal(err)
			}
			r := insert(t, s)
			aside := filepath.Join(t.TempDir(), "aside")
			if err := os.Rename(path+suffix, aside); err != nil {
				t.Fatal(err)
			}
			unwell(t, "health", s.Health(t.Context()), suffix, "do not kill it")
			if err := os.Rename(aside, path+suffix); err != nil {
				t.Fatal(err)
			}
			_, err = s.Apply(t.Context(), r.ID, fayAllows())
			unwell(t, "apply once it is back", err, "do not kill it")
			if err := os.Remove(path + suffix); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = reopen(t, path)
			if c, err := s.Apply(t.Context(), r.ID, fayAllows()); err != nil || !c.Settled() {
				t.Errorf("what was in the log is lost: %v", err)
			}
			if len(restorations(t, s)) != 0 {
				t.Error("it counts as put back")
			}
		})
	}
}
