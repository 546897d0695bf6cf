package telegram

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/conversation"
	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// membershipChanged handles a change of the bot's membership in a chat. The bot leaves a group in which nobody is asked. If it can no
// longer write where somebody is asked, the engine is told so that it tries other channels.
func (d *handler) membershipChanged(ctx context.Context, m member) error {
	away := m.New.Status == "left" || m.New.Status == "kicked"
	if m.Chat.Type == "private" {
		p, err := d.in.Person(identity(m.Chat.ID))
		if err != nil || !away { // pressing Start is noticed by [handler.reportReturned]
			return nil //nolint:nilerr // an unknown account is never asked
		}
		return d.in.ChatLost(ctx, Name, p.Name, "", d.noteLost(p, p.Name+" "+hasBlocked))
	}
	places, err := d.places(ctx, m.Chat.ID)
	if err != nil {
		return err
	}
	if len(places) > 0 {
		d.groups.look.Notify()
	} else if !away {
		d.leave(ctx, m.Chat.ID)
	}
	for _, p := range places {
		switch {
		case err != nil:
		case away:
			err = d.in.ChatLost(ctx, Name, "", p.Now, "the bot was removed from the group")
		case m.New.Status == "restricted" && denied(m.New.Write):
			err = d.in.ChatLost(ctx, Name, "", p.Now, "the bot may not write in the group")
		default:
			err = d.in.ChatRecovered(ctx, Name, "", p.Now)
		}
	}
	return err
}

// places returns the targets of a group: a route names them, or a request is pending there.
func (d *handler) places(ctx context.Context, chat int64) ([]connectors.Group, error) {
	places, err := d.in.Groups(ctx)
	return slices.DeleteFunc(places, func(p connectors.Group) bool {
		at, err := parsePlace(p.Now)
		return err != nil || at.chat != chat
	}), err
}

func (d *handler) asksIn(ctx context.Context, chat int64) (bool, error) {
	places, err := d.places(ctx, chat)
	return len(places) > 0, err
}

// leave leaves a group, unless it turns out to be the supergroup that one of our groups has become: the bot may learn of
// its membership before the migration. It does not hold up other updates.
func (d *handler) leave(ctx context.Context, chat int64) {
	d.inBackground(ctx, func(ctx context.Context) error {
		if isSupergroup(chat) {
			if err := d.probe(ctx); err != nil {
				return err
			}
			if asked, err := d.asksIn(ctx, chat); err != nil || asked {
				return err
			}
		}
		d.log.Info("leaving a group that no route names", "chat", chat)
		return d.api.call(ctx, "leaveChat", map[string]any{"chat_id": chat}, nil)
	})
}

// firstSupergroup is above every supergroup's id.
const firstSupergroup = -1_000_000_000_000

func isSupergroup(chat int64) bool { return chat < firstSupergroup }

const probeTime = 5 * time.Second

// probe asks for each of our groups that can still become a supergroup whether it has.
func (d *handler) probe(ctx context.Context) error {
	places, err := d.in.Groups(ctx)
	if err != nil {
		return err
	}
	brief, done := context.WithTimeout(ctx, probeTime)
	defer done()
	for _, p := range places {
		at, err := parsePlace(p.Now)
		if err != nil || isSupergroup(at.chat) {
			continue
		}
		err = d.api.call(brief, "sendChatAction", map[string]any{"chat_id": at.chat, "action": "typing"}, nil)
		if to, moved := migrated(err); moved {
			if err := d.in.RenameGroup(ctx, p.Now, Place(to, at.thread)); err != nil {
				return err
			}
		}
	}
	return nil
}

