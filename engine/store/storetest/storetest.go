// Package storetest is the suite that every database behind the engine must pass, run by a driver on its own stores.
//
//	storetest.Run(t, storetest.Backend{Open: …, Reopen: …, Exec: …})
//
// It uses only [engine.Store] and [Ledger], with realistic requests at chosen times, and compares the store's results
// with [permissions.Step]. Faults below a store (a full disk, a damaged file) are tested by each driver.
package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// Backend is the database under test.
type Backend struct {
	// Open makes an empty store, closed when the test ends.
	Open func(t *testing.T) engine.Store
	// Reopen closes the store and opens the same rows again, as a restart does.
	Reopen func(t *testing.T, s engine.Store) engine.Store
	// Exec runs a statement directly on the database.
	Exec func(t *testing.T, s engine.Store, statement string)
}

type part struct {
	name string
	run  func(t *testing.T, b Backend)
}

// requests are the tests of a request's life, for [RunRequests] as well.
var requests = []part{
	{"open", testOpen},
	{"join", testJoin},
	{"keys", testKeys},
	{"limits", testLimits},
	{"exhausted", testExhausted},
	{"taken id", testTakenID},
	{"rest", testRest},
	{"apply", testApply},
	{"refused", testRefused},
	{"vote keys", testVoteKeys},
	{"race", testRace},
	{"race to open", testRaceToOpen},
	{"due", testDue},
	{"due while it waits", testDueWhileItWaits},
	{"pending", testPending},
	{"history", testHistory},
	{"lately", testLately},
	{"grants", testGrants},
	{"grants in force", testGrantsInForce},
	{"uses", testUses}, {"uses of a rule", testRuleUses},
	{"used after its grant", testUsedAfterItsGrant},
	{"used with one grant left", testUsedWithOneGrantLeft},
	{"used without what it rests on", testUsedWithoutWhatItRestsOn},
	{"revoke", testRevoke},
	{"ending", testEnding},
	{"ending now", testEndingNow},
	{"stop", testStop},
	{"stop and grants", testStopAndGrants},
	{"resume by another", testResumeByAnother},
	{"notices", testNotices},
	{"copies", testCopies},
	{"burst", testBurst},
	{"lagging", testLagging},
	{"forget", testForget},
	{"while sending", testWhileSending},
	{"add copies", testAddCopies},
	{"show again", testShowAgain},
	{"unaddressed", testUnaddressed},
	{"asked again after failing", testAskedAgainAfterFailing},
	{"audit", testAudit},
	{"newest", testNewest},
	{"restart", testRestart},
	{"pulse", testPulse},
	{"health", testHealth},
}

var everythingElse = []part{
	{"codes", testCodes},
	{"key of what is over", testKeyOfWhatIsOver},
	{"stop with a damaged row", testStopWithADamagedRow},
	{"stop cut short", testStopCutShort},
	{"tell", testTell},
	{"strangers", testStrangers},
	{"strangers by the thousand", testManyStrangers},
	{"tokens", testTokens}, {"owners", testOwners},
	{"token revived by the clock", testTokenRevivedByTheClock},
	{"pairings", testPairings},
	{"suspensions", testSuspensions},
	{"locks", testLocks},
	{"messages", testMessages},
	{"orders", testOrders},
	{"utterances", testUtterances},
	{"authors", testAuthors},
	{"foreground", testForeground},
	{"pending numbers", testPendingNumbers},
	{"copies in a place", testPlaceCopies},
	{"places", testPlaces},
	{"notices in a place", testPlaceNotices},
	{"tampering", testTampering},
	{"events", testEvents},
	{"changed", testChanged},
	{"prune payloads", testPrunePayloads},
	{"prune requests", testPruneRequests},
	{"prune uses", testPruneUses},
	{"prune the rest", testPruneRest},
	{"prune what was told", testPruneChat},
	{"prune the audit", testPruneAudit},
	{"pruned and tampered with", testPruneTampering},
	{"prune sessions", testPruneSessions},
	{"sessions", testSessions},
	{"open sessions", testOpenSessions},
	{"stale", testStale},
	{"turns", testTurns},
	{"posts", testPosts},
	{"executions", testExecutions},
	{"tool finished", testToolFinished},
	{"session ended", testSessionEnded},
	{"commit whole", testCommitWhole},
	{"timetables", testTimetables},
	{"absences", testAbsences},
	{"languages", testLanguages},
	{"own keys", testOwnKeys},
	{"lapsed of ours", testLapsedOfOurs},
	{"end session", testEndSession},
	{"cursors", testCursors},
}

