package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/acts"
	"github.com/daycared/daycared/permissions/i18n"
)

// PastCall is an earlier call and what became of it.
type PastCall struct {
	Call    Call
	Request permissions.ID // of the call; empty: it is not stored
	At      time.Time      // when it was asked; only [Set.Suggest] looks at it
	Allowed bool           // a person allowed it
	Denied  bool           // a person denied it; neither: nobody answered
}

// Proposal is what "Always like this" and suggest offer: patterns of allow rules, as narrow as useful.
type Proposal struct {
	Allow              []string // one pattern each, to be used in Rule.Allow
	In                 string   // the folder of the call; empty: any
	Descriptions       []string // in words, one for each pattern: what it covers, and what it does not
	PastCount, Allowed int      // how many of the earlier calls it would have covered, and how many of these people allowed
	NotCovered         []string // similar earlier calls that it would not cover, at most three
}

// Rule returns the rule that the proposal would make for an agent.
func (p Proposal) Rule(agent string) Rule {
	r := Rule{Allow: p.Allow, In: p.In}
	if agent != "" {
		r.Agents = []string{agent}
	}
	return r
}

const (
	maxProposed = 5 // patterns of one proposal
	maxNot      = 3
	// enough is how many earlier calls a pattern has to cover, so that it is preferred to the exact one.
	enough = 2
	// fewFiles are so few that each is named by itself.
	fewFiles = 3
)

// Propose proposes rules for a call. Without a proposal, why says the reason. Nothing is proposed for what is high risk by what it does,
// deletes, is forced, runs code that nobody has seen, or cannot be read completely. The caller has to look at what else is high risk, and
// at the daemon's own files ([Set.Reaches]). The proposal loads, covers the call together with the set, and covers no call that a person
// denied.
func (s *Set) Propose(c Call, past []PastCall) (p Proposal, why string) {
	return s.propose(s.examine(PastCall{Call: c}), s.examineAll(past))
}

// examinedCall is a call that was read.
type examinedCall struct {
	PastCall
	j     *judge
	open  []item // what no rule of the set allows
	asked int    // the rule that asks about it or denies it; 0: none
	risk  string // why it is high risk
}

func (s *Set) examineAll(past []PastCall) []*examinedCall {
	all := make([]*examinedCall, len(past))
	for i, p := range past {
		all[i] = s.examine(p)
	}
	return all
}

// examine reads a call, and finds what the set does not allow of it.
func (s *Set) examine(p PastCall) *examinedCall {
	if s == nil {
		s = newSet()
	}
	at := &examinedCall{PastCall: p, j: newJudge(s, p.Call)}
	for _, i := range at.j.items {
		caught := at.j.restrictedBy(i, Deny)
		if caught == nil {
			caught = at.j.restrictedBy(i, Ask)
		}
		if caught != nil && at.asked == 0 {
			at.asked = caught.rule.n
		}
		if i.hidden || caught != nil {
			continue
		}
		if got, _ := at.j.allowed(i); got.Effect != Allow {
			at.open = append(at.open, i)
		}
	}
	call, r := permissions.Call{Tool: p.Call.Tool, Input: p.Call.Input}, permissions.Request{Cwd: p.Call.Folder}
	if p.Call.Tool == "" {
		call = permissions.Call{Tool: "run_command", Input: commandInput(p.Call.Command)}
	}
	if risks := acts.ReadCall(r, call).Risks; len(risks) > 0 {
		at.risk = string(risks[0])
	}
	return at
}

func commandInput(command string) json.RawMessage {
	input, _ := json.Marshal(map[string]string{"command": command}) // a text
	return input
}

