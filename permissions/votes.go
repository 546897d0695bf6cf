package permissions

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cast applies one person's answer: one vote a person, allow may become deny and never back, one denial denies, and an
// approval needs the quorum and gets the narrowest scope voted.
func cast(r Request, e Cast) (Change, error) {
	v := e.Vote
	_, allows := v.Answer.Scope()
	switch {
	case !slices.Contains(r.Asked, v.By):
		return Change{}, ErrNotAsked
	case v.Answer == Other && r.TakesWords() && v.Call == 0:
		if v.Comment = strings.TrimSpace(v.Comment); !isAnswer(v.Comment) {
			return Change{}, ErrWords
		}
		return answer(r, v), nil
	case !r.Offers(v.Answer):
		return Change{}, ErrNoOption
	case v.Call != 0 && !slices.ContainsFunc(r.Calls, func(c Call) bool { return c.N == v.Call }):
		return Change{}, fmt.Errorf("%w: %w", ErrNoOption, noCall{v.Call, len(r.Calls)})
	case allows && r.HighRisk && v.Answer != Allow(Once): // offered by older versions, before high risk was limited to once
		return Change{}, ErrNoOption
	case allows && r.HighRisk && !e.Really:
		return Change{}, ErrReally
	case (v.Answer == Allow(Rule)) != (v.Rule != ""):
		return Change{}, ErrNoRule
	case !allows && v.Answer != Deny:
		return answer(r, v), nil
	}
	units := r.open(v)
	switch {
	case r.repeats(v):
		return Change{Before: r, After: r}, nil
	case len(units) == 0:
		return Change{}, ErrCall
	case allows && !slices.ContainsFunc(units, func(n int) bool { return r.countedVote(v.By, n).Answer == "" }):
		return Change{}, ErrVoted
	}
	c := tally(r, v, units)
	if c.After.State == Approved && e.Use != nil {
		c.spend(*e.Use)
	}
	return c, nil
}

// noCall refuses an answer to a call number that the request does not have.
type noCall struct{ call, of int }

func (e noCall) Error() string { return e.refusal().Text }

func (e noCall) refusal() *Refusal {
	if e.of == 0 {
		return refuseIn(CodeInvalid, ExitUsage, "This request is not of several calls; answer it without the number of one.")
	}
	return refuseIn(CodeInvalid, ExitUsage, "There is no call %d: this request has %d calls.", e.call, e.of)
}

// TakesWords reports whether r may be answered in the person's own words, see [Other].
func (r Request) TakesWords() bool { return r.Kind == KindClarification }

// isAnswer reports whether trimmed words can be an answer by themselves: visible, without terminal control characters,
// and not too long.
func isAnswer(words string) bool {
	acts := func(c rune) bool { return unicode.IsControl(c) && !strings.ContainsRune("\t\r\n", c) }
	seen := func(c rune) bool { return unicode.IsGraphic(c) && !unicode.IsSpace(c) }
	return utf8.ValidString(words) && utf8.RuneCountInString(words) <= MaxReason &&
		strings.ContainsFunc(words, seen) && !strings.ContainsFunc(words, acts)
}

// TakesReplies reports whether r may also be answered through the asker's own side, see [Reply]: neither an option of a
// clarification nor continuing permits anything.
func (r Request) TakesReplies() bool {
	return r.Kind == KindClarification || (r.Kind == KindPause && r.Mode == ModeContinue)
}

// answer ends a request whose first answer counts: an option, the person's own words, continue or interrupt.
func answer(r Request, v Vote) Change {
	c := answered(r, v, v.By)
	c.After.Votes = append(slices.Clone(r.Votes), v)
	c.Vote = &v
	return c
}

// reply ends one by an answer from the asker's editor, which is nobody's vote.
func reply(r Request, e Reply) (Change, error) {
	switch {
	case !r.TakesReplies():
		return Change{}, ErrAsker
	case !r.Offers(e.Answer):
		return Change{}, ErrNoOption
	}
	return answered(r, Vote{Via: ViaEditor, Answer: e.Answer, At: e.At}, r.Caller.Name), nil
}

