package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"

	"github.com/daycared/daycared/permissions"
)

// Agent is an agent of our own. What a child leaves out is its parent's: the workspace, the model, the tools and what
// follows a denial; never what it may read, write or reach besides.
type Agent struct {
	Name             string      `yaml:"name" is:"agent"`
	Person           string      `yaml:"person" is:"name"`      // whose it is; of a child, its parent's; empty: the operator's
	Connector        string      `yaml:"connector" is:"chat"`   // where the two talk; empty: nowhere, since it is a child
	Parent           string      `yaml:"parent" is:"agent"`     // which agent may start it; empty: it is a foreground agent
	Workspace        string      `yaml:"workspace" is:"folder"` // empty without one
	ACP              []string    `yaml:"acp" is:"words"`        // a program that is the agent, and its arguments; empty: a model is
	ACPAuth          string      `yaml:"acp_auth" is:"words"`   // the way to sign it in that this program offers; empty: nobody does
	Mode             string      `yaml:"mode" is:"words"`       // the mode of this program; empty: the one of its modes that asks
	Env              []string    `yaml:"env" is:"variable"`     // names of the daemon's variables that this program is given
	Model            AgentModel  `yaml:"model"`
	Instructions     string      `yaml:"instructions" is:"words"`     // what its model is told first, besides what daycared says
	InstructionsFile string      `yaml:"instructions_file" is:"path"` // the same, read when the daemon starts; empty without one
	Tools            Tools       `yaml:"tools"`                       // each list that is left out is that of the section tools
	MCP              []MCPServer `yaml:"mcp"`
	Read             []string    `yaml:"read" is:"folder"`  // files and folders that it may read without asking
	Write            []string    `yaml:"write" is:"folder"` // and write
	Network          bool        `yaml:"network"`           // it may use the network without asking
	OnDenial         string      `yaml:"on_denial" is:"denial"`
	Prompt           string      `yaml:"prompt" is:"words"` // what it is told when its schedule starts it
	Schedule         Schedule    `yaml:"schedule"`          // zero: nothing starts it by the clock
}

// What an agent does after a denial.
const (
	Continue  = "continue"  // its model reads the denial and goes on
	Terminate = "terminate" // its run ends
)

var denials = []string{Continue, Terminate}

// AgentModel is what an agent thinks with.
type AgentModel struct {
	Provider    string `yaml:"provider" is:"provider"`
	Name        string `yaml:"name" is:"words"`        // as the provider knows it
	BaseURL     string `yaml:"base_url" is:"endpoint"` // without a slash at its end; empty: the provider's own
	APIKeyFile  string `yaml:"api_key_file" is:"path"` // holds the key; empty: the credential agent.NAME.key, or none
	File        string `yaml:"file" is:"path"`         // of a script's turns
	Window      int    `yaml:"window"`                 // tokens of a prompt and its reply together
	InputPrice  Price  `yaml:"input_price"`            // of what is sent; 0 without one
	OutputPrice Price  `yaml:"output_price"`           // of what is written; 0 without one

	// Credential is what systemd's credential of the key is called, after the agent of which the model was written.
	Credential string
}

// KeyInTheClear reports whether a key that is sent there could be read on the way.
func (m AgentModel) KeyInTheClear() bool { return inTheClear(m.BaseURL) }

// The providers of models.
const (
	OpenAI    = "openai" // and whatever speaks as it does
	Anthropic = "anthropic"
	Script    = "script" // turns from a file
)

var providers = []string{OpenAI, Anthropic, Script}

// The windows of models of which the file does not say it, in tokens, and the smallest that an agent can work in.
const (
	anthropicWindow = 200_000
	otherWindow     = 32_768
	minWindow       = 4096
)

// MCPServer is a program whose tools an agent has besides its own. It runs in the sandbox, with the reach that is
// written here and no other.
type MCPServer struct {
	Name    string   `yaml:"name" is:"agent"`
	Command []string `yaml:"command" is:"words"` // the program and its arguments
	Env     []string `yaml:"env" is:"variable"`  // names of the daemon's variables that it is given
	Read    []string `yaml:"read" is:"folder"`
	Write   []string `yaml:"write" is:"folder"`
	Network bool     `yaml:"network"`
}

// Fetch says what the tool fetch_url may reach.
type Fetch struct {
	AllowPrivate []netip.Prefix `yaml:"allow_private"` // private networks; it refuses all others
}

// WebSearch says which SearXNG instance the tool web_search asks. Agents have no such tool without one.
type WebSearch struct {
	URL string `yaml:"url" is:"service"` // without a slash at its end; empty: none
}

// Holds are the permissions that the agent has by the configuration: nobody is asked for them. Its workspace is its own;
// whether a tool may write there without asking is for the lists of tools to say.
func (a Agent) Holds() []permissions.Tag { return reach(a.Workspace, a.Read, a.Write, a.Network) }

// Holds are the permissions that the server runs with.
func (s MCPServer) Holds() []permissions.Tag { return reach("", s.Read, s.Write, s.Network) }

