package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/permissions"
)

// script is a person whose answers are given beforehand: each is typed, through a pipe, when its question is on the
// screen.
type script struct {
	reader, writer *os.File
	lines          []string
	next           int
}

func newScript(lines []string) (*script, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the scripted person's keyboard: %w", err)
	}
	return &script{reader: reader, writer: writer, lines: lines}, nil
}

// Close takes the keyboard away.
func (s *script) Close() {
	s.writer.Close()
	s.reader.Close()
}

// answer types the next line, and shows on screen what a terminal would echo, after checking that it answers this question;
// otherwise nothing would ever happen.
func (s *script) answer(p connectors.Prompt, screen io.Writer) error {
	if s.next == len(s.lines) {
		return usage("--answer has %d answers, and there is one more question: %s", len(s.lines), p.Request.Kind)
	}
	line := s.lines[s.next]
	s.next++
	if reply.Parse(line, p.Request, p.Code).Meaning != reply.Decides {
		return usage("--answer: number %d does not answer a question of the kind %s", s.next, p.Request.Kind)
	}
	if _, err := fmt.Fprint(screen, line); err != nil {
		return err
	}
	_, err := fmt.Fprintln(s.writer, line)
	return err
}

// unused refuses answers to questions that were never asked.
func (s *script) unused() error {
	if left := len(s.lines) - s.next; left > 0 {
		return usage("--answer has %d answers more than there were questions", left)
	}
	return nil
}

// parseScript turns option words into what a person would type.
func parseScript(text string) ([]string, error) {
	var lines []string
	for word := range strings.SplitSeq(text, ",") {
		line, err := typed(word)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// typed is the line for one word: an option word, or what the screen offers to type.
func typed(word string) (string, error) {
	if reason, reasoned := strings.CutPrefix(word, "deny:"); reasoned {
		return "r " + reason, nil
	}
	for _, begins := range []string{"r ", "o ", "other:"} { // a reason, and words of one's own
		if rest, found := strings.CutPrefix(word, begins); found && strings.TrimSpace(rest) != "" {
			return word, nil
		}
	}
	switch {
	case word == "deny", word == "n":
		return "n", nil
	case word == "allow", word == "y":
		return "y", nil
	case word == "session", word == "a":
		return "a", nil
	case word == "continue":
		return "", nil
	case word == "interrupt", word == "esc":
		return "esc", nil
	case len(word) == 1 && word[0] >= '1' && word[0] <= '9':
		return word, nil
	}
	if s, err := permissions.ParseScope(word); err == nil {
		return "yes " + s.String(), nil
	}
	return "", usage("--answer %q is none of %s", word, answerWords)
}

// answerWords are what --answer takes.
const answerWords = "allow (y), session (a), 15m, deny (n), deny:why, a number, other:words, continue, interrupt"
