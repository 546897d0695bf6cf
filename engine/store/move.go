package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/daycared/daycared/permissions"
)

// Move copies the store in the file at o.Path, which no daemon may have open, into the database of o.Server, and verifies the copy: the
// number and the content of the rows of each table, and all that [Store.Verify] does. Then it renames the file, so that no daemon goes on
// with it. A copy that was interrupted is continued by the next call; a database that has a store already is refused.
func Move(ctx context.Context, o Options) (sum Summary, err error) {
	o.moving = true
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return sum, err
	}
	if err := readable(path); err != nil {
		return sum, fmt.Errorf("move the store: %w", err)
	}
	head, err := move(ctx, o, path, &sum)
	if err != nil {
		return sum, fmt.Errorf("move the store: %w", err)
	}
	if err := verifyMoved(ctx, o, head, &sum); err != nil {
		return sum, err
	}
	return sum, moveAway(path)
}

// moveAway renames the file and its companions.
func moveAway(path string) error {
	for _, suffix := range []string{logSuffix, indexSuffix, ""} { // the file is the last, so that this can be done again
		step := restoreStep{path + suffix, path + movedSuffix + suffix}
		if err := step.do(); err != nil {
			return fmt.Errorf("rename the file that was moved: %w", err)
		}
	}
	return nil
}

// verifyMoved opens the store in the database and verifies it.
func verifyMoved(ctx context.Context, o Options, head permissions.Head, sum *Summary) error {
	s, err := Open(ctx, o)
	if err != nil {
		return fmt.Errorf("move the store: %w", err)
	}
	defer func() { _ = s.Close() }() // nothing was written
	told := func(done, all int64) { o.tell("entries and requests verified", done, all) }
	if sum.Chains, err = s.Verify(ctx, told); err != nil {
		return fmt.Errorf("verify the moved store: %w", err)
	}
	own := slices.IndexFunc(sum.Chains, func(h permissions.Head) bool { return h.Chain == head.Chain })
	if own < 0 || sum.Chains[own].Seq < head.Seq {
		return fmt.Errorf("verify the moved store: its audit ends before entry %d", head.Seq)
	}
	sum.Path = s.name()
	return nil
}

// headOf brings the file up to date and returns the head of its audit.
func headOf(ctx context.Context, o Options) (h permissions.Head, err error) {
	o.Server = ""
	s, err := Open(ctx, o)
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	h.Chain, h.Seq, h.Hash, err = s.Head(ctx)
	return h, err
}

// mover copies the tables of a store.
type mover struct {
	from *sql.DB // the file
	to   *pgx.Conn
	back *sql.DB // the database, as a store reads it
	tell func(what string, done, all int64)
}

// movedTable is a table of both databases, with the columns and types that PostgreSQL has.
type movedTable struct {
	name           string
	columns, types []string
}

// move copies the tables and returns the head of the file's audit.
func move(ctx context.Context, o Options, path string, sum *Summary) (head permissions.Head, err error) {
	at, config, err := newServer(o.Server)
	if err != nil {
		return head, err
	}
	m := mover{back: sql.OpenDB(serverConnector{stdlib.GetConnector(*config)}), tell: o.tell}
	defer func() { _ = m.back.Close() }() // only read
	s := &Store{server: at, writer: m.back, log: slog.New(slog.DiscardHandler)}
	if err := s.checkServer(ctx); err != nil {
		return head, s.fault(ctx, err)
	}
	if err := s.migrateServer(ctx); err != nil {
		return head, err
	}
	if m.to, err = pgx.ConnectConfig(ctx, config); err != nil {
		return head, s.fault(ctx, err)
	}
	defer func() { _ = m.to.Close(context.WithoutCancel(ctx)) }() // all was committed
	own, err := readIdentity(ctx, m.back)
	has := err == nil
	if err = ignoreNoRows(err); err != nil {
		return head, s.fault(ctx, err)
	}
	if head, err = headOf(ctx, o); err != nil {
		return head, err
	}
	if has {
		return head, s.hasMoved(ctx, own, head, sum)
	}
	m.from = lookInto(path, readOnlySettings(path))
	defer func() { _ = m.from.Close() }() // only read
	tables, err := m.tables(ctx)
	if err != nil {
		return head, err
	}
	for _, t := range tables {
		if err := m.table(ctx, t); err != nil {
			return head, fmt.Errorf("the table %s: %w", t.name, err)
		}
	}
	return head, s.countRows(ctx, sum)
}

