package config

import (
	"errors"
	"os"
	"reflect"
	"testing"
)

// FuzzLoad: no file makes Load panic; what it refuses it refuses with a line; and what it takes it shows so that it
// takes it again, with the same meaning.
func FuzzLoad(f *testing.F) {
	example, err := os.ReadFile("../../../config.example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	for _, seed := range []string{
		"",
		"people: [{name: fay, telegram: 5, whatsapp: \"+4915112345678\"}]\nroutes: [{agents: [\"*\"], ask: [fay]}]\n",
		"people: [{name: fay, user: fay, quiet: 22:00-00:00, via: [terminal]}, {name: kim}]\n" +
			"routes: [{ask: [fay], quorum: 2, escalate: {after: 1%, to: [kim]}},\n" +
			"  {escalate: {to: [kim], after: 90s}, ask: [fay]}]\n",
		"approvals: {remind: []}\nkeep: {requests: 8d, payloads: 25h, audit: 36500d}\n",
		"approvals: {remind: [5%, 1h0m1s]}\nroutes: [{ask: [], escalate: }]\npeople: [{name: fay, quiet: 9-17}]\n",
		"approvals: {scopes: [once, 90s, always], timeout: 1h0m1s}\nhigh_risk: {tags: [\"@write:/a b#\"]}\n",
		"agents: [{name: a, model: {provider: script, file: /t}, tools: {auto: []}, mcp: [{name: m, command: [x, \"\\t\"]}]},\n" +
			"  {name: b, parent: a, workspace: /w, prompt: p, schedule: {cron: '@daily', needs: ['@network'], ask_at: 21:00}}]\n" +
			"sandbox: off\nfetch: {allow_private: [10.0.0.0/8, 'fd00::/8']}\n",
		"agents: [{name: a, parent: b}, {name: b, parent: c, schedule: {every: 1s}}, {name: c, parent: b, mcp: [{}]}]\n",
		"agents: [{name: a, model: {provider: openai, name: m, input_price: 0.5, output_price: 2.000001, window: 4096}}]\n",
		"limits: {auto_per_minute: {'*': 5, mcp__A.b: 6, '<<': 7, 'yes': 8}}\n",
		"log: &x {level: *x}\n<<: *x\n", "a: b: c\n", "x: ]\n", "\ttab\n", "a: \"\n",
		"tools: {auto: [\"\\u200b\", '0x1f', yes]}\n",
		"---\n---\n", "log: !!map {}\n", "data_dir: \"/\\u00e9\\u0301: # x\"\n", "people:\n  - name: \"fay: # \\\"\"\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parse("config.yaml", data, nil)
		if err != nil {
			var problems Problems
			if !errors.As(err, &problems) || len(problems) == 0 {
				t.Fatalf("not a list of problems: %v", err)
			}
			for _, p := range problems {
				if p.Line < 1 || p.Text == "" {
					t.Errorf("no line or no words: %v", p)
				}
			}
			return
		}
		shown := show(t, c)
		again, err := parse("shown.yaml", []byte(shown), nil)
		if err != nil {
			t.Fatalf("what was shown is refused: %v\n%s", err, shown)
		}
		if got, want := meaning(again), meaning(c); !reflect.DeepEqual(got, want) {
			t.Errorf("shown\n%s\ngot  %+v\nwant %+v", shown, got, want)
		}
	})
}
