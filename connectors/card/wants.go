package card

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	risk "github.com/daycared/daycared/permissions/acts"
	"github.com/daycared/daycared/permissions/i18n"
)

// maxTag limits a permission in the title, in characters; a longer one is a block below it.
const maxTag = 64

// act is one part of an action: what it does in our words and, complete, what that is done with.
type act struct {
	number string // of a call of a step
	verb   string // after "wants"
	brief  string // the verb with shortened names; empty: there are none
	label  string // above the body
	lang   string // of the body
	body   []string
	role   Role
	rest   []string    // of the input, where the body is not all of it
	cut    bool        // the body is only a part
	notes  []string    // below the body, in our words
	does   []string    // what parts of a command do that is worth a look
	risks  []risk.Risk // that does names

	runs bool // a command

	described bool // its input says the request's reason, too
}

// Wants is what r asks for, complete: "write access to /srv/www", "to run rm -rf x", "to use NAME" with its input line by
// line, the numbered calls of a step, or the message of a pause or a clarification with its numbered options. Secrets are
// masked.
func Wants(r permissions.Request) string {
	var rows []string
	for _, a := range acts(r, Options{flat: true}) {
		rows = append(rows, strings.Split(a.line(), "\n")...)
	}
	return strings.Join(rows, "\n")
}

// line is an act with its body, beside its verb if it is one row.
func (a act) line() string {
	verb := strings.TrimSpace(a.number + Plain(a.verb))
	if a.runs {
		verb = strings.TrimSpace(a.number + "to run")
	}
	body := slices.Concat(a.body, a.rest)
	if len(body) == 1 {
		return strings.TrimSpace(verb + " " + body[0])
	}
	return strings.TrimPrefix(strings.Join(append([]string{verb}, body...), "\n"), "\n")
}

// acts are the parts of what r asks for.
func acts(r permissions.Request, o Options) []act {
	switch r.Kind {
	case permissions.KindPermission:
		wanted := r.Missing()
		if len(wanted) == 0 { // all of it was held, and nobody is asked
			wanted = r.Tags
		}
		a := act{verb: o.Plural(len(wanted), "%d permission|%d permissions"), body: tags(wanted, o), role: Action}
		switch {
		case len(wanted) != 1:
		case utf8.RuneCountInString(a.body[0]) > maxTag:
			a.verb, _, _ = strings.Cut(a.body[0], o.Text(toPath))
		default:
			a.verb, a.body = tagged(a.body[0], o), nil
		}
		return []act{a}
	case permissions.KindTool:
		if len(r.Calls) == 0 {
			return append([]act{toolCall(r, r.ToolCalls()[0], o)}, suggested(r, o)...)
		}
		var all []act
		for _, c := range r.Calls {
			a := toolCall(r, c, o)
			a.number = fmt.Sprintf("#%d ", c.N)
			all = append(all, a)
		}
		return all
	}
	says, several := r.Message, false
	if r.Hook != "" {
		says, several = strings.CutSuffix(says, permissions.SeveralAnswers)
	}
	all := []act{{body: words(says, o.source(prose)), role: Words}}
	if len(r.Choices) > 0 {
		options := act{label: o.Text("The answers:"), role: Words}
		if several {
			options.label = o.Text("The answers, of which several may be written:")
		}
		for i, c := range r.Choices {
			options.body = append(options.body, fmt.Sprintf("%d  %s", i+1, line(c, o.source(prose))))
		}
		all = append(all, options)
	}
	return all
}

// suggested are what the agent of r suggests and a yes can take, with the numbers of their answers.
func suggested(r permissions.Request, o Options) []act {
	a := act{label: o.Text("Allow once, and as it suggests:"), role: Words}
	for _, option := range r.Options {
		if k := option.ID.SuggestionNumber(); k > 0 && k <= len(r.Choices) {
			a.body = append(a.body, fmt.Sprintf("%d  %s", k, line(r.Choices[k-1], o.source(prose))))
		}
	}
	if len(a.body) == 0 {
		return nil
	}
	return []act{a}
}