// hasMoved returns nil if the database has the store of the file already, as one that was interrupted late leaves it.
func (s *Store) hasMoved(ctx context.Context, own identity, file permissions.Head, sum *Summary) error {
	h, err := readHead(ctx, s.writer, own.chain)
	switch {
	case err != nil:
		return s.fault(ctx, err)
	case own.chain != file.Chain:
		return fmt.Errorf("the %s has a store already; name an empty database", s.server.name)
	case h.seq != file.Seq || h.hash != file.Hash:
		return fmt.Errorf("the %s has this store already, and one of the two has gone on since (entry %d in the file, %d there); "+
			"to begin again with the file, empty the database", s.server.name, file.Seq, h.seq)
	}
	return s.countRows(ctx, sum)
}

// countRows counts what was moved.
func (s *Store) countRows(ctx context.Context, sum *Summary) error {
	for text, into := range map[string]any{countRequests: &sum.Requests, countGrants: &sum.Grants} {
		if err := s.writer.QueryRowContext(ctx, text).Scan(into); err != nil {
			return s.fault(ctx, err)
		}
	}
	return nil
}

const readTables = `SELECT c.table_name::text, STRING_AGG(c.column_name, ', ' ORDER BY c.ordinal_position), ` +
	`STRING_AGG(c.data_type, ',' ORDER BY c.ordinal_position) FROM information_schema.columns AS c ` +
	`JOIN information_schema.tables AS t USING (table_schema, table_name) WHERE t.table_schema = 'public' AND t.table_type = 'BASE TABLE' ` +
	`AND t.table_name NOT IN ('goose_db_version', 'writer', 'daemons', 'leases', 'changes') ` +
	`AND NOT starts_with(t.table_name, '` + accountTables + `') GROUP BY c.table_name ` +
	`ORDER BY CASE c.table_name WHEN 'meta' THEN 2 WHEN 'requests' THEN 0 WHEN 'sessions' THEN 0 ELSE 1 END, c.table_name`

// tables lists the tables, those that others refer to first. The last one is meta, without which a database has no store.
func (m mover) tables(ctx context.Context) ([]movedTable, error) {
	fields := func(r *[3]string) []any { return []any{&r[0], &r[1], &r[2]} }
	found, err := collect(ctx, m.back, "", fields, readTables)
	all := make([]movedTable, len(found))
	for i, r := range found {
		all[i] = movedTable{r[0], strings.Split(r[1], ", "), strings.Split(r[2], ",")}
	}
	return all, err
}

// ofFile is the query of the rows of a table in a file, as the table of PostgreSQL has them.
func (t movedTable) ofFile() string {
	if t.name == "entries" {
		return `SELECT e.key, e.at, audit.type, audit.request, e.actor, e.via, audit.detail, e.hash, e.mac, e.prev FROM entries AS e ` +
			`JOIN audit ON audit.key = e.key WHERE e.key > $1 ORDER BY e.key LIMIT 0 + $2`
	}
	return `SELECT ` + strings.Join(t.columns, ", ") + ` FROM ` + t.name + t.page()
}

// page limits a query to a page of the table; nothing where it is copied in one piece.
func (t movedTable) page() string {
	if !t.paged() {
		return ""
	}
	return ` WHERE ` + t.columns[0] + ` > $1 ORDER BY ` + t.columns[0] + ` LIMIT 0 + $2`
}

// paged reports whether the rows have a number of their own, by which they are copied page by page.
func (t movedTable) paged() bool {
	return slices.Contains([]string{"entries", "requests", "pruned"}, t.name)
}

// movePage is how many rows are copied in one transaction.
const movePage = 20_000

// table copies what the database lacks of a table, and compares.
func (m mover) table(ctx context.Context, t movedTable) error {
	all, after := int64(0), int64(-1)
	if err := m.from.QueryRowContext(ctx, `SELECT COUNT(*) FROM `+t.name).Scan(&all); err != nil {
		return err
	}
	if t.paged() {
		if err := m.back.QueryRowContext(ctx, `SELECT COALESCE(MAX(`+t.columns[0]+`), -1) FROM `+t.name).Scan(&after); err != nil {
			return err
		}
	}
	for done := int64(0); ; {
		n, last, err := m.copyPage(ctx, t, after)
		if err != nil {
			return err
		}
		after, done = last, done+n
		m.tell("rows of "+t.name+" copied", done, all)
		if n < movePage {
			break
		}
	}
	if t.types[0] == "bigint" {
		if err := m.numberOn(ctx, t); err != nil {
			return err
		}
	}
	return m.compare(ctx, t)
}

