package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	ruling "github.com/daycared/daycared/permissions/rules"
)

// operator is the name of the daemon's account if no person has it, so no person may have this name.
const operator = "operator"

// owner stands in routes for the person whose agent asks, so no person may have this name.
const owner = permissions.OwnerName

// checkConsistency checks that the values are consistent. It ignores values that were found wrong.
func checkConsistency(r *report, c *Config) {
	for i, p := range c.People {
		r.checkPerson(p, fmt.Sprintf("people.%d", i))
	}
	checkShared(r, c.People, "name", func(p Person) string { return strings.ToLower(p.Name) })
	checkShared(r, c.People, "user", func(p Person) string { return p.User })
	for _, kind := range slices.Backward(connectors.KindNames()) {
		checkShared(r, c.People, kind, func(p Person) string { return p.Addresses[kind] })
	}
	for i, t := range c.Routes {
		r.checkRoute(t, fmt.Sprintf("routes.%d", i), c)
	}
	r.checkAgents(c)
	r.checkNumber(c)
	r.checkTools(c)
	r.checkShells(c)
	r.checkRules(c)
	r.checkApprovals(c.Approvals)
	r.checkKeep(c.Keep)
	r.checkListener(c.API)
	if c.API.AdminSocket != "" && c.API.AdminSocket == c.API.AgentSocket {
		r.key("api.admin_socket", "api.admin_socket: agents ask at this path, and who decides must not be found there; "+
			"write another one")
	}
}

// PermissionRules returns the rules as package permissions/rules has them.
func (c *Config) PermissionRules() []ruling.Rule {
	return wire.Map(c.Rules, func(r Rule) ruling.Rule { return ruling.Rule(r) })
}

// checkRules checks the rules about what calls do.
func (r *report) checkRules(c *Config) {
	_, found := ruling.Compile(c.PermissionRules())
	for _, p := range found {
		path := fmt.Sprintf("rules.%d", p.Rule)
		if p.Key != "" {
			path = join(path, p.Key)
		}
		if p.Item >= 0 {
			path = join(path, strconv.Itoa(p.Item))
		}
		if !p.Warns && !r.hasProblem(path) {
			r.key(path, "%s: %s", strings.TrimSuffix("rules."+p.Key, "."), p.Text)
		}
	}
	for i, rule := range c.Rules {
		r.checkNames(rule.People, "rules.people", fmt.Sprintf("rules.%d.people", i), c.People, nil)
	}
}

// checkShells rejects shells in tools.auto, since it would let every command run, and tools that do what files say.
func (r *report) checkShells(c *Config) {
	for agent := nobody; agent < len(c.Agents); agent++ {
		t, at := c.toolsOf(agent)
		for i, name := range t.Auto {
			here := at + ".auto." + strconv.Itoa(i)
			if r.isSet(at+".auto") && !isPattern(name) && permissions.RunsCode(name) && !r.hasProblem(here) {
				if permissions.FollowsFiles(name) {
					r.key(here, "%s: %s does what files say that nobody has seen, so it is asked about each time; leave it out",
						KeyName(at+".auto"), quote(name))
					continue
				}
				r.key(here, "%s: %s would run every command unasked; write which under rules, as in - allow: [\"run git status\"]",
					KeyName(at+".auto"), quote(name))
			}
		}
	}
}

// checkNumber rejects a person's own number as that of the linked account.
func (r *report) checkNumber(c *Config) {
	const phone = "connectors.whatsapp.phone"
	for _, p := range c.People {
		if own := p.Addresses[viaWhatsApp]; own != "" && own == c.Connectors.WhatsApp.Phone && !r.hasProblem(phone) {
			r.key(phone, "%s: it is the number of %s, and what the linked account sends decides nothing, so they could never answer; "+
				"link a number of its own", phone, quote(p.Name))
		}
	}
}

