package directory

import (
	"cmp"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/acts"
	"github.com/daycared/daycared/permissions/i18n"
	"github.com/daycared/daycared/permissions/rules"
)

// OperatorName is the person who runs the daemon when the configuration names nobody with that account.
const OperatorName = permissions.OperatorName

// Settings are the configuration as the engine uses it. They are replaced as a whole and never changed in place.
type Settings struct {
	UID           int // the account that runs the daemon
	People        []connectors.Person
	Routes        []Route
	Approvals     Approvals
	Policy        permissions.Policy
	Rules         *rules.Set // for every caller; nil: none
	Limits        Limits
	Keep          permissions.Keep
	AllowSameUser bool
	Editor        bool                // the asker's own editor may answer what permits nothing; see [Engine.Reply]
	Asking        map[string][]string // by hook dialect, the names of tools that only ask
	OnlyTitles    map[string]bool     // the channels that show no more than titles
	TrustedLinks  []string            // callers on other machines whose hooks are believed about where names lead there
	Own           []string            // the daemon's data, configuration and binary: absolute, clean, symlinks resolved and not

	// For the daemon's own agents, by the caller's name ("agent:helper"); see also [Settings.PolicyOf].
	Bindings map[string]permissions.Binding // their persons: who is asked if no route says it
	Policies map[string]permissions.Policy  // instead of Policy
	Holdings map[string][]permissions.Tag   // granted by the configuration

	owners     map[string]string // persons by the caller names of their tokens; the engine fills it in
	grantRules *grantRules       // nil: the rules of grants are compiled each time
}

// PolicyOf returns the policy of a caller, with the holdings from the configuration. An agent started by one of ours has
// the policy of that one and no holdings.
func (s *Settings) PolicyOf(c permissions.Caller) permissions.Policy {
	p, found := valueForAgent(s.Policies, c)
	if !found {
		p = s.Policy
	}
	if c.IsOurs() {
		p.Held = s.Holdings[c.Name]
	}
	p.ReadCall = acts.ReadCall
	p.JudgeRules, p.GrantHolds = s.judge, s.GrantHolds
	return p
}

// judge judges a call by the rules, and those of live grants.
func (s *Settings) judge(r permissions.Request, c permissions.Call, live []permissions.Grant, now time.Time) permissions.Ruling {
	granted, ids := s.grantRules.rules(r.Caller, live)
	if s.Rules.Len()+granted.Len() == 0 {
		return permissions.Ruling{}
	}
	call := s.ruleCall(r, c)
	call.At = now
	v := s.Rules.JudgeWith(call, granted)
	ruling := permissions.Ruling{
		Effect: permissions.RuleEffect(v.Effect), Rule: v.Rule, Why: v.Why, Exact: v.Exact, Unsure: v.Unsure,
		Reason: permissions.Brief(strings.Join(v.Reasons, "; "), permissions.MaxReason),
	}
	for _, n := range v.Granted {
		if slices.Contains(strings.Fields(ruling.Grants), string(ids[n-1])) { // a trusted agent has several rules
			continue
		}
		if at := slices.IndexFunc(live, func(g permissions.Grant) bool { return g.ID == ids[n-1] }); live[at].IsTrust() {
			ruling.Why = permissions.Trusted
		}
		ruling.Grants = strings.TrimSpace(ruling.Grants + " " + string(ids[n-1]))
	}
	return ruling
}

// GrantHolds reports whether a grant holds for what r asks, by the route that it has now: whether as many as that takes of those whom it
// may ask have given it, nobody who gave it is locked, and its scope is still on offer. Only callers whose names are proven can be trusted.
func (s *Settings) GrantHolds(g permissions.Grant, r permissions.Request) bool {
	route, found := s.RouteOf(r)
	givers := 0
	for _, name := range g.Givers() {
		p, _ := s.Person(name)
		if p.Locked != "" {
			return false
		}
		if p.Name != "" && slices.Contains(route.people(), name) {
			givers++
		}
	}
	if !found || givers < max(route.Quorum, 1) {
		return false
	}
	if g.IsTrust() {
		return r.Caller.ProvenName() != r.Caller.Name
	}
	return slices.ContainsFunc(s.Approvals.Scopes, func(o permissions.Scope) bool {
		return o == g.Scope() || o.Span() > 0 && o.Span() >= g.Scope().Span() && g.Scope().Span() > 0
	})
}

// HasQuorumRoute reports whether a route takes several people.
func (s *Settings) HasQuorumRoute() bool {
	return slices.ContainsFunc(s.Routes, func(t Route) bool { return t.Quorum > 1 })
}

