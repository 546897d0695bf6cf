package telegram

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

const (
	// maxLabel limits a button's label in UTF-16 code units; phones cut longer ones.
	maxLabel = 60
	// maxCalls is how many calls of a step have buttons at a time; a keyboard has at most 100 (Bot API).
	maxCalls = 24
	// maxData limits a button's data in bytes (Bot API, InlineKeyboardButton).
	maxData = 64
	// maxButton limits a copy's value in characters, so that data stays within 64 bytes.
	maxButton = 40
	// maxRule limits the name of a rule.
	maxRule = 8
)

// Button styles (Bot API 9.4).
const (
	styleYes = "success"
	styleNo  = "danger"
)

// Steps: what a press does instead of answering.
const (
	stepReally = "!"       // asks for the second confirmation, whose button is the answer itself
	stepReason = "?reason" // asks for the reason of a denial
	stepOther  = "?other"  // asks for an answer in the person's own words
	stepMore   = "?more"   // shows the wider scopes
	stepBack   = "<"       // leaves the second step
	stepStop   = "?stop"   // denies, and stops the agent
	stepRead   = "?read"   // says that the file was read, and shows the buttons that allow
)

// press is a button's data: the value of its copy, and an answer or a step. It does not identify who pressed it where.
type press struct {
	Button string
	Answer permissions.Answer // empty for steps that belong to no answer
	Call   int                // of a step; 0: all open calls
	Step   string             // empty: the press answers
	Rule   string             // of the second step of a rule: its name
}

// alone reports whether a step belongs to no particular answer.
func alone(step string) bool {
	return slices.Contains([]string{stepReason, stepOther, stepMore, stepBack, stepStop, stepRead}, step)
}

// parseData parses a button's data. It accepts exactly what [press.data] makes.
func parseData(data string) (pr press, ok bool) {
	button, action, _ := strings.Cut(data, ".")
	if pr.Button = button; alone(action) {
		pr.Step = action
	} else {
		if rest, really := strings.CutPrefix(action, stepReally); really {
			pr.Step, action = stepReally, rest
		}
		action, pr.Rule, _ = strings.Cut(action, "=")
		answer, call, _ := strings.Cut(action, "#")
		pr.Answer = permissions.Answer(answer)
		pr.Call, _ = strconv.Atoi(call)
	}
	if !isButton(button) || !pr.made() || pr.data() != data {
		return press{}, false
	}
	return pr, true
}

// made reports whether a keyboard can contain such an answer.
func (pr press) made() bool {
	s, allows := pr.Answer.Scope()
	switch {
	case alone(pr.Step):
		return true
	case (pr.Answer == permissions.Allow(permissions.Rule) && pr.Step == "") != (pr.Rule != "") || len(pr.Rule) > maxRule:
		return false
	case pr.Call < 0 || pr.Call > permissions.MaxCalls:
		return false
	case pr.Answer.SuggestionNumber() > 0:
		return pr.Call == 0 && pr.Step == ""
	case allows:
		return permissions.Allow(s) == pr.Answer && (pr.Call == 0 || s == permissions.Once)
	case pr.Step != "":
		return false
	case pr.Answer == permissions.Deny:
		return true
	case pr.Answer == permissions.Continue, pr.Answer == permissions.Interrupt:
		return pr.Call == 0
	}
	for k := range permissions.MaxOptions {
		if pr.Answer == permissions.Choose(k+1) {
			return pr.Call == 0
		}
	}
	return false
}

// data is the button's callback_data, at most 64 bytes.
func (pr press) data() string {
	if alone(pr.Step) {
		return pr.Button + "." + pr.Step
	}
	data := pr.Button + "." + pr.Step + string(pr.Answer)
	if pr.Call != 0 {
		data += "#" + strconv.Itoa(pr.Call)
	}
	if pr.Rule != "" {
		data += "=" + pr.Rule
	}
	return data
}

// resumePrefix begins the data of the buttons below the message about a stop. A step and the stop's time in microseconds
// since 1970 follow.
const resumePrefix = "resume."

