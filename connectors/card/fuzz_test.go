package card_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

// FuzzCard renders any request, valid or not: nothing panics, everything that is shown can be seen, whoever's words fill
// a row are marked on it, and every message is within the limits of its channel.
func FuzzCard(f *testing.F) {
	f.Add(byte(0), "deploy-1", "vps", "write_file", `{"path":"a","content":"b"}`, "because", "one\ntwo", "yes", 60, 700)
	for i, forgery := range forgeries {
		s := forgery.text
		f.Add(byte(i), s, s, s, string(object("command", s)), s, s, s, i, 40*i)
	}
	f.Fuzz(func(t *testing.T, kind byte, agent, host, tool, input, reason, details, choice string, width, limit int) {
		r := fuzzed(kind, agent, host, tool, input, reason, details, choice)
		p := connectors.Prompt{Request: r, Code: "K7F3Q"}
		width %= 200
		o := card.Options{Width: width, Reveal: kind&32 != 0, Now: now}
		whole := card.Card(p, o)
		seenAndSigned(t, whole)
		l := card.Limits{Text: limit % 5000, Unit: card.Unit(max(width, 0) % 3), Rows: int(kind) % 5, Document: limit % 20_000}
		if m := fitted(t, p, o, l); strings.Contains(m.Text, "\n") {
			seenAndSigned(t, m.Text)
		}
		summary := card.Summary(r)
		lines := slices.Concat(summary, reminder([]connectors.Prompt{p}, o), []string{card.Settled(r, o)})
		for _, line := range lines {
			if strings.Contains(line, "\n") || strings.ContainsFunc(line, hiddenOnScreen) || len(summary) > 6 {
				t.Fatalf("rows %q", lines)
			}
		}
	})
}

func fuzzed(kind byte, agent, host, tool, in, reason, details, choice string) permissions.Request {
	kinds := []permissions.Kind{
		permissions.KindPermission, permissions.KindTool, permissions.KindPause, permissions.KindClarification,
	}
	return request(kinds[kind%4], func(r *permissions.Request) {
		r.Agent, r.Claimed, r.Host, r.Cwd, r.Reason, r.Message, r.Details = agent, true, host, host, reason, reason, details
		r.HighRisk, r.Quorum = kind&16 != 0, 1+int(kind)%3
		switch r.Kind {
		case permissions.KindTool:
			r.Tool, r.Input, r.AffectedPath, r.EnvNames, r.EnvHash = tool, json.RawMessage(in), host, []string{host, tool}, host
			if kind&8 != 0 {
				r.Calls = []permissions.Call{{N: 1, Tool: tool, Input: r.Input}, {N: 2, Tool: "bash", Input: object("command", details)}}
			}
		case permissions.KindPermission:
			r.Tags = []permissions.Tag{permissions.Network, tag("@read:/\u202e")}
		case permissions.KindClarification:
			r.Choices = []string{choice, choice + "2"}
		}
	})
}

func seenAndSigned(t *testing.T, text string) {
	t.Helper()
	if i := strings.IndexFunc(text, hiddenOnScreen); i >= 0 {
		t.Fatalf("shows %+q in\n%s", text[i:min(i+8, len(text))], text)
	}
	unsigned(t, text)
}