// grantRules has the compiled rules of callers' grants. It is safe for concurrent use; nil keeps nothing.
type grantRules struct {
	mu  sync.Mutex
	set map[string]compiledRules // by caller
}

// compiledRules are the rules of some grants.
type compiledRules struct {
	of  string // the ids and rules of the grants
	ids []permissions.ID
	set *rules.Set
}

// maxGrantRules bounds the callers whose rules are kept.
const maxGrantRules = 1000

// WhyNoMore returns why a grant's rule gives nothing any more; empty: it does, or the grant has none.
func WhyNoMore(g permissions.Grant) string {
	allow, _ := g.Rule.Patterns()
	if why := rules.WhyNotGiven(allow); why != "" {
		return "such a rule is not given any more; " + why
	}
	return ""
}

// rules returns the rules of a caller's grants, and the grant of each. A rule that this version does not accept gives nothing.
func (g *grantRules) rules(caller permissions.Caller, live []permissions.Grant) (*rules.Set, []permissions.ID) {
	var c compiledRules
	for _, grant := range live {
		if grant.Rule != "" {
			c.of += string(grant.ID) + " " + string(grant.Rule) + "\n"
		}
	}
	if c.of == "" {
		return nil, nil
	}
	if g != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		if kept := g.set[caller.Name]; kept.of == c.of {
			return kept.set, kept.ids
		}
	}
	var all []rules.Rule
	for _, grant := range live {
		allow, in := grant.Rule.Patterns()
		one := rules.Rule{Allow: allow, In: in}
		if grant.IsTrust() {
			for _, set := range rules.Sets() {
				all, c.ids = append(all, rules.Rule{Use: set, In: in}), append(c.ids, grant.ID)
			}
			continue
		}
		if _, problems := rules.Compile([]rules.Rule{one}); grant.Rule != "" && rules.FirstError(problems) == nil && WhyNoMore(grant) == "" {
			all, c.ids = append(all, one), append(c.ids, grant.ID)
		}
	}
	c.set, _ = rules.Compile(all)
	if g != nil {
		if len(g.set) >= maxGrantRules {
			clear(g.set)
		}
		g.set[caller.Name] = c
	}
	return c.set, c.ids
}

// Propose proposes the rule of "Always like this" for a request, given earlier ones of its caller, with words in a language. Without one,
// why says the reason.
func (s *Settings) Propose(
	r permissions.Request, earlier []permissions.Request, in i18n.Language, now time.Time,
) (p permissions.Proposal, why string) {
	if r.Kind != permissions.KindTool || len(r.Calls) > 0 {
		return p, "it is not one call of a tool"
	}
	at := func(r permissions.Request, c permissions.Call) rules.Call {
		call := s.ruleCall(r, c)
		call.At = now
		if r.Hook != "" && s.trustsLinks(r.Caller) && call.Resolve == nil { // what its hook said of links is not stored
			call.Resolve = filepath.Clean
		}
		return call
	}
	var past []rules.PastCall
	for _, q := range earlier {
		if q.DecidedVia == permissions.ViaGrant || q.ID == r.ID {
			continue
		}
		for _, c := range q.ToolCalls() {
			_, allowed := c.Answer.Scope()
			past = append(past, rules.PastCall{Call: at(q, c), Allowed: allowed, Denied: c.Answer == permissions.Deny})
		}
	}
	call := at(r, r.ToolCalls()[0])
	call.Language = in
	proposed, why := s.Rules.Propose(call, past)
	if why != "" {
		return p, why
	}
	if s.reachesOwn(proposed.Allow) {
		return p, "it would reach daycared's own files"
	}
	return permissions.Proposal{
		Rule:         permissions.NewGrantedRule(proposed.Allow, proposed.In, ""),
		Descriptions: proposed.Descriptions, PastCount: proposed.PastCount, Allowed: proposed.Allowed, NotCovered: proposed.NotCovered,
		Caller: r.Caller.Name,
	}, ""
}

func (s *Settings) reachesOwn(allow []string) bool {
	set, _ := rules.Compile([]rules.Rule{{Allow: allow}})
	return slices.ContainsFunc(s.Own, func(file string) bool {
		n, _ := set.Reaches(file)
		return n > 0
	})
}

