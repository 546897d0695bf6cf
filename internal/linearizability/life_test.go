package linearizability_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/connectors/whatsapp/whatsapptest"
	"github.com/daycared/daycared/permissions"
)

// life is one question, whose clients reach any of the daemons, each time another one.
type life struct {
	*three
	*history

	name    string
	place   int
	timeout string
	phones  bool          // the answers come from phones alone
	codes   sync.Map      // of requests, from code to id
	answers []onPhone     // with the lock of three
	left    chan struct{} // closed when nobody asks any more
}

// dice are the random choices of one client.
type dice struct{ *rand.Rand }

func (d dice) chance(n int) bool { return d.IntN(n) == 0 }

func (d dice) between(least, most time.Duration) time.Duration {
	return least + time.Duration(d.Int64N(int64(most-least)))
}

// live runs one life to its end, and checks it.
func (s *three) live(ctx context.Context, name string, place int, seed uint64) error {
	roll := func(n int) dice { return dice{rand.New(rand.NewPCG(seed, uint64(n)))} }
	d := roll(0)
	quorum := 1 + d.IntN(3)
	q := &question{keyed: d.chance(3), quorum: quorum, asked: askedAt(place, quorum), slack: int64(time.Second)}
	l := &life{
		three: s, history: newHistory(q, &switches{clock: s.clock}), name: name, place: place, timeout: "30m",
		phones: quorum < 3 && d.chance(3), left: make(chan struct{}),
	}
	if !l.phones && d.chance(4) {
		l.timeout = d.between(2*time.Second, 6*time.Second).Truncate(time.Millisecond).String()
	}
	proposed := string(permissions.NewID(time.Now()))
	l.ids = []string{proposed}
	ctx, done := context.WithTimeout(ctx, patient)
	defer done()
	var callers, others sync.WaitGroup
	for n := range 1 + d.IntN(3) {
		callers.Go(func() { l.asks(ctx, n, roll(10+n), proposed) })
	}
	meanwhile, over := context.WithCancel(ctx)
	defer over()
	for i, who := range q.asked[1:] {
		others.Go(func() { l.taps(meanwhile, 20+i, who, roll(20+i)) })
		others.Go(func() { l.writes(meanwhile, 25+i, who, roll(25+i)) })
	}
	others.Go(func() { l.reads(meanwhile, 30, roll(30)) })
	if !l.phones {
		for n := range 1 + d.IntN(2) {
			others.Go(func() { l.decides(meanwhile, 40+n, roll(40+n)) })
		}
	}
	callers.Wait()
	close(l.left)
	over()
	others.Wait()
	l.finish(ctx, 50, roll(50))
	if ctx.Err() != nil && s.ctx.Err() == nil {
		return fmt.Errorf("%s is not answered in %s\n%s", name, patient, l.tell())
	}
	undecided, err := l.check()
	s.tally.requests.Add(int64(len(l.met)))
	s.tally.undecided.Add(int64(undecided))
	return err
}

// tell is what was seen of all its requests.
func (l *life) tell() (text string) {
	for id, ops := range l.partitions() {
		text += id + ":\n" + tell(ops) + "\n"
	}
	return text
}

// pause lets a client do nothing for a moment; it is false when there is nothing more to do.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// allWords is every reply that there is.
var allWords = []word{told, late, settled, notYours, unknown, stopped, noUse, lost, refused}

// do makes a call at one of the daemons, and records it.
func (l *life) do(ctx context.Context, n int, dice dice, as func(*process) *caller, d deed, id, method, path string,
	header map[string]string, body any,
) call {
	patience := 4 * time.Second
	if dice.chance(20) {
		patience = dice.between(100*time.Microsecond, 20*time.Millisecond)
	}
	made := as(l.all[dice.IntN(len(l.all))]).do(context.WithoutCancel(ctx), method, path, header, body, patience)
	switch {
	case made.unsent:
	case !slices.Contains(allWords, made.reply.word):
		l.violated("%s of %s: %s", d, l.name, made.reply)
	default:
		l.add(n, d, id, made)
		l.tally.count(d, made)
	}
	if code := made.shown.Code; code != "" {
		l.codes.Store(code, made.shown.ID)
	}
	return made
}

func agents(p *process) *caller { return p.agents }
func fay(p *process) *caller    { return p.fay }

// backoff is how long a client waits after so many calls without a reply.
func backoff(lost int) time.Duration { return min(20*time.Millisecond<<min(lost, 6), time.Second) }

