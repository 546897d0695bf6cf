// Package remote makes the tools of MCP servers tools of our agents. A [Server] is a program that the operator has
// configured; it is started when it is first needed, and again when it has died, in whatever wrapper the caller gives it.
//
// What a server says is not believed. Its names are made fit and begin with the server's own, so that none can pass for one
// of ours; its descriptions are bounded and marked as its words; its annotations ("read only") are not looked at. What a
// person was shown is what runs: a tool whose definition is another by then is refused. The server's own requests, for
// words of a model, for answers of a person, for folders, are refused as well.
//
// A call that does not end in time, or that is stopped, ends the server with all that it started: nobody could tell
// otherwise whether it goes on.
package remote
