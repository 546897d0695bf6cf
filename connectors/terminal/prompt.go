package terminal

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/permissions"
)

// mostTries is how many answers to a clarification may be none of its options.
const mostTries = 3

// enter acts on what the person typed at the hint.
func (s *screen) enter(ctx context.Context, e entry) {
	if e.end {
		s.close()
		return
	}
	s.asking = false
	s.write("\n")
	it := s.now
	if it.reason != "" {
		s.finish(ctx, e)
		return
	}
	r := it.prompt.Request
	a := reply.Parse(e.line, r, it.prompt.Code)
	if e.long {
		a = reply.Reply{Say: "Nothing was decided: that line is too long."}
	}
	switch {
	case a.Meaning == reply.Decides:
		s.decide(ctx, connectors.Decision{Answer: a.Answer, Call: a.Call, Comment: a.Comment, Really: a.Really})
	case a.Meaning == reply.Reason && a.Call != 0:
		it.reason = fmt.Sprintf("r #%d ", a.Call)
	case a.Meaning == reply.Reason:
		it.reason = "r "
	case a.Meaning == reply.Asks:
		s.say(a.Say)
	case s.t.o.Quit != nil && strings.EqualFold(strings.TrimSpace(e.line), "q"):
		s.t.o.Quit()
	case r.Kind == permissions.KindClarification && !blank(e):
		s.wrong(ctx, a.Say)
	default:
		s.say(a.Say)
	}
}

// blank tells whether nothing was tried.
func blank(e entry) bool { return !e.long && (e.line == reply.Esc || strings.TrimSpace(e.line) == "") }

// finish takes the line after r as the reason. An empty one, or Esc, goes back to the question.
func (s *screen) finish(ctx context.Context, e entry) {
	begun := s.now.reason
	s.now.reason = ""
	a := reply.Parse(begun+e.line, s.now.prompt.Request, s.now.prompt.Code)
	if a.Meaning != reply.Decides || e.long {
		s.say("Nothing was decided: a reason is one line of text.")
		return
	}
	s.decide(ctx, connectors.Decision{Answer: a.Answer, Call: a.Call, Comment: a.Comment})
}

// wrong counts an answer to a clarification that was none. The third has the first option taken.
func (s *screen) wrong(ctx context.Context, say string) {
	it := s.now
	it.tries++
	if it.tries >= mostTries {
		s.decide(ctx, connectors.Decision{Default: true})
		return
	}
	s.say(say)
}

// decide hands a decision on, and tells what became of it. The question stays until it is settled, or until there is
// nothing left of it for this person.
func (s *screen) decide(ctx context.Context, d connectors.Decision) {
	it := s.now
	r := it.prompt.Request
	d.Request, d.Shown = r.ID, r.Digest
	d.From = connectors.Identity{Via: s.t.o.Via, Console: true, UID: permissions.NoUID}
	after, err := s.handler.OnPermission(ctx, d)
	if after.ID == r.ID && (after.Revision >= r.Revision || after.State != permissions.Pending) {
		it.prompt.Request = after
	}
	var refusal *permissions.Refusal
	switch {
	case err == nil:
		s.say(s.settled(it.prompt))
	case errors.As(err, &refusal):
		s.say(card.Visible(refusal.Text))
	case ctx.Err() != nil:
		return
	default:
		s.t.o.Log.Error("a decision was not stored", "request", r.ID, "err", err)
		s.say("Nothing was stored: " + card.Visible(err.Error()) + ". Answer again.")
	}
	it.told = it.prompt.Request.State != permissions.Pending
	if it.told {
		s.told(it.prompt.Request)
	}
	notMine := refusal != nil && refusal.Code == permissions.CodeNotYours
	if it.told || notMine || (err == nil && !open(it.prompt)) {
		s.leave()
	}
}
