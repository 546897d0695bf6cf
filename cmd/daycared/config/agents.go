package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	cron "github.com/netresearch/go-cron"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// Agent is one of our own agents. A child inherits its parent's workspace, model, tools and on_denial if it leaves them out, but
// never what it may read, write or reach.
type Agent struct {
	Name             string      `yaml:"name" is:"agent"`
	Person           string      `yaml:"person" is:"name"`      // its owner; empty: the parent's, or the operator
	Connector        string      `yaml:"connector" is:"chat"`   // where the two talk; empty for a child
	Parent           string      `yaml:"parent" is:"agent"`     // the agent that may start it; empty: it is a foreground agent
	Workspace        string      `yaml:"workspace" is:"folder"` // empty: none
	ACP              []string    `yaml:"acp" is:"words"`        // the agent's program and arguments; empty: a model
	ACPAuth          string      `yaml:"acp_auth" is:"words"`   // the program's sign-in method; empty: none
	Mode             string      `yaml:"mode" is:"words"`       // the program's mode; empty: the one that asks
	Env              []string    `yaml:"env" is:"variable"`     // names of the daemon's variables passed to the program
	Model            AgentModel  `yaml:"model"`
	Instructions     string      `yaml:"instructions" is:"words"`     // added to daycared's own for the model
	InstructionsFile string      `yaml:"instructions_file" is:"path"` // the same, read when the daemon starts; empty: none
	Tools            Tools       `yaml:"tools"`                       // missing lists are those of the section tools
	MCP              []MCPServer `yaml:"mcp"`
	Read             []string    `yaml:"read" is:"folder"`  // files and folders that it may read without approval
	Write            []string    `yaml:"write" is:"folder"` // and write
	Network          bool        `yaml:"network"`           // without approval
	OnDenial         string      `yaml:"on_denial" is:"denial"`
	Prompt           string      `yaml:"prompt" is:"words"` // of a scheduled start
	Schedule         Schedule    `yaml:"schedule"`          // zero: none
}

// What an agent does after a denial.
const (
	Continue  = "continue"  // its model reads the denial and continues
	Terminate = "terminate" // its run ends
)

var denials = []string{Continue, Terminate}

// AgentModel is an agent's model.
type AgentModel struct {
	Provider    string `yaml:"provider" is:"provider"`
	Name        string `yaml:"name" is:"words"`        // as the provider knows it
	BaseURL     string `yaml:"base_url" is:"endpoint"` // without a trailing slash; empty: the provider's own
	APIKeyFile  string `yaml:"api_key_file" is:"path"` // the key's file; empty: the credential agent.NAME.key, or none
	File        string `yaml:"file" is:"path"`         // with the turns of a script
	Window      int    `yaml:"window"`                 // tokens of a prompt and its reply together
	InputPrice  Price  `yaml:"input_price"`            // of sent tokens; 0: none
	OutputPrice Price  `yaml:"output_price"`           // of generated tokens; 0: none

	// Credential is the name of systemd's credential of the key, after the agent whose entry has the model.
	Credential string
}

// KeyInTheClear reports whether the key would cross a network unencrypted.
func (m AgentModel) KeyInTheClear() bool { return inTheClear(m.BaseURL) }

// The providers of models.
const (
	OpenAI    = "openai" // and compatible ones
	Anthropic = "anthropic"
	Script    = "script" // turns from a file
)

var providers = []string{OpenAI, Anthropic, Script}

// Default context windows, and the smallest usable one, in tokens.
const (
	anthropicWindow = 200_000
	otherWindow     = 32_768
	minWindow       = 4096
)

// MCPServer is a program with tools for an agent. It runs in the sandbox, with only the access that is written here.
type MCPServer struct {
	Name    string   `yaml:"name" is:"agent"`
	Command []string `yaml:"command" is:"words"` // the program and its arguments
	Env     []string `yaml:"env" is:"variable"`  // names of the daemon's variables passed to it
	Read    []string `yaml:"read" is:"folder"`
	Write   []string `yaml:"write" is:"folder"`
	Network bool     `yaml:"network"`
}

