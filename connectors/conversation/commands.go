package conversation

import (
	"cmp"
	"context"
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

// maxNamed limits an unknown command in the reply, in characters.
const maxNamed = 40

// commands are all commands except /start, which Telegram's Start button sends.
var commands = []string{
	"/pending", "/grants", "/revoke", "/agents", "/use", "/status", "/stop", "/resume", "/quiet", "/trust", "/lock", "/unlock",
	"/away", "/pair", "/unpair", "/quit", "/new", "/whoami", "/help",
}

// IsCommand reports whether a text begins with a command, for channels where a slash may begin something else.
func IsCommand(text string) bool {
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(text)), " ")
	return slices.Contains(commands, name)
}

// parse splits a message that begins with a slash into its command and the rest.
func parse(text string) (name, rest string) {
	name, rest, _ = strings.Cut(text, " ")
	name, _, _ = strings.Cut(strings.ToLower(name), "@") // /pending@our_bot
	return name, strings.TrimSpace(rest)
}

func isStopAll(name, rest string) bool { return name == "/stop" && strings.EqualFold(rest, "all") }

// command runs a command.
func (r *Reader) command(ctx context.Context, m Message, name, rest string) (string, error) {
	in := m.Who.Language
	switch name {
	case "/pending":
		return r.pending(ctx, m.From, m.Who)
	case "/grants":
		return r.grants(ctx, m.From, m.Who)
	case "/revoke":
		return r.revoke(ctx, m.From, m.Who, rest)
	case "/stop":
		if isStopAll(name, rest) {
			n, err := r.Inbound.StopAll(ctx, m.From)
			return in.Plural(n, "⛔ Stopped. %d request was cancelled; nothing is asked until /resume.|"+
				"⛔ Stopped. %d requests were cancelled; nothing is asked until /resume."), err
		}
		return r.stop(ctx, m, rest)
	case "/resume":
		return r.resume(ctx, m.From, rest, in)
	case "/quiet":
		return r.quiet(ctx, m, rest)
	case "/trust":
		in, words := m.Who.Language, strings.Fields(rest)
		if len(words) < 2 || len(words) > 3 {
			return in.Text("Say whom, and for how long, two hours at most: /trust AGENT 30m"), nil
		}
		span, _ := ParseSpan(strings.ToLower(words[1]))
		sure := len(words) == 3 && isOne(i18n.All("yes"), words[2])
		g, err := r.Inbound.TrustAgent(ctx, m.From, words[0], span, sure)
		return in.Sprintf("🤝 %s", card.InForce(g, r.shown(m.Who))), err
	case "/lock", "/unlock":
		return r.lock(ctx, m.From, name, rest, in)
	case "/away":
		return r.away(ctx, m, rest)
	case "/pair", "/unpair":
		words, _, err := r.Pair(ctx, m.From, in, name, rest)
		return words, err
	case "/quit":
		return r.order(ctx, m, permissions.OrderQuit, "")
	case "/new":
		return r.order(ctx, m, permissions.OrderNew, "")
	case "/agents":
		return r.agents(ctx, m.From, in)
	case "/use":
		return r.use(ctx, m.From, rest, in)
	case "/status":
		words, err := r.status(ctx, m.From, in)
		away := r.absent(m.Who)
		if away != "" && permissions.CodeOf(err) == permissions.CodeNoAgent {
			return away, nil
		}
		return strings.TrimSpace(away + "\n" + words), err
	case "/whoami":
		words := in.Sprintf("You are %s here. %s", card.Visible(m.Who.Name), r.Account(m.From, in))
		return strings.TrimSpace(words + "\n" + r.absent(m.Who)), nil
	case "/start", "/help":
		return in.Text(r.Help), nil
	}
	return in.Sprintf("There is no command %s. Write /help to see those that there are.", card.Visible(permissions.Brief(name, maxNamed))), nil
}

