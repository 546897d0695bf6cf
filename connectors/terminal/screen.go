package terminal

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/permissions"
)

const (
	// lookTime is how often a terminal is asked whether the process is still in its foreground, in milliseconds.
	lookTime = 1000
	// keyTime is how long after Esc the rest of a longer key may come, in milliseconds.
	keyTime = 100
)

// screen is what Run does and knows. Only Run's goroutine uses it.
type screen struct {
	t       *Terminal
	handler connectors.Handler
	chat    *chat // nil where there is no agent to talk to
	// commands is who does commands: that of chat, or another one; nil where a command is not answered.
	commands *chat

	queue []*item          // to be shown, in this order
	now   *item            // whose card is on the screen
	seen  map[string]*item // by reference

	up      bool   // the card of now is on the screen
	asking  bool   // the hint is, and the cursor stands behind it
	hint    string // the last
	editor  editor
	listens bool      // nothing is asked, and what is typed is for an agent
	draft   editor    // what was begun to be written to an agent when a card came
	struck  time.Time // when something was typed last
	restore func()    // puts the terminal's modes back; nil while they are its own
	away    bool      // in the background
	later   []string  // to be said, each whole, when in the foreground again
}

// look finds out whose the screen is just now.
func (s *screen) look() {
	away := !s.t.console.foreground()
	if away && !s.away {
		s.t.o.Log.Info("the terminal is in the background: nobody is asked there")
	}
	s.away = away
	if s.away || (s.restore != nil && !s.t.console.hasKeys()) {
		s.up, s.asking, s.restore = false, false, nil // it is, or was meanwhile, somebody else's, and so are its modes
		s.pauseChat()
	}
	if !s.away {
		for _, text := range s.later {
			s.put(text)
		}
		s.later = nil
	}
}

// over tells whether nothing more can be answered. While an answer is due, or an agent is listened for, only reading finds
// the end: what was written just before it counts.
func (s *screen) over() bool { return s.t.isOver(s.asking || s.chat != nil) }

// turn brings the screen up to date: the next card if it is free, the hint if an answer is due.
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
	if s.now == nil && len(s.queue) > 0 && s.held() == 0 {
		s.pauseChat()
		s.now, s.queue = s.queue[0], s.queue[1:]
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

// show puts the card of now on the screen.
func (s *screen) show() {
	if !s.keys() {
		return
	}
	s.up, s.now.shown, s.now.reason = true, true, ""
	s.write(card.Card(s.now.prompt, s.options(s.now.prompt)) + "\n")
}

// keys has the console give keys, with nothing typed yet. It is closed where it does not.
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

// again writes the card of now once more, with the secrets in it that cards mask.
func (s *screen) again() {
	o := s.options(s.now.prompt)
	o.Reveal = true
	s.write(card.Card(s.now.prompt, o) + "\n")
}

// ask throws away what was typed before and puts the hint on the screen.
func (s *screen) ask() {
	s.editor = editor{raw: s.editor.raw}
	if !s.t.console.flush() {
		s.close()
		return
	}
	s.hint = reply.Hint(s.now.prompt.Request, s.now.prompt.Code)
	switch takesWords := s.now.prompt.Request.TakesWords(); {
	case s.now.reason != "" && takesWords:
		s.hint = "answer > "
	case s.now.reason != "":
		s.hint = "reason > "
	}
	s.hint = s.wrapped(s.hint, room)
	s.asking = true
	s.write(s.hint)
	if s.t.o.Asking != nil {
		s.t.o.Asking(s.now.prompt)
	}
}

// leave takes now off the screen.
func (s *screen) leave() {
	if s.asking {
		s.write("\n")
	}
	s.now, s.up, s.asking = nil, false, false
}

// room is how many cells are left behind a hint for what is typed.
const room = 8

// wrapped is a text with no word broken by a terminal that is narrow, which keeps some room free at the end of each line.
func (s *screen) wrapped(text string, room int) string {
	if s.t.console.kind() != aTerminal {
		return text
	}
	return card.Wrap(text, max(s.t.console.width()-room, 1), 0)
}

// say writes one line or more of ours, in which others' names and words may be.
func (s *screen) say(text string) { s.put(card.Spell(text)) }

// put writes one line or more. A hint that is on the screen is written again below it, with what was typed so far.
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

// write writes. What cannot be seen must not be decided about, so a screen that fails closes the console.
func (s *screen) write(text string) {
	if _, err := io.WriteString(s.t.o.Out, text); err != nil && s.shut() {
		s.t.o.Log.Warn("the console cannot be written", "err", err)
	}
}

// shut notes and passes on that the console is closed, and tells whether that is news.
func (s *screen) shut() bool {
	first := s.t.shut()
	if first && s.t.o.Closed != nil {
		s.t.o.Closed()
	}
	return first
}

// release gives the terminal its own modes back.
func (s *screen) release() {
	if s.restore != nil {
		s.restore()
		s.restore = nil
	}
}

// close is the end of the console: what is on it is decided elsewhere, or not at all.
func (s *screen) close() {
	first := s.shut()
	s.leave()
	s.release()
	s.queue, s.listens = nil, false
	if first {
		s.t.o.Log.Info("the console is closed")
	}
	if first && s.t.console.kind() != noConsole {
		s.write("This console is closed: nothing is decided here any more.\n")
	}
}

// wait reads what the person types until something is whole, the bell rings or it is time to look again.
func (s *screen) wait(ctx context.Context, bell int) {
	c := s.t.console
	fds := []unix.PollFd{{Fd: int32(bell), Events: unix.POLLIN}, {Fd: int32(c.fd)}}
	millis := -1
	switch {
	case s.t.isOver(true): // an end that is not known yet ends the waiting at once
		fds = fds[:1]
	case s.away:
		fds, millis = fds[:1], lookTime
	case s.now == nil && s.chat == nil && (s.t.o.Quit != nil || s.commands != nil):
		fds[1].Events = unix.POLLIN
	case s.now == nil && s.chat == nil:
	case s.editor.half():
		fds[1].Events, millis = unix.POLLIN, keyTime
	case s.now == nil && len(s.queue) > 0 && s.held() > 0:
		fds[1].Events, millis = unix.POLLIN, int(s.held().Milliseconds())+1
	case s.editor.raw:
		fds[1].Events, millis = unix.POLLIN, lookTime
	default:
		fds[1].Events = unix.POLLIN
	}
	n, err := poll(fds, millis)
	switch {
	case err != nil:
		s.t.o.Log.Error("the console cannot be watched", "err", err)
		s.close()
	case n == 0 && (s.now != nil || s.listens) && s.editor.half():
		s.typed(ctx, s.editor.pause)
	case len(fds) > 1 && fds[1].Revents != 0 && (s.now != nil || s.listens):
		s.read(ctx)
	case len(fds) > 1 && fds[1].Revents&unix.POLLIN != 0:
		s.idle(ctx)
	}
}

// idle reads what is typed while nothing is asked and there is no agent to hear it.
func (s *screen) idle(ctx context.Context) {
	if !s.t.console.foreground() {
		return
	}
	var buf [4096]byte
	n, err := unix.Read(s.t.console.fd, buf[:])
	switch {
	case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
	case n == 0 && err == nil && s.commands != nil && s.t.o.Quit == nil && !s.t.console.over():
		s.say(s.t.o.Leave) // Ctrl-D, where nothing is to be left: a console that is closed is so for good
	case err != nil || n == 0:
		s.close()
	default:
		for line := range strings.Lines(string(buf[:n])) {
			s.idled(ctx, strings.TrimSpace(line))
		}
	}
}

// idled acts on such a line: q leaves, or is told how, and a command is done. Anything else is told that it means nothing,
// where anything is answered.
func (s *screen) idled(ctx context.Context, line string) {
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
	case s.named(ctx, line):
	default:
		s.say("Nothing is asked just now; /help says more.")
	}
}

