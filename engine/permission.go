package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// refusalsPerMinute is how many refused decisions of one identity are audited in a minute; the others are only refused.
const refusalsPerMinute = 10

// OnPermission is [connectors.Handler]: it checks the finger, not the chat, and commits what it did. The door says who
// and what; everything else is read from the row.
func (e *Engine) OnPermission(ctx context.Context, d connectors.Decision) (permissions.Request, error) {
	s := e.settings.Load()
	r, err := e.named(ctx, d.Request, d.Code)
	if err != nil {
		return permissions.Request{}, err
	}
	person, known := s.identify(d.From)
	if !known || !slices.Contains(r.Asked, person.Name) {
		return permissions.Request{}, e.refused(ctx, r, d, person.Name, permissions.NotYours())
	}
	if r.Caller.CameFrom(d.From.UID) && (d.Default || d.Answer != permissions.Deny) && !s.AllowSameUser {
		return r, e.refused(ctx, r, d, person.Name, permissions.OwnAsk(d.From.UID))
	}
	if utf8.RuneCountInString(d.Comment) > permissions.MaxReason {
		return r, permissions.Invalid(fmt.Errorf("a reason has at most %d characters", permissions.MaxReason))
	}
	if d.Shown != (permissions.Digest{}) && d.Shown != r.Digest {
		return r, e.refused(ctx, r, d, person.Name, permissions.OtherShown())
	}
	if r.State == permissions.Pending {
		if err := e.realign(ctx, r); err != nil { // nobody's vote counts who is no person any more
			return permissions.Request{}, broken(err)
		}
	}
	c, err := e.registry.Resolve(ctx, r.ID, event(d, person.Name, e))
	if err != nil {
		return c.Before, e.refused(ctx, r, d, person.Name, broken(permissions.Refused(err)))
	}
	return c.After, nil
}

func event(d connectors.Decision, by string, e *Engine) permissions.Event {
	if d.Default {
		return permissions.Default{By: by, Via: d.From.Via, At: e.stamp()}
	}
	return permissions.Cast{Really: d.Really, Vote: permissions.Vote{
		By: by, Via: d.From.Via, Answer: d.Answer, Call: d.Call, Comment: d.Comment, At: e.stamp(), Key: d.Key,
	}}
}

// named finds a request by its id, or else by its code.
func (e *Engine) named(ctx context.Context, id permissions.ID, code string) (permissions.Request, error) {
	if id == "" {
		r, err := e.store.ByCode(ctx, code)
		return r, broken(err)
	}
	r, err := e.store.Read(ctx, id)
	return r, broken(err)
}

// refused audits a decision that was not taken and returns why. A store that cannot take the audit row changes nothing
// about the refusal.
func (e *Engine) refused(ctx context.Context, r permissions.Request, d connectors.Decision, who string, why error) error {
	code := permissions.CodeBroken
	var refusal *permissions.Refusal
	if errors.As(why, &refusal) {
		code = refusal.Code
	}
	e.log.Info("decision refused", "request", r.ID, "via", d.From.Via, "uid", d.From.UID, "code", code)
	if !limiter(e, e.refusals, d.From, refusalsPerMinute).AllowN(e.clock.Now(), 1) {
		return why
	}
	err := e.store.Record(ctx, permissions.Record{
		Type: permissions.DecisionRefused, At: e.stamp(), Request: r.ID, Actor: who, Via: d.From.Via,
		Detail: map[string]string{"answer": string(d.Answer), "why": string(code)},
	})
	if err != nil {
		e.log.Error("a refused decision cannot be audited", "request", r.ID, "err", err)
	}
	return why
}
