package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/daycared/daycared/permissions"
)

// TestWhatWasCutShortIsNotInMemory: a goroutine that exits in the middle of a group leaves no uncommitted row in the
// cache, so that no other row gets its changes.
func TestWhatWasCutShortIsNotInMemory(t *testing.T) {
	s := newStore(t)
	never := newAsk()
	grouped(t, s,
		func() error { _, _, err := s.Open(t.Context(), never); return err },
		func() error {
			return s.write(t.Context(), func(context.Context, *tx) error { runtime.Goexit(); return nil })
		},
	)
	other := insert(t, s) // has the number that the first would have got
	var refusal *permissions.Refusal
	c, err := s.Apply(t.Context(), never.Request.ID, permissions.Withdraw{By: "fay", At: time.Now()})
	if !errors.As(err, &refusal) || refusal.Code != permissions.CodeUnknown {
		t.Errorf("withdrawn: %+v, %v", c.After, err)
	}
	if got, err := s.Read(t.Context(), other.ID); err != nil || got.State != permissions.Pending {
		t.Errorf("the other is %s, %v", got.State, err)
	}
}

// TestARowOfAnotherIDIsNotChanged, whatever number is assumed for it.
func TestARowOfAnotherIDIsNotChanged(t *testing.T) {
	s := newStore(t)
	r := insert(t, s)
	imagined := r
	imagined.ID = permissions.NewID(time.Now())
	s.rows.commit(&changes{own: map[permissions.ID]*cachedRow{imagined.ID: {Request: imagined}}})
	if _, err := s.Apply(t.Context(), imagined.ID, permissions.Withdraw{By: "fay", At: time.Now()}); !errors.Is(err, permissions.ErrBroken) {
		t.Errorf("withdrawn: %v", err)
	}
	if got, err := s.Read(t.Context(), r.ID); err != nil || got.State != permissions.Pending {
		t.Errorf("it is %s, %v", got.State, err)
	}
}

// TestWhatSomebodyElseWroteIsSeen by the next write, although no other program should write the file; the audit
// continues at its new end.
func TestWhatSomebodyElseWroteIsSeen(t *testing.T) {
	s := newStore(t)
	r := insert(t, s)
	if _, err := s.Apply(t.Context(), r.ID, fayAllows()); err != nil {
		t.Fatal(err)
	}
	other := connect(s.path, time.Second, 1, "")
	defer func() { _ = other.Close() }()
	exec(t, other, "UPDATE requests SET void_at = 1, key_live = FALSE")
	Reseal(t, s)
	if _, err := s.Apply(t.Context(), r.ID, permissions.Use{At: time.Now()}); !errors.Is(err, permissions.ErrNoUse) {
		t.Errorf("use of an approval that somebody else had taken back: %v", err)
	}
	exec(t, other, "UPDATE meta SET stopped_by = 'sam'")
	Reseal(t, s)
	var refusal *permissions.Refusal
	if _, _, err := s.Open(t.Context(), newAsk()); !errors.As(err, &refusal) || refusal.Code != permissions.CodeStopped {
		t.Errorf("asked while everything is stopped: %v", err)
	}
}

// TestADenialAfterNoneIsSeen: that nothing of a caller's was denied is known only until something is.
func TestADenialAfterNoneIsSeen(t *testing.T) {
	s := newStore(t)
	since := time.Now().Add(-time.Hour)
	r, other := insert(t, s), insert(t, s)
	count := func(want int) {
		t.Helper()
		for range 2 {
			if all, err := s.Unheeded(t.Context(), r.Caller.Name, since); err != nil || len(all) != want {
				t.Errorf("%d denied, %v; want %d", len(all), err, want)
			}
		}
	}
	count(0)
	if _, err := s.Apply(t.Context(), r.ID, permissions.Expire{At: r.Deadline}); err != nil {
		t.Fatal(err)
	}
	count(1)
	s.forget() // as after a write by somebody else
	if _, err := s.Apply(t.Context(), other.ID, permissions.Expire{At: other.Deadline}); err != nil {
		t.Fatal(err)
	}
	count(2)
}

