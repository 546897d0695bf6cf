package storetest

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// two asks fay and sam, both of whom must agree.
func two(r *permissions.Request) { r.Asked, r.Quorum = []string{"fay", "sam"}, 2 }

// three asks one more, any two of whom must agree.
func three(r *permissions.Request) { r.Asked, r.Quorum = []string{"fay", "sam", "kim"}, 2 }

// patient asks kim later, and reminds twice.
func patient(r *permissions.Request) {
	minute := func(n int) time.Time { return r.CreatedAt.Add(time.Duration(n) * time.Minute) }
	r.EscalateTo, r.EscalateAt, r.Reminders = []string{"kim"}, minute(5), []time.Time{minute(7), minute(12)}
}

// step asks about two calls at once.
func step(r *permissions.Request) {
	r.Kind, r.Tags, r.Reason = permissions.KindTool, nil, ""
	r.Calls = []permissions.Call{
		{N: 1, Tool: "write_file", Input: json.RawMessage(`{"path":"<a>"}`)},
		{N: 2, Tool: "run_command", Input: json.RawMessage(`{"run":"ls && rm"}`)},
	}
}

func clarification(r *permissions.Request) {
	r.Kind, r.Tags, r.Reason = permissions.KindClarification, nil, ""
	r.Message, r.Choices = "announce where?", []string{"blog", "mail"}
}

// by is another person's vote.
func by(person string, c permissions.Cast) permissions.Cast {
	c.Vote.By = person
	return c
}

// call is a vote on one call of a step.
func call(n int, c permissions.Cast) permissions.Cast {
	c.Vote.Call = n
	return c
}

// from is a vote from an account.
func from(account string, c permissions.Cast) permissions.Cast {
	c.Vote.Account = account
	return c
}

// asVoted is a vote as stored in its row.
func asVoted(c permissions.Cast) permissions.Vote {
	c.Vote.At = c.Vote.At.UTC().Truncate(time.Microsecond)
	return c.Vote
}

// handing is c with a use of what it approves.
func handing(c permissions.Cast) permissions.Cast {
	c.Use = &permissions.Use{Call: "call-1", At: c.Vote.At}
	return c
}

// testApply applies every event to rows in every state, and compares with [permissions.Step]: the change, the row after
// it, the votes, the grants and the audit.
func testApply(t *testing.T, b Backend) {
	later := noon.Add(2 * time.Minute)
	session := vote(permissions.Allow(permissions.Session))
	quarter := vote(permissions.Allow(permissions.For(15 * time.Minute)))
	use, collect := permissions.Use{Call: "call-1", At: later}, permissions.Collect{At: later}
	leave, back := permissions.Leave{At: later}, permissions.Return{At: later}
	others := permissions.Reroute{Asked: []string{"sam", "kim"}, At: later}
	more := permissions.Escalate{At: later}
	nudge := permissions.Remind{At: noon.Add(8 * time.Minute)}
	unsure := permissions.Default{By: "fay", Via: "terminal", At: later}
	for name, c := range map[string]struct {
		request permissions.Request
		events  []permissions.Transition
	}{
		"allow":               {ask(), []permissions.Transition{allow()}},
		"allow for a session": {ask(), []permissions.Transition{session}},
		"allow for a time":    {ask(), []permissions.Transition{quarter}},
		"deny":                {ask(), []permissions.Transition{vote(permissions.Deny)}},
		"quorum":              {ask(two), []permissions.Transition{session, by("sam", quarter)}},
		"an equal vote again": {ask(two), []permissions.Transition{allow(), allow()}},
		"allow, then deny":    {ask(two), []permissions.Transition{allow(), vote(permissions.Deny)}},
		"reroute":             {ask(two), []permissions.Transition{allow(), others}},
		"reroute, one stays": {ask(two), []permissions.Transition{
			allow(), permissions.Reroute{Asked: []string{"fay", "kim"}, At: later}, by("kim", allow()),
		}},
		"reroute, a vote drops with its account": {ask(three), []permissions.Transition{
			from("telegram:1", allow()), permissions.Reroute{
				Asked: []string{"fay", "sam", "kim"}, Moved: []permissions.Vote{asVoted(from("telegram:1", allow()))}, At: later,
			}, by("sam", allow()), from("telegram:2", allow()),
		}},
		"a step, an account moves, its denial stays": {ask(step, three), []permissions.Transition{
			from("uid:1", call(1, allow())), from("uid:1", call(1, vote(permissions.Deny))), permissions.Reroute{
				Asked: []string{"fay", "sam", "kim"}, Moved: []permissions.Vote{asVoted(from("uid:1", call(1, allow())))}, At: later,
			}, call(2, by("sam", allow())), call(2, by("kim", allow())),
		}},
		"a step, somebody leaves and is back": {ask(step, three), []permissions.Transition{
			call(1, allow()), call(1, by("sam", allow())), call(2, allow()),
			permissions.Reroute{Asked: []string{"sam", "kim"}, At: later},
			permissions.Reroute{Asked: []string{"sam", "kim", "fay"}, At: later},
			call(2, by("sam", allow())), call(2, by("kim", allow())),
		}},
		"escalate, once":  {ask(patient), []permissions.Transition{more, more, by("kim", allow())}},
		"remind, in turn": {ask(patient), []permissions.Transition{nudge, nudge, permissions.Remind{At: noon.Add(12 * time.Minute)}}},
		"a step, call by call": {ask(step), []permissions.Transition{
			call(1, vote(permissions.Deny)), call(2, vote(permissions.Allow(permissions.SessionTool))),
		}},
		"a step at once":   {ask(step), []permissions.Transition{quarter}},
		"choose":           {ask(clarification), []permissions.Transition{vote(permissions.Choose(2))}},
		"answer in words":  {ask(clarification), []permissions.Transition{vote(permissions.Other)}},
		"default":          {ask(clarification), []permissions.Transition{unsure}},
		"withdraw":         {ask(), []permissions.Transition{permissions.Withdraw{By: "uid:1000", Via: "cli", At: later}}},
		"expire":           {ask(), []permissions.Transition{permissions.Expire{At: noon.Add(timeout)}}},
		"nobody chose":     {ask(clarification), []permissions.Transition{permissions.Expire{At: noon.Add(timeout)}}},
		"forbid":           {ask(step), []permissions.Transition{permissions.Forbid{Rule: "rule 3", At: later}}},
		"give up":          {ask(), []permissions.Transition{permissions.GiveUp{Reason: "fay has blocked the bot", At: later}}},
		"leave, return":    {ask(), []permissions.Transition{leave, leave, back}},
		"use":              {ask(), []permissions.Transition{allow(), use}},
		"use by a retry":   {ask(), []permissions.Transition{allow(), use, use}},
		"allow and use":    {ask(), []permissions.Transition{handing(allow()), use}},
		"collect":          {ask(), []permissions.Transition{vote(permissions.Deny), collect, collect}},
		"void":             {ask(), []permissions.Transition{allow(), permissions.Void{By: "fay", Via: "cli", At: later}}},
		"lapse":            {ask(), []permissions.Transition{allow(), permissions.Lapse{At: later}}},
		"left at the end":  {ask(), []permissions.Transition{allow(), leave}},
		"collect too soon": {ask(), []permissions.Transition{collect}},
	} {
		t.Run(name, func(t *testing.T) {
			s := b.Open(t)
			r := open(t, s, c.request)
			for _, e := range c.events {
				r = applied(t, s, r, e)
			}
			verified(t, s)
		})
	}
}

