package permissions

import "time"

// The most that is kept of what people and agents of ours tell each other, in bytes.
const (
	MaxWritten   = 16 << 10
	MaxUtterance = 64 << 10
)

// Bond is whose agent one of ours is, and where the two talk.
type Bond struct {
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

// Utterance is what an agent of ours says to its person. Its words are kept until all of it was sent.
type Utterance struct {
	Number    int64 // the store's, in the order in which they were said
	Key       string
	Bond      Bond
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
