package permissions

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
)

func TestNewID(t *testing.T) {
	a, b := NewID(noon), NewID(noon.Add(time.Millisecond))
	if a >= b || a == NewID(noon) || len(a) != 26 {
		t.Errorf("%s, then %s: ids grow with time and are never the same", a, b)
	}
	// A clock that is odd makes an id all the same.
	for at, want := range map[time.Time]uint64{
		noon: uint64(noon.UnixMilli()),
		{}:   0,
		time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC):  0,
		time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC): ulid.MaxTime(),
	} {
		if id := must(ulid.ParseStrict(string(NewID(at)))); id.Time() != want {
			t.Errorf("the id of %s has time %d, want %d", at, id.Time(), want)
		}
	}
}

func TestToolCalls(t *testing.T) {
	one := toolRequest()
	one.AffectedPath, one.Answer, one.Comment = "/a", Deny, "no"
	want := Call{N: 1, Tool: "write_file", Input: one.Input, AffectedPath: "/a", Answer: Deny, Comment: "no"}
	if got := one.ToolCalls(); len(got) != 1 || CallDigest(Request{}, got[0]) != CallDigest(Request{}, want) || got[0].Comment != "no" ||
		got[0].N != 1 || got[0].Answer != Deny {
		t.Errorf("got %+v", got)
	}
	if got := stepRequest().ToolCalls(); len(got) != 3 || got[2].N != 3 {
		t.Errorf("got %+v", got)
	}
	if got := permissionRequest().ToolCalls(); got != nil {
		t.Errorf("a permission calls %+v", got)
	}
	if got := stepRequest().ToolNames(); !slices.Equal(got, []string{"write_file", "fetch_url"}) {
		t.Errorf("got %v", got)
	}
}

func TestRequestMissingAndTimeout(t *testing.T) {
	r := permissionRequest()
	r.Held = tags("@write:/srv")
	if got := r.Missing(); !slices.Equal(got, tags("@network")) {
		t.Errorf("missing %v", got)
	}
	if r.Timeout() != 15*time.Minute {
		t.Errorf("it waits %s", r.Timeout())
	}
}

// A caller may propose an id only if it could have been created just now.
func TestMadeAt(t *testing.T) {
	id := NewID(noon)
	for _, c := range []struct {
		name string
		id   ID
		at   time.Time
		want bool
	}{
		{"just now", id, noon, true},
		{"a little ago", id, noon.Add(idSkew - time.Millisecond), true},
		{"by a clock that is ahead", id, noon.Add(time.Millisecond - idSkew), true},
		{"too long ago", id, noon.Add(idSkew), false},
		{"too far ahead", id, noon.Add(-idSkew), false},
		{"long ago", NewID(time.Time{}), noon, false},
		{"at the end of time", ID(must(ulid.New(ulid.MaxTime(), rand.Reader)).String()), noon, false},
		{"in lower case", ID(strings.ToLower(string(id))), noon, false},
		{"too short", id[:25], noon, false},
		{"too long", id + "0", noon, false},
		{"with a letter that is none", id[:25] + "U", noon, false},
		{"empty", "", noon, false},
	} {
		if got := c.id.FitsTime(c.at); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestBrief(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "äö": "äö", "äöü": "äöü", "äöüß": "äö…", "ä\u200Düß": "ä…", "ä\u200Dü": "ä\u200Dü",
	} {
		if got := Brief(text, 3); got != want {
			t.Errorf("%q in brief is %q, want %q", text, got, want)
		}
	}
}

func TestAnAgentRestsWithNothingToBegin(t *testing.T) {
	for _, a := range []Activity{Idle, Running, Paused, AwaitingUser, Interrupted} {
		over := a == Idle || a == Interrupted
		if got := (Presence{Activity: a}).IsIdle(); got != over {
			t.Errorf("%s: rests %v", a, got)
		}
		if (Presence{Activity: a, Undelivered: 1}).IsIdle() {
			t.Errorf("%s, with a message to hear: rests", a)
		}
	}
}

// TestATitleHasNothingOfWhatIsAskedFor fills every text of a request, whatever is added to it: those that are left say who asks, and
// where.
func TestATitleHasNothingOfWhatIsAskedFor(t *testing.T) {
	left := []string{
		"Agent", "Session", "Host", "Cwd", "Folder", "Tool", "Foreground", "Key", "Hook", "HookStage", "Call", "Group", "Asked",
		"EscalateTo", "DecidedBy", "DecidedVia", "Failure", "UsedCall", "VoidedBy", "EnvHash", "ID", "Kind", "Mode", "Scope", "Widest",
		"State", "Answer", "Caller", "Grants",
	}
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		switch {
		case v.Type() == reflect.TypeFor[json.RawMessage]():
			v.Set(reflect.ValueOf(json.RawMessage(`"plum"`)))
		case v.Type() == reflect.TypeFor[Tag]():
			v.Set(reflect.ValueOf(Tag{verb: "@write", path: "/plum"}))
		case v.Kind() == reflect.String:
			v.SetString("plum")
		case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0))
		case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]():
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					fill(v.Field(i))
				}
			}
		}
	}
	var r Request
	fill(reflect.ValueOf(&r).Elem())
	r.Options = []Option{{ID: Allow(Once), Label: "plum"}, {ID: Deny, Label: "Deny"}, {ID: Choose(0), Label: "plum"}}
	title := reflect.ValueOf(r.Title())
	for i := range title.NumField() {
		field := title.Type().Field(i)
		text := fmt.Sprintf("%+v %s", title.Field(i), title.Field(i).Interface())
		switch field.Name {
		case "Calls": // of which the tools are left, and who answered
			c := r.Title().Calls[0]
			text = string(c.Input) + c.AffectedPath + c.Comment + fmt.Sprint(c.Rows)
		case "Votes":
			text = r.Title().Votes[0].Comment
		}
		if strings.Contains(text, "plum") && !slices.Contains(left, field.Name) {
			t.Errorf("%s is left: %s", field.Name, text)
		}
	}
	if r.Calls[0].Comment == "" || r.Votes[0].Comment == "" || r.Tags[0].Path() == "" || len(r.Options) != 3 {
		t.Error("the request itself was changed")
	}
}

