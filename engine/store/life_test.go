package store

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/daycared/daycared/permissions"
)

// reopen opens the store at path and closes it when the test ends.
func reopen(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), options(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// restorations are the StoreRestored entries of the audit.
func restorations(t *testing.T, s *Store) (found []permissions.Entry) {
	t.Helper()
	if _, err := s.Verify(t.Context()); err != nil {
		t.Errorf("the audit does not verify: %v", err)
	}
	for after := int64(0); ; {
		page, err := s.Audit(t.Context(), "", after, 500)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			after = e.Seq
			if e.Type == permissions.StoreRestored {
				found = append(found, e)
			}
		}
		if len(page) == 0 {
			return found
		}
	}
}

// approve makes fay allow a request for a scope.
// testRule is the rule that an approval with that scope gives.
var testRule = permissions.NewGrantedRule([]string{"run go vet ./..."}, "/srv/code", "")

func approve(t *testing.T, s *Store, scope permissions.Scope) permissions.Request {
	t.Helper()
	o := newAsk()
	o.Request.Options = permissions.Offer(o.Request, []permissions.Scope{scope}, scope)
	o.Request.Options = append(o.Request.Options, permissions.Option{ID: permissions.Allow(scope)})
	r, _, err := s.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	said := fayAllows()
	said.Vote.Answer = permissions.Allow(scope)
	if scope == permissions.Rule {
		said.Vote.Rule = testRule
	}
	c, err := s.Apply(t.Context(), r.ID, said)
	if err != nil {
		t.Fatal(err)
	}
	return c.After
}

func use(t *testing.T, s *Store, r permissions.Request) error {
	t.Helper()
	_, err := s.Apply(t.Context(), r.ID, permissions.Use{Call: "call", At: time.Now()})
	return err
}