// WhyNotGive returns why a person may not give a rule of daycared suggest for the caller of an approved request; empty: they may. It must
// load, and cover something that the request did, where it was done. One person gives it, so its route must need no more.
func (s *Settings) WhyNotGive(r permissions.Request, allow []string, in string) (why string) {
	rule := rules.Rule{Allow: allow, In: in}
	set, found := rules.Compile([]rules.Rule{rule})
	if err := rules.FirstError(found); err != nil {
		return err.Error()
	}
	route, _ := s.RouteOf(r)
	covers := func(c permissions.Call) bool {
		call := s.ruleCall(r, c)
		if call.Resolve == nil { // what its hook said of links is not stored
			call.Resolve = filepath.Clean
		}
		return slices.ContainsFunc(set.Judge(call).Acts, func(a rules.Judged) bool { return a.Rule == 1 && a.Effect == rules.Allow })
	}
	switch {
	case r.Quorum > 1 || route.Quorum > 1:
		return "several people have to agree, so it is given on a card"
	case !slices.Contains(s.Approvals.Scopes, permissions.Rule) || !r.Offers(permissions.Allow(permissions.Rule)):
		return "its card offered no rule"
	case rules.WhyNotGiven(allow) != "":
		return rules.WhyNotGiven(allow)
	case s.reachesOwn(allow):
		return "it would reach daycared's own files"
	case (in == "") != (r.Cwd == "") || !permissions.Within(in, r.Cwd):
		return "the request was in another folder"
	case !slices.ContainsFunc(r.ToolCalls(), covers):
		return "it covers nothing that the request did"
	}
	return ""
}

// trustsLinks reports whether rules accept what a caller's hook says of links: it runs on this machine, or its token is trusted for it.
func (s *Settings) trustsLinks(c permissions.Caller) bool {
	return c.UID >= 0 || slices.Contains(s.TrustedLinks, c.Name)
}

// ruleCall is a call as rules judge it. What our own agents call runs on this machine, so its links are resolved here. A hook that is
// believed says where names lead; of every other caller nothing is known.
func (s *Settings) ruleCall(r permissions.Request, c permissions.Call) rules.Call {
	call := rules.Call{
		Agent: r.Caller.ProvenName(), Person: s.owner(r.Caller), Dialect: r.Hook, Tool: c.Tool, Folder: r.Cwd, Root: r.Cwd,
	}
	call.Input, call.Condensed = r.FullInput(c)
	switch {
	case r.Caller.IsOurs():
		call.Dialect, call.Resolve = cmp.Or(r.Hook, acts.Daycared), linkResolver(r.Caller.Name)
	case r.Hook != "" && s.trustsLinks(r.Caller) && len(r.Leads.Root) > 1 && filepath.IsAbs(r.Leads.Root) &&
		filepath.Clean(r.Leads.Root) == r.Leads.Root:
		call.Root, call.Resolve, call.Leads = r.Leads.Root, r.Leads.Resolve, r.Leads
	case r.Hook != "" && s.trustsLinks(r.Caller):
		call.Leads.Names = r.Symlinks() // of a stored request
	}
	return call
}

// linkResolver is [own.Links.Leads] for a caller; "" where that is not known, or a file system does not answer.
func linkResolver(caller string) func(name string) string {
	left := own.Follow()
	return func(name string) string {
		links := *left
		to, err := own.LookUpFor(caller, name, func() (string, error) {
			if to, known := links.Leads(name); known {
				return to, nil
			}
			return "", nil
		})
		if err == nil { // else it may still be used
			*left = links
		}
		return to
	}
}

// valueForAgent returns the value for an agent of ours: its own, or that of the agent that started it, its name's prefix.
func valueForAgent[T any](all map[string]T, c permissions.Caller) (v T, found bool) {
	if !c.IsOurs() {
		return v, false
	}
	for name := c.Name; ; {
		if v, found = all[name]; found {
			return v, true
		}
		end := strings.LastIndexByte(name, '/')
		if end < 0 {
			return v, false
		}
		name = name[:end]
	}
}

// Approvals are the times and the scopes on offer.
type Approvals struct {
	Timeout, MaxTimeout, ClarificationTimeout time.Duration
	DeliverWithin                             time.Duration // how long an unreachable channel is tried
	RedeemWindow                              time.Duration
	Scopes                                    []permissions.Scope
	Remind                                    []Moment
	Unhurried                                 bool // after many approvals in a row, a card in a chat can be allowed only a little later
	AskRefused                                bool // people are asked, once, about what an agent's own judgement has refused
}

// Moment is a point in a request's time: after a share of it, or after a duration.
type Moment struct {
	Percent int
	After   time.Duration // if Percent is 0
}

