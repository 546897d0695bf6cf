package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// validate sends the person the model's text and judges every call: it runs, needs approval, or is not run.
func (sh *turn) validate(ctx context.Context) error {
	if err := sh.say(ctx, "words", sh.run.Words); err != nil {
		return err
	}
	held, err := sh.held(ctx)
	if err != nil {
		return err
	}
	brief, done := sh.runtime.interruptible(ctx, sh.worker)
	defer done()
	e, c := Judged{}, agents.Commit{}
	for _, call := range sh.run.Calls {
		v, wrong, err := sh.judge(brief, call, held)
		if sh.left.tool != "" {
			if err := sh.tellLeft(ctx, sh.left.tool, sh.left.how); err != nil {
				return err
			}
		}
		if brief.Err() != nil {
			return nil // an order, or shutdown
		}
		if err != nil {
			return err
		}
		if wrong != "" {
			a := agents.ArtifactOf(agents.ArtifactValidationError, map[string]any{
				"session_id": sh.session.ID, "tool": call.Tool, "error": wrong, "timestamp": sh.runtime.stamp(),
			})
			a.Step = sh.run.Step
			c.Artifacts = append(c.Artifacts, a)
		}
		e.Calls = append(e.Calls, v)
	}
	return sh.advance(ctx, c, e)
}

// judge decides about a call. A problem with the call becomes its result for the model, and is also returned.
func (sh *turn) judge(ctx context.Context, call Call, held []permissions.Tag) (v Verdict, wrong string, err error) {
	spare := func(text string) (Verdict, string, error) {
		return Verdict{Decision: Skipped, Input: v.Input, Text: text}, text, nil
	}
	input, err := permissions.CanonicalJSON(call.Input)
	if err != nil || !bytes.HasPrefix(input, []byte("{")) {
		return spare("The input of " + call.Tool + " is no JSON object that can be read; write it again, whole.")
	}
	v.Input = input
	if n := len(sh.run.Calls); n > permissions.MaxCalls { // more than fit a request, and planning each takes time
		return spare(fmt.Sprintf("A step may have at most %d calls, not %d: none of them was run.", permissions.MaxCalls, n))
	}
	asks, isAsking := askingTool(call.Tool)
	var failed error
	unseen := false
	tool, known := sh.agent.tool(ctx, call.Tool)
	if !isAsking && !known {
		names := wire.Map(sh.offeredTools(ctx), func(t models.Tool) string { return t.Name })
		slices.Sort(names)
		return spare("There is no tool " + call.Tool + " here. There are " + strings.Join(names, ", ") + ".")
	}
	if sh.run.Denied.spent(subject(call.Tool, input)) {
		v, _, err := spare(enough)
		return v, "", err
	}
	if isAsking {
		if _, err := asks.question(input); err != nil {
			return spare(err.Error())
		}
	} else if v.Plan, unseen, failed = planned(ctx, tool, sh.place(held), input); failed != nil && !unseen {
		if errors.Is(failed, tools.ErrLeft) {
			sh.left.tool, sh.left.how = call.Tool, tools.Left(failed)
		}
		return spare(failed.Error())
	}
	own, err := sh.ungranted(ctx)
	if err == nil && !isAsking && len(held) > len(sh.agent.Place.Tags)+len(own) { // grants are involved
		place := sh.place(slices.Concat(sh.agent.Place.Tags, own))
		place.Unseen = unseen
		bare, _ := tool.Plan(ctx, place, input) // the plan without grants
		v.Held = permissions.Missing(bare.Needs, v.Plan.Needs)
	}
	v.Plan.Needs = permissions.Missing(v.Plan.Needs, held) // from here on the request stays the same, whatever is held later
	q := sh.request([]Call{{Tool: call.Tool, Input: input, Plan: v.Plan}})
	verdict, err := sh.runtime.approvals.Evaluate(ctx, sh.session.Caller(), q)
	switch r := permissions.AsRefusal(err); {
	case r != nil && r.Code != permissions.CodeBroken:
		v, _, err := spare(r.Text)
		return v, "", err
	case err != nil:
		return v, "", err
	case verdict.Forbidden != "":
		v, _, err := spare(permissions.ForbiddenBy(verdict).Text)
		return v, "", err
	case unseen && sh.mayRead(ctx, v.Plan.AffectedPath):
		return spare(failed.Error())
	case isAsking:
		v.Decision = Runs
	case verdict.Ask, len(verdict.Grants) == 0 && sh.runtime.approvals.OverRate(sh.session.Caller(), q):
		v.Decision = Asks
	default:
		v.Decision = Runs
	}
	return v, "", nil
}

