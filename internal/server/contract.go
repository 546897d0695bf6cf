package server

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

//go:embed events.json
var eventsText []byte

// Contract is what front ends can rely on, as documented in docs/events.md.
type Contract struct {
	Order  string // of the events
	Events map[permissions.Type]struct {
		About   string
		Payload map[string]*huma.Schema // by member name
	}
	Views map[string][]string // columns of the store's views, by view
}

// Events returns the contract of this version.
var Events = sync.OnceValue(func() (c Contract) {
	if err := json.Unmarshal(eventsText, &c); err != nil {
		panic(fmt.Sprintf("events.json is not right: %v", err))
	}
	return c
})

// Schema describes any event.
func (c Contract) Schema() *huma.Schema {
	text := func(format string, nullable bool) *huma.Schema {
		return &huma.Schema{Type: huma.TypeString, Format: format, Nullable: nullable}
	}
	all := &huma.Schema{Description: c.Order}
	for _, name := range slices.Sorted(maps.Keys(c.Events)) {
		all.OneOf = append(all.OneOf, &huma.Schema{
			Type: huma.TypeObject, Title: string(name), Description: c.Events[name].About,
			Properties: map[string]*huma.Schema{
				"seq": {Type: huma.TypeInteger}, "type": {Type: huma.TypeString, Enum: []any{name}}, "at": text("date-time", false),
				"session": text("", true), "request": text("", true),
				"payload": {Type: huma.TypeObject, Properties: c.Events[name].Payload},
			},
			Required: []string{"seq", "type", "at", "session", "request", "payload"},
		})
	}
	return all
}

// EventOf converts h. An event type of the agents' contract has its documented payload; any other the audit's
// detail, with who did it and through what, if known. Pruned texts are null.
func EventOf(h permissions.Event) wire.Event {
	e := wire.Event{Seq: h.Seq, Type: h.Type, At: h.At.UTC(), Session: wire.OrNull(h.Session), Request: wire.OrNull(h.Request)}
	r := h.About
	switch h.Type {
	case permissions.WaitAckEnter:
		e.Payload = map[string]any{"tools": wire.GatedCalls(r)}
	case permissions.DialogRequested:
		e.Payload = map[string]any{
			"task_id": cmp.Or(h.Session, string(h.Request)), "conflict_description": wire.OrNull(r.Message), "options": r.Choices,
		}
	case permissions.DialogResponded, permissions.DialogTimeout:
		response := r.Choice()
		if r.Answer == permissions.Other {
			response = r.Comment
		}
		why := h.Detail["reason"]
		if r.DeniedIfUnanswered() && (r.TimedOut || r.Defaulted) {
			response, why = "", "unanswered"
		}
		e.Payload = map[string]any{"response": wire.OrNull(response)}
		if why != "" && response == "" {
			e.Payload["reason"] = why
		}
		if r.Defaulted {
			e.Payload["defaulted"] = true
		}
	case permissions.AckApproved:
		e.Payload = map[string]any{"by": wire.OrNull(h.Detail["by"]), "calls": answered(h)}
	case permissions.AckRejected:
		e.Payload = map[string]any{"reason": h.Detail["reason"], "calls": answered(h)}
	case permissions.AckDecisionHandled:
		e.Payload = map[string]any{"decision": h.Detail["decision"], "person": wire.OrNull(h.Detail["by"]), "calls": answered(h)}
	case permissions.ToolFinished:
		number, _ := strconv.ParseInt(h.Detail["execution"], 10, 64) // set by the store
		e.Payload = map[string]any{
			"execution": number, "tool": h.Detail["tool"], "success": h.Detail["success"] == "true",
			"affected_path": wire.OrNull(h.Detail["affected_path"]),
		}
	default:
		e.Payload = detail(h)
	}
	if h.Type == permissions.PermissionApplied && len(r.Tags) > 0 {
		e.Payload["permissions"] = wire.Map(r.Tags, permissions.Tag.String)
	}
	return e
}

// answered are the calls of h; if their request was pruned, only their numbers.
func answered(h permissions.Event) []wire.Answered {
	all := []wire.Answered{}
	for text := range strings.SplitSeq(h.Detail["calls"], ",") {
		n, err := strconv.Atoi(text)
		if err != nil { // an old event without calls
			continue
		}
		w := wire.Answered{Call: n}
		if calls := h.About.ToolCalls(); n > 0 && n <= len(calls) {
			r := h.About.ForCall(calls[n-1])
			w.Tool, w.Scope, w.Reason = wire.OrNull(r.Tool), wire.OrNull(r.Scope.String()), wire.OrNull(r.Comment)
			w.Person, w.At = wire.OrNull(r.DecidedBy), wire.OrNullTime(r.DecidedAt)
		}
		all = append(all, w)
	}
	return all
}

// detail is the audit's detail of h.
func detail(h permissions.Event) map[string]any {
	said := map[string]any{}
	for name, value := range h.Detail {
		said[name] = value
		if m := Events().Events[h.Type].Payload[name]; m != nil && m.Type == huma.TypeInteger {
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				said[name] = n
			}
		}
	}
	delete(said, "session")                                              // a field of its own
	if h.Type == permissions.RequestSettled && h.Detail["calls"] != "" { // one answer would not be that of all calls
		delete(said, "answer")
		said["calls"] = wire.Map(strings.Split(h.Detail["calls"], ","), func(text string) map[string]any {
			number, answer, _ := strings.Cut(text, ":")
			n, _ := strconv.Atoi(number) // written by us
			return map[string]any{"call": n, "answer": answer}
		})
	}
	for name, value := range map[string]string{"actor": h.Actor, "via": h.Via} {
		if value != "" {
			said[name] = value
		}
	}
	return said
}
