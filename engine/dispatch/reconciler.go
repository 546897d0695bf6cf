package dispatch

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/directory"
	"github.com/daycared/daycared/permissions"
)

// reconciler ensures that every recipient has a prompt or a recorded failure: after an escalation, after a change of the
// configuration, and when a channel failed for good. It works from the rows alone.
type reconciler struct {
	*workQueue
	service *Dispatch
}

// reconcile examines one request. When too few people can be reached, it escalates at once; without anybody to escalate
// to, the request is undeliverable.
func (u *reconciler) reconcile(ctx context.Context, id permissions.ID) error {
	e := u.service
	for {
		r, copies, there, err := e.read(ctx, id)
		if err != nil || !there || r.State != permissions.Pending {
			return err
		}
		s := e.dir.Settings()
		if err := e.withhold(ctx, s, copies); err != nil {
			return err
		}
		if r.Group != "" { // it waits for copies in private
			e.Enqueue(id)
		}
		more, why := e.Plan(s, r, copies)
		if len(more) > 0 {
			err := e.store.AddCopies(ctx, more)
			e.Enqueue(id) // also after a store failure: the write may have succeeded
			if err == nil {
				err = e.SendUnfollowed(ctx, more)
			}
			if err != nil {
				return err
			}
		}
		if e.CountReached(s, r, append(copies, more...)) >= r.Quorum {
			return nil
		}
		if realigned, err := e.Realign(ctx, r); err != nil {
			return err
		} else if realigned { // it still had the recipients of former settings
			continue
		}
		var next permissions.Transition = permissions.GiveUp{Reason: why, Asked: r.Asked, At: e.clock.Stamp()}
		if len(s.Unlocked(r.EscalateTo...)) > 0 {
			next = permissions.Escalate{At: e.clock.Stamp()}
		}
		c, err := e.registry.Resolve(ctx, id, next)
		switch {
		case errors.Is(err, permissions.ErrSettled), errors.Is(err, permissions.ErrLate):
			return nil
		case err != nil:
			return err
		case c.After.State != permissions.Pending:
			return nil
		}
	}
}

// Plan returns the copies that r lacks, given those that it has, and the reasons why nobody else can be reached. Recipients
// who are away are left alone, unless too few others can be reached; a group shows them its card like everybody else.
func (d *Dispatch) Plan(s *directory.Settings, r permissions.Request, have []permissions.Copy) (more []permissions.Copy, why string) {
	if r.State != permissions.Pending {
		return nil, ""
	}
	if away, enough := s.Away(r, d.clock.Now()); enough && len(away) > 0 {
		more, why = d.planAll(s, r, have, away)
		if d.CountReached(s, r, append(slices.Clone(have), more...)) >= r.Quorum {
			return more, why
		}
	}
	return d.planAll(s, r, have, nil)
}

// planAll is Plan in which those who are away are left alone.
func (d *Dispatch) planAll(
	s *directory.Settings, r permissions.Request, have []permissions.Copy, away []permissions.Absence,
) (more []permissions.Copy, why string) {
	var reasons []string
	first, own := d.privateRecipient(s, r, have, away)
	for _, name := range r.Asked {
		person, ok := s.Person(name)
		if !ok {
			reasons = append(reasons, name+" is not configured")
			continue
		}
		alone := isAmong(away, name)
		copies, unreachable := d.planFor(person, r, have, alone)
		if len(own) > 0 {
			for i := range copies {
				if copies[i].Group != "" {
					copies[i].DueAt = inGroupAt(r)
				}
			}
			if name == first {
				copies = append(slices.DeleteFunc(copies, func(c permissions.Copy) bool { return c.Group == "" }), own...)
			}
		}
		more = append(more, shareButton(copies, more)...)
		live := func(c permissions.Copy) bool {
			return c.Person == name && c.Failed == "" && d.whyBarred(person, c.Connector) == nil
		}
		if !slices.ContainsFunc(copies, live) && !slices.ContainsFunc(have, live) {
			reasons = append(reasons, unreachable...)
		}
	}
	at := d.clock.Stamp() // after each copy was due
	for i := range more {
		if more[i].Shown == permissions.ShownAlways {
			more[i].SentAt = at
		}
	}
	if len(reasons) == 0 {
		reasons = []string{"no channel is switched on"}
	}
	return more, strings.Join(slices.Compact(reasons), "; ")
}

