package permissions

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// A play is a sequence of votes, one line each: who, an answer, and the call it is for, if any. A leading ! means that
// it is refused, a leading = that it changes nothing.
type play struct {
	name   string
	make   func() Request
	quorum int
	lines  []string
	state  State
	answer Answer
}

var plays = []play{
	{"one is enough", permissionRequest, 1, []string{"fay allow_session"}, Approved, "allow_session"},
	{"quorum of two", permissionRequest, 2, []string{"fay allow_once", "sam allow_once"}, Approved, "allow_once"},
	{"below the quorum", permissionRequest, 2, []string{"fay allow_once"}, Pending, ""},
	{"the narrowest counts", permissionRequest, 2,
		[]string{"fay allow_session", "sam allow_once"}, Approved, "allow_once"},
	{"shorter than always", permissionRequest, 2, []string{"fay allow_always", "sam allow_15m"}, Approved, "allow_15m"},
	{"not to be compared", permissionRequest, 2, []string{"fay allow_session", "sam allow_15m"}, Approved, "allow_once"},
	{"one denial denies", permissionRequest, 2, []string{"fay allow_once", "sam deny"}, Denied, "deny"},
	{"the first denial denies", permissionRequest, 2, []string{"fay deny"}, Denied, "deny"},
	{"one vote a person", permissionRequest, 2,
		[]string{"fay allow_once", "=fay allow_once", "=fay allow_once"}, Pending, ""},
	{"no other allowance", permissionRequest, 2, []string{"fay allow_once", "!fay allow_session"}, Pending, ""},
	{"allow becomes deny", permissionRequest, 2, []string{"fay allow_once", "fay deny"}, Denied, "deny"},
	{"and never back", permissionRequest, 2, []string{"fay allow_once", "fay deny", "!fay allow_once"}, Denied, "deny"},
	{"after the end", permissionRequest, 1, []string{"fay allow_once", "!sam deny", "!fay deny"}, Approved, "allow_once"},
	{"a stranger does not count", permissionRequest, 2, []string{"fay allow_once", "!eve allow_once"}, Pending, ""},
	{"a suggestion is taken", suggesting, 1, []string{"fay allow_with_2"}, Approved, "allow_with_2"},
	{"a suggestion that is not there", suggesting, 1,
		[]string{"!fay allow_with_3", "!fay allow_with_0", "!fay allow_with_01", "!fay allow_with_1 1"}, Pending, ""},
	{"a suggestion where none is", toolRequest, 1, []string{"!fay allow_with_1"}, Pending, ""},
	{"all take the same suggestion", suggesting, 2, []string{"fay allow_with_1", "sam allow_with_1"}, Approved, "allow_with_1"},
	{"two suggestions are none", suggesting, 2, []string{"fay allow_with_1", "sam allow_with_2"}, Approved, "allow_once"},
	{"a suggestion of one is none", suggesting, 2, []string{"fay allow_with_1", "sam allow_once"}, Approved, "allow_once"},
	{"a suggestion of the other is none", suggesting, 2, []string{"fay allow_15m", "sam allow_with_1"}, Approved, "allow_once"},
	{"a suggestion may be denied", suggesting, 2, []string{"fay allow_with_1", "fay deny"}, Denied, "deny"},
	{"confirm", confirmRequest, 2, []string{"fay allow_once", "sam allow_once"}, Approved, "allow_once"},
	{"confirm is interrupted at once", confirmRequest, 2,
		[]string{"fay allow_once", "sam interrupt"}, Answered, "interrupt"},
	{"an option has no quorum", clarification, 2, []string{"sam option_2", "!fay option_1"}, Answered, "option_2"},
	{"an answer in words comes once", clarification, 2, []string{"!fay other", "sam option_2"}, Answered, "option_2"},
	{"continue has no quorum", pauseRequest, 2, []string{"sam continue"}, Answered, "continue"},

	{"all calls at once", stepRequest, 1, []string{"fay allow_once"}, Approved, "allow_once"},
	{"all calls denied at once", stepRequest, 1, []string{"fay deny"}, Denied, "deny"},
	{"call by call", stepRequest, 1, []string{"fay allow_once 1", "sam allow_once 2", "fay allow_once 3"},
		Approved, "allow_once"},
	{"open until each is answered", stepRequest, 1, []string{"fay allow_once 3", "fay deny 1"}, Pending, ""},
	{"any allowed is approved", stepRequest, 1, []string{"fay deny 1", "fay deny 2", "fay allow_session 3"},
		Approved, "allow_session"},
	{"all denied is denied", stepRequest, 1, []string{"fay deny 1", "sam deny 3", "fay deny 2"}, Denied, "deny"},
	{"one, then the others", stepRequest, 1, []string{"fay deny 2", "fay allow_once"}, Approved, "allow_once"},
	{"one allowed, then the others denied", stepRequest, 1, []string{"fay allow_session_tool 1", "sam deny"},
		Approved, "allow_session_tool"},
	{"narrowest of the calls", stepRequest, 1, []string{"fay allow_session 1", "fay allow_session_tool 2", "fay deny 3"},
		Approved, "allow_session_tool"},
	{"an answered call stays", stepRequest, 1,
		[]string{"fay deny 1", "!sam allow_once 1", "!fay allow_once 1"}, Pending, ""},
	{"an allowed call stays", stepRequest, 1, []string{"fay allow_once 1", "!sam deny 1", "!fay deny 1"}, Pending, ""},
	{"a double tap on a call", stepRequest, 1,
		[]string{"fay deny 1", "=fay deny 1", "fay allow_once 2", "=fay allow_once 2"},
		Pending, ""},
	{"no such call", stepRequest, 1, []string{"!fay allow_once 4", "!fay allow_once -1"}, Pending, ""},
	{"quorum of a call", stepRequest, 2,
		[]string{"fay allow_once 1", "sam allow_once 1", "fay deny 2", "fay allow_once 3"},
		Pending, ""},
	{"quorum of every call", stepRequest, 2, []string{"fay allow_once", "sam allow_once"}, Approved, "allow_once"},
	{"quorum, one and then all", stepRequest, 2,
		[]string{"fay allow_once 1", "=fay allow_once 1", "fay allow_once", "sam allow_once"},
		Approved, "allow_once"},
	{"one vote a person and call", stepRequest, 2, []string{"fay allow_once", "=fay allow_once 2", "!fay allow_session 2"},
		Pending, ""},
	{"the first allowance of a call counts", stepRequest, 2,
		[]string{"fay allow_once 1", "fay allow_session", "sam allow_session"}, Approved, "allow_once"},
	{"a call allowed becomes denied", stepRequest, 2, []string{"fay allow_once", "fay deny 2", "sam allow_once"},
		Approved, "allow_once"},
	{"a denial that ends the run denies all", endingRequest, 1, []string{"fay allow_once 1", "fay deny 2", "sam allow_once 3"},
		Denied, "deny"},
	{"a denial that ends nothing denies its call", endingRequest, 1, []string{"fay deny 1", "fay allow_once 2", "sam deny 3"},
		Approved, "allow_once"},
	{"all allowed become denied", stepRequest, 2, []string{"fay allow_once", "fay deny"}, Denied, "deny"},
}