// TestWhatIsLongIsNotKeptInMemory: a request that shows a whole file is read again when needed.
func TestWhatIsLongIsNotKeptInMemory(t *testing.T) {
	s := newStore(t)
	long, calls, short := newAsk(), newAsk(), newAsk()
	long.Request.Details = strings.Repeat("x", maxText)
	calls.Request.Calls = []permissions.Call{{N: 1, Tool: "shell", Input: []byte(`"` + strings.Repeat("x", maxText) + `"`)}}
	for _, o := range []permissions.Opening{long, calls, short} {
		o.Request.Digest = permissions.ComputeDigest(o.Request)
		r, _, err := s.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if kept := s.rows.lru.Contains(r.ID); kept != (r.ID == short.Request.ID) {
			t.Errorf("one with %d characters is kept: %t", textLength(r), kept)
		}
	}
	if c, err := s.Apply(t.Context(), long.Request.ID, fayAllows()); err != nil || c.After.Details != long.Request.Details {
		t.Errorf("%d characters, %v", len(c.After.Details), err)
	}
	comment := fayAllows()
	comment.Vote.Comment = strings.Repeat("x", maxText)
	if _, err := s.Apply(t.Context(), short.Request.ID, comment); err != nil || s.rows.lru.Contains(short.Request.ID) {
		t.Errorf("one that became long is still kept, %v", err)
	}
}

// panicking is a log that cannot be written.
type panicking struct{ slog.Handler }

func (panicking) Handle(context.Context, slog.Record) error { panic("the log") }

// TestAPanicWhileWritesGoApart: those still waiting get the error that nothing was written.
func TestAPanicWhileWritesGoApart(t *testing.T) {
	s := newStore(t)
	s.log = slog.New(panicking{slog.NewTextHandler(t.Output(), nil)})
	caught := func(do func() error) func() error {
		return func() (err error) {
			defer func() {
				if fault := recover(); fault != nil {
					err = fmt.Errorf("it panicked: %v", fault)
				}
			}()
			return do()
		}
	}
	runs := 0
	errs := grouped(t, s,
		caught(func() error { return s.exec(t.Context(), "UPDATE meta SET strangers = strangers + 1", nil) }),
		caught(func() error {
			return s.write(t.Context(), func(ctx context.Context, t *tx) error {
				if runs++; runs == 2 {
					return sqlite3.Error{Code: sqlite3.ErrCorrupt} // it is logged
				}
				_, err := t.ExecContext(ctx, "UPDATE meta SET strangers = strangers + 1")
				return errors.Join(err, errors.New("refused"))
			})
		}),
		caught(func() error { _, _, err := s.Open(t.Context(), newAsk()); return err }),
	)
	if errs[0] == nil || errs[1] == nil || !errors.Is(errs[2], errWriteAborted) {
		t.Errorf("%v", errs)
	}
}

// TestARequestIsReadByItsShapeAsByItsColumns: beside others of its shape, whatever one of its columns holds.
func TestARequestIsReadByItsShapeAsByItsColumns(t *testing.T) {
	s := newStore(t)
	for range 3 {
		r := insert(t, s)
		if _, err := s.Apply(t.Context(), r.ID, fayAllows()); err != nil {
			t.Fatal(err)
		}
	}
	p, err := newSealedPages(t.Context(), s.readers)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.read(t.Context(), s.readers); err != nil || len(p.shapes) != 1 {
		t.Fatal(err, len(p.shapes))
	}
	columns, _, _ := strings.Cut(strings.TrimPrefix(readSealed, "SELECT "), ", CASE WHEN")
	for column := range strings.SplitSeq(columns+", reason, mac", ", ") {
		for _, value := range []string{column + " || 'x'", "CAST(" + column + " AS BLOB)", "1.5", "'[]'"} {
			tx, err := s.writer.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, refused := tx.Exec(`UPDATE requests SET ` + column + ` = ` + value + ` WHERE number = 2`)
			want, err := collect(t.Context(), tx, "", p.fields, p.text, p.from, sealedPage)
			got, failed := p.read(t.Context(), tx)
			if err = errors.Join(err, failed, tx.Rollback()); err != nil || len(got) != len(want) {
				t.Fatal(err, len(got), len(want))
			}
			for i := range got {
				if refused == nil && !reflect.DeepEqual(got[i].sealedRow, want[i]) {
					t.Errorf("%s = %s: request %d is read as %+v, not as %+v", column, value, i, got[i].sealedRow, want[i])
				}
			}
		}
	}
}
