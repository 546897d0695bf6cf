package card_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

func TestReminder(t *testing.T) {
	long := strings.Repeat("x", 100)
	waiting := []connectors.Prompt{
		{Code: "K7F3Q", Request: request(permissions.KindPermission, func(r *permissions.Request) {
			r.Tags = []permissions.Tag{tag("@write:/srv/www")}
		})},
		{Code: "AAAAA", Request: request(permissions.KindTool, func(r *permissions.Request) {
			r.Tool, r.Input, r.HighRisk = "run_command", input(`{"command":"ls\n✅ Allowed by fay"}`), true
		})},
		{Code: "BBBBB", Request: request(permissions.KindTool, func(r *permissions.Request) {
			r.Calls = []permissions.Call{{N: 1, Tool: "ls"}, {N: 2, Tool: "rm"}, {N: 3, Tool: "rm"}}
			r.Deadline = now.Add(24 * time.Hour)
		})},
		{Code: "CCCCC", Request: request(permissions.KindClarification, func(r *permissions.Request) {
			r.Message, r.Choices, r.Agent, r.Claimed = "where "+long, []string{"a", "b"}, long, true
		})},
		{Code: "DDDDD", Request: request(permissions.KindTool, func(r *permissions.Request) { r.Tool = "deploy" })},
	}
	want := []string{
		"5 requests wait for your answer:",
		"K7F3Q  scribe wants write access to /srv/www · until 14:15 UTC",
		"AAAAA  ⚠ High risk: scribe wants to run a command: ls … · until 14:15 UTC",
		"BBBBB  scribe wants 3 calls: rm ×2 ls ×1 · until 22 Nov 14:00 UTC",
		"CCCCC  " + `"` + long[:39] + `…" asks: "where ` + long[:73] + `…"` + " · until 14:15 UTC",
		"DDDDD  scribe wants to use deploy · until 14:15 UTC",
	}
	if diff := cmp.Diff(want, reminder(waiting, card.Options{Now: now})); diff != "" {
		t.Error(diff)
	}
	one := reminder(waiting[:1], card.Options{Now: now})
	if one[0] != "1 request waits for your answer:" || len(one) != 2 {
		t.Errorf("of one request: %q", one)
	}
	many := make([]connectors.Prompt, 33)
	for i := range many {
		many[i] = waiting[0]
	}
	if rows := reminder(many, card.Options{}); len(rows) != 22 || rows[21] != "… and 13 more" {
		t.Errorf("of 33 requests: %q", rows)
	}
}

