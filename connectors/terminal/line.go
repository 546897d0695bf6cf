package terminal

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"github.com/daycared/daycared/connectors/reply"
)

// longest limits a line in bytes. A longer one is dropped completely, because its beginning could mean something else.
const longest = 4096

// Keys that the editor interprets.
const (
	keyEOF       = 0x04 // Ctrl-D
	keyBackspace = 0x08
	keyKill      = 0x15 // Ctrl-U
	keyEscape    = 0x1b
	keyDelete    = 0x7f
)

// entry is a complete input: a line, Esc alone, or the end of the input.
type entry struct {
	line string
	long bool // too long: line is empty
	end  bool
}

// editor turns bytes into entries. With raw set the bytes are keys, which are echoed and edited; otherwise they come from a
// pipe, and only newlines are interpreted. It performs no I/O. The zero editor reads a pipe.
type editor struct {
	raw     bool
	line    []byte
	long    bool // the line is too long
	escape  bool // Esc came, perhaps as the start of a longer key
	control bool // inside such a key
}

// feed takes input and returns the completed entries and the echo.
func (e *editor) feed(read []byte) (entries []entry, echo string) {
	var shown strings.Builder
	for _, b := range read {
		entry, whole := e.key(b, &shown)
		if whole {
			entries = append(entries, entry)
		}
	}
	return entries, shown.String()
}

// half reports whether Esc was read and nothing after it yet.
func (e *editor) half() bool { return e.escape && !e.control }

// pause is called when nothing followed Esc for a while, so that it was the key itself. It clears a line that was begun.
func (e *editor) pause() (entries []entry, echo string) {
	e.escape = false
	if len(e.line) > 0 {
		return nil, e.clear()
	}
	return []entry{{line: reply.Esc}}, ""
}

// key takes one byte.
func (e *editor) key(b byte, echo *strings.Builder) (entry, bool) {
	switch {
	case b == '\n':
		return e.enter(), true
	case !e.raw:
		e.add(b)
	case e.escape:
		e.skipKey(b)
	case b == keyEscape:
		e.escape = true
	case b == keyEOF && len(e.line) == 0:
		return entry{end: true}, true
	case b == keyBackspace || b == keyDelete:
		echo.WriteString(e.back())
	case b == keyKill:
		echo.WriteString(e.clear())
	case b >= ' ':
		echo.WriteString(e.add(b))
	}
	return entry{}, false
}

// enter ends the line. Esc and Enter at once count as Esc.
func (e *editor) enter() entry {
	done := entry{line: string(e.line), long: e.long}
	switch {
	case e.long:
		done.line = ""
	case e.half() && len(e.line) == 0:
		done.line = reply.Esc
	}
	*e = editor{raw: e.raw}
	return done
}

// skipKey skips a key that sends more than Esc: an arrow, a function key, Alt and a letter.
func (e *editor) skipKey(b byte) {
	switch {
	case !e.control && (b == '[' || b == 'O'):
		e.control = true
	case e.control && (b < 0x40 || b > 0x7e):
	default:
		e.escape, e.control = false, false
	}
}

// add appends a byte and returns the printable character that it completes, if any.
func (e *editor) add(b byte) string {
	if len(e.line) == longest {
		e.long = true
		return ""
	}
	e.line = append(e.line, b)
	c, size := utf8.DecodeLastRune(e.line)
	if c == utf8.RuneError || !unicode.IsPrint(c) {
		return ""
	}
	return string(e.line[len(e.line)-size:])
}

// back removes the last character and returns the output that erases it.
func (e *editor) back() string {
	if len(e.line) == 0 {
		return ""
	}
	c, size := utf8.DecodeLastRune(e.line)
	e.line = e.line[:len(e.line)-size]
	return erase(c)
}

// shown is the visible part of the line.
func (e *editor) shown() string {
	return strings.Map(func(c rune) rune {
		if !e.raw || !unicode.IsPrint(c) || c == unicode.ReplacementChar {
			return -1
		}
		return c
	}, string(e.line))
}

// newline is the echo of the end of a line.
func (e *editor) newline() string {
	if e.raw {
		return "\n"
	}
	return ""
}

func (e *editor) clear() string {
	var echo strings.Builder
	for _, c := range string(e.line) {
		echo.WriteString(erase(c))
	}
	e.line, e.long = nil, false
	return echo.String()
}

// erase is the output that removes c from the end of a row.
func erase(c rune) string {
	switch {
	case c == utf8.RuneError || !unicode.IsPrint(c) || unicode.In(c, unicode.Mn, unicode.Me):
		return ""
	case width.LookupRune(c).Kind() == width.EastAsianWide, width.LookupRune(c).Kind() == width.EastAsianFullwidth:
		return strings.Repeat("\b \b", 2)
	}
	return "\b \b"
}
