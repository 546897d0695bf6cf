package whatsapptest

import (
	"errors"
	"slices"
	"strconv"

	"go.mau.fi/libsignal/signalerror"
	"go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// piece is what a message of the linked device is for one phone.
type piece struct {
	id   string
	from types.JID // the device
	to   types.JID // the chat
	enc  binary.Node
}

// takeMessage takes a message of the linked device to the phones that it is for. The lock is held.
func (s *Server) takeMessage(c *conn, node *binary.Node) {
	to := address(*node, "to")
	if c != s.conn {
		s.violate("a client that has not logged in sends %s", node.String())
		return
	}
	if code := next(&s.faults.messages); code != 0 {
		s.answer(c, node, code)
		return
	}
	a := s.accounts[to.User]
	enc, direct := child(node, "enc")
	switch {
	case to.Server != types.DefaultUserServer && to.Server != types.HiddenUserServer:
		s.violate("a message to %s", to)
		s.answer(c, node, 479)
	case text(*node, "id") == "":
		s.violate("a message without an id")
		s.answer(c, node, 479)
	case a == nil || a.gone:
		s.answer(c, node, 404)
	case s.faults.cold && !a.wrote && a != s.bot:
		s.answer(c, node, 463)
	case direct: // to one device: a peer message, or one that was asked for again
		s.confirm(c, node)
		s.arrive(a, piece{id: text(*node, "id"), from: s.deviceLID(), to: to, enc: enc})
	default:
		s.fanOut(c, node, a)
	}
}

// fanOut takes a message to all devices that it is encrypted for.
func (s *Server) fanOut(c *conn, node *binary.Node, a *account) {
	to, id := address(*node, "to"), text(*node, "id")
	participants := node.GetChildByTag("participants")
	_, signed := child(node, "device-identity")
	reached := false
	var pieces []piece
	var phones []*account
	for _, part := range participants.GetChildren() {
		jid, enc := address(part, "jid"), part.GetChildByTag("enc")
		who := s.accounts[jid.User]
		if text(enc, "type") == "pkmsg" && !signed {
			s.violate("message %s begins a session without the identity of its device", id)
		}
		if who == nil || who.gone || jid.Device != 0 {
			continue
		}
		reached = reached || who == a
		phones, pieces = append(phones, who), append(pieces, piece{id: id, from: s.deviceLID(), to: to, enc: enc})
	}
	if !reached {
		s.violate("message %s to %s is for none of their devices", id, to)
		s.answer(c, node, 479)
		return
	}
	s.confirm(c, node)
	for i, p := range pieces {
		s.arrive(phones[i], p)
	}
}

// confirm tells the client that its message was taken, unless that is to be lost.
func (s *Server) confirm(c *conn, node *binary.Node) {
	if s.faults.lostAcks > 0 {
		s.faults.lostAcks--
		return
	}
	s.faults.tell(func() { s.answer(c, node, 0) })
}

func (s *Server) answer(c *conn, node *binary.Node, code int) {
	attrs := binary.Attrs{"class": node.Tag, "id": text(*node, "id"), "from": node.Attrs["to"], "t": stamp(s.now())}
	if code != 0 {
		attrs["error"] = strconv.Itoa(code)
	}
	if kind := text(*node, "type"); node.Tag == "receipt" && kind != "" {
		attrs["type"] = kind
	}
	s.send(c, binary.Node{Tag: "ack", Attrs: attrs})
}

// arrive is a message at a phone: decrypted, shown, and told to be delivered.
func (s *Server) arrive(a *account, p piece) {
	if a.blocks || a.gone {
		return
	}
	if a.away {
		a.mail = append(a.mail, p)
		return
	}
	if a.blind > 0 {
		a.blind--
		s.askAgain(a, p)
		return
	}
	m, err := a.phone.decrypt(p.from, p.enc)
	switch {
	case errors.Is(err, signalerror.ErrOldCounter): // the phone has it, and the client did not know
	case err != nil:
		s.askAgain(a, p)
		return
	case a == s.bot:
		s.atHome(p, m)
	default:
		s.note(a, s.bot.pn.User, s.bot, p.id, s.now(), m)
	}
	if a == s.bot {
		return
	}
	s.faults.tell(func() {
		s.deliver(binary.Node{Tag: "receipt", Attrs: binary.Attrs{"from": a.lid, "id": p.id, "t": stamp(s.now())}})
	})
}

// askAgain asks the linked device for a message that a phone could not read. A phone that has no session sends what is
// needed to begin one.
func (s *Server) askAgain(a *account, p piece) {
	a.retries[p.id]++
	count := a.retries[p.id]
	if count > 4 || s.linked == nil || p.from != s.deviceLID() {
		return
	}
	attrs := binary.Attrs{"from": a.lid, "id": p.id, "type": "retry", "t": stamp(s.now())}
	if a == s.bot {
		attrs["recipient"] = p.to
	}
	content := []binary.Node{
		{Tag: "retry", Attrs: binary.Attrs{"count": strconv.Itoa(count), "id": p.id, "t": stamp(s.now()), "v": "1"}},
		{Tag: "registration", Content: a.phone.number()},
	}
	if count > 1 || !a.phone.knows(p.from) {
		content = append(content, binary.Node{Tag: "keys", Content: a.phone.keyNodes()})
	}
	s.deliver(binary.Node{Tag: "receipt", Attrs: attrs, Content: content})
}

// takeReceipt takes what became of a message that the linked device got. The lock is held.
func (s *Server) takeReceipt(c *conn, node *binary.Node) {
	if c != s.conn {
		s.violate("a client that has not logged in sends %s", node.String())
		return
	}
	s.answer(c, node, 0)
	id, kind := text(*node, "id"), text(*node, "type")
	ids := []string{id}
	list, _ := child(node, "list")
	for _, item := range list.GetChildren() {
		ids = append(ids, text(item, "id"))
	}
	switch kind {
	case "", "inactive", "sender", "peer_msg":
		s.acknowledge("message", id)
		s.mark(ids, func(m *Message) { m.Delivered = true })
	case "read", "read-self":
		s.mark(ids, func(m *Message) { m.Delivered, m.Read = true, kind == "read" })
	case "retry":
		asked, _ := child(node, "retry")
		s.repost(node, asked)
	default:
		s.violate("a receipt %s", node.String())
	}
}

// mark marks messages as their senders see them.
func (s *Server) mark(ids []string, how func(*Message)) {
	for _, a := range s.accounts {
		for _, chat := range a.chats {
			for _, m := range chat {
				if m.From == a.pn.User && slices.Contains(ids, m.ID) {
					how(m)
				}
			}
		}
	}
}

// Reads opens the chat: every message of the account that the person has not read is read now, and the account is told.
func (p *Person) Reads() {
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for _, m := range p.who.chats[s.bot.pn.User] {
		if m.From == s.bot.pn.User && !m.Read {
			m.Read = true
			ids = append(ids, m.ID)
		}
	}
	if len(ids) == 0 {
		return
	}
	receipt := binary.Node{Tag: "receipt", Attrs: binary.Attrs{"from": p.who.lid, "id": ids[0], "type": "read", "t": stamp(s.now())}}
	var more []binary.Node
	for _, id := range ids[1:] {
		more = append(more, binary.Node{Tag: "item", Attrs: binary.Attrs{"id": id}})
	}
	if more != nil {
		receipt.Content = []binary.Node{{Tag: "list", Content: more}}
	}
	s.deliver(receipt)
	s.change()
}