func (s *Set) propose(c *examinedCall, past []*examinedCall) (p Proposal, why string) {
	switch {
	case len(c.j.doubts) > 0:
		return p, "it cannot be read completely: " + c.j.doubts[0]
	case c.asked > 0:
		return p, fmt.Sprintf("rule %d asks about it or denies it", c.asked)
	case c.risk != "":
		return p, "it is high risk: it " + c.risk
	case len(c.open) == 0:
		return p, "rules allow it already"
	}
	past = slices.DeleteFunc(slices.Clone(past), func(p *examinedCall) bool { return p.Call.Agent != c.Call.Agent })
	p.In = c.folder()
	for _, i := range c.open {
		text, says, why := c.pattern(i, past)
		if why != "" {
			return Proposal{}, why
		}
		if !slices.Contains(p.Allow, text) {
			p.Allow, p.Descriptions = append(p.Allow, text), append(p.Descriptions, says)
		}
	}
	if len(p.Allow) > maxProposed {
		return Proposal{}, fmt.Sprintf("it would take %d rules", len(p.Allow))
	}
	own, err := mustCompile(p.Rule(c.Call.Agent))
	if err != nil {
		return Proposal{}, err.Error()
	}
	if !c.isCoveredBy(own) {
		return Proposal{}, "no rule without more wildcards covers it"
	}
	for _, at := range past {
		switch covered := at.isCoveredBy(own); {
		case covered && at.Denied:
			return Proposal{}, "it would allow what a person denied: " + at.line()
		case covered:
			p.PastCount++
			if at.Allowed {
				p.Allowed++
			}
		case len(p.NotCovered) < maxNot && at.isSimilar(c) && !slices.Contains(p.NotCovered, at.line()):
			p.NotCovered = append(p.NotCovered, at.line())
		}
	}
	return p, ""
}

// mustCompile compiles a rule that has to be right.
func mustCompile(r Rule) (*Set, error) {
	s, found := Compile([]Rule{r})
	if len(found) > 0 {
		return nil, found[0]
	}
	return s, nil
}

// folder is where the rule of a call holds: in its workspace.
func (c *examinedCall) folder() string {
	if c.j.w.Root != "" {
		return c.j.w.Root
	}
	if filepath.IsAbs(c.Call.Folder) {
		return filepath.Clean(c.Call.Folder)
	}
	return ""
}

// isCoveredBy reports whether rules allow what was open of a call.
func (c *examinedCall) isCoveredBy(by *Set) bool {
	if len(c.j.doubts) > 0 || c.asked > 0 || c.risk != "" || len(c.open) == 0 {
		return false
	}
	return !slices.ContainsFunc(c.open, func(i item) bool { return !c.isAllowedBy(by, i) })
}

// isAllowedBy reports whether rules allow one act of a call.
func (c *examinedCall) isAllowedBy(by *Set, i item) bool {
	j := *c.j
	j.Set = by
	got, _ := j.allowed(i)
	return got.Effect == Allow
}

func (c *examinedCall) line() string { return Line(c.Call) }

// Line is what a call does, in one line.
func Line(c Call) string {
	text := c.Command
	if text == "" {
		switch d := acts.ReadToolUse(c.Dialect, c.Tool, c.Input); {
		case d.Command != "":
			text = d.Command
		case len(d.Names) > 0:
			text = string(d.Verb) + " " + strings.Join(d.Names, ", ")
		default:
			text = cmp.Or(d.Host, d.Tool, c.Tool)
		}
	}
	return permissions.Brief(strings.Join(strings.Fields(strings.ReplaceAll(text, acts.Computed, "…")), " "), maxLine)
}

const maxLine = 120

// isSimilar reports whether a call does something of another's kind: the same program and subcommand, folder, host or tool.
func (c *examinedCall) isSimilar(other *examinedCall) bool {
	return slices.ContainsFunc(other.open, func(i item) bool {
		return slices.ContainsFunc(c.open, func(k item) bool { return groupKey(i) == groupKey(k) })
	})
}

// groupKey is what acts are grouped by.
func groupKey(i item) string {
	switch i.kind {
	case runs:
		return strings.Join(append([]string{"run"}, i.act.Words[:headOf(i.act.Words)]...), " ")
	case reads, writes:
		return string(i.kind) + " " + path.Dir(i.name)
	}
	return string(i.kind) + " " + i.name
}