// unworkable returns well-formed settings that cannot work: people without a route, and routes that reach too few people.
func (r *report) unworkable(c *Config) (faults Problems) {
	if r.hasProblem("people") || r.hasProblem("routes") || r.hasProblem("agents") {
		return nil
	}
	if len(c.People) > 0 && len(c.Routes) == 0 && len(c.Agents) == 0 { // our own agents ask their own person
		return Problems{r.problem("people", "there are people but no routes: nobody is asked; write who is asked, "+
			"as in - ask: [%s] under routes", scalar(c.People[0].Name))}
	}
	for i, p := range c.People {
		routed := slices.ContainsFunc(c.Routes, func(t Route) bool { return slices.Contains(t.everybody(), p.Name) || t.asksOwner() })
		if !routed && !slices.ContainsFunc(c.Agents, func(a Agent) bool { return a.Person == p.Name }) {
			faults = append(faults, r.problem(fmt.Sprintf("people.%d", i), "people: %s is in no route's ask or escalate.to, so they are "+
				"never asked; name them in a route, or take them out", quote(p.Name)))
		}
	}
	for i, t := range c.Routes {
		all := t.everybody()
		lost := slices.DeleteFunc(slices.Clone(all), c.reaches)
		switch can := len(all) - len(lost); {
		case r.hasProblem("connectors"):
		case can == 0:
			faults = append(faults, r.problem(fmt.Sprintf("routes.%d.ask", i), "routes.ask: nothing can reach %s; give them a user, or "+
				"switch on a channel that they have", strings.Join(lost, " or ")))
		case can < t.Quorum:
			faults = append(faults, r.problem(fmt.Sprintf("routes.%d.quorum", i), "routes.quorum: %d people have to agree, and %d of these "+
				"can be reached (not %s); write at most %[2]d, or give them a user or a channel that is switched on",
				t.Quorum, can, strings.Join(lost, " or ")))
		}
	}
	return faults
}

// reaches reports whether a person can be reached: by an inbox of their account, or in an enabled channel, if need be once paired.
func (c *Config) reaches(name string) bool {
	p := c.person(name)
	if name == owner { // of some agent
		return true
	}
	return p.User != "" || c.mayHaveChat(p)
}

// mayHaveChat reports whether a person has, or may be paired with, a chat that is switched on.
func (c *Config) mayHaveChat(p Person) bool {
	return slices.ContainsFunc(connectors.KindNames(), func(channel string) bool {
		return c.IsEnabled(channel) && (len(p.Via) == 0 || slices.Contains(p.Via, channel))
	})
}

// atSocketOnly lists the people besides root who have an account and no chat.
func (c *Config) atSocketOnly() (names []string) {
	for _, p := range c.People {
		if p.User != "" && p.User != "root" && !c.mayHaveChat(p) {
			names = append(names, p.Name)
		}
	}
	return names
}

// person returns the person of a name, or a zero Person.
func (c *Config) person(name string) Person {
	for _, p := range c.People {
		if p.Name == name {
			return p
		}
	}
	return Person{}
}

func (r *report) checkPerson(p Person, path string) {
	switch {
	case r.hasProblem(path):
		return
	case p.Name == "":
		r.key(path, "people.name: this person has none; write one, as in name: fay")
	case strings.EqualFold(p.Name, operator):
		r.key(path+".name", "people.name: %s stands for the daemon's own account; write another one", quote(p.Name))
	case strings.EqualFold(p.Name, owner):
		r.key(path+".name", "people.name: %s stands in routes for the person whose agent asks; write another one", quote(p.Name))
	}
	if _, given := r.lines[path+".via"]; given && len(p.Via) == 0 {
		r.key(path+".via", "people.via: an empty list reaches nobody; leave it out for the daemon's own order")
	}
	for i, channel := range p.Via {
		at := path + ".via." + strconv.Itoa(i)
		if slices.Contains(p.Via[:i], channel) {
			r.key(at, "people.via: %s is there already; write it once", channel)
		} else if address, example := p.missingAddress(channel); address != "" {
			r.key(at, "people.via: %s goes by the person's %s, and there is none; write theirs, as in %[2]s: %s, or take %[1]s out",
				channel, address, example)
		}
	}
}

// Problems of accounts and groups that the machine does not know; the first %s is the group's key.
const (
	UnknownUser  = "people.user: this machine does not know the account %q; write the name of one of its accounts"
	UnknownGroup = "%s: this machine does not know the group %q; write the name of one of its groups"
)

