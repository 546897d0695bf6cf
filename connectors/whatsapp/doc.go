// Package whatsapp asks people in WhatsApp, and hears their answers, as a linked device of an account of its own (see
// [Link]). WhatsApp has no buttons for such devices, so a card is a text with its code in the first line, and an answer is
// a text, a reply to the card or a thumb on it, read by package reply.
//
// Everything a person sends is acknowledged once the desk has stored it, and comes again with the next connection
// otherwise. Who sent it is their phone number, found by what WhatsApp says of the sender; what did not come from their own
// device, in a chat with them alone and in their own words, decides nothing. Somebody whose keys have changed is suspended
// before the message is looked at that came with the new ones.
//
// A message of ours is named before it is sent, so an answer that is faster than WhatsApp's confirmation is understood, and
// trying again sends the same one. Strangers are not answered, and the pace is our own: an account that writes much is
// banned. The [Connector] keeps its own connection, and how the account stands is told by its health, with what to do.
//
// The library's keys and sessions are in one file, which one process holds at a time. Tests run it against whatsapptest.
package whatsapp
