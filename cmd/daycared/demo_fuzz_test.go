package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/connectors/reply/replytest"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// FuzzScript: each word of --answer types one line with the word's meaning: only allow and the scopes allow.
func FuzzScript(f *testing.F) {
	for _, text := range []string{
		"allow", "allow,deny:keep old/,allow,2,continue", "session,15m,deny", "deny:", "deny:a:b", "deny:\n", "deny:#2", "allow:x", "interrupt",
		"", ",", "0", "10", "once", "always", "session_tool", "1h30m", " allow", "Allow", "deny: because", "deny:y", "continue:now", "2:no",
		"y", "n", "a", "esc", "r not now", "r ", "o our forum", "o", "other:our forum", "other:", "o yes", "rm", "r\ty",
	} {
		f.Add(text)
	}
	asked := []permissions.Request{
		replytest.Offered(permissions.KindTool, nil), replytest.Offered(permissions.KindPermission, nil),
		replytest.Offered(permissions.KindPause, func(r *permissions.Request) { r.Mode = permissions.ModeContinue }),
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines, err := parseScript(text)
		words := strings.Split(text, ",")
		if err != nil {
			if len(lines) > 0 {
				t.Fatalf("%q is refused, and yet types %q", text, lines)
			}
			return
		}
		if len(lines) != len(words) {
			t.Fatalf("%q types %q", text, lines)
		}
		for i, line := range lines {
			kind, _, reasoned := strings.Cut(words[i], ":")
			short, _, spoken := strings.Cut(words[i], " ")
			switch {
			case spoken && short == "r":
				kind, reasoned = "deny", false
			case spoken && short == "o":
				kind, reasoned = "other", false
			case slices.Contains([]string{"y", "a", "n"}, kind):
				kind = map[string]string{"y": "allow", "a": "allow", "n": "deny"}[kind]
			}
			if reasoned && kind != "deny" && kind != "other" {
				t.Fatalf("%q gives a reason, and types %q", words[i], line)
			}
			_, noScope := permissions.ParseScope(kind)
			for _, r := range asked {
				said := reply.Parse(line, r, "K7F3Q", i18n.English)
				if _, allows := said.Answer.Scope(); allows && kind != "allow" && noScope != nil {
					t.Fatalf("%q types %q, which allows", words[i], line)
				}
				if said.Answer == permissions.Deny && kind != "deny" || said.Answer == permissions.Continue && kind != "continue" {
					t.Fatalf("%q types %q, which is %s", words[i], line, said.Answer)
				}
			}
		}
	})
}