func resumeData(step string, stop time.Time) string {
	return resumePrefix + step + strconv.FormatInt(stop.UnixMicro(), 10)
}

// parseResume parses a button's data. It accepts exactly what [resumeData] makes; an empty step resumes.
func parseResume(data string) (step string, stop time.Time, ok bool) {
	digits, ok := strings.CutPrefix(data, resumePrefix)
	for _, each := range []string{stepReally, stepBack} {
		if rest, is := strings.CutPrefix(digits, each); is {
			step, digits = each, rest
			break
		}
	}
	micros, err := strconv.ParseInt(digits, 10, 64)
	stop = time.UnixMicro(micros)
	return step, stop, ok && err == nil && data == resumeData(step, stop)
}

// listPrefix begins the data of the buttons below a list. What a press does follows: a command, opens and a code, or asksWhy and an agent.
const (
	listPrefix = "list."
	opens      = "open "
	asksWhy    = "why "
)

// parseList parses a button's data: what a list's button does is one of a few commands, which its person could write as well.
func parseList(data string) (command string, ok bool) {
	command, ok = strings.CutPrefix(data, listPrefix)
	isOne := func(begin string) bool { return strings.HasPrefix(command, begin) }
	all := strings.EqualFold(strings.Join(strings.Fields(command), " "), "/stop all")
	few := []string{opens, asksWhy, "/revoke ", "/use ", "/stop ", "/pair ", "/unpair ", "/resume ", "/trust "}
	return command, ok && !all && slices.ContainsFunc(few, isOne)
}

// listKey is a button below a list; none if its command is too long, or would be another one.
func listKey(label, command string) []key {
	if _, ok := parseList(listPrefix + command); !ok || len(listPrefix+command) > maxData {
		return nil
	}
	return []key{{Text: clipTo(label, maxLabel), Data: listPrefix + command}}
}

// listed arranges buttons in rows.
func listed(keys []key, perRow int) keyboard {
	k := noKeys()
	k.Rows = slices.AppendSeq(k.Rows, slices.Chunk(keys, perRow))
	return k
}

// keysOpen returns the buttons that show requests again.
func keysOpen(codes []string) keyboard {
	var all []key
	for _, code := range slices.Compact(codes[:min(len(codes), maxCalls)]) {
		all = append(all, listKey("👁 "+code, opens+code)...)
	}
	return listed(all, 3)
}

// keysPair returns the buttons below a notice of unknown senders, or of whose one of them is said to be.
func keysPair(n connectors.Notice) keyboard {
	var all []key
	in := n.To.Language
	for _, s := range n.UnknownSenders.List[:min(len(n.UnknownSenders.List), card.MaxStrangers)] {
		account := " " + s.Account
		if name := s.Proposed.Person; name != "" {
			all = append(all, listKey(in.Sprintf("✅ Yes, it is %s", visible(name)), "/pair "+name+account)...)
			all = append(all, listKey(in.Text("✖ No, take it back"), "/unpair "+name+account)...)
		}
		for _, name := range n.Unpaired[s.Via] {
			all = append(all, listKey(in.Sprintf("🔗 %s is %s", visible(s.Account), visible(name)), "/pair "+name+account)...)
		}
	}
	return listed(all[:min(len(all), maxCalls)], 1)
}

// allPrefix begins the data of the buttons that answer everything on a list. An answer and the list's digest follow.
const allPrefix = "all."

// parseAll parses a button's data.
func parseAll(data string) (a permissions.Answer, digest string, ok bool) {
	rest, ok := strings.CutPrefix(data, allPrefix)
	answer, digest, _ := strings.Cut(rest, ".")
	a = permissions.Answer(answer)
	return a, digest, ok && (a == permissions.Deny || a == permissions.Allow(permissions.Once))
}

