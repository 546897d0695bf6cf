package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/daycared/daycared/permissions"
)

var (
	created = time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	decided = time.Date(2026, 11, 21, 14, 3, 22, 0, time.UTC)
	write   = mustTag("@write:/srv/www")
)

func mustTag(text string) permissions.Tag {
	t, err := permissions.ParseTag(text)
	if err != nil {
		panic(err)
	}
	return t
}

// sample is the contract's example request.
func sample() permissions.RequestView {
	return permissions.RequestView{
		Code: "K7F3Q", Waiting: 1,
		Copies: []permissions.Copy{
			{Request: "01J", Person: "fay", Connector: "telegram", Ref: "9", SentAt: created.Add(2 * time.Second)},
			{Request: "01J", Person: "sam", Connector: "telegram", Failed: "sam has blocked the bot"},
		},
		Request: permissions.Request{
			ID: "01J", Kind: permissions.KindPermission, Agent: "deploy-1", Caller: permissions.CallerUID(1000),
			Session: "s1", Background: true, Foreground: "helper", Step: 3, Host: "vps", Cwd: "/srv/ci",
			Tags: []permissions.Tag{write}, Reason: "deploy v42",
			Options: []permissions.Option{{ID: "allow_once", Label: "Allow once"}, {ID: "deny", Label: "Deny"}},
			State:   permissions.Approved, Answer: "allow_once", Scope: permissions.Once,
			DecidedBy: "fay", DecidedVia: "telegram", DecidedAt: decided,
			Votes:  []permissions.Vote{{By: "fay", Via: "telegram", Answer: "allow_once", At: decided}},
			Quorum: 1, CreatedAt: created, Deadline: created.Add(15 * time.Minute), Asked: []string{"fay", "sam"},
		},
	}
}

const sampleJSON = `{"id":"01J","kind":"permission","agent":"deploy-1","caller":"uid:1000","session":"s1",` +
	`"background":true,"foreground":"helper","step":3,"mode":null,"claimed":false,"host":"vps","cwd":"/srv/ci",` +
	`"permissions":["@write:/srv/www"],"tool":null,"input":null,"affected_path":null,"calls":null,"high_risk":false,` +
	`"message":null,"details":null,"reason":"deploy v42",` +
	`"digest":"sha256:0000000000000000000000000000000000000000000000000000000000000000","key":null,` +
	`"options":[{"id":"allow_once","label":"Allow once"},{"id":"deny","label":"Deny"}],` +
	`"state":"approved","answer":"allow_once","scope":"once","comment":null,"decided_by":"fay",` +
	`"decided_via":"telegram","decided_at":"2026-11-21T14:03:22Z",` +
	`"votes":[{"by":"fay","via":"telegram","answer":"allow_once","at":"2026-11-21T14:03:22Z"}],"quorum":1,` +
	`"created_at":"2026-11-21T14:00:00Z","deadline":"2026-11-21T14:15:00Z","asked":["fay","sam"],` +
	`"delivered":[{"to":"fay","via":"telegram","at":"2026-11-21T14:00:02Z"}],"timed_out":false,"defaulted":false,` +
	`"used_at":null,"void_at":null,"waiting":1,"result":"Permission granted for write access to /srv/www."}`

func TestTheShapeIsTheContracts(t *testing.T) {
	agents, err := Encode(From(sample(), false))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sampleJSON, string(agents)); diff != "" {
		t.Errorf("agents' shape (-want +got):\n%s", diff)
	}
	deciders, err := Encode(From(sample(), true))
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSuffix(sampleJSON, "}") + `,"code":"K7F3Q"}`; string(deciders) != want {
		t.Errorf("deciders' shape: %s", deciders)
	}
}

func TestEmptyMembersAreNullAndListsAreLists(t *testing.T) {
	text, err := Encode(From(permissions.RequestView{}, false))
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := Decode(text, &members); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"agent", "session", "foreground", "step", "mode", "host", "cwd", "tool", "input", "affected_path", "calls", "message",
		"details", "reason", "key", "answer", "scope", "comment", "decided_by", "decided_via", "decided_at", "created_at",
		"deadline", "used_at", "void_at",
	} {
		if v, there := members[name]; v != nil || !there {
			t.Errorf("%s is %v, want null", name, v)
		}
	}
	for _, name := range []string{"permissions", "options", "votes", "asked", "delivered"} {
		if list, ok := members[name].([]any); !ok || len(list) != 0 {
			t.Errorf("%s is %v, want []", name, members[name])
		}
	}
}