// of returns the moment in the time of r.
func (m Moment) of(r *permissions.Request) time.Time {
	if m.Percent == 0 {
		return r.CreatedAt.Add(m.After)
	}
	return r.CreatedAt.Add(r.Timeout() / 100 * time.Duration(m.Percent))
}

// Limits bound a caller's pending requests, prompts, and stored data. Zero is no bound.
type Limits struct {
	PendingPerCaller, PromptsPerMinute int
	// AutoPerMinute is the number of unasked calls of each caller by each pattern of tools.auto, by patterns of the called tools; more
	// are asked about. See rate.
	AutoPerMinute                 map[string]int
	PendingTotal                  int
	RequestsPerHour, BytesPerHour int // of each caller, whatever settles its requests
	// MutedAfter is how many prompts of a caller's session, denied or ignored within ten minutes, mute it there; twice as many of all its
	// sessions mute it. From half of that on its cards are silent and take a second yes.
	MutedAfter int
	// MaxCards is how many requests of the last 30 seconds that still wait for a person have a message each; what comes besides is
	// listed in one.
	MaxCards int
}

// Rate returns the unasked calls per minute of a tool and the pattern that says so: the tool's own name, otherwise the longest
// matching pattern; of equally long ones, the one with the smallest number. It returns zero if none matches.
func (l Limits) Rate(tool string) (pattern string, n int) {
	if own := l.AutoPerMinute[tool]; own > 0 {
		return tool, own
	}
	for p, its := range l.AutoPerMinute {
		if glob(p, tool) && (n == 0 || cmp.Or(len(pattern)-len(p), its-n, strings.Compare(p, pattern)) < 0) {
			pattern, n = p, its
		}
	}
	return pattern, n
}

// Route says who is asked. Patterns are globs; an empty list matches everything. A request matches when its proven name
// matches Agents (a claimed name matches only `*`), every permission it asks for is covered by one of Tags, and every
// tool matches Tools. See also [Settings.RouteOf].
type Route struct {
	Agents []string
	Tags   []permissions.Tag
	Tools  []string
	Kinds  []permissions.Kind
	Ask    []string // people; permissions.OwnerName stands for the agent's owner
	// NoKeyboard keeps the dialogs of agents' own programs from answering before people do.
	NoKeyboard bool
	// OnlyTitle keeps what is asked for out of chats; see [Settings.Shown].
	OnlyTitle bool
	Quorum    int // how many have to allow; for a clarification or a pause that continues, the first answer counts
	// Escalate asks more people when nobody has settled the request by Moment, or at once when nobody in Ask can be reached.
	Escalate struct {
		Moment Moment
		To     []string
	}
	// Group is where the request is shown once to all recipients who can be reached there, instead of to each in that
	// channel; see [connectors.GroupChannel]. Empty: nowhere.
	Group string
	// Timeout replaces the default and is the most a caller may wait; 0: the default. A pause that continues keeps its
	// own unless Kinds names it.
	Timeout time.Duration
}

// matches reports whether t is for the whole of r, and whether for a part.
func (t Route) matches(r permissions.Request) (whole, part bool) {
	if len(t.Agents) > 0 && !slices.ContainsFunc(t.Agents, func(p string) bool { return glob(p, routed(p, r.Caller)) }) ||
		len(t.Kinds) > 0 && !slices.Contains(t.Kinds, r.Kind) || len(t.Tools) > 0 && r.Kind != permissions.KindTool {
		return false, false
	}
	whole, part = true, true
	if len(t.Tags) > 0 {
		whole = len(r.Tags) > 0 && len(permissions.Missing(r.Tags, t.Tags)) == 0
		part = slices.ContainsFunc(r.Tags, func(tag permissions.Tag) bool { return slices.ContainsFunc(t.Tags, tag.Reaches) })
	}
	if len(t.Tools) > 0 {
		some := false
		for _, c := range r.ToolCalls() {
			surely, maybe := r.NamesTool(t.Tools, c)
			whole, some = whole && surely, some || maybe
		}
		part = part && some
	}
	return whole, part
}

// routed returns the caller's name that a pattern is matched with. Agents started by ours follow the routes of the
// configured agent: the part after the slash was chosen by a model, and counts only if the pattern has a slash too.
func routed(pattern string, c permissions.Caller) string {
	name := c.ProvenName()
	if c.IsOurs() && !strings.Contains(pattern, "/") {
		name, _, _ = strings.Cut(name, "/")
	}
	return name
}

// glob matches a whole name.
func glob(pattern, name string) bool {
	ok, _ := permissions.MatchName(pattern, name)
	return ok
}

