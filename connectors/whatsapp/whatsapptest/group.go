package whatsapptest

import (
	"fmt"

	"go.mau.fi/whatsmeow/types"
)

// Group is a group that the account is in. It is safe for concurrent use.
type Group struct {
	server *Server
	jid    types.JID
}

// Group makes a group of the account and others. Its subject is not told to the client.
func (s *Server) Group() *Group {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastGroup++
	return &Group{server: s, jid: types.NewJID(fmt.Sprintf("1203630000000%05d", s.lastGroup), types.GroupServer)}
}

// JID is the address of the group.
func (g *Group) JID() types.JID { return g.jid }