// stop stops the work of the agent in the foreground, or whatever another agent asks: the one of that name, or of the request of that
// code.
func (r *Reader) stop(ctx context.Context, m Message, name string) (string, error) {
	own, err := r.Inbound.Agents(ctx, m.From)
	if err != nil && permissions.CodeOf(err) != permissions.CodeNoAgent {
		return "", err
	}
	if name == "" || slices.ContainsFunc(own, func(a permissions.Presence) bool { return strings.EqualFold(a.Agent, name) }) {
		return r.order(ctx, m, permissions.OrderStop, name)
	}
	if len(name) == permissions.CodeLength {
		name = cmp.Or(r.code(ctx, m, strings.ToUpper(name)), name)
	}
	l, ended, err := r.Inbound.StopAgent(ctx, m.From, name)
	return AgentStopped(l, ended, m.Who.Language), err
}

// code returns a code if it is of a pending request of the author's, else empty.
func (r *Reader) code(ctx context.Context, m Message, code string) string {
	waiting, err := r.waiting(ctx, m.From)
	if err != nil || !slices.ContainsFunc(waiting, func(s permissions.RequestView) bool { return s.Code == code }) {
		return ""
	}
	return code
}

// quiet makes an agent's cards silent for a while.
func (r *Reader) quiet(ctx context.Context, m Message, text string) (string, error) {
	in, words := m.Who.Language, strings.Fields(text)
	if len(words) != 2 {
		return in.Text("Say which, and for how long, 24 hours at most: /quiet AGENT 1h, or /quiet AGENT off"), nil
	}
	span, timed := ParseSpan(strings.ToLower(words[1]))
	if !timed && !isOne(awayOff, words[1]) {
		span = -1
	}
	until, err := r.Inbound.QuietAgent(ctx, m.From, words[0], span)
	if span == 0 {
		return in.Text("🔔 Its cards make a sound again. What it asked meanwhile follows."), err
	}
	return in.Sprintf("🔕 Its cards are silent until %s, but for high risk. What it asked is told then.",
		card.AwayUntil(until, m.Who.Location, in)), err
}

// AgentStopped says that an agent is stopped, and that so many of its requests ended.
func AgentStopped(l permissions.Lock, ended int, in i18n.Language) string {
	return in.Plural(ended, "⛔ %[2]s is stopped, and %[1]d request of it ended. What it asks is refused, and nothing that it was "+
		"allowed counts, until /resume %[2]s|⛔ %[2]s is stopped, and %[1]d requests of it ended. What it asks is refused, and "+
		"nothing that it was allowed counts, until /resume %[2]s", ended, card.Visible(l.AgentName()))
}

// resume ends a stop of everything, or of an agent, for those who may.
func (r *Reader) resume(ctx context.Context, id connectors.Identity, name string, in i18n.Language) (string, error) {
	if name != "" {
		l, err := r.Inbound.ResumeAgent(ctx, id, name)
		if permissions.CodeOf(err) == permissions.CodeNotYours && l.By != "" {
			return in.Sprintf("Nothing is resumed: %[2]s stopped %[1]s, so only %[2]s and the operator can resume.",
				card.Visible(l.AgentName()), card.Visible(l.By)), nil
		}
		return in.Sprintf("▶️ %s goes on: what it asks reaches people again, and what it was allowed counts.", card.Visible(l.AgentName())), err
	}
	by := r.Inbound.StoppedBy()
	if by == "" {
		return in.Text("Nothing is stopped."), nil
	}
	err := r.Inbound.Resume(ctx, id)
	if permissions.CodeOf(err) == permissions.CodeNotYours {
		return NotResumed(by, in), nil
	}
	return in.Text(Resumed), err
}

// Resumed says that everything goes on after a stop.
const Resumed = "▶️ Resumed: requests are asked again, and what is granted holds again."

// NotResumed says why a person cannot end the stop of another one.
func NotResumed(by string, in i18n.Language) string {
	return in.Sprintf("Nothing is resumed: %[1]s stopped everything, so only %[1]s and the operator can resume.", card.Visible(by))
}

