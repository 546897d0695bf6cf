package hooks

import (
	"slices"
	"time"
)

// Dialect is how one agent's hooks speak.
type Dialect struct {
	// Name is what it is called on the command line, in addresses and in [permissions.Request].
	Name string
	// Within is how long its hooks may take when nobody has told the agent otherwise, with time left to answer.
	Within time.Duration

	read func(Dialect, members) (Call, error)
}

// dialects are all that are spoken.
var dialects = []Dialect{
	{Name: "claude-code", Within: 590 * time.Second, read: readClaude},
	{Name: "codex", Within: 590 * time.Second, read: readClaude},
	{Name: "copilot", Within: 25 * time.Second, read: readCopilot},
	{Name: "cursor", Within: 50 * time.Second, read: readCursor},
	{Name: "gemini", Within: 50 * time.Second, read: readGemini},
}

// Find gives the dialect of that name.
func Find(name string) (d Dialect, ok bool) {
	at := slices.IndexFunc(dialects, func(d Dialect) bool { return d.Name == name })
	if at < 0 {
		return Dialect{}, false
	}
	return dialects[at], true
}

// Names are the names of all dialects, in order.
func Names() []string {
	names := make([]string, len(dialects))
	for i, d := range dialects {
		names[i] = d.Name
	}
	return names
}

// MaxInput is the most bytes that the input of a hook may have.
const MaxInput = 4 << 20
