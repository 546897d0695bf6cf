package engine_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/rules"
)

// coder is an agent with a token, on this machine.
var coder = permissions.Caller{Name: "token:coder", UID: askerUID}

// trustEnv has a token of coder, of which fay has allowed a call.
func trustEnv(t *testing.T, s engine.Settings, others ...connectors.Connector) (*env, *phone) {
	t.Helper()
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, s, append(others, f)...)
	if _, _, err := st.CreateToken(t.Context(), boss, "coder", "", 0); err != nil {
		t.Fatal(err)
	}
	view, err := st.Begin(t.Context(), coder, bash("npm test"))
	if err != nil {
		t.Fatal(err)
	}
	st.shown(f.Memory, 1)
	f.must(t, view.Request.ID, allow())
	return st, f
}

// trusts takes both steps.
func (s *env) trusts(f *phone) permissions.Grant {
	s.t.Helper()
	_, err := s.TrustAgent(s.t.Context(), fayAt(f.Name()), "coder", 30*time.Minute, false)
	refused(s.t, err, permissions.CodeRule)
	g, err := s.TrustAgent(s.t.Context(), fayAt(f.Name()), "coder", 30*time.Minute, true)
	if err != nil || !g.IsTrust() || g.Until.Sub(g.CreatedAt) != 30*time.Minute {
		s.t.Fatalf("%+v, %v", g, err)
	}
	return g
}

// runs reports whether a call of coder runs unasked; what is asked is withdrawn.
func (s *env) runs(q permissions.Request) bool {
	s.t.Helper()
	return s.runsFor(coder, q)
}

func (s *env) runsFor(caller permissions.Caller, q permissions.Request) bool {
	s.t.Helper()
	view, err := s.Begin(s.t.Context(), caller, q)
	if err != nil {
		s.t.Fatal(err)
	}
	if r := view.Request; r.State != permissions.Pending {
		return r.State == permissions.Approved && r.DecidedVia == permissions.ViaGrant && len(r.Grants) == 1
	}
	if _, err := s.Withdraw(s.t.Context(), caller, view.Request.ID); err != nil {
		s.t.Fatal(err)
	}
	return false
}

// written is a call of a hook that writes a file, of which its hook says where it leads.
func written(file, leads string) permissions.Request {
	q := bash("true")
	q.Tool = "Write"
	q.Input, _ = json.Marshal(map[string]string{"file_path": file, "content": "x"})
	of := rules.Call{Dialect: q.Hook, Tool: q.Tool, Input: q.Input, Folder: q.Cwd, Root: q.Cwd}
	names, _, _ := rules.NamesToResolve(of, permissions.MaxLeads)
	for _, name := range names {
		q.Leads.Names[name] = name
	}
	q.Leads.Names[file] = leads
	return q
}