// keysListed returns the buttons of a list: first those that answer all of it, which stay in their place when it grows, then one
// that opens each request.
func keysListed(b connectors.Burst) keyboard {
	var open []key
	for i, it := range b.Items {
		if it.Request.State == permissions.Pending && !it.Locked {
			open = append(open, listKey(fmt.Sprintf("👁 %d", i+1), opens+it.Code)...)
		}
	}
	k, in := listed(open, 5), b.To.Language
	all := func(a permissions.Answer, sign, style string, whole, some i18n.Phrase) (row []key) {
		label, n := in.Text(whole), len(b.ForAll(a))
		if n < len(open) {
			label = in.Sprintf(some, n, len(open))
		}
		if n > 0 && len(open) > 0 {
			row = append(row, key{Text: clipTo(sign+label, maxLabel), Data: allPrefix + string(a) + "." + b.Digest(), Style: style})
		}
		return row
	}
	allow := all(permissions.Allow(permissions.Once), "✅ ", styleYes, "Allow all", "Allow %d of %d")
	deny := all(permissions.Deny, "⛔ ", styleNo, "Deny all", "Deny %d of %d")
	rows := [][]key{append(slices.Clone(allow), deny...)}
	if unseen := b.Unseen(); len(unseen) > 0 {
		for i := range allow {
			allow[i].Text, allow[i].Style = clipTo(in.Sprintf("%s: first open %s", allow[i].Text, permissions.Positions(unseen)), maxLabel), ""
		}
		rows = [][]key{deny, allow}
	}
	rows = slices.DeleteFunc(rows, func(row []key) bool { return len(row) == 0 })
	k.Rows = append(rows, k.Rows...)
	return k
}

// keysStopped returns the buttons below the message about a stop. The place of the second yes, at the right, has a button
// that resumes nothing, as in [keysAgain].
func keysStopped(stop time.Time, in i18n.Language) keyboard {
	return keyboard{Rows: [][]key{{
		{Text: in.Text("▶️ Resume"), Data: resumeData(stepReally, stop)},
		{Text: in.Text("⛔ Stay stopped"), Data: resumeData(stepBack, stop)},
	}}}
}

// keysResume returns the buttons of the second step below the message about a stop.
func keysResume(stop time.Time, in i18n.Language) keyboard {
	return keyboard{Rows: [][]key{{
		{Text: in.Text("⛔ Stay stopped"), Data: resumeData(stepBack, stop)},
		{Text: in.Text("⚠️ Yes, resume"), Data: resumeData("", stop)},
	}}}
}

// isButton reports whether text can be the value of a copy.
func isButton(text string) bool {
	return text != "" && len(text) <= maxButton && !strings.ContainsFunc(text, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '-' && c != '_'
	})
}

func noKeys() keyboard { return keyboard{Rows: [][]key{}} }

// keys returns the buttons of a card: what p's person can still answer.
func keys(p connectors.Prompt) keyboard {
	k, r := noKeys(), p.Request
	if r.State != permissions.Pending || !isButton(p.Button) {
		return k
	}
	b := boardOf(p)
	var first, rest [][]key
	var row, last []key
	for i, o := range r.Options {
		switch s, allows := o.ID.Scope(); {
		case r.Kind == permissions.KindClarification:
			rest = append(rest, []key{b.key(o.ID, 0, fmt.Sprintf("%d · %s", i+1, card.Isolate(card.Prose(o.Label))), "")})
		case allows && (len(b.free) == 0 || o.ID.SuggestionNumber() > 0): // an approval can only be replaced by a denial
		case allows && s == permissions.Once:
			row = append([]key{b.key(o.ID, 0, "✅ "+b.label(o), styleYes)}, row...)
		case allows: // see keysMore
		case o.ID == permissions.Interrupt && r.Mode == permissions.ModeConfirm:
			rest = append(rest, []key{b.key(o.ID, 0, "✋ "+b.label(o), styleNo)})
		default:
			row = append(row, b.plain(o))
		}
	}
	if len(row) > 0 {
		first = append(first, row)
	}
	k.Rows = slices.Concat(first, b.calls(), rest)
	if r.Offers(permissions.Deny) {
		label := i18n.Phrase("✏️ Deny, say why")
		if r.Plans() {
			label = "✏️ Change it"
		}
		last = append(last, b.step(label, stepReason))
	}
	if r.TakesWords() {
		last = append(last, b.step("✏️ Other", stepOther))
	}
	k.Rows = append(k.Rows, append(last, b.step("⋯ More", stepMore)))
	return k
}

