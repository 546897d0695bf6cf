package permissions

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// ServerTool is a tool of an MCP server by the names of both.
type ServerTool struct{ Server, Name string }

// serverPrefixes are what the names of MCP tools begin with, by dialect. What follows is SERVER__NAME, or SERVER_NAME in Gemini CLI.
var serverPrefixes = map[string]string{
	"claude-code": "mcp__", "codex": "mcp__", "gemini": "mcp_", "daycared": "", "-": "mcp__", "": "mcp__",
}

// ServerTools returns every server and tool that a tool's name may stand for: a__b__c is c of a server a__b, or b__c of a. Where the hook
// says the server, those of other servers are left out. It returns nothing for a tool of no server, and of one that nobody says.
func ServerTools(dialect, tool string, input json.RawMessage) (all []ServerTool) {
	prefix, has := serverPrefixes[dialect]
	rest, is := strings.CutPrefix(tool, prefix)
	if !has || !is {
		return nil
	}
	server, name, told := toldTool(dialect, input)
	if server != "" && name != "" {
		return []ServerTool{{server, name}}
	}
	between := "__"
	if dialect == "gemini" {
		between = "_"
	}
	all = splitName(rest, between)
	if told {
		all = slices.DeleteFunc(all, func(t ServerTool) bool { return plainName(t.Server) != plainName(server) })
	}
	if dialect == "daycared" { // a server's name has single ones
		all = all[:min(1, len(all))]
	}
	return all
}

// OfAnotherServer reports whether a hook says that a tool is of a server which its name is not of, as of NAME (of the project).
func OfAnotherServer(dialect, tool string, input json.RawMessage) bool {
	_, _, told := toldTool(dialect, input)
	return told && len(ServerTools(dialect, tool, input)) == 0
}

// splitName returns every server and tool that a name may stand for which is put together so.
func splitName(name, between string) (all []ServerTool) {
	for at := 1; at < len(name)-len(between); at++ {
		if strings.HasPrefix(name[at:], between) {
			all = append(all, ServerTool{name[:at], name[at+len(between):]})
		}
	}
	return all
}

// toldTool returns what a hook says of a call's server, and of the tool's name there, if it does.
func toldTool(dialect string, input json.RawMessage) (server, name string, told bool) {
	member := map[string]string{"claude-code": "hook.mcp_server", "gemini": "hook.mcp_context"}[dialect]
	if member == "" || !bytes.Contains(input, []byte(`"`+member+`"`)) {
		return "", "", false
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(input, &all) != nil || all[member] == nil {
		return "", "", false
	}
	var claude struct{ Name string }
	var gemini struct {
		Server string `json:"server_name"`
		Tool   string `json:"tool_name"`
	}
	if dialect == "gemini" {
		_ = json.Unmarshal(all[member], &gemini) // else nothing is known of the server
		return serverSigns.Replace(gemini.Server), gemini.Tool, true
	}
	_ = json.Unmarshal(all[member], &claude)
	return claude.Name, "", true
}

// namesOf returns the names of a call's tool: its own, and what a hook says of its server. One that is cut counts where nothing is said.
func (r Request) namesOf(c Call) []string {
	server, name, _ := toldTool(r.Hook, c.Input)
	switch {
	case server == "" || name == "":
		return []string{c.Tool}
	case strings.Contains(c.Tool, geminiCut):
		return []string{server + "/" + name}
	}
	return []string{c.Tool, server + "/" + name}
}

// NamesTool reports whether one of these patterns names the tool of a call whatever server that is of, and whether one may name it.
func (r Request) NamesTool(patterns []string, c Call) (surely, maybe bool) {
	surely = slices.ContainsFunc(patterns, func(p string) bool { return matches([]string{p}, c.Tool, false) && r.namesServer(p, c) })
	return surely, surely || r.mayMean(patterns, c) || slices.ContainsFunc(r.namesOf(c), func(name string) bool {
		return matches(patterns, name, false) || MeansTool(r.Hook, patterns, name)
	})
}

// joining are the dialects that put one sign between a server's name and a tool's. Which program acp is for is not known.
var joining = []string{"opencode", "copilot", "gemini", "vscode", HookACP}

// apartName is plainName that keeps what may stand between a server's name and a tool's, __ and /, apart from one sign within a name.
func apartName(text string) string {
	return separators.ReplaceAllStringFunc(text, func(part string) string {
		switch {
		case part[0] == '[':
			return part
		case strings.Contains(part, "/") || strings.Contains(part, "__"):
			return "__"
		}
		return "_"
	})
}

// geminiCut stands in the middle of a name that Gemini CLI has shortened.
const geminiCut = "..."

// hashed matches what ends a name that Codex has shortened.
var hashed = regexp.MustCompile(`[_-]?[0-9a-f]{8,40}$`)

// clearPart is how many letters of a name that was cut have to be there for a pattern without a server.
const clearPart = 20

// fitsCut reports whether a pattern fits a part of a tool's name, or may fit what that was before its program cut it. The pattern is
// written already.
func fitsCut(dialect, tool, pattern, part string, write func(string) string) bool {
	if fits, _ := MatchName(pattern, write(part)); fits {
		return true
	}
	head, tail, cut := strings.Cut(part, geminiCut)
	switch dialect {
	case "gemini":
	case "copilot", "vscode":
		head, tail, cut = part, "", len(tool) == maxToolName
	case "codex":
		head, tail = hashed.ReplaceAllString(part, ""), ""
		cut = len(head) < len(part) && len(tool) >= maxToolName
	default:
		return false
	}
	if head, tail = write(head), write(tail); !cut {
		return false
	}
	begins, ends := false, false
	for at := range len(pattern) + 1 {
		before, _ := MatchName(pattern[:at], head)
		after, _ := MatchName(pattern[at:], tail)
		begins, ends = begins || before, ends || after
	}
	return begins && ends
}

// serverSigns writes a server's name as rules do, in which a slash ends it.
var serverSigns = strings.NewReplacer("/", "_", " ", "_")

// namesServer reports whether a pattern of tools.auto that fits the name of a call's tool means its server, whichever that may be: a
// wildcard in mcp__fs__* stands for tools of fs, and not for those of fs__x; in fs_* of opencode, for none that may be of fs_x.
func (r Request) namesServer(pattern string, c Call) bool {
	if _, _, told := toldTool(r.Hook, c.Input); pattern == c.Tool {
		return !told || len(ServerTools(r.Hook, c.Tool, c.Input)) > 0
	}
	prefix, between := "mcp__", "__"
	switch r.Hook {
	case "gemini", "vscode":
		prefix, between = "mcp_", "_"
	case "opencode":
		prefix, between = "", "_"
	case "copilot":
		prefix, between = "", "-"
	}
	own, named := strings.CutPrefix(pattern, prefix)
	if !named || !strings.Contains(own, between) || !strings.HasPrefix(c.Tool, prefix) {
		return true
	}
	if r.Hook == HookACP {
		return true
	}
	all := ServerTools(r.Hook, c.Tool, c.Input)
	if slices.Contains(joining, r.Hook) && r.Hook != "gemini" {
		all = splitName(strings.TrimPrefix(c.Tool, prefix), between)
	}
	return len(all) > 0 && !slices.ContainsFunc(all, func(t ServerTool) bool {
		for at := range own {
			if strings.HasPrefix(own[at:], between) && matches([]string{own[:at]}, t.Server, false) &&
				(len(all) == 1 || matches([]string{own[at+len(between):]}, t.Name, false)) {
				return false
			}
		}
		return true
	})
}
