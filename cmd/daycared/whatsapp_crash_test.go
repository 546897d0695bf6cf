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

// whatsappPoints are the places at which the daemon kills itself, with how often each is passed on the way of one answer:
// what comes over the wire is read, decrypted, decided on and stored; then it is acknowledged, its receipt and the edited
// card are written, and the emoji that it gets.
var whatsappPoints = []struct {
	name string
	hits int
}{{"send", 1}, {"shown", 1}, {"read", 2}, {"heard", 1}, {"decide", 1}, {"apply", 1}, {"write", 5}, {"edit", 1}}

// whatsappDeaths are one before and one after each of them.
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
	// usualOnWhatsApp is how many deaths there are if nobody says: each takes a fifth of a second.
	usualOnWhatsApp = 200
)

// TestWhatsAppCrashLoop asks on WhatsApp across kills of the real binary at every step of decrypt, store, acknowledge,
// decide and react. Each question is answered once, by a message that WhatsApp delivers until it is acknowledged, some
// of them encrypted a second time: none is lost, none counts twice, and every card is in its final state at the end.
// CRASH_POINTS sets how many kills there are.
func TestWhatsAppCrashLoop(t *testing.T) {
	crashes, deaths := kills(t, usualOnWhatsApp), whatsappDeaths()
	l := newMobileLoop(t)
	l.rise("")
	for killed := range crashes {
		l.restart(deaths[killed%len(deaths)])
		l.awake()
		l.answered(killed)
	}
	l.restart("")
	l.settled()
	l.finish(crashes)
	if l.directed < crashes/2 {
		t.Errorf("only %d of %d deaths were at a failpoint", l.directed, crashes)
	}
}

// mobileLoop is a loop whose people answer by WhatsApp.
type mobileLoop struct {
	*loop
	server  *whatsapptest.Server
	mobiles []*whatsapptest.Person
	names   map[string]*whatsapptest.Person // who was asked each question
}

