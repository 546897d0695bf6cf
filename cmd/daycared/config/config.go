// Package config is the configuration: its keys, its defaults, and where each effective value came from.
//
// The struct [Config] defines the keys. [Load] has three steps. problems.go and check.go read the file as a tree of YAML nodes
// and check it strictly, since only the tree has lines, exact case, duplicates and quotes. load.go has viper merge the defaults,
// the checked values and the environment; viper gets only checked values, because it would drop case, turn +49… into a number
// and ignore unknown keys. rules.go and agentrules.go check that the values are consistent, and warn.go warns of values that are
// hardly intended.
//
// Problems are collected and reported together ([Problems]), each with its line or variable and the remedy.
//
// [Find] finds the file, [Config.Paths] the sockets and the data, and [Config.Show] prints the effective configuration as YAML
// that [Load] accepts.
package config

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// Config is the whole configuration, checked. A field's yaml tag is its key, and its `is` tag the kind of value if the type does
// not determine it (see leaves in values.go). It is not changed after [Load].
type Config struct {
	People     []Person   `yaml:"people"`
	Routes     []Route    `yaml:"routes"`
	Approvals  Approvals  `yaml:"approvals"`
	Tools      Tools      `yaml:"tools"`
	Rules      []Rule     `yaml:"rules"`
	HighRisk   HighRisk   `yaml:"high_risk"`
	Connectors Connectors `yaml:"connectors"`
	API        API        `yaml:"api"`
	Agents     []Agent    `yaml:"agents"`
	Fetch      Fetch      `yaml:"fetch"`
	WebSearch  WebSearch  `yaml:"web_search"`
	Limits     Limits     `yaml:"limits"`
	Keep       Keep       `yaml:"keep"`
	Audit      Audit      `yaml:"audit"`
	Sandbox    bool       `yaml:"sandbox" is:"switch"`
	Sandboxed  bool       `yaml:"sandboxed" is:"sandboxed"` // commands that the sandbox keeps in the workspace run unasked
	DataDir    string     `yaml:"data_dir" is:"path"`       // empty: see [Config.Paths]
	Database   string     `yaml:"database" is:"database"`   // URL of a PostgreSQL database, without a password; empty: SQLite in data_dir
	Log        Log        `yaml:"log"`

	// File is the file that was read, under the given name; empty: none.
	File string
	// Faults are well-formed settings that cannot work: they can be read and changed, but not served.
	Faults Problems
	// Warnings are about settings that are allowed but hardly intended.
	Warnings Problems

	origins map[string]string // where each value came from, by the path of its key
	from    *report           // nil if not loaded
}

// IsEmpty reports whether there is a file that sets nothing.
func (c *Config) IsEmpty() bool { return c.File != "" && c.from != nil && len(c.from.lines) == 0 }

// Position returns where a key was set: a line, as in "config.yaml:12" for people.0.user, or a variable; empty if it was not.
func (c *Config) Position(path string) string {
	if c.from == nil {
		return c.File
	}
	return place(c.from.origin(path))
}

// Problem returns a problem of a key, at its [Config.Position].
func (c *Config) Problem(path, format string, args ...any) Problem {
	if c.from == nil {
		return Problem{Where: c.File, Key: path, Text: fmt.Sprintf(format, args...)}
	}
	return c.from.problem(path, format, args...)
}

// Person is somebody who may decide.
type Person struct {
	Name      string            `yaml:"name" is:"name"`
	User      string            `yaml:"user" is:"account"` // OS account, by name; empty without one
	Addresses map[string]string `yaml:",kinds"`            // a key for each of [connectors.Kinds]
	Location  *time.Location    `yaml:"timezone"`          // the machine's own zone where none is given
	Language  i18n.Language     `yaml:"language"`          // of what they are asked in; empty: their app's, else English
	Quiet     connectors.Hours  `yaml:"quiet"`             // in Location; zero without any
	Via       []string          `yaml:"via" is:"channel"`  // in this order; empty: the daemon's order
	// PhoneAfter is how long what the hooks of agents ask is kept from channels of [connectors.Kinds].
	PhoneAfter time.Duration `yaml:"phone_after" is:"delay"`
}

// Route says who is asked. An empty list matches everything.
type Route struct {
	Agents []string           `yaml:"agents" is:"glob"`
	Tags   []permissions.Tag  `yaml:"tags"`
	Tools  []string           `yaml:"tools" is:"glob"`
	Kinds  []permissions.Kind `yaml:"kinds"`
	Ask    []string           `yaml:"ask" is:"name"` // one or more names of people, each once
	Quorum int                `yaml:"quorum"`        // 1 where the file says nothing
	// NoKeyboard is keyboard: false. The agent's own dialog then cannot answer before people do.
	NoKeyboard bool          `yaml:"keyboard" is:"refusal"`
	Escalate   Escalate      `yaml:"escalate"`        // zero if not set
	Chat       int64         `yaml:"chat" is:"group"` // of Telegram, where all are asked together; 0: none
	Thread     int           `yaml:"thread"`          // the group's topic; 0: none
	Timeout    time.Duration `yaml:"timeout"`         // 0: the default of [Approvals]
	OnlyTitle  bool          `yaml:"show" is:"shown"` // keep what is asked for out of chats
}