// groupMessage handles a message of a group. Only people who are asked may answer there; nobody else gets a reaction.
func (d *handler) groupMessage(ctx context.Context, u update) error {
	m := u.Message
	if m.MigrateTo != 0 {
		places, err := d.places(ctx, m.Chat.ID)
		for _, p := range places {
			if at, bad := parsePlace(p.Now); bad == nil && err == nil {
				err = d.in.RenameGroup(ctx, p.Now, Place(m.MigrateTo, at.thread))
			}
		}
		if err != nil {
			return err
		}
		d.groups.look.Notify()
		return nil
	}
	switch asked, err := d.asksIn(ctx, m.Chat.ID); {
	case err != nil:
		return err
	case !asked:
		d.leave(ctx, m.Chat.ID)
		return nil
	case m.Text == "":
		return d.answerUnread(ctx, m, m.media())
	case m.isForeign():
		return nil
	}
	id := identity(0) // an anonymous administrator or a channel is not a person
	if m.From != nil && !m.From.IsBot && m.SenderChat == nil {
		id = m.From.identity()
	}
	who, err := d.in.Person(id)
	if err != nil {
		d.auditUnmatched(ctx, m, id)
		return nil //nolint:nilerr // unknown accounts get no answer
	}
	name, code, answer, wanted := askedOf(d.ours(m))
	switch {
	case m.Text[0] == '/':
		_, _ = d.pointed.Do(m.From.ID, d.now(), func() error { // tells a person, once a day, where to use commands
			d.replyWords(ctx, m, who.Language.Text(commandsElsewhere))
			return nil
		})
		return nil
	case wanted && name == visible(who.Name) && m.hasHiddenWords():
		d.replyWords(ctx, m, who.Language.Text(conversation.Unsaid))
		return nil
	case wanted && name == visible(who.Name):
		person := connectors.Person{Location: who.Location, Language: who.Language}
		return d.inWords(ctx, u, id, person, connectors.Decision{Code: code, Answer: answer})
	case wanted:
		d.replyWords(ctx, m, who.Language.Sprintf("Nothing was decided: that question is for %s. Press the button with ✏️ yourself.", name))
		return nil
	}
	return d.groupAnswer(ctx, u, id, who)
}

// auditUnmatched audits an answer of somebody who is not asked. They get no reply.
func (d *handler) auditUnmatched(ctx context.Context, m *message, id connectors.Identity) {
	codes := reply.Read(d.written(m, d.quoted(m), i18n.English), nil).Unknown
	if _, code, _, wanted := askedOf(d.ours(m)); wanted {
		codes = []string{code}
	}
	for _, code := range codes {
		if _, err := d.in.OnPermission(ctx, connectors.Decision{Code: code, Answer: permissions.Deny, From: id}); err != nil {
			d.log.Debug("answer of an unknown account in a group refused", "chat", m.Chat.ID, "err", err)
		}
	}
	if len(codes) > 0 && m.SenderChat == nil {
		d.noteTapOfUnknown(ctx, m.From)
	}
}

// groupAnswer reads what a person wrote in a group. Anything but an answer that names its request or card is ignored.
func (d *handler) groupAnswer(ctx context.Context, u update, id connectors.Identity, who connectors.Person) error {
	m := u.Message
	d.textEvents.Add(ref{m.Chat.ID, m.ID}, d.eventKey(u))
	open, quoted, err := d.reader.Open(ctx, id, who, refOf(m.ReplyTo), d.quoted(m))
	if err != nil {
		return err
	}
	text := d.written(m, cmp.Or(quoted, d.quoted(m)), who.Language)
	said := reply.Read(text, open)
	if left := d.reader.Muted(who); left > 0 {
		if len(said.Decisions) > 0 {
			d.replyWords(ctx, m, reply.SayMuted(left, who.Language))
		}
		return nil
	}
	d.reader.Wrong(who, said.Guesses)
	decides, err := d.decides(ctx, u, id, who, text, open)
	if err != nil || decides || text.Quotes == "" {
		return err
	}
	open = slices.DeleteFunc(open, func(o reply.Open) bool { return o.Code != text.Quotes }) // the group may not read about other requests
	if said = reply.Read(text, open); said.Reply != "" && !said.PassOn {
		d.replyWords(ctx, m, said.Reply)
	}
	return nil
}

