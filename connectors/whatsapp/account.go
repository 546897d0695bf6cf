package whatsapp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"

	_ "github.com/mattn/go-sqlite3" // the driver of the account's own file
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

// newClient is a client of the library as this connector needs it: a message is acknowledged once it has been handled,
// and one that was not is decrypted again when it comes again; connections are our own business; and what the phone
// would send of its history is not asked for.
func (c *Connector) newClient(d *store.Device, handle func(event any) bool) *whatsmeow.Client {
	cli := whatsmeow.NewClient(d, quiet{c.log})
	cli.SynchronousAck = true
	cli.EnableDecryptedEventBuffer = true
	cli.EnableAutoReconnect = false
	cli.UseRetryMessageStore = true // else a phone that asks again after a restart shows "waiting for this message"
	cli.ManualHistorySyncDownload = true
	if c.http != nil {
		cli.SetWebsocketHTTPClient(c.http)
		cli.SetPreLoginHTTPClient(c.http)
		cli.SetMediaHTTPClient(c.http)
	}
	cli.AddEventHandlerWithSuccessStatus(handle)
	return cli
}

// freshen takes the version that WhatsApp's own client has now, after ours was refused. It is the library's, for the
// whole process.
func (c *Connector) freshen(ctx context.Context) error {
	v, err := whatsmeow.GetLatestVersion(ctx, cmp.Or(c.http, http.DefaultClient))
	if err != nil {
		return err
	}
	store.SetWAVersion(*v)
	return nil
}

func init() {
	store.SetOSInfo("daycared", [3]uint32{1, 0, 0}) // what the phone lists among its linked devices
	store.DeviceProps.PlatformType = waCompanionReg.DeviceProps_DESKTOP.Enum()
	store.DeviceProps.RequireFullSync = proto.Bool(false)
	store.DeviceProps.HistorySyncConfig = &waCompanionReg.DeviceProps_HistorySyncConfig{
		FullSyncDaysLimit: proto.Uint32(0), RecentSyncDaysLimit: proto.Uint32(0), StorageQuotaMb: proto.Uint32(0),
	}
}

// quiet takes what the library says. All of it is for those who look for a fault: what matters is said by events, and
// the library's lines hold whose message it is, which is left out.
type quiet struct{ log *slog.Logger }

var _ waLog.Logger = quiet{}

func (q quiet) Errorf(format string, args ...any) { q.say("error", format, args) }
func (q quiet) Warnf(format string, args ...any)  { q.say("warn", format, args) }
func (q quiet) Infof(format string, args ...any)  { q.say("info", format, args) }
func (q quiet) Debugf(string, ...any)             {} // whole stanzas

// Sub is the same for a part of the library.
func (q quiet) Sub(module string) waLog.Logger { return quiet{q.log.With("module", module)} }

func (q quiet) say(level, format string, args []any) {
	q.log.Debug("whatsapp library", "level", level, "said", addresses.ReplaceAllLiteralString(fmt.Sprintf(format, args...), "…"))
}

// mute is what the Signal library writes to, which would print to the terminal.
type mute struct{}

func (mute) Debug(string, string)   {}
func (mute) Info(string, string)    {}
func (mute) Warning(string, string) {}
func (mute) Error(string, string)   {}
func (mute) Configure(string)       {}

func init() {
	signal.Logger = mute{}
}
