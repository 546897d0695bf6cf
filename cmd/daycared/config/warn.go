package config

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/daycared/daycared/permissions"
)

// warn says what is allowed but hardly meant.
func warn(r *report, c *Config) []string {
	w := warner{report: r}
	for i, p := range c.People {
		w.person(p, fmt.Sprintf("people.%d", i), c)
	}
	if len(c.People) > 0 && len(c.Routes) == 0 && len(c.Agents) == 0 { // agents of ours ask their own person
		w.add("people", "there are people but no routes: nothing is put to anybody; add - ask: [%s] under routes",
			scalar(c.People[0].Name))
	}
	for i, t := range c.Routes {
		if t.Quorum > 1 && len(t.Kinds) > 0 && !slices.ContainsFunc(t.Kinds, counted) {
			w.add(fmt.Sprintf("routes.%d.quorum", i), "a quorum of %d means nothing for questions: their first answer counts",
				t.Quorum)
		}
	}
	for i, t := range c.Routes {
		w.group(t, fmt.Sprintf("routes.%d.chat", i), c)
	}
	if c.Connectors.WhatsApp.Enabled && len(c.People) == 0 {
		w.add("connectors.whatsapp.enabled", "whatsapp asks nobody, since there are no people; add - {name: fay} under people, "+
			"then: daycared pair fay --via whatsapp")
	}
	for i, a := range c.Agents {
		w.agent(a, "agents."+itoa(i), c)
	}
	if !c.Sandbox {
		w.add("sandbox", "the sandbox is off: commands of agents reach whatever the daemon's account reaches")
	}
	if c.API.AgentGroup != "" && c.API.AgentGroup == c.API.AdminGroup {
		w.add("api.admin_group", "agents are in the same group: they can reach the socket of those who decide")
	}
	w.listener(c.API)
	return w.warnings
}

// counted tells whether several people may have to agree to a request of that kind. Of pauses, it is those to confirm.
func counted(k permissions.Kind) bool { return k != permissions.KindClarification }

// warner collects warnings with their places.
type warner struct {
	*report
	warnings []string
}

func (w *warner) add(path, format string, args ...any) {
	w.warnings = append(w.warnings, place(w.origin(path))+": "+fmt.Sprintf(format, args...))
}

// person says what of a person leads nowhere: no address, a channel that is not there, no route.
func (w *warner) person(p Person, path string, c *Config) {
	byTelegram, byWhatsApp := c.Connectors.Telegram.Enabled, c.Connectors.WhatsApp.Enabled
	switch {
	case p.User != "" || (p.Telegram != 0 && byTelegram) || (p.WhatsApp != "" && byWhatsApp):
		w.via(p, path+".via", c)
	case p.Telegram == 0 && byTelegram && p.WhatsApp == "" && byWhatsApp:
		w.unpaired(p, path, "user, telegram or whatsapp", "")
	case p.Telegram == 0 && byTelegram:
		w.unpaired(p, path, "user or telegram", "")
	case p.WhatsApp == "" && byWhatsApp:
		w.unpaired(p, path, "user or whatsapp", " --via whatsapp")
	case p.Telegram == 0 && p.WhatsApp == "":
		w.add(path, "%s has no user, telegram or whatsapp: nothing can reach them", quote(p.Name))
	default:
		w.add(path, "%s has no user, and of telegram and whatsapp none that is switched on: nothing can reach them", quote(p.Name))
	}
	if p.User != "" && p.WhatsApp != "" && !byWhatsApp && !slices.Contains(p.Via, viaWhatsApp) {
		w.add(path+".whatsapp", "%s is not asked there, since connectors.whatsapp.enabled is false", quote(p.Name))
	}
	asked := func(t Route) bool { return slices.Contains(t.everybody(), p.Name) }
	if len(c.Routes) > 0 && !slices.ContainsFunc(c.Routes, asked) {
		w.add(path, "%s is in no route's ask or escalate.to: they are never asked", quote(p.Name))
	}
}

// unpaired names somebody whom nothing can reach yet.
func (w *warner) unpaired(p Person, path, lacks, via string) {
	w.add(path, "%s has no %s: nothing can reach them before they are paired (daycared pair %s%s)", quote(p.Name), lacks, p.Name, via)
}

// group names the people of a route with a group who have no finger there.
func (w *warner) group(t Route, path string, c *Config) {
	for _, p := range c.People {
		if t.Chat != 0 && p.Telegram == 0 && slices.Contains(t.everybody(), p.Name) {
			w.add(path, "%s has no telegram: they can answer in the group once they are paired (daycared pair %s), "+
				"and are asked elsewhere until then", quote(p.Name), p.Name)
		}
	}
}

// via names the channels of a person that are passed over.
func (w *warner) via(p Person, path string, c *Config) {
	for i, channel := range p.Via {
		at := path + "." + strconv.Itoa(i)
		switch {
		case channel == viaTelegram && !c.Connectors.Telegram.Enabled:
			w.add(at, "%s is passed over, since connectors.telegram.enabled is false", channel)
		case channel == viaWhatsApp && !c.Connectors.WhatsApp.Enabled:
			w.add(at, "%s is passed over, since connectors.whatsapp.enabled is false", channel)
		case channel == viaTerminal && !c.Connectors.Terminal.Enabled:
			w.add(at, "%s is passed over, since connectors.terminal.enabled is false", channel)
		}
	}
}

// agent says what of an agent hardly works, or goes where others can read it. What it leaves out is filled in by now.
func (w *warner) agent(a Agent, path string, c *Config) {
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
		held := append(parent.Holds(), permissions.Workspace)
		for i, t := range a.Schedule.Needs {
			if len(permissions.Missing([]permissions.Tag{t}, held)) > 0 {
				w.add(fmt.Sprintf("%s.schedule.needs.%d", path, i), "%s has no %s by the configuration: %s gets it only while "+
					"%[1]s holds it by a grant", quote(a.Parent), t.Describe(), quote(a.Name))
			}
		}
	}
}
