package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/rules"
)

// A waiting call is handed the approval in the commit that approves: the row is never approved and unused in between.
func TestAnApprovalIsUsedInTheCommitOfItsDecision(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, usual(), f)
	q := network("x")
	q.Call = "one"
	call := st.ask(t.Context(), q)
	r := f.must(t, st.shown(f.Memory, 1).Request.ID, allow())
	if r.UsedAt.IsZero() || r.UsedCall == "" {
		t.Errorf("it was not used by the decision: %+v", r)
	}
	if got := st.get(call); got.Revision != r.Revision || !got.UsedAt.Equal(r.UsedAt) {
		t.Errorf("the call got revision %d, and the decision made %d", got.Revision, r.Revision)
	}
	var types []permissions.Type
	entries, err := st.rows.Audit(t.Context(), "", 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Request == r.ID {
			types = append(types, e.Type)
		}
	}
	want := []permissions.Type{permissions.RequestSettled, permissions.RequestUsed, permissions.PermissionApplied}
	if n := len(types); n < len(want) || !slices.Equal(types[n-len(want):], want) {
		t.Errorf("the audit has %v", types)
	}
}

// What the configuration forbids by now is denied: the person who would allow it, the asker and the audit are told by what, and it is no
// denial of theirs that would mute the agent.
func TestWhatIsForbiddenByNowIsDeniedByTheRule(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	settings := usual()
	settings.Limits.MutedAfter = 1
	st := newEnv(t, settings, f)
	stricter := settings
	stricter.Rules, _ = rules.Compile([]rules.Rule{{Deny: []string{"tool write_file"}, Why: "none"}})
	for i, tapped := range []bool{true, false} {
		st.Configure(settings)
		call := st.ask(t.Context(), tool("write_file", fmt.Sprintf(`{"path":"%d"}`, i)))
		id := st.shown(f.Memory, i+1).Request.ID
		st.Configure(stricter)
		if tapped {
			r, err := f.Do(t.Context(), connectors.Decision{Request: id, Answer: allow()})
			refused(t, err, permissions.CodeSettled)
			if got := card.Settled(r, card.Options{Self: "fay", Location: time.UTC}); !strings.HasPrefix(got, `⛔ Denied by rule 1, "none" · `) {
				t.Errorf("fay reads %s", got)
			}
		}
		r := st.get(call)
		if got := permissions.Result(r); r.State != permissions.Denied || got.Text != `Tool write_file is forbidden here: rule 1, "none".` {
			t.Errorf("the asker is told %+v", got)
		}
		entries, err := st.rows.Audit(t.Context(), "", 0, 99)
		settled := slices.IndexFunc(entries, func(e permissions.Entry) bool {
			return e.Request == id && e.Type == permissions.RequestSettled && e.Detail["rule"] == `rule 1, "none"` && e.Via == permissions.ViaRule
		})
		if err != nil || settled < 0 || r.Failure != entries[settled].Detail["rule"] {
			t.Errorf("the audit has %+v, %v", entries, err)
		}
	}
}

// A rule that denies a folder holds for a name that leads there, as its hook said when it asked.
func TestWhatLeadsToAFolderThatIsForbiddenByNowIsDenied(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, usual(), f)
	q := tool("Write", `{"file_path":"/srv/code/link/a","content":"x"}`)
	q.Hook, q.Cwd = "claude-code", "/srv/code"
	q.Leads = permissions.Leads{Root: "/srv/code", Names: map[string]string{
		"/srv/code": "/srv/code", "/srv/code/link": "/etc", "/srv/code/link/a": "/etc/a",
	}}
	call := st.ask(t.Context(), q)
	st.shown(f.Memory, 1)
	stricter := usual()
	stricter.Rules, _ = rules.Compile([]rules.Rule{{Deny: []string{"write /etc/**"}}})
	st.Configure(stricter)
	if r := st.get(call); r.State != permissions.Denied || r.DecidedVia != permissions.ViaRule {
		t.Errorf("it is %s via %q", r.State, r.DecidedVia)
	}
}

// What reaches a file that is the daemon's own by now cannot be allowed, and whoever tries is told so.
func TestWhatIsTheDaemonsByNowIsNotAllowed(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, usual(), f)
	q := tool("write_file", `{"path":"/srv/token"}`)
	q.Calls, q.AffectedPath = nil, "/srv/token"
	st.ask(t.Context(), q)
	id := st.shown(f.Memory, 1).Request.ID
	now := usual()
	now.Own = []string{"/srv/token"}
	st.Configure(now)
	_, err := f.Do(t.Context(), connectors.Decision{Request: id, Answer: allow()})
	refused(t, err, permissions.CodeOwnFiles)
	st.mustBePending(id)
}

// narrow is a channel that can show nothing whole.
type narrow struct{ *phone }

func (narrow) Fits(connectors.Prompt) bool { return false }

func TestNothingIsAllowedThatCannotHaveBeenShownWhole(t *testing.T) {
	t.Run("B1/not shown whole", func(t *testing.T) {
		f := narrow{newPhone(fay, "fays-phone")}
		st := newEnv(t, usual(), f)
		call := st.ask(t.Context(), network("x"))
		id := st.shown(f.Memory, 1).Request.ID
		_, err := f.Do(t.Context(), connectors.Decision{Request: id, Answer: allow()})
		refused(t, err, permissions.CodeTooBig)
		f.must(t, id, permissions.Deny)
		if r := st.get(call); r.State != permissions.Denied {
			t.Errorf("it is %s", r.State)
		}
	})
}