// SendUnfollowed has copies sent whose people stopped following while the copies were stored as shown.
func (d *Dispatch) SendUnfollowed(ctx context.Context, copies []permissions.Copy) error {
	for _, cp := range copies {
		c, _ := d.dir.Channel(cp.Connector)
		f, follows := c.(connectors.Follower)
		p, _ := d.dir.Settings().Person(cp.Person)
		if cp.Shown != permissions.ShownAlways || follows && f.Follows(p) != "" {
			continue
		}
		cp.SentAt = time.Time{}
		if err := d.store.SendAgain(ctx, cp); err != nil {
			return err
		}
		d.Enqueue(cp.Request)
	}
	return nil
}

// isAmong reports whether one of the absences is a person's.
func isAmong(away []permissions.Absence, name string) bool {
	return slices.ContainsFunc(away, func(a permissions.Absence) bool { return a.Person == name })
}

// privateRecipient returns the person who sees a new request by themselves before its group does, with their copies; none if they
// cannot be reached so.
func (d *Dispatch) privateRecipient(
	s *directory.Settings, r permissions.Request, have []permissions.Copy, away []permissions.Absence,
) (name string, own []permissions.Copy) {
	name = s.SingleRecipient(r)
	if r.Group == "" || name == "" || len(have) > 0 || isAmong(away, name) {
		return "", nil
	}
	r.Group = ""
	p, _ := s.Person(name)
	own, _ = d.planFor(p, r, nil, false)
	if !slices.ContainsFunc(own, d.inChat) {
		return "", nil
	}
	return name, own
}

// inChat reports whether a copy is a message to one person, not on a screen.
func (d *Dispatch) inChat(cp permissions.Copy) bool {
	c, on := d.dir.Channel(cp.Connector)
	_, screen := c.(connectors.Screen)
	return on && !screen && cp.Group == ""
}

// inGroupAt is when a group sees a request that one of its people was asked in private: when it escalates, or after half
// its time if others are asked, too. A request that nobody else may decide is shown once it is settled.
func inGroupAt(r permissions.Request) time.Time {
	at := r.Deadline
	if len(r.Asked) > 1 {
		at = r.CreatedAt.Add(r.Timeout() / 2)
	}
	if !r.EscalateAt.IsZero() && r.EscalateAt.Before(at) {
		at = r.EscalateAt
	}
	return at
}

// shareButton gives copies the button of the others in the same group.
func shareButton(copies, others []permissions.Copy) []permissions.Copy {
	for i, c := range copies {
		same := slices.IndexFunc(others, func(o permissions.Copy) bool { return o.Group == c.Group && o.Connector == c.Connector })
		if c.Group != "" && same >= 0 {
			copies[i].Button = others[same].Button
		}
	}
	return copies
}

// planFor returns the copies that one person lacks. A person who named channels gets one copy in the first of them that
// works, and one on every screen; without names, one in every channel that may reach them. A person who can be reached
// in the request's group sees it there, and that channel sends them none of their own while this holds (but see
// privateRecipient). A person who is left alone gets no other.
func (d *Dispatch) planFor(
	p connectors.Person, r permissions.Request, have []permissions.Copy, alone bool,
) (more []permissions.Copy, why []string) {
	had := map[string]permissions.Copy{}
	live := map[string]bool{} // that work, as far as known
	for _, c := range have {
		if c.Person == p.Name && c.Group == "" {
			had[c.Connector], live[c.Connector] = c, c.Failed == "" && d.whyBarred(p, c.Connector) == nil
		}
	}
	groupVia, there, first := d.groupChannel(p, r, have)
	if first {
		shared := d.copyFor(p, r, groupVia, r.Group)
		shared.DueAt = shared.DueAt.Add(followUpDelay(r))
		more = append(more, shared)
	}
	if alone {
		return more, nil
	}
	add := func(c connectors.Connector) bool {
		name := c.Name()
		if there && name == groupVia {
			return true
		}
		if old, tried := had[name]; tried {
			if out := d.whyBarred(p, name); old.Failed == "" && out != nil {
				why = append(why, out.Error())
			} else if old.Failed != "" {
				why = append(why, old.Failed)
			}
			return live[name]
		}
		if err := checkReachable(c, p); err != nil {
			why = append(why, err.Error())
			return false
		}
		more = append(more, d.individual(c, p, r))
		return true
	}
	for _, name := range p.Via {
		c, on := d.dir.Channel(name)
		if !on {
			why = append(why, p.Name+"'s "+name+" is not switched on")
		} else if add(c) {
			break
		}
	}
	if len(p.Via) > 0 && (len(had) > 0 || groupVia != "" && !first) {
		return more, why // only the screens were served
	}
	for _, c := range d.dispatchers {
		_, screen := c.connector.(connectors.Screen)
		if len(p.Via) == 0 || (screen && !slices.Contains(p.Via, c.connector.Name())) {
			add(c.connector)
		}
	}
	return more, why
}

