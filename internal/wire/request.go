package wire

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Request is a request as programs read it. The names and their order are a contract; a member without a value is
// null, a list without members is []. Times are UTC.
type Request struct {
	ID           permissions.ID       `json:"id"`
	Kind         permissions.Kind     `json:"kind"`
	Agent        *string              `json:"agent"`
	Caller       string               `json:"caller"`
	Session      *string              `json:"session"`
	Background   bool                 `json:"background"`
	Foreground   *string              `json:"foreground"`
	Step         *int                 `json:"step"`
	Mode         *permissions.Mode    `json:"mode"`
	Claimed      bool                 `json:"claimed"`
	Host         *string              `json:"host"`
	Cwd          *string              `json:"cwd"`
	Tags         []string             `json:"permissions"`
	Tool         *string              `json:"tool"`
	Input        json.RawMessage      `json:"input"`
	AffectedPath *string              `json:"affected_path"`
	Calls        []Call               `json:"calls"` // null outside a step
	HighRisk     bool                 `json:"high_risk"`
	Message      *string              `json:"message"`
	Details      *string              `json:"details"`
	Reason       *string              `json:"reason"`
	Digest       string               `json:"digest"`
	Key          *string              `json:"key"`
	Options      []permissions.Option `json:"options"`
	State        permissions.State    `json:"state"`
	Answer       *permissions.Answer  `json:"answer"`
	Scope        *string              `json:"scope"`
	Comment      *string              `json:"comment"`
	DecidedBy    *string              `json:"decided_by"`
	DecidedVia   *string              `json:"decided_via"`
	DecidedAt    *time.Time           `json:"decided_at"`
	Votes        []Vote               `json:"votes"`
	Quorum       int                  `json:"quorum"`
	CreatedAt    *time.Time           `json:"created_at"`
	Deadline     *time.Time           `json:"deadline"`
	Asked        []string             `json:"asked"`
	Delivered    []Delivery           `json:"delivered"`
	TimedOut     bool                 `json:"timed_out"`
	Defaulted    bool                 `json:"defaulted"`
	UsedAt       *time.Time           `json:"used_at"`
	VoidAt       *time.Time           `json:"void_at"`
	Waiting      int                  `json:"waiting"`
	Result       string               `json:"result"`
	Hook         string               `json:"hook,omitzero"` // only what an agent's own hook asks
	Code         string               `json:"code,omitzero"` // deciders only
	// Editor says that it may be answered in the asker's own editor as well: by POST /v1/requests/{id}/answer. Agents only.
	Editor bool `json:"editor,omitzero"`
}

// Call is one call of a step.
type Call struct {
	N            int                 `json:"n"`
	Tool         string              `json:"tool"`
	Input        json.RawMessage     `json:"input"`
	AffectedPath *string             `json:"affected_path"`
	Answer       *permissions.Answer `json:"answer"`
	Comment      string              `json:"comment,omitzero"` // of whoever denied this call
}

// Vote is one person's answer.
type Vote struct {
	By     string             `json:"by"`
	Via    string             `json:"via"`
	Answer permissions.Answer `json:"answer"`
	At     time.Time          `json:"at"`
	Call   int                `json:"call,omitzero"` // of a step; absent for all that were open
}

// Delivery is one place where the request was shown.
type Delivery struct {
	To  string    `json:"to"`
	Via string    `json:"via"`
	At  time.Time `json:"at"`
}

// From is a request as it stands, in the shape for agents or in that for deciders, who also see its code.
func From(s permissions.Standing, forDeciders bool) Request {
	r := s.Request
	w := Request{
		ID: r.ID, Kind: r.Kind, Agent: orNull(r.Agent), Caller: r.Caller.Name, Session: orNull(r.Session),
		Background: r.Background, Foreground: orNull(r.Foreground), Step: orNull(r.Step),
		Mode: orNull(r.Mode), Claimed: r.Claimed, Host: orNull(r.Host), Cwd: orNull(r.Cwd),
		Tags: each(r.Tags, permissions.Tag.String), Tool: orNull(r.Tool), Input: orNullJSON(r.Input),
		AffectedPath: orNull(r.AffectedPath), HighRisk: r.HighRisk,
		Message: orNull(r.Message), Details: orNull(r.Details), Reason: orNull(r.Reason),
		Digest: r.Digest.String(), Key: orNull(r.Key), Options: append([]permissions.Option{}, r.Options...),
		State: r.State, Answer: orNull(r.Answer), Scope: orNull(r.Scope.String()), Comment: orNull(r.Comment),
		DecidedBy: orNull(r.DecidedBy), DecidedVia: orNull(r.DecidedVia), DecidedAt: orNullTime(r.DecidedAt),
		Votes: each(r.Votes, fromVote), Quorum: r.Quorum,
		CreatedAt: orNullTime(r.CreatedAt), Deadline: orNullTime(r.Deadline), Asked: append([]string{}, r.Asked...),
		Delivered: delivered(s.Copies), TimedOut: r.TimedOut, Defaulted: r.Defaulted,
		UsedAt: orNullTime(r.UsedAt), VoidAt: orNullTime(r.VoidAt),
		Waiting: s.Waiting, Result: permissions.Result(r).Text, Hook: r.Hook,
	}
	if len(r.Calls) > 0 {
		w.Calls = each(r.Calls, fromCall)
	}
	if forDeciders {
		w.Code = s.Code
	} else {
		w.Editor = s.Editor
	}
	return w
}

func fromVote(v permissions.Vote) Vote {
	return Vote{By: v.By, Via: v.Via, Answer: v.Answer, At: v.At.UTC(), Call: v.Call}
}

func fromCall(c permissions.Call) Call {
	return Call{
		N: c.N, Tool: c.Tool, Input: orNullJSON(c.Input),
		AffectedPath: orNull(c.AffectedPath), Answer: orNull(c.Answer), Comment: c.Comment,
	}
}

// delivered are the copies that somebody has been shown.
func delivered(copies []permissions.Copy) []Delivery {
	shown := slices.DeleteFunc(slices.Clone(copies), func(c permissions.Copy) bool { return c.SentAt.IsZero() })
	return each(shown, func(c permissions.Copy) Delivery {
		return Delivery{To: c.Person, Via: c.Connector, At: c.SentAt.UTC()}
	})
}

// each is never nil: an empty list is [] and not null.
func each[A, B any](list []A, f func(A) B) []B {
	made := make([]B, len(list))
	for i, a := range list {
		made[i] = f(a)
	}
	return made
}

func orNull[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

func orNullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func orNullJSON(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return json.RawMessage("null")
	}
	return v
}
