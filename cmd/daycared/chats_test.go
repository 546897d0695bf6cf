package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/daycared/daycared/connectors/telegram/telegramtest"
)

// Scripts may have a Telegram in them, a server of our own that speaks the real protocol:
//
//	telegram                   start one; $BOT is its address, $TOKEN the bot's token, also in the file token
//	chat NAME ID               give somebody a phone with that account, who presses Start
//	card NAME REGEXP           wait for a message of the bot whose text is like that: the one that is meant from here on
//	misses NAME REGEXP         nothing of what somebody got so far is like that
//	silent                     it made no sound
//	buttons TEXT…              it has exactly these buttons, row by row
//	offers NAME BUTTON         wait until it has that button
//	taps NAME BUTTON [TOAST]   wait for one of its buttons, press it, and wait for a toast like that
//	presses NAME BUTTON [TOAST] press one that it had, or that somebody else has, or send that data
//	writes NAME TEXT           write to the bot
//	replies NAME TEXT          reply to it
//	blocks NAME                block the bot
//	pictured FILE              that picture of the documentation is a picture of it
//	away down|up               take the network away, and give it back

type chats struct {
	server *telegramtest.Server
	people map[string]*telegramtest.Person
	groups map[string]*room
	now    telegramtest.Message
}

type chatsKey struct{}

func chatsOf(ts *testscript.TestScript) *chats {
	c, ok := ts.Value(chatsKey{}).(*chats)
	if !ok {
		ts.Fatalf("the script was set up without chats")
	}
	return c
}

// chatCommands are the commands above.
func chatCommands() scriptCommands {
	with := func(least int, do func(*testscript.TestScript, *chats, []string)) func(*testscript.TestScript, bool, []string) {
		return func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) < least {
				ts.Fatalf("it takes %d arguments", least)
			}
			do(ts, chatsOf(ts), args)
		}
	}
	return scriptCommands{
		"telegram": with(0, startTelegram), "chat": with(2, gets), "card": with(2, sees), "misses": with(2, misses), "silent": with(0, isSilent),
		"buttons": with(0, hasButtons), "offers": with(2, offers), "taps": with(2, taps), "presses": with(2, presses),
		"writes": with(2, writesToBot), "replies": with(2, repliesToBot),
		"pictured": with(1, pictured), "away": with(1, network), "blocks": with(1, blocks),
	}
}

func startTelegram(ts *testscript.TestScript, c *chats, _ []string) {
	server, err := telegramtest.Serve(telegramtest.Options{})
	ts.Check(err)
	c.server, c.people = server, map[string]*telegramtest.Person{}
	ts.Defer(func() {
		server.Close()
		for _, v := range server.Violations() {
			ts.Logf("not the Bot API: %v", v)
		}
		if len(server.Violations()) > 0 {
			ts.Fatalf("the Bot API was violated")
		}
	})
	ts.Setenv("BOT", server.URL())
	ts.Setenv("TOKEN", server.Token())
	ts.Check(os.WriteFile(ts.MkAbs("token"), []byte(server.Token()+"\n"), 0o600))
}

func gets(ts *testscript.TestScript, c *chats, args []string) {
	id, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	p := c.server.Person(telegramtest.User{ID: id, FirstName: args[0]})
	p.Start("")
	c.people[args[0]] = p
}

func (c *chats) person(ts *testscript.TestScript, name string) *telegramtest.Person {
	p, known := c.people[name]
	if !known {
		ts.Fatalf("%s has no phone", name)
	}
	return p
}

func sees(ts *testscript.TestScript, c *chats, args []string) {
	want, err := regexp.Compile("(?s)" + args[1])
	ts.Check(err)
	p := c.person(ts, args[0])
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	m, err := p.Sees(ctx, func(m telegramtest.Message) bool { return want.MatchString(m.Text) })
	if err != nil {
		for _, m := range p.Messages() {
			ts.Logf("%d: %s", m.ID, m.Text)
		}
		ts.Fatalf("%s does not see %q: %v", args[0], args[1], err)
	}
	c.now = m
	noted(ts, m)
}

// noted waits until the daemon has recorded the delivery of pending requests; an answer in words would be too early before. A
// daemon that does not answer is dead.
func noted(ts *testscript.TestScript, m telegramtest.Message) {
	if len(m.Keyboard) == 0 {
		return
	}
	people := deciders(ts)
	defer people.Close()
	until(ts, "the card is noted", func(ctx context.Context) error {
		list, err := people.List(ctx, "", 0)
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		for _, s := range list {
			if strings.Contains(m.Text, s.Code) && len(s.Copies) == 0 { // delivered ones
				return errors.New("it is not noted that " + s.Code + " was delivered")
			}
		}
		return nil
	})
}

