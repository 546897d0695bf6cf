// Package acp drives agents that other people wrote and that speak the Agent Client Protocol, version 1, on their standard
// streams. To the engine each is a [agents.Resident] like those of our own: what its person writes is a prompt, and what it
// says comes back ([Agent]). `daycared run` does one prompt without the chat ([Once]).
//
// The program runs in walls that its entry names, so what it does by itself is held by the kernel. What it asks its client
// for is another matter: permissions become requests of kind tool, put to people; files and commands go through the gated
// tools of our own (agents/tools), which run only as people were shown them. What is not understood is refused.
//
// The library carries the messages; their meaning is read here. Its own reading would lose what people have to see: an
// input's exact numbers and repeated names, and every update that it does not know.
//
// A turn belongs to the program: when that ends, or the daemon does, the turn is gone, what it asked is cancelled, and the
// person is told. Its conversation goes on where the program can load it again.
package acp
