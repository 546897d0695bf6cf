package linearizability_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// The model is one request as the contract describes it, written without importing anything of the daemon.

// The model's states.
const (
	absent    = ""
	pending   = "pending"
	approved  = "approved"
	denied    = "denied"
	expired   = "expired"
	cancelled = "cancelled"
)

// row is a request in a reply.
type row struct {
	state string
	by    string // who settled it; empty: nobody, or the asker
	votes string // such as "fay+ sam-", in order
	used  bool
	void  bool
}

// request is a row with hidden state.
type request struct {
	row
	progress
	holder  string // the call that has the approval; [somebody]: not known yet
	taps    string // keys of the counted votes, each between spaces
	stopped string // who stopped everything
}

// somebody has an approval that was used when it was given: the call that waited then. anybody has one that was asked
// with a key and used later.
const somebody, anybody = "?", "*"

// act is what somebody did to a request, or what happened to it.
type act string

const (
	ask    act = "asks"
	read   act = "reads"
	allow  act = "allows"
	deny   act = "denies"
	cancel act = "cancels"
	void   act = "takes it back"

	// These happen at an unknown moment within the given time.
	opens   act = "(it is opened)"
	expires act = "(its time is over)"
	halts   act = "(all is stopped)"
	ends    act = "(what waits is cancelled by that)"
	resumes act = "(all goes on)"
)

// deed is an act with all that the model needs.
type deed struct {
	act      act
	who      string // a person or, for ask, a call
	tap      string // key of the chat event with the vote; may be empty
	from, to int64  // by the daemon's clock
	question *question
	deadline int64
	hints
}

// question is what the requests of one scenario share.
type question struct {
	keyed  bool
	quorum int
	asked  []string
	slack  int64 // how far the deadline is from what its time says at most
}

// reply is what somebody was told.
type reply struct {
	word  word
	row   row  // if the reply had one
	brief bool // of the row, only what a sentence says
}

// shows reports whether the reply has the whole row, or says that there was none.
func (r reply) shows() bool { return r.word == unknown || r.row.state != absent && !r.brief }

type word string

const (
	told     word = "the row"
	noted    word = "noted" // and no more than that
	late     word = "the time is over"
	settled  word = "already settled"
	notYours word = "not yours"
	unknown  word = "unknown"
	stopped  word = "stopped"
	noUse    word = "no unused approval"
	none     word = "nothing" // is ever in a reply
	lost     word = "no reply"
	refused  word = "refused" // and no request named
)

// result is one possible result of a deed: the request after it, and the reply.
type result struct {
	after request
	reply reply
}

// fits reports whether a reply, which may say less, is that of the result.
func (c result) fits(d deed, said reply) bool {
	is := c.reply
	switch {
	case said.word == noted:
		sign := map[act]string{allow: "+", deny: "-"}[d.act]
		return (is.word == told || is.word == settled) && strings.Contains(" "+c.after.votes+" ", " "+d.who+sign+" ")
	case said.brief && !is.brief:
		same := said.row.state == is.row.state && said.row.void == is.row.void && (said.row.by == "" || said.row.by == is.row.by)
		return said.word == is.word && (same || said.row == row{})
	}
	return is == said
}

// results are all possible results of d for the request r.
func (r request) results(d deed) []result {
	switch d.act {
	case opens, expires, halts, ends, resumes:
		return r.happens(d)
	}
	switch {
	case r.state == absent && d.act == ask: // no reply to an ask with it comes before it is opened
		return nil
	case r.state == absent:
		return r.refuses(unknown)
	}
	switch d.act {
	case ask:
		return r.asked(d)
	case read: // an approval is not told while everything is stopped, which is not ordered with the rows
		if r.state == approved {
			return append(r.tells(), r.refuses(stopped)...)
		}
		return r.tells()
	case cancel:
		return r.cancelled(d)
	case void:
		return r.voided()
	}
	return r.voted(d)
}

// tells is r unchanged, with r as the reply.
func (r request) tells() []result { return []result{{r, reply{word: told, row: r.row}}} }

// refuses changes nothing, and shows nothing.
func (r request) refuses(w word) []result { return []result{{r, reply{word: w}}} }

