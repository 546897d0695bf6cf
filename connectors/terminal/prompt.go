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
		if !s.commanded(ctx, e) {
			s.finish(ctx, e)
		}
		return
	}
	r := it.prompt.Request
	a := reply.Parse(e.line, r, it.prompt.Code)
	if e.long {
		a = reply.Reply{Say: "Nothing was decided: that line is too long."}
	}
	switch {
	case a.Meaning == reply.Decides:
		s.decide(ctx, it, connectors.Decision{Answer: a.Answer, Call: a.Call, Comment: a.Comment, Really: a.Really})
	case a.Meaning == reply.Reason && a.Answer == permissions.Other:
		it.reason = strings.TrimSpace(e.line) + " "
	case a.Meaning == reply.Reason && a.Call != 0:
		it.reason = fmt.Sprintf("r #%d ", a.Call)
	case a.Meaning == reply.Reason:
		it.reason = "r "
	case a.Meaning == reply.Asks:
		s.say(s.besides(a.Say))
	case a.Meaning == reply.Shows:
		s.again()
	case !e.long && s.aside(ctx, e):
	case !e.long && s.named(ctx, e.line):
	case s.t.o.Quit != nil && strings.EqualFold(strings.TrimSpace(e.line), "q"):
		s.t.o.Quit()
	case r.Kind == permissions.KindClarification && !blank(e):
		s.wrong(ctx, s.besides(a.Say))
	default:
		s.say(s.besides(a.Say))
	}
}

// blank tells whether nothing was tried.
func blank(e entry) bool { return !e.long && (e.line == reply.Esc || strings.TrimSpace(e.line) == "") }

// finish takes the line after r as the reason, and that after o as the answer. An empty one, or Esc, goes back to the
// question.
func (s *screen) finish(ctx context.Context, e entry) {
	begun := s.now.reason
	s.now.reason = ""
	a := reply.Parse(begun+e.line, s.now.prompt.Request, s.now.prompt.Code)
	if a.Meaning != reply.Decides || e.long {
		what := "a reason"
		if s.now.prompt.Request.TakesWords() {
			what = "an answer"
		}
		s.say("Nothing was decided: " + what + " is one line of text.")
		return
	}
	s.decide(ctx, s.now, connectors.Decision{Answer: a.Answer, Call: a.Call, Comment: a.Comment})
}

// wrong counts an answer to a clarification that was none. The third has the first option taken.
func (s *screen) wrong(ctx context.Context, say string) {
	it := s.now
	it.tries++
	if it.tries >= mostTries {
		s.decide(ctx, it, connectors.Decision{Default: true})
		return
	}
	s.say(say)
}

// decide hands a decision about an item on, and tells what became of it. The question stays until it is settled, or
// until there is nothing left of it for this person.
func (s *screen) decide(ctx context.Context, it *item, d connectors.Decision) {
	r := it.prompt.Request
	d.Request, d.Shown = r.ID, r.Digest
	after, err := s.hand(ctx, d)
	if after.ID == r.ID && (after.Revision >= r.Revision || after.State != permissions.Pending) {
		it.prompt.Request = after
	}
	about := ""
	if it != s.now {
		about = it.prompt.Code + "  "
	}
	var refusal *permissions.Refusal
	switch {
	case err == nil:
		s.say(about + s.settled(it.prompt))
	case errors.As(err, &refusal) && refusal.Code == permissions.CodeOwnAsk:
		s.say(about + card.Visible(refusal.Text) + "\n" + permissions.OwnAskElsewhere)
	case errors.As(err, &refusal):
		s.say(about + card.Visible(refusal.Text))
	case ctx.Err() != nil:
		return
	default:
		s.t.o.Log.Error("a decision was not stored", "request", r.ID, "err", err)
		s.say(about + "Nothing was stored: " + card.Visible(err.Error()) + ". Answer again.")
	}
	it.told = it.prompt.Request.State != permissions.Pending
	if it.told {
		s.told(it.prompt.Request)
	}
	notMine := refusal != nil && refusal.Code == permissions.CodeNotYours
	if !it.told && !notMine && (err != nil || open(it.prompt)) {
		return
	}
	s.drop(it)
	if it == s.now {
		s.leave()
	}
}

// hand hands a decision of the person at this console to the handler.
func (s *screen) hand(ctx context.Context, d connectors.Decision) (permissions.Request, error) {
	d.From = s.t.identity()
	return s.handler.OnPermission(ctx, d)
}
