package permissions

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// shortText draws few letters, so that bytes that move between fields meet equal ones.
func shortText() *rapid.Generator[string] {
	return rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 0, 3, -1)
}

func anyRequest() *rapid.Generator[Request] {
	return rapid.Custom(func(t *rapid.T) Request {
		draw := func(name string) string { return shortText().Draw(t, name) }
		r := Request{
			Version: rapid.IntRange(1, 2).Draw(t, "version"), Claimed: rapid.Bool().Draw(t, "claimed"),
			Kind: rapid.SampledFrom([]Kind{KindPermission, KindTool, KindPause, KindClarification}).Draw(t, "kind"),
			Mode: Mode(draw("mode")), Caller: Caller{Name: draw("caller")}, Agent: draw("agent"),
			Session: draw("session"), Host: draw("host"), Cwd: draw("cwd"), Folder: draw("folder"),
			Tags: rapid.SliceOfN(anyTag(), 0, 2).Draw(t, "tags"),
			Tool: draw("tool"), Input: []byte(draw("input")), AffectedPath: draw("affected"),
			EnvNames: rapid.SliceOfN(shortText(), 0, 2).Draw(t, "env"), EnvHash: draw("hash"),
			Message: draw("message"), Details: draw("details"), Reason: draw("reason"),
			Choices: rapid.SliceOfN(shortText(), 0, 2).Draw(t, "choices"), Widest: anyScope().Draw(t, "widest"),
		}
		for i := range rapid.IntRange(0, 2).Draw(t, "calls") {
			r.Calls = append(r.Calls, Call{
				N: i + 1, Tool: draw("call"), Input: []byte(draw("call input")), AffectedPath: draw("call affected"),
			})
		}
		return r
	})
}

// changes are one small change of every field that the digest covers.
var changes = map[string]func(*Request){
	"version":        func(r *Request) { r.Version += 2 },
	"caller":         func(r *Request) { r.Caller.Name += "x" },
	"session":        func(r *Request) { r.Session += "x" },
	"kind":           func(r *Request) { r.Kind += "x" },
	"mode":           func(r *Request) { r.Mode += "x" },
	"tags":           func(r *Request) { r.Tags = append(slices.Clone(r.Tags), must(ParseTag("@read:/x"))) },
	"tool":           func(r *Request) { r.Tool += "x" },
	"input":          func(r *Request) { r.Input = append(slices.Clone(r.Input), 'x') },
	"affected path":  func(r *Request) { r.AffectedPath += "x" },
	"calls":          func(r *Request) { r.Calls = append(slices.Clone(r.Calls), Call{}) },
	"host":           func(r *Request) { r.Host += "x" },
	"cwd":            func(r *Request) { r.Cwd += "x" },
	"folder":         func(r *Request) { r.Folder += "x" },
	"env names":      func(r *Request) { r.EnvNames = append(slices.Clone(r.EnvNames), "") },
	"env hash":       func(r *Request) { r.EnvHash += "x" },
	"claimed":        func(r *Request) { r.Claimed = !r.Claimed },
	"agent":          func(r *Request) { r.Agent += "x" },
	"message":        func(r *Request) { r.Message += "x" },
	"details":        func(r *Request) { r.Details += "x" },
	"reason":         func(r *Request) { r.Reason += "x" },
	"choices":        func(r *Request) { r.Choices = append(slices.Clone(r.Choices), "") },
	"widest":         func(r *Request) { r.Widest = For(r.Widest.Span() + time.Second) },
	"a call's tool":  func(r *Request) { changeCall(r, func(c *Call) { c.Tool += "x" }) },
	"a call's input": func(r *Request) { changeCall(r, func(c *Call) { c.Input = []byte(string(c.Input) + "x") }) },
	"a call's path":  func(r *Request) { changeCall(r, func(c *Call) { c.AffectedPath += "x" }) },
}

