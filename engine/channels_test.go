package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/engine/store/storetest"
	"github.com/daycared/daycared/permissions"
)

// flakyStore is a store some of whose calls fail, or run a hook afterwards.
type flakyStore struct {
	engine.Store
	addCopies, lagging, suspend, keepWait atomic.Int32 // how many calls fail
	afterStop, beforeEnd                  func()
}

var errBusy = &store.Error{What: "another process holds the store locked", Advice: "let it finish", Err: errors.New("busy")}

func (f *flakyStore) AddCopies(ctx context.Context, c []permissions.Copy) error {
	if f.addCopies.Add(-1) >= 0 {
		return errBusy
	}
	return f.Store.AddCopies(ctx, c)
}

func (f *flakyStore) StaleCopies(ctx context.Context, c string, after permissions.ID, n int) ([]permissions.ID, error) {
	if f.lagging.Add(-1) >= 0 {
		return nil, errBusy
	}
	return f.Store.StaleCopies(ctx, c, after, n)
}

func (f *flakyStore) Suspend(ctx context.Context, via, address, who string, at time.Time) error {
	if f.suspend.Add(-1) >= 0 {
		return errBusy
	}
	return f.Store.Suspend(ctx, via, address, who, at)
}

func (f *flakyStore) KeepWait(ctx context.Context, w permissions.Wait) error {
	if f.keepWait.Add(-1) >= 0 {
		return errBusy
	}
	return f.Store.KeepWait(ctx, w)
}

func (f *flakyStore) Stop(ctx context.Context, by, via string, at time.Time) ([]permissions.Request, error) {
	cancelled, err := f.Store.Stop(ctx, by, via, at)
	if f.afterStop != nil {
		f.afterStop()
	}
	return cancelled, err
}

func (f *flakyStore) Apply(ctx context.Context, id permissions.ID, e permissions.Transition) (permissions.Change, error) {
	if _, gives := e.(permissions.GiveUp); gives && f.beforeEnd != nil {
		then := f.beforeEnd
		f.beforeEnd = nil
		then()
	}
	return f.Store.Apply(ctx, id, e)
}

// newEnvOver is newEnv over a store that may fail.
func newEnvOver(t *testing.T, f *flakyStore, s engine.Settings, people ...connectors.Connector) *env {
	t.Helper()
	st := &env{t: t, dir: t.TempDir(), settings: s, people: people, through: func(rows engine.Store) engine.Store {
		f.Store = rows
		return f
	}}
	st.open()
	t.Cleanup(func() { st.stop() })
	return st
}

func twoChannels() engine.Settings {
	s := usual()
	person := fay
	person.Via = []string{"telegram", "whatsapp"}
	s.People = []connectors.Person{person, sam}
	return s
}

var blocked = &connectors.UnreachableError{Reason: "fay has blocked the bot"}

func TestTheNextChannelAfterAFailureOfTheStore(t *testing.T) {
	telegram, whatsapp := newPhone(fay, "telegram"), newPhone(fay, "whatsapp")
	telegram.FailSend(-1, blocked)
	f := &flakyStore{}
	f.addCopies.Store(1)
	st := newEnvOver(t, f, twoChannels(), telegram, whatsapp)
	st.ask(t.Context(), network("x"))
	st.shown(whatsapp.Memory, 1)
}

func TestTheNextChannelAfterACrash(t *testing.T) {
	telegram, whatsapp := newPhone(fay, "telegram"), newPhone(fay, "whatsapp")
	telegram.FailSend(-1, blocked)
	f := &flakyStore{}
	f.addCopies.Store(1 << 30)
	st := newEnvOver(t, f, twoChannels(), telegram, whatsapp)
	st.ask(t.Context(), network("x"))
	id := st.pending(1)[0].ID
	st.eventually("the first channel has not failed", func() bool {
		copies, err := st.rows.Copies(t.Context(), id)
		return err == nil && len(copies) == 1 && copies[0].Failed != ""
	})
	f.addCopies.Store(0)
	whatsapp = newPhone(fay, "whatsapp")
	st.restart(newPhone(fay, "telegram"), whatsapp)
	st.shown(whatsapp.Memory, 1)
}

