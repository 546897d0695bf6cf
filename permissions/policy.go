package permissions

import (
	"path"
	"slices"
	"strings"
	"time"
)

// Policy says which tools run, ask or never run, and what is high risk. Patterns are shell globs over tool names.
type Policy struct {
	Auto, Gated, Forbidden []string
	HighRiskTools          []string
	HighRiskTags           []Tag // whatever has something in common with one of these
	Held                   []Tag // that the configuration gives the caller: there is no grant of them, and nothing to revoke
}

// Verdict is what policy says of a request.
type Verdict struct {
	Forbidden string    // the tool that never runs here
	Ask       bool      // people have to be asked
	Held      []Tag     // of the tags asked: those held already
	Grants    []ID      // the grants that made asking unnecessary, wholly or in part
	Scope     Scope     // the narrowest of these
	Auto      []Unasked // the calls that need no answer
}

// Unasked is a call that needs no answer.
type Unasked struct {
	Tool    string
	Pattern string // the one of Policy.Auto that says so
}

// Evaluate tells what r needs, given the grants of its caller. It is pure. An unknown tool is gated; forbidden beats
// gated beats auto. A held tag opens no gate and an opened gate grants no tag.
func (p Policy) Evaluate(r Request, grants []Grant, now time.Time) Verdict {
	var v Verdict
	if r.Kind != KindTool && (r.Kind != KindPermission || len(r.Tags) == 0) {
		return Verdict{Ask: true}
	}
	live := slices.DeleteFunc(slices.Clone(grants), func(g Grant) bool { return !g.Live(r.Caller, r.Session, now) })
	wanted := Missing(r.Tags, p.Held)
	grantable := slices.DeleteFunc(slices.Clone(wanted), p.riskyTag) // of high risk, each is asked about
	for _, g := range live {
		if len(Missing(grantable, g.Tags)) < len(grantable) {
			v.Grants = append(v.Grants, g.ID)
		}
	}
	for _, t := range r.Tags {
		if !slices.Contains(wanted, t) || slices.Contains(grantable, t) &&
			slices.ContainsFunc(live, func(g Grant) bool { return len(Missing([]Tag{t}, g.Tags)) == 0 }) {
			v.Held = append(v.Held, t)
		}
	}
	v.Ask = len(v.Held) < len(r.Tags)
	for _, c := range r.ToolCalls() {
		auto := match(p.Auto, c.Tool, false)
		switch {
		case warned(p.Forbidden, c.Tool):
			return Verdict{Forbidden: c.Tool}
		case auto < 0 && r.leftAlone() && !p.riskyTool(c.Tool) && !matches(p.Gated, c.Tool, true):
			v.Auto = append(v.Auto, Unasked{c.Tool, leaving})
		case auto < 0 || matches(p.Gated, c.Tool, true):
			opened := slices.IndexFunc(live, func(g Grant) bool { return g.Opens(r, c, p.riskyTool(c.Tool)) })
			if opened < 0 {
				v.Ask = true
			} else {
				v.Grants = append(v.Grants, live[opened].ID)
			}
		default:
			v.Auto = append(v.Auto, Unasked{c.Tool, p.Auto[auto]})
		}
	}
	slices.Sort(v.Grants)
	v.Grants = slices.Compact(v.Grants)
	return v
}

// leaving stands in [Unasked.Pattern] for what a hook has read and leaves to the agent's own mode. It is no pattern of a tool's name.
const leaving = "--gate risky"

// leftAlone reports whether a hook leaves r to its agent's own mode. Where the agent's own rules ask, it does not.
func (r Request) leftAlone() bool {
	return r.Harmless && r.Hook != "" && r.HookStage != HookAgain && r.HookStage != HookDenied && !r.Caller.Ours()
}

// HighRisk reports whether r needs a second yes.
func (p Policy) HighRisk(r Request) bool {
	return slices.ContainsFunc(r.ToolNames(), p.riskyTool) || slices.ContainsFunc(r.Missing(), p.riskyTag)
}

func (p Policy) riskyTag(t Tag) bool { return slices.ContainsFunc(p.HighRiskTags, t.overlaps) }

func (p Policy) riskyTool(tool string) bool { return warned(p.HighRiskTools, tool) }

// warned reports whether patterns warn of a tool: by its name, or by the name that the server has for it whose tool it is, as
// in github__delete_repository.
func warned(patterns []string, tool string) bool {
	for name, found := tool, true; found; _, name, found = strings.Cut(name, "__") {
		if matches(patterns, name, true) {
			return true
		}
	}
	return false
}

// matches reports whether one of the patterns matches a tool's name, and match which is the first, -1 if none. A slash is a
// character like any other there, so that no name slips past a star; malformed is what a pattern that cannot be read counts as.
func matches(patterns []string, name string, malformed bool) bool {
	return match(patterns, name, malformed) >= 0
}

func match(patterns []string, name string, malformed bool) int {
	flat := func(text string) string { return strings.ReplaceAll(text, "/", "\x00") }
	return slices.IndexFunc(patterns, func(p string) bool {
		ok, err := path.Match(flat(p), flat(name))
		if err != nil {
			return malformed
		}
		return ok
	})
}
