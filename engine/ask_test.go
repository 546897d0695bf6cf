package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/permissions"
)

func allow() permissions.Answer { return permissions.Allow(permissions.Once) }

func TestAskIsAnswered(t *testing.T) {
	for _, c := range []struct {
		name string
		q    permissions.Request
		does permissions.Answer
		text string
		exit int
	}{
		{"allowed", network("x"), allow(), "Permission granted for network access.", 0},
		{"denied", network("x"), permissions.Deny, "Permission denied for network access.", 3},
		{"tool", tool("write_file", `{"path":"/a"}`), allow(), "Tool write_file approved.", 0},
		{"unknown tools are gated", tool("fly", `{}`), permissions.Deny, "Tool fly denied by the user.", 3},
		{"chosen", permissions.Request{
			Kind: permissions.KindClarification, Message: "where?", Choices: []string{"blog", "mail"},
		}, permissions.Choose(2), "mail", 0},
		{"continued", permissions.Request{Kind: permissions.KindPause, Mode: permissions.ModeContinue, Message: "look"},
			permissions.Continue, "Resumed.", 0},
		{"interrupted", permissions.Request{Kind: permissions.KindPause, Mode: permissions.ModeConfirm, Message: "sure?"},
			permissions.Interrupt, "Interrupted by the user.", 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := connectortest.NewMemory(fayAt("memory"), connectortest.Always(c.does))
			s := newEnv(t, usual(), m)
			r := s.get(s.ask(t.Context(), c.q))
			got := permissions.Result(r)
			if got.Text != c.text || got.Exit != c.exit || r.DecidedBy != "fay" || r.DecidedVia != "memory" {
				t.Errorf("got %q, exit %d, by %s via %s", got.Text, got.Exit, r.DecidedBy, r.DecidedVia)
			}
			s.edited(m, 1, func(p connectors.Prompt) bool { return p.Request.State == r.State })
		})
	}
}

func TestAskRefusesWithoutARow(t *testing.T) {
	s := usual()
	s.Limits.PendingPerCaller = 1
	s.Own = []string{"/var/lib/daycared", "/usr/bin/daycared"}
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, s, m)
	own, err := permissions.ParseTag("@read:/var")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		q    permissions.Request
		code permissions.Code
	}{
		{"no reason", network(""), permissions.CodeInvalid},
		{"bad JSON", tool("write_file", `{"a":1,"a":2}`), permissions.CodeInvalid},
		{"a forbidden tool", tool("delete_repository", `{}`), permissions.CodeForbidden},
		{"a tag over the daemon's own data", permissions.Request{
			Kind: permissions.KindPermission, Tags: []permissions.Tag{own}, Reason: "x",
		}, permissions.CodeOwnFiles},
		{"too short a wait", permissions.Request{
			Kind: permissions.KindPermission, Tags: []permissions.Tag{permissions.Network}, Reason: "x", WantedTimeout: time.Millisecond,
		}, permissions.CodeInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := st.Ask(t.Context(), self, c.q)
			refused(t, err, c.code)
		})
	}
	first := st.ask(t.Context(), network("the one that may wait"))
	st.shown(m, 1)
	_, err = st.Ask(t.Context(), self, network("one too many"))
	refused(t, err, permissions.CodeLimit)
	if rows, err := st.rows.Pending(t.Context(), "", "", 10); err != nil || len(rows) != 1 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	_, _ = m.Do(t.Context(), connectors.Decision{Request: m.Copies()[0].First.Request.ID, Answer: allow()})
	st.get(first)
}

func TestAskPromptsPerMinute(t *testing.T) {
	t.Run("F1/prompts in a minute", func(t *testing.T) {
		s := usual()
		s.Limits.PromptsPerMinute = 2
		m := connectortest.NewMemory(fayAt("memory"), connectortest.Always(allow()))
		st := newEnv(t, s, m)
		for _, reason := range []string{"a", "b"} {
			st.get(st.ask(t.Context(), network(reason)))
		}
		_, err := st.Ask(t.Context(), self, network("c"))
		refused(t, err, permissions.CodeLimit)
		if !strings.Contains(err.Error(), "try again in 30 seconds") {
			t.Error(err)
		}
		st.advance(time.Minute)
		st.get(st.ask(t.Context(), network("c")))
	})
}