func reach(workspace string, read, write []string, network bool) (tags []permissions.Tag) {
	add := func(verb, path string) {
		if t, err := permissions.ParseTag(verb + path); err == nil { // every path was parsed so, when it was read
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

// complete fills in what agents leave out. The configuration is right by now: every parent is there, in no circle.
func (c *Config) complete(r *report) {
	byName, done := map[string]int{}, map[int]bool{}
	for i, a := range c.Agents {
		byName[a.Name] = i
	}
	c.yield(r, nobody)
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
		c.Agents[i].fill(from, r, "agents."+itoa(i))
		c.yield(r, i)
		c.Agents[i].at(c.Zone(c.Agents[i].Person))
		if a := &c.Agents[i]; a.Connector == "" && a.Parent == "" {
			a.Connector = viaTerminal
		}
	}
	for i := range c.Agents {
		fill(i)
	}
}

// fill takes from another one what was not given.
func (a *Agent) fill(from Agent, r *report, path string) {
	given := func(key string) bool { _, ok := r.lines[path+"."+key]; return ok }
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
	if !given("tools.auto") {
		a.Tools.Auto = from.Tools.Auto
	}
	if !given("tools.gated") {
		a.Tools.Gated = from.Tools.Gated
	}
	if !given("tools.forbidden") {
		a.Tools.Forbidden = from.Tools.Forbidden
	}
}

// at sets the zone of a schedule that has none.
func (a *Agent) at(zone *time.Location) {
	if a.Schedule.Cron != "" || a.Schedule.Every != 0 {
		a.Schedule.Location = cmp.Or(a.Schedule.Location, zone)
	}
}

// Zone is that of a person, or the machine's own.
func (c *Config) Zone(person string) *time.Location {
	return cmp.Or(c.person(person).Location, time.Local)
}

// Schedule says when an agent is started by the clock.
type Schedule struct {
	Cron     string            `yaml:"cron" is:"cron"` // five fields, or one of @daily and the like; empty: Every says it
	Every    time.Duration     `yaml:"every"`          // 0: Cron says it
	Location *time.Location    `yaml:"timezone"`       // in which Cron and AskAt are meant: the person's, where none is given
	Needs    []permissions.Tag `yaml:"needs"`          // what a run needs besides what the agent has
	AskAt    Clock             `yaml:"ask_at"`         // when that is asked for, before the run; zero: when it begins
}

// Given reports whether there is a schedule at all.
func (s Schedule) Given() bool { return s.Cron != "" || s.Every != 0 }

// Next is the first run after a time; zero: there is none. Where the clock is put forward over a run, it comes as much
// later; where it is put back, a run at an hour of the day comes once, and those of every hour go on.
func (s Schedule) Next(after time.Time) time.Time {
	if s.Every != 0 {
		return after.Add(s.Every)
	}
	spec, err := cron.ParseStandard(s.Cron)
	if err != nil {
		return time.Time{} // there is no schedule; another one would not have been read
	}
	next := spec.Next(after.In(s.zone()))
	for s.namesHours() && !next.IsZero() && repeated(next) {
		next = spec.Next(next)
	}
	return next
}

// namesHours reports whether the runs are at hours of the day, and not in each of them.
func (s Schedule) namesHours() bool {
	fields := strings.Fields(s.Cron)
	return s.Cron != "@hourly" && (len(fields) < 2 || !strings.HasPrefix(fields[1], "*"))
}

// repeated reports whether the clock stood at the same time before, and was put back since. It is never put back by more
// than three hours.
func repeated(t time.Time) bool {
	_, before := t.Add(-3 * time.Hour).Zone()
	_, now := t.Zone()
	first := t.Add(time.Duration(now-before) * time.Second)
	return now < before && first.Hour() == t.Hour() && first.Minute() == t.Minute()
}

// Ask is when to ask for what the run at that time needs: the last AskAt before it, or the run's own time.
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

// minEvery is the shortest time between two runs that is written as a duration; cron has none shorter.
const minEvery = time.Minute

// parseCron reads when something happens again and again, without the zone and the seconds that some add.
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

// Clock is a time of the day, to the minute. The zero Clock is none.
type Clock struct {
	Given        bool
	Hour, Minute int
}

// String is the time as the configuration has it: 21:00.
func (c Clock) String() string {
	if !c.Given {
		return ""
	}
	return fmt.Sprintf("%02d:%02d", c.Hour, c.Minute)
}

// exactClock is a time of the day with all its digits.
var exactClock = regexp.MustCompile(`^([01][0-9]|2[0-3]):([0-5][0-9])$`)

func parseClock(s string) (any, error) {
	m := exactClock.FindStringSubmatch(s)
	if m == nil {
		if meant, ok := mendClock(s); ok {
			return nil, fmt.Errorf("%s is no time of the day; write %q", quote(s), meant)
		}
		return nil, fmt.Errorf("%s is no time of the day; write it as in %q", quote(s), "21:00")
	}
	minute := minutes(m[1], m[2])
	return Clock{Given: true, Hour: minute / 60, Minute: minute % 60}, nil
}

// mendClock is the time that was meant, if that is clear.
func mendClock(s string) (meant string, ok bool) {
	minute, ok := mendTime(strings.ToLower(strings.ReplaceAll(s, " ", "")))
	return Clock{Given: true, Hour: minute / 60, Minute: minute % 60}.String(), ok
}
