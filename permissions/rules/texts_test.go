package rules

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestTheTextsOfAServersToolMeetTheRulesForFilesAndHosts: whatever its members are called.
func TestTheTextsOfAServersToolMeetTheRulesForFilesAndHosts(t *testing.T) {
	texts := func(n int, one string) string {
		return `{"rows":["` + strings.TrimSuffix(strings.Repeat(one+`","`, n), `","`) + `"]}`
	}
	folders := `{"dirs":["`
	for i := range maxFolders + 1 {
		folders += fmt.Sprintf(`d%d","`, i)
	}
	const address = `{"url":"https://user@good.example/"}`
	for _, c := range []struct {
		deny, ask              string
		allowed, denied, asked []string
	}{
		{
			deny: "read ./secrets/**; write ./prot/**; read **/.env",
			allowed: []string{
				`{"path":"src/a.go"}`, `{"out":"src/a.go"}`, `{"repo":"daycared/daycared","n":7}`, `{"text":"do not read secrets/x"}`,
				`{"text":"a\nsecrets/x"}`, `{"state":"open"}`, `{"name":"x.go","cwd":"src/x.d"}`,
				`{"uri":"https://good.example/secrets/x"}`, `{}`, texts(maxTexts-1, "a.go"),
			},
			denied: []string{
				`{"path":"secrets/x"}`, `{"uri":"file://` + shop + `/secr%65ts/x"}`, `{"uri":"file://` + shop + `/a/%2e%2e/secrets/x"}`,
				`{"uri":"file:` + shop + `/secrets/x"}`,
			},
			asked: []string{
				`{"dir":"secrets"}`, `{"input_path":"secrets/x"}`, `{"output":"prot/x"}`, `{"x":["secrets/x"]}`, `{"x":{"secrets/x":1}}`,
				`{"cwd":"secrets","name":"x"}`, `{"path":"a","out":"../secrets/x"}`, `{"glob":"s*/x"}`, `{"glob":"**"}`, `{"path":"."}`,
				`{"path":"` + shop + `"}`, `{"where":"` + shop + `"}`, `{"where":".."}`, `{"args":"{\"p\":\"secrets/x\"}"}`, `{"path":"src"}`,
				`{"in_dir":"my secrets/../secrets/x"}`, texts(maxTexts+1, "a.go"), strings.TrimSuffix(folders, `,"`) + "]}",
			},
		},
		{
			deny: "fetch evil.example; fetch *.bad.example",
			allowed: []string{
				`{"url":"https://good.example/"}`, `{"host":"good.example"}`, `{"text":"see https://evil.example/"}`, `{"path":"secrets/x"}`,
				`{"uri":"file:///etc/passwd"}`,
			},
			denied: []string{`{"url":"https://evil.example/"}`, `{"x":["http://a.bad.example:80/x"]}`},
			asked:  []string{`{"host":"evil.example"}`, `{"server":"EVIL.example"}`, address},
		},
		{
			ask: "fetch *.example", allowed: []string{`{"state":"open","path":"a"}`},
			asked: []string{`{"url":"https://good.example/"}`, `{"domain":"a.example"}`},
		},
		{ask: "write ./**", allowed: []string{`{"state":"open"}`, `{"out":"src/a.go"}`}, asked: []string{`{"path":"src/a.go"}`}},
		{allowed: []string{`{"path":"secrets/x"}`, `{"glob":"**"}`, address, texts(maxTexts+1, "a")}},
	} {
		s := rulesOf(t, Rule{Allow: []string{"tool fs/*"}}, Rule{Deny: listed(or(c.deny))}, Rule{Ask: listed(or(c.ask))})
		for effect, inputs := range map[Effect][]string{Allow: c.allowed, Deny: c.denied, "": c.asked} {
			for _, input := range inputs {
				v := s.Judge(Call{
					Dialect: "claude-code", Tool: "mcp__fs__x", Input: json.RawMessage(input), Folder: shop, Root: shop, Resolve: links(shop),
				})
				if v.Effect != effect && (effect != "" || v.Effect != Ask) {
					t.Errorf("deny %q, ask %q: %.200s is %q, want %q; %v", c.deny, c.ask, input, v.Effect, effect, v.Reasons)
				}
			}
		}
	}
}

// TestEachWordOfACommandMayBeAHostThatIsDenied: programs take hosts with and without a scheme.
func TestEachWordOfACommandMayBeAHostThatIsDenied(t *testing.T) {
	s := rulesOf(t, Rule{Allow: listed("run frob ...; run git push ...; run echo ...; run grep *")},
		Rule{Deny: listed("fetch evil.example; fetch *.bad.example:81")})
	for command, want := range map[string]Effect{
		"frob evil.example": Deny, "frob a.txt evil.example:": Deny, "frob u@evil.example:x": Deny, "frob evil.example/x:1": Deny,
		"frob evil.example:443": Deny, "frob EVIL.example": Deny, "frob --host=evil.example": Deny, "frob @evil.example": Deny,
		"frob a.bad.example:81": Deny, "sudo frob evil.example": Deny, "git push evil.example:x main": Deny,
		"frob a.bad.example": Allow, "frob evil.example.org": Allow, "frob notevil.example": Allow, "echo evil.example": Allow,
		"grep evil.example": Allow, "frob src/evil.example": Allow,
	} {
		if v := judged(s, command); v.Effect != want {
			t.Errorf("%q is %q, want %q; %v", command, v.Effect, want, v.Reasons)
		}
	}
}