// changeCall changes the last call, after adding one if there is none.
func changeCall(r *Request, change func(*Call)) {
	r.Calls = slices.Clone(r.Calls)
	if len(r.Calls) == 0 {
		r.Calls = []Call{{}}
	}
	change(&r.Calls[len(r.Calls)-1])
}

func TestDigestChangesWithEveryField(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRequest().Draw(t, "request")
		for name, change := range changes {
			other := r
			change(&other)
			if ComputeDigest(other) == ComputeDigest(r) {
				t.Errorf("the digest does not see another %s", name)
			}
		}
	})
}

func TestDigestIsTheSameForEqualRequestsOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyRequest().Draw(t, "a"), anyRequest().Draw(t, "b")
		if equal := plain(a) == plain(b); equal != (ComputeDigest(a) == ComputeDigest(b)) {
			t.Errorf("equal: %v, digests %s and %s", equal, ComputeDigest(a), ComputeDigest(b))
		}
	})
}

// plain is what the digest covers, with a different quoting.
func plain(r Request) string {
	var b strings.Builder
	for _, v := range []any{
		r.Version, r.Caller.Name, r.Session, r.Kind, r.Mode, r.Tags, r.Tool, string(r.Input), r.AffectedPath, r.Host, r.Cwd, r.Folder,
		r.EnvNames, r.EnvHash, r.Claimed, r.Agent, r.Message, r.Details, r.Reason, r.Choices, r.Widest.String(), len(r.Calls),
	} {
		quote(&b, v)
	}
	for _, c := range r.Calls {
		quote(&b, c.Tool)
		quote(&b, string(c.Input))
		quote(&b, c.AffectedPath)
	}
	return b.String()
}

func TestDigestSeesBytesThatMove(t *testing.T) {
	for _, pair := range []struct {
		name string
		a, b Request
	}{
		{"caller and session", Request{Caller: Caller{Name: "ab"}, Session: "c"},
			Request{Caller: Caller{Name: "a"}, Session: "bc"}},
		{"tool and input", Request{Tool: "rm", Input: []byte("x")}, Request{Tool: "r", Input: []byte("mx")}},
		{"input and path", Request{Input: []byte("ab")}, Request{Input: []byte("a"), AffectedPath: "b"}},
		{"host and cwd", Request{Host: "ab"}, Request{Host: "a", Cwd: "b"}},
		{"environment names", Request{EnvNames: []string{"ab", "c"}}, Request{EnvNames: []string{"a", "bc"}}},
		{"environment and its hash", Request{EnvNames: []string{"a"}}, Request{EnvHash: "a"}},
		{"message and details", Request{Message: "ab"}, Request{Message: "a", Details: "b"}},
		{"details and reason", Request{Details: "ab"}, Request{Details: "a", Reason: "b"}},
		{"options", Request{Choices: []string{"a", "b"}}, Request{Choices: []string{"ab"}}},
		{"reason and option", Request{Reason: "a"}, Request{Choices: []string{"a"}}},
		{"tool and call", Request{Tool: "a"}, Request{Calls: []Call{{Tool: "a"}}}},
		{"calls", Request{Calls: []Call{{Tool: "a"}, {Tool: "b"}}}, Request{Calls: []Call{{Tool: "ab"}}}},
		{"order of tags", Request{Tags: tags("@network", "@read:/a")}, Request{Tags: tags("@read:/a", "@network")}},
	} {
		if ComputeDigest(pair.a) == ComputeDigest(pair.b) {
			t.Errorf("%s: the bytes may move unseen", pair.name)
		}
	}
}

func TestDigestLeavesOut(t *testing.T) {
	r := toolRequest()
	other := r
	other.ID, other.Number, other.Revision, other.Key, other.Call = "01J", 9, 9, "k", "call"
	other.CreatedAt, other.Deadline, other.WantedTimeout = dusk, dusk, time.Hour
	other.Asked, other.Quorum, other.State, other.Options, other.Held = nil, 3, Denied, nil, tags("@network")
	if ComputeDigest(other) != ComputeDigest(r) {
		t.Error("the digest covers what was not asked")
	}
}

