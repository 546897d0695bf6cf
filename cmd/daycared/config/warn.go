package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
	ruling "github.com/daycared/daycared/permissions/rules"
)

// warn returns warnings about settings that are allowed but hardly intended.
func warn(r *report, c *Config) Problems {
	w := warner{report: r}
	for i, p := range c.People {
		w.warnPerson(p, fmt.Sprintf("people.%d", i), c)
	}
	if !slices.ContainsFunc(c.Routes, Route.open) && len(c.Routes) > 0 {
		w.add("routes", "what none of these routes matches is refused; add a last one without conditions, as in - ask: [%s]",
			scalar(c.People[0].Name))
	}
	for i, t := range c.Routes {
		w.warnRoute(t, "routes."+strconv.Itoa(i), c)
		if j := slices.IndexFunc(c.Routes[:i], func(before Route) bool { return before.covers(t) }); j >= 0 {
			_, line := w.origin("routes." + strconv.Itoa(j))
			w.add("routes."+strconv.Itoa(i), "this route is never taken: the one in line %d matches all that it matches; put it first", line)
		}
	}
	w.warnTimes(c)
	w.warnTools(c, nobody)
	w.warnRates(c)
	_, found := ruling.Compile(c.PermissionRules())
	for _, p := range found {
		w.add(fmt.Sprintf("rules.%d.%s.%d", p.Rule, p.Key, p.Item), "%s; take one of the two out", p.Text)
	}
	for i, rule := range c.Rules {
		if !rule.Until.IsZero() && !time.Now().Before(rule.Until) {
			w.add(fmt.Sprintf("rules.%d.until", i), "this rule is over; take it out, or write a later day")
		}
	}
	if !c.Connectors.Terminal.Enabled && !c.API.AdminReachable && !slices.ContainsFunc(connectors.KindNames(), c.IsEnabled) {
		w.add("connectors.terminal.enabled", "people can be reached only while their inbox is open; open one with: daycared inbox; "+
			"or set connectors.terminal.enabled or api.admin_reachable")
	}
	if c.Connectors.WhatsApp.Enabled && len(c.People) == 0 {
		w.add("connectors.whatsapp.enabled", "whatsapp asks nobody, since there are no people; add - {name: fay} under people, "+
			"then: daycared pair fay --via whatsapp")
	}
	for i, a := range c.Agents {
		w.warnAgent(a, "agents."+strconv.Itoa(i), c)
		w.warnTools(c, i)
	}
	w.warnShared(c.Agents, c.People)
	if c.API.AllowSameUser {
		w.add("api.allow_same_user", "api.allow_same_user is on: whatever runs as an account that decides can allow what it asked "+
			"itself; switch it off, except for trying daycared out")
	}
	if !c.Sandbox {
		w.add("sandbox", "the sandbox is off: commands of agents reach whatever the daemon's account reaches")
		if c.Sandboxed {
			w.add("sandboxed", "sandboxed: allow does nothing while the sandbox is off: every command is asked about")
		}
	}
	if c.API.AgentGroup != "" && c.API.AgentGroup == c.API.AdminGroup {
		w.add("api.admin_group", "agents are in the same group: they can reach the socket of those who decide")
	}
	if names := c.atSocketOnly(); c.API.AdminGroup == "" && len(names) > 1 {
		w.add("people", "%s decide at admin.sock alone, and without api.admin_group only root and the daemon's own account reach it; "+
			"name a group that they are in, or give them a channel", strings.Join(names, " and "))
	}
	w.warnListener(c.API)
	return w.warnings
}

// warner collects warnings with their positions.
type warner struct {
	*report
	warnings Problems
}

func (w *warner) add(path, format string, args ...any) {
	w.warnings = append(w.warnings, w.problem(path, format, args...))
}

// warnPerson warns of a person's settings without effect: no address, no such channel, no route.
func (w *warner) warnPerson(p Person, path string, c *Config) {
	reached, lacks := p.User != "", []string{}
	for _, kind := range connectors.KindNames() {
		if c.IsEnabled(kind) && p.Addresses[kind] != "" {
			reached = true
		} else if c.IsEnabled(kind) {
			lacks = append(lacks, kind)
		}
	}
	switch all := connectors.KindNames(); {
	case reached:
		for i, channel := range p.Via {
			if !c.IsEnabled(channel) {
				w.add(path+".via."+strconv.Itoa(i), "%[1]s is passed over, since connectors.%[1]s.enabled is false", channel)
			}
		}
	case len(lacks) > 0:
		via := ""
		if lacks[0] != all[0] {
			via = " --via " + lacks[0]
		}
		w.add(path, "%s has no %s: nothing can reach them before they are paired (daycared pair %s%s)", quote(p.Name),
			anyOf(append([]string{"user"}, lacks...)...), p.Name, via)
	case len(p.Addresses) == 0:
		w.add(path, "%s has no %s: nothing can reach them", quote(p.Name), anyOf(append([]string{"user"}, all...)...))
	default:
		w.add(path, "%s has no user, and of %s none that is switched on: nothing can reach them", quote(p.Name), list("and", all))
	}
	for _, kind := range connectors.KindNames()[1:] { // people often get an account of the first before it is enabled
		if p.User != "" && p.Addresses[kind] != "" && !c.IsEnabled(kind) && !slices.Contains(p.Via, kind) {
			w.add(path+"."+kind, "%s is not asked there, since connectors.%s.enabled is false", quote(p.Name), kind)
		}
	}
}

