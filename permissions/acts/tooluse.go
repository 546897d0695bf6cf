package acts

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/daycared/daycared/permissions"
)

// Verb is what a tool does with the object that its input names.
type Verb string

// The verbs.
const (
	Runs          Verb = "runs"            // a command, in a new shell
	RunsInSession Verb = "runs_in_session" // a command, in a shell that keeps its folder and variables from one call to the next
	RunsElsewhere Verb = "runs_elsewhere"  // a command, in a folder that is not told; [Runs] if it is
	Types         Verb = "types"           // of tools.txt alone: a text into a shell that runs already, which is [RunsInSession]
	Expands       Verb = "expands"         // of tools.txt alone: a text in which @NAME names a file that the agent reads, which is [Calls]
	Views         Verb = "reads"           // a file or folder
	Lists         Verb = "lists"           // files by a pattern
	Writes        Verb = "writes"          // a file
	Patches       Verb = "patches"         // files, by a patch in Codex's format
	Fetches       Verb = "fetches"         // an address
	HasNoEffect   Verb = "no_effect"       // nothing outside the agent
	Calls         Verb = "calls"           // a tool of a server, or one that daycared does not know
)

// ToolUse is what the input of a tool call says that it does. Only the fields of its verb are set.
type ToolUse struct {
	Verb         Verb
	Command      string   // of what runs a command, in the language of a POSIX shell
	Altered      string   // of Runs: what the agent may run instead of Command
	Folder       string   // of Runs: where it begins, in the call's folder
	Names        []string // of Views, Lists, Writes and Patches, and of Calls those that are read: files, in the call's folder
	Pattern      string   // of Lists, and of Views: which files a search is for
	Host         string   // of Fetches, with its port unless that is 80 or 443; empty if the address has none
	Tool         string   // of Calls and HasNoEffect: SERVER/NAME, or the name of a tool that has no server
	Others       []string // of Calls: what else that name may stand for
	Typed        bool     // of RunsInSession, and of Calls that would be: its command is a text for a shell that runs already
	TypingUnseen bool     // of a shell: nobody is asked about what is typed into the programs that it starts
	Loose        bool     // of Calls: a shell of which nobody knows the folder, with an input that is not known
}

// daycared and anyone stand in [knownTools] for our own agents and for callers without a dialect.
const (
	Daycared = "daycared"
	anyone   = "-"
)

// knownTools lists the tools whose input describes their whole effect: dialects, tools, verb, the member with the object, and irrelevant
// members. A member @NAME names the folder of a command, and *NAME is a pattern of the names of files that are searched. Codex's hooks do
// not know in which folder a command runs, and the shells of Copilot CLI, Cursor and VS Code keep state between commands.
//
//go:embed tools.txt
var knownTools string

// ReadToolUse returns what a tool call does: the one place that knows how each dialect writes a command, a file, an address and an MCP
// tool. A dialect is that of an agent's hook or acp, [Daycared] for our own agents, and empty for every other caller. The verb of a tool
// that is not known, or whose input has a member that is not, is [Calls].
func ReadToolUse(dialect, tool string, input json.RawMessage) ToolUse {
	if dialect == "" {
		dialect = anyone
	}
	for row := range strings.Lines(knownTools) {
		f := strings.Fields(row)
		if slices.Contains(strings.Split(f[0], ","), dialect) && slices.Contains(strings.Split(f[1], ","), tool) {
			verb := Verb(f[2])
			d, ok := readToolUse(verb, f[3:], input)
			if dialect == "gemini" && ok {
				d.Altered, d.Names = unwrapped(d.Command), Renamed(dialect, d.Names)
			}
			if !ok {
				d = ToolUse{Verb: Calls, Tool: tool}
				d.Loose = dialect != permissions.HookACP && (verb == RunsInSession || verb == RunsElsewhere || verb == Types)
			}
			switch d.TypingUnseen = verb == RunsElsewhere; verb {
			case Types:
				d.Command, d.Typed = typedCommand(f[3], input)
			case Expands:
				d = ToolUse{Verb: Calls, Tool: tool, Names: mentioned(f[3], input)}
			}
			return d
		}
	}
	d := ToolUse{Verb: Calls, Tool: tool}
	for n, t := range permissions.ServerTools(dialect, tool, input) {
		if name := t.Server + "/" + t.Name; n == 0 {
			d.Tool = name
		} else {
			d.Others = append(d.Others, name)
		}
	}
	return d
}

