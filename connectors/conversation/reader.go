// Package conversation handles a person's messages in any channel. A message answers pending requests, as parsed by package
// reply; it is a command, such as /pending; or it is for one of their agents. The replies are returned as text with names
// marked, see [card.Part.Spans], which the channel sends.
//
// It depends on no channel: the channel has proved who wrote and which message is replied to, and the [connectors.Inbound]
// says what is allowed. Groups are not conversations; their channel decides who gets an answer.
package conversation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// maxOpen limits the pending requests that a message can be about, which are read openPage at a time.
const maxOpen, openPage = 10_000, 100

// Options configure a [Reader].
type Options struct {
	Inbound connectors.Inbound
	Lists   Lists // nil: the channel has none
	// Unread reports whether nothing of what a request wants is on its card, so that in words only a reply to its file
	// allows it. Nil: it always is.
	Unread func(p connectors.Prompt) bool
	// Whole reports whether a list shows all of a request; nil: the channel has no lists.
	Whole func(p connectors.Prompt) bool
	Now   func() time.Time
	// Help explains how to answer in this channel; Account is a sentence about how the author is identified.
	Help    i18n.Phrase
	Account func(connectors.Identity, i18n.Language) string
	// Theirs converts a time to the channel's clock, as far as that is known; nil: they are the same.
	Theirs func(time.Time) time.Time
}

// Lists is the part of [connectors.Services] that is about lists of requests.
type Lists interface {
	Burst(ctx context.Context, id connectors.Identity, ref string) (connectors.Burst, error)
	DecideAll(ctx context.Context, d connectors.BurstDecision) (b connectors.Burst, taken int, err error)
	SendAgain(ctx context.Context, from connectors.Identity, code string) (connectors.Prompt, error)
}

// Reader reads the messages of one channel. It is safe for concurrent use.
type Reader struct {
	Options

	mu     sync.Mutex
	guards map[string]*reply.Guard // by person
	told   map[string]time.Time    // by person: when they were last told that something is not read here
}

// New makes a reader.
func New(o Options) *Reader {
	return &Reader{Options: o, guards: map[string]*reply.Guard{}, told: map[string]time.Time{}}
}

// Unsaid answers a message of which a part is struck out, quoted or hidden, if it would decide something.
const Unsaid i18n.Phrase = "Nothing was decided: a part of this message is struck through, quoted or hidden. Please write it without that."

// Message is a person's text, or their emoji on a message.
type Message struct {
	connectors.Message
	Who      connectors.Person // the person whom From identifies
	Card     string            // code on the card that it replies to, as far as the channel knows; empty: none
	File     bool              // it replies to the file of that card
	Unsaid   bool              // a part of it is struck out, quoted or hidden: it decides nothing
	Reaction bool              // Text is an emoji, empty if it was removed
	Thumbs   bool              // reactions are received in this chat
	At       time.Time         // by the channel's clock, in whole seconds
}

// Did is the result of a message.
type Did struct {
	Decided []Decided
	Say     []string // other replies to its author, in order
	StopAll bool     // it was the command to stop everything, which Say answers
}

// Decided is a decision that was accepted.
type Decided struct {
	Answer permissions.Answer
	Words  string // reply to its author
}

