package telegram

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/permissions"
)

// BenchmarkTapToAnswer measures from the press of a button to the return of the call that waits for it, with the
// decision on disk, and in turn the least that can be: the library's poll gets the callback, and one row is committed.
// It reports the middle of each and how many times the one is the other.
func BenchmarkTapToAnswer(b *testing.B) {
	s := newEnv(b)
	bare := newBare(b)
	var ours, least []time.Duration
	for i := 0; b.Loop(); i++ {
		name := fmt.Sprintf("number %d.", i)
		call := s.ask(network(name))
		m := s.card("fay", name)
		s.until("the card is noted", s.upToDate)
		allow := data(b, m, "Allow once")
		s.waitPoll(s.server)
		began := time.Now()
		s.phones["fay"].TapsData(m.ID, allow)
		s.get(call, permissions.Approved)
		ours = append(ours, time.Since(began))

		s.until("the card has been edited, which would slow down the other", s.upToDate)
		s.waitPoll(s.server)
		s.waitPoll(bare.server)
		began = time.Now()
		bare.person.TapsData(1, "x.allow_once")
		if err := <-bare.stored; err != nil {
			b.Fatal(err)
		}
		least = append(least, time.Since(began))
	}
	b.ReportMetric(float64(middle(ours).Microseconds()), "tap-µs")
	b.ReportMetric(float64(middle(least).Microseconds()), "bare-µs")
	b.ReportMetric(float64(middle(ours))/float64(middle(least)), "ratio")
}

// committed notes when the last request was committed.
type committed struct {
	engine.Store
	at atomic.Pointer[time.Time]
}

func (c *committed) Open(ctx context.Context, o permissions.Opening) (permissions.Request, bool, error) {
	r, created, err := c.Store.Open(ctx, o)
	now := time.Now()
	c.at.Store(&now)
	return r, created, err
}

// BenchmarkCommitToButton measures from the commit of a request to the arrival of the call of Telegram that brings its
// buttons: of a short card, of an edit, and of one whose content goes before it as a file.
func BenchmarkCommitToButton(b *testing.B) {
	long := strings.Repeat("a row of the file\\n", 600)
	for _, c := range []struct {
		name, button string
		ends         permissions.State
		ask          func(name string) permissions.Request
	}{
		{"permission", "Allow once", permissions.Approved, network},
		{"edit", "Deny", permissions.Denied, func(name string) permissions.Request {
			return toolCall("write_file", fmt.Sprintf(`{"path":"/srv/%s","content":"one\ntwo\nthree\n"}`, name))
		}},
		{"file", "Deny", permissions.Denied, func(name string) permissions.Request {
			return toolCall("write_file", `{"path":"/srv/`+name+`","content":"`+long+`"}`)
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			rows := &committed{}
			s := newEnv(b, func(s *env) {
				s.through = func(own engine.Store) engine.Store {
					rows.Store = own
					return rows
				}
			})
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				name := fmt.Sprintf("number-%d.", i)
				from := len(s.server.Calls())
				call := s.ask(c.ask(name))
				m := s.card("fay", name)
				for _, sent := range s.server.Calls()[from:] {
					if sent.Method == "sendMessage" && sent.Params["reply_markup"] != "" {
						took = append(took, sent.At.Sub(*rows.at.Load()))
					}
				}
				if len(took) != i+1 {
					b.Fatalf("%d cards came for %d requests", len(took), i+1)
				}
				s.until("the card is noted", s.upToDate)
				s.phones["fay"].TapsData(m.ID, data(b, m, c.button))
				s.get(call, c.ends)
				s.until("the card has been edited", s.upToDate)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkBesideAHangingChat measures from a question to the card of its person while a call of Telegram's for another person hangs.
func BenchmarkBesideAHangingChat(b *testing.B) {
	for b.Loop() {
		s := newEnv(b, others(1))
		s.server.FailNext("sendMessage", 1, telegramtest.Hang())
		s.ask(network("it hangs."))
		s.until("it hangs", func() bool { return len(s.calls("fay", "sendMessage")) == 1 })
		q := network("somebody else's.")
		q.Tags = []permissions.Tag{tagOf(b, 0)}
		began := time.Now()
		s.ask(q)
		s.card("p0", q.Reason)
		b.ReportMetric(time.Since(began).Seconds(), "s-to-card")
	}
	b.ReportMetric(0, "ns/op")
}

func middle(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// waitPoll waits until a poll does.
func (s *env) waitPoll(server *telegramtest.Server) {
	s.t.Helper()
	ctx, done := context.WithTimeout(s.t.Context(), longEnough)
	defer done()
	if err := server.Polling(ctx); err != nil {
		s.t.Fatal(err)
	}
}

// bare is the library alone, and the smallest write that the store has.
type bare struct {
	server *telegramtest.Server
	person *telegramtest.Person
	stored chan error
}

func newBare(b *testing.B) *bare {
	b.Helper()
	server := telegramtest.New(b)
	p := &bare{
		server: server, person: server.Person(telegramtest.User{ID: 1, FirstName: "F"}), stored: make(chan error),
	}
	rows, err := store.Open(b.Context(), store.Options{
		Path: filepath.Join(b.TempDir(), "bare.db"), Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	client := &http.Client{Transport: newTransport()}
	bot := &tgbotapi.BotAPI{Token: server.Token(), Buffer: 1, Client: doer(func(r *http.Request) (*http.Response, error) {
		return client.Do(r.WithContext(ctx))
	})}
	bot.SetAPIEndpoint(strings.ReplaceAll(server.URL(), "%", "%%") + "/bot%s/%s")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for offset := 0; ctx.Err() == nil; {
			updates, err := bot.GetUpdates(tgbotapi.UpdateConfig{Offset: offset, Timeout: 50, AllowedUpdates: wanted})
			if err != nil {
				continue
			}
			for _, u := range updates {
				offset = u.UpdateID + 1
				if u.CallbackQuery != nil {
					_, err := rows.Heartbeat(ctx, time.Now())
					p.stored <- err
				}
			}
		}
	}()
	b.Cleanup(func() {
		cancel()
		<-done
		client.CloseIdleConnections()
		if err := rows.Close(); err != nil {
			b.Error(err)
		}
	})
	return p
}
