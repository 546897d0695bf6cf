package permissions

import (
	"strconv"
	"strings"
)

// Caller is who asks, proven by the door it came through. Grants, keys, joining, limits and reading belong to it.
type Caller struct {
	// Name is the proof: "uid:1000", "token:deploy", "agent:helper" or [Anonymous].
	Name string
	// UID is the OS account the call came from, or [NoUID] where the door cannot know it, or [AnyUID].
	UID int
}

// What a caller's UID may be besides an account.
const (
	NoUID  = -1 // came from elsewhere: nobody here asked it
	AnyUID = -2 // came over loopback TCP: counts as every local account
)

// Anonymous is the name of callers that prove nothing. Since they cannot be told apart, they hold no grants.
const Anonymous = "anonymous"

// CallerUID is the caller that a unix socket's peer credentials prove.
func CallerUID(uid int) Caller { return Caller{Name: "uid:" + strconv.Itoa(uid), UID: uid} }

// Ours tells whether the caller is one of the daemon's own agents, whose runs and sessions daycared itself keeps.
func (c Caller) Ours() bool { return strings.HasPrefix(c.Name, "agent:") }

// CameFrom tells whether the call counts as made by that account.
func (c Caller) CameFrom(uid int) bool { return uid >= 0 && (c.UID == AnyUID || c.UID == uid) }

// Proven is the name that routes match: a token's or an agent's own name, or "uid:1000".
func (c Caller) Proven() string {
	kind, name, _ := strings.Cut(c.Name, ":")
	if kind == "token" || kind == "agent" {
		return name
	}
	return c.Name
}
