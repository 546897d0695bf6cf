package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/daycared/daycared/permissions"
)

const (
	problemType = "urn:daycared:"
	// DetailInLog is the detail of a problem whose cause is only logged.
	DetailInLog = "Something went wrong in the daemon; its log says what."
)

// Problem codes that are no refusals.
const (
	CodeInternal = "internal"  // details are in the daemon's log
	CodeAgain    = "ask-again" // the wait was cut short, for example by a shutdown: the question is still pending
	CodeSlowDown = "slow-down" // the caller exceeded its rate: nothing was done, and the call may be repeated
	CodeNoRoute  = "no-such-route"
	CodeChain    = "broken-chain" // the audit does not verify
	// CodeVerifying means that the audit is being verified, and comes with the status 202.
	CodeVerifying = "verifying"
	// CodeGoesOn means that the call takes longer than its answer may, and goes on; it comes with the status 202.
	CodeGoesOn = "goes-on"
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
	// Proposal is the rule that a decision with its name gives, with the code rule.
	Proposal *Proposal `json:"proposal,omitzero"`
	// Progress is how far a verification is, with the code verifying.
	Progress *Progress `json:"progress,omitzero"`

	After time.Duration `json:"-"` // sent as Retry-After
}

// Progress is how much of something long is done.
type Progress struct {
	Done int64 `json:"done"`
	All  int64 `json:"all"`
}

// Proposal is a rule that "Always like this" proposes.
type Proposal struct {
	permissions.Proposal

	Name string `json:"name" doc:"what a decision that gives this rule has as its rule"`
}

// refusals maps each refusal to HTTP.
var refusals = map[permissions.Code]struct {
	status int
	title  string
}{
	permissions.CodeInvalid:     {http.StatusUnprocessableEntity, "The question or answer is not well formed"},
	permissions.CodeForbidden:   {http.StatusForbidden, "Forbidden here"},
	permissions.CodeOwnFiles:    {http.StatusUnprocessableEntity, "Covers the daemon's own files"},
	permissions.CodeKeyTaken:    {http.StatusConflict, "The key belongs to another request"},
	permissions.CodeNoRoute:     {http.StatusForbidden, "No route asks anybody"},
	permissions.CodeStopped:     {http.StatusServiceUnavailable, "Stopped"},
	permissions.CodeOwnAsk:      {http.StatusForbidden, "Asked by the same account"},
	permissions.CodeLimit:       {http.StatusTooManyRequests, "Too many requests"},
	permissions.CodeCoolingDown: {http.StatusTooManyRequests, "Denied twice"},
	permissions.CodeMuted:       {http.StatusTooManyRequests, "Too much was denied or ignored"},
	permissions.CodeTooSoon:     {http.StatusTooManyRequests, "Hardly read"},
	permissions.CodeNotYours:    {http.StatusForbidden, "Not yours to decide"},
	permissions.CodeLocked:      {http.StatusForbidden, "This account is locked"},
	permissions.CodeUnknown:     {http.StatusNotFound, "Nothing of that name here"},
	permissions.CodeSettled:     {http.StatusConflict, "Already settled"},
	permissions.CodeReally:      {http.StatusConflict, "Needs a second yes"},
	permissions.CodeRule:        {http.StatusConflict, "The rule has to be seen first"},
	permissions.CodeNoAnswer:    {http.StatusUnprocessableEntity, "Not one of the answers"},
	permissions.CodeNoUse:       {http.StatusConflict, "No unused approval"},
	permissions.CodeEditor:      {http.StatusForbidden, "Not to be answered in an editor"},
	permissions.CodeToken:       {http.StatusUnauthorized, "Not a valid token"},
	permissions.CodeGone:        {http.StatusGone, "No longer kept"},
	permissions.CodeNoAgent:     {http.StatusConflict, "No agent is bound"},
	permissions.CodeBroken:      {http.StatusServiceUnavailable, "Nothing can be stored"},
}

