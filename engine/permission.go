package engine

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/directory"
	"github.com/daycared/daycared/engine/dispatch"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

// maxRules bounds how many rules are remembered as shown.
const maxRules = 1000

// refusalsPerMinute bounds the audited refusals of one identity; the others are not audited.
const refusalsPerMinute = 10

// OnPermission implements [connectors.Inbound]: it checks the identity that acted, not the chat, and commits the
// decision. The connector says who and what; everything else is read from the row.
func (e *Engine) OnPermission(ctx context.Context, d connectors.Decision) (permissions.Request, error) {
	ctx, done := shared.Noting(ctx) // a decision counts and is audited even if its sender does not wait
	defer done()
	if err := e.store.CatchUp(ctx); err != nil { // a lock from elsewhere takes effect meanwhile
		return permissions.Request{}, shared.Broken(err)
	}
	e.deciding.RLock()
	defer e.deciding.RUnlock()
	after, err := e.decide(ctx, d)
	return e.Settings().Shown(after, d.From.Via), err
}

func (e *Engine) decide(ctx context.Context, d connectors.Decision) (permissions.Request, error) {
	r, person, err := e.findEntitled(ctx, d)
	if err != nil {
		return r, err
	}
	if r.State == permissions.Pending && r.Caller.CameFrom(d.From.UID) && (d.Default || d.Answer != permissions.Deny) &&
		!e.Settings().AllowSameUser {
		return r, e.auditRefusal(ctx, r, d, person.Name, permissions.OwnAsk(d.From.UID))
	}
	if d.Answer != permissions.Other && utf8.RuneCountInString(d.Comment) > permissions.MaxReason {
		return r, permissions.InvalidInput("a reason has at most %d characters", permissions.MaxReason)
	}
	s := e.Settings().Shown(r, d.From.Via)
	if d.Shown != (permissions.Digest{}) && d.Shown != s.ShownDigest() {
		return r, e.auditRefusal(ctx, r, d, person.Name, permissions.ShownDiffers())
	}
	title, err := e.TitleAlone(ctx, r.ID, d.From.Via, person.Name)
	if err != nil {
		return r, err
	}
	if (s.OnlyTitle || title) && r.State == permissions.Pending && !r.Title().Offers(d.Answer) {
		return r, e.auditRefusal(ctx, r, d, person.Name, permissions.OnlyTitle())
	}
	if !e.mayAllowShown(r, person, d) {
		return r, e.auditRefusal(ctx, r, d, person.Name, permissions.TooBig())
	}
	if err := e.refuseHasty(ctx, r, person, d); err != nil {
		return r, err
	}
	if r, err = e.realigned(ctx, r); err != nil {
		return permissions.Request{}, shared.Broken(err)
	}
	if err := e.mayAllow(r, d, person.Name); err != nil {
		return r, e.auditRefusal(ctx, r, d, person.Name, err)
	}
	var rule permissions.GrantedRule
	if d.Answer == permissions.Allow(permissions.Rule) && r.State == permissions.Pending {
		p, err := e.propose(ctx, r, person)
		switch {
		case permissions.CodeOf(err) == permissions.CodeNoAnswer:
			return r, e.auditRefusal(ctx, r, d, person.Name, err)
		case err != nil:
			return r, err
		case !e.ruleShown(string(r.ID)+" "+person.Name+" ", p.Rule, d.Rule):
			return r, permissions.ConfirmRule(p)
		}
		rule = p.Rule
	}
	c, err := e.registry.Resolve(ctx, r.ID, e.transitionOf(d, person.Name, rule))
	if err != nil {
		return c.Before, e.auditRefusal(ctx, r, d, person.Name, shared.Broken(permissions.ToRefusalIn(person.Location, err)))
	}
	if c.Vote != nil && c.Vote.Answer == permissions.Deny {
		e.endTrust(ctx, r.Caller)
	}
	if inChat(d) && c.Vote != nil {
		e.NoteApproval(person.Name)
	}
	return c.After, nil
}

