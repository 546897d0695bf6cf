package telegramtest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// answerLife is how long a tap can be answered.
const answerLife = 15 * time.Second

// Tap is a press of a button, on its way to the bot and back.
type Tap struct {
	server *Server
	id     string
	at     time.Time
	toast  *Toast
}

// Toast is what the bot answers to a tap.
type Toast struct {
	Text  string // empty: the button only stops to wait
	Alert bool   // it is to be closed by hand
	URL   string
}

// ID is the callback_query's.
func (t *Tap) ID() string { return t.id }

// Toast waits for the bot's answer to the tap.
func (t *Tap) Toast(ctx context.Context) (Toast, error) {
	if err := t.server.wait(ctx, time.Time{}, func() bool { return t.toast != nil }); err != nil {
		return Toast{}, fmt.Errorf("no answer to the tap: %w", err)
	}
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	return *t.toast, nil
}

// Answered reports whether the bot answered the tap.
func (t *Tap) Answered() bool {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	return t.toast != nil
}

// Taps presses the button of a message whose text or data is button, else the one whose text holds it. There must be
// one, and only one.
func (p *Person) Taps(message int, button string) (*Tap, error) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	m := p.server.message(p.chat.id, message)
	if m == nil {
		return nil, fmt.Errorf("tap %q: there is no message %d", button, message)
	}
	var exact, holding []Button
	var texts []string
	for _, row := range m.Keyboard {
		for _, b := range row {
			texts = append(texts, b.Text)
			if b.Text == button || b.Data == button && button != "" {
				exact = append(exact, b)
			} else if strings.Contains(b.Text, button) {
				holding = append(holding, b)
			}
		}
	}
	if len(exact) == 0 {
		exact = holding
	}
	switch {
	case len(exact) != 1:
		return nil, fmt.Errorf("tap %q: %d such buttons among %q", button, len(exact), texts)
	case exact[0].Data == "":
		return nil, fmt.Errorf("tap %q: the bot does not hear of this button", button)
	}
	return p.tap(message, exact[0].Data), nil
}

// TapsData sends a press that no button stands for: of one that is gone, of a message that is gone or was never sent,
// or with data that a hostile client made up.
func (p *Person) TapsData(message int, data string) *Tap {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	return p.tap(message, data)
}

// tap makes the callback query. The lock is held.
func (p *Person) tap(id int, data string) *Tap {
	s := p.server
	s.lastTap++
	t := &Tap{server: s, id: strconv.FormatInt(s.bot.ID<<24+int64(s.lastTap), 10), at: s.now()}
	s.taps[t.id] = t
	seen := object{"chat": p.chat.wire(), "message_id": id, "date": 0} // inaccessible
	if m := s.message(p.chat.id, id); m != nil && !m.lost {
		seen = s.wire(m)
	}
	if p.chat.reaches() {
		s.emit("callback_query", callbackLife, object{
			"id": t.id, "from": p.sender(), "chat_instance": p.chat.instance(), "data": data, "message": seen,
		})
	}
	return t
}

func (s *Server) answerCallbackQuery(q *query) (any, *failure) {
	t := s.taps[q.values["callback_query_id"]]
	switch {
	case t == nil || s.now().Sub(t.at) >= answerLife:
		return nil, badRequest("query is too old and response timeout expired or query ID is invalid")
	case units(q.values["text"]) > maxToast:
		return nil, badRequest("MESSAGE_TOO_LONG")
	}
	if t.toast == nil {
		t.toast = &Toast{Text: q.values["text"], Alert: q.flag("show_alert"), URL: q.values["url"]}
	}
	s.change()
	return true, nil
}
