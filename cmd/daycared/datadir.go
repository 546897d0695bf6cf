package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/permissions"
)

// dataDir is a locked data directory: it has one daemon at a time.
type dataDir struct {
	path   string
	folder *os.File // locked as well, since the lock file can be deleted
	lock   *os.File
	self   holder // this daemon
	signed bool   // self was written to the lock file
}

const (
	lockName  = "daycared.lock"
	storeName = "daycared.db"
)

// makeDataDir creates the folder (0700) if needed. It rejects a folder that other accounts can access, or that belongs to
// another account than uid, which could not use the files created there.
func makeDataDir(path string, uid int) error {
	if err := owns(path, uid); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("look at the data directory: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("the data directory %s is open to other accounts (%#o); run: chmod 700 %s", path, info.Mode().Perm(), path)
	}
	return nil
}

// owns rejects the data directory of another account.
func owns(dir string, uid int) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("look at the data directory: %w", err)
	}
	if owner := ownerOf(info); owner != uid && owner != permissions.NoUID {
		return notOwnDir(dir, owner)
	}
	return nil
}

// notOwnDir says who owns the data directory. The owner may be a dynamic user of systemd, which exists only while its service
// runs, so that nobody can become that account.
func notOwnDir(dir string, owner int) error {
	if _, err := user.LookupId(strconv.Itoa(owner)); err != nil {
		return fmt.Errorf("the data directory %s is of uid %d, which exists only while its service runs; "+
			"see docs/operations.md, Backup and restore", dir, owner)
	}
	return fmt.Errorf("the data directory %s is of another account, %s; run this as that account, or set another data_dir",
		dir, accountName(owner))
}

// ownerOf is the uid that owns a file; [permissions.NoUID] if unknown.
func ownerOf(info fs.FileInfo) int {
	if s, known := info.Sys().(*syscall.Stat_t); known {
		return int(s.Uid)
	}
	return permissions.NoUID
}

// groupOf is the gid of a file; -1 if unknown.
func groupOf(info fs.FileInfo) int {
	if s, known := info.Sys().(*syscall.Stat_t); known {
		return int(s.Gid)
	}
	return -1
}

// accountName formats an account: "uid 1000 (fay)", without a name if it has none.
func accountName(uid int) string {
	text := "uid " + strconv.Itoa(uid)
	if known, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		text += " (" + known.Username + ")"
	}
	return text
}

// holder describes the daemon that holds the lock, as written in the lock file. It is valid only while the lock is held: a
// killed daemon leaves it behind.
type holder struct {
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
	Console string    `json:"console"` // the terminal in which it was started; empty: none
}

func (h holder) String() string {
	if h.PID == 0 {
		return "which is just starting or ending"
	}
	at := "without a console"
	if h.Console != "" {
		at = "started in the terminal " + spelled(h.Console)
	}
	return fmt.Sprintf("pid %d, since %s, %s", h.PID, stamp(h.Since, time.Local), at)
}

// openDataDir creates the folder (0700) if needed and locks it until this process ends. console is the process's terminal, if any.
func openDataDir(path string, uid int, console string) (*dataDir, error) {
	if err := makeDataDir(path, uid); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	switch {
	case errors.Is(err, unix.EROFS):
		return nil, fmt.Errorf("the data directory %s is on a read-only file system; mount it writable, or set another data_dir", path)
	case errors.Is(err, fs.ErrPermission):
		return nil, notOwnLock(path, uid, err)
	case err != nil:
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	folder, err := os.Open(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the data directory: %w", permissions.Cause(err)), lock.Close())
	}
	d := &dataDir{
		path: path, folder: folder, lock: lock, self: holder{PID: os.Getpid(), Since: time.Now().UTC(), Console: console},
	}
	if err = flock(folder); !errors.Is(err, unix.EWOULDBLOCK) { // some file systems cannot lock folders
		err = flock(lock)
	}
	if err != nil {
		held := d.holder()
		lock.Close()
		folder.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("another daycared is running on %s (%s); see: daycared status; end it with: daycared stop; "+
				"or set another data_dir", path, held)
		}
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	if err := d.sign(d.self); err != nil && !store.IsFull(err) { // the start retries it
		return nil, errors.Join(fmt.Errorf("write the lock of the data directory: %w", err), d.Close())
	}
	return d, nil
}

// notOwnLock explains a lock file that this account may not open.
func notOwnLock(path string, uid int, err error) error {
	file := filepath.Join(path, lockName)
	info, failed := os.Stat(file)
	if failed != nil || ownerOf(info) == uid {
		return fmt.Errorf("lock the data directory: %w", err)
	}
	return fmt.Errorf("lock the data directory: %s belongs to %s, which ran daycared here; as root, give the folder back with: chown -R %d %s",
		file, accountName(ownerOf(info)), uid, path)
}

// heldBy returns the daemon that holds the lock of a data directory; held is false if none does, or if this account cannot tell.
func heldBy(path string) (by holder, held bool) {
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
	if err != nil {
		return holder{}, false
	}
	defer lock.Close()
	if !errors.Is(unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK) {
		return holder{}, false
	}
	return (&dataDir{lock: lock}).holder(), true
}

// sign writes the holder to the lock file.
func (d *dataDir) sign(h holder) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := d.lock.Truncate(0); err != nil {
		return err
	}
	_, err = d.lock.WriteAt(append(text, '\n'), 0)
	d.signed = err == nil
	return err
}