// individual returns the copy of r for one person alone.
func (d *Dispatch) individual(c connectors.Connector, p connectors.Person, r permissions.Request) permissions.Copy {
	mine, wait := d.copyFor(p, r, c.Name(), ""), max(followUpDelay(r), phoneDelay(c, p, r))
	mine.DueAt = mine.DueAt.Add(wait)
	if f, follows := c.(connectors.Follower); follows && wait == 0 {
		if mine.Ref = f.Follows(p); mine.Ref != "" {
			mine.Shown = permissions.ShownAlways
		}
	}
	return mine
}

// groupChannel returns the channel of r's group, where p can be reached by that channel at all; there reports whether
// they see r in the group, and first whether they still need a copy there. A group that failed once is not used again.
func (d *Dispatch) groupChannel(p connectors.Person, r permissions.Request, have []permissions.Copy) (name string, there, first bool) {
	if r.Group == "" {
		return "", false, false
	}
	for _, c := range d.dispatchers {
		why := checkReachable(c.connector, p)
		if h, is := c.connector.(connectors.GroupChannel); !is || !h.IsGroup(r.Group) || why != nil && !isLost(why) {
			continue
		}
		name, there, first = c.connector.Name(), true, true
		for _, old := range have {
			if old.Connector == name && old.Group == r.Group {
				there = there && old.Failed == ""
				first = first && old.Person != p.Name
			}
		}
		return name, there, there && first
	}
	return "", false, false
}

// copyFor returns a copy that is still to be shown.
func (d *Dispatch) copyFor(p connectors.Person, r permissions.Request, connector, place string) permissions.Copy {
	return permissions.Copy{
		Request: r.ID, Person: p.Name, Connector: connector, Group: place, Button: permissions.NewButton(), DueAt: d.clock.Stamp(),
	}
}

// followUpWait is how long a question that another follows is shown to nobody.
const followUpWait = 2 * time.Second

// followUpDelay is how long r waits for the question that follows it, which replaces it.
func followUpDelay(r permissions.Request) time.Duration {
	if !r.FollowUpExpected || r.Hook == "" {
		return 0
	}
	return min(followUpWait, r.Timeout()/2)
}

// phoneDelay is how long a copy is kept from a phone: a hook's question is often answered where its agent runs, which does not
// apply to agents that the daemon runs. It is at most half of the request's time; screens and groups that others see get
// no delay.
func phoneDelay(c connectors.Connector, p connectors.Person, r permissions.Request) time.Duration {
	if _, screen := c.(connectors.Screen); screen || r.Hook == "" || r.Caller.IsOurs() {
		return 0
	}
	return max(0, min(p.PhoneAfter, r.Timeout()/2))
}

// checkReachable asks a connector whether a person can be reached; an error: they cannot, or their account is suspended.
func checkReachable(c connectors.Connector, p connectors.Person) error {
	err := reachNow(c, p)
	if err == nil || errors.Is(err, connectors.ErrUnreachable) || directory.AccountProblem(p, c.Name()) != nil {
		return err
	}
	return nil
}

// Enqueue enqueues a request in every dispatcher, if this daemon sends.
func (d *Dispatch) Enqueue(id permissions.ID) {
	if !d.IsSender() {
		return
	}
	for _, c := range d.dispatchers {
		c.Enqueue(id)
	}
}

// isLost reports whether a person cannot be reached individually until they act.
func isLost(err error) bool {
	gone := (*connectors.UnreachableError)(nil)
	return errors.As(err, &gone) && gone.Lost
}

