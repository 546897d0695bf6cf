package whatsapptest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/coder/websocket"
	"go.mau.fi/whatsmeow/binary"
)

// conn is one connection of a client. What it sends is queued, so that the server's lock is never held while writing.
type conn struct {
	*greeted
	number int
	frames *frames
	end    context.CancelFunc // cuts the connection at once

	// Guarded by the server's lock.
	out     []outgoing
	wake    chan struct{}
	ended   bool
	silent  bool      // nothing of the client is done any more, and nothing is sent
	refs    []string  // that its QR codes may have
	code    *codeLink // that it shows
	passkey *passkeyLink
	active  bool // it is the linked device's, and asked for what waits
}

// outgoing is a stanza to send, or the polite end of the connection.
type outgoing struct {
	node   binary.Node
	bye    bool
	linger time.Duration // how long the client has to end it first
}

// lingering is how long a client has to end a connection after an error that it should know. The library may lose an
// error that is followed by the end at once.
const lingering = 500 * time.Millisecond

// serveSocket is the life of a connection.
func (s *Server) serveSocket(e *era, w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, CompressionMode: websocket.CompressionContextTakeover,
	})
	if err != nil {
		return
	}
	defer func() { _ = ws.CloseNow() }()
	ws.SetReadLimit(1 << 24)
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	f := &frames{ctx: ctx, ws: ws}
	client, fromClient, toClient, err := theAuthority().greet(f)
	if err != nil {
		if !errors.Is(err, errWent) {
			s.mu.Lock()
			s.violate("a handshake: %v", err)
			s.mu.Unlock()
		}
		return
	}
	c := &conn{greeted: client, frames: f, end: cancel, wake: make(chan struct{}, 1)}
	s.mu.Lock()
	s.connections++
	c.number = s.connections
	s.conns[c] = true
	s.login(c)
	s.mu.Unlock()
	e.busy.Go(func() { s.write(ctx, c, toClient) })
	s.read(c, fromClient)
	s.mu.Lock()
	defer s.mu.Unlock()
	c.ended = true
	delete(s.conns, c)
	if s.conn == c {
		s.conn = nil
	}
	s.change()
}

// read does what the client asks for until the connection ends.
func (s *Server) read(c *conn, fromClient *counted) {
	for {
		frame, err := c.frames.read()
		if err != nil {
			return
		}
		node, err := decode(frame, fromClient)
		s.mu.Lock()
		if err != nil {
			s.violate("a frame: %v", err)
		} else {
			s.receive(c, node)
		}
		s.mu.Unlock()
	}
}

func decode(frame []byte, fromClient *counted) (*binary.Node, error) {
	plain, err := fromClient.open(frame, nil)
	if err != nil {
		return nil, err
	}
	if plain, err = binary.Unpack(plain); err != nil {
		return nil, err
	}
	return binary.Unmarshal(plain)
}

// write sends what is queued until the connection ends.
func (s *Server) write(ctx context.Context, c *conn, toClient *counted) {
	for {
		s.mu.Lock()
		queued := c.out
		c.out = nil
		s.mu.Unlock()
		for _, o := range queued {
			if o.bye {
				timer := time.NewTimer(o.linger)
				select {
				case <-ctx.Done():
				case <-timer.C:
				}
				timer.Stop()
				_ = c.frames.ws.Close(websocket.StatusNormalClosure, "")
				return
			}
			raw, err := binary.Marshal(o.node)
			if err != nil {
				s.mu.Lock()
				s.violate("the server itself sends %s: %v", o.node.Tag, err)
				s.mu.Unlock()
				continue
			}
			if c.frames.write(toClient.seal(raw, nil)) != nil {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
	}
}

// send queues a stanza, unless the connection is to be cut at it. The lock is held.
func (s *Server) send(c *conn, node binary.Node) {
	if c == nil || c.silent || c.ended {
		return
	}
	stanza := Stanza{At: s.now(), Connection: c.number, Node: node}
	if s.faults.cuts(BeforeSending, stanza) {
		s.bye(c, 0)
		return
	}
	s.queue(c, outgoing{node: node})
	if s.faults.cuts(AfterSending, stanza) {
		s.bye(c, 0)
	}
}

func (s *Server) queue(c *conn, o outgoing) {
	c.out = append(c.out, o)
	select {
	case c.wake <- struct{}{}:
	default: // the writer is awake and looks again
	}
}

// bye ends a connection after what is queued, and at most linger. Nothing more is taken from it. The lock is held.
func (s *Server) bye(c *conn, linger time.Duration) {
	if c == nil || c.ended {
		return
	}
	s.queue(c, outgoing{bye: true, linger: linger})
	s.leave(c)
}

// cut ends a connection at once, and what is queued is lost. The lock is held.
func (s *Server) cut(c *conn) {
	if c == nil || c.ended {
		return
	}
	c.end()
	s.leave(c)
}

func (s *Server) leave(c *conn) {
	c.ended = true
	if s.conn == c {
		s.conn = nil
	}
	s.change()
}

// Cut cuts every connection at once.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		s.cut(c)
	}
}

// Connected waits until a linked client has logged in, and asked for what waits for it.
func (s *Server) Connected(ctx context.Context) error {
	return s.wait(ctx, func() bool { return s.conn != nil && s.conn.active })
}

// Disconnected waits until no linked client is logged in.
func (s *Server) Disconnected(ctx context.Context) error {
	return s.wait(ctx, func() bool { return s.conn == nil })
}

// Stanzas are all that clients sent so far, in the order in which it came.
func (s *Server) Stanzas() []Stanza {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.stanzas)
}