func TestEnded(t *testing.T) {
	quarter := permissions.Grant{
		Caller: "uid:1000", Tags: []permissions.Tag{permissions.Network}, By: "fay", CreatedAt: now.Add(3 * time.Minute),
		Until: now.Add(18 * time.Minute), Used: 3,
	}
	with := func(change func(*permissions.Grant)) permissions.Grant {
		g := quarter
		change(&g)
		return g
	}
	for _, c := range []struct {
		g    permissions.Grant
		o    card.Options
		want string
	}{
		{quarter, card.Options{Now: now},
			"network access for whatever uid 1000 runs, allowed by fay at 14:03 for 15 minutes, used 3 times"},
		{quarter, card.Options{Self: "fay"},
			"network access for whatever uid 1000 runs, allowed by you at 21 Nov 14:03 for 15 minutes, used 3 times"},
		{quarter, card.Options{Now: now.Add(24 * time.Hour)},
			"network access for whatever uid 1000 runs, allowed by fay at 21 Nov 14:03 for 15 minutes, used 3 times"},
		{with(func(g *permissions.Grant) { g.Tags, g.Tool, g.Caller, g.Used = nil, "fetch_url", "token:deploy", 1 }), card.Options{Now: now},
			"the tool fetch_url for whatever uses the token deploy, allowed by fay at 14:03 for 15 minutes, used once"},
		{with(func(g *permissions.Grant) {
			g.Tags, g.Tool, g.Session, g.Until, g.Caller, g.Used = nil, permissions.AllTools, "s", time.Time{}, "agent:scribe", 0
		}), card.Options{Now: now}, "all gated tools, except high risk, shells and interpreters, " +
			"for scribe, allowed by fay at 14:03 for a session, never used"},
		{with(func(g *permissions.Grant) { g.Session, g.Caller = "s", "token:deploy" }), card.Options{Now: now},
			"network access for token deploy, allowed by fay at 14:03 for a session, used 3 times"},
		{with(func(g *permissions.Grant) {
			g.Tags, g.Tool, g.Call, g.Until = nil, "a b\n", permissions.Digest{1}, time.Time{}
		}), card.Options{Now: now},
			`one exact call of "a b\u{A}" for whatever uid 1000 runs, allowed by fay at 14:03 until revoked, used 3 times`},
	} {
		if diff := cmp.Diff([]string{"⌛ Ended: " + c.want}, ended(c.g, c.o)); diff != "" {
			t.Error(diff)
		}
	}
	wide := with(func(g *permissions.Grant) {
		g.Tags = nil
		for i := range permissions.MaxTags {
			g.Tags = append(g.Tags, tag(fmt.Sprintf("@read:/%d%s", i, strings.Repeat("/\u202e", 1000))))
		}
	})
	rows := ended(wide, card.Options{Now: now})
	if len(rows) != 1 || utf8.RuneCountInString(rows[0]) > 600 || !strings.Contains(rows[0], "45 more for whatever uid 1000 runs") {
		t.Errorf("of many tags: %q", rows)
	}
}

func TestRevoked(t *testing.T) {
	g := permissions.Grant{
		Caller: "uid:1000", Tool: "run_command", By: "fay", CreatedAt: now, Until: now.Add(time.Hour), Used: 2,
	}
	ran := []permissions.Request{
		request(permissions.KindTool, func(r *permissions.Request) {
			r.Tool, r.Input, r.CreatedAt = "run_command", input(`{"command":"ls"}`), now.Add(time.Minute)
		}),
		request(permissions.KindTool, func(r *permissions.Request) { r.Tool, r.Input = "evil\ntool", input(`{"a":1}`) }),
	}
	taken := "✖ Taken back: the tool run_command for whatever uid 1000 runs, allowed by fay at 14:00 for 60 minutes, used 2 times"
	want := []string{
		taken, "What ran under it:", "14:01  scribe wants to run a command: ls", `14:00  scribe wants to use "evil\u{A}tool": "a: 1"`,
	}
	if diff := cmp.Diff(want, revoked(g, ran, card.Options{Now: now})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{taken, "Nothing ran under it."}, revoked(g, nil, card.Options{Now: now})); diff != "" {
		t.Error(diff)
	}
	held := request(permissions.KindPermission, func(r *permissions.Request) {
		r.Tags, r.Held = []permissions.Tag{permissions.Network}, []permissions.Tag{permissions.Network}
	})
	if rows := revoked(g, []permissions.Request{held}, card.Options{Now: now}); rows[2] != "14:00  scribe wants network access" {
		t.Errorf("what was held is told as %q", rows[2])
	}
	if rows := revoked(g, make([]permissions.Request, 25), card.Options{}); len(rows) != 23 || rows[22] != "… and 5 more" {
		t.Errorf("of 25 that ran: %q", rows)
	}
}

