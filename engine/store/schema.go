package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pressly/goose/v3"
	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/permissions"
)

// readSchema lists the schema of a store without the tables of SQLite and goose.
const readSchema = `SELECT type || ' ' || name || CASE name WHEN tbl_name THEN '' ELSE ' of ' || tbl_name END, COALESCE(sql, '') ` +
	`FROM sqlite_schema WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!' AND name <> 'goose_db_version' ORDER BY type, name`

var sqlComment = regexp.MustCompile(`--[^\n]*`)

// parts are the tables, indexes, views and triggers of a store by name, without comments and with single spaces, and the types of
// entries, without which an entry says something else, and whether the own chain has its name, without which nobody finds its entries.
func parts(ctx context.Context, from source) (map[string]string, error) {
	field := func(p *[2]string) []any { return []any{&p[0], &p[1]} }
	found, err := collect(ctx, from, "the schema", field, readSchema)
	all := map[string]string{}
	for _, p := range found {
		all[p[0]] = strings.Join(strings.Fields(sqlComment.ReplaceAllString(p[1], "")), " ")
	}
	if all["table types"] == "" || err != nil {
		return all, err
	}
	types, err := typesOf(ctx, from)
	for _, t := range types {
		all[fmt.Sprintf("row %d of types", t.number)] = string(t.name)
	}
	named, failed := count(ctx, from, isNamed)
	all["first row of chains"] = fmt.Sprint(named == 1)
	return all, cmp.Or(err, failed)
}

// isNamed is 1 if the first chain, which was 1 until entries had keys, has the name of the store's own, also where there is neither yet.
const isNamed = `SELECT (SELECT name FROM chains WHERE number = NOT EXISTS (SELECT 1 FROM pragma_table_info('entries') ` +
	`WHERE name = 'key')) IS (SELECT chain FROM meta)`

const readTypes = `SELECT number, name FROM types`

// numberedType is a type of entries, and the number that stands for it in the rows.
type numberedType struct {
	number int64
	name   permissions.Type
}

func typesOf(ctx context.Context, from source) ([]numberedType, error) {
	fields := func(t *numberedType) []any { return []any{&t.number, &t.name} }
	return collect(ctx, from, "the types of entries", fields, readTypes)
}

// difference is a part that differs from what the migrations make; a text is empty if the part is missing.
type difference struct{ name, found, want string }

func (d difference) String() string {
	switch {
	case d.found == "":
		return "it has no " + d.name
	case d.want == "":
		return "its " + d.name + " is not daycared's"
	}
	return "its " + d.name + " differs"
}

// differences compares a store with what the migrations up to a version make: an added trigger, for example, would act
// on every change.
func differences(ctx context.Context, from source, steps fs.FS, version int64) (all []difference, err error) {
	fresh, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		return nil, err
	}
	fresh.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, fresh.Close()) }()
	provider, err := newProvider(fresh, steps)
	if err != nil {
		return nil, err
	}
	if _, err := provider.UpTo(ctx, version); err != nil {
		return nil, err
	}
	want, err := parts(ctx, fresh)
	if err != nil {
		return nil, err
	}
	found, err := parts(ctx, from)
	if err != nil {
		return nil, err
	}
	names := maps.Clone(want)
	maps.Copy(names, found)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if found[name] != want[name] {
			all = append(all, difference{name, found[name], want[name]})
		}
	}
	return all, nil
}

func newProvider(db *sql.DB, steps fs.FS) (*goose.Provider, error) {
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, steps,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return provider, nil
}

// inWords names the first difference.
func inWords(all []difference) string {
	if len(all) == 1 {
		return all[0].String()
	}
	return fmt.Sprintf("%d parts differ; %s", len(all), all[0])
}

// schemaSum is the [sum] of the schema that all migrations make. Making it takes longer than the rest of a start, so
// that is done only for a store with another sum.
const schemaSum = "b2c49a040d14228cfb8298a7f05d8fc0363f8db9e18b2989ed95ca88d3cefcca"

