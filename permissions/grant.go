package permissions

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"
)

// AllTools as a grant's tool opens every gated tool but high risk, shells and interpreters. No tool may have this name
// itself.
const AllTools = "*"

// How long after its last use the grant of a rule ends, and that of a tool for a session, whose own end may not be heard.
const (
	RuleIdle    = 30 * 24 * time.Hour
	SessionIdle = 24 * time.Hour
)

// Suggested is the origin of a rule that daycared suggest proposed. One of "Always like this" has none.
const Suggested = "suggest"

// Trusted is the origin of what trusts an agent for a time: in place of patterns it has whatever the starter sets allow in its folder.
const Trusted = "trust"

// MaxTrust is the longest time for which an agent can be trusted.
const MaxTrust = 2 * time.Hour

// GrantedRule is the rule that [Rule] gives: patterns of an allow rule, the folder that its calls are in, its origin, and who gave it if
// several people did, as JSON. Equal texts are equal rules; empty is none.
type GrantedRule string

// grantedRule is a [GrantedRule].
type grantedRule struct {
	Allow  []string `json:"allow"`
	In     string   `json:"in,omitempty"`
	Origin string   `json:"origin,omitempty"`
	By     []string `json:"by,omitempty"`
}

// NewGrantedRule returns the rule with these patterns for calls in a folder; an empty folder is any.
func NewGrantedRule(allow []string, in, origin string) GrantedRule {
	text, _ := json.Marshal(grantedRule{Allow: allow, In: in, Origin: origin}) // texts
	return GrantedRule(text)
}

// Origin returns what proposed g: [Suggested], or empty for a card.
func (g GrantedRule) Origin() string {
	var of grantedRule
	_ = json.Unmarshal([]byte(g), &of) // unreadable: none
	return of.Origin
}

// Patterns returns the patterns of g and the folder of its calls; none if g is empty or unreadable.
func (g GrantedRule) Patterns() (allow []string, in string) {
	var of grantedRule
	if json.Unmarshal([]byte(g), &of) != nil {
		return nil, ""
	}
	return of.Allow, of.In
}

// Fingerprint is a short name of g, by which a second step says which rule the person was shown.
func (g GrantedRule) Fingerprint() string {
	sum := sha256.Sum256([]byte(g))
	return hex.EncodeToString(sum[:4])
}

// Proposal is what "Always like this" proposes for a call.
type Proposal struct {
	Rule         GrantedRule `json:"rule"`
	Descriptions []string    `json:"says" doc:"in words, one for each pattern: what it covers, and what it does not"`
	PastCount    int         `json:"past" doc:"how many of the caller's prompts of the last 30 days it would have covered"`
	Allowed      int         `json:"allowed" doc:"how many of these people allowed"`
	NotCovered   []string    `json:"not,omitempty" doc:"similar earlier calls that it does not cover"`
	Caller       string      `json:"caller" doc:"for whose calls it holds, as uid:1000: an account, a token or an agent of the daemon's own"`
}

// Grant is what an approval wider than once leaves behind. It covers exactly what its button said: tags, or one tool, or
// all gated tools, or one exact call, or what a rule covers; for a session, until a time, or until it is revoked.
type Grant struct {
	ID        ID
	Caller    string // its proven name
	Session   string // empty: any session
	Tags      []Tag
	Tool      string
	Call      Digest // of the one call it covers; zero: every call of Tool
	Rule      GrantedRule
	Until     time.Time // if it has an [Grant.Idle]: when it ends unless it is used before
	Request   ID
	Code      string // of its request where it is listed, if that is kept; not stored
	By        string
	CreatedAt time.Time
	RevokedAt time.Time
	// SuspendedAt is since when the grant is suspended because the store was restored; the operator may reinstate it.
	SuspendedAt time.Time
	Suspended   string // why else nothing may be done under it where it is listed, and what to do; not stored
	Used        int
	Several     []string // if several people gave it, all of them; not stored, see [Request.GiversOf]
}

// Live reports whether the grant is in force for that caller and session at that time.
func (g Grant) Live(caller Caller, session string, now time.Time) bool {
	return g.Caller == caller.Name && caller.Name != Anonymous &&
		(g.Session == "" || g.Session == session) &&
		g.RevokedAt.IsZero() && g.SuspendedAt.IsZero() &&
		(g.Until.IsZero() || now.Before(g.Until)) && !now.Before(g.CreatedAt)
}

// Title returns g without the paths of its tags, for a chat that shows no more; see [Request.Title].
func (g Grant) Title() Grant {
	g.Tags = slices.Clone(g.Tags)
	for i := range g.Tags {
		g.Tags[i].path = ""
	}
	return g
}

// Scope returns how long the grant was given for.
func (g Grant) Scope() Scope {
	switch {
	case g.Rule != "" && !g.IsTrust():
		return Rule
	case g.Session != "" && g.Tool != "" && g.Tool != AllTools:
		return SessionTool
	case g.Session != "":
		return Session
	case g.Until.IsZero():
		return Always
	}
	return For(g.Until.Sub(g.CreatedAt))
}

// IsTrust reports whether g trusts an agent for a time.
func (g Grant) IsTrust() bool { return g.Rule != "" && g.Rule.Origin() == Trusted }

