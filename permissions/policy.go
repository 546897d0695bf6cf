package permissions

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daycared/daycared/permissions/i18n"
)

// Policy determines which tools run unasked, ask or never run, and what is high risk. Patterns are shell globs over tool names.
type Policy struct {
	Auto, Gated, Forbidden []string
	OwnAuto                bool // Auto names tools of ours: no tool of another agent that a hook asks about, which may do something else
	HighRiskTools          []string
	HighRiskTags           []Tag // a tag that overlaps one of these is high risk
	HighRiskEffects        []Effect
	HighRiskPatterns       []string // over a command, or the path of a file
	Ordinary               Ordinary
	NoHighRisk             bool  // nothing is high risk
	Sandboxed              bool  // commands of our own agents that the sandbox keeps in their workspace run unasked
	Held                   []Tag // given to the caller by the configuration, so not by a grant that can be revoked
	// ReadCall says what a call of a request does (acts.ReadCall); nil: nothing is known of any.
	ReadCall func(Request, Call) CallReading
	// JudgeRules says what the rules of the configuration decide about a call of a request, and those of live grants where they are silent;
	// nil: there are none.
	JudgeRules func(Request, Call, []Grant, time.Time) Ruling
	// GrantHolds reports whether those who gave a live grant may decide a request that it covers; nil: they may.
	GrantHolds func(Grant, Request) bool
	// IgnoreAllowRules makes the calls that rules allow ask, as those of Auto without an entry; deny and ask rules hold.
	IgnoreAllowRules bool
}

// Ruling is what the rules of the configuration say of a call.
type Ruling struct {
	Effect RuleEffect `json:"effect,omitempty"`
	Rule   int        `json:"rule,omitempty"`   // the number of the rule that decides, counted from 1
	Why    string     `json:"why,omitempty"`    // in the words of the configuration
	Exact  bool       `json:"exact,omitempty"`  // of RuleAllows: no wildcard was needed
	Reason string     `json:"reason,omitempty"` // why no rule allows it
	// PromptsRefused is how many of the caller's prompts people had denied or ignored shortly before, if that is why the request is silent and
	// counts as high risk; the other fields are those of no rule.
	PromptsRefused int `json:"refused,omitempty"`

	Grants string `json:"grants,omitempty"` // the ids of the grants that allow it, with Rule if that is not 0; separated by blanks
	Leads  *Leads `json:"leads,omitempty"`  // the names in the call that lead elsewhere than they say, as its hook says; nil: there are none

	// Unsure says that a rule which restricts may be about what the call does not name for certain: people are asked, or were. It is not
	// stored.
	Unsure bool `json:"-"`
}

// RuleEffect is what rules do with a call.
type RuleEffect string

// The effects of rules.
const (
	RuleSilent RuleEffect = "" // no rule covers it, so it is asked about if nothing else allows it
	RuleAllows RuleEffect = "allow"
	RuleAsks   RuleEffect = "ask"
	RuleDenies RuleEffect = "deny"
)

// Name is the rule and why it is there, or the grants of rules, as people read it; empty without a rule.
func (r Ruling) Name() string {
	switch {
	case r.Grants != "" && r.Why == Trusted:
		return "grant " + strings.ReplaceAll(r.Grants, " ", " and grant ") + ", trusted"
	case r.Grants != "":
		return "grant " + strings.ReplaceAll(r.Grants, " ", " and grant ")
	case r.Rule == 0:
		return ""
	case r.Why == "":
		return "rule " + strconv.Itoa(r.Rule)
	}
	return "rule " + strconv.Itoa(r.Rule) + ", " + strconv.Quote(r.Why)
}

// DecidingRule names the rule that decided about r when it was asked, if it had that effect.
func (r Request) DecidingRule(e RuleEffect) string {
	for _, ruled := range r.Ruled {
		if ruled.Effect == e {
			return ruled.Name()
		}
	}
	return ""
}

// PromptsRefused is how many prompts of its caller had been denied or ignored when r was asked, if it is silent for that; else 0.
func (r Request) PromptsRefused() int {
	for _, ruled := range r.Ruled {
		if ruled.PromptsRefused > 0 {
			return ruled.PromptsRefused
		}
	}
	return 0
}

// Urgent reports whether people hear of r in their quiet hours, too.
func (r Request) Urgent() bool { return r.HighRisk && r.PromptsRefused() == 0 }

