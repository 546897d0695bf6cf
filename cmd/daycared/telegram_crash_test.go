package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/permissions"
)

// telegramPoints are the failpoints between an update, its decision and the edits.
var telegramPoints = []string{"open", "apply", "shown", "send", "edit"}

const usualOnTelegram = 120

// phonesInLoop is the number of people asked in turn: Telegram accepts one message a second per chat.
const phonesInLoop = 40

// TestTelegramCrashLoop asks on phones and taps buttons, across kills of the real binary at every step, with updates delivered
// one to five times and shuffled: each tap counts once, and every recorded card reaches its final state. CRASH_POINTS sets the
// number of kills.
func TestTelegramCrashLoop(t *testing.T) {
	t.Run("D1/kills with Telegram", func(t *testing.T) {
		crashes := kills(t, usualOnTelegram)
		l := newPhones(newLoop(t))
		l.begin()
		for killed := range crashes {
			l.life(death(telegramPoints, killed, 2), func(<-chan struct{}) { l.tapped(killed) })
		}
		l.final()
		l.finish(crashes)
	})
}

// phoneLoop is a loop whose people answer on Telegram.
type phoneLoop struct {
	*loop
	server *telegramtest.Server
	all    []*telegramtest.Person
	names  map[string]*telegramtest.Person // who was asked, by question
}

func newPhones(in *loop) *phoneLoop {
	l := &phoneLoop{loop: in, server: telegramtest.New(in.t), names: map[string]*telegramtest.Person{}}
	l.server.Redeliver(5, true, 17)
	if err := os.WriteFile(filepath.Join(l.dir, "token"), []byte(l.server.Token()), 0o600); err != nil {
		l.t.Fatal(err)
	}
	for i := range phonesInLoop {
		p := l.server.Person(telegramtest.User{ID: int64(1000 + i), FirstName: "P"})
		p.Start("")
		l.all = append(l.all, p)
		l.parts.people = append(l.parts.people, fmt.Sprintf("{name: p%d, telegram: %d}", i, 1000+i))
		l.parts.routes = append(l.parts.routes, fmt.Sprintf(`{tags: ["@read:/p%d"], ask: [p%d]}`, i, i))
	}
	l.parts.connectors = append(l.parts.connectors,
		fmt.Sprintf("telegram: {enabled: true, token_file: %s/token, api_url: %q}", l.dir, l.server.URL()))
	return l
}

// tapped runs one question to its answer, across deaths of the daemon.
func (l *phoneLoop) tapped(number int) {
	ctx, done := context.WithTimeout(l.ctx, patient)
	defer done()
	i := number % phonesInLoop
	name := fmt.Sprintf("question %d on a phone.", number)
	l.names[name] = l.all[i]
	button, want := "Allow once", permissions.Approved
	if rand.IntN(3) == 0 {
		button, want = "Deny", permissions.Denied
	}
	told := l.ask(ctx, name, fmt.Sprintf("@read:/p%d", i))
	l.ended(name, l.tapUntil(ctx, l.all[i], name, button, told), want)
}

// tapUntil presses a button once on every card of a question that arrives, until the asker has its answer.
func (l *phoneLoop) tapUntil(
	ctx context.Context, p *telegramtest.Person, name, button string, told <-chan permissions.Request,
) permissions.Request {
	pressed := map[int]bool{}
	for {
		seen, stop := context.WithCancel(ctx)
		card := make(chan telegramtest.Message, 1)
		go func() {
			defer close(card)
			m, err := p.Sees(seen, func(m telegramtest.Message) bool {
				return strings.Contains(m.Text, name) && dataOf(m.Keyboard, button) != "" && !pressed[m.ID]
			})
			if err == nil {
				card <- m
			}
		}()
		select {
		case r := <-told:
			stop()
			<-card
			return r
		case m, ok := <-card:
			stop()
			if !ok { // it is late, and the asker says so
				return <-told
			}
			pressed[m.ID] = true
			p.TapsData(m.ID, dataOf(m.Keyboard, button))
		}
	}
}

// final waits until the latest card of every question is in its final state, and presses the buttons of older ones that a crash
// kept the daemon from recording: they answer so, and lose their buttons.
func (l *phoneLoop) final() {
	l.t.Helper()
	for name, p := range l.names {
		ctx, done := context.WithTimeout(l.ctx, 20*time.Second)
		_, err := p.Sees(ctx, func(m telegramtest.Message) bool {
			return strings.Contains(m.Text, name) && len(m.Keyboard) == 0 &&
				(strings.HasPrefix(m.Text, "✅ You allowed this once") || strings.HasPrefix(m.Text, "⛔ You denied this"))
		})
		if err != nil {
			l.violated("%s has no card in its final state: %v", name, err)
		}
		for _, m := range p.Messages() {
			if data := dataOf(m.Keyboard, "Deny"); m.FromBot && strings.Contains(m.Text, name) && data != "" {
				toast, err := p.TapsData(m.ID, data).Toast(ctx)
				told := strings.Contains(toast.Text, "Too late") || strings.Contains(toast.Text, "shown again") ||
					toast.Text == "⛔ You denied this."
				if err != nil || !told {
					l.violated("an orphan of %s says %q, %v", name, toast.Text, err)
				}
				if _, err := p.Sees(ctx, func(o telegramtest.Message) bool { return o.ID == m.ID && len(o.Keyboard) == 0 }); err != nil {
					l.violated("an orphan of %s keeps its buttons: %v", name, err)
				}
			}
		}
		done()
	}
}
