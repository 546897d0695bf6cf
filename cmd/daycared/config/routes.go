package config

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/daycared/daycared/permissions"
)

// route asks whether a route can ever match, and whether those it names can give the answers that it wants.
func (r *report) route(t Route, path string, c *Config) {
	for _, list := range []struct {
		name   string
		length int
	}{{"agents", len(t.Agents)}, {"tags", len(t.Tags)}, {"tools", len(t.Tools)}, {"kinds", len(t.Kinds)}} {
		at := path + "." + list.name
		if _, given := r.lines[at]; given && list.length == 0 && !r.wrong(at) {
			r.key(at, "routes.%s: an empty list matches nothing; leave it out to match everything", list.name)
		}
	}
	if !r.wrong(path+".ask") && len(t.Ask) == 0 {
		r.key(path+".ask", "routes.ask: this route asks nobody; write at least one person, as in ask: [fay]")
	}
	r.named(t.Ask, "routes.ask", path+".ask", c.People, nil)
	if _, given := r.lines[path+".escalate"]; given {
		r.escalate(t, path, c)
	}
	r.group(t, path, c)
	r.kinds(t, path)
	all := t.everybody()
	if at := path + ".quorum"; t.Quorum > len(all) && !r.wrong(at) && !r.wrong(path+".ask") && !r.wrong(path+".escalate") {
		r.key(at, "routes.quorum: %d people have to agree, and this route names only %d; write at most %[2]d, "+
			"or name more in ask or escalate.to", t.Quorum, len(all))
	}
}

// kinds refuses conditions that no request meets together.
func (r *report) kinds(t Route, path string) {
	const tool, permission = permissions.KindTool, permissions.KindPermission
	for _, name := range []string{"kinds", "tools", "tags"} {
		if r.wrong(path + "." + name) {
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

// open reports whether a route matches everything.
func (t Route) open() bool {
	return (len(t.Agents) == 0 || slices.Contains(t.Agents, "*")) && len(t.Tags) == 0 && len(t.Tools) == 0 && len(t.Kinds) == 0
}

// covers reports whether a route surely matches whatever the other one matches.
func (t Route) covers(other Route) bool {
	return includes(t.Agents, other.Agents) && includes(t.Tools, other.Tools) &&
		(len(t.Kinds) == 0 || len(other.Kinds) > 0 && !slices.ContainsFunc(other.Kinds, func(k permissions.Kind) bool {
			return !slices.Contains(t.Kinds, k)
		})) &&
		(len(t.Tags) == 0 || len(other.Tags) > 0 && len(permissions.Missing(other.Tags, t.Tags)) == 0)
}

// includes reports whether patterns surely match whatever other ones match. An empty list matches everything.
func includes(patterns, others []string) bool {
	if len(patterns) == 0 || slices.Contains(patterns, "*") && len(others) > 0 {
		return true
	}
	return len(others) > 0 && !slices.ContainsFunc(others, func(p string) bool { return !slices.Contains(patterns, p) })
}

// group asks whether there can be a group to ask in.
func (r *report) group(t Route, path string, c *Config) {
	_, chat := r.lines[path+".chat"]
	if t.Thread != 0 && !chat {
		r.key(path+".thread", "routes.thread: a topic is one of a group; write its chat, too, as in chat: -1001234567890")
	}
	if t.Chat != 0 && !c.Connectors.Telegram.Enabled && !r.wrong("connectors.telegram.enabled") {
		r.key(path+".chat", "routes.chat: the group is one of Telegram's, and connectors.telegram.enabled is false; "+
			"switch it on, or take chat out")
	}
}

// escalate asks whether there is somebody more, and a time at which to ask them.
func (r *report) escalate(t Route, path string, c *Config) {
	after, to := path+".escalate.after", path+".escalate.to"
	if !r.wrong(to) && len(t.Escalate.To) == 0 {
		r.key(to, "routes.escalate.to: nobody is asked then; write at least one person, as in to: [kim]")
	}
	r.named(t.Escalate.To, "routes.escalate.to", to, c.People, t.Ask)
	bound, longest := "routes.timeout", t.Timeout
	if longest == 0 {
		bound, longest = "approvals.max_timeout", c.Approvals.MaxTimeout
	}
	switch {
	case r.wrong(after):
	case t.Escalate.After == When{}:
		r.key(after, "routes.escalate.after: nothing says when; write a share of the time, as in after: 50%%, or a duration")
	case r.wrong(path + ".timeout"), r.wrong("approvals.max_timeout"):
	case t.Escalate.After.After >= longest:
		r.key(after, "routes.escalate.after: %s is not shorter than %s, which is %s; write a shorter one, "+
			"or a share of the time, as in 50%%", t.Escalate.After, bound, formatDuration(longest))
	}
}

// named refuses names that are nobody's, that a list has twice, or that are among those asked before. key is what the
// list is called and path where it is.
func (r *report) named(names []string, key, path string, people []Person, before []string) {
	if r.wrong(path) || r.bad["people"] || r.bad[""] {
		return
	}
	known := make([]string, len(people))
	for i, p := range people {
		if r.wrong(fmt.Sprintf("people.%d.name", i)) {
			return // it may be the one that is meant
		}
		known[i] = p.Name
	}
	for i, name := range names {
		at := path + "." + strconv.Itoa(i)
		switch {
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

// everybody is who may come to be asked by a route, each once.
func (t Route) everybody() []string {
	all := slices.Concat(t.Ask, t.Escalate.To)
	slices.Sort(all)
	return slices.Compact(all)
}
