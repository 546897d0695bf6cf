package rules

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/daycared/daycared/permissions/acts"
)

// What is known of programs: which run code that they are given, which have subcommands, and which read or write their operands.

// wordText has the lists of words.txt by their names. A line that begins with a tab continues the one above.
//
//go:embed words.txt
var wordText string

var (
	wordLists                     = acts.WordLists(wordText)
	states, bare, obeying, coding = wordLists["states"], wordLists["bare"], wordLists["obeying"], wordLists["coding"]
	subcommands, readers, holding = wordLists["subcommands"], wordLists["readers"], wordLists["holding"]
	deletes, varied, plainLong    = wordLists["deletes"], wordLists["varied"], wordLists["plainLong"]
	listing, senders, sending     = wordLists["listing"], wordLists["senders"], wordLists["sending"]
	expanding, searchers          = wordLists["expanding"], wordLists["searchers"]
	// runners are programs whose operands are, or name, code.
	runners = append(slices.Clone(bare), strings.Fields("expect R awk gawk mawk nawk sed gsed ed ex vi vim nvim view emacs "+
		"emacsclient nano bc dc gdb lldb redis-cli duckdb "+
		"runuser pkexec setpriv ssh mosh timeout nice ionice setsid stdbuf watch script flock strace ltrace chroot unshare "+
		"nsenter busybox toybox systemd-run firejail proot fakeroot entr at batch crontab npx pnpx bunx uvx pipx tee dd mail "+
		"mailx sendmail make gmake ninja just mise direnv bundle rake gradle mvn ant tmux screen coproc eval socat nc ncat "+
		"telnet hyperfine concurrently watchexec nodemon pssh parallel-ssh clush dsh ansible salt unbuffer sem retry chronic "+
		"nix-shell claude codex gemini copilot opencode aider")...)
	writers = strings.Fields("mv rm rmdir mkdir touch tee truncate chmod chown chgrp unlink shred install mkfifo mknod")
	// texts are programs whose operands are only text.
	texts = strings.Fields("echo printf true false : basename dirname seq sleep date whoami uname nproc which tr pwd exit type")
)

func hasSubcommands(programs []string) bool {
	return slices.ContainsFunc(programs, func(name string) bool { return slices.Contains(subcommands, name) })
}

// variableOperands reports whether * may stand for operands of a program: they are files, texts and names by which it only reads, or what
// is judged by itself, as the hosts of curl. files says that they are files.
func variableOperands(words []string) (vary, files bool) {
	name := words[0]
	named, kind := acts.ListedProgram(words)
	files = slices.Contains([]string{"reads", "pattern", "one", "packages"}, kind) ||
		named == 0 && (slices.Contains(readers, name) || slices.Contains(writers, name) || name == "cp")
	switch {
	case name == "git":
		return slices.Contains(varied, words[1]), files || words[1] == "add"
	case named > 0:
		return files || slices.Contains([]string{"text", "words", "format"}, kind), files
	}
	return files || slices.Contains(texts, name) || name == "curl" || name == "wget", files
}

// use is how words.txt says that a program is used: with a word after it, with one of its options, or without all of them.
type use struct {
	word    string   // empty: any
	options []string // letters, or what begins with a dash and begins the option; none: any
	without bool
}

// usesBy are the uses of programs, by the list and the program.
var usesBy = func() map[string]map[string][]use {
	all := map[string]map[string][]use{}
	for list, programs := range wordLists {
		all[list] = map[string][]use{}
		for _, program := range programs {
			named, options, _ := strings.Cut(program, ":")
			name, word, _ := strings.Cut(named, "_")
			options, without := strings.CutPrefix(options, "!")
			all[list][name] = append(all[list][name], use{word, strings.FieldsFunc(options, func(r rune) bool { return r == ',' }), without})
		}
	}
	return all
}()

