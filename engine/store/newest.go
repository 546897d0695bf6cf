package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"strings"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed postgres/*.sql
var serverMigrations embed.FS

// daemonsSince is the schema since which the database knows its daemons.
const daemonsSince = 2

// aloneMark is in the name of a migration that is not safe while daemons of an older version run.
const aloneMark = "_alone_"

// Migration is what brings a PostgreSQL database to the schema that this version knows.
type Migration struct {
	Name       string // of the database, for people
	Has, Knows int64  // versions of the schema
	Steps      []string
	Alone      []string // those of the steps before which every daemon has to stop
}

// MigrateServer returns what brings the database of o.Server to the newest schema, and applies it unless dry.
func MigrateServer(ctx context.Context, o Options, dry bool) (m Migration, err error) {
	at, config, err := newServer(o.Server)
	if err != nil {
		return m, err
	}
	db := sql.OpenDB(serverConnector{stdlib.GetConnector(*config)})
	defer func() { err = errors.Join(err, db.Close()) }()
	s := &Store{server: at, writer: db, log: slog.New(slog.DiscardHandler)}
	if err := s.checkServer(ctx); err != nil {
		return m, s.fault(ctx, err)
	}
	return s.toNewest(ctx, dry)
}

// migrateServer brings the schema to the newest. Several daemons may do so at once.
func (s *Store) migrateServer(ctx context.Context) error {
	m, err := s.toNewest(ctx, false)
	if err == nil && m.Has < m.Knows {
		s.log.Info("store migrated", "database", s.server.name, "from", m.Has, "schema", m.Knows)
	}
	return err
}

// serverSteps are the migrations; tests add to them.
var serverSteps = func() (fs.FS, error) { return fs.Sub(serverMigrations, "postgres") }

func (s *Store) toNewest(ctx context.Context, dry bool) (m Migration, err error) {
	m.Name = s.server.name
	steps, err := serverSteps()
	if err != nil {
		return m, err
	}
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return m, err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, s.writer, steps, goose.WithDisableGlobalRegistry(true),
		goose.WithLogger(goose.NopLogger()), goose.WithSessionLocker(locker))
	if err != nil {
		return m, fmt.Errorf("read the migrations: %w", err)
	}
	if m.Has, m.Knows, err = provider.GetVersions(ctx); err != nil {
		return m, s.fault(ctx, err)
	}
	if m.Has > m.Knows {
		return m, fmt.Errorf("the %s was written by a newer daycared (schema %d, this one knows %d); start that one again",
			m.Name, m.Has, m.Knows)
	}
	for _, step := range provider.ListSources() {
		if step.Version > m.Has {
			name := strings.TrimSuffix(path.Base(step.Path), ".sql")
			if m.Steps = append(m.Steps, name); strings.Contains(name, aloneMark) {
				m.Alone = append(m.Alone, name)
			}
		}
	}
	if dry || m.Has == m.Knows {
		return m, nil
	}
	if len(m.Alone) > 0 && m.Has >= daemonsSince {
		if err := s.runAlone(ctx); err != nil {
			return m, err
		}
	}
	if _, err = provider.Up(ctx); err != nil {
		return m, s.fault(ctx, err)
	}
	return m, nil
}
