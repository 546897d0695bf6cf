package telegram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/conversation"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
	"github.com/daycared/daycared/permissions/timing"
)

// handler handles updates: it hands what people do to the engine.
type handler struct {
	*Connector
	reader *conversation.Reader
}

func newHandler(c *Connector) *handler {
	return &handler{c, conversation.New(conversation.Options{
		Inbound: c.in, Lists: c.in, Now: c.now, Help: help, Account: account,
		Unread: func(p connectors.Prompt) bool { m := fit(p); return m.Unseen && !m.TooBig }, Whole: c.ShowsWhole,
	})}
}

const (
	// atOnce is how many cards are edited concurrently at a stop.
	atOnce = 8
	// maxEnding limits the requests whose cards are edited at a stop; Telegram accepts fewer in the available time.
	maxEnding = 100
)

// end marks the newest pending cards as not answerable. It is tried once and outside the rate limits, because the daemon is
// stopping. The next start refreshes all cards.
func (d *handler) end(ctx context.Context) {
	prompts, err := d.in.LivePrompts(ctx, Name, maxEnding)
	if err != nil {
		return
	}
	var group errgroup.Group
	group.SetLimit(atOnce)
	lists := map[ref]outgoing{}
	for _, p := range prompts {
		r, err := parseRef(p.Ref)
		if err != nil {
			continue
		}
		out := away(p, d.now())
		if p.Ref == p.Burst {
			if _, done := lists[r]; done {
				continue
			}
			out = d.awayList(p, prompts)
			lists[r] = out
		}
		group.Go(func() error {
			err := d.api.call(ctx, "editMessageText", inPlace(r, out), nil)
			if err != nil && !notModified(err) {
				d.log.Debug("edit card at shutdown", "err", err)
			}
			return nil
		})
	}
	_ = group.Wait() // its functions return nil
}

// awayList is the list that p is on, of what is pending there, while the daemon is stopped.
func (d *handler) awayList(p connectors.Prompt, prompts []connectors.Prompt) outgoing {
	b := connectors.Burst{To: p.To}
	for _, other := range prompts {
		if other.Ref == p.Ref {
			b.Items = append(b.Items, connectors.Item{Prompt: other})
		}
	}
	out := d.listed(b, p.To.Language.Text(notRunning))
	out.Keyboard = noKeys()
	return out
}

// gap sends pending requests again after an outage in which taps may have been lost: Telegram keeps them for 150 seconds.
// Each affected person is told once. An old card points to the new one as soon as that is sent.
func (d *handler) gap(ctx context.Context, gone time.Duration) error {
	d.gaps.Lock() // a new card may be sent before ShowAgain returns
	prompts, err := d.in.ShowAgain(ctx, Name)
	if err != nil {
		d.gaps.Unlock()
		return err
	}
	type spoken struct {
		ref
		language i18n.Language
	}
	told := map[int64]spoken{}
	for _, p := range prompts {
		r, err := parseRef(p.Ref)
		if err != nil || p.Locked { // not shown again
			continue
		}
		if p.Ref != p.Burst {
			d.replacedCards.Add(replacedCard{p.Request.ID, r.chat}, r)
		}
		if _, is := told[r.chat]; !is {
			told[r.chat] = spoken{r, p.To.Language}
		}
	}
	d.gaps.Unlock()
	for chat, p := range told {
		d.inBackground(ctx, func(ctx context.Context) error {
			if chat < 0 { // a reply stays in its topic
				return d.reply(ctx, p.ref, afterGap(gone, p.language), noKeys(), nil)
			}
			return d.sendText(ctx, chat, replies, afterGap(gone, p.language))
		})
	}
	return nil
}

// replacedCard identifies the card of a request in a chat that is about to be sent again.
type replacedCard struct {
	request permissions.ID
	chat    int64
}

