// Package own decides whether a path belongs to the daemon: its data, configuration, secrets, sockets, binary and
// processes, and the devices through which these can be read. It follows symbolic links, including dangling ones and
// those of /proc. Requests, agents' tools and the sandbox all use this one rule. It recognises hard links of such
// files by their identity, and bind mounts of them, of folders around them and of folders in them by the table of mounts.
package own

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/daycared/daycared/permissions"
)

// Find returns what belongs to the daemon that a path is, lies in, or covers, and whether there is any. files are absolute.
func Find(files []string, path string) (what string, found bool) {
	return NewSearch(files, new(atomic.Uint64)).Find(path)
}

// Find is [Find] in a search.
func (l *Search) Find(path string) (what string, found bool) {
	p := l.find(path)
	return p.what, p.inside || p.around
}

// HardLinked returns a regular file of the daemon's, named or in one of its folders, that has a hard link besides: it may lie in any
// folder. Where one does not answer, [NewSearch] refuses all of its file system.
func HardLinked(files []string) (file string, found bool) {
	places := remote(mounts())
	for _, name := range files {
		var steps atomic.Uint64
		file, _ := ask(&pendingLooks, name, name, places, &steps, func() (file string, err error) {
			err = filepath.WalkDir(resolve(name), func(at string, e fs.DirEntry, err error) error {
				steps.Add(1)
				if err != nil || !e.Type().IsRegular() {
					return nil //nolint:nilerr // of what cannot be read nothing is known
				}
				if info, err := e.Info(); err == nil {
					if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink > 1 {
						file = at
						return fs.SkipAll
					}
				}
				return nil
			})
			return file, err
		})
		if file != "" {
			return file, true
		}
	}
	return "", false
}

// place is what belongs to the daemon that a path is or lies in (inside), or only covers (around).
type place struct {
	what           string
	inside, around bool
}

// Search resolves paths and counts how much work is left.
type Search struct {
	landmarks
	steps    *atomic.Uint64
	resolved map[string]string // where paths lead
	places   map[string]place
	lists    map[string][]os.DirEntry
	firsts   map[string]*[256][]os.DirEntry // of folders: their entries by the first byte of the name
	below    map[string]int                 // depth to which folders were searched
	budget   int
	asked    map[string]bool // the remote file systems at which another process has looked
	// globbed says that the text that is looked at has a glob.
	globbed bool
}

// An input may cost as much as that many comparisons; a folder entry that is read counts for several, and so does a part of a path.
const maxLooks, perEntry = 8_000_000, 80

// perStep is what it costs to begin at one place of a text.
const perStep = 4

// perByte is what it costs to go through a text.
func perByte(text string) int { return 1 + len(text)/8 }

// landmarks are what paths are compared with.
type landmarks struct {
	names         []string      // of the daemon's files, cleaned and resolved
	own, covering []os.FileInfo // existing ones, and the folders around them, which hard links and bind mounts can rename
	remote        []string      // file systems
}

// recent are the landmarks found last: a request is judged several times in a moment.
var recent struct {
	mu    sync.Mutex
	files []string
	at    time.Time
	landmarks
}

// reuseFor is how long they are used again.
const reuseFor = 50 * time.Millisecond

// pendingLooks are the looks at landmarks, for which others wait: one that hangs is not repeated before it ends.
var pendingLooks = Watched{StepTimeout: stepTimeout / 2, most: 1}

// NewSearch begins a search. It counts its steps, which end where a file system does not answer.
func NewSearch(files []string, steps *atomic.Uint64) *Search {
	recent.mu.Lock()
	defer recent.mu.Unlock()
	if !slices.Equal(files, recent.files) || time.Since(recent.at) > reuseFor {
		recent.at, recent.files, recent.landmarks = time.Now(), slices.Clone(files), find(files)
	}
	return &Search{
		steps: steps, landmarks: recent.landmarks, places: map[string]place{}, lists: map[string][]os.DirEntry{}, asked: map[string]bool{},
		resolved: map[string]string{}, firsts: map[string]*[256][]os.DirEntry{}, below: map[string]int{}, budget: maxLooks,
	}
}

