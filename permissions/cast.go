package permissions

import "slices"

// cast applies one person's answer: one vote a person, allow may become deny and never back, one denial denies, and an
// approval needs the quorum and gets the narrowest scope voted.
func cast(r Request, e Cast) (Change, error) {
	v := e.Vote
	if !slices.Contains(r.Asked, v.By) {
		return Change{}, ErrNotAsked
	}
	if !slices.ContainsFunc(r.Options, func(o Option) bool { return o.ID == v.Answer }) {
		return Change{}, ErrNoOption
	}
	if _, allows := v.Answer.Scope(); !allows && v.Answer != Deny {
		return answer(r, v), nil
	} else if allows && r.HighRisk && !e.Really {
		return Change{}, ErrReally
	}
	units := r.open(v)
	if len(units) == 0 {
		return Change{}, ErrNoOption
	}
	fresh := slices.DeleteFunc(units, func(n int) bool { return r.voted(v.By, n) })
	if v.Answer == Deny {
		fresh = r.open(v)
	} else if len(fresh) == 0 {
		return repeated(r, v)
	}
	return tally(r, v, fresh), nil
}

// repeated is a second allowance by the same person: harmless when it is the same, refused when it is another.
func repeated(r Request, v Vote) (Change, error) {
	for _, old := range r.Votes {
		if old.By == v.By && old.Answer == v.Answer && old.Call == v.Call {
			return Change{Before: r, After: r}, nil
		}
	}
	return Change{}, ErrVoted
}

// answer ends a request of which the first answer counts: an option, continue or interrupt.
func answer(r Request, v Vote) Change {
	c := settle(r, Answered, v.By, v.Via, v.At)
	c.After.Answer, c.After.Comment = v.Answer, v.Comment
	c.After.Votes = append(slices.Clone(r.Votes), v)
	c.Vote = &v
	c.Records[0].Detail["answer"] = string(v.Answer)
	return c
}

// open are the calls that v answers and that nobody has decided yet, as numbers; a request without calls is one unit,
// number 0.
func (r Request) open(v Vote) []int {
	if len(r.Calls) == 0 {
		if v.Call != 0 {
			return nil
		}
		return []int{0}
	}
	var units []int
	for _, c := range r.Calls {
		if c.Answer == "" && (v.Call == 0 || v.Call == c.N) {
			units = append(units, c.N)
		}
	}
	return units
}

// voted tells whether a person has already voted on a unit.
func (r Request) voted(by string, unit int) bool {
	return slices.ContainsFunc(r.Votes, func(v Vote) bool { return v.By == by && v.covers(unit) })
}

func (v Vote) covers(unit int) bool { return v.Call == 0 || v.Call == unit }

// tally adds the vote and settles what it settles: of each unit, and of the request when no unit is left open.
func tally(r Request, v Vote, units []int) Change {
	after := r
	after.Revision++
	after.Votes = append(slices.Clone(r.Votes), v)
	after.Calls = slices.Clone(r.Calls)
	c := Change{Before: r, Vote: &v}
	decided := map[int]Answer{}
	for _, n := range units {
		if a := after.verdict(n); a != "" {
			decided[n] = a
		}
	}
	for i, call := range after.Calls {
		if a, ok := decided[call.N]; ok {
			after.Calls[i].Answer, after.Calls[i].Comment = a, v.Comment
		}
	}
	final, done := after.final(decided[0])
	if !done {
		c.After = after
		c.Records = []Record{record(RequestVoted, r, v.By, v.Via, v.At, "answer", string(v.Answer))}
		return c
	}
	c = settle(after, Denied, v.By, v.Via, v.At)
	c.Before, c.Vote, c.After.Revision = r, &v, r.Revision+1
	c.After.Answer, c.After.Comment = final, v.Comment
	if s, ok := final.Scope(); ok {
		c.After.State, c.After.Scope = Approved, s
	}
	c.Records[0].Detail["state"], c.Records[0].Detail["answer"] = string(c.After.State), string(final)
	c.grant(v)
	return c
}

// verdict is what the votes say of one unit: denied by one, allowed by the quorum with the narrowest scope, or open.
func (r Request) verdict(unit int) Answer {
	allows := map[string]Scope{}
	for _, v := range r.Votes {
		if !v.covers(unit) {
			continue
		}
		s, ok := v.Answer.Scope()
		if !ok {
			return Deny
		}
		if _, again := allows[v.By]; !again {
			allows[v.By] = s
		}
	}
	if len(allows) < r.Quorum {
		return ""
	}
	narrowest := Scope{}
	for _, s := range allows {
		if narrowest == (Scope{}) {
			narrowest = s
		}
		narrowest = Narrowest(narrowest, s)
	}
	return Allow(narrowest)
}

// final is the answer of the whole request once nothing of it is open: of a step, the narrowest allowance of any call,
// or deny when every call was denied.
func (r Request) final(single Answer) (a Answer, done bool) {
	if len(r.Calls) == 0 {
		return single, single != ""
	}
	narrowest := Scope{}
	for _, c := range r.Calls {
		s, ok := c.Answer.Scope()
		switch {
		case c.Answer == "":
			return "", false
		case ok && narrowest == (Scope{}):
			narrowest = s
		case ok:
			narrowest = Narrowest(narrowest, s)
		}
	}
	if narrowest == (Scope{}) {
		return Deny, true
	}
	return Allow(narrowest), true
}

// grant adds what the approval leaves behind, call by call.
func (c *Change) grant(v Vote) {
	r := c.After
	calls := r.ToolCalls()
	if r.Kind != KindTool {
		calls = []Call{{Answer: r.Answer}}
	}
	for _, call := range calls {
		s, ok := call.Answer.Scope()
		if !ok {
			continue
		}
		if g, leaves := r.leaves(s, call, v.By, v.At); leaves {
			c.Grants = append(c.Grants, g)
			c.Records = append(c.Records, record(GrantAdded, r, v.By, v.Via, v.At, "grant", string(g.ID), "scope", s.String()))
		}
	}
}
