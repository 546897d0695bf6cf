// Package wire is what crosses our own sockets, in both directions and for both doors: the JSON of a request and of a
// question, the strict reading of it, problem details for what is refused, listeners that know, as far as a connection
// tells, who is at the other end, and count them, a server that stops at once, and the client's side of the connection.
//
// It knows words, not meaning: what is asked and decided lies in permissions, which is all of ours that it imports.
// The doors themselves are agents/api (who asks) and connectors/admin (who decides).
//
// Strict means: UTF-8 without a byte order mark, every member known, spelled exactly and given once, at most
// [MaxDepth] levels, nothing after the value, and bounded in size. What another program could read differently is
// refused rather than guessed at.
package wire