// lock locks or unlocks a person.
func (r *Reader) lock(ctx context.Context, id connectors.Identity, command, name string, in i18n.Language) (string, error) {
	switch {
	case command == "/lock":
		l, err := r.Inbound.Lock(ctx, id, name, time.Time{})
		return in.Sprintf("🔒 %[1]s is locked: nothing from %[1]s's accounts counts until the operator, or two other people, say "+
			"/unlock %[1]s", card.Visible(l.Person)), err
	case name == "":
		return in.Text("Say who: /unlock and a name."), nil
	}
	l, over, err := r.Inbound.Unlock(ctx, id, name)
	if name = card.Visible(l.Person); over {
		return in.Sprintf("🔓 %s is unlocked.", name), err
	}
	return in.Sprintf("🔒 %s stays locked until one more person, or the operator, says the same.", name), err
}

// Pair says whose an unknown account is, or takes that back; rest is the person's name and the account. proposed reports whether
// it can be taken back now.
func (r *Reader) Pair(
	ctx context.Context, id connectors.Identity, in i18n.Language, command, rest string,
) (words string, proposed bool, err error) {
	at := strings.LastIndexByte(rest, ' ')
	if at < 0 {
		return in.Text("Say who, and the account as the notice names it: /pair NAME ID. /unpair NAME ID takes it back."), false, nil
	}
	name, account := strings.TrimSpace(rest[:at]), rest[at+1:]
	if command == "/unpair" {
		err = r.Inbound.WithdrawPairing(ctx, id, name, account)
		return in.Sprintf("✖ Taken back: %s is not paired with %s.", card.Visible(name), card.Visible(account)), false, err
	}
	s, paired, err := r.Inbound.PairSender(ctx, id, name, account)
	name, account = card.Visible(name), card.Visible(s.Account)
	if paired {
		return in.Sprintf("🔗 %s answers with %s from now on.", name, account), false, err
	}
	return in.Sprintf("🔗 You say that %[2]s is %[1]s's. Nothing is paired before somebody else says the same, or the machine is asked: "+
		"daycared pair %[1]s --via %[3]s. /unpair %[1]s %[2]s takes it back.", name, account, s.Via), err == nil, err
}

// absent says that a person is away; empty if they are not.
func (r *Reader) absent(who connectors.Person) string {
	a := who.Away
	if !a.Holds(r.Now()) {
		return ""
	}
	until := card.AwayUntil(a.Until, who.Location, who.Language)
	if a.To != "" {
		return who.Language.Sprintf("You are away until %s, and %s is asked instead where a route allows it. /away off ends that.",
			until, card.Visible(a.To))
	}
	return who.Language.Sprintf("You are away until %s. /away off ends that.", until)
}

// away has others asked instead of a person, until the time in the text.
func (r *Reader) away(ctx context.Context, m Message, text string) (string, error) {
	in := m.Who.Language
	if text == "" {
		return cmp.Or(r.absent(m.Who), in.Text("You are not away.")+" "+in.Text(AwayForms)), nil
	}
	until, to, err := ParseAway(text, r.Now(), m.Who.Location)
	if err == nil {
		err = r.Inbound.SetAway(ctx, m.From, until, to)
	}
	switch {
	case err != nil:
		return "", err
	case until.IsZero():
		return in.Text("You are back: you are asked again."), nil
	}
	whom := in.Text("whom the route of a request escalates to")
	if to != "" {
		whom = in.Sprintf("%[1]s where a route lets %[1]s decide, else to %[2]s", card.Visible(to), whom)
	}
	return in.Sprintf("You are away until %s. What is asked of you goes to %s, at once. Where too few others may decide, you are still "+
		"asked. /away off ends that.", card.AwayUntil(until, m.Who.Location, in), whom), nil
}

// AwayForms says how an absence is written.
const AwayForms = "Write until when, and who is asked instead, if somebody in particular: /away until Monday to sam. A time is a " +
	"weekday, a date such as 2026-12-01, a time of day such as 18:00, a day with a time, or a duration such as 2h or 3d."

