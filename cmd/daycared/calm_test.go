package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/permissions"
)

// During an outage of the store its cause is logged once, then one line per minute with the number of further failures, and its
// end. Other failures are logged as usual.
func TestTheLogSaysOnceThatTheStoreCannotBeUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		o := &outage{}
		log := slog.New(repeatFilter{slog.NewTextHandler(&text, nil), o}).With("part", "x")
		broken := fmt.Errorf("write: %w: disk full", permissions.ErrBroken)
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		state := broken
		go func() {
			defer close(over)
			o.watch(ctx, log, func(context.Context) error { return state })
		}()
		lines := func() []string {
			all := strings.Split(strings.TrimSpace(text.String()), "\n")
			text.Reset()
			return all
		}
		for range 1000 {
			log.Error("a request is not up to date", "err", broken)
			log.Info("decision refused", "err", permissions.Broken("disk full"))
		}
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], "disk full") {
			t.Errorf("at first: %q", got)
		}
		log.Error("no network", "err", errors.New("no network"))
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], "no network") {
			t.Errorf("another fault: %q", got)
		}
		<-time.After(90 * time.Second)
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], "more_failures=1999") {
			t.Errorf("after a minute: %q", got)
		}
		state = nil
		<-time.After(2 * time.Second)
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], "store available again") {
			t.Errorf("at the end: %q", got)
		}
		log.Error("once more", "err", broken)
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], "once more") {
			t.Errorf("the next time: %q", got)
		}
		stop()
		<-over
	})
}

// One row that cannot be read is no outage: it hides no other line, and nothing says that the store is available again.
func TestARowThatCannotBeReadIsNoOutage(t *testing.T) {
	row := &store.Error{What: "request x is damaged", Row: true}
	for _, err := range []error{row, permissions.Unreadable(row)} {
		var text bytes.Buffer
		o := &outage{}
		log := slog.New(repeatFilter{slog.NewTextHandler(&text, nil), o})
		log.Error("first", "err", err)
		log.Error("second", "err", err)
		if got := text.String(); !strings.Contains(got, "second") || !o.since.IsZero() {
			t.Errorf("%v, an outage since %s: %q", err, o.since, got)
		}
	}
}

// An operation that ends because the daemon stops, or because its caller left, is not logged as an error.
func TestWhatIsCancelledIsNoFault(t *testing.T) {
	for level, want := range map[slog.Level]bool{slog.LevelInfo: false, slog.LevelDebug: true} {
		var text bytes.Buffer
		log := slog.New(repeatFilter{slog.NewTextHandler(&text, &slog.HandlerOptions{Level: level}), &outage{}})
		log.Error("sessions cannot be listed just now", "err", fmt.Errorf("read: %w", context.Canceled))
		if got := text.String(); strings.Contains(got, "ERROR") || strings.Contains(got, "DEBUG") != want {
			t.Errorf("at %s: %q", level, got)
		}
	}
}

// A log line without an error has no err key.
func TestTheLogNamesNoErrorWhereThereIsNone(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: withoutNil}))
	log.Warn("everything was stopped", "by", "fay", "err", error(nil))
	log.Warn("everything was stopped", "by", "fay", "err", errors.New("disk full"))
	if got := text.String(); strings.Contains(got, "nil") || strings.Count(got, "by=fay") != 2 || !strings.Contains(got, `err="disk full"`) {
		t.Errorf("%s", got)
	}
}
