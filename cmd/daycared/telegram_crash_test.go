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

// telegramPoints are the places at which the daemon kills itself between an update, its decision and the edits.
var telegramPoints = []string{"open", "apply", "shown", "send", "edit"}

// phonesInLoop are as many people as are asked in turn: Telegram takes one message a second in a chat.
const phonesInLoop = 40

// TestTelegramCrashLoop asks on phones, and taps, across kills of the real binary at every step, with updates delivered
// one to five times and shuffled: each tap has its effect once, and every card that the daemon knows of ends in its final
// state. CRASH_POINTS sets how many kills there are.
func TestTelegramCrashLoop(t *testing.T) {
	crashes := kills(t, usualCrashes)
	l := newPhoneLoop(t)
	l.rise("")
	for killed := range crashes {
		l.restart(death(telegramPoints, killed, 2))
		l.tapped(killed)
	}
	l.restart("")
	l.settled()
	l.finish(crashes)
}

// phoneLoop is a loop whose people answer by Telegram.
type phoneLoop struct {
	*loop
	server *telegramtest.Server
	phones []*telegramtest.Person
	names  map[string]*telegramtest.Person // who was asked each question
}

func newPhoneLoop(t *testing.T) *phoneLoop {
	l := &phoneLoop{loop: newLoop(t), server: telegramtest.New(t), names: map[string]*telegramtest.Person{}}
	l.server.Redeliver(5, true, 17)
	if err := os.WriteFile(filepath.Join(l.dir, "token"), []byte(l.server.Token()), 0o600); err != nil {
		t.Fatal(err)
	}
	var people, routes strings.Builder
	for i := range phonesInLoop {
		p := l.server.Person(telegramtest.User{ID: int64(1000 + i), FirstName: "P"})
		p.Start("")
		l.phones = append(l.phones, p)
		fmt.Fprintf(&people, "- {name: p%d, telegram: %d}\n", i, 1000+i)
		fmt.Fprintf(&routes, "- {tags: [\"@read:/p%d\"], ask: [p%d]}\n", i, i)
	}
	config := "people:\n" + people.String() + "routes:\n" + routes.String() +
		"connectors: {terminal: {enabled: false}, telegram: {enabled: true, token_file: %s/token, api_url: \"%s\"}}\n" +
		"api: {agent_socket: %s/agent, admin_socket: %s/admin}\nhigh_risk: {tools: []}\ndata_dir: %s/data\n" +
		"approvals: {max_timeout: 1h, redeem_window: 1h}\nlimits: {pending_per_caller: 1000, prompts_per_minute: 1000000}\n"
	config = fmt.Sprintf(config, l.dir, l.server.URL(), l.dir, l.dir, l.dir)
	if err := os.WriteFile(filepath.Join(l.dir, "c.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}

// tapped is one question, from its asking to its answer, whatever dies meanwhile.
func (l *phoneLoop) tapped(number int) {
	l.t.Helper()
	revived, daemon, died := make(chan struct{}), l.daemon, l.done
	go func() {
		defer close(revived)
		<-died
		l.rise("")
	}()
	ctx, done := context.WithTimeout(l.t.Context(), time.Minute)
	defer done()
	i := number % phonesInLoop
	name := fmt.Sprintf("question %d.", number)
	l.names[name] = l.phones[i]
	tag, err := permissions.ParseTag(fmt.Sprintf("@read:/p%d", i))
	if err != nil {
		l.t.Fatal(err)
	}
	button, want := "Allow once", permissions.Approved
	if rand.IntN(3) == 0 {
		button, want = "Deny", permissions.Denied
	}
	told := l.put(ctx, permissions.Request{Kind: permissions.KindPermission, Tags: []permissions.Tag{tag}, Reason: name, Key: name})
	r := l.tapUntil(ctx, l.phones[i], name, button, told)
	select {
	case <-died:
		l.directed++
	default:
	}
	l.ended(name, r, want)
	_ = daemon.Process.Kill() // it may be dead already
	<-revived
}

// tapUntil presses the button of every card of a question that comes, once, until the asker has its answer.
func (l *phoneLoop) tapUntil(
	ctx context.Context, p *telegramtest.Person, name, button string, told <-chan permissions.Request,
) permissions.Request {
	l.t.Helper()
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
			if !ok {
				l.t.Fatalf("%s: no card came", name)
			}
			pressed[m.ID] = true
			p.TapsData(m.ID, dataOf(m.Keyboard, button))
		}
	}
}

// settled waits until the newest card of every question is in its final state, and presses what is left of older ones,
// which a crash kept the daemon from knowing: they say so, and lose their buttons.
func (l *phoneLoop) settled() {
	l.t.Helper()
	for name, p := range l.names {
		ctx, done := context.WithTimeout(l.t.Context(), 20*time.Second)
		_, err := p.Sees(ctx, func(m telegramtest.Message) bool {
			return strings.Contains(m.Text, name) && len(m.Keyboard) == 0 &&
				(strings.Contains(m.Text, "✅ Allowed once") || strings.Contains(m.Text, "⛔ Denied"))
		})
		if err != nil {
			l.t.Errorf("%s has no card in its final state: %v", name, err)
		}
		for _, m := range p.Messages() {
			if data := dataOf(m.Keyboard, "Deny"); m.FromBot && strings.Contains(m.Text, name) && data != "" {
				toast, err := p.TapsData(m.ID, data).Toast(ctx)
				if told := strings.Contains(toast.Text, "Too late") || strings.Contains(toast.Text, "shown again"); err != nil || !told {
					l.t.Errorf("an orphan of %s says %q, %v", name, toast.Text, err)
				}
				if _, err := p.Sees(ctx, func(o telegramtest.Message) bool { return o.ID == m.ID && len(o.Keyboard) == 0 }); err != nil {
					l.t.Errorf("an orphan of %s keeps its buttons: %v", name, err)
				}
			}
		}
		done()
	}
}