// A stored digest of version 1 must be found again by every later daycared.
func TestDigestOfVersion1(t *testing.T) {
	got := ComputeDigest(Request{
		Version: 1, Kind: KindPermission, Caller: Caller{Name: "uid:1000"}, Tags: tags("@network"), Reason: "docs",
	}).String()
	if want := "sha256:8eab07b03d7d8d36c1ceeb17c91259fd25c6ccf8606ca57aca823913426959a2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCallDigest(t *testing.T) {
	call := Call{N: 1, Tool: "write_file", Input: []byte(`{"a":1}`), AffectedPath: "/a"}
	same := Call{N: 7, Tool: "write_file", Input: []byte(`{"a":1}`), AffectedPath: "/a", Answer: Deny, Comment: "no"}
	if CallDigest(Request{}, call) != CallDigest(Request{}, same) {
		t.Error("the same call has two digests")
	}
	for _, other := range []Call{
		{Tool: "write_fil", Input: []byte(`e{"a":1}`), AffectedPath: "/a"},
		{Tool: "write_file", Input: []byte(`{"a":2}`), AffectedPath: "/a"},
		{Tool: "write_file", Input: []byte(`{"a":1}`), AffectedPath: "/b"},
	} {
		if CallDigest(Request{}, other) == CallDigest(Request{}, call) {
			t.Errorf("%v has the digest of %v", other, call)
		}
	}
	seen := map[Digest]string{CallDigest(Request{}, call): "nothing"}
	for name, r := range map[string]Request{
		"host": {Host: "vps"}, "cwd": {Cwd: "/srv"}, "environment": {EnvHash: "x"}, "its names": {EnvNames: []string{"PATH"}},
		"hook": {Hook: "codex"}, "hook of another agent": {Hook: "gemini"},
		"detail": {Details: "a diff"}, "other detail": {Details: "another diff"}, "hook of ACP": {Hook: HookACP},
		"message": {Message: "a diff"}, "message of a hook": {Hook: "codex", Message: "x"},
		"detail of a hook": {Hook: "codex", Details: "a diff"},
		"title over ACP":   {Hook: HookACP, Caller: Caller{Name: "agent:coder"}, Reason: "Write it"},
		"detail over ACP":  {Hook: HookACP, Caller: Caller{Name: "agent:coder"}, Details: "a diff"},
	} {
		t.Run("B5/"+name, func(t *testing.T) {
			d := CallDigest(r, call)
			if other, is := seen[d]; is {
				t.Errorf("another %s has the digest of %s", name, other)
			}
			seen[d] = name
		})
	}
}

// The details of the daemon's own tools follow from the input, and what the file was before.
func TestDetailsThatFollowFromTheInputAreNoOtherCall(t *testing.T) {
	call := Call{N: 1, Tool: "write_file", Input: []byte(`{"a":1}`)}
	r := Request{Caller: Caller{Name: "agent:helper"}}
	before := CallDigest(r, call)
	if r.Details, r.Message = "a diff", "a word"; CallDigest(r, call) != before {
		t.Error("other details are another call")
	}
}