// find finds the landmarks of files. Where one does not answer, so that any file may be a hard link of it, all of its file system is one.
func find(files []string) (l landmarks) {
	all, silent := mounts(), map[string]bool{} // by device
	places := remote(all)
	l.remote = places
	for i, m := range all {
		if len(m.layers) > 0 {
			var err error
			if all[i].layers, err = ask(&pendingLooks, m.at, "/", nil, new(atomic.Uint64), func() ([]string, error) {
				return follow(slices.Clone(m.layers), places), nil
			}); err != nil {
				all[i].layers = []string{""} // they may be any
			}
		}
	}
	hangs := func(at string, err error) bool {
		device, _ := locate(cmp.Or(remoteMountOf(at, places), at), all)
		if errors.Is(err, ErrSilent) && !silent[device] {
			silent[device] = true
			for _, m := range append(slices.Clip(all), mount{at: "/"}) { // all, without a table
				if m.device == device {
					l.names = append(l.names, m.at)
				}
			}
		}
		return silent[device]
	}
	for _, file := range files {
		leads, err := ask(&pendingLooks, file, file, places, new(atomic.Uint64), func() (string, error) { return resolve(file), nil })
		if l.names = append(l.names, filepath.Clean(file)); !hangs(file, err) {
			l.names = append(l.names, leads)
		}
	}
	l.names = append(l.names, otherNames(l.names, all)...)
	seen := map[string]bool{}
	for i := 0; i < len(l.names); i++ { // more may be added
		for at := l.names[i]; !seen[at]; at = filepath.Dir(at) {
			seen[at] = true
			if hangs(at, nil) {
				continue
			}
			info, err := ask(&pendingLooks, at, at, places, new(atomic.Uint64), func() (os.FileInfo, error) { return os.Stat(at) })
			switch {
			case hangs(at, err), err != nil:
			case slices.Contains(l.names, at):
				l.own = append(l.own, info)
			default:
				l.covering = append(l.covering, info)
			}
		}
	}
	return l
}

// probeOnce calls probeRemote for the first path in each remote file system.
func (l *Search) probeOnce(path string) {
	if at := remoteMountOf(path, l.remote); at != "" && !l.asked[at] {
		l.asked[at] = true
		probe(path)
	}
}

func (l *Search) find(path string) place {
	p, known := l.places[path]
	if !known {
		l.steps.Add(1)
		l.probeOnce(path)
		clean, leads := filepath.Clean(path), l.resolve(path)
		names := []string{clean, leads}
		if clean != path {
			names = append(names, l.resolve(clean))
		}
		if p = l.judge(names...); l.budget < 0 && !p.inside {
			p = place{path, false, true} // it may be
		}
		l.places[path] = p
	}
	return p
}

// judge judges a path by all its names; the second is where it leads.
func (l *Search) judge(names ...string) (p place) {
	for _, file := range slices.Concat(l.names, memory) {
		switch {
		case slices.ContainsFunc(names, func(n string) bool { return permissions.Within(file, n) }):
			return place{file, true, false}
		case slices.ContainsFunc(names, func(n string) bool { return permissions.Within(n, file) }):
			p = place{file, false, true}
		}
	}
	for _, name := range names {
		if what, found := process(name); found {
			return place{what, true, false}
		}
	}
	for at := names[1]; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case err != nil:
		case is(l.own, info), at == names[1] && info.Mode()&(os.ModeDevice|os.ModeCharDevice) == os.ModeDevice: // a disk: it contains every file
			return place{at, true, false}
		case at == names[1] && !p.around && is(l.covering, info):
			p = place{at, false, true}
		}
		if at == "/" {
			return p
		}
	}
}

func is(some []os.FileInfo, one os.FileInfo) bool {
	return slices.ContainsFunc(some, func(i os.FileInfo) bool { return os.SameFile(i, one) })
}

// maxTokens is how many texts of an input are checked, and longest the maximum length of a path.
const maxTokens, longest = 1000, 4096