// pointToNew makes the old card point to p, which was just sent.
func (c *Connector) pointToNew(ctx context.Context, p connectors.Prompt, chat int64) {
	c.gaps.Lock()
	defer c.gaps.Unlock()
	was, there := c.replacedCards.Get(replacedCard{p.Request.ID, chat})
	if c.replacedCards.Remove(replacedCard{p.Request.ID, chat}); there {
		c.inBackground(ctx, func(ctx context.Context) error {
			return c.put(ctx, was, renderWithLead(p, shownAgain(p.Code, p.To.Language)))
		})
	}
}

// update handles one update; nil means that it is stored or ignored.
func (d *handler) update(ctx context.Context, u update) error {
	if err := d.reportReturned(ctx, u); err != nil {
		return err
	}
	switch {
	case u.Callback != nil:
		return d.tap(ctx, u)
	case u.Edited != nil && u.Edited.Text != "":
		return d.answerUnread(ctx, u.Edited, conversation.Edited)
	case u.Message != nil && u.Message.Chat.Type != "private":
		return d.groupMessage(ctx, u)
	case u.Message != nil:
		return d.message(ctx, u)
	case u.Reaction != nil && u.Reaction.From != nil && u.Reaction.Chat.Type == "private":
		return d.reacted(ctx, u)
	case u.Member != nil:
		return d.membershipChanged(ctx, *u.Member)
	}
	return nil
}

// reportReturned reports a person who could not be written to and is back.
func (d *handler) reportReturned(ctx context.Context, u update) error {
	var at chat
	switch {
	case u.Message != nil:
		at = u.Message.Chat
	case u.Member != nil && u.Member.New.Status == "member":
		at = u.Member.Chat
	case u.Callback != nil && u.Callback.Message != nil:
		at = u.Callback.Message.Chat
	}
	return d.lost.Recover(strconv.FormatInt(at.ID, 10), func() error {
		p, err := d.in.Person(identity(at.ID))
		if err != nil {
			return nil //nolint:nilerr // an unknown account is never asked
		}
		return d.in.ChatRecovered(ctx, Name, p.Name, "")
	})
}

const (
	// backgroundTime limits background sends.
	backgroundTime = time.Minute
	// toastTime is how long Telegram accepts the answer to a tap, toastTry the limit of one attempt.
	toastTime, toastTry = 15 * time.Second, 4 * time.Second
)

// inBackground sends in the background, so that updates are not held up. It retries until it succeeds or backgroundTime is over, which
// is shortened to farewell once ctx ends. A failure does not change any decision.
func (c *Connector) inBackground(ctx context.Context, send func(context.Context) error) {
	c.work.Go(func() {
		lasting, done := context.WithTimeout(context.WithoutCancel(ctx), backgroundTime)
		defer done()
		defer context.AfterFunc(ctx, func() { time.AfterFunc(stopTime, done) })()
		tries := wire.NewBackoff(300*time.Millisecond, 10*time.Second)
		for {
			err := send(lasting)
			if err == nil || notModified(err) {
				return
			}
			again := temporary(err) || errors.Is(err, errTurn)
			if !again || timing.Pause(lasting, cmp.Or(connectors.RetryAfter(err), tries.NextBackOff())) != nil {
				c.log.Debug("message not sent", "err", err)
				return
			}
		}
	})
}

func (c *Connector) toast(ctx context.Context, tap *callback, text string, alert bool) {
	until := time.Now().Add(toastTime)
	c.inBackground(ctx, func(ctx context.Context) error {
		ctx, done := context.WithDeadline(ctx, until)
		defer done()
		if err := ctx.Err(); err != nil {
			return err
		}
		ctx, brief := context.WithTimeout(ctx, toastTry)
		defer brief()
		return c.api.call(ctx, "answerCallbackQuery", map[string]any{
			"callback_query_id": tap.ID, "text": clipTo(text, maxToast), "show_alert": alert,
		}, nil)
	})
}

