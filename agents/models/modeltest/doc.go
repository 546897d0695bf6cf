// Package modeltest is a provider of models for tests: a server on loopback that speaks Chat Completions, as OpenAI and
// many others do, and the Messages of Anthropic, both streamed.
//
// It is as strict as the strictest of them: each call is followed by its result, roles stand where they may, tools have
// names and schemas that all providers take, and nothing is sent that is not in the protocol. What it does not like it
// refuses with 400 and says why, so that a test fails with these words.
//
// What it answers is scripted: a queue of [Answer] values, or a function of the [Request]. An answer can be a fault: an
// error in the dialect that was spoken, a silence, a stream that is cut, or what some server in the wild does differently.
// Nothing sleeps: [Server.Await] waits for a request, and an answer waits for a channel.
package modeltest
