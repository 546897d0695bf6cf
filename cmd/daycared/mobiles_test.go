package main

import (
	"context"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/daycared/daycared/connectors/whatsapp/whatsapptest"
)

// Scripts may have a WhatsApp in them, too, a server of our own that speaks the real protocol:
//
//	whatsapp                 start one; $ACCOUNT is the number of the account that daycared may be linked to
//	scans ACTOR              the account's phone scans the QR code that ACTOR draws
//	copies ACTOR             it scans the code that ACTOR tells as text
//	passkey                  from now on WhatsApp asks for the account's passkey as well
//	signs ACTOR              the browser answers what ACTOR tells to ask it, and the answer is pasted
//	enters ACTOR             the code that ACTOR shows is typed on it
//	unlinks                  its owner removes the linked device
//	mobile NAME NUMBER       give somebody a phone with WhatsApp, and that number
//	gets NAME REGEXP         wait for a message of daycared's whose text is like that: the one that is meant from here on;
//	                         $CODE is that of a card, $GRANT that of a grant
//	lacks NAME REGEXP        nothing that somebody sees of daycared's is like that
//	says NAME TEXT           write to daycared
//	quotes NAME TEXT         answer the message that is meant
//	reacts NAME EMOJI        put an emoji on it
//	marked NAME EMOJI        wait until what NAME wrote last has that emoji of daycared's
//	brings NAME ACTOR        write what the last link says that ACTOR has shown
//	newphone NAME            somebody has another phone
//	waserver WHAT            down, up, cut, replace, ban (for two seconds), outdated (whatever the version), well,
//	                         newer (than ours is the version that is required)

type mobiles struct {
	server *whatsapptest.Server
	people map[string]*whatsapptest.Person
	now    whatsapptest.Message
	wrote  string // the id of the last message written

	passkey *whatsapptest.Passkey // required for linking, or nil
}

type mobilesKey struct{}

// whatsappCommands are the commands above.
func whatsappCommands() scriptCommands {
	with := func(count int, do func(*testscript.TestScript, *mobiles, []string)) func(*testscript.TestScript, bool, []string) {
		return func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) != count {
				ts.Fatalf("it takes %d arguments", count)
			}
			m, ok := ts.Value(mobilesKey{}).(*mobiles)
			if !ok {
				ts.Fatalf("the script was set up without mobiles")
			}
			do(ts, m, args)
		}
	}
	wrote := func(how func(*mobiles, *whatsapptest.Person, string) string) func(*testscript.TestScript, bool, []string) {
		return with(2, func(ts *testscript.TestScript, m *mobiles, args []string) {
			m.wrote = how(m, m.person(ts, args[0]), args[1])
		})
	}
	return scriptCommands{
		"whatsapp": with(0, startWhatsApp), "scans": with(1, scans), "copies": with(1, copiesCode), "enters": with(1, enters),
		"passkey": with(0, func(_ *testscript.TestScript, m *mobiles, _ []string) { m.passkey = m.server.Phone().AsksForPasskey() }),
		"signs":   with(1, signs),
		"unlinks": with(0, func(_ *testscript.TestScript, m *mobiles, _ []string) { m.server.Phone().Unlinks() }),
		"mobile":  with(2, hasMobile), "gets": with(2, getsMessage), "lacks": with(2, lacksMessage), "marked": with(2, isMarked),
		"says":   wrote(func(_ *mobiles, p *whatsapptest.Person, text string) string { return p.Says(text) }),
		"quotes": wrote(func(m *mobiles, p *whatsapptest.Person, text string) string { return p.Quotes(m.now.ID, text) }),
		"reacts": wrote(func(m *mobiles, p *whatsapptest.Person, text string) string { return p.Reacts(m.now.ID, text) }),
		"brings": with(2, brings),
		"newphone": with(1, func(ts *testscript.TestScript, m *mobiles, args []string) {
			m.person(ts, args[0]).ChangesPhone()
		}),
		"waserver": with(1, waServer),
	}
}

func startWhatsApp(ts *testscript.TestScript, m *mobiles, _ []string) {
	server, err := whatsapptest.Serve(whatsapptest.Options{})
	ts.Check(err)
	m.server, m.people = server, map[string]*whatsapptest.Person{}
	ts.Defer(func() {
		server.Close()
		for name, p := range m.people {
			for _, s := range p.Messages() {
				ts.Logf("[%s's chat] %s %s: %s %v", name, s.At.Format(time.TimeOnly), s.From, s.Text, s.Reactions)
			}
		}
		for _, v := range server.Violations() {
			ts.Logf("not as WhatsApp has it: %v", v)
		}
		if len(server.Violations()) > 0 {
			ts.Fatalf("the protocol of WhatsApp was violated")
		}
	})
	ts.Setenv("ACCOUNT", "+"+server.Number())
	ts.Setenv(whatsappAddr, server.Addr())
	ts.Setenv(whatsappRoot, whatsappRootKey())
}

// codeShown waits until an actor's output contains a code.
func codeShown(ts *testscript.TestScript, name string, code func(said string) string) string {
	a, known := cast(ts)[name]
	if !known {
		ts.Fatalf("nobody is called %s", name)
	}
	late := time.After(patience)
	for {
		a.mu.Lock()
		said, changed := string(a.said), a.changed
		a.mu.Unlock()
		if text := code(said); text != "" {
			return text
		}
		select {
		case <-changed:
		case <-late:
			ts.Fatalf("%s shows no code", name)
		}
	}
}

