// Package conversation is what a message of a person does, in any channel in which people write: it answers what waits
// for them, in the words that package reply reads; it is a command, such as /pending; or it is for an agent of theirs.
// What the author is to be told about it comes back as words, and it is for the channel to send them.
//
// It knows no channel. Who wrote, and which message it replies to, the channel has proved before; what it may do, the
// engine says, which is the [Desk]. A group is no conversation: who may be answered there is for its channel to know.
package conversation
