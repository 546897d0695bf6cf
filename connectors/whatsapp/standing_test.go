package whatsapp

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/store"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/whatsapp/whatsapptest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// fay is the person as the engine knows her.
func (s *env) fay() connectors.Person { return s.settings.People[0] }

// gone checks that nobody can be reached, with a reason in words that the asker gets at once.
func (s *env) gone(why string) {
	s.t.Helper()
	s.sick(why)
	if err := s.wa.Reach(s.fay()); !errors.Is(err, connectors.ErrUnreachable) || !strings.Contains(err.Error(), why) {
		s.t.Errorf("Reach = %v; want that it is for good, since %s", err, why)
	}
	r, err := s.Ask(s.t.Context(), permissions.CallerUID(1000), network("meanwhile"))
	if err != nil || r.State != permissions.Undeliverable || !strings.Contains(r.Failure, why) {
		s.t.Errorf("asked meanwhile: %s, %q, %v; want undeliverable, since %s", r.State, r.Failure, err, why)
	}
}

// works checks that a card goes out and is answered.
func (s *env) works(reason string) {
	s.t.Helper()
	s.well()
	call, m, _ := s.asked(reason)
	s.phones["fay"].Reacts(m.ID, "👍")
	s.get(call, permissions.Approved)
}

// A device that WhatsApp removed says so until it is linked again, which is found by itself.
func TestRemoved(t *testing.T) {
	s := newEnv(t, inFile)
	for _, c := range []struct {
		name   string
		remove func()
	}{
		{"on the phone", s.server.Phone().Unlinks},
		{"at the login", func() { s.server.RefuseLogins(1, whatsapptest.LoggedOut()); s.server.Cut() }},
		{"with its phone", func() { s.server.RefuseLogins(1, whatsapptest.MainDeviceGone()); s.server.Cut() }},
		{"while the daemon was away", func() { s.stop(); s.server.Phone().Unlinks(); s.open() }},
	} {
		c.remove()
		s.gone("link it again: daycared link whatsapp")
		s.link()
		s.works("linked again, after it was removed " + c.name + ".")
	}
	s.stop()
	if err := os.Remove(filepath.Join(s.dir, "whatsapp.db")); err != nil {
		t.Fatal(err)
	}
	s.server.Phone().Unlinks()
	s.open()
	s.gone("no WhatsApp account is linked; run: daycared link whatsapp")
	s.link()
	s.works("linked while it runs.")
}

// A ban is waited for, and said with its end where that is known.
func TestABanIsWaitedFor(t *testing.T) {
	s := newEnv(t)
	s.server.RefuseLogins(1, whatsapptest.Banned(101, 2*time.Second))
	s.server.Cut()
	s.gone("bans the account for a time")
	if err := s.wa.Health(); err != nil && !strings.Contains(err.Error(), ", until ") {
		t.Errorf("%v; want until when", err)
	}
	s.works("after the ban.")
	s.server.RefuseLogins(1, whatsapptest.Banned(104, 0))
	s.server.Cut()
	s.gone("bans the account for a time")
	if err := s.wa.Health(); strings.Contains(err.Error(), "until") || !strings.Contains(err.Error(), "write less") {
		t.Errorf("%v", err)
	}
}

// A version that WhatsApp does not take any more is replaced by the one that its own client has, unless that is off.
func TestOutdated(t *testing.T) {
	was := store.GetWAVersion()
	t.Cleanup(func() { store.SetWAVersion(was) })
	s := newEnv(t)
	s.server.Requires(was[2] + 1000)
	s.server.Cut()
	s.works("with another version.")
	s.stop()
	if v := store.GetWAVersion(); v[2] != was[2]+1000 {
		t.Errorf("the version is %v", v)
	}
	s.auto = false
	s.server.Requires(was[2] + 2000)
	s.open2(t)
	s.gone("connectors.whatsapp.auto_version")
}

// open2 opens an env that does not get connected.
func (s *env) open2(t *testing.T) {
	t.Helper()
	s.unwell = true
	s.open()
	s.unwell = false
}