// pattern returns the pattern for one act of a call, and in words what it covers. why is set if there is none.
func (c *examinedCall) pattern(i item, past []*examinedCall) (text, says, why string) {
	switch i.kind {
	case runs:
		return c.programPattern(i, past)
	case reads, writes:
		return c.filePattern(i, past)
	case fetches:
		if i.name == "" {
			return "", "", "it reaches an address that programs may read in different ways"
		}
		return "fetch " + i.name, c.Call.Language.Sprintf("any page of %s, and no other host", i.name), ""
	}
	commands, _ := acts.Suspected(c.Call.Tool, c.Call.Input)
	switch {
	case permissions.FollowsFiles(i.name):
		return "", "", "it does what files say that nobody has seen"
	case len(commands) > 0 || permissions.RunsCode(i.name):
		return "", "", "it runs code that it is given"
	case deleting(words(i.name)):
		return "", "", "deletes are asked each time"
	case strings.Contains(i.name, "*"):
		return "", "", "its name has a wildcard"
	}
	says = c.Call.Language.Text("this tool, whatever it is given")
	if server, _, is := strings.Cut(i.name, "/"); is {
		says = c.Call.Language.Sprintf("this tool, whatever it is given; no other tool of %s", server)
	}
	return "tool " + i.name, says, ""
}

func words(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '_' || r == '-' || r == '/' || r == '.' })
}

// deleting reports whether one of these words says that something is removed.
func deleting(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(deletes, strings.ToLower(w)) })
}

// filePattern returns the pattern for a file: this one, or those around it, if three or more were allowed. Around a file that is written
// are those of its kind in a folder of the workspace, as long as no such file runs later by its name; around one that is read elsewhere is
// a folder that is no home folder and not hidden. What looks like a secret is high risk, which no wildcard allows.
func (c *examinedCall) filePattern(i item, past []*examinedCall) (text, says, why string) {
	paths, known := c.j.locationsOf(i.act, i.name)
	switch {
	case !known || len(slices.Compact(paths)) != 1:
		return "", "", "nobody knows which file it is"
	case strings.ContainsAny(paths[0], "*?[]{}\\'\""):
		return "", "", "the file's name has characters that patterns do not have"
	case i.kind == writes && c.inside(paths[0]) && !c.j.w.Writes(paths[0]):
		return "", "", "what is written there runs later"
	}
	name, ext := paths[0], path.Ext(paths[0])
	text, says = quotedPath(i.kind, name), c.Call.Language.Sprintf(oneFile[i.kind], name)
	inside, around, files := c.inside(name), "/**/*"+ext, likeFiles[i.kind]
	least := strings.Count(c.j.w.Root, "/") + 1 // what lies in the workspace's own folder often runs later
	switch {
	case i.kind == reads && !inside:
		least, ext, around, files = 3, "", "/**", "read what is%s in %s and in the folders there; nothing elsewhere"
	case ext == "" || !inside || !c.j.w.Reads(name) || i.kind == writes && acts.LaterExtension(ext):
		return text, says, ""
	}
	same := map[string]bool{name: true}
	for _, p := range past {
		for _, k := range p.open {
			if other, ok := p.j.locationsOf(k.act, k.name); ok && p.Allowed && p.risk == "" && k.kind == i.kind && strings.HasSuffix(other[0], ext) {
				same[other[0]] = true
			}
		}
	}
	at := path.Dir(name)
	for countUnder(same, at) < fewFiles && strings.Count(at, "/") >= least {
		at = path.Dir(at)
	}
	if strings.Count(at, "/") < least || ext == "" && strings.Contains(at, "/.") {
		return text, says, ""
	}
	return quotedPath(i.kind, at+around), c.Call.Language.Sprintf(files, ext, at), ""
}

// What rules about one file, and about those in folders, say.
var (
	oneFile   = map[kind]i18n.Phrase{reads: "read %s, and no other file", writes: "write %s, and no other file"}
	likeFiles = map[kind]i18n.Phrase{
		reads:  "read the files *%s in %s and in the folders there; nothing elsewhere",
		writes: "write the files *%s in %s and in the folders there; nothing elsewhere",
	}
)

func countUnder(files map[string]bool, folder string) (n int) {
	for name := range files {
		if permissions.Within(folder, name) {
			n++
		}
	}
	return n
}

func quotedPath(k kind, name string) string {
	if strings.Contains(name, " ") {
		name = "'" + name + "'"
	}
	return string(k) + " " + name
}