// uses reports whether a list of words.txt has what a program is used for by these words.
func uses(list string, words []string) bool {
	name := baseName(words[0])
	return slices.ContainsFunc(usesBy[list][name], func(u use) bool {
		has := len(u.options) == 0 || slices.ContainsFunc(u.options, func(o string) bool {
			if strings.HasPrefix(o, "-") {
				return hasOption(words[1:], "", o)
			}
			return hasOption(words[1:], o) || strings.HasSuffix(name, "tar") && len(words) > 1 && strings.ContainsAny(words[1], o)
		})
		return has != u.without && (u.word == "" || slices.Contains(words[1:], u.word))
	})
}

// hasOption reports whether one of a program's words is an option with one of these letters, or begins with one of these names.
func hasOption(words []string, letters string, names ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		return strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.ContainsAny(w, letters) ||
			slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(w, name) })
	})
}

// mayAllow refuses an allow pattern that would cover code which nobody has seen, or that can never hold.
func (p *pattern) mayAllow() error {
	for _, name := range p.starts {
		coded := func(w wildcard) bool {
			return slices.Contains(coding, name+"_"+w.before)
		}
		second := len(p.words) > 1 && slices.ContainsFunc(p.words[1], coded)
		switch {
		case slices.Contains(states, name):
			return fmt.Errorf("%s changes what the rest of a command means, so such a command is always asked about; leave it out", name)
		case name == "cd":
			return errors.New("cd needs no rule in the workspace, and elsewhere one for reading; write it as in read /srv/other/**")
		case slices.Contains(bare, name) && len(p.words) == 1:
			return fmt.Errorf("%s runs any code that it is given; name the file, as in run python3 tools/gen.py", name)
		case !p.exact && (slices.Contains(runners, name) || second || strings.Contains(name, "/")):
			return fmt.Errorf("%s runs code that its words are or name, so a rule for it has no wildcard; write the exact words",
				programOf(p, name, second))
		case slices.Contains(subcommands, name) && (len(p.words) == 1 && !p.exact || len(p.words) > 1 && p.words[1].open()):
			return fmt.Errorf("%s has subcommands, and any of them would be too much; name it, as in run %s %s", name, name, exampleOf(name))
		case name == "find" && slices.ContainsFunc(p.opts, func(o option) bool { return slices.ContainsFunc(o.name, runsFound) }):
			return errors.New("find runs, deletes or writes by that option; write a rule without it")
		}
	}
	return nil
}

func runsFound(w wildcard) bool {
	return slices.Contains(strings.Fields("-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls"), w.before) || w.star
}

func programOf(p *pattern, name string, second bool) string {
	if second {
		return name + " " + p.words[1][0].before
	}
	return name
}

func exampleOf(name string) string {
	example := map[string]string{"git": "status", "go": "vet ./...", "npm": "test", "docker": "ps", "gh": "pr view *", "kubectl": "get pods"}
	return cmp.Or(example[name], "SUBCOMMAND")
}

// pythons are interpreters that run a module as a program, and runsModule the option for that.
var (
	pythons    = regexp.MustCompile(`^(python|pypy|py)[w0-9.t-]*$`)
	runsModule = regexp.MustCompile(`^-[bBdEiIOPqRsSuvx0-9]*m(.*)$`)
)

// moduleOf returns the program that an interpreter of Python runs as a module, with its words: python3 -m pip install is pip install, too.
func moduleOf(words []string) []string {
	if !pythons.MatchString(baseName(words[0])) {
		return nil
	}
	for n, word := range words[1:] {
		rest := words[n+2:]
		switch found := runsModule.FindStringSubmatch(word); {
		case found != nil:
			all := slices.Concat(strings.Fields(found[1]), rest)
			if len(all) > 0 {
				all[0] = strings.TrimSuffix(all[0], ".__main__")
			}
			return all
		case !strings.HasPrefix(word, "-") && !strings.HasSuffix(words[n], "W") && !strings.HasSuffix(words[n], "X"):
			return nil // it is a script
		}
	}
	return nil
}

// decidesPrograms reports whether a variable decides what a program runs.
func decidesPrograms(name string) bool {
	return slices.ContainsFunc(holding, func(h string) bool {
		before, after, star := strings.Cut(h, "*")
		_, is := between(name, before, after)
		return star && is || !star && strings.EqualFold(name, h)
	})
}