// asks is an agent, which asks until it has an answer.
func (l *life) asks(ctx context.Context, n int, dice dice, proposed string) {
	waits := []string{"0s", "20ms", "200ms", "1s", "2s"}
	header := map[string]string{"Daycared-Call": fmt.Sprintf("%s-%d", l.name, n)}
	if n == 0 {
		header["Daycared-Request"] = proposed
	}
	d := deed{act: ask, who: fmt.Sprintf("call %d", n)}
	for lostOnes := 0; ctx.Err() == nil; {
		body := map[string]any{
			"kind": permissions.KindPermission, "session": "s", "reason": l.name, "timeout": l.timeout,
			"wait":        waits[dice.IntN(len(waits))],
			"permissions": []string{fmt.Sprintf("@read:/%d-%d/%s", l.question.quorum, l.place, l.name)},
		}
		if l.question.keyed {
			body["key"] = l.name
		}
		made := l.do(ctx, n, dice, agents, d, "", "POST", "/v1/requests", header, body)
		switch {
		case made.reply.word == lost:
			lostOnes++
			pause(ctx, backoff(lostOnes))
		case made.reply.word == told && made.reply.row.state == pending:
			header["Daycared-Request"], lostOnes = made.shown.ID, 0
			pause(ctx, look)
		default:
			return
		}
	}
}

// pick is one of the requests that were met, except some; empty: there is none. Several may be there at once, because a call that was
// slow opens one after another was settled.
func (l *life) pick(dice dice, except map[string]bool) string {
	ids := slices.DeleteFunc(l.known(), func(id string) bool { return except[id] })
	if len(ids) == 0 {
		return ""
	}
	return ids[dice.IntN(len(ids))]
}

// decides is fay, who answers at the daemons' sockets.
func (l *life) decides(ctx context.Context, n int, dice dice) {
	settledOnes := map[string]bool{}
	for tap, lostOnes := 0, 0; pause(ctx, dice.between(look, 400*time.Millisecond)); tap++ {
		id := l.pick(dice, settledOnes)
		if id == "" {
			continue
		}
		made := l.decide(ctx, n, dice, tap, id)
		switch {
		case made.reply.word == lost:
			lostOnes++
			pause(ctx, backoff(lostOnes))
		case made.reply.word == settled, made.reply.word == told && made.reply.row.state != pending:
			settledOnes[id] = true
		}
	}
}

func (l *life) decide(ctx context.Context, n int, dice dice, tap int, id string) call {
	d, answer := deed{act: allow, who: "fay", tap: fmt.Sprintf("%d-%d", n, tap)}, "allow_once"
	if dice.chance(4) {
		d.act, answer = deny, "deny"
	}
	return l.do(ctx, n, dice, fay, d, id, "POST", "/v1/requests/"+id+"/decision", nil, map[string]any{"answer": answer, "really": true})
}

// reads looks at requests, and now and then cancels one or takes back what was allowed.
func (l *life) reads(ctx context.Context, n int, dice dice) {
	for pause(ctx, dice.between(look, 300*time.Millisecond)) {
		id := l.pick(dice, nil)
		path := "/v1/requests/" + id
		switch dice.IntN(16) {
		case 0:
			l.do(ctx, n, dice, agents, deed{act: cancel}, id, "POST", path+"/cancel", nil, struct{}{})
		case 1:
			l.do(ctx, n, dice, fay, deed{act: cancel, who: "fay"}, id, "POST", path+"/cancel", nil, struct{}{})
		case 2, 3, 4:
			l.do(ctx, n, dice, fay, deed{act: void, who: "fay"}, id, "POST", path+"/void", nil, struct{}{})
		case 5, 6, 7, 8:
			l.do(ctx, n, dice, fay, deed{act: read, who: "fay"}, id, "GET", path, nil, nil)
		default:
			l.do(ctx, n, dice, agents, deed{act: read}, id, "GET", path+"?wait=2ms", nil, nil)
		}
	}
}