// identity is the user as Telegram proves it, with their language as it says.
func (u user) identity() connectors.Identity {
	id := identity(u.ID)
	id.Language = u.Language
	return id
}

func (d *handler) language(id connectors.Identity) i18n.Language {
	who, err := d.in.Person(id)
	if err != nil {
		return i18n.Known(id.Language)
	}
	return who.Language
}

// identity is the sender as Telegram proves it: by the id, which never changes hands.
func identity(id int64) connectors.Identity {
	return connectors.Identity{Via: Name, UID: permissions.NoUID, Address: address(id)}
}

// eventKey names an update, so that a redelivery is harmless.
func (c *Connector) eventKey(u update) string { return fmt.Sprintf("telegram:%d:%d", c.bot, u.ID) }

func (d *handler) tap(ctx context.Context, u update) error {
	tap := u.Callback
	if step, stop, is := parseResume(tap.Data); is {
		return d.resume(ctx, tap, step, stop)
	}
	if command, is := parseList(tap.Data); is {
		return d.fromList(ctx, u, command)
	}
	if answer, digest, is := parseAll(tap.Data); is {
		return d.answerAll(ctx, u, answer, digest)
	}
	p, known := parseData(tap.Data)
	if !known {
		d.toast(ctx, tap, d.language(tap.From.identity()).Text(toastUnknown), true)
		return nil
	}
	from, in := tap.From.identity(), d.language(tap.From.identity())
	if tap.From.IsBot { // or an anonymous administrator: never a person, whatever the configuration says
		from.Address = ""
	}
	decision := connectors.Decision{
		Button: p.Button, Ref: refOf(tap.Message), Answer: p.Answer, Call: p.Call, Really: true,
		From: from, Key: d.eventKey(u),
	}
	if p.Step != "" {
		return d.step(ctx, tap, p, decision)
	}
	if _, allows := p.Answer.Scope(); allows {
		look := decision
		look.Again = true // the decision itself is refused
		if prompt, err := d.in.Preview(ctx, look); err == nil && !d.hasRead(ctx, tap, decision, prompt) {
			return nil
		}
	}
	decision.Really = d.maySecondStep(chatOf(tap), d.taker(tap.From.ID), p, d.now())
	if decision.Rule = p.Rule; !decision.Really {
		decision.Rule = "" // then the rule is shown
	}
	r, err := d.in.OnPermission(ctx, decision)
	switch refusal := permissions.AsRefusal(err); {
	case err == nil:
		d.toast(ctx, tap, toastDone(r, in), false)
		d.conclude(ctx, decision)
		if at := chatOf(tap); d.steps.Remove(at) && r.State == permissions.Pending {
			if prompt, err := d.in.Preview(ctx, decision); err == nil {
				d.showStep(ctx, at, decision, prompt, press{})
			}
		}
	case refusal != nil && refusal.Proposal != nil: // the rule changed, it came too soon, or they pressed the second step of another person
		return d.propose(ctx, tap, p, decision, *refusal.Proposal)
	case refusal != nil && refusal.Code == permissions.CodeReally: // it came too soon, or they pressed the second step of another person
		d.beginStep(chatOf(tap), d.taker(tap.From.ID), p, d.now())
		d.toast(ctx, tap, in.Text(toastReally), true)
	case refusal != nil && d.hasGiven(r, p, from):
		d.toast(ctx, tap, in.Text(toastGiven(p.Answer)), false)
		d.redraw(ctx, decision, refusal) // an older card of the request may still have buttons
	case refusal != nil:
		d.refuse(ctx, tap, decision, refusal)
	default:
		return d.unaccepted(ctx, tap, err)
	}
	return nil
}

