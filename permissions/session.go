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

	// Step is where its run stands, in the words of whoever runs it; nothing else reads it.
	Step json.RawMessage
}

// Caller is who asks when the session does.
func (s AgentSession) Caller() Caller { return AgentCaller(s.Agent) }

// AgentCaller is the caller that an agent of ours is.
func AgentCaller(agent string) Caller { return Caller{Name: "agent:" + agent, UID: NoUID} }
