package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// checkAgents checks each agent, and that children stay within what their parents have.
func (r *report) checkAgents(c *Config) {
	first := map[string]int{}
	for i, a := range c.Agents {
		path := "agents." + strconv.Itoa(i)
		if r.hasProblem(path) {
			continue
		}
		if a.Name == "" {
			r.key(path, "agents.name: this agent has none; write one, as in name: helper")
			continue
		}
		if other, taken := first[strings.ToLower(a.Name)]; taken {
			_, line := r.origin(fmt.Sprintf("agents.%d.name", other))
			r.key(path+".name", "agents.name: %s is that of the agent in line %d already; write another one", quote(a.Name), line)
			continue
		}
		first[strings.ToLower(a.Name)] = i
	}
	for i, a := range c.Agents {
		path := "agents." + strconv.Itoa(i)
		if r.hasProblem(path) {
			continue
		}
		if a.Parent == "" {
			r.checkForeground(a, path, c)
		} else {
			r.checkChild(a, path, c)
		}
		if _, other := r.lines[path+".acp"]; other {
			r.checkProgram(a, path)
			continue
		}
		for _, key := range []string{"env", "acp_auth", "mode"} {
			if _, given := r.lines[path+"."+key]; given {
				r.key(path+"."+key, "agents.%s: it is for the program of an agent, and %s has none; write acp, or leave it out", key, quote(a.Name))
			}
		}
		r.checkModel(a, path)
		r.checkSchedule(a, path)
		r.checkMCP(a, path)
		if a.Instructions != "" && a.InstructionsFile != "" {
			r.key(path+".instructions_file", "agents.instructions_file: the instructions are written here already; keep one of the two")
		}
	}
}

// checkForeground checks an agent's person, and the channel where that person talks to it.
func (r *report) checkForeground(a Agent, path string, c *Config) {
	if len(c.People) > 0 && a.Person == "" {
		r.key(path, "agents.person: %s is nobody's; write whose it is, as in person: %s", quote(a.Name), scalar(c.People[0].Name))
	} else if a.Person != "" {
		r.checkOwner(a, path+".person", c)
	}
	switch {
	case r.hasProblem("connectors"):
	case a.Connector == "" && !c.IsEnabled(viaTerminal):
		r.key(path, "agents.connector: nothing says where to talk to %s, and connectors.terminal.enabled is false; "+
			"write connector: admin, for daycared inbox; or %s", quote(a.Name), anyOf(connectors.KindNames()...))
	case a.Connector != "" && !c.IsEnabled(a.Connector):
		r.key(path+".connector", "agents.connector: connectors.%s.enabled is false; switch it on, or write another one", a.Connector)
	}
	if i := slices.IndexFunc(c.People, func(p Person) bool { return p.Name == a.Person }); a.Connector == viaAdmin && i >= 0 &&
		c.People[i].User == "" {
		r.key(path+".connector", "agents.connector: an inbox knows people by their account, and %s has none here; write it under people, "+
			"as in user: %[1]s, or another connector", scalar(a.Person))
	}
	if _, given := r.lines[path+".schedule"]; given {
		r.key(path+".schedule", "agents.schedule: a scheduled agent runs in the background, for another one; write its parent, "+
			"as in parent: helper")
	}
}

// checkOwner checks that the person of an agent exists.
func (r *report) checkOwner(a Agent, at string, c *Config) {
	if r.hasProblem("people") {
		return
	}
	names := make([]string, len(c.People))
	for i, p := range c.People {
		if p.Name == a.Person {
			return
		}
		names[i] = p.Name
	}
	if len(names) == 0 {
		r.key(at, "agents.person: nobody is called %s, since there are no people; write them under people, or leave it out "+
			"for the operator", quote(a.Person))
		return
	}
	r.key(at, "agents.person: nobody in people is called %s; %s", quote(a.Person), suggest(a.Person, names))
}

