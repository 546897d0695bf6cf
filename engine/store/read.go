package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
)

// read runs do on one consistent snapshot.
func (s *Store) read(ctx context.Context, do func(source) error) error {
	if err := s.checkPathsLately(ctx); err != nil {
		return err
	}
	conn, err := s.readers.Conn(ctx)
	if err != nil {
		return s.fault(ctx, err)
	}
	defer func() { _ = conn.Close() }() // only returns it to the pool
	passed("read", 1)
	if _, err := conn.ExecContext(unlessOver(ctx), "BEGIN"); err != nil {
		return s.fault(ctx, err)
	}
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") }() // nothing to commit
	return s.explain(ctx, do(view{conn}))
}

// view is a reading connection. It checks the context between queries only: interruptible queries need a goroutine
// each, which costs more than the query.
type view struct{ conn *sql.Conn }

// QueryContext is that of [sql.Conn] without the cancellation.
func (v view) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	return v.conn.QueryContext(unlessOver(ctx), text, args...)
}

// QueryRowContext is that of [sql.Conn] without the cancellation.
func (v view) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	return v.conn.QueryRowContext(unlessOver(ctx), text, args...)
}

// eachRow is [eachRow] without database/sql, which takes longer for a row than SQLite. The fields are those of [exactFields].
func (v view) eachRow(ctx context.Context, take func(scan func(into ...any) error) error, text string, args ...any) error {
	named := make([]driver.NamedValue, len(args))
	values, err := driverArgs(args)
	for i, value := range values {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: value}
	}
	if err != nil {
		return err
	}
	return v.conn.Raw(func(c any) (err error) {
		rows, err := c.(driver.QueryerContext).QueryContext(unlessOver(ctx), text, named) //nolint:errcheck // our driver's
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		row := make([]driver.Value, len(rows.Columns()))
		scan := func(into ...any) error { return scanRow(into, row) }
		for {
			if err := rows.Next(row); err != nil {
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			}
			if err := take(scan); err != nil {
				return err
			}
		}
	})
}

// scanRow sets [exactFields] to the values of a row.
func scanRow(into []any, row []driver.Value) (err error) {
	for i, field := range into {
		switch field := field.(type) {
		case exact:
			err = field.Scan(row[i])
		case sql.Scanner:
			err = field.Scan(row[i])
		case *any:
			*field = row[i]
		case *[]byte:
			switch v := row[i].(type) {
			case []byte:
				*field = v
			case string:
				*field = []byte(v)
			case nil:
				*field = nil
			default:
				err = fmt.Errorf("bytes were expected, not %v of %T", v, v)
			}
		case **int:
			*field = nil
			if row[i] != nil {
				*field = new(int)
				err = exact{*field}.Scan(row[i])
			}
		}
		if err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return nil
}

// unlessOver returns ctx without its cancellation, unless it has ended already.
func unlessOver(ctx context.Context) context.Context {
	if ctx.Err() != nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
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
			s.log.Error("unreadable row skipped", "err", err)
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
	err = s.read(ctx, func(from source) error { return orNone(from.QueryRowContext(ctx, query, args...).Scan(&word)) })
	return word, err
}

// logUnsealed logs once that a row is not used.
func (s *Store) logUnsealed(row string) {
	if _, told := s.unsealed.LoadOrStore(row, true); !told {
		s.log.Error("unsealed row ignored", "err", unsealed(row))
	}
}

// countUnsealed is the number of unused rows.
func (s *Store) countUnsealed() (n int) {
	s.unsealed.Range(func(any, any) bool { n++; return true })
	return n
}