func TestAListingThatFailsOnceAtTheStart(t *testing.T) {
	m := newPhone(fay, "telegram")
	m.FailSend(-1, errors.New("no network"))
	f := &flakyStore{}
	st := newEnvOver(t, f, usual(), m)
	st.ask(t.Context(), network("x"))
	st.pending(1)
	f.lagging.Store(1)
	m = newPhone(fay, "telegram")
	st.restart(m)
	st.shown(m.Memory, 1)
}

// People who are gone do not count as reached.
func TestThoseWhoLeftAreNotReached(t *testing.T) {
	settings := team()
	settings.Routes = []engine.Route{{Ask: []string{"fay", "sam", "kim"}, Quorum: 2}}
	f, s, k := phones()
	k.FailReach(&connectors.UnreachableError{Reason: "kim has blocked the bot"})
	st := newEnv(t, settings, f, s, k)
	call := st.ask(t.Context(), network("x"))
	st.shown(f.Memory, 1)
	st.shown(s.Memory, 1)
	next := settings
	next.People = []connectors.Person{fay, kim}
	next.Routes = []engine.Route{{Ask: []string{"fay", "kim"}, Quorum: 2}}
	st.Configure(next)
	if r := st.get(call); r.State != permissions.Undeliverable {
		t.Errorf("two it takes, and one can be reached: %s", r.State)
	}
}

// A request is not given up as undeliverable when more people are asked at that very moment.
func TestNobodyGivesUpOnWhoWasAskedMeanwhile(t *testing.T) {
	f, s, k := phones()
	f.FailSend(-1, blocked)
	settings := team()
	settings.Routes = []engine.Route{{Ask: []string{"fay"}}}
	store := &flakyStore{}
	st := newEnvOver(t, store, settings, f, s, k)
	store.beforeEnd = func() {
		next := settings
		next.Routes = []engine.Route{{Ask: []string{"fay", "sam"}}}
		st.Configure(next)
		st.eventually("sam is not asked", func() bool {
			rows, err := st.rows.Pending(context.Background(), "sam", "", 1)
			return err == nil && len(rows) == 1
		})
	}
	call := st.ask(t.Context(), network("x"))
	s.must(t, st.shown(s.Memory, 1).Request.ID, allow())
	if r := st.get(call); r.State != permissions.Approved || !slices.Contains(r.Asked, "sam") {
		t.Errorf("%s of %v", r.State, r.Asked)
	}
}

func TestSomebodyWhoIsRemovedAndPutBackSeesTheCard(t *testing.T) {
	settings := usual()
	settings.Routes = []engine.Route{{Ask: []string{"fay", "sam"}}}
	f, s, _ := phones()
	s.FailSend(-1, errors.New("no network"))
	st := newEnv(t, settings, f, s)
	st.ask(t.Context(), network("x"))
	st.shown(f.Memory, 1)
	next := settings
	next.People = []connectors.Person{fay}
	next.Routes = []engine.Route{{Ask: []string{"fay"}}}
	st.Configure(next)
	st.eventually("sam is still asked", func() bool { return len(st.pending(1)[0].Asked) == 1 })
	s.FailSend(0, nil)
	st.Configure(settings)
	st.shown(s.Memory, 1)
}

// A stop holds although its caller hung up, and they may resume.
func TestAStopWhoseCallerHangsUp(t *testing.T) {
	f := &flakyStore{}
	st := newEnvOver(t, f, usual(), newPhone(fay, "fays-phone"))
	ctx, leave := context.WithCancel(t.Context())
	f.afterStop = leave
	if _, err := st.StopAll(ctx, connectors.Identity{Via: "cli", UID: fay.UID}); err != nil {
		t.Fatal(err)
	}
	refused(t, st.Resume(t.Context(), connectors.Identity{Via: "cli", UID: sam.UID}), permissions.CodeNotYours)
	if by, _, err := st.rows.StoppedBy(t.Context()); err != nil || by != "fay" || st.StoppedBy() != "fay" {
		t.Errorf("stopped by %q, %v", by, err)
	}
}

