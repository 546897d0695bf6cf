package whatsapptest

import (
	"bytes"
	"fmt"
	"slices"

	"go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
)

// companion is the device that is linked to the account.
type companion struct {
	device   uint16
	noise    []byte // the key by which it logs in
	identity []byte // its Signal identity

	registration []byte
	signed       *keys.PreKey
	preKeys      []*keys.PreKey
	waiting      []*parcel
	welcomed     bool // the phone has written to it
}

// login greets a client: with QR codes if it is not linked yet, with success if it is. The lock is held.
func (s *Server) login(c *conn) {
	defer s.change()
	if refusal, ok := s.faults.login(); ok {
		s.refuse(c, refusal)
		return
	}
	if c.payload.GetUserAgent().GetAppVersion().GetTertiary() < s.oldest {
		s.refuse(c, Outdated())
		return
	}
	if c.payload.GetDevicePairingData() != nil {
		s.offer(c)
		return
	}
	l := s.linked
	if l == nil || fmt.Sprint(c.payload.GetUsername()) != s.bot.pn.User || c.payload.GetDevice() != uint32(l.device) ||
		!bytes.Equal(c.static, l.noise) {
		s.refuse(c, LoggedOut())
		return
	}
	if s.conn != nil {
		s.send(s.conn, conflict())
		s.bye(s.conn, lingering)
	}
	s.conn = c
	s.send(c, binary.Node{Tag: "success", Attrs: binary.Attrs{
		"t": stamp(s.now()), "lid": s.deviceLID(), "status": "ok", "props": "27", "location": "tst",
	}})
}

func (s *Server) refuse(c *conn, f Refusal) {
	s.send(c, f.node())
	s.bye(c, lingering)
}

// offer shows a client that is not linked what its QR codes are to be: the first for a minute, five for 20 seconds.
func (s *Server) offer(c *conn) {
	var refs []binary.Node
	for range 6 {
		c.refs = append(c.refs, "2@"+s.newID())
		refs = append(refs, binary.Node{Tag: "ref", Content: []byte(c.refs[len(c.refs)-1])})
	}
	s.send(c, binary.Node{
		Tag: "iq", Attrs: binary.Attrs{"from": types.ServerJID, "type": "set", "id": s.newID(), "xmlns": "md"},
		Content: []binary.Node{{Tag: "pair-device", Content: refs}},
	})
}

// deviceLID is the address of the linked device.
func (s *Server) deviceLID() types.JID { return withDevice(s.bot.lid, s.linked.device) }

func withDevice(jid types.JID, device uint16) types.JID {
	jid.Device = device
	return jid
}

// unlink forgets the linked device. The lock is held.
func (s *Server) unlink() {
	if s.conn != nil {
		s.send(s.conn, removed())
		s.bye(s.conn, lingering)
	}
	s.linked = nil
	s.change()
}

func conflict() binary.Node {
	return binary.Node{Tag: "stream:error", Content: []binary.Node{
		{Tag: "conflict", Attrs: binary.Attrs{"type": "replaced"}},
	}}
}

func removed() binary.Node {
	return binary.Node{Tag: "stream:error", Attrs: binary.Attrs{"code": "401"}, Content: []binary.Node{
		{Tag: "conflict", Attrs: binary.Attrs{"type": "device_removed"}},
	}}
}

// connOf is the connection that offered a QR code, or nil.
func (s *Server) connOf(ref string) *conn {
	for c := range s.conns {
		if !c.ended && slices.Contains(c.refs, ref) {
			return c
		}
	}
	return nil
}
