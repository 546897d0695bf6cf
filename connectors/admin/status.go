package admin

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// Daemon describes the daemon's process.
type Daemon struct {
	PID     int       `json:"pid"`
	UID     int       `json:"uid" doc:"the account that runs it"`
	Version string    `json:"version"`
	Since   time.Time `json:"since"`
	// Manager is what may restart it when it ends: systemd, or null.
	Manager *string `json:"manager"`
	// Config is the active configuration file, or null for the defaults; ConfigRead is when it was last read.
	Config     *string   `json:"config"`
	ConfigRead time.Time `json:"config_read"`
	// ConfigRefused is why the last reload of the file was rejected, or null.
	ConfigRefused *string `json:"config_refused"`
	// Faults are troubles of the daemon itself that keep no request from being answered.
	Faults  []string `json:"faults,omitempty" doc:"what is wrong with the daemon itself, and what to do about it"`
	DataDir string   `json:"data_dir"`
	// Database is the PostgreSQL database that has the store, without a password, and Daemons where those run that use it.
	Database string   `json:"database,omitempty" doc:"the PostgreSQL database that has the store; left out where a file in data_dir has it"`
	Daemons  []string `json:"daemons,omitempty" doc:"where the daemons run that use the database, and which one has the chats"`
	Differ   bool     `json:"daemons_differ,omitempty" doc:"these daemons go by different settings"`
	// Log is the log file; null: standard error.
	Log         *string `json:"log"`
	AgentSocket string  `json:"agent_socket"`
	AdminSocket string  `json:"admin_socket"`
	Listen      *string `json:"listen" doc:"where agents of other machines ask; null: nowhere"`
	// Console is the state of the daemon's own terminal.
	Console string `json:"console" enum:"open,closed,none,off"`
}

// Status is the state of a daemon. Only the operator sees what belongs to other people.
type Status struct {
	Daemon
	// Ready reports whether requests can be stored and answered, as /readyz does; NotReady is why they cannot.
	Ready    bool    `json:"ready"`
	NotReady *string `json:"not_ready"`
	// Reachable reports whether anybody can be reached now.
	Reachable bool             `json:"reachable"`
	Channels  []ChannelStatus  `json:"channels"`
	People    []PersonStatus   `json:"people"`
	Waiting   WaitingStatus    `json:"waiting"`
	StoppedBy *string          `json:"stopped_by"`
	Suspended []SuspendedState `json:"suspended" doc:"accounts that decide nothing until they are paired again or confirmed"`
	Locked    []Lock           `json:"locked" doc:"people whose accounts count for nothing until they are unlocked"`
	Away      []Absence        `json:"away" doc:"people who do not answer just now"`

	StoppedAgents []StoppedAgent `json:"stopped_agents,omitempty" doc:"agents that ask nothing until they are resumed"`
	// Unconfirmed counts what a restore suspended and nobody has confirmed since.
	Unconfirmed *UnconfirmedStatus `json:"unconfirmed" doc:"null for everybody but the operator"`
	// Missing is for the operator.
	Missing []string `json:"missing,omitempty" doc:"the command that closes each grant, token and pairing whose row somebody deleted"`
}

// ChannelStatus is a channel's state, and whom it reaches now.
type ChannelStatus struct {
	Channel
	Reaches []string `json:"reaches" doc:"names, of those that the caller may see"`
}

// PersonStatus has the channels by which a person can be reached now.
type PersonStatus struct {
	Name string   `json:"name"`
	Via  []string `json:"via"`
	Text string   `json:"text" doc:"why by none; empty when by any"`
}

// WaitingStatus counts the requests that wait for the caller; for the operator, those that wait for anybody.
type WaitingStatus struct {
	Count  int        `json:"count"`
	Oldest *time.Time `json:"oldest"`
}

// SuspendedState is a person's account that is suspended.
type SuspendedState struct {
	Person string `json:"person"`
	Via    string `json:"via"`
	Text   string `json:"text" doc:"why, and what to do about it"`
}

