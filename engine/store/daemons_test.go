package store

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/daycared/daycared/internal/pgtest"
	"github.com/daycared/daycared/permissions"
)

// following collects what a store passes on of the writes of others, until the test ends.
func following(t *testing.T, s *Store) <-chan permissions.Entry {
	t.Helper()
	told, done := make(chan permissions.Entry, 1000), make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	go func() {
		done <- s.Follow(ctx, func(_ context.Context, list []permissions.Entry) error {
			for _, e := range list {
				told <- e
			}
			return nil
		})
	}()
	return told
}

// TestADaemonIsToldOnlyWhatOthersWrote.
func TestADaemonIsToldOnlyWhatOthersWrote(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	own, other := openOn(t.Context(), t, path, url), openOn(t.Context(), t, path, url)
	told := following(t, own)
	for range 5 {
		insert(t, own)
		r := insert(t, other)
		if got := <-told; got.Request != r.ID {
			t.Fatalf("it was told %s of %s, not of %s", got.Type, got.Request, r.ID)
		}
	}
}

// TestALeaseHasOneHolder, and another one at once when that one stops.
func TestALeaseHasOneHolder(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	first, second := openOn(t.Context(), t, path, url), openOn(t.Context(), t, path, url)
	for range 2 { // again is the same
		if err := first.AcquireLease(t.Context(), "chats"); err != nil {
			t.Fatal(err)
		}
	}
	soon, cancel := context.WithTimeout(t.Context(), 2*leaseRetry)
	defer cancel()
	if err := second.AcquireLease(soon, "chats"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the second holds it too, or: %v", err)
	}
	if err := second.AcquireLease(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := second.AcquireLease(t.Context(), "chats"); err != nil {
		t.Fatal(err)
	}
	found, err := InspectServer(t.Context(), Options{Server: url})
	if err != nil || len(found.Daemons) != 1 || found.Daemons[0].Leases != "chats, other" {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestWhatWasToldAtOneDaemonIsReadAtTheOther: whoever was told at one and asks the other at once is told the same, before that one has
// heard of it. The one that was there first knows of the other by then.
func TestWhatWasToldAtOneDaemonIsReadAtTheOther(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	first := openOn(t.Context(), t, path, url)
	following(t, first)
	second := openOn(t.Context(), t, path, url)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(time.Minute); !first.server.hasOthers(); <-tick.C {
		if time.Now().After(until) {
			t.Fatal("it does not know of the other one")
		}
	}
	for range 20 {
		r := insert(t, second)
		for _, s := range []*Store{first, second} {
			if is, err := s.Read(t.Context(), r.ID); err != nil || is.State != permissions.Pending {
				t.Fatalf("before: %s, %v", is.State, err)
			}
		}
		if _, err := first.Apply(t.Context(), r.ID, fayAllows()); err != nil {
			t.Fatal(err)
		}
		if is, err := second.Read(t.Context(), r.ID); err != nil || is.State != permissions.Approved {
			t.Fatalf("it was told at the first daemon, and at the second one it is %s, %v", is.State, err)
		}
	}
}

// TestADaemonThatWasStoppedCatchesUp before it grants anything: what others did meanwhile has been passed on then.
func TestADaemonThatWasStoppedCatchesUp(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	first, second := openOn(t.Context(), t, path, url), openOn(t.Context(), t, path, url)
	woke := time.Now().Add(-time.Minute)
	second.server.looked.Store(&woke)
	if _, err := first.Stop(t.Context(), "fay", "cli", time.Now()); err != nil {
		t.Fatal(err)
	}
	late, done := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer done()
	if err := second.CatchUp(late); !errors.Is(err, permissions.ErrBroken) {
		t.Errorf("nobody has passed on what others wrote, and it has caught up: %v", err)
	}
	told := following(t, second)
	if err := second.CatchUp(t.Context()); err != nil {
		t.Error(err)
	}
	if len(told) == 0 {
		t.Error("it has caught up, and what others wrote was not passed on")
	}
	if err := newStore(t).CatchUp(late); err != nil {
		t.Error(err)
	}
}

// TestNothingIsGrantedBetweenALockElsewhereAndItsNews, whatever else the others write: a daemon may have been halted after it had caught
// up, or hear late.
func TestNothingIsGrantedBetweenALockElsewhereAndItsNews(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	first, second := openOn(t.Context(), t, path, url), openOn(t.Context(), t, path, url)
	first.server.others.Store(true)
	r, used := insert(t, second), insert(t, second)
	if _, err := second.Apply(t.Context(), used.ID, fayAllows()); err != nil {
		t.Fatal(err)
	}
	ctx, halt := context.WithCancel(t.Context())
	looked, done := make(chan struct{}), make(chan error)
	var once sync.Once
	go func() {
		done <- second.Follow(ctx, func(context.Context, []permissions.Entry) error {
			once.Do(func() { close(looked) })
			return nil
		})
	}()
	insert(t, first)
	<-looked
	if err := second.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	halt() // it hears of nothing any more
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	insert(t, first)
	tries := map[string]func() error{
		"an answer":  func() error { _, err := second.Apply(t.Context(), r.ID, fayAllows()); return err },
		"a question": func() error { _, _, err := second.Open(t.Context(), newAsk()); return err },
		"a use": func() error {
			_, err := second.Apply(t.Context(), used.ID, permissions.Use{Call: "c", At: time.Now()})
			return err
		},
	}
	if err := tries["a question"](); err != nil {
		t.Errorf("others have written, and closed nothing: %v", err)
	}
	lock, record := permissions.Lock{Person: "fay", By: "ben", At: time.Now()}, permissions.Record{Type: permissions.PersonLocked}
	if err := first.PutLock(t.Context(), lock, record); err != nil {
		t.Fatal(err)
	}
	insert(t, first)
	for range 2 {
		for name, try := range tries {
			if err := try(); !errors.Is(err, permissions.ErrAway) {
				t.Errorf("%s after a lock of which nothing was heard: %v", name, err)
			}
		}
	}
	if is, err := second.Read(t.Context(), r.ID); err != nil || is.State != permissions.Pending {
		t.Errorf("it is %s, %v", is.State, err)
	}
	following(t, second)
	if err := second.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, try := range tries {
		if err := try(); err != nil {
			t.Errorf("%s once the lock is known: %v", name, err)
		}
	}
}

// TestALookIsAsOldAsItsQuestion: its answer may have been on the way for long.
func TestALookIsAsOldAsItsQuestion(t *testing.T) {
	way := pgtest.NewProxy(t, emptyDatabase(t))
	s := openOn(t.Context(), t, filepath.Join(t.TempDir(), "daycared.db"), way.URL)
	following(t, s)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for s.server.looked.Load() == nil {
		<-tick.C
	}
	first := *s.server.looked.Load()
	way.Cut()
	signal(s.server.look)
	cut := time.Now()
	for time.Since(cut) < mostBehind {
		<-tick.C
	}
	way.Heal()
	for ; s.server.looked.Load().Equal(first); <-tick.C {
		if time.Since(cut) > 20*time.Second {
			t.Fatal("it has not looked any more")
		}
	}
	if took := s.server.looked.Load().Sub(cut); took > mostBehind/2 {
		t.Errorf("what it knows counts as of %s after it asked", took)
	}
}

// TestASilentServerIsNotWaitedForByReadiness, on a connection that was used before as well.
func TestASilentServerIsNotWaitedForByReadiness(t *testing.T) {
	way := pgtest.NewProxy(t, emptyDatabase(t))
	s := openOn(t.Context(), t, filepath.Join(t.TempDir(), "daycared.db"), way.URL)
	if err := s.Health(t.Context()); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for s.readers.Stats().Idle == 0 {
		<-tick.C
	}
	way.Cut()
	defer way.Heal()
	cut := time.Now()
	ctx, done := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer done()
	if err := s.Health(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	if took := time.Since(cut); took > serverWait/2 {
		t.Errorf("it took %s", took)
	}
}

// takes reports whether a store could take the lease of the chats now.
func (s *Store) takes(t *testing.T, c *contact) bool {
	taken, err := s.tryLease(t.Context(), "chats", c)
	return err == nil && taken
}

// TestADaemonThatWasReplacedWritesNothing, even if it wakes late and the other one has stopped since.
func TestADaemonThatWasReplacedWritesNothing(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	halted := openOn(t.Context(), t, path, url)
	if err := halted.AcquireLease(t.Context(), "chats"); err != nil {
		t.Fatal(err)
	}
	r := insert(t, halted)
	query(t, url, `UPDATE daemons SET until = clock_timestamp()`) // as if it had not run for so long
	other := openOn(t.Context(), t, path, url)
	if !other.takes(t, &contact{}) {
		t.Fatal("the other one cannot take its place")
	}
	if _, err := other.Apply(t.Context(), r.ID, permissions.Withdraw{By: "fay", Via: "cli", At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if err := other.CheckLeases(t.Context()); err != nil {
		t.Error(err)
	}
	before := halted.Now()
	halted.server.noteTime(before.Add(-2*renewEvery), time.Now().Add(-2*renewEvery)) // it was halted while it was answered
	if now := halted.Now(); now.Before(before) {
		t.Errorf("its clock was set back by %s", before.Sub(now))
	}
	if err := halted.CheckLeases(t.Context()); !errors.Is(err, permissions.ErrBroken) {
		t.Errorf("the late one holds the chats: %v", err)
	}
	for range 2 {
		_, err := halted.Apply(t.Context(), r.ID, fayAllows())
		if !errors.Is(err, permissions.ErrBroken) || !strings.Contains(err.Error(), "other daemons took the place") {
			t.Errorf("the late one: %v", err)
		}
	}
	if _, err := halted.Read(t.Context(), r.ID); !errors.Is(err, permissions.ErrBroken) {
		t.Errorf("the late one reads: %v", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := halted.Open(t.Context(), newAsk()); !errors.Is(err, permissions.ErrBroken) {
		t.Errorf("the late one, when the other had stopped: %v", err)
	}
	if got := query(t, url, `SELECT state || ' ' || COUNT(*) OVER () FROM requests`); got != "cancelled 1" {
		t.Errorf("the rows are %q", got)
	}
}

// TestAHolderBeforeTheClockWasSetBackIsSilentOnceItWritesNoMore: its time lies further ahead than it can be, and is over only once it was
// seen unchanged for as long as a daemon may be silent.
func TestAHolderBeforeTheClockWasSetBackIsSilentOnceItWritesNoMore(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	first, second := openOn(t.Context(), t, path, url), openOn(t.Context(), t, path, url)
	if err := first.AcquireLease(t.Context(), "chats"); err != nil {
		t.Fatal(err)
	}
	back := func() {
		query(t, url, `UPDATE daemons SET until = clock_timestamp() + INTERVAL '10 minutes' WHERE id = '`+first.server.id+`'`)
	}
	back()
	seen := contact{since: time.Now().Add(-time.Hour)}
	if second.takes(t, &seen) {
		t.Error("it was taken as soon as the clock was set back")
	}
	seen.since = time.Now().Add(-heldFor)
	insert(t, first)
	if second.takes(t, &seen) {
		t.Error("it was taken from a daemon that has written since")
	}
	back()
	if second.takes(t, &seen) {
		t.Error("it was taken from a daemon that had written after it was seen")
	}
	seen.since = time.Now().Add(-heldFor)
	if !second.takes(t, &seen) {
		t.Error("nobody can take it")
	}
	if err := first.renewMembership(t.Context()); !errors.Is(err, errReplaced) {
		t.Errorf("the former one holds it: %v", err)
	}
}

// TestADatabaseThatWasAwayMakesNobodySilent: who comes back first does not take the place of the others.
func TestADatabaseThatWasAwayMakesNobodySilent(t *testing.T) {
	c := ownCluster(t)
	url, path := c.URL("postgres"), filepath.Join(t.TempDir(), "daycared.db")
	first, second := openOn(t.Context(), t, path, url), openOn(t.Context(), t, path, url)
	if err := first.AcquireLease(t.Context(), "chats"); err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	long := contact{since: time.Now().Add(-time.Hour)}
	if second.takes(t, &long) {
		t.Error("it was taken while the database was away")
	}
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	query(t, url, `UPDATE daemons SET until = clock_timestamp() - INTERVAL '1 minute'`)
	if second.takes(t, &long) {
		t.Error("it was taken as soon as the database was back")
	}
	insert(t, first)
	if second.takes(t, &contact{}) {
		t.Error("it was taken from a daemon that runs")
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
}

// TestInboxesAreKnownAtOtherDaemons, while the daemon at which they are open runs.
func TestInboxesAreKnownAtOtherDaemons(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	first, second := openOn(t.Context(), t, path, url), openOn(t.Context(), t, path, url)
	looks := func(s *Store) {
		t.Helper()
		if err := s.followOnce(t.Context(), func(context.Context, []permissions.Entry) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.NoteInboxes(t.Context(), []string{"fay", "sam"}); err != nil {
		t.Fatal(err)
	}
	looks(first)
	looks(second)
	if !second.HasInbox("fay") || !second.HasInbox("sam") || second.HasInbox("fa") || second.HasInbox("") || first.HasInbox("fay") {
		t.Error("two inboxes are not known for what they are")
	}
	if err := first.NoteInboxes(t.Context(), []string{"sam"}); err != nil {
		t.Fatal(err)
	}
	looks(second)
	if second.HasInbox("fay") || !second.HasInbox("sam") {
		t.Error("an inbox that was closed is open, or another one closed")
	}
	query(t, url, `UPDATE daemons SET until = clock_timestamp() WHERE id = '`+first.server.id+`'`)
	looks(second)
	if second.HasInbox("sam") {
		t.Error("an inbox is open at a daemon that is silent")
	}
}

// TestWhatOthersChangedIsReadAtOnce: requests, copies and entries are in memory, as new as what is told, when it is told.
func TestWhatOthersChangedIsReadAtOnce(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	s, other := openOn(t.Context(), t, path, url), openOn(t.Context(), t, path, url)
	s.server.others.Store(true)
	other.server.others.Store(true)
	first := insert(t, s)
	if _, err := other.Apply(t.Context(), first.ID, fayAllows()); err != nil {
		t.Fatal(err)
	}
	more := insert(t, other)
	if err := other.AddCopies(t.Context(), []permissions.Copy{{Request: more.ID, Person: "fay", Connector: "telegram"}}); err != nil {
		t.Fatal(err)
	}
	if err := other.Record(t.Context(), permissions.Record{Type: permissions.PermissionApplied, Request: more.ID}); err != nil {
		t.Fatal(err)
	}
	mine := insert(t, s) // it finds out before it looks
	if row, cached := s.rows.get(mine.ID); !cached || row.version != s.server.last {
		t.Errorf("its own request is in memory as of %d, not %d", row.version, s.server.last)
	}
	told := 0
	err := s.followOnce(t.Context(), func(ctx context.Context, list []permissions.Entry) error {
		told += len(list)
		for id, want := range map[permissions.ID]permissions.State{first.ID: permissions.Approved, more.ID: permissions.Pending} {
			r, err := s.Read(ctx, id)
			if row, cached := s.rows.get(id); err != nil || r.State != want || !cached || !row.shown {
				t.Errorf("request %s is %s, %v; in memory with its copies: %t", id, r.State, err, cached && row.shown)
			}
		}
		return nil
	})
	if err != nil || told != 3 {
		t.Errorf("%d entries told, %v", told, err)
	}
	RowsAreTheFile(t, s)
	all, err := s.Audit(t.Context(), "", 1, 100)
	events, known := s.tailEvents(1, 100)
	if err != nil || !known || len(events) != 4 || len(all) != 4 {
		t.Fatalf("in memory: %t, %d events of %d, %v", known, len(events), len(all), err)
	}
	if about := events[2].About; about.ID != more.ID {
		t.Errorf("an event is about %+v", about)
	}
	if tail, known := s.tail.after(1); !known || !reflect.DeepEqual(tail, all) {
		t.Errorf("in memory %v: %+v\nstored: %+v", known, tail, all)
	}
}

// TestWhatChangedAfterTheSnapshotIsNotHidden by an older row that is put into memory later.
func TestWhatChangedAfterTheSnapshotIsNotHidden(t *testing.T) {
	copied := func(id permissions.ID) []permissions.Copy {
		return []permissions.Copy{{Request: id, Person: "fay", Connector: "telegram"}}
	}
	for name, c := range map[string]struct {
		meanwhile func(ctx context.Context, s, other *Store, id permissions.ID) error
		kept      bool // in memory, with its copies
	}{
		"nothing": {func(context.Context, *Store, *Store, permissions.ID) error { return nil }, true},
		"another request changed": {func(_ context.Context, s, other *Store, _ permissions.ID) error {
			insert(t, other)
			insert(t, s)
			return nil
		}, true},
		"the other daemon allowed it, and this one writes": {func(ctx context.Context, s, other *Store, id permissions.ID) error {
			_, err := other.Apply(ctx, id, fayAllows())
			insert(t, s)
			return err
		}, false},
		"the other daemon shows it, and this one writes": {func(ctx context.Context, s, other *Store, id permissions.ID) error {
			err := other.AddCopies(ctx, copied(id))
			insert(t, s)
			return err
		}, false},
		"this daemon allowed it": {func(ctx context.Context, s, _ *Store, id permissions.ID) error {
			_, err := s.Apply(ctx, id, fayAllows())
			return err
		}, false},
		"this daemon shows it": {func(ctx context.Context, s, _ *Store, id permissions.ID) error { return s.AddCopies(ctx, copied(id)) }, false},
		"the other daemon shows all again, and this one writes": {func(ctx context.Context, s, other *Store, _ permissions.ID) error {
			_, err := other.ShowAgain(ctx, "telegram", false)
			insert(t, s)
			return err
		}, false},
		"this daemon shows all again": {func(ctx context.Context, s, _ *Store, _ permissions.ID) error {
			_, err := s.ShowAgain(ctx, "telegram", false)
			return err
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var meanwhile func()
			OnPoint = func(point string, _ int) {
				if do := meanwhile; point == "news" && do != nil {
					meanwhile = nil
					do()
				}
			}
			t.Cleanup(func() { OnPoint = nil })
			url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
			s, other := openOn(t.Context(), t, path, url), openOn(t.Context(), t, path, url)
			s.server.others.Store(true)
			other.server.others.Store(true)
			r := insert(t, other)
			meanwhile = func() {
				if err := c.meanwhile(t.Context(), s, other, r.ID); err != nil {
					t.Error(err)
				}
			}
			err := s.followOnce(t.Context(), func(context.Context, []permissions.Entry) error { return nil })
			if err != nil || meanwhile != nil {
				t.Fatalf("followed: %v; nothing was changed meanwhile: %t", err, meanwhile != nil)
			}
			if row, cached := s.rows.get(r.ID); c.kept && (!cached || !row.shown) {
				t.Errorf("it is in memory: %t, with its copies: %t", cached, row.shown)
			}
			RowsAreTheFile(t, s)
			var refused *permissions.Refusal
			if _, err := s.Apply(t.Context(), r.ID, permissions.Withdraw{By: "fay", At: time.Now()}); err != nil && !errors.As(err, &refused) &&
				!errors.Is(err, permissions.ErrSettled) {
				t.Errorf("withdrawn: %v", err)
			}
			if damage := s.damage.Load(); damage != nil {
				t.Error(damage)
			}
		})
	}
}

// TestACopyThatIsWrittenIsNotHidden by a row that is read, with its copies, while the commit is under way.
func TestACopyThatIsWrittenIsNotHidden(t *testing.T) {
	m := newRows()
	own := changes{rows: m}
	own.keepCopy(permissions.Copy{Request: "r", Person: "fay", Connector: "telegram"})
	m.followNews(true)
	m.putNews(permissions.Request{ID: "r"}, nil, 6)
	own.begin(7)
	m.commit(&own)
	if row, cached := m.get("r"); cached && row.shown {
		t.Errorf("its copies are in memory as %+v", row.copies)
	}
}

// TestLongRequestsOfOthersAreReadWhenNeeded: they would fill the memory.
func TestLongRequestsOfOthersAreReadWhenNeeded(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	s, other := openOn(t.Context(), t, path, url), openOn(t.Context(), t, path, url)
	other.server.others.Store(true)
	long := newAsk()
	long.Request.Details = strings.Repeat("x", maxText+1)
	long.Request.Digest = permissions.ComputeDigest(long.Request)
	if _, _, err := other.Open(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	short := insert(t, other)
	err := s.read(t.Context(), func(from source) error {
		found, _, err := s.many(t.Context(), from, readShort, list[permissions.ID]{&[]permissions.ID{long.Request.ID, short.ID}}, maxText)
		if len(found) != 1 || found[0].ID != short.ID {
			t.Errorf("read: %+v", found)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	err = s.followOnce(t.Context(), func(ctx context.Context, _ []permissions.Entry) error {
		r, err := s.Read(ctx, long.Request.ID)
		if r.Details != long.Request.Details {
			t.Errorf("its text has %d bytes", len(r.Details))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestAnOlderCommitIsNotKept: another daemon's later one was heard of before this one's was answered.
func TestAnOlderCommitIsNotKept(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*memory)
		kept      bool
	}{
		"nothing else":        {func(*memory) {}, true},
		"its own change":      {func(m *memory) { m.forgetChanged(7, []string{"r"}) }, true},
		"another request":     {func(m *memory) { m.forgetChanged(8, []string{"q"}) }, true},
		"an earlier change":   {func(m *memory) { m.forgetChanged(6, []string{"r"}) }, true},
		"a later change":      {func(m *memory) { m.forgetChanged(8, []string{"r"}) }, false},
		"any later change":    {func(m *memory) { m.forgetChanged(8, []string{allRows}) }, false},
		"unknown and a later": {func(m *memory) { m.forget(); m.forgetChanged(8, []string{"r"}) }, false},
	} {
		m := memory{rows: newRows()}
		own := changes{rows: m.rows}
		own.keep(permissions.Request{ID: "r"})
		own.begin(7)
		c.meanwhile(&m)
		m.rows.commit(&own)
		if _, kept := m.rows.get("r"); kept != c.kept {
			t.Errorf("%s: it is kept: %t", name, kept)
		}
		m.forgetChanged(8, []string{"r"})
		if _, kept := m.rows.get("r"); kept {
			t.Errorf("%s: it is kept after a later change", name)
		}
	}
}

// TestTheEntriesInMemoryHaveNoGap, in whatever order they are heard of.
func TestTheEntriesInMemoryHaveNoGap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var n tailEntries
		var newest int64
		for range rapid.IntRange(1, 9).Draw(t, "times") {
			first, many := rapid.Int64Range(1, 20).Draw(t, "first"), rapid.Int64Range(0, 6).Draw(t, "many")
			var more []permissions.Entry
			for seq := range many {
				more = append(more, permissions.Entry{Seq: first + seq})
				newest = max(newest, first+seq)
			}
			before := len(n.list)
			if joined := n.add(more); !joined && before == 0 {
				t.Fatal("the first do not join")
			}
			for i, e := range n.list {
				if e.Seq != n.list[0].Seq+int64(i) {
					t.Fatalf("%+v", n.list)
				}
			}
			if len(n.list) > 0 && n.list[len(n.list)-1].Seq != newest {
				t.Fatalf("%d is not among %+v", newest, n.list)
			}
		}
	})
}

// TestWhatAnotherDaemonHasJustChangedIsRead, by each of many who ask at the same time, also of what is not stored.
func TestWhatAnotherDaemonHasJustChangedIsRead(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	s, other := openOn(t.Context(), t, path, url), openOn(t.Context(), t, path, url)
	s.server.others.Store(true)
	same, changed := insert(t, s), insert(t, s)
	if _, err := other.Apply(t.Context(), changed.ID, fayAllows()); err != nil {
		t.Fatal(err)
	}
	var asking sync.WaitGroup
	for n := range 60 {
		asking.Go(func() {
			id, want := same.ID, permissions.Pending
			if n%3 == 0 {
				id, want = changed.ID, permissions.Approved
			}
			if r, err := s.Read(t.Context(), id); err != nil || r.State != want {
				t.Errorf("it is %s, %v", r.State, err)
			}
			if s.isCurrent(t.Context(), permissions.Request{ID: "none"}) {
				t.Error("a request that is not stored is current")
			}
		})
	}
	asking.Wait()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if s.isCurrent(gone, changed) {
		t.Error("nothing is known after the end of a call")
	}
}
