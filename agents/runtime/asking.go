package runtime

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/schema"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/permissions"
)

// askTool is a built-in tool that asks people or messages other agents. It needs no permission, but policy can forbid it.
type askTool struct {
	spec models.Tool
	// question builds the request from the input; for a tool with do, it only validates the input.
	question func(input []byte) (permissions.Request, error)
	// do runs the tool and returns the text for the model; nil for a tool that asks.
	do func(ctx context.Context, sh *turn, c Call) (string, error)
}

// askingTools is set in init to avoid an initialization cycle.
var askingTools []askTool

func init() {
	const key = "key" // a call has a key of its own
	for _, t := range schema.AskingTools {
		askingTools = append(askingTools, askTool{
			spec:     models.Tool{Name: t.Name, Description: t.Says, Schema: t.Schema(key)},
			question: func(input []byte) (permissions.Request, error) { return t.Question(input, key) },
		})
	}
	askingTools = append(askingTools,
		askTool{spec: models.Tool{Name: startAgent, Description: startWords, Schema: schema.Of[startInput]()},
			question: checked[startInput](startAgent), do: start},
		askTool{spec: models.Tool{Name: messageAgent, Description: messageWords, Schema: schema.Of[messageInput]()},
			question: checked[messageInput](messageAgent), do: message})
}

func askingTool(name string) (askTool, bool) {
	for _, t := range askingTools {
		if t.spec.Name == name {
			return t, true
		}
	}
	return askTool{}, false
}

// checked validates the input of a tool that asks nothing.
func checked[T any](tool string) func(input []byte) (permissions.Request, error) {
	return func(input []byte) (q permissions.Request, err error) {
		_, err = schema.Decode[T](tool, input)
		return q, err
	}
}

// asks returns the request that a call makes; zero for a tool that does not ask.
func (c Call) asks() (permissions.Request, error) {
	if t, is := askingTool(c.Tool); is {
		return t.question(c.Input)
	}
	return permissions.Request{}, nil
}

// startCall starts a call of a built-in tool: it runs the tool, or asks.
func (sh *turn) startCall(ctx context.Context, c Call, t askTool) error {
	x := sh.execution(c)
	if t.do == nil {
		needs, err := sh.missingTags(ctx, c)
		if err != nil {
			return err
		}
		return sh.advance(ctx, agents.Commit{Executions: []agents.Execution{x}}, Began{c.N}, Asked{N: c.N, Needs: needs})
	}
	if err := sh.storeStart(ctx, x, nil); err != nil {
		return err
	}
	text, err := t.do(ctx, sh, c)
	if ctx.Err() != nil || errors.Is(err, permissions.ErrBroken) { // not for the model
		return err
	}
	if err != nil {
		sh.runtime.log.Debug("agent tool call failed", "agent", sh.agent.Name, "tool", c.Tool, "err", err)
		text = err.Error()
	}
	return sh.storeOutcome(ctx, x, tools.Outcome{Text: text, Error: err != nil}, Ran{N: c.N, Text: text, Error: err != nil})
}

// missingTags returns the tags that a call requests and the session does not hold. Tags requested for a child are returned unfiltered.
func (sh *turn) missingTags(ctx context.Context, c Call) ([]permissions.Tag, error) {
	if c.Tool != schema.RequestPermission {
		return nil, nil
	}
	q, err := c.asks()
	if err != nil || q.Agent != "" {
		return q.Tags, err
	}
	held, err := sh.held(ctx)
	return permissions.Missing(q.Tags, held), err
}

// awaitAnswer submits a call's question and applies the answer. It rests while the request is pending.
func (sh *turn) awaitAnswer(ctx context.Context, c Call) (rests bool, err error) {
	if sh.run.Request == "" {
		return false, sh.submitCall(ctx, c)
	}
	q, err := sh.runtime.approvals.Read(ctx, sh.asker(), sh.run.Request)
	if err != nil || q.State == permissions.Pending {
		return true, err
	}
	return false, sh.endAskingCall(ctx, c, q)
}

// asker is the caller of the request that the session waits for: a child of its agent if the permission is for that child.
func (sh *turn) asker() permissions.Caller {
	if at := sh.run.asking(); at > 0 && sh.run.Calls[at-1].Tool == schema.RequestPermission {
		if child := sh.beneficiary(sh.run.Calls[at-1]); child != "" {
			return permissions.AgentCaller(child)
		}
	}
	return sh.session.Caller()
}

// beneficiary is the child for which a call requests a permission; empty: none.
func (sh *turn) beneficiary(c Call) string {
	q, err := c.asks()
	if err != nil || q.Agent == "" {
		return ""
	}
	return sh.child(q.Agent)
}

