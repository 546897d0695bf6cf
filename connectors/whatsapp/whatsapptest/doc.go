// Package whatsapptest is WhatsApp for tests: a [Server] that drives the client library as it is, over a real websocket,
// with real Noise and real Signal encryption, and scripted people ([Person], [Group], the account's own [Phone]) who
// write, quote, react and edit at the other end of it.
//
// A test starts from nothing: the Phone scans a client's QR code, or types its pairing code. What the client then sends
// is decrypted by the phones of those whom it was sent to ([Person.Gets]), and what they send waits at the server until
// the client acknowledges it, over as many connections as that takes. Faults come on demand: refused logins, errors of
// the stream, answers that are lost, connections that are cut at any stanza, silence.
//
// A client gets here by [Server.Client], an HTTP client that leads every address to the server, and trusts it by
// [RootKey]. The server listens on 127.0.0.1, so a daemon in a process of its own can be tested with it. Its clock runs
// with the real one and can be put forward ([Server.Advance]).
//
// It is strict: a query or a message that it does not know fails the test and is told by [Server.Violations].
//
// It shares the codec, the schema and the Signal library with the client, so it shows how the client is used, not how
// WhatsApp behaves; what it does follows what was measured and what the client's source says. Not modelled: linked
// devices of people, other devices of the account that are written to, what the account sends to groups, app state,
// history, calls, newsletters, and limits of WhatsApp's own.
package whatsapptest