// unaccepted answers a tap that was refused, or could not be stored: then the error makes the update be handled again.
func (d *handler) unaccepted(ctx context.Context, tap *callback, err error) error {
	in := d.language(tap.From.identity())
	switch refusal := permissions.AsRefusal(err); {
	case refusal != nil:
		d.toast(ctx, tap, toastRefused(refusal, in), true)
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	d.toast(ctx, tap, in.Text(toastBroken), true)
	return err
}

// resume handles a button about a stop, which is about the stop that began at that time only, not about a later one.
func (d *handler) resume(ctx context.Context, tap *callback, step string, at time.Time) error {
	on, from, in := chatOf(tap), tap.From.identity(), d.language(tap.From.identity())
	if tap.From.IsBot || on.chat != tap.From.ID { // such messages are in private chats only
		d.toast(ctx, tap, in.Text(toastUnknown), true)
		return nil
	}
	who, err := d.in.Person(from)
	by := taker{tap.From.ID, who.Name, who.Ended}
	stop := d.in.Stop()
	switch {
	case err != nil:
		if permissions.CodeOf(err) != permissions.CodeLocked {
			err = permissions.NotYours() // an unknown account learns nothing
		}
	case stop.By == "":
		d.toast(ctx, tap, in.Text(conversation.Resumed), false)
		d.overwrite(ctx, on, in.Text(conversation.Resumed))
	case stop.By != who.Name:
		d.toast(ctx, tap, clipTo(conversation.NotResumed(stop.By, in), maxToast), true)
	case !stop.At.Equal(at):
		d.toast(ctx, tap, in.Text(stopAgain), true)
		d.overwrite(ctx, on, in.Text(stopAgain))
	case step == stepReally || step == "" && !d.maySecondStep(on, by, press{}, d.now()):
		d.beginStep(on, by, press{}, d.now())
		d.toast(ctx, tap, in.Text(toastResume), false)
		d.keysOfStop(ctx, on, at, keysResume(at, in), in)
	case step == stepBack:
		d.forgetSteps(on, tap.From.ID)
		d.toast(ctx, tap, in.Text(toastStay), false)
		d.keysOfStop(ctx, on, at, keysStopped(at, in), in)
	default:
		if err = d.in.EndStop(ctx, from, at); err == nil {
			d.toast(ctx, tap, in.Text(conversation.Resumed), false)
			d.overwrite(ctx, on, in.Text(conversation.Resumed))
		}
	}
	if err != nil {
		return d.unaccepted(ctx, tap, err)
	}
	return nil
}

// fromList does what a button below a list does, and what its person could write as well. The list is in a private chat.
func (d *handler) fromList(ctx context.Context, u update, command string) error {
	tap := u.Callback
	on, from, in := chatOf(tap), tap.From.identity(), d.language(tap.From.identity())
	who, err := d.in.Person(from)
	if on.chat == tap.From.ID && permissions.CodeOf(err) == permissions.CodeLocked {
		return d.unaccepted(ctx, tap, err)
	}
	if tap.From.IsBot || on.chat != tap.From.ID || err != nil {
		d.toast(ctx, tap, in.Text(toastUnknown), true)
		return nil //nolint:nilerr // an unknown account learns nothing
	}
	if name, rest, _ := strings.Cut(command, " "); name == "/pair" || name == "/unpair" {
		return d.pairSender(ctx, tap, who, name, rest)
	}
	code, isOpen := strings.CutPrefix(command, opens)
	agent, isWhy := strings.CutPrefix(command, asksWhy)
	var did conversation.Did
	var why []permissions.Request
	switch {
	case isOpen:
		err = d.open(ctx, from, code, on.chat)
	case isWhy:
		why, err = d.in.Unheeded(ctx, from, agent)
	default:
		did, err = d.reader.Read(ctx, conversation.Message{
			Message: connectors.Message{From: from, Text: command, Key: d.eventKey(u)}, Who: who, At: d.now(),
		})
	}
	switch refusal := permissions.AsRefusal(err); {
	case refusal != nil:
		d.toast(ctx, tap, toastRefused(refusal, in), true)
	case err != nil:
		return err
	case isOpen:
		d.toast(ctx, tap, in.Sprintf("⬇️ %s is shown again below.", code), false)
	case isWhy:
		d.toast(ctx, tap, "", false)
		o := card.Options{Now: d.now(), Location: who.Location, Language: in, Self: who.Name}
		d.tellWith(ctx, tap.Message, card.Unheeded(why, o), noKeys())
	case strings.Contains(command, ":"), strings.HasPrefix(command, "/trust "): // it is not below a list, but about one agent
		text := card.Plain(strings.Join(did.Say, "\n"))
		d.toast(ctx, tap, card.Isolate(text), false)
		d.overwrite(ctx, on, text)
	default:
		d.toast(ctx, tap, card.Isolate(card.Plain(strings.Join(did.Say, "\n"))), false)
		d.inBackground(ctx, func(ctx context.Context) error {
			words, k, err := d.listAgain(ctx, from, who, command)
			if err != nil {
				return err
			}
			return d.put(ctx, on, ourText(words, k))
		})
	}
	return nil
}

// pairSender says whose an unknown account is, or takes that back, as its person could write, and answers with a message besides: the
// notice may name other accounts.
func (d *handler) pairSender(ctx context.Context, tap *callback, who connectors.Person, command, rest string) error {
	in := who.Language
	words, proposed, err := d.reader.Pair(ctx, tap.From.identity(), in, command, rest)
	switch refusal := permissions.AsRefusal(err); {
	case refusal != nil && refusal.Code != permissions.CodeBroken:
		d.toast(ctx, tap, toastRefused(refusal, in), true)
		return nil
	case err != nil:
		d.toast(ctx, tap, in.Text(toastBroken), true)
		return err
	}
	d.toast(ctx, tap, "", false)
	k := noKeys()
	if proposed {
		k = listed(listKey(in.Text("✖ Take it back"), "/unpair "+rest), 1)
	}
	d.tellWith(ctx, tap.Message, words, k)
	return nil
}

// answerAll answers everything on a list, unless that took more requests a moment ago: whoever pressed may not have seen them.
func (d *handler) answerAll(ctx context.Context, u update, answer permissions.Answer, digest string) error {
	tap, in := u.Callback, d.language(u.Callback.From.identity())
	on := chatOf(tap)
	if tap.From.IsBot || on.chat != tap.From.ID {
		d.toast(ctx, tap, in.Text(toastUnknown), true)
		return nil
	}
	if at, grew := d.listGrowth.Peek(on); grew && d.now().Sub(at) < secondStep {
		d.toast(ctx, tap, toastRefused(permissions.ListChanged(), in), true)
		return nil
	}
	b, taken, err := d.in.DecideAll(ctx, connectors.BurstDecision{
		Ref: on.String(), Digest: digest, Answer: answer, From: tap.From.identity(), Key: d.eventKey(u),
	})
	if err == nil {
		d.toast(ctx, tap, card.ToAll(answer, taken, in), false)
	} else if err := d.unaccepted(ctx, tap, err); err != nil {
		return err
	}
	if len(b.Items) > 0 {
		d.inBackground(ctx, func(ctx context.Context) error { return d.put(ctx, on, d.listed(b, "")) })
	}
	return nil
}

// listAgain is the list that a command's button is below, as it is now.
func (d *handler) listAgain(
	ctx context.Context, from connectors.Identity, who connectors.Person, command string,
) (words string, k keyboard, err error) {
	list := "/agents"
	if strings.HasPrefix(command, "/revoke ") {
		list = "/grants"
	}
	did, err := d.reader.Read(ctx, conversation.Message{Message: connectors.Message{From: from, Text: list}, Who: who, At: d.now()})
	return strings.Join(did.Say, "\n"), d.keysOf(ctx, list, from, who.Language), err
}

// open shows a pending request again, below; its older card then points to the new one.
func (d *handler) open(ctx context.Context, from connectors.Identity, code string, chat int64) error {
	d.gaps.Lock() // the new card may be sent before olds has the old one
	defer d.gaps.Unlock()
	p, err := d.in.SendAgain(ctx, from, code)
	if at, bad := parseRef(p.Ref); err == nil && bad == nil && at.chat == chat && p.Ref != p.Burst {
		d.replacedCards.Add(replacedCard{p.Request.ID, chat}, at)
	}
	return err
}

// keysOfStop replaces the buttons below the message about a stop, unless that ended meanwhile.
func (d *handler) keysOfStop(ctx context.Context, on ref, at time.Time, k keyboard, in i18n.Language) {
	d.board(ctx, on, k, func(context.Context) error {
		if !d.in.Stop().At.Equal(at) {
			d.overwrite(ctx, on, in.Text(conversation.Resumed))
		}
		return nil
	})
}

// hasGiven reports whether the person had already given the button's answer, and it still counts.
func (d *handler) hasGiven(r permissions.Request, p press, from connectors.Identity) bool {
	who, err := d.in.Person(from)
	_, allows := p.Answer.Scope()
	stands := r.State == permissions.Pending || r.State == permissions.Answered && r.Answer == p.Answer ||
		r.Outcome().State == permissions.Approved && allows || r.State == permissions.Denied && p.Answer == permissions.Deny
	return err == nil && stands && slices.ContainsFunc(r.Votes, func(v permissions.Vote) bool {
		return v.By == who.Name && v.Answer == p.Answer && v.Call == p.Call
	})
}

// hasRead reports whether who taps may allow what a card says: where nothing of the action is on it, they themselves have to say first,
// since the last restart, that they have read its file. Otherwise it tells them, and shows the button for it.
func (d *handler) hasRead(ctx context.Context, tap *callback, decision connectors.Decision, p connectors.Prompt) bool {
	at := chatOf(tap)
	if !renderWithLead(p, "").Unseen || d.firstSteps.Contains(firstStep{card: at, by: d.taker(tap.From.ID)}) {
		return true
	}
	d.toast(ctx, tap, d.language(decision.From).Text(toastUnread), true)
	d.showStep(ctx, at, decision, p, press{})
	return false
}

// step handles a button that does not decide: the first of two steps, the way back, or an answer that needs words.
func (d *handler) step(ctx context.Context, tap *callback, p press, decision connectors.Decision) error {
	in := d.language(decision.From)
	prompt, err := d.in.Preview(ctx, decision)
	if refusal := permissions.AsRefusal(err); refusal != nil {
		d.refuse(ctx, tap, decision, refusal)
		return nil
	}
	if err != nil {
		return err
	}
	at, err := parseRef(decision.Ref)
	if err != nil || p.Step == stepOther && !prompt.Request.TakesWords() {
		d.toast(ctx, tap, in.Text(toastUnknown), true)
		return nil //nolint:nilerr // there is no message to change; a retry is useless
	}
	switch p.Step {
	case stepReally:
		if !d.hasRead(ctx, tap, decision, prompt) {
			return nil
		}
		if p.Answer == permissions.Allow(permissions.Rule) {
			_, err := d.in.OnPermission(ctx, decision)
			switch refusal := permissions.AsRefusal(err); {
			case refusal != nil && refusal.Proposal != nil:
				return d.propose(ctx, tap, p, decision, *refusal.Proposal)
			case refusal != nil:
				d.refuse(ctx, tap, decision, refusal)
				return nil
			}
			return err
		}
		d.beginStep(at, d.taker(tap.From.ID), p, d.now())
		d.toast(ctx, tap, in.Text(toastReally), true)
		d.showStep(ctx, at, decision, prompt, p)
	case stepMore, stepRead:
		if p.Step == stepRead {
			d.beginStep(at, d.taker(tap.From.ID), press{}, d.now())
		}
		d.toast(ctx, tap, "", false)
		d.showStep(ctx, at, decision, prompt, p)
	case stepBack:
		d.forgetSteps(at, tap.From.ID)
		d.toast(ctx, tap, "", false)
		d.showStep(ctx, at, decision, prompt, press{})
	case stepStop:
		return d.stopAgent(ctx, tap, decision, prompt.Code)
	case stepReason:
		d.toast(ctx, tap, in.Text(toastReason), false)
		d.ask(ctx, at, whyNot, prompt.Code, decision.From, tap.From)
	case stepOther:
		d.toast(ctx, tap, in.Text(toastOther), false)
		d.ask(ctx, at, inOwnWords, prompt.Code, decision.From, tap.From)
	}
	return nil
}

// stopAgent stops the agent of the card that was pressed, which is then edited as any card that was denied.
func (d *handler) stopAgent(ctx context.Context, tap *callback, decision connectors.Decision, code string) error {
	l, ended, err := d.in.StopAgent(ctx, decision.From, code)
	switch refusal := permissions.AsRefusal(err); {
	case refusal != nil:
		d.refuse(ctx, tap, decision, refusal)
	case err != nil:
		return d.unaccepted(ctx, tap, err)
	default:
		d.toast(ctx, tap, card.Isolate(card.Plain(conversation.AgentStopped(l, ended, d.language(decision.From)))), true)
		d.conclude(ctx, decision)
	}
	return nil
}

// propose shows the rule that the second step gives, as a reply to the card, and then the buttons of that step.
func (d *handler) propose(
	ctx context.Context, tap *callback, p press, decision connectors.Decision, shown permissions.Proposal,
) error {
	in := d.language(decision.From)
	prompt, err := d.in.Preview(ctx, decision)
	at, bad := parseRef(decision.Ref)
	if err != nil || bad != nil {
		return err
	}
	p.Step, p.Rule = "", shown.Rule.Fingerprint()
	begun := d.maySecondStep(at, d.taker(tap.From.ID), p, d.now())
	twice := d.beginStep(at, d.taker(tap.From.ID), p, d.now()) && !begun
	d.toast(ctx, tap, in.Text(toastRule), true)
	text := strings.Join(card.Proposed(shown, card.Options{Language: in}), "\n")
	d.inBackground(ctx, func(sending context.Context) error {
		if twice { // a double tap
			return nil
		}
		if err := d.reply(sending, at, text, noKeys(), nil); err != nil {
			return err
		}
		d.showStep(ctx, at, decision, prompt, p)
		return nil
	})
	return nil
}

// ask sends a question for words as a reply to a card; in a group it is addressed to who pressed.
func (d *handler) ask(ctx context.Context, at ref, q question, code string, id connectors.Identity, pressed user) {
	in := d.language(id)
	params := map[string]any{
		"chat_id": at.chat, "text": q.text(code, in), "reply_parameters": replyTo(at.message),
		"reply_markup": forceReply{Force: true, Placeholder: in.Text(q.placeholder), Selective: true},
	}
	if who, err := d.in.Person(id); err == nil && at.chat < 0 {
		params["text"], params["entities"] = q.of(who.Name, code, pressed, in)
	}
	d.inBackground(ctx, func(ctx context.Context) error { return d.writeIfRoom(ctx, at.chat, taps, "sendMessage", params, nil) })
}

// conclude edits the card that was pressed if the daemon's copy is another message: it was sent twice, as after a crash.
func (d *handler) conclude(ctx context.Context, decision connectors.Decision) {
	at, err := parseRef(decision.Ref)
	prompt, _ := d.in.Preview(ctx, decision) // it is settled by now, but still returned
	if err != nil || prompt.Ref == "" || prompt.Ref == decision.Ref {
		return
	}
	d.inBackground(ctx, func(ctx context.Context) error { return d.put(ctx, at, edit(prompt, d.now())) })
}

// refuse says why a tap was not accepted. If the card can no longer be answered, it is redrawn: a message that the daemon
// does not know, because it was killed while sending it, would otherwise keep its buttons forever.
func (d *handler) refuse(ctx context.Context, tap *callback, decision connectors.Decision, why *permissions.Refusal) {
	d.toast(ctx, tap, toastRefused(why, d.language(tap.From.identity())), true)
	if why.Code == permissions.CodeNotYours {
		d.noteTapOfUnknown(ctx, &tap.From)
	}
	if at := chatOf(tap); at.chat == tap.From.ID && (why.Code == permissions.CodeNotYours || why.Code == permissions.CodeLocked) {
		d.removeButtons(ctx, at, decision)
	}
	d.redraw(ctx, decision, why)
}

// removeButtons removes the buttons of a person's card that they may not answer: the daemon does not know a message that it was killed
// while sending. If they may again meanwhile, the card is redrawn.
func (d *handler) removeButtons(ctx context.Context, at ref, decision connectors.Decision) {
	decision.Again = true
	d.board(ctx, at, noKeys(), func(ctx context.Context) error {
		if p, refused := d.in.Preview(ctx, decision); refused == nil {
			return d.put(ctx, at, edit(p, d.now()))
		}
		return nil
	})
}

// redraw updates a tapped card that can no longer be answered.
func (d *handler) redraw(ctx context.Context, decision connectors.Decision, why *permissions.Refusal) {
	at, err := parseRef(decision.Ref)
	if over := why.Code == permissions.CodeSettled || why.Code == permissions.CodeMoved; !over || err != nil {
		return
	}
	decision.Again = true
	d.inBackground(ctx, func(ctx context.Context) error {
		p, _ := d.in.Preview(ctx, decision)
		if p.Request.ID == "" {
			return nil
		}
		return d.redrawAt(ctx, at, p)
	})
}

// showStep shows the buttons of the step that a press leads to, none: the first ones. It redraws a card whose request changed meanwhile:
// its edit may have come first.
func (d *handler) showStep(ctx context.Context, at ref, decision connectors.Decision, was connectors.Prompt, step press) {
	d.steps.Add(at, step)
	d.board(ctx, at, keysAt(was, edit(was, d.now()), step), func(context.Context) error {
		is, _ := d.in.Preview(ctx, decision) // it returns settled requests, too
		if is.Request.ID == was.Request.ID && is.Request.Revision != was.Request.Revision {
			d.inBackground(ctx, func(ctx context.Context) error { return d.redrawAt(ctx, at, is) })
		}
		return nil
	})
}

// boards counts the changes of one message's buttons. Its lock is held while one is sent.
type boards struct {
	sync.Mutex

	begun atomic.Int64
}

// board edits the buttons of a message in the background and then calls then, unless they are to change again: the last change is the
// one that stays, however long an earlier one takes.
func (c *Connector) board(ctx context.Context, at ref, k keyboard, then func(context.Context) error) {
	b := new(boards)
	if known, found, _ := c.boards.PeekOrAdd(at, b); found {
		b = known
	}
	change := b.begun.Add(1)
	c.inBackground(ctx, func(ctx context.Context) error {
		b.Lock()
		defer b.Unlock()
		if b.begun.Load() != change {
			return nil
		}
		err := c.writeIfRoom(ctx, at.chat, taps, "editMessageReplyMarkup", map[string]any{
			"chat_id": at.chat, "message_id": at.message, "reply_markup": k,
		}, nil)
		if err != nil && !notModified(err) {
			return err
		}
		return then(ctx)
	})
}

func (c *Connector) put(ctx context.Context, at ref, o outgoing) error {
	return c.writeIfRoom(ctx, at.chat, edits, "editMessageText", inPlace(at, o), nil)
}

// chatOf is the message that a button is on; the zero ref if Telegram does not say.
func chatOf(tap *callback) ref {
	at, _ := parseRef(refOf(tap.Message)) // the zero ref on error
	return at
}
