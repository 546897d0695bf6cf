package permissions

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// words is a text of n characters, each of two bytes.
func words(n int) string { return strings.Repeat("é", n) }

// numbered is a step of n equal calls.
func numbered(n int, c Call) (calls []Call) {
	for i := range n {
		c.N = i + 1
		calls = append(calls, c)
	}
	return calls
}

func TestValidateTakes(t *testing.T) {
	for name, r := range map[string]Request{
		"permission":    permissionRequest(),
		"tool":          toolRequest(),
		"step":          stepRequest(),
		"pause":         pauseRequest(),
		"confirm":       confirmRequest(),
		"clarification": clarification(),
		"longest texts": {
			Kind: KindPermission, Tags: tags("@network"), Agent: words(MaxName), Session: words(MaxName),
			Host: words(MaxName), Key: words(MaxName), Cwd: words(MaxTagPath), Message: words(MaxMessage),
			Reason: words(MaxReason), Details: strings.Repeat("x", MaxDetails), EnvNames: []string{words(MaxName)},
		},
		"as many tags as may be":  {Kind: KindPermission, Tags: slices.Repeat(tags("@network"), MaxTags), Reason: "r"},
		"as many calls as may be": {Kind: KindTool, Calls: numbered(MaxCalls, Call{Tool: "x"})},
		"as many options as may be": {
			Kind: KindClarification, Message: "?", Choices: strings.Split("abcdefghijklmnopqrst", ""),
		},
		"as many options of a hook as may be": {
			Kind: KindTool, Tool: "x", Hook: "codex", Choices: []string{"a", "b", "c", "d"},
		},
		"as many rows of a file as may be": {
			Kind: KindTool, Tool: "x", Rows: []Rows{{First: 1, Text: strings.Repeat("x", MaxRows), After: math.MaxInt32}},
		},
		"the last row":                  {Kind: KindTool, Tool: "x", Rows: []Rows{{First: math.MaxInt32}}},
		"no file":                       {Kind: KindTool, Tool: "x", Rows: []Rows{{}}},
		"what is harmless, with no key": {Kind: KindTool, Tool: "x", Harmless: true},
		"longest tool name":             {Kind: KindTool, Tool: strings.Repeat("x", MaxName)},
		"tool with tags, null input for none": {
			Kind: KindTool, Tool: "mcp__site__publish v2", Tags: tags("@network"), Input: []byte("null"), AffectedPath: "/a",
		},
		"permission with null input": {Kind: KindPermission, Tags: tags("@network"), Reason: "r", Input: []byte("null")},
		"longest options": {
			Kind: KindClarification, Message: "?", Choices: []string{words(MaxOption), words(MaxOption - 1)},
		},
	} {
		if err := r.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every refusal says what would be right.
func TestValidateRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		base   Request
		change func(*Request)
		says   string
	}{
		{"agent", permissionRequest(), func(r *Request) { r.Agent = words(201) }, "agent must be UTF-8 text of at most 200"},
		{"session", permissionRequest(), func(r *Request) { r.Session = words(201) }, "session must be UTF-8 text"},
		{"host", permissionRequest(), func(r *Request) { r.Host = "\xff" }, "host must be UTF-8 text"},
		{"key", permissionRequest(), func(r *Request) { r.Key = words(201) }, "key must be UTF-8 text of at most 200"},
		{"cwd", permissionRequest(), func(r *Request) { r.Cwd = words(4097) }, "cwd must be UTF-8 text of at most 4096"},
		{"folder", permissionRequest(), func(r *Request) { r.Folder = words(201) }, "folder must be UTF-8 text of at most 200"},
		{"message", permissionRequest(), func(r *Request) { r.Message = words(4001) },
			"message must be UTF-8 text of at most 4000"},
		{"reason", permissionRequest(), func(r *Request) { r.Reason = words(2001) }, "at most 2000 characters, and has 2001"},
		{"environment", toolRequest(), func(r *Request) { r.EnvNames = []string{"A", "\xff"} }, "environment name must be"},
		{"environment hash", toolRequest(), func(r *Request) { r.EnvHash = words(201) }, "environment hash must be"},
		{"affected path", toolRequest(), func(r *Request) { r.AffectedPath = "\xff" }, "affected_path must be UTF-8"},
		{"affected path of a call", stepRequest(), func(r *Request) { r.Calls[1].AffectedPath = words(4097) },
			"affected_path must be UTF-8"},
		{"details", permissionRequest(), func(r *Request) { r.Details = strings.Repeat("x", MaxDetails+1) },
			"details must be UTF-8 text of at most 1048576 bytes, and have 1048577"},
		{"details in bad UTF-8", permissionRequest(), func(r *Request) { r.Details = "\xff" }, "details must be UTF-8 text"},
		{"51 tags", permissionRequest(), func(r *Request) { r.Tags = make([]Tag, MaxTags+1) }, "at most 50 permissions"},
		{"empty tag", permissionRequest(), func(r *Request) { r.Tags = []Tag{Network, {}} }, "such as @network"},

		{"no kind", Request{}, func(*Request) {}, "use permission, tool, pause or clarification"},
		{"unknown kind", Request{}, func(r *Request) { r.Kind = "Tool" }, `unknown kind "Tool"`},
		{"permission with a tool", permissionRequest(), func(r *Request) { r.Tool = "x" }, "only tool can"},
		{"permission with an input", permissionRequest(), func(r *Request) { r.Input = []byte("{}") }, "only tool can"},
		{"permission with a path", permissionRequest(), func(r *Request) { r.AffectedPath = "/" }, "only tool can"},
		{"permission with calls", permissionRequest(), func(r *Request) { r.Calls = numbered(1, Call{Tool: "x"}) },
			"a permission request cannot have calls; only tool can"},
		{"permission of a hook", permissionRequest(), func(r *Request) { r.Hook = "codex" },
			"a permission request cannot have a hook; only tool and clarification can"},
		{"permission with a mode", permissionRequest(), func(r *Request) { r.Mode = ModeContinue }, "only pause can"},
		{"permission with options", permissionRequest(), func(r *Request) { r.Choices = []string{"a", "b"} },
			"only clarification and tool can"},
		{"tool with a mode", toolRequest(), func(r *Request) { r.Mode = ModeConfirm }, "only pause can"},
		{"pause with permissions", confirmRequest(), func(r *Request) { r.Tags = tags("@network") },
			"a pause request cannot have permissions; only permission and tool can"},
		{"clarification with permissions", clarification(), func(r *Request) { r.Tags = tags("@network") },
			"only permission and tool can"},

		{"no permission", permissionRequest(), func(r *Request) { r.Tags = nil },
			"at least one permission, such as @network"},
		{"no reason", permissionRequest(), func(r *Request) { r.Reason = " \n" }, "a reason of 1 to 2000 characters"},
		{"no tool", toolRequest(), func(r *Request) { r.Tool = "" }, "names one tool with its input, or the calls"},
		{"tool and calls", toolRequest(), func(r *Request) { r.Calls = numbered(1, Call{Tool: "x"}) },
			"one tool with its input, or"},
		{"calls and an input", stepRequest(), func(r *Request) { r.Input = []byte("{}") }, "one tool with its input, or"},
		{"calls and a path", stepRequest(), func(r *Request) { r.AffectedPath = "/a" }, "one tool with its input, or"},
		{"51 calls", stepRequest(), func(r *Request) { r.Calls = numbered(51, Call{Tool: "x"}) }, "at most 50 calls, not 51"},
		{"call without a tool", stepRequest(), func(r *Request) { r.Calls[2].Tool = "" },
			"call 3 needs a printable tool name"},
		{"call with another number", stepRequest(), func(r *Request) { r.Calls[1].N = 3 },
			"call 2 needs the number 2, not 3"},
		{"tool of 201 bytes", toolRequest(), func(r *Request) { r.Tool = strings.Repeat("x", 201) }, "1 to 200 bytes"},
		{"a row of a file below the first", toolRequest(), func(r *Request) { r.Rows = []Rows{{First: -1}} }, "numbers of rows from 0"},
		{"a row that no file has", toolRequest(), func(r *Request) { r.Rows = []Rows{{First: 1 << 31}} }, "numbers of rows from 0 to 2147483647"},
		{"more rows than a file has", toolRequest(), func(r *Request) { r.Rows = []Rows{{First: 1, After: 1 << 31}} }, "numbers of rows from 0"},
		{"two parts of a file", toolRequest(), func(r *Request) { r.Rows = []Rows{{First: 1}, {First: 9}} },
			"call 1 has at most one part of its file, of at most 262144 bytes"},
		{"a part that is too long", stepRequest(), func(r *Request) { r.Calls[1].Rows = []Rows{{Text: strings.Repeat("x", MaxRows+1)}} },
			"call 2 has at most one part of its file, of at most 262144 bytes"},
		{"rows in bad UTF-8", stepRequest(), func(r *Request) { r.Calls[1].Rows = []Rows{{Text: "\xff"}} },
			"call 2 needs UTF-8 rows of its file"},
		{"what is harmless, with a key", toolRequest(), func(r *Request) { r.Harmless, r.Key = true, "k" }, "what is harmless has no key"},
		{"tool in bad UTF-8", toolRequest(), func(r *Request) { r.Tool = "a\xff" }, "printable tool name"},
		{"tool with a newline", toolRequest(), func(r *Request) { r.Tool = "a\n✅ Allowed" }, "printable tool name"},
		{"tool that turns around", toolRequest(), func(r *Request) { r.Tool = "a\u202eb" }, "printable tool name"},
		{"tool named as all tools", toolRequest(), func(r *Request) { r.Tool = AllTools }, "other than *"},

		{"pause without a mode", pauseRequest(), func(r *Request) { r.Mode = "" }, "mode continue or confirm"},
		{"pause of another mode", pauseRequest(), func(r *Request) { r.Mode = "stop" }, `not "stop"`},
		{"pause without a message", confirmRequest(), func(r *Request) { r.Message = " " }, "a message of 1 to 4000"},
		{"clarification without a message", clarification(), func(r *Request) { r.Message = "" }, "a message of 1 to 4000"},
		{"options of a tool without a hook", toolRequest(), func(r *Request) { r.Choices = []string{"a"} }, "only a hook's request"},
		{"options of a step", stepRequest(), func(r *Request) { r.Hook, r.Choices = "x", []string{"a"} }, "only a hook's request"},
		{"five options of a hook", suggesting(), func(r *Request) { r.Choices = []string{"a", "b", "c", "d", "e"} }, "at most 4 options, not 5"},
		{"equal options of a hook", suggesting(), func(r *Request) { r.Choices = []string{"a", "a"} }, "must be different"},
		{"one option", clarification(), func(r *Request) { r.Choices = r.Choices[:1] }, "2 to 20 options, not 1"},
		{"21 options", clarification(), func(r *Request) { r.Choices = make([]string, 21) }, "2 to 20 options, not 21"},
		{"equal options", clarification(), func(r *Request) { r.Choices = []string{"a", "b", "a"} },
			"option 3 must be different"},
		{"empty option", clarification(), func(r *Request) { r.Choices = []string{"a", " "} }, "option 2 must be different"},
		{"long option", clarification(), func(r *Request) { r.Choices[0] = words(201) }, "1 to 200 characters"},
		{"option in bad UTF-8", clarification(), func(r *Request) { r.Choices[0] = "\xff" }, "option 1 must be"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.change(&c.base)
			if err := c.base.Validate(); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want it to say %q", err, c.says)
			}
		})
	}
}

func TestTellingIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		about About
		told  CallerMessage
		says  string
	}{
		"a text":                {AboutText, CallerMessage{Text: "done"}, ""},
		"no text":               {AboutText, CallerMessage{Text: " \n"}, "there is no text to tell"},
		"a turn without a text": {AboutFinished, CallerMessage{}, ""},
		"a turn with a text":    {AboutFinished, CallerMessage{Text: "done"}, ""},
		"the longest text":      {AboutText, CallerMessage{Text: words(MaxCallerMessage)}, ""},
		"a longer text":         {AboutText, CallerMessage{Text: words(MaxCallerMessage + 1)}, "the text has more than 1000 characters"},
		"a longer title":        {AboutText, CallerMessage{Text: "a", Title: words(MaxTitle + 1)}, "the title has more than 100 characters"},
		"no UTF-8":              {AboutText, CallerMessage{Text: "a", Agent: "\xff"}, "the agent is not UTF-8"},
		"another subject": {AboutStopped, CallerMessage{Text: "a"},
			"what is told is about one of [finished waits failed says], not \"stopped\""},
	} {
		var got string
		if err := c.told.Validate(c.about); err != nil {
			got = err.Error()
		}
		if got != c.says {
			t.Errorf("%s: %q, want %q", name, got, c.says)
		}
	}
}
