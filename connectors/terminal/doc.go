// Package terminal asks the person at the daemon's own console. It shows one card at a time, reads one answer, and
// says how it ended; the next card waits its turn.
//
// A console is a terminal or a pipe on standard input; an empty device, a file or a closed descriptor is none. On a
// terminal the keys are read one by one, so that Esc interrupts at once; on a pipe a line at a time. What was typed
// before a prompt was there is thrown away: an answer is newer than its prompt.
//
// [Terminal.Run] is the only goroutine that reads, writes and changes the modes of the terminal. It does so only while
// the process is in the foreground; in the background it waits, and is not stopped. Send and Edit leave their news with
// it and return at once. The end of the input, a hang-up included, decides nothing: the console is closed, for good,
// and whoever would ask there is told so.
//
// A line that names requests by their codes, as in a chat, is taken for whatever was on this screen; a card that was not
// is shown first. s shows the card again, with the secrets in it that cards mask.
//
// While nothing is asked, a command, as in every chat, is done, and anything else is told that it means nothing, unless
// [Options.Leave] is empty. Where its person has agents of ours, what else is typed then is for them; it reads the keys for
// that as well. At a card the answers are what they are without agents. What would be none is a command where it begins
// with /, unless an option begins so, too, and for the agent where it begins with >. A command may also stand where a reason
// is asked for. What an agent says is put among the cards. A card does not come between the keys of a line that is being
// typed: it waits for its end, or for a few seconds, and the line is gone on with after it.
//
// console.go knows what a console is, line.go turns keys into lines, queue.go keeps what is to be shown, screen.go
// writes, prompt.go turns an answer into a decision, named.go one that names its request, chat.go hears what is none,
// talk.go says what agents say.
package terminal
