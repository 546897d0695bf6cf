package whatsapptest

import (
	"context"
	"maps"
	"strconv"

	"go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// parcel is a message, receipt or notification for the linked device. It waits until the device acknowledges it, over
// as many connections as that takes.
type parcel struct {
	node binary.Node
	over int // the connection that it was last sent over
}

// deliver is the way of everything that must not be lost to the linked device. The lock is held.
func (s *Server) deliver(node binary.Node) {
	if s.linked == nil {
		return
	}
	p := &parcel{node: node}
	s.linked.waiting = append(s.linked.waiting, p)
	if s.conn != nil && s.conn.active {
		s.hand(p)
	}
	s.change()
}

func (s *Server) hand(p *parcel) {
	p.over = s.conn.number
	s.send(s.conn, p.node)
}

// activate hands out what waits, once a client has logged in and asks for it. The lock is held.
func (s *Server) activate(c *conn) {
	if c != s.conn || c.active {
		return
	}
	if !s.linked.welcomed {
		s.linked.welcomed = true
		s.welcome()
	}
	c.active = true
	s.handAll()
}

// handAll hands out all that waits, as the true server does at the beginning of a connection.
func (s *Server) handAll() {
	c := s.conn
	count := map[string]int{}
	waiting := append([]*parcel(nil), s.linked.waiting...)
	for _, p := range waiting {
		count[p.node.Tag]++
	}
	s.send(c, ib(binary.Node{Tag: "offline_preview", Attrs: binary.Attrs{
		"count": strconv.Itoa(len(waiting)), "message": strconv.Itoa(count["message"]), "appdata": "0",
		"receipt": strconv.Itoa(count["receipt"]), "notification": strconv.Itoa(count["notification"]),
	}}))
	for _, p := range waiting {
		p.node.Attrs = maps.Clone(p.node.Attrs)
		p.node.Attrs["offline"] = "0"
		if c.ended {
			return // cut at one of them
		}
		s.hand(p)
	}
	s.send(c, ib(binary.Node{Tag: "offline", Attrs: binary.Attrs{"count": strconv.Itoa(len(waiting))}}))
}

func ib(content binary.Node) binary.Node {
	return binary.Node{Tag: "ib", Attrs: binary.Attrs{"from": types.ServerJID}, Content: []binary.Node{content}}
}

// acknowledge takes a parcel off the queue, the oldest of that kind and id that was sent over this connection.
func (s *Server) acknowledge(class, id string) {
	if s.linked == nil || s.conn == nil {
		return
	}
	for i, p := range s.linked.waiting {
		if p.node.Tag == class && text(p.node, "id") == id && p.over == s.conn.number {
			s.linked.waiting = append(s.linked.waiting[:i:i], s.linked.waiting[i+1:]...)
			return
		}
	}
}

// Redeliver sends all that the client has not acknowledged once more, as if it had reconnected.
func (s *Server) Redeliver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil && s.conn.active {
		s.handAll()
	}
}

// Waiting are the messages, receipts and notifications that the client has not acknowledged, the oldest first.
func (s *Server) Waiting() []Stanza {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.linked == nil {
		return nil
	}
	var waiting []Stanza
	for _, p := range s.linked.waiting {
		waiting = append(waiting, Stanza{At: s.now(), Connection: p.over, Node: p.node})
	}
	return waiting
}

// Acknowledged waits until the client has acknowledged everything.
func (s *Server) Acknowledged(ctx context.Context) error {
	return s.wait(ctx, func() bool { return s.linked == nil || len(s.linked.waiting) == 0 })
}