// Calls that an entry of tools.auto allows are counted per caller and minute; those beyond the limit are asked about,
// and a grant covers them like any gated tool.
func TestCallsOfAnAutoToolBeyondItsRateAreAsked(t *testing.T) {
	s := usual()
	s.Policy.Auto = []string{"read_*", "list_files"}
	s.Limits.AutoPerMinute = map[string]int{"*": 2}
	m := connectortest.NewMemory(fayAt("memory"), connectortest.Always(permissions.Allow(permissions.SessionTool)))
	st := newEnv(t, s, m)
	call := func(name, input string) (r permissions.Request) {
		t.Helper()
		if r = st.get(st.ask(t.Context(), tool(name, input))); r.State != permissions.Approved {
			t.Fatalf("%s %s is %s", name, input, r.State)
		}
		return r
	}
	asked := func(want int, after string) {
		t.Helper()
		if got := len(m.Copies()); got != want {
			t.Fatalf("%d cards after %s, not %d", got, after, want)
		}
	}
	call("read_file", `{"path":"a"}`)
	call("read_other", `{"path":"a"}`)
	asked(0, "as many as may run")
	call("list_files", `{"path":"a"}`)
	asked(0, "a call by another entry")
	if r := call("read_file", `{"path":"b"}`); r.ExceededRate != 2 {
		t.Errorf("it is asked since it is beyond %d", r.ExceededRate)
	}
	asked(1, "one more")
	call("read_file", `{"path":"b"}`)
	asked(1, "what is granted for the session")
	call("read_third", `{"path":"a"}`)
	asked(2, "one more, by a name that the caller made up")
	st.advance(time.Minute)
	call("read_fourth", `{"path":"a"}`)
	asked(2, "a minute")
}

// A tool has the rate of its own name, else that of the longest pattern that matches it; its card says which.
func TestAnAutoToolHasTheRateOfItsName(t *testing.T) {
	s := usual()
	s.Policy.Auto = []string{"read_*", "list_files", "free"}
	s.Limits.AutoPerMinute = map[string]int{"read_file": 3, "read_*": 1, "[r]ead_[f]ile": 9, "[a-z]*_files": 2, "list_[a-z]*s": 5}
	m := connectortest.NewMemory(fayAt("memory"), connectortest.Always(permissions.Deny))
	st := newEnv(t, s, m)
	calls := 0
	for _, c := range []struct {
		tool       string
		runs, rate int
	}{{"read_file", 3, 3}, {"read_mine", 1, 1}, {"list_files", 2, 2}, {"free", 12, 0}} {
		for i := range c.runs {
			calls++
			if r := st.get(st.ask(t.Context(), tool(c.tool, fmt.Sprintf(`{"call":%d}`, calls)))); r.State != permissions.Approved {
				t.Errorf("call %d of %s is %s, beyond %d", i+1, c.tool, r.State, r.ExceededRate)
			}
		}
		if c.rate == 0 {
			continue
		}
		if r := st.get(st.ask(t.Context(), tool(c.tool, `{"call":0}`))); r.State != permissions.Denied || r.ExceededRate != c.rate {
			t.Errorf("one more %s is %s, beyond %d, not %d", c.tool, r.State, r.ExceededRate, c.rate)
		}
	}
	if r := st.get(st.ask(t.Context(), tool("read_made_up", `{}`))); r.ExceededRate != 1 {
		t.Errorf("a name that the caller made up is %s, beyond %d", r.State, r.ExceededRate)
	}
}