// read takes what is there.
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

// typed echoes and acts on the first thing that was typed whole: what came with it is older than the next hint. Where
// nothing is asked, it acts on all of it.
func (s *screen) typed(ctx context.Context, editing func() ([]entry, string)) {
	entries, echo := editing()
	s.struck = s.t.o.Now() // before it is seen
	if echo != "" {
		s.write(echo)
	}
	if s.now == nil {
		for _, e := range entries {
			if s.listens {
				s.wrote(ctx, e)
			}
		}
		return
	}
	if len(entries) > 0 {
		s.enter(ctx, entries[0])
	}
}

// options are how a prompt is to be written here.
func (s *screen) options(p connectors.Prompt) card.Options {
	o, r := s.t.o, p.Request
	options := card.Options{
		Self: cmp.Or(o.Self, p.To.Name), Now: o.Now(), Width: s.t.console.width(),
		Location: cmp.Or(o.Location, p.To.Location, time.Local),
	}
	if o.Who != nil {
		options.Who = o.Who(r)
	}
	if o.Heading != nil {
		options.Heading = o.Heading(r)
	}
	if o.Notes != nil {
		options.Notes = o.Notes(r)
	}
	return options
}

// named acts on a line that names requests by their codes, as messages of a chat do, and tells whether it was one. Only
// what was on this screen is decided about; anything else is shown first.
func (s *screen) named(ctx context.Context, line string) bool {
	now := s.t.o.Now()
	items, open := s.waiting(now)
	said := reply.Read(reply.Message{Text: line, Console: true, At: now}, open)
	switch {
	case len(said.Decisions) > 0:
		for _, d := range said.Decisions {
			s.decide(ctx, items[d.Request], d)
		}
	case len(said.Unknown) > 0:
		s.say(s.late(ctx, said))
	case said.Say == "", said.Bare, said.PassOn:
		return false
	case len(said.Unseen) > 0:
		s.say(said.Say)
		s.bring(s.coded(said.Unseen[0]))
	case s.now != nil && s.now.prompt.Request.Kind == permissions.KindClarification:
		s.wrong(ctx, said.Say)
	default:
		s.say(said.Say)
	}
	return true
}

// waiting is what can be answered here: the card on the screen, those after it, and those whose person has answered and
// may yet say no. The answer is newer than every card that was shown: whatever was typed before the hint has been thrown
// away.
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

// coded is the item with a code that was not shown yet, and so is in the queue.
func (s *screen) coded(code string) *item {
	return s.queue[slices.IndexFunc(s.queue, func(it *item) bool { return it.prompt.Code == code })]
}

// late says why codes name nothing here: that of a settled request is told who was faster.
func (s *screen) late(ctx context.Context, said reply.Said) string {
	for _, code := range said.Unknown {
		_, err := s.hand(ctx, connectors.Decision{Code: code}) // without an answer it decides nothing
		if refusal := permissions.AsRefusal(err); refusal != nil && refusal.Code == permissions.CodeSettled {
			return code + "  " + card.Visible(refusal.Text)
		}
	}
	return said.Say
}