// The words of /away in every language.
var (
	awayTo    = i18n.All("to")
	awayUntil = i18n.All("until for")
	awayOff   = i18n.All("off")
	tomorrow  = i18n.All("tomorrow")
	weekdays  = [][]string{
		i18n.All("Sunday Sun"), i18n.All("Monday Mon"), i18n.All("Tuesday Tue"), i18n.All("Wednesday Wed"), i18n.All("Thursday Thu"),
		i18n.All("Friday Fri"), i18n.All("Saturday Sat"),
	}
)

// isOne reports whether a word is one of some, in any case and with or without a full stop.
func isOne(words []string, word string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, strings.TrimSuffix(word, ".")) })
}

// ParseAway parses the text of /away, in any language: until when, the zero time for off, and the person to ask instead, if any. Times
// are in the zone; a day begins there at midnight, and a weekday is never today.
func ParseAway(text string, now time.Time, zone *time.Location) (until time.Time, to string, err error) {
	if zone == nil {
		zone = time.UTC
	}
	now = now.In(zone)
	wrong := permissions.NoTime(permissions.Brief(text, maxNamed), AwayForms)
	words := strings.Fields(text)
	if at := slices.IndexFunc(words, func(w string) bool { return isOne(awayTo, w) }); at >= 0 {
		if at != len(words)-2 {
			return until, "", wrong
		}
		words, to = words[:at], words[at+1]
	}
	if len(words) > 1 && isOne(awayUntil, words[0]) {
		words = words[1:]
	}
	if len(words) == 1 && to == "" && isOne(awayOff, words[0]) {
		return time.Time{}, "", nil
	}
	if len(words) == 1 {
		if d, ok := ParseSpan(strings.ToLower(words[0])); ok {
			return now.Add(d), to, nil
		}
	}
	day, named := time.Time{}, false
	if len(words) > 0 {
		day, named = parseDay(words[0], now)
	}
	if named {
		words = words[1:]
	}
	switch {
	case len(words) == 0 && named:
		return day, to, nil
	case len(words) != 1:
		return until, "", wrong
	}
	clock, err := time.Parse("15:04", words[0])
	if err != nil {
		return until, "", wrong
	}
	if !named {
		day = now
	}
	at := func(days int) time.Time {
		return time.Date(day.Year(), day.Month(), day.Day()+days, clock.Hour(), clock.Minute(), 0, 0, zone)
	}
	if until = at(0); !named && !until.After(now) {
		until = at(1)
	}
	return until, to, nil
}

// parseDay returns the midnight at which a day begins: a weekday's next one after today, tomorrow, or a date.
func parseDay(word string, now time.Time) (day time.Time, ok bool) {
	midnight := func(days int) time.Time {
		return time.Date(now.Year(), now.Month(), now.Day()+days, 0, 0, 0, 0, now.Location())
	}
	if isOne(tomorrow, word) {
		return midnight(1), true
	}
	for days := 1; days <= 7; days++ {
		if isOne(weekdays[midnight(days).Weekday()], word) {
			return midnight(days), true
		}
	}
	day, err := time.ParseInLocation(time.DateOnly, word, now.Location())
	return day, err == nil
}