// planned plans a call. Why that fails may say what is in the file that the call changes: if a plan that does not look into it succeeds, it
// is that plan, unseen, and why the other one failed is for an agent that may read the file.
func planned(ctx context.Context, t tools.Tool, p tools.Workspace, input json.RawMessage) (plan tools.Plan, unseen bool, err error) {
	if plan, err = t.Plan(ctx, p, input); err == nil || errors.Is(err, tools.ErrLeft) {
		return plan, false, err
	}
	p.Unseen = true
	blind, failed := t.Plan(ctx, p, input)
	return blind, failed == nil, err
}

// mayRead reports whether the agent may read a file without asking.
func (sh *turn) mayRead(ctx context.Context, file string) bool {
	input, err := json.Marshal(map[string]string{"path": file})
	if err != nil {
		return false
	}
	q := sh.request([]Call{{Tool: "read_file", Input: input, Plan: tools.Plan{AffectedPath: file}}})
	verdict, err := sh.runtime.approvals.Evaluate(ctx, sh.session.Caller(), q)
	return err == nil && verdict.Forbidden == "" && !verdict.Ask
}

func (sh *turn) held(ctx context.Context) ([]permissions.Tag, error) {
	granted, err := sh.runtime.approvals.Held(ctx, sh.session.Caller(), string(sh.session.ID))
	if err != nil {
		return nil, err
	}
	own, err := sh.ungranted(ctx)
	return slices.Concat(sh.agent.Place.Tags, own, granted), err
}

// ungranted returns the tags that the session holds neither by the configuration nor by a grant.
func (sh *turn) ungranted(ctx context.Context) ([]permissions.Tag, error) {
	given, err := sh.inheritedTags(ctx)
	return slices.Concat(given, sh.run.Tags), err
}

// inheritedTags returns the tags in force that the session was started with. Those of a scheduled run end with it, the session's first
// run. Those of a child are in force while the session that started it holds them itself.
func (sh *turn) inheritedTags(ctx context.Context) ([]permissions.Tag, error) {
	if len(sh.run.Given) == 0 || sh.session.Parent == "" && sh.run.N > 1 {
		return nil, nil
	}
	if sh.session.Parent == "" {
		return sh.run.Given, nil
	}
	giver, ok, err := sh.startingSession(ctx)
	if !ok || err != nil {
		return nil, err
	}
	held, err := giver.held(ctx)
	lost := permissions.Missing(sh.run.Given, held)
	return slices.DeleteFunc(slices.Clone(sh.run.Given), func(t permissions.Tag) bool { return slices.Contains(lost, t) }), err
}

// place is the workspace in which a call with these tags runs.
func (sh *turn) place(held []permissions.Tag) tools.Workspace {
	p := sh.agent.Place
	p.Tags = held
	return p
}

func (sh *turn) request(calls []Call) permissions.Request {
	q := permissions.Request{
		Kind: permissions.KindTool, Agent: sh.session.Agent, Session: string(sh.session.ID), Step: sh.run.Step,
		Cwd: sh.agent.Place.Workspace, Folder: sh.agent.Place.Folder(), Reason: short(sh.run.Words, permissions.MaxReason),
		Key: sh.stepKey(),
	}
	sh.background(&q)
	var details []string
	for i, c := range calls {
		for _, t := range c.Plan.Needs {
			if !slices.Contains(q.Tags, t) {
				q.Tags = append(q.Tags, t)
			}
		}
		if c.Plan.Details != "" {
			heading := ""
			if len(calls) > 1 {
				heading = "#" + strconv.Itoa(i+1) + " " + c.Tool + "\n"
			}
			details = append(details, heading+c.Plan.Details)
		}
	}
	q.Details = strings.Join(details, "\n")
	if len(calls) == 1 {
		q.Tool, q.Input, q.AffectedPath, q.Rows = calls[0].Tool, calls[0].Input, calls[0].Plan.AffectedPath, calls[0].Plan.Was
		return q
	}
	for _, c := range calls {
		q.Calls = append(q.Calls, permissions.Call{
			Tool: c.Tool, Input: c.Input, AffectedPath: c.Plan.AffectedPath, EndsRun: sh.agent.Terminates, Rows: c.Plan.Was,
		})
	}
	return q
}

// background sets the foreground agent on a background agent's request.
func (sh *turn) background(q *permissions.Request) {
	q.Background = sh.agent.Via == ""
	if q.Background {
		q.Foreground = sh.runtime.foreground(sh.agent)
	}
}

func short(text string, n int) string { return permissions.Brief(strings.TrimSpace(text), n) }
