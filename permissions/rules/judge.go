package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/acts"
	"github.com/daycared/daycared/permissions/i18n"
)

// Call is one call that is judged.
type Call struct {
	Agent   string // the caller's proven name
	Person  string // the agent's owner; empty: nobody
	Dialect string // see [acts.ReadToolUse]
	Tool    string
	Input   json.RawMessage
	// Condensed marks an input that was too large for its question and was read from what people are shown: no rule allows it.
	Condensed bool
	Command   string // instead of Tool and Input: the text of a command
	Folder    string // where the call runs, absolute; empty: unknown
	Root      string // the workspace, absolute; empty: none, so nothing lies inside it
	// Resolve resolves the links of an absolute name on the machine where the call runs, and returns "" if nobody knows where it leads.
	// With a slash behind it, the name of what is no folder leads nowhere. Nil: nothing is known of that machine.
	Resolve func(name string) string
	// Leads is what is told or stored of where names lead: only rules that restrict go by it for what Resolve does not know.
	Leads permissions.Leads
	At    time.Time // when it is judged; rules end by it
	// Language is that of the words of a proposal.
	Language i18n.Language

	now time.Time
}

// Verdict is what the rules say of a call.
type Verdict struct {
	Effect  Effect // empty: no rule covers all of it
	Rule    int    // the number of the rule that decides, counted from 1; 0: none
	Why     string // of that rule
	Exact   bool   // of Allow: only rules without wildcard cover it
	Granted []int  // of Allow: the rules of the granted set that it needs, counted from 1
	Acts    []Judged
	Reasons []string // why it is not allowed
	Unsure  bool     // a deny or ask rule about files or hosts may be about one that the call does not name
}

// Judged is one act of a call with the rule that covers it.
type Judged struct {
	Text   string `json:"act"`
	Effect Effect `json:"effect"` // empty: no rule covers it
	Rule   int    `json:"rule,omitempty"`
	By     string `json:"by,omitempty"`     // the pattern or starter set of that rule
	Grant  int    `json:"-"`                // instead of Rule: one of the granted set
	Reason string `json:"reason,omitempty"` // why it is not allowed
}

// item is an act that is judged by itself.
type item struct {
	kind   kind
	act    *acts.Act // of a tool, or of a host alone: an empty one
	name   string    // a file, a host or a tool
	hidden bool      // found where it may run, so only deny and ask rules look at it
	search bool      // of a read: also what lies in it, if it is a folder
	inside bool      // of a read: reading in the workspace needs no rule of its own
	may    bool      // it may be done or not: what falls under a deny or ask rule is no more than asked about
	into   string    // of a write: the folder that it is in, if that is none but a file itself
}

func (i item) text() string {
	if i.kind == runs {
		return strings.ReplaceAll("run "+strings.Join(i.act.Words, " "), acts.Computed, "…")
	}
	return strings.ReplaceAll(string(i.kind)+" "+i.name, acts.Computed, "…")
}

// NamesToResolve returns the absolute names whose links a judge of the call needs resolved, at most so many bytes of them, and one more;
// and the text of a command, or of the input of a tool that is not known, in which others may stand. Without whole, there are more: those,
// what a command computes, or what cannot be read.
func NamesToResolve(c Call, most int) (all []string, text string, whole bool) {
	seen, size, computed := map[string]bool{}, 0, false
	add := func(name string) {
		if !filepath.IsAbs(name) || seen[name] || size > most {
			return
		}
		if strings.Contains(name, acts.Computed) {
			computed = true
			return
		}
		seen[name], size = true, size+len(name)
		all = append(all, name)
	}
	j := &judge{Set: &Set{}, Call: c}
	j.w.Resolve = func(string) string { return "" }
	j.readItems()
	add(c.Root)
	add(c.Folder)
	d := acts.ReadToolUse(c.Dialect, c.Tool, c.Input)
	if c.Tool != "" && (d.Verb == acts.Calls || d.Verb == acts.HasNoEffect) {
		computed = computed || acts.CodeIn(c.Input) || slices.ContainsFunc(textsIn(c.Input), func(t inputText) bool { return isGlob(t.text) })
	}
	for _, i := range j.items {
		computed = computed || i.act.GetsCode()
		parts := []string{i.name}
		for _, word := range i.act.Words {
			_, value, _ := strings.Cut(word, "=")
			parts = append(parts, word, value, strings.TrimSuffix(word, "..."))
			for _, part := range strings.FieldsFunc(word, func(r rune) bool { return r == ':' || r == ')' }) {
				parts = append(parts, strings.TrimLeft(part, "/!^"))
			}
		}
		if i.kind == runs && takesWhole(i.act.Words) != "" {
			parts = append(parts, asFoldersToo(operandsOf(i.act))...)
			for _, folder := range i.act.In {
				for at := path.Clean(folder); i.act.Words[0] == "git" && permissions.Within(c.Root, at) && at != "/"; at = path.Dir(at) {
					add(repositoryHead(at))
					add(repositoryHead(at) + "/")
				}
			}
		}
		if i.search {
			parts = append(parts, i.name+"/", path.Dir(i.name))
		}
		if i.kind == runs && !readsNoFolder(i.act.Words) {
			parts = append(parts, asFoldersToo(partsOf(i.act.Words))...)
		}
		if i.kind == runs {
			parts = append(parts, manifestsOf(i.act, c.Root)...)
		}
		for _, folder := range i.act.In {
			add(folder)
			for _, part := range parts {
				if part != "" {
					add(acts.Under(folder, part))
					add(filepath.Clean(acts.Under(folder, part)))
				}
			}
		}
	}
	return all, j.text(d), size <= most && len(j.loose) == 0 && len(j.doubts) == 0 && !computed
}

