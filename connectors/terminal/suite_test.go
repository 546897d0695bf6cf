package terminal_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/permissions"
)

func TestPassesTheSuite(t *testing.T) {
	for name, sit := range consoles {
		t.Run(name, func(t *testing.T) {
			connectortest.Run(t, func(t *testing.T, in connectors.Services) connectortest.Harness {
				var later atomic.Int64 // what takes the place of another card is answered a second later
				p := sit(t, func(o *terminal.Options) {
					o.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
				})
				p.to.Services = in
				return connectortest.Harness{
					Connector: p.Terminal, To: fay,
					Tells: func(t testing.TB, prompt connectors.Prompt, text string) {
						p.screen.asked(t, prompt.Code)
						p.types(t, "> "+text+"\n")
					}, Sees: p.screen.sees, Seen: p.screen.String,
					Is: func(id connectors.Identity) bool { return id.Console && id.UID == permissions.NoUID },
					Do: func(t testing.TB, prompt connectors.Prompt, d connectors.Decision) {
						p.screen.asked(t, prompt.Code)
						later.Add(int64(time.Second))
						p.types(t, keys(prompt, d, p.tty != nil))
					},
					Writes: func(t testing.TB, prompt connectors.Prompt, text string) {
						p.screen.asked(t, prompt.Code)
						before := strings.Count(p.screen.String(), "\n")
						p.types(t, text+"\n")
						p.screen.until(t, "an end of the line", func(all string) bool { return strings.Count(all, "\n") > before })
					},
				}
			})
		})
	}
}

// keys are what a person types for an answer.
func keys(p connectors.Prompt, d connectors.Decision, terminal bool) string {
	words := ""
	if d.Call != 0 {
		words = fmt.Sprintf(" #%d", d.Call)
	}
	scope, allows := d.Answer.Scope()
	switch {
	case d.Really:
		return "yes " + p.Code + words + "\n"
	case allows && scope == permissions.Once:
		return "y" + words + "\n"
	case allows && scope == permissions.SessionTool:
		return "t" + words + "\n"
	case allows && scope.Span() == 0:
		return "a" + words + "\n"
	case allows:
		return "yes " + scope.String() + words + "\n"
	case d.Answer == permissions.Other:
		return "o " + d.Comment + "\n"
	case d.Comment != "":
		return "r" + words + " " + d.Comment + "\n"
	case d.Answer == permissions.Deny:
		return "n" + words + "\n"
	case d.Answer == permissions.Continue:
		return "\n"
	case d.Answer == permissions.Interrupt && terminal:
		return reply.Esc
	case d.Answer == permissions.Interrupt:
		return "i\n"
	}
	for i := range p.Request.Choices {
		if d.Answer == permissions.Choose(i+1) {
			return fmt.Sprintf("%d\n", i+1)
		}
	}
	return "?\n"
}
