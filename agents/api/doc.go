// Package api is the door of agents that run elsewhere: HTTP on agent.sock and, for those on other
// machines, over TCP; and the client that speaks to it.
//
// The [Server] proves who calls by the account at the other end of the socket, or by the token that a call presents,
// which then says alone who asks, and over TCP is the only proof; and hands the question to its [Desk], which can put it
// to people and cannot decide. No route here decides, lists or shows what is another caller's. One takes what the dialog of
// the caller's own editor brought, for what permits nothing, where that is switched on.
//
// A call waits at most [wire.MaxWait]; the row is the truth, so a caller simply asks again. The [Client] does that: it
// names its call, and with that name and the id it was told it finds its place again after every wait, after a lost
// connection and after a restart of the daemon. It is an [agents.Asker] like the engine itself.
package api
