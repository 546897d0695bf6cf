package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
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

// markName is the path of the mark of the store at path.
func markName(path string) string { return strings.TrimSuffix(path, ".db") + ".mark" }

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

// missingLog announces a new life if the mark says that the store was in use with a log and the log is gone, and with
// it the last commits. It is written before SQLite begins another log.
func missingLog(path string) error {
	m, _, err := readMark(path)
	if err != nil || m == nil || !m.InUse || m.Restoring || !fileExists(path) {
		return err
	}
	if n, err := fileSize(path + logSuffix); err != nil || n > 0 {
		return err
	}
	_, _, err = announceRestore(path, *m)
	return err
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
	n, err := fileSize(path + logSuffix)
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

// maxSeq bounds sequence numbers, far above what a store reaches: a greater one is damage.
const maxSeq = 1 << 47
