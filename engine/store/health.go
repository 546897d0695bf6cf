package store

import (
	"context"
	"fmt"
	"os"
	"time"
)

const (
	beat     = `UPDATE meta SET beat = beat + 1 RETURNING beat`
	readBeat = `SELECT beat FROM meta`
)

// Health writes and reads something small. Its error matches [permissions.ErrBroken] and says what to do.
func (s *Store) Health(ctx context.Context) error {
	var written, read int64
	err := s.write(ctx, func(ctx context.Context, t *tx) error { return t.returning(ctx, beat).Scan(&written) })
	if err != nil {
		return err
	}
	err = s.read(ctx, func(from source) error { return from.QueryRowContext(ctx, readBeat).Scan(&read) })
	if err != nil {
		return err
	}
	if read < written {
		return damaged("the health check", fmt.Errorf("wrote %d, read %d", written, read))
	}
	return nil
}

const (
	readPulse = `SELECT alive_at FROM meta`
	pulse     = `UPDATE meta SET alive_at = $1`
)

// Pulse notes that the daemon runs, and returns when it last did so: zero for never. It brings the mark up to date.
func (s *Store) Pulse(ctx context.Context, at time.Time) (last time.Time, err error) {
	var h head
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		h = t.head
		if err := t.QueryRowContext(ctx, readPulse).Scan(instant{&last}); err != nil {
			return err
		}
		_, err := t.ExecContext(ctx, pulse, micros(at))
		return err
	})
	if err == nil {
		s.noteMark(h)
	}
	return last, err
}

// placed is nil as long as the store's path leads to the file that is open. One that was deleted, moved or replaced can
// be written without an error, but what is written there is lost with the next start; and a connection that is opened
// later would read another file.
func (s *Store) placed() error {
	found, err := os.Stat(s.path)
	switch {
	case err != nil:
		return &Error{
			What: fmt.Sprintf("the store %s is no longer there (%v)", s.path, cause(err)), Err: err,
			Advice: "stop daycared, put the file or a backup back in its place, and start it again",
		}
	case !os.SameFile(found, s.file):
		return &Error{
			What:   fmt.Sprintf("the store %s was replaced by another file while it was open", s.path),
			Advice: "stop daycared, see to it that the right file is in its place, and start it again",
		}
	}
	return nil
}
