// Package modeltest is a model provider for tests: a server on loopback that speaks streamed OpenAI Chat Completions
// and Anthropic Messages.
//
// It is as strict as the strictest provider: results must follow their calls, roles must be in order, tools need names
// and schemas that all providers accept, and unknown fields are refused. A refused request gets status 400 with the
// reason, so that the test fails with it.
//
// Its answers are scripted: a queue of [Answer] values, or a function of the [Request]. An answer can be a fault: an
// error in the request's dialect, silence, a broken stream, or a deviation of some real server. Nothing sleeps:
// [Server.Await] waits for a request, and an answer waits for a channel.
package modeltest
