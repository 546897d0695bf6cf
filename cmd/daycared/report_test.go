package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/rules"
)

// Each request counts once for its agent, its people and each of its tools; what nobody was asked about is no prompt.
func TestReportCounts(t *testing.T) {
	zone := time.FixedZone("X", 2*60*60)
	noon := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	m := newReport(noon.Add(-24*time.Hour), noon.Add(24*time.Hour), zone)
	at := func(after, took time.Duration, s permissions.State, by string, change ...func(*permissions.Request)) {
		r := permissions.Request{
			Kind: permissions.KindTool, Tool: "Bash", Caller: permissions.Caller{Name: "coder"}, Asked: []string{"fay", "sam"},
			CreatedAt: noon.Add(after), DecidedAt: noon.Add(after + took), State: s, DecidedBy: by, DecidedVia: "telegram",
		}
		if by != "" {
			r.Votes = []permissions.Vote{{By: by, At: r.DecidedAt}}
		}
		for _, c := range change {
			c(&r)
		}
		m.add(r)
	}
	unasked := func(r *permissions.Request) { r.DecidedVia = permissions.ViaGrant }
	at(0, time.Second, permissions.Approved, "fay")
	at(time.Minute, 10*time.Second, permissions.Denied, "sam", func(r *permissions.Request) { r.Caller.Name = "other" })
	at(2*time.Minute, 4*time.Minute, permissions.Approved, "fay", func(r *permissions.Request) {
		r.Tool, r.Calls = "", []permissions.Call{{N: 1, Tool: "Edit"}, {N: 2, Tool: "Edit"}, {N: 3, Tool: "Bash"}}
		r.Votes = append(r.Votes, permissions.Vote{By: "fay", Call: 2, At: r.DecidedAt}) // a vote on each call is one decision
	})
	at(11*time.Hour, time.Hour, permissions.Expired, "", func(r *permissions.Request) { r.DecidedVia = permissions.ViaTimeout })
	at(11*time.Hour, 0, permissions.Cancelled, "fay", func(r *permissions.Request) { r.Votes = nil })
	at(11*time.Hour, 0, permissions.Undeliverable, "")
	at(12*time.Hour, 3*time.Second, permissions.Answered, "sam", func(r *permissions.Request) {
		r.Kind, r.Tool = permissions.KindClarification, ""
	})
	at(0, 0, permissions.Approved, "", unasked, func(r *permissions.Request) { r.Grants = []permissions.ID{"g"} })
	at(0, 0, permissions.Approved, "", unasked, func(r *permissions.Request) {
		r.Ruled = []permissions.Ruling{{Effect: permissions.RuleAllows, Rule: 3}}
	})
	at(0, 0, permissions.Approved, "", unasked)
	m.end([]permissions.Grant{{ID: "used", Used: 1}, {ID: "never"}}, &rules.Set{})

	want := &report{
		Since: noon.Add(-24 * time.Hour), Until: noon.Add(24 * time.Hour), Prompts: 7,
		outcomes: outcomes{Allowed: 2, Denied: 1, Answered: 1, Expired: 1, Ended: 1, Lost: 1},
		Unasked:  saved{Rules: 1, Grants: 1, Policy: 1},
		PerDay:   spread{Median: 3, Most: 4, At: "2026-11-25"}, // 01:00 and 02:00 there; on the 23rd there was none
		PerHour:  spread{Median: 3, Most: 3, At: "2026-11-24 14:00"},
		Decide:   pace{P50: 3, P95: 240, Hasty: 1},
		Agents: []reportRow{
			{"coder", 6, outcomes{Allowed: 2, Answered: 1, Expired: 1, Ended: 1, Lost: 1}, 1}, {"other", 1, outcomes{Denied: 1}, 0},
		},
		People: []reportRow{{"fay", 7, outcomes{Allowed: 2}, 1}, {"sam", 7, outcomes{Denied: 1, Answered: 1}, 0}},
		Tools: []reportRow{
			{"Bash", 6, outcomes{Allowed: 2, Denied: 1, Expired: 1, Ended: 1, Lost: 1}, 1},
			{"Edit", 1, outcomes{Allowed: 1}, 0}, {"clarification", 1, outcomes{Answered: 1}, 0},
		},
		Candidates:  []rules.Suggestion{},
		UnusedGrant: wire.Map([]permissions.Grant{{ID: "never"}}, wire.FromGrant),
	}
	options := cmp.Options{
		cmp.AllowUnexported(report{}, reportRow{}),
		cmpopts.IgnoreFields(report{}, "zone", "days", "hours", "took", "by", "calls"),
	}
	if diff := cmp.Diff(want, m, options); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPercentile(t *testing.T) {
	var times []time.Duration
	for n := range 20 {
		times = append(times, time.Duration(n+1))
	}
	for p, want := range map[float64]time.Duration{50: 10, 95: 19, 99: 20, 100: 20} {
		if got := percentile(times, p); got != want {
			t.Errorf("%g %% of 1 to 20: %d, not %d", p, got, want)
		}
	}
	if got := percentile(nil, 50); got != 0 {
		t.Errorf("of none: %d", got)
	}
}
