package permissions

import (
	"encoding/json"
	"time"
)

// AgentSession is one conversation with one of our own agents, from one /new to the next, as front ends see it. Its
// grants end with it. It is a value.
type AgentSession struct {
	ID        ID
	Agent     string // its name: the caller is "agent:" and this
	Person    string // its person: that of its binding, or of the agent that started it
	Parent    ID     // the session that started it; empty: a foreground agent's
	Status    Activity
	Model     string
	Tokens    int64  // used so far, read and written
	Cost      int64  // so far, in millionths of the currency of the configured prices; 0 without prices
	Version   int64  // grows with every change, from 1
	Request   ID     // the request it waits for; empty: none
	Tool      string // the waiting tool, if one waits
	CreatedAt time.Time
	ChangedAt time.Time
	EndedAt   time.Time // zero: it has not ended
	Debug     bool      // each state of its run is logged; changing it does not change Version

	// Step is the state of its run, in the format of the runtime; nothing else reads it.
	Step json.RawMessage
}

// Caller returns the caller of the session's requests.
func (s AgentSession) Caller() Caller { return AgentCaller(s.Agent) }

// AgentCaller returns the caller of one of our own agents.
func AgentCaller(agent string) Caller { return Caller{Name: "agent:" + agent, UID: NoUID} }

// Execution is one tool call of a session; denied calls have a row as well. Step and Call identify it within its
// session.
type Execution struct {
	ID           int64 // assigned by the store
	Session      ID
	Step, Call   int // from 1
	Tool         string
	Arguments    json.RawMessage // canonical
	AffectedPath string          // the one file or folder that it changes or reads; empty: none
	Began        time.Time
	Ended        time.Time // zero: it has not, or the outcome is unknown
	Success      bool
	Exit         *int   // of a command
	Error        string // why it failed
}

// ArtifactType is the type of an artifact.
type ArtifactType string

// Artifact is a result of a session.
type Artifact struct {
	ID         int64 // assigned by the store
	Execution  int64 // the ID of the execution that produced it, 0 for none; read only
	Step, Call int   // Call is the call of the step that produced it, 0 for none
	Type       ArtifactType
	Content    json.RawMessage
}

// SessionView is a session of one of our own agents with the request that it waits for, if any.
type SessionView struct {
	Session AgentSession
	// WaitsOn is the current request; without an ID if the session waits for nothing, or it is no longer stored.
	WaitsOn Request
}

// Limits of the messages between people and our own agents, in bytes.
const (
	MaxMessageSize  = 16 << 10
	MaxAgentMessage = 64 << 10
)

// Binding says whose agent one of ours is, and in which channel the two talk.
type Binding struct {
	Agent  string // its name
	Person string
	Via    string // the channel
}

// Message is a person's message to one of our own agents. Its text is kept until the agent has it, its key for longer.
type Message struct {
	Number     int64 // assigned by the store, in order of arrival
	Key        string
	Agent      string
	From       string // the person
	Text       string
	CreatedAt  time.Time
	ReceivedAt time.Time // when the agent received it; zero: not yet
}

// AgentMessage is a message of one of our own agents to its person. Its text is kept until all of it was sent.
type AgentMessage struct {
	Number    int64 // assigned by the store, in order
	Key       string
	Binding   Binding
	Text      string
	Sent      int // how many of its parts were sent
	CreatedAt time.Time
}

// Order is an order to one of our own agents that is carried out at once, whatever it does.
type Order string

// The orders.
const (
	OrderStop Order = "stop" // what it works on
	OrderQuit Order = "quit" // its session
	OrderNew  Order = "new"  // and begin another one
)

// Activity is what one of our own agents is doing.
type Activity string

// The activities, as in the session's status.
const (
	Idle         Activity = "idle"
	Running      Activity = "running"
	Paused       Activity = "paused"
	AwaitingUser Activity = "awaiting_user"
	Interrupted  Activity = "interrupted"
)

// Presence is one of our own agents as its person sees it.
type Presence struct {
	Agent       string   `json:"agent"`
	Foreground  bool     `json:"foreground" doc:"messages go to it"`
	Activity    Activity `json:"activity"`
	Undelivered int      `json:"unheard" doc:"messages that it does not have yet"`
}

// IsIdle reports whether the agent works on nothing and has nothing to begin.
func (p Presence) IsIdle() bool {
	return (p.Activity == Idle || p.Activity == Interrupted) && p.Undelivered == 0
}