// taps is a person who answers on a phone.
func (l *life) taps(ctx context.Context, n int, who string, dice dice) {
	phone, pressed := l.three.phones[who], map[int]bool{}
	for tap := 0; ctx.Err() == nil; tap++ {
		m, err := phone.Sees(ctx, func(m telegramtest.Message) bool {
			return m.FromBot && !pressed[m.ID] && strings.Contains(m.Text, l.name) && buttonOf(m, "Allow once") != ""
		})
		if err != nil {
			return
		}
		l.three.mu.Lock()
		l.cards++
		l.three.mu.Unlock()
		pressed[m.ID] = true
		d, button := deed{act: allow, who: who, tap: fmt.Sprintf("%s-%d", who, tap)}, "Allow once"
		if dice.chance(4) {
			d.act, button = deny, "Deny"
		}
		made := call{from: l.clock.read(), to: forever, reply: reply{word: lost}}
		toast, err := phone.TapsData(m.ID, buttonOf(m, button)).Toast(ctx)
		if err == nil {
			made.reply = toasted(d, toast.Text)
		}
		if made.reply.word != lost { // what could not be stored is stored later
			made.to = l.clock.read()
		}
		l.three.mu.Lock()
		l.answers = append(l.answers, onPhone{n, d, m.Text, made})
		l.three.mu.Unlock()
	}
}

// writes is a person who answers on WhatsApp, if they have it. What became of that is seen elsewhere.
func (l *life) writes(ctx context.Context, n int, who string, dice dice) {
	mobile, answered := l.mobiles[who], map[string]bool{}
	for tap := 0; ctx.Err() == nil && mobile != nil; tap++ {
		m, err := mobile.Gets(ctx, func(m whatsapptest.Message) bool {
			return !answered[m.ID] && strings.Contains(m.Text, l.name) && codeOnMobile.MatchString(m.Text)
		})
		if err != nil {
			return
		}
		answered[m.ID] = true
		d, word, thumb := deed{act: allow, who: who, tap: fmt.Sprintf("%s-mobile-%d", who, tap)}, "yes", "👍"
		if dice.chance(4) {
			d.act, word, thumb = deny, "no", "👎"
		}
		made := call{from: l.clock.read(), to: forever, reply: reply{word: lost}}
		switch dice.IntN(3) {
		case 0:
			mobile.Says(word + " " + codeOnMobile.FindStringSubmatch(m.Text)[1])
		case 1:
			mobile.Quotes(m.ID, word)
		case 2:
			mobile.Reacts(m.ID, thumb)
		}
		l.three.mu.Lock()
		l.cards++
		l.answers = append(l.answers, onPhone{n, d, m.Text, made})
		l.three.mu.Unlock()
	}
}

// onPhone is an answer that was given on a phone.
type onPhone struct {
	client int
	deed   deed
	text   string // of the card
	made   call
}

// placeAnswers records the answers on phones, each to the request whose code is on the card. One that nobody has met has none.
func (l *life) placeAnswers() {
	for _, a := range l.answers {
		l.codes.Range(func(code, id any) bool {
			if !strings.Contains(a.text, code.(string)) {
				return true
			}
			l.add(a.client, a.deed, id.(string), a.made)
			l.tally.count(a.deed, a.made)
			return false
		})
	}
}

// toasted is what an answer to a tap says.
func toasted(d deed, text string) reply {
	switch end := ended.FindStringSubmatch(text); {
	case strings.HasPrefix(text, "Too late: the time is over."):
		return reply{word: late, brief: true}
	case end != nil:
		return reply{word: settled, row: row{state: end[1], by: end[2], void: end[3] != ""}, brief: true}
	case strings.HasPrefix(text, "✅") && d.act == allow, strings.HasPrefix(text, "⛔") && d.act == deny:
		return reply{word: noted}
	}
	return reply{word: lost} // it says nothing about this answer
}

// finish settles what is still pending, and reads every request at every daemon.
func (l *life) finish(ctx context.Context, n int, dice dice) {
	for _, id := range l.known() {
		for tap := 0; ctx.Err() == nil; tap++ {
			made := l.decide(ctx, n, dice, tap, id)
			if made.reply.word != lost && (made.reply.word != told || made.reply.row.state != pending) && made.reply.word != late {
				break
			}
			pause(ctx, backoff(tap))
		}
		for _, p := range l.all {
			for tap := 0; ctx.Err() == nil; tap++ {
				here := func(*process) *caller { return p.fay }
				made := l.do(ctx, n, dice, here, deed{act: read, who: "fay"}, id, "GET", "/v1/requests/"+id, nil, nil)
				if made.reply.word != lost {
					break
				}
				pause(ctx, backoff(tap))
			}
		}
	}
	l.placeAnswers()
}
