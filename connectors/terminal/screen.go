package terminal

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

const (
	// lookTime is how often the process checks whether it is still in the foreground, in milliseconds.
	lookTime = 1000
	// keyTime is how long the rest of a longer key may come after Esc, in milliseconds.
	keyTime = 100
	// settling is how long a card that took another's place has to be on the screen before answers count.
	settling = time.Second
)

// screen is the state of Run. Only Run's goroutine uses it.
type screen struct {
	t    *Terminal
	chat *chat // nil without an agent to talk to
	// commands runs commands: chat or a reader of its own; nil if commands are not answered.
	commands *chat

	queue []*item          // to be shown, in order
	now   *item            // whose card is current
	seen  map[string]*item // by reference

	up        bool   // the card of now is on the screen
	asking    bool   // the hint is on the screen, with the cursor after it
	hint      string // the last one
	editor    editor
	listens   bool      // nothing is asked, and input goes to an agent
	draft     editor    // unfinished message to an agent, from before a card
	lastInput time.Time // time of the last input
	gone      bool      // the last card went away without an answer from here
	placed    time.Time // when the next one took its place
	early     bool      // it was said that input counts only after settling
	restore   func()    // restores the terminal's modes; nil if they are unchanged
	away      bool      // in the background
	later     []string  // texts to show once in the foreground again
}

// look checks whether the process is in the foreground.
func (s *screen) look() {
	away := !s.t.console.foreground()
	if away && !s.away {
		s.t.o.Log.Info("terminal in the background: no prompts there")
	}
	s.away = away
	if s.away || (s.restore != nil && !s.t.console.hasKeys()) {
		s.up, s.asking, s.restore = false, false, nil // another process has, or had, the screen and its modes
		s.pauseChat()
	}
	if !s.away {
		for _, text := range s.later {
			s.put(text)
		}
		s.later = nil
	}
}

// over reports whether nothing more can be answered. While an answer is due or an agent is listened for, only reading finds
// the end, because input from just before it counts.
func (s *screen) over() bool { return s.t.isOver(s.asking || s.chat != nil) }

// turn updates the screen: the next card if there is room, the hint if an answer is due.
func (s *screen) turn(ctx context.Context) {
	if !s.away && len(s.queue) > 0 {
		s.drain(ctx)
	}
	if s.over() {
		s.close()
		return
	}
	if s.away {
		return
	}
	if s.now == nil && len(s.queue) > 0 && s.typingDelay() == 0 {
		s.pauseChat()
		s.now, s.queue = s.queue[0], s.queue[1:]
		if s.placed = (time.Time{}); s.gone {
			s.gone, s.early, s.placed = false, false, s.t.o.Now()
		}
	}
	switch {
	case s.now == nil && s.chat != nil:
		s.listen()
	case s.now == nil:
		s.release()
	case !s.up:
		s.show()
	}
	if s.now != nil && !s.asking {
		s.ask()
	}
}

func (s *screen) show() {
	if !s.keys() {
		return
	}
	s.up, s.now.shown, s.now.reason = true, true, ""
	if s.now.prompt.Request.Kind == permissions.KindClarification {
		s.write(s.t.language().Text("⚠ AGENT CLARIFICATION NEEDED") + "\n")
	}
	rows := append([]string{card.Card(s.now.prompt, s.options(s.now.prompt))}, card.Away(s.now.prompt)...)
	s.write(s.bold(strings.Join(rows, "\n")) + "\n")
}

// bold is a card with its title, which may be wrapped, in bold on a terminal.
func (s *screen) bold(shown string) string {
	at := title.FindStringIndex(shown)
	if s.t.console.kind() != aTerminal || at == nil {
		return shown
	}
	return "\x1b[1m" + shown[:at[1]] + "\x1b[0m" + shown[at[1]:]
}

var title = regexp.MustCompile(`^.*(\n┊ .*)*`)

// keys switches the console to single keys, with nothing typed yet. If that fails, the console is closed.
func (s *screen) keys() (given bool) {
	s.editor = editor{raw: s.t.console.kind() == aTerminal}
	if s.editor.raw && s.restore == nil {
		restore, err := s.t.console.keys()
		if err != nil {
			s.close()
			return false
		}
		s.restore = restore
	}
	return true
}

// again writes the card of now again, with the secrets that cards mask.
func (s *screen) again() {
	o := s.options(s.now.prompt)
	o.Reveal = true
	s.write(s.bold(card.Card(s.now.prompt, o)) + "\n")
}

// ask discards earlier input and writes the hint.
func (s *screen) ask() {
	s.editor = editor{raw: s.editor.raw}
	if !s.t.console.flush() {
		s.close()
		return
	}
	s.hint = reply.Hint(s.now.prompt.Request, s.now.prompt.Code, s.now.prompt.To.Language)
	switch takesWords := s.now.prompt.Request.TakesWords(); {
	case s.now.reason != "" && takesWords:
		s.hint = s.t.language().Text("answer > ")
	case s.now.reason != "":
		s.hint = s.t.language().Text("reason > ")
	}
	s.hint = s.wrapped(s.hint, room)
	s.asking = true
	s.write(s.hint)
	if s.t.o.Asking != nil {
		s.t.o.Asking(s.now.prompt)
	}
}