// TestATrustedAgentRunsWhatStaysInItsFolder and nothing else, also after a restart; a denial ends that, and the person is told what ran.
func TestATrustedAgentRunsWhatStaysInItsFolder(t *testing.T) {
	st, f := trustEnv(t, usual())
	if st.runs(bash("git status")) {
		t.Fatal("it is trusted already")
	}
	st.trusts(f)
	linked := bash("cat link/passwd")
	linked.Leads.Names["/srv/code/link/passwd"] = "/etc/passwd"
	elsewhere := bash("cat a.go")
	elsewhere.Cwd, elsewhere.Leads.Root = "/srv/other", "/srv/other"
	for range 2 {
		for name, q := range map[string]permissions.Request{
			"a command that reads": bash("cat a.go | head -3"), "git": bash("git status"), "an edit": written("/srv/code/a.go", "/srv/code/a.go"),
		} {
			if !st.runs(q) {
				t.Errorf("%s is asked about", name)
			}
		}
		for name, q := range map[string]permissions.Request{
			"the network": bash("curl https://example.org"), "what cannot be read": bash("cat $(cat list)"), "half of it": bash("cat a.go; make"),
			"a program of its own": bash("./run.sh"), "high risk": bash("rm -rf ."), "a relative way out": bash("cat ../other/a.go"),
			"a write out": bash("cat a.go > ../b.go"), "an absolute way out": bash("cat /etc/passwd"), "a link out": linked,
			"an edit by a link":          written("/srv/code/b.go", "/etc/b.go"),
			"what runs later":            written("/srv/code/.git/hooks/x", "/srv/code/.git/hooks/x"),
			"an edit that leads nowhere": written("/srv/code/c.go", ""), "another folder": elsewhere, "tags": network("docs"),
		} {
			if st.runs(q) {
				t.Errorf("%s runs", name)
			}
		}
		f = newPhone(fay, "fays-phone")
		st.restart(f)
	}
	entries, err := st.rows.Audit(t.Context(), "", 0, 1000)
	if err != nil || !slices.ContainsFunc(entries, func(e permissions.Entry) bool {
		return e.Type == permissions.RequestCreated && strings.HasSuffix(e.Detail["rule"], ", trusted")
	}) {
		t.Errorf("the audit does not say so, %v", err)
	}
	view, err := st.Begin(t.Context(), coder, bash("make"))
	if err != nil {
		t.Fatal(err)
	}
	f.must(t, view.Request.ID, permissions.Deny)
	if n := f.notice(t); n.About != permissions.AboutRevoked || !n.Grant.IsTrust() || len(n.Ran) != 6 {
		t.Errorf("fay is told of %s, and that %d ran", n.About, len(n.Ran))
	}
	if st.runs(bash("git status")) {
		t.Error("it is trusted after a denial")
	}
	if _, err := st.Verify(t.Context(), boss); err != nil {
		t.Error(err)
	}
}

// TestALockSuspendsTheRulesOfItsPerson, and trust, until somebody unlocks them.
func TestALockSuspendsTheRulesOfItsPerson(t *testing.T) {
	st, f := trustEnv(t, usual())
	st.trusts(f)
	if _, err := st.Lock(t.Context(), boss, "fay", time.Time{}); err != nil {
		t.Fatal(err)
	}
	if st.runs(bash("git status")) {
		t.Error("what a locked person trusts runs")
	}
	if _, _, err := st.Unlock(t.Context(), boss, "fay"); err != nil {
		t.Fatal(err)
	}
	if !st.runs(bash("git status")) {
		t.Error("it does not run after the lock")
	}
}

// TestTheEndOfTrustIsTold with what ran, at its time; a stop ends it, too.
func TestTheEndOfTrustIsTold(t *testing.T) {
	st, f := trustEnv(t, usual())
	st.trusts(f)
	st.runs(bash("git status"))
	st.advance(31 * time.Minute)
	if n := f.notice(t); n.About != permissions.AboutEnded || len(n.Ran) != 1 {
		t.Errorf("fay is told of %s, and that %d ran", n.About, len(n.Ran))
	}
	if st.runs(bash("git status")) {
		t.Error("it does not end")
	}
	st.trusts(f)
	if _, _, err := st.StopAgent(t.Context(), fayAt(f.Name()), "coder"); err != nil {
		t.Fatal(err)
	}
	if _, err := st.ResumeAgent(t.Context(), fayAt(f.Name()), "coder"); err != nil {
		t.Fatal(err)
	}
	if st.runs(bash("git status")) {
		t.Error("a stop does not end it")
	}
	st.trusts(f)
	if _, err := st.StopAll(t.Context(), boss); err != nil {
		t.Fatal(err)
	}
	if err := st.Resume(t.Context(), boss); err != nil {
		t.Fatal(err)
	}
	if st.runs(bash("git status")) {
		t.Error("a stop of everything does not end it")
	}
}

