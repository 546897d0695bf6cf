package wire

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daycared/daycared/permissions"
)

const (
	problemType = "urn:daycared:"
	logSays     = "Something went wrong in the daemon; its log says what."
)

// Problem codes that are no refusals.
const (
	codeInternal = "internal"  // details are in the daemon's log
	codeAgain    = "ask-again" // the wait was cut short, for example by a shutdown: the question is still pending
	codeNoRoute  = "no-such-route"
	CodeChain    = "broken-chain" // the audit does not verify
)

// Problem is why something was refused over HTTP (RFC 9457). It is an error with the text Detail.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
	Exit   int    `json:"exit" doc:"of a command that gets this"`
	// Request is the current request, if the caller may see it.
	Request *Request `json:"request,omitzero"`

	after time.Duration // sent as Retry-After
}

var (
	_ huma.StatusError       = (*Problem)(nil)
	_ huma.HeadersError      = (*Problem)(nil)
	_ huma.ContentTypeFilter = (*Problem)(nil)
)

// refusals maps each refusal to HTTP.
var refusals = map[permissions.Code]struct {
	status int
	title  string
}{
	permissions.CodeInvalid:   {http.StatusUnprocessableEntity, "The question or answer is not well formed"},
	permissions.CodeForbidden: {http.StatusForbidden, "Forbidden here"},
	permissions.CodeOwnFiles:  {http.StatusUnprocessableEntity, "Covers the daemon's own files"},
	permissions.CodeKeyTaken:  {http.StatusConflict, "The key belongs to another request"},
	permissions.CodeNoRoute:   {http.StatusForbidden, "No route asks anybody"},
	permissions.CodeStopped:   {http.StatusServiceUnavailable, "Stopped"},
	permissions.CodeOwnAsk:    {http.StatusForbidden, "Asked by the same account"},
	permissions.CodeLimit:     {http.StatusTooManyRequests, "Too many requests"},
	permissions.CodeRest:      {http.StatusTooManyRequests, "Denied twice"},
	permissions.CodeNotYours:  {http.StatusForbidden, "Not yours to decide"},
	permissions.CodeLocked:    {http.StatusForbidden, "This account is locked"},
	permissions.CodeUnknown:   {http.StatusNotFound, "Nothing of that name here"},
	permissions.CodeSettled:   {http.StatusConflict, "Already settled"},
	permissions.CodeReally:    {http.StatusConflict, "Needs a second yes"},
	permissions.CodeNoAnswer:  {http.StatusUnprocessableEntity, "Not one of the answers"},
	permissions.CodeNoUse:     {http.StatusConflict, "No unused approval"},
	permissions.CodeEditor:    {http.StatusForbidden, "Not to be answered in an editor"},
	permissions.CodeToken:     {http.StatusUnauthorized, "Not a valid token"},
	permissions.CodeGone:      {http.StatusGone, "No longer kept"},
	permissions.CodeNoAgent:   {http.StatusConflict, "No agent is bound"},
	permissions.CodeBroken:    {http.StatusServiceUnavailable, "Nothing can be stored"},
}

// ProblemOf converts an error. Refusals keep their text, and store errors their advice; of any other error the details
// are only logged.
func ProblemOf(err error) *Problem {
	var told *Problem
	refusal := permissions.AsRefusal(err)
	switch {
	case errors.As(err, &told):
		return told
	case refusal != nil:
	case errors.Is(err, permissions.ErrBroken):
		refusal = permissions.Broken(strings.TrimSuffix(err.Error(), "."))
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return NewProblem(http.StatusServiceUnavailable, codeAgain, "The wait was cut short; ask again.")
	default:
		return NewProblem(http.StatusInternalServerError, codeInternal, logSays)
	}
	how, known := refusals[refusal.Code]
	if !known {
		how.status, how.title = http.StatusForbidden, "Refused"
	}
	p := NewProblem(how.status, string(refusal.Code), refusal.Text)
	p.Title, p.Exit, p.after = how.title, refusal.Exit, refusal.After
	return p
}

// NewProblem is a problem that is no refusal.
func NewProblem(status int, code, detail string) *Problem {
	return &Problem{
		Type: problemType + code, Title: http.StatusText(status), Status: status,
		Detail: detail, Code: code, Exit: permissions.ExitOther,
	}
}

// Error returns Detail.
func (p *Problem) Error() string { return p.Detail }

// GetStatus is the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders says when to retry and how to authenticate.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	if p.after > 0 {
		h.Set("Retry-After", strconv.Itoa(int((p.after+time.Second-1)/time.Second)))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	return h
}

// ContentType is RFC 9457's.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// refusal is the daemon's error: a *permissions.Refusal if it was one.
func (p *Problem) refusal() error {
	code := permissions.Code(p.Code)
	if _, known := refusals[code]; !known {
		return p
	}
	exit := p.Exit
	if exit <= permissions.ExitYes || exit > permissions.ExitUnknown { // a refusal never exits like a yes
		exit = permissions.ExitOther
	}
	return &permissions.Refusal{Code: code, Text: p.Detail, Exit: exit, After: p.after}
}

// Write answers a call outside huma.
func (p *Problem) Write(w http.ResponseWriter) {
	maps.Copy(w.Header(), p.GetHeaders())
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = format.Marshal(w, p) // the caller may be gone
}

// invalidBody converts the findings of huma's validation, without repeating the input.
func invalidBody(status int, msg string, errs ...error) huma.StatusError {
	if status >= http.StatusInternalServerError {
		return NewProblem(status, codeInternal, logSays)
	}
	details := make([]string, 0, len(errs))
	for _, err := range errs {
		if d, is := errors.AsType[*huma.ErrorDetail](err); is {
			err = errors.New(strings.TrimPrefix(d.Location+": "+d.Message, ": "))
		}
		details = append(details, err.Error())
	}
	if len(details) == 0 {
		details = []string{msg}
	}
	p := NewProblem(status, string(permissions.CodeInvalid), strings.Join(details, "; "))
	p.Title, p.Exit = refusals[permissions.CodeInvalid].title, permissions.ExitUsage
	return p
}
