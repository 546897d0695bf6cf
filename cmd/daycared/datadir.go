package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
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

// makeDataDir makes the folder (0700) if need be, and refuses one that is open to others.
func makeDataDir(path string) error {
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

// openDataDir makes the folder (0700) if need be and takes its lock, which ends with the process.
func openDataDir(path string) (*dataDir, error) {
	if err := makeDataDir(path); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, unix.EROFS) {
		return nil, fmt.Errorf("the data directory %s is on a read-only file system; mount it writable, or set another data_dir", path)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	if err := flock(lock); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("another daycared is running on %s; stop it, or set another data_dir", path)
		}
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	return &dataDir{path: path, lock: lock}, nil
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
func (d *dataDir) Close() error { return d.lock.Close() }

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
