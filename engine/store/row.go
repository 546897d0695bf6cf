package store

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// source is what rows can be read from.
type source interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row
}

type execer interface {
	source
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
}

// view is a reading connection. It checks the context between queries only: interruptible queries need a goroutine
// each, which costs more than the query.
type view struct{ conn *sql.Conn }

// QueryContext is that of [sql.Conn] without the cancellation.
func (v view) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	return v.conn.QueryContext(withoutCancel(ctx), text, args...)
}

// QueryRowContext is that of [sql.Conn] without the cancellation.
func (v view) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	return v.conn.QueryRowContext(withoutCancel(ctx), text, args...)
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
		rows, err := c.(driver.QueryerContext).QueryContext(withoutCancel(ctx), text, named) //nolint:errcheck // our driver's
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
		default:
			err = fmt.Errorf("nothing is read into %T", field)
		}
		if err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return nil
}

// withoutCancel returns ctx without its cancellation, unless it has ended already.
func withoutCancel(ctx context.Context) context.Context {
	if ctx.Err() != nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// sealedRow is a row as it was read, with its seal.
type sealedRow[T any] struct {
	row T
	mac []byte
}

// collect reads every row that a query finds, none after an error. With an empty what, an unreadable row yields the
// columns before the unreadable one, and so no seal, which is the last column.
func collect[T any](ctx context.Context, from source, what string, fields func(*T) []any, text string, args ...any) ([]T, error) {
	return drain(ctx, from, fields, func(err error) (skip bool, _ error) {
		if what == "" {
			return false, nil
		}
		return false, unreadable(what, err)
	}, text, args...)
}

// firstRow reads the first row that a query finds; found is false if there is none.
func firstRow[T any](
	ctx context.Context, from source, what string, fields func(*T) []any, text string, args ...any,
) (row T, found bool, err error) {
	err = from.QueryRowContext(ctx, text, args...).Scan(exactFields(fields(&row))...)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return row, false, nil
	case err != nil:
		return row, false, unreadable(what, err)
	}
	return row, true, nil
}

// value is the only column of a row that is no more than that.
func value[T any](v *T) []any { return []any{v} }

// count reads a number, or 1 for what is true.
func count(ctx context.Context, from source, query string, args ...any) (int, error) {
	var v any
	err := from.QueryRowContext(ctx, query, args...).Scan(&v)
	switch v := v.(type) {
	case bool:
		if v {
			return 1, err
		}
		return 0, err
	case int64:
		return int(v), err
	case nil:
		return 0, cmp.Or(err, errors.New("a number was expected, not NULL"))
	}
	return 0, fmt.Errorf("a number was expected, not %v of %T", v, v)
}

func drain[T any](
	ctx context.Context, from source, fields func(*T) []any, bad func(error) (skip bool, err error), text string, args ...any,
) (all []T, err error) {
	var item T
	into := exactFields(fields(&item))
	take := func(scan func(...any) error) error {
		item = *new(T)
		if err := scan(into...); err != nil {
			skip, err := bad(err)
			if err != nil || skip {
				return err
			}
		}
		all = append(all, item)
		return nil
	}
	if err := eachRow(ctx, from, take, text, args...); err != nil {
		return nil, err
	}
	return all, nil
}

// eachRow calls take for every row that a query finds, with a function that reads it.
func eachRow(ctx context.Context, from source, take func(scan func(into ...any) error) error, text string, args ...any) error {
	if v, ok := from.(view); ok {
		return v.eachRow(ctx, take, text, args...)
	}
	rows, err := from.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err has the error
	for rows.Next() {
		if err := take(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// replaceRow inserts a row in place of the one with the same key, which is the first column.
func replaceRow(table, columns string) string {
	key, others, _ := strings.Cut(columns, ", ")
	return `INSERT INTO ` + table + ` (` + columns + `) VALUES (` + parameters(columns) + `) ON CONFLICT (` + key + `) DO UPDATE SET (` +
		others + `) = (excluded.` + strings.ReplaceAll(others, ", ", ", excluded.") + `)`
}

// parameters is "$1, $2, … $n" for the number of columns.
func parameters(columns string) string {
	n := strings.Count(columns, ",") + 1
	names := make([]string, n)
	for i := range names {
		names[i] = parameter(i + 1)
	}
	return strings.Join(names, ", ")
}

func parameter(n int) string { return "$" + strconv.Itoa(n) }