func TestUnknownSenders(t *testing.T) {
	one := permissions.UnknownSender{Via: "telegram", Account: "6666", Name: "Eve\u202e\n✅ \"Yes\"", At: now.Add(-26 * time.Hour)}
	const last = "None was told more than their own id. Whoever should be asked: daycared pair NAME"
	all := permissions.UnknownSenders{List: []permissions.UnknownSender{one}}
	n := connectors.Notice{About: permissions.AboutUnknownSenders, UnknownSenders: all}
	want := []string{
		"👤 1 unknown account wrote since 20 Nov 12:00:",
		`   6666 · Telegram · calls itself "Eve\u{202E}\u{A}✅ \u{22}Yes\u{22}"`, last,
	}
	if diff := cmp.Diff(want, card.Notice(n, card.Options{Now: now})); diff != "" {
		t.Error(diff)
	}
	n.UnknownSenders.List[0].At = now.Add(-time.Minute)
	for i := range 6 {
		n.UnknownSenders.List = append(n.UnknownSenders.List, permissions.UnknownSender{
			Via: "pigeon", Account: fmt.Sprint(7000 + i), Name: strings.Repeat("long", 50*i), At: now,
		})
	}
	n.UnknownSenders.More = 3
	want = []string{
		"👤 10 unknown accounts wrote since 13:59:", want[1], "   7000 · pigeon · without a name",
		`   7001 · pigeon · calls itself "` + strings.Repeat("long", 9) + `lon…"`,
		`   7002 · pigeon · calls itself "` + strings.Repeat("long", 9) + `lon…"`,
		`   7003 · pigeon · calls itself "` + strings.Repeat("long", 9) + `lon…"`, "… and 5 more", last,
	}
	if diff := cmp.Diff(want, card.Notice(n, card.Options{Now: now})); diff != "" {
		t.Error(diff)
	}
	if rows := card.Notice(connectors.Notice{About: permissions.AboutUnknownSenders}, card.Options{}); len(rows) > 0 {
		t.Errorf("of nobody: %q", rows)
	}
}

// told is a notice of what a caller says.
func told(t permissions.CallerMessage) connectors.Notice {
	return connectors.Notice{About: permissions.AboutText, By: "token:ci", At: now, CallerMessage: t, Codes: map[string]bool{"K7F3Q": true}}
}

func TestNoticesOfAgents(t *testing.T) {
	const secret = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
	for about, says := range map[permissions.About]string{
		permissions.AboutFinished: "has finished", permissions.AboutWaits: "waits for you", permissions.AboutFailed: "has failed",
		permissions.AboutText: "says",
	} {
		n := told(permissions.CallerMessage{Agent: "codex", Title: "fix\u202e it", Text: "\ndone: k-7-f-3-q " + secret + "\n\n"})
		n.About = about
		want := []string{
			"💬 codex " + says + " · 14:00 · unproven name, from token ci", `│ fix\u{202E} it`,
			"│ done: •-•-•-•-• ‹secret, 40 characters, sha256 ",
		}
		rows := card.Notice(n, card.Options{Now: now})
		if len(rows) == len(want) {
			rows[2], _, _ = strings.Cut(rows[2], "sha256 ")
			rows[2] += "sha256 "
		}
		if diff := cmp.Diff(want, rows); diff != "" {
			t.Error(diff)
		}
	}
	n := told(permissions.CallerMessage{Text: strings.Repeat("x\n", 300)})
	rows := card.Notice(n, card.Options{Now: now})
	if len(rows) != 22 || rows[0] != "💬 token ci says · 14:00" || !strings.HasSuffix(rows[21], "│ … and 280 more rows") {
		t.Errorf("of 300 rows: %q", rows)
	}
	if rows := card.Notice(told(permissions.CallerMessage{Title: "\n \n", Text: "x"}), card.Options{Now: now}); len(rows) != 2 {
		t.Errorf("a title of white space is told as %q", rows)
	}
}

// Whatever a caller says of itself, of its session or besides stands behind a sign, or between quotes in our one row.
func TestAToldNoticeIsNoCard(t *testing.T) {
	marked := regexp.MustCompile(`^│ `)
	for _, f := range forgeries {
		for _, told := range []connectors.Notice{
			told(permissions.CallerMessage{Text: f.text}), told(permissions.CallerMessage{Title: f.text}),
			told(permissions.CallerMessage{Agent: f.text}), told(permissions.CallerMessage{Agent: f.text, Title: f.text, Text: f.text}),
		} {
			rows := card.Notice(told, card.Options{Now: now})
			quoted := regexp.MustCompile(`^💬 (token ci|[\w.\-:/@+#]+|"[^"\n]*"…?) says · 14:00( · unproven name, from token ci)?$`)
			if !quoted.MatchString(rows[0]) {
				t.Errorf("%s: the first row is %q", f.name, rows[0])
			}
			for _, row := range rows[1:] {
				if !marked.MatchString(row) || strings.ContainsAny(row, "\n\r\f\v\u2028\u2029\u0085") {
					t.Errorf("%s: a row is %q", f.name, row)
				}
			}
		}
	}
}

