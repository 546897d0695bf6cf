package permissions

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// About is the subject of a notice.
type About string

// Subjects of notices from the daemon.
const (
	AboutWaiting About = "waiting" // a reminder of everything that awaits them; Subject is the request that caused it
	AboutEnded   About = "ended"   // a grant is over; Subject is the grant
	AboutRevoked About = "revoked" // a grant was revoked; Subject is the grant
	AboutStopped About = "stopped" // everything was stopped
	// AboutQuiet is the digest of what the agent By asked since CreatedAt, until when Told.Text says; until then its cards are silent.
	AboutQuiet About = "quiet"
	AboutMuted About = "muted" // the agent By asks nothing any more; Told.Text has the ids of what was denied or ignored

	AboutPairing About = "pairing" // somebody says whose an unknown account is; Subject is the account

	AboutUnknownSenders About = "strangers" // unknown accounts wrote; at most one such notice is pending

	// Subjects of notices from callers; see [CallerMessage].
	AboutFinished About = "finished" // an agent has finished a turn
	AboutWaits    About = "waits"    // an agent waits for its person, outside daycared
	AboutFailed   About = "failed"   // an agent has given up
	AboutText     About = "says"     // free text of a script
)

// CallerSubjects returns the subjects that callers may use.
func CallerSubjects() []About { return []About{AboutFinished, AboutWaits, AboutFailed, AboutText} }

const (
	// MaxTitle bounds the title of a session in a [CallerMessage], in characters.
	MaxTitle = 100
	// MaxCallerMessage bounds the text of a [CallerMessage], in characters.
	MaxCallerMessage = 1000
)

// CallerMessage is a caller's message to a person. It asks nothing and decides nothing, and its words are the caller's own.
type CallerMessage struct {
	Text    string `json:"text,omitzero" doc:"at most 1000 characters; required where about is says"`
	Agent   string `json:"agent,omitzero" doc:"who it is about, by its own word"` // empty: the caller itself
	Session string `json:"session,omitzero" doc:"what is newer about a session stands for what is still to be sent about it"`
	Title   string `json:"title,omitzero" doc:"of the session; at most 100 characters"`
	Silent  bool   `json:"silent,omitzero" doc:"without a sound, where the channel can do that"`
}

// Validate returns what is wrong with a telling with that subject, or nil.
func (t CallerMessage) Validate(about About) error {
	if !slices.Contains(CallerSubjects(), about) {
		return fmt.Errorf("what is told is about one of %v, not %q", CallerSubjects(), about)
	}
	for _, one := range []struct {
		name, text string
		most       int
	}{{"agent", t.Agent, MaxName}, {"session", t.Session, MaxName}, {"title", t.Title, MaxTitle}, {"text", t.Text, MaxCallerMessage}} {
		switch {
		case !utf8.ValidString(one.text):
			return fmt.Errorf("the %s is not UTF-8", one.name)
		case utf8.RuneCountInString(one.text) > one.most:
			return fmt.Errorf("the %s has more than %d characters", one.name, one.most)
		}
	}
	if about == AboutText && strings.TrimSpace(t.Text) == "" {
		return errors.New("there is no text to tell")
	}
	return nil
}

// Notice is a message to one person, or to all in a group, that asks nothing. It is stored in the commit that causes it,
// without text unless it is a caller's: the text is built from the rows when it is sent. Unsent reminders to one person,
// or one group, are merged.
type Notice struct {
	ID            ID     // the store's
	To            string // a person; empty: all in Group
	Group         string // see [Request]
	About         About
	Subject       ID
	By            string // who caused it; empty for the daemon itself
	Urgent        bool   // also in quiet hours
	CreatedAt     time.Time
	CallerMessage CallerMessage // if About is one of [CallerSubjects]; By is then the name of the caller
}

// GroupRename says that a group has another id since a time, as when it becomes a supergroup.
type GroupRename struct {
	Was, Now string
	At       time.Time
}