// Where a name leads is of the exact call, as the hook says it and as it is stored.
func TestWhereANameLeadsIsOfTheExactCall(t *testing.T) {
	call := Call{N: 1, Tool: "Bash", Input: []byte(`{"command":"cp s t"}`)}
	leads := func(to string) Leads {
		return Leads{Root: "/ws", Names: map[string]string{"/ws": "/ws", "/ws/s": "/ws/s", "/ws/t": to}}
	}
	plain := Request{Hook: "claude-code", Leads: leads("/ws/t")}
	away, other := plain, plain
	away.Leads, other.Leads = leads("/etc/a"), leads("/etc/b")
	stored := Request{Hook: "claude-code", Ruled: []Ruling{{Leads: away.Leads.Symlinks()}}}
	if CallDigest(plain, call) != CallDigest(Request{Hook: "claude-code"}, call) || CallDigest(away, call) != CallDigest(stored, call) {
		t.Error("one call has two digests")
	}
	unknown, kept := plain, Request{Hook: "claude-code", Ruled: []Ruling{{Leads: &Leads{Unknown: true}}}}
	unknown.Leads = Leads{Unknown: true}
	if CallDigest(unknown, call) != CallDigest(kept, call) || CallDigest(unknown, call) == CallDigest(plain, call) ||
		unknown.ShownDigest() == plain.ShownDigest() || !unknown.SameLeads(kept) || unknown.SameLeads(plain) {
		t.Error("a call of which it is not known where its names lead is the same as another")
	}
	if CallDigest(plain, call) == CallDigest(away, call) || CallDigest(other, call) == CallDigest(away, call) {
		t.Error("a call that leads elsewhere is the same")
	}
}

func TestDigestText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Digest(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "bytes"))
		again, err := ParseDigest(d.String())
		if err != nil || again != d {
			t.Fatalf("%s came back as %s, %v", d, again, err)
		}
		hex := strings.TrimPrefix(d.String(), "sha256:")
		if want := hex[:4] + "…" + hex[62:]; d.Short() != want {
			t.Fatalf("%s is %s in short", d, d.Short())
		}
	})
	good := Digest{1}.String()
	for _, text := range []string{
		"", "sha256:", good[7:], good[:len(good)-1], good[:len(good)-2], good + "00", "sha512:" + good[7:],
		"sha256:zz" + good[9:], " " + good,
	} {
		if d, err := ParseDigest(text); err == nil || d != (Digest{}) || !strings.Contains(err.Error(), "64 hexadecimal") {
			t.Errorf("%q: %v, %v", text, d, err)
		}
	}
}

// What an agent suggests beside a call makes it no other than the one that was denied.
func TestSuggestionsMakeNoOtherAction(t *testing.T) {
	plain, other := suggesting(), suggesting()
	plain.Choices, other.Message = nil, "it suggests more"
	if ActionDigest(plain) != ActionDigest(other) {
		t.Error("a call with suggestions is another action")
	}
	question := clarification()
	question.Choices = question.Choices[1:]
	if ActionDigest(question) == ActionDigest(clarification()) {
		t.Error("a question with other options is the same")
	}
}

// TestWhatIsShownOfAFile: rows of a file make no other question, and another card.
func TestWhatIsShownOfAFile(t *testing.T) {
	r := Request{Version: 1, Kind: KindTool, Tool: "Edit", Input: []byte(`{"a":1}`)}
	r.Digest = ComputeDigest(r)
	if r.ShownDigest() != r.Digest {
		t.Error("without rows of a file, what is shown has another digest")
	}
	seen := map[Digest]bool{r.Digest: true}
	for _, was := range []Rows{
		{}, {First: 1}, {First: 1, Text: "a"}, {First: 1, Text: "b"}, {First: 2, Text: "a"}, {First: 1, Text: "a", After: 1},
	} {
		told := r
		told.Rows = []Rows{was}
		if ComputeDigest(told) != r.Digest || !r.IsRowOf(told) || !told.IsRowOf(r) {
			t.Errorf("%v makes another question", was)
		}
		if seen[told.ShownDigest()] {
			t.Errorf("what is shown with %v has the digest of something else", was)
		}
		seen[told.ShownDigest()] = true
	}
	for name, to := range map[string]string{"/a": "/b", "/b": "/a", "/": "ab"} {
		told := r
		told.Ruled = []Ruling{{Effect: RuleAsks}, {Leads: &Leads{Names: map[string]string{name: to}}}}
		if ComputeDigest(told) != r.Digest || !r.IsRowOf(told) || seen[told.ShownDigest()] {
			t.Errorf("that %s leads to %s makes another question, or the same card", name, to)
		}
		seen[told.ShownDigest()] = true
	}
}