// CountReached counts the recipients with a copy that was shown, or may still be. People who have lost their account or left
// count only if they have voted on everything.
func (d *Dispatch) CountReached(s *directory.Settings, r permissions.Request, copies []permissions.Copy) int {
	people := map[string]bool{}
	for _, c := range copies {
		p, _ := s.Person(c.Person)
		door, on := d.dir.Channel(c.Connector)
		left := on && c.Group == "" && c.Failed != "" && isLost(checkReachable(door, p))
		lost := (left || d.whyBarred(p, c.Connector) != nil) && !r.HasVoted(c.Person)
		if (c.Failed == "" || !c.SentAt.IsZero()) && slices.Contains(r.Asked, c.Person) && !lost {
			people[c.Person] = true
		}
	}
	return len(people)
}

// Prompt builds the request as one person sees it in one chat, or as everybody in a group does.
func (d *Dispatch) Prompt(
	ctx context.Context, r permissions.Request, cp permissions.Copy, to connectors.Person, copies []permissions.Copy,
) connectors.Prompt {
	p := connectors.Prompt{
		Request: r, To: to, Code: d.store.Coder().Encode(r.Number), Waiting: d.countWaiting(r),
		Ref: cp.Ref, Burst: cp.Burst, SentAt: cp.SentAt, Button: Button(r, cp),
		Silent: r.PromptsRefused() > 0 || d.isSilenced(to.Name, r) || !r.Urgent() && d.quiet(to), Locked: to.Locked != "" && cp.Group == "",
	}
	p.Request = d.dir.Settings().Shown(r, cp.Connector)
	notAsked := cp.Group == "" && r.State == permissions.Pending && to.Locked == "" && !slices.Contains(r.Asked, to.Name)
	if d.lacksAccount(to, cp) || notAsked {
		to, p.To = connectors.Person{}, connectors.Person{}
	}
	if to.Name == "" && cp.Group == "" { // a person who is not configured or asked, or not with this account, does not see the outcome
		p.Locked, p.Request.State = true, permissions.Pending
	}
	if r.State == permissions.Pending {
		p.Hasty = cp.Group == "" && d.dir.Settings().Approvals.Unhurried && !d.AllowableAt(to.Name, time.Time{}).IsZero()
		away, enough := d.dir.Settings().Away(r, d.clock.Now())
		p.Away, p.Needed = away, !enough
		if p.Recent = d.recentOf(ctx, r, cp); p.Request.OnlyTitle {
			p.Recent.Last, p.Recent.Title, p.Recent.Prompt = nil, "", ""
		}
		p.Recent.Last = slices.Clone(p.Recent.Last)
		for i, one := range p.Recent.Last {
			p.Recent.Last[i] = d.dir.Settings().Shown(one, cp.Connector)
		}
	}
	if cp.Group != "" {
		p.To, p.Silent = d.audience(r)
		p.Group, p.Silent = d.groupNow(cp.Group), r.PromptsRefused() > 0 || p.Silent && !r.Urgent()
		return p
	}
	p.Before, p.Besides = d.otherRecipients(r, cp, copies)
	return p
}

// recentCache has what is on the cards of pending requests, by request and person: it never changes, and a card is drawn many times. It is
// safe for concurrent use.
type recentCache struct {
	mu  sync.Mutex
	all map[[2]string]permissions.RecentActivity
}

// maxRecent is how many a recentCache keeps.
const maxRecent = 1000

// recentOf returns what the caller of r did before it, and what it says of its session, as the person of a copy may see it. A store that
// cannot be read leaves out the former.
func (d *Dispatch) recentOf(ctx context.Context, r permissions.Request, cp permissions.Copy) permissions.RecentActivity {
	did := d.storedRecent(ctx, r, cp)
	if cp.Group == "" && cp.Person != "" && cp.Person == d.dir.Settings().OwnerOf(r.Caller) {
		did.Title, did.Prompt = r.SessionTitle, r.LastPrompt
	}
	return did
}