func (c *examinedCall) inside(name string) bool {
	return c.j.w.Root != "" && permissions.Within(c.j.w.Root, name)
}

// programPattern returns the narrowest pattern for a program that is worth a rule: one that covers at least two of the earlier calls, and
// at least half of what the widest one covers; the exact words if there is none.
func (c *examinedCall) programPattern(i item, past []*examinedCall) (text, says, why string) {
	if why := whyNotProposed(i.act); why != "" {
		return "", "", why
	}
	own := shapeOf(i.act)
	own.in = c.Call.Language
	var like []*shape
	var acted []*examinedCall
	var items []item
	for _, p := range past {
		for _, k := range p.open {
			if k.kind == runs && groupKey(k) == groupKey(i) {
				acted, items = append(acted, p), append(items, k)
				if p.Allowed && p.risk == "" && len(p.j.doubts) == 0 && whyNotProposed(k.act) == "" {
					like = append(like, shapeOf(k.act))
				}
				break
			}
		}
	}
	type choice struct {
		candidate
		covers int
	}
	var all []choice
	widest := 0
	for _, next := range own.candidates(like) {
		set, err := mustCompile(Rule{Allow: []string{next.text}})
		if err != nil || !c.isAllowedBy(set, i) {
			continue // as where it runs outside the workspace
		}
		covers, denied := 0, false
		for n, p := range acted {
			if p.isAllowedBy(set, items[n]) {
				covers++
				denied = denied || p.Denied && len(p.open) == 1 && next.text != own.exact()
			}
		}
		if !denied {
			all, widest = append(all, choice{next, covers}), max(widest, covers)
		}
	}
	if len(all) == 0 {
		return "", "", "no rule covers it, because of its words or its folder"
	}
	for _, next := range all {
		if next.covers >= enough && 2*next.covers >= widest {
			return next.text, next.says, ""
		}
	}
	return all[0].text, all[0].says, ""
}

// whyNotProposed returns why no rule is proposed for a program with these words; empty: one may be.
func whyNotProposed(a *acts.Act) string {
	name := baseName(a.Words[0])
	head := a.Words[:headOf(a.Words)]
	subcommand := ""
	if len(head) > 1 {
		subcommand = head[1]
	}
	forced := wildcard{before: "--force"}
	second := slices.Contains(coding, name+"_"+subcommand)
	switch {
	case len(a.Env) > 0:
		return "it sets variables for " + name
	case slices.Contains(states, name):
		return name + " changes what the rest of a command means"
	case deleting(append(slices.Clone(head), name)) || slices.Contains([]string{"unlink", "shred", "truncate", "trash"}, name):
		return "deletes are asked each time"
	case slices.ContainsFunc(a.Words[1:], func(w string) bool {
		return wildcard{before: "--delete"}.catches(w, name, subcommand) && (strings.HasPrefix(w, "--de") || name == "git") ||
			strings.HasPrefix(w, "-") && strings.Contains(w, "delete")
	}):
		return "deletes are asked each time"
	case slices.ContainsFunc(a.Words[1:], func(w string) bool {
		return strings.HasPrefix(w, "--force") || forced.catches(w, name, subcommand) || name == "git" && strings.HasPrefix(w, "+")
	}):
		return "what is forced is asked each time"
	case uses("reaching", a.Words):
		return name + " reaches another host, or acts on the machine or a service"
	case !slices.Contains(runners, name) && !second:
		return ""
	case a.Stdin != "" || a.Piped || slices.Contains(a.Words, "-") || slices.ContainsFunc(a.Words, func(w string) bool {
		return strings.HasPrefix(w, "/dev/")
	}):
		return name + " may run what it reads"
	case second || slices.Contains(builders, name):
		return ""
	case slices.Contains(scripted, name) && len(a.Words) > 1 && a.Words[1] != "" && !strings.HasPrefix(a.Words[1], "-"):
		return ""
	}
	return name + " runs code that it is given"
}