// keysMore returns the buttons of what a card allows beyond this once, the one that stops its agent, and the way back.
func keysMore(p connectors.Prompt) keyboard {
	b := boardOf(p)
	if p.Request.State != permissions.Pending || !isButton(p.Button) {
		return keys(p)
	}
	stop := b.step("⛔ Deny and stop this agent", stepStop)
	stop.Style = styleNo
	return keyboard{Rows: append(b.wider(), []key{stop}, []key{b.step("↩︎ Back", stepBack)})}
}

// wider returns the buttons of the scopes beyond once, and of the agent's suggestions.
func (b board) wider() (rows [][]key) {
	for _, o := range b.Request.Options {
		switch s, allows := o.ID.Scope(); {
		case !allows || len(b.free) == 0:
		case o.ID.SuggestionNumber() > 0:
			rows = append(rows, []key{b.key(o.ID, 0, fmt.Sprintf("%d · %s", o.ID.SuggestionNumber(), b.label(o)), "")})
		case s != permissions.Once:
			rows = append(rows, []key{b.key(o.ID, 0, b.label(o), "")})
		}
	}
	return rows
}

// tooBig reports whether p's card does not fit here, so that it cannot be allowed, by text either.
func tooBig(p connectors.Prompt) bool { return renderWithLead(p, "").TooBig }

// keysTooBig returns the buttons of a card that does not fit; none of them allows anything.
func keysTooBig(p connectors.Prompt) keyboard {
	k := noKeys()
	if p.Request.State != permissions.Pending || !isButton(p.Button) {
		return k
	}
	for _, o := range p.Request.Options {
		if o.ID == permissions.Deny || o.ID == permissions.Interrupt {
			k.Rows = append(k.Rows, []key{board{Prompt: p}.plain(o)})
		}
	}
	return k
}

// keysUnread returns the buttons of a card that has nothing of the action: what allows it stands behind one that says that the file was
// read.
func keysUnread(p connectors.Prompt) keyboard {
	k, allowing := keys(p), false
	for i, row := range k.Rows {
		k.Rows[i] = slices.DeleteFunc(row, func(b key) bool {
			pr, _ := parseData(b.Data)
			_, allows := pr.Answer.Scope()
			allowing = allowing || allows
			return allows || pr.Step == stepMore
		})
	}
	k.Rows = slices.DeleteFunc(k.Rows, func(row []key) bool { return len(row) == 0 })
	if allowing {
		k.Rows = slices.Insert(k.Rows, 0, []key{board{Prompt: p}.step("📄 I have read the file", stepRead)})
	}
	return k
}

// keysAt returns the buttons of a card that out shows with its first ones, at the step that a press led to.
func keysAt(p connectors.Prompt, out outgoing, step press) keyboard {
	is := func(each string) bool { // out has such a button
		return step.Step == each && slices.ContainsFunc(slices.Concat(out.Keyboard.Rows...), func(b key) bool { return b.Data == step.data() })
	}
	switch {
	case len(out.Keyboard.Rows) == 0, step.Button != p.Button, out.TooBig:
		return out.Keyboard
	case step.Answer != "":
		return keysAgain(p, step)
	case is(stepMore):
		return keysMore(p)
	case is(stepRead):
		return keys(p)
	}
	return out.Keyboard
}

