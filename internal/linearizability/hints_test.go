package linearizability_test

import (
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// With dozens of concurrent calls most partial orders are dead ends, which a plain search notices only after minutes.
// The hints here cut them off at the start. They exclude nothing that the model allows and add nothing: they follow
// from the rest of the same history.

// hints are what the whole history implies about one deed.
type hints struct {
	shows map[row]int // number of replies with each row
	idle  bool        // it cannot be the one that counted as a vote, or used an approval, because another was

	// Of the few stops that a request may see, by number from 1; 0 is none.
	stop   int // which one this starts or ends
	before int // which one has not started yet when this happens
	within int // within which one this happens
	most   int // of a deed that starts or ends one: how many others have that number in before or within
	rank   int // of one that starts one: the row's rank by then
}

// stops is the number of stops with hints.
const stops = 3

// progress is the state of a partial order.
type progress struct {
	showed         int // how many replies had the row, current or earlier
	before, within [stops + 1]int
}

// rank grows with every change of a row.
func (r row) rank() int {
	switch {
	case r.state == absent:
		return 0
	case r.state == pending:
		return 1 + len(strings.Fields(r.votes))
	case r.used || r.void:
		return 1000
	}
	return 999
}

// leads reports whether an order may continue with d, which changes r to to. The row may change only after all replies
// with it and with earlier ones, since no row comes back.
func (r request) leads(to request, d deed, said reply) (request, bool) {
	if d.shows == nil {
		return to, true
	}
	if to.row != r.row {
		before := 0
		for other, n := range d.shows {
			switch {
			case other.rank() < to.rank():
				before += n
			case other.rank() == to.rank() && other != to.row: // some reply had it never
				return to, false
			}
		}
		if r.showed != before {
			return to, false
		}
	}
	switch {
	case d.stop == 0:
	case d.act == halts && (r.before[d.stop] != d.most || r.rank() < d.rank), d.act == resumes && r.within[d.stop] != d.most:
		return to, false
	}
	if said.shows() {
		to.showed++
	}
	to.before[d.before]++
	to.within[d.within]++
	return to, true
}

// place derives what happened before and within each stop: a reply with an end, or with what only a vote or a use
// causes, before the resume, came before the stop.
func place(ops []porcupine.Operation, episodes []deed) {
	deeds := make([]deed, len(ops))
	for i, op := range ops {
		deeds[i] = op.Input.(deed)
	}
	most := map[int][2]int{}
	ranks := map[int]int{}
	for n := 1; n <= stops; n++ {
		from, again := int64(forever), int64(forever)
		for _, d := range episodes {
			switch {
			case d.stop == n && d.act == halts:
				from = d.from
			case d.stop == n && d.act == resumes:
				again = d.from
			}
		}
		for i, op := range ops {
			d, said := &deeds[i], op.Output.(reply)
			if op.Return < from || op.Return > again {
				continue
			}
			if said.word == settled && !said.brief || said.word == late && said.row.state != absent || d.act == opens {
				d.before = n
				most[n] = [2]int{most[n][0] + 1, most[n][1]}
			}
			if s := said.row; said.shows() && !s.void && (s.state == approved || s.state == denied || s.state == pending) {
				ranks[n] = max(ranks[n], s.rank())
			}
		}
	}
	if len(episodes) <= 3 { // with one stop, it is that one
		for i, op := range ops {
			if op.Output.(reply).word == stopped {
				deeds[i].within = 1
				most[1] = [2]int{most[1][0], most[1][1] + 1}
			}
		}
	}
	for i := range ops {
		d := &deeds[i]
		switch {
		case d.stop > stops:
			d.stop = 0
		case d.act == halts:
			d.most, d.rank = most[d.stop][0], ranks[d.stop]
		case d.act == resumes:
			d.most = most[d.stop][1]
		}
		ops[i].Input = *d
	}
}

// bare is a history without hints.
func bare(ops []porcupine.Operation) []porcupine.Operation {
	ops = slices.Clone(ops)
	for i := range ops {
		d := ops[i].Input.(deed)
		d.hints = hints{}
		ops[i].Input = d
	}
	return ops
}

// counted is which taps counted as whose vote and which did not, and which call has the approval.
type counted struct {
	taps, not map[string]bool
	votes     map[string]bool // by person and act: the tap that counted is known
	calls     map[string]bool
}

func (h *history) gather(id string) counted {
	c := counted{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, e := range h.events {
		if e.id != id {
			continue
		}
		switch r, d := e.made.reply, e.deed; {
		case d.act == ask && r.row.used:
			c.calls[d.who] = true
		case d.act != allow && d.act != deny:
		case r.word == settled: // not stored then, and nothing later is
			c.not[d.tap] = true
		case r.word == told && r.row.state != pending: // it settled it, or was stored before
			c.taps[d.tap] = true
			c.votes[d.who+string(d.act)] = true
		}
	}
	return c
}

func (c counted) idle(d deed) bool {
	switch d.act {
	case ask:
		return len(c.calls) > 0 && !c.calls[d.who]
	case allow, deny:
		return c.not[d.tap] || c.votes[d.who+string(d.act)] && !c.taps[d.tap]
	}
	return false
}