// TestNewLife puts a store behind its mark in every manual way, and checks that nothing old opens anything.
func TestNewLife(t *testing.T) {
	remove := func(t *testing.T, path string) {
		for _, suffix := range []string{"", logSuffix, indexSuffix} {
			if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
	}
	write := func(t *testing.T, path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		save, put func(t *testing.T, path, kept string)
		why       string
	}{
		"a backup": {func(t *testing.T, path, kept string) {
			if _, err := Backup(t.Context(), options(path), kept); err != nil {
				t.Fatal(err)
			}
		}, func(t *testing.T, path, kept string) {
			remove(t, path)
			copyFiles(t, kept, path, "")
		}, "it is a copy that daycared made"},
		"a backup, elsewhere": {func(t *testing.T, path, kept string) {
			if _, err := Backup(t.Context(), options(path), kept); err != nil {
				t.Fatal(err)
			}
		}, func(t *testing.T, path, kept string) {
			remove(t, path)
			if err := os.Remove(markName(path)); err != nil {
				t.Fatal(err)
			}
			copyFiles(t, kept, path, "")
		}, "it is a copy that daycared made"},
		"the files of a store": {func(t *testing.T, path, kept string) {
			copyFiles(t, path, kept, "", logSuffix)
		}, func(t *testing.T, path, kept string) {
			remove(t, path)
			copyFiles(t, kept, path, "", logSuffix)
		}, "it is an older copy"},
		"no mark": {func(*testing.T, string, string) {}, func(t *testing.T, path, _ string) {
			if err := os.Remove(markName(path)); err != nil {
				t.Fatal(err)
			}
		}, "the mark beside it is missing"},
		"garbage": {func(*testing.T, string, string) {}, func(t *testing.T, path, _ string) {
			write(t, markName(path), "no mark")
		}, "the mark beside it cannot be read"},
		"another store": {func(*testing.T, string, string) {}, func(t *testing.T, path, kept string) {
			text, err := os.ReadFile(markName(path))
			if err != nil {
				t.Fatal(err)
			}
			write(t, markName(path), strings.Replace(string(text), `"chain":"`, `"chain":"X`, 1))
		}, "it is another store than the one that was here"},
		"another way": {func(*testing.T, string, string) {}, func(t *testing.T, path, _ string) {
			m, _, err := readMark(path)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(markName(path))
			if err != nil {
				t.Fatal(err)
			}
			write(t, markName(path), strings.Replace(string(text), m.Hash, permissions.Digest{1}.String(), 1))
		}, "its audit went another way"},
	} {
		t.Run(name, func(t *testing.T) {
			path, kept := filepath.Join(t.TempDir(), "daycared.db"), filepath.Join(t.TempDir(), "kept.db")
			s := reopen(t, path)
			waiting, unused := insert(t, s), approve(t, s, permissions.Once)
			used, quarter := approve(t, s, permissions.Once), approve(t, s, permissions.For(15*time.Minute))
			for _, r := range []permissions.Request{used, quarter} {
				if err := use(t, s, r); err != nil {
					t.Fatal(err)
				}
			}
			token := permissions.Token{ID: "T1", Name: "ci", Hash: permissions.Digest{7}, CreatedAt: time.Now().Add(-time.Hour)}
			if err := s.AddToken(t.Context(), token, "fay", "cli"); err != nil {
				t.Fatal(err)
			}
			pairing := permissions.Pairing{Person: "fay", Via: "telegram", Address: "1", PairedAt: time.Now()}
			if _, err := s.Pair(t.Context(), pairing, "fay", "cli"); err != nil {
				t.Fatal(err)
			}
			head, coder := s.ledger.head, s.Coder()
			c.save(t, path, kept)
			last := head
			for range 5 {
				last.seq = insert(t, s).Number
			}
			last = s.ledger.head
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			c.put(t, path, kept)

			s = reopen(t, path)
			began := restorations(t, s)
			if len(began) != 1 || began[0].Detail["why"] != c.why {
				t.Fatalf("lives: %v", began)
			}
			if began[0].Seq < last.seq+gap {
				t.Errorf("the audit goes on at %d, after %d", began[0].Seq, last.seq)
			}
			if s.Coder() == coder {
				t.Error("old codes are still known")
			}
			if r := insert(t, s); r.Number < gap {
				t.Errorf("the next request has number %d", r.Number)
			}
			if insert(t, s).Number != insert(t, s).Number-1 {
				t.Error("numbers have more than the one gap")
			}
			grants, err := s.Grants(t.Context(), quarter.Caller.Name, time.Now())
			if err != nil || len(grants) != 0 {
				t.Errorf("grants open: %v, %v", grants, err)
			}
			all, err := s.Suspended(t.Context())
			if err != nil || len(all.Grants) != 1 || len(all.Tokens) != 1 || len(all.Pairings) != 1 {
				t.Errorf("suspended: %+v, %v", all, err)
			}
			var refusal *permissions.Refusal
			_, err = s.VerifyToken(t.Context(), token.Hash, time.Now())
			if !errors.As(err, &refusal) || !strings.Contains(refusal.Text, "daycared reinstate T1") {
				t.Errorf("the token: %v", err)
			}
			for name, r := range map[string]permissions.Request{"unused": unused, "used": used, "quarter": quarter} {
				if err := use(t, s, r); !errors.Is(err, permissions.ErrNoUse) {
					t.Errorf("%s may be used: %v", name, err)
				}
			}
			if r, err := s.Read(t.Context(), unused.ID); err != nil || r.VoidAt.IsZero() {
				t.Errorf("what was not used is not taken back: %v, %v", r.VoidAt, err)
			}
			if c, err := s.Apply(t.Context(), waiting.ID, fayAllows()); err != nil || use(t, s, c.After) != nil {
				t.Errorf("what waited cannot be decided and used: %v", err)
			}

			if _, err := s.Reinstate(t.Context(), []string{"T1", "nobody/telegram"}, "op", "cli", time.Now()); !errors.As(err, &refusal) {
				t.Errorf("reinstated by a name that is not known: %v", err)
			}
			if _, err := s.VerifyToken(t.Context(), token.Hash, time.Now()); err == nil {
				t.Error("half of it was reinstated")
			}
			back, err := s.Reinstate(t.Context(), []string{"T1", "fay/telegram"}, "op", "cli", time.Now())
			if err != nil || len(back.Tokens) != 1 || len(back.Pairings) != 1 || len(back.Grants) != 0 {
				t.Errorf("reinstated: %+v, %v", back, err)
			}
			if _, err := s.VerifyToken(t.Context(), token.Hash, time.Now()); err != nil {
				t.Errorf("reinstated, the token: %v", err)
			}
			if back, err = s.Reinstate(t.Context(), nil, "op", "cli", time.Now()); err != nil || len(back.Grants) != 1 {
				t.Errorf("all the rest: %+v, %v", back, err)
			}
			if grants, err := s.Grants(t.Context(), quarter.Caller.Name, time.Now()); err != nil || len(grants) != 1 {
				t.Errorf("reinstated, grants: %v, %v", grants, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if s = reopen(t, path); len(restorations(t, s)) != 1 {
				t.Error("the next start is another life")
			}
			if all, err := s.Suspended(t.Context()); err != nil || all.Count() != 0 {
				t.Errorf("and suspends: %+v, %v", all, err)
			}
		})
	}
}

// TestPairAgain: pairing a person again replaces a suspended pairing.
func TestPairAgain(t *testing.T) {
	s := newStore(t)
	p := permissions.Pairing{Person: "fay", Via: "telegram", Address: "1", PairedAt: time.Now()}
	if _, err := s.Pair(t.Context(), p, "op", "cli"); err != nil {
		t.Fatal(err)
	}
	exec(t, s.writer, "UPDATE pairings SET suspended_at = 1")
	if _, err := s.Pair(t.Context(), p, "op", "cli"); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Suspended(t.Context()); err != nil || len(all.Pairings) != 0 {
		t.Errorf("still suspended: %+v, %v", all, err)
	}
}

// TestSameLife: moving the folder, an upgrade, an unwritable mark and a store started afresh are no restore.
func TestSameLife(t *testing.T) {
	t.Run("moved", func(t *testing.T) {
		from, to := filepath.Join(t.TempDir(), "was"), filepath.Join(t.TempDir(), "now")
		if err := os.Mkdir(from, 0o700); err != nil {
			t.Fatal(err)
		}
		s := reopen(t, filepath.Join(from, "daycared.db"))
		insert(t, s)
		if err := errors.Join(s.Close(), os.Rename(from, to)); err != nil {
			t.Fatal(err)
		}
		if began := restorations(t, reopen(t, filepath.Join(to, "daycared.db"))); len(began) != 0 {
			t.Error(began)
		}
	})
	t.Run("upgraded", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "daycared.db")
		first, err := migrations.ReadFile("migrations/00001_requests.sql")
		if err != nil {
			t.Fatal(err)
		}
		old := &Store{path: path, now: time.Now, log: options(path).Log}
		if err := create(path); err != nil {
			t.Fatal(err)
		}
		old.writer = connect(path, time.Second, 1, "_journal_mode=WAL&_synchronous=FULL&_txlock=immediate")
		if err := old.migrate(t.Context(), fstest.MapFS{"00001_requests.sql": {Data: first}}); err != nil {
			t.Fatal(err)
		}
		exec(t, old.writer, `INSERT INTO meta (chain, code_key, created_at, beat, stopped_by, stopped_at, alive_at) `+
			`VALUES ('C', randomblob(32), 1, 0, '', 0, 0)`)
		if err := old.writer.Close(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			s := reopen(t, path)
			insert(t, s)
			if began := restorations(t, s); len(began) != 0 {
				t.Error(began)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("taken away", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "daycared.db")
		s := reopen(t, path)
		insert(t, s)
		if err := errors.Join(s.Close(), os.Remove(path)); err != nil {
			t.Fatal(err)
		}
		if began := restorations(t, reopen(t, path)); len(began) != 0 {
			t.Error(began)
		}
	})
}

// TestNoSuspensionInManyDeaths kills a store at any moment, 300 times or CRASH_POINTS, with a current, an older or an unwritable mark:
// none counts as a restore.
func TestNoSuspensionInManyDeaths(t *testing.T) {
	deaths := 300
	if many, err := strconv.Atoi(os.Getenv("CRASH_POINTS")); err == nil {
		deaths = many
	}
	random := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "daycared.db")
	s, err := Open(t.Context(), options(path))
	if err != nil {
		t.Fatal(err)
	}
	approve(t, s, permissions.For(time.Hour))
	var older []byte // an older mark, as a crash may leave it
	for death := range deaths {
		for range random.IntN(3) {
			switch random.IntN(4) {
			case 0:
				if _, err := s.Heartbeat(t.Context(), time.Now()); err != nil {
					t.Fatal(err)
				}
			case 1:
				exec(t, s.writer, checkpointLog)
			default:
				if err := s.Record(t.Context(), permissions.Record{Type: "NOTHING"}); err != nil {
					t.Fatal(err)
				}
			}
		}
		next := filepath.Join(t.TempDir(), "daycared.db")
		copyFiles(t, path, next, "", logSuffix)
		copyFiles(t, markName(path), markName(next), "")
		if random.IntN(4) == 0 && older != nil {
			if err := os.WriteFile(markName(next), older, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if older, err = os.ReadFile(markName(next)); err != nil {
			t.Fatal(err)
		}
		if random.IntN(5) == 0 { // a full disk: the mark cannot be written
			if err := os.MkdirAll(markName(next)+draftSuffix+"/x", 0o700); err != nil {
				t.Fatal(err)
			}
		}
		s.started = false // a killed process writes no mark
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Dir(path)); err != nil {
			t.Fatal(err)
		}
		path = next
		if s, err = Open(t.Context(), options(path)); err != nil {
			t.Fatalf("after death %d: %v", death+1, err)
		}
		if !s.restoredAt.IsZero() {
			t.Fatalf("death %d counts as a restore", death+1)
		}
	}
	all, err := s.Suspended(t.Context())
	if err != nil || all.Count() != 0 || len(restorations(t, s)) != 0 {
		t.Errorf("suspended: %+v, %v", all, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestARestoreOfWhatIsOlderForgetsNoClosing: D10/first of a copy without a grant or token, then of one in which it is open.
func TestARestoreOfWhatIsOlderForgetsNoClosing(t *testing.T) {
	path, folder := filepath.Join(t.TempDir(), "daycared.db"), t.TempDir()
	older, middle, newer := filepath.Join(folder, "older.db"), filepath.Join(folder, "middle.db"), filepath.Join(folder, "newer.db")
	s := reopen(t, path)
	keep := func(to string) {
		t.Helper()
		insert(t, s)
		if _, err := Backup(t.Context(), options(path), to); err != nil {
			t.Fatal(err)
		}
	}
	keep(older)
	keep(middle)
	o := openedIn(t, s)
	keep(newer)
	if _, err := s.Revoke(t.Context(), o.grant(t), "op", "cli", time.Now(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RevokeToken(t.Context(), "T1", "op", "cli", time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{middle, older, middle, newer} {
		r, err := Restore(t.Context(), options(path), from)
		if err != nil || r.Left != nil || len(r.Now.Grants)+len(r.Now.Tokens) != 0 {
			t.Errorf("%s: suspended are %v and %v, %v, %v", filepath.Base(from), r.Now.Grants, r.Now.Tokens, r.Left, err)
		}
		if _, err := VerifyFile(t.Context(), options(path)); err != nil {
			t.Errorf("%s: it does not verify: %v", filepath.Base(from), err)
		}
	}
	copyFiles(t, older, path, "")
	if r, err := Restore(t.Context(), options(path), newer); err != nil || r.Left == nil || len(r.Now.Grants) != 1 {
		t.Errorf("after a copy by hand: %v, %v", r.Left, err)
	}
}

// TestVerifyMissesWhatIsSuspended: D9/if its row is deleted before it is reinstated.
func TestVerifyMissesWhatIsSuspended(t *testing.T) {
	for _, renewed := range []string{"restore", "new-key"} {
		for _, table := range []string{"grants", "tokens", "pairings"} {
			path, backup := filepath.Join(t.TempDir(), "daycared.db"), filepath.Join(t.TempDir(), "backup.db")
			o := newOpened(t, path)
			meddle(t, o.Store, "DELETE FROM "+map[string]string{"grants": "tokens", "tokens": "pairings", "pairings": "tokens"}[table])
			if renewed == "restore" {
				o = newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
				path = o.path
			}
			if _, err := Backup(t.Context(), options(path), backup); (err == nil) != (renewed == "restore") {
				t.Fatal(err)
			}
			if err := o.Close(); err != nil {
				t.Fatal(err)
			}
			with := options(path)
			if with.NewKey = renewed == "new-key"; !with.NewKey {
				if _, err := Restore(t.Context(), with, backup); err != nil {
					t.Fatal(err)
				}
			}
			s, err := Open(t.Context(), with)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Verify(t.Context()); err != nil {
				t.Errorf("%s: %v", renewed, err)
			}
			meddle(t, s, "PRAGMA foreign_keys = OFF; DELETE FROM "+table)
			if _, err := s.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "a row of the table "+table) {
				t.Errorf("%s: without %s, verify says %v", renewed, table, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestARestoreSaysThatClosingsWerePruned: what says that a grant was taken back is deleted, and the backup has it open.
func TestARestoreSaysThatClosingsWerePruned(t *testing.T) {
	path, backup := filepath.Join(t.TempDir(), "daycared.db"), filepath.Join(t.TempDir(), "backup.db")
	s := reopen(t, path)
	o := openedIn(t, s)
	if _, err := Backup(t.Context(), options(path), backup); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Revoke(t.Context(), o.grant(t), "op", "cli", time.Now(), 1); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	for more, err := true, error(nil); more; {
		if more, err = s.Prune(t.Context(), permissions.Keep{Payloads: 1, Requests: 1, Audit: 1}, later, 100); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := Restore(t.Context(), options(path), backup); err != nil || !errors.Is(r.Left, ErrPruned) || len(r.Now.Grants) != 1 {
		t.Errorf("suspended are %v; left: %v, %v", r.Now.Grants, r.Left, err)
	}
}

// TestOneRestoreIsOneNewLife, whichever of the daemons on the database starts first.
func TestOneRestoreIsOneNewLife(t *testing.T) {
	url, paths := emptyDatabase(t), []string{filepath.Join(t.TempDir(), "daycared.db"), filepath.Join(t.TempDir(), "daycared.db")}
	older := url[:strings.LastIndex(url, "/")] + "/older?sslmode=disable"
	name := url[strings.LastIndex(url, "/")+1 : strings.LastIndex(url, "?")]
	open := func(url string) (a, b *Store) {
		a = openOn(t.Context(), t, paths[0], url)
		key, err := os.ReadFile(filepath.Join(filepath.Dir(paths[0]), "audit.key"))
		if err := errors.Join(err, os.WriteFile(filepath.Join(filepath.Dir(paths[1]), "audit.key"), key, 0o600)); err != nil {
			t.Fatal(err)
		}
		return a, openOn(t.Context(), t, paths[1], url)
	}
	closes := func(all ...*Store) {
		for _, s := range all {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	goesOn := func(s *Store) {
		insert(t, s)
		if _, err := s.Heartbeat(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	lives := func() string {
		return query(t, older, `SELECT COUNT(*)::text FROM audit WHERE type = 'STORE_RESTORED'`)
	}
	closes(open(url))
	admin := older[:strings.LastIndex(older, "/")] + "/postgres?sslmode=disable"
	query(t, admin, `CREATE DATABASE older TEMPLATE `+name)
	defer query(t, admin, `DROP DATABASE older WITH (FORCE)`)
	a, b := open(url)
	goesOn(a)
	goesOn(b)
	closes(a, b)
	a, b = open(older)
	if lives() != "1" {
		t.Errorf("%s new lives have begun", lives())
	}
	goesOn(a)
	goesOn(b)
	closes(a, b)
	if closes(open(older)); lives() != "1" {
		t.Errorf("%s new lives have begun", lives())
	}
	a, b = open(url) // it is older than both now
	if got := query(t, url, `SELECT COUNT(*)::text FROM audit WHERE type = 'STORE_RESTORED'`); got != "1" {
		t.Errorf("%s new lives have begun of the other database", got)
	}
	closes(a, b)
}