// Idle is how long after its last use g ends. It is 0 if g does not end like that.
func (g Grant) Idle() time.Duration {
	switch {
	case g.Scope() == Rule:
		return RuleIdle
	case g.Session != "" && g.Tool != "":
		return SessionIdle
	}
	return 0
}

// Givers are the people who gave g, as far as it says.
func (g Grant) Givers() []string {
	var of grantedRule
	if json.Unmarshal([]byte(g.Rule), &of) != nil {
		of.By = g.Several
	}
	if len(of.By) == 0 {
		return []string{g.By}
	}
	return of.By
}

// GiversOf are the people who gave g, which the approval of r left behind and which has no rule: those who allowed every call that it may
// come from. An account counts once.
func (r Request) GiversOf(g Grant) (by []string) {
	units := r.units(Vote{})
	units = slices.DeleteFunc(units, func(n int) bool {
		return slices.ContainsFunc(r.Calls, func(c Call) bool {
			_, allowed := c.Answer.Scope()
			return c.N == n && (!allowed || g.Tool != AllTools && g.Tool != c.Tool)
		})
	})
	var accounts []string
	for _, name := range slices.Compact(slices.Sorted(slices.Values(r.Asked))) {
		var last Vote
		if len(units) == 0 || slices.ContainsFunc(units, func(n int) bool {
			last = r.countedVote(name, n)
			_, allows := last.Answer.Scope()
			return !allows
		}) {
			continue
		}
		if last.Account == "" || !slices.Contains(accounts, last.Account) {
			by = append(by, name)
		}
		accounts = append(accounts, last.Account)
	}
	return by
}

// LastUse is when a grant that has an [Grant.Idle] was last used, or the zero time.
func (g Grant) LastUse() time.Time {
	if g.Idle() == 0 || g.Used == 0 || g.Until.IsZero() {
		return time.Time{}
	}
	return g.Until.Add(-g.Idle())
}

// AllowsCall reports whether a live grant opens the gate of one call of r. A grant of tags opens none, and none opens the
// gate of high risk. What a grant of a rule covers is for [Policy.JudgeRules] to say.
func (g Grant) AllowsCall(r Request, c Call, highRisk bool) bool {
	r = r.withOnlyCall(c)
	switch {
	case highRisk:
		return false
	case g.Tool == AllTools:
		return !r.callByCall()
	case g.Tool == "" || g.Tool != c.Tool:
		return false
	}
	return g.Call == CallDigest(r, c) || g.Call == Digest{} && !r.callByCall()
}

// grantFor returns the grant, still without an id, that approving call of r (any call, if r is not about tools) leaves
// behind. Once leaves none, nor does a session scope without a session.
func (r Request) grantFor(s Scope, call Call, by string, at time.Time) (g Grant, ok bool) {
	g = Grant{Caller: r.Caller.Name, Request: r.ID, By: by, CreatedAt: at}
	k, _ := s.kind()
	switch {
	case k.ends == withCall, r.Caller.Name == Anonymous, r.HighRisk, k.ends == withSession && r.Session == "":
		return Grant{}, false
	case k.ends == withSession:
		g.Session = r.Session
	case k.ends == inTime:
		g.Until = at.Add(s.Span())
	case k.ends == unused:
		g.Rule, g.Until = r.votedRule(), at.Add(RuleIdle)
		return g, g.Rule != ""
	}
	switch {
	case r.Kind != KindTool:
		g.Tags = r.Missing()
	case k.covers == allTools:
		g.Tool = AllTools
	default:
		g.Tool = call.Tool
	}
	if r.CoversExactCalls(s) {
		g.Call = CallDigest(r, call)
	}
	if idle := g.Idle(); idle > 0 {
		g.Until = at.Add(idle)
	}
	return g, true
}

// CoversExactCalls reports whether s covers only the exact calls of r: true for always, and for everything wider than once if one
// call says nothing about the next.
func (r Request) CoversExactCalls(s Scope) bool {
	k, _ := s.kind()
	return r.Kind == KindTool && (k.covers == exactCall || k.covers == thisTool && r.callByCall())
}

// callByCall reports whether each call of r needs its own approval: calls of shells and interpreters, and those of
// programs that are not the daemon's own, which describe their calls themselves.
func (r Request) callByCall() bool {
	return r.Hook != "" || !r.Caller.IsOurs() || slices.ContainsFunc(r.ToolNames(), RunsCode)
}

// coversSame reports whether two grants of one decision cover the same.
func (g Grant) coversSame(o Grant) bool {
	return g.Tool == o.Tool && g.Call == o.Call && g.Session == o.Session && g.Until.Equal(o.Until) && g.Rule == o.Rule
}

// grantID returns the id of the n-th grant that r leaves behind. It is derived from r, so that [Step] is a function.
func (r Request) grantID(at time.Time, n int) ID {
	w := &fields{}
	w.text(string(r.ID))
	w.number(n)
	sum := sha256.Sum256(w.b)
	return newID(at, bytes.NewReader(sum[:]))
}

// Revoked is a revoked grant, with what had run under it.
type Revoked struct {
	Grant Grant
	Ran   []Request
}
