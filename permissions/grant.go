package permissions

import "time"

// AllTools as a grant's tool opens every gated tool that is not high risk.
const AllTools = "*"

// Grant is what an approval wider than once leaves behind. It covers exactly what its button said: tags, or one tool,
// or all gated tools, or one exact call; for a session, until a time, or until it is revoked.
type Grant struct {
	ID        ID
	Caller    string // its proven name
	Session   string // empty: whatever session
	Tags      []Tag
	Tool      string
	Call      Digest // of the one call it covers; zero: every call of Tool
	Until     time.Time
	Request   ID
	By        string
	CreatedAt time.Time
	RevokedAt time.Time
	Used      int
}

// Live tells whether the grant is in force for that caller and session at that time.
func (g Grant) Live(caller Caller, session string, now time.Time) bool {
	return g.Caller == caller.Name &&
		(g.Session == "" || g.Session == session) &&
		g.RevokedAt.IsZero() &&
		(g.Until.IsZero() || now.Before(g.Until)) && !now.Before(g.CreatedAt)
}

// Opens tells whether a live grant opens the gate of one call. A grant of tags opens none.
func (g Grant) Opens(c Call, highRisk bool) bool {
	if g.Tool == AllTools {
		return !highRisk
	}
	return g.Tool == c.Tool && (g.Call == Digest{} || g.Call == CallDigest(c))
}

// leaves is the grant that approving call of r (any call, where r is not about tools) leaves behind; once leaves none.
func (r Request) leaves(s Scope, call Call, by string, at time.Time) (g Grant, ok bool) {
	if s == Once {
		return Grant{}, false
	}
	g = Grant{ID: NewID(at), Caller: r.Caller.Name, Request: r.ID, By: by, CreatedAt: at}
	if s == Session || s == SessionTool {
		g.Session = r.Session
	}
	if s.Span() > 0 {
		g.Until = at.Add(s.Span())
	}
	if r.Kind != KindTool {
		g.Tags = r.Missing()
		return g, true
	}
	g.Tool = call.Tool
	if s == Session {
		g.Tool = AllTools
	}
	if s == Always {
		g.Call = CallDigest(call)
	}
	return g, true
}
