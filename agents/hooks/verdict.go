package hooks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/daycared/daycared/agents/schema"
	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// Verdict is a hook's decision on a call, with the text for the model. The zero Verdict denies.
type Verdict struct {
	Allowed    bool
	Unasked    bool // allowed by policy alone: nobody was asked, and nothing was granted
	Undecided  bool // undecided, and a person at the agent's keyboard may decide
	Reason     string
	Suggestion int    // of an allowed call: the suggestion of its agent that is taken, counted from 1; 0: none
	Input      string // the input that an allowed call gets; empty: unchanged
}

// word is the verdict as a decision word.
func (v Verdict) word() string {
	if v.Allowed {
		return "allow"
	}
	return "deny"
}

// VerdictOf returns the verdict for a request's state and the error of asking. Only an approved tool request without an error allows
// anything.
func VerdictOf(r permissions.Request, err error) Verdict {
	var refusal *permissions.Refusal
	switch {
	case err == nil:
		result := permissions.Result(r)
		approved := r.Kind == permissions.KindTool && r.State == permissions.Approved
		allowed := approved && !result.Error && result.Exit == permissions.ExitYes
		return Verdict{
			Allowed: allowed, Unasked: allowed && r.AllowedByPolicy() && r.DecidingRule(permissions.RuleAllows) == "",
			Undecided: undecided(r.Outcome()), Reason: result.Text,
		}
	case errors.Is(err, context.DeadlineExceeded):
		return Verdict{Undecided: true, Reason: stillWaiting(r)}
	case errors.As(err, &refusal):
		return Verdict{Reason: refusal.Text}
	case errors.Is(err, wire.ErrUnreachable):
		return Verdict{Undecided: true, Reason: "Not allowed: daycared, which asks people, cannot be reached. Somebody has to start it."}
	}
	return Verdict{Undecided: true, Reason: "Not allowed: " + err.Error() + "."}
}

// undecided reports whether neither a person nor a rule has settled r.
func undecided(r permissions.Request) bool {
	switch r.State {
	case permissions.Pending, permissions.Expired, permissions.Undeliverable:
		return true
	case permissions.Cancelled:
		return r.DecidedBy == "" && r.VoidAt.IsZero()
	}
	return r.TimedOut
}

// stillWaiting tells the model what to do about an unanswered request. A request is open only if the daemon has confirmed it.
func stillWaiting(r permissions.Request) string {
	if r.State != permissions.Pending {
		return "Not allowed: daycared, which asks people, gave no answer in time, and no question is known to stand; try the same call again."
	}
	who := cmp.Or(strings.Join(r.Asked, ", "), "an answer")
	return "Not allowed yet: still waiting for " + who + "; try the same call again. The question stands and is not asked twice."
}

// Reply is a hook's output to its agent.
type Reply struct {
	Body      []byte // for standard output: one line of JSON, or nothing
	Complaint string // for standard error
	Exit      int    // exit code
}

// exitBlock is the exit code that all these agents treat as a denial.
const exitBlock = 2

