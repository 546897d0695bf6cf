package terminal

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/conversation"
	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/connectors/talk"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// chat handles what is typed here that is not an answer.
type chat struct {
	in     connectors.Inbound
	reader *conversation.Reader
}

const (
	// chatPrefix begins a line for the agent while a card is on the screen.
	chatPrefix = ">"
	// aboutChat is the reply to a line at a card that was not an answer.
	aboutChat = "/ begins a command, as in /stop, and > what your agent is to hear meanwhile."
	// typingPause is how long after the last key a card waits, so that it does not interrupt a line.
	typingPause = 3 * time.Second

	help = `What waits for your answer comes here, one card after the other; the row below a card says what to type.
Whatever you type while there is none goes to your agent. While there is one, begin with >, as in: > how far are you?

/pending · what waits for your answer
/grants · what you have granted; /revoke ID takes it back
/agents · your agents; /use NAME has another one read you
/status · what your agent does
/stop · stops what it works on; /quit ends its session, /new begins another one
/stop all · cancels everything and refuses everything new
/resume · goes on after that
/quiet AGENT 1h · makes its cards silent, and tells then what it asked; /quiet AGENT off ends that
/trust AGENT 30m · lets it do unasked what stays in its folder, after a second step; a denial ends that
/stop CODE · denies that and refuses what its agent asks, until /resume AGENT
/away until Monday to NAME · others are asked instead, where a route names any; /away off ends that
/whoami · who you are here
/help · this`
)

// talk sets up what happens to input that is not an answer: it goes to the person's agents, if there are any, and commands
// work if [Options.Leave] is set.
func (s *screen) talk(ctx context.Context) {
	t := s.t
	_, err := t.in.Agents(ctx, t.identity())
	alone := permissions.CodeOf(err) == permissions.CodeNoAgent
	text := t.language().Text(help)
	if alone { // without what is about agents
		rows := strings.Split(text, "\n")
		rows = slices.DeleteFunc(slices.Delete(rows, 1, 2), func(row string) bool {
			return strings.HasPrefix(row, "/agents") || strings.HasPrefix(row, "/status") || strings.HasPrefix(row, "/stop ·")
		})
		text = strings.Join(rows, "\n")
	}
	if t.o.Leave != "" {
		text += "\n\n" + t.o.Leave
	}
	c := &chat{t.in, conversation.New(conversation.Options{
		Inbound: t.in, Now: t.o.Now, Help: i18n.Phrase(text),
		Account: func(_ connectors.Identity, in i18n.Language) string {
			return cmp.Or(t.o.Account, in.Text("This is the daemon's own console."))
		},
	})}
	if !alone {
		s.chat = c
	}
	if !alone || t.o.Leave != "" {
		s.commands = c
	}
}

// identity is that of the person at the console.
func (t *Terminal) identity() connectors.Identity {
	return connectors.Identity{Via: Name, Console: true, UID: permissions.NoUID}
}

// language is that of the person at the console.
func (t *Terminal) language() i18n.Language {
	who, _ := t.in.Person(t.identity()) // whoever is not known reads English
	return who.Language
}

// greet says that an agent can be written to here.
func (s *screen) greet(ctx context.Context) {
	if s.chat == nil || s.over() {
		return
	}
	all, _ := s.chat.in.Agents(ctx, s.t.identity()) // on an error, without the agent's name
	to := s.t.language().Text("your agent")
	if i := slices.IndexFunc(all, func(a permissions.Presence) bool { return a.Foreground }); i >= 0 {
		to = card.Visible(all[i].Agent)
	}
	s.say(s.t.language().Sprintf("What you type here goes to %s; /help says more.", to))
}

// listen starts to read input for an agent and restores the draft from before the last card.
func (s *screen) listen() {
	if s.listens || !s.keys() {
		return
	}
	s.listens = true
	s.editor, s.draft = s.draft, editor{}
	s.editor.raw = s.t.console.kind() == aTerminal
	s.write(s.editor.shown())
}

// pauseChat saves the draft until listen.
func (s *screen) pauseChat() {
	if !s.listens {
		return
	}
	if s.editor.shown() != "" {
		s.write("\n")
	}
	s.draft, s.listens = editor{line: s.editor.line, long: s.editor.long}, false
	s.editor = editor{}
}

// typingDelay is how long the next card still waits because somebody is typing.
func (s *screen) typingDelay() time.Duration {
	if !s.listens || len(s.editor.line) == 0 {
		return 0
	}
	return max(typingPause-s.t.o.Now().Sub(s.lastInput), 0)
}

// drain reads what was typed before the next card and treats it as input for the agent.
func (s *screen) drain(ctx context.Context) {
	for range 256 { // the pipe may never be empty
		fds := []unix.PollFd{{Fd: int32(s.t.console.fd), Events: unix.POLLIN}}
		n, err := poll(fds, 0)
		if !s.listens || err != nil || n == 0 || fds[0].Revents&unix.POLLIN == 0 {
			return
		}
		s.read(ctx)
	}
}

