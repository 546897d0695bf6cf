package admin

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Daemon is what a daemon's process says of itself.
type Daemon struct {
	PID     int       `json:"pid"`
	UID     int       `json:"uid" doc:"the account that runs it"`
	Version string    `json:"version"`
	Since   time.Time `json:"since"`
	// Manager is what may start it again when it ends: systemd, or null.
	Manager *string `json:"manager"`
	// Config is the configuration file that is in force, null for the defaults, and ConfigRead when it was read last.
	Config     *string   `json:"config"`
	ConfigRead time.Time `json:"config_read"`
	// ConfigRefused says why the file was not taken when it was to be read again; null when it was.
	ConfigRefused *string `json:"config_refused"`
	DataDir       string  `json:"data_dir"`
	// Log is the file of the log; null: standard error.
	Log         *string `json:"log"`
	AgentSocket string  `json:"agent_socket"`
	AdminSocket string  `json:"admin_socket"`
	Listen      *string `json:"listen" doc:"where agents of other machines ask; null: nowhere"`
	// Console is how the daemon's own terminal stands.
	Console string `json:"console" enum:"open,closed,none,off"`
}

// Status is how a daemon stands. What is another person's is left out for everybody but the operator.
type Status struct {
	Daemon
	// Ready reports whether requests can be stored and answered, as /readyz does; NotReady says why they cannot.
	Ready    bool    `json:"ready"`
	NotReady *string `json:"not_ready"`
	// Reachable reports whether anybody at all can be reached just now.
	Reachable bool             `json:"reachable"`
	Channels  []ChannelStatus  `json:"channels"`
	People    []PersonStatus   `json:"people"`
	Waiting   WaitingStatus    `json:"waiting"`
	StoppedBy *string          `json:"stopped_by"`
	Suspended []SuspendedState `json:"suspended" doc:"accounts that decide nothing until they are paired again or confirmed"`
	// Unconfirmed is what a restore suspended and nobody has confirmed since.
	Unconfirmed *UnconfirmedStatus `json:"unconfirmed" doc:"null for everybody but the operator"`
}

// ChannelStatus is how one channel stands, and whom it reaches just now.
type ChannelStatus struct {
	Channel
	Reaches []string `json:"reaches" doc:"names, of those that the caller may see"`
}

// PersonStatus is by which channels somebody can be reached just now.
type PersonStatus struct {
	Name string   `json:"name"`
	Via  []string `json:"via"`
	Text string   `json:"text" doc:"why by none; empty when by any"`
}

// WaitingStatus is what waits for an answer of the caller's, for the operator of anybody's.
type WaitingStatus struct {
	Count  int        `json:"count"`
	Oldest *time.Time `json:"oldest"`
}

// SuspendedState is an account of somebody's that is suspended.
type SuspendedState struct {
	Person string `json:"person"`
	Via    string `json:"via"`
	Text   string `json:"text" doc:"why, and what to do about it"`
}

// UnconfirmedStatus is how much a restore suspended that nobody has confirmed since.
type UnconfirmedStatus struct {
	Grants   int `json:"grants"`
	Tokens   int `json:"tokens"`
	Pairings int `json:"pairings"`
}

type statusOutput struct{ Body Status }

// Ended is what [Client.Shutdown] did.
type Ended struct {
	Daemon
	Pending int `json:"pending" doc:"requests that wait, and are asked again at the next start"`
}

type endedOutput struct{ Body Ended }

func (r *routes) registerStatus() {
	huma.Register(r.door.API, huma.Operation{
		OperationID: "status", Method: http.MethodGet, Path: "/v1/status", Summary: "Tell how the daemon stands, and whom it can reach",
	}, r.status)
	huma.Register(r.door.API, huma.Operation{
		OperationID: "shutdown", Method: http.MethodPost, Path: "/v1/shutdown", Summary: "End the daemon in order; for the operator",
		MaxBodyBytes: -1, BodyReadTimeout: -1, // as for the other calls
	}, r.shutdown)
}

func (r *routes) status(ctx context.Context, _ *struct{}) (*statusOutput, error) {
	id := who(ctx)
	self, err := r.desk.Who(id)
	if err != nil {
		return nil, r.door.Refuse(err)
	}
	s := Status{
		Daemon: r.self(), StoppedBy: orNull(r.desk.StoppedBy()),
		Channels: []ChannelStatus{}, People: []PersonStatus{}, Suspended: []SuspendedState{},
	}
	if err := r.desk.Ready(ctx); err != nil {
		s.NotReady = orNull(err.Error())
	}
	s.Ready = s.NotReady == nil
	count, since, err := r.desk.Waiting(ctx, id)
	switch {
	case err != nil && s.Ready:
		return nil, r.door.Refuse(err)
	case err == nil && count > 0:
		s.Waiting = WaitingStatus{Count: count, Oldest: &since}
	}
	if desk, can := r.desk.(Reinstater); can && id.Operator {
		all, err := desk.Suspended(ctx, id)
		switch {
		case err != nil && s.Ready:
			return nil, r.door.Refuse(err)
		case err == nil:
			s.Unconfirmed = &UnconfirmedStatus{Grants: len(all.Grants), Tokens: len(all.Tokens), Pairings: len(all.Pairings)}
		}
	}
	s.reach(r.desk.Contacts(), func(name string) bool { return id.Operator || name == self })
	return &statusOutput{Body: s}, nil
}

func (r *routes) self() Daemon {
	if r.daemon == nil {
		return Daemon{}
	}
	return r.daemon()
}

func (r *routes) shutdown(ctx context.Context, _ *struct{}) (*endedOutput, error) {
	id := who(ctx)
	if !id.Operator || r.end == nil {
		return nil, r.door.Refuse(permissions.OperatorOnly())
	}
	count, _, err := r.desk.Waiting(ctx, id)
	if err != nil {
		count = 0 // a daemon that is not well can be ended, too
	}
	r.end("daycared stop")
	return &endedOutput{Body: Ended{Daemon: r.self(), Pending: count}}, nil
}

// Status is how the daemon stands, as far as this account may see it.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	return s, c.get(ctx, "/v1/status", &s)
}

// Shutdown ends the daemon in order, as SIGTERM does. It returns when the daemon has begun to stop.
func (c *Client) Shutdown(ctx context.Context) (Ended, error) {
	var e Ended
	return e, c.wire.Call(ctx, http.MethodPost, "/v1/shutdown", c.header(""), nil, 0, &e)
}

// reach fills in whom the channels reach, as far as the caller sees people.
func (s *Status) reach(contacts []connectors.Contact, sees func(name string) bool) {
	people := map[string]*PersonStatus{}
	var names []string
	for _, c := range contacts {
		ch := ChannelStatus{Channel: Channel{Name: c.Channel, OK: c.Health == nil}, Reaches: []string{}}
		if c.Health != nil {
			ch.Text = c.Health.Error()
		}
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
				p.Text = besides(p.Text, err.Error())
			default:
				p.Text = besides(p.Text, c.Channel+": "+ch.Text)
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

func besides(text, more string) string {
	if text == "" {
		return more
	}
	return text + "; " + more
}
