package simulation

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/daycared/daycared/permissions"
)

// judge holds a day against what is promised. It knows what people and programs did, and sees every commit; it does not
// ask [permissions.Step] what that should come to.
type judge struct {
	w         *world
	shelf     *shelf
	disturbed time.Duration // when something last went wrong, by the clock that cannot be set

	mu       sync.Mutex
	before   rows // of the last commit
	found    []string
	presses  map[string]*update // by key
	saw      map[string]bool    // keys of what was pressed by somebody who had the card before them
	takes    []*update          // decisions that were acknowledged
	tales    []permissions.Request
	handed   map[permissions.ID]map[string]bool
	begun    map[permissions.ID]birth // when opening it began
	born     map[permissions.ID]birth
	given    map[permissions.ID]birth // grants
	withdraw map[permissions.ID]bool
	latest   time.Time       // the latest that the wall's clock was before it was set back
	jumps    []time.Duration // when the clock on the wall was set, by the other
}

// birth is when something began.
type birth struct {
	life, jumps int
	at          time.Duration
}

func newJudge(w *world, s *shelf) *judge {
	j := &judge{
		w: w, shelf: s, presses: map[string]*update{}, saw: map[string]bool{}, handed: map[permissions.ID]map[string]bool{},
		begun: map[permissions.ID]birth{}, born: map[permissions.ID]birth{}, given: map[permissions.ID]birth{},
		withdraw: map[permissions.ID]bool{},
	}
	s.after = j.committed
	return j
}

func (j *judge) finds(format string, args ...any) {
	finding := fmt.Sprintf(format, args...)
	j.found = append(j.found, finding)
	j.w.say("AGAINST THE PROMISES: %s", finding)
}

// birth is now. A clock that was set a moment ago may have been set after what begins was measured.
func (j *judge) birth() birth {
	now := j.w.elapsed()
	jumps := 0
	for _, at := range j.jumps {
		if at < now-slack {
			jumps++
		}
	}
	return birth{j.w.lives, jumps, now}
}

// pressed notes what somebody did.
func (j *judge) pressed(u *update) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.presses[u.decision.Key] = u
	for _, c := range j.w.channels {
		for _, shown := range c.cards {
			if shown.request.ID == u.request && shown.person == u.person {
				j.saw[u.decision.Key] = true
			}
		}
	}
}

// cancelled notes that a program takes its question back.
func (j *judge) cancelled(id permissions.ID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.withdraw[id] = true
}

// set notes that the clock is about to be set.
func (j *judge) set(by time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.jumps = append(j.jumps, j.w.elapsed())
	if now := j.w.now(); by < 0 && now.After(j.latest) {
		j.latest = now
	}
}

// committed sees every commit.
func (j *judge) committed(was, is *rows) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.before = *was
	told := is.audit[len(was.audit):]
	for i := range is.requests {
		r := is.requests[i].Request
		if i >= len(was.requests) {
			j.opened(r, is, told)
			continue
		}
		if old := was.requests[i].Request; old.Revision != r.Revision || old.State != r.State || len(old.Votes) != len(r.Votes) ||
			!old.UsedAt.Equal(r.UsedAt) || old.Answer != r.Answer {
			j.changed(old, r, is, told)
		}
	}
	for _, g := range is.grants[len(was.grants):] {
		j.given[g.ID] = j.birth()
	}
	j.oneVote(is)
}

// plan is who asked a request.
func (j *judge) plan(r permissions.Request) *asker {
	for _, a := range j.w.askers {
		if topic(a.question) == topic(r) {
			return a
		}
	}
	return &asker{quorum: 1000}
}

// asked notes that a request is about to be opened: its time runs from here, however long the disk takes.
func (j *judge) asked(id permissions.ID) {
	j.shelf.mu.Lock()
	defer j.shelf.mu.Unlock()
	if _, before := j.begun[id]; !before {
		j.begun[id] = j.birth()
	}
}