// asFoldersToo returns names, and each as that of a folder.
func asFoldersToo(names []string) (all []string) {
	for _, name := range names {
		all = append(all, name, name+"/")
	}
	return all
}

// text is what stands in a command, in a pattern of names, or in the input of a tool that is not known.
func (j *judge) text(d acts.ToolUse) string {
	texts := []string{j.Command, d.Command, d.Pattern}
	seen := map[*acts.Act]bool{}
	for _, i := range j.items {
		if i.act.Kind == acts.Run && !seen[i.act] {
			seen[i.act] = true
			texts = append(append(append(texts, i.act.Words...), i.act.Env...), i.act.Stdin)
		}
	}
	if verbs := []acts.Verb{acts.Calls, acts.HasNoEffect, acts.Fetches, acts.RunsInSession, acts.RunsElsewhere}; j.Tool != "" &&
		slices.Contains(verbs, d.Verb) {
		for _, t := range textsIn(j.Input) {
			texts = append(texts, t.text)
		}
	}
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "\n")
}

// judge judges one call.
type judge struct {
	*Set
	Call
	w      acts.Workspace
	items  []item
	loose  []iter.Seq[acts.Act] // of texts that cannot be parsed
	doubts []string
	unread bool // a command for a tool that is not known does more than is read of it
}

// Judge decides about a call.
func (s *Set) Judge(c Call) (v Verdict) { return s.JudgeWith(c, nil) }

// JudgeWith is Judge where acts that s does not cover may be covered by allow rules that people gave. Both may be nil.
func (s *Set) JudgeWith(c Call, granted *Set) (v Verdict) {
	if s == nil {
		s = newSet()
	}
	j := newJudge(s, c)
	v.Exact = true
	allowed, restricts := len(j.doubts) == 0, j.restrictsFiles()
	v.Reasons, v.Unsure = slices.Clone(j.doubts), restricts && len(j.doubts)+len(j.loose) > 0 || j.unread
	shown := 0
	for _, i := range j.items {
		if judged, restricted := j.restrict(i, &v); judged {
			allowed = allowed && !restricted
			continue
		}
		shown++
		got, exact := j.allowedWith(i, granted)
		n := j.searched(i)
		v.Unsure = v.Unsure || n > 0 || restricts && i.act.Computes()
		if n > 0 && got.Effect == Allow {
			got = Judged{Reason: searchesThrough(n)}
		}
		if v.Exact = v.Exact && exact; got.Effect != Allow {
			allowed = false
		}
		v.note(i, got, nil)
	}
	if i, e, p := j.strictest(); p != nil {
		v.note(i, Judged{Effect: e, Rule: p.rule.n, By: p.text}, p)
		allowed = false
	}
	if allowed && shown > 0 && v.Effect == "" {
		v.Effect = Allow
		for _, one := range v.Acts {
			if v.Rule = cmp.Or(one.Rule, v.Rule); one.Grant > 0 && !slices.Contains(v.Granted, one.Grant) {
				v.Granted = append(v.Granted, one.Grant)
			}
		}
	}
	if v.Effect != Allow {
		v.Exact = false
	}
	return v
}

func searchesThrough(rule int) string {
	return fmt.Sprintf("it searches through or takes whole a folder in which rule %d may be about files", rule)
}