// keysAgain returns the buttons of the second step, after the first confirmation of high risk. The second is on the right,
// where the first step has no button that allows, so that a double tap is not both. If nothing has to be confirmed, it
// returns the buttons of the first step.
func keysAgain(p connectors.Prompt, first press) keyboard {
	r := p.Request
	_, allows := first.Answer.Scope()
	free := boardOf(p).free
	offered := r.Offers(first.Answer) && (first.Call == 0 && len(free) > 0 || slices.Contains(free, first.Call))
	if r.State != permissions.Pending || !isButton(p.Button) || !r.HighRisk && first.Rule == "" || !allows || !offered {
		return keys(p)
	}
	yes := press{Button: p.Button, Answer: first.Answer, Call: first.Call, Rule: first.Rule}
	return keyboard{Rows: [][]key{{
		board{Prompt: p}.step("↩︎ Back", stepBack),
		{Text: p.To.Language.Sprintf("⚠️ Yes, %s", reallyOf(r, first, p.To.Language)), Data: yes.data()},
	}}}
}

// board makes the buttons of one prompt.
type board struct {
	connectors.Prompt
	free []int // numbers of the open calls that the person has not allowed yet; 0 for a request without calls
}

func boardOf(p connectors.Prompt) board {
	who := p.To.Name
	if p.Group != "" { // others may still give an answer that one person has given
		who = ""
	}
	return board{p, mine(p.Request, who)}
}

// step is a button of a step that belongs to no answer.
func (b board) step(label i18n.Phrase, step string) key {
	return key{Text: b.To.Language.Text(label), Data: press{Button: b.Button, Step: step}.data()}
}

// key is a button that answers; at high risk, and for a rule, an approval asks for the second confirmation first, and looks like it.
func (b board) key(a permissions.Answer, call int, label, style string) key {
	pr := press{Button: b.Button, Answer: a, Call: call}
	if s, allows := a.Scope(); allows && (b.Request.HighRisk || s == permissions.Rule) {
		pr.Step = stepReally
		if style = ""; call == 0 {
			label += "…"
		}
	}
	return key{Text: clipTo(label, maxLabel), Data: pr.data(), Style: style}
}

func (b board) label(o permissions.Option) string { return labelOf(b.Request, o, b.To.Language) }

// plain is the button of an answer that allows nothing.
func (b board) plain(o permissions.Option) key {
	switch label := b.label(o); o.ID {
	case permissions.Continue:
		return b.key(o.ID, 0, "▶️ "+label, styleYes)
	case permissions.Interrupt:
		return b.key(o.ID, 0, "✋ "+label, styleNo)
	default:
		return b.key(o.ID, 0, "⛔ "+label, styleNo)
	}
}

// calls returns the buttons of a step's open calls.
func (b board) calls() (rows [][]key) {
	once := permissions.Allow(permissions.Once)
	open := openCalls(b.Request)
	for _, c := range open[:min(len(open), maxCalls)] {
		var row []key
		if slices.Contains(b.free, c.N) && b.Request.Offers(once) {
			row = append(row, b.key(once, c.N, fmt.Sprintf("#%d ✅", c.N), styleYes))
		}
		if b.Request.Offers(permissions.Deny) {
			row = append(row, b.key(permissions.Deny, c.N, fmt.Sprintf("#%d ⛔", c.N), styleNo))
		}
		if len(row) > 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

// laterCalls is a row about the calls that have no buttons yet, or empty.
func laterCalls(r permissions.Request, in i18n.Language) string {
	more := len(openCalls(r)) - maxCalls
	if r.State != permissions.Pending || more <= 0 {
		return ""
	}
	return in.Sprintf("%d more calls get buttons once these are answered.", more)
}

// openCalls returns the undecided calls of a step.
func openCalls(r permissions.Request) []permissions.Call {
	return slices.DeleteFunc(slices.Clone(r.Calls), func(c permissions.Call) bool { return c.Answer != "" })
}

// mine returns the units of r (see board.free) that a person may still allow.
func mine(r permissions.Request, by string) (free []int) {
	units := []int{0}
	if len(r.Calls) > 0 {
		units = wire.Map(openCalls(r), func(c permissions.Call) int { return c.N })
	}
	for _, n := range units {
		voted := func(v permissions.Vote) bool { return v.By == by && (v.Call == 0 || v.Call == n) }
		if !slices.ContainsFunc(r.Votes, voted) {
			free = append(free, n)
		}
	}
	return free
}
