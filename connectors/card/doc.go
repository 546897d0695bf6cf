// Package card is the way from a request to the text that a person reads. It is pure: values in, text out.
//
// [Card] is the whole of what somebody approves: who asks, where, the exact action, what the agent says about it, until
// when, the code and the digest. [Fit] is the card for a channel that shows only so much: whole if it can be, else as a
// file that goes first and a text with our [Summary]. [Again] is the second question of high risk, [Wants] the action
// alone, [Settled] one line about how a request stands; [Reminder], [Ended] and [Revoked] are the rows of notices.
//
// Two rules hold everywhere here. Whatever an agent, a caller or a person wrote goes through [Visible] (or [Lines],
// which is Visible line by line; or where it is only read, [Prose]), so nothing on a card can be hidden, reordered or
// erased, and different words never look the same. And an agent's words never start a row of their own: a row that they
// fill begins with a sign, also where a long line had to be wrapped, so they cannot pass for a card, for a button or for
// somebody's decision. Of words that mix letters of different scripts, or look like Latin ones, the card warns.
//
// Of what an agent wrote only secrets are left out: tokens of a known shape, in a word that holds nothing a shell would
// act on, and in what runs only at places that say that a secret is there. Their length and the start of their hash are
// shown instead, or with [Options.Reveal] they themselves.
package card
