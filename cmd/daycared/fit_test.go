package main

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"

	"github.com/daycared/daycared/connectors/card"
)

func TestRowsAreWrappedAtWords(t *testing.T) {
	for _, c := range []struct {
		width      int
		text, want string
	}{
		{0, "a long row that is not wrapped\n", "a long row that is not wrapped\n"},
		{12, "short\n", "short\n"},
		{12, "one two three four\n", "one two\n  three four\n"},
		{12, "  one two three\n", "  one two\n    three\n"},
		{12, "/a/path/that/is/longer then\n", "/a/path/that/is/longer\n  then\n"},
		{12, "go /a/path/that/is/longer", "go\n  /a/path/that/is/longer"},
		{12, "exactly ten!\nx\n", "exactly ten!\nx\n"},
		{12, "✅ Allowed by you\n", "✅ Allowed\n  by you\n"},
		{12, "", ""}, {12, "\n\n", "\n\n"},
	} {
		if got := wrapRows(c.text, c.width); got != c.want {
			t.Errorf("%d: %q gave %q, want %q", c.width, c.text, got, c.want)
		}
	}
}

// What commands say fits the terminal, whatever its width, and no word is lost or broken.
func TestNarrowTerminals(t *testing.T) {
	for _, args := range []string{"--help", "approve --help", "audit --help", "doctor", "status", "pending", "nonsense", "version"} {
		_, whole := onTerminal(t, args, 500)
		for _, width := range []uint16{30, 40, 80} {
			rows, words := onTerminal(t, args, width)
			if words != whole {
				t.Errorf("%s at %d says %q, want %q", args, width, words, whole)
			}
			for _, row := range rows {
				if card.Cells(row) > int(width) && strings.Contains(strings.TrimSpace(row), " ") {
					t.Errorf("%s at %d overflows: %q", args, width, row)
				}
			}
		}
	}
}

// So does what the commands say that have a screen of their own: serve at its start, demo and setup.
func TestNarrowScreens(t *testing.T) {
	for name, does := range map[string]func(*CLI){
		"serve": func(c *CLI) { c.welcome() },
		"demo": func(c *CLI) {
			d := &demo{cli: c}
			d.print(demoIntro)
			d.rule()
			d.print(demoNext, "/tmp/daycared-demo-1")
		},
		"setup": func(c *CLI) { dialogue{in: c.In, out: c.Out}.say("%s", otherChannels) },
	} {
		words := func(text string) string { return strings.Trim(text, "─ ") }
		_, whole := onScreen(t, 500, does)
		for _, width := range []uint16{24, 36, 80} {
			rows, said := onScreen(t, width, does)
			said, want := strings.ReplaceAll(said, "─", ""), strings.ReplaceAll(whole, "─", "")
			if words(said) != words(want) {
				t.Errorf("%s at %d says %q, want %q", name, width, said, want)
			}
			for i, row := range rows {
				if len([]rune(row)) > int(width) && strings.Contains(strings.TrimSpace(row), " ") {
					t.Errorf("%s at %d overflows: %q", name, width, row)
				}
				if i > 0 && strings.Contains(row, "─") && strings.Contains(rows[i-1], "─") {
					t.Errorf("%s at %d breaks its rule", name, width)
				}
			}
		}
	}
}

// onTerminal is what a command says on a terminal of that width: its rows, and its words alone.
func onTerminal(t *testing.T, args string, width uint16) (rows []string, words string) {
	t.Helper()
	return onScreen(t, width, func(c *CLI) { c.Run(context.Background(), strings.Fields(args)) })
}

// onScreen is what is said on a terminal of that width by what is done there.
func onScreen(t *testing.T, width uint16, does func(*CLI)) (rows []string, words string) {
	t.Helper()
	hand, screen, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer hand.Close()
	if err := pty.Setsize(screen, &pty.Winsize{Rows: 24, Cols: width}); err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(hand) // ends with an error once nobody has the terminal open
		said <- string(text)
	}()
	c := &CLI{In: screen, Out: screen, Err: screen, UID: 12345, Environ: []string{
		"HOME=/nowhere", "DAYCARED_SOCKET=/nowhere/agent.sock", "DAYCARED_ADMIN_SOCKET=/nowhere/admin.sock", "DAYCARED_DATA_DIR=/nowhere/data",
	}}
	does(c)
	screen.Close()
	text := strings.ReplaceAll(<-said, "\r\n", "\n")
	return strings.Split(text, "\n"), strings.Join(strings.Fields(text), " ")
}

// A command may say from a timer that it still waits, while it prints.
func TestFittedIsSafeForConcurrentUse(t *testing.T) {
	var to strings.Builder
	f := &fitted{to: &to, width: 40}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for range 100 {
				_, _ = io.WriteString(f, "a row\n")
			}
		})
	}
	both.Wait()
	f.flush()
	if got, want := to.String(), strings.Repeat("a row\n", 200); got != want {
		t.Errorf("%d bytes were written, want %d", len(got), len(want))
	}
}
