package terminal

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/permissions"
)

// named acts on a line that names requests by their codes, as messages of a chat do, and tells whether it was one. Only
// what was on this screen is decided about; anything else is shown first.
func (s *screen) named(ctx context.Context, line string) bool {
	now := s.t.o.Now()
	items, open := s.waiting(now)
	said := reply.Read(reply.Message{Text: line, Console: true, At: now}, open)
	switch {
	case len(said.Decisions) > 0:
		for _, d := range said.Decisions {
			s.decide(ctx, items[d.Request], d)
		}
	case len(said.Unknown) > 0:
		s.say(s.late(ctx, said))
	case said.Say == "", said.Bare, said.PassOn:
		return false
	case len(said.Unseen) > 0:
		s.say(said.Say)
		s.bring(s.coded(said.Unseen[0]))
	case s.now != nil && s.now.prompt.Request.Kind == permissions.KindClarification:
		s.wrong(ctx, said.Say)
	default:
		s.say(said.Say)
	}
	return true
}

// waiting is what can be answered here: the card on the screen, those after it, and those whose person has answered and
// may yet say no. The answer is newer than every card that was shown: whatever was typed before the hint has been thrown
// away.
func (s *screen) waiting(now time.Time) (map[permissions.ID]*item, []reply.Open) {
	items := map[permissions.ID]*item{}
	var all []reply.Open
	for _, it := range s.seen {
		if it.told {
			continue
		}
		o := reply.Open{Request: it.prompt.Request, Code: it.prompt.Code}
		if it.shown {
			o.ShownAt = now
		}
		items[o.Request.ID] = it
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b reply.Open) int { return cmp.Compare(a.Code, b.Code) })
	return items, all
}

// coded is the item with a code that was not shown yet, and so is in the queue.
func (s *screen) coded(code string) *item {
	return s.queue[slices.IndexFunc(s.queue, func(it *item) bool { return it.prompt.Code == code })]
}

// late says why codes name nothing here: that of a settled request is told who was faster.
func (s *screen) late(ctx context.Context, said reply.Said) string {
	for _, code := range said.Unknown {
		var refusal *permissions.Refusal
		_, err := s.hand(ctx, connectors.Decision{Code: code}) // without an answer it decides nothing
		if errors.As(err, &refusal) && refusal.Code == permissions.CodeSettled {
			return code + "  " + card.Visible(refusal.Text)
		}
	}
	return said.Say
}