// Whatever ends a connection that is nobody's fault, it comes back by itself, and what is asked meanwhile arrives.
func TestAConnectionComesBack(t *testing.T) {
	s := newEnv(t)
	for name, fault := range map[string]func(){
		"cut":               s.server.Cut,
		"no service":        func() { s.server.RefuseLogins(2, whatsapptest.Unavailable()); s.server.Cut() },
		"its own mistake":   func() { s.server.RefuseLogins(2, whatsapptest.InternalError()); s.server.Cut() },
		"restarted":         func() { s.server.StreamError(503) },
		"some other error":  func() { s.server.StreamError(500) },
		"silence":           s.server.Silence,
		"nobody listens":    func() { s.server.Down(); s.sick("no connection to WhatsApp"); _ = s.server.Up() },
		"it is only waited": func() {},
	} {
		fault()
		if err := s.wa.Reach(s.fay()); err != nil {
			t.Errorf("%s: nobody can be reached: %v", name, err)
		}
		s.works("came back after: " + name + ".")
	}
	if n := s.count("fay", "came back after"); n != 8 {
		t.Errorf("fay has %d cards", n)
	}
}

// Of two programs with the same keys, WhatsApp throws out the one. It says so, and does not come back: they would throw
// each other out for ever.
func TestReplaced(t *testing.T) {
	s := newEnv(t)
	connections := func() (n int) {
		for _, z := range s.server.Stanzas() {
			n = max(n, z.Connection)
		}
		return n
	}
	before := connections()
	s.server.Replace()
	s.gone("stop the other program")
	if n := connections(); n != before {
		t.Errorf("it connected %d times more", n-before)
	}
	s.restart()
	s.works("after a restart.")
}

// One process has the account at a time. Another waits until it is free.
func TestOneProcessHasTheAccount(t *testing.T) {
	t.Run("D8/one process has the account", func(t *testing.T) {
		s := newEnv(t, inFile)
		path := filepath.Join(s.dir, "whatsapp.db")
		log := debugLog{slog.New(slog.DiscardHandler)}
		if _, err := openFile(t.Context(), path, log); !errors.Is(err, ErrInUse) {
			t.Errorf("opened beside the daemon: %v", err)
		}
		if _, err := Link(soon(t), Linking{Path: path, HTTP: s.server.Client(), Log: log.log}, &hand{t: t}); !errors.Is(err, ErrInUse) {
			t.Errorf("linked beside the daemon: %v", err)
		}
		for _, name := range []string{path, path + "-wal", path + ".lock"} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v; want it for its owner alone", name, info, err)
			}
		}
		s.stop()
		a, err := openFile(t.Context(), path, log)
		if err != nil {
			t.Fatal(err)
		}
		s.open2(t)
		s.sick("another process has the WhatsApp account open")
		if err := s.wa.Reach(s.fay()); err != nil {
			t.Errorf("it is for now: %v", err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		s.works("once it is free.")
	})
}

