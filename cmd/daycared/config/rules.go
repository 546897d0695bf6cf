package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/daycared/daycared/permissions"
)

// operator is who the daemon's own account is when no person has that account, so no person may be called so.
const operator = "operator"

// rules asks whether the values make sense together. What rests on a value that was found wrong is left alone.
func rules(r *report, c *Config) {
	for i, p := range c.People {
		r.person(p, fmt.Sprintf("people.%d", i))
	}
	same(r, c.People, "name", func(p Person) string { return strings.ToLower(p.Name) })
	same(r, c.People, "user", func(p Person) string { return p.User })
	same(r, c.People, "whatsapp", func(p Person) string { return p.WhatsApp })
	same(r, c.People, "telegram", func(p Person) string { return strings.TrimPrefix(formatInt64(p.Telegram), "0") })
	for i, t := range c.Routes {
		r.route(t, fmt.Sprintf("routes.%d", i), c.People)
	}
	r.approvals(c.Approvals)
	if c.API.AdminSocket != "" && c.API.AdminSocket == c.API.AgentSocket {
		r.key("api.admin_socket", "api.admin_socket: agents ask at this path, and who decides must not be found there; "+
			"write another one")
	}
}

func (r *report) person(p Person, path string) {
	switch {
	case r.wrong(path):
	case p.Name == "":
		r.key(path, "people.name: this person has none; write one, as in name: fay")
	case strings.EqualFold(p.Name, operator):
		r.key(path+".name", "people.name: %s stands for the daemon's own account; write another one", quote(p.Name))
	}
}

// same refuses what two people share: one address is one person, and one name, too.
func same(r *report, people []Person, name string, of func(Person) string) {
	first := map[string]int{}
	for i, p := range people {
		path := fmt.Sprintf("people.%d.%s", i, name)
		value := of(p)
		if value == "" || r.wrong(path) {
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

func (r *report) route(t Route, path string, people []Person) {
	for _, list := range []struct {
		name   string
		length int
	}{{"agents", len(t.Agents)}, {"tags", len(t.Tags)}, {"tools", len(t.Tools)}, {"kinds", len(t.Kinds)}} {
		at := path + "." + list.name
		if _, given := r.lines[at]; given && list.length == 0 && !r.wrong(at) {
			r.key(at, "routes.%s: an empty list matches nothing; leave it out to match everything", list.name)
		}
	}
	if !r.wrong(path+".quorum") && t.Quorum > 1 {
		r.key(path+".quorum", "routes.quorum: this version asks one person, so %d cannot be had; write 1, or leave it out",
			t.Quorum)
	}
	at := path + ".ask"
	switch {
	case r.wrong(at):
	case len(t.Ask) == 0:
		r.key(at, "routes.ask: this route asks nobody; write one person, as in ask: [fay]")
	case len(t.Ask) > 1:
		r.key(at, "routes.ask: this version asks exactly one person, not %d; write ask: [%s]", len(t.Ask), scalar(t.Ask[0]))
	case r.wrong("people"):
	case len(people) == 0:
		r.key(at+".0", "routes.ask: nobody is called %s, since there are no people; write them under people", quote(t.Ask[0]))
	case !slices.ContainsFunc(people, func(p Person) bool { return p.Name == t.Ask[0] }):
		names := make([]string, len(people))
		for i, p := range people {
			names[i] = p.Name
		}
		r.key(at+".0", "routes.ask: nobody in people is called %s; %s", quote(t.Ask[0]), suggest(t.Ask[0], names))
	}
}

func (r *report) approvals(a Approvals) {
	const timeout, longest, scopes = "approvals.timeout", "approvals.max_timeout", "approvals.scopes"
	if a.Timeout > a.MaxTimeout && !r.wrong(timeout) && !r.wrong(longest) {
		at := timeout
		if _, byVariable := r.vars[timeout]; !byVariable && r.lines[timeout] == 0 {
			at = longest
		}
		r.key(at, "%s: %s is longer than %s, which is %s; write a shorter one, or lengthen the other",
			timeout, formatDuration(a.Timeout), longest, formatDuration(a.MaxTimeout))
	}
	if r.wrong(scopes) {
		return
	}
	if !slices.Contains(a.Scopes, permissions.Once) {
		r.key(scopes, "%s: once is always on offer; write it first, as in [once, 15m]", scopes)
	}
	seen := map[permissions.Scope]bool{}
	for i, s := range a.Scopes {
		if seen[s] {
			r.key(scopes+"."+strconv.Itoa(i), "%s: %s is there already; write it once", scopes, s)
		}
		seen[s] = true
	}
}

// warn says what is allowed but hardly meant.
func warn(r *report, c *Config) []string {
	var warnings []string
	add := func(path, format string, args ...any) {
		warnings = append(warnings, place(r.origin(path))+": "+fmt.Sprintf(format, args...))
	}
	for i, p := range c.People {
		path := fmt.Sprintf("people.%d", i)
		if p.User == "" && p.Telegram == 0 && p.WhatsApp == "" {
			add(path, "%s has no user, telegram or whatsapp: nothing can reach them", quote(p.Name))
		} else if p.User == "" {
			add(path, "%s has no user, and this version has neither telegram nor whatsapp yet: nothing can reach them",
				quote(p.Name))
		}
	}
	if len(c.People) > 0 && len(c.Routes) == 0 {
		add("people", "there are people but no routes: nothing is put to anybody; add - ask: [%s] under routes",
			scalar(c.People[0].Name))
	}
	if c.API.AgentGroup != "" && c.API.AgentGroup == c.API.AdminGroup {
		add("api.admin_group", "agents are in the same group: they can reach the socket of those who decide")
	}
	return warnings
}