// UnconfirmedStatus counts what a restore suspended and nobody has confirmed since.
type UnconfirmedStatus struct {
	Grants   int `json:"grants"`
	Tokens   int `json:"tokens"`
	Pairings int `json:"pairings"`
}

// Ended is the result of [Client.Shutdown].
type Ended struct {
	Daemon
	Pending int `json:"pending" doc:"requests that wait, and are asked again at the next start"`
}

func (r *routes) registerStatus() {
	serve(r, get("status", "/v1/status", "Tell how the daemon stands, and whom it can reach"), r.status)
	serve(r, post("shutdown", "/v1/shutdown", "End the daemon in order; for the operator"), r.shutdown)
	serve(r, get("health", "/v1/health", "Tell how each channel is, where it knows"), r.health)
	serve(r, get("people", "/v1/people", "Tell by which channels each person can be reached; for the operator"), r.people)
	serve(r, get("whoami", "/v1/whoami", "Tell who the caller is here"), r.whoami)
}

func (r *routes) status(ctx context.Context, _ *struct{}) (Status, error) {
	id := who(ctx)
	self, err := r.engine.Who(id)
	if err != nil {
		return Status{}, err
	}
	s := Status{
		Daemon: r.self(), StoppedBy: wire.OrNull(r.engine.StoppedBy()),
		Channels: []ChannelStatus{}, People: []PersonStatus{}, Suspended: []SuspendedState{},
		Locked: []Lock{}, Away: r.absences(),
	}
	notReady := r.engine.Ready(ctx)
	if notReady != nil {
		s.NotReady = wire.OrNull(notReady.Error())
	}
	s.Ready = s.NotReady == nil
	if !errors.Is(notReady, permissions.ErrAway) { // else each of these would wait for a database that does not answer
		if err := r.readWaiting(ctx, id, &s); err != nil && s.Ready {
			return Status{}, err
		}
	}
	for _, m := range r.engine.MissingRows() {
		if id.Operator {
			s.Missing = append(s.Missing, closingCommand(m))
		}
	}
	for _, l := range r.engine.Locks() {
		s.Locked = append(s.Locked, fromLock(permissions.Locked{Lock: l}, false))
	}
	for _, l := range r.engine.StoppedAgents() {
		s.StoppedAgents = append(s.StoppedAgents, stoppedAgent(l, 0))
	}
	s.reach(r.engine.Contacts(), func(name string) bool { return id.Operator || name == self })
	return s, nil
}

// readWaiting reads what waits for answers, and for the operator what is suspended.
func (r *routes) readWaiting(ctx context.Context, id connectors.Identity, s *Status) error {
	count, since, err := r.engine.Waiting(ctx, id)
	if err == nil && count > 0 {
		s.Waiting = WaitingStatus{Count: count, Oldest: &since}
	}
	if !id.Operator || err != nil && s.Ready {
		return err
	}
	all, failed := r.engine.Suspended(ctx, id)
	if failed == nil {
		s.Unconfirmed = &UnconfirmedStatus{Grants: len(all.Grants), Tokens: len(all.Tokens), Pairings: len(all.Pairings)}
	}
	return failed
}

// closingCommand is the command that closes a missing row.
func closingCommand(r permissions.Record) string {
	switch r.Type {
	case permissions.GrantRevoked:
		return "daycared revoke " + r.RowName()
	case permissions.TokenRevoked:
		return "daycared token revoke " + r.RowName()
	}
	return "daycared unpair " + r.Detail["person"] + " --via " + r.Detail["via"]
}

func (r *routes) self() Daemon {
	if r.options.Daemon == nil {
		return Daemon{}
	}
	return r.options.Daemon()
}

func (r *routes) shutdown(ctx context.Context, _ *struct{}) (Ended, error) {
	id := who(ctx)
	if !id.Operator || r.options.Stop == nil {
		return Ended{}, permissions.OperatorOnly()
	}
	count, _, err := r.engine.Waiting(ctx, id)
	if err != nil {
		count = 0 // an unhealthy daemon can be stopped, too
	}
	r.options.Stop("daycared stop")
	return Ended{Daemon: r.self(), Pending: count}, nil
}

