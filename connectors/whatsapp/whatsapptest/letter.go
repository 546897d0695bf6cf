package whatsapptest

import (
	"strconv"
	"time"

	"go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
)

// What a message does to an older one, in the stanza's attribute edit.
const (
	edits   = "1"
	revokes = "7"
)

// letter is a message to the linked device. It is kept, for the device may ask for it again.
type letter struct {
	id      string
	from    *account
	device  uint16 // of the account, where another one than the phone has sent it
	via     route
	where   types.JID // a group or a broadcast list
	to      *account  // whom the account's own phone wrote to
	peer    bool      // it is between the account's own devices
	at      time.Time
	message *waE2E.Message
	kind    string // the stanza's type
	edit    string // what it does to an older one: nothing, edits, or revokes
	sealed  binary.Node
}

// post encrypts a letter and sends it on its way. The lock is held.
func (s *Server) post(l *letter) {
	if s.linked == nil || l.from.gone {
		return
	}
	encs, err := s.seal(l)
	if err != nil {
		s.violate("a message of %s cannot be encrypted: %v", l.from.name, err)
		return
	}
	if encs == nil {
		return
	}
	l.sealed = binary.Node{Tag: "message", Attrs: s.envelope(l), Content: encs}
	s.deliver(l.sealed)
}

// seal encrypts a letter for the linked device. There is nothing, and no error, while the device has told no keys.
func (s *Server) seal(l *letter) ([]binary.Node, error) {
	device, from := s.deviceLID(), l.vault()
	if !from.knows(device) {
		keys := s.bundle()
		if keys == nil {
			return nil, nil
		}
		if err := from.meet(device, keys); err != nil {
			return nil, err
		}
	}
	if l.where.Server != types.GroupServer {
		enc, err := from.encrypt(device, l.message)
		return []binary.Node{s.spoil(l, enc)}, err
	}
	enc, share, err := from.encryptFor(l.where, l.from.lid, l.message)
	if err != nil || l.from.shared[l.where.String()] == int(device.Device) {
		return []binary.Node{s.spoil(l, enc)}, err
	}
	l.from.shared[l.where.String()] = int(device.Device)
	key, err := from.encrypt(device, share)
	return []binary.Node{key, s.spoil(l, enc)}, err
}

// vault is the memory of the device that sends a letter.
func (l *letter) vault() *vault {
	if l.device != 0 {
		return l.from.desktop
	}
	return l.from.phone
}

// spoil makes a message of somebody that is to be garbled unreadable.
func (s *Server) spoil(l *letter, enc binary.Node) binary.Node {
	if s.faults.garbled > 0 && enc.Content != nil && l.from != s.bot {
		s.faults.garbled--
		sealed := join(body(enc))
		sealed[len(sealed)-10] ^= 1 // of the proof that it is unchanged; after that may come what is not looked at
		enc.Content = sealed
	}
	return enc
}

// envelope is what the server tells of a letter and its sender.
func (s *Server) envelope(l *letter) binary.Attrs {
	attrs := binary.Attrs{"id": l.id, "type": l.kind, "t": stamp(l.at), "notify": l.from.name}
	if l.edit != "" {
		attrs["edit"] = l.edit
	}
	if l.from == s.bot {
		attrs["from"] = withDevice(s.bot.lid, l.device)
		if l.peer {
			attrs["category"] = "peer"
		} else {
			attrs["recipient"], attrs["peer_recipient_pn"] = l.to.lid, l.to.pn
		}
		return attrs
	}
	from, lid, pn := "from", "sender_lid", "sender_pn"
	if !l.where.IsEmpty() {
		attrs["from"] = l.where
		from, lid, pn = "participant", "participant_lid", "participant_pn"
	}
	switch l.via {
	case lidWithNumber:
		attrs[from], attrs[pn], attrs["addressing_mode"] = l.from.lid, l.from.pn, "lid"
	case numberWithLID:
		attrs[from], attrs[lid], attrs["addressing_mode"] = l.from.pn, l.from.lid, "pn"
	case lidAlone:
		attrs[from], attrs["addressing_mode"] = l.from.lid, "lid"
	case numberAlone:
		attrs[from], attrs["addressing_mode"] = l.from.pn, "pn"
	}
	return attrs
}

// repost encrypts a letter once more for a device that could not read it, in a session begun anew where the device sent
// keys for that or has asked before. The lock is held.
func (s *Server) repost(receipt *binary.Node, asked binary.Node) {
	l := s.letters[text(asked, "id")]
	count, _ := strconv.Atoi(text(asked, "count"))
	if l == nil || s.linked == nil || l.from.gone {
		return
	}
	device, from := s.deviceLID(), l.vault()
	keys := s.keysOf(receipt)
	if keys == nil && (count > 1 || !from.knows(device)) {
		keys = s.bundle()
	}
	if keys != nil {
		if err := from.meet(device, keys); err != nil {
			s.violate("a session that %s begins anew: %v", l.from.name, err)
			return
		}
	}
	enc, err := from.encrypt(device, l.message)
	if err != nil {
		s.violate("a message of %s cannot be encrypted again: %v", l.from.name, err)
		return
	}
	enc.Attrs["count"] = strconv.Itoa(count)
	s.deliver(binary.Node{Tag: "message", Attrs: s.envelope(l), Content: []binary.Node{s.spoil(l, enc)}})
}
