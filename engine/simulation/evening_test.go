package simulation

import (
	"slices"
	"time"

	"github.com/daycared/daycared/permissions"
)

// prompt is how late a deadline may be kept.
const prompt = 2*time.Second + 50*time.Millisecond

// look: nothing is pending past its time, as long as the daemon runs undisturbed.
func (j *judge) look() {
	j.shelf.mu.Lock()
	defer j.shelf.mu.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.w.ready() || j.w.elapsed()-j.disturbed < prompt || j.w.weather.full || j.w.holds() {
		return
	}
	for _, r := range j.shelf.requests {
		b := j.born[r.ID]
		measured := b.life == j.w.lives && j.w.elapsed()-b.at > r.Timeout()+prompt
		if late := j.w.now().Sub(r.Deadline); r.State == permissions.Pending && (late > prompt || measured) {
			j.finds("r%d is pending %s after its deadline", r.Number, late)
		}
	}
}

// evening holds what has to have come right against the promises.
func (j *judge) evening() {
	j.shelf.mu.Lock()
	defer j.shelf.mu.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, u := range j.takes {
		j.taken(u)
	}
	for _, r := range j.tales {
		j.same(r)
	}
	for _, r := range j.shelf.requests {
		if r.State == permissions.Pending {
			j.finds("r%d is pending in the evening", r.Number)
		}
		for _, c := range j.shelf.copiesOf(r.ID) {
			j.shown(r.Request, c)
		}
	}
	for _, a := range j.w.askers {
		if !a.done {
			j.finds("%s still waits in the evening", a.name)
		}
	}
	if n := len(j.shelf.notices); n > 0 {
		j.finds("%d notices were not sent", n)
	}
	j.chain()
}

// shown: every copy shows what is, and nobody was sent two but where it could not be known whether the first was.
func (j *judge) shown(r permissions.Request, c permissions.Copy) {
	i := slices.IndexFunc(j.w.channels, func(ch *channel) bool { return ch.name == c.Connector })
	ch := j.w.channels[i]
	cards := 0
	for _, shown := range ch.cards {
		if shown.request.ID != r.ID || shown.person != c.Person {
			continue
		}
		cards++
		if shown.ref == c.Ref && c.Failed == "" && shown.request.Revision != r.Revision && !ch.gone[c.Person] {
			j.finds("r%d is at %d, and %s sees %d at %s", r.Number, r.Revision, c.Person, shown.request.Revision, c.Connector)
		}
	}
	if c.Failed == "" && c.Shown < r.Revision {
		j.finds("r%d is at %d, and its copy for %s at %s stays at %d", r.Number, r.Revision, c.Person, c.Connector, c.Shown)
	}
	sure := 1
	if !ch.named {
		sure += j.w.ambigu[cardAt{r.ID, c.Person, c.Connector}]
	}
	if cards > sure {
		j.finds("r%d was sent to %s at %s %d times, and %d would do", r.Number, c.Person, c.Connector, cards, sure)
	}
}

// chain: the audit is whole.
func (j *judge) chain() {
	last := permissions.Entry{}
	for _, e := range j.shelf.audit {
		if e.Seq != last.Seq+1 || e.Prev != last.Hash || e.Hash != e.ComputeHash() {
			j.finds("the audit is broken at entry %d", e.Seq)
		}
		last = e
	}
}