// applied applies an event to r and returns the row after it.
func applied(t *testing.T, s engine.Store, r permissions.Request, e permissions.Transition) permissions.Request {
	t.Helper()
	want, err := permissions.Step(r, e)
	if err != nil {
		t.Fatalf("%T is not possible: %v", e, err)
	}
	audit, grants := entries(t, s), granted(t, s)
	got := apply(t, s, r.ID, e)
	same(t, "the row before", got.Before, want.Before)
	same(t, "the row after", got.After, want.After)
	same(t, "the vote", got.Vote, want.Vote)
	same(t, "the row read", read(t, s, r.ID), want.After)

	var records []permissions.Record
	for _, entry := range entries(t, s)[len(audit):] {
		records = append(records, entry.Record)
	}
	same(t, "the audit", records, got.Records)
	random := cmp.FilterPath(func(p cmp.Path) bool { // grant ids are random
		key, ok := p.Last().(cmp.MapIndex)
		return ok && key.Key().String() == "grant"
	}, cmp.Ignore())
	if diff := cmp.Diff(want.Records, got.Records, random); diff != "" {
		t.Errorf("the records (-want +got):\n%s", diff)
	}
	same(t, "the grants", granted(t, s), sortGrants(append(grants, got.Grants...)))
	options := cmp.Options{cmp.AllowUnexported(permissions.Tag{}), cmpopts.IgnoreFields(permissions.Grant{}, "ID")}
	if diff := cmp.Diff(want.Grants, got.Grants, options); diff != "" {
		t.Errorf("the grants of the change (-want +got):\n%s", diff)
	}
	return got.After
}

func granted(t *testing.T, s engine.Store) []permissions.Grant {
	t.Helper()
	grants, err := s.Grants(t.Context(), permissions.CallerUID(1000).Name, noon)
	if err != nil {
		t.Fatal(err)
	}
	return sortGrants(grants)
}

