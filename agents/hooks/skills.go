package hooks

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/acts"
)

// Skills, commands and agents of a folder or of an account: files with commands that an agent runs when its tool for them is called,
// without calling a hook for them.

// maxFileCommands is the most bytes of such commands that are shown, maxFiles the most files that are looked at, and maxMentions the most
// files that those may mention.
const maxFileCommands, maxFiles, maxMentions = 4 << 10, 1000, 50

// followed are the places of such files below the folders of agents, as patterns.
var followed = []string{
	"skills/*/SKILL.md", "skills/*/*/SKILL.md", "commands/*.*", "commands/*/*.*", "commands/*/*/*.*", "agents/*.md", "agents/*/*.md",
	"agents/*/*/*.md", "workflows/*.*",
}

var (
	// fileCommand matches a command in such a file: of Claude Code, and of Gemini CLI.
	fileCommand = regexp.MustCompile("(?s)!`([^`]+)`|```!(.*?)```|!\\{([^}]+)\\}")
	// begun matches the beginning of one.
	begun = regexp.MustCompile("!`|```!|!\\{")
	// headCommand matches one of a hook or a server in its head.
	headCommand = regexp.MustCompile(`(?m)^[ \t-]*"?command"?[ \t]*[:=][ \t]*([^\r\n]+)`)
	head        = regexp.MustCompile(`(?s)^---\r?\n.*?\n---`)
	// argument matches what stands for what the call gives it.
	argument = regexp.MustCompile(`\$\{?\w+\}?(\[\d+\])?`)
	// opaque matches what a head may have that runs commands, in any form of YAML.
	opaque = regexp.MustCompile(`(?i)hooks|skills|mcp_?servers|command|\\[ux]`)
)

// lookAtSkills adds the files that the call follows to its input, and the commands in them.
func (c *Call) lookAtSkills() {
	var all members
	if !permissions.FollowsFiles(c.Request.Tool) || json.Unmarshal(c.Request.Input, &all) != nil {
		return
	}
	var names, commands, mentions []string
	agent := false // one of the program's own has no file
	for _, member := range []string{"skill", "name", "command", "prompt", "subagent_type", "agent_type", "agent_name", "agentName"} {
		text := all.optionalText(member)
		name, _, _ := strings.Cut(strings.TrimSpace(strings.TrimLeft(text, "/ ")), " ")
		if name != "" && (member != "prompt" || strings.HasPrefix(text, "/")) {
			agent = agent || strings.Contains(member, "agent")
			names = append(names, name, name[strings.LastIndex(name, ":")+1:]) // of a plugin, or of a folder of commands
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	files, more := c.filesOf(names)
	more = more || files == nil && len(names) > 0 && !agent
	for _, file := range files {
		text, whole, _ := readFile(file, maxInline) // what cannot be read is not whole
		first := head.FindString(text)
		rest := fileCommand.ReplaceAllString(text, "")
		more = more || !whole || begun.MatchString(rest) || opaque.MatchString(first)
		mentions = append(mentions, acts.Mentions(rest)...)
		found := append(fileCommand.FindAllStringSubmatch(text, -1), headCommand.FindAllStringSubmatch(first, -1)...)
		for _, match := range found {
			commands = append(commands, strings.Trim(strings.Join(match[1:], ""), " \t\r\n\"'"))
		}
	}
	_, args, _ := strings.Cut(all.optionalText("command"), " ")
	args = all.optionalText("args") + " " + args
	for _, mention := range mentions {
		for _, word := range strings.Fields(args) {
			if named := argument.ReplaceAllLiteralString(mention, strings.Trim(word, `"'`)); named != mention {
				mentions = append(mentions, named)
			}
		}
	}
	text := strings.Join(commands, "\n")
	more = more || strings.Contains(text+strings.Join(mentions, ""), "$") // the arguments, perhaps
	if len(text) > maxFileCommands {
		text, more = strings.ToValidUTF8(text[:maxFileCommands], ""), true
	}
	added := map[string]any{}
	if files != nil {
		added[acts.FollowedFiles] = files
	}
	if len(mentions) > 0 {
		added[acts.FileMentions] = mentions[:min(len(mentions), maxMentions)]
		more = more || len(mentions) > maxMentions
	}
	switch {
	case more:
		added[acts.FileCommands] = []any{text, 0}
	case text != "":
		added[acts.FileCommands] = text
	}
	for member, value := range added {
		if text, err := json.Marshal(value); err == nil {
			all[member] = text
		}
	}
	c.Request.Input = all.encode()
}

// filesOf returns the files of these names in the folder of the call, in those above it, and in the home.
func (c *Call) filesOf(names []string) (files []string, more bool) {
	if len(names) == 0 {
		return nil, false
	}
	home, _ := os.UserHomeDir() // empty if it is not known
	folders := slices.Concat(c.roots, []string{home})
	for at := c.Request.Cwd; at != filepath.Dir(at); at = filepath.Dir(at) {
		folders = append(folders, at)
	}
	looked := 0
	for _, folder := range folders {
		for _, of := range []string{".claude", ".github", ".copilot", ".gemini", ".opencode", ".config/opencode", ".codex", ".agents"} {
			for _, place := range followed {
				found, _ := filepath.Glob(filepath.Join(literal.Replace(folder), of, place)) // the pattern is ours
				for _, file := range found {
					at := filepath.Base(file)
					if at == "SKILL.md" {
						at = filepath.Base(filepath.Dir(file)) + ".md"
					}
					named := slices.Contains(names, strings.TrimSuffix(at, filepath.Ext(at)))
					if looked++; !named && looked < maxFiles {
						text, _, _ := readFile(file, maxInline) // it is found by its title alone if that can be read
						title := title.FindStringSubmatch(text)
						named = len(title) == 2 && slices.Contains(names, title[1])
					}
					if named && !slices.Contains(files, file) {
						files = append(files, file)
					}
				}
			}
		}
	}
	return files, looked >= maxFiles
}

// title matches the line with the name of such a file.
var title = regexp.MustCompile(`(?m)^name:[ \t"']*([^\s"']+)`)

// literal quotes what a pattern of names would not take as it is.
var literal = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)
