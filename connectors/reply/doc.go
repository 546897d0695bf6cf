// Package reply is the way from what a person typed to an answer. It is pure, and strict on purpose: a text is either
// wholly one of the forms that the hints name, in any case, or it decides nothing and the person is told what would be
// right. Guessing what somebody meant is how "don't allow" becomes an approval.
//
// [Parse] reads a line typed at the prompt of one card: `y`, with a scope, the number of one call, or the code; `a` for
// this session; `n`, with a reason after because; `r` and a reason; Enter, `i` or Esc at a pause; a number or the
// option's own words at a clarification, or `o` and words of one's own; `s` for the card again.
//
// [Read] reads a message of a chat, where several requests may wait and each is named by its code: `yes K7F3Q`, with a
// scope or `#2`; `yes K7F3Q M2P4R`; `no K7F3Q because …`; `K7F3Q yes`, `K7F3Q 2`, `K7F3Q other: …`, `other K7F3Q …`;
// `continue K7F3Q`; for high risk, `YES K7F3Q RUN`. Only in a reply to its card does a single word, or a thumb, need no
// code. [Guard] counts wrong codes.
//
// words.go knows single words, sentence.go the shapes of a message, other.go words of one's own, chat.go what a message
// is, judge.go what it says about the requests that wait, chathint.go the words for the person.
package reply
