package wire

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Event is something that happened, as front ends follow it. Seq grows in the order of commits and has gaps.
type Event struct {
	Seq     int64            `json:"seq"`
	Type    permissions.Type `json:"type"`
	At      time.Time        `json:"at"`
	Session *string          `json:"session"`
	Request *permissions.ID  `json:"request"`
	Payload map[string]any   `json:"payload"` // never null
}

// FromHappening is h as front ends follow it. What agents' front ends know by name has the payload that they know; of any
// other it is the detail, and who did it and through what, where anybody did. Words that are no longer kept are null.
func FromHappening(h permissions.Happening) Event {
	e := Event{Seq: h.Seq, Type: h.Type, At: h.At.UTC(), Session: orNull(h.Session), Request: orNull(h.Request)}
	r := h.About
	switch h.Type {
	case permissions.WaitAckEnter:
		e.Payload = map[string]any{"tools": gated(r)}
	case permissions.DialogRequested:
		e.Payload = map[string]any{
			"task_id": cmp.Or(h.Session, string(h.Request)), "conflict_description": orNull(r.Message), "options": r.Choices,
		}
	case permissions.DialogResponded:
		response := r.Choice()
		if r.Answer == permissions.Other {
			response = r.Comment
		}
		e.Payload = map[string]any{"response": orNull(response)}
	case permissions.DialogTimeout, permissions.AckApproved:
		e.Payload = map[string]any{}
	case permissions.AckRejected:
		e.Payload = map[string]any{"reason": h.Detail["reason"]}
	case permissions.AckDecisionHandled:
		e.Payload = map[string]any{"decision": h.Detail["decision"]}
	default:
		e.Payload = detail(h)
	}
	if h.Type == permissions.PermissionApplied && len(r.Tags) > 0 {
		e.Payload["permissions"] = each(r.Tags, permissions.Tag.String)
	}
	return e
}

// Gated is a call that waits for people's word.
type Gated struct {
	Tool         string          `json:"tool"`
	Args         json.RawMessage `json:"args"`
	Step         int             `json:"step"`
	AffectedPath *string         `json:"affected_path"`
}

// gated are the calls that r asks about; nil where it is no longer kept.
func gated(r permissions.Request) []Gated {
	if r.ID == "" {
		return nil
	}
	return each(r.ToolCalls(), func(c permissions.Call) Gated {
		return Gated{Tool: c.Tool, Args: orNullJSON(c.Input), Step: r.Step, AffectedPath: orNull(c.AffectedPath)}
	})
}

// detail is what the audit says of h.
func detail(h permissions.Happening) map[string]any {
	said := map[string]any{}
	for name, value := range h.Detail {
		if name != "session" { // which stands beside the payload
			said[name] = value
		}
	}
	for name, value := range map[string]string{"actor": h.Actor, "via": h.Via} {
		if value != "" {
			said[name] = value
		}
	}
	return said
}
