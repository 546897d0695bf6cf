package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"

	_ "github.com/mattn/go-sqlite3" // the driver of the account's own file
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"
	waLog "go.mau.fi/whatsmeow/util/log"
	"golang.org/x/sys/unix"
)

// ErrInUse is matched by errors about an account that another process holds.
var ErrInUse = errors.New("another process holds the WhatsApp account")

// account is the keys and the Signal sessions of one linked device, in a file of its own, which one process holds at a
// time: with two, WhatsApp would throw out the one for the other, again and again.
type account struct {
	lock *os.File
	rows *sqlstore.Container
}

// settings of the account's file. A lock that is not waited for long enough would lose a message while it is decrypted.
const settings = "_foreign_keys=on&_busy_timeout=20000&_journal_mode=WAL&_synchronous=FULL&_txlock=immediate"

// openAccount opens the file, or makes it (0600). The error matches [ErrInUse] when another process has it open.
func openAccount(ctx context.Context, path string, log waLog.Logger) (*account, error) {
	//nolint:gosec // the path is the configuration's
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the WhatsApp account: %w", err)
	}
	a := &account{lock: lock}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrInUse
		}
		return nil, fmt.Errorf("lock the WhatsApp account: %w", err)
	}
	if err := a.open(ctx, path, log); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *account) open(ctx context.Context, path string, log waLog.Logger) error {
	// The files that SQLite puts beside it get the same mode.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the path is the configuration's
	if err != nil {
		return fmt.Errorf("open the WhatsApp account: %w", err)
	}
	if err := errors.Join(f.Chmod(0o600), f.Close()); err != nil {
		return fmt.Errorf("keep the WhatsApp account to yourself: %w", err)
	}
	name := url.URL{Scheme: "file", Path: path, RawQuery: settings}
	if a.rows, err = sqlstore.New(ctx, "sqlite3", name.String(), log); err != nil {
		return fmt.Errorf("open the WhatsApp account in %s: %w", path, err)
	}
	return nil
}

// Device is the linked device. One without an ID is new, and not linked yet.
func (a *account) device(ctx context.Context) (*store.Device, error) {
	d, err := a.rows.GetFirstDevice(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the WhatsApp account: %w", err)
	}
	return d, nil
}

// remove forgets a device that WhatsApp removed.
func (a *account) remove(ctx context.Context, whose types.JID) error {
	if err := a.rows.DeleteDevice(ctx, &store.Device{ID: &whose}); err != nil {
		return fmt.Errorf("forget the WhatsApp account: %w", err)
	}
	return nil
}

// Close gives the file and its lock back.
func (a *account) Close() error {
	var err error
	if a.rows != nil {
		err = a.rows.Close()
	}
	return errors.Join(err, a.lock.Close())
}