// Read handles a message. After an error the same message has to be read again: what it already did is deduplicated by its
// key.
func (r *Reader) Read(ctx context.Context, m Message) (Did, error) {
	unsaid := Did{Say: []string{m.Who.Language.Text(Unsaid)}}
	if text := strings.TrimSpace(m.Text); !m.Reaction && strings.HasPrefix(text, "/") {
		if m.Unsaid {
			return unsaid, nil
		}
		name, rest := parse(text)
		words, err := r.command(ctx, m, name, rest)
		if words, err = spoken(words, err, m.Who.Language); err != nil {
			return Did{}, err
		}
		return Did{Say: []string{words}, StopAll: isStopAll(name, rest)}, nil
	}
	open, quoted, err := r.Open(ctx, m.From, m.Who, m.ReplyTo, m.Card)
	if err != nil {
		return Did{}, err
	}
	if quoted == "" && !slices.ContainsFunc(open, func(o reply.Open) bool { return o.Code == m.Card }) {
		quoted = m.Card // no longer pending, which the reply says
	}
	if _, _, shaped := reply.ReadListReply(m.Text); m.Unsaid && shaped {
		return unsaid, nil
	}
	if quoted == "" && m.ReplyTo != "" && r.Lists != nil && !m.Reaction {
		if did, is, err := r.list(ctx, m, len(open)); is || err != nil {
			return did, err
		}
	}
	text := reply.Message{
		Text: m.Text, Quotes: quoted, Reaction: m.Reaction, Console: m.From.Console,
		Thumbs: m.Thumbs, At: m.At, Language: m.Who.Language,
	}
	said := reply.Read(text, open)
	if left := r.Muted(m.Who); left > 0 && !said.PassOn { // only answers are muted
		return Did{Say: []string{reply.SayMuted(left, m.Who.Language)}}, nil
	}
	if len(said.Unknown) > 0 {
		before, why := r.Before(ctx, m, said.Unknown)
		if said = reply.Read(text, append(open, before...)); len(said.Unknown) > 0 {
			r.Wrong(m.Who, said.Guesses)
			return r.refused(ctx, m, why)
		}
	}
	if m.Unsaid && len(said.Decisions) > 0 {
		return unsaid, nil
	}
	did, err := r.decide(ctx, m, said, open)
	if err != nil {
		return did, err
	}
	words := said.Reply
	if said.PassOn {
		if words, err = r.agent(ctx, m, said.Reply, len(open)); err != nil {
			return Did{}, err
		}
	}
	if words != "" {
		did.Say = append(did.Say, words)
	}
	return did, nil
}

// list handles a reply to a list: a number opens its request, an answer to all of it has the number of requests that its author has
// seen. Other replies are no answers to a list, but may name a code. While requests wait, an answer to all of an unknown message is one to
// a list that the channel has not confirmed yet, or that was sent again.
func (r *Reader) list(ctx context.Context, m Message, waiting int) (did Did, is bool, err error) {
	all, n, shaped := reply.ReadListReply(m.Text)
	if !shaped {
		return did, false, nil
	}
	b, err := r.Lists.Burst(ctx, m.From, m.ReplyTo)
	if err == nil && len(b.Items) == 0 && all != "" && n > 0 && waiting > 0 {
		return Did{Say: []string{card.Visible(permissions.ListChanged().TextIn(m.Who.Language))}}, true, nil
	}
	if err != nil || len(b.Items) == 0 {
		return did, false, err
	}
	if left := r.Muted(m.Who); left > 0 {
		return Did{Say: []string{reply.SayMuted(left, m.Who.Language)}}, true, nil
	}
	words := ""
	switch {
	case all == "" && n >= 1 && n <= len(b.Items):
		if _, err = r.Lists.SendAgain(ctx, m.From, b.Items[n-1].Code); err == nil {
			return did, true, nil // the card follows
		}
	case all == "" || n == 0:
		words = m.Who.Language.Sprintf("Nothing was decided: to answer everything in that list, write how many requests it has, "+
			"as in: deny all %d. A number by itself opens its request.", len(b.Items))
	default:
		taken := 0
		_, taken, err = r.Lists.DecideAll(ctx, connectors.BurstDecision{Ref: m.ReplyTo, Count: n, Answer: all, From: m.From, Key: m.Key})
		words = card.ToAll(all, taken, m.Who.Language)
	}
	if words, err = spoken(words, err, m.Who.Language); words != "" {
		did.Say = append(did.Say, words)
	}
	return did, true, err
}

// Before finds out why codes are not pending, and returns those that an earlier attempt at this very message settled. Its
// decisions about the others are still to be made.
func (r *Reader) Before(ctx context.Context, m Message, codes []string) (settled []reply.Open, why []error) {
	for _, code := range codes {
		q, err := r.Inbound.OnPermission(ctx, connectors.Decision{Code: code, From: m.From}) // without an answer it decides nothing
		why = append(why, err)
		if m.Key != "" && voted(q, m.Who, m.Key+":") {
			settled = append(settled, reply.Open{Request: q, Code: code, ShownAt: m.At})
		}
	}
	return settled, why
}

// voted reports whether a person voted on q by a message whose key begins with key.
func voted(q permissions.Request, who connectors.Person, key string) bool {
	return slices.ContainsFunc(q.Votes, func(v permissions.Vote) bool { return v.By == who.Name && strings.HasPrefix(v.Key, key) })
}

