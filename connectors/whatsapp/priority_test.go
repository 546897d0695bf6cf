package whatsapp

import (
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/daycared/daycared/permissions"
)

// However much a person writes, their own card comes next, and then its outcome.
func TestOnesOwnCommandsHoldUpNoCard(t *testing.T) {
	s := newEnv(t, func(s *env) { s.paced = true })
	for range 60 {
		s.phones["fay"].Says("/pending")
	}
	s.acknowledged()
	began := time.Now()
	call := s.ask(network("in between"))
	m := s.sees("fay", "in between")
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the card took %v", took)
	} else {
		t.Log(took)
	}
	began = time.Now()
	if _, err := s.Cancel(t.Context(), operator, string(s.only().ID)); err != nil {
		t.Fatal(err)
	}
	s.get(call, permissions.Cancelled)
	s.becomes("fay", m.ID, "Cancelled")
	if took := time.Since(began); took > 2*numberEvery+time.Second {
		t.Errorf("its end took %v", took)
	} else {
		t.Log(took)
	}
}

// narrow leaves no room to send to fay for a while.
func (s *env) narrow(d time.Duration) *rate.Limiter {
	l := rate.NewLimiter(rate.Every(d), 1)
	l.Allow()
	s.wa.pace.mu.Lock()
	defer s.wa.pace.mu.Unlock()
	s.wa.pace.numbers["+"+numbers["fay"]] = l
	return l
}

// only is the one request that is pending.
func (s *env) only() permissions.Request {
	s.t.Helper()
	rows, err := s.rows.Pending(s.t.Context(), "", "", 2)
	if err != nil || len(rows) != 1 {
		s.t.Fatal(rows, err)
	}
	return rows[0]
}

// A card of a request that ends while it waits for its turn is never sent, and nothing says that it was shown.
func TestACardWhoseRequestEndsBeforeItsTurnIsNotSent(t *testing.T) {
	s := newEnv(t)
	l := s.narrow(2 * time.Second)
	call := s.ask(network("too late"))
	s.until("it waits for its turn", func() bool { return l.Tokens() < -0.01 })
	if _, err := s.Cancel(t.Context(), operator, string(s.only().ID)); err != nil {
		t.Fatal(err)
	}
	r := s.get(call, permissions.Cancelled)
	var copies []permissions.Copy
	s.until("it is given up", func() bool {
		copies, _ = s.rows.Copies(t.Context(), r.ID)
		return len(copies) == 1 && (copies[0].Failed != "" || !copies[0].SentAt.IsZero() || copies[0].Shown == r.Revision)
	})
	if n := len(s.phones["fay"].Messages()); n != 0 || copies[0].Failed == "" {
		t.Errorf("%d messages were sent: %+v", n, copies)
	}
}

// A card that was named, whose request ends while WhatsApp is away, was never shown.
func TestACardWhoseRequestEndsWhileWhatsAppIsAwayWasNotShown(t *testing.T) {
	s := newEnv(t)
	call := s.away("never")
	if _, err := s.Cancel(t.Context(), operator, string(s.only().ID)); err != nil {
		t.Fatal(err)
	}
	r := s.get(call, permissions.Cancelled)
	if err := s.server.Up(); err != nil {
		t.Fatal(err)
	}
	s.until("it is given up", s.noted)
	copies, err := s.rows.Copies(t.Context(), r.ID)
	if err != nil || len(copies) != 1 || !copies[0].SentAt.IsZero() || copies[0].Failed == "" {
		t.Errorf("it is noted as %+v, %v", copies, err)
	}
}

// away asks while WhatsApp is away, and waits for the card's being named.
func (s *env) away(reason string) <-chan ended {
	s.t.Helper()
	s.server.Down()
	s.until("it is away", func() bool { return s.wa.Health() != nil })
	return s.named(network(reason))
}

// named asks, and waits for the card's being named.
func (s *env) named(q permissions.Request) <-chan ended {
	s.t.Helper()
	call := s.ask(q)
	s.until("it was named", func() bool {
		rows, err := s.rows.Pending(s.t.Context(), "", "", 1)
		if err != nil || len(rows) == 0 {
			return false
		}
		copies, err := s.rows.Copies(s.t.Context(), rows[0].ID)
		return err == nil && len(copies) == 1 && copies[0].Ref != ""
	})
	return call
}

// A card is shown when WhatsApp has it, not while it waits for its turn or WhatsApp is away.
func TestACardIsShownWhenWhatsAppHasIt(t *testing.T) {
	s := newEnv(t)
	s.away("later")
	s.narrow(2 * time.Second)
	back := s.server.Now()
	if err := s.server.Up(); err != nil {
		t.Fatal(err)
	}
	s.card("fay", "later")
	copies, err := s.rows.Copies(t.Context(), s.only().ID)
	if err != nil || len(copies) != 1 || copies[0].SentAt.Before(back) {
		t.Errorf("shown at %v, though WhatsApp was away until %v: %v", copies[0].SentAt, back, err)
	}
}