var (
	// builders run what the workspace says by a name.
	builders = strings.Fields("make gmake ninja just mise rake gradle mvn ant")
	// scripted run a file, or a text, that is their first operand.
	scripted = strings.Fields("sh bash dash zsh ksh fish python python2 python3 perl ruby node nodejs deno bun php lua awk gawk mawk")
	// deep have subcommands of subcommands.
	deep = strings.Fields("gh glab aws az gcloud kubectl oc docker podman fly heroku vercel wrangler")
	// harmless are options that change nothing of what a program may do, beside those in the table of package acts; with : a value follows.
	harmless = map[string]string{
		"go":         "-v -race -short -cover -run: -skip: -count: -timeout: -tags: -failfast", // of its subcommands that run no other code
		"git commit": "-m: -a -q -s -v -am: --message: --all --signoff --quiet", "git add": "-A -u -v -N --all --update",
		"git push": "-u --set-upstream -q -v", "git fetch": "-q -v --prune -p --tags -t",
		"git switch": "-c: -q", "git tag": "-a -m:",
		"jq": "-r -c -e -s -n -S --raw-output --compact-output", "curl": "-s -S -L -f -i -I -v --silent --show-error --location --fail --head",
		"mkdir": "-p -v", "cp": "-r -R -p -v -a", "golangci-lint": "--timeout: -v", "gofmt": "-l -d -s -e",
	}
)

// headOf returns how many words a proposal keeps in any case: the program and its subcommands.
func headOf(words []string) int {
	name, n := baseName(words[0]), 1
	named, _ := acts.ListedProgram(words)
	switch {
	case slices.Contains(deep, name):
		n = 3
	case named > 0:
		n = named
	case slices.Contains(subcommands, name):
		n = 2
	case !slices.Contains(readers, name) && !slices.Contains(writers, name) && !slices.Contains(texts, name) &&
		name != "curl" && name != "wget" && name != "cp":
		n = 2 // the first word of a program that is not known may be a subcommand
	}
	n = min(n, len(words))
	for i, word := range words[1:n] {
		if strings.HasPrefix(word, "-") {
			return i + 1
		}
	}
	return n
}

// shape is a command, taken apart.
type shape struct {
	words    []string
	head     int
	operands []int               // the places of words that may vary
	options  map[string]struct{} // those that are harmless, as in a pattern
	rigid    bool                // an option is not known, so only its exact words may stand with it
	fixed    bool                // no word may vary at all
	in       i18n.Language       // of what is said of it
}

func shapeOf(a *acts.Act) *shape {
	words := a.Words
	s := &shape{words: words, head: headOf(words), options: map[string]struct{}{}}
	name, subcommand := words[0], ""
	if len(words) > 1 && hasSubcommands(words[:1]) {
		subcommand = words[1]
	}
	s.fixed = slices.Contains(runners, name) || slices.Contains(coding, name+"_"+subcommand) || strings.Contains(name, "/") ||
		name == "git" && !slices.Contains(varied, subcommand) ||
		hasSubcommands(words[:1]) && s.head < 2
	for n := s.head; n < len(words); n++ {
		word := words[n]
		switch {
		case word == "--":
			s.fixed = true
		case len(word) < 2 || word[0] != '-':
			s.operands = append(s.operands, n)
		default:
			names, next, ok := optionAt(words, n, subcommand)
			for _, o := range names {
				s.options[o] = struct{}{}
			}
			if s.rigid = s.rigid || !ok; next || !ok && n+1 < len(words) && !strings.HasPrefix(words[n+1], "-") {
				n++ // its value, or what may be
			}
		}
	}
	return s
}

// optionAt returns how a pattern names a harmless option, as in "-n *", and whether the next word is its value.
func optionAt(words []string, n int, subcommand string) (names []string, next, ok bool) {
	if names, next, ok = acts.OptionAt(words, n); ok {
		return names, next, ok
	}
	all := strings.Fields(harmless[words[0]] + " " + harmless[words[0]+" "+subcommand])
	name, _, joined := strings.Cut(words[n], "=")
	switch {
	case !joined && slices.Contains(all, name):
		return []string{name}, false, true
	case slices.Contains(all, name+":") && joined && !strings.HasPrefix(name, "--"):
		return []string{name + "=*"}, false, true
	case slices.Contains(all, name+":") && (joined || n+1 < len(words) && plain(words[n+1])):
		return []string{name + " *"}, !joined, true
	case joined || strings.HasPrefix(name, "--"):
		return nil, false, false
	}
	for _, letter := range name[1:] {
		if !slices.Contains(all, "-"+string(letter)) {
			return nil, false, false
		}
		names = append(names, "-"+string(letter))
	}
	return names, false, true
}

