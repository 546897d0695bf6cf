package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors/whatsapp"
	"github.com/daycared/daycared/connectors/whatsapp/whatsapptest"
	"github.com/daycared/daycared/permissions"
)

// whatsappPoints are the failpoints on the way of one answer, with how often each is passed: the message is read, decrypted,
// decided on and stored; then it is acknowledged, and its receipt, the edited card and the reaction are written.
var whatsappPoints = []struct {
	name string
	hits int
}{{"send", 1}, {"shown", 1}, {"read", 2}, {"heard", 1}, {"decide", 1}, {"apply", 1}, {"write", 5}, {"edit", 1}}

// whatsappDeaths are the failpoints before and after each of them.
func whatsappDeaths() (all []string) {
	for _, p := range whatsappPoints {
		for hit := 1; hit <= p.hits; hit++ {
			all = append(all, fmt.Sprintf("%s.before:%d", p.name, hit), fmt.Sprintf("%s.after:%d", p.name, hit))
		}
	}
	return all
}

const (
	mobilesInLoop = 5
	// usualOnWhatsApp is the default number of kills; each takes a fifth of a second.
	usualOnWhatsApp = 100
)

// TestWhatsAppCrashLoop asks on WhatsApp across kills of the real binary at every step of decrypt, store, acknowledge, decide
// and react. Each question is answered by a message that WhatsApp delivers until it is acknowledged, sometimes encrypted
// again, once unless it is a yes by code: none is lost, none counts twice, and every card reaches its final state. CRASH_POINTS sets the
// number of kills.
func TestWhatsAppCrashLoop(t *testing.T) {
	t.Run("D1/kills with WhatsApp", func(t *testing.T) {
		crashes, deaths := kills(t, usualOnWhatsApp), whatsappDeaths()
		l := newMobiles(newLoop(t))
		l.begin()
		for killed := range crashes {
			l.life(deaths[killed%len(deaths)], func(died <-chan struct{}) {
				l.awake(died)
				l.answered(killed, died)
			})
		}
		l.final()
		l.finish(crashes)
	})
}

// mobileLoop is a loop whose people answer on WhatsApp.
type mobileLoop struct {
	*loop
	server *whatsapptest.Server
	all    []*whatsapptest.Person
	names  map[string]*whatsapptest.Person // who was asked, by question
}

func newMobiles(in *loop) *mobileLoop {
	l := &mobileLoop{loop: in, server: whatsapptest.New(in.t), names: map[string]*whatsapptest.Person{}}
	l.env = []string{whatsappAddr + "=" + l.server.Addr(), whatsappRoot + "=" + whatsappRootKey()}
	for i := range mobilesInLoop {
		number := fmt.Sprintf("49170000000%d", i)
		l.all = append(l.all, l.server.Person(number, "P"))
		l.parts.people = append(l.parts.people, fmt.Sprintf(`{name: m%d, whatsapp: "+%s"}`, i, number))
		l.parts.routes = append(l.parts.routes, fmt.Sprintf(`{tags: ["@read:/m%d"], ask: [m%d]}`, i, i))
	}
	l.parts.connectors = append(l.parts.connectors, "whatsapp: {enabled: true}")
	if err := makeDataDir(filepath.Join(l.dir, "data"), os.Getuid()); err != nil {
		l.t.Fatal(err)
	}
	_, err := whatsapp.Link(l.ctx, whatsapp.Linking{
		Path: filepath.Join(l.dir, "data", whatsappName), HTTP: l.server.Client(), Log: slog.New(slog.DiscardHandler),
	}, scanner{l.t, l.server.Phone()})
	if err != nil {
		l.t.Fatal(err)
	}
	return l
}

// scanner scans QR codes; it is asked nothing else.
type scanner struct {
	t     *testing.T
	phone *whatsapptest.Phone
}

func (s scanner) Scan(code string, _ time.Duration) {
	if err := s.phone.Scans(s.t.Context(), code); err != nil {
		s.t.Error(err)
	}
}

func (s scanner) Type(string) { s.t.Error("a code is to be typed") }

func (s scanner) Passkey(context.Context, string) (string, error) {
	s.t.Error("a passkey is asked for")
	return "", nil
}

func (s scanner) Compare(context.Context, string) (bool, error) { return false, nil }