// ParseSpan parses a duration: whole days or weeks such as 3d and 1w, or Go's form such as 2h30m.
func ParseSpan(text string) (time.Duration, bool) {
	day := 24 * time.Hour
	for unit, span := range map[string]time.Duration{"d": day, "w": 7 * day} {
		if digits, is := strings.CutSuffix(text, unit); is {
			n, err := strconv.Atoi(digits)
			return time.Duration(min(n, 100_000)) * span, err == nil && n > 0
		}
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d > 0
}

func (r *Reader) pending(ctx context.Context, id connectors.Identity, who connectors.Person) (string, error) {
	waiting, err := r.waiting(ctx, id)
	if err != nil {
		return "", err
	}
	if by := r.Inbound.StoppedBy(); by != "" {
		return who.Language.Sprintf("Everything was stopped by %s; nothing is asked until /resume.", card.Visible(by)), nil
	}
	if len(waiting) == 0 {
		return who.Language.Text("Nothing waits for your answer."), nil
	}
	prompts := wire.Map(waiting, func(s permissions.RequestView) connectors.Prompt {
		return connectors.Prompt{Request: s.Request, Code: s.Code, Waiting: s.Waiting}
	})
	return r.listed(connectors.Notice{About: permissions.AboutWaiting, Waiting: prompts}, who), nil
}

// Of at most maxGrants grants, which is what the operator's socket lists at once, by which an inbox asks, a message has shownGrants.
const (
	maxGrants   = 1000
	shownGrants = 20
)

func (r *Reader) grants(ctx context.Context, id connectors.Identity, who connectors.Person) (string, error) {
	grants, err := r.Inbound.Grants(ctx, id, "", maxGrants)
	if err != nil {
		return "", err
	}
	if len(grants) == 0 {
		return who.Language.Text("Nothing is granted."), nil
	}
	rows := []string{who.Language.Text("Granted:")}
	for i, g := range grants[:min(len(grants), shownGrants)] {
		rows = append(rows, fmt.Sprintf("%d  %s", i+1, card.InForce(g, r.shown(who))), "   /revoke "+g.ID.Short())
	}
	if more := len(grants) - shownGrants; more > 0 {
		rows = append(rows, who.Language.Sprintf("and %d more; daycared grants lists all of them on the machine.", more))
	}
	return strings.Join(rows, "\n"), nil
}

// revoke revokes a grant by its id, or withdraws an unused approval by its code.
func (r *Reader) revoke(
	ctx context.Context, id connectors.Identity, who connectors.Person, name string,
) (string, error) {
	if name == "" {
		return who.Language.Text("Say which: /revoke and what /grants says of a grant, or the code of an approval that was not used."), nil
	}
	if len(name) == permissions.CodeLength {
		s, err := r.Inbound.Void(ctx, id, strings.ToUpper(name))
		if err != nil {
			return "", err
		}
		return card.Outcome(s.Request, r.shown(who)).Text, nil
	}
	name = strings.ToUpper(name)
	revoked, err := r.Inbound.Revoke(ctx, id, permissions.ID(name))
	if err != nil {
		return "", err
	}
	return r.listed(connectors.Notice{About: permissions.AboutRevoked, Grant: revoked.Grant, Ran: revoked.Ran}, who), nil
}

func (r *Reader) listed(n connectors.Notice, who connectors.Person) string {
	return strings.Join(wire.Map(card.NoticeParts(n, r.shown(who)), func(p card.Part) string { return p.Text }), "\n")
}

// agent passes a message that is not an answer to its agent and returns the reply: line if that succeeded, otherwise the
// reason. waiting requests are still pending for its author.
func (r *Reader) agent(ctx context.Context, m Message, line string, waiting int) (words string, err error) {
	in := m.Who.Language
	err = r.Inbound.OnMessage(ctx, m.Message)
	switch refusal := permissions.AsRefusal(err); {
	case err == nil:
		return line, nil
	case refusal != nil && refusal.Code == permissions.CodeNoAgent && isHelp(m.Text):
		return in.Text(r.Help), nil
	case refusal != nil && refusal.Code == permissions.CodeNoAgent:
		return nobodyBound(waiting, in), nil
	case refusal != nil && refusal.Code != permissions.CodeBroken: // it is retried until it is stored
		return card.Visible(refusal.TextIn(in)), nil
	}
	return "", err
}

// nobodyBound answers a message without an agent; waiting requests are still pending.
func nobodyBound(waiting int, in i18n.Language) string {
	none := permissions.NoAgent().TextIn(in)
	if waiting > 0 {
		return none + in.Plural(waiting, " One request still waits for your answer: /pending| %d requests still wait for your answer: /pending")
	}
	return none + in.Text(" /help says what works here.")
}

// isHelp reports whether a message only asks for help, in any language.
func isHelp(text string) bool {
	return slices.ContainsFunc(i18n.All("help"), func(word string) bool { return strings.EqualFold(strings.TrimSpace(text), word) })
}

// agents lists a person's agents.
func (r *Reader) agents(ctx context.Context, id connectors.Identity, in i18n.Language) (string, error) {
	all, err := r.Inbound.Agents(ctx, id)
	if err != nil {
		return "", err
	}
	rows := []string{in.Text("Your agents in this chat:")}
	for _, a := range all {
		row := card.Name(a.Agent) + " · " + in.Text(activity(a.Activity))
		if a.Foreground {
			row = in.Sprintf("%s · your messages go there", row)
		}
		rows = append(rows, row)
	}
	if len(all) > 1 {
		rows = append(rows, in.Text("/use NAME · send your messages to another one"))
	}
	return strings.Join(rows, "\n"), nil
}

// use brings another agent to the foreground.
func (r *Reader) use(ctx context.Context, id connectors.Identity, name string, in i18n.Language) (string, error) {
	if name == "" {
		return r.agents(ctx, id, in)
	}
	agent, err := r.Inbound.Use(ctx, id, name)
	return in.Sprintf("Your messages go to %s from now on. A reply to a message goes to the agent that wrote it.", card.Name(agent)), err
}

// status describes the agent in the foreground and counts what waits for the person.
func (r *Reader) status(ctx context.Context, id connectors.Identity, in i18n.Language) (string, error) {
	all, err := r.Inbound.Agents(ctx, id)
	if err != nil {
		return "", err
	}
	waiting, err := r.waiting(ctx, id)
	if err != nil {
		return "", err
	}
	var rows []string
	for _, a := range all {
		if !a.Foreground {
			continue
		}
		rows = append(rows, card.Name(a.Agent)+" · "+in.Text(activity(a.Activity)))
		if a.Undelivered > 0 {
			rows = append(rows, in.Plural(a.Undelivered, "%d message of yours not read yet|%d messages of yours not read yet"))
		}
	}
	if len(waiting) == 0 {
		return strings.Join(append(rows, in.Text("Nothing waits for your answer.")), "\n"), nil
	}
	rows = append(rows, in.Plural(len(waiting),
		"%d request waiting for your answer: /pending|%d requests waiting for your answer: /pending"))
	return strings.Join(rows, "\n"), nil
}

// order makes the agent in the foreground obey, unless another one is named.
func (r *Reader) order(ctx context.Context, m Message, o permissions.Order, named string) (string, error) {
	in := m.Who.Language
	before, err := r.Inbound.Agents(ctx, m.From)
	if err != nil {
		return "", err
	}
	for _, a := range before {
		if a.Foreground && named != "" && !strings.EqualFold(a.Agent, named) {
			return in.Sprintf("Nothing stops: your messages go to %s. Choose the other one with /use, then write /stop.", card.Name(a.Agent)), nil
		}
	}
	agent, err := r.Inbound.Order(ctx, m.From, o, m.Key)
	if err != nil {
		return "", err
	}
	name := card.Name(agent)
	switch o {
	case permissions.OrderQuit:
		return in.Sprintf("%s ends its session.", name), nil
	case permissions.OrderNew:
		return in.Sprintf("%s begins a new session.", name), nil
	}
	if slices.ContainsFunc(before, func(p permissions.Presence) bool { return p.Foreground && p.IsIdle() }) {
		return in.Sprintf("%s works on nothing, so nothing stops. Other agents go on; /stop all stops everything.", name), nil
	}
	return in.Sprintf("%s stops what it works on. Other agents go on; /stop all stops everything.", name), nil
}

// activities are what agents do, in words.
var activities = map[permissions.Activity]i18n.Phrase{
	permissions.AwaitingUser: "waits for you", permissions.Idle: "idle", permissions.Running: "running", permissions.Paused: "paused",
	permissions.Interrupted: "interrupted",
}

func activity(a permissions.Activity) i18n.Phrase { return cmp.Or(activities[a], "unknown") }