// storedRecent is what the caller of r did before it, from the store.
func (d *Dispatch) storedRecent(ctx context.Context, r permissions.Request, cp permissions.Copy) permissions.RecentActivity {
	person := cp.Person
	if cp.Group != "" {
		person = "" // others read along
	}
	c, key := &d.lately, [2]string{string(r.ID), person}
	c.mu.Lock()
	found, known := c.all[key]
	c.mu.Unlock()
	if known {
		return found
	}
	found, err := d.store.RecentActivity(ctx, r, person)
	if err != nil {
		d.log.Warn("read what an agent did before: its card goes without", "request", r.ID, "err", err)
		return permissions.RecentActivity{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) >= maxRecent {
		c.all = map[[2]string]permissions.RecentActivity{}
	}
	c.all[key] = found
	return found
}

// otherRecipients returns who was asked before a copy was due and has not answered, and who was asked since.
func (d *Dispatch) otherRecipients(
	r permissions.Request, cp permissions.Copy, copies []permissions.Copy,
) (before, besides []connectors.Asked) {
	for _, name := range r.Asked {
		is := connectors.Asked{Name: name}
		planned := d.clock.Stamp() // for people without a copy yet
		for _, c := range copies {
			if c.Person != name {
				continue
			}
			if planned = c.DueAt; is.At.IsZero() || !c.SentAt.IsZero() && c.SentAt.Before(is.At) {
				is.At = c.SentAt
			}
		}
		answered := slices.ContainsFunc(r.Votes, func(v permissions.Vote) bool { return v.By == name })
		switch {
		case name == cp.Person || answered:
		case !is.At.IsZero() && is.At.Before(cp.DueAt):
			before = append(before, is)
		case !cp.SentAt.IsZero() && planned.After(cp.SentAt) && !planned.After(d.clock.Now()):
			besides = append(besides, connectors.Asked{Name: name, At: planned})
		}
	}
	return before, besides
}

// whyBarred returns why nobody can answer what was sent to a person by a channel: the account is suspended, they are
// locked, or they have no account there any more; nil if they can.
func (d *Dispatch) whyBarred(p connectors.Person, via string) error {
	why := directory.AccountProblem(p, via)
	if door := d.dir.Pairer(via); why == nil && door != nil && p.Name != "" && p.Addresses[via] == "" {
		c, _ := d.dir.Channel(via)
		why = checkReachable(c, p)
	}
	return why
}

// lacksAccount reports whether the person of an individual copy has no account at its channel, by the configuration and pairings.
func (d *Dispatch) lacksAccount(p connectors.Person, cp permissions.Copy) bool {
	return cp.Group == "" && directory.AccountProblem(p, cp.Connector) == nil && d.whyBarred(p, cp.Connector) != nil
}

// withhold fails the individual copies at an account that is suspended by now. One that is no longer its person's is
// edited first, to say so.
func (d *Dispatch) withhold(ctx context.Context, s *directory.Settings, copies []permissions.Copy) error {
	for i, cp := range copies {
		p, _ := s.Person(cp.Person)
		why := d.whyBarred(p, cp.Connector)
		if why == nil || cp.Group != "" || cp.Failed != "" || p.Locked != "" { // a locked person's copy says so
			continue
		}
		if d.lacksAccount(p, cp) && cp.Ref != "" {
			cp.Shown = 0
			if err := d.store.MarkShown(ctx, cp, cp.Ref); err != nil {
				return err
			}
			d.Enqueue(cp.Request)
			continue
		}
		if err := d.closeCopy(ctx, &copies[i], why); err != nil {
			return err
		}
	}
	return nil
}

// closeCopy fails an individual copy that its person can no longer answer, unless they can again by then: the settings may change
// meanwhile.
func (d *Dispatch) closeCopy(ctx context.Context, cp *permissions.Copy, why error) error {
	cp.Failed = why.Error()
	err := d.store.MarkFailed(ctx, *cp)
	if p, known := d.dir.Settings().Person(cp.Person); err == nil && known && d.whyBarred(p, cp.Connector) == nil {
		cp.Failed, cp.Shown = "", 0
		err = d.store.MarkShown(ctx, *cp, cp.Ref)
		d.Enqueue(cp.Request)
	}
	return err
}

// withholds reports whether a recipient of r lacks an account, so that a copy of theirs may have to be withheld.
func (d *Dispatch) withholds(r permissions.Request) bool {
	return slices.ContainsFunc(r.Asked, func(name string) bool {
		p, _ := d.dir.Settings().Person(name)
		return slices.ContainsFunc(d.dispatchers, func(c *dispatcher) bool { return d.whyBarred(p, c.connector.Name()) != nil })
	})
}

// Button is the button data of a copy: its request's number, so that random values need no index, and its own random value.
func Button(r permissions.Request, cp permissions.Copy) string {
	return strconv.FormatInt(r.Number, numberBase) + "-" + cp.Button
}

const numberBase = 36

// CutButton splits the data of a button.
func CutButton(text string) (number int64, random string, ok bool) {
	digits, random, found := strings.Cut(text, "-")
	number, err := strconv.ParseInt(digits, numberBase, 64)
	return number, random, found && err == nil && random != ""
}
