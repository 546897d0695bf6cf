package telegram

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/connectors/telegram/telegramtest"
)

func pass(d time.Duration) { <-time.After(d) }

func fine(context.Context, update) error { return nil }

// odd handles every update but one.
func odd(id int64, how func() error) func(context.Context, update) error {
	return func(_ context.Context, u update) error {
		if u.ID == id {
			return how()
		}
		return nil
	}
}

func TestUpdatesAreHandledInOrder(t *testing.T) {
	t.Run("D5/updates in another order", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newLine(t)
			l.serve(fine, func(p *poller) {
				l.come(7, 8)
				pass(time.Second)
				l.come(9)
				pass(2 * time.Minute)
				if ok, text := health(p.state); !ok {
					t.Error(text)
				}
			})
			l.wantHandled(7, 8, 9)
			var offsets []string
			for _, poll := range l.polls {
				offsets = append(offsets, poll.Get("offset")+" "+poll.Get("timeout"))
				if poll.Get("limit") != "100" ||
					poll.Get("allowed_updates") != `["message","edited_message","callback_query","my_chat_member","message_reaction"]` {
					t.Errorf("poll %v", poll)
				}
			}
			last := []string{"9 50", "10 50", "10 50", "10 50"}
			if offsets[0] != "0 0" || !slices.Equal(offsets[len(offsets)-4:], last) {
				t.Errorf("polls %q", offsets)
			}
			if len(l.gaps) != 0 || l.logged.Len() == 0 {
				t.Errorf("gaps %v, log %q", l.gaps, l.logged.String())
			}
		})
	})
}

func TestUpdateThatIsNotHandledIsNotConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, tries, down := newLine(t), 0, true
		handle := odd(8, func() error {
			l.mu.Lock()
			defer l.mu.Unlock()
			if tries++; down {
				return errors.New("the store is not there")
			}
			return nil
		})
		l.serve(handle, func(*poller) {
			l.change(func() {}, said(7), said(8), said(9))
			pass(10 * time.Minute)
			l.wantHandled(7)
			l.mu.Lock()
			if len(l.waiting) != 3 || tries < 30 || tries > 100 {
				t.Errorf("%d updates wait at Telegram after %d tries", len(l.waiting), tries)
			}
			down = false
			l.mu.Unlock()
			pass(time.Minute)
		})
		l.wantHandled(7, 8, 9, 0)
		if len(l.waiting) != 0 {
			t.Errorf("%d updates wait at Telegram", len(l.waiting))
		}
	})
}

func TestUpdatesThatWillNeverBeHandled(t *testing.T) {
	var none map[string]int
	for name, c := range map[string]struct {
		how    func() error
		logged string
	}{
		"skipped":  {func() error { return fmt.Errorf("no chat: %w", errSkip) }, "no chat: the update cannot be handled"},
		"a panic":  {func() error { none["what fay wrote"] = 1; return nil }, "poll_test.go"},
		"a string": {func() error { panic("what fay wrote") }, "panic of type string at"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLine(t)
				l.serve(odd(8, c.how), func(*poller) {
					l.change(func() {}, said(7), said(8), said(9))
					pass(time.Second)
				})
				l.wantHandled(7, 9)
				if text := l.logged.String(); !strings.Contains(text, c.logged) || !strings.Contains(text, "update=8") ||
					strings.Contains(text, "fay") {
					t.Errorf("logged %s", text)
				}
			})
		})
	}
}

func TestOddUpdatesTakeNoneWithThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		l.serve(fine, func(*poller) {
			l.change(func() {}, said(7), `{"update_id":8,"message":"what fay wrote"}`, `"odd"`, `{"update_id":9,"poll":{}}`,
				`{"update_id":10,"callback_query":{"id":11}}`)
			pass(time.Minute)
			l.come(12)
			pass(time.Minute)
		})
		l.wantHandled(7, 9, 12)
		if text := l.logged.String(); !strings.Contains(text, "update=8") || strings.Contains(text, "fay") {
			t.Errorf("logged %s", text)
		}
	})
}

func TestRedeliveredUpdatesAreSkipped(t *testing.T) {
	t.Run("D5/updates that come again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newLine(t)
			l.rude = true // and no reason to poll without a pause
			l.serve(fine, func(*poller) {
				l.change(func() {}, said(8), said(7), said(8))
				pass(10 * time.Minute)
				if n := l.polled(); n > 60 {
					t.Errorf("%d polls in ten minutes", n)
				}
				l.come(9)
				pass(time.Minute)
			})
			l.wantHandled(8, 7, 9)
		})
	})
}

func TestUpdatesAreCountedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		l.serve(fine, func(*poller) {
			l.come(1_000_000)
			pass(time.Hour) // or a week, as far as is seen here
			l.change(func() { l.rude, l.waiting = true, nil }, said(5), said(6))
			pass(time.Second)
			l.change(func() { l.rude = false })
			l.come(7)
			pass(time.Minute)
		})
		l.wantHandled(1_000_000, 5, 6, 7)
	})
}