// restrict notes what deny and ask rules say of an item. It reports whether no allow rule is needed or counts any more, and whether the
// call is not to be allowed.
func (j *judge) restrict(i item, v *Verdict) (judged, restricted bool) {
	if i.may {
		n := j.restricted(i)
		if n > 0 {
			v.note(i, Judged{Reason: fmt.Sprintf("a text in it may name what rule %d is about", n)}, nil)
			v.Unsure = true
		}
		return true, n > 0
	}
	for _, e := range []Effect{Deny, Ask} {
		p := j.restrictedBy(i, e)
		if p == nil {
			continue
		}
		if e == Deny && j.isLeft(i) {
			e = Ask
		}
		v.note(i, Judged{Effect: e, Rule: p.rule.n, By: p.text}, p)
		return true, true
	}
	unreadable := i.kind == fetches && i.name == "" && j.restrictsHosts()
	if v.Unsure = v.Unsure || unreadable; !i.hidden {
		return false, unreadable
	}
	n := j.searched(i)
	switch {
	case unreadable:
		v.note(i, Judged{Reason: unreadableAddress}, nil)
	case n > 0:
		v.note(i, Judged{Reason: searchesThrough(n)}, nil)
	}
	v.Unsure = v.Unsure || n > 0 || i.kind == runs && i.act.Computes() && j.restrictsFiles()
	return true, unreadable || n > 0
}

// isLeft reports whether a deny rule is about an item only in a folder that a cd before && has left, so that people may decide about it.
func (j *judge) isLeft(i item) bool {
	entered := i
	entered.act = i.act.Entered()
	return (i.kind == reads || i.kind == writes) && len(entered.act.In) > 0 && j.restrictedBy(entered, Deny) == nil
}

// allowedWith is allowed, with the rules that people gave for what the set does not cover.
func (j *judge) allowedWith(i item, granted *Set) (got Judged, exact bool) {
	got, exact = j.allowed(i)
	if got.Effect == Allow || granted.Len() == 0 {
		return got, exact
	}
	by := *j
	by.Set = granted
	if more, _ := by.allowed(i); more.Effect == Allow {
		return Judged{Effect: Allow, Grant: more.Rule}, false
	}
	return got, exact
}

// restrictsFiles reports whether a deny or ask rule for the call is about files.
func (j *judge) restrictsFiles() bool {
	return slices.ContainsFunc(j.guarding, func(p *pattern) bool { return p.rule.applies(j) })
}

// restrictsCommands reports whether a deny or ask rule for the call is about what commands do.
func (j *judge) restrictsCommands() bool {
	for _, e := range []Effect{Deny, Ask} {
		for _, all := range j.programs[e] {
			if slices.ContainsFunc(all, func(p *pattern) bool { return p.rule.applies(j) }) {
				return true
			}
		}
	}
	return j.restrictsFiles() || j.restrictsHosts()
}

// restrictsHosts reports whether a deny or ask rule is about hosts.
func (j *judge) restrictsHosts() bool {
	return len(j.others[Deny][fetches])+len(j.others[Ask][fetches]) > 0
}

func newJudge(s *Set, c Call) *judge {
	if c.now.IsZero() {
		c.now = c.At
	}
	j := &judge{Set: s, Call: c}
	if j.w.Resolve = c.Resolve; c.Resolve == nil {
		j.w.Resolve = c.Leads.Follow
	}
	if c.Root != "" {
		j.w.Root = j.w.Resolve(c.Root)
	}
	j.readItems()
	return j
}

// note adds what was found about an act. The strongest effect decides.
func (v *Verdict) note(i item, j Judged, by *pattern) {
	j.Text = i.text()
	v.Acts = append(v.Acts, j)
	switch {
	case by != nil && (v.Effect == "" || v.Effect == Ask && j.Effect == Deny):
		v.Effect, v.Rule, v.Why = j.Effect, j.Rule, by.rule.Why
	case j.Effect == "":
		v.Reasons = append(v.Reasons, j.Reason)
	}
}