// decides makes the decisions of a person's message in a group, and reports whether it names any request.
func (d *handler) decides(
	ctx context.Context, u update, id connectors.Identity, who connectors.Person, text reply.Message, open []reply.Open,
) (bool, error) {
	said := reply.Read(text, open)
	toAll := connectors.Person{Location: who.Location, Language: who.Language} // without a name: the whole group reads it
	if len(said.Unknown) > 0 {
		before, why := d.reader.Before(ctx, conversation.Message{
			Who: who, At: text.At, Message: connectors.Message{From: id, Key: d.eventKey(u)},
		}, said.Unknown)
		if said = reply.Read(text, slices.Concat(open, before)); len(said.Unknown) > 0 {
			return true, d.explainNothing(ctx, u.Message, toAll, why)
		}
	}
	if len(said.Decisions) > 0 && u.Message.hasHiddenWords() {
		d.replyWords(ctx, u.Message, who.Language.Text(conversation.Unsaid))
		return true, nil
	}
	for i, decision := range said.Decisions {
		read := conversation.Message{Who: who, Card: d.quoted(u.Message), File: d.onFile(u.Message)}
		if words := d.reader.NotRead(read, decision, open); words != "" {
			d.replyWords(ctx, u.Message, words)
			continue
		}
		decision.From, decision.Key = id, fmt.Sprintf("%s:%d", d.eventKey(u), i)
		r, err := d.in.OnPermission(ctx, decision)
		if err := d.answer(ctx, u.Message, toAll, r, err); err != nil {
			return true, err
		}
	}
	return len(said.Decisions) > 0, nil
}

// explainNothing says why a message decided nothing, except for five letters that are not a code.
func (d *handler) explainNothing(ctx context.Context, m *message, toAll connectors.Person, why []error) error {
	for _, each := range why {
		if permissions.CodeOf(each) == permissions.CodeUnknown {
			continue
		}
		if err := d.answer(ctx, m, toAll, permissions.Request{}, each); err != nil {
			return err
		}
	}
	return nil
}

// written is a group message as the reader takes it.
func (d *handler) written(m *message, quoted string, in i18n.Language) reply.Message {
	return reply.Message{Text: d.unaddressed(m.Text), Language: in, Quotes: quoted, At: time.Unix(m.Date, 0)}
}

// quoted is the code of the card that a message replies to, or to whose file, whoever may answer it; or empty.
func (d *handler) quoted(m *message) string {
	if d.onFile(m) {
		code, _, _ := strings.Cut(m.ReplyTo.Caption, " · ")
		return code
	}
	return codeOfCard(d.ours(m))
}

// onFile reports whether a message replies to the file of a card.
func (d *handler) onFile(m *message) bool { return m.ReplyTo.by(d.bot) && m.ReplyTo.Document != nil }

// unaddressed removes the bot's name from the start and the end of a text.
func (d *handler) unaddressed(text string) string {
	self := d.self.Load()
	if self == nil {
		return text
	}
	words := strings.Fields(text)
	isName := func(word string) bool { return strings.EqualFold(strings.TrimRight(word, ",:"), "@"+self.Username) }
	if text = strings.TrimSpace(text); len(words) > 0 && isName(words[0]) {
		text = strings.TrimSpace(text[len(words[0]):])
	}
	if n := len(words); n > 1 && isName(words[n-1]) {
		text = strings.TrimSpace(text[:len(text)-len(words[n-1])])
	}
	return text
}

// firstStep is the first of two steps that a person took on a message: towards an answer, or the end of a stop, which has no answer.
type firstStep struct {
	card   ref
	by     taker
	answer permissions.Answer
	call   int
	rule   string // that the person was shown
}

// taker is who takes steps. Whatever ends their right makes another one of them, who then begins anew.
type taker struct {
	account int64
	name    string
	ended   int // see [connectors.Person]
}

// taker is who taps; nobody's account has no name.
func (d *handler) taker(account int64) taker {
	who, _ := d.in.Person(identity(account))
	return taker{account, who.Name, who.Ended}
}

// secondStep is how long the second step counts for nothing after the first: a double tap is one answer.
const secondStep = time.Second

// beginStep records a first step, unless it was taken, and reports whether it was.
func (c *Connector) beginStep(at ref, by taker, p press, now time.Time) (taken bool) {
	taken, _ = c.firstSteps.ContainsOrAdd(firstStep{at, by, p.Answer, p.Call, p.Rule}, now)
	return taken
}

// maySecondStep reports whether the second step may follow: the same person must take both, for the same answer, and not in one movement.
func (c *Connector) maySecondStep(at ref, by taker, p press, now time.Time) bool {
	since, taken := c.firstSteps.Peek(firstStep{at, by, p.Answer, p.Call, p.Rule})
	return taken && now.Sub(since) >= secondStep
}

// forgetSteps forgets the first steps of an account on a card.
func (c *Connector) forgetSteps(at ref, account int64) {
	for _, f := range c.firstSteps.Keys() {
		if f.card == at && f.by.account == account {
			c.firstSteps.Remove(f)
		}
	}
}
