// Package telegramtest is Telegram for tests: a [Server] that speaks the Bot API over HTTP with the semantics of the
// real one, and scripted people ([Person], [Group]) who write, reply and tap at the other end of it.
//
// The server listens on 127.0.0.1, so a daemon in a process of its own can be tested with it. Its clock runs with the
// real one and can be put forward ([Server.Advance]): updates age, taps grow old and long polls end as if the time had
// passed. Faults come on demand ([Server.FailNext], [Server.FailRate], [Server.Down], [Server.Redeliver]).
//
// All that it receives and all that it emits is validated against the Bot API as JSON Schema (testdata/README.md).
// What does not fit fails the test, and is told by [Server.Violations]. What the real server refuses is refused in its
// words.
//
// Limits, error texts and lifetimes follow core.telegram.org/bots/api and the source of tdlib/telegram-bot-api 10.0.
// Not modelled: parse modes, media but documents, inline mode, payments, business accounts, and flood limits of its
// own. Whoever may tell the bot nothing any more (it was kicked, or is blocked) is not heard either.
package telegramtest
