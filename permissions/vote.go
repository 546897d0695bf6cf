package permissions

import "time"

// Vote is one person's answer to a request. The door sets who and through what; everything else about the request is
// read from its row.
type Vote struct {
	By      string
	Via     string // the connector: telegram, whatsapp, terminal, cli, web; never an editor, where nobody is proven
	Answer  Answer
	Call    int // the call of a step that it answers; 0: all that are open
	Comment string
	At      time.Time
	// Key names the chat event that carried the vote ("telegram:bot", update id), so that its redelivery is harmless.
	// Empty where the door delivers once.
	Key string
}