// checkChild checks that the parent exists, and that the child stays within what the parent has.
func (r *report) checkChild(a Agent, path string, c *Config) {
	for _, own := range []struct{ key, value string }{{"person", a.Person}, {"connector", a.Connector}} {
		if own.value != "" {
			r.key(path+"."+own.key, "agents.%s: %s is a child, and its %[1]s is its parent's; leave it out", own.key, quote(a.Name))
		}
	}
	chain, ok := r.ancestors(a, path, c)
	if !ok {
		return
	}
	parent := chain[0]
	if len(parent.ACP) > 0 {
		r.key(path+".parent", "agents.parent: %s is a program of its own, which has no children here; write another one", quote(parent.Name))
		return
	}
	for _, above := range chain {
		parent.Workspace = cmp.Or(parent.Workspace, above.Workspace)
	}
	within := func(at, key string, wanted, held []permissions.Tag) {
		if missing := permissions.Missing(wanted, held); len(missing) > 0 {
			r.key(at, "agents.%s: %s has no %s, and a child has no more than its parent; give it to %[2]s, too, or take it out here",
				key, quote(parent.Name), missing[0].Describe(i18n.English))
		}
	}
	for i, p := range a.Read {
		within(path+".read."+strconv.Itoa(i), "read", reach("", []string{p}, nil, false), parent.GrantedTags())
	}
	for i, p := range a.Write {
		within(path+".write."+strconv.Itoa(i), "write", reach("", nil, []string{p}, false), parent.GrantedTags())
	}
	within(path+".network", "network", reach("", nil, nil, a.Network), parent.GrantedTags())
	if a.Workspace != "" { // writing there needs approval like in one's own
		within(path+".workspace", "workspace", reach("", nil, []string{a.Workspace}, false),
			reach("", nil, append([]string{parent.Workspace}, parent.Write...), false))
	}
}

// ancestors returns a's parent, its parent, and so on. ok is false if one is missing or wrong, or if there is a cycle.
func (r *report) ancestors(a Agent, path string, c *Config) (chain []Agent, ok bool) {
	for above := a; above.Parent != ""; above = chain[len(chain)-1] {
		i := slices.IndexFunc(c.Agents, func(other Agent) bool { return other.Name == above.Parent })
		switch {
		case i < 0 && len(chain) == 0:
			r.reportOrphan(a, path+".parent", c)
			return nil, false
		case i >= 0 && c.Agents[i].Name == a.Name:
			r.key(path+".parent", "agents.parent: %s would stand above itself; write another one", quote(a.Name))
			return nil, false
		case i < 0, r.hasProblem("agents." + strconv.Itoa(i)), len(chain) == len(c.Agents):
			return nil, false
		}
		chain = append(chain, c.Agents[i])
	}
	return chain, true
}

// reportOrphan reports a missing parent, unless an agent's name was found wrong, which may be its name.
func (r *report) reportOrphan(a Agent, at string, c *Config) {
	var names []string
	for _, other := range c.Agents {
		if other.Name == "" {
			return
		}
		if other.Name != a.Name {
			names = append(names, other.Name)
		}
	}
	if len(names) == 0 {
		r.key(at, "agents.parent: there is no other agent; write %s, too, or leave it out", quote(a.Parent))
		return
	}
	r.key(at, "agents.parent: no agent is called %s; %s", quote(a.Parent), suggest(a.Parent, names))
}