// StillCounts is the reply to somebody who edited or deleted the message with that key: their votes by it that wait for those of
// others count nevertheless. Empty if there are none.
func (r *Reader) StillCounts(ctx context.Context, id connectors.Identity, who connectors.Person, key string) (string, error) {
	waiting, err := r.waiting(ctx, id)
	var rows []string
	for _, s := range waiting {
		if voted(s.Request, who, key+":") {
			rows = append(rows, reply.StillCounts(s.Request, s.Code, who.Language))
		}
	}
	return strings.Join(rows, "\n"), err
}

// refused says why nothing was decided.
func (r *Reader) refused(ctx context.Context, m Message, why []error) (did Did, err error) {
	for _, each := range why {
		words, fault := r.Answered(m.Who, permissions.Request{}, each)
		if fault != nil {
			return Did{}, fault
		}
		did.Say = append(did.Say, words)
	}
	return did, ctx.Err()
}

// decide submits the decisions of a message.
func (r *Reader) decide(ctx context.Context, m Message, said reply.Result, open []reply.Open) (did Did, err error) {
	for i, d := range said.Decisions {
		if words := r.NotRead(m, d, open); words != "" {
			did.Say = append(did.Say, words)
			continue
		}
		d.From, d.Key = m.From, fmt.Sprintf("%s:%d", m.Key, i)
		settled, err := r.Inbound.OnPermission(ctx, d)
		if shown := permissions.AsRefusal(err); shown != nil && shown.Proposal != nil {
			rows := append(card.Proposed(*shown.Proposal, r.shown(m.Who)),
				reply.RuleHint(shown.Proposal.Rule, d.Code, false, m.Who.Language))
			did.Say = append(did.Say, strings.Join(rows, "\n"))
			continue
		}
		words, fault := r.Answered(m.Who, settled, err)
		if fault != nil {
			return Did{}, fault
		}
		if err == nil {
			did.Decided = append(did.Decided, Decided{d.Answer, words})
		} else {
			did.Say = append(did.Say, words)
		}
	}
	return did, ctx.Err()
}

// NotRead says that a decision would allow what its author may not have read; empty if it would not.
func (r *Reader) NotRead(m Message, d connectors.Decision, open []reply.Open) string {
	_, allows := d.Answer.Scope()
	if !allows || r.Unread == nil || !slices.ContainsFunc(open, func(o reply.Open) bool {
		return o.Request.ID == d.Request && (!m.File || m.Card != o.Code) &&
			r.Unread(connectors.Prompt{Request: o.Request, Code: o.Code, To: m.Who})
	}) {
		return ""
	}
	return m.Who.Language.Sprintf("Nothing was allowed: what %s wants is not on its card. "+
		"Read the file above it, and send the same in a reply to the file.", d.Code)
}

// Answered is the reply to a decision. An error that is not a refusal is returned: the decision has to be retried.
func (r *Reader) Answered(who connectors.Person, after permissions.Request, err error) (string, error) {
	if err == nil {
		return card.Outcome(after, r.shown(who)).Text, nil
	}
	return spoken("", err, who.Language)
}

// spoken is words, or the text of a refusal.
func spoken(words string, err error, in i18n.Language) (string, error) {
	if refusal := permissions.AsRefusal(err); refusal != nil {
		return card.Visible(refusal.TextIn(in)), nil
	}
	return words, err
}

// shown says how texts are rendered for a person.
func (r *Reader) shown(to connectors.Person) card.Options {
	return card.Options{Now: r.Now(), Location: to.Location, Language: to.Language, Self: to.Name}
}

