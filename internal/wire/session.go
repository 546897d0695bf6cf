package wire

import (
	"cmp"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Session is a session of an agent of ours as programs read it. A member without a value is null. Times are UTC.
type Session struct {
	ID        permissions.ID       `json:"id"`
	Agent     string               `json:"agent"`
	Status    permissions.Activity `json:"status"`
	Model     string               `json:"model"`
	Tokens    int64                `json:"tokens"`
	Version   int64                `json:"version"`
	WaitingOn *WaitingOn           `json:"waiting_on"`
	Person    string               `json:"person"`
	Parent    *permissions.ID      `json:"parent"` // the session that began it
	Cost      int64                `json:"cost"`   // in millionths of the currency of the configured prices
	Started   *time.Time           `json:"started"`
	Changed   *time.Time           `json:"changed"`
	Ended     *time.Time           `json:"ended"`
}

// WaitingOn is what a session waits for.
type WaitingOn struct {
	Request permissions.ID    `json:"request"`
	Kind    *permissions.Kind `json:"kind"`
	Tool    *string           `json:"tool"`
	Message *string           `json:"message"` // else the reason
	Details *string           `json:"details"`
}

// FromSitting is s as programs read it.
func FromSitting(s permissions.Sitting) Session {
	a, r := s.Session, s.WaitsOn
	w := Session{
		ID: a.ID, Agent: a.Agent, Status: a.Status, Model: a.Model, Tokens: a.Tokens, Version: a.Version,
		Person: a.Person, Parent: orNull(a.Parent), Cost: a.Cost,
		Started: orNullTime(a.CreatedAt), Changed: orNullTime(a.ChangedAt), Ended: orNullTime(a.EndedAt),
	}
	if a.Request != "" {
		w.WaitingOn = &WaitingOn{
			Request: a.Request, Kind: orNull(r.Kind), Tool: orNull(cmp.Or(a.Tool, r.Tool)),
			Message: orNull(cmp.Or(r.Message, r.Reason)), Details: orNull(r.Details),
		}
	}
	return w
}
