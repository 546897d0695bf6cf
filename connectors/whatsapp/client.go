package whatsapp

import (
	"context"
	"net/http"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waCompanionReg"
	"go.mau.fi/whatsmeow/store"
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
	client := c.http
	if client == nil {
		client = http.DefaultClient
	}
	v, err := whatsmeow.GetLatestVersion(ctx, client)
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