// Status returns the daemon's state, as far as this account may see it.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return fetch[Status](ctx, c, "/v1/status")
}

// Shutdown stops the daemon in order, as SIGTERM does. It returns once the daemon has begun to stop.
func (c *Client) Shutdown(ctx context.Context) (Ended, error) {
	return ask[Ended](ctx, c, http.MethodPost, "/v1/shutdown", nil, 0)
}

// reach fills in whom the channels reach, of the people that the caller may see.
func (s *Status) reach(contacts []connectors.Contact, sees func(name string) bool) {
	people := map[string]*PersonStatus{}
	var names []string
	for _, c := range contacts {
		ch := ChannelStatus{Channel: channelOf(c.Channel, c.Health), Reaches: []string{}}
		var why []string
		for _, name := range slices.Sorted(maps.Keys(c.People)) {
			reaches := c.Reaches(name)
			s.Reachable = s.Reachable || reaches
			if !sees(name) {
				continue
			}
			p := people[name]
			if p == nil {
				p = &PersonStatus{Name: name, Via: []string{}}
				people[name] = p
				names = append(names, name)
			}
			switch err := c.People[name]; {
			case reaches:
				ch.Reaches = append(ch.Reaches, name)
				p.Via = append(p.Via, c.Channel)
			case err != nil:
				why = append(why, err.Error())
				p.Text = joinTexts(p.Text, err.Error())
			default:
				p.Text = joinTexts(p.Text, c.Channel+": "+ch.Text)
			}
		}
		if len(ch.Reaches) == 0 && ch.OK {
			ch.Text = strings.Join(slices.Compact(why), "; ")
		}
		s.Channels = append(s.Channels, ch)
		for _, name := range slices.Sorted(maps.Keys(c.Suspended)) {
			if sees(name) {
				s.Suspended = append(s.Suspended, SuspendedState{Person: name, Via: c.Channel, Text: c.Suspended[name].Error()})
			}
		}
	}
	for _, name := range names {
		if len(people[name].Via) > 0 {
			people[name].Text = ""
		}
		s.People = append(s.People, *people[name])
	}
}

func joinTexts(text, more string) string {
	switch {
	case text == "":
		return more
	case strings.Contains(text, more): // a lock has the same text on every channel
		return text
	}
	return text + "; " + more
}

// Channel is the health of one connector.
type Channel struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Text string `json:"text" doc:"what is wrong and what to do; empty when nothing is"`
}

func channelOf(name string, health error) Channel {
	if health != nil {
		return Channel{Name: name, Text: health.Error()}
	}
	return Channel{Name: name, OK: true}
}

// Person has the channels by which a person can be reached.
type Person struct {
	Name string   `json:"name"`
	Via  []string `json:"via" doc:"the channels by which they can be reached; screens are not among them"`
	Away *Absence `json:"away" doc:"their absence, or null"`
}

func (r *routes) people(ctx context.Context, _ *struct{}) ([]Person, error) {
	if !who(ctx).Operator {
		return nil, permissions.OperatorOnly()
	}
	all := []Person{}
	for name, via := range r.engine.ReachableVia() {
		all = append(all, Person{Name: name, Via: via, Away: r.absence(name)})
	}
	slices.SortFunc(all, func(a, b Person) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// People lists the channels by which each person can be reached; for the operator.
func (c *Client) People(ctx context.Context) ([]Person, error) {
	return fetch[[]Person](ctx, c, "/v1/people")
}

func (r *routes) health(ctx context.Context, _ *struct{}) ([]Channel, error) {
	if _, err := r.engine.Who(who(ctx)); err != nil {
		return nil, err
	}
	all := []Channel{}
	for name, err := range r.engine.Health() {
		all = append(all, channelOf(name, err))
	}
	slices.SortFunc(all, func(a, b Channel) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Health lists the channels that report their health.
func (c *Client) Health(ctx context.Context) ([]Channel, error) {
	return fetch[[]Channel](ctx, c, "/v1/health")
}