// Reply encodes the verdict in the agent's dialect. What the event's format cannot express becomes a denial by exit code.
func (c Call) Reply(v Verdict) Reply {
	v.Reason = permissions.EscapeControls(v.Reason) // agents print it in their terminals
	if !v.Allowed {
		v.Reason = cmp.Or(v.Reason, "Not allowed.") // Codex proceeds after a denial without a reason
	}
	if c.answer == nil {
		return Reply{Complaint: v.Reason, Exit: exitBlock}
	}
	said := c.answer(c, v)
	if said == nil && (v.Allowed || v.Undecided && c.Keyboard || c.quiet) {
		return Reply{}
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(said); err != nil {
		return Reply{Complaint: v.Reason, Exit: exitBlock}
	}
	return Reply{Body: out.Bytes()}
}

// Refuse is the verdict on input that [Dialect.Read] rejected.
func Refuse(err error) Verdict { return Verdict{Reason: "Not allowed: " + err.Error() + "."} }

// Requests is the part of the engine that hooks use. It cannot decide.
type Requests interface {
	// Ask submits a question and waits. If ctx ends first, it returns the request's current state with the error of ctx.
	Ask(ctx context.Context, caller permissions.Caller, q permissions.Request) (permissions.Request, error)
	// LeaveOrCancel removes the named call (empty: one that has returned) from a pending request of the caller, and cancels the
	// request if no other call waits.
	LeaveOrCancel(ctx context.Context, caller permissions.Caller, id permissions.ID, call, via string) (permissions.RequestView, error)
	// Recall withdraws the caller's requests that match m, and returns how many there were.
	Recall(ctx context.Context, caller permissions.Caller, m permissions.Recall) (withdrawn int, err error)
}

// ErrLeft is the cause of a context that ended because the process stops; the agent has not ended its hook, so the request stays
// open.
var ErrLeft = errors.New("the daemon stops")

// errOther means that an answer belongs to another call.
var errOther = errors.New("the answer is about another call than this one")

// withdrawWithin bounds the cancellation of a request after the agent ended its hook.
const withdrawWithin = 3 * time.Second

// filesWithin bounds how long a hook waits for the files that a call is about, whose file system may not answer.
const filesWithin = 20 * time.Second

// ErrNoFiles means that a file system did not answer in time.
var ErrNoFiles = errors.New("the files that the call is about cannot be read in time")

// InTime returns what look returns, or ErrNoFiles if that takes longer than limit or 20 s. What goes on then ends with the process.
func InTime[T any](limit time.Duration, look func() (T, error)) (T, error) {
	var seen T
	done := make(chan error, 1)
	go func() {
		var err error
		seen, err = look()
		done <- err
	}()
	select {
	case err := <-done:
		return seen, err
	case <-time.After(min(limit, filesWithin)):
		var nothing T
		return nothing, ErrNoFiles
	}
}

// filesTime is how long looking at files may take: the time that is left, but at least a moment.
func filesTime(ctx context.Context) time.Duration {
	if until, bounded := ctx.Deadline(); bounded {
		return max(time.Until(until), withdrawWithin)
	}
	return filesWithin
}

// resolvePaths returns the paths that a request's names resolve to now. Names on another machine are not resolved.
func (c Call) resolvePaths(ctx context.Context, r permissions.Request, caller permissions.Caller) (permissions.Request, error) {
	if caller.UID < 0 {
		return r, nil
	}
	resolve := own.Resolve
	if c.resolve != nil {
		resolve = c.resolve
	}
	return InTime(filesTime(ctx), func() (permissions.Request, error) {
		r.Cwd = resolve(r.Cwd)
		if r.AffectedPath != "" {
			r.AffectedPath = resolve(r.AffectedPath)
		}
		return r, nil
	})
}

// Decide submits a call and always returns a verdict, shortly after within at the latest; the request then stays open. If ctx
// ends earlier, the agent has ended the hook, and the request is cancelled (see [ErrLeft]) unless another hook waits for it. The
// request and grants refer to the folders that names resolve to now; nothing is allowed if they resolve elsewhere later.
func Decide(ctx context.Context, requests Requests, caller permissions.Caller, c Call, within time.Duration) Verdict {
	limited, done := context.WithTimeout(ctx, within)
	defer done()
	h := questioner{ctx, limited, requests, caller, false}
	if v, free := h.mayQuestion(c); !free {
		return v
	}
	return h.askAll(c, nil)
}

// questioner holds the parameters of one hook's questions.
type questioner struct {
	ctx, limited  context.Context //nolint:containedctx // how long the agent wants an answer, and how long it is waited for
	requests      Requests
	caller        permissions.Caller
	awaitsRestart bool // an unreachable daemon is one that starts again
}

// restartWithin is how long a daemon may take to start again. It is short, because Claude Code does not end a hook whose call was
// allowed at the keyboard meanwhile, which would then ask about a call that has run.
const restartWithin = 30 * time.Second

// ask is [Requests.Ask] that waits for a daemon that starts again.
func (h questioner) ask(q permissions.Request) (permissions.Request, error) {
	tries, began := wire.NewClientBackoff(), time.Now()
	for {
		r, err := h.requests.Ask(h.limited, h.caller, q)
		if !h.awaitsRestart || !errors.Is(err, wire.ErrUnreachable) || time.Since(began) > restartWithin ||
			timing.Pause(h.limited, tries.NextBackOff()) != nil {
			return r, err
		}
	}
}

// mayQuestion reports whether policy lets a call's tool ask its questions: a rule, the lists of tools or a stop may say otherwise, and then
// the verdict is that on the call.
func (h questioner) mayQuestion(c Call) (v Verdict, free bool) {
	if c.questions == nil {
		return v, true
	}
	call := c
	call.questions, call.dialogAsks = nil, false
	_, v = h.askOne(call, c.Request, nil)
	if v.Allowed {
		v.Input = c.echo
	}
	return v, v.Allowed && v.Unasked
}

// askAll asks everything that a call needs; first, if not nil, is the first question already settled.
func (h questioner) askAll(c Call, first *permissions.Request) Verdict {
	asks := c.requests()
	if c.questions == nil {
		asks = []permissions.Request{c.Request}
	}
	var answers []string
	for _, q := range asks {
		var r permissions.Request
		var v Verdict
		if r, v = h.askOne(c, q, first); c.questions == nil {
			if v.Allowed {
				v.Input, v.Suggestion = c.echo, r.Answer.SuggestionNumber()
			}
			if v.Suggestion > len(c.suggested) {
				v = Verdict{Reason: "Not allowed: the answer takes a suggestion that was not shown."}
			}
			return v
		}
		h.awaitsRestart = true
		if first = nil; r.State != permissions.Answered || r.TimedOut || r.Defaulted {
			if r.State == permissions.Answered {
				v.Reason = "Not answered: nobody has answered in time, or not so that it could be understood."
			}
			return v
		}
		answers = append(answers, cmp.Or(r.Choice(), r.Comment))
	}
	if c.dialogAsks {
		text, err := schema.AnswersText(json.RawMessage(c.echo), answers)
		if err != nil {
			return Refuse(err)
		}
		return Verdict{Reason: text}
	}
	input, err := schema.ClaudeAnswered(json.RawMessage(c.echo), answers)
	if err != nil {
		return Refuse(err)
	}
	return Verdict{Allowed: true, Reason: "Answered.", Input: string(input)}
}

// askOne asks one question, unless settled is given. For a question with an answer it also returns the request.
func (h questioner) askOne(c Call, given permissions.Request, settled *permissions.Request) (permissions.Request, Verdict) {
	if settled != nil {
		return *settled, VerdictOf(*settled, nil)
	}
	asked, err := c.resolvePaths(h.limited, given, h.caller)
	if err != nil {
		return permissions.Request{}, Refuse(err)
	}
	q := asked
	q.ID = permissions.NewID(time.Now()) // proposed now, so that it can be cancelled before the first reply
	if q.Kind == permissions.KindClarification {
		q.Call = string(q.ID) // so that this hook alone can leave
	}
	if until, bounded := h.limited.Deadline(); bounded {
		q.ProcessTimeout = time.Until(until)
	}
	r, err := h.ask(q)
	if err == nil && !r.IsRowOf(asked) {
		err = errOther
	}
	over := permissions.CodeOf(err) == permissions.CodeToken // revoked or expired, not hung up
	if err == nil || h.ctx.Err() == nil || over {
		if err != nil && h.limited.Err() != nil && !over {
			err = h.limited.Err() // not the error of a lost connection
		}
		if err == nil && r.State != permissions.Denied {
			now, lost := c.resolvePaths(h.limited, given, h.caller)
			if c.leadsNow != nil && asked.Kind == permissions.KindTool && lost == nil {
				now.Leads, lost = InTime(filesTime(h.limited), func() (permissions.Leads, error) { return c.leadsNow(), nil })
			}
			if lost != nil {
				return permissions.Request{}, Refuse(lost)
			}
			if now.Cwd != asked.Cwd || now.AffectedPath != asked.AffectedPath || !now.SameLeads(asked) {
				return permissions.Request{}, Verdict{Reason: "Not allowed: a link was changed while this was asked, and what was asked about " +
					"is not where it leads now; try the same call again."}
			}
		}
		v := VerdictOf(r, err)
		if c.dialogAsks && (v.Undecided || r.Defaulted) {
			return h.leave(cmp.Or(r.ID, q.ID), q.Call)
		}
		if err != nil {
			r = permissions.Request{}
		}
		return r, v
	}
	if errors.Is(context.Cause(h.ctx), ErrLeft) {
		return permissions.Request{}, VerdictOf(r, context.DeadlineExceeded)
	}
	return permissions.Request{}, h.withdraw(cmp.Or(r.ID, q.ID), q.Call)
}

// leave leaves a question to the agent's own dialog, and cancels its request, unless it was answered meanwhile.
func (h questioner) leave(id permissions.ID, call string) (permissions.Request, Verdict) {
	work, finished := context.WithTimeout(context.WithoutCancel(h.ctx), withdrawWithin)
	defer finished()
	left, err := h.requests.LeaveOrCancel(work, h.caller, id, call, "")
	if r := left.Request; err == nil && r.State == permissions.Answered && !r.TimedOut && !r.Defaulted {
		return r, VerdictOf(r, nil)
	}
	return permissions.Request{}, Verdict{Allowed: true, Unasked: true, Reason: "Nobody has answered; the agent's own dialog asks."}
}

// withdraw cancels the request of a hook that the agent has ended.
func (h questioner) withdraw(id permissions.ID, call string) Verdict {
	work, finished := context.WithTimeout(context.WithoutCancel(h.ctx), withdrawWithin)
	defer finished()
	left, err := h.requests.LeaveOrCancel(work, h.caller, id, call, "")
	switch {
	case err != nil:
		return Verdict{Reason: "The hook was ended, and its question may stand: " + err.Error() + "."}
	case left.Request.State == permissions.Pending:
		return Verdict{Reason: "The hook was ended, and its question stands: another one waits with the same call."}
	}
	return Verdict{Reason: "The hook was ended, and its question was cancelled."}
}
