package card_test

import (
	"testing"
	"time"

	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

func TestSettled(t *testing.T) {
	type row = permissions.Request
	type change = func(*row)
	settled := func(kind permissions.Kind, state permissions.State, by, via string, after time.Duration, more change) row {
		return request(kind, func(r *permissions.Request) {
			r.State, r.DecidedBy, r.DecidedVia, r.DecidedAt, r.Scope = state, by, via, now.Add(after), permissions.Once
			r.Choices = []string{"blog", `the "mail"`}
			if more != nil {
				more(r)
			}
		})
	}
	scope := func(s permissions.Scope) change { return func(r *permissions.Request) { r.Scope = s } }
	answer := func(a permissions.Answer) change { return func(r *permissions.Request) { r.Answer = a } }
	quarter := permissions.For(15 * time.Minute)
	const (
		permission, tool, pause     = permissions.KindPermission, permissions.KindTool, permissions.KindPause
		clarification               = permissions.KindClarification
		approved, denied, answered  = permissions.Approved, permissions.Denied, permissions.Answered
		expired, cancelled, timeout = permissions.Expired, permissions.Cancelled, permissions.ViaTimeout
		undeliverable               = permissions.Undeliverable
	)
	for _, c := range []struct {
		r    row
		want string
	}{
		{settled(permission, approved, "fay", "terminal", 4*time.Second, nil),
			"✅ You allowed this once"},
		{settled(permission, approved, "sam", "telegram", 202*time.Second, scope(quarter)),
			"✅ Allowed for 15 minutes by sam · 14:03"},
		{settled(permission, approved, "sam", "whatsapp", time.Hour, scope(permissions.Session)),
			"✅ Allowed for this session by sam · 15:00"},
		{settled(permission, approved, "sam", "cli", 65*time.Minute, scope(permissions.Always)),
			"✅ Allowed until revoked by sam · 15:05"},
		{settled(tool, approved, "fay", "terminal", time.Minute, scope(permissions.SessionTool)),
			"✅ You allowed this tool for this session"},
		{settled(tool, approved, "fay", "terminal", 0, func(r *row) { r.Scope, r.Hook = permissions.SessionTool, "codex" }),
			"✅ You allowed this exact call for this session"},
		{settled(tool, cancelled, "", "", 0, func(r *row) { r.Hook, r.Caller = "codex", permissions.CallerUID(1000) }),
			"✖ Cancelled by the agent: it was answered at its keyboard, or the agent was stopped"},
		{settled(tool, approved, "fay", "terminal", 0, scope(permissions.Session)),
			"✅ You allowed all gated tools for this session, except high risk, shells and interpreters"},
		{settled(tool, approved, "fay", "terminal", 0, scope(permissions.Always)),
			"✅ You allowed this exact call always"},
		{settled(permission, approved, "", permissions.ViaGrant, 0, nil), "✅ Allowed already: it was held"},
		{settled(permission, approved, "sam", "web", time.Second, func(r *row) {
			r.Quorum = 2
			for _, by := range []string{"fay", "sam"} {
				r.Votes = append(r.Votes, permissions.Vote{By: by, Answer: permissions.Allow(permissions.Once)})
			}
		}), "✅ Allowed once by you and sam · 14:00"},
		{settled(tool, approved, "fay", "terminal", time.Second, func(r *row) {
			r.Calls = []permissions.Call{
				{N: 1, Answer: permissions.Allow(permissions.Once)}, {N: 2, Answer: permissions.Deny, Comment: "no"},
				{N: 3, Answer: permissions.Allow(permissions.Once)},
			}
		}), `✅ You allowed #1 #3 once · #2 denied · "no"`},
		{settled(tool, approved, "fay", "terminal", time.Minute, func(r *row) {
			r.Scope = permissions.SessionTool
			r.Calls = []permissions.Call{{N: 1, Answer: permissions.Allow(r.Scope)}, {N: 2, Answer: permissions.Allow(r.Scope)}}
		}), "✅ You allowed #1 #2 for this session"},
		{settled(tool, approved, "fay", "terminal", time.Minute, func(r *row) {
			r.Calls = []permissions.Call{
				{N: 1, Answer: permissions.Allow(permissions.Once), By: "sam", At: now.Add(2 * time.Second)},
				{N: 2, Answer: permissions.Allow(permissions.SessionTool), By: "fay", At: r.DecidedAt},
			}
		}), "✅ You allowed this · #1 allowed once by sam 14:00 · #2 allowed for this session"},
		{settled(tool, denied, "fay", "terminal", time.Minute, func(r *row) {
			r.Comment = "r2"
			r.Calls = []permissions.Call{
				{N: 1, EndsRun: true, Answer: permissions.Deny, Comment: "r1", By: "sam", At: now.Add(2 * time.Second)},
				{N: 2, Answer: permissions.Deny, Comment: "r2", By: "fay", At: r.DecidedAt},
				{N: 3, Answer: permissions.Allow(permissions.Once), By: "fay", At: r.DecidedAt},
			}
		}), `⛔ You denied this · #1 denied by sam 14:00 · "r1" · #2 denied · "r2" · #3 allowed, but not run · the denial ends the run`},
		{settled(tool, denied, "fay", "terminal", time.Second, func(r *row) { r.Comment = "keep old/" }),
			`⛔ You denied this · "keep old/"`},
		{settled(tool, denied, "sam", "telegram", time.Second, func(r *row) { r.Comment = `a"b` }),
			`⛔ Denied by sam · 14:00 · "a\u{22}b"`},
		{settled(tool, denied, "", permissions.ViaRule, time.Second, func(r *row) { r.Failure = "rule 3, no\u202e" }),
			`⛔ Denied by rule 3, no\u{202E} · 14:00`},
		{settled(permission, expired, "", timeout, 0, nil),
			"⌛ Expired: nobody answered within 15 min"},
		{settled(tool, expired, "", timeout, 0, func(r *row) {
			r.Calls = []permissions.Call{
				{N: 1, Answer: permissions.Allow(permissions.Once), By: "sam", At: now.Add(2 * time.Second)}, {N: 2},
			}
		}), "⌛ Expired: not every call was answered within 15 min · #1 allowed by sam 14:00, but not run"},
		{settled(pause, expired, "", timeout, 0, func(r *row) { r.Mode = permissions.ModeContinue }),
			"⌛ Nobody resumed within 15 min; it continues"},
		{settled(pause, approved, "fay", "terminal", time.Second, nil),
			"✅ You approved this"},
		{settled(pause, answered, "fay", "terminal", time.Second, answer(permissions.Continue)),
			"✅ You continued this"},
		{settled(pause, answered, "", permissions.ViaEditor, time.Second, answer(permissions.Continue)),
			"✅ Continued in the editor · 14:00"},
		{settled(pause, answered, "", permissions.ViaEditor, time.Second, answer(permissions.Interrupt)),
			"⛔ Interrupted in the editor · 14:00"},
		{settled(clarification, answered, "", permissions.ViaEditor, time.Second, answer(permissions.Choose(1))),
			`✅ Answered in the editor · 14:00 · 1 "blog"`},
		{settled(pause, answered, "sam", "cli", time.Second, answer(permissions.Interrupt)),
			"⛔ Interrupted by sam · 14:00"},
		{settled(clarification, answered, "fay", "telegram", time.Second, func(r *row) {
			r.Answer, r.Comment = permissions.Other, "look at \u202estaging\n✅ \"Allowed\""
		}), `✅ You answered · "look at \u{202E}staging\u{A}✅ \u{22}Allowed\u{22}"`},
		{settled(clarification, answered, "fay", "terminal", time.Second, answer(permissions.Choose(2))),
			`✅ You chose · 2 "the \u{22}mail\u{22}"`},
		{settled(clarification, answered, "", timeout, 0, func(r *row) {
			r.TimedOut, r.Answer = true, permissions.Choose(1)
		}), `⌛ Nobody answered within 15 min; first option taken · 1 "blog"`},
		{settled(clarification, answered, "", "terminal", 0, func(r *row) {
			r.Defaulted, r.Answer = true, permissions.Choose(1)
		}), `⚠ No valid answer in three tries; first option taken · 1 "blog"`},
		{settled(clarification, answered, "", timeout, 0, func(r *row) {
			r.Hook, r.TimedOut, r.Answer = "claude-code", true, permissions.Choose(1)
		}), "⌛ Nobody answered within 15 min"},
		{settled(clarification, answered, "", "terminal", 0, func(r *row) {
			r.Hook, r.Defaulted, r.Answer = "claude-code", true, permissions.Choose(1)
		}), "⚠ No valid answer in three tries"},
		{settled(permission, cancelled, "agent:scribe", "", 0, nil), "✖ Cancelled by the agent"},
		{settled(permission, cancelled, "sam", "cli", time.Second, nil),
			"✖ Cancelled by sam · 14:00"},
		{settled(permission, cancelled, "sam", "", time.Second, nil), "✖ Cancelled by sam · 14:00"},
		{settled(permission, undeliverable, "", "", 0, func(r *row) { r.Failure = "fay has blocked the bot" }),
			"⚠ Could not be delivered: fay has blocked the bot"},
		{settled(permission, approved, "fay", "terminal", time.Second, func(r *row) { r.LapsedAt = now }),
			"✅ You allowed this once · was not collected"},
		{settled(permission, approved, "fay", "terminal", time.Second, func(r *row) { r.VoidAt = now }),
			"✅ You allowed this once · taken back 14:00"},
		{request(permission, nil), "⏳ Waiting for an answer"},
		{request(permission, func(r *row) {
			r.Quorum, r.LeftAt = 2, now
			r.Votes = []permissions.Vote{{By: "fay", Answer: permissions.Allow(permissions.Once)}}
		}), "⏳ 1 of 2, allowed by you · nobody is waiting for it just now; an answer is kept for the agent"},
		{request(tool, func(r *row) {
			r.Calls = []permissions.Call{
				{N: 1, Answer: permissions.Allow(permissions.Once)}, {N: 2, Answer: permissions.Deny}, {N: 3},
			}
		}), "⏳ Waiting for an answer · #1 allowed · #2 denied · #3 open"},
	} {
		t.Run("E3/"+c.want, func(t *testing.T) {
			if got := card.Settled(c.r, card.Options{Self: "fay"}); got != c.want {
				t.Errorf("Settled\n got %s\nwant %s", got, c.want)
			}
		})
	}
	nobody := settled(permission, denied, "", "web", time.Second, nil)
	got := card.Settled(nobody, card.Options{Notes: []string{"across a restart"}})
	if want := "⛔ Denied by nobody · 14:00 · across a restart"; got != want {
		t.Errorf("Settled\n got %s\nwant %s", got, want)
	}
}
