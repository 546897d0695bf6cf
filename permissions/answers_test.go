package permissions

import (
	"encoding/json"
	"testing"
)

// A row answers only the question that it contains, whatever its asker's name.
func TestAnswers(t *testing.T) {
	tags, err := ParseTags([]string{"@write:/srv/www"})
	if err != nil {
		t.Fatal(err)
	}
	questions := map[string]Request{
		"tool":          {Kind: KindTool, Tool: "Bash", Input: json.RawMessage(`{"b":1, "a":2}`), AffectedPath: "/srv/x", Session: "s"},
		"permission":    {Kind: KindPermission, Tags: tags, Reason: "deploy"},
		"step":          {Kind: KindTool, Calls: []Call{{Tool: "a", Input: json.RawMessage(`{}`)}, {Tool: "b"}}},
		"pause":         {Kind: KindPause, Mode: ModeConfirm, Message: "go?", Details: "all"},
		"clarification": {Kind: KindClarification, Message: "where?", Choices: []string{"a", "b"}},
	}
	row := func(q Request, caller string) Request {
		q.Caller, q.Version, q.State = Caller{Name: caller, UID: NoUID}, DigestVersion, Approved
		if err := q.Normalize(); err != nil {
			t.Fatal(err)
		}
		q.Digest = ComputeDigest(q)
		q.Version = 0 // clients do not know the version
		return q
	}
	for name, q := range questions {
		for _, caller := range []string{"uid:1000", "token:deploy", Anonymous} {
			r := row(q, caller)
			if !r.IsRowOf(q) {
				t.Errorf("%s of %s does not answer its own question", name, caller)
			}
			versionless := r
			if versionless.Normalize() != nil { // as it was digested
				t.Fatal("a row is not normal")
			}
			if versionless.Digest = ComputeDigest(versionless); versionless.IsRowOf(q) {
				t.Errorf("%s of %s with a digest of no version answers it", name, caller)
			}
			for what, change := range map[string]func(*Request){
				"digest": func(r *Request) { r.Digest[0]++ }, "kind": func(r *Request) { r.Kind += "x" }, "mode": func(r *Request) { r.Mode += "x" },
				"tags": func(r *Request) { r.Tags = append(r.Tags, tags...) }, "tool": func(r *Request) { r.Tool += "x" },
				"input":   func(r *Request) { r.Input = json.RawMessage(`{"a":2,"b":2}`) },
				"path":    func(r *Request) { r.AffectedPath += "x" },
				"calls":   func(r *Request) { r.Calls = append(r.Calls, Call{Tool: "c"}) },
				"message": func(r *Request) { r.Message += "x" }, "choices": func(r *Request) { r.Choices = append(r.Choices, "c") },
			} {
				changed := r
				if change(&changed); changed.IsRowOf(q) && (what != "input" || q.Tool != "") {
					t.Errorf("%s of %s with another %s answers it", name, caller, what)
				}
			}
		}
		for other, p := range questions {
			if other != name && row(p, "uid:1000").IsRowOf(q) {
				t.Errorf("%s answers %s", other, name)
			}
		}
		for what, change := range map[string]func(*Request){
			"reason": func(q *Request) { q.Reason += "x" }, "details": func(q *Request) { q.Details += "x" },
			"cwd": func(q *Request) { q.Cwd += "x" }, "host": func(q *Request) { q.Host += "x" },
			"session": func(q *Request) { q.Session += "x" }, "scope": func(q *Request) { q.Widest = Always },
			"agent": func(q *Request) { q.Agent, q.Claimed = "x", true },
		} {
			asked := q
			if change(&asked); row(q, "uid:1000").IsRowOf(asked) {
				t.Errorf("%s answers a question with another %s", name, what)
			}
		}
	}
}
