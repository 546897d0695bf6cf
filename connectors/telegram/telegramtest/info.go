package telegramtest

func (s *Server) getChat(q *query) (any, *failure) {
	c, refused := s.chatOf(q)
	switch {
	case refused != nil:
		return nil, refused
	case c.kind == private && !c.person.started:
		return nil, badRequest("chat not found")
	case c.bot == kicked || c.bot == left:
		return nil, forbidden("bot was kicked from the " + c.kind + " chat")
	}
	o := c.wire()
	if c.kind == group || c.kind == supergroup {
		rights := object{}
		for _, right := range memberRights {
			rights[right] = !c.mute
		}
		o["permissions"] = rights
	}
	o["accent_color_id"], o["max_reaction_count"] = 0, 11
	o["accepted_gift_types"] = object{
		"unlimited_gifts": false, "limited_gifts": false, "unique_gifts": false, "premium_subscription": false,
		"gifts_from_channels": false,
	}
	return o, nil
}

func (s *Server) getChatMember(q *query) (any, *failure) {
	c, refused := s.chatOf(q)
	if refused != nil {
		return nil, refused
	}
	if c.kind != private && (c.bot == kicked || c.bot == left) {
		return nil, forbidden("bot is not a member of the " + c.kind + " chat")
	}
	id := q.integer("user_id", 0)
	if id == s.bot.ID {
		return membership(s.bot, orMember(c.bot)), nil
	}
	who := s.accounts[id]
	switch {
	case who == nil:
		return nil, badRequest("invalid user_id specified")
	case c.kind == private && c.person != who:
		return nil, badRequest("user not found")
	case c.kind == private:
		return membership(who.user, member), nil
	}
	status := c.members[id]
	if status == "" {
		status = left
	}
	return membership(who.user, status), nil
}

// orMember is a status, and in private chats, which have none, that of a member.
func orMember(status string) string {
	if status == "" {
		return member
	}
	return status
}

func (s *Server) leaveChat(q *query) (any, *failure) {
	c, refused := s.chatOf(q)
	switch {
	case refused != nil:
		return nil, refused
	case c.kind == private:
		return nil, badRequest("chat member status can't be changed in private chats")
	case c.bot == kicked || c.bot == left:
		return nil, forbidden("bot is not a member of the " + c.kind + " chat")
	}
	s.changeBot(c, s.bot, left)
	return true, nil
}

// changeBot gives the bot another place in a chat, and tells it so. The lock is held.
func (s *Server) changeBot(c *chat, by User, status string) {
	old := c.bot
	if old == "" {
		old = left
	}
	c.bot = status
	s.emit("my_chat_member", messageLife, object{
		"chat": c.wire(), "from": by, "date": s.now().Unix(),
		"old_chat_member": membership(s.bot, old), "new_chat_member": membership(s.bot, status),
	})
	s.change()
}