// sum is a digest of the parts of a schema.
func sum(all map[string]string) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(h, "%s\x00%s\x00", name, all[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// checkSchema refuses a store whose schema is not what the migrations up to a version make, and logs the differences.
func (s *Store) checkSchema(ctx context.Context, from source, steps fs.FS, version int64) error {
	found, err := parts(ctx, from)
	if err != nil {
		return s.fault(ctx, err)
	}
	if sum(found) == schemaSum {
		return nil
	}
	all, err := differences(ctx, from, steps, version)
	if err != nil {
		return s.fault(ctx, err)
	}
	if len(all) == 0 {
		return nil
	}
	for _, d := range all {
		s.log.Error("store schema differs", "part", d.name, "found", d.found, "want", d.want)
	}
	if s.started {
		return &Error{
			What:   fmt.Sprintf("the schema of the store %s was changed while it was open (%s)", s.path, inWords(all)),
			Advice: "change that back (the log has the texts), or stop daycared and put a backup in its place: daycared restore FILE",
		}
	}
	return &Error{
		What: fmt.Sprintf("the store %s does not have the schema of daycared (%s)", s.path, inWords(all)),
		Advice: "if it is from before the first release, start the daycared that wrote it and answer what waits, then move the store " +
			"away; else put a backup in its place: daycared restore FILE",
	}
}

// migrations only go forward: the way back is the copy made before.
//
//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema to the newest of steps, after copying a store that has one already.
func (s *Store) migrate(ctx context.Context, steps fs.FS) error {
	provider, err := newProvider(s.writer, steps)
	if err != nil {
		return err
	}
	has, known, err := provider.GetVersions(ctx)
	if err != nil && !isDatabaseError(err) { // for a row that is no version of goose's, perhaps
		_, _ = s.writer.ExecContext(ctx, `DELETE FROM goose_db_version WHERE typeof(version_id) <> 'integer'`)
		has, known, err = provider.GetVersions(ctx)
	}
	switch {
	case err != nil:
		return s.fault(ctx, err)
	case has > known:
		return fmt.Errorf("this store was written by a newer daycared (schema %d, this one knows %d); "+
			"start that one again, or go back with: daycared restore %s", has, known, s.copyName(known))
	case has > 0:
		if err := s.checkSchema(ctx, s.writer, steps, has); err != nil || has == known {
			return err
		}
		if err := s.checkRoom(); err != nil {
			return err
		}
		err := copyInto(ctx, s.writer, s.path, s.copyName(has), s.tellMigration, func(string) error { return nil })
		if err != nil {
			return fmt.Errorf("copy the store: %w", err)
		}
		s.log.Info("store copied before migration", "path", s.copyName(has), "schema", has)
	}
	stop := watch(func() {
		step, err := count(ctx, s.readers, `SELECT MAX(version_id) FROM goose_db_version`)
		if n, unread := fileSize(s.path + logSuffix); errors.Join(err, unread) == nil {
			s.tellMigration(fmt.Sprintf("steps done, %d MiB written", n>>20), int64(step), known)
		}
	})
	_, err = provider.Up(ctx)
	if stop(); err != nil {
		return s.fault(ctx, err)
	}
	s.log.Info("store migrated", "path", s.path, "from", has, "schema", known)
	return nil
}

// tellMigration logs and tells how far a migration is.
func (s *Store) tellMigration(what string, done, all int64) {
	s.log.Info("migrating store", "path", s.path, "what", what, "done", done, "of", all)
	s.tell(what, done, all)
}

// checkRoom refuses a migration if the disk lacks room: for the copy, for a log with every page, and for the growth of the file.
func (s *Store) checkRoom() error {
	var disk unix.Statfs_t
	if err := unix.Statfs(s.dir(), &disk); err != nil {
		return err
	}
	need := int64(1 << 20)
	for _, file := range []string{s.path, s.path + logSuffix} {
		n, err := fileSize(file)
		if err != nil {
			return err
		}
		need += 3 * n
	}
	free := int64(disk.Bavail) * int64(disk.Bsize) //nolint:unconvert // the types differ between systems
	if free >= need {
		return nil
	}
	const mib = 1 << 20
	return &Error{
		What: fmt.Sprintf("the disk under %s has too little room to bring the store up to date: it needs %d MiB, and %d MiB are free",
			s.dir(), (need+mib-1)/mib, free/mib),
		Advice: "free some space, nothing needs a restart", Err: unix.ENOSPC,
	}
}

// copyName is the path of the copy made before a migration from a version.
func (s *Store) copyName(version int64) string { return fmt.Sprintf("%s.v%d", s.path, version) }

// newestSchema is the number that the last migration's name begins with.
func newestSchema() (newest int64, err error) {
	files, err := migrations.ReadDir("migrations")
	for _, f := range files {
		if _, err := fmt.Sscanf(f.Name(), "%d_", &newest); err != nil {
			return 0, err
		}
	}
	return newest, err
}

// hasSchema refuses a store whose schema is not exactly that version's.
func hasSchema(ctx context.Context, from source, version int64) error {
	steps, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	all, err := differences(ctx, from, steps, version)
	if err == nil && len(all) > 0 {
		err = fmt.Errorf("its schema is not that of daycared: %s; try another backup", inWords(all))
	}
	return err
}