// answered returns r ended by an answer; actor is who the audit says gave it.
func answered(r Request, v Vote, actor string) Change {
	c := settle(r, Answered, v.By, v.Via, v.At)
	c.After.Answer, c.After.Comment = v.Answer, v.Comment
	for i := range c.Records {
		c.Records[i].Actor = actor
	}
	c.Records[0].Detail["answer"] = string(v.Answer)
	return c
}

// Offers reports whether an answer is one of the options.
func (r Request) Offers(a Answer) bool {
	return slices.ContainsFunc(r.Options, func(o Option) bool { return o.ID == a })
}

// units returns the numbers of the calls that v answers; a request without calls is one unit, number 0.
func (r Request) units(v Vote) []int {
	if len(r.Calls) == 0 {
		return []int{0}
	}
	var units []int
	for _, c := range r.Calls {
		if v.covers(c.N) {
			units = append(units, c.N)
		}
	}
	return units
}

// open returns the undecided units that v answers.
func (r Request) open(v Vote) []int {
	return slices.DeleteFunc(r.units(v), func(n int) bool {
		return slices.ContainsFunc(r.Calls, func(c Call) bool { return c.N == n && c.Answer != "" })
	})
}

func (v Vote) covers(unit int) bool { return v.Call == 0 || v.Call == unit }

// countedVote returns a person's vote on a unit as it counts: a denial, else the first allowance; empty without one.
func (r Request) countedVote(by string, unit int) (counts Vote) {
	for _, v := range r.Votes {
		if v.By == by && v.covers(unit) && (counts.Answer == "" || v.Answer == Deny) {
			counts = v
		}
	}
	return counts
}

// HasVoted reports whether a person has voted on everything that is still open.
func (r Request) HasVoted(by string) bool {
	return !slices.ContainsFunc(r.open(Vote{By: by}), func(n int) bool { return r.countedVote(by, n).Answer == "" })
}

// repeats reports whether v repeats its person's vote, as a double tap does.
func (r Request) repeats(v Vote) bool {
	return !slices.ContainsFunc(r.units(v), func(n int) bool { return r.countedVote(v.By, n).Answer != v.Answer })
}

// tally adds the vote and settles what it decides: each unit, and the request when no unit is left open.
func tally(r Request, v Vote, units []int) Change {
	after := r
	after.Revision++
	after.Votes = append(slices.Clone(r.Votes), v)
	after.Calls = slices.Clone(r.Calls)
	var single Answer
	for _, n := range units {
		verdict := after.unitAnswer(n)
		if n == 0 {
			single = verdict
		} else if verdict != "" {
			call := &after.Calls[slices.IndexFunc(after.Calls, func(c Call) bool { return c.N == n })]
			call.Answer, call.Comment, call.By, call.At = verdict, v.Comment, v.By, v.At
		}
	}
	final := after.finalAnswer(single)
	if final == "" {
		rec := record(RequestVoted, r, v.By, v.Via, v.At, "answer", string(v.Answer))
		if v.Rule != "" {
			rec.Detail["rule"] = string(v.Rule)
		}
		if v.Call != 0 {
			rec.Detail["call"] = strconv.Itoa(v.Call)
		}
		return Change{Before: r, After: after, Vote: &v, Records: []Record{rec}}
	}
	c := settle(r, Denied, v.By, v.Via, v.At)
	c.Vote, c.After.Votes, c.After.Calls = &v, after.Votes, after.Calls
	c.After.Answer, c.After.Comment = final, v.Comment
	if s, ok := final.Scope(); ok {
		c.After.State, c.After.Scope = Approved, s
	}
	c.Records[0].Detail["state"], c.Records[0].Detail["answer"] = string(c.After.State), string(final)
	if each := after.differingAnswers(); len(each) > 0 {
		c.Records[0].Detail["calls"] = strings.Join(each, ",")
	}
	c.grant(v)
	return c
}