func TestAskWhatIsHeldAsksNobody(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), connectortest.Always(permissions.Allow(permissions.For(15*time.Minute))))
	st := newEnv(t, usual(), m)
	st.get(st.ask(t.Context(), network("first")))
	r := st.get(st.ask(t.Context(), network("again")))
	if got := permissions.Result(r).Text; got != "Permission already granted for network access." || r.DecidedVia != permissions.ViaGrant {
		t.Errorf("%q via %s", got, r.DecidedVia)
	}
	// People are asked only for what is missing.
	both := network("both")
	both.Tags = append(both.Tags, permissions.Workspace)
	st.get(st.ask(t.Context(), both))
	if missing := m.Copies()[1].First.Request.Missing(); len(m.Copies()) != 2 || len(missing) != 1 || missing[0] != permissions.Workspace {
		t.Errorf("asked for %v on %d cards", missing, len(m.Copies()))
	}
	st.advance(16 * time.Minute)
	st.get(st.ask(t.Context(), network("after its time")))
	if len(m.Copies()) != 3 {
		t.Error("a grant that is over still held")
	}
}

func TestAskAutoToolRunsUnasked(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	if r := st.get(st.ask(t.Context(), tool("read_file", `{"path":"/a"}`))); r.State != permissions.Approved || len(m.Copies()) != 0 {
		t.Errorf("%s with %d cards", r.State, len(m.Copies()))
	}
}

// Two equal calls without a key share one request; an approval for once goes to the one that has waited longer, and the
// other asks again. A denial goes to all.
func TestAskJoins(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	first := st.ask(t.Context(), network("x"))
	card := st.shown(m, 1)
	st.waiting(card.Request.ID, 1)
	second := st.ask(t.Context(), network("x"))
	st.waiting(card.Request.ID, 2)
	if _, err := m.Do(t.Context(), connectors.Decision{Request: card.Request.ID, Answer: allow()}); err != nil {
		t.Fatal(err)
	}
	if r := st.get(first); r.ID != card.Request.ID || r.State != permissions.Approved || r.UsedAt.IsZero() {
		t.Errorf("the first got %s of %s", r.State, r.ID)
	}
	anew := st.shown(m, 2)
	if anew.Request.ID == card.Request.ID {
		t.Fatal("the second did not ask anew")
	}
	st.waiting(anew.Request.ID, 1)
	third := st.ask(t.Context(), network("x"))
	st.waiting(anew.Request.ID, 2)
	if _, err := m.Do(t.Context(), connectors.Decision{Request: anew.Request.ID, Answer: permissions.Deny}); err != nil {
		t.Fatal(err)
	}
	for _, call := range []<-chan answer{second, third} {
		if r := st.get(call); r.State != permissions.Denied {
			t.Errorf("got %s", r.State)
		}
	}
}

func TestAskByKey(t *testing.T) {
	t.Run("D7/a key that comes again", func(t *testing.T) {
		m := connectortest.NewMemory(fayAt("memory"), connectortest.Always(allow()))
		st := newEnv(t, usual(), m)
		q := network("x")
		q.Key = "deploy-42"
		first := st.get(st.ask(t.Context(), q))
		again := st.get(st.ask(t.Context(), q))
		if first.ID != again.ID || again.State != permissions.Approved || len(m.Copies()) != 1 {
			t.Errorf("asked again: %s, then %s, %d cards", first.ID, again.ID, len(m.Copies()))
		}
		other := network("something else")
		other.Key = q.Key
		_, err := st.Ask(t.Context(), self, other)
		refused(t, err, permissions.CodeKeyTaken)
		_, err = st.Ask(t.Context(), permissions.CallerUID(askerUID+1), other) // another caller's key is a different key
		if err != nil {
			t.Error(err)
		}
		st.advance(11 * time.Minute)
		if anew := st.get(st.ask(t.Context(), q)); anew.ID == first.ID {
			t.Error("the key found its request after the redeem window")
		}
	})
}