// Detail is what the audit says of it: pairs of a key and a value.
func (r Ruling) Detail() []string {
	var all []string
	if r.PromptsRefused > 0 {
		all = append(all, "refused", strconv.Itoa(r.PromptsRefused))
	}
	for _, d := range [][2]string{{"verdict", string(r.Effect)}, {"rule", r.Name()}, {"reason", r.Reason}} {
		if d[1] != "" {
			all = append(all, d[0], d[1])
		}
	}
	return all
}

// CallReading is what a call does.
type CallReading struct {
	Texts []string      // its command, or the files that it names
	Risks []i18n.Phrase // why it is high risk, in the words that people read; empty: it is not
}

// Ordinary are the calls that are no high risk because of what they do. What Policy names is high risk all the same.
type Ordinary struct {
	Tools    []string
	Effects  []Effect
	Patterns []string
}

// Verdict is the policy's decision about a request.
type Verdict struct {
	Forbidden string     // the tool that must not run; empty: none
	Ask       bool       // people have to be asked
	Held      []Tag      // the requested tags that are held already
	Grants    []ID       // the grants that cover the request or a part of it
	Scope     Scope      // the narrowest of these grants' scopes
	Auto      []AutoCall // the calls that need no approval
	// Ruling is the rule that decides: the strongest one over all calls.
	Ruling Ruling
}

// AutoCall is a call that needs no approval.
type AutoCall struct {
	Tool    string
	Pattern string // the pattern of Policy.Auto that matches it, or "rule 3"
}

// Evaluate decides whether r needs approval, given its caller's grants. It is pure. Unknown tools are gated; forbidden overrides
// gated, which overrides auto. A held tag opens no gate, and an open gate grants no tag.
func (p Policy) Evaluate(r Request, grants []Grant, now time.Time) Verdict {
	var v Verdict
	if r.Kind != KindTool && (r.Kind != KindPermission || len(r.Tags) == 0) {
		return Verdict{Ask: true}
	}
	live := slices.DeleteFunc(slices.Clone(grants), func(g Grant) bool { return !g.Live(r.Caller, r.Session, now) })
	wanted := Missing(r.Tags, p.Held)
	grantable := slices.DeleteFunc(slices.Clone(wanted), p.riskyTag) // high-risk tags are always asked for
	for _, g := range live {
		if slices.ContainsFunc(grantable, func(t Tag) bool { return p.givesTag(g, r, t) }) {
			v.Grants = append(v.Grants, g.ID)
		}
	}
	for _, t := range r.Tags {
		if !slices.Contains(wanted, t) || slices.Contains(grantable, t) &&
			slices.ContainsFunc(live, func(g Grant) bool { return p.givesTag(g, r, t) }) {
			v.Held = append(v.Held, t)
		}
	}
	v.Ask = len(v.Held) < len(r.Tags)
	for _, c := range r.ToolCalls() {
		auto, risky, ruled := p.autoEntry(r, c), p.risky(r, c), p.judgeCall(r, c, live, now)
		v.Ruling = v.Ruling.stronger(ruled)
		switch {
		case r.matchesTool(p.Forbidden, c):
			return Verdict{Forbidden: c.Tool}
		case ruled.Effect == RuleDenies:
			return Verdict{Forbidden: c.Tool, Ruling: ruled}
		case ruled.Effect == RuleAsks:
			v.Ask = true
		case ruled.Effect == RuleAllows && ruled.Grants != "" && !risky:
			for id := range strings.FieldsSeq(ruled.Grants) {
				v.Grants = append(v.Grants, ID(id))
			}
		case ruled.Effect == RuleAllows && ruled.Grants == "" && (!risky || ruled.Exact):
			v.Auto = append(v.Auto, AutoCall{c.Tool, "rule " + strconv.Itoa(ruled.Rule)})
		case auto < 0 && p.Sandboxed && !risky && !ruled.Unsure && r.isSandboxed(c, slices.Concat(p.Held, tagsOf(live))):
			v.Auto = append(v.Auto, AutoCall{c.Tool, sandboxed})
		case auto < 0 && r.leftToAgentMode() && !risky && !ruled.Unsure && !p.alwaysAsks(r, c):
			v.Auto = append(v.Auto, AutoCall{c.Tool, leftToAgent})
		case auto < 0 || p.alwaysAsks(r, c) || ruled.Unsure:
			opened := slices.IndexFunc(live, func(g Grant) bool { return g.AllowsCall(r, c, risky) && p.grantHolds(g, r.withOnlyCall(c)) })
			if opened < 0 {
				v.Ask = true
			} else {
				v.Grants = append(v.Grants, live[opened].ID)
			}
		default:
			v.Auto = append(v.Auto, AutoCall{c.Tool, p.Auto[auto]})
		}
	}
	slices.Sort(v.Grants)
	v.Grants = slices.Compact(v.Grants)
	return v
}