// checkAccounts rejects accounts and groups that the machine does not know. A group may be a number.
func (r *report) checkAccounts(c *Config, known Accounts) {
	for i, p := range c.People {
		at := fmt.Sprintf("people.%d.user", i)
		if known.User != nil && p.User != "" && !r.hasProblem(at) && !known.User(p.User) {
			r.key(at, UnknownUser, p.User)
		}
	}
	for _, group := range []struct{ path, name string }{
		{"api.agent_group", c.API.AgentGroup}, {"api.admin_group", c.API.AdminGroup},
	} {
		_, err := strconv.Atoi(group.name)
		if known.Group != nil && group.name != "" && err != nil && !r.hasProblem(group.path) && !known.Group(group.name) {
			r.key(group.path, UnknownGroup, group.path, group.name)
		}
	}
}

// missingAddress returns the key of the address that p lacks for a channel, with an example; empty: none.
func (p Person) missingAddress(channel string) (key, example string) {
	kind, addressed := connectors.KindOf(channel)
	switch {
	case addressed && p.Addresses[channel] == "":
		return channel, kind.Example
	case !addressed && p.User == "":
		return "user", scalar(cmp.Or(p.Name, "fay"))
	}
	return "", ""
}

// checkShared rejects a name or an address that two people share.
func checkShared(r *report, people []Person, name string, of func(Person) string) {
	first := map[string]int{}
	for i, p := range people {
		path := fmt.Sprintf("people.%d.%s", i, name)
		value := of(p)
		if value == "" || r.hasProblem(path) {
			continue
		}
		if other, taken := first[value]; taken {
			_, line := r.origin(fmt.Sprintf("people.%d.%s", other, name))
			r.key(path, "people.%s: %s is that of the person in line %d already; no two people may share it",
				name, quote(value), line)
			continue
		}
		first[value] = i
	}
}

func (r *report) checkApprovals(a Approvals) {
	const scopes, remind = "approvals.scopes", "approvals.remind"
	const timeout, most = "approvals.timeout", "approvals.max_timeout"
	const question, deliver = "approvals.clarification_timeout", "approvals.deliver_within"
	// Check all before reporting any, as in keep. Conflicts of defaults alone are reported once.
	long := r.exceeds(timeout, a.Timeout, most, a.MaxTimeout)
	longQuestion := r.exceeds(question, a.ClarificationTimeout, most, a.MaxTimeout) && (r.isSet(question) || !long)
	longDelivery := r.isSet(deliver) && r.exceeds(deliver, a.DeliverWithin, most, a.MaxTimeout)
	if long {
		r.tooLong(timeout, a.Timeout, most, a.MaxTimeout, formatDuration)
	}
	if longQuestion {
		r.tooLong(question, a.ClarificationTimeout, most, a.MaxTimeout, formatDuration)
	}
	if longDelivery {
		r.tooLong(deliver, a.DeliverWithin, most, a.MaxTimeout, formatDuration)
	}
	checkDuplicates(r, scopes, a.Scopes)
	checkDuplicates(r, remind, a.Remind)
	if !r.hasProblem(scopes) && !slices.Contains(a.Scopes, permissions.Once) {
		r.key(scopes, "%s: once is always on offer; write it first, as in [once, 15m]", scopes)
	}
}

// checkDuplicates rejects duplicates in a list.
func checkDuplicates[T interface {
	comparable
	fmt.Stringer
}](r *report, path string, list []T) {
	if r.hasProblem(path) {
		return
	}
	for i, item := range list {
		if slices.Contains(list[:i], item) {
			r.key(path+"."+strconv.Itoa(i), "%s: %s is there already; write it once", path, item)
		}
	}
}

// minRequests is the minimum retention of requests: a chat may deliver an answer again for days, which must then be recognized.
const minRequests = 8 * day

// checkKeep checks that requests are kept as long as their payloads, and the audit as long as requests.
func (r *report) checkKeep(k Keep) {
	const requests, payloads, audit = "keep.requests", "keep.payloads", "keep.audit"
	// Check all before reporting any: they share keys, and a wrong key is not checked again.
	short := k.Requests < minRequests && !r.hasProblem(requests)
	outlives := r.exceeds(payloads, k.Payloads, requests, k.Requests) && (r.isSet(payloads) || !short) // otherwise a consequence
	unexplained := r.exceeds(requests, k.Requests, audit, k.Audit)
	if short {
		r.key(requests, "%s: %s is too short, since a chat may deliver an answer again for days; write %s or more",
			requests, formatDays(k.Requests), formatDays(minRequests))
	}
	if outlives {
		r.tooLong(payloads, k.Payloads, requests, k.Requests, formatDays)
	}
	if unexplained {
		r.tooLong(requests, k.Requests, audit, k.Audit, formatDays)
	}
}

