package rules

import (
	"cmp"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/acts"
)

// What programs do with a folder and what is in it: the lists of words.txt that say which do.
const (
	searching, moving, copying, removing, changing = "searching", "moving", "copying", "removing", "changing"
	comparing, printing, following, adding         = "comparing", "printing", "following", "adding"
)

// searches reports whether a program reads what lies in the folders that it is given, or in its own.
func searches(words []string) bool { return uses(searching, words) }

// takesWhole returns what a program does with the folders that it is given, and what is in them; empty: nothing. It compares the files of
// two folders.
func takesWhole(words []string) string {
	if _, does := takenByGit(words[1:]); does != "" && baseName(words[0]) == "git" {
		return does
	}
	for _, does := range []string{moving, copying, removing, changing, comparing, printing} {
		if uses(does, words) {
			return does
		}
	}
	return ""
}

// takenByGit returns what git changes, removes or adds to the repository, with what lies in it; does is empty if it is no such command.
func takenByGit(words []string) (names []string, does string) {
	for len(words) > 1 && strings.HasPrefix(words[0], "-") {
		if slices.Contains([]string{"-c", "-C", "--git-dir", "--work-tree", "--namespace"}, words[0]) {
			words = words[1:]
		}
		words = words[1:]
	}
	if len(words) == 0 {
		return nil, ""
	}
	given := words[1:]
	has := func(letters string, names ...string) bool { return hasOption(given, letters, names...) }
	names = slices.DeleteFunc(slices.Clone(given[slices.Index(given, "--")+1:]), func(w string) bool { return strings.HasPrefix(w, "-") })
	switch name := words[0]; {
	case name == "clean" && !has("n", "--dry"):
		if len(names) == 0 || has("e", "--e") { // which takes a value
			names = append(names, ".")
		}
		return names, changing
	case name == "rm", name == "restore" && (!has("S", "--staged") || has("W", "--worktree")),
		name == "checkout" && (slices.Contains(given, "--") || slices.Contains(given, ".")):
		return names, changing
	case (name == "add" || name == "stage") && !has("nu", "--dry", "--u"):
		return names, adding
	}
	return nil, ""
}

// takes is takesWhole, where git diff compares folders only outside of a repository.
func (j *judge) takes(a *acts.Act) string {
	outside := func(folder string) bool {
		for at := path.Clean(folder); permissions.Within(j.Root, at); at = path.Dir(at) {
			if head := repositoryHead(at); j.w.Resolve(head) != "" && j.w.Resolve(head+"/") == "" {
				return false
			}
			if at == "/" {
				break
			}
		}
		return true
	}
	does := takesWhole(a.Words)
	if does == comparing && baseName(a.Words[0]) == "git" && !slices.Contains(a.Words, "--no-index") && !slices.ContainsFunc(a.In, outside) {
		return ""
	}
	return does
}

// repositoryHead is the file that each repository of git has.
func repositoryHead(folder string) string { return path.Join(folder, ".git/HEAD") }

// wholeFolders are what such a program is given that may be folders, and where it moves or copies them.
func (j *judge) wholeFolders(a *acts.Act) (names, into []string) {
	does := j.takes(a)
	if does == "" {
		return nil, nil
	}
	names = operandsOf(a)
	switch {
	case does == adding && len(names) == 0: // all of the repository
		names = []string{".", cmp.Or(j.Root, ".")}
	case does != moving && does != copying || len(names) == 0:
	case hasTargetOption(a.Words[1:]):
		into = slices.Clone(names)
	case baseName(a.Words[0]) == "rsync": // values of options may follow
		into = slices.Clone(names[1:])
	default:
		names, into = names[:len(names)-1], slices.Clone(names[len(names)-1:])
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !j.mayBeFolder(a, name) })
	if len(names) == 0 || does == comparing && len(names) == 1 {
		return nil, nil
	}
	return names, into
}