// givesTag reports whether a live grant gives one of the tags of r.
func (p Policy) givesTag(g Grant, r Request, t Tag) bool {
	if len(Missing([]Tag{t}, g.Tags)) > 0 {
		return false
	}
	r.Tags = []Tag{t}
	return p.grantHolds(g, r)
}

func (p Policy) grantHolds(g Grant, r Request) bool { return p.GrantHolds == nil || p.GrantHolds(g, r) }

// withOnlyCall is r with one of its calls alone.
func (r Request) withOnlyCall(c Call) Request {
	r.Kind, r.Tool, r.Calls = KindTool, c.Tool, nil
	return r
}

// autoEntry returns the index of the entry of Auto for the tool of a call of r, -1 if there is none. A pattern does not stand for a shell.
func (p Policy) autoEntry(r Request, c Call) int {
	if p.OwnAuto && r.Hook != "" && !r.Caller.IsOurs() && !readsNothing(c) {
		return -1
	}
	if i := slices.Index(p.Auto, c.Tool); i >= 0 && r.namesServer(c.Tool, c) {
		return i
	}
	if RunsCode(c.Tool) {
		return -1
	}
	return slices.IndexFunc(p.Auto, func(pattern string) bool {
		surely, _ := r.NamesTool([]string{pattern}, c)
		return surely
	})
}

// readsNothing reports whether a call has no input but the empty device, as what tries a hook has.
func readsNothing(c Call) bool {
	var in map[string]any
	return json.Unmarshal(c.Input, &in) == nil && len(in) == 1 && in["path"] == "/dev/null"
}

// judgeCall is what the rules say of a call of r, with those of live grants.
func (p Policy) judgeCall(r Request, c Call, live []Grant, now time.Time) (ruled Ruling) {
	if p.JudgeRules == nil {
		return ruled
	}
	suspended := func(g Grant) bool { return g.Rule != "" && !p.grantHolds(g, r.withOnlyCall(c)) }
	if slices.ContainsFunc(live, suspended) {
		live = slices.DeleteFunc(slices.Clone(live), suspended)
	}
	ruled = p.JudgeRules(r, c, live, now)
	if ruled.Effect == RuleAllows && (p.IgnoreAllowRules && ruled.Rule > 0 || ruled.Rule == 0 && ruled.Grants == "") {
		ruled.Effect, ruled.Grants = RuleSilent, ""
	}
	return ruled
}

// stronger returns the stronger ruling: deny before ask before none before allow.
func (r Ruling) stronger(o Ruling) Ruling {
	strength := []RuleEffect{RuleAllows, RuleSilent, RuleAsks, RuleDenies}
	if r == (Ruling{}) || slices.Index(strength, o.Effect) > slices.Index(strength, r.Effect) {
		return o
	}
	return r
}

// sandboxed is the [AutoCall.Pattern] of commands that the sandbox keeps in the workspace. It is not a pattern of tool names.
const sandboxed = "sandboxed: allow"

// isSandboxed reports whether the sandbox keeps a call of r in its workspace: a command of an agent of ours that has no network, where
// nothing that the agent may read or write, with these tags, lies outside. The environment of a command is empty in any case.
func (r Request) isSandboxed(c Call, held []Tag) bool {
	var in struct{ Network bool }
	if !r.Caller.IsOurs() || r.Hook != "" || c.Tool != "run_command" || r.Cwd == "" || json.Unmarshal(c.Input, &in) != nil || in.Network {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(held, r.Tags), func(t Tag) bool {
		return t.Path() != "" && !Within(path.Clean(r.Cwd), t.Path())
	})
}

// tagsOf are the tags of grants.
func tagsOf(grants []Grant) (all []Tag) {
	for _, g := range grants {
		all = append(all, g.Tags...)
	}
	return all
}

