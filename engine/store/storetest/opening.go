package storetest

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// everything is a request with every stored field set, to values that a careless store would change.
func everything(t *testing.T) permissions.Request {
	t.Helper()
	write, err := permissions.ParseTag("@write:/srv/www <&> ü")
	if err != nil {
		t.Fatal(err)
	}
	when := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Second).Add(123456 * time.Microsecond) }
	input := json.RawMessage(`{"a":"<b> & \" é","n":1e400,"z":9007199254740993}`)
	r := permissions.Request{
		ID: permissions.NewID(noon), Revision: 7, Version: 1, Kind: permissions.KindTool, Mode: permissions.ModeConfirm,
		Caller: permissions.Caller{Name: "token:deploy", UID: permissions.AnyUID}, Agent: "deploy-1", Claimed: true,
		Session: "s <1>", Host: "vps", Cwd: "/srv/ci", Tags: []permissions.Tag{permissions.Network, write},
		Tool: "run_command", Input: input, AffectedPath: "/srv/www/index.html",
		Calls: []permissions.Call{
			{N: 1, Tool: "write_file", Input: input, AffectedPath: "/a", Answer: permissions.Deny, Comment: "no <b>"},
			{N: 2, Tool: "read_file", Input: json.RawMessage(`null`), Rows: []permissions.Rows{{}}},
		},
		EnvNames: []string{"HOME", "A=\"b\""}, EnvHash: "ab12", Message: "line\nline\u2028", Details: "x\x00y</script>",
		Reason: "deploy v42", Choices: []string{"one", "two, \"three\""}, Widest: permissions.For(90 * time.Second),
		Held: []permissions.Tag{permissions.Network}, HighRisk: true, Background: true, Foreground: "helper", Step: 3,
		Key: "k-1", Options: []permissions.Option{{ID: permissions.Deny, Label: "Deny <it>"}}, Asked: []string{"fay", "sam"},
		Group: "telegram:-1/7", Hook: "gemini", Folder: "device 1, inode 2",
		Quorum: 2, EscalateTo: []string{"kim", `the "boss"`}, EscalateAt: when(450),
		Reminders: []time.Time{when(300), when(600)}, Grants: []permissions.ID{"of a grant"}, ExceededRate: 600,
		Rows:      []permissions.Rows{{First: 7, Text: "a <b>\n\tc", After: 2}},
		CreatedAt: when(0), Deadline: when(900),
		State: permissions.Approved, Answer: permissions.Allow(permissions.Always), Scope: permissions.Always,
		Comment: "fine", DecidedBy: "fay", DecidedVia: "telegram", DecidedAt: when(1),
		Votes: []permissions.Vote{{By: "fay"}}, TimedOut: true, Defaulted: true, Failure: "blocked",
		UsedAt: when(2), UsedCall: "call-1", CollectedAt: when(3), VoidAt: when(4), VoidedBy: "sam",
		LapsedAt: when(5), LeftAt: when(6), EarlierAt: when(-9),
		Number: 1, WantedTimeout: time.Minute, HookStage: permissions.HookBefore, Harmless: true, FollowUpExpected: true,
		ProcessTimeout: time.Minute, Call: "call-0", OnlyTitle: true,
		Ruled: []permissions.Ruling{{Effect: permissions.RuleAsks, Rule: 1, Why: "x", Reason: "y", Exact: true,
			Leads: &permissions.Leads{Names: map[string]string{"/srv/a": "/etc/<b>"}}}},
		Leads: permissions.Leads{Root: "/srv"}, SessionTitle: "Cart \"sums\"", LastPrompt: "fix\n<it>",
	}
	r.Digest = permissions.ComputeDigest(r)
	for field, v := range reflect.ValueOf(r).Fields() {
		if v.IsZero() {
			t.Fatalf("%s is not set: give it a value here, and a column in the store", field.Name)
		}
	}
	return r
}