// handleLine acts on a line that was typed while nothing was asked.
func (s *screen) handleLine(ctx context.Context, e entry) {
	if e.line != reply.Esc && !e.end {
		s.write(s.editor.newline())
	}
	switch {
	case e.end:
		s.close()
	case blank(e):
	case e.long:
		s.say(s.t.language().Text("That line is too long, and nobody has read it."))
	case s.t.o.Quit != nil && strings.EqualFold(strings.TrimSpace(e.line), "q"):
		s.t.o.Quit()
	case s.t.o.Leave != "" && strings.EqualFold(strings.TrimSpace(e.line), "q"):
		s.say(s.t.o.Leave)
	case !s.isCommand(e) && s.handleNamed(ctx, e.line):
	default:
		s.converse(ctx, e.line)
	}
}

// isCommand reports whether a line begins like a command.
func (s *screen) isCommand(e entry) bool { return strings.HasPrefix(strings.TrimSpace(e.line), "/") }

// runCommand runs the command in a line, also while a reason or the person's own words are asked for.
func (s *screen) runCommand(ctx context.Context, e entry) bool {
	if s.commands == nil || e.long || !conversation.IsCommand(e.line) {
		return false
	}
	s.converse(ctx, e.line)
	return true
}

// handleOther acts on a line at a card that is not an answer: a command, or a message to the agent. A slash may also be a
// mistyped option.
func (s *screen) handleOther(ctx context.Context, e entry) bool {
	text := strings.TrimSpace(e.line)
	switch {
	case s.runCommand(ctx, e):
		return true
	case s.chat == nil:
		return false
	case s.isCommand(e):
		if slices.ContainsFunc(s.now.prompt.Request.Choices, func(c string) bool { return strings.HasPrefix(c, "/") }) {
			return false
		}
		s.converse(ctx, text)
		return true
	case !strings.HasPrefix(text, chatPrefix) || text == chatPrefix:
		return false
	}
	text = strings.TrimSpace(strings.TrimPrefix(text, chatPrefix))
	now := s.t.o.Now()
	_, open := s.waiting(now)
	said := reply.Read(reply.Message{Text: text, Console: true, At: now, Language: s.t.language()}, open)
	if len(said.Decisions)+len(said.Unknown)+len(said.Unseen) > 0 {
		s.say(s.t.language().Text("Nothing was decided, and your agent does not get it: codes are not for agents. To answer, leave out the >."))
		return true
	}
	s.converse(ctx, text)
	return true
}

// converse hands a line to the conversation reader and shows its replies.
func (s *screen) converse(ctx context.Context, line string) {
	id := s.t.identity()
	who, err := s.commands.in.Person(id)
	var did conversation.Did
	if err == nil {
		did, err = s.commands.reader.Read(ctx, conversation.Message{
			Message: connectors.Message{From: id, Text: line, Key: Name + ":" + rand.Text()}, Who: who, At: s.t.o.Now(),
		})
	}
	switch refusal := permissions.AsRefusal(err); {
	case err == nil:
	case refusal != nil:
		did.Say = append(did.Say, card.Visible(refusal.TextIn(who.Language)))
	case ctx.Err() != nil:
		return
	default:
		s.t.o.Log.Error("store typed line", "err", err)
		did.Say = append(did.Say, who.Language.Sprintf("Nothing was stored: %s. Write it again.", card.Visible(err.Error())))
	}
	for _, d := range did.Decided {
		s.say(d.Words)
	}
	for _, words := range did.Say {
		s.say(words)
	}
}

// addHints adds to the reply to a line that was not an answer what else could be typed.
func (s *screen) addHints(say string) string {
	if s.chat == nil {
		return say
	}
	return say + "\n" + s.t.language().Text(aboutChat)
}

var _ connectors.MessageSender = (*Terminal)(nil)

// maxSaid limits one agent message in characters; longer ones are split, so that a card can come between.
const maxSaid = 4000

// SendMessage is [connectors.MessageSender]: the message appears on the screen, among the cards.
func (t *Terminal) SendMessage(_ context.Context, s connectors.AgentMessage) (ref string, more bool, err error) {
	if err := t.Reach(s.To); err != nil {
		return "", false, err
	}
	parts := talk.Parts(s, talk.Limits{Text: maxSaid, Unit: card.Characters})
	if s.Part >= len(parts) {
		return "", false, nil
	}
	err = t.queueUpdate(update{says: true, text: parts[s.Part].Plain(), prompt: connectors.Prompt{To: s.To}})
	return "said-" + rand.Text(), s.Part+1 < len(parts), err
}