// misses checks that no message received so far matches.
func misses(ts *testscript.TestScript, c *chats, args []string) {
	unwanted, err := regexp.Compile("(?s)" + args[1])
	ts.Check(err)
	for _, m := range c.person(ts, args[0]).Messages() {
		if m.FromBot && unwanted.MatchString(m.Text) {
			ts.Fatalf("%s got: %s", args[0], m.Text)
		}
	}
}

func isSilent(ts *testscript.TestScript, c *chats, _ []string) {
	if !c.now.Silent {
		ts.Fatalf("it made a sound")
	}
}

func hasButtons(ts *testscript.TestScript, c *chats, args []string) {
	var rows []string
	for _, row := range c.now.Keyboard {
		var texts []string
		for _, b := range row {
			texts = append(texts, b.Text)
		}
		rows = append(rows, strings.Join(texts, " | "))
	}
	if got, want := strings.Join(rows, "\n"), strings.Join(args, "\n"); got != want {
		ts.Fatalf("the buttons are\n%s\nand not\n%s", got, want)
	}
}

// offers waits until the message has a button: keyboards are edited after the toast of a tap.
func offers(ts *testscript.TestScript, c *chats, args []string) {
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	id := c.now.ID
	m, err := c.person(ts, args[0]).Sees(ctx, func(m telegramtest.Message) bool { return m.ID == id && dataOf(m.Keyboard, args[1]) != "" })
	if err != nil {
		ts.Fatalf("there is no button %q: %v", args[1], err)
	}
	c.now = m
}

func taps(ts *testscript.TestScript, c *chats, args []string) {
	p, id := c.person(ts, args[0]), c.now.ID
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	more := dataOf(c.now.Keyboard, "⋯ More")
	if more != "" && args[1] != "Back" && dataOf(c.now.Keyboard, args[1]) == "" { // Back is of the step that was tapped before
		p.TapsData(id, more)
	}
	m, err := p.Sees(ctx, func(m telegramtest.Message) bool { return m.ID == id && dataOf(m.Keyboard, args[1]) != "" })
	if err != nil {
		ts.Fatalf("there is no button %q: %v", args[1], err)
	}
	c.now = m
	tap := p.TapsData(id, dataOf(m.Keyboard, args[1]))
	toast, err := tap.Toast(ctx)
	if err == nil && strings.Contains(toast.Text, "shown again below") { // after a crash before it was recorded
		data := dataOf(m.Keyboard, args[1])
		c.now, err = p.Sees(ctx, func(m telegramtest.Message) bool { return m.ID > id && dataOf(m.Keyboard, args[1]) == data })
		ts.Check(err)
		tap = p.TapsData(c.now.ID, data)
	}
	toasts(ts, tap, args[2:])
}

// presses taps a button that is gone, or on another person's phone.
func presses(ts *testscript.TestScript, c *chats, args []string) {
	data := dataOf(c.now.Keyboard, args[1])
	for _, v := range c.now.History {
		data = cmp.Or(data, dataOf(v.Keyboard, args[1]))
	}
	toasts(ts, c.person(ts, args[0]).TapsData(c.now.ID, cmp.Or(data, args[1])), args[2:])
}

func toasts(ts *testscript.TestScript, tap *telegramtest.Tap, want []string) {
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	toast, err := tap.Toast(ctx)
	ts.Check(err)
	if len(want) > 0 && !regexp.MustCompile(want[0]).MatchString(toast.Text) {
		ts.Fatalf("the toast says %q", toast.Text)
	}
}

// dataOf is a button's data; empty if there is no such button.
func dataOf(board [][]telegramtest.Button, text string) string {
	for _, row := range board {
		for _, b := range row {
			if strings.Contains(b.Text, text) {
				return b.Data
			}
		}
	}
	return ""
}

func writesToBot(ts *testscript.TestScript, c *chats, args []string) {
	c.person(ts, args[0]).Writes(args[1])
}

func repliesToBot(ts *testscript.TestScript, c *chats, args []string) {
	c.person(ts, args[0]).Replies(c.now.ID, args[1])
}

func network(ts *testscript.TestScript, c *chats, args []string) {
	switch args[0] {
	case "down":
		c.server.Down()
	case "up":
		ts.Check(c.server.Up())
	default:
		ts.Fatalf("the network goes down or up")
	}
}

func blocks(ts *testscript.TestScript, c *chats, args []string) { c.person(ts, args[0]).Blocks() }
