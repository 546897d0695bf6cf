package card_test

import (
	"testing"
	"time"

	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

func TestSettled(t *testing.T) {
	type change = func(*permissions.Request)
	settled := func(kind permissions.Kind, state permissions.State, by, via string, after time.Duration, more change) permissions.Request {
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
	const permission, tool, pause = permissions.KindPermission, permissions.KindTool, permissions.KindPause
	for _, c := range []struct {
		r    permissions.Request
		want string
	}{
		{settled(permission, permissions.Approved, "fay", "terminal", 4*time.Second, nil),
			"✅ Allowed once by you · terminal · after 4 s"},
		{settled(permission, permissions.Approved, "sam", "telegram", 202*time.Second, scope(permissions.For(15*time.Minute))),
			"✅ Allowed for 15 minutes by sam · Telegram · 14:03:22 · after 3 min 22 s"},
		{settled(permission, permissions.Approved, "sam", "whatsapp", time.Hour, scope(permissions.Session)),
			"✅ Allowed for this session by sam · WhatsApp · 15:00:00 · after 1 h"},
		{settled(permission, permissions.Approved, "sam", "cli", 65*time.Minute, scope(permissions.Always)),
			"✅ Allowed until revoked by sam · command line · 15:05:00 · after 1 h 5 min"},
		{settled(tool, permissions.Approved, "fay", "terminal", time.Minute, scope(permissions.SessionTool)),
			"✅ Allowed this tool for this session by you · terminal · after 1 min"},
		{settled(tool, permissions.Approved, "fay", "terminal", 0, scope(permissions.Session)),
			"✅ Allowed all gated tools for this session by you · terminal · after 0 s"},
		{settled(tool, permissions.Approved, "fay", "terminal", 0, scope(permissions.Always)),
			"✅ Allowed this exact call always by you · terminal · after 0 s"},
		{settled(permission, permissions.Approved, "", permissions.ViaGrant, 0, nil), "✅ Allowed already: it was held"},
		{settled(permission, permissions.Approved, "sam", "web", time.Second, func(r *permissions.Request) {
			r.Quorum = 2
			for _, by := range []string{"fay", "sam"} {
				r.Votes = append(r.Votes, permissions.Vote{By: by, Answer: permissions.Allow(permissions.Once)})
			}
		}), "✅ Allowed once by you and sam · web · 14:00:01 · after 1 s"},
		{settled(tool, permissions.Approved, "fay", "terminal", time.Second, func(r *permissions.Request) {
			r.Calls = []permissions.Call{
				{N: 1, Answer: permissions.Allow(permissions.Once)}, {N: 2, Answer: permissions.Deny, Comment: "no"},
				{N: 3, Answer: permissions.Allow(permissions.Once)},
			}
		}), `✅ Allowed #1 #3 once by you · terminal · after 1 s · #2 denied · "no"`},
		{settled(tool, permissions.Denied, "fay", "terminal", time.Second, func(r *permissions.Request) { r.Comment = "keep old/" }),
			`⛔ Denied by you · "keep old/"`},
		{settled(tool, permissions.Denied, "sam", "telegram", time.Second, func(r *permissions.Request) { r.Comment = `a"b` }),
			`⛔ Denied by sam · Telegram · 14:00:01 · after 1 s · "a\u{22}b"`},
		{settled(permission, permissions.Expired, "", permissions.ViaTimeout, 0, nil),
			"⌛ Expired: nobody answered within 15 min"},
		{settled(pause, permissions.Expired, "", permissions.ViaTimeout, 0, func(r *permissions.Request) { r.Mode = permissions.ModeContinue }),
			"⌛ Nobody resumed within 15 min; it continues"},
		{settled(pause, permissions.Approved, "fay", "terminal", time.Second, nil), "✅ Approved by you · terminal · after 1 s"},
		{settled(pause, permissions.Answered, "fay", "terminal", time.Second, answer(permissions.Continue)),
			"✅ Continued by you · terminal · after 1 s"},
		{settled(pause, permissions.Answered, "sam", "cli", time.Second, answer(permissions.Interrupt)),
			"⛔ Interrupted by sam · command line · 14:00:01 · after 1 s"},
		{settled(permissions.KindClarification, permissions.Answered, "fay", "terminal", time.Second, answer(permissions.Choose(2))),
			`✅ Chosen by you · terminal · after 1 s · 2 "the \u{22}mail\u{22}"`},
		{settled(permissions.KindClarification, permissions.Answered, "", permissions.ViaTimeout, 0, func(r *permissions.Request) {
			r.TimedOut, r.Answer = true, permissions.Choose(1)
		}), `⌛ Nobody answered within 15 min; first option taken · 1 "blog"`},
		{settled(permissions.KindClarification, permissions.Answered, "", "terminal", 0, func(r *permissions.Request) {
			r.Defaulted, r.Answer = true, permissions.Choose(1)
		}), `⚠ No valid answer in three tries; first option taken · 1 "blog"`},
		{settled(permission, permissions.Cancelled, "agent:scribe", "", 0, nil), "✖ Cancelled by the agent"},
		{settled(permission, permissions.Cancelled, "sam", "cli", time.Second, nil),
			"✖ Cancelled by sam · command line · 14:00:01 · after 1 s"},
		{settled(permission, permissions.Undeliverable, "", "", 0, func(r *permissions.Request) { r.Failure = "fay has blocked the bot" }),
			"⚠ Could not be delivered: fay has blocked the bot"},
		{settled(permission, permissions.Approved, "fay", "terminal", time.Second, func(r *permissions.Request) { r.LapsedAt = now }),
			"✅ Allowed once by you · terminal · after 1 s · was not collected"},
		{settled(permission, permissions.Approved, "fay", "terminal", time.Second, func(r *permissions.Request) { r.VoidAt = now }),
			"✅ Allowed once by you · terminal · after 1 s · taken back 14:00:00"},
		{request(permission, nil), "⏳ Waiting for an answer"},
		{request(permission, func(r *permissions.Request) {
			r.Quorum, r.LeftAt = 2, now
			r.Votes = []permissions.Vote{{By: "fay", Answer: permissions.Allow(permissions.Once)}}
		}), "⏳ 1 of 2, allowed by you · nobody is waiting for it just now; an answer is kept for the agent"},
		{request(tool, func(r *permissions.Request) {
			r.Calls = []permissions.Call{
				{N: 1, Answer: permissions.Allow(permissions.Once)}, {N: 2, Answer: permissions.Deny}, {N: 3},
			}
		}), "⏳ Waiting for an answer · #1 allowed · #2 denied · #3 open"},
	} {
		if got := card.Settled(c.r, card.Options{Self: "fay"}); got != c.want {
			t.Errorf("Settled\n got %s\nwant %s", got, c.want)
		}
	}
	nobody := settled(permission, permissions.Denied, "", "web", time.Second, nil)
	got := card.Settled(nobody, card.Options{Notes: []string{"across a restart"}})
	if want := "⛔ Denied by nobody · web · 14:00:01 · after 1 s · across a restart"; got != want {
		t.Errorf("Settled\n got %s\nwant %s", got, want)
	}
}
