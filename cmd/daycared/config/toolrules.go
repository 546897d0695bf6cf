package config

import (
	"path"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// ownTools are the tools that daycared brings itself.
var ownTools = []string{"read_file", "list_files", "search_files", "write_file", "edit_file", "run_command", "fetch_url"}

// tools refuses the name of a tool that is nearly one that there is, where a slip would leave a tool less guarded than was
// meant. Other programs have tools of any name, so what is listed under tools is no slip.
func (r *report) tools(c *Config) {
	listed := slices.Concat(ownTools, c.Tools.Auto, c.Tools.Gated, c.Tools.Forbidden)
	for _, a := range c.Agents {
		listed = slices.Concat(listed, a.Tools.Auto, a.Tools.Gated, a.Tools.Forbidden)
	}
	each := func(key, at string, names []string) {
		for i, name := range names {
			if meant := nearTool(name, listed); meant != "" && !r.wrong(at) {
				r.key(at+"."+itoa(i), "%s: no list under tools has %s; did you mean %s? If another program has such a tool, add it to "+
					"tools.gated", key, quote(name), meant)
			}
		}
	}
	each("high_risk.tools", "high_risk.tools", c.HighRisk.Tools)
	for i, t := range c.Routes {
		each("routes.tools", "routes."+itoa(i)+".tools", t.Tools)
	}
}

// nearTool is the tool that was probably meant by a name that is none; empty where it is one, or near none.
func nearTool(name string, known []string) string {
	if isPattern(name) || slices.ContainsFunc(known, func(k string) bool { ok, _ := path.Match(k, name); return ok && k != "*" }) {
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

// tools says which entries of three lists mean nothing, and which mean more than is seen at once. What a list has by default
// is not looked at.
func (w *warner) tools(t Tools, at string) {
	lists := []struct {
		name    string
		entries []string
	}{{"auto", t.Auto}, {"gated", t.Gated}, {"forbidden", t.Forbidden}}
	for i, list := range lists {
		if !w.given(at + "." + list.name) {
			continue
		}
		for j, name := range list.entries {
			here := at + "." + list.name + "." + itoa(j)
			for _, stronger := range lists[i+1:] {
				if slices.Contains(stronger.entries, name) {
					w.add(here, "%s is in %s.%s, too, which holds: this entry means nothing; take one of the two out", quote(name), at, stronger.name)
				}
			}
			if meant := nearTool(name, ownTools); meant != "" {
				w.add(here, "daycared has no tool %s, so this holds only for one of another program; did you mean %s?", quote(name), meant)
			}
		}
	}
	if w.given(at+".auto") && slices.Contains(t.Auto, "*") {
		w.add(at+".auto", "every tool that is neither gated nor forbidden runs, and nobody is asked; name the tools that may")
	}
	if w.given(at+".forbidden") && slices.Contains(t.Forbidden, "*") {
		w.add(at+".forbidden", "every tool is forbidden, so none ever runs; name those that may not")
	}
}