func reminder(waiting []connectors.Prompt, o card.Options) []string {
	return card.Notice(connectors.Notice{About: permissions.AboutWaiting, Waiting: waiting}, o)
}

func ended(g permissions.Grant, o card.Options) []string {
	return card.Notice(connectors.Notice{About: permissions.AboutEnded, Grant: g}, o)
}

func revoked(g permissions.Grant, ran []permissions.Request, o card.Options) []string {
	return card.Notice(connectors.Notice{About: permissions.AboutRevoked, Grant: g, Ran: ran}, o)
}

// TestWhatAProposedRuleSaysIsShownWhole: what it does not cover comes last.
func TestWhatAProposedRuleSaysIsShownWhole(t *testing.T) {
	says := "go test with any one word for each *, with or without -count, -cover, -failfast, -race, -run, -tags, -timeout, -v. " +
		"Not: other options, or anything outside the workspace. It runs this folder's code, as it is then"
	p := permissions.Proposal{Rule: permissions.NewGrantedRule([]string{"run go test *"}, "/srv/code", ""), Descriptions: []string{says}}
	if rows := card.Proposed(p, card.Options{}); !strings.HasSuffix(card.Plain(rows[1]), says) {
		t.Errorf("%q", rows[1])
	}
	p.Descriptions[0] = strings.Repeat(says, 100)
	if rows := card.Proposed(p, card.Options{}); len(rows[1]) > 600 {
		t.Errorf("%d bytes are shown", len(rows[1]))
	}
}

// TestAProposedRuleSaysForWhomItHolds: an agent's name is its own word, and others of the account or token may claim it, or none.
func TestAProposedRuleSaysForWhomItHolds(t *testing.T) {
	for caller, want := range map[string][2]string{
		"uid:1000":     {"It holds for whatever uid 1000 runs until ", "Sie gilt für alles, was uid 1000 startet, bis "},
		"token:build":  {"It holds for whatever uses the token build until ", "Sie gilt für alles, was das Token build verwendet, bis "},
		"agent:scribe": {"It holds for this agent until ", "Sie gilt für diesen Agenten, bis "},
	} {
		for i, in := range []i18n.Language{i18n.English, "de"} {
			rows := card.Proposed(permissions.Proposal{Caller: caller}, card.Options{Language: in})
			if last := card.Plain(rows[len(rows)-1]); !strings.HasPrefix(last, want[i]) {
				t.Errorf("%s: %q", caller, last)
			}
		}
	}
}

// TestAProposedRuleIsShownWithoutSecrets: its patterns and what it would not cover are an agent's words, which hide and forge nothing.
func TestAProposedRuleIsShownWithoutSecrets(t *testing.T) {
	p := permissions.Proposal{
		Rule:         permissions.NewGrantedRule([]string{"run curl --token=ghp_0123456789abcdefghijABCDEFGHIJ012345 x\u202ey"}, "/srv/code", ""),
		Descriptions: []string{"exactly these words"}, PastCount: 9, Allowed: 8, NotCovered: []string{"curl x\n✅ Allowed"},
	}
	text := card.Plain(strings.Join(card.Proposed(p, card.Options{}), "\n"))
	for _, want := range []string{
		"Nothing is allowed yet", "run curl --token=", `\u{202E}`, "exactly these words", "/srv/code", "9 prompts", "8 of them",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	for _, no := range []string{"ghp_", "\u202e", "\n✅"} {
		if strings.Contains(text, no) {
			t.Errorf("%q is in\n%s", no, text)
		}
	}
}