// TestDenoted: an id is named by itself, or by a part at one of its ends that no other has; a part of several names none of them.
func TestDenoted(t *testing.T) {
	all := []ID{"01JD3XKQ2N8Z5T7W9Y1B3C5D7F", "01JD3XKQ2N8Z5T7W9Y1BAC5D7G", "01JD4XKQ2N8Z5T7W9Y1BQQ5D7F"}
	for name, want := range map[string]ID{
		"01JD3XKQ2N8Z5T7W9Y1B3C5D7F": all[0], "3C5D7F": all[0], "c5d7g": all[1], "C5D7G": all[1], "01jd4": all[2], "01JD4XKQ": all[2],
		"D7F": "D7F", "": "", "8Z5T": "8Z5T", "deploy": "deploy", "01JD3XKQ2N8Z5T7W9Y1B3C5D7Z": "01JD3XKQ2N8Z5T7W9Y1B3C5D7Z",
	} {
		if got, err := ResolveID(name, all); got != want || err != nil {
			t.Errorf("%q denotes %q, %v; want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]string{
		"5d7f": "Nothing was changed: 5d7f can be any of 3C5D7F, QQ5D7F. Write one of them.",
		"01JD": "Nothing was changed: 01JD can be any of 3C5D7F, AC5D7G, QQ5D7F. Write one of them.",
	} {
		got, err := ResolveID(name, all)
		if slices.Contains(all, got) || CodeOf(err) != CodeInvalid || err.Error() != want {
			t.Errorf("%q denotes %q, %v; want: %s", name, got, err, want)
		}
	}
	many := make([]ID, 11)
	for i := range many {
		many[i] = all[0][:24] + ID(rune('A'+i)) + "7"
	}
	for n, more := range map[int]bool{10: false, 11: true} {
		if _, err := ResolveID("01JD", many[:n]); err == nil || strings.Contains(err.Error(), ", …") != more {
			t.Errorf("%d ids: %v", n, err)
		}
	}
	_, err := ResolveID("01JD", []ID{"01JD3XKQ2N8Z5T7W9Y1B3C5D7F", "01JD4XKQ2N8Z5T7W9Y1B3C5D7F"})
	want := "Nothing was changed: 01JD can be any of 01JD3XKQ2N8Z5T7W9Y1B3C5D7F, 01JD4XKQ2N8Z5T7W9Y1B3C5D7F. Write one of them."
	if err == nil || err.Error() != want {
		t.Errorf("ids with one end are not told apart: %v", err)
	}
}

// TestAHookNamesFilesInFull: what is not absolute, clean and visible leads nowhere.
func TestAHookNamesFilesInFull(t *testing.T) {
	l := Leads{Names: map[string]string{"/a": "/srv/a", "/b": "srv/b", "/c": "/srv/../c", "/d": "/srv/d/", "/e": "/srv/\x1be"}}
	for name, want := range map[string]string{"/a": "/srv/a", "/b": "", "/c": "", "/d": "", "/e": "", "/f": ""} {
		if got := l.Resolve(name); got != want {
			t.Errorf("%s leads to %q, not %q", name, got, want)
		}
	}
}

// TestANameIsFollowedThroughEachLink on its way, and one that leads back to itself nowhere.
func TestANameIsFollowedThroughEachLink(t *testing.T) {
	l := Leads{Names: map[string]string{"/w": "/w", "/w/a": "/w/b", "/w/b": "/etc", "/o": "/p", "/p": "/o"}}
	for name, want := range map[string]string{"/w/a/x": "/etc/x", "/w/b/../a/x": "/etc/x", "/w/x": "/w/x", "/x": "", "/o/x": ""} {
		if got := l.Follow(name); got != want {
			t.Errorf("%s leads to %q, not %q", name, got, want)
		}
	}
}

// TestTheInputOfALongCallIsReadFromItsDetails if a hook wrote only its hash; what an agent says by itself is its input as it stands.
func TestTheInputOfALongCallIsReadFromItsDetails(t *testing.T) {
	const hash, short = `{"input_bytes":40000,"input_sha256":"00"}`, `{"command":"ls"}`
	const details = "\"limit\", 1 bytes:\n    5\n\"command\", 13 bytes:\n    ls\n    git push\n"
	for _, c := range []struct {
		hook, input, want string
		condensed         bool
	}{
		{"claude-code", hash, `{"command":"ls\ngit push","limit":5}`, true}, {"claude-code", short, short, false}, {"", hash, hash, false},
	} {
		r := Request{Kind: KindTool, Hook: c.hook, Input: json.RawMessage(c.input), Details: details}
		if got, condensed := r.FullInput(r.ToolCalls()[0]); string(got) != c.want || condensed != c.condensed {
			t.Errorf("of %s by hook %q it is %s, condensed %t", c.input, c.hook, got, condensed)
		}
	}
}

// TestWhatLeadsElsewhere: of the names that a hook has resolved, people are shown those that lead elsewhere, and not what follows from
// a folder above them.
func TestWhatLeadsElsewhere(t *testing.T) {
	at := func(pairs ...string) map[string]string {
		names := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			names[pairs[i]] = pairs[i+1]
		}
		return names
	}
	for name, c := range map[string]struct{ leads, want map[string]string }{
		"nothing":                 {nil, nil},
		"files":                   {at("/", "/", "/w", "/w", "/w/a", "/w/a", "/w/./a", "/w/a", "/w/b/../a", "/w/a"), nil},
		"a link":                  {at("/w", "/w", "/w/a", "/etc/passwd", "/w/./a", "/etc/passwd"), at("/w/a", "/etc/passwd")},
		"a linked folder":         {at("/tmp/w", "/private/tmp/w", "/tmp/w/a", "/private/tmp/w/a"), at("/tmp/w", "/private/tmp/w")},
		"a link in one":           {at("/w", "/v", "/w/a/b", "/etc/b"), at("/w", "/v", "/w/a/b", "/etc/b")},
		"a link back":             {at("/w", "/v", "/w/a", "/w/a"), at("/w", "/v", "/w/a", "/w/a")},
		"a parent through a link": {at("/w", "/w", "/w/a/../b", "/etc/b", "/w/b", "/w/b"), at("/w/a/../b", "/etc/b")},
		"unknown":                 {at("/w", "/w", "/w/a", "", "a", "a"), nil},
		"what is no file's name":  {at("/w", "/w", "/w/a", "/x\n", "b", "/b"), at("/w/a", "/x\n", "b", "/b")},
	} {
		var got map[string]string
		if l := (Leads{Root: "/w", Names: c.leads}).Symlinks(); l != nil {
			got = l.Names
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v instead of %v", name, got, c.want)
		}
		all := Leads{Names: c.leads}
		for n := range c.leads {
			if to := cmp.Or((Leads{Names: got}).Follow(n), path.Clean(n)); all.Resolve(n) != "" && to != all.Resolve(n) {
				t.Errorf("%s: what is left of it says that %s leads to %s", name, n, to)
			}
		}
	}
}