// candidate is a pattern that may be proposed.
type candidate struct{ text, says string }

// exact is the pattern of exactly these words; empty if it cannot be written.
func (s *shape) exact() string {
	text := "run"
	for _, word := range s.words {
		one, ok := literalWord(word)
		if !ok {
			return ""
		}
		text += " " + one
	}
	return text
}

// literalWord writes a word without a wildcard.
func literalWord(word string) (text string, ok bool) {
	switch {
	case strings.ContainsFunc(word, isInvisible):
		return "", false
	case word != "" && word != "..." && !strings.ContainsAny(word, " '\"*|#[]{}?\\`$;&<>()"):
		return word, true
	case !strings.Contains(word, "'"):
		return "'" + word + "'", true
	}
	return `"` + word + `"`, !strings.Contains(word, `"`)
}

// candidates returns the patterns for a command, the narrowest first: its words; with * for operands that varied in like ones; with the
// harmless options of these; with any operands.
func (s *shape) candidates(like []*shape) (all []candidate) {
	code := ""
	first := s.words[0]
	if name := baseName(first); slices.Contains(runners, name) || slices.Contains(coding, name+"_"+s.word(1)) || acts.Builds(s.words) ||
		strings.Contains(first, "/") && !strings.HasPrefix(first, "/") {
		code = s.in.Text(". It runs this folder's code, as it is then")
	}
	if text := s.exact(); text != "" {
		all = append(all, candidate{text, s.in.Text("exactly these words") + code})
	}
	if s.fixed {
		return all
	}
	like = slices.DeleteFunc(slices.Clone(like), func(o *shape) bool {
		return o.fixed || !slices.Equal(o.words[:min(o.head, len(o.words))], s.words[:s.head])
	})
	free := s.variableSets(like)
	for _, varies := range free {
		if text, ok := s.write(varies, nil, false); ok {
			all = append(all, candidate{text, s.inWords(varies, nil, false) + code})
		}
	}
	if s.rigid {
		return all
	}
	for _, varies := range append([][]int{nil}, free...) {
		options := s.optionsOf(like, func(o *shape) bool { return s.equal(o, varies) })
		if text, ok := s.write(varies, options, true); ok {
			all = append(all, candidate{text, s.inWords(varies, options, false) + code})
		}
	}
	if s.takesRest() {
		options := s.optionsOf(like, func(*shape) bool { return true })
		text := strings.Join(s.words[:s.head], " ") + bracketed(options) + " ..."
		all = append(all, candidate{"run " + text, s.inWords(nil, options, true) + code})
	}
	return all
}

// takesRest reports whether a rule may be for any words after the program.
func (s *shape) takesRest() bool {
	_, kind := acts.ListedProgram(s.words)
	return slices.Contains([]string{"reads", "pattern", "words", "text", "packages"}, kind) ||
		slices.Contains([]string{"git add", "jq"}, strings.Join(s.words[:s.head], " "))
}

// WhyNotGiven returns why a rule with these patterns would not be proposed: a wildcard stands for more than files and names that are read,
// as earlier versions let it. It is empty if none does.
func WhyNotGiven(allow []string) string {
	for _, text := range allow {
		p, err := parse(text, Allow)
		if err != nil || p.kind != runs || p.exact {
			continue
		}
		a := &acts.Act{Kind: acts.Run}
		for _, w := range p.words {
			gap := ""
			if w[0].star {
				gap = "x" // any word
			}
			a.Words = append(a.Words, w[0].before+gap+w[0].after)
		}
		if why := whyNotProposed(a); why != "" {
			return why
		}
		s := shapeOf(a)
		for at, w := range p.words {
			operand := slices.Index(s.operands, at)
			if len(w) > 1 || w.open() && (s.fixed || operand < 0 || s.isConstant(operand)) || p.rest && !s.takesRest() {
				return fmt.Sprintf("%q is for more than files and names that are read", text)
			}
		}
	}
	return ""
}

