package wire

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Permissions is the request that w tells of, as far as it tells: enough to show it on a card and for
// [permissions.Result]. The error says which member has no meaning here.
func (w Request) Permissions() (permissions.Request, error) {
	s, err := w.Standing()
	return s.Request, err
}

// Standing is [Request.Permissions] with where it was shown and who waits. [From] makes the same w of it again.
func (w Request) Standing() (permissions.Standing, error) {
	tags, err := permissions.ParseTags(w.Tags)
	if err != nil {
		return permissions.Standing{}, fmt.Errorf("read request %s: %w", w.ID, err)
	}
	digest, err := permissions.ParseDigest(w.Digest)
	if err != nil {
		return permissions.Standing{}, fmt.Errorf("read request %s: %w", w.ID, err)
	}
	var scope permissions.Scope
	if w.Scope != nil {
		if scope, err = permissions.ParseScope(*w.Scope); err != nil {
			return permissions.Standing{}, fmt.Errorf("read request %s: %w", w.ID, err)
		}
	}
	r := permissions.Request{
		ID: w.ID, Kind: w.Kind, Mode: value(w.Mode), Caller: caller(w.Caller),
		Agent: value(w.Agent), Claimed: w.Claimed, Session: value(w.Session), Host: value(w.Host), Cwd: value(w.Cwd),
		Tags: tags, Tool: value(w.Tool), AffectedPath: value(w.AffectedPath), Calls: w.calls(), Hook: w.Hook,
		Message: value(w.Message), Details: value(w.Details), Reason: value(w.Reason), Choices: w.choices(),
		Digest: digest, HighRisk: w.HighRisk, Background: w.Background, Foreground: value(w.Foreground),
		Step: value(w.Step), Key: value(w.Key), Options: w.Options, Asked: w.Asked, Quorum: w.Quorum,
		CreatedAt: value(w.CreatedAt), Deadline: value(w.Deadline),
		State: w.State, Answer: value(w.Answer), Scope: scope, Comment: value(w.Comment),
		DecidedBy: value(w.DecidedBy), DecidedVia: value(w.DecidedVia), DecidedAt: value(w.DecidedAt),
		Votes: each(w.Votes, Vote.permissions), TimedOut: w.TimedOut, Defaulted: w.Defaulted, Failure: w.failure(),
		UsedAt: value(w.UsedAt), VoidAt: value(w.VoidAt),
	}
	if r.Tool != "" {
		r.Input = w.Input
	}
	copies := each(w.Delivered, func(d Delivery) permissions.Copy {
		return permissions.Copy{Request: w.ID, Person: d.To, Connector: d.Via, SentAt: d.At}
	})
	return permissions.Standing{Request: r, Code: w.Code, Copies: copies, Waiting: w.Waiting, Editor: w.Editor}, nil
}

// Until is the request's deadline, or the zero time.
func (w Request) Until() time.Time { return value(w.Deadline) }

func (v Vote) permissions() permissions.Vote {
	return permissions.Vote{By: v.By, Via: v.Via, Answer: v.Answer, At: v.At, Call: v.Call}
}

func (w Request) calls() []permissions.Call {
	if len(w.Calls) == 0 {
		return nil
	}
	return each(w.Calls, func(c Call) permissions.Call {
		return permissions.Call{
			N: c.N, Tool: c.Tool, Input: orNullJSON(c.Input),
			AffectedPath: value(c.AffectedPath), Answer: value(c.Answer), Comment: c.Comment,
		}
	})
}

// choices are what a clarification asked between: its options are exactly them.
func (w Request) choices() []string {
	if w.Kind != permissions.KindClarification {
		return nil
	}
	return each(w.Options, func(o permissions.Option) string { return o.Label })
}

// failure is why nobody was reached, which only the result tells.
func (w Request) failure() string {
	_, why, found := strings.Cut(w.Result, "could not be delivered: ")
	if w.State != permissions.Undeliverable || !found {
		return ""
	}
	return strings.TrimSuffix(why, ".")
}

// caller knows the account of a caller that was proven by one.
func caller(name string) permissions.Caller {
	digits, found := strings.CutPrefix(name, "uid:")
	if uid, err := strconv.Atoi(digits); found && err == nil {
		return permissions.CallerUID(uid)
	}
	return permissions.Caller{Name: name, UID: permissions.NoUID}
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
