package runtime

import (
	"context"
	"slices"

	"github.com/daycared/daycared/agents/tools"
)

// all are the tools that the agent has just now, besides those of the runtime. A server that does not answer has none.
func (a *agent) all(ctx context.Context) []tools.Tool {
	list := slices.Clone(a.Tools)
	for _, s := range a.Servers {
		more, err := s.Tools(ctx)
		if err != nil && ctx.Err() == nil {
			a.runtime.log.Warn("the tools of a server cannot be listed just now", "agent", a.Name, "err", err)
		}
		list = append(list, more...)
	}
	return list
}

// tool is the tool of that name.
func (a *agent) tool(ctx context.Context, name string) (tools.Tool, bool) {
	find := func(list []tools.Tool) (tools.Tool, bool) {
		at := slices.IndexFunc(list, func(t tools.Tool) bool { return t.Spec().Name == name })
		if at < 0 {
			return nil, false
		}
		return list[at], true
	}
	if t, ok := find(a.Tools); ok { // no server is asked for what is our own
		return t, true
	}
	return find(a.all(ctx))
}

// toolNames are the names of everything that the agent can call.
func (a *agent) toolNames(ctx context.Context) (names []string) {
	for _, t := range askingTools {
		names = append(names, t.spec.Name)
	}
	for _, t := range a.all(ctx) {
		names = append(names, t.Spec().Name)
	}
	slices.Sort(names)
	return names
}