func TestVoteSequences(t *testing.T) {
	for _, p := range plays {
		t.Run(p.name, func(t *testing.T) {
			r := p.make()
			r.Quorum = p.quorum
			for _, line := range p.lines {
				r = say(t, r, line)
			}
			if r.State != p.state || r.Answer != p.answer {
				t.Errorf("ended %s with %q, want %s with %q", r.State, r.Answer, p.state, p.answer)
			}
			if s, _ := p.answer.Scope(); r.Scope != s {
				t.Errorf("scope %v, want %v", r.Scope, s)
			}
		})
	}
}

// say applies one line.
func say(t *testing.T, r Request, line string) Request {
	t.Helper()
	words := strings.Fields(strings.TrimLeft(line, "!="))
	e := vote(words[0], Answer(words[1]))
	if len(words) > 2 {
		e.Vote.Call = map[string]int{"1": 1, "2": 2, "3": 3, "4": 4, "-1": -1}[words[2]]
	}
	c, err := Step(r, e)
	switch line[0] {
	case '!':
		if err == nil {
			t.Errorf("%s: not refused", line)
		}
	case '=':
		if err != nil || !c.Empty() || c.After.Revision != r.Revision {
			t.Errorf("%s: %v, changes %+v", line, err, c)
		}
	default:
		if err != nil || c.Empty() || c.Vote == nil || *c.Vote != e.Vote || c.After.Revision != r.Revision+1 {
			t.Errorf("%s: %v, changes %+v", line, err, c)
		}
	}
	return c.After
}