// leave removes now from the screen.
func (s *screen) leave() {
	if s.asking {
		s.write("\n")
	}
	s.now, s.up, s.asking = nil, false, false
}

// room is how many cells after a hint are kept for the input.
const room = 8

// wrapped wraps text so that a narrow terminal breaks no word, keeping some room at the end of each line.
func (s *screen) wrapped(text string, room int) string {
	if s.t.console.kind() != aTerminal {
		return text
	}
	return card.Wrap(text, max(s.t.console.width()-room, 1), 0)
}

// say writes a text of ours, with names marked, see [card.Part.Spans]. What is marked begins no row without a sign.
func (s *screen) say(text string) {
	rows := strings.Split(text, "\n")
	for i, row := range rows {
		if rows[i] = card.Spell(row); card.Plain(row) != row {
			rows[i] = card.Continued(row, s.t.console.width())
		}
	}
	s.put(card.Plain(strings.Join(rows, "\n")))
}

// put writes a text. A hint on the screen is written again below it, with the input so far.
func (s *screen) put(text string) {
	text = s.wrapped(text, 0)
	switch {
	case s.away:
		s.later = append(s.later, text)
	case s.asking:
		s.write("\n" + text + "\n" + s.hint + s.editor.shown())
	case s.listens && s.editor.shown() != "":
		s.write("\n" + text + "\n" + s.editor.shown())
	default:
		s.write(text + "\n")
	}
}

// write writes to the screen. Nobody may decide about what they cannot see, so an error closes the console.
func (s *screen) write(text string) {
	if _, err := io.WriteString(s.t.o.Out, text); err != nil && s.noteClosed() {
		s.t.o.Log.Warn("write to console", "err", err)
	}
}

// noteClosed records and reports that the console is closed, and returns whether that is news.
func (s *screen) noteClosed() bool {
	first := s.t.noteClosed()
	if first && s.t.o.Closed != nil {
		s.t.o.Closed()
	}
	return first
}

func (s *screen) release() {
	if s.restore != nil {
		s.restore()
		s.restore = nil
	}
}

// close closes the console: its requests are decided elsewhere or not at all.
func (s *screen) close() {
	first := s.noteClosed()
	s.leave()
	s.release()
	s.queue, s.listens = nil, false
	if first {
		s.t.o.Log.Info("console closed")
	}
	if first && s.t.console.kind() != noConsole {
		s.write(s.t.language().Text("This console is closed: nothing is decided here any more.") + "\n")
	}
}

// wait reads input until an entry is complete, Run is woken or a timeout expires.
func (s *screen) wait(ctx context.Context, bell int) {
	c := s.t.console
	fds := []unix.PollFd{{Fd: int32(bell), Events: unix.POLLIN}, {Fd: int32(c.fd)}}
	millis := -1
	switch {
	case s.t.isOver(true): // an end that was not noticed yet ends the wait at once
		fds = fds[:1]
	case s.away:
		fds, millis = fds[:1], lookTime
	case s.now == nil && s.chat == nil && (s.t.o.Quit != nil || s.commands != nil):
		fds[1].Events = unix.POLLIN
	case s.now == nil && s.chat == nil:
	case s.editor.half():
		fds[1].Events, millis = unix.POLLIN, keyTime
	case s.now == nil && len(s.queue) > 0 && s.typingDelay() > 0:
		fds[1].Events, millis = unix.POLLIN, int(s.typingDelay().Milliseconds())+1
	case s.editor.raw:
		fds[1].Events, millis = unix.POLLIN, lookTime
	default:
		fds[1].Events = unix.POLLIN
	}
	n, err := poll(fds, millis)
	switch {
	case err != nil:
		s.t.o.Log.Error("poll console", "err", err)
		s.close()
	case n == 0 && (s.now != nil || s.listens) && s.editor.half():
		s.typed(ctx, s.editor.pause)
	case len(fds) > 1 && fds[1].Revents != 0 && (s.now != nil || s.listens):
		s.read(ctx)
	case len(fds) > 1 && fds[1].Revents&unix.POLLIN != 0:
		s.idle(ctx)
	}
}

// idle reads input while nothing is asked and no agent listens.
func (s *screen) idle(ctx context.Context) {
	if !s.t.console.foreground() {
		return
	}
	var buf [4096]byte
	n, err := unix.Read(s.t.console.fd, buf[:])
	switch {
	case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
	case n == 0 && err == nil && s.commands != nil && s.t.o.Quit == nil && !s.t.console.hasEnded():
		s.say(s.t.o.Leave) // Ctrl-D where there is nothing to leave: a closed console would stay closed
	case err != nil || n == 0:
		s.close()
	default:
		for line := range strings.Lines(string(buf[:n])) {
			s.handleIdleLine(ctx, strings.TrimSpace(line))
		}
	}
}