func TestOldUpdatesAreForgotten(t *testing.T) {
	seen := newPoller(nil, nil, nil, nil).seen
	for id := range int64(3 * remembered) {
		seen.Add(id, true)
	}
	if seen.Len() != remembered || seen.Contains(2*remembered-1) || !seen.Contains(2*remembered) || !seen.Contains(3*remembered-1) {
		t.Errorf("%d are remembered", seen.Len())
	}
}

func TestRefusedPolls(t *testing.T) {
	for name, c := range map[string]struct {
		refusal     *apiError
		health      string
		least, most int // polls in ten minutes
	}{
		"too many": {&apiError{Code: 429, Text: "Too Many Requests: retry after 100", Pause: 100 * time.Second},
			"no contact with Telegram for ", 6, 7},
		"broken": {&apiError{Code: 502, Text: "Bad Gateway"}, "no contact with Telegram for ", 15, 60},
		"another program": {&apiError{Code: 409, Text: "Conflict: terminated by other getUpdates request; make sure that " +
			"only one bot instance is running"}, "another program polls with this bot's token", 6, 25},
		"a webhook": {&apiError{Code: 409, Text: "Conflict: can't use getUpdates method while webhook is active; use " +
			"deleteWebhook to delete the webhook first"}, "the bot has a webhook, so", 6, 25},
		"no good token":     {&apiError{Code: 401, Text: "Unauthorized"}, "Telegram does not accept the bot's token", 6, 25},
		"no token at all":   {&apiError{Code: 404, Text: "Not Found"}, "Telegram does not accept the bot's token", 6, 25},
		"something unknown": {&apiError{Code: 400, Text: "Bad Request: " + string(testToken)}, "no contact with Telegram for ", 15, 60},
	} {
		t.Run("D8/"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLine(t)
				l.serve(fine, func(p *poller) {
					pass(time.Second)
					l.change(func() { l.refusal, l.polls = c.refusal, nil }, said(1)) // the poll that hangs still gets it
					pass(10 * time.Minute)
					ok, text := health(p.state)
					if ok || !strings.HasPrefix(text, c.health) || strings.Contains(text, "SECRET") {
						t.Errorf("health %v, %q", ok, text)
					}
					l.change(func() { l.refusal = nil })
					if n := l.polled(); n < c.least || n > c.most {
						t.Errorf("%d polls in ten minutes", n)
					}
					pass(4 * time.Minute)
					l.come(2)
					pass(time.Second)
					if ok, text := health(p.state); !ok {
						t.Errorf("health %q", text)
					}
				})
				l.wantHandled(1, 0, 2)
				if n := strings.Count(l.logged.String(), "poll telegram: retrying"); n != 1 {
					t.Errorf("logged %d times:\n%s", n, l.logged.String())
				}
			})
		})
	}
}

func TestPauseOfPollsIsAsLongAsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		l.refusal = &apiError{Code: 429, Text: "Too Many Requests: retry after 30", Pause: 30 * time.Second}
		l.serve(fine, func(*poller) { pass(100 * time.Second) })
		for i := 1; i < len(l.at); i++ {
			if waited := l.at[i].Sub(l.at[i-1]); waited < 30*time.Second || waited > 33*time.Second {
				t.Errorf("waited %v", waited)
			}
		}
		if len(l.at) != 4 {
			t.Errorf("%d polls", len(l.at))
		}
	})
}

func TestGaps(t *testing.T) {
	outage := func(l *line, d time.Duration) {
		l.change(func() { l.cut = true }, said(1)) // what the poll that hangs brings is still before it
		pass(d)
		l.change(func() { l.cut = false }, said(2))
		pass(2 * time.Minute)
	}
	for name, c := range map[string]struct {
		play    func(*line)
		handled []int64
		away    []time.Duration // within a minute and a half, the longest wait between polls
	}{
		"none":  {func(*line) { pass(time.Hour) }, nil, nil},
		"short": {func(l *line) { outage(l, 90*time.Second) }, []int64{1, 2}, nil},
		"long":  {func(l *line) { outage(l, 10*time.Minute) }, []int64{1, 2, 0}, []time.Duration{10 * time.Minute}},
		"two": {func(l *line) {
			outage(l, 10*time.Minute)
			l.change(func() { l.cut = true }, said(3))
			pass(5 * time.Minute)
			l.change(func() { l.cut = false }, said(4))
			pass(2 * time.Minute)
		}, []int64{1, 2, 0, 3, 4, 0}, []time.Duration{10 * time.Minute, 5 * time.Minute}},
		"that is mended late": {func(l *line) {
			l.change(func() { l.badGaps = 3 })
			outage(l, 10*time.Minute)
		}, []int64{1, 2, 0}, []time.Duration{10 * time.Minute}},
		"a sleeping machine": {func(l *line) {
			l.change(func() { l.away = time.Hour }, said(1))
			pass(time.Minute)
		}, []int64{1, 0}, []time.Duration{time.Hour}},
		"a clock set back": {func(l *line) {
			l.change(func() { l.away = -time.Hour })
			outage(l, 10*time.Minute)
		}, []int64{1, 2, 0}, []time.Duration{10 * time.Minute}},
	} {
		t.Run("D5/"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLine(t)
				l.serve(fine, func(*poller) {
					pass(time.Second)
					c.play(l)
				})
				l.wantHandled(c.handled...)
				if len(l.gaps) != len(c.away) {
					t.Fatalf("gaps %v", l.gaps)
				}
				for i, want := range c.away {
					if l.gaps[i] < want || l.gaps[i] > want+90*time.Second {
						t.Errorf("a gap of %v, want %v", l.gaps[i], want)
					}
				}
			})
		})
	}
}

func TestStartWithoutNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		l.cut = true
		l.serve(fine, func(p *poller) {
			pass(10 * time.Minute)
			if ok, text := health(p.state); ok || text != "no contact with Telegram for 10m0s: getUpdates: the connection ended without an answer" {
				t.Errorf("%v, %q", ok, text)
			}
			l.change(func() { l.cut = false })
			pass(46 * time.Second) // the longest wait, no answer to which is awaited longer than it takes
			if ok, text := health(p.state); !ok {
				t.Error(text)
			}
		})
		l.wantHandled(0)
	})
}

func TestWebhookIsReportedAndLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		l.cut, l.hook = true, "https://bots.example/"+string(testToken)
		l.refusal = &apiError{Code: 409, Text: "Conflict: can't use getUpdates method while webhook is active; use " +
			"deleteWebhook to delete the webhook first"}
		l.serve(fine, func(p *poller) {
			pass(time.Minute)
			l.change(func() { l.cut = false })
			pass(2 * time.Minute)
			if ok, text := health(p.state); ok || !strings.HasPrefix(text, "the bot has a webhook at bots.example, so nothing") {
				t.Errorf("%v, %q", ok, text)
			}
			l.change(func() { l.hook, l.refusal = "", nil }, said(1))
			pass(4 * time.Minute)
			if ok, text := health(p.state); !ok {
				t.Error(text)
			}
		})
		l.wantHandled(1, 0)
	})
}

func TestNothingIsConfirmedOnceItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		handle := func(ctx context.Context, u update) error {
			if u.ID == 7 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		l.serve(handle, func(*poller) { l.change(func() {}, said(7), said(8), said(9)) })
		l.wantHandled(7)
		if len(l.waiting) != 3 {
			t.Errorf("%d updates wait at Telegram", len(l.waiting))
		}
	})
}

func TestPollsOfARealServer(t *testing.T) {
	server := telegramtest.New(t)
	server.Redeliver(5, true, 4)
	fay := server.Person(telegramtest.User{ID: fayChat, FirstName: "Fay"})
	a := newAPI(Token(server.Token()), server.URL(), slog.New(slog.DiscardHandler))
	t.Cleanup(a.close)
	p := newPoller(a, newState(time.Now), time.Now, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	var texts []string
	running.Go(func() {
		_ = p.run(ctx, func(_ context.Context, u update) error {
			texts = append(texts, u.Message.Text)
			return nil
		}, func(context.Context, time.Duration) error { return nil })
	})
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprint("message ", i))
		fay.Writes(want[i])
	}
	soon, done := context.WithTimeout(t.Context(), 30*time.Second)
	defer done()
	if err := errors.Join(server.Drained(soon), server.Polling(soon)); err != nil {
		t.Error(err)
	}
	ended := time.Now()
	cancel()
	running.Wait()
	if took := time.Since(ended); took > time.Second {
		t.Errorf("a poll ended only after %v", took)
	}
	slices.Sort(texts)
	slices.Sort(want)
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Error(diff)
	}
}

// A server that answers each poll at once, with nothing, is polled every few seconds; and every call says how long it is.
func TestEmptyAnswersAreNotAskedForAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		polls := 0
		a := dialed(t, testToken, func(w http.ResponseWriter, r *http.Request) {
			if len(r.TransferEncoding) > 0 {
				t.Errorf("%s is sent %v", r.URL.Path, r.TransferEncoding)
			}
			if strings.HasSuffix(r.URL.Path, "getUpdates") {
				polls++
				_, _ = io.WriteString(w, `{"ok":true,"result":[]}`)
				return
			}
			_, _ = io.WriteString(w, `{"ok":true,"result":{"url":""}}`)
		})
		p := newPoller(a, newState(time.Now), time.Now, slog.New(slog.DiscardHandler))
		ctx, done := context.WithTimeout(t.Context(), time.Minute)
		defer done()
		_ = p.run(ctx, fine, func(context.Context, time.Duration) error { return nil })
		if polls < 10 || polls > 40 {
			t.Errorf("%d polls in a minute", polls)
		}
	})
}
