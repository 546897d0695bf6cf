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
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

// dataDir is a daemon's folder, locked: one daemon per data directory.
type dataDir struct {
	path string
	lock *os.File
}

const (
	lockName  = "daycared.lock"
	storeName = "daycared.db"
)

// makeDataDir makes the folder (0700) if need be, and refuses one that is open to others or belongs to another account
// than uid, which could not use what is put there.
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

// owns refuses the data directory of another account.
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

// notOwnDir says whose the data directory is. systemd takes the name of a dynamic user away when its service stops, and
// then nobody can become that account.
func notOwnDir(dir string, owner int) error {
	if _, err := user.LookupId(strconv.Itoa(owner)); err != nil {
		return fmt.Errorf("the data directory %s is of uid %d, which exists only while its service runs; "+
			"see docs/operations.md, Backup and restore", dir, owner)
	}
	return fmt.Errorf("the data directory %s is of another account, %s; run this as that account, or set another data_dir",
		dir, accountName(owner))
}

// ownerOf is the account that a file belongs to; [permissions.NoUID] where that is not known.
func ownerOf(info fs.FileInfo) int {
	if s, known := info.Sys().(*syscall.Stat_t); known {
		return int(s.Uid)
	}
	return permissions.NoUID
}

// groupOf is the group that a file belongs to; -1 where that is not known.
func groupOf(info fs.FileInfo) int {
	if s, known := info.Sys().(*syscall.Stat_t); known {
		return int(s.Gid)
	}
	return -1
}

// accountName is an account for people: "uid 1000 (fay)", or without the name where the machine knows none.
func accountName(uid int) string {
	text := "uid " + strconv.Itoa(uid)
	if known, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		text += " (" + known.Username + ")"
	}
	return text
}

// holder is the daemon that holds the lock, as it wrote itself down in the lock's file. What stands there is only to be
// believed while somebody holds the lock: a daemon that was killed leaves it behind.
type holder struct {
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
	Console string    `json:"console"` // the terminal that it was started in; empty: none
}

func (h holder) String() string {
	if h.PID == 0 {
		return "which is just starting or ending"
	}
	at := "without a console"
	if h.Console != "" {
		at = "started in the terminal " + card.Visible(h.Console)
	}
	return fmt.Sprintf("pid %d, since %s, %s", h.PID, stamp(h.Since, time.Local), at)
}

// openDataDir makes the folder (0700) if need be and takes its lock for this process, which ends with it. console is the
// terminal that the process was started in, if any.
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
	d := &dataDir{path: path, lock: lock}
	if err := flock(lock); err != nil {
		held := d.holder()
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("another daycared is running on %s (%s); see: daycared status; end it with: daycared stop; "+
				"or set another data_dir", path, held)
		}
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	if err := d.sign(holder{PID: os.Getpid(), Since: time.Now().UTC(), Console: console}); err != nil {
		return nil, errors.Join(fmt.Errorf("write the lock of the data directory: %w", err), d.Close())
	}
	return d, nil
}

// notOwnLock says whose the lock is that this account may not open.
func notOwnLock(path string, uid int, err error) error {
	file := filepath.Join(path, lockName)
	info, failed := os.Stat(file)
	if failed != nil || ownerOf(info) == uid {
		return fmt.Errorf("lock the data directory: %w", err)
	}
	return fmt.Errorf("lock the data directory: %s belongs to %s, which ran daycared here; as root, give the folder back with: chown -R %d %s",
		file, accountName(ownerOf(info)), uid, path)
}

// heldBy is the daemon that holds the lock of a data directory; nobody does where held is false, or as far as this account
// can tell.
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

// sign writes down who holds the lock.
func (d *dataDir) sign(h holder) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := d.lock.Truncate(0); err != nil {
		return err
	}
	_, err = d.lock.WriteAt(append(text, '\n'), 0)
	return err
}

// holder is who holds the lock, which is known to be held. It is the zero holder where what stands there cannot be its
// doing: it was never written, or its process is no more.
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

// lockWithin is how long the lock is waited for. A child of a daemon that was killed while it started one holds the lock
// as well, until it has become what it was started for.
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

// Close gives the lock back.
func (d *dataDir) Close() error {
	_ = d.lock.Truncate(0) // who comes next writes its own
	return d.lock.Close()
}

// adminKey reads the key that the daemon's own account and root present at the admin socket, or makes it (0600).
func adminKey(path string) (string, error) {
	if key, err := os.ReadFile(path); err == nil {
		return string(key), nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read the admin key: %w", err)
	}
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	key := hex.EncodeToString(secret[:])
	if err := os.WriteFile(path, []byte(key), 0o600); err != nil {
		return "", fmt.Errorf("write the admin key: %w", err)
	}
	return key, nil
}
