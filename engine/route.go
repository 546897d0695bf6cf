package engine

import (
	"cmp"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// OperatorName is the person who runs the daemon when the configuration names nobody by that account.
const OperatorName = permissions.OperatorName

// Settings are what the configuration decides. They are swapped whole and never changed in place.
type Settings struct {
	UID           int // the account that runs the daemon
	People        []connectors.Person
	Routes        []Route
	Approvals     Approvals
	Policy        permissions.Policy
	Limits        Limits
	Keep          permissions.Keep
	AllowSameUser bool
	Editor        bool                // the asker's own editor may answer what permits nothing; see [Engine.Reply]
	Asking        map[string][]string // by the dialect of a hook, the names of tools that only ask
	Own           []string            // the daemon's data, configuration and binary: absolute, clean, symlinks resolved and not

	// Of agents of ours, by the caller's name ("agent:helper"); see also [Settings.policy].
	Bonds    map[string]permissions.Binding // whose they are: who is asked where no route says it
	Policies map[string]permissions.Policy  // instead of Policy
	Holdings map[string][]permissions.Tag   // what the configuration gives them

	owners map[string]string // people by the names of the callers whose tokens are theirs; the engine fills it in
}

// policy is what rules a caller, with what the configuration gives it. An agent that one of ours has made is ruled by the
// policy of that one, and is given nothing.
func (s *Settings) policy(c permissions.Caller) permissions.Policy {
	p, found := inherited(s.Policies, c)
	if !found {
		p = s.Policy
	}
	if c.Ours() {
		p.Held = s.Holdings[c.Name]
	}
	return p
}

// inherited is what there is of an agent of ours: its own, or else that of the one that made it, whose name begins its.
func inherited[T any](all map[string]T, c permissions.Caller) (v T, found bool) {
	if !c.Ours() {
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
	DeliverWithin                             time.Duration // how long a channel that is away is tried
	RedeemWindow                              time.Duration
	Scopes                                    []permissions.Scope
	Remind                                    []Moment
	AskRefused                                bool // people are asked, once, about what an agent's own judgement has refused
}

// Moment is a point in the time that a request has: after a share of it, or after so long.
type Moment struct {
	Percent int
	After   time.Duration // when Percent is 0
}

// of is the moment in the time of r.
func (m Moment) of(r *permissions.Request) time.Time {
	if m.Percent == 0 {
		return r.CreatedAt.Add(m.After)
	}
	return r.CreatedAt.Add(r.Timeout() / 100 * time.Duration(m.Percent))
}

// Limits bound what callers may have pending, how often they may have people prompted, and what is stored for them. Zero is
// no bound.
type Limits struct {
	PendingPerCaller, PromptsPerMinute, PendingTotal int
	AutoPerMinute                                    int // calls of each caller by each pattern of tools.auto; more are asked about
	RequestsPerHour, BytesPerHour                    int // of each caller, whatever settles what it asks
}

// Route says who is asked. Patterns are globs; an empty list matches everything. A request matches when its proven name
// matches Agents (a claimed name matches only `*`), every permission it asks is covered by one of Tags, and every tool
// matches Tools.
type Route struct {
	Agents []string
	Tags   []permissions.Tag
	Tools  []string
	Kinds  []permissions.Kind
	Ask    []string // people; permissions.OwnerName stands for whoever the asking agent belongs to
	// NoKeyboard keeps the dialogs of agents' own programs from answering before people do.
	NoKeyboard bool
	Quorum     int // how many have to allow; of a clarification and a pause that continues, the first answer counts
	// Escalate asks more people when nobody has settled it by Moment, or at once when those of Ask cannot be reached.
	Escalate struct {
		Moment Moment
		To     []string
	}
	// Group is where the request is shown once for all who are asked and can be reached there, instead of to each in that
	// channel; see [connectors.GroupChannel]. Empty: nowhere.
	Group string
	// Timeout is instead of the default, and the most a caller may wait; 0: the default. What goes on by itself keeps its own
	// unless Kinds names it.
	Timeout time.Duration
}

func (t Route) matches(r permissions.Request) bool {
	return (len(t.Agents) == 0 || slices.ContainsFunc(t.Agents, func(p string) bool { return glob(p, routed(p, r.Caller)) })) &&
		(len(t.Kinds) == 0 || slices.Contains(t.Kinds, r.Kind)) &&
		(len(t.Tags) == 0 || (len(r.Tags) > 0 && len(permissions.Missing(r.Tags, t.Tags)) == 0)) &&
		(len(t.Tools) == 0 || (r.Kind == permissions.KindTool && !slices.ContainsFunc(r.ToolNames(), func(n string) bool {
			return !slices.ContainsFunc(t.Tools, func(p string) bool { return glob(p, n) })
		})))
}

// routed is the name of a caller for a pattern. What agents of ours start is under the routes of those that the
// configuration names: what comes after the slash a model made up, and it is looked at only where a pattern has one, too.
func routed(pattern string, c permissions.Caller) string {
	name := c.Proven()
	if c.Ours() && !strings.Contains(pattern, "/") {
		name, _, _ = strings.Cut(name, "/")
	}
	return name
}

// glob matches a whole name; a slash is a character like any other, and a malformed pattern matches nothing.
func glob(pattern, name string) bool {
	flat := func(text string) string { return strings.ReplaceAll(text, "/", "\x00") }
	ok, err := path.Match(flat(pattern), flat(name))
	return ok && err == nil
}

// owner is whose agent a caller is: its token's person, else the one whose account it runs as; empty: nobody's.
func (s *Settings) owner(c permissions.Caller) string {
	if bond, found := inherited(s.Bonds, c); found {
		return bond.Person
	}
	name := s.owners[c.Name]
	if i := slices.IndexFunc(s.People, func(p connectors.Person) bool { return p.UID >= 0 && p.UID == c.UID }); name == "" && i >= 0 {
		name = s.People[i].Name
	}
	if _, known := s.person(name); !known {
		return ""
	}
	return name
}

// owned is a route with the owner's name where it asks the owner. Where nobody owns the agent, those of Escalate are asked at
// once, and none is nobody.
func (t Route) owned(owner string) Route {
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

// route is the first that matches, else of an agent of ours its own person; without people, everything goes to the
// operator. One that asks an owner whom there is not asks nobody.
func (s *Settings) route(r permissions.Request) (Route, bool) {
	if len(s.People) == 0 {
		return Route{Ask: []string{OperatorName}, Quorum: 1}, true
	}
	for _, t := range s.Routes {
		if t.matches(r) {
			t.Quorum = cmp.Or(t.Quorum, 1)
			return t.owned(s.owner(r.Caller)), true
		}
	}
	if bond, found := inherited(s.Bonds, r.Caller); found {
		return Route{Ask: []string{bond.Person}, Quorum: 1}, true
	}
	return Route{}, false
}

// sameRoute reports whether two requests are asked about in the same way.
func (s *Settings) sameRoute(a, b permissions.Request) bool {
	one, found := s.route(a)
	other, too := s.route(b)
	return found && too && reflect.DeepEqual(one, other)
}

// listener is the person of that name if a caller may tell them something: its owner, or somebody whom a route may ask for it.
// An empty name is the owner's. Nobody else is known to it, and the callers of an owner who is locked tell nothing.
func (s *Settings) listener(c permissions.Caller, name string) (connectors.Person, error) {
	owner := s.owner(c)
	if len(s.People) == 0 {
		owner = OperatorName
	}
	people := s.tellable(c, owner)
	if name == "" {
		name = owner
	}
	p, known := s.person(name)
	own, _ := s.person(owner)
	switch {
	case name == "":
		return p, permissions.NobodyOwns(c.Name)
	case !known || !slices.Contains(people, name):
		return p, permissions.NobodyToTell(name, people)
	case own.Locked != "":
		return p, permissions.LockedOut(own.Name)
	}
	return p, nil
}

// tellable are the people whom a caller may tell something: its owner first, and then those of every route that may be its.
func (s *Settings) tellable(c permissions.Caller, owner string) (people []string) {
	add := func(names ...string) {
		for _, name := range names {
			if _, known := s.person(name); known && !slices.Contains(people, name) {
				people = append(people, name)
			}
		}
	}
	add(owner)
	for _, t := range s.Routes {
		if len(t.Agents) > 0 && !slices.ContainsFunc(t.Agents, func(p string) bool { return glob(p, routed(p, c)) }) {
			continue
		}
		t = t.owned(owner)
		add(append(slices.Clone(t.Ask), t.Escalate.To...)...)
		if len(t.Tags)+len(t.Tools)+len(t.Kinds) == 0 {
			break // it matches whatever the caller asks
		}
	}
	return people
}

// keyboard reports whether the dialog of the asker's own program may answer r before people do: a call that its hook asks about,
// or a question, while it is open.
func (s *Settings) keyboard(r permissions.Request) bool {
	if r.State != permissions.Pending || r.Hook == "" && r.Kind != permissions.KindClarification {
		return false
	}
	t, found := s.route(r)
	return found && !t.NoKeyboard && r.Quorum <= 1 && t.Quorum <= 1
}

// person is somebody by name. The implicit operator is nobody once there are people.
func (s *Settings) person(name string) (connectors.Person, bool) {
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

// Owner is the person who hears of what is nobody's in particular: the one whose account runs the daemon, else the first
// of the configuration, of those who are not locked; else the implicit operator.
func (s *Settings) Owner() connectors.Person {
	operator := s.Operator()
	free := slices.IndexFunc(s.People, func(p connectors.Person) bool { return p.Locked == "" })
	if (operator.Name == OperatorName || operator.Locked != "") && free >= 0 {
		return s.People[free]
	}
	return operator
}

// sameAccount reports whether what a channel calls an account besides, then and now, speaks for one account: where either
// is unknown, nothing speaks against it.
func sameAccount(then, now string) bool { return then == "" || now == "" || then == now }

// identify is the person that a door's proof stands for. Whoever is locked is told beside false. The operator goes on as
// nobody in particular where the person is locked whose account runs the daemon: who unlocks, and decides nothing.
func (s *Settings) identify(id connectors.Identity) (connectors.Person, bool) {
	if id.Console || id.Operator {
		p := s.Operator()
		if id.Operator && p.Locked != "" {
			p = connectors.Person{Name: OperatorName, UID: permissions.NoUID, Location: p.Location}
		}
		return p, p.Locked == ""
	}
	i := slices.IndexFunc(s.People, func(p connectors.Person) bool {
		return (id.UID >= 0 && p.UID == id.UID) ||
			(id.Telegram != 0 && p.Telegram == id.Telegram) ||
			(id.WhatsApp != "" && p.WhatsApp == id.WhatsApp && sameAccount(p.WhatsAppLID, id.Alias))
	})
	if i < 0 {
		return connectors.Person{}, false
	}
	return s.People[i], s.People[i].Locked == ""
}