// Input checks the names and texts of a tool's JSON input, when the tool runs in folder: found reports that one is a
// path of the daemon's, and may that one, or several put together, could lead to it or cannot be followed.
func (l *Search) Input(folder string, input []byte) (found, may bool) {
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber()
	var texts []string
	for n := 0; ; n++ {
		token, err := d.Token()
		if err != nil || n == maxTokens || l.budget < 0 {
			return found, may || err == nil || l.checkCombined(folder, texts)
		}
		if text, is := token.(string); is {
			text, unclear := named(strings.TrimSpace(text))
			is, could := l.checkText(folder, text)
			if plain := escapes.ReplaceAllStringFunc(text, decoded); plain != text { // as in http+unix://%2Frun%2Fx.sock/
				_, as := l.checkText(folder, plain)
				could = could || as
			}
			texts = append(texts, text)
			found, may = found || is, may || unclear || could || l.budget < 0
		}
	}
}

// named is the path in a text that is the address of a file, and any other text as it is.
func named(text string) (path string, unclear bool) {
	if u, err := url.Parse(text); err == nil && u.Scheme == "file" {
		return u.Path, u.Path == ""
	}
	return text, false
}

// escapes matches letters of an address that are written as numbers.
var escapes = regexp.MustCompile(`%[0-9a-fA-F]{2}`)

func decoded(escape string) string {
	text, _ := url.PathUnescape(escape)
	return text
}

// checkText checks one text. A glob may match anything in the folder that its path begins with.
func (l *Search) checkText(folder, text string) (found, may bool) {
	l.budget -= perByte(text)
	may = strings.HasPrefix(text, "~") || strings.HasPrefix(text, "$") && strings.Contains(text, "/") ||
		slices.ContainsFunc(l.names, func(f string) bool { return strings.Contains(text, f) }) || l.hasOwnPart(folder, text)
	if text == "" || len(text) > longest {
		return false, may
	}
	if at := strings.IndexAny(text, globs); at >= 0 {
		may = may || strings.Contains(text[at:], "../")
	}
	for _, path := range paths(text) {
		if !filepath.IsAbs(path) {
			path = folder + "/" + path
		}
		p := l.find(path)
		found, may = found || p.inside && filepath.IsAbs(text), may || p.inside || p.around
	}
	return found, may
}

// paths are a text as a path, what follows a sign in it, such as @/x, and the folder of its glob.
func paths(text string) []string {
	all := []string{text}
	if at := strings.Index(text, "/"); at > 0 && at < len(text)-1 {
		all = append(all, text[at:])
	}
	if at := strings.IndexAny(text, globs); at >= 0 {
		all = append(all, text[:strings.LastIndex(text[:at], "/")+1])
	}
	return all
}

// chain is a folder to which some texts of an input lead, one after the other; of has their places.
type chain struct {
	at string
	of []int
}

// checkCombined reports whether several texts joined lead to the daemon's files: tools take a folder from one member and names from others.
func (l *Search) checkCombined(folder string, texts []string) bool {
	same, last := make([]int, len(texts)), map[string]int{} // same is which text before is the same one, and its number; 0: none
	for n, text := range texts {
		same[n], last[text] = last[text], n+1
	}
	led := l.resolve(folder)
	reached := map[string][]chain{filepath.Clean(folder): {{}}, led: {{}}}
	queue := []chain{{at: folder}}
	if folder != "" && led != folder {
		queue = append(queue, chain{at: led})
	}
	for i := 0; i < len(queue); i++ {
		from := queue[i]
		for n, text := range texts {
			if l.budget -= perText; l.budget < 0 {
				return true
			}
			if text == "" || slices.Contains(from.of, n) || same[n] > 0 && !slices.Contains(from.of, same[n]-1) {
				continue
			}
			if (i > 0 || filepath.IsAbs(text)) && l.checkTextIn(from.at, strings.TrimLeft(text, "/")) {
				return true
			}
			to := append(slices.Clone(from.of), n)
			all := l.folders(from.at, text)
			for i := 0; i < len(all); i++ {
				at := all[i]
				if l.hasChainWithin(reached[at], to) {
					continue
				}
				if p := l.find(at); p.inside || p.around {
					return true
				}
				l.budget -= perEntry
				if info, err := os.Stat(at); err == nil && info.IsDir() {
					all = append(all, l.resolve(at))
					reached[at] = append(reached[at], chain{at, to})
					queue = append(queue, reached[at][len(reached[at])-1])
				}
			}
		}
	}
	return l.budget < 0
}

