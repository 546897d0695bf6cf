package telegram

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/conversation"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// message handles a text in a private chat. For groups see [handler.groupMessage].
func (d *handler) message(ctx context.Context, u update) error {
	m := u.Message
	if m.From == nil || m.From.IsBot || m.SenderChat != nil || m.Chat.Type != "private" {
		return nil
	}
	if m.Text == "" {
		return d.answerUnread(ctx, m, m.media())
	}
	if code, is := startCode(m); is {
		d.arrive(ctx, m, code)
		return nil
	}
	id := m.From.identity()
	who, err := d.in.Person(id)
	if err != nil {
		return d.unknownSender(ctx, m, err)
	}
	select {
	case d.menuChats <- m.Chat.ID:
	default: // a later message requests it again
	}
	switch code, answer, wanted := asked(d.ours(m)); {
	case m.isForeign():
		d.replyWords(ctx, m, who.Language.Text(forwarded))
		return nil
	case wanted && m.hasHiddenWords() && m.Text[0] != '/':
		d.replyWords(ctx, m, who.Language.Text(conversation.Unsaid))
		return nil
	case wanted && m.Text[0] != '/': // a command is a command even as a reply
		return d.inWords(ctx, u, id, who, connectors.Decision{Code: code, Answer: answer})
	}
	return d.text(ctx, u, id, who)
}

// answerUnread tells a configured person that the vote that they edited still counts, or else that what they sent is not read; in a group,
// that only if it replies to the bot.
func (d *handler) answerUnread(ctx context.Context, m *message, what i18n.Phrase) error {
	alone := m.Chat.Type == "private"
	if what == "" || m.From == nil || m.From.IsBot || m.SenderChat != nil {
		return nil
	}
	id := m.From.identity()
	who, err := d.in.Person(id)
	if err != nil {
		return nil //nolint:nilerr // unknown accounts get no answer
	}
	words := ""
	if key, was := d.textEvents.Get(ref{m.Chat.ID, m.ID}); was { // edited
		words, err = d.reader.StillCounts(ctx, id, who, key)
	}
	if err == nil && words == "" && (alone || m.ReplyTo.by(d.bot)) {
		words, err = d.reader.Unheard(ctx, id, who, what, alone)
	}
	if words != "" {
		d.replyWords(ctx, m, words)
	}
	return err
}

// unknownSender answers an unknown account once a day and reports it to the owner. A locked person is told that they are locked.
func (d *handler) unknownSender(ctx context.Context, m *message, why error) error {
	in := i18n.Known(m.From.Language)
	words := unknownSenderReply(m.From.ID, in)
	if refusal := permissions.AsRefusal(why); refusal != nil && refusal.Code == permissions.CodeLocked {
		words = refusal.TextIn(in)
	}
	noted, err := d.noteUnknownSender(ctx, m.From, m.From.ID)
	if noted {
		d.log.Info("message from an unknown account", "telegram", m.From.ID)
	}
	if noted && d.pace.unknownReplies.Allow() {
		d.inBackground(ctx, func(ctx context.Context) error { return d.sendText(ctx, m.Chat.ID, typing, words) })
	}
	return err
}

// noteTapOfUnknown reports an unknown account that answered what it was not asked to the owner. The account gets no reply, and its
// first message is still answered like any other's.
func (d *handler) noteTapOfUnknown(ctx context.Context, u *user) {
	if u == nil || u.IsBot {
		return
	}
	if _, err := d.in.Person(identity(u.ID)); err == nil {
		return
	}
	if _, err := d.noteUnknownSender(ctx, u, -u.ID); err != nil {
		d.log.Warn("record unknown sender", "telegram", u.ID, "err", err)
	}
}

// noteUnknownSender reports an account to the owner, once a day for this key, and returns whether it did.
func (d *handler) noteUnknownSender(ctx context.Context, u *user, key int64) (bool, error) {
	return d.reportedSenders.Do(key, d.now(), func() error {
		return d.in.NoteUnknownSender(ctx, permissions.UnknownSender{Via: Name, Account: address(u.ID), Name: claimed(u)})
	})
}

// claimed is the account's own name, cut to the length of a name.
func claimed(u *user) string {
	name := []rune(strings.TrimSpace(strings.ToValidUTF8(u.FirstName+" "+u.LastName, "\uFFFD")))
	return string(name[:min(len(name), permissions.MaxName)])
}

// ours is the text of our message that m replies to, or empty.
func (d *handler) ours(m *message) string {
	if !m.ReplyTo.by(d.bot) {
		return ""
	}
	return m.ReplyTo.Text
}

