package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/daycared/daycared/engine/directory"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/permissions"
)

// draft builds the row of a caller's request, or refuses it. A request that needs no answer is returned approved, via
// grant.
func (e *Engine) draft(
	s *directory.Settings, caller permissions.Caller, q permissions.Request, grants []permissions.Grant, counts bool,
) (permissions.Request, error) {
	r := q
	now := e.clock.Stamp()
	r.Version, r.Revision = permissions.DigestVersion, 1
	if !q.ID.FitsTime(now) {
		r.ID = permissions.NewID(now)
	}
	r.Caller, r.CreatedAt, r.State = caller, now, permissions.Pending
	if err := r.Normalize(); err != nil {
		return r, permissions.Invalid(err)
	}
	if err := r.Validate(); err != nil {
		return r, permissions.Invalid(err)
	}
	if r.Key != "" && caller.Name == permissions.Anonymous {
		return r, permissions.KeyWithoutName()
	}
	around, err := e.ownFiles(s, r)
	if err != nil {
		return r, err
	}
	policy := s.PolicyOf(caller)
	if onlyAsks(s, r) { // a prompt about asking would tell people nothing; docs/hooks.md has the reasons
		policy.Auto, policy.OwnAuto = []string{r.Tool}, false
	}
	verdict := policy.Evaluate(r, grants, now)
	if counts && !verdict.Ask {
		if beyond := e.takeAutoTokens(s, r.Caller, verdict.Auto); beyond > 0 { // then only a grant lets it run without asking
			policy.Auto, policy.IgnoreAllowRules, policy.Sandboxed, r.Harmless = nil, true, false, false
			if verdict = policy.Evaluate(r, grants, now); verdict.Ask {
				r.ExceededRate = beyond
			}
		}
	}
	verdict.Ask = verdict.Ask || around
	if verdict.Forbidden != "" {
		e.noteDenied(r, verdict)
		return r, permissions.ForbiddenBy(verdict)
	}
	r.Ruled = storedRulings(r, verdict)
	r.SessionTitle = permissions.Brief(r.SessionTitle, permissions.MaxTitle)
	r.LastPrompt = permissions.Brief(r.LastPrompt, permissions.MaxPrompt)
	r.Held = verdict.Held
	r.HighRisk = policy.HighRisk(r)
	if !caller.IsOurs() { // only the daemon's own agents know which of them is in the foreground; see front
		r.Background, r.Foreground = true, ""
	}
	r.Options = permissions.Offer(r, s.Approvals.Scopes, widestOffered(q, around))
	if r.Offers(permissions.Allow(permissions.Rule)) && verdict.Ask {
		if _, why := s.Propose(r, nil, "", now); why != "" {
			r.Options = slices.DeleteFunc(r.Options, func(o permissions.Option) bool { return o.ID == permissions.Allow(permissions.Rule) })
		}
	}
	r.Digest = permissions.ComputeDigest(r)
	r.Grants = verdict.Grants
	if !verdict.Ask {
		r.Answer, r.Scope, r.DecidedVia, r.DecidedAt = permissions.Allow(permissions.Once), permissions.Once, permissions.ViaGrant, now
		r.State, r.Deadline, r.Rows = permissions.Approved, now, nil
		r.Details = storedDetails(r)
		return r, nil
	}
	return r, s.SetRecipients(&r)
}

// denialsPerMinute bounds the audited denials of one caller's calls by rules; the others are not audited.
const denialsPerMinute = 10

// noteDenied audits a call that policy denies, which has no request. A failed audit write does not change the denial.
func (e *Engine) noteDenied(r permissions.Request, v permissions.Verdict) {
	if !limiter(e, e.denials, r.Caller.Name, denialsPerMinute, time.Minute).AllowN(e.clock.Now(), 1) {
		return
	}
	detail := map[string]string{
		"tool": v.Forbidden, "digest": permissions.ComputeDigest(r).String(), "verdict": string(permissions.RuleDenies),
		"rule": cmp.Or(v.Ruling.Name(), "tools.forbidden"),
	}
	if r.Agent != "" {
		detail["agent"] = r.Agent
	}
	noting, done := shared.Noting(context.Background())
	defer done()
	if err := e.store.Record(noting, permissions.Record{
		Type: permissions.CallDenied, At: e.clock.Stamp(), Actor: r.Caller.Name, Detail: detail,
	}); err != nil {
		e.log.Error("audit denied call", "caller", r.Caller.Name, "err", err)
	}
}

// widestOffered is the widest scope that is offered for q: once, if it is asked about each time, since it may lead around own files.
func widestOffered(q permissions.Request, around bool) permissions.Scope {
	if around {
		return permissions.Once
	}
	return q.Widest
}