// requests are one of each kind and state.
func requests() map[string]permissions.RequestView {
	of := func(change func(*permissions.Request)) permissions.RequestView {
		s := sample()
		change(&s.Request)
		return s
	}
	after := sample()
	after.Request.State, after.Recent = permissions.Pending, permissions.RecentActivity{
		Allowed: 2, Denied: 1, Last: []permissions.Request{sample().Request}, AllowedBefore: 3, AllowedBy: "sam",
	}
	return map[string]permissions.RequestView{
		"approved": sample(), "after others": after,
		"until": of(func(r *permissions.Request) {
			r.Answer, r.Scope = "allow_15m", permissions.For(15*time.Minute)
		}),
		"held": of(func(r *permissions.Request) { r.DecidedVia, r.DecidedBy = permissions.ViaGrant, "" }),
		"pending": of(func(r *permissions.Request) {
			r.State, r.Answer, r.Scope, r.DecidedAt, r.Votes = permissions.Pending, "", permissions.Scope{}, time.Time{}, nil
		}),
		"undeliverable": of(func(r *permissions.Request) {
			r.State, r.Failure = permissions.Undeliverable, "fay has blocked the bot; sam could not be delivered: at all"
		}),
		"forbidden": of(func(r *permissions.Request) {
			r.Kind, r.Tags, r.Tool, r.Input = permissions.KindTool, nil, "run_command", json.RawMessage(`{"cmd":"ls"}`)
			r.State, r.DecidedBy, r.DecidedVia, r.Failure = permissions.Denied, "", permissions.ViaRule, `rule 3, "no ls"`
		}),
		"expired": of(func(r *permissions.Request) {
			r.State, r.DecidedVia = permissions.Expired, permissions.ViaTimeout
		}),
		"taken back": of(func(r *permissions.Request) { r.UsedAt, r.VoidAt = decided, decided }),
		"one call": of(func(r *permissions.Request) {
			r.Kind, r.Tags, r.Tool, r.Input = permissions.KindTool, nil, "run_command", json.RawMessage(`{"cmd":"ls"}`)
			r.AffectedPath, r.HighRisk, r.Key, r.Hook = "/srv", true, "k", "codex"
		}),
		"step": of(func(r *permissions.Request) {
			r.Kind, r.Tags, r.Scope = permissions.KindTool, nil, permissions.Once
			r.Calls = []permissions.Call{
				{N: 1, Tool: "a", Input: json.RawMessage(`[1]`), Answer: "allow_once"},
				{N: 2, Tool: "b", Input: json.RawMessage(`null`), Answer: "deny", Comment: "not\nthis", AffectedPath: "/x"},
			}
			r.Votes = []permissions.Vote{
				{By: "sam", Via: "cli", Answer: "allow_once", At: decided, Call: 1},
				{By: "kim", Via: "cli", Answer: "deny", At: decided, Call: 2},
			}
		}),
		"confirmed no": of(func(r *permissions.Request) {
			r.Kind, r.Tags, r.Mode, r.Message, r.Details = permissions.KindPause, nil, permissions.ModeConfirm, "go?", "d"
			r.State, r.Answer, r.Comment = permissions.Denied, permissions.Deny, "later"
		}),
		"chosen": of(func(r *permissions.Request) {
			r.Kind, r.Tags, r.Message, r.Choices = permissions.KindClarification, nil, "where?", []string{"blog", "mail"}
			r.Options = permissions.Offer(*r, nil, permissions.Scope{})
			r.State, r.Answer, r.TimedOut = permissions.Answered, permissions.Choose(2), true
		}),
		"from elsewhere": of(func(r *permissions.Request) {
			r.Caller, r.Claimed = permissions.Caller{Name: "token:deploy", UID: permissions.NoUID}, true
		}),
	}
}

func TestARequestComesBack(t *testing.T) {
	for name, standing := range requests() {
		t.Run(name, func(t *testing.T) {
			w := From(standing, true)
			text, err := Encode(w)
			if err != nil {
				t.Fatal(err)
			}
			var read Request
			if err := Decode(text, &read); err != nil {
				t.Fatal(err)
			}
			back, err := read.View()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(w, From(back, true)); diff != "" {
				t.Errorf("told again (-first +again):\n%s", diff)
			}
			scopes := cmp.Comparer(func(a, b permissions.Scope) bool { return a == b })
			tags := cmp.Comparer(func(a, b permissions.Tag) bool { return a == b })
			if diff := cmp.Diff(standing.Request.Outcome(), back.Request, scopes, tags, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("request (-sent +read):\n%s", diff)
			}
			if got, want := permissions.Result(back.Request), permissions.Result(standing.Request); got != want {
				t.Errorf("result %v, want %v", got, want)
			}
			alone, err := read.Permissions()
			if err != nil || alone.ID != "01J" {
				t.Errorf("Permissions: %v, %v", alone.ID, err)
			}
		})
	}
}

func TestAnAnswerWithoutMeaningIsNotRead(t *testing.T) {
	bad := "nonsense"
	for name, change := range map[string]func(*Request){
		"tag":    func(w *Request) { w.Tags = []string{bad} },
		"digest": func(w *Request) { w.Digest = bad },
		"scope":  func(w *Request) { w.Scope = &bad },
	} {
		w := From(sample(), true)
		change(&w)
		if _, err := w.View(); err == nil || !strings.Contains(err.Error(), "01J") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