// A file that cannot be used is said.
func TestABrokenFile(t *testing.T) {
	s := newEnv(t, inFile)
	s.stop()
	path := filepath.Join(s.dir, "whatsapp.db")
	if err := os.WriteFile(path, []byte("this is no database, though it is long enough to be looked at"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.open2(t)
	s.sick("the WhatsApp account cannot be used: open the WhatsApp account in " + path)
	if _, err := openFile(t.Context(), filepath.Join(s.dir, "no", "folder"), debugLog{slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("an account in no folder was opened")
	}
}

// The asker is told who cannot be written to at WhatsApp, and what to do.
func TestWhoCannotBeWrittenTo(t *testing.T) {
	s := newEnv(t, func(s *env) { s.settings.Routes = []engine.Route{{Ask: []string{"sam"}}} })
	undeliverable := func(why string) {
		t.Helper()
		if r := s.get(s.ask(network(why)), permissions.Undeliverable); !strings.Contains(r.Failure, why) {
			t.Errorf("undeliverable, since %q; want %q", r.Failure, why)
		}
	}
	s.server.RefuseColdContacts()
	undeliverable("sends the linked number any message")
	tried := len(s.server.Stanzas())
	undeliverable("sends the linked number any message")
	for _, n := range s.server.Stanzas()[tried:] {
		if n.Is("message", "") {
			t.Error("it was tried again, for which accounts are banned")
		}
	}
	if err := s.Health()[Name]; err == nil || !strings.Contains(err.Error(), "sam sends the linked number any message") {
		t.Errorf("health is %v", err)
	}
	s.phones["sam"].Says("hello")
	s.acknowledged()
	call := s.ask(network("sam wrote first."))
	_, code := s.card("sam", "sam wrote first.")
	s.phones["sam"].Says("no " + code)
	s.get(call, permissions.Denied)

	s.server.Timelocks(s.server.Now().Add(time.Hour))
	s.sick("can only answer people who wrote first")
	s.server.Timelocks(time.Time{})
	s.well()

	s.server.Person("491700000444", "kim")
	for _, p := range []connectors.Person{
		{Name: "kim", Addresses: map[string]string{Name: "+491700000555"}},
		{Name: "kim"},
		{Name: "kim", Addresses: map[string]string{Name: "+491700000444"}, Suspended: []string{Name}},
	} {
		_, err := s.wa.Send(t.Context(), connectors.Prompt{To: p, Code: "K7F3Q", Ref: "elsewhere"})
		if !errors.Is(err, connectors.ErrUnreachable) || strings.Contains(err.Error(), "49170") {
			t.Errorf("to %+v: %v", p, err)
		}
	}
	if err := s.wa.Edit(t.Context(), "elsewhere", connectors.Prompt{}); !errors.Is(err, connectors.ErrUnreachable) {
		t.Errorf("edit of a message elsewhere: %v", err)
	}
}

// An account that is not the one of the configuration is not served, however it came to be linked.
func TestAnotherAccountIsNotServed(t *testing.T) {
	s := newEnv(t)
	s.stop()
	s.number = "+4915112345678"
	s.open2(t)
	s.sick("not the one that connectors.whatsapp.phone names")
	if err := s.wa.Reach(s.fay()); !errors.Is(err, connectors.ErrUnreachable) {
		t.Errorf("somebody can be reached: %v", err)
	}
	s.stop()
	s.number = "+" + s.server.Number()
	s.open()
}

// A time that is told to nobody in particular has a zone, whichever the daemon's is.
func TestTimesOfTheAccountHaveAZone(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.FixedZone("east", 2*60*60))
	s := newState(func() time.Time { return noon })
	for _, c := range []struct {
		is   connectionState
		want string
	}{{isConnected, "until 21 Nov 11:00 UTC:"}, {isBanned, ", until 21 Nov 11:00 UTC;"}} {
		s.is, s.timely, s.until = c.is, noon.Add(time.Hour), noon.Add(time.Hour)
		if err := s.Health(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("it says %v, want %q", err, c.want)
		}
	}
}

// What the account's state says on a settled card is in the reader's language, whatever the state.
func TestWhyTheAccountReachesNobodyIsTranslated(t *testing.T) {
	until := time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)
	for _, s := range []*state{
		{is: isUnlinked}, {is: isLoggedOut, why: "unknown"}, {is: isBanned, why: "spam"}, {is: isBanned, why: "spam", until: until},
		{is: isReplaced}, {is: isOutdated}, {is: isRefused, why: "unknown"}, {is: isOther},
	} {
		why := s.whyUnusable().Error()
		r := permissions.Request{Kind: permissions.KindPermission, State: permissions.Undeliverable, Failure: why + "; fay is a bot"}
		said := card.Outcome(r, card.Options{Language: "de"}).Text
		if strings.Contains(said, why) || !strings.HasSuffix(said, "; fay ist ein Bot") {
			t.Errorf("in German: %s", said)
		}
	}
	changed := New(Options{Now: time.Now}, nil).Reach(connectors.Person{Name: "fay", Suspended: []string{Name}}).Error()
	r := permissions.Request{Kind: permissions.KindPermission, State: permissions.Undeliverable, Failure: changed}
	if said := card.Outcome(r, card.Options{Language: "de"}).Text; !strings.Contains(said, "neue Schlüssel") {
		t.Errorf("in German: %s", said)
	}
}