// submitCall submits a call's question, unless nobody has to be asked.
func (sh *turn) submitCall(ctx context.Context, c Call) error {
	q, err := sh.question(ctx, c)
	if err != nil {
		return err
	}
	if q.Kind == permissions.KindPermission && len(q.Missing()) == 0 {
		return sh.answerWithHeld(ctx, c, q)
	}
	why, err := sh.whyNotAsk(ctx, c)
	if err != nil {
		return err
	}
	if why != "" {
		return sh.storeOutcome(ctx, sh.execution(c), tools.Outcome{Text: why, Error: true}, Ran{N: c.N, Text: why, Error: true})
	}
	q.Tags, q.Held = q.Missing(), nil
	posed, err := sh.runtime.approvals.Submit(ctx, sh.asker(), q)
	switch r := permissions.AsRefusal(err); {
	case r != nil && r.Code != permissions.CodeBroken:
		return sh.advance(ctx, agents.Commit{}, Refused{Text: r.Text})
	case err != nil:
		return err
	}
	return sh.advance(ctx, agents.Commit{}, Submitted{posed.ID})
}

// answerWithHeld answers a call that requests permissions that are already held, and records the use of grants that cover them.
func (sh *turn) answerWithHeld(ctx context.Context, c Call, q permissions.Request) error {
	own, err := sh.ungranted(ctx)
	if err != nil {
		return err
	}
	posed, why, artifacts := q, "", []agents.Artifact(nil)
	if posed.Tags, posed.Held = permissions.Missing(q.Tags, own), nil; len(posed.Tags) > 0 {
		if artifacts, why, err = sh.useGrants(ctx, c, posed, ""); err != nil {
			return err
		}
	}
	q.Caller, q.State, q.DecidedVia = sh.asker(), permissions.Approved, permissions.ViaGrant
	e := Ran{N: c.N, Text: cmp.Or(why, permissions.Result(q).Text), Error: why != ""}
	return sh.storeOutcome(ctx, sh.execution(c), tools.Outcome{Text: e.Text, Error: e.Error, Artifacts: artifacts}, e)
}

// whyNotAsk returns why a call's question must not be submitted; empty: it may be.
func (sh *turn) whyNotAsk(ctx context.Context, c Call) (why string, err error) {
	if c.Tool != schema.RequestPermission {
		return "", nil
	}
	q, err := c.asks()
	if err != nil || q.Agent == "" {
		return "", err
	}
	if sh.agent.Via == "" {
		return "A background agent asks for itself: leave agentId out.", nil
	}
	_, is, err := sh.childSession(ctx, q.Agent)
	if err != nil || is {
		return "", err
	}
	return "You have started no agent " + q.Agent + ".", nil
}

func (sh *turn) question(ctx context.Context, c Call) (permissions.Request, error) {
	q := permissions.Request{Kind: permissions.KindPause, Mode: permissions.ModeContinue,
		Message: c.Tool + " is done. Look at what it brought before I read it.", Details: c.Look}
	if !sh.run.Shows {
		if _, err := sh.held(ctx); err != nil { // the kill switch
			return q, err
		}
		var err error
		if q, err = c.asks(); err != nil {
			return q, err
		}
		q.Held = slices.DeleteFunc(slices.Clone(q.Tags), func(t permissions.Tag) bool { return slices.Contains(c.Plan.Needs, t) })
	}
	q.Agent, q.Session, q.Step, q.Key = sh.session.Agent, string(sh.session.ID), sh.run.Step, sh.callKey(c)
	q.Cwd, q.Folder = sh.agent.Place.Workspace, sh.agent.Place.Folder()
	if q.Reason == "" {
		q.Reason = short(sh.run.Words, permissions.MaxReason)
	}
	sh.background(&q)
	if child := sh.beneficiary(c); child != "" && !sh.run.Shows {
		q.Agent, q.Background, q.Foreground = child, true, sh.agent.Name
		s, _, err := sh.childSession(ctx, child) // a session-scoped approval applies to the child's session
		if err != nil {
			return q, err
		}
		q.Session = string(s.ID)
	}
	return q, nil
}

// endAskingCall ends a call that asked, with the settled request.
func (sh *turn) endAskingCall(ctx context.Context, c Call, q permissions.Request) error {
	o := permissions.Result(q)
	e := Ran{N: c.N, Text: o.Text, Error: o.Error}
	if t, found := askingTool(c.Tool); found && t.question != nil {
		if asked, _ := t.question(c.Input); q.Shortened(asked.WantedTimeout) != "" {
			e.Text += "\n(" + q.Shortened(asked.WantedTimeout) + ")"
		}
	}
	if sh.run.Shows { // the model receives the tool's result
		e.Text, e.Error = strings.TrimSpace(c.Text), c.Error
		if q.Answer == permissions.Interrupt {
			e.Text += "\n" + o.Text
		}
	}
	var artifacts []agents.Artifact
	switch {
	case q.Answer == permissions.Interrupt:
		e.Stops = ReasonInterrupted
	case q.Kind == permissions.KindPermission:
		var err error
		if e, err = sh.applyDecision(ctx, c, q, e); err != nil {
			return err
		}
		artifacts = append(artifacts, agents.Verdict(sh.execution(c), q, e.Error))
	}
	failed := e.Error || q.State == permissions.Denied || q.Answer == permissions.Interrupt // all of which are normal results to the model
	return sh.storeOutcome(ctx, sh.execution(c), tools.Outcome{Text: e.Text, Error: failed, Artifacts: artifacts}, e)
}