// DialectOf returns the dialect of the first agent that has a tool of that name, for calls of which nobody says it.
func DialectOf(tool string) string {
	for row := range strings.Lines(knownTools) {
		if f := strings.Fields(row); f[0] != anyone && slices.Contains(strings.Split(f[1], ","), tool) {
			return strings.Split(f[0], ",")[0]
		}
	}
	return ""
}

// keys are how Copilot CLI's tools name keys. What those other than Enter make of a line is not known, so such a text is not read.
var keys = strings.NewReplacer("{enter}", "\n", "\r", "\n",
	"{up}", "\b", "{down}", "\b", "{left}", "\b", "{right}", "\b", "{backspace}", "\b")

// typedCommand returns the text that a member has for a shell that runs already, as a command. A key that interrupts or ends is none.
func typedCommand(member string, given json.RawMessage) (command string, is bool) {
	var input map[string]json.RawMessage
	if json.Unmarshal(given, &input) != nil || json.Unmarshal(input[member], &command) != nil {
		return "", false
	}
	if strings.Trim(command, "\x03\x04") == "" {
		return "", true
	}
	return keys.Replace(command), true
}

var (
	mentions = regexp.MustCompile("\\B@(?:\"([^\"]+)\"|([^\\s\"'`,;()<>]+))") // an address of mail is none
	// wrapper begins a command that Gemini CLI takes for a shell's, and runs without it.
	wrapper = regexp.MustCompile(`(?i)^[\s\p{Z}\x{feff}]*(?:(?:\S+/)?(?:sh|bash|zsh)[\s\p{Z}\x{feff}]+-c|cmd\.exe[\s\p{Z}\x{feff}]+/c|` +
		`(?:powershell|pwsh)(?:\.exe)?[\s\p{Z}\x{feff}]+(?:-NoProfile[\s\p{Z}\x{feff}]+)?-Command)[\s\p{Z}\x{feff}]+`)
	// oneWord is the rest of such a command that is the same with and without the shell.
	oneWord = regexp.MustCompile("^(?:'[^']*'|\"[^\"\\\\$`!]*\")$")
)

// mentioned returns the files that a member's text mentions as @NAME, and those that a hook found in the files that the call follows.
func mentioned(member string, given json.RawMessage) (names []string) {
	var input map[string]json.RawMessage
	text := ""
	if json.Unmarshal(given, &input) != nil {
		return nil
	}
	_ = json.Unmarshal(input[FileMentions], &names) // else there are none
	_ = json.Unmarshal(input[member], &text)
	return append(Mentions(text), names...)
}

// Mentions returns the names that stand in a text as @NAME.
func Mentions(text string) (names []string) {
	for _, found := range mentions.FindAllStringSubmatch(text, -1) {
		name := cmp.Or(found[1], strings.TrimRight(found[2], ".:!?"))
		file, _, of := strings.Cut(name, "#") // a part of it
		if names = append(names, name); of {
			names = append(names, file)
		}
	}
	return names
}

// FileElsewhere is the member of an input in which a hook says that the agent may change another file than the one that is named.
const FileElsewhere = "hook.elsewhere"