// readItems makes the items of the call.
func (j *judge) readItems() {
	command, altered, folder := j.Command, "", j.Folder
	if j.Condensed {
		j.addDoubt("its input is too large")
	}
	if j.Tool != "" {
		d := acts.ReadToolUse(j.Dialect, j.Tool, j.Input)
		asks := d.Verb == acts.Calls || d.Verb == acts.HasNoEffect
		j.items = append(j.items, item{kind: tools, act: &acts.Act{}, name: cmp.Or(d.Tool, j.Tool), hidden: !asks})
		for _, name := range d.Others {
			j.items = append(j.items, item{kind: tools, act: &acts.Act{}, name: name})
		}
		switch d.Verb {
		case acts.RunsInSession:
			j.addDoubt("its shell keeps the folder and the variables of earlier commands")
		case acts.RunsElsewhere:
			folder = acts.Computed
			j.addDoubt("nobody said in which folder it runs")
		case acts.Views, acts.Writes, acts.Patches, acts.Lists:
			j.addFiles(d, folder)
			return
		case acts.Fetches:
			j.items = append(j.items, item{kind: fetches, act: &acts.Act{}, name: d.Host})
			if j.restrictsHosts() {
				for _, t := range textsIn(j.Input) {
					j.hostsWithin(t.text, j.fetches())
				}
			}
			return
		case acts.Calls, acts.HasNoEffect:
			j.addOtherTool(d)
			return
		}
		command, altered = d.Command, d.Altered
		if d.Folder != "" { // as a cd before it
			folder = acts.Under(folder, d.Folder)
			at := &acts.Act{In: []string{j.Folder}}
			j.items = append(j.items, item{kind: reads, act: at, name: d.Folder, inside: true, hidden: j.isWorkspaceFolder(folder)})
		}
	}
	if !filepath.IsAbs(folder) && folder != acts.Computed {
		j.addDoubt("nobody said in which folder it runs")
		folder = acts.Computed
	}
	j.doubts = append(j.doubts, j.addCommand(command, folder)...)
	if altered != "" {
		j.addDoubt("the agent may run another command than it says")
		j.doubts = append(j.doubts, j.addCommand(altered, folder)...)
	}
}

// addFiles adds the files that a tool names which reads, lists or writes them.
func (j *judge) addFiles(d acts.ToolUse, folder string) {
	k := writes
	if d.Verb == acts.Views || d.Verb == acts.Lists {
		k = reads
	}
	search := namesSearch(j.Tool)
	for _, name := range d.Names {
		if name == "" && search && j.Dialect == "gemini" { // it may search other folders that it was given, too
			j.items = append(j.items, item{kind: reads, act: &acts.Act{In: []string{"/"}}, name: "/", search: true, hidden: true})
		}
		if name == "" && (search || d.Verb == acts.Lists) { // in the folder of the call
			name = "."
		}
		a := &acts.Act{Kind: acts.Read, Words: []string{name}, In: []string{folder}}
		j.items = append(j.items, item{kind: k, act: a, name: name, search: search})
		if search && j.Dialect == "opencode" && !j.mayBeFolder(a, name) { // it searches the whole folder that a file is in
			for _, at := range j.namesOf(item{act: a, name: name}) {
				j.items = append(j.items, item{kind: k, act: a, name: filepath.Dir(at), search: true})
			}
		}
	}
	if why := d.WhyWider(); why != "" {
		j.addDoubt(why)
	}
}

// addOtherTool adds what a tool may do of which no more is known than its input.
func (j *judge) addOtherTool(d acts.ToolUse) {
	if d.Loose {
		j.addDoubt("nobody said in which folder it runs")
	}
	for _, name := range d.Names {
		j.items = append(j.items, item{kind: reads, act: &acts.Act{In: []string{j.Folder}}, name: name, hidden: true})
	}
	j.addSuspected(d.Command)
	if j.Dialect == "cursor" { // it does not say the name of the server
		j.addServerTools(strings.TrimPrefix(strings.TrimPrefix(d.Tool, "mcp__"), "MCP:"))
	}
	if namesSearch(d.Tool) && !strings.Contains(d.Tool, "/") { // of no server, so it is in the folder of the call
		j.items = append(j.items, item{kind: reads, act: &acts.Act{In: []string{j.Folder}}, name: ".", search: true, may: true})
	}
}

// addCommand adds what a command does, and returns the doubts about it.
func (j *judge) addCommand(text, folder string) []string {
	r := acts.ReadCommand(text, folder)
	for i := range r.Acts {
		j.addAct(&r.Acts[i])
	}
	if len(j.items) > maxItems {
		r.Unparsed = append(r.Unparsed, text)
	}
	for _, part := range r.Unparsed {
		j.loose = append(j.loose, acts.ReadLoosely(part, folder))
	}
	return r.Doubts
}

