package connectors

import "context"

// Listener takes what people write to agents of ours. Implementations are safe for concurrent use.
type Listener interface {
	// OnMessage returns nil once the message is stored for the agent that it is for: the author of what it replies to,
	// else the one in the foreground. The same Key again changes nothing. It refuses with [permissions.CodeNoAgent] where
	// there is no agent, and with [permissions.CodeLimit] while too much waits for it.
	OnMessage(ctx context.Context, m Message) error
}

// Message is what a person wrote that is no answer.
type Message struct {
	From    Identity
	Text    string
	ReplyTo string // the channel's own name for the message that this replies to; empty: none
	Key     string // names the chat event
}

// Talker sends people what agents of ours say.
type Talker interface {
	// Talk sends one of the messages that s is, and returns the channel's own name for it and whether there are more.
	// Errors are as those of Send, see [Later].
	Talk(ctx context.Context, s Saying) (ref string, more bool, err error)
}

// Saying is what an agent says to a person. A long one is several messages: which, depends on Agent and Text alone.
type Saying struct {
	To     Person
	Agent  string
	Text   string
	Part   int             // which of the messages that it is, from 0
	Codes  map[string]bool // of what is pending, as they are written in capitals: they are masked
	Silent bool            // as a Prompt's
}

// Typer shows a person for some seconds that an agent of ours works.
type Typer interface {
	// Typing is called again and again. A failure is nobody's loss.
	Typing(ctx context.Context, to Person) error
}