// Fetch configures the tool fetch_url.
type Fetch struct {
	AllowPrivate []netip.Prefix `yaml:"allow_private"` // private networks that it may reach
}

// WebSearch configures the tool web_search, which agents only have with a SearXNG instance.
type WebSearch struct {
	URL string `yaml:"url" is:"service"` // without a trailing slash; empty: none
}

// GrantedTags returns the permissions that the agent has by the configuration, without approval. It may access its workspace; whether
// a tool may write there unasked depends on the lists of tools.
func (a Agent) GrantedTags() []permissions.Tag { return reach(a.Workspace, a.Read, a.Write, a.Network) }

func reach(workspace string, read, write []string, network bool) (tags []permissions.Tag) {
	add := func(verb, path string) {
		if t, err := permissions.ParseTag(verb + path); err == nil { // every path was parsed like this before
			tags = append(tags, t)
		}
	}
	if workspace != "" {
		add("@write:", workspace)
		tags = append(tags, permissions.Workspace)
	}
	for _, path := range read {
		add("@read:", path)
	}
	for _, path := range write {
		add("@write:", path)
	}
	if network {
		tags = append(tags, permissions.Network)
	}
	return tags
}

// complete fills in what agents leave out. It needs a valid configuration: every parent exists, without cycles.
func (c *Config) complete(r *report) {
	byName, done := map[string]int{}, map[int]bool{}
	for i, a := range c.Agents {
		byName[a.Name] = i
	}
	c.yieldDefaults(r, nobody)
	var fill func(i int)
	fill = func(i int) {
		if done[i] {
			return
		}
		done[i] = true
		from := Agent{Tools: c.Tools, OnDenial: Continue}
		if at, child := byName[c.Agents[i].Parent]; child {
			fill(at)
			from = c.Agents[at]
		}
		c.Agents[i].fill(from, r, "agents."+strconv.Itoa(i))
		c.yieldDefaults(r, i)
		a := &c.Agents[i]
		if a.Schedule.Given() {
			a.Schedule.Location = cmp.Or(a.Schedule.Location, c.Zone(a.Person))
		}
		if a.Connector == "" && a.Parent == "" {
			a.Connector = viaTerminal
		}
	}
	for i := range c.Agents {
		fill(i)
	}
}

// fill copies what was not set from another agent.
func (a *Agent) fill(from Agent, r *report, path string) {
	a.Person = cmp.Or(a.Person, from.Person)
	a.Workspace = cmp.Or(a.Workspace, from.Workspace)
	a.OnDenial = cmp.Or(a.OnDenial, from.OnDenial)
	if a.Model.Provider == "" {
		a.Model = from.Model
	} else {
		a.Model.Credential = "agent." + a.Name + ".key"
	}
	if a.Model.Window == 0 {
		a.Model.Window = otherWindow
		if a.Model.Provider == Anthropic {
			a.Model.Window = anthropicWindow
		}
	}
	for _, list := range toolLists {
		if _, given := r.lines[path+".tools."+list]; !given {
			*a.Tools.list(list) = *from.Tools.list(list)
		}
	}
}

// Zone returns a person's time zone, or the machine's.
func (c *Config) Zone(person string) *time.Location {
	return cmp.Or(c.person(person).Location, time.Local)
}

// Schedule says when an agent is started by the clock.
type Schedule struct {
	Cron     string            `yaml:"cron" is:"cron"` // five fields, or a word like @daily; empty: Every is set
	Every    time.Duration     `yaml:"every"`          // 0: Cron is set
	Location *time.Location    `yaml:"timezone"`       // of Cron and AskAt; default: the person's
	Needs    []permissions.Tag `yaml:"needs"`          // what a run needs that the agent does not hold
	AskAt    Clock             `yaml:"ask_at"`         // when to ask for that, before the run; zero: at its start
}

// Given reports whether there is a schedule.
func (s Schedule) Given() bool { return s.Cron != "" || s.Every != 0 }

