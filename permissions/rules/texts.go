package rules

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/text/unicode/norm"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/acts"
)

// The texts in the input of a tool that is not known: servers call the members for files, folders and hosts what they like.

// inputText is a text in an input, and the member that has it.
type inputText struct{ member, text string }

// textsIn are the texts in an input, with the names of members, those of JSON in a text, and other ways to read a name.
func textsIn(input json.RawMessage) (all []inputText) {
	var walk func(member string, v any)
	walk = func(member string, v any) {
		switch v := v.(type) {
		case string:
			all = append(all, inputText{member, v})
			if other := otherForm(v); other != v {
				all = append(all, inputText{member, other})
			}
			var within any
			if strings.ContainsAny(v, "{[") && json.Unmarshal([]byte(v), &within) == nil {
				walk(member, within)
			}
		case float64:
			all = append(all, inputText{member, strconv.FormatFloat(v, 'f', -1, 64)})
		case []any:
			for _, of := range v {
				walk(member, of)
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				all = append(all, inputText{member, name})
				walk(name, v[name])
			}
		}
	}
	var v any
	if json.Unmarshal(input, &v) == nil {
		walk("", v)
	}
	return all
}

// otherForm is a name as servers may read it: with slashes for backslashes, without percent signs that stand for others, and up to a NUL.
func otherForm(text string) string {
	if len(text) > longestName || strings.ContainsAny(text, " \n") || strings.Contains(text, "://") {
		return text
	}
	other := strings.ReplaceAll(text, `\`, "/")
	if plain, err := url.PathUnescape(other); err == nil {
		other = strings.ReplaceAll(plain, `\`, "/")
	}
	other, _, _ = strings.Cut(other, "\x00")
	return other
}

// isGlob reports whether a text may be a pattern of names: neither prose nor an address.
func isGlob(text string) bool {
	return strings.ContainsAny(text, "*?[{") && !strings.ContainsAny(text, " \n") && !strings.Contains(text, "://")
}

// mayName reports whether the member's name says that it is for one of these.
func (t inputText) mayName(what string) bool {
	return slices.ContainsFunc(strings.Fields(what), func(part string) bool { return strings.Contains(strings.ToLower(t.member), part) })
}

// folder returns the folder that a text may name for a search, or from which the other texts are read; empty: none.
func (t inputText) folder() string {
	name := acts.PathOf(t.text)
	switch glob := strings.IndexAny(name, "*?[{"); {
	case strings.Contains(name, "://"):
	case isGlob(name):
		return cmp.Or(path.Dir(name[:glob]+"x"), ".")
	case name == "." || name == ".." || filepath.IsAbs(name) || t.mayName("path dir folder root cwd file uri location glob"):
		if strings.LastIndex(path.Base(name), ".") <= 0 || strings.Trim(path.Base(name), ".") == "" { // else its name is that of a file
			return name
		}
	}
	return ""
}

const (
	// maxTexts and maxFolders are the most texts of an input, and the most of them that may be folders, that are looked at.
	maxTexts, maxFolders = 400, 8
	// longestName is the most bytes of a name.
	longestName = 4096

	tooManyTexts = "its input has more texts than are looked at"
)

// addTexts adds what the texts in the input of a tool may name, if there are rules that restrict that.
func (j *judge) addTexts() {
	hosts, files := j.restrictsHosts(), j.restrictsFiles()
	if !hosts && !files {
		return
	}
	every := textsIn(j.Input)
	all := slices.DeleteFunc(slices.Clone(every), func(t inputText) bool {
		return t.text == "" || len(t.text) > longestName || strings.Contains(t.text, "\n") ||
			strings.Contains(t.text, " ") && !t.mayName("path dir folder file")
	})
	in := []string{cmp.Or(j.Folder, acts.Computed)}
	for _, t := range all {
		if folder := t.folder(); folder != "" {
			j.items = append(j.items, item{kind: reads, act: &acts.Act{In: in[:1]}, name: folder, search: true, may: true})
			in = append(in, acts.Under(in[0], folder))
		}
	}
	slices.Sort(in[1:])
	if in = slices.Compact(in); len(all) > maxTexts || len(in) > maxFolders {
		j.addDoubt(tooManyTexts)
		return
	}
	for _, t := range all {
		j.items = append(j.items, item{kind: writes, act: &acts.Act{In: in}, name: acts.PathOf(t.text), may: true})
		host, address := addressOf(t.text)
		if usual := usualForm(t.text); usual != "" {
			j.items = append(j.items, item{kind: fetches, act: &acts.Act{}, name: usual, may: true})
		}
		switch address = address && acts.PathOf(t.text) == t.text; {
		case address:
			j.items = append(j.items, item{kind: fetches, act: &acts.Act{}, name: host, hidden: true})
		case t.mayName("host domain server endpoint address url uri origin site"):
			if host = acts.HostOf("http://" + t.text); host != "" || unusual.MatchString(t.text) {
				j.items = append(j.items, item{kind: fetches, act: &acts.Act{}, name: host, may: host != "", hidden: true})
			}
		}
	}
	for _, t := range every {
		if hosts {
			j.hostsWithin(t.text, j.fetches())
		}
		if files {
			j.filesWithin(t.text, in, true)
		}
	}
}

var (
	// addresses finds what may be an address of the web in a text, and its host with user and port: some programs take any number of
	// slashes, and each in either way.
	addresses = regexp.MustCompile(`(?i)\b(?:https?|wss?|ftp):[/\\]*([^/\\?#\s"'<>()` + "`" + `]*)[^\s"'<>()` + "`" + `]*`)
	// unusual begins a host that programs may read in different ways: a number, or one with letters of other scripts.
	unusual = regexp.MustCompile(`[^\x00-\x7f]|%|(^|\.)(0[xX][0-9a-fA-F]*|[0-9]+)\.?(:[0-9]*)?$`)
	// anyURL finds addresses, so that their paths are not taken for files.
	anyURL = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://\S*`)
)

// skipped are the characters that programs leave out of an address, or read as a dot.
var skipped = strings.NewReplacer("\t", "", "\n", "", "\r", "", "\u00ad", "", "\u200b", "", "\u200c", "", "\u200d", "", "\u2060", "",
	"\ufeff", "", "\u3002", ".")

// fetches reports whether the tool is known to fetch what its input names.
func (j *judge) fetches() bool {
	effect, _ := permissions.KnownEffect(j.Tool)
	return effect == permissions.DoesNetwork
}

// maxDecoded is how often the percent signs of an address within another one are decoded.
const maxDecoded = 3

var encoded = regexp.MustCompile(`%[0-9a-fA-F]{2}`)

// decode decodes the percent signs in a text that stand for a character.
func decode(text string) string {
	return encoded.ReplaceAllStringFunc(text, func(code string) string {
		n, _ := strconv.ParseUint(code[1:], 16, 8) // which the expression fits
		return string([]byte{byte(n)})
	})
}

// hostsWithin adds the hosts that stand anywhere in a text: those of addresses, which are reached for certain or may be, and others, which
// may be.
func (j *judge) hostsWithin(text string, certain bool) {
	forms := slices.Compact([]string{text, skipped.Replace(norm.NFKC.String(text))})
	plain := len(forms)
	for range maxDecoded {
		forms = append(forms, decode(forms[len(forms)-1]))
	}
	for n, text := range slices.Compact(forms) {
		certain := certain && n < plain // what is decoded may be handed on
		all := addresses.FindAllStringSubmatch(text, maxTexts+1)
		if len(all) > maxTexts {
			j.addDoubt(tooManyTexts)
			j.items = append(j.items, item{kind: fetches, act: &acts.Act{}, hidden: true})
		}
		for _, found := range all {
			whole, host := found[0], found[1]
			host = host[strings.LastIndex(host, "@")+1:]
			if name := acts.HostOf(strings.TrimRight(whole, ".,;:!]}")); name != "" {
				j.items = append(j.items, item{kind: fetches, act: &acts.Act{}, name: name, may: !certain, hidden: true})
			} else if unusual.MatchString(host) || certain {
				j.items = append(j.items, item{kind: fetches, act: &acts.Act{}, hidden: true})
			}
		}
		text = strings.ToLower(text)
		for _, p := range slices.Concat(j.others[Deny][fetches], j.others[Ask][fetches]) {
			if host := p.hostIn(text); host != "" {
				j.items = append(j.items, item{kind: fetches, act: &acts.Act{}, name: host, may: true})
			}
		}
	}
}

// hostIn returns a host that the pattern fits and that stands as a word in a text of small letters; empty: none does.
func (p *pattern) hostIn(text string) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789_-"
	under, wild := strings.CutPrefix(p.name, "*")
	for at := 0; ; {
		n := strings.Index(text[at:], under)
		if n < 0 {
			return ""
		}
		before, after := text[:at+n], text[at+n+len(under):]
		begins := len(strings.TrimRight(before, letters+"."))
		name := strings.TrimLeft(before[begins:], ".")
		rest := strings.TrimPrefix(after, ".")
		ends := strings.Trim(after[:min(1, len(after))], letters) == after[:min(1, len(after))] && // and no label follows
			(rest == after || rest == "" || !strings.Contains(letters, rest[:1]))
		if ends && (wild && name != "" || !wild && name == "") {
			return name + under
		}
		at += n + 1
	}
}

const (
	// code are the characters that stand around names in prose and in code, and joins those between a name and an option's, a host's or
	// another file's.
	code, joins = " \t\n\r\"'<>()[]{}|&;`", "=:@,#?"
)

// filesWithin adds the words of a text that a rule may be about: a file in prose, in code, or joined to something else.
func (j *judge) filesWithin(text string, in []string, may bool) {
	if !strings.ContainsAny(text, code+joins) { // it was looked at as a whole
		return
	}
	text = anyURL.ReplaceAllStringFunc(text, func(url string) string {
		if strings.HasPrefix(strings.ToLower(url), "file:") {
			return url[len("file:"):] + " " + acts.PathOf(url)
		}
		return " "
	})
	small := strings.ToLower(text)
	words := sync.OnceValue(func() []string { return wordsOf(text) })
	add := func(word string) {
		j.items = append(j.items, item{kind: writes, act: &acts.Act{In: in}, name: word, may: may, hidden: true})
	}
	var links []string
	if far := j.Leads.Symlinks(); far != nil {
		links = slices.DeleteFunc(slices.Collect(maps.Keys(far.Names)), func(link string) bool {
			return !strings.Contains(text, path.Base(link))
		})
	}
	for _, link := range links {
		for _, word := range words() {
			if slices.ContainsFunc(in, func(folder string) bool { return leadsThrough(link, folder, word) }) {
				add(word)
			}
		}
	}
	for _, p := range j.guarding {
		part := p.path.last()
		if part == "" || !strings.Contains(small, part) || p.path.fitsAll() {
			continue
		}
		folder := p.path.parts[len(p.path.parts)-1] == "**" // whose name alone is a word like others
		for _, word := range words() {
			if strings.Contains(strings.ToLower(word), part) && (!folder || strings.Contains(word, "/")) {
				add(word)
			}
		}
	}
	if len(j.items) > maxItems {
		j.items = j.items[:maxItems]
		j.addDoubt(tooManyTexts)
	}
}

// wordsOf are the words of a text that may be names, without the marks that end a sentence.
func wordsOf(text string) (words []string) {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(code+joins, r) }) {
		words = append(words, strings.TrimRight(word, ".!?"))
	}
	return words
}

// leadsThrough reports whether a name in a folder leads through a link, which is not that of the folder itself.
func leadsThrough(link, folder, name string) bool {
	at := path.Clean(acts.Under(folder, name))
	return permissions.Within(path.Clean(link), at) && !permissions.Within(path.Clean(link), folder)
}

// last returns the longest piece, in small letters, of the last part that is not only wildcards: a name that is meant from any folder
// around the file has it.
func (g glob) last() (piece string) {
	for _, part := range slices.Backward(g.parts) {
		piece = slices.MaxFunc(strings.Split(part, "*"), func(a, b string) int { return cmp.Compare(len(a), len(b)) })
		if piece != "" {
			break
		}
	}
	return strings.ToLower(piece)
}

// restricted returns the deny or ask rule that what may be done falls under; 0: none.
func (j *judge) restricted(i item) int {
	for _, e := range []Effect{Deny, Ask} {
		if p := j.restrictedBy(i, e); p != nil {
			return p.rule.n
		}
	}
	return j.searched(i)
}