// checkModel checks that a model can be reached, apart from its key.
func (r *report) checkModel(a Agent, path string) {
	m, at := a.Model, path+".model"
	_, given := r.lines[at]
	needs := func(key, example string) {
		r.key(at, "agents.model.%s: the provider %s needs it; write it as in %[1]s: %[3]s", key, m.Provider, example)
	}
	alien := func(key string) {
		if _, there := r.lines[at+"."+key]; there {
			r.key(at+"."+key, "agents.model.%s: the provider %s has no use for it; leave it out", key, m.Provider)
		}
	}
	switch {
	case !given && a.Parent != "":
		return
	case m.Provider == "":
		r.key(path, "agents.model: nothing says what %s thinks with; write a model with its provider: openai, anthropic or script",
			quote(a.Name))
		return
	case m.Provider == Script:
		if m.File == "" {
			needs("file", "/srv/helper/turns.yaml")
		}
		alien("base_url")
		alien("api_key_file")
	default:
		if m.Name == "" {
			needs("name", "qwen3")
		}
		alien("file")
	}
	if m.Window != 0 && m.Window < minWindow {
		r.key(at+".window", "agents.model.window: %d tokens leave no room to work; write %d or more", m.Window, minWindow)
	}
	if m.APIKeyFile != "" && inTheClear(m.BaseURL) {
		r.key(at+".base_url", "agents.model.base_url: %s would send the key in the clear; write https, or leave api_key_file out",
			quote(m.BaseURL))
	}
}

// checkSchedule checks that it is clear when an agent is started and with which prompt.
func (r *report) checkSchedule(a Agent, path string) {
	s, at := a.Schedule, path+".schedule"
	_, given := r.lines[at]
	switch {
	case !given && a.Prompt != "":
		r.key(path+".prompt", "agents.prompt: it is what a schedule has %s told, and there is none; write a schedule, or leave it out",
			quote(a.Name))
		return
	case !given:
		return
	case !s.Given():
		r.key(at, `agents.schedule: nothing says when; write cron: "0 3 * * *" or every: 6h`)
	case s.Cron != "" && s.Every != 0:
		r.key(at+".every", "agents.schedule.every: cron says when already; keep one of the two")
	case s.Every != 0 && s.Every < minEvery:
		r.key(at+".every", "agents.schedule.every: %s is too short; write 1m or more", formatDuration(s.Every))
	}
	if a.Prompt == "" {
		r.key(at, "agents.prompt: nothing says what %s is told then; write it as in prompt: \"Write the report.\"", quote(a.Name))
	}
	if s.AskAt.Given && len(s.Needs) == 0 {
		r.key(at+".ask_at", "agents.schedule.ask_at: nothing is asked for; write what a run needs, as in needs: [\"@network\"]")
	}
}

// checkMCP checks that each server has a unique name and a program.
func (r *report) checkMCP(a Agent, path string) {
	for i, s := range a.MCP {
		at := fmt.Sprintf("%s.mcp.%d", path, i)
		switch {
		case s.Name == "":
			r.key(at, "agents.mcp.name: this server has none; write one, as in name: github")
		case !wire.IsServerName(s.Name):
			r.key(at+".name", "agents.mcp.name: the names of the tools of %s begin with it, as in github__get_issue; write at most %d letters, "+
				"digits, dashes and single underscores", quote(s.Name), wire.MaxServerName)
		}
		if len(s.Command) == 0 {
			r.key(at, "agents.mcp.command: nothing says what to start; write the program and its arguments, as in command: [github-mcp, stdio]")
		}
		for _, other := range a.MCP[:i] {
			if s.Name != "" && strings.EqualFold(s.Name, other.Name) {
				r.key(at+".name", "agents.mcp.name: %s has a server %s already; write another one", quote(a.Name), quote(s.Name))
				break
			}
		}
	}
}

// checkProgram checks an agent that is an external program. Keys that only affect our own models are rejected: they would have no effect.
func (r *report) checkProgram(a Agent, path string) {
	if len(a.ACP) == 0 {
		r.key(path+".acp", "agents.acp: nothing says what to start; write the program and its arguments, as in acp: [claude-agent-acp]")
	}
	if a.Parent != "" {
		r.key(path+".acp", "agents.acp: %s is a child, and those think with a model; leave its parent out, or acp", quote(a.Name))
	}
	if a.Workspace == "" && a.Parent == "" {
		r.key(path, "agents.workspace: %s needs one to work in; write it as in workspace: /srv/code", quote(a.Name))
	}
	for _, key := range []string{"model", "instructions", "instructions_file", "mcp", "on_denial", "prompt"} {
		if _, given := r.lines[path+"."+key]; given {
			r.key(path+"."+key, "agents.%s: %s is a program of its own (acp), which has no use for it; leave it out", key, quote(a.Name))
		}
	}
}