// operandsOf are the words of a program that may name files, and the values of its options for them (--target-directory, --from-file).
func operandsOf(a *acts.Act) (names []string) {
	words := a.Words[1:]
	if baseName(a.Words[0]) == "git" {
		if names, does := takenByGit(words); does != "" {
			return names
		}
		words = words[1:]
	}
	for _, word := range words {
		switch option, value, _ := strings.Cut(word, "="); {
		case strings.HasPrefix(option, "--t"), strings.HasPrefix(option, "--f"):
			word = value
		case strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") && strings.Contains(word, "t"): // -t and letters before it
			_, word, _ = strings.Cut(word, "t")
		}
		if word != "" && word[0] != '-' {
			names = append(names, word)
		}
	}
	return names
}

// mayBeFolder reports whether a name may be that of a folder: with a slash behind it, that of another file leads nowhere.
func (j *judge) mayBeFolder(a *acts.Act, name string) bool {
	return slices.ContainsFunc(a.In, func(folder string) bool {
		at := acts.Under(folder, name)
		return j.w.Resolve(at) == "" || j.w.Resolve(at+"/") != ""
	})
}

// readsNoFolder reports whether a program is known to read nothing that lies in its folders.
func readsNoFolder(words []string) bool {
	named, _ := acts.ListedProgram(words)
	name := baseName(words[0])
	return named > 0 || name == "cp" || name == "ln" || name == "git" ||
		slices.Contains(readers, name) || slices.Contains(writers, name) || slices.Contains(texts, name)
}

// namesSearch reports whether the name of a tool says that it reads what lies in a folder.
func namesSearch(tool string) bool {
	tool = strings.ToLower(tool)
	return strings.Contains(tool, "grep") || strings.Contains(tool, "search") && !strings.Contains(tool, "web") || tool == "rg"
}

// searched returns the deny or ask rule that may be about files in a folder that an item searches through or takes whole; 0 if there is
// none.
func (j *judge) searched(i item) int {
	var names, into, given []string
	kinds := []kind{reads}
	if i.kind == runs {
		names, into = j.wholeFolders(i.act)
	}
	switch {
	case len(names) > 0:
		if does := takesWhole(i.act.Words); does == moving || does == removing || does == changing {
			kinds = append(kinds, writes)
		}
	case i.kind == runs && searches(i.act.Words):
		text := textsOf(i.act)
		for n, word := range i.act.Words[1:] {
			if !text[n+1] && !strings.HasPrefix(word, "-") {
				names = append(names, word)
			}
		}
		takes := func(w string) bool { return mayTakeValue(i.act.Words[0], w) }
		name := baseName(i.act.Words[0])
		implied := len(names) == 0 || len(names) == 1 && slices.Contains(searchers, name)
		if implied || name == "git" || name == "fd" || slices.ContainsFunc(i.act.Words[1:], takes) { // a name may be an option's value
			names = append(names, ".")
		}
		if name == "fd" || name == "find" && mayChangeOperands(name, i.act.Words[1:]) {
			kinds = append(kinds, writes)
		}
	case i.kind == runs && !readsNoFolder(i.act.Words):
		names = slices.DeleteFunc(slices.Clone(i.act.Words[1:]), func(w string) bool {
			return w != "." && w != ".." && w != "/" && !strings.HasSuffix(w, "/")
		})
		if given = slices.DeleteFunc(partsOf(i.act.Words), func(name string) bool { return !j.mayBeFolder(i.act, name) }); sends(i.act.Words) {
			names, given = append(names, given...), nil
		}
	case i.kind == reads && i.search:
		names = []string{i.name}
	case i.kind == writes && i.search:
		names, kinds = []string{i.name}, append(kinds, writes)
	case i.kind == writes && i.may:
		return j.ruleAround(i)
	}
	rule := cmp.Or(j.ruleWithin(i.act, names, true, kinds...), j.ruleWithin(i.act, given, false, kinds...),
		j.ruleWithin(i.act, into, true, reads, writes))
	if rule == 0 && i.kind == runs && len(names) > 0 && uses(following, i.act.Words) {
		return j.ruleWithin(i.act, []string{"/"}, true, kinds...)
	}
	return rule
}

