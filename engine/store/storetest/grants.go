package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// tapped is the time of vote.
var tapped = noon.Add(time.Minute)

// grant makes people approve r for that scope and returns the new grant.
func grant(t *testing.T, s engine.Store, scope permissions.Scope, r permissions.Request) permissions.Grant {
	t.Helper()
	open(t, s, r)
	var c permissions.Change
	for _, person := range r.Asked {
		c = apply(t, s, r.ID, by(person, vote(permissions.Allow(scope))))
	}
	if len(c.Grants) != 1 {
		t.Fatalf("%d grants", len(c.Grants))
	}
	return c.Grants[0]
}

// under is a request that grants answered at a time.
func under(when time.Time, grants ...permissions.Grant) func(*permissions.Request) {
	return func(r *permissions.Request) {
		at(when)(r)
		r.State, r.Answer, r.Scope = permissions.Approved, permissions.Allow(permissions.Once), permissions.Once
		r.DecidedVia, r.DecidedAt, r.Deadline, r.Asked, r.Quorum = permissions.ViaGrant, when, when, nil, 0
		for _, g := range grants {
			r.Grants = append(r.Grants, g.ID)
		}
	}
}

func readGrant(t *testing.T, s engine.Store, id permissions.ID) permissions.Grant {
	t.Helper()
	g, err := s.Grant(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func ran(t *testing.T, s engine.Store, g permissions.Grant, limit int) []permissions.Request {
	t.Helper()
	found, err := s.RanUnder(t.Context(), g.ID, limit)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// since are the audit records after the first n.
func since(t *testing.T, s engine.Store, n int) (records []permissions.Record) {
	t.Helper()
	for _, e := range entries(t, s)[n:] {
		records = append(records, e.Record)
	}
	return records
}

func testGrants(t *testing.T, b Backend) {
	s := b.Open(t)
	caller := permissions.CallerUID(1000).Name
	var made []permissions.Grant
	for n, scope := range []permissions.Scope{permissions.Session, permissions.For(15 * time.Minute)} {
		made = append(made, grant(t, s, scope, ask(numbered(n))))
	}
	made = append(made, grant(t, s, permissions.SessionTool, ask(func(r *permissions.Request) {
		r.Kind, r.Tags, r.Reason, r.Tool, r.Input = permissions.KindTool, nil, "", "fetch_url", []byte(`{"url":"x"}`)
	})))
	other := grant(t, s, permissions.Session, ask(func(r *permissions.Request) { r.Caller = permissions.CallerUID(1001) }))
	for _, c := range []struct {
		name   string
		caller string
		now    time.Time
		want   []permissions.Grant
	}{
		{"at once", caller, tapped, made},
		{"just before the end", caller, tapped.Add(15*time.Minute - 1), made},
		{"after the end", caller, tapped.Add(15 * time.Minute), []permissions.Grant{made[0], made[2]}},
		{"of another", permissions.CallerUID(1001).Name, tapped, []permissions.Grant{other}},
		{"of nobody", "uid:7", tapped, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := s.Grants(t.Context(), c.caller, c.now)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "the grants", sortGrants(got), sortGrants(slices.Clone(c.want)))
		})
	}
	same(t, "one grant", readGrant(t, s, made[1].ID), made[1])
	_, err := s.Grant(t.Context(), "01J0000000000000000000NONE")
	refusedWith(t, err, permissions.CodeUnknown)

	before := len(entries(t, s))
	apply(t, s, other.Request, permissions.Void{By: "fay", Via: "cli", At: tapped})
	if left, err := s.Grants(t.Context(), permissions.CallerUID(1001).Name, tapped); err != nil || len(left) != 0 {
		t.Errorf("an approval that was taken back left %d grants, %v", len(left), err)
	}
	records := since(t, s, before)
	if len(records) != 2 || records[0].Type != permissions.RequestVoided {
		t.Fatalf("taking it back is told by %v", records)
	}
	same(t, "the record of its grant", records[1], permissions.Record{
		Type: permissions.GrantRevoked, At: tapped, Request: other.Request, Actor: "fay", Via: "cli",
		Detail: map[string]string{"grant": string(other.ID), "used": "0"},
	})
}

func testGrantsInForce(t *testing.T, b Backend) {
	s := b.Open(t)
	second := func(r *permissions.Request) { r.Caller = permissions.CallerUID(1001) }
	fays := grant(t, s, permissions.Session, ask())
	young := ask(of("kim"), numbered(9))
	open(t, s, young)
	said := by("kim", vote(permissions.Allow(permissions.Session)))
	said.Vote.At = tapped.Add(time.Minute)
	kims := apply(t, s, young.ID, said).Grants[0]
	both := grant(t, s, permissions.For(15*time.Minute), ask(two, second))
	always := ask(of("sam"), numbered(3))
	always.Options = append(always.Options, permissions.Option{ID: permissions.Allow(permissions.Always)})
	sams := grant(t, s, permissions.Always, always)
	revoked := grant(t, s, permissions.Session, ask(two, numbered(4)))
	if _, err := s.Revoke(t.Context(), revoked.ID, "fay", "cli", tapped, 1); err != nil {
		t.Fatal(err)
	}
	late := tapped.Add(15 * time.Minute)
	for _, c := range []struct {
		name, asked string
		now         time.Time
		want        []permissions.Grant
	}{
		{"all", "", tapped, []permissions.Grant{fays, both, sams, kims}},
		{"fay's", "fay", tapped, []permissions.Grant{fays, both}},
		{"sam's", "sam", tapped, []permissions.Grant{both, sams}},
		{"of nobody", "lea", tapped, nil},
		{"all, later", "", late, []permissions.Grant{fays, sams, kims}},
		{"sam's, later", "sam", late, []permissions.Grant{sams}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := s.GrantsInForce(t.Context(), c.asked, c.now, "", 9)
			if err != nil {
				t.Fatal(err)
			}
			var paged []permissions.Grant
			for page := got[:0:0]; len(paged) == 0 || len(page) > 0; paged = append(paged, page...) {
				after := permissions.ID("")
				if len(paged) > 0 {
					after = paged[len(paged)-1].ID
				}
				if page, err = s.GrantsInForce(t.Context(), c.asked, c.now, after, 2); err != nil || len(page) > 2 {
					t.Fatalf("%d on a page of two, %v", len(page), err)
				}
				if len(page) == 0 {
					break
				}
			}
			same(t, "its pages", paged, got)
			for n := 1; n < len(got)+2; n++ {
				last, err := s.GrantsInForce(t.Context(), c.asked, c.now, permissions.ID(fmt.Sprintf("-%d", n)), 9)
				if err != nil {
					t.Fatal(err)
				}
				same(t, fmt.Sprintf("the last %d", n), last, got[max(len(got)-n, 0):])
			}
			if n := len(got); c.asked == "" && n > 0 && got[n-1].ID != kims.ID {
				t.Error("the youngest is not the last")
			}
			same(t, "the grants", sortGrants(got), sortGrants(slices.Clone(c.want)))
		})
	}
}

