package whatsapp

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"

	signal "go.mau.fi/libsignal/logger"
	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waCompanionReg"
	"go.mau.fi/whatsmeow/store"
	waLog "go.mau.fi/whatsmeow/util/log"
	"google.golang.org/protobuf/proto"
)

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
