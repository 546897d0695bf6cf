package engine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Events come in the order of commits, each to those whom they concern.
func TestWhatHappensIsToldToThoseWhomItConcerns(t *testing.T) {
	f, s, k := phones()
	st := newEnv(t, usual(), f, s, k)
	changed := st.Changed()
	call := st.ask(t.Context(), network("x"))
	f.must(t, st.shown(f.Memory, 1).Request.ID, permissions.Deny)
	st.get(call)
	<-changed
	atFay, atSam := connectors.Identity{Via: "cli", UID: fay.UID}, connectors.Identity{Via: "cli", UID: sam.UID}
	all, seen, err := st.Events(t.Context(), boss, 0, 100)
	if err != nil || len(all) < 2 || seen != all[len(all)-1].Seq || all[0].Type != permissions.RequestCreated {
		t.Fatalf("the operator sees %v up to %d, %v", all, seen, err)
	}
	for i := 1; i < len(all); i++ {
		if all[i].Seq <= all[i-1].Seq {
			t.Errorf("%d comes after %d", all[i].Seq, all[i-1].Seq)
		}
	}
	if mine, _, err := st.Events(t.Context(), atFay, 0, 100); err != nil || len(mine) != len(all) {
		t.Errorf("fay sees %d of %d, %v", len(mine), len(all), err)
	}
	if none, at, err := st.Events(t.Context(), atSam, 0, 100); err != nil || len(none) != 0 || at != seen {
		t.Errorf("sam, who was not asked, sees %v up to %d, %v", none, at, err)
	}
	if later, at, err := st.Events(t.Context(), boss, seen, 100); err != nil || len(later) != 0 || at != seen {
		t.Errorf("afterwards there is %v up to %d, %v", later, at, err)
	}
	_, _, err = st.Events(t.Context(), connectors.Identity{Via: "cli", UID: 4242}, 0, 1)
	refused(t, err, permissions.CodeNotYours)
}

func TestPersonOfAnAccount(t *testing.T) {
	st := newEnv(t, usual(), newPhone(fay, "fays-phone"))
	if p, err := st.Person(connectors.Identity{Via: "cli", UID: fay.UID}); err != nil || p.Name != "fay" {
		t.Errorf("%+v, %v", p, err)
	}
	_, err := st.Person(connectors.Identity{Via: "cli", UID: 4242})
	refused(t, err, permissions.CodeNotYours)
}

// ill is a channel that reports a problem.
type ill struct{ *phone }

func (ill) Health() error { return errors.New("logged out; link it again") }

func TestHowTheChannelsAre(t *testing.T) {
	st := newEnv(t, usual(), ill{newPhone(fay, "whatsapp")}, newPhone(fay, "fays-phone"))
	if h := st.Health(); len(h) != 1 || h["whatsapp"] == nil {
		t.Errorf("%v", h)
	}
}

// A start knows the downtime.
func TestForHowLongNobodyRan(t *testing.T) {
	st := newEnv(t, usual(), newPhone(fay, "fays-phone"))
	if st.Downtime() != 0 {
		t.Errorf("at the very first start: %s", st.Downtime())
	}
	st.stop()
	st.advance(10 * time.Minute)
	st.people = []connectors.Connector{newPhone(fay, "fays-phone")}
	st.open()
	if a := st.Downtime(); a < 9*time.Minute || a > 11*time.Minute {
		t.Errorf("after ten minutes: %s", a)
	}
}

// contactChannel is a channel that has had no contact for a while.
type contactChannel struct {
	*phone
	until func(stops bool) time.Time
}

func (h contactChannel) ReceivedUntil(stops bool) time.Time { return h.until(stops) }

// A daemon that dies in an outage leaves a record of its start.
func TestTheStartOfAnOutageIsNoted(t *testing.T) {
	var contact, known time.Time
	h := contactChannel{newPhone(fay, "fays-phone"), func(stops bool) time.Time {
		if stops { // as if it were killed
			return time.Time{}
		}
		return contact
	}}
	st := newEnv(t, usual(), h)
	contact = st.now().Add(-5 * time.Minute)
	st.eventually("it is noted", func() (is bool) {
		var err error
		known, err = st.rows.Heartbeat(t.Context(), time.Time{})
		return err == nil && !known.IsZero()
	})
	if known.Sub(contact).Abs() > time.Second {
		t.Errorf("nothing was heard since %s, and it says %s", contact, known)
	}
	st.stop()
	st.people = []connectors.Connector{contactChannel{newPhone(fay, "fays-phone"), h.until}}
	st.open()
	if a := st.Downtime(); a < 5*time.Minute || a > 6*time.Minute {
		t.Errorf("away for %s", a)
	}
}

// A press on a prompt whose sending was not recorded, as by a killed daemon, reveals the message id.
func TestAPressSaysWhereTheCardIs(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	f.FailSend(-1, errors.New("the reply is lost"))
	st := newEnv(t, usual(), f)
	call := st.ask(t.Context(), network("x"))
	id := st.pending(1)[0].ID
	copies, err := st.rows.Copies(t.Context(), id)
	if err != nil || len(copies) != 1 || copies[0].Ref != "" {
		t.Fatalf("%v, %v", copies, err)
	}
	button := "1-" + copies[0].Button
	if _, err := f.Do(t.Context(), connectors.Decision{Button: button, Ref: "m-7", Answer: allow()}); err != nil {
		t.Fatal(err)
	}
	if r := st.get(call); r.State != permissions.Approved {
		t.Error(r.State)
	}
	if copies, err = st.rows.Copies(t.Context(), id); err != nil || copies[0].Ref != "m-7" {
		t.Errorf("the copy is at %q, %v", copies[0].Ref, err)
	}
}

// An approval is not handed out if its file has become the daemon's own since.
func TestAnApprovalOfWhatIsTheDaemonsOwnByNow(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, usual(), f)
	q := tagged("", "@write:/srv/www")
	q.Key = "k"
	f.must(t, func() permissions.ID {
		st.ask(t.Context(), q)
		return st.shown(f.Memory, 1).Request.ID
	}(), allow())
	own := usual()
	own.Own = []string{"/srv/www/daycared"}
	st.Configure(own)
	_, err := st.askAndLeave(self, q)
	refused(t, err, permissions.CodeOwnFiles)
}
