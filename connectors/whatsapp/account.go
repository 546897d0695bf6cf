package whatsapp

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"

	_ "github.com/mattn/go-sqlite3" // driver of the account's file
	signal "go.mau.fi/libsignal/logger"
	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waCompanionReg"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"
	waLog "go.mau.fi/whatsmeow/util/log"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
)

// ErrInUse is matched by errors about an account that another process holds.
var ErrInUse = errors.New("another process holds the WhatsApp account")

// Shared opens a PostgreSQL database where several daemons keep one account, for the one of them that has it until it calls release;
// prepare makes the tables. The database is nil while another process has the account.
type Shared func(ctx context.Context, prepare func(context.Context, *sql.DB) error) (db *sql.DB, release func() error, err error)

// account holds the keys and Signal sessions of one linked device, in a file of its own or a [Shared] database. Only one process may hold
// it at a time: WhatsApp would disconnect two of them alternately.
type account struct {
	rows    *sqlstore.Container
	release func() error
}

// openAccount opens the account where it is: in the database if there is one, unless the file has it. The error matches [ErrInUse] if
// another process has it open.
func openAccount(ctx context.Context, path string, shared Shared, log waLog.Logger) (*account, error) {
	if shared == nil {
		return openFile(ctx, path, log)
	}
	if _, err := os.Stat(path); err == nil {
		a, err := openFile(ctx, path, log)
		if err != nil {
			return nil, err
		}
		device, err := a.device(ctx)
		if err != nil || device.ID != nil {
			return a, err
		}
		if err := a.Close(); err != nil {
			return nil, err
		}
	}
	return openShared(ctx, shared, log)
}

func openShared(ctx context.Context, shared Shared, log waLog.Logger) (*account, error) {
	a := &account{}
	db, release, err := shared(ctx, func(ctx context.Context, db *sql.DB) error {
		a.rows = sqlstore.NewWithDB(db, "postgres", log)
		return a.rows.Upgrade(ctx)
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("open the WhatsApp account in the database: %w", err)
	case db == nil:
		return nil, ErrInUse
	}
	a.release = release
	return a, nil
}

// settings of the account's file. A shorter lock timeout could lose a message while it is decrypted.
const settings = "_foreign_keys=on&_busy_timeout=20000&_journal_mode=WAL&_synchronous=FULL&_txlock=immediate"

// openFile opens the file or creates it (0600). The error matches [ErrInUse] if another process has it open.
func openFile(ctx context.Context, path string, log waLog.Logger) (*account, error) {
	//nolint:gosec // the path comes from the configuration
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the WhatsApp account: %w", err)
	}
	a := &account{}
	a.release = func() error {
		var err error
		if a.rows != nil {
			err = a.rows.Close()
		}
		return errors.Join(err, lock.Close())
	}
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
	// The files that SQLite creates beside it get the same mode.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the path comes from the configuration
	if err != nil {
		return fmt.Errorf("open the WhatsApp account: %w", err)
	}
	if err := errors.Join(f.Chmod(0o600), f.Close()); err != nil {
		return fmt.Errorf("restrict access to the WhatsApp account: %w", err)
	}
	name := url.URL{Scheme: "file", Path: path, RawQuery: settings}
	if a.rows, err = sqlstore.New(ctx, "sqlite3", name.String(), log); err != nil {
		return fmt.Errorf("open the WhatsApp account in %s: %w", path, err)
	}
	return nil
}

// device is the linked device. Without an ID it is new and not linked yet.
func (a *account) device(ctx context.Context) (*store.Device, error) {
	d, err := a.rows.GetFirstDevice(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the WhatsApp account: %w", err)
	}
	return d, nil
}

func (a *account) remove(ctx context.Context, whose types.JID) error {
	if err := a.rows.DeleteDevice(ctx, &store.Device{ID: &whose}); err != nil {
		return fmt.Errorf("forget the WhatsApp account: %w", err)
	}
	return nil
}

// Close has another process able to open the account.
func (a *account) Close() error { return a.release() }

// newClient configures the library's client for this connector: messages are acknowledged once they are handled, messages
// that were not handled are decrypted again on redelivery, reconnecting is up to us, and the phone's history is not
// requested.
func (c *Connector) newClient(d *store.Device, handle func(event any) bool) *whatsmeow.Client {
	serializeSessions(d)
	cli := whatsmeow.NewClient(d, debugLog{c.log})
	cli.SynchronousAck = true
	cli.EnableDecryptedEventBuffer = true
	cli.EnableAutoReconnect = false
	cli.UseRetryMessageStore = true // otherwise a retry request after a restart leaves "waiting for this message" on the phone
	cli.ManualHistorySyncDownload = true
	if c.o.HTTP != nil {
		cli.SetWebsocketHTTPClient(c.o.HTTP)
		cli.SetPreLoginHTTPClient(c.o.HTTP)
		cli.SetMediaHTTPClient(c.o.HTTP)
	}
	cli.AddEventHandlerWithSuccessStatus(handle)
	return cli
}

// refreshVersion adopts the current version of WhatsApp's own client after ours was refused. The setting is global to the process.
func (c *Connector) refreshVersion(ctx context.Context) error {
	v, err := whatsmeow.GetLatestVersion(ctx, cmp.Or(c.o.HTTP, http.DefaultClient))
	if err != nil {
		return err
	}
	store.SetWAVersion(*v)
	return nil
}

func init() {
	store.SetOSInfo("daycared", [3]uint32{1, 0, 0}) // shown among the phone's linked devices
	store.DeviceProps.PlatformType = waCompanionReg.DeviceProps_DESKTOP.Enum()
	store.DeviceProps.RequireFullSync = proto.Bool(false)
	store.DeviceProps.HistorySyncConfig = &waCompanionReg.DeviceProps_HistorySyncConfig{
		FullSyncDaysLimit: proto.Uint32(0), RecentSyncDaysLimit: proto.Uint32(0), StorageQuotaMb: proto.Uint32(0),
	}
}

// debugLog receives the library's log at debug level. Events carry what matters, and addresses are removed from the lines.
type debugLog struct{ log *slog.Logger }

var _ waLog.Logger = debugLog{}

func (q debugLog) Errorf(format string, args ...any) { q.say("error", format, args) }
func (q debugLog) Warnf(format string, args ...any)  { q.say("warn", format, args) }
func (q debugLog) Infof(format string, args ...any)  { q.say("info", format, args) }
func (q debugLog) Debugf(string, ...any)             {} // whole stanzas

func (q debugLog) Sub(module string) waLog.Logger { return debugLog{q.log.With("module", module)} }

func (q debugLog) say(level, format string, args []any) {
	q.log.Debug("whatsapp library", "level", level, "said", addresses.ReplaceAllLiteralString(fmt.Sprintf(format, args...), "…"))
}

// silentLog silences the Signal library, which would print to the terminal.
type silentLog struct{}

func (silentLog) Debug(string, string)   {}
func (silentLog) Info(string, string)    {}
func (silentLog) Warning(string, string) {}
func (silentLog) Error(string, string)   {}
func (silentLog) Configure(string)       {}

func init() {
	signal.Logger = silentLog{}
}
