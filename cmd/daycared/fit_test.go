package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/creack/pty"

	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

// Commands' output fits the terminal at any width, and no word is lost or broken.
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

// So does the output of commands with their own screen: serve at its start, demo and setup.
func TestNarrowScreens(t *testing.T) {
	for name, does := range map[string]func(*CLI){
		"serve": func(c *CLI) { c.welcome() },
		"demo": func(c *CLI) {
			d := &demo{cli: c, folder: "/tmp/daycared-demo-1"}
			d.print(demoIntro)
			d.rule()
			d.next()
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

// onTerminal returns a command's output on a terminal of that width: its rows, and its words alone.
func onTerminal(t *testing.T, args string, width uint16) (rows []string, words string) {
	t.Helper()
	return onScreen(t, width, func(c *CLI) { c.Run(context.Background(), strings.Fields(args)) })
}

// onScreen returns the output of does on a terminal of that width.
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
		text, _ := io.ReadAll(hand) // ends with an error once the terminal is closed
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

// TestAnswersControlNoTerminal: other people's text is escaped in the asker's terminal, even if its width is unknown.
func TestAnswersControlNoTerminal(t *testing.T) {
	r := permissions.Request{
		Kind: permissions.KindClarification, State: permissions.Answered, Answer: permissions.Other,
		Comment: "go\x1b[2J\u009b\u202e \u05d0\u3164",
	}
	for _, width := range []uint16{0, 80} {
		t.Run(fmt.Sprintf("B2/%d cells", width), func(t *testing.T) {
			_, said := onScreen(t, width, func(c *CLI) {
				done := c.fit(c.root(), nil)
				if err := c.outcome(&question{}, &progress{cli: c}, permissions.RequestView{Request: r}); err != nil {
					t.Error(err)
				}
				done()
			})
			if want := `go\u{1B}[2J\u{9B}\u{202E} \u{5D0}\u{3164}`; said != want {
				t.Errorf("said %q, want %q", said, want)
			}
		})
	}
	var out strings.Builder
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c := &CLI{Out: file, Err: &out}
	if err := c.outcome(&question{}, &progress{cli: c}, permissions.RequestView{Request: r}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file.Name()); err != nil || string(text) != r.Comment+"\n" {
		t.Errorf("a program reads %q: %v", text, err)
	}
}

// A timer may print progress concurrently with a command's output.
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

// TestJSONControlsNoTerminal: programs get other people's text unchanged, and a terminal that shows it is not controlled by it.
func TestJSONControlsNoTerminal(t *testing.T) {
	const wrote = "a\x1b[2J \u0085\u009b2J \u202eb\u2066 \u200b \ufeff \U000e0041 \x7f ü 世 <&> \u2028 \\u0041 " +
		"\u3164\u115f\uffa0\u2800\ufe0f\u00a0\u3000\ue000"
	var out strings.Builder
	c := &CLI{Out: &out, Err: os.Stderr}
	if code := c.exit(errors.New(wrote), true); code != 1 {
		t.Errorf("exit %d", code)
	}
	var told problem
	if err := json.Unmarshal([]byte(out.String()), &told); err != nil || told.Text != wrote {
		t.Errorf("%v: %q, want %q", err, told.Text, wrote)
	}
	for _, r := range strings.TrimSuffix(out.String(), "\n") {
		if r != ' ' && unicode.In(r, unicode.C, unicode.Z) || card.Hidden(r) {
			t.Errorf("%U is printed in %q", r, out.String())
		}
	}
	for _, want := range []string{`ü 世 <&>`, `\u009b2J`, `\udb40\udc41`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("printed %s, want %s in it", out.String(), want)
		}
	}
}

// The progress line names the people asked, and is repeated when they change.
func TestTheProgressLineNamesThePeopleAsked(t *testing.T) {
	var said strings.Builder
	p := &progress{cli: &CLI{Err: &said}}
	r := permissions.Request{ID: "r", State: permissions.Pending, Asked: []string{"kim"}}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	kims := permissions.Copy{Person: "kim", Connector: "telegram", SentAt: at}
	sams := permissions.Copy{Person: "sam", Connector: "telegram", SentAt: at.Add(time.Second)}
	p.tell(permissions.RequestView{Request: r, Copies: []permissions.Copy{kims}})
	r.Asked = []string{"sam"} // kim was removed
	for range 2 {
		p.tell(permissions.RequestView{Request: r, Copies: []permissions.Copy{kims, sams}})
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[1], "asked sam · delivered 03:04:06 (telegram) · until") {
		t.Errorf("said %q", lines)
	}
}

// TestAProgressBarIsOnATerminalAlone, in one line that is removed at the end.
func TestAProgressBarIsOnATerminalAlone(t *testing.T) {
	var to strings.Builder
	for want, where := range map[string]io.Writer{
		"\r\x1b[Kaudit  #####  1 of 4\r\x1b[Kaudit  ####################  4 of 4\r\x1b[K": &fitted{to: &to, width: 40}, "": &to,
	} {
		to.Reset()
		tell, end := (&CLI{Err: where}).progressBar()
		for _, done := range []int64{1, 1, 4} {
			tell("audit", done, 4)
		}
		tell("something that is longer than the line", 1, 4)
		if end(); to.String() != want {
			t.Errorf("%q, want %q", to.String(), want)
		}
	}
}