func (s *shape) word(n int) string {
	if n < len(s.words) {
		return s.words[n]
	}
	return ""
}

// variableSets returns sets of operands that may vary, since they did: each by itself, then all together.
func (s *shape) variableSets(like []*shape) (sets [][]int) {
	var together []int
	for at := range s.operands {
		if s.isConstant(at) {
			continue
		}
		if slices.ContainsFunc(like, func(o *shape) bool {
			return s.equal(o, []int{at}) && o.words[o.operands[at]] != s.words[s.operands[at]]
		}) {
			sets = append(sets, []int{at})
		}
		if slices.ContainsFunc(like, func(o *shape) bool {
			return len(o.operands) == len(s.operands) && o.words[o.operands[at]] != s.words[s.operands[at]]
		}) {
			together = append(together, at)
		}
	}
	if len(together) > 1 {
		sets = append(sets, together)
	}
	return sets
}

// isConstant reports whether an operand never varies: what is not known to be a file or a name that only reads, a remote of git, a mode or
// owner of files, and an address that is not judged by itself.
func (s *shape) isConstant(at int) bool {
	word := s.words[s.operands[at]]
	_, address := addressOf(word)
	first := s.words[0] == "git" && slices.Contains([]string{"push", "fetch"}, s.word(1)) ||
		slices.Contains([]string{"chmod", "chown", "chgrp"}, s.words[0])
	vary, _ := variableOperands(s.words)
	return !vary || first && at == 0 || address && s.words[0] != "curl" && s.words[0] != "wget" || !address && !plain(word)
}

// equal reports whether another command has the same operands, except for these.
func (s *shape) equal(o *shape, except []int) bool {
	if len(o.operands) != len(s.operands) {
		return false
	}
	for at := range s.operands {
		if !slices.Contains(except, at) && o.words[o.operands[at]] != s.words[s.operands[at]] {
			return false
		}
	}
	return true
}

// optionsOf returns the harmless options of this command and of those like it.
func (s *shape) optionsOf(like []*shape, use func(*shape) bool) (all []string) {
	for _, o := range append([]*shape{s}, like...) {
		if o == s || !o.rigid && use(o) {
			for name := range o.options {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func bracketed(options []string) (text string) {
	for _, o := range options {
		text += " [" + o + "]"
	}
	return text
}

// write writes a pattern in which these operands are *. With loose, the options may be there or not; otherwise they stand as they are.
func (s *shape) write(varies []int, options []string, loose bool) (text string, ok bool) {
	text = "run"
	at := 0
	for n, word := range s.words {
		operand := at < len(s.operands) && s.operands[at] == n
		if operand {
			at++
		}
		switch one, fine := literalWord(word); {
		case operand && slices.Contains(varies, at-1):
			text += " *"
		case operand || n < s.head || !loose:
			if !fine {
				return "", false
			}
			text += " " + one
		}
		if n == s.head-1 && loose {
			text += bracketed(options)
		}
	}
	return text, true
}

// inWords says what a pattern covers and what it does not.
func (s *shape) inWords(varies []int, options []string, rest bool) string {
	head := strings.Join(s.words[:s.head], " ")
	_, files := variableOperands(s.words)
	text := ""
	switch {
	case rest && files:
		text = s.in.Sprintf("%s of anything in the workspace", head)
	case rest:
		text = s.in.Sprintf("%s with any words", head)
	case len(varies) > 0:
		text = s.in.Sprintf("%s with any one word for each *", head)
	default:
		text = s.in.Sprintf("%s with these words", head)
	}
	if len(options) > 0 {
		text += s.in.Sprintf(", with or without %s", strings.ReplaceAll(strings.Join(options, ", "), " *", ""))
	}
	switch {
	case head == "git push":
		return text + s.in.Text(". Not: --force, +branch, :branch, other remotes")
	case head == "git fetch":
		return text + s.in.Text(". Not: other remotes")
	case files:
		return text + s.in.Text(". Not: other options, or anything outside the workspace")
	}
	return text + s.in.Text(". Not: other options")
}
