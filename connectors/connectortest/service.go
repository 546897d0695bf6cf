package connectortest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Line is how badly messages travel between a connector and its service. The zero value is a perfect one.
type Line struct {
	Slow     time.Duration // each call takes up to that much longer
	Lost     float64       // share of calls that fail; half of these have happened all the same
	Repeated float64       // share of updates that are delivered again after they were confirmed
	Mixed    bool          // updates that wait together come in any order
}

// ErrLost is the error of a call that got lost on the way, or whose answer did.
var ErrLost = errors.New("the connection was lost")

// Posted is one message in a chat with the bot.
type Posted struct {
	ID      string
	From    string // an address; empty: the bot
	Text    string
	ReplyTo string   // the ID of another message; empty: none
	Before  []string // what it said before it was edited
}

// Update is a message from a person that the bot has not confirmed.
type Update struct {
	Number int64 // from 1
	Posted
}

// Service is a chat service without a wire format: people have chats with one bot, which sends, edits, and polls for
// updates. A channel's own fake translates its wire format into these calls. It is safe for concurrent use.
type Service struct {
	mu      sync.Mutex
	line    Line
	random  *rand.Rand
	chats   map[string][]Posted // by address
	updates []Update            // all that there ever were
	until   int64               // the last that was confirmed
	done    map[int64]bool      // that were confirmed, and do not come again
	last    int
	changed chan struct{}
}

// NewService makes a service with a perfect line. What is lost later follows from the seed and the order of calls.
func NewService(seed uint64) *Service {
	return &Service{
		random: rand.New(rand.NewPCG(seed, 0)), chats: map[string][]Posted{}, done: map[int64]bool{}, changed: make(chan struct{}),
	}
}

// Set replaces the line.
func (s *Service) Set(l Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line = l
}

// Call does something over the line. After [ErrLost] it may have happened or not.
func (s *Service) Call(do func()) error {
	s.mu.Lock()
	slow, before, after := time.Duration(0), false, false
	if s.line.Slow > 0 {
		slow = time.Duration(s.random.Int64N(int64(s.line.Slow)))
	}
	if s.random.Float64() < s.line.Lost {
		before = s.random.IntN(2) == 0
		after = !before
	}
	s.mu.Unlock()
	if slow > 0 {
		<-time.After(slow)
	}
	if before {
		return ErrLost
	}
	do()
	if after {
		return ErrLost
	}
	return nil
}

// Send posts a message of the bot's, and returns its ID, which is chosen if m has none. One that was posted is not posted again.
func (s *Service) Send(to string, m Posted) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.ID != "" && slices.ContainsFunc(s.chats[to], func(o Posted) bool { return o.ID == m.ID }) {
		return m.ID
	}
	return s.post(to, m)
}

// post adds a message. The lock is held.
func (s *Service) post(chat string, m Posted) string {
	if s.last++; m.ID == "" {
		m.ID = strconv.Itoa(s.last)
	}
	s.chats[chat] = append(s.chats[chat], m)
	s.change()
	return m.ID
}

func (s *Service) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Edit replaces a message of the bot's and reports whether there is one.
func (s *Service) Edit(id, text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, chat := range s.chats {
		for i := range chat {
			if chat[i].ID == id && chat[i].From == "" {
				chat[i].Before, chat[i].Text = append(chat[i].Before, chat[i].Text), text
				s.change()
				return true
			}
		}
	}
	return false
}

// Updates confirms the updates up to a number and returns the later ones, once there are any or ctx ends. Over a bad line,
// confirmed ones may come again.
func (s *Service) Updates(ctx context.Context, confirmed int64) (all []Update) {
	for {
		s.mu.Lock()
		all, s.until = nil, max(s.until, confirmed)
		for _, u := range s.updates {
			if u.Number > s.until {
				all = append(all, u)
			} else if !s.done[u.Number] {
				if s.random.Float64() < s.line.Repeated {
					all = append(all, u)
				}
				s.done[u.Number] = true
			}
		}
		if s.line.Mixed {
			s.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		}
		changed := s.changed
		s.mu.Unlock()
		if len(all) > 0 {
			return all
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// Writes has a person send the bot a message.
func (s *Service) Writes(from, text, replyTo string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := Posted{From: from, Text: text, ReplyTo: replyTo}
	m.ID = s.post(from, m)
	s.updates = append(s.updates, Update{Number: int64(len(s.updates) + 1), Posted: m})
	s.change()
}

// Chat is everything in a person's chat.
func (s *Service) Chat(with string) []Posted {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.chats[with])
}

// Sees waits for a message of the bot's that says, or said before, a text.
func (s *Service) Sees(ctx context.Context, who, text string) (Posted, error) {
	for {
		s.mu.Lock()
		i := slices.IndexFunc(s.chats[who], func(m Posted) bool { return m.From == "" && strings.Contains(m.all(), text) })
		changed := s.changed
		var found Posted
		if i >= 0 {
			found = s.chats[who][i]
		}
		s.mu.Unlock()
		if i >= 0 {
			return found, nil
		}
		select {
		case <-ctx.Done():
			return Posted{}, ctx.Err()
		case <-changed:
		}
	}
}

// all is what a message says and said.
func (m Posted) all() string { return strings.Join(append(slices.Clip(m.Before), m.Text), "\n") }

// Seen is everything that the bot said to a person.
func (s *Service) Seen(who string) string {
	var text strings.Builder
	for _, m := range s.Chat(who) {
		if m.From == "" {
			text.WriteString(m.all() + "\n")
		}
	}
	return text.String()
}