// perText is what a text costs at a folder of [Search.checkCombined].
const perText = 8

// hasChainWithin reports whether one of the chains needs no other texts than these.
func (l *Search) hasChainWithin(chains []chain, texts []int) bool {
	l.budget -= perText * len(chains)
	return slices.ContainsFunc(chains, func(c chain) bool {
		return !slices.ContainsFunc(c.of, func(n int) bool { return !slices.Contains(texts, n) })
	})
}

// checkTextIn is [Search.checkText] for a folder that another text names.
func (l *Search) checkTextIn(folder, text string) bool {
	if folder == "" {
		return false
	}
	return l.hasOwnPart(folder, text) || len(text) <= longest && slices.ContainsFunc(paths(text), func(path string) bool {
		p := place{}
		if !l.absent(folder, path) {
			p = l.find(folder + "/" + path)
		}
		return p.inside || p.around
	})
}

// folders are the folders that a text may name from another one: a tool may also find names that do not exist above them, where "..", of
// this text or the next, leads to less.
func (l *Search) folders(folder, text string) (all []string) {
	if len(text) > longest {
		return nil
	}
	if filepath.IsAbs(text) {
		all = []string{filepath.Clean(text), l.resolve(text)}
	}
	if folder == "" || l.absent(folder, text) {
		return all
	}
	all = append(all, l.resolve(folder+"/"+text))
	up, rest := 0, filepath.Clean(strings.TrimLeft(text, "/"))
	for rest == ".." || strings.HasPrefix(rest, "../") {
		up, rest = up+1, strings.TrimPrefix(rest[2:], "/")
	}
	for at := folder; ; at, up = filepath.Dir(at), up-1 {
		if all = append(all, filepath.Join(at, rest)); up == 0 || at == "/" {
			return all
		}
	}
}

// absent reports whether a path is not in a folder, in which none of the daemon's files are.
func (l *Search) absent(folder, path string) bool {
	first, _, _ := strings.Cut(strings.TrimLeft(path, "/"), "/")
	if first == "" || strings.Contains(path, "..") {
		return false
	}
	l.steps.Add(1)
	l.budget -= perEntry
	_, err := os.Lstat(filepath.Join(folder, first))
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENAMETOOLONG)
}

// globs are the characters with which patterns begin.
const globs = "*?[{"

// hasOwnPart reports whether any part of a text is the name of something that leads to the daemon's files.
func (l *Search) hasOwnPart(folder, text string) bool {
	before, led := ' ', l.resolve(folder)
	l.globbed = strings.ContainsAny(text, globs)
	for at, letter := range text {
		rest := text[at:min(len(text), at+longest)]
		if l.budget < 0 {
			return true
		}
		begins := !inName(before) && !strings.ContainsRune(globs, before)
		switch {
		case letter == '/' && begins && !strings.ContainsRune("/.-_", before):
			if l.beginsWithOwn("/", strings.TrimLeft(rest, "/")) {
				return true
			}
		case begins && before != '/' && folder != "":
			if l.beginsWithOwn(led, rest) {
				return true
			}
		}
		before = letter
	}
	return false
}