// voted is a person's answer: one vote per person, one denial denies, a quorum allows. The call that waits may get the
// approval at that moment.
func (r request) voted(d deed) []result {
	switch {
	case !slices.Contains(d.question.asked, d.who):
		return r.refuses(notYours)
	case d.tap != "" && strings.Contains(r.taps, " "+d.tap+" "):
		return r.tells()
	case r.stopped != "":
		return []result{{r, reply{word: stopped, row: r.row}}}
	case r.state != pending:
		return []result{{r, reply{word: settled, row: r.row}}}
	}
	var can []result
	if d.to >= d.deadline-d.question.slack {
		can = append(can, result{r, reply{word: late, row: r.row}})
	}
	if d.from >= d.deadline+d.question.slack {
		return can
	}
	if d.act == allow && strings.Contains(r.votes, d.who+"+") {
		return append(can, r.tells()...)
	}
	if d.idle {
		return can
	}
	next := r
	next.taps += " " + d.tap + " "
	if d.act == deny {
		next.votes, next.state, next.by = join(r.votes, d.who+"-"), denied, d.who
		return append(can, next.tells()...)
	}
	next.votes = join(r.votes, d.who+"+")
	if strings.Count(next.votes, "+") < d.question.quorum {
		return append(can, next.tells()...)
	}
	next.state, next.by = approved, d.who
	can = append(can, next.tells()...)
	next.used, next.holder = true, somebody
	return append(can, next.tells()...)
}

func join(votes, one string) string { return strings.TrimSpace(votes + " " + one) }

// asked is a call whose reply has this request. An approval without a key belongs to one call; while everything is
// stopped none is given, except to a call that already has it.
func (r request) asked(d deed) []result {
	if r.state != approved || r.void {
		return r.tells()
	}
	next := r
	next.used, next.holder = true, d.who
	switch {
	case d.question.keyed && r.holder == somebody: // whoever stopped
		return r.tells()
	case d.question.keyed && r.stopped == "":
		next.holder = anybody
		return next.tells()
	case d.question.keyed, d.idle:
		return nil
	case r.holder == somebody, r.holder == "" && r.stopped == "":
		return next.tells()
	case r.holder == d.who && r.stopped == "":
		return r.tells()
	}
	return nil
}

// cancelled is the result of a cancel; who is empty for the asker.
func (r request) cancelled(d deed) (can []result) {
	if r.state != pending {
		brief := row{state: r.state, void: r.void} // the sentence says no more
		if r.state == approved || r.state == denied {
			brief.by = r.by
		}
		return []result{{r, reply{settled, brief, true}}}
	}
	if d.to >= d.deadline-d.question.slack {
		can = r.refuses(late)
	}
	if d.from < d.deadline+d.question.slack {
		next := r
		next.state, next.by = cancelled, d.who
		can = append(can, next.tells()...)
	}
	return can
}

func (r request) voided() []result {
	if r.state != approved || r.used || r.void {
		return r.refuses(noUse)
	}
	r.void = true
	return r.tells()
}

// happens is the result of a spontaneous event.
func (r request) happens(d deed) []result {
	switch {
	case d.act == opens && r.state == absent && r.stopped == "":
		r.state = pending
	case d.act == opens:
		return nil
	case d.act == expires && r.state == pending:
		r.state = expired
	case d.act == halts:
		r.stopped = d.who
	case d.act == resumes:
		r.stopped = ""
	case d.act == ends && r.stopped == "": // the stop comes first
		return nil
	case d.act == ends && r.state == pending && d.from >= d.deadline+d.question.slack: // it expires instead
		return nil
	case d.act == ends && r.state == pending:
		r.state, r.by = cancelled, d.who
	}
	return r.refuses(none)
}

// model adapts the above to porcupine.
func model() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{request{}} },
		Step: func(state, input, output any) (next []any) {
			was, d, said := state.(request), input.(deed), output.(reply)
			if said.word == lost {
				next = append(next, was) // it may have had no effect
			}
			for _, can := range was.results(d) {
				if said.word != lost && !can.fits(d, said) {
					continue
				}
				if after, ok := was.leads(can.after, d, said); ok {
					next = append(next, after)
				}
			}
			return next
		},
		DescribeOperation: func(input, output any) string { return input.(deed).String() + " → " + output.(reply).String() },
		DescribeState:     func(state any) string { return state.(request).String() },
	}
	return m.ToModel()
}

func (d deed) String() string {
	who := d.who
	if who == "" {
		who = "the caller"
	}
	if strings.HasPrefix(string(d.act), "(") {
		return strings.TrimSpace(string(d.act) + " " + d.who)
	}
	if d.tap != "" {
		return fmt.Sprintf("%s %s (tap %s)", who, d.act, d.tap)
	}
	return who + " " + string(d.act)
}

func (r reply) String() string {
	if r.row == (row{}) {
		return string(r.word)
	}
	return string(r.word) + ": " + r.row.String()
}

func (r row) String() string {
	text := r.state
	if r.by != "" {
		text += " by " + r.by
	}
	if r.votes != "" {
		text += " [" + r.votes + "]"
	}
	if r.used {
		text += ", used"
	}
	if r.void {
		text += ", taken back"
	}
	return text
}

func (r request) String() string {
	if r.state == absent {
		return "not there"
	}
	text := r.row.String()
	if r.holder != "" {
		text += ", by " + r.holder
	}
	if r.stopped != "" {
		text += ", all stopped"
	}
	return text
}