// mayAllow returns why what a person's decision would allow could not be used, or would not count, by the settings of now; nil: it may.
func (e *Engine) mayAllow(r permissions.Request, d connectors.Decision, by string) error {
	scope, allows := d.Answer.Scope()
	if !allows || r.State != permissions.Pending {
		return nil
	}
	err := e.stillAllowed(r)
	if err != nil || scope == permissions.Rule || d.Call != 0 || counts(e.Settings(), r, permissions.Vote{By: by, Answer: d.Answer}) {
		return err
	}
	return permissions.WouldNotCount()
}

// realigned returns r as the settings of now have it: votes of people who are gone do not count.
func (e *Engine) realigned(ctx context.Context, r permissions.Request) (permissions.Request, error) {
	if r.State != permissions.Pending {
		return r, nil
	}
	changed, err := e.Realign(ctx, r)
	if err == nil && changed {
		r, err = e.store.Read(ctx, r.ID)
	}
	return r, err
}

// ruleShown reports whether a person was shown a rule for a request under that name. A name is so short that an agent can find two rules
// of one name, so the first that was shown keeps it. After a restart nothing was shown.
func (e *Engine) ruleShown(key string, rule permissions.GrantedRule, name string) bool {
	key += rule.Fingerprint()
	e.mu.Lock()
	defer e.mu.Unlock()
	was, shown := e.rules[key]
	if !shown {
		if len(e.rules) >= maxRules {
			clear(e.rules)
		}
		e.rules[key] = rule
	}
	return shown && was == rule && name == rule.Fingerprint()
}

// inChat reports whether a decision allows something by a tap or a typed answer to a card, not at the admin socket, which programs use too.
func inChat(d connectors.Decision) bool {
	_, allows := d.Answer.Scope()
	_, chat := connectors.KindOf(d.From.Via)
	return allows && (chat || d.From.Console)
}

// refuseHasty refuses to allow what a person who has just approved many cards can hardly have read.
func (e *Engine) refuseHasty(ctx context.Context, r permissions.Request, person connectors.Person, d connectors.Decision) error {
	if !inChat(d) || d.List || r.State != permissions.Pending || !e.Settings().Approvals.Unhurried ||
		e.AllowableAt(person.Name, time.Time{}).IsZero() {
		return nil
	}
	copies, err := e.store.Copies(ctx, r.ID)
	if err != nil {
		return shared.Broken(err)
	}
	armed := e.AllowableAt(person.Name, seenBy(person, copies, d).SentAt)
	if left := armed.Sub(e.clock.Now()); left > 0 {
		return e.auditRefusal(ctx, r, d, person.Name, permissions.TooSoon(left))
	}
	return nil
}

const (
	// proposedFrom is how far back a rule is proposed from, and maxProposedFrom from how many requests, the newest.
	proposedFrom    = 30 * 24 * time.Hour
	maxProposedFrom = 2000
	// historyPage is how many requests are read at a time.
	historyPage = 500
)

// propose returns the rule that "Always like this" gives for r, if it counts once a person votes for it, too. It reads what the caller
// asked before.
func (e *Engine) propose(ctx context.Context, r permissions.Request, by connectors.Person) (permissions.Proposal, error) {
	s, now, in := e.Settings(), e.clock.Now(), by.Language
	if p, why := s.Propose(r, nil, in, now); why != "" {
		return p, permissions.NoProposal(why)
	}
	if !r.Offers(permissions.Allow(permissions.Rule)) {
		return permissions.Proposal{}, permissions.NoProposal("it can only be allowed as its card says")
	}
	var earlier []permissions.Request
	of := permissions.HistoryQuery{Since: now.Add(-proposedFrom), Caller: r.Caller.Name, Limit: historyPage}
	for {
		page, err := e.store.History(ctx, of)
		if err != nil {
			return permissions.Proposal{}, shared.Unread(err)
		}
		earlier = append(earlier, page...)
		if earlier = earlier[max(0, len(earlier)-maxProposedFrom):]; len(page) < historyPage {
			break
		}
		of.After = page[len(page)-1].ID
	}
	p, why := s.Propose(r, earlier, in, now)
	if why != "" {
		return p, permissions.NoProposal(why)
	}
	if !counts(s, r, permissions.Vote{By: by.Name, Answer: permissions.Allow(permissions.Rule), Rule: p.Rule}) {
		return p, permissions.WouldNotCount()
	}
	return p, nil
}

