package permissions

import "time"

// About is what a notice tells.
type About string

// What people are told beside the cards.
const (
	AboutWaiting About = "waiting" // a reminder of everything that waits for them; Subject is the request that caused it
	AboutEnded   About = "ended"   // a grant is over; Subject is the grant
	AboutRevoked About = "revoked" // a grant was taken back; Subject is the grant
	AboutStopped About = "stopped" // everything was stopped

	AboutStrangers About = "strangers" // accounts of nobody here wrote; there is one such notice at a time
)

// Notice is a message to one person, or to all in a place, that asks nothing. It is stored in the commit of what it
// tells, without its words: those are made of the rows when it is sent. Several reminders that are still to be sent to a
// person, or to a place, are one.
type Notice struct {
	ID        ID     // the store's
	To        string // a person; empty: all in Place
	Place     string // see [Request]
	About     About
	Subject   ID
	By        string // who caused it; empty for the daemon itself
	Urgent    bool   // also in quiet hours
	CreatedAt time.Time
}