func inName(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// beginsWithOwn reports whether a text begins with a path, relative to the folder, that leads to the daemon's files.
func (l *Search) beginsWithOwn(folder, text string) bool {
	l.steps.Add(1)
	l.budget -= perStep
	for dots := true; dots && l.budget >= 0; l.budget-- {
		var rest string
		if rest, dots = strings.CutPrefix(text, "../"); dots {
			folder = filepath.Dir(folder)
		} else {
			rest, dots = strings.CutPrefix(text, "./")
		}
		text = strings.TrimLeft(rest, "/")
	}
	part := ""
	if l.globbed {
		part, _, _ = strings.Cut(text, "/")
		l.budget -= len(part) / 8
	}
	if strings.ContainsAny(part, globs) && folder != "/" { // globs are left to leads
		deep := 1 + strings.Count(text, "/")
		if strings.Contains(text, "**") {
			deep = math.MaxInt
		}
		if l.searchFolder(folder, deep) {
			return true
		}
	}
	for _, e := range l.beginning(folder, text) {
		rest, found := strings.CutPrefix(text, e.Name())
		if next, _ := utf8.DecodeRuneInString(rest); !found || rest != "" && inName(next) {
			continue
		}
		path, below := filepath.Join(folder, e.Name()), strings.TrimLeft(rest, "/")
		first, _ := utf8.DecodeRuneInString(below)
		p, ends := l.find(path), below == rest || !inName(first)
		if p.inside || ends && p.around && e.Type()&os.ModeSymlink != 0 || below != rest && l.beginsWithOwn(l.resolve(path), below) {
			return true
		}
	}
	return false
}

// searchFolder reports whether anything in a folder, to that depth and through links, leads to the daemon's files.
func (l *Search) searchFolder(folder string, deep int) bool {
	if l.below[folder] >= deep {
		return false
	}
	if p := l.find(folder); p.inside || p.around {
		return true
	}
	for queue := []string{folder}; deep > 0 && len(queue) > 0; deep-- {
		var next []string
		for _, at := range queue {
			if l.below[at] >= deep {
				continue
			}
			l.below[at] = deep
			for _, e := range l.list(at) {
				l.steps.Add(1)
				path := filepath.Join(at, e.Name())
				if e.Type()&os.ModeSymlink != 0 {
					if p := l.find(path); p.inside || p.around {
						return true
					}
					path = l.resolve(path)
				} else if !e.IsDir() {
					continue
				}
				l.probeOnce(path)
				if info, err := os.Stat(path); err == nil && (is(l.own, info) || is(l.covering, info)) { // a mount
					return true
				}
				next = append(next, path)
			}
		}
		queue = next
	}
	return false
}

func (l *Search) list(folder string) []os.DirEntry {
	all, known := l.lists[folder]
	if !known && l.budget >= 0 {
		all, _ = os.ReadDir(folder)
		l.lists[folder] = all
		l.budget -= perEntry * len(all)
	}
	l.budget -= len(all)
	return all
}

// beginning returns the entries of a folder that a text may begin with.
func (l *Search) beginning(folder, text string) []os.DirEntry {
	by, known := l.firsts[folder]
	if !known {
		by = new([256][]os.DirEntry)
		for _, e := range l.list(folder) {
			by[e.Name()[0]] = append(by[e.Name()[0]], e)
		}
		l.firsts[folder] = by
	}
	if text == "" || l.budget < 0 {
		return nil
	}
	l.budget -= len(by[text[0]])
	return by[text[0]]
}

// memory contains all memory, or is a different file for each process.
var memory = []string{"/dev/mem", "/dev/kmem", "/dev/port", "/proc/kcore", "/dev/fd"}

// process finds a process of the daemon: itself or a descendant. A link of /proc that cannot be followed may lead anywhere.
func process(path string) (what string, found bool) {
	if path == "/proc" {
		return path, true
	}
	rest, below := strings.CutPrefix(path, "/proc/")
	if !below {
		return "", false
	}
	parts := strings.Split(rest, "/")
	pid, err := strconv.Atoi(parts[0])
	if err != nil {
		return path, strings.HasSuffix(parts[0], "self") // different for each process
	}
	if slices.ContainsFunc(parts[1:], func(p string) bool { return slices.Contains(links, p) }) {
		return path, true
	}
	for steps := 0; pid > 1 && steps < 1000; steps++ {
		group, parent := threadGroup(pid)
		if group == os.Getpid() {
			return "/proc/" + parts[0], true
		}
		pid = parent
	}
	return "", false
}

// links are the links, and folders of links, of a process in /proc.
var links = []string{"root", "cwd", "exe", "fd", "map_files"}

// threadGroup is the process of a thread, and its parent; 0 if it is gone.
func threadGroup(pid int) (group, parent int) {
	status, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	for line := range bytes.Lines(status) {
		name, value, _ := strings.Cut(string(line), ":")
		switch name {
		case "Tgid":
			group, _ = strconv.Atoi(strings.TrimSpace(value))
		case "PPid":
			parent, _ = strconv.Atoi(strings.TrimSpace(value))
		}
	}
	return group, parent
}

// maxLinks is how many symbolic links are followed per path; the kernel follows 40.
const maxLinks = 100

// MaxLinks is how many parts of paths are looked at to follow their links: for one path, or for all of a call. The kernel follows as many
// as 40 links of 2,000 parts each, and agents can make such.
const MaxLinks = 20_000

// Resolve resolves the symbolic links of an absolute path. What is missing or unreadable keeps its name.
func Resolve(path string) string {
	at, _ := Follow().Leads(path)
	return at
}

// Links follows the links of the names in one call. It is not safe for concurrent use.
type Links struct {
	places []string // remote file systems
	left   int      // of MaxLinks
}

// Follow returns Links that have followed nothing yet.
func Follow() *Links { return &Links{remote(mounts()), MaxLinks} }

// ofProcess matches what is another file for each process.
var ofProcess = regexp.MustCompile(`^/proc/(self|thread-self|\d+)/`)

// Leads is [Resolve]. It is not known where a path leads if a part of it cannot be read, if more parts than are left would have to be, or
// if it depends on the process, unless the path says so: it is in /dev. With a slash behind it, a path that is no folder's leads nowhere.
func (l *Links) Leads(path string) (at string, known bool) {
	probeRemote(path, l.places)
	at, _, known = walk(path, &l.left, func(string) bool { return false })
	if strings.HasSuffix(path, "/") {
		_, err := os.Readlink(at + "/.")
		known = known && !errors.Is(err, syscall.ENOTDIR)
	}
	return at, known && (!ofProcess.MatchString(at) || strings.HasPrefix(path, "/dev/"))
}

func resolve(path string) string {
	left := MaxLinks
	at, _, _ := walk(path, &left, func(string) bool { return false })
	return at
}

// resolve is Resolve in a search, which has too little left after long links.
func (l *Search) resolve(path string) string {
	l.budget -= perByte(path)
	if at, known := l.resolved[path]; known {
		return at
	}
	perPart := perEntry + len(path)/16 // of long paths each part takes longer
	left := min(MaxLinks, max(0, l.budget/perPart))
	before := left
	at, _, _ := walk(path, &left, func(string) bool { return false })
	if l.budget -= perPart * (before - left); left < 0 {
		l.budget = -1
	}
	l.resolved[path] = at
	return at
}

// maxPart is the most bytes of a file's name.
const maxPart = 255

// walk is [Links.Leads] as far as the first place where it is to end, which it does not look at.
func walk(path string, left *int, ends func(at string) bool) (at string, ended, known bool) {
	rest, followed := strings.Split(path, "/"), 0
	at, known = "/", true
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		if ends(next) {
			return next, true, known
		}
		if *left--; *left < 0 {
			return filepath.Join(append([]string{next}, rest...)...), false, false
		}
		target, err := os.Readlink(next)
		switch { // EINVAL: it is no link
		case err == nil:
			known = known && followed < maxLinks
		case errors.Is(err, syscall.ENAMETOOLONG) && len(part) <= maxPart: // no folder of so long a name can be looked at
			return filepath.Join(append([]string{next}, rest...)...), false, false
		case errors.Is(err, syscall.ENAMETOOLONG): // there is no such file
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTDIR):
			known = false
		}
		if err != nil || followed == maxLinks || strings.HasPrefix(next, "/proc/self") || strings.HasPrefix(next, "/proc/thread-self") {
			at = next
			continue
		}
		followed++
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return at, false, known
}