// unitAnswer returns the result of the votes on one unit: denied by one, allowed by the quorum with the narrowest scope, or
// open. An account counts once, whoever it belonged to when it voted. A suggestion is taken only if every allowance takes it, and a rule
// only if it is the same in all of them.
func (r Request) unitAnswer(unit int) Answer {
	allowed, narrowest, same, rule := 0, Scope{}, Answer(""), GrantedRule("")
	var seen []string
	for _, by := range slices.Compact(slices.Sorted(slices.Values(r.Asked))) {
		v := r.countedVote(by, unit)
		if v.Answer == Deny {
			return Deny
		}
		if s, ok := v.Answer.Scope(); ok {
			if v.Account == "" || !slices.Contains(seen, v.Account) {
				allowed++
			}
			seen = append(seen, v.Account)
			if narrowest = Narrowest(narrowest, s); rule != "" && v.Rule != "" && v.Rule != rule {
				narrowest = Once
			}
			rule = cmp.Or(rule, v.Rule)
			if same == "" {
				same = v.Answer
			} else if same != v.Answer {
				same = Allow(Once)
			}
		}
	}
	switch {
	case allowed == 0 || allowed < r.Quorum:
		return ""
	case same.SuggestionNumber() > 0:
		return same
	}
	return Allow(narrowest)
}

// votedRule is the rule that the votes on r give, which are for one rule if r was allowed with [Rule], with who gave it if several did.
func (r Request) votedRule() (rule GrantedRule) {
	var of grantedRule
	for _, v := range r.Votes {
		if v.Answer == Allow(Rule) && slices.Contains(r.Asked, v.By) && !slices.Contains(of.By, v.By) {
			rule, of.By = v.Rule, append(of.By, v.By)
		}
	}
	if len(of.By) < 2 || json.Unmarshal([]byte(rule), &of) != nil {
		return rule
	}
	text, _ := json.Marshal(of) // texts
	return GrantedRule(text)
}

// finalAnswer returns the answer of the whole request, empty while part of it is open: for a step, the narrowest allowance of
// any call, or deny if every call was denied, or one whose denial ends the run.
func (r Request) finalAnswer(single Answer) Answer {
	if len(r.Calls) == 0 {
		return single
	}
	narrowest, ends := Scope{}, false
	for _, c := range r.Calls {
		if c.Answer == "" {
			return ""
		}
		ends = ends || c.EndsRun && c.Answer == Deny
		if s, ok := c.Answer.Scope(); ok {
			narrowest = Narrowest(narrowest, s)
		}
	}
	if narrowest == (Scope{}) || ends {
		return Deny
	}
	return Allow(narrowest)
}

// differingAnswers returns the answers to the calls of a step, as in 1:deny, if they differ.
func (r Request) differingAnswers() (all []string) {
	differ := false
	for _, c := range r.Calls {
		differ = differ || c.Answer != r.Calls[0].Answer
		all = append(all, fmt.Sprintf("%d:%s", c.N, c.Answer))
	}
	if !differ {
		return nil
	}
	return all
}

// LeavesGrants reports whether its approval leaves grants behind.
func (r Request) LeavesGrants() bool {
	c := Change{After: r}
	c.grant(Vote{})
	return len(c.Grants) > 0
}

// grant adds the grants of the approval, call by call, without duplicates.
func (c *Change) grant(v Vote) {
	r := c.After
	calls := r.ToolCalls()
	if r.Kind != KindTool {
		calls = []Call{{Answer: r.Answer}}
	}
	for _, call := range calls {
		s, allowed := call.Answer.Scope()
		if !allowed || r.State == Denied {
			continue
		}
		g, leaves := r.grantFor(s, call, v.By, v.At)
		if !leaves || slices.ContainsFunc(c.Grants, g.coversSame) {
			continue
		}
		g.ID = r.grantID(v.At, len(c.Grants))
		c.add(g, s, v.Via)
	}
}

// add adds one grant, which was given by way of a channel.
func (c *Change) add(g Grant, s Scope, via string) {
	c.Grants = append(c.Grants, g)
	added := record(GrantAdded, c.After, g.By, via, g.CreatedAt, "grant", string(g.ID), "scope", s.String())
	if g.Rule != "" {
		added.Detail["rule"] = string(g.Rule)
	}
	c.Records = append(c.Records, added)
}

// GrantsLeft returns the grants that an approved request left behind.
func (r Request) GrantsLeft() []Grant {
	c := Change{After: r}
	c.grant(Vote{By: r.DecidedBy, Via: r.DecidedVia, At: r.DecidedAt})
	return c.Grants
}
