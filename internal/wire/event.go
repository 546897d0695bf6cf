package wire

import (
	"maps"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Event is something that happened, as front ends follow it. Seq grows in the order of commits and has gaps.
type Event struct {
	Seq     int64             `json:"seq"`
	Type    permissions.Type  `json:"type"`
	At      time.Time         `json:"at"`
	Session *string           `json:"session"`
	Request *permissions.ID   `json:"request"`
	Payload map[string]string `json:"payload"` // never null
}

// FromHappening is h as front ends follow it: its detail, and who did it and through what, where anybody did.
func FromHappening(h permissions.Happening) Event {
	payload := map[string]string{}
	maps.Copy(payload, h.Detail)
	for name, said := range map[string]string{"actor": h.Actor, "via": h.Via} {
		if said != "" {
			payload[name] = said
		}
	}
	return Event{
		Seq: h.Seq, Type: h.Type, At: h.At.UTC(), Session: orNull(h.Session), Request: orNull(h.Request), Payload: payload,
	}
}