// counts reports whether what a vote would leave behind holds by the settings of now, if r lacks no further one.
func counts(s *directory.Settings, r permissions.Request, v permissions.Vote) bool {
	after := r
	after.Answer, after.DecidedBy, after.Votes = v.Answer, v.By, append(slices.Clone(r.Votes), v)
	return len(after.Votes) < r.Quorum || !slices.ContainsFunc(after.GrantsLeft(), func(g permissions.Grant) bool {
		g.Several = after.GiversOf(g)
		return !s.GrantHolds(g, r)
	})
}

// mayAllowShown reports whether a decision may allow what it does, given that its channel can have shown all of it.
func (e *Engine) mayAllowShown(r permissions.Request, to connectors.Person, d connectors.Decision) bool {
	c, _ := e.Channel(d.From.Via)
	wholer, knows := c.(connectors.FitChecker)
	_, allows := d.Answer.Scope()
	return !knows || !allows || r.State != permissions.Pending ||
		wholer.Fits(connectors.Prompt{Request: r, To: to, Code: e.store.Coder().Encode(r.Number)})
}

// DecideAll answers everything that a burst lists, each request as a decision of its own. When the store fails, the rest can be
// answered by the same decision again.
func (e *Engine) DecideAll(ctx context.Context, d connectors.BurstDecision) (b connectors.Burst, taken int, err error) {
	person, known := e.Settings().Identify(d.From)
	if known && person.Locked == "" {
		if b, err = e.BurstOf(ctx, d.From.Via, person.Name, d.Ref); err != nil {
			return b, 0, err
		}
	}
	no := func(why *permissions.Refusal) error {
		return e.auditRefusal(ctx, permissions.Request{}, connectors.Decision{Answer: d.Answer, From: d.From}, person.Name, why)
	}
	_, allows := d.Answer.Scope()
	same := subtle.ConstantTimeCompare([]byte(b.Digest()), []byte(d.Digest)) == 1
	if d.Digest == "" {
		same = d.Count > 0 && d.Count == len(b.Items)
	}
	switch {
	case person.Locked != "":
		return b, 0, no(permissions.LockedOut(person.Locked))
	case !known:
		return b, 0, no(permissions.NotYours())
	case !same:
		return b, 0, no(permissions.ListChanged())
	case allows && len(b.Unseen()) > 0:
		return b, 0, no(permissions.NotAllShown(b.Unseen()))
	}
	first := error(nil)
	for _, i := range b.ForAll(d.Answer) {
		r := b.Items[i].Request
		r, err := e.OnPermission(ctx, connectors.Decision{
			Request: r.ID, Answer: d.Answer, Shown: r.ShownDigest(), From: d.From, Key: d.Key + ":" + string(r.ID), List: true,
		})
		switch {
		case err == nil:
			taken++
		case permissions.AsRefusal(err) == nil:
			return b, taken, err
		case first == nil:
			first = err
		}
		if r.ID != "" {
			b.Items[i].Request = r
		}
	}
	if taken > 0 {
		first = nil // the list shows what is left
	}
	return b, taken, first
}

// Preview returns the request of a decision as its person is shown it, without deciding anything. It refuses like the
// decision would, also when the request is settled; the prompt is returned beside a refusal where the person may see it.
func (e *Engine) Preview(ctx context.Context, d connectors.Decision) (connectors.Prompt, error) {
	r, person, refused := e.findEntitled(ctx, d)
	if r.ID == "" {
		return connectors.Prompt{}, refused
	}
	copies, err := e.store.Copies(ctx, r.ID)
	if err != nil {
		return connectors.Prompt{}, shared.Broken(err)
	}
	p := e.Prompt(ctx, r, seenBy(person, copies, d), person, copies)
	if refused == nil && r.State != permissions.Pending {
		refused = permissions.ToRefusalIn(person.Location, &permissions.SettledError{Request: r})
	}
	return p, refused
}

