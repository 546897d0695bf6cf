package connectors

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var (
	fay = PairingCandidate{Address: "4242", Name: "Fay"}
	eve = PairingCandidate{Address: "6666"}
)

func TestACodeWorksOnceAndForTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewInvitations(time.Now)
		ended, stop := context.WithCancel(t.Context())
		stop()
		guest := func(code string) string {
			t.Helper()
			g, err := b.AwaitCandidate(ended, code)
			if g.Address == "" && err == nil {
				t.Error("nobody came, and no error says so")
			}
			return g.Address
		}
		if got := time.Until(b.Add("a")); got != 10*time.Minute {
			t.Errorf("it works for %v", got)
		}
		if b.Take("wrong", fay) || b.Take("", fay) || guest("a") != "" {
			t.Error("a wrong code is taken")
		}
		<-time.After(10*time.Minute - 1)
		for range 2 { // it may be brought again
			if !b.Take("a", fay) {
				t.Error("it is not taken")
			}
		}
		if b.Take("a", eve) || guest("a") != fay.Address {
			t.Error("it is not the first account's, and theirs alone")
		}
		if g, came := b.End("a"); !came || g != fay {
			t.Errorf("ended with %v", g)
		}
		if _, err := b.AwaitCandidate(t.Context(), "a"); !errors.Is(err, ErrNoInvitation) || b.Take("a", fay) {
			t.Errorf("after its end: %v", err)
		}
		waited := make(chan error, 1)
		wait := func(code string) {
			b.Add(code)
			go func() { _, err := b.AwaitCandidate(t.Context(), code); waited <- err }()
			synctest.Wait()
		}
		wait("late")
		<-time.After(10 * time.Minute)
		synctest.Wait()
		if err := <-waited; !errors.Is(err, ErrNoInvitation) || b.Take("late", fay) {
			t.Errorf("after its time: %v", err)
		}
		wait("given")
		b.End("given")
		if err := <-waited; !errors.Is(err, ErrNoInvitation) {
			t.Errorf("taken back while it is waited for: %v", err)
		}
		wait("came")
		b.Take("came", fay)
		if err := <-waited; err != nil {
			t.Errorf("somebody came: %v", err)
		}
	})
}

func TestWrongCodesAreAnsweredFiveTimesADay(t *testing.T) {
	now := time.Now()
	b := NewInvitations(func() time.Time { return now })
	for i := range 7 {
		if got := b.Wrong("6666"); got != (i < maxWrong) {
			t.Errorf("the wrong code %d is answered: %v", i+1, got)
		}
	}
	if !b.Wrong("7777") {
		t.Error("somebody else is not answered")
	}
	now = now.Add(wrongLife + 1)
	if !b.Wrong("6666") {
		t.Error("the day after, it is not answered")
	}
}