// exceeds reports whether a time is longer than the one that bounds it, if neither was found wrong.
func (r *report) exceeds(name string, d time.Duration, bound string, longest time.Duration) bool {
	return d > longest && !r.hasProblem(name) && !r.hasProblem(bound)
}

// tooLong rejects a time that exceeds another, at its own key if it was set, otherwise at the other's.
func (r *report) tooLong(
	name string, d time.Duration, bound string, longest time.Duration, format func(time.Duration) string,
) {
	at := name
	if !r.isSet(name) {
		at = bound
	}
	r.key(at, "%s: %s is longer than %s, which is %s; write a shorter one, or lengthen the other",
		name, format(d), bound, format(longest))
}

// checkRoute checks that a route can match, and that the people it names can give the required answers.
func (r *report) checkRoute(t Route, path string, c *Config) {
	for _, list := range []struct {
		name   string
		length int
	}{{"agents", len(t.Agents)}, {"tags", len(t.Tags)}, {"tools", len(t.Tools)}, {"kinds", len(t.Kinds)}} {
		at := path + "." + list.name
		if _, given := r.lines[at]; given && list.length == 0 && !r.hasProblem(at) {
			r.key(at, "routes.%s: an empty list matches nothing; leave it out to match everything", list.name)
		}
	}
	if !r.hasProblem(path+".ask") && len(t.Ask) == 0 {
		r.key(path+".ask", "routes.ask: this route asks nobody; write at least one person, as in ask: [fay]")
	}
	r.checkNames(t.Ask, "routes.ask", path+".ask", c.People, nil)
	if _, given := r.lines[path+".escalate"]; given {
		r.checkEscalation(t, path, c)
	}
	r.checkGroup(t, path, c)
	r.checkKinds(t, path)
	all := t.everybody()
	if at := path + ".quorum"; t.asksOwner() && len(all) > 1 && t.Quorum == len(all) {
		r.key(at, "routes.quorum: %d people have to agree, and the owner may be one of the others; write at most %d, or name more in ask "+
			"or escalate.to", t.Quorum, len(all)-1)
	} else if t.Quorum > len(all) && !r.hasProblem(at) && !r.hasProblem(path+".ask") && !r.hasProblem(path+".escalate") {
		r.key(at, "routes.quorum: %d people have to agree, and this route names only %d; write at most %[2]d, "+
			"or name more in ask or escalate.to", t.Quorum, len(all))
	}
}

// checkKinds rejects conditions that no request can meet together.
func (r *report) checkKinds(t Route, path string) {
	const tool, permission = permissions.KindTool, permissions.KindPermission
	for _, name := range []string{"kinds", "tools", "tags"} {
		if r.hasProblem(path + "." + name) {
			return
		}
	}
	switch {
	case len(t.Kinds) == 0 || slices.Contains(t.Kinds, tool):
	case len(t.Tools) > 0:
		r.key(path+".tools", "routes.tools: tools are of the kind tool, which is not among kinds, so this route matches nothing; "+
			"write kinds: [tool], or leave one of the two out")
	case len(t.Tags) > 0 && !slices.Contains(t.Kinds, permission):
		r.key(path+".tags", "routes.tags: only permissions and tools have tags, and neither is among kinds, so this route matches nothing; "+
			"write kinds: [permission, tool], or leave one of the two out")
	}
}

func (t Route) open() bool {
	return (len(t.Agents) == 0 || slices.Contains(t.Agents, "*")) && len(t.Tags) == 0 && len(t.Tools) == 0 && len(t.Kinds) == 0
}

// covers reports whether a route certainly matches whatever other matches.
func (t Route) covers(other Route) bool {
	return includes(t.Agents, other.Agents) && includes(t.Tools, other.Tools) &&
		(len(t.Kinds) == 0 || len(other.Kinds) > 0 && !slices.ContainsFunc(other.Kinds, func(k permissions.Kind) bool {
			return !slices.Contains(t.Kinds, k)
		})) &&
		(len(t.Tags) == 0 || len(other.Tags) > 0 && len(permissions.Missing(other.Tags, t.Tags)) == 0)
}