// Escalate says who is asked as well if nobody answers for a while.
type Escalate struct {
	After When     `yaml:"after"`
	To    []string `yaml:"to" is:"name"` // none of them in the route's Ask
}

// Approvals are the times of requests, the scopes on offer, and the reminders.
type Approvals struct {
	Timeout              time.Duration       `yaml:"timeout"`
	MaxTimeout           time.Duration       `yaml:"max_timeout"`
	ClarificationTimeout time.Duration       `yaml:"clarification_timeout"`
	DeliverWithin        time.Duration       `yaml:"deliver_within"`
	RedeemWindow         time.Duration       `yaml:"redeem_window"`
	Scopes               []permissions.Scope `yaml:"scopes"`
	Remind               []When              `yaml:"remind"` // in any order; empty: never
	// ReadFirst has a person who approved five cards in a chat within 20 seconds wait two seconds before the next counts.
	ReadFirst bool `yaml:"read_first"`
	// AskRefused asks people, once, about calls that Claude Code's auto mode refused.
	AskRefused bool `yaml:"ask_refused"`
}

// Tools says which tools run unasked, ask or never run, as globs over their names.
type Tools struct {
	Auto      []string `yaml:"auto" is:"glob"`
	Gated     []string `yaml:"gated" is:"glob"`
	Forbidden []string `yaml:"forbidden" is:"glob"`
}

// Rule says what is done with calls by what they do: see [ruling.Rule]. It has one of Allow, Ask, Deny and Use.
type Rule struct {
	Allow  []string  `yaml:"allow" is:"acts"`
	Ask    []string  `yaml:"ask" is:"acts"`
	Deny   []string  `yaml:"deny" is:"acts"`
	Use    string    `yaml:"use" is:"starter"`
	Agents []string  `yaml:"agents" is:"glob"`
	People []string  `yaml:"people" is:"name"`
	In     string    `yaml:"in" is:"folder"`
	Env    []string  `yaml:"env" is:"acts"`
	Until  time.Time `yaml:"until" is:"day"` // the end of the last day, in UTC; zero: it does not end
	Why    string    `yaml:"why" is:"why"`
	Fits   []string  `yaml:"fits" is:"acts"`
	Not    []string  `yaml:"not" is:"acts"`
}

// HighRisk says what needs a second confirmation, besides what is high risk by what it does.
type HighRisk struct {
	Enabled  bool                 `yaml:"enabled" is:"switch"` // high_risk: off sets it as well
	Kinds    []permissions.Effect `yaml:"kinds" is:"effect"`
	Patterns []string             `yaml:"patterns" is:"glob"`
	Tools    []string             `yaml:"tools" is:"glob"`
	Tags     []permissions.Tag    `yaml:"tags"`
	Except   Ordinary             `yaml:"except"`
}

// Ordinary takes calls out of those that are high risk by what they do.
type Ordinary struct {
	Kinds    []permissions.Effect `yaml:"kinds" is:"effect"`
	Patterns []string             `yaml:"patterns" is:"glob"`
	Tools    []string             `yaml:"tools" is:"glob"`
}

// Connectors are the channels to people.
type Connectors struct {
	Terminal Terminal `yaml:"terminal"`
	Telegram Telegram `yaml:"telegram"`
	WhatsApp WhatsApp `yaml:"whatsapp"`
	Editor   Editor   `yaml:"editor"`
}

// IsEnabled reports whether a channel is enabled.
func (c *Config) IsEnabled(channel string) bool {
	return map[string]bool{
		viaTerminal: c.Connectors.Terminal.Enabled, viaAdmin: true, "telegram": c.Connectors.Telegram.Enabled,
		viaWhatsApp: c.Connectors.WhatsApp.Enabled,
	}[channel]
}

// Editor is the dialog of an agent's editor, for requests that permit nothing. It is no person's channel, and is shown in
// addition to the prompts of the people asked.
type Editor struct {
	Enabled bool `yaml:"enabled"`
}

// Telegram is a bot.
type Telegram struct {
	Enabled   bool   `yaml:"enabled"`
	TokenFile string `yaml:"token_file" is:"path"` // the token's file; empty: the credential telegram.token
	APIURL    string `yaml:"api_url" is:"url"`     // of the Bot API, without a trailing slash
	OnlyTitle bool   `yaml:"show" is:"shown"`      // as of a route
}

// WhatsApp is a linked device of an account.
type WhatsApp struct {
	Enabled     bool   `yaml:"enabled"`
	Phone       string `yaml:"phone" is:"phone"` // E.164: the only account that may be linked; empty: any
	AutoVersion bool   `yaml:"auto_version"`     // use the version of WhatsApp's client if ours is refused
	OnlyTitle   bool   `yaml:"show" is:"shown"`  // as of a route
}

