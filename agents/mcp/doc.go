// Package mcp is the door of agents that speak MCP: the tools request_permission, ask_user, pause, await_request and
// approve_tool, over HTTP ([Server.Handler], for /mcp) and over stdio ([Server.Serve], for `daycared mcp`).
//
// A call blocks until people have answered. While it does, a client that gave a progress token is sent a sign of life at
// once and then every ten seconds, by which clients hold their own timeouts off. The result is the sentence of the
// contract as text, and the same as JSON beside it, since some agents show their model only one of the two.
//
// Leaving cancels nothing. A client that drops a call and asks the same again finds its place, and the decision taken
// meanwhile: the door remembers who left without an answer (left.go). A client that said `cancelled` and does not come
// back within a minute takes its request with it (regret.go); one whose connection was lost never does.
//
// What permits nothing, a clarification and a pause that continues, is shown as the client's own dialog as well, where it
// declares elicitation and the desk says that it may be (dialog.go, form.go): over stdio the client is called meanwhile, and
// the dialog is withdrawn when somebody else was first; since the revision of 2026-07-28 the result of the call asks, and
// the client calls again with a sealed id (seal.go), while the door keeps its place (vigil.go).
//
// There are no sessions: every call is whole in itself, in both eras of the protocol, and the caller is proven by what
// stands before this door. Nothing here decides what an agent may do.
package mcp
