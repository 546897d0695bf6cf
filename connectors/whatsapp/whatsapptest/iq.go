package whatsapptest

import (
	"slices"
	"strconv"

	"go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// unlinked are the queries of clients that are not linked yet.
var unlinked = []string{
	"w:p get ", "md set link_code_companion_reg", "md get ref", "md set passkey_prologue", "md set companion_nonce",
	"md set encrypted_pairing_request",
}

// takeIQ answers a query. The lock is held.
func (s *Server) takeIQ(c *conn, iq *binary.Node) {
	kind := text(*iq, "type")
	if kind == "result" || kind == "error" {
		s.takeLinked(c, iq)
		return
	}
	content, tag := binary.Node{}, ""
	if all := iq.GetChildren(); len(all) > 0 {
		content, tag = all[0], all[0].Tag
	}
	query := text(*iq, "xmlns") + " " + kind + " " + tag
	if c != s.conn && !slices.Contains(unlinked, query) {
		s.violate("a client that has not logged in asks %s", iq.String())
		s.fail(c, iq, 401, "not-authorized")
		return
	}
	switch query {
	case "w:p get ":
		s.result(c, iq)
	case "passive set active":
		s.result(c, iq)
		s.activate(c)
	case "passive set passive":
		c.active = false
		s.result(c, iq)
	case "encrypt get count":
		s.result(c, iq, binary.Node{Tag: "count", Attrs: binary.Attrs{"value": strconv.Itoa(len(s.linked.preKeys))}})
	case "encrypt set registration":
		s.takeKeys(c, iq)
	case "encrypt get key":
		s.giveKeys(c, iq, content)
	case "usync get usync":
		s.sync(c, iq, content)
	case "privacy get privacy":
		s.result(c, iq, privacy())
	case "privacy set tokens": // whom the account trusts with its presence
		s.result(c, iq)
	case "w:m set media_conn":
		s.result(c, iq, mediaConn())
	default:
		s.takeDeviceIQ(c, iq, query, content)
	}
}

// takeDeviceIQ answers a query about what is linked to the account.
func (s *Server) takeDeviceIQ(c *conn, iq *binary.Node, query string, content binary.Node) {
	switch query {
	case "md set link_code_companion_reg":
		if text(content, "stage") == "companion_finish" {
			s.takeFinish(c, iq, content)
		} else {
			s.takeHello(c, iq, content)
		}
	case "md get ref", "md set passkey_prologue", "md set companion_nonce", "md set encrypted_pairing_request":
		s.takePasskey(c, iq, content)
	case "md set remove-companion-device":
		s.result(c, iq)
		s.linked = nil
		s.bye(c, 10*lingering) // the client ends it itself
	default:
		s.violate("a query %s", iq.String())
		s.fail(c, iq, 501, "feature-not-implemented")
	}
}

func (s *Server) result(c *conn, iq *binary.Node, content ...binary.Node) {
	answer := binary.Node{Tag: "iq", Attrs: binary.Attrs{"from": types.ServerJID, "type": "result", "id": text(*iq, "id")}}
	if len(content) > 0 {
		answer.Content = content
	}
	s.send(c, answer)
}

func (s *Server) fail(c *conn, iq *binary.Node, code int, reason string) {
	s.send(c, binary.Node{
		Tag: "iq", Attrs: binary.Attrs{"from": types.ServerJID, "type": "error", "id": text(*iq, "id")},
		Content: []binary.Node{{Tag: "error", Attrs: binary.Attrs{"code": strconv.Itoa(code), "text": reason}}},
	})
}

// privacy is the account's settings, as a new account has them.
func privacy() binary.Node {
	var all []binary.Node
	for _, c := range [][2]string{
		{"groupadd", "all"}, {"last", "all"}, {"status", "all"}, {"profile", "all"}, {"readreceipts", "all"}, {"online", "all"},
		{"calladd", "all"},
	} {
		all = append(all, binary.Node{Tag: "category", Attrs: binary.Attrs{"name": c[0], "value": c[1]}})
	}
	return binary.Node{Tag: "privacy", Content: all}
}

// sync tells of accounts what a query asks for.
func (s *Server) sync(c *conn, iq *binary.Node, usync binary.Node) {
	queries, _ := child(&usync, "query")
	list, _ := child(&usync, "list")
	var users []binary.Node
	for _, asked := range list.GetChildren() {
		if contact, ok := child(&asked, "contact"); ok {
			users = append(users, s.contact(contact))
			continue
		}
		jid := address(asked, "jid")
		a := s.accounts[jid.User]
		if a == nil || a.gone {
			continue // the true one leaves out whom it does not know, too
		}
		user := binary.Node{Tag: "user", Attrs: binary.Attrs{"jid": jid}}
		var told []binary.Node
		for _, q := range queries.GetChildren() {
			switch q.Tag {
			case "devices":
				told = append(told, s.devices(a))
			case "lid":
				told = append(told, binary.Node{Tag: "lid", Attrs: binary.Attrs{"val": a.lid}})
			case "business", "status", "picture", "disappearing_mode", "username": // nobody here has any
			default:
				s.violate("a query %s for %s", q.String(), jid)
			}
		}
		user.Content = told
		users = append(users, user)
	}
	s.result(c, iq, binary.Node{Tag: "usync", Content: []binary.Node{{Tag: "list", Content: users}}})
}

// contact tells who has a phone number.
func (s *Server) contact(asked binary.Node) binary.Node {
	number, _ := types.ParseJID(string(body(asked)))
	if len(number.User) > 0 && number.User[0] == '+' {
		number.User = number.User[1:]
	}
	pn := types.NewJID(number.User, types.DefaultUserServer)
	a := s.accounts[number.User]
	if a == nil || a.gone {
		return binary.Node{Tag: "user", Attrs: binary.Attrs{"pn_jid": pn}, Content: []binary.Node{
			{Tag: "contact", Attrs: binary.Attrs{"type": "out"}, Content: body(asked)},
		}}
	}
	return binary.Node{Tag: "user", Attrs: binary.Attrs{"jid": a.lid, "pn_jid": pn}, Content: []binary.Node{
		{Tag: "contact", Attrs: binary.Attrs{"type": "in"}, Content: body(asked)},
	}}
}

// devices is the phone of an account, and what is linked to it.
func (s *Server) devices(a *account) binary.Node {
	all := []binary.Node{{Tag: "device", Attrs: binary.Attrs{"id": "0"}}}
	if a == s.bot && s.linked != nil {
		n := strconv.Itoa(int(s.linked.device))
		all = append(all, binary.Node{Tag: "device", Attrs: binary.Attrs{"id": n, "key-index": n}})
	}
	return binary.Node{Tag: "devices", Content: []binary.Node{{Tag: "device-list", Content: all}}}
}