// strictest returns the deny pattern that what cannot be parsed falls under, or else the ask pattern, and the item that does.
func (j *judge) strictest() (i item, e Effect, p *pattern) {
	for _, text := range j.loose {
		for a := range text {
			for _, may := range []item{{kind: runs, act: &a}, {kind: writes, act: &a, name: a.Words[0]}} {
				if by := j.restrictedBy(may, Deny); by != nil {
					return may, Deny, by
				}
				if by := j.restrictedBy(may, Ask); p == nil && by != nil {
					i, e, p = may, Ask, by
				}
			}
		}
	}
	return i, e, p
}

// addSuspected adds what the input of a tool that is not known says that it does, for deny and ask rules. typed is what it types into a
// shell.
func (j *judge) addSuspected(typed string) {
	commands, files := acts.Suspected(j.Tool, j.Input)
	if len(commands) > maxCommands && j.restrictsCommands() {
		j.addDoubt("its input has more commands than are looked at")
		j.unread = true
	}
	commands = commands[:min(len(commands), maxCommands)]
	if typed != "" {
		commands = append(commands, typed)
	}
	for _, text := range commands {
		at := len(j.items)
		doubts := j.addCommand(text, cmp.Or(j.Folder, acts.Computed))
		for i := at; i < len(j.items); i++ {
			j.items[i].hidden = true
		}
		computes := func(i item) bool { return i.kind == runs && i.act.Computes() }
		if (len(doubts) > 0 || slices.ContainsFunc(j.items[at:], computes)) && j.restrictsCommands() {
			j.addDoubt("its command does more than can be read of it")
			j.unread = true
		}
	}
	for _, name := range acts.Renamed(j.Dialect, files) {
		j.items = append(j.items, item{kind: writes, act: &acts.Act{In: []string{j.Folder}}, name: name, hidden: true})
	}
	if slices.ContainsFunc(textsIn(j.Input), func(t inputText) bool { return t.text == acts.FileElsewhere }) {
		j.addDoubt("the agent may change another file than it names")
	}
	j.addTexts()
}

// addServerTools adds that a tool may be one of a server that deny and ask rules name.
func (j *judge) addServerTools(tool string) {
	for _, p := range slices.Concat(j.others[Deny][tools], j.others[Ask][tools]) {
		if server, _, is := strings.Cut(p.name, "/"); is {
			j.items = append(j.items, item{kind: tools, act: &acts.Act{}, name: server + "/" + tool, may: true})
		}
	}
}

func (j *judge) addDoubt(text string) { j.doubts = append(j.doubts, text) }

// maxCommands are the most commands of a tool that is not known that are read.
const maxCommands = 50

// maxItems bounds what one call is judged by.
const maxItems = 2000

// addAct adds an act of a command with everything that it does.
func (j *judge) addAct(a *acts.Act) {
	if len(j.items) > maxItems {
		if len(j.doubts) == 0 {
			j.addDoubt("it does too much to be judged")
		}
		return
	}
	switch a.Kind {
	case acts.Read, acts.Write:
		if host, is := acts.SocketHost(a.Words[0]); is {
			j.items = append(j.items, item{kind: fetches, act: &acts.Act{}, name: host})
			return
		}
		if a.Words[0] == "/dev/null" {
			return
		}
		k := reads
		if a.Kind == acts.Write {
			k = writes
		}
		j.items = append(j.items, item{kind: k, act: a, name: a.Words[0], inside: true})
	case acts.Enter:
		j.items = append(j.items, item{kind: reads, act: a, name: a.Words[0], inside: true},
			item{kind: runs, act: &acts.Act{Kind: acts.Run, Words: []string{"cd", a.Words[0]}}, hidden: true})
	case acts.Run:
		for len(a.Words) > 3 && a.Words[0] == "git" && a.Words[1] == "-C" { // as a cd before it
			for _, folder := range slices.Clone(a.In) {
				if to := acts.Under(folder, a.Words[2]); filepath.Clean(to) != folder {
					a.In = append(a.In, to)
				}
			}
			j.items = append(j.items, item{kind: reads, act: a, name: ".", inside: true})
			a.Words = append([]string{"git"}, a.Words[3:]...)
		}
		j.items = append(j.items, item{kind: runs, act: a})
		for _, words := range a.Through {
			j.items = append(j.items, item{kind: runs, act: &acts.Act{Kind: acts.Run, Words: words, In: a.In}, hidden: true})
		}
		j.addOperands(a, false)
		within := a.Within()
		for n := range within {
			inner := &within[n]
			if inner.Kind != acts.Run {
				j.items = append(j.items, item{kind: writes, act: inner, name: inner.Words[0], hidden: true})
				continue
			}
			j.items = append(j.items, item{kind: runs, act: inner, hidden: true})
			j.addOperands(inner, true)
		}
	}
}

