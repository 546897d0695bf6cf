package telegram

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	fayChat   = int64(111)
	samChat   = int64(222)
	groupChat = int64(-333)
)

// busiest is how many of the times fall into any window.
func busiest(times []time.Time, window time.Duration) int {
	best := 0
	for i := range times {
		n := 0
		for _, t := range times[i:] {
			if t.Sub(times[i]) < window {
				n++
			}
		}
		best = max(best, n)
	}
	return best
}

func TestLimitsOfSending(t *testing.T) {
	for name, c := range map[string]struct {
		calls   int
		chat    func(i int) int64
		window  time.Duration
		least   int // in some window: nobody waits for nothing
		most    int // in any window
		longest time.Duration
	}{
		"a person":     {30, func(int) int64 { return fayChat }, time.Second, 3, 4, 28 * time.Second},
		"a group":      {100, func(int) int64 { return groupChat }, time.Minute, 19, 20, 9 * time.Minute},
		"many people":  {300, func(i int) int64 { return int64(1000 + i) }, time.Second, 20, 25, 15 * time.Second},
		"without chat": {100, func(int) int64 { return 0 }, time.Second, 20, 25, 5 * time.Second},
	} {
		t.Run("E2/"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, began := newPace(), time.Now()
				var mu sync.Mutex
				var times []time.Time
				var all sync.WaitGroup
				for i := range c.calls {
					all.Go(func() {
						if err := p.wait(t.Context(), c.chat(i), 0); err != nil {
							t.Error(err)
						}
						mu.Lock()
						defer mu.Unlock()
						times = append(times, time.Now())
					})
				}
				all.Wait()
				if n := busiest(times, c.window); n < c.least || n > c.most {
					t.Errorf("%d within %v", n, c.window)
				}
				if took := time.Since(began); took > c.longest {
					t.Errorf("all of it took %v", took)
				}
			})
		})
	}
}

// While so many chats have more to be sent than all of them together may, the first card of others goes next: a chat that
// was served before waits.
func TestWhoWasServedLeastRecentlyGoesFirst(t *testing.T) {
	const busy, others = 60, 10
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for chat := range int64(busy) {
			all.Go(func() {
				for p.wait(ctx, 1000+chat, cards) == nil {
				}
			})
		}
		<-time.After(10 * time.Second)
		var firsts sync.WaitGroup
		for chat := range int64(others) {
			firsts.Go(func() {
				began := time.Now()
				if err := p.wait(ctx, 2000+chat, cards); err != nil || time.Since(began) > heldUp {
					t.Errorf("chat %d waited %v: %v", chat, time.Since(began), err)
				}
			})
		}
		firsts.Wait()
		cancel()
		all.Wait()
	})
}

func TestPausesThatTelegramAsksFor(t *testing.T) {
	const pause = 30 * time.Second
	for name, c := range map[string]struct {
		about int64
		waits map[int64]time.Duration
	}{
		"a chat":     {fayChat, map[int64]time.Duration{fayChat: pause, samChat: 0, groupChat: 0, 0: 0}},
		"everything": {0, map[int64]time.Duration{fayChat: pause, samChat: pause, groupChat: pause, 0: pause}},
	} {
		t.Run("E2/"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, began := newPace(), time.Now()
				p.noteResult(c.about, fmt.Errorf("send: %w", &apiError{Code: 429, Pause: pause}))
				p.noteResult(c.about, &apiError{Code: 429, Pause: time.Second}) // does not make it shorter
				p.noteResult(c.about, nil)
				var all sync.WaitGroup
				for chat, want := range c.waits {
					all.Go(func() {
						err := p.wait(t.Context(), chat, 0)
						if took := time.Since(began); err != nil || took < want || took > want+want/10 {
							t.Errorf("chat %d waited %v, want %v: %v", chat, took, want, err)
						}
					})
				}
				all.Wait()
			})
		})
	}
}

func TestPauseThatComesWhileSomebodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, began := newPace(), time.Now()
		for range personBurst {
			if err := p.wait(t.Context(), fayChat, 0); err != nil {
				t.Fatal(err)
			}
		}
		var waits sync.WaitGroup
		waits.Go(func() {
			err := p.wait(t.Context(), fayChat, 0)
			if took := time.Since(began); err != nil || took != 10*time.Second {
				t.Errorf("%v, %v", took, err)
			}
		})
		synctest.Wait()
		p.noteResult(fayChat, &apiError{Code: 429, Pause: 10 * time.Second})
		waits.Wait()
	})
}

func TestWaitingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		p.noteResult(fayChat, &apiError{Code: 429, Pause: time.Hour})
		for range groupBurst {
			if err := p.wait(t.Context(), groupChat, 0); err != nil {
				t.Fatal(err)
			}
		}
		for _, chat := range []int64{fayChat, groupChat} {
			began := time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			if err := p.wait(ctx, chat, 0); !errors.Is(err, context.Canceled) || time.Since(began) != time.Second {
				t.Errorf("chat %d: %v after %v", chat, err, time.Since(began))
			}
			began = time.Now()
			ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
			if err := p.wait(ctx, chat, 0); err == nil || time.Since(began) != 0 {
				t.Errorf("chat %d: %v after %v, though the wait outlasts the deadline", chat, err, time.Since(began))
			}
			cancel()
		}
		if err := p.wait(t.Context(), samChat, 0); err != nil {
			t.Error(err)
		}
	})
}

func TestIdleChatsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		p.noteResult(groupChat, &apiError{Code: 429, Pause: time.Hour})
		for chat := range int64(500) {
			if err := p.wait(t.Context(), chat+1, 0); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(2 * forgetEvery)
		if err := p.wait(t.Context(), fayChat, 0); err != nil {
			t.Fatal(err)
		}
		if p.chats[groupChat] == nil || len(p.chats) != 2 {
			t.Errorf("%d chats are remembered, the one that pauses: %v", len(p.chats), p.chats[groupChat] != nil)
		}
		<-time.After(2 * time.Hour)
		if err := p.wait(t.Context(), 0, 0); err != nil || len(p.chats) != 1 {
			t.Errorf("%d chats are remembered: %v", len(p.chats), err)
		}
	})
}

// However much agents say, and however they work, a card finds room at once, and all of it stays within the limits.
func TestCardsDoNotWaitForAgents(t *testing.T) {
	for _, people := range []int64{2, 50} {
		synctest.Test(t, func(t *testing.T) { cardsAmongAgents(t, people) })
	}
}

func cardsAmongAgents(t *testing.T, people int64) {
	p := newPace()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var mu sync.Mutex
	sent := map[int64][]time.Time{}
	note := func(chat int64) {
		mu.Lock()
		defer mu.Unlock()
		sent[chat] = append(sent[chat], time.Now())
	}
	for chat := int64(1); chat <= people; chat++ {
		all.Go(func() { // an agent that never stops
			for p.awaitRoom(ctx, chat) == nil && p.wait(ctx, chat, 0) == nil {
				note(chat)
			}
		})
		all.Go(func() {
			for ctx.Err() == nil {
				if p.tryTurn(chat, typing) == 0 {
					note(chat)
				}
				select {
				case <-ctx.Done():
				case <-time.After(90 * time.Millisecond):
				}
			}
		})
	}
	for i := range 20 {
		<-time.After(time.Duration(i%7)*400*time.Millisecond + 3*time.Second)
		chat, began := int64(i)%people+1, time.Now()
		if err := p.wait(ctx, chat, 0); err != nil || time.Since(began) > 0 {
			t.Errorf("card %d waited %v: %v", i, time.Since(began), err)
		}
		note(chat)
	}
	cancel()
	all.Wait()
	n := 0
	for chat, times := range sent {
		if busy := busiest(times, time.Second); busy > 4 {
			t.Errorf("%d within a second in chat %d", busy, chat)
		}
		n += len(times)
	}
	if n < 20*int(people) {
		t.Errorf("only %d were sent", n)
	}
}