// A caller that leaves changes nothing: the prompt says that nobody waits, the answer is kept, and a retry of the call
// finds it, once.
func TestAskLeaves(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	ctx, leave := context.WithCancel(t.Context())
	q := network("x")
	q.Call = "call-1"
	call := st.ask(ctx, q)
	card := st.shown(m, 1)
	st.waiting(card.Request.ID, 1)
	leave()
	if a := <-call; !errors.Is(a.err, context.Canceled) || a.r.State != permissions.Pending {
		t.Fatalf("%s, %v", a.r.State, a.err)
	}
	st.edited(m, 1, func(p connectors.Prompt) bool { return !p.Request.LeftAt.IsZero() })
	if _, err := m.Do(t.Context(), connectors.Decision{Request: card.Request.ID, Answer: allow()}); err != nil {
		t.Fatal(err)
	}
	q.ID = card.Request.ID
	for range 2 { // retrying after a lost response is not a second use
		if r := st.get(st.ask(t.Context(), q)); r.ID != card.Request.ID || r.State != permissions.Approved {
			t.Errorf("came back and got %s of %s", r.State, r.ID)
		}
	}
	q.Call = "call-2"
	anew := st.ask(t.Context(), q)
	if next := st.shown(m, 2); next.Request.ID == card.Request.ID {
		t.Error("an approval for once was used twice")
	}
	if _, err := m.Do(t.Context(), connectors.Decision{Request: m.Copies()[1].First.Request.ID, Answer: permissions.Deny}); err != nil {
		t.Fatal(err)
	}
	st.get(anew)
}

// A call whose wait has ended keeps its place for a short while.
func TestAskInTurns(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	q := network("x")
	q.Call = "call-1"
	now, done := context.WithDeadline(t.Context(), time.Now())
	defer done()
	r, err := st.Ask(now, self, q)
	if !errors.Is(err, context.DeadlineExceeded) || r.State != permissions.Pending {
		t.Fatalf("%s, %v", r.State, err)
	}
	st.waiting(r.ID, 1)
	if _, err := m.Do(t.Context(), connectors.Decision{Request: st.shown(m, 1).Request.ID, Answer: allow()}); err != nil {
		t.Fatal(err)
	}
	q.ID = r.ID
	if got := st.get(st.ask(t.Context(), q)); got.ID != r.ID || got.State != permissions.Approved {
		t.Errorf("got %s of %s", got.State, got.ID)
	}
}

func TestAskExpires(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	call := st.ask(t.Context(), network("x"))
	st.shown(m, 1)
	st.advance(15 * time.Minute)
	if r := st.get(call); r.State != permissions.Expired || permissions.Result(r).Text != "Permission request timed out after 15 minutes." {
		t.Errorf("%s: %s", r.State, permissions.Result(r).Text)
	}
	_, err := m.Do(t.Context(), connectors.Decision{Request: m.Copies()[0].First.Request.ID, Answer: allow()})
	refused(t, err, permissions.CodeSettled)
}

// An uncollected approval lapses, and the prompt says so.
func TestAskLapses(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	ctx, leave := context.WithCancel(t.Context())
	call := st.ask(ctx, network("x"))
	card := st.shown(m, 1)
	st.waiting(card.Request.ID, 1)
	leave()
	<-call
	if _, err := m.Do(t.Context(), connectors.Decision{Request: card.Request.ID, Answer: allow()}); err != nil {
		t.Fatal(err)
	}
	st.advance(11 * time.Minute)
	st.edited(m, 1, func(p connectors.Prompt) bool { return !p.Request.LapsedAt.IsZero() })
}