// sortGrants orders grants: those made at the same time may be listed in any order.
func sortGrants(grants []permissions.Grant) []permissions.Grant {
	slices.SortFunc(grants, func(a, b permissions.Grant) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return grants
}

func testRefused(t *testing.T, b Backend) {
	later := noon.Add(2 * time.Minute)
	late := allow()
	late.Vote.At = noon.Add(timeout)
	for name, c := range map[string]struct {
		first permissions.Transition
		event permissions.Transition
		want  error
	}{
		"settled":      {allow(), vote(permissions.Deny), permissions.ErrSettled},
		"late":         {nil, late, permissions.ErrLate},
		"not due":      {nil, permissions.Expire{At: later}, permissions.ErrNotDue},
		"not asked":    {nil, by("mallory", allow()), permissions.ErrNotAsked},
		"no option":    {nil, vote(permissions.Choose(1)), permissions.ErrNoOption},
		"nothing used": {nil, permissions.Use{At: later}, permissions.ErrNoUse},
		"used before":  {permissions.Withdraw{At: later}, permissions.Use{At: later}, permissions.ErrNoUse},
		"no event":     {nil, nil, permissions.ErrEvent},
	} {
		t.Run(name, func(t *testing.T) {
			s := b.Open(t)
			r := open(t, s, ask())
			if c.first != nil {
				r = apply(t, s, r.ID, c.first).After
			}
			before := len(entries(t, s))
			got, err := s.Apply(t.Context(), r.ID, c.event)
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			same(t, "the row beside the error", got.Before, r)
			same(t, "the row read", read(t, s, r.ID), r)
			if after := len(entries(t, s)); after != before {
				t.Errorf("what was refused wrote %d audit records", after-before)
			}
		})
	}
	s := b.Open(t)
	_, err := s.Apply(t.Context(), "01J0000000000000000000NONE", allow())
	refusedWith(t, err, permissions.CodeUnknown)
}

func testVoteKeys(t *testing.T, b Backend) {
	s := b.Open(t)
	first, other := open(t, s, ask(two, numbered(1))), open(t, s, ask(two, numbered(2)))
	tap := allow()
	tap.Vote.Key = "telegram:7:1001"
	after := apply(t, s, first.ID, tap).After
	for _, id := range []permissions.ID{first.ID, other.ID} {
		before, audit := read(t, s, id), len(entries(t, s))
		c := apply(t, s, id, tap)
		if !c.Empty() {
			t.Errorf("a redelivered vote changed %+v", c)
		}
		same(t, "the row beside it", c.After, before)
		same(t, "the row read", read(t, s, id), before)
		if n := len(entries(t, s)); n != audit {
			t.Errorf("a redelivered vote wrote %d audit records", n-audit)
		}
	}
	next := by("sam", tap)
	next.Vote.Key = "telegram:7:1002"
	settled := apply(t, s, first.ID, next).After
	if settled.State != permissions.Approved || len(settled.Votes) != len(after.Votes)+1 {
		t.Errorf("the second vote: %s with %d votes", settled.State, len(settled.Votes))
	}
	if c := apply(t, s, first.ID, next); !c.Empty() || c.After.State != permissions.Approved {
		t.Errorf("redelivered after the end: %+v", c)
	}
}

// testRace decides one request 64 times at once: one decision counts, and the others learn the result.
func testRace(t *testing.T, b Backend) {
	s := b.Open(t)
	events := []permissions.Transition{
		allow(), vote(permissions.Deny), permissions.Expire{At: noon.Add(timeout)},
		permissions.Withdraw{By: "uid:1000", At: noon.Add(time.Minute)},
	}
	for round := range 8 {
		r := open(t, s, ask(numbered(round)))
		before := len(entries(t, s))
		var mu sync.Mutex
		var winners []permissions.Change
		var losers []*permissions.SettledError
		together(64, func(n int) {
			c, err := s.Apply(t.Context(), r.ID, events[n%len(events)])
			var settled *permissions.SettledError
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				winners = append(winners, c)
			case errors.As(err, &settled):
				losers = append(losers, settled)
			default:
				t.Error(err)
			}
		})
		if len(winners) != 1 || !winners[0].Settled() {
			t.Fatalf("%d winners", len(winners))
		}
		for _, l := range losers {
			same(t, "what a loser learns", l.Request, winners[0].After)
		}
		same(t, "the row read", read(t, s, r.ID), winners[0].After)
		if n := len(entries(t, s)) - before; n != 1 {
			t.Errorf("%d audit records for one decision", n)
		}
	}
	verified(t, s)
}

// testRaceToOpen asks 64 times at once: equal requests share one row, and no limit is exceeded.
func testRaceToOpen(t *testing.T, b Backend) {
	s := b.Open(t)
	const most = 10
	count := func(request func(n int) permissions.Request) int {
		var mu sync.Mutex
		made := 0
		together(64, func(n int) {
			o := opening(request(n))
			o.Total = most
			_, created, err := s.Open(t.Context(), o)
			mu.Lock()
			defer mu.Unlock()
			if created {
				made++
			}
			if err != nil {
				refusedWith(t, err, permissions.CodeLimit)
			}
		})
		return made
	}
	for _, c := range []struct {
		name    string
		request func(n int) permissions.Request
		want    int
	}{
		{"one key", func(int) permissions.Request { return ask(keyed("k")) }, 1},
		{"equal", func(int) permissions.Request { return ask() }, 1},
		{"different", func(n int) permissions.Request { return ask(numbered(n)) }, most - 2},
		{"one key, when all is full", func(int) permissions.Request { return ask(keyed("k")) }, 0},
	} {
		if got := count(c.request); got != c.want {
			t.Errorf("%s: %d were made, want %d", c.name, got, c.want)
		}
	}
	verified(t, s)
}

// together runs n at once and waits for all.
func together(n int, do func(n int)) {
	var group sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		group.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	group.Wait()
}