// copyPage copies the rows after one, or all, in one transaction, and returns how many they were and the number of the last.
func (m mover) copyPage(ctx context.Context, t movedTable, after int64) (n, last int64, err error) {
	rows, err := m.read(ctx, t, after)
	if err != nil {
		return 0, 0, err
	}
	tx, err := m.to.Begin(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // after a commit there is nothing to roll back
	if !t.paged() {
		if _, err := tx.Exec(ctx, `DELETE FROM `+t.name); err != nil {
			return 0, 0, err
		}
	}
	if n, err = tx.CopyFrom(ctx, pgx.Identifier{t.name}, t.columns, pgx.CopyFromRows(rows)); err != nil {
		return 0, 0, err
	}
	if last = after; t.paged() && len(rows) > 0 {
		last = rows[len(rows)-1][0].(int64) //nolint:errcheck,forcetypeassert // asColumn made it one
	}
	if !t.paged() {
		n = 0 // there is no next page
	}
	return n, last, tx.Commit(ctx)
}

// read reads a page of the file as values of PostgreSQL's types.
func (m mover) read(ctx context.Context, t movedTable, after int64) (all [][]any, err error) {
	var args []any
	if t.paged() {
		args = []any{after, movePage}
	}
	err = eachRow(ctx, m.from, func(scan func(...any) error) error {
		row, err := t.scan(scan)
		for i, v := range row {
			if text, is := v.(string); is {
				row[i] = escapeText(text)
			}
		}
		all = append(all, row)
		return err
	}, t.ofFile(), args...)
	return all, err
}

// scan reads one row.
func (t movedTable) scan(scan func(...any) error) (row []any, err error) {
	into := make([]any, len(t.columns))
	row = make([]any, len(t.columns))
	for i := range row {
		into[i] = &row[i]
	}
	if err := scan(into...); err != nil {
		return nil, err
	}
	for i, v := range row {
		if row[i], err = asColumn(v, t.types[i]); err != nil {
			return nil, fmt.Errorf("column %s: %w", t.columns[i], err)
		}
	}
	return row, nil
}

// asColumn is a value of a file, where a column may have values of any type, as one of PostgreSQL's type.
func asColumn(v any, kind string) (any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case int64:
		switch kind {
		case "bigint":
			return v, nil
		case "boolean":
			return v != 0, nil
		}
	case bool:
		if kind == "boolean" {
			return v, nil
		}
	case string:
		switch kind {
		case "text":
			return v, nil
		case "bytea":
			return []byte(v), nil
		}
	case []byte:
		switch kind {
		case "text":
			return string(v), nil
		case "bytea":
			return slices.Clone(v), nil
		}
	}
	return nil, fmt.Errorf("%v of %T is no %s", v, v, kind)
}

// asText is a row as text, in which no two rows are equal.
func asText(row []any) (text []byte) {
	for _, v := range row {
		if number, is := v.(int64); is {
			text = strconv.AppendInt(text, number, 10)
		} else {
			text = fmt.Appendf(text, "%q", v)
		}
		text = append(text, ',')
	}
	return text
}

// numberOn has new rows of a table numbered after the copied ones.
func (m mover) numberOn(ctx context.Context, t movedTable) error {
	_, err := m.to.Exec(ctx, `SELECT SETVAL(pg_get_serial_sequence($1, $2), (SELECT GREATEST(MAX(`+t.columns[0]+`), 1) FROM `+t.name+
		`)) WHERE pg_get_serial_sequence($1, $2) IS NOT NULL`, t.name, t.columns[0])
	return err
}

// compare compares the rows of a table in both databases, in any order.
func (m mover) compare(ctx context.Context, t movedTable) error {
	type content struct {
		rows int64
		sum  [sha256.Size]byte
	}
	var both [2]content
	count := func(into *content) func(func(...any) error) error {
		return func(scan func(...any) error) error {
			row, err := t.scan(scan)
			hash := sha256.Sum256(asText(row))
			for i, b := range hash {
				into.sum[i] ^= b
			}
			into.rows++
			return err
		}
	}
	for after := int64(-1); ; {
		before, last := both[0].rows, after
		take := count(&both[0])
		args := []any{after, movePage}
		if !t.paged() {
			args = nil
		}
		err := eachRow(ctx, m.from, func(scan func(...any) error) error {
			return take(func(into ...any) error {
				err := scan(into...)
				if number, is := (*into[0].(*any)).(int64); is { //nolint:forcetypeassert // scan's
					last = number
				}
				return err
			})
		}, t.ofFile(), args...)
		if err != nil {
			return err
		}
		if after = last; !t.paged() || both[0].rows-before < movePage {
			break
		}
	}
	if err := eachRow(ctx, m.back, count(&both[1]), `SELECT `+strings.Join(t.columns, ", ")+` FROM `+t.name); err != nil {
		return err
	}
	if both[0] != both[1] {
		return fmt.Errorf("the copy differs (%d rows in the file, %d in the database); empty the database and begin again",
			both[0].rows, both[1].rows)
	}
	return nil
}