// ProblemOf converts an error. Refusals keep their text, store errors their advice; details of others are only logged.
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
		return NewProblem(http.StatusServiceUnavailable, CodeAgain, "The wait was cut short; ask again.")
	default:
		return NewProblem(http.StatusInternalServerError, CodeInternal, DetailInLog)
	}
	how, known := refusals[refusal.Code]
	if !known {
		how.status, how.title = http.StatusForbidden, "Refused"
	}
	p := NewProblem(how.status, string(refusal.Code), refusal.Text)
	p.Title, p.Exit, p.After = how.title, refusal.Exit, refusal.After
	if shown := refusal.Proposal; shown != nil {
		p.Proposal = &Proposal{*shown, shown.Rule.Fingerprint()}
	}
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
	if p.After > 0 {
		h.Set("Retry-After", strconv.Itoa(int((p.After+time.Second-1)/time.Second)))
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
	r := &permissions.Refusal{Code: code, Text: p.Detail, Exit: exit, After: p.After}
	if p.Proposal != nil {
		r.Proposal = &p.Proposal.Proposal
	}
	return r
}

// Write answers a call outside huma.
func (p *Problem) Write(w http.ResponseWriter) {
	maps.Copy(w.Header(), p.GetHeaders())
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	line, _ := Encode(p)               // it has nothing that could fail
	_, _ = w.Write(append(line, '\n')) // the caller may be gone
}

// Plain rewrites an error of the network, of a file or of a program for models and people, without Go's terms. It
// matches what err matches. Our own errors and context errors stay as they are.
func Plain(err error) error {
	_, done := errors.AsType[*plain](err)
	if err == nil || done || errors.Is(err, context.Canceled) {
		return err
	}
	if text := inWords(err); text != err.Error() {
		return &plain{text, err}
	}
	return err
}

type plain struct {
	text string
	err  error
}

func (p *plain) Error() string { return p.text }
func (p *plain) Unwrap() error { return p.err }

func inWords(err error) string {
	late, isLate := errors.AsType[net.Error](err)
	if name, is := errors.AsType[*net.DNSError](err); is {
		if name.IsNotFound {
			return fmt.Sprintf("the host %s is not known", name.Name)
		}
		return fmt.Sprintf("the name %s cannot be looked up just now", name.Name)
	}
	if c, is := errors.AsType[*tls.CertificateVerificationError](err); is {
		return untrustedFor(c)
	}
	_, isTLS := errors.AsType[tls.RecordHeaderError](err)
	for _, known := range []struct {
		is   bool
		text string
	}{
		{errors.Is(err, syscall.ECONNREFUSED), "the connection was refused"},
		{errors.Is(err, syscall.ENETUNREACH), "it cannot be reached: there is no network"},
		{errors.Is(err, syscall.EHOSTUNREACH), "it cannot be reached from here"},
		{errors.Is(err, context.DeadlineExceeded), "it did not answer in time"},
		{isLate && late.Timeout(), "it did not answer in time"},
		{errors.Is(err, syscall.ECONNRESET), "the connection was cut off"},
		{errors.Is(err, syscall.EPIPE), "the connection was cut off"},
		{errors.Is(err, io.ErrUnexpectedEOF), "the connection ended before the answer was whole"},
		{errors.Is(err, http.ErrSchemeMismatch), "it answers by http, not by https"},
		{isTLS, noTLS},
		{errors.Is(err, io.EOF), "the connection ended without an answer"},
		{errors.Is(err, exec.ErrNotFound), "there is no such program"},
	} {
		if known.is {
			return known.text
		}
	}
	return bareWords(err)
}

// untrustedFor is why a certificate is rejected.
func untrustedFor(err *tls.CertificateVerificationError) string {
	_, another := errors.AsType[x509.HostnameError](err)
	invalid, is := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case another:
		return "its certificate is for another name"
	case is && invalid.Reason == x509.Expired:
		return "its certificate has expired, or does not hold yet"
	}
	return "its certificate is signed by nobody who is trusted here"
}

const noTLS = "no secure connection can be made"

// bareWords is an error without what Go adds: the failed call, and a name that the reader knows.
func bareWords(err error) string {
	for wrapped := true; wrapped; {
		switch err.(type) { //nolint:errorlint // what is around these is ours
		case *url.Error, *net.OpError, *os.SyscallError, *fs.PathError, *os.LinkError, *exec.Error:
			err = errors.Unwrap(err)
		default:
			wrapped = false
		}
	}
	text := err.Error()
	if text == "path escapes from parent" {
		return "it leads out of its folder"
	}
	for _, library := range []string{"http: ", "http2: ", "net/http: ", "malformed ", "gzip: ", "flate: ", "net: ", "bufio: "} {
		if strings.HasPrefix(text, library) {
			return "what it answers is not what a web server answers"
		}
	}
	for _, library := range []string{"tls: ", "remote error: ", "local error: ", "x509: "} {
		if strings.HasPrefix(text, library) {
			return noTLS
		}
	}
	return text
}
