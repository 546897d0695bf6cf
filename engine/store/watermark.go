package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/mattn/go-sqlite3"
	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/permissions"
)

// mark is the content of the file beside the store: how far the store has certainly come. It is written only after the
// store's commit is synced, so no crash, full disk or power cut leaves the store behind its mark; only an older copy in
// the store's place is.
type mark struct {
	Chain string `json:"chain"`
	Seq   int64  `json:"seq"`
	Hash  string `json:"hash"`
	// Opens is the newest opening that the main file records by itself, without its log.
	Opens int64 `json:"opens"`
	// Restoring announces a new life. Until its mark is written, the main file may record fewer openings than its log.
	Restoring bool `json:"restoring,omitempty"`
	// InUse says that the store's log has content. The log is emptied only after a mark without InUse is written.
	InUse bool `json:"in_use,omitempty"`
}

// maxSeq bounds sequence numbers, far above what a store reaches: a greater one is damage.
const maxSeq = 1 << 52

// markName is the path of the mark of the store at path.
func markName(path string) string { return strings.TrimSuffix(path, ".db") + ".mark" }

// maxMark is the maximum length of a mark in bytes.
const maxMark = 4096

// readMark returns the mark of the store at path and its text. Without a file the text is empty; an invalid text gives nil.
func readMark(path string) (m *mark, text string, err error) {
	raw, err := readSmall(markName(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	m = &mark{}
	if json.Unmarshal(raw, m) != nil || m.Chain == "" || m.Seq < 0 || m.Seq > maxSeq || m.Opens < 0 || m.Opens > maxSeq {
		m = nil
	}
	return m, "mark:" + string(bytes.ToValidUTF8(raw, []byte("?"))), nil
}

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

// writeMark replaces the mark of the store at path.
func writeMark(path string, m mark) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return WriteFile(markName(path), text, 0o600)
}

// announceRestore writes a mark that announces a new life, and returns it. It is written first, so that after a crash
// the log is not taken for one of another file.
func announceRestore(path string, m mark) (*mark, string, error) {
	m.Restoring = true
	if err := writeMark(path, m); err != nil {
		return nil, "", fmt.Errorf("write the mark beside the store: %w", err)
	}
	return readMark(path)
}

const readEntryHash = `SELECT hash FROM audit WHERE chain = $1 AND seq = $2`

// hasEntry reports whether the audit has the mark's entry, or begins after it because it was pruned.
func hasEntry(ctx context.Context, from source, m *mark) (bool, error) {
	if m.Seq == 0 {
		return true, nil
	}
	field := func(h *permissions.Digest) []any { return []any{digest{h}} }
	found, err := collect(ctx, from, "an entry of the audit", field, readEntryHash, m.Chain, m.Seq)
	if err != nil || len(found) > 0 {
		return err == nil && found[0].String() == m.Hash, err
	}
	var first int64 // a missing entry may also lie in the gap before a life
	err = from.QueryRowContext(ctx, readFirst, m.Chain).Scan(&first)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return m.Seq < first, err
}

// checkMark returns nil if the audit still has the mark's entry, so that the mark may be replaced.
func (s *Store) checkMark(ctx context.Context, from source) error {
	s.marking.Lock()
	m := s.marked
	s.marking.Unlock()
	return s.keeps(ctx, from, m)
}

func (s *Store) keeps(ctx context.Context, from source, m mark) error {
	has, err := hasEntry(ctx, from, &m)
	if err == nil && !has {
		err = s.isTampered(m.Seq)
	}
	return err
}

// isTampered is the error of a store whose audit another program wrote while it was open. It is not written any more.
func (s *Store) isTampered(seq int64) error {
	e := &Error{
		What:   fmt.Sprintf("the audit was changed behind daycared's back: entry %d is missing or another", seq),
		Advice: "stop the daemon and restore a backup: daycared restore FILE",
	}
	if s.damage.CompareAndSwap(nil, e) {
		s.log.Error("audit modified: store is neither written nor grants anything", "path", s.path, "err", e)
	}
	return s.damage.Load()
}

// kept returns nil if the store's audit has the entry of its mark. An answered mark is ignored.
func (m *mark) kept(ctx context.Context, from source, text string) error {
	answered := ""
	_ = from.QueryRowContext(ctx, `SELECT answered FROM meta`).Scan(&answered) // an old store has none
	if m == nil || m.Restoring || text == answered {
		return nil
	}
	has, err := hasEntry(ctx, from, m)
	if err == nil && !has {
		err = fmt.Errorf("chain %s is broken at entry %d: by the mark beside the store it had one that is missing or another", m.Chain, m.Seq)
	}
	return err
}

// noteMark writes the mark of a store that has reached h. If that fails, the old one stays, which only claims less.
func (s *Store) noteMark(h head) {
	s.marking.Lock()
	defer s.marking.Unlock()
	logged, _ := size(s.path + logSuffix) // if it cannot be examined, the mark claims less
	m := mark{Chain: s.chain, Seq: h.seq, Hash: h.hash.String(), Opens: s.opens, InUse: !s.closing && logged > 0}
	if !s.started || m == s.marked || h.seq < s.marked.Seq || s.checkPaths() != nil {
		return
	}
	err := writeMark(s.path, m)
	if err != nil {
		if !s.unmarked {
			s.log.Warn("write the mark beside the store, retrying", "path", markName(s.path), "err", err)
		}
		s.unmarked = true
		return
	}
	s.marked, s.unmarked = m, false
}

// noteClosing writes to the mark that the log is about to be removed or emptied. It reports success: otherwise the log has to stay.
func (s *Store) noteClosing() bool {
	s.marking.Lock()
	defer s.marking.Unlock()
	at, err := newPlacedFile(s.path)
	if err != nil || at != s.files[0] { // the mark belongs to another file now
		return true
	}
	m, _, err := readMark(s.path)
	if err != nil || m == nil || !m.InUse {
		return true
	}
	m.InUse = false
	err = writeMark(s.path, *m)
	if err != nil {
		s.log.Warn("write the mark beside the store; its log stays", "path", markName(s.path), "err", err)
	}
	return err == nil
}

// keepLog makes SQLite keep the log when the store is closed.
func (s *Store) keepLog() error {
	conn, err := s.writer.Conn(context.Background())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // only returns it to the pool
	return conn.Raw(func(c any) error {
		ours := c.(*sqlite3.SQLiteConn) //nolint:errcheck,forcetypeassert // our driver's
		return ours.SetFileControlInt("main", sqlite3.SQLITE_FCNTL_PERSIST_WAL, 1)
	})
}

// missingLog announces a new life if the mark says that the store was in use with a log and the log is gone, and with
// it the last commits. It is written before SQLite begins another log.
func missingLog(path string) error {
	m, _, err := readMark(path)
	if err != nil || m == nil || !m.InUse || m.Restoring || !exists(path) {
		return err
	}
	if n, err := size(path + logSuffix); err != nil || n > 0 {
		return err
	}
	_, _, err = announceRestore(path, *m)
	return err
}

// The files that SQLite keeps beside a store: its log, the log's index, and the rollback journal of a store not in WAL mode.
const (
	logSuffix     = "-wal"
	indexSuffix   = "-shm"
	journalSuffix = "-journal"
)

// size is the length of a file; 0 if there is none.
func size(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// foreignLog refuses a store whose log belongs to another file, before SQLite replays it, which would undo the store or
// destroy it. A log is foreign beside
//
//   - no file or an empty one: SQLite writes the first page before it begins a log;
//   - a file that was written in one piece, as backups are: its header has no WAL mode yet, and SQLite sets that before
//     it begins a log;
//   - an older copy of the same store: each opening writes its count into the main file before the mark has it.
//
// What cannot be read is left to SQLite.
func foreignLog(path string) error {
	n, err := size(path + logSuffix)
	if err != nil || n == 0 {
		return err
	}
	header := make([]byte, 20)
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errForeignLog(path, "the store itself is not there")
	case err != nil:
		return nil //nolint:nilerr // opening it to write says why
	}
	read, err := io.ReadFull(f, header)
	_ = f.Close() // only read
	const writeVersion, readVersion, whole = 18, 19, 1
	switch {
	case read == 0 && errors.Is(err, io.EOF):
		return errForeignLog(path, "the store itself is empty")
	case err != nil || !strings.HasPrefix(string(header), "SQLite format 3\x00"):
		return nil //nolint:nilerr // SQLite says that it is no database
	case header[writeVersion] == whole && header[readVersion] == whole:
		return errForeignLog(path, "the store is a backup, which has none")
	}
	m, _, err := readMark(path)
	if err != nil || m == nil || m.Restoring {
		return err
	}
	if chain, opens, ok := opensAlone(path); ok && chain == m.Chain && opens < m.Opens {
		return errForeignLog(path, "the store is an older copy")
	}
	return nil
}

func errForeignLog(path, why string) error {
	return &Error{
		What: fmt.Sprintf("the log %s belongs to another file than the store %s: %s", path+logSuffix, path, why),
		Advice: "nothing was changed; to put a copy in place of the store, keep that copy under another name and run: " +
			"daycared restore FILE",
	}
}

// opensAlone returns how often the file at path was opened, by itself and without its log. While a log is being moved
// or the schema is old, ok may be false.
func opensAlone(path string) (chain string, opens int64, ok bool) {
	db := lookInto(path, "immutable=1")
	defer func() { _ = db.Close() }() // only read
	err := db.QueryRowContext(context.Background(), `SELECT chain, opens FROM meta`).Scan(&chain, &opens)
	return chain, opens, err == nil
}
