// Package card is the way from a request to the text that a person reads. It is pure: values in, text out.
//
// [Card] is the whole of what somebody approves: who asks, where, the exact action, what the agent says about it, until
// when, the code and the digest. [Wants] is the action alone, [Settled] one line about how a request stands.
//
// Two rules hold everywhere here. Whatever an agent, a caller or a person wrote goes through [Visible] (or [Lines],
// which is Visible line by line), so nothing on a card can be hidden, reordered or erased, and different words never
// look the same. And an agent's words never start a row of their own: a row that they fill begins with a mark, also
// where a long line had to be wrapped, so they cannot pass for a card, for a button or for somebody's decision.
package card