// testRuleUses: a use puts off the end of a rule's grant, and of no other; a use in the past puts nothing forward.
func testRuleUses(t *testing.T, b Backend) {
	s := b.Open(t)
	rule := permissions.NewGrantedRule([]string{"run go vet ./..."}, "/srv", "")
	asked := ask()
	asked.Options = append(asked.Options, permissions.Option{ID: permissions.Allow(permissions.Rule)})
	open(t, s, asked)
	voted := vote(permissions.Allow(permissions.Rule))
	voted.Vote.Rule = rule
	voted.Use = &permissions.Use{At: tapped}
	first := apply(t, s, asked.ID, voted).Grants[0]
	suggested := permissions.NewGrantedRule([]string{"run go test ./..."}, "/srv", permissions.Suggested)
	give := permissions.Give{Grant: permissions.NewID(tapped), Rule: suggested, By: "fay", Via: "cli", At: tapped}
	before := len(entries(t, s))
	second := apply(t, s, asked.ID, give).Grants[0]
	same(t, "one that was suggested", readGrant(t, s, second.ID), second)
	if records := since(t, s, before); len(records) != 1 || records[0].Type != permissions.GrantAdded || records[0].Actor != "fay" {
		t.Errorf("giving it is told by %v", records)
	}
	for n, c := range []struct{ at, until time.Time }{
		{tapped.Add(time.Hour), tapped.Add(time.Hour + permissions.RuleIdle)},
		{tapped, tapped.Add(time.Hour + permissions.RuleIdle)}, // the clock was put back
		{tapped.Add(permissions.RuleIdle), tapped.Add(2 * permissions.RuleIdle)},
	} {
		open(t, s, ask(numbered(n), under(c.at, first)))
		if g := readGrant(t, s, first.ID); g.Used != n+1 || !g.Until.Equal(c.until) || g.Rule != rule {
			t.Errorf("after %d uses: %+v", n+1, g)
		}
	}
	same(t, "the other", readGrant(t, s, second.ID), second)
	call := ask(numbered(9))
	call.Kind, call.Tool, call.Tags = permissions.KindTool, "write_file", nil
	call.Options = append(call.Options, permissions.Option{ID: permissions.Allow(permissions.SessionTool)})
	used, unused := grant(t, s, permissions.SessionTool, call), second
	open(t, s, ask(numbered(10), under(tapped.Add(time.Hour), used)))
	if g := readGrant(t, s, used.ID); !g.Until.Equal(tapped.Add(time.Hour + permissions.SessionIdle)) {
		t.Errorf("of a session: %+v", g)
	}
	ended, _, err := s.EndGrants(t.Context(), tapped.Add(permissions.RuleIdle), 9)
	if err != nil || len(ended) != 2 || ended[0].ID != used.ID || ended[1].ID != unused.ID {
		t.Errorf("ended are %+v, %v", ended, err)
	}
	told(t, "of the rule alone", s, permissions.Notice{
		To: "fay", About: permissions.AboutEnded, Subject: unused.ID, CreatedAt: tapped.Add(permissions.RuleIdle),
	})
	if _, err := s.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// testUses: a request that grants answered is counted with its row, and a revoked grant answers none.
func testUses(t *testing.T, b Backend) {
	s := b.Open(t)
	session := grant(t, s, permissions.Session, ask())
	quarter := grant(t, s, permissions.For(15*time.Minute), ask(numbered(1)))
	var made []permissions.Request
	for n := range 3 {
		made = append(made, open(t, s, ask(numbered(n), under(tapped, session))))
	}
	with := open(t, s, ask(about("both"), under(tapped, quarter, session)))
	same(t, "under what it ran", read(t, s, with.ID).Grants, []permissions.ID{quarter.ID, session.ID})
	same(t, "newest first", ran(t, s, session, 9), []permissions.Request{with, made[2], made[1], made[0]})
	same(t, "a few", ran(t, s, session, 2), []permissions.Request{with, made[2]})
	same(t, "of the other", ran(t, s, quarter, 9), []permissions.Request{with})
	if g := readGrant(t, s, session.ID); g.Used != 4 {
		t.Errorf("used %d times", g.Used)
	}
	pending := ask(about("people have to be asked all the same"))
	pending.Grants = []permissions.ID{session.ID}
	open(t, s, pending)
	if g := readGrant(t, s, session.ID); g.Used != 4 {
		t.Errorf("a request that waits counts: %d", g.Used)
	}

	if _, err := s.Revoke(t.Context(), session.ID, "fay", "cli", tapped, 0); err != nil {
		t.Fatal(err)
	}
	stranger := under(tapped, quarter)
	for name, r := range map[string]permissions.Request{
		"revoked meanwhile": ask(about("late"), under(tapped, quarter, session)),
		"over meanwhile":    ask(about("late"), under(tapped.Add(15*time.Minute), quarter)),
		"another's":         ask(about("late"), stranger, func(r *permissions.Request) { r.Caller = permissions.CallerUID(7) }),
		"none":              ask(about("late"), under(tapped, permissions.Grant{ID: "01J0000000000000000000NONE"})),
	} {
		_, _, err := s.Open(t.Context(), opening(r))
		refusedWith(t, err, permissions.CodeUnknown)
		if _, err := s.Read(t.Context(), r.ID); err == nil {
			t.Errorf("%s: it is stored", name)
		}
	}
	if g := readGrant(t, s, quarter.ID); g.Used != 1 {
		t.Errorf("what was refused is counted: %d", g.Used)
	}
	if got := ran(t, s, permissions.Grant{ID: "01J0000000000000000000NONE"}, 9); len(got) != 0 {
		t.Errorf("under no grant ran %v", got)
	}
}