// Terminal is the daemon's own console.
type Terminal struct {
	Enabled bool `yaml:"enabled"`
}

// API configures the two sockets, the listener for agents on other machines, and access to them.
type API struct {
	AgentSocket    string `yaml:"agent_socket" is:"socket"` // empty: see [Config.Paths]
	AdminSocket    string `yaml:"admin_socket" is:"socket"` // empty: see [Config.Paths]
	AgentGroup     string `yaml:"agent_group" is:"account"`
	AdminGroup     string `yaml:"admin_group" is:"account"`
	AllowSameUser  bool   `yaml:"allow_same_user"`
	AdminReachable bool   `yaml:"admin_reachable"`

	Listen         string   `yaml:"listen" is:"listen"` // host:port; empty: nothing listens
	TLSCertFile    string   `yaml:"tls_cert_file" is:"path"`
	TLSKeyFile     string   `yaml:"tls_key_file" is:"path"`
	BehindProxy    bool     `yaml:"behind_proxy"`              // a proxy makes the connections
	Hosts          []string `yaml:"hosts" is:"host"`           // names of the listener, besides the certificate's and its address
	AllowAnonymous bool     `yaml:"allow_anonymous"`           // from this machine, without a token
	TrustedTokens  []string `yaml:"trusted_tokens" is:"token"` // of tokens whose hooks are believed about where names lead
}

// Limits bound the pending requests and calls of callers.
type Limits struct {
	PendingPerCaller int `yaml:"pending_per_caller"`
	PromptsPerMinute int `yaml:"prompts_per_minute"`
	// AutoPerMinute limits the unasked calls a minute of tools that match a pattern, per entry of tools.auto; others are asked about.
	AutoPerMinute   map[string]int `yaml:"auto_per_minute"`
	PendingTotal    int            `yaml:"pending_total"`
	RequestsPerHour int            `yaml:"requests_per_hour"`
	BytesPerHour    int            `yaml:"bytes_per_hour"`
	MutedAfter      int            `yaml:"muted_after"` // prompts of an agent, denied or ignored within ten minutes
	MaxCards        int            `yaml:"max_cards"`   // that wait for one person since the last 30 seconds
}

// Keep says how long the store keeps old data.
type Keep struct {
	Requests time.Duration `yaml:"requests" is:"days"`
	Payloads time.Duration `yaml:"payloads" is:"days"` // of requests: inputs, details, messages, reasons
	Audit    time.Duration `yaml:"audit" is:"days"`
}

// Audit protects the audit, and rows that grant something, against unnoticed changes.
type Audit struct {
	KeyFile string `yaml:"key_file" is:"path"` // with the sealing key; empty: see [Config.Paths]
	Heads   Heads  `yaml:"heads"`
}

// Heads says where the audit's newest entry is published, so that it is known elsewhere.
type Heads struct {
	To    string        `yaml:"to" is:"publisher"` // log, a file or an address; empty: nowhere
	Every time.Duration `yaml:"every"`             // at most this often
}

// Log configures the daemon's log.
type Log struct {
	Level  slog.Level `yaml:"level"`
	Format string     `yaml:"format" is:"format"` // text or json
}

// Default returns the configuration of an empty file and an empty environment.
func Default() *Config {
	return &Config{
		Approvals: Approvals{
			Timeout: 15 * time.Minute, MaxTimeout: 60 * time.Minute, ClarificationTimeout: 5 * time.Minute,
			DeliverWithin: 2 * time.Minute, RedeemWindow: 10 * time.Minute,
			Scopes: []permissions.Scope{
				permissions.Once, permissions.SessionTool, permissions.Session, permissions.For(15 * time.Minute), permissions.Rule,
			},
			Remind: []When{{Percent: 50}, {Percent: 80}}, ReadFirst: true,
		},
		Tools: Tools{
			Auto:      []string{"read_file", "list_files", "search_files"},
			Gated:     []string{"write_file", "edit_file", "run_command", "fetch_url", "web_search"},
			Forbidden: []string{"delete_repository"},
		},
		HighRisk: HighRisk{Enabled: true},
		Connectors: Connectors{
			Terminal: Terminal{Enabled: true}, Telegram: Telegram{APIURL: "https://api.telegram.org"},
			WhatsApp: WhatsApp{AutoVersion: true},
		},
		Limits: Limits{
			PendingPerCaller: 20, PromptsPerMinute: 30, AutoPerMinute: map[string]int{}, PendingTotal: 100000,
			RequestsPerHour: 20000, BytesPerHour: 64 << 20, MutedAfter: 6, MaxCards: 3,
		},
		Keep:    Keep{Requests: 90 * day, Payloads: 30 * day, Audit: 400 * day},
		Audit:   Audit{Heads: Heads{Every: 10 * time.Minute}},
		Sandbox: true,
		Log:     Log{Level: slog.LevelInfo, Format: "text"},
	}
}
