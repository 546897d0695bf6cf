package rules

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/acts"
)

// What the words of a program name: files, hosts, texts and values of options.

// hostsIn are the hosts that a word of a program may name without a scheme, as in user@HOST:PATH, HOST/PATH and HOST:PORT.
func hostsIn(word string) (hosts []string) {
	_, value, _ := strings.Cut(word, "=")
	for _, part := range []string{word, value} {
		address := strings.TrimLeft(part[strings.LastIndex(part, "@")+1:], `/\`)
		if end := strings.IndexAny(address, `/\%`); end >= 0 {
			address = address[:end]
		}
		host, _, _ := strings.Cut(address, ":")
		for _, name := range []string{acts.HostOf("http://" + host), acts.HostOf("http://" + address), usualForm(host)} {
			if name != "" && !slices.Contains(hosts, name) {
				hosts = append(hosts, name)
			}
		}
	}
	return hosts
}

// usualForm returns the usual form of an IPv4 address in another form that programs take, as 127.1, 0x7f000001 and ::ffff:7f00:1; empty: it
// is none.
func usualForm(host string) string {
	if at, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil && at.Is4In6() {
		return at.Unmap().String()
	}
	parts := strings.Split(host, ".")
	address, least := uint64(0), 4-len(parts)
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 0, 32)
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (least + 1)
		}
		if err != nil || least < 0 || n>>bits > 0 || strings.Contains(part, "_") {
			return ""
		}
		address = address<<bits | n
	}
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(address)))).String()
}

// partsOf adds the hosts and files that a rule may be about and that are joined to something else in a word of a program. In code they may
// be something else.
func (j *judge) partsOf(a *acts.Act, word string, address bool) {
	isCode := strings.ContainsAny(word, code)
	if j.restrictsHosts() {
		if !address {
			for _, host := range hostsIn(word) {
				j.items = append(j.items, item{kind: fetches, act: a, name: host, hidden: true})
			}
		}
		j.hostsWithin(word, !isCode)
	}
	if j.restrictsFiles() {
		j.filesWithin(word, a.In, isCode)
	}
}

// maxJoined is the most letters that are joined before a file, and the dash.
const maxJoined = 6

// addOperands adds the files and hosts that the words of a program name. Of programs that are not known, deny and ask rules see each word
// as a file that may be read and written.
func (j *judge) addOperands(a *acts.Act, hidden bool) {
	name, words := baseName(a.Words[0]), a.Words[1:]
	text := textsOf(a)
	isReader, isWriter := slices.Contains(readers, name), slices.Contains(writers, name)
	isWriting := isReader && mayChangeOperands(name, words)
	if !hidden && findsSecrets(a.Words) {
		j.addDoubt("its pattern of names may find files that look like secrets")
	}
	fetching := name == "curl" || name == "wget"
	for n, word := range words {
		_, value, joined := strings.Cut(word, "=")
		host, address := addressOf(word)
		if at := acts.PathOf(word); address && at != word { // of a file, which no program looks for elsewhere
			host = at
		}
		if !text[n+1] {
			j.partsOf(a, word, address)
		}
		switch {
		case text[n+1]:
		case address || fetching && !strings.HasPrefix(word, "-"):
			j.items = append(j.items, item{kind: fetches, act: a, name: host, hidden: hidden})
			if name == "wget" && !slices.ContainsFunc(words, printsDownload) || name == "curl" && slices.ContainsFunc(words, savesByName) {
				j.items = append(j.items, item{kind: writes, act: a, name: savedAs(word), hidden: hidden})
			}
		case strings.HasPrefix(word, "-") || word == "":
			if joined && value != "" {
				j.items = append(j.items, item{kind: writes, act: a, name: value, hidden: true})
			}
			for at := 2; at < min(len(word), maxJoined) && !strings.HasPrefix(word, "--") && !joined; at++ { // -fFILE, -ufFILE
				j.items = append(j.items, item{kind: writes, act: a, name: word[at:], hidden: true})
			}
		case isWriter, (name == "uniq" || name == "xxd") && notFirstOperand(words, n), name == "ln",
			name == "cp" && (n == len(words)-1 || hasTargetOption(words)):
			j.items = append(j.items, item{kind: writes, act: a, name: word, hidden: hidden})
		case isReader, name == "cp":
			j.items = append(j.items, item{kind: reads, act: a, name: word, inside: true, hidden: hidden})
			if isWriting {
				j.items = append(j.items, item{kind: writes, act: a, name: word, hidden: true})
			}
		default:
			j.items = append(j.items, item{kind: writes, act: a, name: word, hidden: true})
			for _, part := range strings.FieldsFunc(word, func(r rune) bool { return name == "git" && (r == ':' || r == ')') }) { // HEAD:FILE
				j.items = append(j.items, item{kind: reads, act: a, name: strings.TrimLeft(part, "/!^"), hidden: true})
			}
			if joined {
				j.items = append(j.items, item{kind: writes, act: a, name: value, hidden: true})
			}
		}
	}
	if readsOwn(a) {
		for _, folder := range a.In {
			inside := j.isWorkspaceFolder(folder) || strings.Contains(folder, acts.Computed) // or in doubt anyway
			j.items = append(j.items, item{kind: reads, act: &acts.Act{In: []string{folder}}, name: folder, hidden: hidden || inside})
		}
	}
	j.addUnseen(a)
	for _, file := range a.Patches() {
		j.items = append(j.items, item{kind: writes, act: a, name: file, hidden: true})
	}
	j.addCompleted(name, a, hidden)
}

// addUnseen adds the doubt that a program takes other files than its words name.
func (j *judge) addUnseen(a *acts.Act) {
	if a.AppliesPatch() && j.restrictsFiles() {
		j.addDoubt("its patch may change other files than are seen in it")
	}
	if listsNames(a.Words) && j.restrictsFiles() {
		j.addDoubt("it reads the names of files from another file")
	}
}

// listOptions begin the options with which any program may be given a file with names of files.
var listOptions = []string{"--files0-f", "--files-f", "--filel", "--file-l", "--pathspec-from", "--arg-f"}

// nameLists are those options of programs that are known, which may be cut: a long one, and a letter or 0.
var nameLists = map[string]struct {
	long   string
	letter byte
}{
	"sort": {"--files0-from", 0}, "wc": {"--files0-from", 0}, "du": {"--files0-from", 0}, "xargs": {"--arg-file", 'a'}, "xz": {"--files0", 0},
	"zstd": {"--filelist", 0}, "file": {"--files-from", 'f'}, "tar": {"--files-from", 'T'}, "gtar": {"--files-from", 'T'},
	"bsdtar": {"--files-from", 'T'}, "rsync": {"--files-from", 0}, "git": {"--pathspec-from-file", 0},
}

// listsNames reports whether a program is given a file with the names of those that it reads. Letters may be joined, and long names cut.
func listsNames(words []string) bool {
	name := baseName(words[0])
	list := nameLists[name]
	for n, w := range words[1:] {
		option, _, _ := strings.Cut(w, "=")
		joined := !strings.HasPrefix(w, "--") && (strings.HasPrefix(w, "-") || n == 0 && strings.HasSuffix(name, "tar"))
		switch {
		case name == "xargs" && !strings.HasPrefix(w, "-") && !slices.Contains(strings.Fields("-n -P -L -s -I -d -E"), words[n]):
			return false // its command
		case strings.HasPrefix(w, "@") && slices.Contains(expanding, name),
			slices.ContainsFunc(listOptions, func(begin string) bool { return strings.HasPrefix(w, begin) }),
			len(option) > 2 && strings.HasPrefix(option, "--") && strings.HasPrefix(list.long, option),
			joined && list.letter != 0 && strings.IndexByte(option, list.letter) >= 0:
			return true
		}
	}
	return false
}

// readsOwn reports whether a program may read the folder that it runs in: it is given no other. A word may be an option's value.
func readsOwn(a *acts.Act) bool {
	name, text := baseName(a.Words[0]), textsOf(a)
	if !slices.Contains(listing, name) && !searches(a.Words) {
		return false
	}
	named := false
	for n, word := range a.Words[1:] {
		if strings.HasPrefix(word, "-") {
			return true
		}
		named = named || !text[n+1] && name != "fd"
	}
	return !named
}

// mayChangeOperands reports whether a reader may change or remove what its operands name, by an option of its own or by a program that find
// runs. Letters may be joined, and long names cut.
func mayChangeOperands(name string, words []string) bool {
	options := map[string][2]string{"sort": {"o", "--o"}, "base64": {"o", "--o"}, "less": {"oO", "--l"}, "tree": {"o", "--o"},
		"gofmt": {"w", "--w"}, "yq": {"i", "--in"}}[name]
	for n, w := range words {
		switch long := strings.HasPrefix(w, "--"); {
		case name == "find" && runsFound(wildcard{before: w}):
			if !strings.HasPrefix(w, "-exec") && !strings.HasPrefix(w, "-ok") || n+1 == len(words) {
				return true
			}
			run := baseName(words[n+1])
			reads := slices.Contains(readers, run) && run != "find" && !mayChangeOperands(run, words[n+2:])
			if !reads && !slices.Contains(texts, run) {
				return true
			}
		case long && options[1] != "" && strings.HasPrefix(strings.ToLower(w), options[1]),
			!long && strings.HasPrefix(w, "-") && strings.ContainsAny(w, options[0]):
			return true
		}
	}
	return false
}

// addCompleted adds what a program writes that copies, moves or links, and what it reads that compares, if an operand is a folder: it
// completes the name of that by the one of the other's file.
func (j *judge) addCompleted(name string, a *acts.Act, hidden bool) {
	does, others := j.takes(a), name == "git" || name == "rsync" || name == "scp"
	if !slices.Contains([]string{"cp", "ln", "install", "rsync", "scp"}, name) && does != moving && does != comparing {
		return
	}
	k, names := writes, operandsOf(a)
	if does == comparing {
		k = reads
	}
	whole := name == "cp" && hasOption(a.Words[1:], "", "--p") || name == "rsync" && hasOption(a.Words[1:], "R", "--relative")
	if name == "ln" && len(names) == 1 { // in its own folder
		names = append(names, ".")
	}
	for n, into := range names {
		for _, from := range names {
			if from != into && (n == len(names)-1 || does == comparing || hasTargetOption(a.Words[1:])) {
				j.items = append(j.items, item{kind: k, act: a, name: into + "/" + filepath.Base(from), into: into, inside: true,
					hidden: hidden || others})
				if whole {
					j.items = append(j.items, item{kind: k, act: a, name: into + "/" + from, into: into, hidden: hidden || others})
				}
				if name == "ln" && hasOption(a.Words[1:], "s", "--s") {
					j.addLinked(a, from, into)
				}
			}
		}
	}
}

// addLinked adds what a symbolic link names: a file or a folder, from the folder of the link.
func (j *judge) addLinked(a *acts.Act, to, link string) {
	at := &acts.Act{In: slices.Clone(a.In)}
	for _, folder := range a.In {
		at.In = append(at.In, acts.Under(folder, link), path.Dir(acts.Under(folder, link)))
	}
	j.items = append(j.items, item{kind: writes, act: at, name: to, search: j.mayBeFolder(at, to), hidden: true})
}

// printsDownload reports whether an option of wget has what it fetches printed, or not kept.
func printsDownload(option string) bool {
	return slices.Contains([]string{"-O-", "-qO-", "--output-document=-", "--spider"}, option)
}

// savesByName reports whether an option of curl has what it fetches saved under the name in its address.
func savesByName(option string) bool {
	return strings.HasPrefix(option, "--remote-name") || !strings.HasPrefix(option, "--") && option != "" && option[0] == '-' &&
		strings.Contains(option, "O")
}

// savedAs returns the name under which an address is saved.
func savedAs(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return acts.Computed
	case path.Base("/"+u.Path) == "/" || strings.HasSuffix(u.Path, "/"):
		return "index.html"
	}
	return path.Base(u.Path)
}

// notFirstOperand reports whether the word at n is not the first operand.
func notFirstOperand(words []string, n int) bool {
	return slices.ContainsFunc(words[:n], func(w string) bool { return !strings.HasPrefix(w, "-") })
}

// hasTargetOption reports whether an option names the folder that cp copies to.
func hasTargetOption(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		return strings.HasPrefix(w, "--t") || strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.Contains(w, "t")
	})
}

// textsOf reports which words of a program are certainly only text.
func textsOf(a *acts.Act) []bool {
	text := make([]bool, len(a.Words))
	name := a.Words[0]
	for i, word := range a.Words {
		switch {
		case i == 0:
		case slices.Contains(texts, name):
			text[i] = name != "date" || strings.HasPrefix(word, "+") // else it may be a file of -f and -r
		case name == "git" && (a.Words[i-1] == "-m" || a.Words[i-1] == "--message") &&
			slices.Contains([]string{"commit", "tag", "merge"}, a.Words[1]):
			text[i] = true
		case slices.Contains([]string{"grep", "egrep", "fgrep", "rg", "jq"}, name) && !strings.HasPrefix(word, "-"):
			text[i] = !notFirstOperand(a.Words[1:], i-1) && !slices.ContainsFunc(a.Words[1:], func(w string) bool { return mayTakeValue(name, w) })
		}
	}
	return text
}

// mayTakeValue reports whether a word is an option of grep and the like that may take a value.
func mayTakeValue(name, w string) bool {
	switch {
	case len(w) < 2 || w[0] != '-':
		return false
	case w[1] == '-':
		return !slices.Contains(plainLong, w)
	}
	return strings.ContainsAny(w, "ef0123456789ABCmdDgtTjM") || name == "rg" && strings.Contains(w, "r")
}

// whyLinked returns which word, or which file that says what the program runs, is a link out of the workspace to what no rule allows to
// read, as a script may be that was moved since; empty: none is.
func (j *judge) whyLinked(a *acts.Act) string {
	if j.Resolve == nil || j.w.Root == "" {
		return ""
	}
	text, names := textsOf(a), manifestsOf(a, j.Root)
	for n, word := range a.Words[1:] {
		if _, value, _ := strings.Cut(word, "="); !text[n+1] {
			names = append(names, word, value)
		}
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		for _, folder := range a.In {
			at := filepath.Clean(acts.Under(folder, name))
			to := j.w.Resolve(at)
			if here := permissions.Within(j.w.Root, at) || permissions.Within(j.Root, at); to == "" || !here || permissions.Within(j.w.Root, to) {
				continue
			}
			if got, _ := j.allowedFile(item{kind: reads, act: a, name: name}); got.Effect != Allow {
				return fmt.Sprintf("%s leads to %s, outside the workspace", name, to)
			}
		}
	}
	return ""
}

// manifestsOf are the files by which a program is told what it runs, in its folders, in those around these up to the workspace, and in
// those that an option names.
func manifestsOf(a *acts.Act, root string) (names []string) {
	manifests := usesBy["manifests"][baseName(a.Words[0])]
	if len(manifests) == 0 {
		return nil
	}
	folders := slices.Clone(a.In)
	for _, folder := range a.In {
		for at := path.Dir(path.Clean(folder)); permissions.Within(root, at) && at != "/"; at = path.Dir(at) {
			folders = append(folders, at)
		}
		for n, word := range a.Words {
			option, value, joined := strings.Cut(word, "=")
			if rest, is := strings.CutPrefix(word, "-C"); is && rest != "" {
				option, value, joined = "-C", rest, true
			}
			if !joined && n+1 < len(a.Words) {
				value = a.Words[n+1]
			}
			if slices.Contains(wordLists["entering"], option) {
				folders = append(folders, acts.Under(folder, value))
			}
		}
	}
	for _, folder := range folders {
		for _, m := range manifests {
			names = append(names, path.Join(folder, m.word))
		}
	}
	return names
}

// addressOf returns the host of a word that is an address.
func addressOf(word string) (host string, is bool) {
	scheme, _, is := strings.Cut(word, "://")
	if !is || scheme == "" || strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+.-") != "" {
		return "", false
	}
	return acts.HostOf(word), true
}