// owner returns the owner of a caller: its token's person, else the person of the account it runs as; empty: nobody.
func (s *Settings) owner(c permissions.Caller) string {
	if bond, found := valueForAgent(s.Bindings, c); found {
		return bond.Person
	}
	name := s.owners[c.Name]
	if i := slices.IndexFunc(s.People, func(p connectors.Person) bool { return p.UID >= 0 && p.UID == c.UID }); name == "" && i >= 0 {
		name = s.People[i].Name
	}
	if _, known := s.Person(name); !known {
		return ""
	}
	return name
}

// OwnerOf is the owner of a caller, and without people the operator; empty: nobody.
func (s *Settings) OwnerOf(c permissions.Caller) string {
	if len(s.People) == 0 {
		return OperatorName
	}
	return s.owner(c)
}

// SingleRecipient returns the recipient of r whom it concerns by itself: the owner of the agent, or the only one; empty: none.
// Requests that take several people, and those of high risk, concern all of them.
func (s *Settings) SingleRecipient(r permissions.Request) string {
	switch owner := s.owner(r.Caller); {
	case r.HighRisk || r.Quorum > 1 || len(r.Asked) == 0:
		return ""
	case slices.Contains(r.Asked, owner):
		return owner
	case len(r.Asked) == 1:
		return r.Asked[0]
	}
	return ""
}