// applies reports whether a rule's conditions are met.
func (c *compiled) applies(j *judge) bool {
	return (c.Until.IsZero() || j.now.Before(c.Until)) &&
		(len(c.Agents) == 0 || slices.ContainsFunc(c.Agents, func(p string) bool { return fitsName(p, j.Agent) })) &&
		(len(c.People) == 0 || j.Person != "" && slices.Contains(c.People, j.Person)) &&
		(c.In == "" || j.isIn(c))
}

func fitsName(pattern, name string) bool {
	ok, _ := permissions.MatchName(pattern, name)
	return ok && name != ""
}

// isIn reports whether the call is in the folder of a rule. A rule that restricts holds wherever it may be meant.
func (j *judge) isIn(c *compiled) bool {
	told := filepath.IsAbs(j.Folder) && permissions.Within(c.In, filepath.Clean(j.Folder))
	leads := j.w.Resolve(j.Folder)
	if c.effect != Allow {
		return told || permissions.Within(c.In, leads)
	}
	if j.Resolve == nil {
		return told
	}
	return leads != "" && permissions.Within(c.In, leads)
}

// restrictedBy returns the first deny or ask pattern that an item falls under.
func (j *judge) restrictedBy(i item, e Effect) *pattern {
	first := func(all []*pattern, fits func(*pattern) bool) *pattern {
		for _, p := range all {
			if fits(p) && p.rule.applies(j) && (!i.may || !p.path.fitsAll()) {
				return p
			}
		}
		return nil
	}
	switch i.kind {
	case runs:
		for _, words := range [][]string{i.act.Words, moduleOf(i.act.Words)} {
			if len(words) == 0 {
				continue
			}
			for _, name := range programNames(words[0]) {
				if p := first(j.programs[e][name], func(p *pattern) bool { return p.catches(words) }); p != nil {
					return p
				}
			}
		}
		return nil
	case reads, writes:
		if len(j.paths[e][reads])+len(j.paths[e][writes]) == 0 {
			return nil
		}
		names := j.namesOf(i)
		of := j.files(e, reads, names) // what may not be read may not be written
		if i.kind == writes {
			of = slices.Concat(j.files(e, writes, names), of)
		}
		return first(of, func(p *pattern) bool {
			return slices.ContainsFunc(names, func(name string) bool {
				return p.path.fits(name, j.w.Root, true) || p.path.here && p.path.fits(name, j.Root, true)
			})
		})
	case fetches:
		return first(j.others[e][fetches], func(p *pattern) bool { return p.fitsHost(i.name) })
	}
	return first(j.others[e][tools], func(p *pattern) bool {
		return p.fitsTool(j.Dialect, i.name, e) || !strings.Contains(j.Tool, "...") && p.fitsTool(j.Dialect, j.Tool, e) // that one is cut
	})
}

// namesOf returns every absolute name by which a file may be meant.
func (j *judge) namesOf(i item) (all []string) {
	for _, folder := range i.act.In {
		at := acts.Under(folder, i.name)
		if strings.HasPrefix(i.name, "~") || !filepath.IsAbs(at) {
			at = "/" + strings.TrimPrefix(at, "/")
		}
		all = append(all, filepath.Clean(at))
		for _, name := range []string{at, filepath.Clean(at)} {
			if leads := cmp.Or(j.w.Resolve(name), j.Leads.Follow(name)); leads != "" && !slices.Contains(all, leads) {
				all = append(all, leads)
			}
		}
	}
	return all
}

// locationsOf returns where a file is, by every way to read its name; ok is false if nobody knows.
func (j *judge) locationsOf(a *acts.Act, name string) (all []string, ok bool) {
	if j.Resolve == nil || name == "" || strings.Contains(name, acts.Computed) || strings.HasPrefix(name, "~") {
		return nil, false
	}
	for _, folder := range a.In {
		at := acts.Under(folder, name)
		if !filepath.IsAbs(at) || strings.Contains(at, acts.Computed) {
			return nil, false
		}
		for _, name := range []string{at, filepath.Clean(at)} {
			to := j.w.Resolve(name)
			if to == "" {
				return nil, false
			}
			all = append(all, to)
		}
	}
	return all, len(all) > 0
}

const unreadableAddress = "it reaches an address that programs may read in different ways"

