package terminal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// update is a message from Send, Edit or Tell to Run.
type update struct {
	ref    string
	prompt connectors.Prompt
	edit   bool
	says   bool   // only show text, to the person in prompt
	text   string // one line or more
}

// item is a request that this screen knows, until its outcome has been shown.
type item struct {
	ref    string
	prompt connectors.Prompt
	shown  bool   // its card was on the screen
	told   bool   // its outcome was shown because the person decided it here
	tries  int    // invalid answers to a clarification
	reason string // prefix of an answer whose reason, or words, are the next line; empty: none
}

// apply handles one message.
func (s *screen) apply(n update) {
	if n.says {
		s.put(n.text)
		return
	}
	it, known := s.seen[n.ref]
	r, was := n.prompt.Request, s.now
	defer func() { // what this person decides elsewhere goes away when they want it
		s.gone = s.gone || was != nil && s.now == nil && r.DecidedBy != was.prompt.To.Name
	}()
	switch {
	case !known && n.prompt.Locked:
	case !known && r.State == permissions.Pending:
		it = &item{ref: n.ref, prompt: n.prompt}
		s.seen[n.ref] = it
		s.queue = append(s.queue, it)
	case !known:
		if !n.edit || hadNoEffect(r) {
			s.say(n.prompt.Code + "  " + s.settled(n.prompt))
		}
	case r.Revision < it.prompt.Request.Revision, r.State == permissions.Pending && it.prompt.Request.State != permissions.Pending:
		// older than the outcome known from the person's own answer, which has no revision in an inbox
	case r.State == permissions.Pending && !n.prompt.Locked:
		s.progress(it, n.prompt)
	default:
		s.settle(it, n.prompt)
	}
}

// hadNoEffect reports whether an approval had no effect.
func hadNoEffect(r permissions.Request) bool { return !r.VoidAt.IsZero() || !r.LapsedAt.IsZero() }

// settle shows how a request ended, if its card was seen, and makes room for the next.
func (s *screen) settle(it *item, p connectors.Prompt) {
	it.prompt = p
	delete(s.seen, it.ref)
	s.drop(it)
	line := s.settled(p)
	if it == s.now {
		s.leave()
		s.say(line)
	} else if it.shown && (!it.told || hadNoEffect(p.Request)) {
		s.say(p.Code + "  " + line)
	}
	if !it.told {
		s.reportShown(p.Request)
	}
}

func (s *screen) drop(it *item) {
	s.queue = slices.DeleteFunc(s.queue, func(o *item) bool { return o == it })
}

// bringToFront puts an item on the screen; the current one returns after it.
func (s *screen) bringToFront(it *item) {
	s.drop(it)
	front := []*item{it}
	if s.now != nil {
		front = append(front, s.now)
	}
	s.queue = append(front, s.queue...)
	s.leave()
}

// reportShown reports that a request's outcome was shown.
func (s *screen) reportShown(r permissions.Request) {
	if s.t.o.Told != nil {
		s.t.o.Told(r)
	}
}

// progress shows votes and whether callers wait. A request without a waiting caller yields to the next one.
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
	case it != s.now && open(p) && it.tries < maxTries && !slices.Contains(s.queue, it):
		s.queue = append(s.queue, it)
	}
}

// open reports whether p's person can still answer anything of a pending request.
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

func (s *screen) settled(p connectors.Prompt) string {
	if p.Locked && p.To.Name == "" {
		return p.To.Language.Text("This can no longer be answered here.")
	}
	if p.Locked && p.Request.State == permissions.Pending {
		return p.To.Language.Sprintf("%s is locked, so this can no longer be answered here.", p.To.Name)
	}
	return card.Outcome(p.Request, s.options(p)).Text
}

// maxTries is how many invalid answers to a clarification are accepted.
const maxTries = 3

// enter acts on an entry at the hint.
func (s *screen) enter(ctx context.Context, e entry) {
	if e.end {
		s.close()
		return
	}
	s.asking = false
	s.write("\n")
	it := s.now
	if it.reason != "" {
		if !s.runCommand(ctx, e) {
			s.finish(ctx, e)
		}
		return
	}
	r := it.prompt.Request
	in := it.prompt.To.Language
	a := reply.Parse(e.line, r, it.prompt.Code, in)
	if e.long {
		a = reply.Reply{Say: in.Text("Nothing was decided: that line is too long.")}
	}
	switch {
	case a.Meaning == reply.Decides:
		s.decide(ctx, it, connectors.Decision{Answer: a.Answer, Call: a.Call, Comment: a.Comment, Really: a.Really, Rule: a.Rule})
	case a.Meaning == reply.Reason && a.Answer == permissions.Other:
		it.reason = strings.TrimSpace(e.line) + " "
	case a.Meaning == reply.Reason && a.Call != 0:
		it.reason = fmt.Sprintf("r #%d ", a.Call)
	case a.Meaning == reply.Reason:
		it.reason = "r "
	case a.Meaning == reply.Asks && r.Kind == permissions.KindClarification:
		s.say(s.addHints(a.Say + in.Sprintf(" Answers that are none count: %s.", triesLeft(it))))
	case a.Meaning == reply.Asks:
		s.say(s.addHints(a.Say))
	case a.Meaning == reply.Shows:
		s.again()
	case !e.long && s.handleOther(ctx, e):
	case !e.long && s.handleNamed(ctx, e.line):
	case s.t.o.Quit != nil && strings.EqualFold(strings.TrimSpace(e.line), "q"):
		s.t.o.Quit()
	case r.Kind == permissions.KindClarification && !blank(e):
		s.wrong(ctx, s.addHints(strings.TrimPrefix(a.Say, in.Sprintf("Nothing was decided. %s", ""))))
	default:
		s.say(s.addHints(a.Say))
	}
}