func (j *judge) opened(r permissions.Request, is *rows, told []permissions.Entry) {
	j.born[r.ID] = j.birth()
	j.audited(r, told, permissions.RequestCreated)
	if is.stopped != "" {
		j.finds("r%d was asked while everything was stopped", r.Number)
	}
	switch {
	case r.State == permissions.Approved && r.DecidedVia == permissions.ViaGrant && len(r.Grants) > 0:
		j.audited(r, told, permissions.RequestSettled)
	case r.State != permissions.Pending:
		j.finds("r%d was %s as it was asked, under nothing", r.Number, r.State)
	}
	for _, id := range r.Grants {
		i := slices.IndexFunc(is.grants, func(g grant) bool { return g.ID == id })
		if i < 0 || is.grants[i].Caller != r.Caller.Name || !is.grants[i].RevokedAt.IsZero() || is.grants[i].ended {
			j.finds("r%d rests on a grant that is not in force", r.Number)
			continue
		}
		began := j.given[id]
		lasts := span * time.Duration(1+j.w.lives-began.life) // a clock that is set while nobody looks prolongs it once
		if passed := j.w.elapsed() - began.at; passed > lasts+slack {
			j.finds("r%d rests on a grant of %s that was given %s ago", r.Number, span, passed)
		}
	}
}

// slack is for how long a commit may have been held back after what it rests on was looked at.
const slack = 12 * time.Second

func (j *judge) changed(old, r permissions.Request, is *rows, told []permissions.Entry) {
	if old.State != permissions.Pending {
		j.over(old, r)
	}
	for _, v := range r.Votes[min(len(old.Votes), len(r.Votes)):] {
		j.voted(r, v, told)
	}
	if old.State == permissions.Pending && r.State != permissions.Pending {
		j.audited(r, told, permissions.RequestSettled)
		j.settled(old, r, is)
	}
	if old.UsedAt.IsZero() && !r.UsedAt.IsZero() {
		j.audited(r, told, permissions.RequestUsed)
	}
	if old.VoidAt.IsZero() && !r.VoidAt.IsZero() {
		j.audited(r, told, permissions.RequestVoided)
	}
	if old.LapsedAt.IsZero() && !r.LapsedAt.IsZero() {
		j.audited(r, told, permissions.RequestLapsed)
	}
	if len(old.Asked) < len(r.Asked) {
		j.audited(r, told, permissions.RequestEscalated)
	}
	if !old.Deadline.Equal(r.Deadline) {
		j.audited(r, told, permissions.RequestExtended)
	}
}

func (j *judge) audited(r permissions.Request, told []permissions.Entry, what permissions.Type) {
	if !slices.ContainsFunc(told, func(e permissions.Entry) bool { return e.Request == r.ID && e.Type == what }) {
		j.finds("r%d changed, and no %s of the same commit tells it", r.Number, what)
	}
}

// over: what is settled stays as it is.
func (j *judge) over(old, r permissions.Request) {
	if old.State != r.State || old.Answer != r.Answer || old.Scope != r.Scope || old.DecidedBy != r.DecidedBy ||
		old.DecidedVia != r.DecidedVia || !old.DecidedAt.Equal(r.DecidedAt) || old.Comment != r.Comment || len(old.Votes) != len(r.Votes) {
		j.finds("r%d was %s %s, and became %s %s", r.Number, old.State, old.Answer, r.State, r.Answer)
	}
	if !old.UsedAt.IsZero() && (!old.UsedAt.Equal(r.UsedAt) || old.UsedCall != r.UsedCall) {
		j.finds("r%d was used twice", r.Number)
	}
}

// voted: a vote is what somebody pressed who may decide and had the card before them.
func (j *judge) voted(r permissions.Request, v permissions.Vote, told []permissions.Entry) {
	u := j.presses[v.Key]
	switch {
	case u == nil || u.request != r.ID || u.person != v.By || u.decision.Answer != v.Answer:
		j.finds("r%d has a vote by %s that nobody cast", r.Number, v.By)
	case !slices.Contains(j.plan(r).may, v.By):
		j.finds("r%d has a vote by %s, who may not decide it", r.Number, v.By)
	case !j.saw[v.Key] && u.decision.Button != "": // a code may be passed on by word of mouth
		j.finds("r%d has a vote by %s, who was not shown it", r.Number, v.By)
	}
	if r.State == permissions.Pending {
		j.audited(r, told, permissions.RequestVoted)
	}
}