// includes reports whether patterns certainly match whatever others match. An empty list matches everything.
func includes(patterns, others []string) bool {
	if len(patterns) == 0 || slices.Contains(patterns, "*") && len(others) > 0 {
		return true
	}
	return len(others) > 0 && !slices.ContainsFunc(others, func(p string) bool { return !slices.Contains(patterns, p) })
}

// groups returns the kind of channel that a route's chat belongs to.
func groups() connectors.Kind {
	return connectors.Kinds[slices.IndexFunc(connectors.Kinds, func(k connectors.Kind) bool { return k.Groups })]
}

// checkGroup checks that a route's group can be asked.
func (r *report) checkGroup(t Route, path string, c *Config) {
	_, chat := r.lines[path+".chat"]
	if t.Thread != 0 && !chat {
		r.key(path+".thread", "routes.thread: a topic is one of a group; write its chat, too, as in chat: -1001234567890")
	}
	if k := groups(); t.Chat != 0 && !c.IsEnabled(k.Name) && !r.hasProblem("connectors."+k.Name+".enabled") {
		r.key(path+".chat", "routes.chat: the group is one of %s's, and connectors.%s.enabled is false; "+
			"switch it on, or take chat out", k.Label, k.Name)
	}
}

// checkEscalation checks that an escalation adds people, and when it happens.
func (r *report) checkEscalation(t Route, path string, c *Config) {
	after, to := path+".escalate.after", path+".escalate.to"
	if !r.hasProblem(to) && len(t.Escalate.To) == 0 {
		r.key(to, "routes.escalate.to: nobody is asked then; write at least one person, as in to: [kim]")
	}
	r.checkNames(t.Escalate.To, "routes.escalate.to", to, c.People, t.Ask)
	bound, longest := "routes.timeout", t.Timeout
	if longest == 0 {
		bound, longest = "approvals.max_timeout", c.Approvals.MaxTimeout
	}
	switch {
	case r.hasProblem(after):
	case t.Escalate.After == When{}:
		r.key(after, "routes.escalate.after: nothing says when; write a share of the time, as in after: 50%%, or a duration")
	case r.hasProblem(path + ".timeout"), r.hasProblem("approvals.max_timeout"):
	case t.Escalate.After.After >= longest:
		r.key(after, "routes.escalate.after: %s is not shorter than %s, which is %s; write a shorter one, "+
			"or a share of the time, as in 50%%", t.Escalate.After, bound, formatDuration(longest))
	}
}

// checkNames rejects names of nobody, duplicates, and names that are in before. key and path are the list's name and path.
func (r *report) checkNames(names []string, key, path string, people []Person, before []string) {
	if r.hasProblem(path) || r.bad["people"] || r.bad[""] {
		return
	}
	known := make([]string, len(people))
	for i, p := range people {
		if r.hasProblem(fmt.Sprintf("people.%d.name", i)) {
			return // it may be the intended one
		}
		known[i] = p.Name
	}
	for i, name := range names {
		at := path + "." + strconv.Itoa(i)
		switch {
		case name == owner && len(people) > 0 && !slices.Contains(names[:i], name) && !slices.Contains(before, name):
		case len(people) == 0:
			r.key(at, "%s: nobody is called %s, since there are no people; write them under people", key, quote(name))
		case !slices.Contains(known, name):
			r.key(at, "%s: nobody in people is called %s; %s", key, quote(name), suggest(name, known))
		case slices.Contains(names[:i], name):
			r.key(at, "%s: %s is there already; one person answers once, so write each name once", key, quote(name))
		case slices.Contains(before, name):
			r.key(at, "%s: %s is asked from the beginning; write somebody else, or take the name out of ask", key, quote(name))
		}
	}
}

// asksOwner reports whether a route may ask the person whose agent asks.
func (t Route) asksOwner() bool {
	return slices.Contains(t.Ask, owner) || slices.Contains(t.Escalate.To, owner)
}

// everybody returns everyone whom a route may ask, each once.
func (t Route) everybody() []string {
	all := slices.Concat(t.Ask, t.Escalate.To)
	slices.Sort(all)
	return slices.Compact(all)
}
