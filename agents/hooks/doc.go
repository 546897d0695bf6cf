// Package hooks is the door of agents that ask by hooks of their own: before they use a tool they run a command, or call
// an address, and take its output for the verdict.
//
// Each of these programs has its [Dialect]: what it says ([Dialect.Read]: a [permissions.Request] about one call), and
// what it understands ([Call.Reply]). Both are pure. A dialect is strict about what must be there and passes over what
// it does not know, since these programs add members with every version; what it cannot read is never allowed.
//
// [Decide] puts a call to a [Desk] and always has a [Verdict] before the agent's patience ends, because nearly all of
// these programs go on as if allowed when a hook says nothing. A request that is still pending then stands, and the
// agent's next equal call joins it. Only an agent that ends its hook, as it does when the person answered at its
// keyboard, has the request cancelled. `daycared hook` does this over agent.sock, [Handler] over HTTP.
package hooks
