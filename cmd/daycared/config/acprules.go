package config

// program asks of an agent that another program is whether it can be one. What only a model of ours has a use for is
// refused, since it would look as if it held.
func (r *report) program(a Agent, path string) {
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