func (d *handler) inWords(
	ctx context.Context, u update, id connectors.Identity, who connectors.Person, decision connectors.Decision,
) error {
	decision.Comment, decision.From, decision.Key = u.Message.Text, id, d.eventKey(u)
	r, err := d.in.OnPermission(ctx, decision)
	return d.answer(ctx, u.Message, who, r, err)
}

// answer replies with the result of an answer in words. An error that is not a refusal makes the update be retried.
func (d *handler) answer(
	ctx context.Context, m *message, who connectors.Person, r permissions.Request, err error,
) error {
	words, err := d.reader.Answered(who, r, err)
	if err != nil {
		return err
	}
	d.replyWords(ctx, m, words)
	return ctx.Err()
}

func (d *handler) replyWords(ctx context.Context, m *message, words string) {
	d.tellWith(ctx, m, words, noKeys())
}

// text handles what a message says and replies to it.
func (d *handler) text(ctx context.Context, u update, id connectors.Identity, who connectors.Person) error {
	m := u.Message
	d.textEvents.Add(ref{m.Chat.ID, m.ID}, d.eventKey(u))
	did, err := d.reader.Read(ctx, conversation.Message{
		Message: connectors.Message{From: id, Text: m.Text, ReplyTo: refOf(m.ReplyTo), Key: d.eventKey(u)},
		Who:     who, Card: d.quoted(m), File: d.onFile(m), Unsaid: m.hasHiddenWords(), Thumbs: d.reactionChats.Contains(m.Chat.ID),
		At: time.Unix(m.Date, 0),
	})
	if err != nil {
		return err
	}
	for _, taken := range did.Decided {
		d.replyWords(ctx, m, taken.Words)
	}
	stop := d.in.Stop()
	for _, words := range did.Say {
		if k := d.keysOf(ctx, m.Text, id, who.Language); len(k.Rows) > 0 {
			d.tellWith(ctx, m, words, k)
		} else if did.StopAll && stop.By == who.Name && !stop.At.IsZero() {
			d.tellStop(ctx, m, words, stop, who.Language)
		} else {
			d.replyWords(ctx, m, words)
		}
	}
	return nil
}

// reacted handles a person's reactions to a message. From then on texts mention them in that chat.
func (d *handler) reacted(ctx context.Context, u update) error {
	r := u.Reaction
	id := r.From.identity()
	who, err := d.in.Person(id)
	if err != nil {
		return nil //nolint:nilerr // unknown accounts get no answer
	}
	d.reactionChats.Add(r.Chat.ID, true)
	m, emoji := &message{ID: r.ID, Chat: r.Chat}, ""
	for _, e := range r.New {
		emoji += cmp.Or(e.Emoji, "?")
	}
	did, err := d.reader.Read(ctx, conversation.Message{
		Message: connectors.Message{From: id, Text: emoji, ReplyTo: refOf(m), Key: d.eventKey(u)},
		Who:     who, Reaction: true, Thumbs: true, At: time.Unix(r.Date, 0),
	})
	for _, words := range did.Say { // a card shows what was decided
		d.replyWords(ctx, m, words)
	}
	return err
}

// keysOf returns the buttons below the answer to a command that lists something.
func (d *handler) keysOf(ctx context.Context, command string, id connectors.Identity, in i18n.Language) keyboard {
	var all []key
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(command)), "@")
	if words := strings.Fields(command); len(words) == 3 && words[0] == "/trust" {
		return listed(listKey(in.Sprintf("⚠️ Yes, trust it for %s", visible(words[2])), strings.Join(words, " ")+" yes"), 1)
	}
	switch name {
	case "/pending":
		waiting, _ := d.in.Pending(ctx, id, "", maxCalls) // without buttons on an error
		return keysOpen(wire.Map(waiting, func(s permissions.RequestView) string { return s.Code }))
	case "/grants":
		grants, _ := d.in.Grants(ctx, id, "", maxCalls)
		for i, g := range grants {
			all = append(all, listKey(in.Sprintf("✖ Take back %d", i+1), "/revoke "+string(g.ID))...)
		}
		return listed(all, 2)
	case "/agents":
		agents, _ := d.in.Agents(ctx, id)
		for _, a := range agents {
			if a.Foreground {
				all = append(all, listKey(in.Sprintf("✋ Stop %s", visible(a.Agent)), "/stop "+a.Agent)...)
			} else {
				all = append(all, listKey(in.Sprintf("💬 Write to %s", visible(a.Agent)), "/use "+a.Agent)...)
			}
		}
		return listed(all, 1)
	}
	return noKeys()
}

func (d *handler) tellWith(ctx context.Context, m *message, words string, k keyboard) {
	d.inBackground(ctx, func(ctx context.Context) error { return d.reply(ctx, ref{m.Chat.ID, m.ID}, words, k, nil) })
}

