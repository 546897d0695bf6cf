package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
)

// read runs do on one consistent snapshot.
func (s *Store) read(ctx context.Context, do func(source) error) error {
	if err := s.checkPathsLately(ctx); err != nil {
		return err
	}
	conn, err := s.readers.Conn(ctx)
	if err != nil { // the file may have gone since it was looked for
		return cmp.Or(s.checkPaths(), s.fault(ctx, err))
	}
	ends := func() {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") // nothing to commit
		_ = conn.Close()                                                // only returns it to the pool
	}
	defer func() {
		if s.server != nil { // nobody has to wait for its answer
			go ends()
			return
		}
		ends()
	}()
	reachPoint("read", 1)
	if err := s.beginRead(ctx, conn); err != nil {
		return s.fault(ctx, err)
	}
	return s.explain(ctx, do(view{conn}))
}

func (s *Store) beginRead(ctx context.Context, conn *sql.Conn) error {
	if s.server != nil {
		return sendFirst(conn, []statement{{text: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"}})
	}
	_, err := conn.ExecContext(withoutCancel(ctx), "BEGIN")
	return err
}

// reading is [Store.read] of one value.
func reading[T any](ctx context.Context, s *Store, do func(source) (T, error)) (v T, err error) {
	err = s.read(ctx, func(from source) error {
		v, err = do(from)
		return err
	})
	return v, err
}

// collectReadable is [collect] without the unreadable rows, each of which is logged once: they do not block the others.
func collectReadable[T any](
	ctx context.Context, s *Store, from source, what string, fields func(*T) []any, text string, args ...any,
) ([]T, error) {
	return drain(ctx, from, fields, func(err error) (skip bool, _ error) {
		var row *Error
		if err = unreadable(what, err); !errors.As(err, &row) {
			return false, err
		}
		if _, told := s.unsealed.LoadOrStore(err.Error(), true); !told {
			s.log.Error("unreadable row skipped", "err", s.advised(err))
		}
		return true, nil
	}, text, args...)
}

// gather is [collectReadable] in its own read transaction.
func gather[T any](ctx context.Context, s *Store, what string, fields func(*T) []any, text string, args ...any) ([]T, error) {
	return reading(ctx, s, func(from source) ([]T, error) {
		return collectReadable(ctx, s, from, what, fields, text, args...)
	})
}

// whole is [collect] in its own read transaction: a missing row is an error.
func whole[T any](ctx context.Context, s *Store, what string, fields func(*T) []any, text string, args ...any) ([]T, error) {
	return reading(ctx, s, func(from source) ([]T, error) { return collect(ctx, from, what, fields, text, args...) })
}

// readText reads one text, empty if there is no row.
func (s *Store) readText(ctx context.Context, query string, args ...any) (word string, err error) {
	err = s.read(ctx, func(from source) error { return ignoreNoRows(from.QueryRowContext(ctx, query, args...).Scan(&word)) })
	return word, err
}

// logUnsealed logs once that a row is not used.
func (s *Store) logUnsealed(row string) {
	if _, told := s.unsealed.LoadOrStore(row, true); !told {
		s.log.Error("unsealed row ignored", "err", s.advised(unsealed(row)))
	}
}

// countUnsealed is the number of unused rows.
func (s *Store) countUnsealed() (n int) {
	s.unsealed.Range(func(any, any) bool { n++; return true })
	return n
}