// Run runs the suite.
func Run(t *testing.T, b Backend) {
	RunRequests(t, b)
	for _, p := range everythingElse {
		t.Run(p.name, func(t *testing.T) { p.run(t, b) })
	}
}

// RunRequests runs the tests of requests, copies, grants, notices and their audit. It needs no Exec.
func RunRequests(t *testing.T, b Backend) {
	for _, p := range requests {
		t.Run(p.name, func(t *testing.T) { p.run(t, b) })
	}
}

// noon is when the requests of the suite are made.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const (
	redeem  = 10 * time.Minute
	timeout = 15 * time.Minute
)

// ask is a pending request for the network, modified by change.
func ask(change ...func(*permissions.Request)) permissions.Request {
	r := permissions.Request{
		ID: permissions.NewID(noon), Revision: 1, Version: permissions.DigestVersion, Kind: permissions.KindPermission,
		Caller: permissions.CallerUID(1000), Session: "s-1", Tags: []permissions.Tag{permissions.Network},
		Reason: "fetch the docs", Asked: []string{"fay"}, Quorum: 1, CreatedAt: noon, Deadline: noon.Add(timeout),
		State: permissions.Pending,
	}
	for _, c := range change {
		c(&r)
	}
	scopes := []permissions.Scope{permissions.SessionTool, permissions.Session, permissions.For(15 * time.Minute)}
	r.Options = permissions.Offer(r, scopes, r.Widest)
	r.Digest = permissions.ComputeDigest(r)
	return r
}

// about makes requests differ.
func about(reason string) func(*permissions.Request) {
	return func(r *permissions.Request) { r.Reason = reason }
}

// numbered is about the n-th thing.
func numbered(n int) func(*permissions.Request) { return about(fmt.Sprintf("thing %d", n)) }

func keyed(key string) func(*permissions.Request) {
	return func(r *permissions.Request) { r.Key = key }
}

// at moves a request in time.
func at(created time.Time) func(*permissions.Request) {
	return func(r *permissions.Request) { r.CreatedAt, r.Deadline = created, created.Add(timeout) }
}

func of(person ...string) func(*permissions.Request) {
	return func(r *permissions.Request) { r.Asked = person }
}

// vote is fay's answer, a minute after noon.
func vote(a permissions.Answer) permissions.Cast {
	return permissions.Cast{Vote: permissions.Vote{
		By: "fay", Via: "terminal", Answer: a, Comment: "as you like", At: noon.Add(time.Minute),
	}}
}

func allow() permissions.Cast { return vote(permissions.Allow(permissions.Once)) }

func opening(r permissions.Request) permissions.Opening {
	return permissions.Opening{Request: r, RedeemWindow: redeem}
}

// open inserts r and fails the test if it was not inserted.
func open(t *testing.T, s engine.Store, r permissions.Request, copies ...permissions.Copy) permissions.Request {
	t.Helper()
	o := opening(r)
	o.Copies = copies
	stored, created, err := s.Open(t.Context(), o)
	if err != nil || !created {
		t.Fatalf("open: created %v, %v", created, err)
	}
	return stored
}

// apply commits an event and fails the test if it was refused.
func apply(t *testing.T, s engine.Store, id permissions.ID, e permissions.Transition) permissions.Change {
	t.Helper()
	c, err := s.Apply(t.Context(), id, e)
	if err != nil {
		t.Fatalf("apply %T: %v", e, err)
	}
	return c
}

func read(t *testing.T, s engine.Store, id permissions.ID) permissions.Request {
	t.Helper()
	r, err := s.Read(t.Context(), id)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return r
}

// entries is the whole audit of the store's own chain.
func entries(t *testing.T, s engine.Store) []permissions.Entry {
	t.Helper()
	all, err := s.Audit(t.Context(), "", 0, 1000)
	if err != nil {
		t.Fatalf("audit: %v", err)
	}
	return all
}

// verified fails the test if a chain is broken.
func verified(t *testing.T, s engine.Store) []permissions.Head {
	t.Helper()
	heads, err := s.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return heads
}

// same compares two values: empty equals nil, and unexported fields count.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	options := cmp.Options{cmpopts.EquateEmpty(), cmp.AllowUnexported(permissions.Tag{}, permissions.Scope{})}
	if diff := cmp.Diff(want, got, options); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// refusedWith fails the test if err is not a refusal with that code.
func refusedWith(t *testing.T, err error, code permissions.Code) {
	t.Helper()
	var refusal *permissions.Refusal
	if !errors.As(err, &refusal) || refusal.Code != code {
		t.Errorf("got %v, want a refusal %q", err, code)
	}
}

func ids(requests []permissions.Request) []permissions.ID {
	var all []permissions.ID
	for _, r := range requests {
		all = append(all, r.ID)
	}
	return all
}
