package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/permissions"
)

// The files that SQLite keeps beside a store: its log, the log's index, and the rollback journal of a store not in WAL mode.
const (
	logSuffix     = "-wal"
	indexSuffix   = "-shm"
	journalSuffix = "-journal"
)

// File names that a restore uses beside a store.
const (
	restoredSuffix = ".restored"  // the complete, verified copy
	intentSuffix   = ".restoring" // says that the copy is to replace the store, and the name for the store
	replacedSuffix = ".replaced-" // ends that name, before the time
)

// A copy is marked as one in its header, so that it is recognised at any path. The store itself has 0 there.
const (
	isCopy       = 1
	markCopy     = `PRAGMA user_version = 1`
	markOriginal = `PRAGMA user_version = 0`
)

// draftSuffix ends the name of an incomplete file.
const draftSuffix = ".part"

func fileExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// fileSize is the length of a file; 0 if there is none.
func fileSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// readable checks the name of a store.
func readable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("the store %s cannot be read (%w); name the right file, and use the daemon's account",
			path, permissions.Cause(err))
	}
	defer func() { _ = f.Close() }() // only opened
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("the store %s is not a file", path)
	}
	return err
}

// maxMark is the maximum length of a mark in bytes.
const maxMark = 4096

// readSmall reads a file up to the maximum length of a mark.
func readSmall(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // opening a pipe would block
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", path)
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, maxMark))
}

// WriteFile replaces the content and mode of a file atomically and durably: after a crash or power cut there is the old
// file or the new one. The error does not contain the path.
func WriteFile(path string, content []byte, mode os.FileMode) error {
	return WriteFileOf(-1, -1, path, content, mode)
}

// WriteFileOf is [WriteFile] of a file of that account and group; -1: those of the process.
func WriteFileOf(uid, gid int, path string, content []byte, mode os.FileMode) (err error) {
	draft := path + draftSuffix
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a killed attempt
		return err
	}
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if uid >= 0 {
		err = errors.Join(err, f.Chown(uid, gid))
	}
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(draft, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes a new name in a folder durable.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // only read
	return d.Sync()
}

// fileIdentity identifies a file that SQLite writes to, as it was opened.
type fileIdentity struct {
	path     string
	dev, ino uint64
}

func newPlacedFile(path string) (fileIdentity, error) {
	var found unix.Stat_t
	err := unix.Stat(path, &found)
	return fileIdentity{path, uint64(found.Dev), found.Ino}, err //nolint:unconvert // its type differs between systems
}

// pool makes a pool of at most n connections to a file. None is opened yet, so nothing fails.
func pool(path string, n int, settings string) *sql.DB {
	name := url.URL{Scheme: "file", Path: path, RawQuery: settings}
	db, err := sql.Open("sqlite3", name.String())
	if err != nil {
		panic(err) // only without the driver
	}
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db
}

// connect makes the pool of at most n connections of a store that is in use.
func connect(path string, busy time.Duration, n int, settings string) *sql.DB {
	return pool(path, n, "mode=rw&_foreign_keys=on&_stmt_cache_size=64&_busy_timeout="+
		strconv.FormatInt(busy.Milliseconds(), 10)+"&"+settings)
}

// lookInto makes a pool of one connection that only reads.
func lookInto(path, settings string) *sql.DB {
	return pool(path, 1, "mode=ro&_mutex=no&_stmt_cache_size=64&"+settings)
}

// readOnlySettings returns the settings for reading a file without leaving companions beside it.
func readOnlySettings(path string) string {
	for _, suffix := range []string{logSuffix, journalSuffix} {
		if n, err := fileSize(path + suffix); err != nil || n > 0 {
			return "_busy_timeout=5000"
		}
	}
	return "immutable=1"
}

// change runs do on a copy that nobody else has open, with one connection.
func change(ctx context.Context, path string, do func(context.Context, *sql.DB) error) (err error) {
	db := pool(path, 1, "mode=rw&_synchronous=FULL")
	defer func() { err = errors.Join(err, db.Close()) }()
	return do(ctx, db)
}

// statements returns a function that runs them in order.
func statements(all ...string) func(context.Context, *sql.DB) error {
	return func(ctx context.Context, db *sql.DB) error {
		for _, text := range all {
			if _, err := db.ExecContext(ctx, text); err != nil {
				return err
			}
		}
		return nil
	}
}

// watchEvery is the interval at which progress is told; a variable for tests.
var watchEvery = time.Second

// watch calls tell at that interval until it is stopped.
func watch(tell func()) (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				tell()
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}

// copyInto writes the committed content of db, the file at from, to a file at to: complete, synced and verified, or not
// at all. The copy is marked as one in its header. Writers do not wait for it, but their log grows meanwhile.
func copyInto(
	ctx context.Context, db *sql.DB, from, to string, tell func(what string, done, all int64), sound func(draft string) error,
) (err error) {
	draft := to + draftSuffix
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a killed attempt
		return err
	}
	f, err := os.OpenFile(draft, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return permissions.Cause(err)
	}
	defer func() {
		_ = f.Close() // synced below
		if err != nil {
			_ = os.Remove(draft + journalSuffix)
			err = errors.Join(err, os.Remove(draft))
		}
	}()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil { // see removeDrafts
		return err
	}
	size, err := fileSize(from)
	if err != nil {
		return err
	}
	copied := watch(func() {
		if n, err := fileSize(draft); err == nil {
			tell("MiB copied", min(n, size)>>20, size>>20)
		}
	})
	_, err = db.ExecContext(ctx, "VACUUM INTO $1", draft)
	if copied(); err != nil {
		return copyError(ctx, err, from, draft)
	}
	if err := change(ctx, draft, statements(markCopy)); err != nil {
		return copyError(ctx, err, draft, draft)
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := sound(draft); err != nil {
		return err
	}
	if err := os.Rename(draft, to); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(to))
}

// removeDrafts deletes drafts that killed attempts left in a folder. A draft that is being written is locked.
func removeDrafts(folder string) {
	drafts, _ := filepath.Glob(filepath.Join(folder, "daycared-*.db"+draftSuffix)) // the pattern is valid
	for _, draft := range drafts {
		f, err := os.OpenFile(draft, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.Remove(draft) // a leftover only takes space
			_ = os.Remove(draft + journalSuffix)
		}
		_ = f.Close()
	}
}