// Renamed returns names of files, and those for which an agent may take them: Gemini CLI takes @NAME for NAME, no character for NUL, and
// %41 for A.
func Renamed(dialect string, names []string) []string {
	if dialect != "gemini" {
		return names
	}
	for _, name := range slices.Clone(names) {
		other := strings.ReplaceAll(name, Computed, "")
		if of, is := strings.CutPrefix(other, "@"); is {
			other = strings.TrimLeft(of, `/\`)
		}
		decoded, err := url.PathUnescape(other)
		if err != nil {
			decoded = other
		}
		for _, one := range []string{other, decoded} {
			if one != "" && !slices.Contains(names, one) {
				names = append(slices.Clip(names), one)
			}
		}
	}
	return names
}

// unwrapped returns what Gemini CLI runs of a command that it takes for a shell's with one word, where that is another command; else
// nothing. It takes the first and the last quote off, whatever stands between.
func unwrapped(command string) string {
	begins := wrapper.FindStringIndex(command)
	if begins == nil {
		return ""
	}
	rest := strings.TrimFunc(command[begins[1]:], func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' })
	if oneWord.MatchString(rest) {
		return ""
	}
	if last := len(rest) - 1; last > 0 && rest[0] == rest[last] && (rest[0] == '\'' || rest[0] == '"') {
		rest = rest[1:last]
	}
	return rest
}

// readToolUse reads the input of a known tool.
func readToolUse(verb Verb, names []string, given json.RawMessage) (d ToolUse, ok bool) {
	var input map[string]json.RawMessage
	if json.Unmarshal(given, &input) != nil {
		return d, false
	}
	for name := range input {
		if !slices.ContainsFunc(names, func(of string) bool { return strings.TrimLeft(of, "@*") == name }) {
			return d, false
		}
	}
	text := func(name string) (value string) {
		_ = json.Unmarshal(input[name], &value) // checked below
		return value
	}
	what := text(names[0])
	if verb == Types {
		return ToolUse{Verb: RunsInSession}, true
	}
	commands := verb == Runs || verb == RunsInSession || verb == RunsElsewhere
	if list, are := commandWords(input[names[0]]); verb == RunsElsewhere && are { // for the shells of others it is a text
		what = list
	}
	if what == "" && (input[names[0]] != nil || commands || verb == Writes || verb == Fetches) && verb != HasNoEffect {
		return d, false
	}
	if !commands && verb != Patches && what != strings.TrimSpace(what) { // some agents trim a name after their hook was called
		return d, false
	}
	d = ToolUse{Verb: verb}
	switch verb {
	case Runs, RunsInSession, RunsElsewhere:
		d.Command = what
		for _, name := range names[1:] {
			if member, is := strings.CutPrefix(name, "@"); is && input[member] != nil {
				if d.Folder = text(member); d.Folder == "" {
					return d, string(input[member]) == "null"
				}
				d.Verb = Runs
			}
		}
	case Patches:
		d.Names, ok = patchedFiles(what)
		return d, ok
	case Lists:
		d.Names, d.Pattern = []string{what}, text("pattern")
		if folder := path.Dir(d.Pattern[:strings.IndexAny(d.Pattern+"*", "*?[{")] + "x"); folder != "." { // it may be a link
			d.Names = append(d.Names, path.Join(what, folder))
		}
	case Views, Writes:
		d.Names = []string{what}
		for _, name := range names {
			if member, is := strings.CutPrefix(name, "*"); is && input[member] != nil {
				if d.Pattern = text(member); d.Pattern == "" {
					return d, false
				}
			}
		}
	case Fetches:
		d.Host = HostOf(what)
	}
	return d, true
}

// commandWords returns the command of an input that is a list of words, as Codex's shell tool has it, by its hook or acp.
func commandWords(member json.RawMessage) (text string, are bool) {
	var list any
	if json.Unmarshal(member, &list) != nil {
		return "", false
	}
	return words(list)
}

// HostOf returns the host of an http or https address in lower case, with its port unless that is the usual one; empty for everything
// that programs may read in different ways.
func HostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Opaque != "" || u.Hostname() == "" ||
		strings.ContainsAny(address, `\{}[]@`+" \t\n") {
		return ""
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if !isPlainHost(host) {
		return ""
	}
	if port := u.Port(); port != "" && port != "80" && port != "443" {
		host += ":" + port
	}
	return host
}

// isPlainHost reports whether all programs read a host alike: as a name of ASCII letters, or an IPv4 address in its usual form. Some take
// 127.1, 0x7f000001 and letters of other scripts for an address or a name, too.
func isPlainHost(host string) bool {
	if strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789_-.") != "" || slices.Contains(strings.Split(host, "."), "") {
		return false
	}
	if last := host[strings.LastIndex(host, ".")+1:]; strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		at, err := netip.ParseAddr(host)
		return err == nil && at.Is4()
	}
	return true
}

// SocketHost returns the host of a name that bash opens as a connection, as in /dev/tcp/HOST/PORT.
func SocketHost(name string) (host string, is bool) {
	for _, of := range []string{"/dev/tcp/", "/dev/udp/"} {
		if rest, is := strings.CutPrefix(name, of); is {
			return HostOf("http://" + strings.Replace(rest, "/", ":", 1)), true
		}
	}
	return "", false
}
