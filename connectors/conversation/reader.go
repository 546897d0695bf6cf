// Package conversation is what a message of a person does, in any channel in which people write: it answers what waits
// for them, in the words that package reply reads; it is a command, such as /pending; or it is for an agent of theirs.
// What the author is to be told about it comes back as words, and it is for the channel to send them.
//
// It knows no channel. Who wrote, and which message it replies to, the channel has proved before; what it may do, the
// engine says, which is the [Desk]. A group is no conversation: who may be answered there is for its channel to know.
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
)

// mostOpen is how many of a person's requests a message may be about.
const mostOpen = 100

// Desk is what conversations need of the engine. Whoever is nobody here, or asks for what is not theirs, gets a
// *permissions.Refusal.
type Desk interface {
	connectors.Handler
	connectors.Talks
	connectors.Controls
	// Person is who an identity is.
	Person(id connectors.Identity) (connectors.Person, error)
}

// Options are what a [Reader] needs.
type Options struct {
	Desk Desk
	Now  func() time.Time
	// Help says how to answer in this channel, and Account what it knows the author by, as a sentence.
	Help    string
	Account func(connectors.Identity) string
	// Thumbs says that the channel hears reactions.
	Thumbs bool
	// Theirs is a time of the machine's by the channel's clock, as far as that is known; nil: the same.
	Theirs func(time.Time) time.Time
}

// Reader reads the messages of one channel. It is safe for concurrent use.
type Reader struct {
	Options

	mu     sync.Mutex
	guards map[string]*reply.Guard // by person
	told   map[string]time.Time    // by person: when they were told that something is not read here
}

// New makes a reader.
func New(o Options) *Reader {
	return &Reader{Options: o, guards: map[string]*reply.Guard{}, told: map[string]time.Time{}}
}

// Message is what a person wrote, or the emoji that they put on a message.
type Message struct {
	connectors.Message
	Who      connectors.Person // as whom From was identified
	Card     string            // the code on the card that it replies to, as far as the channel can tell; empty: none
	Reaction bool              // Text is an emoji; empty when it was taken back
	At       time.Time         // by the clock of the channel, which stamps messages to the second
}

// Did is what a message did.
type Did struct {
	Decided []Decided
	Say     []string // what else its author is to be told, in this order
}

// Decided is a decision that was taken.
type Decided struct {
	Answer  permissions.Answer
	Request permissions.Request // as it is now
	Words   string              // about it, for its author
}

// Read does what a message says. After an error nothing was lost, and the same message is to be read again: what it did
// already is done once, by its key.
func (r *Reader) Read(ctx context.Context, m Message) (Did, error) {
	if text := strings.TrimSpace(m.Text); !m.Reaction && strings.HasPrefix(text, "/") {
		words, err := r.command(ctx, m, text)
		if words, err = spoken(words, err); err != nil {
			return Did{}, err
		}
		return Did{Say: []string{words}}, nil
	}
	open, quoted, err := r.Open(ctx, m.From, m.Who, m.ReplyTo, m.Card)
	if err != nil {
		return Did{}, err
	}
	if quoted == "" && !slices.ContainsFunc(open, func(o reply.Open) bool { return o.Code == m.Card }) {
		quoted = m.Card // it waits no more, and that is to be said
	}
	text := reply.Message{Text: m.Text, Quotes: quoted, Reaction: m.Reaction, Console: m.From.Console, Thumbs: r.Thumbs, At: m.At}
	said := reply.Read(text, open)
	if left := r.Muted(m.Who); left > 0 && !said.PassOn { // it would be an answer
		return Did{Say: []string{reply.SayMuted(left)}}, nil
	}
	if len(said.Unknown) > 0 {
		before, why := r.Before(ctx, m, said.Unknown)
		if said = reply.Read(text, append(open, before...)); len(said.Unknown) > 0 {
			r.Wrong(m.Who, said.Guesses)
			return r.refused(ctx, m, why)
		}
	}
	did, err := r.decide(ctx, m, said)
	if err != nil {
		return did, err
	}
	words := said.Say
	if said.PassOn {
		if words, err = r.agent(ctx, m, said.Say, len(open)); err != nil {
			return Did{}, err
		}
	}
	if words != "" {
		did.Say = append(did.Say, words)
	}
	return did, nil
}

// Before asks why codes that a message names do not wait, and gives those that this very message has settled: it came
// before, and was not done with. What it decides about the others is still to be done.
func (r *Reader) Before(ctx context.Context, m Message, codes []string) (settled []reply.Open, why []error) {
	for _, code := range codes {
		q, err := r.Desk.OnPermission(ctx, connectors.Decision{Code: code, From: m.From}) // decides nothing
		why = append(why, err)
		if slices.ContainsFunc(q.Votes, func(v permissions.Vote) bool {
			return v.By == m.Who.Name && m.Key != "" && strings.HasPrefix(v.Key, m.Key+":")
		}) {
			settled = append(settled, reply.Open{Request: q, Code: code, ShownAt: m.At})
		}
	}
	return settled, why
}

