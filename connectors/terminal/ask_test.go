package terminal_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/daycared/daycared/connectors/terminal"
)

// answering is what ReadLine gives a person on a terminal who answers the question with keys.
func answering(t *testing.T, hidden bool, keys string) (line, screen string, err error) {
	t.Helper()
	hand, in, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer hand.Close()
	seen := make(chan string, 1)
	go func() {
		reader := bufio.NewReader(hand)
		asked, _ := reader.ReadString('?')
		_, _ = io.WriteString(hand, keys)
		rest, _ := io.ReadAll(reader) // until nobody has the terminal open
		seen <- asked + string(rest)
	}()
	line, err = terminal.ReadLine(t.Context(), in, in, "name?", hidden)
	_ = in.Close()
	return line, <-seen, err
}

func TestALineIsReadAndASecretIsNotShown(t *testing.T) {
	if line, screen, err := answering(t, false, "fay\r"); line != "fay" || err != nil || !strings.Contains(screen, "fay") {
		t.Errorf("%q, %q, %v", line, screen, err)
	}
	if line, screen, err := answering(t, true, "s3cret\r"); line != "s3cret" || err != nil || strings.Contains(screen, "s3cret") {
		t.Errorf("%q, %q, %v", line, screen, err)
	}
	if line, _, err := answering(t, false, "\x04"); line != "" || !errors.Is(err, io.EOF) {
		t.Errorf("the end: %q, %v", line, err)
	}
}

func TestOneLineIsReadAtATime(t *testing.T) {
	in, hand, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := io.WriteString(hand, "one\ntwo\nhalf"); err != nil {
		t.Fatal(err)
	}
	_ = hand.Close()
	for _, want := range []string{"one", "two"} {
		if line, err := terminal.ReadLine(t.Context(), in, io.Discard, "", false); line != want || err != nil {
			t.Errorf("%q, %v, want %q", line, err, want)
		}
	}
	if line, err := terminal.ReadLine(t.Context(), in, io.Discard, "", false); line != "" || !errors.Is(err, io.EOF) {
		t.Errorf("half a line: %q, %v", line, err)
	}
}

func TestAQuestionEndsWithItsContext(t *testing.T) {
	in, hand, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer hand.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := terminal.ReadLine(ctx, in, io.Discard, "", false)
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