// allowed decides about an item that no deny or ask rule catches.
func (j *judge) allowed(i item) (got Judged, exact bool) {
	switch i.kind {
	case runs:
		return j.allowedRun(i.act)
	case reads, writes:
		return j.allowedFile(i)
	case fetches:
		for _, p := range j.others[Allow][fetches] {
			if p.fitsHost(i.name) && p.rule.applies(j) {
				return Judged{Effect: Allow, Rule: p.rule.n, By: p.text}, p.exact
			}
		}
		if i.name == "" {
			return Judged{Reason: unreadableAddress}, false
		}
		return Judged{Reason: "no rule allows to reach " + i.name}, false
	}
	if permissions.OfAnotherServer(j.Dialect, j.Tool, j.Input) {
		return Judged{Reason: "it is a tool of another server than its name says"}, false
	}
	for _, p := range j.others[Allow][tools] {
		if p.fitsTool(j.Dialect, i.name, Allow) && p.rule.applies(j) {
			return Judged{Effect: Allow, Rule: p.rule.n, By: p.text}, p.exact
		}
	}
	return Judged{Reason: "no rule allows the tool " + i.name}, false
}

func (j *judge) allowedFile(i item) (got Judged, exact bool) {
	if i.into != "" { // a rule for that path says so; a starter set is about the file
		itself := item{kind: i.kind, act: i.act, name: i.into}
		if got, exact = j.allowedFile(itself); got.Effect == Allow && !slices.Contains(Sets(), got.By) {
			return got, exact
		}
	}
	paths, known := j.locationsOf(i.act, i.name)
	if !known {
		return Judged{Reason: fmt.Sprintf("nobody knows where %s leads", strings.ReplaceAll(i.name, acts.Computed, "…"))}, false
	}
	of := j.files(Allow, writes, paths) // what may be written may be read
	if i.kind == reads {
		of = slices.Concat(j.files(Allow, reads, paths), of)
	}
	for _, p := range of {
		if !slices.ContainsFunc(paths, func(name string) bool { return !p.path.fits(name, j.w.Root, false) }) && p.rule.applies(j) {
			return Judged{Effect: Allow, Rule: p.rule.n, By: p.text}, p.exact
		}
	}
	if i.kind == reads && i.inside && j.inWorkspace(i.act, i.name) {
		return Judged{Effect: Allow}, true
	}
	for _, r := range j.rules {
		if r.set == nil || !r.applies(j) || j.w.Root == "" {
			continue
		}
		may := r.set.reads
		if i.kind == writes {
			may = r.set.writes
		}
		if may != nil && !slices.ContainsFunc(i.act.In, func(folder string) bool { return !may(j.w, acts.Under(folder, i.name)) }) {
			return Judged{Effect: Allow, Rule: r.n, By: r.Use}, false
		}
	}
	verb := map[kind]string{reads: "read", writes: "write"}[i.kind]
	return Judged{Reason: fmt.Sprintf("no rule allows to %s %s", verb, paths[0])}, false
}

// inWorkspace reports whether a name leads to something in the workspace that does not look like a secret.
func (j *judge) inWorkspace(a *acts.Act, name string) bool {
	return j.w.Root != "" && j.Resolve != nil && !strings.HasPrefix(name, "~") &&
		!slices.ContainsFunc(a.In, func(folder string) bool { return !j.w.Reads(acts.Under(folder, name)) })
}

// allowedRun decides about a program. Its files and hosts are items of their own.
func (j *judge) allowedRun(a *acts.Act) (got Judged, exact bool) {
	if len(a.Words) == 0 || strings.Contains(a.Words[0], acts.Computed) {
		return Judged{Reason: "which program it runs is computed when it runs"}, false
	}
	line := strings.ReplaceAll(strings.Join(a.Words, " "), acts.Computed, "…")
	if !j.mayRunIn(a) {
		return Judged{Reason: fmt.Sprintf("%s may run outside the workspace", line)}, false
	}
	reason := fmt.Sprintf("no rule allows to run %s", line)
	for _, p := range j.programs[Allow][a.Words[0]] {
		wild, ok := p.covers(a.Words)
		if !ok || !p.rule.applies(j) {
			continue
		}
		why := p.rule.forbidsEnv(a)
		switch {
		case why != "":
		case p.rule.set != nil && j.w.MayLeave(*a):
			why = "git may run what another folder's repository says"
		case (a.Piped || a.Fed || a.Stdin != "") && slices.Contains(obeying, a.Words[0]):
			why = "it runs what it reads from its input"
		default:
			why = cmp.Or(j.whyLeaves(a, wild), j.whyLinked(a))
		}
		if why == "" {
			return Judged{Effect: Allow, Rule: p.rule.n, By: p.text}, p.exact
		}
		reason = fmt.Sprintf("rule %d would allow %s, but %s", p.rule.n, line, why)
	}
	for _, r := range j.rules {
		if r.set != nil && r.set.runs != nil && len(a.Env) == 0 && r.applies(j) && j.w.Root != "" && j.Resolve != nil && r.set.runs(j.w, *a) {
			return Judged{Effect: Allow, Rule: r.n, By: r.Use}, false
		}
	}
	return Judged{Reason: reason}, false
}