// tagged is a permission, rendered already, with its path as a row of ours has it.
func tagged(text string, o Options) string {
	if what, path, found := strings.Cut(text, o.Text(toPath)); found {
		return what + o.Text(toPath) + codeSpan(path)
	}
	return text
}

// toPath is between a permission and its path.
const toPath i18n.Phrase = " to "

func tags(all []permissions.Tag, o Options) []string {
	return wire.Map(all, func(t permissions.Tag) string { return Visible(t.Describe(o.Language)) })
}

// toolCall is one call: a command as it would be typed, a change of files as a diff, and anything else as the tool's name and its
// canonical input.
func toolCall(r permissions.Request, c permissions.Call, o Options) act {
	a := act{role: Action}
	text, rest, described, isCommand := command(c, r.Reason)
	with := besides(rest, o)
	e, isEdit := editOf(r, c, o.few, o)
	switch {
	case isEdit:
		a.verb, a.brief = e.title(quoteName), e.title(func(name string) string { return quoteName(brief(name, maxName)) })
		a.lang, a.body, a.rest, a.cut, a.notes = e.Language, e.body, e.rest(), e.cut, e.notes()
	case isCommand && len(with) == len(rest):
		a.verb, a.lang, a.runs = o.Text("to run a command"), "bash", true
		a.command(r, c, text, o)
		if c.Tool != "run_command" {
			a.notes = append(a.notes, o.Sprintf("Runs with %s", codeSpan(quoteName(c.Tool))))
		}
		for _, row := range with {
			a.notes = append(a.notes, o.Sprintf("With %s", codeSpan(row)))
		}
	default:
		a.verb, a.brief = o.Sprintf("to use %s", codeSpan(quoteName(c.Tool))), o.Sprintf("to use %s", Name(c.Tool))
		if of := object(c, o); of != "" && len(r.Calls) > 0 {
			a.verb, a.brief = o.Sprintf("to use %s: %s", codeSpan(quoteName(c.Tool)), of), o.Sprintf("to use %s: %s", Name(c.Tool), of)
		}
		rest := c.Input
		if plan, others := r.Plan(); plan != "" {
			rest = others
		}
		if a.body, a.lang = input(rest, o.source(jsonText)); r.Plans() && string(rest) == "{}" {
			a.body = nil // all of it is the plan
		}
		if r.Condensed(c) {
			a.body, a.lang = nil, ""
			a.notes = append(a.notes, o.Text("The call is too long for a card: all of it is in the details."))
		}
	}
	if path := codeSpan(quoteName(c.AffectedPath)); c.AffectedPath != "" && (!isEdit || !e.affects(c.AffectedPath)) {
		note := o.Sprintf("Affects %s", path)
		if said, other := affects(r, c); said || other != "" {
			note = o.Sprintf("It says it affects %s", path)
		}
		a.notes = append(a.notes, note)
	}
	if a.described = isCommand && described && len(with) == len(rest); a.described && len(r.Calls) > 0 {
		a.notes = append(a.notes, o.Text("The agent describes it as below."))
	}
	return a
}

// object is what a call is about, in a few words: the value of the member that says most, which is in its input below. Empty if none
// of those members is a short text.
func object(c permissions.Call, o Options) string {
	all, _ := membersOf(c.Input)
	for _, name := range first {
		for _, m := range all {
			if m.head(o.source(jsonText)) != name {
				continue
			}
			if rows := m.rows(o.source(jsonText)); len(rows) == 1 {
				return codeSpan(brief(strings.TrimPrefix(rows[0], name), maxName))
			}
		}
	}
	return ""
}

// maxDoes limits the parts of commands whose risks are named by part, and maxPart what is shown of such a part, in characters.
const maxDoes, maxPart = 4, 40

