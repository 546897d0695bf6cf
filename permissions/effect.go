package permissions

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
)

// Effect is the kind of a tool call.
type Effect string

// The kinds of tool calls.
const (
	DoesExecute Effect = "execute" // a shell or an interpreter
	DoesEdit    Effect = "edit"
	DoesRead    Effect = "read"
	DoesNetwork Effect = "network"
	DoesOther   Effect = "other"
)

// Effects lists them.
var Effects = []Effect{DoesExecute, DoesEdit, DoesRead, DoesNetwork, DoesOther}

// effects are the tools of all dialects, of ACP, and our own, by their names in lower-case letters.
var effects = func() map[string]Effect {
	all := map[string]Effect{}
	for effect, names := range map[Effect]string{
		DoesExecute: "bash sh zsh fish shell terminal cmd powershell pwsh runshellcommand runcommand execcommand executecommand execute exec " +
			"acpexecute localshell containerexec shellcommand runterminalcmd runterminalcommand runinterminal bashtool " +
			"unifiedexec startprocess interactwithprocess processstart spawnprocess sendkeys useaws callaws " +
			"monitor writebash writepowershell writestdin sendtoterminal terminalinput",
		DoesEdit: "write edit multiedit notebookedit editnotebook create applypatch patch writefile editfile replace strreplaceeditor " +
			"strreplacebasededittool strreplace insert searchreplace createfile createdirectory replacestringinfile " +
			"multireplacestringinfile inserteditintofile editnotebookfile movefile copyfile deletefile removefile " +
			"delete deletedirectory removedirectory remove " +
			"acpedit acpdelete acpmove",
		DoesRead: "read notebookread glob grep ls view readfile readmanyfiles listdirectory listfiles searchfiles searchfilecontent " +
			"grepsearch list acpread acpsearch",
		DoesNetwork: "webfetch websearch googlewebsearch fetchurl fetch fetchwebpage acpfetch",
	} {
		for _, name := range strings.Fields(names) {
			all[name] = effect
		}
	}
	return all
}()

// EffectOf returns the kind of a tool's calls, by its name or its server's name for it, as in ops__run_command. When in doubt, a tool
// executes: one call of a shell or an interpreter says nothing about the next.
func EffectOf(tool string) Effect {
	if effect, known := KnownEffect(tool); known {
		return effect
	}
	if RunsCode(tool) {
		return DoesExecute
	}
	return DoesOther
}

// KnownEffect is [EffectOf] for tools that are known by name.
func KnownEffect(tool string) (effect Effect, known bool) {
	parts := strings.Split(tool, "__")
	effect, known = effects[letters(parts[len(parts)-1])]
	return effect, known
}

// Plans reports whether r asks to begin with what its agent has planned.
func (r Request) Plans() bool {
	plan, _ := r.Plan()
	return plan != "" || r.Kind == KindTool && len(r.Calls) == 0 && letters(r.Tool) == "exitplanmode"
}

// Plan returns the plan in the input of an ACP agent that asks to leave the mode in which it plans, and what else is in the input. The
// plan of a hook's agent is in the details.
func (r Request) Plan() (text string, rest json.RawMessage) {
	var members map[string]json.RawMessage
	if r.Kind != KindTool || len(r.Calls) > 0 || letters(r.Tool) != "acpswitchmode" || json.Unmarshal(r.Input, &members) != nil {
		return "", r.Input
	}
	if json.Unmarshal(members["plan"], &text) != nil || strings.TrimSpace(text) == "" {
		return "", r.Input
	}
	delete(members, "plan")
	rest, err := json.Marshal(members)
	if err != nil {
		return "", r.Input
	}
	if canonical, err := CanonicalJSON(rest); err == nil {
		rest = canonical
	}
	return text, rest
}

func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// FollowsFiles reports, by name, whether a tool of an agent does what files say that the call only names: skills, commands, workflows,
// agents and tasks of a folder, whose commands no hook sees.
func FollowsFiles(tool string) bool {
	return !strings.Contains(tool, "__") && slices.Contains(following, letters(tool))
}

var following = strings.Fields("skill activateskill slashcommand workflow croncreate agent task invokeagent spawnagent runsubagent " +
	"runtask createandruntask")

// RunsCode reports, by name, whether a tool is a shell or an interpreter: one call of it says nothing about the next.
// When in doubt it is.
func RunsCode(tool string) bool {
	if effect, known := KnownEffect(tool); known && effect == DoesExecute || FollowsFiles(tool) {
		return true
	}
	lower := strings.ToLower(tool)
	for _, part := range []string{"command", "shell", "bash", "terminal", "exec", "python", "interpreter", "notebook"} {
		if strings.Contains(lower, part) {
			return true
		}
	}
	return slices.ContainsFunc(nameWords(tool), func(w string) bool { return slices.Contains(codeWords, w) })
}

// TakesCommands reports, by its name and its server's, whether a tool is like a shell: what it is given is a command or is typed into one.
func TakesCommands(tool string) bool {
	if effect, known := KnownEffect(tool); known {
		return effect == DoesExecute
	}
	return slices.ContainsFunc([]string{"command", "shell", "bash", "terminal"}, func(part string) bool {
		return strings.Contains(strings.ToLower(tool), part)
	}) || slices.ContainsFunc(nameWords(tool), func(w string) bool {
		return slices.Contains([]string{"sh", "zsh", "fish", "pwsh", "cmd", "cli", "exec", "ssh", "tmux", "subprocess"}, w)
	})
}

// nameWords are the words of a tool's name, in small letters.
func nameWords(tool string) []string {
	var apart strings.Builder // runScript becomes run Script
	for i, c := range tool {
		if i > 0 && unicode.IsUpper(c) && !unicode.IsUpper(rune(tool[i-1])) {
			apart.WriteByte(' ')
		}
		apart.WriteRune(c)
	}
	return strings.FieldsFunc(strings.ToLower(apart.String()), func(c rune) bool { return !unicode.IsLetter(c) })
}

var codeWords = []string{
	"run", "cli", "subprocess", "osascript", "applescript", "kubectl", "tmux",
	"sh", "zsh", "fish", "pwsh", "cmd", "eval", "repl", "script", "ssh", "sudo", "npm", "npx", "awk",
	"node", "deno", "bun", "ruby", "perl", "php", "lua", "javascript", "typescript",
}
