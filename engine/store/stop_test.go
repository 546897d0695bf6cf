package store

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// TestStopMany: ten thousand pending requests are cancelled in a few commits, which BenchmarkStop times: within two seconds.
func TestStopMany(t *testing.T) {
	const waiting, pages = 10_000, 20
	commits := 0
	OnPoint = func(point string, _ int) {
		if point == "group.after" {
			commits++
		}
	}
	t.Cleanup(func() { OnPoint = nil })
	s := newStore(t)
	crowd(t, s, waiting)
	commits = 0
	cancelled, err := s.Stop(t.Context(), "fay", "cli", time.Now())
	if err != nil || len(cancelled) != waiting {
		t.Fatalf("cancelled %d, %v", len(cancelled), err)
	}
	if commits != 1+pages { // the stop itself, and not a commit for each request
		t.Errorf("it took %d commits", commits)
	}
	if left, err := s.Pending(t.Context(), "", "", 1); err != nil || len(left) != 0 {
		t.Errorf("%d are left, %v", len(left), err)
	}
	heads, err := s.Verify(t.Context())
	if err != nil || heads[0].Seq != 2*waiting+1 {
		t.Errorf("the audit: %v, %v", heads, err)
	}
}

// TestNobodyReadsWhatWasBefore: as soon as somebody can have read a commit from the file, nobody gets what was before from memory.
func TestNobodyReadsWhatWasBefore(t *testing.T) {
	var meanwhile func()
	OnPoint = func(point string, _ int) {
		if point == "group.after" && meanwhile != nil {
			meanwhile()
		}
	}
	t.Cleanup(func() { OnPoint = nil })
	s := newStore(t)
	r := insert(t, s)
	read := func() permissions.State {
		t.Helper()
		now, err := s.Read(t.Context(), r.ID)
		if err != nil {
			t.Error(err)
		}
		return now.State
	}
	during := permissions.State("")
	meanwhile = func() { during = read() }
	before := read()
	if _, err := s.Apply(t.Context(), r.ID, fayAllows()); err != nil {
		t.Fatal(err)
	}
	meanwhile = nil
	if before != permissions.Pending || during != permissions.Approved || read() != permissions.Approved {
		t.Errorf("before: %s; after the commit, before anybody was told: %s; then: %s", before, during, read())
	}
}

// TestAResumeWhileAVoteIsRefused: a vote that began while everything was stopped is not refused with a row of after the stop.
func TestAResumeWhileAVoteIsRefused(t *testing.T) {
	var meanwhile func()
	OnPoint = func(point string, _ int) {
		if do := meanwhile; point == "read" && do != nil {
			meanwhile = nil
			do()
		}
	}
	t.Cleanup(func() { OnPoint = nil })
	s := newStore(t)
	r := insert(t, s)
	if _, err := s.Apply(t.Context(), r.ID, fayAllows()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stop(t.Context(), "fay", "cli", time.Now()); err != nil {
		t.Fatal(err)
	}
	meanwhile = func() {
		err := s.Resume(t.Context(), "fay", "cli", false, time.Now())
		if _, used := s.Apply(t.Context(), r.ID, permissions.Use{At: time.Now()}); err != nil || used != nil {
			t.Error(err, used)
		}
	}
	c, err := s.Apply(t.Context(), r.ID, fayAllows())
	var refusal *permissions.Refusal
	if errors.As(err, &refusal) && refusal.Code == permissions.CodeStopped || c.After.UsedAt.IsZero() {
		t.Errorf("refused with %v, and %+v", err, c.After)
	}
}

// TestStoppedWhileItCancels: asking and deciding are refused at once, even while the writing connection cancels requests.
func TestStoppedWhileItCancels(t *testing.T) {
	s := newStore(t)
	r := insert(t, s)
	said := fayAllows()
	said.Vote.Key = "telegram:7:1"
	if _, err := s.Apply(t.Context(), r.ID, said); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stop(t.Context(), "fay", "cli", time.Now()); err != nil {
		t.Fatal(err)
	}
	stopped := func(what string, err error) {
		t.Helper()
		var refusal *permissions.Refusal
		if !errors.As(err, &refusal) || refusal.Code != permissions.CodeStopped {
			t.Errorf("%s: %v", what, err)
		}
	}
	ctx, done := context.WithTimeout(t.Context(), 5*time.Second) // waiting for the turn would take that long
	defer done()
	err := s.turn(t.Context(), func(context.Context, *sql.Conn) error {
		_, _, err := s.Open(ctx, newAsk())
		stopped("a new request", err)
		for what, e := range map[string]permissions.Transition{
			"a decision": fayAllows(), "a use": permissions.Use{At: time.Now()},
		} {
			c, err := s.Apply(ctx, r.ID, e)
			stopped(what, err)
			if c.After.ID != r.ID || !c.Empty() {
				t.Errorf("%s: beside the refusal is %+v", what, c)
			}
		}
		if c, err := s.Apply(ctx, r.ID, said); err != nil || !c.Empty() {
			t.Errorf("a redelivered vote: %+v, %v", c, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Resume(t.Context(), "fay", "cli", false, time.Now()); err != nil {
		t.Fatal(err)
	}
	insert(t, s)
}

// BenchmarkStop cancels everything while others keep asking: the time until the first refusal, and the longest time of a later one.
func BenchmarkStop(b *testing.B) {
	for _, waiting := range []int{10_000, 100_000} {
		b.Run("pending-"+strconv.Itoa(waiting), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				s := newStore(b)
				crowd(b, s, waiting)
				done := make(chan error)
				b.StartTimer()
				start := time.Now()
				go func() {
					_, err := s.Stop(context.Background(), "fay", "cli", start)
					done <- err
				}()
				first, worst := refusals(s, start, done)
				b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms-to-cancel")
				b.ReportMetric(float64(first.Microseconds())/1000, "ms-to-hold")
				b.ReportMetric(float64(worst.Microseconds())/1000, "ms-refusal")
			}
		})
	}
}

// refusals asks every millisecond until a stop is done. first is the time of the first refusal, worst the longest of
// the later ones.
func refusals(s *Store, start time.Time, done <-chan error) (first, worst time.Duration) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	o := newAsk()
	for {
		select {
		case <-done:
			return first, worst
		case <-tick.C:
		}
		asked := time.Now()
		_, _, err := s.Open(context.Background(), o)
		switch {
		case err == nil:
		case first == 0:
			first = time.Since(start)
		default:
			worst = max(worst, time.Since(asked))
		}
	}
}

// While everything is stopped, nothing is allowed and no approval is used; everything else works.
func TestWhatAStopRefuses(t *testing.T) {
	for _, e := range []permissions.Transition{permissions.Cast{}, permissions.Use{}} {
		if !permissions.PreventedByStop(e) {
			t.Errorf("%T is taken", e)
		}
	}
	for _, e := range []permissions.Transition{
		permissions.Withdraw{}, permissions.Expire{}, permissions.Void{}, permissions.Leave{}, permissions.Lapse{}, permissions.Collect{},
	} {
		if permissions.PreventedByStop(e) {
			t.Errorf("%T is refused", e)
		}
	}
}