// SendAgain has the pending request of a code shown again to a person who is asked, in a message of its own, and returns its prompt as it
// was.
func (e *Engine) SendAgain(ctx context.Context, from connectors.Identity, code string) (connectors.Prompt, error) {
	p, err := e.Preview(ctx, connectors.Decision{Code: code, From: from})
	if err != nil {
		return p, err
	}
	copies, err := e.store.Copies(ctx, p.Request.ID)
	for _, cp := range copies {
		if cp.Connector != from.Via || cp.Person != p.To.Name || cp.Failed != "" || cp.Group != "" {
			continue
		}
		if cp.Ref != "" { // else it is being sent
			err = e.store.SendAgain(ctx, cp)
		}
		e.Enqueue(p.Request.ID)
		return p, shared.Broken(err)
	}
	return p, cmp.Or(shared.Broken(err), error(permissions.ShownElsewhere()))
}

// seenBy returns the copy that a decision is about: the one of its Ref, or else the one that the person can still
// answer.
func seenBy(p connectors.Person, copies []permissions.Copy, d connectors.Decision) (seen permissions.Copy) {
	for _, cp := range copies {
		switch mine := cp.Connector == d.From.Via && (cp.Person == p.Name || cp.Group != ""); {
		case !mine:
		case d.Ref != "" && cp.Ref == d.Ref:
			return cp
		case cp.Person == p.Name && (seen.Button == "" || seen.Failed != ""):
			seen = cp
		}
	}
	return seen
}

// findEntitled finds the request and the person of a decision, and refuses people who may not decide. The request is
// returned beside a refusal where they may see it.
func (e *Engine) findEntitled(
	ctx context.Context, d connectors.Decision,
) (permissions.Request, connectors.Person, error) {
	r, pressed, err := e.findTarget(ctx, d)
	if err != nil {
		return permissions.Request{}, connectors.Person{}, err
	}
	person, known := e.Settings().Identify(d.From)
	if person.Locked != "" {
		return permissions.Request{}, person, e.auditRefusal(ctx, r, d, person.Name, permissions.LockedOut(person.Locked))
	}
	others := d.Button != "" && pressed.Group == "" && pressed.Person != person.Name  // in a group the buttons are for all recipients
	wasAsked := r.State == permissions.Undeliverable && pressed.Person == person.Name // as after a lock; they are told how it ended
	if !known || !slices.Contains(r.Asked, person.Name) && !wasAsked || others {
		return permissions.Request{}, person, e.auditRefusal(ctx, r, d, person.Name, permissions.NotYours())
	}
	moved := d.Button != "" && pressed.Ref != d.Ref && pressed.Ref != "" // empty: it was sent a moment ago
	if moved && r.State == permissions.Pending {
		return r, person, e.auditRefusal(ctx, r, d, person.Name, permissions.ButtonMoved())
	}
	if d.Button != "" && pressed.Ref == "" && d.Ref != "" {
		return r, person, e.noteMessageID(ctx, pressed, d.Ref)
	}
	_, allows := d.Answer.Scope()
	if d.Button == "" && (allows || d.Answer == permissions.Deny) && r.State == permissions.Pending {
		return r, person, e.noteSeen(ctx, r, person.Name, d.From.Via)
	}
	return r, person, nil
}

// noteSeen records that a person has seen a prompt that is being sent: they decided it by its code.
func (e *Engine) noteSeen(ctx context.Context, r permissions.Request, who, via string) error {
	if _, on := e.Channel(via); !on {
		return nil
	}
	copies, err := e.store.Copies(ctx, r.ID)
	for _, cp := range copies {
		if at := e.Sending(cp); cp.Person == who && cp.Connector == via && cp.Ref == "" && !at.IsZero() {
			cp.SentAt = at
			return e.noteMessageID(ctx, cp, cp.Ref)
		}
	}
	return shared.Broken(err)
}