func anyOf(words ...string) string { return list("or", words) }

func list(last string, words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
}

// warnRoute warns of a route's settings without effect.
func (w *warner) warnRoute(t Route, path string, c *Config) {
	counted := func(k permissions.Kind) bool { return k != permissions.KindClarification } // of pauses, only confirmations
	if t.Quorum > 1 && len(t.Kinds) > 0 && !slices.ContainsFunc(t.Kinds, counted) {
		w.add(path+".quorum", "a quorum of %d means nothing for questions: their first answer counts", t.Quorum)
	}
	if to := t.Escalate.To; len(to) > 0 && !slices.ContainsFunc(to, c.reaches) {
		w.add(path+".escalate.to", "nothing can reach %s, so it escalates to nobody; give them a user, or switch on a channel that "+
			"they have", strings.Join(to, " or "))
	}
	usual, of := t.Timeout, "routes.timeout"
	if usual == 0 {
		usual, of = c.Approvals.Timeout, "approvals.timeout"
	}
	if after := t.Escalate.After.After; after >= usual {
		w.add(path+".escalate.after", "who asks without a timeout of their own is never escalated: %s, which is %s, is over first; "+
			"write a shorter time, or a share, as in 50%%", of, formatDuration(usual))
	}
	if t.Chat == 0 {
		return
	}
	chat := groups().Name
	absent := slices.DeleteFunc(t.everybody(), func(name string) bool { return name == owner || c.person(name).Addresses[chat] != "" })
	if len(absent) == len(t.everybody()) {
		w.add(path+".chat", "none of this route has a %s: nobody can answer in the group before they are paired; pair them "+
			"with: daycared pair %s", chat, absent[0])
		return
	}
	for _, name := range absent {
		w.add(path+".chat", "%s has no %s: they can answer in the group once they are paired (daycared pair %s), "+
			"and are asked elsewhere until then", quote(name), chat, name)
	}
}

// warnTimes warns of times that are over before they begin, and of limits without effect.
func (w *warner) warnTimes(c *Config) {
	longest := c.Approvals.MaxTimeout
	for _, t := range c.Routes {
		longest = max(longest, t.Timeout)
	}
	for i, when := range c.Approvals.Remind {
		if when.After >= longest {
			w.add("approvals.remind."+strconv.Itoa(i), "nobody is reminded after %s, since nothing waits longer than %s; write a shorter time, "+
				"or a share, as in 50%%", when, formatDuration(longest))
		}
	}
	if l := c.Limits; l.PendingPerCaller > l.PendingTotal && w.isSet("limits.pending_per_caller") {
		w.add("limits.pending_per_caller", "one caller never has %d waiting, since limits.pending_total is %d; write a smaller number, or "+
			"raise the other", l.PendingPerCaller, l.PendingTotal)
	}
}

// warnShared warns of settings that two agents share, and of agents named like a person.
func (w *warner) warnShared(agents []Agent, people []Person) {
	first := map[string]int{}
	for i, a := range agents {
		path := "agents." + strconv.Itoa(i)
		if slices.ContainsFunc(people, func(p Person) bool { return strings.EqualFold(p.Name, a.Name) }) {
			w.add(path+".name", "a person is called %s as well, and cards cannot tell the two apart; give one another name", quote(a.Name))
		}
		if !w.isSet(path + ".workspace") {
			continue // none, or the parent's
		}
		if j, taken := first[a.Workspace]; taken {
			w.add(path+".workspace", "%s works in the folder of %s, and each changes what the other has; give them one each",
				quote(a.Name), quote(agents[j].Name))
			continue
		}
		first[a.Workspace] = i
	}
}

// warnAgent warns of an agent's settings that hardly work, or that let others read its data. Inherited values are filled in already.
func (w *warner) warnAgent(a Agent, path string, c *Config) {
	if a.Workspace == "" {
		w.add(path, "%s has no workspace: its relative paths lead nowhere, and it asks for every file", quote(a.Name))
	}
	if _, own := w.lines[path+".model"]; own && inTheClear(a.Model.BaseURL) {
		w.add(path+".model.base_url", "what %s reads and writes goes to %s in the clear", quote(a.Name), a.Model.BaseURL)
	}
	for _, parent := range c.Agents {
		if parent.Name != a.Parent {
			continue
		}
		held := append(parent.GrantedTags(), permissions.Workspace)
		for i, t := range a.Schedule.Needs {
			if len(permissions.Missing([]permissions.Tag{t}, held)) > 0 {
				w.add(fmt.Sprintf("%s.schedule.needs.%d", path, i), "%s has no %s by the configuration: %s gets it only while "+
					"%[1]s holds it by a grant", quote(a.Parent), t.Describe(i18n.English), quote(a.Name))
			}
		}
	}
}