// ourScopes are where Claude Code reads the servers that daycared connect, or root, has configured. A project, a plugin or a
// command line may call another server daycared.
var ourScopes = []string{"user", "enterprise", "managed"}

// onlyAsks reports whether a hook's call is of a tool that only asks. Where the agent says whose tool it is, the server must be
// ours; a hook leaves out a server that daycared connect has written.
func onlyAsks(s *directory.Settings, r permissions.Request) bool {
	var input, server map[string]json.RawMessage
	if !slices.Contains(s.Asking[r.Hook], r.Tool) || json.Unmarshal(r.Input, &input) != nil ||
		input["hook.mcp_context"] != nil || input["input_sha256"] != nil { // too large to be shown, its server included
		return false
	}
	_ = json.Unmarshal(input["hook.mcp_server"], &server)
	var scope string
	return input["hook.mcp_server"] == nil || json.Unmarshal(server["source"], &scope) == nil && slices.Contains(ourScopes, scope)
}

// storedRulings is what a rule said of r, and where its names lead.
func storedRulings(r permissions.Request, verdict permissions.Verdict) []permissions.Ruling {
	if verdict.Ask {
		verdict.Ruling.Leads = r.Leads.Symlinks()
	}
	if verdict.Ruling == (permissions.Ruling{}) {
		return nil
	}
	return []permissions.Ruling{verdict.Ruling}
}

// storedDetails returns what is stored of details that nobody is shown: just enough to recognize them, or all of an ACP program's, which
// make the call that a grant is for.
func storedDetails(r permissions.Request) string {
	short := fmt.Sprintf("%d bytes that nobody was shown, sha256 %x", len(r.Details), sha256.Sum256([]byte(r.Details)))
	if r.Hook != permissions.HookACP && len(short) < len(r.Details) {
		return short
	}
	return r.Details
}

// ownFiles is [reachesOwn] where each file system answers, and refuses what names another.
func (e *Engine) ownFiles(s *directory.Settings, r permissions.Request) (around bool, err error) {
	if !slices.ContainsFunc(r.Tags, func(t permissions.Tag) bool { return t.Path() != "" }) && r.Kind != permissions.KindTool {
		return false, nil
	}
	type answer struct {
		around bool
		err    error
	}
	var steps atomic.Uint64
	found := make(chan answer, 1)
	if !e.looks.Run(r.Caller.Name, &steps, func() {
		around, err := reachesOwn(s, r, &steps)
		found <- answer{around, err}
	}) {
		return false, permissions.FilesHang()
	}
	a := <-found
	return a.around, a.err
}

// reachesOwn refuses access to the daemon's own files: by a tag, or by a path in the input of a tool that is not ours (those
// of our own agents cannot reach them). around reports whether the input may lead there.
func reachesOwn(s *directory.Settings, r permissions.Request, steps *atomic.Uint64) (around bool, err error) {
	for _, t := range r.Tags {
		if t.Path() == "" {
			continue
		}
		if _, found := own.NewSearch(s.Own, steps).Find(t.Path()); found {
			return false, permissions.OwnFiles(t.String())
		}
	}
	// Gemini CLI adds to the input of our own tools how their server was started, which names our socket.
	if r.Kind != permissions.KindTool || slices.Contains(s.Asking[r.Hook], r.Tool) {
		return false, nil
	}
	for _, c := range r.ToolCalls() {
		if r.Caller.IsOurs() && r.Hook != permissions.HookACP && !strings.Contains(c.Tool, "__") {
			continue // programs and servers may be outside the sandbox
		}
		meets := false
		if place := cmp.Or(c.AffectedPath, r.Cwd); place != "" {
			_, meets = own.NewSearch(s.Own, steps).Find(place)
		}
		input, condensed := r.FullInput(c)
		reaches, may := own.NewSearch(s.Own, steps).Input(r.Cwd, input)
		if r.Leads.Root != "" && r.Leads.Root != r.Cwd { // where servers were started
			also, perhaps := own.NewSearch(s.Own, steps).Input(r.Leads.Root, input)
			reaches, may = reaches || also, may || perhaps
		}
		if reaches || meets && c.AffectedPath != "" {
			return false, permissions.ReachesOwn(c.Tool)
		}
		around = around || meets || may || condensed || strings.HasPrefix(string(c.Input), `{"input_bytes":`)
	}
	if r.Hook != "" && len(r.Choices) > 0 { // what is suggested for later calls, as "add /x, /y to the folders …"
		texts := slices.Concat(r.Choices, strings.FieldsFunc(strings.Join(r.Choices, " "), func(c rune) bool { return c == ' ' || c == ',' }))
		list, _ := json.Marshal(texts)
		reaches, may := own.NewSearch(s.Own, steps).Input(r.Cwd, list)
		around = around || reaches || may
	}
	return around, nil
}
