package whatsapptest

import (
	"context"
	"strconv"
	"time"

	"go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// Stanza is one stanza that a client sent, or is to get.
type Stanza struct {
	At         time.Time
	Connection int // 1 is the first that the server ever had
	Node       binary.Node
}

// Is reports whether the stanza has this tag, and the attribute type given, where that is not empty.
func (s Stanza) Is(tag, kind string) bool {
	return s.Node.Tag == tag && (kind == "" || text(s.Node, "type") == kind)
}

// ID is the stanza's id, "" where it has none.
func (s Stanza) ID() string { return text(s.Node, "id") }

// AwaitStanzas returns once enough of the stanzas that clients sent so far is true, or with the error of ctx. enough
// must not keep them, nor call the server.
func (s *Server) AwaitStanzas(ctx context.Context, enough func([]Stanza) bool) error {
	return s.wait(ctx, func() bool { return enough(s.stanzas) })
}

// receive does what one stanza asks for. The lock is held.
func (s *Server) receive(c *conn, node *binary.Node) {
	if c.ended {
		return // it was sent before the client knew
	}
	stanza := Stanza{At: s.now(), Connection: c.number, Node: *node}
	s.stanzas = append(s.stanzas, stanza)
	defer s.change()
	if c.silent {
		return
	}
	if s.faults.cuts(BeforeReceiving, stanza) {
		s.cut(c)
		return
	}
	if s.faults.cuts(AfterReceiving, stanza) {
		c.silent = true // what it answers is lost
		defer s.cut(c)
	}
	switch node.Tag {
	case "iq":
		s.takeIQ(c, node)
	case "message":
		s.takeMessage(c, node)
	case "receipt":
		s.takeReceipt(c, node)
	case "ack":
		if code := text(*node, "error"); code != "" {
			s.violate("the client refuses a %s: %s", text(*node, "class"), code)
		}
		s.acknowledge(text(*node, "class"), text(*node, "id"))
	case "presence":
		if kind := text(*node, "type"); kind != "subscribe" {
			s.presence = kind
		}
	case "chatstate":
		s.takeTyping(node)
	case "ib": // telemetry
	default:
		s.violate("a stanza %s", node.String())
	}
}

// text is an attribute as text, "" where there is none.
func text(n binary.Node, name string) string {
	switch v := n.Attrs[name].(type) {
	case string:
		return v
	case types.JID:
		return v.String()
	case int:
		return strconv.Itoa(v)
	}
	return ""
}

// address is an attribute that is an address, the zero address where it is none.
func address(n binary.Node, name string) types.JID {
	jid, _ := n.Attrs[name].(types.JID)
	return jid
}

// body is what is between a stanza's tags, nil where that is other stanzas.
func body(n binary.Node) []byte {
	switch v := n.Content.(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	}
	return nil
}

// child is a stanza within a stanza.
func child(n *binary.Node, tags ...string) (binary.Node, bool) {
	return n.GetOptionalChildByTag(tags...)
}

// stamp is a time as stanzas have it, in seconds.
func stamp(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
