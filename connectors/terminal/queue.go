package terminal

import (
	"slices"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

// news is what Send and Edit leave for Run.
type news struct {
	ref    string
	prompt connectors.Prompt
	edit   bool
	says   bool   // only text is to be said, to whom prompt is for
	text   string // one line or more
}

// item is one request as this screen knows it, until its end has been told.
type item struct {
	ref    string
	prompt connectors.Prompt
	shown  bool   // its card was on the screen
	told   bool   // how it ended was said, when the person decided it here
	tries  int    // answers to a clarification that were none
	reason string // the answer begun whose reason, or words, the next line is; empty: none
}

// apply takes in what Send and Edit left.
func (s *screen) apply(n news) {
	if n.says {
		s.say(n.text)
		return
	}
	it, known := s.seen[n.ref]
	r := n.prompt.Request
	switch {
	case !known && r.State == permissions.Pending:
		it = &item{ref: n.ref, prompt: n.prompt}
		s.seen[n.ref] = it
		s.queue = append(s.queue, it)
	case !known:
		if !n.edit || wasted(r) {
			s.say(n.prompt.Code + "  " + s.settled(n.prompt))
		}
	case r.Revision < it.prompt.Request.Revision, r.State == permissions.Pending && it.prompt.Request.State != permissions.Pending:
		// older than what is known from the person's own answer; in an inbox, that has no revision
	case r.State == permissions.Pending:
		s.progress(it, n.prompt)
	default:
		s.settle(it, n.prompt)
	}
}

// lastWords says what was still to be said when Run ended.
func (s *screen) lastWords(left []news) {
	for _, n := range left {
		if n.text != "" {
			s.say(n.text)
		}
	}
}

// wasted tells of an approval that came to nothing.
func wasted(r permissions.Request) bool { return !r.VoidAt.IsZero() || !r.LapsedAt.IsZero() }

// settle tells how a request ended, if its card was seen, and makes room for the next.
func (s *screen) settle(it *item, p connectors.Prompt) {
	it.prompt = p
	delete(s.seen, it.ref)
	s.drop(it)
	line := s.settled(p)
	if it == s.now {
		s.leave()
		s.say(line)
	} else if it.shown && (!it.told || wasted(p.Request)) {
		s.say(p.Code + "  " + line)
	}
	if !it.told {
		s.told(p.Request)
	}
}

// drop takes an item out of the queue.
func (s *screen) drop(it *item) {
	s.queue = slices.DeleteFunc(s.queue, func(o *item) bool { return o == it })
}

// bring puts an item on the screen; what is there comes back after it.
func (s *screen) bring(it *item) {
	s.drop(it)
	front := []*item{it}
	if s.now != nil {
		front = append(front, s.now)
	}
	s.queue = append(front, s.queue...)
	s.leave()
}

// told passes on that the end of a request has been told.
func (s *screen) told(r permissions.Request) {
	if s.t.o.Told != nil {
		s.t.o.Told(r)
	}
}

// progress tells of votes and of waiting callers. A request that nobody waits for lets the next one go first.
func (s *screen) progress(it *item, p connectors.Prompt) {
	before := it.prompt.Request
	it.prompt = p
	left := before.LeftAt.IsZero() && !p.Request.LeftAt.IsZero()
	if it.shown && (left || len(before.Votes) != len(p.Request.Votes)) {
		line := s.settled(p)
		if it != s.now {
			line = p.Code + "  " + line
		}
		s.say(line)
	}
	switch {
	case it == s.now && left && len(s.queue) > 0:
		s.leave()
		s.queue = append(s.queue, it)
	case it == s.now && !open(p):
		s.leave()
	case it != s.now && open(p) && !slices.Contains(s.queue, it):
		s.queue = append(s.queue, it)
	}
}

// open tells whether anything of a pending request is left for its person to answer.
func open(p connectors.Prompt) bool {
	r := p.Request
	voted := func(call int) bool {
		return slices.ContainsFunc(r.Votes, func(v permissions.Vote) bool {
			return v.By == p.To.Name && (v.Call == 0 || v.Call == call)
		})
	}
	if len(r.Calls) == 0 {
		return !voted(0)
	}
	return slices.ContainsFunc(r.Calls, func(c permissions.Call) bool { return c.Answer == "" && !voted(c.N) })
}

func (s *screen) settled(p connectors.Prompt) string { return card.Settled(p.Request, s.options(p)) }