// keepLock locks again if the lock file was deleted or replaced. The error matches [unix.EWOULDBLOCK] if another daemon has a new one.
func (d *dataDir) keepLock() (anew bool, err error) {
	path := filepath.Join(d.path, lockName)
	own, err := d.lock.Stat()
	if err != nil {
		return false, err
	}
	if found, err := os.Stat(path); err == nil && os.SameFile(found, own) {
		return false, nil
	}
	lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return false, errors.Join(err, lock.Close())
	}
	_ = d.lock.Close() // its file is gone
	d.lock = lock
	return true, d.sign(d.self)
}

// holder returns the holder of a lock that is held. It is zero if the file's content cannot be that process's: it was never
// written, or its process has ended.
func (d *dataDir) holder() (h holder) {
	text := make([]byte, 4096)
	n, err := d.lock.ReadAt(text, 0)
	if err != nil && !errors.Is(err, io.EOF) || json.Unmarshal(text[:n], &h) != nil || h.PID <= 0 {
		return holder{}
	}
	if errors.Is(unix.Kill(h.PID, 0), unix.ESRCH) {
		return holder{}
	}
	return h
}

// lockWithin is how long to wait for the lock. A child that a killed daemon was just starting holds it until it calls exec.
const lockWithin = 2 * time.Second

func flock(f *os.File) error {
	again := time.NewTicker(lockWithin / 100)
	defer again.Stop()
	for late := time.Now().Add(lockWithin); ; <-again.C {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(late) {
			return err
		}
	}
}

// Close releases the lock.
func (d *dataDir) Close() error {
	_ = d.lock.Truncate(0) // the next holder writes its own
	return errors.Join(d.lock.Close(), d.folder.Close())
}

// adminKey reads or creates (0600) the key with which the daemon's account and root authenticate at the admin socket. A damaged
// one, as after a power cut, is replaced: no other copy of it exists.
func adminKey(path string) (key string, replaced bool, err error) {
	was, err := config.ReadFile(path, maxSecret)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", false, fmt.Errorf("read the admin key: %w", err)
	}
	if isAdminKey(was) {
		return string(was), false, nil
	}
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	key = hex.EncodeToString(secret[:])
	if failed := store.WriteFile(path, []byte(key), 0o600); failed != nil {
		return "", false, fmt.Errorf("write the admin key: %w", failed)
	}
	return key, err == nil, nil
}

func isAdminKey(text []byte) bool {
	secret, err := hex.DecodeString(string(text))
	return err == nil && len(secret) == 32
}

var errNoFile = errors.New("it is not a regular file")

// openFile opens a regular file for reading, and rejects anything that could block. Errors do not contain its name.
func openFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, permissions.Cause(err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNoFile
	}
	if err != nil {
		return nil, errors.Join(permissions.Cause(err), f.Close())
	}
	return f, nil
}

// readSecret reads a file that holds one secret and trims the space around it; what describes it. Errors say what would be
// right, and do not reveal the secret.
func readSecret(file, what string) (string, error) {
	text, err := config.ReadFile(file, maxSecret+1)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s does not exist; put %s there, in a file of mode 0600", file, what)
	case errors.Is(err, syscall.EISDIR):
		return "", fmt.Errorf("%s is a folder; name the file in it", file)
	case err != nil:
		return "", fmt.Errorf("%s cannot be read (%w); let the daemon's account read it, or name another file", file, permissions.Cause(err))
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("%s is empty; put %s there", file, what)
	}
	return secret, nil
}

// maxSecret is the maximum length of a secret, in bytes; a larger file is something else.
const maxSecret = 4096

// exposed returns a warning, with a fix, if other accounts can read a secret's file; empty if not, or if that is unknown.
func exposed(file string) string {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 == 0 {
		return ""
	}
	return fmt.Sprintf("others may read %s (%#o); run: chmod 600 %s", file, info.Mode().Perm(), file)
}

// runningData returns the data directories of this account's daemons that run, which may have been started with another configuration
// than this process has. Only Linux lists them.
func runningData() (folders []string) {
	locks, _ := os.ReadFile("/proc/locks") // a row is 5: FLOCK ADVISORY WRITE 1234 fe:00:105 0 EOF
	for row := range strings.Lines(string(locks)) {
		fields := strings.Fields(row)
		if len(fields) < 5 || fields[1] != "FLOCK" {
			continue
		}
		open, _ := filepath.Glob("/proc/" + fields[4] + "/fd/*") // none of another account's
		for _, link := range open {
			if file, err := os.Readlink(link); err == nil && filepath.Base(file) == lockName {
				folders = append(folders, filepath.Dir(file))
			}
		}
	}
	return folders
}