// A tag is refused if its path leads into the daemon's own files or processes, whatever it is called, even if the file
// does not exist yet.
func TestAskOwnFilesBehindALink(t *testing.T) {
	s := usual()
	own := t.TempDir()
	s.Own = []string{own}
	st := newEnv(t, s, connectortest.NewMemory(fayAt("memory"), nil))
	link, dangling := filepath.Join(t.TempDir(), "innocent"), filepath.Join(t.TempDir(), "dangling")
	mustLink(t, own, link)
	mustLink(t, filepath.Join(own, "not-yet"), dangling)
	for name, text := range map[string]string{
		"C2/a link": "@write:" + link, "C2/a file below a link": "@read:" + link + "/admin.key",
		"C2/a file below a link that is not there": "@write:" + link + "/backups/new.db", "C2/a link to what is not there": "@write:" + dangling,
		"C2/the root of the daemon":   fmt.Sprintf("@read:/proc/%d/root%s", os.Getpid(), own),
		"B7/the daemon's environment": fmt.Sprintf("@read:/proc/%d/environ", os.Getpid()),
		"B7/the daemon's memory":      fmt.Sprintf("@write:/proc/%d/mem", os.Getpid()), "B7/whoever reads it": "@read:/proc/self/environ",
		"B7/every process": "@read:/proc", "B7/all memory": "@read:/dev/mem", "B7/all devices": "@write:/dev",
	} {
		t.Run(name, func(t *testing.T) {
			tag, err := permissions.ParseTag(text)
			if err != nil {
				t.Fatal(err)
			}
			_, err = st.Ask(t.Context(), self, permissions.Request{Kind: permissions.KindPermission, Tags: []permissions.Tag{tag}, Reason: "x"})
			refused(t, err, permissions.CodeOwnFiles)
		})
	}
}

