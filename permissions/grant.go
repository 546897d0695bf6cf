package permissions

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"time"
)

// AllTools as a grant's tool opens every gated tool but high risk, shells and interpreters. No tool may have this name
// itself.
const AllTools = "*"

// Grant is what an approval wider than once leaves behind. It covers exactly what its button said: tags, or one tool, or
// all gated tools, or one exact call; for a session, until a time, or until it is revoked.
type Grant struct {
	ID        ID
	Caller    string // its proven name
	Session   string // empty: any session
	Tags      []Tag
	Tool      string
	Call      Digest // of the one call it covers; zero: every call of Tool
	Until     time.Time
	Request   ID
	By        string
	CreatedAt time.Time
	RevokedAt time.Time
	// SuspendedAt is since when the grant is suspended because the store was restored; the operator may reinstate it.
	SuspendedAt time.Time
	Used        int
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
	case g.Session != "" && g.Tool != "" && g.Tool != AllTools:
		return SessionTool
	case g.Session != "":
		return Session
	case g.Until.IsZero():
		return Always
	}
	return For(g.Until.Sub(g.CreatedAt))
}

// Opens reports whether a live grant opens the gate of one call of r. A grant of tags opens none, and none opens the
// gate of high risk.
func (g Grant) Opens(r Request, c Call, highRisk bool) bool {
	r.Kind, r.Tool, r.Calls = KindTool, c.Tool, nil
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

// leaves returns the grant, still without an id, that approving call of r (any call, if r is not about tools) leaves
// behind. Once leaves none, nor does a session scope without a session.
func (r Request) leaves(s Scope, call Call, by string, at time.Time) (g Grant, ok bool) {
	g = Grant{Caller: r.Caller.Name, Request: r.ID, By: by, CreatedAt: at}
	k, _ := s.kind()
	switch {
	case k.ends == withCall, r.Caller.Name == Anonymous, r.HighRisk, k.ends == withSession && r.Session == "":
		return Grant{}, false
	case k.ends == withSession:
		g.Session = r.Session
	case k.ends == inTime:
		g.Until = at.Add(s.Span())
	}
	switch {
	case r.Kind != KindTool:
		g.Tags = r.Missing()
	case k.covers == allTools:
		g.Tool = AllTools
	default:
		g.Tool = call.Tool
	}
	if r.Exact(s) {
		g.Call = CallDigest(r, call)
	}
	return g, true
}

// Exact reports whether s covers only the exact calls of r: true for always, and for everything wider than once if one
// call says nothing about the next.
func (r Request) Exact(s Scope) bool {
	k, _ := s.kind()
	return r.Kind == KindTool && (k.covers == exactCall || k.covers == thisTool && r.callByCall())
}

// callByCall reports whether each call of r needs its own approval: calls of shells and interpreters, and those of
// programs that are not the daemon's own, which describe their calls themselves.
func (r Request) callByCall() bool {
	return r.Hook != "" || !r.Caller.Ours() || slices.ContainsFunc(r.ToolNames(), RunsCode)
}

// same reports whether two grants of one decision cover the same.
func (g Grant) same(o Grant) bool {
	return g.Tool == o.Tool && g.Call == o.Call && g.Session == o.Session && g.Until.Equal(o.Until)
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