// applyDecision applies a decision: an approval grants its tags to the beneficiary; a denial is counted and may end the run.
func (sh *turn) applyDecision(ctx context.Context, c Call, q permissions.Request, e Ran) (Ran, error) {
	switch q.State {
	case permissions.Denied:
		tags, _ := agents.Encode(q.Tags) // requests that differ only in their reason are one subject
		e.Denied, e.About = true, subject(c.Tool, tags)
		if sh.agent.Terminates {
			e.Stops = ReasonDenied
		}
		return e, nil
	case permissions.Expired:
		if sh.agent.Terminates {
			e.Stops = ReasonTimeout
		}
		return e, nil
	case permissions.Approved:
	default:
		return e, nil
	}
	used, err := sh.runtime.approvals.Use(ctx, sh.asker(), q.ID, q.Key)
	switch r := permissions.AsRefusal(err); {
	case r != nil && r.Code != permissions.CodeBroken:
		e.Text, e.Error = r.Text, true
		return e, nil
	case err != nil:
		return e, err
	case used.Scope != permissions.Once: // a grant exists
		return e, nil
	}
	if child := sh.beneficiary(c); child != "" {
		return e, sh.runtime.sendHandover(ctx, child, used)
	}
	e.Tags = used.Missing()
	return e, nil
}

// grantHandover is the key prefix, before the request id, of a post that hands a child the permission requested for it.
const grantHandover = "gift/"

// sendHandover grants a child what was allowed for it, until its run ends. Only a session's own worker changes the session, so the grant
// is sent as a post, which the worker applies.
func (rt *Runtime) sendHandover(ctx context.Context, child string, q permissions.Request) error {
	s, ok, err := rt.store.CurrentSession(ctx, child)
	if err != nil || !ok {
		return err // the child has ended
	}
	return rt.tell(ctx, s.ID, agents.Post{
		Key: grantHandover + string(q.ID), Silent: true, Text: "You hold " + permissions.DescribeTags(q.Missing()) + " until this run ends.",
	})
}

// applyHandover applies a grant handover to the session.
func (sh *turn) applyHandover(ctx context.Context, p agents.Post) error {
	text, ok := strings.CutPrefix(p.Key, grantHandover)
	id := permissions.ID(text)
	if !ok || p.From != "" || sh.run.State == Idle || slices.Contains(sh.run.Handed, id) {
		return nil
	}
	q, err := sh.runtime.approvals.Read(ctx, sh.session.Caller(), id)
	if err != nil {
		return nonFatal(err)
	}
	session := string(sh.session.ID) // what it asked for itself is not handed to it
	if q.State != permissions.Approved || q.UsedAt.IsZero() || q.Session != session || strings.HasPrefix(q.Key, session+"/") {
		return nil
	}
	if q, err = sh.runtime.approvals.Use(ctx, sh.session.Caller(), id, q.Key); err != nil { // taken back, or used before a restore
		return nonFatal(err)
	}
	sh.run.Tags, sh.run.Handed = slices.Concat(sh.run.Tags, q.Missing()), append(slices.Clone(sh.run.Handed), id)
	return nil
}

// changedRow is the message to the person about a session whose row was changed.
const changedRow = "I stop here and begin anew: what I had noted of my work was changed behind daycared's back. " +
	"`daycared audit verify` says more."

// changedRun is the run of a session whose row is not trusted.
var changedRun = Run{Outcome: agents.Failed, Reason: ReasonChanged}

// endUntrusted ends a session if its row, or that of its request, was changed without the daemon. Nothing that it says is done.
func (sh *turn) endUntrusted(ctx context.Context, why error) error {
	sh.run = changedRun
	sh.runtime.log.Error("session stopped", "session", sh.session.ID, "agent", sh.agent.Name, "err", why)
	if sh.run.Words = changedRow; sh.agent.Via == "" {
		if err := sh.notice(ctx); err != nil {
			return err
		}
	}
	if err := sh.say(ctx, "changed", changedRow); err != nil {
		return err
	}
	return sh.end(ctx)
}