func (s scanner) Say(text string) { s.t.Log(text) }

var codeOfCard = regexp.MustCompile("\n`([0-9A-Z]{5})` · until ")

// answered runs one question to its answer and its effects, across deaths of the daemon.
func (l *mobileLoop) answered(number int, died <-chan struct{}) {
	ctx, done := context.WithTimeout(l.ctx, patient)
	defer done()
	i := number % mobilesInLoop
	name := fmt.Sprintf("question %d on a mobile.", number)
	l.names[name] = l.all[i]
	told := l.ask(ctx, name, fmt.Sprintf("@read:/m%d", i))
	m, err := l.all[i].Gets(ctx, func(m whatsapptest.Message) bool {
		return strings.Contains(m.Text, name) && codeOfCard.MatchString(m.Text)
	})
	if err != nil {
		l.violated("%s: no card came: %v", name, err)
		return
	}
	want, again := l.answer(l.all[i], m)
	l.ended(name, repeating(told, again), want)
	l.follows(ctx, name, l.all[i], m.ID, died)
}

// repeating waits for the end of a question. A yes by code is said again meanwhile: it allows nothing of which the daemon that died had not
// heard that its card has come.
func repeating(told <-chan permissions.Request, again func()) permissions.Request {
	for {
		select {
		case r := <-told:
			return r
		case <-time.After(2 * time.Second):
			again()
		}
	}
}

// follows waits for the effects of a decision, which have failpoints too, unless the daemon dies: the answer is acknowledged,
// and the card is in its final state.
func (l *mobileLoop) follows(ctx context.Context, name string, p *whatsapptest.Person, card string, died <-chan struct{}) {
	living, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-died:
			stop()
		case <-living.Done():
		}
	}()
	err := l.server.Acknowledged(living)
	if err == nil {
		_, err = p.Gets(living, func(m whatsapptest.Message) bool { return m.ID == card && !codeOfCard.MatchString(m.Text) })
	}
	if err != nil && ctx.Err() != nil {
		l.violated("%s: its answer is not acknowledged, or its card not edited, and %d answers wait: %v", name, len(l.server.Waiting()), err)
	}
}

// awake waits until the daemon has logged in or died.
func (l *mobileLoop) awake(died <-chan struct{}) {
	l.await("WhatsApp", func(ctx context.Context) error {
		if over(died) {
			return nil
		}
		channels, err := l.people.Health(ctx)
		for _, c := range channels {
			if !c.OK {
				err = errors.Join(err, errors.New(c.Text))
			}
		}
		return err
	})
}

// answer answers a card once, in a random way, and returns the expected outcome, and what says a yes by code again.
func (l *mobileLoop) answer(p *whatsapptest.Person, m whatsapptest.Message) (want permissions.State, again func()) {
	code := codeOfCard.FindStringSubmatch(m.Text)[1]
	yes := rand.IntN(3) > 0
	want, again = permissions.Denied, func() {}
	word, thumb := "no", "👎"
	if yes {
		want, word, thumb = permissions.Approved, "yes", "👍"
	}
	id := ""
	switch rand.IntN(3) {
	case 0:
		id = p.Says(word + " " + code)
		if yes {
			again = func() { p.Says(word + " " + code) }
		}
	case 1:
		id = p.Quotes(m.ID, word)
	case 2:
		id = p.Reacts(m.ID, thumb)
	}
	if rand.IntN(3) == 0 {
		p.Repeats(id)
	}
	return want, again
}

// final waits until every question has exactly one card, in its final state.
func (l *mobileLoop) final() {
	ctx, done := context.WithTimeout(l.ctx, patient)
	defer done()
	for name, p := range l.names {
		_, err := p.Gets(ctx, func(m whatsapptest.Message) bool {
			return strings.Contains(m.Text, name) &&
				(strings.HasPrefix(m.Text, "✅ *You allowed this once*") || strings.HasPrefix(m.Text, "⛔ *You denied this*"))
		})
		if err != nil {
			l.violated("%s has no card in its final state: %v", name, err)
		}
		cards := 0
		for _, m := range p.Messages() {
			if m.From == l.server.Number() && strings.Contains(m.Text, name) {
				cards++
			}
		}
		if cards != 1 {
			l.violated("%s has %d cards", name, cards)
		}
	}
}