// Each refusal of a vote says what is wrong with it.
func TestRefusedVotes(t *testing.T) {
	r := stepRequest()
	r.Quorum = 2
	r = after(t, r, vote("fay", Allow(Once)), voteOn(1, "sam", Allow(Once)))
	risky := toolRequest()
	risky.HighRisk = true
	unsure := vote("fay", Allow(Once))
	unsure.Really = false
	for _, c := range []struct {
		name string
		r    Request
		e    Transition
		want error
	}{
		{"another allowance", r, vote("fay", Allow(Session)), ErrVoted},
		{"a call that is decided", r, voteOn(1, "sam", Deny), ErrCall},
		{"a stranger, even late", r, Cast{Vote: Vote{By: "eve", Answer: Deny, At: dusk}}, ErrLate},
		{"high risk, once", risky, unsure, ErrReally},
		{"settled", after(t, risky, vote("fay", Deny)), unsure, ErrSettled},
	} {
		if _, err := Step(c.r, c.e); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}

func TestHighRiskNeedsTheSecondYesOnlyToAllow(t *testing.T) {
	r := toolRequest()
	r.HighRisk = true
	denial := vote("fay", Deny)
	denial.Really = false
	if got := after(t, r, denial); got.State != Denied {
		t.Errorf("the denial left it %s", got.State)
	}
	if got := after(t, r, vote("fay", Allow(Once))); got.State != Approved {
		t.Errorf("the second yes left it %s", got.State)
	}
}

// A person who is listed twice is still one person.
func TestOnePersonListedTwiceIsOneVote(t *testing.T) {
	r := permissionRequest()
	r.Asked, r.Quorum = []string{"fay", "sam", "fay"}, 2
	r = after(t, r, vote("fay", Allow(Once)))
	if r.State != Pending {
		t.Fatal("one person made a quorum of two")
	}
	if r = after(t, r, vote("sam", Allow(Once))); r.State != Approved {
		t.Errorf("two people left it %s", r.State)
	}
}

func TestNoQuorumStillNeedsSomebody(t *testing.T) {
	r := stepRequest()
	r.Quorum = 0
	if r = after(t, r, voteOn(1, "fay", Allow(Once))); r.State != Pending || r.Calls[1].Answer != "" {
		t.Errorf("one call allowed left %s, %+v", r.State, r.Calls)
	}
}

func TestCallsKeepTheirOwnAnswers(t *testing.T) {
	first := comment(voteOn(2, "fay", Deny), "not that url")
	r := after(t, stepRequest(), first, voteOn(1, "sam", Allow(SessionTool)), voteOn(3, "fay", Allow(Once)))
	got := [][2]string{}
	for _, c := range r.Calls {
		got = append(got, [2]string{string(c.Answer), c.Comment})
	}
	want := [][2]string{{"allow_session_tool", ""}, {"deny", "not that url"}, {"allow_once", ""}}
	if got[0] != want[0] || got[1] != want[1] || got[2] != want[2] || r.DecidedBy != "fay" || r.Comment != "" {
		t.Errorf("got %v by %s", got, r.DecidedBy)
	}
}

func TestWhoHasSaidAllThatTheyCan(t *testing.T) {
	said := func(r Request, votes ...Vote) Request { r.Votes = votes; return r }
	decided := stepRequest()
	decided.Calls[1].Answer = Deny
	for name, c := range map[string]struct {
		r    Request
		want bool
	}{
		"nobody":                    {permissionRequest(), false},
		"somebody else":             {said(permissionRequest(), Vote{By: "sam", Answer: "allow_once"}), false},
		"a vote":                    {said(permissionRequest(), Vote{By: "fay", Answer: "allow_once"}), true},
		"on every call":             {said(stepRequest(), Vote{By: "fay", Answer: "allow_once"}), true},
		"on some calls":             {said(stepRequest(), Vote{By: "fay", Answer: "allow_once", Call: 1}), false},
		"on those that nobody else": {said(decided, Vote{By: "fay", Call: 1, Answer: Deny}, Vote{By: "fay", Call: 3, Answer: Deny}), true},
	} {
		if got := c.r.HasVoted("fay"); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestVotesAreAudited(t *testing.T) {
	r := stepRequest()
	c, err := Step(r, voteOn(2, "fay", Deny))
	if err != nil || len(c.Records) != 1 {
		t.Fatalf("%v, %+v", err, c.Records)
	}
	rec := c.Records[0]
	if rec.Type != RequestVoted || rec.Actor != "fay" || rec.Via != "terminal" || rec.Detail["answer"] != "deny" ||
		rec.Detail["call"] != "2" || !rec.At.Equal(noon.Add(time.Minute)) {
		t.Errorf("got %+v", rec)
	}
	if c, err = Step(c.After, vote("sam", Allow(Session))); err != nil || len(c.Records) != 2 {
		t.Fatalf("%v, %+v", err, c.Records)
	}
	rec = c.Records[0]
	if rec.Type != RequestSettled || rec.Actor != "sam" || rec.Detail["state"] != "approved" ||
		rec.Detail["answer"] != "allow_session" || c.Records[1].Type != GrantAdded {
		t.Errorf("got %+v", c.Records)
	}
}

// Words are an answer if they are visible; they never allow anything, whatever they say.
func TestWordsOfOnesOwn(t *testing.T) {
	long := strings.Repeat("é", MaxReason)
	for words, ok := range map[string]bool{
		"look at staging first": true, "?": true, "2": true, "👍": true, "two\nlines\tand a tab": true, "allow_once": true,
		long: true, "  " + long + "\n": true, "עם": true,
		"": false, " \t\r\n": false, "\u200b": false, "\u00a0\u2003": false, "\u202e": false, long + "é": false,
		"a\x00b": false, "a\x1b[2Jb": false, "a\u0085b": false, "a\xffb": false,
	} {
		c, err := Step(clarification(), comment(vote("fay", Other), words))
		if !ok {
			if !errors.Is(err, ErrWords) || !c.Empty() {
				t.Errorf("%q: %v, %+v", words, err, c.After)
			}
			continue
		}
		r, want := c.After, strings.TrimSpace(words)
		if err != nil || r.State != Answered || r.Comment != want || c.Vote.Comment != want || r.Votes[0].Comment != want {
			t.Errorf("%q: %v, %s with %q", words, err, r.State, r.Comment)
		}
		if r.Scope != (Scope{}) || c.Grants != nil || r.Choice() != "" || c.Records[0].Detail["answer"] != "other" {
			t.Errorf("%q did more than answer: %+v", words, c)
		}
		if got := Result(r); got != (Outcome{Text: want}) {
			t.Errorf("%q is told as %+v", words, got)
		}
	}
}

// TestARuleIsGivenOnlyByEqualVotes: votes for different rules allow once, a vote for a rule has one, and no other vote does.
func TestARuleIsGivenOnlyByEqualVotes(t *testing.T) {
	r := permissionRequest()
	r.Kind, r.Tags, r.Tool, r.Quorum = KindTool, nil, "Bash", 2
	r.Options = append(r.Options, Option{Allow(Rule), "Always like this"})
	one, other := NewGrantedRule([]string{"run go vet ./..."}, "/srv/code", ""), NewGrantedRule([]string{"run go vet ..."}, "/srv/code", "")
	by := func(who string, a Answer, rule GrantedRule) Cast {
		e := vote(who, a)
		e.Vote.Rule = rule
		return e
	}
	for _, c := range []struct {
		second Cast
		want   Scope
		grants []GrantedRule
	}{
		{by("sam", Allow(Rule), one), Rule, []GrantedRule{one[:len(one)-1] + `,"by":["fay","sam"]}`}},
		{by("sam", Allow(Rule), other), Once, nil},
		{by("sam", Allow(Once), ""), Once, nil},
	} {
		got := after(t, r, by("fay", Allow(Rule), one), c.second)
		var rules []GrantedRule
		for _, g := range got.GrantsLeft() {
			rules = append(rules, g.Rule)
		}
		if got.State != Approved || got.Scope != c.want || !slices.Equal(rules, c.grants) {
			t.Errorf("%+v: %s for %s, %q", c.second.Vote, got.State, got.Scope, rules)
		}
	}
	for rule, e := range map[GrantedRule]Cast{one: by("fay", Allow(Rule), one), "": vote("fay", Allow(Once))} {
		c, err := Step(r, e)
		if said, has := c.Records[0].Detail["rule"]; err != nil || has != (rule != "") || said != string(rule) {
			t.Errorf("the audit of %+v says %q, %v", e.Vote, said, err)
		}
	}
	for _, e := range []Cast{by("fay", Allow(Rule), ""), by("fay", Allow(Once), one), by("fay", Deny, one)} {
		if _, err := Step(r, e); !errors.Is(err, ErrNoRule) {
			t.Errorf("%+v: %v", e.Vote, err)
		}
	}
}
