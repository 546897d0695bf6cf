package agents

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daycared/daycared/permissions"
)

// What every agent that the daemon runs writes of a session, in the same words.

// RecordOf is what happened in a session, for the audit and for those who follow it, with pairs of further details.
func RecordOf(t permissions.Type, s permissions.AgentSession, at time.Time, detail ...string) permissions.Record {
	r := permissions.Record{Type: t, At: at, Actor: s.Caller().Name, Request: s.Request, Detail: map[string]string{
		"session": string(s.ID), "person": s.Person, "agent": s.Agent,
	}}
	for i := 0; i+1 < len(detail); i += 2 {
		r.Detail[detail[i]] = detail[i+1]
	}
	return r
}

// StatusOf tells how a session stands.
func StatusOf(s permissions.AgentSession) permissions.Record {
	return RecordOf(permissions.SessionStatus, s, s.ChangedAt, "status", string(s.Status))
}

// Encode writes what is stored. JSON within it stays as it is, byte for byte, also where it has < > &: the input of a call
// is compared with the one that people were shown.
func Encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("write what a session does: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// ArtifactOf is something that came of a session. What is in it can always be written.
func ArtifactOf(t ArtifactType, content map[string]any) Artifact {
	text, _ := Encode(content)
	return Artifact{Type: t, Content: text}
}

// Why calls do not run that people were asked about.
const (
	ReasonDenied  = "user_denied"
	ReasonTimeout = "ack_timeout"
	ReasonStopped = "stopped"
)

// How runs end.
const (
	Done        = "done"
	Interrupted = "interrupted"
	Failed      = "failed"
)

// refusal is in a word why a call does not run that q alone asks about; empty: it may.
func refusal(q permissions.Request, void bool) string {
	switch {
	case q.State == permissions.Denied:
		return ReasonDenied
	case q.State == permissions.Expired:
		return ReasonTimeout
	case q.State == permissions.Approved && (void || !q.VoidAt.IsZero()):
		return "void"
	case q.State == permissions.Approved:
		return ""
	}
	return string(q.State)
}

// Verdict is the artifact of what people said of one call, which q asks about alone: the scope of an approval, or the reason
// of a denial. An approval that is void may not be used.
func Verdict(x Execution, q permissions.Request, void bool) Artifact {
	content := map[string]any{"session_id": x.Session, "tool": x.Tool, "args": x.Arguments, "timestamp": q.DecidedAt}
	a := Artifact{}
	if why := refusal(q, void); why != "" {
		content["reason"] = cmp.Or(q.Comment, why)
		a = ArtifactOf(ArtifactApprovalDenied, content)
	} else {
		content["scope"] = q.Scope.String()
		if len(q.Under) > 0 {
			content["grants"] = q.Under
		}
		a = ArtifactOf(ArtifactApprovalGranted, content)
	}
	a.Step, a.Call = x.Step, x.Call
	return a
}

// Opening tells that people are asked about calls, for [Desk.Pose]; [Closing] ends it.
func Opening(s permissions.AgentSession, at time.Time) permissions.Record {
	return RecordOf(permissions.WaitAckEnter, s, at)
}

// Closing is what is told of a settled request by which people were asked about calls: of those that were allowed, and of
// those that were not, by their reasons; and besides, of a decision, whose it was. An approval that is void may not be used;
// stopped is why it was withdrawn, if an order did that.
func Closing(s permissions.AgentSession, q permissions.Request, void bool, stopped string, at time.Time) (all []permissions.Record) {
	s.Request = q.ID
	var reasons []string
	calls, people := map[string][]string{}, map[string][]string{}
	for _, c := range q.ToolCalls() {
		r := q.Only(c)
		why := refusal(r, void)
		if q.State == permissions.Cancelled {
			why = cmp.Or(stopped, why)
		}
		if calls[why] == nil {
			reasons = append(reasons, why)
		}
		calls[why] = append(calls[why], strconv.Itoa(c.N))
		if !slices.Contains(people[why], r.DecidedBy) {
			people[why] = append(people[why], r.DecidedBy)
		}
	}
	for _, why := range reasons {
		numbers, told, decision := strings.Join(calls[why], ","), permissions.AckRejected, "deny"
		if why == "" {
			told, decision = permissions.AckApproved, "approve"
		}
		by := strings.Join(people[why], ", ")
		all = append(all, RecordOf(told, s, at, "calls", numbers, "reason", why, "by", by))
		if why == "" || why == ReasonDenied {
			all = append(all, RecordOf(permissions.AckDecisionHandled, s, at, "calls", numbers, "decision", decision, "by", by))
		}
	}
	return all
}