// command breaks a command between its parts, unless it is to stay in its own rows.
func (a *act) command(r permissions.Request, c permissions.Call, text string, o Options) {
	if o.flat {
		a.body = words(text, o.source(shell))
		return
	}
	rows := risk.Rows(r, c, text)
	for _, row := range rows {
		at := len(a.body)
		a.body = append(a.body, words(row.Text, o.source(shell))...)
		if len(rows) == 1 || !r.HighRisk { // a row below says the risks of a whole call
			row.Risks = slices.DeleteFunc(row.Risks, func(r risk.Risk) bool { return r != risk.Network })
		}
		if len(row.Risks) == 0 || len(a.does) == maxDoes {
			continue
		}
		does := capital(strings.Join(whyHighRisk(row.Risks, row.Text, len(rows) > 1, o), ", "))
		if does += "."; len(rows) > 1 {
			does = strings.TrimSuffix(does, ".") + ": " + codeSpan(brief(strings.TrimRight(a.body[at], " &|;"), maxPart))
		}
		a.does, a.risks = append(a.does, does), append(a.risks, row.Risks...)
	}
}

// Programs that run another one as root, and that run what nobody can read before.
var (
	asRoot   = lazily(`(?m)(?:^|[;&|(])\s*(sudo|su|doas|pkexec)\s`)
	unreadBy = lazily(`(?m)(?:^|[\s;&|(])((?:ba|da|z|k|fi)?sh|pwsh|powershell|python3?|node|perl|ruby|eval|source)(?:\s|$)`)
)

// unreadable is what is said of a command that runs what nobody has read.
const unreadable i18n.Phrase = "not readable before it runs"

// whyHighRisk is why a command is high risk, in words that name the program that makes it so unless it is beside them.
func whyHighRisk(risks []risk.Risk, command string, beside bool, o Options) []string {
	by := func(program []string) string {
		if beside {
			return ""
		}
		return ": " + codeSpan(program[1])
	}
	return wire.Map(risks, func(r risk.Risk) string {
		root, unread := asRoot().FindStringSubmatch(command), unreadBy().FindAllStringSubmatch(command, -1)
		switch {
		case r == risk.Rights && root != nil:
			return o.Text("runs as root") + by(root)
		case r == risk.Unread && len(unread) > 0:
			return o.Text(unreadable) + by(unread[len(unread)-1])
		case r == risk.Unread:
			return o.Text(unreadable)
		}
		return o.Text(r)
	})
}

// affects reports whether the affected path is only the asker's claim, because neither we nor its input name it, and which
// other path the input names.
func affects(r permissions.Request, c permissions.Call) (said bool, other string) {
	var members map[string]any
	if r.Caller.IsOurs() || c.AffectedPath == "" {
		return false, ""
	}
	said = true
	_ = json.Unmarshal(c.Input, &members) // other values name no path
	for _, name := range pathMembers {
		path, isText := members[name].(string)
		whole := path
		if !filepath.IsAbs(path) {
			whole = filepath.Join(r.Cwd, path)
		}
		switch {
		case !isText || path == "":
		case filepath.Clean(whole) == c.AffectedPath:
			said = false
		default:
			other = path
		}
	}
	return said, other
}

// maxBeside limits a member beside a command that is shown below it, in characters.
const maxBeside = 200

// besides lays out what stands beside a command, one member a row; fewer rows if that is not possible.
func besides(rest []field, o Options) (rows []string) {
	for _, m := range rest {
		if lines := m.rows(o.source(jsonText)); !o.flat && len(lines) == 1 && utf8.RuneCountInString(lines[0]) <= maxBeside {
			rows = append(rows, lines[0])
		}
	}
	return rows
}

// command is the command in the input of a shell's call, and what stands beside it, except for a description that is word by word the
// reason on the card.
func command(c permissions.Call, reason string) (text string, rest []field, described, ok bool) {
	if !slices.Contains([]string{"run_command", "run_shell_command", "bash", "shell", "sh"}, strings.ToLower(c.Tool)) {
		return "", nil, false, false
	}
	all, _ := membersOf(c.Input)
	commands := 0
	for _, m := range all {
		said := ""
		switch {
		case m.name == `"command": `:
			commands++
			ok = json.Unmarshal(m.raw, &text) == nil && text != "" && commands == 1
		case m.name == `"description": ` && json.Unmarshal(m.raw, &said) == nil && said == reason && reason != "":
			described = true
		default:
			rest = append(rest, m)
		}
	}
	return text, rest, described, ok
}
