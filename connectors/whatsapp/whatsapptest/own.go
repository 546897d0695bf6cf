package whatsapptest

import (
	"context"
	"strconv"
	"time"

	"go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/proto/waWeb"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

// The names that the schema has for a message that the phone sends once more.
type (
	resent     = waE2E.PeerDataOperationRequestResponseMessage_PeerDataOperationResult
	resentCopy = waE2E.PeerDataOperationRequestResponseMessage_PeerDataOperationResult_PlaceholderMessageResendResponse
)

// Writes writes to a person from the account's own phone, of which the linked device gets a copy.
func (p *Phone) Writes(to *Person, text string) string { return p.server.writeSelf(to.who, text, 0) }

// WritesToSelf writes into the account's chat with itself.
func (p *Phone) WritesToSelf(text string) string {
	return p.server.writeSelf(p.server.bot, text, 0)
}

// Desktop is another device of the account, that only writes: nobody sends it anything. It is safe for concurrent use.
type Desktop struct{ server *Server }

// desktop is the number of that device.
const desktop = 99

// Desktop is the account's other device.
func (s *Server) Desktop() *Desktop {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bot.desktop == nil {
		s.bot.desktop = newVault(desktop)
	}
	return &Desktop{s}
}

// Writes writes to a person from the device, of which the linked one gets a copy.
func (d *Desktop) Writes(to *Person, text string) string {
	return d.server.writeSelf(to.who, text, desktop)
}

// WritesToSelf writes into the account's chat with itself.
func (d *Desktop) WritesToSelf(text string) string {
	return d.server.writeSelf(d.server.bot, text, desktop)
}

func (s *Server) writeSelf(to *account, text string, device uint16) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &waE2E.Message{Conversation: proto.String(text)}
	l := &letter{id: s.newID(), from: s.bot, device: device, to: to, at: s.now(), kind: "text", message: &waE2E.Message{
		DeviceSentMessage: &waE2E.DeviceSentMessage{DestinationJID: proto.String(to.lid.String()), Message: m},
	}}
	s.letters[l.id] = l
	s.note(s.bot, to.pn.User, s.bot, l.id, l.at, m)
	if to != s.bot {
		s.note(to, s.bot.pn.User, s.bot, l.id, l.at, m)
	}
	s.post(l)
	return l.id
}

// Messages are what the account's phone shows of the chat with a person.
func (p *Phone) Messages(with *Person) []Message {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	return copies(p.server.bot.chats[with.who.pn.User])
}

// Sees waits until a message in the chat with a person fits, and returns the newest that does. fits must not call the
// server.
func (p *Phone) Sees(ctx context.Context, with *Person, fits func(Message) bool) (Message, error) {
	return p.server.sees(ctx, p.server.bot, with.who.pn.User, fits)
}

// Resends lets the phone send its copies of messages that the linked device could not decrypt and asks for. By default
// it does not answer.
func (p *Phone) Resends() {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.server.bot.resends = true
}

// welcome is the first that the phone tells a device that was linked: the beginning of their session. The true phone
// marks it as between devices, which the library answers in the background, in a race with a logout that follows.
func (s *Server) welcome() {
	s.post(&letter{id: s.newID(), from: s.bot, to: s.bot, at: s.now(), kind: "text", message: &waE2E.Message{
		ProtocolMessage: &waE2E.ProtocolMessage{
			Type: waE2E.ProtocolMessage_INITIAL_SECURITY_NOTIFICATION_SETTING_SYNC.Enum(),
			InitialSecurityNotificationSettingSync: &waE2E.InitialSecurityNotificationSettingSync{
				SecurityNotificationEnabled: proto.Bool(true),
			},
		},
	}})
}

// atHome is a message of the linked device at the account's own phone: a copy of one to somebody, or a wish.
func (s *Server) atHome(p piece, m *waE2E.Message) {
	if sent := m.GetDeviceSentMessage(); sent != nil {
		jid, _ := types.ParseJID(sent.GetDestinationJID())
		if to := s.accounts[jid.User]; to != nil {
			s.note(s.bot, to.pn.User, s.bot, p.id, s.now(), sent.GetMessage())
			return
		}
		s.violate("the copy of a message to %q", sent.GetDestinationJID())
		return
	}
	wish := m.GetProtocolMessage().GetPeerDataOperationRequestMessage()
	if wish == nil {
		s.violate("a message %s to the account's own phone", p.id)
		return
	}
	if wish.GetPeerDataOperationRequestType() != waE2E.PeerDataOperationRequestType_PLACEHOLDER_MESSAGE_RESEND || !s.bot.resends {
		return
	}
	answer := &waE2E.PeerDataOperationRequestResponseMessage{
		StanzaID: proto.String(p.id), PeerDataOperationRequestType: wish.PeerDataOperationRequestType,
	}
	for _, asked := range wish.GetPlaceholderMessageResendRequest() {
		if copied := s.webCopy(asked.GetMessageKey()); copied != nil {
			answer.PeerDataOperationResult = append(answer.PeerDataOperationResult, &resent{
				PlaceholderMessageResendResponse: &resentCopy{WebMessageInfoBytes: marshal(copied)},
			})
		}
	}
	s.post(&letter{id: s.newID(), from: s.bot, peer: true, at: s.now(), kind: "text", message: &waE2E.Message{
		ProtocolMessage: &waE2E.ProtocolMessage{
			Type:                                    waE2E.ProtocolMessage_PEER_DATA_OPERATION_REQUEST_RESPONSE_MESSAGE.Enum(),
			PeerDataOperationRequestResponseMessage: answer,
		},
	}})
}

// webCopy is the phone's copy of a message that somebody sent, nil where it has none.
func (s *Server) webCopy(key *waCommon.MessageKey) *waWeb.WebMessageInfo {
	l := s.letters[key.GetID()]
	if l == nil {
		return nil
	}
	return &waWeb.WebMessageInfo{
		Key: key, Message: l.message, MessageTimestamp: proto.Uint64(uint64(l.at.Unix())), PushName: proto.String(l.from.name),
	}
}

// Timelocks tells the account that it may write to no strangers until a time, or, with the zero time, that it may again.
func (s *Server) Timelocks(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lock := `{"is_active":false}`
	if !until.IsZero() {
		lock = `{"is_active":true,"enforcement_type":"BIZ_QUALITY","time_enforcement_ends":"` + strconv.FormatInt(until.Unix(), 10) + `"}`
	}
	s.deliver(binary.Node{
		Tag: "notification", Attrs: binary.Attrs{"from": types.ServerJID, "id": s.newID(), "t": stamp(s.now()), "type": "mex"},
		Content: []binary.Node{{Tag: "update", Attrs: binary.Attrs{"op_name": "NotificationUserReachoutTimelockUpdate"},
			Content: []byte(`{"data":{"xwa2_notify_account_reachout_timelock":` + lock + `}}`)}},
	})
}
