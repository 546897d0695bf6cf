package linearizability_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// event is one call of a scenario, as seen from outside.
type event struct {
	client int
	deed   deed // without what the scenario shares
	made   call
	id     string // its request; empty if unknown: an ask without a reply
}

// history is what happened in one scenario: one question, with all requests that came of it.
type history struct {
	question *question
	switches *switches

	mu     sync.Mutex
	events []event
	first  int64           // time of the first ask
	ids    []string        // requests in replies or proposed, newest last
	met    map[string]bool // those in replies
	there  chan struct{}   // closed when the first is there
}

func newHistory(q *question, s *switches) *history {
	return &history{question: q, switches: s, first: math.MaxInt64, met: map[string]bool{}, there: make(chan struct{})}
}

// add records a call.
func (h *history) add(client int, d deed, id string, made call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d.act == ask {
		h.first = min(h.first, made.from)
		id = made.shown.ID
		if made.reply.word == refused || made.reply.word == stopped {
			return // it is about no existing request
		}
	}
	if id == "" {
		id = made.shown.ID
	}
	h.events = append(h.events, event{client, d, made, id})
	if made.reply.row.state == absent || h.met[id] {
		return
	}
	if len(h.met) == 0 {
		close(h.there)
	}
	h.met[id] = true
	if !slices.Contains(h.ids, id) {
		h.ids = append(h.ids, id)
	}
}

// known are the ids to try, newest last. A proposed id is, until there is another.
func (h *history) known() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.met) == 0 {
		return slices.Clone(h.ids)
	}
	return slices.DeleteFunc(slices.Clone(h.ids), func(id string) bool { return !h.met[id] })
}

// partitions are the histories by request id, with the events that happen by themselves.
func (h *history) partitions() map[string][]porcupine.Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	parts := map[string][]porcupine.Operation{}
	for _, id := range h.ids {
		if h.met[id] { // for any other, all replies said that it does not exist
			parts[id] = h.partition(id)
		}
	}
	return parts
}

func (h *history) partition(id string) (ops []porcupine.Operation) {
	deadline, opened, begun, over := int64(0), int64(forever), int64(forever), int64(0)
	for _, e := range h.events {
		if e.id != id {
			continue
		}
		begun = min(begun, e.made.from)
		if e.made.to != forever {
			over = max(over, e.made.to)
		}
		if e.made.reply.row.state != absent && !e.made.reply.brief { // it existed before the end of this
			opened = min(opened, e.made.to)
		}
		if e.made.shown.Deadline.IsZero() {
			continue
		}
		deadline = h.switches.clock.since(e.made.shown.Deadline)
	}
	begun = min(begun, h.first)
	shows := map[row]int{}
	add := func(client int, d deed, r reply) {
		if r.shows() {
			shows[r.row]++
		}
		d.question, d.deadline, d.shows = h.question, deadline, shows
		ops = append(ops, porcupine.Operation{ClientId: client, Input: d, Call: d.from, Output: r, Return: d.to})
	}
	next := 1000 // clients of spontaneous events, and of calls without an end
	own := func() int { next++; return next }
	add(own(), deed{act: opens, from: h.first, to: opened}, reply{word: none})
	add(own(), deed{act: expires, from: deadline - h.question.slack, to: forever}, reply{word: none})
	known := h.gather(id)
	for _, e := range h.events {
		if e.id != id && e.id != "" {
			continue
		}
		d, client := e.deed, e.client
		d.idle = known.idle(d)
		d.from, d.to = e.made.from, e.made.to
		if d.to == forever {
			client = own()
		}
		add(client, d, e.made.reply)
	}
	stops := h.switches.between(begun, over)
	for _, d := range stops {
		add(own(), d, reply{word: none})
	}
	place(ops, stops)
	return ops
}

// within is the time limit for finding an order. Orders are almost never found, or excluded, after minutes.
const within = 10 * time.Second

// check looks for an order of each request's history that the model allows. The error describes the first without one;
// undecided counts those that ran out of time.
func (h *history) check() (undecided int, err error) {
	for id, ops := range h.partitions() {
		switch porcupine.CheckOperationsTimeout(model(), ops, within) {
		case porcupine.Ok:
		case porcupine.Unknown:
			undecided++
		default:
			if porcupine.CheckOperationsTimeout(model(), bare(ops), within) == porcupine.Ok {
				return undecided, fmt.Errorf("request %s: the hints are wrong\n%s", id, tell(ops))
			}
			return undecided, &violation{id, h.question, ops}
		}
	}
	return undecided, nil
}

// violation is a history that the model does not allow.
type violation struct {
	id       string
	question *question
	ops      []porcupine.Operation
}

func (v *violation) Error() string {
	key := "without a key"
	if v.question.keyed {
		key = "with a key"
	}
	return fmt.Sprintf("request %s, asked %s, %d of %v have to allow it: what was seen of it fits no order\n%s\nas a picture: %s",
		v.id, key, v.question.quorum, v.question.asked, tell(v.ops), v.picture())
}

// picture writes the history as HTML, and returns its path.
func (v *violation) picture() string {
	_, info := porcupine.CheckOperationsVerbose(model(), v.ops, within)
	file, err := os.CreateTemp("", "linear-*.html")
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	if err := porcupine.Visualize(model(), info, file); err != nil {
		return err.Error()
	}
	return file.Name()
}

// tell is a history as text, in call order, with times of the daemon's clock from the first call on.
func tell(ops []porcupine.Operation) string {
	ops = slices.Clone(ops)
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	start := ops[0].Call
	at := func(t int64) string {
		if t == forever {
			return "…"
		}
		return fmt.Sprintf("%.3fms", float64(t-start)/1e6)
	}
	var b strings.Builder
	for _, op := range ops {
		fmt.Fprintf(&b, "%12s – %12s  client %4d  %s → %s\n", at(op.Call), at(op.Return), op.ClientId, op.Input, op.Output)
	}
	return strings.TrimRight(b.String(), "\n")
}