func newMobileLoop(t *testing.T) *mobileLoop {
	l := &mobileLoop{loop: newLoop(t), server: whatsapptest.New(t), names: map[string]*whatsapptest.Person{}}
	l.env = []string{whatsappAddr + "=" + l.server.Addr(), whatsappRoot + "=" + whatsappRootKey()}
	var people, routes strings.Builder
	for i := range mobilesInLoop {
		number := fmt.Sprintf("49170000000%d", i)
		l.mobiles = append(l.mobiles, l.server.Person(number, "P"))
		fmt.Fprintf(&people, "- {name: p%d, whatsapp: \"+%s\"}\n", i, number)
		fmt.Fprintf(&routes, "- {tags: [\"@read:/p%d\"], ask: [p%d]}\n", i, i)
	}
	config := "people:\n" + people.String() + "routes:\n" + routes.String() +
		"connectors: {terminal: {enabled: false}, whatsapp: {enabled: true}}\n" +
		"api: {agent_socket: %s/agent, admin_socket: %s/admin}\nhigh_risk: {tools: []}\ndata_dir: %s/data\n" +
		"approvals: {max_timeout: 1h, redeem_window: 1h, remind: []}\n" +
		"limits: {pending_per_caller: 1000, prompts_per_minute: 1000000}\n"
	if err := os.WriteFile(filepath.Join(l.dir, "c.yaml"), fmt.Appendf(nil, config, l.dir, l.dir, l.dir), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := makeDataDir(filepath.Join(l.dir, "data")); err != nil {
		t.Fatal(err)
	}
	_, err := whatsapp.Link(t.Context(), whatsapp.Linking{
		Path: filepath.Join(l.dir, "data", whatsappName), HTTP: l.server.Client(), Log: slog.New(slog.DiscardHandler),
	}, scanner{t, l.server.Phone()})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// scanner scans what is to be scanned, and is asked nothing else.
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

var codeOfCard = regexp.MustCompile(`^\*([0-9A-Z]{5})\* · a permission is asked`)

// answered is one question, from its asking to its answer, whatever dies meanwhile.
func (l *mobileLoop) answered(number int) {
	l.t.Helper()
	revived, daemon, died := make(chan struct{}), l.daemon, l.done
	go func() {
		defer close(revived)
		<-died
		l.rise("")
	}()
	ctx, done := context.WithTimeout(l.t.Context(), time.Minute)
	defer done()
	i := number % mobilesInLoop
	name := fmt.Sprintf("question %d.", number)
	l.names[name] = l.mobiles[i]
	tag, err := permissions.ParseTag(fmt.Sprintf("@read:/p%d", i))
	if err != nil {
		l.t.Fatal(err)
	}
	told := l.put(ctx, permissions.Request{Kind: permissions.KindPermission, Tags: []permissions.Tag{tag}, Reason: name, Key: name})
	m, err := l.mobiles[i].Gets(ctx, func(m whatsapptest.Message) bool {
		return strings.Contains(m.Text, name) && codeOfCard.MatchString(m.Text)
	})
	if err != nil {
		l.t.Fatalf("%s: no card came: %v", name, err)
	}
	want := l.answer(l.mobiles[i], m)
	select {
	case r := <-told:
		l.ended(name, r, want)
	case <-ctx.Done():
		log, _ := os.ReadFile(filepath.Join(l.dir, "log"))
		l.t.Fatalf("%s: the answer was lost; %d wait for an acknowledgement\n%s", name, len(l.server.Waiting()), log)
	}
	l.follows(ctx, l.mobiles[i], m.ID, died)
	select {
	case <-died:
		l.directed++
	default:
	}
	_ = daemon.Process.Kill() // it may be dead already
	<-revived
}

// follows waits for what follows a decision, which has its points as well, unless the daemon dies of them: that the
// answer is acknowledged, and the card in its final state.
func (l *mobileLoop) follows(ctx context.Context, p *whatsapptest.Person, card string, died <-chan struct{}) {
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
		l.t.Fatalf("an answer is not acknowledged, or its card not edited: %v", err)
	}
}

// awake waits until the daemon has logged in, unless it dies before.
func (l *mobileLoop) awake() {
	l.t.Helper()
	died := l.done
	l.await(func(ctx context.Context) error {
		select {
		case <-died:
			return nil
		default:
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

// answer answers a card once, in one of the ways, and tells what is to come of it.
func (l *mobileLoop) answer(p *whatsapptest.Person, m whatsapptest.Message) permissions.State {
	code := codeOfCard.FindStringSubmatch(m.Text)[1]
	yes := rand.IntN(3) > 0
	want, word, thumb := permissions.Denied, "no", "👎"
	if yes {
		want, word, thumb = permissions.Approved, "yes", "👍"
	}
	id := ""
	switch rand.IntN(3) {
	case 0:
		id = p.Says(word + " " + code)
	case 1:
		id = p.Quotes(m.ID, word)
	case 2:
		id = p.Reacts(m.ID, thumb)
	}
	if rand.IntN(3) == 0 {
		p.Repeats(id)
	}
	return want
}

// settled waits until every question has one card, and that is in its final state.
func (l *mobileLoop) settled() {
	l.t.Helper()
	ctx, done := context.WithTimeout(l.t.Context(), time.Minute)
	defer done()
	for name, p := range l.names {
		_, err := p.Gets(ctx, func(m whatsapptest.Message) bool {
			return strings.Contains(m.Text, name) && (strings.Contains(m.Text, "· ✅ Allowed once") || strings.Contains(m.Text, "· ⛔ Denied"))
		})
		if err != nil {
			l.t.Errorf("%s has no card in its final state: %v", name, err)
		}
		cards := 0
		for _, m := range p.Messages() {
			if m.From == l.server.Number() && strings.Contains(m.Text, name) {
				cards++
			}
		}
		if cards != 1 {
			l.t.Errorf("%s has %d cards", name, cards)
		}
	}
}