// leftToAgent is the [AutoCall.Pattern] of calls that a hook leaves to the agent's own mode. It is not a pattern of tool names.
const leftToAgent = "--gate risky"

// leftToAgentMode reports whether a hook leaves r to its agent's own mode. It does not if the agent's own rules ask.
func (r Request) leftToAgentMode() bool {
	return r.Harmless && r.Hook != "" && r.HookStage != HookAgain && r.HookStage != HookDenied && !r.Caller.IsOurs()
}

// HighRisk reports whether r needs a second confirmation.
func (p Policy) HighRisk(r Request) bool {
	return slices.ContainsFunc(r.Missing(), p.riskyTag) ||
		slices.ContainsFunc(r.ToolCalls(), func(c Call) bool { return p.risky(r, c) })
}

func (p Policy) riskyTag(t Tag) bool {
	return !p.NoHighRisk && slices.ContainsFunc(p.HighRiskTags, t.overlaps)
}

// risky reports whether a call of r is high risk: by its tool's name, kind or text, or by what it does.
func (p Policy) risky(r Request, c Call) bool {
	if p.NoHighRisk {
		return false
	}
	var does CallReading
	if p.ReadCall != nil {
		does = p.ReadCall(r, c)
	}
	effect := EffectOf(c.Tool)
	fits := func(text string) bool { return matches(p.HighRiskPatterns, text, true) }
	return r.matchesTool(p.HighRiskTools, c) || r.mayMean(p.HighRiskTools, c) || slices.Contains(p.HighRiskEffects, effect) ||
		slices.ContainsFunc(does.Texts, fits) || !p.Ordinary.has(r, c, does) && len(does.Risks) > 0
}

// has reports whether a call is one of these. A pattern fits a command word by word, and none that a shell would change.
func (o Ordinary) has(r Request, c Call, does CallReading) bool {
	tool, texts := c.Tool, does.Texts
	unfit := func(text string) bool {
		return strings.Contains(text, "..") || strings.ContainsAny(text, "\n") ||
			!slices.ContainsFunc(o.Patterns, func(p string) bool {
				if EffectOf(tool) != DoesExecute {
					return matches([]string{p}, text, false)
				}
				want, words := strings.Fields(p), strings.Fields(text)
				for i := range words {
					if len(words) != len(want) || !matches(want[i:i+1], words[i], false) {
						return false
					}
				}
				return !strings.ContainsAny(text, ";&|<>$`(){}[]\\'\"*?~!#^=")
			})
	}
	return slices.ContainsFunc(o.Tools, func(p string) bool { return matches([]string{p}, tool, false) && r.namesServer(p, c) }) ||
		slices.Contains(o.Effects, EffectOf(tool)) ||
		len(texts) > 0 && !slices.ContainsFunc(texts, unfit)
}

// alwaysAsks reports whether people are always asked about the tool of a call of r, or about one that may be it.
func (p Policy) alwaysAsks(r Request, c Call) bool {
	return slices.ContainsFunc(r.namesOf(c), func(name string) bool {
		return matches(p.Gated, name, true) || MeansTool(r.Hook, p.Gated, name)
	}) || r.mayMean(slices.Concat(p.Gated, p.Forbidden), c)
}

// matchesTool reports whether a pattern matches the name of a call's tool, or its server's name for it, as in github__delete_repository.
// A hook's agent may write that as github_delete_repository or github-delete_repository.
func (r Request) matchesTool(patterns []string, c Call) bool {
	means := func(name string) bool {
		return matches(patterns, name, true) || MeansTool(r.Hook, patterns, name) || len(name) >= clearPart && name != c.Tool &&
			slices.ContainsFunc(patterns, func(p string) bool { return fitsCut(r.Hook, c.Tool, plainName(p), name, plainName) })
	}
	for _, tool := range r.namesOf(c) {
		for name, found := tool, true; found; _, name, found = strings.Cut(name, "__") {
			if means(name) {
				return true
			}
		}
		parts := strings.Contains(tool, "__")
		if _, known := KnownEffect(tool); known && !parts || r.Hook == "" || parts && !slices.Contains(joining, r.Hook) {
			continue
		}
		for at := strings.IndexAny(tool, "_-/:"); at >= 0; at = strings.IndexAny(tool, "_-/:") {
			if tool = tool[at+1:]; means(tool) {
				return true
			}
		}
	}
	return false
}