// TestToolsReachNoOwnFiles: a tool that needs no approval cannot reach daycared's own files or a folder around them, and
// people are asked about paths that may lead to them or cannot be followed.
func TestToolsReachNoOwnFiles(t *testing.T) {
	s := usual()
	home := t.TempDir()
	own := filepath.Join(home, "data")
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	s.Own = []string{own}
	s.Policy.Auto = []string{"read_file"}
	st := newEnv(t, s, newPhone(fay, "fays-phone"))
	link := filepath.Join(t.TempDir(), "innocent")
	mustLink(t, own, link)
	linked := t.TempDir()
	mustLink(t, own, filepath.Join(linked, "ln"))
	key := own + "/admin.key"
	for name, c := range map[string]struct {
		affected, input string
		code            permissions.Code
		state           permissions.State
	}{
		"C2/the path that it says":  {key, `{}`, permissions.CodeOwnFiles, ""},
		"C2/a member of its input":  {"", fmt.Sprintf(`{"absolute_path":%q}`, key), permissions.CodeOwnFiles, ""},
		"C2/one of a list":          {"", fmt.Sprintf(`{"paths":["/etc/hosts",%q]}`, key), permissions.CodeOwnFiles, ""},
		"C2/by a link":              {link + "/admin.key", `{}`, permissions.CodeOwnFiles, ""},
		"C2/by the folder above":    {home + "/x/../data/admin.key", `{}`, permissions.CodeOwnFiles, ""},
		"C2/the folder itself":      {own, `{}`, permissions.CodeOwnFiles, ""},
		"B7/the daemon's memory":    {fmt.Sprintf("/proc/%d/mem", os.Getpid()), `{}`, permissions.CodeOwnFiles, ""},
		"C2/a folder around it":     {home, `{}`, permissions.CodeOwnFiles, ""},
		"C2/everything":             {"/", `{}`, permissions.CodeOwnFiles, ""},
		"C2/nested":                 {"", fmt.Sprintf(`{"x":{"y":[%q]}}`, key), permissions.CodeOwnFiles, ""},
		"C2/a name":                 {"", fmt.Sprintf(`{"files":{%q:1}}`, key), permissions.CodeOwnFiles, ""},
		"C2/after a space":          {home, fmt.Sprintf(`{"file_path":" %s"}`, key), permissions.CodeOwnFiles, ""},
		"C2/a URL":                  {"", fmt.Sprintf(`{"file_path":"file://%s/admin%%2ekey"}`, own), permissions.CodeOwnFiles, ""},
		"C2/a glob in it":           {"", fmt.Sprintf(`{"pattern":"%s/**"}`, own), permissions.CodeOwnFiles, ""},
		"C2/beyond a link":          {"", fmt.Sprintf(`{"paths":["%s/sub/../admin.key"]}`, link), permissions.CodeOwnFiles, ""},
		"C2/a descriptor":           {"", `{"x":"/dev/fd/3"}`, permissions.CodeOwnFiles, ""},
		"C2/of the second call":     {"", "", permissions.CodeOwnFiles, ""},
		"C2/a glob around it":       {"", fmt.Sprintf(`{"include":["%s/*"]}`, home), "", permissions.Pending},
		"C2/every file":             {"", `{"pattern":"/**"}`, "", permissions.Pending},
		"C2/braces":                 {"", fmt.Sprintf(`{"pattern":"/{etc,../%s}"}`, key), "", permissions.Pending},
		"C2/a root":                 {"", `{"roots":["/"]}`, "", permissions.Pending},
		"C2/home":                   {"", `{"file_path":"~/../../x"}`, "", permissions.Pending},
		"C2/a variable":             {"", `{"file_path":"$HOME/x"}`, "", permissions.Pending},
		"C2/a file URL of no path":  {"", `{"file_path":"file:x"}`, "", permissions.Pending},
		"C2/with a sign before it":  {"", fmt.Sprintf(`{"text":"@%s/admin.key"}`, link), "", permissions.Pending},
		"C2/in a sentence":          {"", fmt.Sprintf(`{"text":"src/a, %s"}`, key), "", permissions.Pending},
		"C2/from the folder":        {"", `{"paths":["../data/admin.key"]}`, "", permissions.Pending},
		"C2/where its server is":    {"", `{"paths":["../data/admin.key"]}`, "", permissions.Pending},
		"C2/by a relative link":     {"", `{"file_path":"ln/admin.key:1"}`, "", permissions.Pending},
		"C2/whatever is there":      {"", `{"include":["l?"]}`, "", permissions.Pending},
		"C2/wherever it is":         {"", `{"pattern":"**/*.key"}`, "", permissions.Approved},
		"C2/more than is looked at": {"", `{"x":[` + strings.Repeat(`1,`, 2000) + `1]}`, "", permissions.Pending},
		"C2/only a hash":            {"", `{"input_bytes":40000,"input_sha256":"0"}`, "", permissions.Pending},
		"a pattern":                 {"", `{"pattern":"a/(b|c).*[x-z]+$","url":"https://example.org/x","$s":"src/"}`, "", permissions.Approved},
		"another file":              {"/etc/hosts", `{"path":"/etc/hosts"}`, "", permissions.Approved},
	} {
		t.Run(name, func(t *testing.T) {
			q := tool("read_file", c.input)
			q.AffectedPath, q.Cwd = c.affected, filepath.Join(home, "project")
			if strings.HasSuffix(name, "relative link") || strings.HasSuffix(name, "is there") {
				q.Cwd = linked
			}
			if strings.HasSuffix(name, "its server is") {
				q.Hook, q.Leads.Root, q.Cwd = "claude-code", q.Cwd, filepath.Join(q.Cwd, "sub/deep")
			}
			if c.input == "" {
				q.Tool, q.Input = "", nil
				q.Calls = []permissions.Call{{Tool: "read_file"}, {Tool: "read_file", AffectedPath: key}}
			}
			if c.code != "" {
				_, err := st.askAndLeave(self, q)
				refused(t, err, c.code)
				return
			}
			r, err := st.askAndLeave(self, q)
			if r.State != c.state {
				t.Errorf("it is %s, %v", r.State, err)
			}
			if r.State == permissions.Pending && len(r.Options) != 2 {
				t.Errorf("it is asked about each time, and %v is offered", r.Options)
			}
		})
	}
}