func scans(ts *testscript.TestScript, m *mobiles, args []string) {
	m.scan(ts, codeShown(ts, args[0], func(said string) string {
		all := drawings(said)
		if len(all) == 0 {
			return ""
		}
		text, err := readQR(all[len(all)-1])
		ts.Check(err)
		return text
	}))
}

var (
	codeAsText  = regexp.MustCompile(`(?m)^  (https://wa\.me/\S+)\n`)
	codeToEnter = regexp.MustCompile(`(?m)^  ([0-9A-Z]{4}-[0-9A-Z]{4})\n`)
)

func copiesCode(ts *testscript.TestScript, m *mobiles, args []string) {
	m.scan(ts, codeShown(ts, args[0], lastMatch(codeAsText)))
}

func lastMatch(of *regexp.Regexp) func(string) string {
	return func(said string) string {
		all := of.FindAllStringSubmatch(said, -1)
		if len(all) == 0 {
			return ""
		}
		return all[len(all)-1][1]
	}
}

func (m *mobiles) scan(ts *testscript.TestScript, code string) {
	scanned := make(chan error, 1)
	go func() {
		ctx, done := context.WithTimeout(context.Background(), patience)
		defer done()
		scanned <- m.server.Phone().Scans(ctx, code)
	}()
	shows := func() {
		if err := <-scanned; err != nil {
			ts.Logf("the phone shows: %v", err) // the script states the expected outcome
		}
	}
	if m.passkey == nil {
		shows()
	} else {
		ts.Defer(shows) // it waits for the passkey
	}
}

var askedOfBrowser = regexp.MustCompile(`parseRequestOptionsFromJSON\((\{.*?\})\)\}`)

func signs(ts *testscript.TestScript, m *mobiles, args []string) {
	answer, err := m.passkey.SignsJSON(codeShown(ts, args[0], lastMatch(askedOfBrowser)))
	ts.Check(err)
	_, err = cast(ts)[args[0]].hand.WriteString(answer + "\r")
	ts.Check(err)
}

func enters(ts *testscript.TestScript, m *mobiles, args []string) {
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	ts.Check(m.server.Phone().Types(ctx, codeShown(ts, args[0], lastMatch(codeToEnter))))
}

func hasMobile(_ *testscript.TestScript, m *mobiles, args []string) {
	m.people[args[0]] = m.server.Person(strings.TrimPrefix(args[1], "+"), args[0])
}

func (m *mobiles) person(ts *testscript.TestScript, name string) *whatsapptest.Person {
	p, known := m.people[name]
	if !known {
		ts.Fatalf("%s has no mobile", name)
	}
	return p
}

// tokensIn match the words of a message that may be written back.
var tokensIn = map[string]*regexp.Regexp{
	"CODE":  regexp.MustCompile("(?m)^`?([2-9A-HJKMNP-Z]{5})`?(?: · until [^\n]*)?\\z"),
	"GRANT": regexp.MustCompile(`/revoke ([0-9A-Z]{6})`),
}

func getsMessage(ts *testscript.TestScript, m *mobiles, args []string) {
	want, err := regexp.Compile("(?s)" + args[1])
	ts.Check(err)
	p := m.person(ts, args[0])
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	got, err := p.Gets(ctx, func(m whatsapptest.Message) bool { return want.MatchString(m.Text) })
	if err != nil {
		ts.Fatalf("%s does not get %q: %v", args[0], args[1], err)
	}
	m.now = got
	for name, within := range tokensIn {
		if found := within.FindStringSubmatch(got.Text); found != nil {
			ts.Setenv(name, found[1])
		}
	}
}

func lacksMessage(ts *testscript.TestScript, m *mobiles, args []string) {
	unwanted, err := regexp.Compile("(?s)" + args[1])
	ts.Check(err)
	for _, got := range m.person(ts, args[0]).Messages() {
		if got.From == m.server.Number() && unwanted.MatchString(got.Text) {
			ts.Fatalf("%s got: %s", args[0], got.Text)
		}
	}
}

func isMarked(ts *testscript.TestScript, m *mobiles, args []string) {
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	by := m.server.Number()
	_, err := m.person(ts, args[0]).Sees(ctx, func(s whatsapptest.Message) bool {
		return s.ID == m.wrote && s.Reactions[by] == args[1]
	})
	if err != nil {
		ts.Fatalf("what %s wrote is not marked %s: %v", args[0], args[1], err)
	}
}

func waServer(ts *testscript.TestScript, m *mobiles, args []string) {
	switch args[0] {
	case "down":
		m.server.Down()
	case "up":
		ts.Check(m.server.Up())
	case "replace":
		m.server.Replace()
	case "cut":
		m.server.StreamError(503)
	case "ban":
		m.server.RefuseLogins(1, whatsapptest.Banned(101, 2*time.Second))
	case "outdated":
		m.server.RefuseLogins(-1, whatsapptest.Outdated())
	case "newer":
		m.server.Requires(2_000_000_000)
	case "well":
		m.server.RefuseLogins(0, whatsapptest.Unavailable())
	default:
		ts.Fatalf("no such thing: %s", args[0])
	}
}

var wordsInLink = regexp.MustCompile(`https://wa\.me/\d+\?text=(\S+)`)

func brings(ts *testscript.TestScript, m *mobiles, args []string) {
	words, err := url.QueryUnescape(codeShown(ts, args[1], lastMatch(wordsInLink)))
	ts.Check(err)
	m.wrote = m.person(ts, args[0]).Says(words)
}
