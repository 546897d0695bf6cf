package whatsapptest

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"
	"go.mau.fi/libsignal/logger"
	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
)

func TestMain(m *testing.M) {
	logger.Logger = quiet{}
	whatsmeow.KeepAliveIntervalMin, whatsmeow.KeepAliveIntervalMax = 300*time.Millisecond, 600*time.Millisecond
	whatsmeow.KeepAliveResponseDeadline, whatsmeow.KeepAliveMaxFailTime = 2*time.Second, time.Second
	// The library leaves its reader behind when a connection ends while a frame is on its way.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("go.mau.fi/whatsmeow/socket.(*FrameSocket).readPump"))
}

// quiet is a log of the Signal library that is not kept. Its own goes to the terminal, and phones that cannot read a
// message are part of the play.
type quiet struct{}

func (quiet) Debug(_, _ string)   {}
func (quiet) Info(_, _ string)    {}
func (quiet) Warning(_, _ string) {}
func (quiet) Error(_, _ string)   {}
func (quiet) Configure(string)    {}

const fayNumber = "491700000001"

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// lenient is a server whose violations do not fail the test.
func lenient(t *testing.T) *Server {
	t.Helper()
	s, err := Serve(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// client is the library's client as it is, and all events that it raised.
type client struct {
	*whatsmeow.Client
	t       *testing.T
	server  *Server
	store   *sqlstore.Container
	mu      sync.Mutex
	events  []any
	changed chan struct{}
	refuses func(any) bool // events whose handling fails
}

// newClient is a client that is not linked, with a store of its own. Messages are to be handled at least once.
func newClient(t *testing.T, s *Server) *client {
	t.Helper()
	file := filepath.Join(t.TempDir(), "client.db")
	container, err := sqlstore.New(t.Context(), "sqlite3",
		"file:"+file+"?_foreign_keys=on&_busy_timeout=10000&_journal_mode=WAL&_synchronous=OFF&_txlock=immediate", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = container.Close() })
	return restart(t, s, container, container.NewDevice())
}

// restart is a new client with what another one left.
func restart(t *testing.T, s *Server, container *sqlstore.Container, device *store.Device) *client {
	t.Helper()
	c := &client{t: t, server: s, store: container, changed: make(chan struct{})}
	c.Client = whatsmeow.NewClient(device, nil)
	http := s.Client()
	c.SetWebsocketHTTPClient(http)
	c.SetPreLoginHTTPClient(http)
	c.SetMediaHTTPClient(http)
	c.SynchronousAck, c.EnableDecryptedEventBuffer = true, true
	c.AddEventHandlerWithSuccessStatus(func(e any) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.refuses != nil && c.refuses(e) {
			return false
		}
		c.events = append(c.events, e)
		close(c.changed)
		c.changed = make(chan struct{})
		return true
	})
	t.Cleanup(func() {
		c.Disconnect()
		http.CloseIdleConnections()
	})
	return c
}

// fails makes the handling of some events fail.
func (c *client) fails(refuses func(any) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuses = refuses
}

// await is the first event of a type that fits, which is then taken away.
func await[T any](c *client, fits ...func(T) bool) T {
	c.t.Helper()
	ctx := within(c.t)
	for {
		c.mu.Lock()
		for i, e := range c.events {
			if found, ok := e.(T); ok && (len(fits) == 0 || fits[0](found)) {
				c.events = slices.Delete(c.events, i, i+1)
				c.mu.Unlock()
				return found
			}
		}
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			var none T
			c.t.Fatalf("no %T among %d events: %v", none, len(c.events), c.events)
		}
	}
}

// count is how many events of a type there are.
func count[T any](c *client, fits func(T) bool) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.events {
		if found, ok := e.(T); ok && fits(found) {
			n++
		}
	}
	return n
}

// linked is a client that was linked by QR code, and is connected.
func linked(t *testing.T, s *Server) *client {
	t.Helper()
	c := newClient(t, s)
	c.scan()
	return c
}

func (c *client) scan() {
	c.t.Helper()
	if err := c.server.Phone().Scans(within(c.t), c.offered()); err != nil {
		c.t.Fatal(err)
	}
	await[*events.PairSuccess](c)
	await[*events.Connected](c)
	if err := c.server.Acknowledged(within(c.t)); err != nil { // what the phone tells a new device
		c.t.Fatal(err)
	}
}

// offered connects, and is the first QR code.
func (c *client) offered() string {
	c.t.Helper()
	if err := c.Connect(); err != nil {
		c.t.Fatal(err)
	}
	return await[*events.QR](c).Codes[0]
}

// says sends a text to a number, and returns the message's id.
func (c *client) says(to, text string) string {
	c.t.Helper()
	return c.sends(to, &waE2E.Message{Conversation: proto.String(text)})
}

func (c *client) sends(to string, m *waE2E.Message) string {
	c.t.Helper()
	sent, err := c.SendMessage(within(c.t), types.NewJID(to, types.DefaultUserServer), m)
	if err != nil {
		c.t.Fatal(err)
	}
	return sent.ID
}

// gets is the event of a message.
func (c *client) gets(id string) *events.Message {
	c.t.Helper()
	return await(c, func(m *events.Message) bool { return m.Info.ID == id })
}

func saying(text string) func(Message) bool {
	return func(m Message) bool { return m.Text == text }
}
