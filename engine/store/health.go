package store

import (
	"context"
	"fmt"
)

const (
	beat     = `UPDATE meta SET beat = beat + 1 RETURNING beat`
	readBeat = `SELECT beat FROM meta`
)

// Health writes and reads something small. Its error matches [permissions.ErrBroken] and says what to do.
func (s *Store) Health(ctx context.Context) error {
	var written, read int64
	err := s.write(ctx, func(ctx context.Context, t *tx) error { return t.QueryRowContext(ctx, beat).Scan(&written) })
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
