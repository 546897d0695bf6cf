package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// Verdict is what a hook says of a call, with the words that the model reads. The zero Verdict denies.
type Verdict struct {
	Allowed bool
	Reason  string
}

// word is the verdict as every dialect has it.
func (v Verdict) word() string {
	if v.Allowed {
		return "allow"
	}
	return "deny"
}

// Judge is the verdict on a question, by how it stands and by the error that asking ended with. Only an approval that came
// without an error allows anything.
func Judge(r permissions.Request, err error) Verdict {
	var refusal *permissions.Refusal
	switch {
	case err == nil:
		result := permissions.Result(r)
		return Verdict{r.State == permissions.Approved && !result.Error && result.Exit == permissions.ExitYes, result.Text}
	case errors.Is(err, context.DeadlineExceeded):
		return Verdict{Reason: stillWaiting(r)}
	case errors.As(err, &refusal):
		return Verdict{Reason: refusal.Text}
	case errors.Is(err, wire.ErrUnreachable):
		return Verdict{Reason: "Not allowed: daycared, which asks people, cannot be reached. Somebody has to start it."}
	}
	return Verdict{Reason: "Not allowed: " + err.Error() + "."}
}

// stillWaiting tells a model what it can do when nobody has answered yet.
func stillWaiting(r permissions.Request) string {
	who := strings.Join(r.Asked, ", ")
	if who == "" {
		who = "an answer"
	}
	return "Not allowed yet: still waiting for " + who + "; try the same call again. The question stands and is not asked twice."
}

// Reply is what a hook hands back to its agent.
type Reply struct {
	Body      []byte // for standard output: one line of JSON, or nothing
	Complaint string // for standard error
	Exit      int    // exit code
}

// exitBlock is the exit code that every one of these agents takes for a denial.
const exitBlock = 2

// Reply is the verdict in the agent's dialect. What cannot be said in the shape of its event is a denial by exit code.
func (c Call) Reply(v Verdict) Reply {
	if c.answer == nil {
		return Reply{Complaint: v.Reason, Exit: exitBlock}
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(c.answer(c.event, v)); err != nil {
		return Reply{Complaint: v.Reason, Exit: exitBlock}
	}
	return Reply{Body: out.Bytes()}
}

// Refuse is the verdict on what [Dialect.Read] could not read.
func Refuse(err error) Verdict { return Verdict{Reason: "Not allowed: " + err.Error() + "."} }
