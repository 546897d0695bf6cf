// Package telegram reaches people through a Telegram bot: cards with buttons, and whatever they write.
//
// The Bot API library is a typed HTTP helper here ([api]); its poll loop, which confirms what was not processed yet, is
// not used. An update is handled, stored, and only then does the next poll's offset pass it ([poller]): what is
// delivered twice is known by its key. Only fields that are used are decoded ([update]).
//
// How a card looks is pure: a prompt becomes text, entities and a keyboard ([render]). A button carries the random
// value of its copy and an answer; who pressed it, in which chat and on which message is what Telegram says, and the
// daemon compares all three with what it sent. Nothing that identifies anybody by a name that can change hands is used.
//
// What is no answer is for an agent of the person's own, and what that says comes back through [Connector.Talk]: after
// everything else that is to be sent, and never before a card.
//
// The bot's token is in every URL of the Bot API. It leaves this package in no error, and the library's own logger is
// silent.
package telegram