// Nothing is held from the moment the stop is audited, however much is still to be cancelled.
func TestNothingIsHeldWhileAStopCancels(t *testing.T) {
	f := &flakyStore{}
	st := newEnvOver(t, f, usual(), newPhone(fay, "fays-phone"))
	f.afterStop = func() {
		_, err := st.Approvals().Held(t.Context(), helper, "s1")
		refused(t, err, permissions.CodeStopped)
	}
	atFay := connectors.Identity{Via: "cli", UID: fay.UID}
	if _, err := st.StopAll(t.Context(), atFay); err != nil {
		t.Fatal(err)
	}
	if err := st.Resume(t.Context(), atFay); err != nil || st.StoppedBy() != "" {
		t.Errorf("stopped by %q, %v", st.StoppedBy(), err)
	}
}

// A step's vote that was dropped with its person stays dropped when they return.
func TestADroppedVoteOfAStepStaysDropped(t *testing.T) {
	settings := team()
	settings.Routes = []engine.Route{{Ask: []string{"fay", "sam", "kim"}, Quorum: 2}}
	f, s, k := phones()
	st := newEnv(t, settings, f, s, k)
	st.ask(t.Context(), permissions.Request{Kind: permissions.KindTool, Session: "s1", Calls: []permissions.Call{
		{N: 1, Tool: "write_file", Input: []byte(`{"a":1}`)}, {N: 2, Tool: "write_file", Input: []byte(`{"a":2}`)},
	}})
	id := st.shown(f.Memory, 1).Request.ID
	says := func(p *phone, call int) permissions.Request {
		t.Helper()
		r, err := p.Do(t.Context(), connectors.Decision{Request: id, Answer: allow(), Call: call})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	says(f, 1)
	says(s, 1)
	says(f, 2)
	next := settings
	next.People = []connectors.Person{sam, kim}
	next.Routes = []engine.Route{{Ask: []string{"sam", "kim"}, Quorum: 2}}
	st.Configure(next)
	asked := func(n int) func() bool { return func() bool { return len(st.pending(1)[0].Asked) == n } }
	st.eventually("fay is still asked", asked(2))
	st.Configure(settings)
	st.eventually("fay is not asked again", asked(3))
	if r := says(s, 2); r.State != permissions.Pending {
		t.Errorf("with one vote of two it is %s", r.State)
	}
}

// A channel that is away is given up in time by the monotonic clock too, and failures are retried.
func TestChannelsWhileTheClockIsSetBack(t *testing.T) {
	telegram, whatsapp := newPhone(fay, "telegram"), newPhone(fay, "whatsapp")
	telegram.FailSend(-1, errors.New("no network"))
	st := newEnv(t, twoChannels(), telegram, whatsapp)
	st.ask(t.Context(), network("x"))
	st.pending(1)
	st.eventually("it was not tried", func() bool { return telegram.Tries() > 0 })
	st.setWallClock(-time.Hour)
	st.advance(10 * time.Minute)
	st.shown(whatsapp.Memory, 1)
}

// lateSender sends its prompts when a test says so.
type lateSender struct {
	*phone
	begun, goes chan struct{}
}

func (s lateSender) Send(ctx context.Context, p connectors.Prompt) (string, error) {
	s.begun <- struct{}{}
	select {
	case <-s.goes:
		return s.phone.Send(ctx, p)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// A prompt that was given up arrives after its request was settled, while the clock was set back.
func TestACardThatArrivesAfterItWasGivenUpIsBroughtUpToDate(t *testing.T) {
	telegram, whatsapp := lateSender{newPhone(fay, "telegram"), make(chan struct{}, 9), make(chan struct{})}, newPhone(fay, "whatsapp")
	st := newEnv(t, twoChannels(), telegram, whatsapp)
	call := st.ask(t.Context(), network("x"))
	id := st.pending(1)[0].ID
	<-telegram.begun
	st.setWallClock(-time.Hour)
	st.advance(10 * time.Minute)
	st.shown(whatsapp.Memory, 1)
	if _, err := st.Withdraw(t.Context(), self, id); err != nil {
		t.Fatal(err)
	}
	st.get(call)
	cancelled := func(p connectors.Prompt) bool { return p.Request.State == permissions.Cancelled }
	st.edited(whatsapp.Memory, 1, cancelled)
	close(telegram.goes)
	st.edited(telegram.Memory, 1, cancelled)
}

func TestEscalationWhileTheClockIsSetBack(t *testing.T) {
	f, s, k := phones()
	st := newEnv(t, team(), f, s, k)
	st.ask(t.Context(), network("deploy"))
	st.shown(f.Memory, 1)
	st.setWallClock(-time.Hour)
	st.advance(10 * time.Minute) // of 15; it escalates after half
	st.shown(k.Memory, 1)
}

// hangingChannel never accepts a notice.
type hangingChannel struct{ *phone }

func (h hangingChannel) Notify(ctx context.Context, _ connectors.Notice) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestAChannelThatHangsKeepsNobodyElseFromTheirNotices(t *testing.T) {
	settings := usual()
	settings.Routes = []engine.Route{{Ask: []string{"fay", "sam"}}}
	settings.Approvals.Remind = []engine.Moment{{Percent: 50}, {Percent: 75}}
	f, s := hangingChannel{newPhone(fay, "fays-phone")}, newPhone(sam, "sams-phone")
	st := newEnv(t, settings, f, s)
	st.ask(t.Context(), network("x"))
	st.shown(s.Memory, 1)
	for _, d := range []time.Duration{8 * time.Minute, 4 * time.Minute} { // by the monotonic clock at the latest; fay's channel hangs
		began := time.Now()
		st.advance(d)
		s.notice(t)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("sam was told after %v", took)
		}
		st.eventually("it is noted", func() bool {
			all, err := st.rows.Notices(t.Context(), "", 9)
			return err == nil && !slices.ContainsFunc(all, func(n permissions.Notice) bool { return n.To == "sam" })
		})
	}
}

// However many overdue rows are unreadable, the daemon starts, lists the others and settles them.
func TestDamagedRowsDoNotKeepTheDaemonFromStarting(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, usual(), f)
	for n, tag := range []string{"@write:/a", "@write:/b", "@write:/c", "@write:/d", "@write:/e"} {
		st.ask(t.Context(), tagged("", tag))
		st.shown(f.Memory, n+1)
	}
	good := st.shown(f.Memory, 5).Request.ID
	st.stop()
	for n := range int64(4) {
		storetest.Damage(t, st.path(), n+1)
	}
	st.advance(20 * time.Minute)
	st.restart(newPhone(fay, "fays-phone"))
	st.eventually("nothing expires any more", func() bool {
		r, err := st.rows.Read(t.Context(), good)
		return err == nil && r.State == permissions.Expired
	})
	if list, err := st.Pending(t.Context(), boss, "", 9); err != nil || len(list) != 0 {
		t.Errorf("pending: %v, %v", list, err)
	}
	st.ask(t.Context(), tagged("", "@write:/f"))
	for _, r := range st.pending(1) {
		if r.ID == good {
			t.Error("what is over is listed")
		}
	}
}

// One unreadable row blocks neither the kill switch nor deadlines.
func TestADamagedRowHoldsUpNothing(t *testing.T) {
	for _, stop := range []bool{true, false} {
		f := newPhone(fay, "fays-phone")
		st := newEnv(t, usual(), f)
		st.ask(t.Context(), network("bad"))
		st.shown(f.Memory, 1)
		st.ask(t.Context(), tagged("", "@write:/srv"))
		good := st.shown(f.Memory, 2).Request.ID
		storetest.Damage(t, st.path(), 1)
		if !stop {
			st.advance(20 * time.Minute)
			st.eventually("nothing expires any more", func() bool {
				r, err := st.rows.Read(t.Context(), good)
				return err == nil && r.State == permissions.Expired
			})
			continue
		}
		if _, err := st.StopAll(t.Context(), boss); err == nil {
			t.Error("nobody is told of the row that could not be read")
		}
		if by, _, err := st.rows.StoppedBy(t.Context()); err != nil || by == "" || st.StoppedBy() != by {
			t.Errorf("stopped by %q, %v", by, err)
		}
		if r, err := st.rows.Read(t.Context(), good); err != nil || r.State != permissions.Cancelled {
			t.Errorf("the other is %s, %v", r.State, err)
		}
	}
}

// outrunStore has a request as this daemon knew it before another one settled it.
type outrunStore struct {
	engine.Store
	was  atomic.Pointer[permissions.Request]
	ends chan struct{} // a copy was shown or failed
}

func (s *outrunStore) Read(ctx context.Context, id permissions.ID) (permissions.Request, error) {
	if was := s.was.Load(); ctx.Value(permissions.AsKnown{}) != nil && was != nil && was.ID == id {
		return *was, nil
	}
	return s.Store.Read(ctx, id)
}

func (s *outrunStore) MarkShown(ctx context.Context, c permissions.Copy, was string) error {
	defer func() { s.ends <- struct{}{} }()
	return s.Store.MarkShown(ctx, c, was)
}

func (s *outrunStore) MarkFailed(ctx context.Context, c permissions.Copy) error {
	defer func() { s.ends <- struct{}{} }()
	return s.Store.MarkFailed(ctx, c)
}

// TestNoCardIsSentOfWhatAnotherDaemonSettledAMomentAgo, of which this one has not heard.
func TestNoCardIsSentOfWhatAnotherDaemonSettledAMomentAgo(t *testing.T) {
	m, outrun := connectortest.NewMemory(fayAt("memory"), nil), &outrunStore{ends: make(chan struct{}, 100)}
	st := &env{t: t, dir: t.TempDir(), settings: usual(), people: []connectors.Connector{m}}
	st.through = func(rows engine.Store) engine.Store { outrun.Store = rows; return outrun }
	st.holds = func(ctx context.Context) error {
		if outrun.was.Load() != nil {
			return nil
		}
		r, err := st.rows.Pending(ctx, "", "", 1)
		if err != nil || len(r) != 1 {
			return errors.Join(err, errors.New("no request is pending"))
		}
		outrun.was.Store(&r[0])
		_, err = st.rows.Apply(ctx, r[0].ID, permissions.Withdraw{By: "sam", At: time.Now()})
		return errors.Join(err, errors.New("another daemon may have the chats"))
	}
	st.open()
	t.Cleanup(func() { st.stop() })
	st.ask(t.Context(), network("x"))
	<-outrun.ends
	if all := m.Copies(); len(all) > 0 {
		t.Errorf("it was sent: %+v", all)
	}
	if r, err := st.rows.Read(t.Context(), outrun.was.Load().ID); err != nil || r.State != permissions.Cancelled {
		t.Errorf("it is %s, %v", r.State, err)
	}
}

// TestNothingIsSentWhereAnotherDaemonMayHaveTheChats: each card, edit and notice waits until it is certain that none has.
func TestNothingIsSentWhereAnotherDaemonMayHaveTheChats(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, usual(), f)
	var calls, known atomic.Int64
	st.holds = func(context.Context) error {
		if calls.Add(1) == 1 {
			return errors.New("another daemon may have them")
		}
		return nil
	}
	f = newPhone(fay, "fays-phone")
	st.restart(f)
	asked := func(what string, least int64) {
		t.Helper()
		if n := calls.Load() - known.Load(); n < least {
			t.Errorf("it was asked %d times before %s", n, what)
		}
		known.Store(calls.Load())
	}
	first := st.ask(t.Context(), network("first"))
	st.shown(f.Memory, 1)
	asked("a card that was held back once", 2)
	f.must(t, f.Copies()[0].First.Request.ID, permissions.Deny)
	st.get(first)
	settled := func(all []connectortest.Copy) bool { return all[0].Last.Request.State != permissions.Pending }
	if err := f.Wait(t.Context(), settled); err != nil {
		t.Fatal(err)
	}
	asked("an edit", 1)
	quieten := func(span time.Duration) {
		t.Helper()
		if _, err := st.QuietAgent(t.Context(), fayAt("fays-phone"), self.Name, span); err != nil {
			t.Fatal(err)
		}
	}
	quieten(time.Hour)
	st.ask(t.Context(), network("second"))
	st.shown(f.Memory, 2)
	asked("another card", 1)
	quieten(0)
	if n := f.notice(t); n.About != permissions.AboutQuiet {
		t.Errorf("a notice about %s", n.About)
	}
	asked("a notice", 1)
}
