package telegram

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

// pressable checks what holds for every keyboard: Telegram takes it, what its buttons carry can be read, and under a
// card that is too big none allows.
func pressable(t tester, k keyboard, tooBig bool) {
	t.Helper()
	buttons := slices.Concat(k.Rows...)
	if k.Rows == nil || len(buttons) > 100 {
		t.Fatalf("a keyboard of %d buttons: %v", len(buttons), k.Rows)
	}
	seen := map[string]bool{}
	for _, b := range buttons {
		pr, ok := parseData(b.Data)
		if _, is := parseList(b.Data); is {
			pr.Button, ok = aButton, true
		}
		switch {
		case len(b.Data) > 64 || !ok || pr.Button != aButton || seen[b.Data]:
			t.Fatalf("a button carries %q, read as %+v", b.Data, pr)
		case strings.TrimSpace(b.Text) == "", card.UTF16.Of(b.Text) > maxLabel,
			strings.ContainsFunc(b.Text, vanishes), strings.Contains(b.Text, "\n"):
			t.Fatalf("a button says %q", b.Text)
		}
		if _, allows := pr.Answer.Scope(); allows && tooBig {
			t.Fatalf("%q allows what was not shown whole", b.Text)
		}
		seen[b.Data] = true
	}
}

// labels are the texts of a keyboard, row by row.
func labels(k keyboard) (rows []string) {
	for _, row := range k.Rows {
		var words []string
		for _, b := range row {
			words = append(words, b.Text)
		}
		rows = append(rows, strings.Join(words, " | "))
	}
	return rows
}