// ownTools are daycared's own tools.
var ownTools = []string{"read_file", "list_files", "search_files", "write_file", "edit_file", "run_command", "fetch_url", "web_search"}

// checkTools rejects a name in high_risk.tools or a route that nearly is a known tool's: a misspelling would leave a tool less
// guarded than intended. Names under tools count as known, since external programs have tools of any name.
func (r *report) checkTools(c *Config) {
	listed := slices.Concat(ownTools, c.Tools.Auto, c.Tools.Gated, c.Tools.Forbidden)
	for _, a := range c.Agents {
		listed = slices.Concat(listed, a.Tools.Auto, a.Tools.Gated, a.Tools.Forbidden)
	}
	each := func(key, at string, names []string) {
		for i, name := range names {
			if meant := nearTool(name, listed); meant != "" && !r.hasProblem(at) {
				r.key(at+"."+strconv.Itoa(i), "%s: no list under tools has %s; did you mean %s? If another program has such a tool, add it to "+
					"tools.gated", key, quote(name), meant)
			}
		}
	}
	each("high_risk.tools", "high_risk.tools", c.HighRisk.Tools)
	for i, t := range c.Routes {
		each("routes.tools", "routes."+strconv.Itoa(i)+".tools", t.Tools)
	}
}

// nearTool returns the tool that was probably meant by an unknown name; empty if there is none.
func nearTool(name string, known []string) string {
	if isPattern(name) || slices.ContainsFunc(known, func(k string) bool { return k != "*" && reaches(k, name) }) {
		return ""
	}
	for _, k := range known {
		if !isPattern(k) && levenshtein.ComputeDistance(name, k) <= 2 && len(k) > 5 {
			return k
		}
	}
	return ""
}