// Next returns the first run after a time; zero: none. If the clock is put forward over a run, the run is that much later. If it
// is put back, a run at an hour of the day happens once, and hourly runs go on.
func (s Schedule) Next(after time.Time) time.Time {
	if s.Every != 0 {
		return after.Add(s.Every)
	}
	spec, err := cron.ParseStandard(s.Cron)
	if err != nil {
		return time.Time{} // no schedule; invalid ones are rejected earlier
	}
	next := spec.Next(after.In(s.zone()))
	for s.namesHours() && !next.IsZero() && repeated(next) {
		next = spec.Next(next)
	}
	return next
}

// namesHours reports whether runs are at certain hours of the day, not in every hour.
func (s Schedule) namesHours() bool {
	fields := strings.Fields(s.Cron)
	return s.Cron != "@hourly" && (len(fields) < 2 || !strings.HasPrefix(fields[1], "*"))
}

// repeated reports whether the clock showed the same time before and was put back since, by at most three hours.
func repeated(t time.Time) bool {
	_, before := t.Add(-3 * time.Hour).Zone()
	_, now := t.Zone()
	first := t.Add(time.Duration(now-before) * time.Second)
	return now < before && first.Hour() == t.Hour() && first.Minute() == t.Minute()
}

// Ask returns when to ask for the needs of the run at that time: the last AskAt before it, or the run's own time.
func (s Schedule) Ask(run time.Time) time.Time {
	if !s.AskAt.Given {
		return run
	}
	local := run.In(s.zone())
	at := func(days int) time.Time {
		return time.Date(local.Year(), local.Month(), local.Day()-days, s.AskAt.Hour, s.AskAt.Minute, 0, 0, s.zone())
	}
	if ask := at(0); !ask.After(run) {
		return ask
	}
	return at(1)
}

func (s Schedule) zone() *time.Location { return cmp.Or(s.Location, time.Local) }

// minEvery is the shortest interval between runs, as in cron.
const minEvery = time.Minute

// parseCron parses a cron expression, without a zone or seconds.
func parseCron(s string) (any, error) {
	const right = `write minute, hour, day, month and day of the week, as in "0 3 * * *"`
	switch {
	case strings.Contains(s, "TZ="):
		return nil, fmt.Errorf("%s holds a zone, which has a key of its own; write it as timezone: Europe/Berlin", quote(s))
	case strings.HasPrefix(s, "@every"):
		return nil, fmt.Errorf("%s is a duration, which has a key of its own; write it as every: 1h", quote(s))
	}
	spec, err := cron.ParseStandard(s)
	if err != nil {
		return nil, fmt.Errorf("%s is no cron expression; %s", quote(s), right)
	}
	if spec.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("%s never comes; %s", quote(s), right)
	}
	return s, nil
}

// Clock is a time of day, in minutes. The zero Clock is none.
type Clock struct {
	Given        bool
	Hour, Minute int
}

// String formats the time as in the configuration: 21:00.
func (c Clock) String() string {
	if !c.Given {
		return ""
	}
	return fmt.Sprintf("%02d:%02d", c.Hour, c.Minute)
}

// exactClock matches a time of day with all its digits.
var exactClock = regexp.MustCompile(`^([01][0-9]|2[0-3]):([0-5][0-9])$`)

func parseClock(s string) (any, error) {
	m := exactClock.FindStringSubmatch(s)
	if m == nil {
		if meant, ok := correctClock(s); ok {
			return nil, fmt.Errorf("%s is no time of the day; write %q", quote(s), meant)
		}
		return nil, fmt.Errorf("%s is no time of the day; write it as in %q", quote(s), "21:00")
	}
	minute := minutes(m[1], m[2])
	return Clock{Given: true, Hour: minute / 60, Minute: minute % 60}, nil
}

// correctClock returns the time that was meant, if that is clear.
func correctClock(s string) (meant string, ok bool) {
	minute, ok := correctTime(strings.ToLower(strings.ReplaceAll(s, " ", "")))
	return Clock{Given: true, Hour: minute / 60, Minute: minute % 60}.String(), ok
}

// agentName matches the names of agents and MCP servers. They are typed in commands; a slash marks an unnamed child.
var agentName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func parseAgent(s string) (any, error) {
	if !agentName.MatchString(s) {
		return nil, fmt.Errorf("%s is no name of an agent or a server; write at most 64 letters, digits, dots, dashes and "+
			"underscores, the first a letter or a digit, as in helper", quote(s))
	}
	return s, nil
}