func TestKeys(t *testing.T) {
	const tool = permissions.KindTool
	for name, c := range map[string]struct {
		p    connectors.Prompt
		want []string
	}{
		"two tools": {prompt(t, tool, func(r *permissions.Request) {
			calls(2)(r)
			r.Calls[1].Tool = "ls"
		}), []string{
			"✅ Allow all | ⛔ Deny all", "#1 ✅ | #1 ⛔", "#2 ✅ | #2 ⛔",
			"✏️ Deny, say why | ⋯ More", "more:", "Allow these exact calls for this session", "Allow these exact calls for 15 minutes",
		}},
		"four tools": {prompt(t, tool, func(r *permissions.Request) {
			calls(4)(r)
			for i := range r.Calls {
				r.Calls[i].Tool = strings.Repeat("tool", 10) + string(rune('a'+i))
			}
		}), []string{
			"✅ Allow all | ⛔ Deny all", "#1 ✅ | #1 ⛔", "#2 ✅ | #2 ⛔", "#3 ✅ | #3 ⛔", "#4 ✅ | #4 ⛔",
			"✏️ Deny, say why | ⋯ More", "more:", "Allow these exact calls for this session", "Allow these exact calls for 15 minutes",
		}},
		"a tool of ours": {prompt(t, tool, func(r *permissions.Request) {
			r.Caller = permissions.Caller{Name: "agent:helper", UID: permissions.NoUID}
			r.Tool = strings.Repeat("long", 20)
		}), []string{
			"✅ Allow once | ⛔ Deny", "✏️ Deny, say why | ⋯ More", "more:", "Allow longlonglonglonglonglonglonglonglon… for this session",
			"Allow all gated tools this session but high risk and shells",
			"Allow longlonglonglonglonglonglonglonglon… for 15 minutes",
		}},
		"a tool called like an option": {prompt(t, tool, func(r *permissions.Request) {
			r.Tool = "all gated tools"
		}), []string{
			"✅ Allow once | ⛔ Deny", "✏️ Deny, say why | ⋯ More", "more:", "Allow this exact call for this session",
			"Allow this exact call for 15 minutes",
		}},
		"a question": {prompt(t, permissions.KindClarification, func(r *permissions.Request) {
			r.Choices = []string{"blog", "✏️ Other"}
		}), []string{"1 · blog", "2 · ✏️ Other", "✏️ Other | ⋯ More", "more:"}},
		"a plan": {prompt(t, tool, func(r *permissions.Request) { r.Tool, r.Input = "ExitPlanMode", json.RawMessage(`{}`) }), []string{
			"✅ Start | ⛔ Stop", "✏️ Change it | ⋯ More", "more:", "Allow this exact call for this session", "Allow this exact call for 15 minutes",
		}},
	} {
		got := labels(keys(c.p))
		if more := labels(keysMore(c.p)); more[len(more)-1] == "↩︎ Back" {
			got = slices.Concat(got, []string{"more:"}, more[:len(more)-1])
		}
		if diff := cmp.Diff(append(c.want, "⛔ Deny and stop this agent"), got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestNoKeys(t *testing.T) {
	settled := after(t, prompt(t, permissions.KindTool, nil), vote("fay", "cli", permissions.Deny, nil))
	for name, p := range map[string]connectors.Prompt{
		"settled":          settled,
		"without a value":  {Request: prompt(t, permissions.KindTool, nil).Request},
		"a value too long": {Request: prompt(t, permissions.KindTool, nil).Request, Button: strings.Repeat("x", 41)},
	} {
		for _, k := range []keyboard{keys(p), keysMore(p), keysTooBig(p), keysAgain(p, press{Answer: "allow_once"})} {
			if k.Rows == nil || len(k.Rows) != 0 {
				t.Errorf("%s: %v", name, k)
			}
		}
	}
}

func TestKeysTooBig(t *testing.T) {
	for kind, want := range map[permissions.Kind][]string{
		permissions.KindPermission: {"⛔ Deny"}, permissions.KindPause: {"✋ Interrupt"}, permissions.KindClarification: nil,
	} {
		k := keysTooBig(prompt(t, kind, nil))
		pressable(t, k, true)
		if diff := cmp.Diff(want, labels(k)); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
	}
}

// TestHighRiskIsConfirmedTwice says how high risk is asked twice, and that the second yes is nowhere where a first one is pressed.
func TestHighRiskIsConfirmedTwice(t *testing.T) {
	one := prompt(t, permissions.KindTool, highRisk)
	all := prompt(t, permissions.KindTool, both(calls(2), highRisk))
	pause := prompt(t, permissions.KindPause, both(confirm, highRisk))
	step := after(t, all,
		vote("fay", "cli", permissions.Deny, func(v *permissions.Vote) { v.Call = 2 }))
	for _, c := range []struct {
		name  string
		p     connectors.Prompt
		first press
		want  string
		data  string
	}{
		{"once", one, press{Answer: "allow_once"}, "⚠️ Yes, allow once", "allow_once"},
		{"all", all, press{Answer: "allow_once"}, "⚠️ Yes, allow all", "allow_once"},
		{"a confirmation", pause, press{Answer: "allow_once"}, "⚠️ Yes, approve", "allow_once"},
		{"the rest", step, press{Answer: "allow_once"}, "⚠️ Yes, allow the rest", "allow_once"},
		{"one call", step, press{Answer: "allow_once", Call: 1}, "⚠️ Yes, allow #1", "allow_once#1"},
	} {
		c.first.Step, c.first.Button = stepReally, aButton
		first, second := keys(c.p), keysAgain(c.p, c.first)
		pressable(t, second, false)
		if len(second.Rows) != 1 || len(second.Rows[0]) != 2 {
			t.Fatalf("%s: %v", c.name, second)
		}
		back, yes := second.Rows[0][0], second.Rows[0][1]
		if back.Data != aButton+".<" || yes.Text != c.want || yes.Data != aButton+"."+c.data {
			t.Errorf("%s: %v", c.name, second)
		}
		if !slices.ContainsFunc(slices.Concat(first.Rows...), func(k key) bool { return k.Data == c.first.data() }) {
			t.Errorf("%s: no button of %v asks for it", c.name, labels(first))
		}
		for _, row := range first.Rows {
			for i, k := range row {
				pr, _ := parseData(k.Data)
				if _, allows := pr.Answer.Scope(); allows && (pr.Step != stepReally || i > 0) {
					t.Errorf("%s: %v of the first step is to the right or allows at once", c.name, k)
				}
			}
		}
	}
	for name, c := range map[string]struct {
		p     connectors.Prompt
		first press
	}{
		"no high risk":          {prompt(t, permissions.KindTool, nil), press{Answer: "allow_once"}},
		"a denial":              {one, press{Answer: "deny"}},
		"an answer not offered": {one, press{Answer: "allow_always"}},
		"an answered call":      {step, press{Answer: "allow_once", Call: 2}},
	} {
		if diff := cmp.Diff(keys(c.p), keysAgain(c.p, c.first)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestData says that every answer there can be makes data of at most 64 bytes, with the longest value of a copy.
func TestData(t *testing.T) {
	button := strings.Repeat("Z", maxButton)
	answers := []permissions.Answer{permissions.Deny, permissions.Continue, permissions.Interrupt}
	for _, s := range []permissions.Scope{
		permissions.Once, permissions.SessionTool, permissions.Session, permissions.Always,
		permissions.For(permissions.MaxSpan), permissions.For(permissions.MaxSpan - time.Second),
	} {
		answers = append(answers, permissions.Allow(s))
	}
	for k := range permissions.MaxOptions {
		answers = append(answers, permissions.Choose(k+1))
	}
	read := 0
	for _, a := range answers {
		for _, call := range []int{0, 1, permissions.MaxCalls} {
			for _, step := range []string{"", stepReally} {
				pr := press{Button: button, Answer: a, Call: call, Step: step}
				if n := len(pr.data()); n > 64 {
					t.Errorf("%s has %d bytes", pr.data(), n)
				}
				if got, ok := parseData(pr.data()); ok {
					read++
					if got != pr {
						t.Errorf("%s is read as %+v", pr.data(), got)
					}
				} else if step == "" && call == 0 {
					t.Errorf("%s is not read", pr.data())
				}
			}
		}
	}
	if want := len(answers) + 6 + 2 + 2 + 2; read != want { // and !allow of six, #n of once and deny, !once#n
		t.Errorf("%d are read; want %d", read, want)
	}
}

// TestButtonsOfEarlierLayouts has the data of buttons as they stand in chats since before cards began with what is asked for.
func TestButtonsOfEarlierLayouts(t *testing.T) {
	for data, want := range map[string]press{
		"AbC.allow_once":    {Button: "AbC", Answer: permissions.Allow(permissions.Once)},
		"AbC.allow_once#2":  {Button: "AbC", Answer: permissions.Allow(permissions.Once), Call: 2},
		"AbC.allow_15m":     {Button: "AbC", Answer: permissions.Allow(permissions.For(15 * time.Minute))},
		"AbC.allow_session": {Button: "AbC", Answer: permissions.Allow(permissions.Session)},
		"AbC.allow_always":  {Button: "AbC", Answer: permissions.Allow(permissions.Always)},
		"AbC.!allow_once":   {Button: "AbC", Answer: permissions.Allow(permissions.Once), Step: stepReally},
		"AbC.deny":          {Button: "AbC", Answer: permissions.Deny},
		"AbC.deny#1":        {Button: "AbC", Answer: permissions.Deny, Call: 1},
		"AbC.option_3":      {Button: "AbC", Answer: permissions.Choose(3)},
		"AbC.continue":      {Button: "AbC", Answer: permissions.Continue},
		"AbC.interrupt":     {Button: "AbC", Answer: permissions.Interrupt},
		"AbC.?reason":       {Button: "AbC", Step: stepReason},
		"AbC.?other":        {Button: "AbC", Step: stepOther},
		"AbC.<":             {Button: "AbC", Step: stepBack},
	} {
		if got, ok := parseData(data); !ok || got != want {
			t.Errorf("%s is read as %+v, %v; want %+v", data, got, ok, want)
		}
	}
}

func TestParseDataIsStrict(t *testing.T) {
	for _, data := range []string{
		"", ".", "x", "x.", ".allow_once", "x.allow", "x.allow_", "x.Allow_once", "x.allow_once ", " x.allow_once",
		"x.allow_060m", "x.allow_60m", "x.allow_721h", "x.allow_0s", "x.allow_once#", "x.allow_once#0", "x.allow_once#01",
		"x.allow_once#51", "x.allow_once#-1", "x.allow_once#+1", "x.allow_session#1", "x.allow_15m#2", "x.deny#2#3",
		"x.!deny", "x.!", "x.!!allow_once", "x.!option_1", "x.?", "x.?others", "x.?reason#1", "x.?other#1",
		"x.!?other", "x.other", "x.<#1", "x.!<", "x.<<",
		"x.continue#1", "x.option_0", "x.option_01", "x.option_21", "x.option_1#1", "x.option_", "x.x.deny", "x..deny",
		"x y.deny", "é.deny", "x.deny\n", strings.Repeat("x", 41) + ".deny", strings.Repeat("x", 41) + ".<", ".?reason",
	} {
		t.Run("A5/"+data, func(t *testing.T) {
			if pr, ok := parseData(data); ok || pr != (press{}) {
				t.Errorf("%q is read as %+v", data, pr)
			}
		})
	}
}

// FuzzParseData says that what is read is exactly what a button would carry.
func FuzzParseData(f *testing.F) {
	for _, data := range []string{
		aButton + ".allow_once", aButton + ".!allow_15m", aButton + ".deny#7", aButton + ".?reason", aButton + ".?other", aButton + ".<",
		aButton + ".option_20", "x.!allow_once#50", "x.interrupt", "x.?other", "",
	} {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data string) {
		pr, ok := parseData(data)
		if ok && (pr.data() != data || len(data) > 64 || !isButton(pr.Button)) || !ok && pr != (press{}) {
			t.Errorf("%q is read as %+v, %v", data, pr, ok)
		}
	})
}