// TestNothingIsSuggestedThatReachesOwnFiles: what an agent would do in its session from then on is not offered as a button.
func TestNothingIsSuggestedThatReachesOwnFiles(t *testing.T) {
	s := usual()
	home := t.TempDir()
	s.Own = []string{filepath.Join(home, "data")}
	st := newEnv(t, s, newPhone(fay, "fays-phone"))
	const adds, allows = "add %s to the folders that Claude Code works in", "have Claude Code allow %s by itself in this session"
	for choice, offered := range map[string]bool{
		fmt.Sprintf(adds, s.Own[0]):                          false,
		fmt.Sprintf(adds, "/srv/x, "+s.Own[0]+"/logs, /y"):   false,
		fmt.Sprintf(adds, home):                              false,
		fmt.Sprintf(allows, "Read(/"+s.Own[0]+"/**)"):        false,
		fmt.Sprintf(allows, "Bash(cat "+s.Own[0]+"/audit*)"): false,
		fmt.Sprintf(adds, "/srv/x"):                          true,
		fmt.Sprintf(allows, "Bash(npm run:*), Read(src/**)"): true,
	} {
		q := tool("Bash", `{"command":"npm run build"}`)
		q.Hook, q.Cwd, q.Choices = "claude-code", "/srv/code", []string{choice}
		if r, _ := st.askAndLeave(self, q); r.Offers(permissions.AllowWithSuggestion(1)) != offered {
			t.Errorf("%s: %v", choice, r.Options)
		}
	}
}

// TestServersOfOurAgentsReachNoOwnFiles: they may be outside the sandbox. What our own tools reach is decided where they run.
func TestServersOfOurAgentsReachNoOwnFiles(t *testing.T) {
	s := owned()
	s.Own = []string{filepath.Join(t.TempDir(), "data")}
	s.Policy.Auto = []string{"*"}
	st := newEnv(t, s, newPhone(fay, "fays-phone"))
	for name, code := range map[string]permissions.Code{"fs__read": permissions.CodeOwnFiles, "read_file": ""} {
		t.Run("C2/"+name, func(t *testing.T) {
			q := keyed(tool(name, fmt.Sprintf(`{"path":"%s/admin.key"}`, s.Own[0])), name)
			r, err := st.Ask(t.Context(), helper, q)
			if permissions.CodeOf(err) != code || code == "" && r.State != permissions.Approved {
				t.Errorf("it is %s, %v", r.State, err)
			}
		})
	}
}

// A request that prompts nobody takes nothing from the caller's limit: a join, a held permission, a refusal.
func TestAskPromptsAreGivenBack(t *testing.T) {
	s := usual()
	s.Limits.PromptsPerMinute, s.Limits.PendingPerCaller = 2, 1
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, s, m)
	call := st.ask(t.Context(), network("x"))
	id := st.shown(m, 1).Request.ID
	for range 5 {
		_, err := st.Ask(t.Context(), self, network("one too many"))
		refused(t, err, permissions.CodeLimit)
		if !strings.Contains(err.Error(), "in 10 seconds") {
			t.Fatalf("refused for its prompts, not for what waits: %v", err)
		}
	}
	if _, err := st.Withdraw(t.Context(), self, id); err != nil {
		t.Fatal(err)
	}
	st.get(call)
	call = st.ask(t.Context(), network("y"))
	if _, err := st.Withdraw(t.Context(), self, st.shown(m, 2).Request.ID); err != nil {
		t.Fatal(err)
	}
	st.get(call)
}

// TestOneCallerDoesNotTakeEveryTurnToBegin: however many calls of one caller are judged, another's begins.
func TestOneCallerDoesNotTakeEveryTurnToBegin(t *testing.T) {
	st := newEnv(t, usual(), connectortest.NewMemory(fayAt("memory"), nil))
	slow, broken := make(chan bool), errors.New("it was judged for long")
	var calls sync.WaitGroup
	for range 40 {
		calls.Go(func() {
			_, err := st.AskDeferred(t.Context(), time.Time{}, self, func() (permissions.Request, error) { <-slow; return network("x"), broken })
			if !errors.Is(err, broken) {
				t.Error(err)
			}
		})
	}
	for range 8 {
		slow <- true // 32 can begin at once
	}
	other := permissions.CallerUID(askerUID + 1)
	if r, err := st.askAndLeave(other, network("another")); r.State != permissions.Pending {
		t.Errorf("%s, %v", r.State, err)
	}
	close(slow)
	calls.Wait()
}