// changedName matches the digest in the names of tools of MCP servers that models' providers would not take as they are.
var changedName = regexp.MustCompile(`-[0-9a-f]{8}(__|$)`)

// maxToolName is the most bytes of a tool's name for models; a longer one is cut.
const maxToolName = 64

// MeansTool reports whether a pattern may be another name of a tool: programs call fs/delete (or fs__delete) mcp__fs__delete, fs_delete,
// fs-delete and mcp_fs_delete, and db.drop of a server s is s__db_drop-d45a7b16 for models. It is for what must not be, or is to be asked
// about.
func MeansTool(dialect string, patterns []string, tool string) bool {
	own := changedName.ReplaceAllString(tool, "$1")
	return slices.ContainsFunc(patterns, func(p string) bool {
		server, name, is := serverOf(p)
		switch {
		case own != tool && (fitsPlain(p, own) || len(tool) >= maxToolName && strings.HasPrefix(plainName(p), plainName(own))):
			return true
		case !is:
			return false
		}
		joins, write := slices.Contains(joining, dialect), plainName
		if strings.Contains(server, "*") || !joins && (strings.Contains(tool, "__") || strings.Contains(tool, "/")) {
			write = apartName
		}
		names := []string{strings.TrimPrefix(tool, "mcp__"), strings.TrimPrefix(tool, "mcp_")}
		if joins {
			names = append(names, tool)
		}
		return slices.ContainsFunc(names, func(of string) bool {
			if dialect == "vscode" { // it has 13 small letters of a server's name, and a digit if there are two such
				server, name, of = strings.ToLower(server), strings.ToLower(name), strings.ToLower(of)
				server = server[:min(len(server), 13)]
				return fitsCut(dialect, tool, write(server+"/"+name), of, write) || fitsCut(dialect, tool, write(server+"[0-9]/"+name), of, write)
			}
			return fitsCut(dialect, tool, write(server+"/"+name), of, write)
		})
	})
}

// mayMean reports whether a pattern names the tool of a server that a call's tool may be: Cursor does not say the server's name.
func (r Request) mayMean(patterns []string, c Call) bool {
	own, cut := strings.CutPrefix(strings.Replace(c.Tool, "MCP:", "mcp__", 1), "mcp__")
	return cut && (r.Hook == "cursor" || !strings.Contains(own, "__")) && slices.ContainsFunc(patterns, func(p string) bool {
		_, name, is := serverOf(p)
		return is && fitsPlain(name, own)
	})
}

// serverOf returns the parts of SERVER/NAME, SERVER__NAME and mcp__SERVER__NAME.
func serverOf(tool string) (server, name string, is bool) {
	tool = strings.TrimPrefix(tool, "mcp__")
	for _, between := range []string{"/", "__"} {
		if server, name, is = strings.Cut(tool, between); is {
			return server, name, server != "" && name != ""
		}
	}
	return "", tool, false
}

// fitsPlain is [MatchName] where all that separates words is alike.
func fitsPlain(pattern, name string) bool {
	fits, _ := MatchName(plainName(pattern), plainName(name))
	return fits
}

func plainName(text string) string {
	return separators.ReplaceAllStringFunc(text, func(part string) string {
		if part[0] == '[' {
			return part
		}
		return "_"
	})
}

// separators matches classes of letters, and what stands for one underscore where names are compared.
var separators = regexp.MustCompile(`\[[^\]]*\]|[^a-zA-Z0-9*?\\\[]+`)

// matches reports whether a pattern matches a tool's name; match returns the index of the first one, or -1. A star also matches
// slashes. malformed is the result for an invalid pattern.
func matches(patterns []string, name string, malformed bool) bool {
	return match(patterns, name, malformed) >= 0
}

func match(patterns []string, name string, malformed bool) int {
	return slices.IndexFunc(patterns, func(p string) bool {
		ok, err := MatchName(p, name)
		return ok || err != nil && malformed
	})
}

// MatchName is [path.Match] in which a slash is a character like any other, so that a star also matches slashes. A malformed pattern
// matches nothing.
func MatchName(pattern, name string) (bool, error) {
	flat := func(text string) string { return strings.ReplaceAll(text, "/", "\x01") }
	return path.Match(flat(pattern), flat(name))
}