func (j *judge) settled(old, r permissions.Request, is *rows) {
	allowing, denying := map[string]bool{}, false
	for _, v := range r.Votes {
		if v.Answer == permissions.Deny {
			denying = true
		} else if _, allows := v.Answer.Scope(); allows {
			allowing[v.By] = true
		}
	}
	over := j.isOver(old)
	if late := min(j.w.now().Sub(old.Deadline), j.w.elapsed()-j.disturbed); late > prompt && !j.w.weather.full && !j.w.holds() &&
		r.DecidedVia == permissions.ViaTimeout {
		j.finds("r%d was settled %s after its time", r.Number, late)
	}
	switch {
	case r.State == permissions.Approved && (denying || len(allowing) < j.plan(r).quorum):
		j.finds("r%d was approved by %d of %d, denied by somebody: %v", r.Number, len(allowing), j.plan(r).quorum, denying)
	case r.State == permissions.Approved && is.stopped != "":
		j.finds("r%d was approved while everything was stopped", r.Number)
	case r.State == permissions.Approved && !r.DecidedAt.Before(old.Deadline):
		j.finds("r%d was approved after its deadline", r.Number)
	case r.State == permissions.Denied && !denying:
		j.finds("r%d was denied by nobody", r.Number)
	case (r.State == permissions.Expired || r.TimedOut) && !over:
		j.finds("r%d was over before its time", r.Number)
	case r.State == permissions.Answered && !r.TimedOut && len(r.Votes) == 0:
		j.finds("r%d was answered by nobody", r.Number)
	case r.State == permissions.Undeliverable && r.Failure == "":
		j.finds("r%d was undeliverable for no reason", r.Number)
	case r.State == permissions.Cancelled && !j.withdraw[r.ID] && is.stopped == "":
		j.finds("r%d was cancelled by nobody", r.Number)
	}
}

// isOver reports whether, by either clock, the time of a request can have been over.
func (j *judge) isOver(r permissions.Request) bool {
	b, known := j.begun[r.ID]
	if !known { // one of our own agents asked
		b = j.born[r.ID]
	}
	jumped := len(j.jumps) > b.jumps
	if jumped && (j.w.lives > b.life || j.latest.After(r.Deadline)) {
		return true // by the clock as it was, when the daemon started
	}
	return !j.w.now().Before(r.Deadline) || j.w.elapsed()-b.at >= r.Timeout()-slack && jumped
}

// oneVote: however often an update came, it counts once.
func (j *judge) oneVote(is *rows) {
	seen := map[string]bool{}
	for _, r := range is.requests {
		for _, v := range r.Votes {
			if seen[v.Key] {
				j.finds("r%d counts %s twice", r.Number, v.Key)
			}
			seen[v.Key] = true
		}
	}
}

// acknowledged notes that a channel was told that a decision is stored.
func (j *judge) acknowledged(u *update, _ permissions.Request) {
	j.shelf.mu.Lock()
	defer j.shelf.mu.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.takes = append(j.takes, u)
	j.taken(u)
}

// taken: what was acknowledged is in the row. The lock of the shelf is held.
func (j *judge) taken(u *update) {
	r, err := j.shelf.find(u.request)
	if err != nil || !slices.ContainsFunc(r.Votes, func(v permissions.Vote) bool {
		return v.By == u.person && v.Answer == u.decision.Answer
	}) {
		j.finds("%s was acknowledged, and is in no row", u.decision.Key)
		return
	}
	if u.decision.Answer == permissions.Deny && r.State != permissions.Denied {
		j.finds("r%d was denied, and is %s", r.Number, r.State)
	}
}

// told notes what a program learnt, which is what was committed.
func (j *judge) told(a *asker, r permissions.Request) {
	j.shelf.mu.Lock()
	defer j.shelf.mu.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tales = append(j.tales, r)
	j.same(r)
	if r.State != permissions.Approved || r.Scope != permissions.Once || r.Key != "" || r.DecidedVia == permissions.ViaGrant ||
		!r.VoidAt.IsZero() {
		return
	}
	if j.handed[r.ID] == nil {
		j.handed[r.ID] = map[string]bool{}
	}
	if j.handed[r.ID][a.name] = true; len(j.handed[r.ID]) > 1 {
		j.finds("r%d was approved once, and went to %d calls", r.Number, len(j.handed[r.ID]))
	}
}

func (j *judge) same(r permissions.Request) {
	row, err := j.shelf.find(r.ID)
	if err != nil || row.State != r.State || row.Answer != r.Answer || row.DecidedBy != r.DecidedBy || r.State == permissions.Pending {
		j.finds("somebody was told that r%d is %s %s, which it is not", r.Number, r.State, r.Answer)
	}
}
