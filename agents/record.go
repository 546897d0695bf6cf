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

// The records that every runtime of agents writes about a session, in one format.

// RecordOf is a session's event for the audit and its followers, with pairs of further details.
func RecordOf(t permissions.Type, s permissions.AgentSession, at time.Time, detail ...string) permissions.Record {
	r := permissions.Record{Type: t, At: at, Actor: s.Caller().Name, Request: s.Request, Detail: map[string]string{
		"session": string(s.ID), "person": s.Person, "agent": s.Agent,
	}}
	for i := 0; i+1 < len(detail); i += 2 {
		r.Detail[detail[i]] = detail[i+1]
	}
	return r
}

// StatusOf reports the status of a session.
func StatusOf(s permissions.AgentSession) permissions.Record {
	return RecordOf(permissions.SessionStatus, s, s.ChangedAt, "status", string(s.Status))
}

// Encode returns v as JSON for storage. JSON within it is kept byte for byte, without escaping < > &, because a call's
// input is compared with the one that people were shown.
func Encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("write what a session does: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// ArtifactOf is an artifact of a session. Its content must be encodable.
func ArtifactOf(t ArtifactType, content map[string]any) Artifact {
	text, _ := Encode(content)
	return Artifact{Type: t, Content: text}
}

// Reasons for not running calls that people were asked about.
const (
	ReasonDenied  = "user_denied"
	ReasonTimeout = "ack_timeout"
	ReasonStopped = "stopped"
)

// Outcomes of runs.
const (
	Done        = "done"
	Interrupted = "interrupted"
	Failed      = "failed"
)

// refusal is the code for why a call that q alone asks about does not run; empty: it may.
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

// Verdict is the artifact of the decision on a call that q alone asks about: the scope of an approval or the reason of
// a denial. A void approval may not be used.
func Verdict(x Execution, q permissions.Request, void bool) Artifact {
	content := map[string]any{"session_id": x.Session, "tool": x.Tool, "args": x.Arguments, "timestamp": q.DecidedAt}
	a := Artifact{}
	if why := refusal(q, void); why != "" {
		content["reason"] = cmp.Or(q.Comment, why)
		a = ArtifactOf(ArtifactApprovalDenied, content)
	} else {
		content["scope"] = q.Scope.String()
		if len(q.Grants) > 0 {
			content["grants"] = q.Grants
		}
		a = ArtifactOf(ArtifactApprovalGranted, content)
	}
	a.Step, a.Call = x.Step, x.Call
	return a
}

// Opening is the record that people are asked about calls, for [Approvals.Submit]; [Closing] ends it.
func Opening(s permissions.AgentSession, at time.Time) permissions.Record {
	return RecordOf(permissions.WaitAckEnter, s, at)
}

// Closing returns the records of a settled request about calls: the allowed calls, the others by their reasons, and who
// decided. A void approval may not be used; stopped is the order that withdrew it, if any.
func Closing(s permissions.AgentSession, q permissions.Request, void bool, stopped string, at time.Time) (all []permissions.Record) {
	s.Request = q.ID
	var reasons []string
	calls, people := map[string][]string{}, map[string][]string{}
	for _, c := range q.ToolCalls() {
		r := q.ForCall(c)
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

// WithoutOnce is a session's step without permissions for one run: those allowed once or given. A restored store drops them.
func WithoutOnce(step json.RawMessage) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(step, &fields); err != nil {
		return nil, fmt.Errorf("read what a session does: %w", err)
	}
	if fields["tags"] == nil && fields["given"] == nil {
		return step, nil
	}
	delete(fields, "tags")
	delete(fields, "given")
	return Encode(fields)
}