// noteMessageID records the message id of a copy that was sent but not recorded: its answer arrived before the channel confirmed
// it, or the daemon was killed at that moment.
func (e *Engine) noteMessageID(ctx context.Context, cp permissions.Copy, ref string) error {
	was := cp.Ref
	cp.Ref = ref
	if cp.SentAt.IsZero() {
		cp.SentAt = e.clock.Stamp()
	}
	noting, done := shared.Noting(ctx)
	defer done()
	err := e.store.MarkShown(noting, cp, was)
	if errors.As(err, new(*permissions.OtherMessageError)) { // recorded meanwhile
		err = nil
	}
	e.Enqueue(cp.Request) // also after a store failure: the write may have succeeded
	return shared.Broken(err)
}

// transitionOf returns the transition of a decision. It includes the use of an approval by the waiting call: one commit instead
// of two.
func (e *Engine) transitionOf(d connectors.Decision, by string, rule permissions.GrantedRule) permissions.Transition {
	if d.Default {
		return permissions.Default{By: by, Via: d.From.Via, At: e.clock.Stamp()}
	}
	cast := permissions.Cast{Really: d.Really, Vote: permissions.Vote{
		By: by, Via: d.From.Via, Answer: d.Answer, Call: d.Call, Comment: d.Comment, At: e.clock.Stamp(), Key: d.Key,
		Rule: rule, Account: e.Settings().AccountOf(d.From),
	}}
	if _, allows := d.Answer.Scope(); allows {
		cast.Use = &permissions.Use{At: cast.Vote.At}
	}
	return cast
}

// findTarget finds the request of a decision, and the copy whose button was pressed, if one was.
func (e *Engine) findTarget(ctx context.Context, d connectors.Decision) (r permissions.Request, pressed permissions.Copy, err error) {
	if d.Button == "" {
		r, err = e.Named(ctx, d.Request, d.Code)
		return r, pressed, err
	}
	number, _, ok := dispatch.CutButton(d.Button)
	if !ok {
		return r, pressed, permissions.Unknown("button")
	}
	r, copies, err := e.store.ByNumber(ctx, number)
	if err != nil {
		return permissions.Request{}, pressed, shared.Broken(err)
	}
	for _, cp := range copies {
		if cp.Connector == d.From.Via && subtle.ConstantTimeCompare([]byte(dispatch.Button(r, cp)), []byte(d.Button)) == 1 {
			return r, cp, nil
		}
	}
	return permissions.Request{}, pressed, permissions.Unknown("button")
}

// auditRefusal audits a rejected decision and returns the reason. A failed audit write does not change the refusal. If the
// store failed to take the decision, no audit write is tried: it might take as long again while the person waits.
func (e *Engine) auditRefusal(ctx context.Context, r permissions.Request, d connectors.Decision, who string, why error) error {
	code := cmp.Or(permissions.CodeOf(why), permissions.CodeBroken)
	e.log.Info("decision refused", "request", r.ID, "via", d.From.Via, "uid", d.From.UID, "code", code, "err", why)
	if code == permissions.CodeBroken || d.Again || !limiter(e, e.refusals, d.From, refusalsPerMinute, time.Minute).AllowN(e.clock.Now(), 1) {
		return why
	}
	noting, done := shared.Noting(ctx)
	defer done()
	detail := map[string]string{"answer": string(d.Answer), "why": string(code)}
	if account := directory.AccountOf(d.From); account != "" {
		detail["account"] = account
	}
	err := e.store.Record(noting, permissions.Record{
		Type: permissions.DecisionRefused, At: e.clock.Stamp(), Request: r.ID, Actor: who, Via: d.From.Via, Detail: detail,
	})
	if err != nil {
		e.log.Error("audit refused decision", "request", r.ID, "err", err)
	}
	return why
}
