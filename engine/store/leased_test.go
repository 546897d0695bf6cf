package store

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// makeKeys makes the table of a library.
func makeKeys(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS whatsmeow_keys (n INTEGER)`)
	return err
}

// openKeys opens the account of a store, and nil if another one has it.
func openKeys(t *testing.T, s *Store) (db *sql.DB, release func() error) {
	t.Helper()
	db, release, err := s.OpenAccount(t.Context(), makeKeys)
	if err != nil {
		t.Fatal(err)
	}
	return db, release
}

// TestAFormerHolderWritesNoKeys: what it had begun to write while it had the WhatsApp account is whole before another one has it.
func TestAFormerHolderWritesNoKeys(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	first, second := openOn(t.Context(), t, path, url), openOn(t.Context(), t, path, url)
	mine, release := openKeys(t, first)
	if db, _ := openKeys(t, second); db != nil {
		t.Fatal("two have the account")
	}
	tx, err := mine.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), `INSERT INTO whatsmeow_keys VALUES (1)`); err != nil {
		t.Fatal(err)
	}
	query(t, url, `UPDATE daemons SET until = clock_timestamp() WHERE id = '`+first.server.id+`'`) // as if it had not run for so long
	second.server.leased.since = time.Now().Add(-time.Hour)
	took := make(chan *sql.DB, 1)
	go func() {
		db, _, err := second.OpenAccount(t.Context(), makeKeys)
		if err != nil {
			t.Error(err)
		}
		took <- db
	}()
	for query(t, url, `SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == "0" {
		select {
		case <-took:
			t.Fatal("it was taken in the middle of a transaction of its holder's")
		default:
		}
	}
	if err := tx.Commit(); err != nil {
		t.Errorf("what was begun before: %v", err)
	}
	theirs := <-took
	if theirs == nil {
		t.Fatal("the account of a silent daemon cannot be had")
	}
	defer theirs.Close()
	for _, text := range []string{
		`INSERT INTO whatsmeow_keys VALUES (2)`, `UPDATE whatsmeow_keys SET n = 3`, `DELETE FROM whatsmeow_keys`, `TRUNCATE whatsmeow_keys`,
	} {
		if _, err := mine.ExecContext(t.Context(), text); err == nil || !strings.Contains(err.Error(), "does not have the lease whatsapp") {
			t.Errorf("a former holder: %s: %v", text, err)
		}
	}
	if _, err := theirs.ExecContext(t.Context(), `UPDATE whatsmeow_keys SET n = n + 10`); err != nil {
		t.Error(err)
	}
	if got := query(t, url, `SELECT STRING_AGG(n::text, ',') FROM whatsmeow_keys`); got != "11" {
		t.Errorf("there is %s", got)
	}
	if err := release(); err == nil {
		t.Error("who was replaced released the lease of another one")
	}
	if db, _ := openKeys(t, openOn(t.Context(), t, path, url)); db != nil {
		t.Error("two have the account after all")
	}
}

// TestAReleasedAccountCanBeHadAtOnce, also by who had it.
func TestAReleasedAccountCanBeHadAtOnce(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	first, second := openOn(t.Context(), t, path, url), openOn(t.Context(), t, path, url)
	for _, s := range []*Store{first, second, first} {
		db, release := openKeys(t, s)
		if db == nil {
			t.Fatal("nobody has it, and it cannot be had")
		}
		if _, err := db.ExecContext(t.Context(), `INSERT INTO whatsmeow_keys VALUES (1)`); err != nil {
			t.Error(err)
		}
		if err := release(); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := InspectServer(t.Context(), Options{Server: url}); err != nil || found.Linked {
		t.Errorf("an account is linked: %v, %v", found, err)
	}
	query(t, url, `CREATE TABLE whatsmeow_device AS SELECT 1 AS jid`)
	if found, err := InspectServer(t.Context(), Options{Server: url}); err != nil || !found.Linked || len(found.Daemons) != 2 {
		t.Errorf("no account is linked: %v, %v", found, err)
	}
}