// TestWhomNobodyCanTrust: an unproven name, a route with a quorum, too long, without anything that was allowed, or by another person.
func TestWhomNobodyCanTrust(t *testing.T) {
	st, f := trustEnv(t, usual())
	ctx, who := t.Context(), fayAt("fays-phone")
	view, err := st.Begin(ctx, self, bash("npm test"))
	if err != nil {
		t.Fatal(err)
	}
	st.shown(f.Memory, 2)
	f.must(t, view.Request.ID, allow())
	for name, c := range map[string]struct {
		from connectors.Identity
		name string
		span time.Duration
		code permissions.Code
	}{
		"an account": {who, "uid:1000", time.Hour, permissions.CodeNoAnswer}, "too long": {who, "coder", 3 * time.Hour, permissions.CodeNoAnswer},
		"no time": {who, "coder", 0, permissions.CodeNoAnswer}, "another person": {samAt, "coder", time.Hour, permissions.CodeUnknown},
		"whoever allowed nothing": {boss, "coder", time.Hour, permissions.CodeNoAnswer}, "nobody": {who, "x", time.Hour, permissions.CodeUnknown},
	} {
		for range 2 {
			if _, err := st.TrustAgent(ctx, c.from, c.name, c.span, true); permissions.CodeOf(err) != c.code {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	_, err = st.TrustAgent(ctx, who, "coder", time.Hour, false)
	refused(t, err, permissions.CodeRule)
	st.advance(3 * time.Minute)
	_, err = st.TrustAgent(ctx, who, "coder", time.Hour, true) // the first step is too long ago
	refused(t, err, permissions.CodeRule)
	st.trusts(f)
	two := usual()
	two.Routes = append([]engine.Route{{Tools: []string{"Write"}, Ask: []string{"fay", "sam"}, Quorum: 2}}, two.Routes...)
	st.Configure(two)
	if !st.runs(bash("git status")) || st.runs(written("/srv/code/a.go", "/srv/code/a.go")) {
		t.Error("a route that takes two people is trusted, or the other one is not")
	}
	moved := usual()
	moved.Routes = []engine.Route{{Ask: []string{"sam"}}}
	if st.Configure(moved); st.runs(bash("git status")) {
		t.Error("what sam alone decides by now is trusted by fay")
	}
}

// TestTheSecondStepOfTrustIsHeldToWhatIsSoThen: what changed since the first is looked at, and one first step is taken once.
func TestTheSecondStepOfTrustIsHeldToWhatIsSoThen(t *testing.T) {
	others := func(ask []string, quorum int) func(*env) {
		return func(st *env) {
			now := st.settings
			now.Routes = []engine.Route{{Ask: ask, Quorum: quorum}}
			st.Configure(now)
		}
	}
	for name, happens := range map[string]func(st *env){
		"another route":  others([]string{"sam"}, 1),
		"several decide": others([]string{"fay", "sam"}, 2),
		"a lock":         func(st *env) { st.lock(boss, "fay") },
		"a lock that is over": func(st *env) {
			st.lock(boss, "fay")
			if _, _, err := st.Unlock(t.Context(), boss, "fay"); err != nil {
				t.Fatal(err)
			}
		},
		"too late": func(st *env) { st.advance(3 * time.Minute) },
		"a denial, the last word": func(st *env) {
			view, err := st.Begin(t.Context(), coder, bash("make"))
			if err == nil {
				_, err = st.OnPermission(t.Context(), connectors.Decision{
					Request: view.Request.ID, Answer: permissions.Deny, From: fayAt("fays-phone"),
				})
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"a stop that is over": func(st *env) {
			_, _, err := st.StopAgent(t.Context(), fayAt("fays-phone"), "coder")
			_, failed := st.ResumeAgent(t.Context(), fayAt("fays-phone"), "coder")
			if err := errors.Join(err, failed); err != nil {
				t.Fatal(err)
			}
		},
		"gone and back": func(st *env) {
			now := st.settings
			now.People, now.Routes = now.People[1:], []engine.Route{{Ask: []string{"sam"}}}
			st.Configure(now)
			st.Configure(st.settings)
		},
		"gone": func(st *env) {
			now := st.settings
			now.People, now.Routes = now.People[1:], []engine.Route{{Ask: []string{"sam"}}}
			st.Configure(now)
		},
	} {
		st, f := trustEnv(t, usual())
		_, err := st.TrustAgent(t.Context(), fayAt(f.Name()), "coder", 30*time.Minute, false)
		refused(t, err, permissions.CodeRule)
		happens(st)
		if g, err := st.TrustAgent(t.Context(), fayAt(f.Name()), "coder", 30*time.Minute, true); err == nil {
			t.Errorf("%s: %+v", name, g)
		}
	}
	st, f := trustEnv(t, usual())
	st.trusts(f)
	_, err := st.TrustAgent(t.Context(), fayAt(f.Name()), "coder", 30*time.Minute, true)
	refused(t, err, permissions.CodeRule)
}
