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
)

// chat is what is typed here that answers nothing.
type chat struct {
	desk   conversation.Desk
	reader *conversation.Reader
}

const (
	// marks begins a line that is for the agent while a card is on the screen.
	marks = ">"
	// aboutChat is said where a line at a card was no answer.
	aboutChat = "/ begins a command, as in /stop, and > what your agent is to hear meanwhile."
	// fingers is how long after the last key a card waits, so that it does not come between the keys of a line.
	fingers = 3 * time.Second

	helpAlone = `What waits for your answer comes here, one card after the other; the row below a card says what to type.

/pending · what waits for your answer
/grants · what you have granted; /revoke ID takes it back
/stop all · cancels everything and refuses everything new
/resume · goes on after that
/whoami · who you are here
/help · this`

	help = `What waits for your answer comes here, one card after the other; the row below a card says what to type.
Whatever you type while there is none goes to your agent. While there is one, begin with >, as in: > how far are you?

/pending · what waits for your answer
/grants · what you have granted; /revoke ID takes it back
/agents · your agents; /use NAME has another one read you
/status · what your agent does
/stop · stops what it works on; /quit ends its session, /new begins another one
/stop all · cancels everything and refuses everything new
/resume · goes on after that
/whoami · who you are here
/help · this`
)

// talk finds out what becomes of what is typed here that answers nothing: it is for agents where the person has any, and a
// command where [Options.Leave] says that it is answered.
func (s *screen) talk(ctx context.Context) {
	t := s.t
	desk, ok := s.handler.(conversation.Desk)
	if !ok {
		return
	}
	_, err := desk.Agents(ctx, t.identity())
	alone := permissions.CodeOf(err) == permissions.CodeNoAgent
	text := help
	if alone {
		text = helpAlone
	}
	if t.o.Leave != "" {
		text += "\n\n" + t.o.Leave
	}
	c := &chat{desk, conversation.New(conversation.Options{
		Desk: desk, Now: t.o.Now, Help: text,
		Account: func(connectors.Identity) string { return cmp.Or(t.o.Account, "This is the daemon's own console.") },
	})}
	if !alone {
		s.chat = c
	}
	if !alone || t.o.Leave != "" {
		s.commands = c
	}
}

// identity is that of whoever sits here.
func (t *Terminal) identity() connectors.Identity {
	return connectors.Identity{Via: t.o.Via, Console: true, UID: permissions.NoUID}
}

// greet says that an agent can be written to here.
func (s *screen) greet(ctx context.Context) {
	if s.chat == nil || s.over() {
		return
	}
	all, _ := s.chat.desk.Agents(ctx, s.t.identity()) // without them, it is said without a name
	to := "your agent"
	if i := slices.IndexFunc(all, func(a permissions.Presence) bool { return a.Foreground }); i >= 0 {
		to = card.Visible(all[i].Agent)
	}
	s.say("What you type here goes to " + to + "; /help says more.")
}

// listen reads what is for an agent, and goes on with what was begun before the last card.
func (s *screen) listen() {
	if s.listens || !s.keys() {
		return
	}
	s.listens = true
	s.editor, s.draft = s.draft, editor{}
	s.editor.raw = s.t.console.kind() == aTerminal
	s.write(s.editor.shown())
}

// pauseChat keeps what was begun to be written, until it is listened for again.
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

// held is for how long the next card still waits, since somebody is typing.
func (s *screen) held() time.Duration {
	if !s.listens || len(s.editor.line) == 0 {
		return 0
	}
	return max(fingers-s.t.o.Now().Sub(s.struck), 0)
}

// drain takes in what was typed before the next card, as what it was meant to be.
func (s *screen) drain(ctx context.Context) {
	for range 256 { // as for a pipe that is never empty
		fds := []unix.PollFd{{Fd: int32(s.t.console.fd), Events: unix.POLLIN}}
		n, err := poll(fds, 0)
		if !s.listens || err != nil || n == 0 || fds[0].Revents&unix.POLLIN == 0 {
			return
		}
		s.read(ctx)
	}
}