// Open returns what is pending for a person, with the times when each was shown whole in id's channel. quoted is the code of the request
// whose copy has that ref or that code, because it may have been sent without its ref being recorded.
func (r *Reader) Open(
	ctx context.Context, id connectors.Identity, who connectors.Person, ref, card string,
) (open []reply.Open, quoted string, err error) {
	waiting, err := r.waiting(ctx, id)
	if err != nil {
		return nil, "", err
	}
	for _, s := range waiting {
		o := reply.Open{Request: s.Request, Code: s.Code, Voted: voted(s.Request, who, "")}
		for _, c := range s.Copies {
			if c.Person == who.Name && c.Connector == id.Via && (s.Code == card || !c.SentAt.IsZero() && r.shows(s, c, who)) {
				own := ref != "" && c.Ref == ref && c.Burst != ref
				if own || s.Code == card {
					quoted = s.Code
				}
				if own && c.DueAt.Before(c.SentAt) && !c.DueAt.IsZero() {
					c.SentAt = c.DueAt // it has come, since when nobody knows if it was sent twice
				}
				if at := r.shownAt(c); o.ShownAt.IsZero() || at.Before(o.ShownAt) { // in private, and later in a group
					o.ShownAt = at
				}
			}
		}
		open = append(open, o)
	}
	return open, quoted, nil
}

// shows reports whether the message of a copy has all of its request.
func (r *Reader) shows(s permissions.RequestView, c permissions.Copy, who connectors.Person) bool {
	if c.Burst == "" || c.Ref != "" && c.Ref != c.Burst || r.Whole == nil {
		return true
	}
	return r.Whole(connectors.Prompt{Request: s.Request, Code: s.Code, To: who})
}

// waiting lists what is pending for whoever id proves, oldest first.
func (r *Reader) waiting(ctx context.Context, id connectors.Identity) (all []permissions.RequestView, err error) {
	after := permissions.ID("")
	for len(all) < maxOpen {
		page, err := r.Inbound.Pending(ctx, id, after, openPage)
		if all = append(all, page...); err != nil || len(page) < openPage {
			return all, err
		}
		after = page[len(page)-1].Request.ID
	}
	return all, nil
}

// shownAt is when a copy was shown, by its channel's clock in whole seconds. A copy with an id that is not sent yet may
// have arrived at any time since it was planned.
func (r *Reader) shownAt(c permissions.Copy) time.Time {
	at := cmp.Or(c.SentAt, c.DueAt)
	switch {
	case !c.ChannelTime.IsZero():
		at = c.ChannelTime
	case r.Theirs != nil:
		at = r.Theirs(at)
	}
	return at.Truncate(time.Second)
}

// Edited is what [Reader.Unheard] calls messages whose text was changed.
const Edited i18n.Phrase = "edited messages"

// unheardEvery is the minimum time between two replies that something is not read here.
const unheardEvery = time.Minute

// Unheard is the reply to content that is not read here, such as "photos", in a private chat or in a group, which gets no
// code; empty if the person got one within a minute.
func (r *Reader) Unheard(
	ctx context.Context, id connectors.Identity, who connectors.Person, what i18n.Phrase, alone bool,
) (string, error) {
	r.mu.Lock()
	last, told := r.told[who.Name]
	again := told && r.Now().Sub(last).Abs() < unheardEvery
	if !again {
		r.told[who.Name] = r.Now()
	}
	r.mu.Unlock()
	if again {
		return "", nil
	}
	in := who.Language
	words := in.Sprintf("I can't read %s, so nothing was decided. Please write it as a new message", what)
	if what == Edited { // its earlier text may have been an answer
		words = in.Text("I can't read edited messages, so the edit changed nothing of what was decided. Please write it as a new message")
	}
	if !alone {
		return words + ".", nil
	}
	waiting, err := r.Inbound.Pending(ctx, id, "", 1)
	if err != nil || len(waiting) == 0 {
		return words + ".", err
	}
	if waiting[0].Request.Offers(permissions.Deny) {
		return in.Sprintf("%s, as in: no %s because …", words, waiting[0].Code), nil
	}
	return in.Sprintf("%s; %s waits for your answer.", words, waiting[0].Code), nil
}

// Muted is how long a person's answers are ignored because they named too many wrong codes.
func (r *Reader) Muted(who connectors.Person) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.guard(who).Muted(r.Now())
}

// Wrong counts wrong codes of a person.
func (r *Reader) Wrong(who connectors.Person, n int) {
	if n == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.guard(who).Wrong(n, r.Now())
}

// guard is a person's guard. The caller holds the lock.
func (r *Reader) guard(who connectors.Person) *reply.Guard {
	g := r.guards[who.Name]
	if g == nil {
		g = &reply.Guard{}
		r.guards[who.Name] = g
	}
	return g
}