func isPattern(s string) bool { return strings.ContainsAny(s, `*?[\`) }

// toolLists are the lists of tools by name, the weakest first.
var toolLists = []string{"auto", "gated", "forbidden"}

func (t *Tools) list(name string) *[]string {
	return map[string]*[]string{"auto": &t.Auto, "gated": &t.Gated, "forbidden": &t.Forbidden}[name]
}

// nobody stands for the section tools where an agent's index is expected.
const nobody = -1

// toolsOf returns an agent's lists (or the default ones) and the path of their keys.
func (c *Config) toolsOf(agent int) (*Tools, string) {
	if agent == nobody {
		return &c.Tools, "tools"
	}
	return &c.Agents[agent].Tools, "agents." + strconv.Itoa(agent) + ".tools"
}

// listed returns the path at which the list in force for an agent was written: its own, the nearest parent's, or that of the
// section tools. It is empty for a default.
func (c *Config) listed(r *report, agent int, list string) string {
	for {
		if _, at := c.toolsOf(agent); r.isSet(at + "." + list) {
			return at + "." + list
		}
		if agent == nobody {
			return ""
		}
		parent := c.Agents[agent].Parent
		agent = slices.IndexFunc(c.Agents, func(a Agent) bool { return parent != "" && a.Name == parent })
	}
}

// DefaultAuto reports whether nothing was written under tools.auto.
func (c *Config) DefaultAuto() bool {
	if c.from == nil {
		return true
	}
	_, given := c.from.lines["tools.auto"]
	return !given
}

// yieldDefaults removes what was written in one list of an agent from its other lists that are defaults.
func (c *Config) yieldDefaults(r *report, agent int) {
	t, at := c.toolsOf(agent)
	for _, own := range toolLists {
		for _, other := range toolLists {
			if r.isSet(at+"."+own) && c.listed(r, agent, other) == "" {
				left := slices.Clone(*t.list(other)) // the list is shared
				*t.list(other) = slices.DeleteFunc(left, func(name string) bool { return slices.Contains(*t.list(own), name) })
			}
		}
	}
}

// warnTools warns of entries in the three lists that have no effect, or more effect than expected. Defaults are not checked.
func (w *warner) warnTools(c *Config, agent int) {
	t, at := c.toolsOf(agent)
	for i, list := range toolLists {
		if !w.isSet(at + "." + list) {
			continue
		}
		for j, name := range *t.list(list) {
			here := at + "." + list + "." + strconv.Itoa(j)
			for _, stronger := range toolLists[i+1:] {
				w.warnIneffective(here, name, stronger, *t.list(stronger), c.listed(w.report, agent, stronger))
			}
			if meant := nearTool(name, ownTools); meant != "" {
				w.add(here, "daycared has no tool %s, so this holds only for one of another program; did you mean %s?", quote(name), meant)
			}
		}
	}
	if w.isSet(at+".auto") && slices.Contains(t.Auto, "*") {
		w.add(at+".auto", "every tool that is neither gated nor forbidden runs, and nobody is asked; name the tools that may")
	}
	if w.isSet(at+".forbidden") && slices.Contains(t.Forbidden, "*") {
		w.add(at+".forbidden", "every tool is forbidden, so none ever runs; name those that may not")
	}
}

// warnRates warns of rates for tools in no auto list.
func (w *warner) warnRates(c *Config) {
	var listed, at []string
	for agent := nobody; agent < len(c.Agents); agent++ {
		t, tools := c.toolsOf(agent)
		listed = append(listed, t.Auto...)
		if w.isSet(tools + ".auto") {
			_, line := w.origin(tools + ".auto")
			at = append(at, "line "+strconv.Itoa(line))
		}
	}
	written := cmp.Or(strings.Join(at, ", "), "tools.auto is the default one")
	for _, name := range slices.Sorted(maps.Keys(c.Limits.AutoPerMinute)) {
		if name == "*" || slices.ContainsFunc(listed, func(entry string) bool { return overlap(name, entry) }) {
			continue
		}
		remedy := "add it to tools.auto, or take it out here"
		if meant := nearTool(name, listed); meant != "" {
			remedy = "did you mean " + meant + "?"
		}
		w.add("limits.auto_per_minute."+name, "no list auto has %s (%s), so this rate bounds only what a hook leaves to its agent's "+
			"own mode; %s", quote(name), written, remedy)
	}
}

// overlap reports whether two patterns may match the same name.
func overlap(a, b string) bool {
	begin := func(s string) string { return s[:strings.IndexAny(s, `*?[\`)] }
	return reaches(a, b) || reaches(b, a) || isPattern(a) && isPattern(b) &&
		(strings.HasPrefix(begin(a), begin(b)) || strings.HasPrefix(begin(b), begin(a)))
}

// reaches reports whether a pattern matches a name.
func reaches(pattern, name string) bool {
	ok, _ := permissions.MatchName(pattern, name)
	return ok
}

// warnIneffective warns of an entry that has no effect because of a stronger list, at that path or a default.
func (w *warner) warnIneffective(here, name, stronger string, entries []string, at string) {
	for i, other := range entries {
		if at != "" && other == name {
			_, line := w.origin(at + "." + strconv.Itoa(i))
			w.add(here, "%s is in %s, too, in line %d, which holds: this entry means nothing; take one of the two out", quote(name), at, line)
		} else if at == "" && name != "*" && reaches(name, other) {
			w.add(here, "%s leaves out %s, which tools.%s has by default; name it here, or write that list, too", quote(name), other, stronger)
		}
	}
}