// partsOf are the names that the words of a program may be or have in them, as in -v DOCS:/x and --from-file=DOCS.
func partsOf(words []string) (names []string) {
	for _, word := range words[1:] {
		if names = append(names, word); strings.HasPrefix(word, "-") {
			names = append(names, word[min(2, len(word)):])
		}
		for part := range strings.SplitSeq(word, ",") {
			value := part[strings.LastIndex(part, "=")+1:]
			names = append(names, value)
			for name := range strings.SplitSeq(value, ":") {
				if strings.Contains(name, "/") { // else it may be any word
					names = append(names, name)
				}
			}
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" || name[0] == '-' })
}

// sends reports whether a program is known to send or pack the folders that it is given, or may do so with these words.
func sends(words []string) bool {
	name := baseName(words[0])
	return slices.Contains(senders, name) && (name == "mksquashfs" || name == "repomix" || slices.ContainsFunc(words[1:], func(w string) bool {
		option, _, _ := strings.Cut(w, "=")
		return slices.Contains(sending, option)
	}))
}

// ruleWithin returns the first deny or ask rule of these kinds that may be about something in one of these folders, or that is; 0 if there
// is none. A rule for **/NAME may be about any folder.
func (j *judge) ruleWithin(a *acts.Act, folders []string, may bool, kinds ...kind) (rule int) {
	for _, name := range folders {
		for _, folder := range j.namesOf(item{kind: reads, act: a, name: name}) {
			scratch := len(a.Words) > 0 && uses(removing, a.Words) && acts.IsScratch(j.w.Root, folder)
			for _, p := range j.guarding {
				if (scratch || !may) && p.path.parts[0] == "**" { // in a build folder such files come and go with it
					continue
				}
				if slices.Contains(kinds, p.kind) && p.rule.applies(j) && (p.path.within(folder, j.w.Root) || p.path.within(folder, j.Root)) {
					rule = min(cmp.Or(rule, p.rule.n), p.rule.n)
				}
			}
		}
	}
	return rule
}

// ruleAround returns the first deny or ask rule that is about something in a folder that an item may name, which is in the workspace or
// elsewhere, but not around it; 0 if there is none.
func (j *judge) ruleAround(i item) (rule int) {
	around := func(name string) bool { return permissions.Within(name, j.w.Root) || permissions.Within(name, j.Root) }
	names := j.namesOf(i)
	named := around(names[0]) // as most calls do; else a link leads there
	for _, folder := range names {
		for _, root := range []string{j.w.Root, j.Root} {
			for _, p := range j.guarding {
				if p.rule.applies(j) && (!named || !around(folder)) && permissions.Within(strings.ToLower(folder), p.path.begins(root)) {
					rule = min(cmp.Or(rule, p.rule.n), p.rule.n)
				}
			}
		}
	}
	return rule
}

// begins is what a file that fits begins with, in small letters. root is the workspace.
func (g glob) begins(root string) string {
	if g.here {
		return strings.ToLower(filepath.Join("/", root, g.prefix))
	}
	return strings.ToLower(g.prefix)
}

// within reports whether the pattern may fit something in a folder. root is the workspace.
func (g glob) within(folder, root string) bool {
	folder, begins := strings.ToLower(folder), g.begins(root)
	fixed := !strings.Contains(strings.Join(g.parts, "/"), "*")
	return permissions.Within(folder, begins) || !fixed && permissions.Within(begins, folder)
}

// findsSecrets reports whether options of rg or grep name files that look like secrets: it searches what they name also if it is hidden.
func findsSecrets(words []string) bool {
	options := []string{"--glob", "--iglob", "-g"}
	switch baseName(words[0]) {
	case "rg":
	case "grep", "egrep", "fgrep":
		options = []string{"--include"}
	default:
		return false
	}
	for n, word := range words {
		for _, option := range options {
			names, is := strings.CutPrefix(word, option)
			if is && names == "" && n+1 < len(words) {
				names = words[n+1]
			}
			if names = strings.TrimPrefix(names, "="); is && !strings.HasPrefix(names, "!") && acts.FindsSecrets(names) {
				return true
			}
		}
	}
	return false
}