// refused tells why nothing was decided.
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

// decide hands on what a message decides.
func (r *Reader) decide(ctx context.Context, m Message, said reply.Said) (did Did, err error) {
	for i, d := range said.Decisions {
		d.From, d.Key = m.From, fmt.Sprintf("%s:%d", m.Key, i)
		settled, err := r.Desk.OnPermission(ctx, d)
		words, fault := r.Answered(m.Who, settled, err)
		if fault != nil {
			return Did{}, fault
		}
		if err == nil {
			did.Decided = append(did.Decided, Decided{d.Answer, settled, words})
		} else {
			did.Say = append(did.Say, words)
		}
	}
	return did, ctx.Err()
}

// Answered is what somebody is told about a decision of theirs. An error that is no refusal is returned: the decision is
// to be tried again.
func (r *Reader) Answered(who connectors.Person, after permissions.Request, err error) (string, error) {
	if err == nil {
		return card.Settled(after, r.shown(who)), nil
	}
	return spoken("", err)
}

// spoken is words, or those of a refusal.
func spoken(words string, err error) (string, error) {
	if refusal := permissions.AsRefusal(err); refusal != nil {
		return card.Visible(refusal.Text), nil //nolint:nilerr // the refusal is what is said
	}
	return words, err
}

// shown is how something is told to somebody.
func (r *Reader) shown(to connectors.Person) card.Options {
	return card.Options{Now: r.Now(), Location: to.Location, Self: to.Name}
}

// Open is what waits for somebody, when each was shown to them in the channel of that identity, and the code of the one
// whose card has that ref, or has the code card: it may have been sent without its ref being noted.
func (r *Reader) Open(
	ctx context.Context, id connectors.Identity, who connectors.Person, ref, card string,
) (open []reply.Open, quoted string, err error) {
	waiting, err := r.Desk.Pending(ctx, id, "", mostOpen)
	if err != nil {
		return nil, "", err
	}
	for _, s := range waiting {
		o := reply.Open{Request: s.Request, Code: s.Code}
		for _, c := range s.Copies {
			if c.Person == who.Name && c.Connector == id.Via && (c.Ref != "" || !c.SentAt.IsZero() || s.Code == card) {
				o.ShownAt = r.shownAt(c)
				if ref != "" && c.Ref == ref || s.Code == card {
					quoted = s.Code
				}
			}
		}
		open = append(open, o)
	}
	return open, quoted, nil
}

// shownAt is when a copy was shown, by the clock of its channel, which dates messages to the second. One that was named
// and not sent yet may have arrived since it was to be shown.
func (r *Reader) shownAt(c permissions.Copy) time.Time {
	at := cmp.Or(c.SentAt, c.Since)
	switch {
	case !c.Dated.IsZero():
		at = c.Dated
	case r.Theirs != nil:
		at = r.Theirs(at)
	}
	return at.Truncate(time.Second)
}

// unheardEvery is how often at most somebody is told that something is not read here.
const unheardEvery = time.Minute

// Unheard is what somebody is told who sent what is not read here, such as "photos", in a chat of their own or among
// others, who are shown no code; empty where they were told within a minute.
func (r *Reader) Unheard(
	ctx context.Context, id connectors.Identity, who connectors.Person, what string, alone bool,
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
	words := "I can't read " + what + ", so nothing was decided. Please write it as a new message"
	if !alone {
		return words + ".", nil
	}
	waiting, err := r.Desk.Pending(ctx, id, "", 1)
	if err != nil || len(waiting) == 0 {
		return words + ".", err
	}
	if waiting[0].Request.Offers(permissions.Deny) {
		return words + ", as in: no " + waiting[0].Code + " because …", nil
	}
	return words + "; " + waiting[0].Code + " waits for your answer.", nil
}

// Muted is for how long answers of a person are not read, since they named too many codes that are not theirs.
func (r *Reader) Muted(who connectors.Person) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.guard(who).Muted(r.Now())
}

// Wrong counts codes that a person named and that are not theirs.
func (r *Reader) Wrong(who connectors.Person, n int) {
	if n == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.guard(who).Wrong(n, r.Now())
}

// guard is a person's. The lock is held.
func (r *Reader) guard(who connectors.Person) *reply.Guard {
	g := r.guards[who.Name]
	if g == nil {
		g = &reply.Guard{}
		r.guards[who.Name] = g
	}
	return g
}