func blank(e entry) bool { return !e.long && (e.line == reply.Esc || strings.TrimSpace(e.line) == "") }

// finish takes the line after r as the reason, or the line after o as the answer. An empty line or Esc returns to the
// question.
func (s *screen) finish(ctx context.Context, e entry) {
	begun := s.now.reason
	s.now.reason = ""
	in := s.now.prompt.To.Language
	a := reply.Parse(begun+e.line, s.now.prompt.Request, s.now.prompt.Code, in)
	if a.Meaning != reply.Decides || e.long {
		what := i18n.Phrase("Nothing was decided: a reason is one line of text.")
		if s.now.prompt.Request.TakesWords() {
			what = "Nothing was decided: an answer is one line of text."
		}
		s.say(in.Text(what))
		return
	}
	s.decide(ctx, s.now, connectors.Decision{Answer: a.Answer, Call: a.Call, Comment: a.Comment})
}

// wrong counts an invalid answer to a clarification and says so. The third one chooses the first option or, if others are
// asked as well, removes the card from this screen only.
func (s *screen) wrong(ctx context.Context, say string) {
	it := s.now
	it.tries++
	switch {
	case it.tries < maxTries:
		s.say(it.prompt.To.Language.Sprintf("No option (%s). %s", triesLeft(it), say))
	case len(others(it)) == 0:
		s.decide(ctx, it, connectors.Decision{Default: true})
	default:
		s.leave()
		s.say(it.prompt.To.Language.Sprintf("No option in three tries: %s. It can still be answered here with its code, as in  %s 1 .",
			leftTo(it, "it is now left to %s; if nobody answers in time, %s"), it.prompt.Code))
	}
}

// triesLeft says how many tries are left, and what follows.
func triesLeft(it *item) string {
	tries, then, in := i18n.Phrase("2 tries left"), byDefault(it), it.prompt.To.Language
	switch maxTries - it.tries {
	case maxTries:
		tries = "3 tries"
	case 1:
		tries = "1 try left"
	}
	if len(others(it)) > 0 {
		then = leftTo(it, "it is left to %s; if nobody answers in time, %s")
	}
	return in.Sprintf("%s, then %s", tries, then)
}

// byDefault says what happens to a clarification that nobody answers.
func byDefault(it *item) string {
	if it.prompt.Request.DeniedIfUnanswered() {
		return it.prompt.To.Language.Text("it is not answered")
	}
	return it.prompt.To.Language.Sprintf("1 \"%s\" is taken", card.Visible(it.prompt.Request.Choices[0]))
}

// leftTo says to whom a clarification is left, and what happens if they do not answer either.
func leftTo(it *item, form i18n.Phrase) string {
	return it.prompt.To.Language.Sprintf(form, strings.Join(others(it), ", "), byDefault(it))
}

// others are the other people who are or will be asked.
func others(it *item) (names []string) {
	r := it.prompt.Request
	if names = slices.Clone(r.Asked); !r.EscalateAt.IsZero() { // else they are locked
		names = append(names, r.EscalateTo...)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == it.prompt.To.Name })
}

// decide submits a decision and shows its result. The question stays until the request is settled or this person can answer
// nothing more of it.
func (s *screen) decide(ctx context.Context, it *item, d connectors.Decision) {
	r := it.prompt.Request
	d.Request, d.Shown = r.ID, r.ShownDigest()
	after, err := s.submit(ctx, d)
	if after.ID == r.ID && (after.Revision >= r.Revision || after.State != permissions.Pending) {
		it.prompt.Request = after
	}
	about := ""
	if it != s.now {
		about = it.prompt.Code + "  "
	}
	switch refusal := permissions.AsRefusal(err); {
	case err == nil:
		s.say(about + s.settled(it.prompt))
	case refusal != nil && refusal.Proposal != nil:
		in := s.t.language()
		rows := append(card.Proposed(*refusal.Proposal, card.Options{Language: in}),
			reply.RuleHint(refusal.Proposal.Rule, it.prompt.Code, it == s.now, in))
		s.say(about + strings.Join(rows, "\n"))
	case permissions.CodeOf(err) == permissions.CodeOwnAsk:
		s.say(about + card.Visible(refusal.TextIn(s.t.language())) + "\n" + s.t.language().Text(permissions.OwnAskElsewhere))
	case refusal != nil:
		s.say(about + card.Visible(refusal.TextIn(s.t.language())))
	case ctx.Err() != nil:
		return
	default:
		s.t.o.Log.Error("store decision", "request", r.ID, "err", err)
		s.say(about + s.t.language().Sprintf("Nothing was stored: %s. Answer again.", card.Visible(err.Error())))
	}
	it.told = it.prompt.Request.State != permissions.Pending
	if it.told {
		s.reportShown(it.prompt.Request)
	}
	if !it.told && permissions.CodeOf(err) != permissions.CodeNotYours && (err != nil || open(it.prompt)) {
		return
	}
	s.drop(it)
	if it == s.now {
		s.leave()
	}
}

// submit submits a decision as the person at this console.
func (s *screen) submit(ctx context.Context, d connectors.Decision) (permissions.Request, error) {
	d.From = s.t.identity()
	return s.t.in.OnPermission(ctx, d)
}
