package permissions

import (
	"encoding/json"
	"time"
)

// AgentSession is one conversation of an agent of ours, from one /new to the next, as front ends see it. Its grants end with
// it. It is a value.
type AgentSession struct {
	ID        ID
	Agent     string // its name: the caller that asks is "agent:" and this
	Person    string // whose it is: the person of its bond, or of the agent that started it
	Parent    ID     // the session that started it; empty: a foreground agent's
	Status    Activity
	Model     string
	Tokens    int64  // used so far, read and written
	Cost      int64  // so far, in millionths of the currency of the configured prices; 0 without prices
	Version   int64  // grows with every change, from 1
	Request   ID     // what it waits for; empty: nothing
	Tool      string // the tool that waits, where one does
	CreatedAt time.Time
	ChangedAt time.Time
	EndedAt   time.Time // zero: it goes on
	Debug     bool      // each state of its run is logged; it is switched beside the versions

	// Step is where its run stands, in the words of whoever runs it; nothing else reads it.
	Step json.RawMessage
}

// Caller is who asks when the session does.
func (s AgentSession) Caller() Caller { return AgentCaller(s.Agent) }

// AgentCaller is the caller that an agent of ours is.
func AgentCaller(agent string) Caller { return Caller{Name: "agent:" + agent, UID: NoUID} }

// Execution is one tool call of a session as it went: a denied one has a row as well. Step and Call name it within its session.
type Execution struct {
	ID           int64 // the store's
	Session      ID
	Step, Call   int // from 1
	Tool         string
	Arguments    json.RawMessage // canonical
	AffectedPath string          // the one file or folder that it changes or reads; empty: none
	Began        time.Time
	Ended        time.Time // zero: it has not, or nobody knows how
	Success      bool
	Exit         *int   // of a command
	Error        string // why there was no success
}

// ArtifactType is what an artifact is.
type ArtifactType string

// Artifact is something that came of a session.
type Artifact struct {
	ID         int64 // the store's
	Execution  int64 // the ID of the execution that it came of, 0 for none; it is only read
	Step, Call int   // Call is the one of the step that it came of, 0 for none
	Type       ArtifactType
	Content    json.RawMessage
}

// SessionView is a session of an agent of ours as people are told of it: with the request that it waits for, if it does.
type SessionView struct {
	Session AgentSession
	// WaitsOn is the request as it stands; without an ID where the session waits for nothing, or that is no longer kept.
	WaitsOn Request
}

// The most that is kept of what people and agents of ours tell each other, in bytes.
const (
	MaxWritten      = 16 << 10
	MaxAgentMessage = 64 << 10
)

// Binding is whose agent one of ours is, and where the two talk.
type Binding struct {
	Agent  string // its name
	Person string
	Via    string // the channel
}

// Message is what a person wrote to an agent of ours. Its words are kept until the agent has them, its key for longer.
type Message struct {
	Number    int64 // the store's, in the order in which they came
	Key       string
	Agent     string
	From      string // the person
	Text      string
	CreatedAt time.Time
	HeardAt   time.Time // the agent has it; zero: not yet
}

// AgentMessage is what an agent of ours says to its person. Its words are kept until all of it was sent.
type AgentMessage struct {
	Number    int64 // the store's, in the order in which they were said
	Key       string
	Bond      Binding
	Text      string
	Sent      int // so many of the messages that it is were sent
	CreatedAt time.Time
}

// Order is what a person tells an agent of ours to do at once, whatever it does.
type Order string

// The orders.
const (
	OrderStop Order = "stop" // what it works on
	OrderQuit Order = "quit" // its session
	OrderNew  Order = "new"  // and begin another one
)

// Activity is what an agent of ours does just now.
type Activity string

// The activities, as the session's status has them.
const (
	Idle         Activity = "idle"
	Running      Activity = "running"
	Paused       Activity = "paused"
	AwaitingUser Activity = "awaiting_user"
	Interrupted  Activity = "interrupted"
)

// Presence is an agent of ours as its person sees it.
type Presence struct {
	Agent      string
	Foreground bool // messages go to it
	Activity   Activity
	Unheard    int // messages that it does not have yet
}

// Rests reports whether the agent works on nothing, and has nothing to begin.
func (p Presence) Rests() bool {
	return (p.Activity == Idle || p.Activity == Interrupted) && p.Unheard == 0
}