func testOpen(t *testing.T, b Backend) {
	s := b.Open(t)
	r := everything(t)
	earlier := open(t, s, ask(func(earlier *permissions.Request) { earlier.Caller = r.Caller }))
	r.Grants = []permissions.ID{apply(t, s, earlier.ID, vote(permissions.Allow(permissions.Session))).Grants[0].ID}
	got := open(t, s, r)
	want := r
	want.Number, want.Votes, want.WantedTimeout, want.HookStage, want.Harmless = got.Number, nil, 0, "", false
	want.FollowUpExpected, want.OnlyTitle, want.ProcessTimeout, want.Call = false, false, 0, ""
	want.Leads = permissions.Leads{}
	same(t, "the row returned", got, want)
	same(t, "the row read", read(t, s, r.ID), want)
	if permissions.ComputeDigest(read(t, s, r.ID)) != r.Digest {
		t.Error("what is read has another digest than what was asked")
	}

	fine := ask(at(noon.Add(999 * time.Nanosecond)))
	fine.EscalateAt, fine.Reminders = fine.CreatedAt.Add(time.Minute), []time.Time{fine.CreatedAt.Add(time.Minute)}
	same(t, "times finer than microseconds", open(t, s, fine), read(t, s, fine.ID))
	if second := read(t, s, fine.ID); second.Number != want.Number+1 {
		t.Errorf("the next request has number %d, the one before %d", second.Number, want.Number)
	}
	later := noon.Add(10 * time.Second)
	for _, state := range []permissions.State{permissions.Pending, permissions.Undeliverable} {
		o := opening(ask(about("what is "+string(state)), func(r *permissions.Request) { r.State = state }))
		o.Wait = permissions.Wait{Kind: permissions.WaitCancelled, Until: later}
		if _, _, err := s.Open(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if kept, err := s.Waits(t.Context()); err != nil || len(kept) != 1 || !kept[0].Until.Equal(later) {
			t.Errorf("after %s is opened, there wait %+v, %v", state, kept, err)
		}
	}
	_, err := s.Read(t.Context(), "01J0000000000000000000NONE")
	refusedWith(t, err, permissions.CodeUnknown)
}

// hooked makes it a question of an agent's hook.
func hooked(r *permissions.Request) { r.Hook = "codex" }

func testJoin(t *testing.T, b Backend) {
	token := permissions.Caller{Name: "token:x", UID: permissions.NoUID}
	for name, c := range map[string]struct {
		first, second permissions.Request
		between       permissions.Transition
		joins         bool
	}{
		"equal":         {first: ask(), second: ask(at(noon.Add(time.Minute))), joins: true},
		"other content": {first: ask(), second: ask(about("something else"))},
		"other session": {first: ask(), second: ask(func(r *permissions.Request) { r.Session = "s-2" })},
		"other caller":  {first: ask(), second: ask(func(r *permissions.Request) { r.Caller = token })},
		"settled":       {first: ask(), second: ask(at(noon.Add(2 * time.Minute))), between: allow(), joins: true},
		"denied":        {first: ask(), second: ask(at(noon.Add(2 * time.Minute))), between: vote(permissions.Deny), joins: true},
		"cancelled by a person": {
			first: ask(), second: ask(at(noon.Add(2 * time.Minute))), between: permissions.Withdraw{By: "fay", At: noon}, joins: true,
		},
		"withdrawn": {first: ask(), second: ask(at(noon.Add(2 * time.Minute))), between: permissions.Withdraw{At: noon}},
		"undelivered": {
			first: ask(), second: ask(at(noon.Add(2 * time.Minute))),
			between: permissions.GiveUp{Reason: "x", At: noon}, joins: true,
		},
		"expired": {
			first: ask(), second: ask(at(noon.Add(timeout + time.Minute))), between: permissions.Expire{At: noon.Add(timeout)}, joins: true,
		},
		"expired, late": {
			first: ask(), second: ask(at(noon.Add(timeout + redeem))), between: permissions.Expire{At: noon.Add(timeout)},
		},
		"denied, other caller": {
			first: ask(), second: ask(func(r *permissions.Request) { r.Caller = token }), between: vote(permissions.Deny),
		},
		"denied, nobody knows who": {
			first:   ask(func(r *permissions.Request) { r.Caller.Name = permissions.Anonymous }),
			second:  ask(func(r *permissions.Request) { r.Caller.Name = permissions.Anonymous }),
			between: vote(permissions.Deny),
		},
		"overdue":                 {first: ask(), second: ask(at(noon.Add(timeout)))},
		"the first keyed":         {first: ask(keyed("k")), second: ask()},
		"only the second":         {first: ask(), second: ask(keyed("k"))},
		"settled, by a hook":      {first: ask(hooked), second: ask(hooked, at(noon.Add(2*time.Minute))), between: allow(), joins: true},
		"settled, then by a hook": {first: ask(), second: ask(hooked, at(noon.Add(2*time.Minute))), between: allow(), joins: true},
		"settled, then not by it": {first: ask(hooked), second: ask(at(noon.Add(2 * time.Minute))), between: allow(), joins: true},
		"denied, by a hook": {
			first: ask(hooked), second: ask(hooked, at(noon.Add(2*time.Minute))), between: vote(permissions.Deny), joins: true,
		},
		"settled, by a hook, late":  {first: ask(hooked), second: ask(hooked, at(noon.Add(time.Minute+redeem))), between: allow()},
		"settled, by another hook":  {first: ask(hooked), second: ask(hooked, about("else"), at(noon.Add(2*time.Minute))), between: allow()},
		"settled before, by a hook": {first: ask(hooked), second: ask(hooked, at(noon.Add(-time.Hour))), between: allow()},
		"nobody knows who": {
			first:  ask(func(r *permissions.Request) { r.Caller.Name = permissions.Anonymous }),
			second: ask(func(r *permissions.Request) { r.Caller.Name = permissions.Anonymous }),
		},
		"held meanwhile": {first: ask(), second: ask(func(r *permissions.Request) {
			r.State, r.DecidedVia, r.DecidedAt = permissions.Approved, permissions.ViaGrant, noon
		})},
	} {
		t.Run(name, func(t *testing.T) {
			s := b.Open(t)
			first := open(t, s, c.first)
			if c.between != nil {
				apply(t, s, first.ID, c.between)
			}
			before := len(entries(t, s))
			got, created, err := s.Open(t.Context(), opening(c.second))
			if err != nil {
				t.Fatal(err)
			}
			if created == c.joins {
				t.Errorf("created is %v", created)
			}
			if c.joins {
				same(t, "the request joined", got, read(t, s, first.ID))
				if after := len(entries(t, s)); after != before {
					t.Errorf("joining wrote %d audit records", after-before)
				}
			}
		})
	}
}

func testKeys(t *testing.T, b Backend) {
	decided := noon.Add(time.Minute) // by policy
	other := ask(keyed("k"), about("other"), at(decided))
	before := func(d time.Duration) permissions.Request { return ask(keyed("k"), at(decided.Add(-d))) }
	for name, c := range map[string]struct {
		second  permissions.Request
		between permissions.Transition
		joins   bool
		code    permissions.Code
	}{
		"pending":               {second: ask(keyed("k")), joins: true},
		"pending and overdue":   {second: ask(keyed("k"), at(noon.Add(time.Hour))), joins: true},
		"settled":               {second: ask(keyed("k"), at(decided)), between: allow(), joins: true},
		"denied":                {second: ask(keyed("k"), at(decided)), between: vote(permissions.Deny), joins: true},
		"settled, window ends":  {second: ask(keyed("k"), at(decided.Add(redeem-1))), between: allow(), joins: true},
		"settled, window over":  {second: ask(keyed("k"), at(decided.Add(redeem))), between: allow()},
		"a clock a bit behind":  {second: before(time.Minute), between: allow(), joins: true},
		"a clock set back":      {second: before(time.Minute + time.Microsecond), between: allow()},
		"other key":             {second: ask(keyed("l"))},
		"other caller":          {second: ask(keyed("k"), func(r *permissions.Request) { r.Caller.Name = "token:x" })},
		"other content":         {second: ask(keyed("k"), about("other")), code: permissions.CodeKeyTaken},
		"other content later":   {second: other, between: allow(), code: permissions.CodeKeyTaken},
		"other content at last": {second: ask(keyed("k"), about("other"), at(decided.Add(redeem))), between: allow()},
	} {
		t.Run(name, func(t *testing.T) {
			s := b.Open(t)
			first := open(t, s, ask(keyed("k")))
			if c.between != nil {
				first = apply(t, s, first.ID, c.between).After
			}
			got, created, err := s.Open(t.Context(), opening(c.second))
			switch {
			case c.code != "":
				refusedWith(t, err, c.code)
				return
			case err != nil:
				t.Fatal(err)
			case created == c.joins:
				t.Errorf("created is %v", created)
			}
			if c.joins {
				same(t, "the request found", got, first)
				return
			}
			var earlier time.Time
			if c.between != nil && c.second.Key == first.Key && c.second.Caller == first.Caller && got.Digest == first.Digest {
				earlier = first.DecidedAt
			}
			if !got.EarlierAt.Equal(earlier) || !read(t, s, got.ID).EarlierAt.Equal(earlier) {
				t.Errorf("it says that it was answered at %v before, want %v", got.EarlierAt, earlier)
			}
			again, created, err := s.Open(t.Context(), opening(ask(keyed(c.second.Key), func(r *permissions.Request) {
				id := r.ID
				*r = c.second
				r.ID = id
			})))
			if err != nil || created || again.ID != c.second.ID {
				t.Errorf("the key does not find the newer request: %s, created %v, %v", again.ID, created, err)
			}
			if kept := read(t, s, first.ID); kept.Key != "k" {
				t.Errorf("the first request lost its key: %q", kept.Key)
			}
		})
	}
}

func testLimits(t *testing.T, b Backend) {
	s := b.Open(t)
	limited := func(r permissions.Request) (permissions.Request, error) {
		o := opening(r)
		o.PerCaller, o.Total = 2, 3
		stored, _, err := s.Open(t.Context(), o)
		return stored, err
	}
	another := func(r *permissions.Request) { r.Caller = permissions.CallerUID(1001) }
	third := func(r *permissions.Request) { r.Caller = permissions.CallerUID(1002) }

	first, err := limited(ask(numbered(1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := limited(ask(numbered(2))); err != nil {
		t.Fatal(err)
	}
	_, err = limited(ask(numbered(3)))
	refusedWith(t, err, permissions.CodeLimit)
	if _, err := limited(ask(numbered(1))); err != nil {
		t.Errorf("joining is refused: %v", err)
	}
	if _, err := limited(ask(another, numbered(1))); err != nil {
		t.Errorf("another caller is refused: %v", err)
	}
	_, err = limited(ask(third))
	refusedWith(t, err, permissions.CodeLimit)
	if n := len(entries(t, s)); n != 3 {
		t.Errorf("%d records, want one for each of the three that wait", n)
	}
	held := ask(numbered(4), func(r *permissions.Request) {
		r.State, r.DecidedVia, r.DecidedAt = permissions.Approved, permissions.ViaGrant, noon
	})
	if _, err := limited(held); err != nil {
		t.Errorf("what nobody has to answer is refused: %v", err)
	}
	s = b.Reopen(t, s)
	_, err = limited(ask(third))
	refusedWith(t, err, permissions.CodeLimit)
	apply(t, s, first.ID, allow())
	if _, err := limited(ask(numbered(3))); err != nil {
		t.Errorf("after one was answered: %v", err)
	}
}

// testRest: what was denied twice is not asked again for a while.
func testRest(t *testing.T, b Backend) {
	const coolDown = 10 * time.Minute
	again := func(s engine.Store, minute time.Duration, change ...func(*permissions.Request)) error {
		o := opening(ask(append(change, at(noon.Add(minute*time.Minute)))...))
		o.CoolDown = coolDown
		r, created, err := s.Open(t.Context(), o)
		if err == nil && created && r.State == permissions.Pending {
			apply(t, s, r.ID, permissions.Withdraw{At: r.CreatedAt}) // so that it does not affect the next
		}
		return err
	}
	deny := func(s engine.Store, minute time.Duration, a permissions.Answer) {
		r := open(t, s, ask(at(noon.Add(minute*time.Minute))))
		said := vote(a)
		said.Vote.At = noon.Add(minute * time.Minute)
		apply(t, s, r.ID, said)
		apply(t, s, r.ID, permissions.Collect{At: said.Vote.At})
	}
	s := b.Open(t)
	deny(s, 0, permissions.Deny)
	if err := again(s, 1); err != nil {
		t.Errorf("after one denial: %v", err)
	}
	deny(s, 2, permissions.Deny)
	err := again(s, 3)
	refusedWith(t, err, permissions.CodeCoolingDown)
	var refusal *permissions.Refusal
	if errors.As(err, &refusal) && (refusal.After != 7*time.Minute || refusal.Text != permissions.CoolingDown(refusal.After).Text) {
		t.Errorf("to be tried again after %s: %q", refusal.After, refusal.Text)
	}
	refusedWith(t, again(s, 3, about("said otherwise"), func(r *permissions.Request) {
		r.Agent, r.Claimed, r.Host, r.Cwd, r.Details, r.Session = "else", true, "h", "/c", "more", "s-9"
	}), permissions.CodeCoolingDown)
	if err := again(s, 3, func(r *permissions.Request) { r.Tags = append(r.Tags, permissions.Events) }); err != nil {
		t.Errorf("something else: %v", err)
	}
	held := func(r *permissions.Request) { r.State, r.DecidedAt = permissions.Approved, r.CreatedAt }
	if err := again(s, 3, held); err != nil {
		t.Errorf("what nobody has to answer: %v", err)
	}
	if _, _, err := s.Open(t.Context(), opening(ask(at(noon.Add(3*time.Minute))))); err != nil {
		t.Errorf("without a cool-down: %v", err)
	}
	refusedWith(t, again(s, -5), permissions.CodeCoolingDown) // the clock was set back
	if err := again(s, -3*24*60); err != nil {
		t.Errorf("after the clock had been days ahead: %v", err)
	}
	s = b.Reopen(t, s)
	refusedWith(t, again(s, 9, keyed("k")), permissions.CodeCoolingDown)
	if err := again(s, 10, keyed("k")); err != nil {
		t.Errorf("when it is over: %v", err)
	}

	s = b.Open(t)
	deny(s, 0, permissions.Allow(permissions.Once))
	deny(s, 1, permissions.Deny)
	if err := again(s, 2); err != nil {
		t.Errorf("after one yes and one no: %v", err)
	}
}

// testExhausted: a caller over its prompt limit is refused new prompts, and nothing else.
func testExhausted(t *testing.T, b Backend) {
	s := b.Open(t)
	g := grant(t, s, permissions.Session, ask())
	first, second := open(t, s, ask(numbered(1))), open(t, s, ask(keyed("k"), numbered(2)))
	decided := open(t, s, ask(keyed("l"), numbered(3)))
	apply(t, s, decided.ID, allow())
	exhausted := func(r permissions.Request) (permissions.Request, bool, error) {
		o := opening(r)
		o.PromptPause = 42 * time.Second
		return s.Open(t.Context(), o)
	}
	for want, r := range map[permissions.ID]permissions.Request{
		first.ID: ask(numbered(1)), second.ID: ask(keyed("k"), numbered(2)), decided.ID: ask(keyed("l"), numbered(3)),
	} {
		if got, created, err := exhausted(r); err != nil || created || got.ID != want {
			t.Errorf("%s is not joined: %s, created %v, %v", r.Reason, got.ID, created, err)
		}
	}
	if _, created, err := exhausted(ask(about("held"), under(tapped, g))); err != nil || !created {
		t.Errorf("what nobody has to answer: created %v, %v", created, err)
	}
	_, created, err := exhausted(ask(about("new")))
	refusedWith(t, err, permissions.CodeLimit)
	var refusal *permissions.Refusal
	if errors.As(err, &refusal) && refusal.After != 42*time.Second || created {
		t.Errorf("to be tried again after %s, created %v", refusal.After, created)
	}
}

// testTakenID: a proposed id that is in use joins its request or is refused, and is no store error.
func testTakenID(t *testing.T, b Backend) {
	stranger := func(r *permissions.Request) { r.Caller = permissions.CallerUID(7) }
	for name, c := range map[string]struct {
		second  permissions.Request
		between permissions.Transition
		code    permissions.Code
	}{
		"equal":          {second: ask()},
		"settled":        {second: ask(), between: allow()},
		"denied":         {second: ask(), between: vote(permissions.Deny)},
		"with a key":     {second: ask(keyed("k"))},
		"other content":  {second: ask(about("something else")), code: permissions.CodeKeyTaken},
		"settled, other": {second: ask(numbered(1)), between: allow(), code: permissions.CodeKeyTaken},
		"another's":      {second: ask(stranger), code: permissions.CodeKeyTaken},
	} {
		t.Run(name, func(t *testing.T) {
			s := b.Open(t)
			first := open(t, s, ask())
			if c.between != nil {
				first = apply(t, s, first.ID, c.between).After
			}
			c.second.ID = first.ID
			before := len(entries(t, s))
			got, created, err := s.Open(t.Context(), opening(c.second))
			if created || len(entries(t, s)) != before {
				t.Error("it was made")
			}
			if c.code != "" {
				refusedWith(t, err, c.code)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			same(t, "the request joined", got, first)
		})
	}
}