// mayRunIn reports whether a program may run in its folder at all. Elsewhere than here only programs that read what they are given run
// nothing that lies there.
func (j *judge) mayRunIn(a *acts.Act) bool {
	return slices.Contains(readers, a.Words[0]) || slices.Contains(texts, a.Words[0]) ||
		!slices.ContainsFunc(a.In, func(folder string) bool { return !j.isWorkspaceFolder(folder) })
}

// isWorkspaceFolder reports whether a folder is in the workspace. Where nobody knows that, it has to be the one where the call is.
func (j *judge) isWorkspaceFolder(folder string) bool {
	if j.Resolve == nil {
		return folder == j.Folder
	}
	path, err := filepath.Rel(j.w.Root, j.w.Resolve(folder))
	return j.w.Root != "" && err == nil && filepath.IsLocal(path)
}

// forbidsEnv returns why the variables that are set for a command are not covered; empty: they are.
func (c *compiled) forbidsEnv(a *acts.Act) string {
	for _, one := range a.Env {
		name, value, _ := strings.Cut(one, "=")
		switch {
		case decidesPrograms(name):
			return name + " decides what it runs"
		case !slices.Contains(c.Env, name):
			return "the rule does not name the variable " + name
		case name == "GOFLAGS" && slices.ContainsFunc(strings.Fields(value), mayRun):
			return "GOFLAGS may name a program or other sources"
		}
	}
	return ""
}

// mayRun reports whether an option of go may name a program or other sources.
func mayRun(option string) bool {
	name, _, _ := strings.Cut(option, "=")
	return !slices.Contains(strings.Fields("-mod -tags -race -v -short -count -timeout -p -trimpath -buildvcs"), name)
}

// loads are what expressions of jq and yq read files with, and what hides that.
var loads = regexp.MustCompile(`\b(import|include|load|load_[a-z]+|eval)\b`)

// hostPart is a host before a file, as tar, rsync and scp take it, or in what psql connects to.
var hostPart = regexp.MustCompile(`(?i)^[^/:]+:([^:]|$)|^host(addr)?=`)

// whyLeaves returns why a word that a wildcard covers may lead out of the workspace; empty: none does.
func (j *judge) whyLeaves(a *acts.Act, wild []int) string {
	text, reader := textsOf(a), slices.Contains(readers, a.Words[0])
	if a.Words[0] == "printf" && !acts.FormatsText(a.Words[1:]) {
		return "printf may evaluate what it formats"
	}
	for _, n := range wild {
		word := a.Words[n]
		_, address := addressOf(word)
		if to := acts.WritesTo(a.Words, n); to != "" {
			if got, _ := j.allowedFile(item{kind: writes, act: a, name: to}); got.Effect != Allow {
				return got.Reason
			}
		}
		if slices.Contains([]string{"jq", "yq", "gojq"}, a.Words[0]) && loads.MatchString(word) {
			return a.Words[0] + " may read what its expression names"
		}
		refspec := a.Words[0] == "git" && strings.ContainsAny(word, ":+") &&
			slices.Contains([]string{"push", "fetch", "pull", "clone", "ls-remote"}, a.Words[1])
		switch {
		case refspec:
			return word + " names more than a branch"
		case text[n] || address || a.Words[0] == "curl" || a.Words[0] == "wget":
			continue
		case reader && !strings.HasPrefix(word, "-"): // an item of its own
			continue
		}
		parts := []string{word}
		if _, value, is := strings.Cut(word, "="); is {
			parts = append(parts, value)
		}
		if a.Words[0] != "git" && slices.ContainsFunc(parts, hostPart.MatchString) {
			return word + " may name another host"
		}
		if a.Words[0] == "git" && !j.w.NamesNoSecret(*a, word) || j.Resolve == nil ||
			slices.ContainsFunc(parts, func(part string) bool { return part != "" && !j.inWorkspace(a, part) }) {
			return fmt.Sprintf("nobody knows that %s stays in the workspace", word)
		}
	}
	return ""
}