// chats are the channels by which people can talk to agents.
var chats = append(connectors.KindNames(), viaTerminal, viaAdmin)

func oneOf[T ~string](what string, words []T) func(string) (any, error) {
	return func(s string) (any, error) {
		if !slices.Contains(words, T(s)) {
			known := wire.Map(words, func(word T) string { return string(word) })
			return nil, fmt.Errorf("unknown %s %s; %s", what, quote(s), suggest(s, known))
		}
		return T(s), nil
	}
}

var kinds = []permissions.Kind{
	permissions.KindPermission, permissions.KindTool, permissions.KindPause, permissions.KindClarification,
}

// parseFolder parses a path that an agent may access and that a permission can name.
func parseFolder(s string) (any, error) {
	if s == "" {
		return nil, fmt.Errorf("an empty path names nothing; write a whole one, as in /srv/helper")
	}
	if _, err := parsePath(s); err != nil {
		return nil, err
	}
	if _, err := permissions.ParseTag("@read:" + s); err != nil {
		return nil, fmt.Errorf("%s can be no permission (%w); write another path", quote(s), err)
	}
	return s, nil
}

// maxWords is the longest text in the configuration, in bytes.
const maxWords = 32 << 10

func parseWords(s string) (any, error) {
	switch {
	case strings.TrimSpace(s) == "":
		return nil, fmt.Errorf("there is no text; write some, or leave the key out")
	case len(s) > maxWords:
		return nil, fmt.Errorf("the text has more than %d bytes; write a shorter one", maxWords)
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		return nil, fmt.Errorf("the text holds a byte that no text has; leave it out")
	}
	return s, nil
}

// CheckWords returns what is wrong with a text for an agent, or nil.
func CheckWords(text string) error {
	_, err := parseWords(text)
	return err
}

// variableName matches the names of environment variables.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func parseVariable(s string) (any, error) {
	switch {
	case !variableName.MatchString(s):
		return nil, fmt.Errorf("%s is not the name of a variable; write the name alone, as in GITHUB_TOKEN", quote(s))
	case strings.HasPrefix(s, prefix) || s == "CREDENTIALS_DIRECTORY":
		return nil, fmt.Errorf("%s is the daemon's own and is handed to nobody; leave it out", s)
	}
	return s, nil
}

// Price is the price of a million tokens, in millionths of a currency that the configuration does not name.
type Price int64

// String formats the price as in the configuration, in the currency's unit.
func (p Price) String() string {
	s := fmt.Sprintf("%d.%06d", p/1e6, p%1e6)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// decimal matches a price: no sign, no exponent, at most six digits after the point.
var decimal = regexp.MustCompile(`^(0|[1-9][0-9]{0,5})(?:\.([0-9]{1,6}))?$`)

func parsePrice(s string) (any, error) {
	m := decimal.FindStringSubmatch(s)
	if m == nil {
		return nil, fmt.Errorf("%s is no price of a million tokens; write it as in 2.50", quote(s))
	}
	whole, _ := strconv.ParseInt(m[1], 10, 64)                             // at most six digits
	part, _ := strconv.ParseInt((m[2] + "000000")[:len("000000")], 10, 64) // six of them
	return Price(whole*1e6 + part), nil
}

// parsePrefix parses a network; a single address is refused with the prefix to write.
func parsePrefix(s string) (any, error) {
	const example = "10.0.0.0/8"
	p, err := netip.ParsePrefix(s)
	if err != nil {
		right := example
		if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
			right = netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()).String()
		}
		return nil, fmt.Errorf("%s is no network; write %s", quote(s), quote(right))
	}
	switch {
	case p.Addr().Is4In6():
		return nil, fmt.Errorf("%s is an IPv4 address written as IPv6; write it as in %s", quote(s), quote(example))
	case p != p.Masked():
		return nil, fmt.Errorf("%s names an address within a network; write %s", quote(s), quote(p.Masked().String()))
	}
	return p, nil
}