// handleIdleLine acts on such a line: q leaves or says how, and a command is run. If lines are answered at all, the reply to
// anything else says that it means nothing.
func (s *screen) handleIdleLine(ctx context.Context, line string) {
	leaves := strings.EqualFold(line, "q")
	switch {
	case leaves && s.t.o.Quit != nil:
		s.t.o.Quit()
	case s.commands == nil, line == "":
	case leaves:
		s.say(s.t.o.Leave)
	case line == "?", strings.EqualFold(line, "help"):
		s.converse(ctx, "/help")
	case strings.HasPrefix(line, "/"):
		s.converse(ctx, line)
	case s.handleNamed(ctx, line):
	default:
		s.say("Nothing is asked just now; /help says more.")
	}
}

// read reads the available input.
func (s *screen) read(ctx context.Context) {
	if !s.t.console.foreground() {
		return // reading now would stop the process
	}
	var buf [4096]byte
	n, err := unix.Read(s.t.console.fd, buf[:])
	switch {
	case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
	case err != nil || n == 0:
		if s.t.console.foreground() {
			s.close()
		}
	default:
		s.typed(ctx, func() ([]entry, string) { return s.editor.feed(buf[:n]) })
	}
}

// typed echoes input and acts on its first complete entry: the rest is older than the next hint. If nothing is asked, it
// acts on all entries.
func (s *screen) typed(ctx context.Context, editing func() ([]entry, string)) {
	entries, echo := editing()
	s.lastInput = s.t.o.Now() // before the echo is seen
	if s.now != nil && s.lastInput.Sub(s.placed) < settling && !s.orders(entries) {
		if s.editor = (editor{raw: s.editor.raw}); !s.early {
			s.say(s.t.language().Text(tooEarly))
		}
		s.early = true
		return
	}
	if echo != "" {
		s.write(echo)
	}
	if s.now == nil {
		for _, e := range entries {
			if s.listens {
				s.handleLine(ctx, e)
			}
		}
		return
	}
	if len(entries) > 0 {
		s.enter(ctx, entries[0])
	}
}

// orders reports whether what is typed decides nothing whatever card is shown: an order, or the end.
func (s *screen) orders(entries []entry) bool {
	if len(entries) > 0 {
		return entries[0].end || strings.HasPrefix(entries[0].line, "/")
	}
	return bytes.HasPrefix(s.editor.line, []byte("/"))
}

// tooEarly answers input that may be for the card before.
const tooEarly i18n.Phrase = "Nothing was decided: the card before this one went away just now. Read this one, and answer again."

// options say how a prompt is rendered here.
func (s *screen) options(p connectors.Prompt) card.Options {
	o, r := s.t.o, p.Request
	options := card.Options{
		Self: cmp.Or(o.Self, p.To.Name), Now: o.Now(), Width: s.t.console.width(),
		Location: cmp.Or(p.To.Location, time.Local), Language: p.To.Language,
	}
	if o.Heading != nil {
		options.Heading = o.Heading(r)
	}
	return options
}

// handleNamed acts on a line that names requests by their codes, like a chat message, and reports whether it was one. Only what
// was on this screen is decided; anything else is shown first.
func (s *screen) handleNamed(ctx context.Context, line string) bool {
	now := s.t.o.Now()
	items, open := s.waiting(now)
	said := reply.Read(reply.Message{Text: line, Console: true, At: now, Language: s.t.language()}, open)
	switch {
	case len(said.Decisions) > 0:
		for _, d := range said.Decisions {
			s.decide(ctx, items[d.Request], d)
		}
	case len(said.Unknown) > 0:
		s.say(s.late(ctx, said))
	case said.Reply == "", said.Bare, said.PassOn:
		return false
	case len(said.Unseen) > 0:
		s.say(said.Reply)
		at := slices.IndexFunc(s.queue, func(it *item) bool { return it.prompt.Code == said.Unseen[0] })
		s.bringToFront(s.queue[at]) // what was not shown yet is in the queue
	case s.now != nil && s.now.prompt.Request.Kind == permissions.KindClarification:
		s.wrong(ctx, said.Reply)
	default:
		s.say(said.Reply)
	}
	return true
}

// waiting is what can be answered here: the current card, those in the queue, and those that their person has approved and
// may still deny. The answer is newer than every card shown, because earlier input was discarded.
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

// late says why codes name nothing here: for a settled request, who decided it.
func (s *screen) late(ctx context.Context, said reply.Result) string {
	for _, code := range said.Unknown {
		_, err := s.submit(ctx, connectors.Decision{Code: code}) // without an answer it decides nothing
		if refusal := permissions.AsRefusal(err); refusal != nil && refusal.Code == permissions.CodeSettled {
			return code + "  " + card.Visible(refusal.TextIn(s.t.language()))
		}
	}
	return said.Reply
}