// wrote acts on a line that was typed while nothing was asked.
func (s *screen) wrote(ctx context.Context, e entry) {
	if e.line != reply.Esc && !e.end {
		s.write(s.editor.newline())
	}
	switch {
	case e.end:
		s.close()
	case blank(e):
	case e.long:
		s.say("That line is too long, and nobody has read it.")
	case s.t.o.Quit != nil && strings.EqualFold(strings.TrimSpace(e.line), "q"):
		s.t.o.Quit()
	case s.t.o.Leave != "" && strings.EqualFold(strings.TrimSpace(e.line), "q"):
		s.say(s.t.o.Leave)
	case !s.slashes(e) && s.named(ctx, e.line):
	default:
		s.converse(ctx, e.line)
	}
}

// slashes tells whether a line begins as a command does.
func (s *screen) slashes(e entry) bool { return strings.HasPrefix(strings.TrimSpace(e.line), "/") }

// commanded does the command that a line is, also where a reason or words of one's own are asked for.
func (s *screen) commanded(ctx context.Context, e entry) bool {
	if s.commands == nil || e.long || !conversation.IsCommand(e.line) {
		return false
	}
	s.converse(ctx, e.line)
	return true
}

// aside does what a line at a card says that is no answer to it: a command, or what the agent is to hear. A slash may
// also be a mistaken option.
func (s *screen) aside(ctx context.Context, e entry) bool {
	text := strings.TrimSpace(e.line)
	switch {
	case s.commanded(ctx, e):
		return true
	case s.chat == nil:
		return false
	case s.slashes(e):
		if slices.ContainsFunc(s.now.prompt.Request.Choices, func(c string) bool { return strings.HasPrefix(c, "/") }) {
			return false
		}
		s.converse(ctx, text)
		return true
	case !strings.HasPrefix(text, marks) || text == marks:
		return false
	}
	text = strings.TrimSpace(strings.TrimPrefix(text, marks))
	now := s.t.o.Now()
	_, open := s.waiting(now)
	said := reply.Read(reply.Message{Text: text, Console: true, At: now}, open)
	if len(said.Decisions)+len(said.Unknown)+len(said.Unseen) > 0 {
		s.say("Nothing was decided, and your agent does not get it: codes are not for agents. To answer, leave out the >.")
		return true
	}
	s.converse(ctx, text)
	return true
}

// converse hands a line to whoever reads it in every channel, and says what is to be said about it.
func (s *screen) converse(ctx context.Context, line string) {
	id := s.t.identity()
	who, err := s.commands.desk.Person(id)
	var did conversation.Did
	if err == nil {
		did, err = s.commands.reader.Read(ctx, conversation.Message{
			Message: connectors.Message{From: id, Text: line, Key: s.t.o.Via + ":" + rand.Text()}, Who: who, At: s.t.o.Now(),
		})
	}
	switch refusal := permissions.AsRefusal(err); {
	case err == nil:
	case refusal != nil:
		did.Say = append(did.Say, card.Visible(refusal.Text))
	case ctx.Err() != nil:
		return
	default:
		s.t.o.Log.Error("what was typed was not stored", "err", err)
		did.Say = append(did.Say, "Nothing was stored: "+card.Visible(err.Error())+". Write it again.")
	}
	for _, d := range did.Decided {
		s.say(d.Words)
	}
	for _, words := range did.Say {
		s.say(words)
	}
}

// besides adds to what is said about a line that was no answer what else could be typed.
func (s *screen) besides(say string) string {
	if s.chat == nil {
		return say
	}
	return say + "\n" + aboutChat
}

var _ connectors.Talker = (*Terminal)(nil)

// mostSaid is how many characters a message of an agent's has; longer ones are several, so that a card can come between.
const mostSaid = 4000

// Talk is [connectors.Talker]: the message is put on the screen, among the cards.
func (t *Terminal) Talk(_ context.Context, s connectors.Saying) (ref string, more bool, err error) {
	if err := t.Reach(s.To); err != nil {
		return "", false, err
	}
	parts := talk.Parts(s, talk.Limits{Text: mostSaid, Unit: card.Characters})
	if s.Part >= len(parts) {
		return "", false, nil
	}
	err = t.tell(news{says: true, text: parts[s.Part].Plain(), prompt: connectors.Prompt{To: s.To}})
	return "said-" + rand.Text(), s.Part+1 < len(parts), err
}
