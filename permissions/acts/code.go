package acts

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
)

// What gets code, or the text of a command, may do with other names than those that stand in the call.

// coders are programs that get code, or the text of a command, by other means than an interpreter's options.
var coders = strings.Fields("awk gawk mawk nawk emacs vi vim nvim ex view ed gdb lldb expect ipython jshell pypy tmux screen at " +
	"batch socat jq")

// GetsCode reports whether a is a program that gets code on its command line or by its input, or names from another program: either may
// name what does not stand in the command.
func (a Act) GetsCode() bool {
	if a.Kind != Run || len(a.Words) == 0 {
		return false
	}
	name, args := strings.TrimRight(strings.ToLower(path.Base(a.Words[0])), "0123456789.-"), a.Words[1:]
	fed := a.Stdin != "" || a.Piped || a.Fed
	switch {
	case slices.Contains(databases, name), slices.Contains(coders, name):
		return fed || len(args) > 0
	case slices.Contains(shellNames, name):
		return a.Piped || a.Fed
	case name == "xargs", name == "parallel", name == "cpio":
		return fed
	}
	return slices.Contains(interpreters, name) && (fed || slices.ContainsFunc(args, func(w string) bool {
		option := strings.HasPrefix(w, "-") && (strings.ContainsAny(w, "ceErp") || strings.HasPrefix(w, "--"))
		return option || w == "-" || w == "eval"
	}))
}

// Computes reports whether a does more than its words say: they are computed, or it gets code.
func (a Act) Computes() bool {
	return a.GetsCode() || slices.ContainsFunc(a.Words, func(w string) bool { return strings.Contains(w, Computed) })
}

// HasCode reports whether the input of a tool that is not known has a command or code.
func HasCode(text json.RawMessage) bool {
	in := readInput(text)
	return in.unread || len(in.commands)+len(in.code)+len(in.stdin) > 0
}

// CodeIn reports whether the input of a tool that is not known has code, or a command that computes what it names or gives code to a
// program.
func CodeIn(text json.RawMessage) bool {
	in := readInput(text)
	computes := func(text string) bool { return strings.ContainsAny(text, "(=;`$\n") }
	return in.unread || slices.ContainsFunc(slices.Concat(in.code, in.stdin), computes) ||
		slices.ContainsFunc(in.queries, statement.MatchString) || slices.ContainsFunc(in.commands, func(text string) bool {
		r := ReadCommand(text, "/")
		return len(r.Doubts) > 0 || slices.ContainsFunc(r.Acts, Act.Computes)
	})
}

// statement matches one of a database.
var statement = regexp.MustCompile(`(?i)\b(select|insert|update|delete|attach|copy|load|create|drop|with)\b`)
