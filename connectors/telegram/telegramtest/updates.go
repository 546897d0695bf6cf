package telegramtest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// How long the Bot API keeps what nobody fetches, from when it happened.
const (
	messageLife  = 24 * time.Hour
	callbackLife = 150 * time.Second
)

// updates are what happened and was not confirmed yet.
type updates struct {
	waiting []*update // in order
	echoes  []*update // confirmed, and to be delivered nevertheless
	tail    int       // the next id
	allowed map[string]bool
	webhook string

	times   int // how often each new update is delivered at most
	shuffle bool
	rand    *rand.Rand

	poll         *poll // that hangs
	lastOffset   int64
	lastPoll     time.Time
	nextConflict time.Time // before it, a conflict is told late
}

type update struct {
	id      int
	text    json.RawMessage
	expires time.Time
	times   int // to be delivered still, if they are made to come several times
}

// kinds are all kinds of updates that this server makes; those that are sent only when asked for are false.
var kinds = map[string]bool{
	"message": true, "edited_message": true, "channel_post": true, "edited_channel_post": true,
	"callback_query": true, "my_chat_member": true, "message_reaction": false,
}

func newUpdates() updates {
	u := updates{tail: 700_000_001, lastOffset: -1, rand: rand.New(rand.NewPCG(1, 2))}
	u.allow(nil)
	return u
}

// allow sets which kinds of updates are kept from now on; none means all that need not be asked for.
func (u *updates) allow(names []string) {
	u.allowed = map[string]bool{}
	for kind, always := range kinds {
		u.allowed[kind] = always && len(names) == 0 || slices.Contains(names, kind)
	}
}

// Redeliver makes every update that comes from now on be delivered between once and times times: again within an
// answer, and again after it was confirmed, as a server may after a crash. shuffle mixes each answer. The choice follows
// from the seed. Redeliver(1, false, 0) ends it.
func (s *Server) Redeliver(times int, shuffle bool, seed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.times, s.queue.shuffle, s.queue.rand = times, shuffle, rand.New(rand.NewPCG(seed, 1))
}

// Webhook sets a webhook as another program might have; getUpdates is refused until it is deleted. Nothing is ever sent
// to it.
func (s *Server) Webhook(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.webhook = url
	s.terminate("Conflict: terminated by setWebhook request")
	s.change()
}

// Pending is how many updates wait to be confirmed.
func (s *Server) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.expire(s.now())
	return len(s.queue.waiting) + len(s.queue.echoes)
}

// Drained returns once every update was confirmed and none is to come again, or with the error of ctx.
func (s *Server) Drained(ctx context.Context) error {
	return s.wait(ctx, time.Time{}, func() bool {
		s.queue.expire(s.now())
		return len(s.queue.waiting)+len(s.queue.echoes) == 0
	})
}

// emit makes an update, unless the bot did not ask for its kind. The lock is held.
func (s *Server) emit(kind string, life time.Duration, body any) {
	u := &s.queue
	if !u.allowed[kind] {
		return
	}
	text, err := json.Marshal(object{"update_id": u.tail, kind: body})
	if err != nil {
		panic(fmt.Sprintf("an update is no JSON: %v", err))
	}
	if err := s.schema.event(text); err != nil {
		s.violate(kind+" update", err.Error())
	}
	made := &update{id: u.tail, text: text, expires: s.now().Add(life)}
	if u.times > 1 {
		made.times = 1 + u.rand.IntN(u.times)
	}
	u.tail++
	u.waiting = append(u.waiting, made)
	s.change()
}

// expire drops what is too old.
func (u *updates) expire(now time.Time) {
	old := func(up *update) bool { return !now.Before(up.expires) }
	u.waiting = slices.DeleteFunc(u.waiting, old)
	u.echoes = slices.DeleteFunc(u.echoes, old)
}

// confirm forgets all below offset. A negative one counts from the end, one from the future is taken for none.
func (u *updates) confirm(offset int64) {
	from := int(offset)
	switch {
	case offset < 0:
		from = u.tail + int(offset)
	case from > u.tail+10:
		return
	}
	for _, up := range u.waiting {
		if up.id < from && up.times > 0 {
			u.echoes = append(u.echoes, up)
		}
	}
	u.waiting = slices.DeleteFunc(u.waiting, func(up *update) bool { return up.id < from })
}

// batch is what an answer holds: what waits, and with Redeliver also what was there before.
func (u *updates) batch(limit int) []json.RawMessage {
	var found []*update
	for _, up := range slices.Concat(u.echoes, u.waiting) {
		twice := up.times > 1 && u.rand.IntN(2) == 0
		for range 1 + b2i(twice) {
			if len(found) < limit {
				found = append(found, up)
				up.times--
			}
		}
	}
	u.echoes = slices.DeleteFunc(u.echoes, func(up *update) bool { return up.times <= 0 })
	if u.shuffle {
		u.rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	}
	texts := []json.RawMessage{}
	for _, up := range found {
		texts = append(texts, up.text)
	}
	return texts
}

func b2i(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