// withOwner returns a route with the owner's name where it asks the owner. If the agent has no owner, those of Escalate are
// asked at once; without them, nobody is.
func (t Route) withOwner(owner string) Route {
	if !slices.Contains(t.Ask, permissions.OwnerName) && !slices.Contains(t.Escalate.To, permissions.OwnerName) {
		return t
	}
	named := func(names []string) (all []string) {
		for _, name := range names {
			if name == permissions.OwnerName {
				name = owner
			}
			if name != "" && !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
		return all
	}
	t.Ask, t.Escalate.To = named(t.Ask), named(t.Escalate.To)
	if len(t.Ask) == 0 {
		t.Ask, t.Escalate.To = t.Escalate.To, nil
	}
	if t.Escalate.To = slices.DeleteFunc(t.Escalate.To, func(n string) bool { return slices.Contains(t.Ask, n) }); t.Quorum >
		len(t.Ask)+len(t.Escalate.To) {
		t.Ask = nil // so many can never agree
	}
	return t
}

// RouteOf returns the first matching route, else for an agent of ours one to its own person; without people, everything
// goes to the operator. A route to a missing owner asks nobody. If routes before that are for a part of r, it is [Route.combine] them.
func (s *Settings) RouteOf(r permissions.Request) (Route, bool) {
	all := s.routesOf(r)
	if len(all) == 0 {
		return Route{}, false
	}
	return all[len(all)-1].combine(all[:len(all)-1]), true
}

// combine is t where some routes are for a part of what is asked: whoever allows it could allow each part, and as soon. It asks those whom
// all of these routes ask, if they are enough for each; else all of them, and takes so many that each part has enough of its own.
func (t Route) combine(parts []Route) Route {
	if len(parts) == 0 {
		return t
	}
	all := append([]Route{t}, parts...)
	var asked []string
	most := 0
	for _, o := range all {
		if len(o.Ask) == 0 { // its owner is missing
			return o
		}
		t.NoKeyboard, t.OnlyTitle, most = t.NoKeyboard || o.NoKeyboard, t.OnlyTitle || o.OnlyTitle, max(most, o.Quorum)
		if o.Group != t.Group {
			t.Group = "" // one of them keeps it out of there
		}
		asked = append(asked, notIn(o.askedFirst(), asked)...)
	}
	strange := func(of func(Route) []string) func(string) bool {
		return func(name string) bool {
			return slices.ContainsFunc(all, func(o Route) bool { return !slices.Contains(of(o), name) })
		}
	}
	later := slices.DeleteFunc(notIn(t.Escalate.To, asked), strange(Route.people))
	t.Ask, t.Escalate.To, t.Quorum = slices.DeleteFunc(slices.Clone(asked), strange(Route.askedFirst)), later, most
	if len(t.Ask) == 0 || len(t.Ask)+len(later) < most {
		t.Ask = asked
		for _, o := range all {
			t.Quorum = max(t.Quorum, o.Quorum+len(notIn(asked, o.askedFirst())))
		}
	}
	return t
}

// askedFirst are those whom t asks at once, or all whom it may ask if it takes more.
func (t Route) askedFirst() []string {
	if t.Quorum > len(t.Ask) {
		return t.people()
	}
	return t.Ask
}

// people are those whom t may ask.
func (t Route) people() []string { return slices.Concat(t.Ask, t.Escalate.To) }

// notIn returns the names that are not among others.
func notIn(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// routesOf returns the first route that is for all of r, after those before it that are for a part; nil without one for all.
func (s *Settings) routesOf(r permissions.Request) (all []Route) {
	if len(s.People) == 0 {
		return []Route{{Ask: []string{OperatorName}, Quorum: 1}}
	}
	for _, t := range s.Routes {
		whole, part := t.matches(r)
		if part {
			t.Quorum = cmp.Or(t.Quorum, 1)
			all = append(all, t.withOwner(s.owner(r.Caller)))
		}
		if whole {
			return all
		}
	}
	if bond, found := valueForAgent(s.Bindings, r.Caller); found {
		return append(all, Route{Ask: []string{bond.Person}, Quorum: 1})
	}
	return nil
}

// SameRoute reports whether two requests have the same route.
func (s *Settings) SameRoute(a, b permissions.Request) bool {
	one, found := s.RouteOf(a)
	other, too := s.RouteOf(b)
	return found && too && reflect.DeepEqual(one, other)
}

// Shown returns r as a channel may show it: only its title, or all of it, as on the screens of the daemon's own machine.
func (s *Settings) Shown(r permissions.Request, channel string) permissions.Request {
	if _, chat := connectors.KindOf(channel); !chat {
		return r
	}
	route, _ := s.RouteOf(r)
	if route.OnlyTitle || s.OnlyTitles[channel] {
		return r.Title()
	}
	return r
}

// HidesIn reports whether a channel shows no more than the titles of some requests.
func (s *Settings) HidesIn(channel string) bool {
	_, chat := connectors.KindOf(channel)
	return chat && (s.OnlyTitles[channel] || slices.ContainsFunc(s.Routes, func(r Route) bool { return r.OnlyTitle }))
}

// NoticeRecipient returns the person of that name if a caller may send them notices: its owner, or a person whom one of its
// routes may ask. An empty name is the owner. Other people are unknown to it, and the callers of a locked owner send
// nothing.
func (s *Settings) NoticeRecipient(c permissions.Caller, name string) (connectors.Person, error) {
	owner := s.OwnerOf(c)
	people := s.noticeRecipients(c, owner)
	if name == "" {
		name = owner
	}
	p, known := s.Person(name)
	own, _ := s.Person(owner)
	switch {
	case name == "":
		return p, permissions.NoOwnerToNotify(c.Name)
	case !known || !slices.Contains(people, name):
		return p, permissions.MayNotNotify(name, people)
	case own.Locked != "":
		return p, permissions.LockedOut(own.Name)
	}
	return p, nil
}

// noticeRecipients returns the people whom a caller may notify: its owner first, then those of every route that may match it.
func (s *Settings) noticeRecipients(c permissions.Caller, owner string) (people []string) {
	add := func(names ...string) {
		for _, name := range names {
			if _, known := s.Person(name); known && !slices.Contains(people, name) {
				people = append(people, name)
			}
		}
	}
	add(owner)
	for _, t := range s.Routes {
		if len(t.Agents) > 0 && !slices.ContainsFunc(t.Agents, func(p string) bool { return glob(p, routed(p, c)) }) {
			continue
		}
		t = t.withOwner(owner)
		add(append(slices.Clone(t.Ask), t.Escalate.To...)...)
		if len(t.Tags)+len(t.Tools)+len(t.Kinds) == 0 {
			break // it matches whatever the caller asks
		}
	}
	return people
}

// KeyboardMayAnswer reports whether the dialog of the asker's own program may answer r before people do: a call that its hook asks
// about, or a question, that is pending or reached nobody.
func (s *Settings) KeyboardMayAnswer(r permissions.Request) bool {
	open := r.State == permissions.Pending || r.State == permissions.Undeliverable
	if !open || r.Hook == "" && r.Kind != permissions.KindClarification {
		return false
	}
	t, found := s.RouteOf(r)
	return found && !t.NoKeyboard && r.Quorum <= 1 && t.Quorum <= 1
}

// Person returns the person of a name. The implicit operator exists only without people.
func (s *Settings) Person(name string) (connectors.Person, bool) {
	if i := slices.IndexFunc(s.People, func(p connectors.Person) bool { return p.Name == name }); i >= 0 {
		return s.People[i], true
	}
	if name == OperatorName && len(s.People) == 0 {
		return s.Operator(), true
	}
	return connectors.Person{}, false
}

// Operator is the person whose account runs the daemon, or the implicit one.
func (s *Settings) Operator() connectors.Person {
	if i := slices.IndexFunc(s.People, func(p connectors.Person) bool { return p.UID == s.UID }); i >= 0 {
		return s.People[i]
	}
	return connectors.Person{Name: OperatorName, UID: s.UID, Location: time.Local}
}

// Owner is the person who receives what concerns nobody in particular: the one whose account runs the daemon, else the
// first in the configuration, of those who are not locked; else the implicit operator.
func (s *Settings) Owner() connectors.Person {
	operator := s.Operator()
	free := slices.IndexFunc(s.People, func(p connectors.Person) bool { return p.Locked == "" })
	if (operator.Name == OperatorName || operator.Locked != "") && free >= 0 {
		return s.People[free]
	}
	return operator
}

// sameAccount reports whether two aliases on a channel may belong to one account: an unknown one does not contradict.
func sameAccount(then, now string) bool { return then == "" || now == "" || then == now }

// Identify returns the person whom an identity proves. A locked person is returned with false. If the person whose
// account runs the daemon is locked, the operator has a name without a person: it can unlock, and decides nothing.
func (s *Settings) Identify(id connectors.Identity) (connectors.Person, bool) {
	if id.Console || id.Operator {
		p := s.Operator()
		if id.Operator && p.Locked != "" {
			p = connectors.Person{Name: OperatorName, UID: permissions.NoUID, Location: p.Location}
		}
		return p, p.Locked == ""
	}
	i := slices.IndexFunc(s.People, func(p connectors.Person) bool {
		return (id.UID >= 0 && p.UID == id.UID) ||
			(id.Address != "" && p.Addresses[id.Via] == id.Address && sameAccount(p.Aliases[id.Via], id.Alias))
	})
	if i < 0 {
		return connectors.Person{}, false
	}
	return s.People[i], s.People[i].Locked == ""
}

// longestPatience bounds how long before it is needed one of our own agents may ask for a permission.
const longestPatience = 24 * time.Hour

// SetRecipients sets the recipients and the deadline.
func (s *Settings) SetRecipients(r *permissions.Request) error {
	route, found := s.RouteOf(*r)
	asker := *r
	if asker.Claimed { // routes match proven names
		asker.Agent = ""
	}
	switch {
	case !found:
		return permissions.NoRoute(asker.AgentLabel())
	case len(route.Ask) == 0:
		return permissions.NoOwner(asker.AgentLabel())
	}
	r.Asked, r.Quorum, r.Group = slices.Clone(route.Ask), route.Quorum, route.Group
	usual, most := s.Timeouts(*r)
	if r.Caller.IsOurs() && r.Session == "" { // for a future run; the schedule sets the time
		most = max(most, longestPatience)
	}
	wait := min(cmp.Or(r.WantedTimeout, usual), most)
	if wait < time.Second {
		return permissions.Invalid(fmt.Errorf("a timeout of %s is too short; it is at least 1s", wait))
	}
	r.Deadline = r.CreatedAt.Add(wait)
	s.scheduleReminders(r, route)
	return nil
}

// Timeouts returns how long r waits if its caller does not say, and the most that it may: the shortest of the routes for it and its parts.
func (s *Settings) Timeouts(r permissions.Request) (usual, most time.Duration) {
	usual, most = s.Approvals.Timeout, s.Approvals.MaxTimeout
	for i, t := range s.routesOf(r) {
		its, longest := s.Approvals.Timeout, cmp.Or(t.Timeout, s.Approvals.MaxTimeout)
		if r.Kind == permissions.KindClarification {
			its = s.Approvals.ClarificationTimeout
		}
		if t.Timeout > 0 && (!r.TakesReplies() || slices.Contains(t.Kinds, r.Kind)) {
			its = t.Timeout
		}
		if i == 0 {
			usual, most = its, longest
		}
		usual, most = min(usual, its), min(most, longest)
	}
	return usual, most
}

// scheduleReminders schedules reminders and the escalation of r.
func (s *Settings) scheduleReminders(r *permissions.Request, route Route) {
	if r.Kind == permissions.KindClarification || r.Mode == permissions.ModeContinue {
		r.Quorum = 1 // the first answer counts
	}
	for _, name := range route.Escalate.To {
		if !slices.Contains(r.Asked, name) && !slices.Contains(r.EscalateTo, name) {
			r.EscalateTo = append(r.EscalateTo, name)
		}
	}
	for _, t := range s.routesOf(*r) {
		if at := t.Escalate.Moment.of(r); len(r.EscalateTo) > 0 && at.After(r.EscalateAt) {
			r.EscalateAt = at
		}
	}
	if r.Mode == permissions.ModeContinue {
		return // it continues without an answer
	}
	for _, m := range s.Approvals.Remind {
		if at := m.of(r); at.Before(r.Deadline) {
			r.Reminders = append(r.Reminders, at.Truncate(time.Microsecond))
		}
	}
	slices.SortFunc(r.Reminders, time.Time.Compare)
	r.Reminders = spaced(r.Reminders)
	if r.Timeout() < leastReminded {
		r.Reminders = nil
	}
}

const (
	// leastReminded is the shortest time of a request with reminders.
	leastReminded = 3 * time.Second
	// leastApart is the shortest time between two reminders of a request.
	leastApart = 10 * time.Second
)

// spaced returns the times that are not too soon after the previous one, in order.
func spaced(all []time.Time) (kept []time.Time) {
	for _, at := range all {
		if n := len(kept); n == 0 || at.Sub(kept[n-1]) >= leastApart {
			kept = append(kept, at)
		}
	}
	return kept
}

// CurrentRecipients returns the recipients of r under these settings: the current ones who are still configured and not locked, and
// those whom the route of r names now, unless parts of r can have had routes of their own when it was asked, where they could replace
// people of another part. People who wait for an escalation keep waiting, and people who are locked wait beside them until they are not.
// The implicit operator, whom no route names, does not replace people who were asked.
func (s *Settings) CurrentRecipients(r permissions.Request, at time.Time) permissions.Reroute {
	e := permissions.Reroute{
		Moved: slices.DeleteFunc(slices.Clone(r.Votes), func(v permissions.Vote) bool { return !s.moved(v) }),
		At:    at,
	}
	route, found := s.RouteOf(r)
	routed := func(name string) bool { return found && slices.Contains(route.Ask, name) }
	for _, name := range slices.Concat(r.Asked, r.EscalateTo) {
		p, known := s.Person(name)
		switch waits := !slices.Contains(r.Asked, name) && !r.EscalateAt.IsZero(); {
		case !known || slices.Contains(e.Asked, name) || slices.Contains(e.EscalateTo, name):
		case p.Locked != "":
			e.Locked, e.EscalateTo = append(e.Locked, name), append(e.EscalateTo, name)
		case waits && !routed(name): // else they were locked
			e.EscalateTo = append(e.EscalateTo, name)
		default:
			e.Asked = append(e.Asked, name)
		}
	}
	ofParts := len(r.Tags)+len(r.ToolNames()) > 1 || slices.ContainsFunc(r.Tags, func(t permissions.Tag) bool { return t.Path() != "" })
	for _, name := range route.Ask {
		if found && !ofParts && len(s.Unlocked(name)) > 0 && name != OperatorName && !slices.Contains(e.Asked, name) {
			e.Asked = append(e.Asked, name)
		}
	}
	return e
}

// moved reports whether an allowing vote came from an account that is no longer its person's: whoever has it now could
// vote again. A suspended account is still theirs.
func (s *Settings) moved(v permissions.Vote) bool {
	p, _ := s.Person(v.By)
	channel, _, _ := strings.Cut(v.Account, ":")
	_, allows := v.Answer.Scope()
	return allows && v.Account != "" && !slices.Contains(p.Suspended, channel) && !slices.Contains(Accounts(p), v.Account)
}

// DecidersValid reports whether everybody who answered r is still configured and not locked.
func (s *Settings) DecidersValid(r permissions.Request) bool {
	stands := func(name string) bool { return len(s.Unlocked(name)) > 0 }
	return stands(r.DecidedBy) && !slices.ContainsFunc(r.Votes, func(v permissions.Vote) bool { return !stands(v.By) })
}

// Editable returns why r may not be answered in the asker's editor, or nil.
func (s *Settings) Editable(r permissions.Request) error {
	switch {
	case !r.TakesReplies():
		return permissions.AskerMayNotPermit()
	case !s.Editor || r.Caller.IsOurs():
		return permissions.EditorOff()
	case r.Caller.Name == permissions.Anonymous: // another anonymous caller could answer for this one
		return permissions.TokenNeeded()
	}
	return nil
}

// HasAgent reports whether an agent of the daemon's own has that name.
func (s *Settings) HasAgent(name string) bool {
	_, ours := valueForAgent(s.Bindings, permissions.Caller{Name: "agent:" + name})
	return ours
}