// tellStop replies that everything is stopped, with buttons that end this stop. Once it is over the message says so, unless
// the daemon was restarted meanwhile: then it says so when it is tapped.
func (d *handler) tellStop(ctx context.Context, m *message, words string, stop connectors.Stop, in i18n.Language) {
	d.inBackground(ctx, func(sending context.Context) error {
		var sent message
		if err := d.reply(sending, ref{m.Chat.ID, m.ID}, words, keysStopped(stop.At, in), &sent); err != nil {
			return err
		}
		d.work.Go(func() {
			select {
			case <-ctx.Done():
			case <-stop.Over:
				d.overwrite(ctx, ref{m.Chat.ID, sent.ID}, in.Text(conversation.Resumed))
			}
		})
		return nil
	})
}

// overwrite replaces a message by a text without buttons.
func (d *handler) overwrite(ctx context.Context, at ref, text string) {
	d.inBackground(ctx, func(ctx context.Context) error { return d.put(ctx, at, outgoing{Text: text, Keyboard: noKeys()}) })
}

func (c *Connector) sendText(ctx context.Context, chat int64, part int, text string) error {
	params := ourText(text, noKeys()).params()
	params["chat_id"] = chat
	return c.writeIfRoom(ctx, chat, part, "sendMessage", params, nil)
}

// menu is the list of commands that Telegram completes in chats of configured people.
var menu = []struct {
	command string
	does    i18n.Phrase
}{
	{"pending", "What waits for your answer"},
	{"grants", "What you have granted"},
	{"revoke", "Take a grant back: /revoke ID"},
	{"agents", "Your agents, and which one reads you"},
	{"use", "Write to another agent: /use NAME"},
	{"status", "What your agent does, and what waits"},
	{"new", "Begin a new session with your agent"},
	{"quit", "End your agent's session"},
	{"stop", "Stop your agent's work; /stop all cancels and refuses everything"},
	{"resume", "Go on after /stop all"},
	{"quiet", "Silent cards and one digest: /quiet AGENT 1h"},
	{"trust", "Let it work in its folder unasked: /trust AGENT 30m"},
	{"lock", "A phone was stolen: /lock NAME, or /lock for yourself"},
	{"unlock", "End that: /unlock NAME, by two people"},
	{"away", "Others are asked: /away until Monday to NAME; /away off"},
	{"whoami", "Who you are here"},
	{"help", "How to answer"},
}

func menuIn(in i18n.Language) (all []map[string]string) {
	for _, c := range menu {
		all = append(all, map[string]string{"command": c.command, "description": in.Text(c.does)})
	}
	return all
}

// offered is a menu in a language that a chat was offered, and whether Telegram took it.
type offered struct {
	in    i18n.Language
	taken bool
}

// menuEvery is how often people who were added or removed are looked for.
const menuEvery = 30 * time.Second

// menus gives the chats of configured people the menu, and removes it from others, until ctx ends. Temporary errors are
// retried at the next round; a chat that cannot be written to gets it once its person writes.
func (d *handler) menus(ctx context.Context) error {
	given := map[int64]offered{}
	for ctx.Err() == nil {
		d.align(ctx, given, d.in.People())
		select {
		case <-ctx.Done():
		case <-time.After(menuEvery):
		case chat := <-d.menuChats:
			if !given[chat].taken {
				d.offer(ctx, given, chat, d.language(identity(chat)))
			}
		}
	}
	return nil
}

// align gives the menu to new people and removes it from chats that belong to nobody any more.
func (d *handler) align(ctx context.Context, given map[int64]offered, people []connectors.Person) {
	enrolled := map[int64]bool{}
	for _, p := range people {
		chat := chatWith(p)
		enrolled[chat] = true
		if was, tried := given[chat]; chat != 0 && (!tried || was.in != p.Language) {
			d.offer(ctx, given, chat, p.Language)
		}
	}
	for chat := range given {
		if enrolled[chat] {
			continue
		}
		if err := d.api.call(ctx, "deleteMyCommands", map[string]any{"scope": inChat(chat)}, nil); !temporary(err) {
			delete(given, chat)
		}
	}
}

func (d *handler) offer(ctx context.Context, given map[int64]offered, chat int64, in i18n.Language) {
	err := d.api.call(ctx, "setMyCommands", map[string]any{"commands": menuIn(in), "scope": inChat(chat)}, nil)
	if err != nil {
		d.log.Debug("set command menu", "chat", chat, "err", err)
	}
	if !temporary(err) {
		given[chat] = offered{in, err == nil}
	}
}

func inChat(chat int64) any { return map[string]any{"type": "chat", "chat_id": chat} }
