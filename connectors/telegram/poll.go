package telegram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions/timing"
)

const (
	pollFor    = 50 * time.Second // Telegram's maximum
	pollMost   = 100              // updates per poll
	tapLife    = 150 * time.Second
	remembered = 1000 // updates
	// cutMost is about the longest delay between unanswered polls: after an outage people soon see which taps counted.
	cutMost = 2500 * time.Millisecond
)

// poller fetches updates, one poll at a time. Only its run touches it.
type poller struct {
	api     *api
	state   *state
	now     func() time.Time
	elapsed func() time.Duration // monotonic
	log     *slog.Logger

	offset        int64                   // the next poll confirms all updates below it
	before        time.Duration           // downtime before run
	answeredAt    moment                  // when a poll was last answered
	outage        time.Duration           // length of the outage that gap has not handled yet
	seen          *lru.Cache[int64, bool] // the last handled updates
	transient     *wire.Backoff           // for temporary errors
	unanswered    *wire.Backoff           // for calls without a response
	misconfigured *wire.Backoff           // for errors that somebody has to fix
	nothingNew    *wire.Backoff           // for polls without anything new
	emptyEarly    *wire.Backoff           // for polls that return empty long before their timeout
}

func newPoller(a *api, s *state, now func() time.Time, log *slog.Logger) *poller {
	began := time.Now()
	return &poller{
		api: a, state: s, now: now, elapsed: func() time.Duration { return time.Since(began) }, log: log,
		seen:      connectors.NewLRU[int64, bool](remembered),
		transient: wire.NewBackoff(time.Second, 30*time.Second), unanswered: wire.NewBackoff(time.Second, cutMost),
		misconfigured: wire.NewBackoff(10*time.Second, 2*time.Minute), nothingNew: wire.NewBackoff(50*time.Millisecond, 30*time.Second),
		emptyEarly: wire.NewBackoff(50*time.Millisecond, 5*time.Second),
	}
}

// run polls until ctx ends; no other error ends it. handle gets the updates in order, one at a time, and the next poll
// confirms those for which it returned nil. After an error the same update is retried with backoff until handle succeeds or
// returns [errSkip]; an update on which handle panics is skipped.
//
// Telegram keeps taps for 150 seconds. After a longer outage, gap is called once the updates that Telegram still has are
// handled, and after an error again with the next poll. No poll runs during handle and gap, so neither may take long.
func (p *poller) run(
	ctx context.Context, handle func(context.Context, update) error, gap func(ctx context.Context, away time.Duration) error,
) error {
	var aside sync.WaitGroup
	defer aside.Wait()
	aside.Go(func() { p.lookForWebhook(ctx) })
	p.answeredAt = p.moment().ago(p.before)
	p.state.noteReceived(p.answeredAt.wall)
	timeout := time.Duration(0) // first, and whenever the connection has to be verified soon
	for ctx.Err() == nil {
		if p.outage > 0 || p.moment().since(p.answeredAt) > tapLife {
			timeout = 0
		}
		began := p.elapsed()
		batch, err := p.poll(ctx, timeout)
		if ctx.Err() != nil {
			break
		}
		early := len(batch) == 0 && p.elapsed()-began < timeout/2
		timeout = pollFor
		if err != nil {
			timeout = 0
			select { // the loop checks ctx
			case <-ctx.Done():
			case <-p.api.fresh:
			case <-time.After(p.failed(ctx, err)):
			}
			continue
		}
		p.noteAnswered()
		news := p.handle(ctx, batch, handle)
		last := len(batch) < pollMost || !news // the last updates that Telegram has
		if last {
			p.handleOutage(ctx, gap)
		}
		if p.outage == 0 {
			p.state.noteReceived(p.answeredAt.wall)
		}
		switch {
		case !news: // confirmed updates came again, perhaps forever
			_ = timing.Pause(ctx, p.nothingNew.NextBackOff())
		case p.outage > 0 && last:
			_ = timing.Pause(ctx, p.transient.NextBackOff())
		case early:
			_ = timing.Pause(ctx, p.emptyEarly.NextBackOff())
		default:
			p.nothingNew.Reset()
			p.emptyEarly.Reset()
		}
	}
	return nil
}

// poll fetches updates in raw form, so that a malformed one does not affect the others.
func (p *poller) poll(ctx context.Context, timeout time.Duration) ([]jsontext.Value, error) {
	var batch []jsontext.Value
	err := p.api.call(ctx, "getUpdates", map[string]any{
		"offset": p.offset, "limit": pollMost, "timeout": int(timeout / time.Second), "allowed_updates": wanted,
	}, &batch)
	return batch, err
}

// noteAnswered records contact with Telegram, and an outage if it was long.
func (p *poller) noteAnswered() {
	was := p.answeredAt
	p.answeredAt = p.moment()
	p.misconfigured.Reset()
	p.unanswered.Reset()
	if p.state.setState(isPolling, p.answeredAt.wall, "", "") {
		p.transient.Reset()
		p.log.Info("telegram connected")
	}
	if away := p.answeredAt.since(was); away > tapLife {
		p.log.Warn("telegram was unreachable for longer than it keeps taps", "away", away.Round(time.Second))
		p.outage = max(p.outage, away)
	}
}

func (p *poller) handleOutage(ctx context.Context, gap func(context.Context, time.Duration) error) {
	if p.outage == 0 || ctx.Err() != nil {
		return
	}
	if err := gap(ctx, p.outage); err != nil {
		p.log.Warn("recover missed updates: retrying", "err", err)
		return
	}
	p.outage = 0
	p.transient.Reset()
}

// failed records why a poll failed and returns the delay before the next one.
func (p *poller) failed(ctx context.Context, err error) time.Duration {
	to, backoff := isAway, p.misconfigured
	switch m, _ := meaningOf(err); m {
	case meansDenied:
		to = isUnauthorized
	case meansHooked:
		to = isWebhook
	case meansPolled:
		to = isConflict
	default:
		if backoff = p.transient; errors.As(err, new(*lostError)) {
			backoff = p.unanswered
		}
	}
	level := slog.LevelDebug
	if p.state.setState(to, p.answeredAt.wall, err.Error(), "") {
		level = slog.LevelWarn
	}
	wait := connectors.RetryAfter(err)
	if wait == 0 {
		wait = backoff.NextBackOff()
	}
	p.log.Log(ctx, level, "poll telegram: retrying", "delay", wait, "err", err)
	return wait
}

// handle handles a batch and advances the offset. It returns false if the batch had nothing new.
func (p *poller) handle(ctx context.Context, batch []jsontext.Value, handle func(context.Context, update) error) bool {
	top, fresh := int64(0), false
	for _, raw := range batch {
		u, err := decode(raw)
		if err != nil {
			p.log.Warn("skip unreadable update", "update", u.ID, "err", err)
		}
		top = max(top, u.ID)
		if u.ID == 0 || p.seen.Contains(u.ID) {
			continue
		}
		if err == nil && !p.settle(ctx, u, handle) {
			return true // ctx has ended, and no later poll confirms the rest
		}
		fresh = true
		p.seen.Add(u.ID, true)
	}
	if top > 0 && (fresh || top >= p.offset) { // after a quiet week Telegram may restart its ids anywhere
		p.offset = top + 1
		return true
	}
	return len(batch) == 0
}

// decode decodes an update. With an error, the update has its id, or 0 if that is unreadable, too.
func decode(raw jsontext.Value) (u update, err error) {
	if err := json.Unmarshal(raw, &u, lenient); err != nil {
		var name struct {
			ID int64 `json:"update_id"`
		}
		_ = json.Unmarshal(raw, &name, lenient) // the first error says more
		return update{ID: name.ID}, fmt.Errorf("read an update: %w", err)
	}
	return u, nil
}

// settle handles an update until it is done or skipped. It returns false if ctx ends first.
func (p *poller) settle(ctx context.Context, u update, handle func(context.Context, update) error) bool {
	tries := wire.NewBackoff(200*time.Millisecond, 15*time.Second)
	for ctx.Err() == nil {
		err := p.once(ctx, u, handle)
		if err == nil {
			return true
		}
		if errors.Is(err, errSkip) {
			p.log.Error("skip update", "update", u.ID, "err", err)
			return true
		}
		if ctx.Err() != nil {
			break
		}
		delay := tries.NextBackOff()
		p.log.Warn("handle update: retrying", "update", u.ID, "delay", delay, "err", err)
		_ = timing.Pause(ctx, delay) // the loop checks ctx
	}
	return false
}

// once handles an update and turns a panic into an error with its place, not its value, which may be a person's text.
func (p *poller) once(ctx context.Context, u update, handle func(context.Context, update) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: panic of type %T at %s", errSkip, v, debug.Stack())
		}
	}()
	return handle(ctx, u)
}

// lookForWebhook reports a webhook, which keeps polls from being answered.
func (p *poller) lookForWebhook(ctx context.Context) {
	tries := wire.NewBackoff(time.Second, 30*time.Second)
	for {
		var info struct {
			URL string `json:"url"`
		}
		err := p.api.call(ctx, "getWebhookInfo", nil, &info)
		if err == nil && info.URL != "" {
			host := ""
			if at, err := url.Parse(info.URL); err == nil {
				host = p.api.hide(at.Host)
			}
			p.state.setState(isWebhook, time.Time{}, "", host)
			p.log.Warn("telegram answers no polls while a webhook is set", "host", host)
		}
		if err == nil || !temporary(err) || timing.Pause(ctx, cmp.Or(connectors.RetryAfter(err), tries.NextBackOff())) != nil {
			return
		}
	}
}

// moment is a time on two clocks: the wall clock counts while the machine sleeps, the monotonic one cannot be set.
type moment struct {
	wall    time.Time
	elapsed time.Duration
}

func (p *poller) moment() moment { return moment{p.now().Round(0), p.elapsed()} }

func (m moment) ago(d time.Duration) moment { return moment{m.wall.Add(-d), m.elapsed - d} }

// since is the longer of the two elapsed times.
func (m moment) since(was moment) time.Duration {
	return max(m.wall.Sub(was.wall), m.elapsed-was.elapsed)
}

// connectionState is the state of the bot's connection to Telegram.
type connectionState int

const (
	isStarting     connectionState = iota // no poll was answered yet
	isPolling                             // polls are answered
	isAway                                // polls are not answered
	isConflict                            // another program polls
	isWebhook                             // a webhook is set
	isUnauthorized                        // the token is invalid
)

// state is the health of the connector. It is safe for concurrent use.
type state struct {
	now func() time.Time

	mu       sync.Mutex
	is       connectionState
	received time.Time // until when no tap was lost; zero: unknown
	since    time.Time // when a poll was last answered
	why      string    // of isAway
	host     string    // of the webhook, if known
}

func newState(now func() time.Time) *state { return &state{now: now} }

// Health is nil while polls are answered; otherwise its text, for people, says what is wrong and what to do.
func (s *state) Health() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.is {
	case isPolling:
		return nil
	case isAway:
		return fmt.Errorf("no contact with Telegram for %v: %s", s.now().Sub(s.since).Round(time.Second), s.why)
	case isConflict:
		return errors.New("another program polls with this bot's token, so what people do may not arrive here: " +
			"stop that program, or give one of the two a bot of its own")
	case isWebhook:
		at := ""
		if s.host != "" {
			at = " at " + s.host
		}
		return errors.New("the bot has a webhook" + at + ", so nothing that people do arrives here: " +
			"delete it with the Bot API's deleteWebhook, or give daycared a bot of its own")
	case isUnauthorized:
		return errors.New("Telegram does not accept the bot's token: " + //nolint:staticcheck // a proper name
			"compare token_file with what @BotFather says (/mybots, API Token); after a change, send daycared a SIGHUP")
	default:
		return errors.New("waiting for Telegram's first answer")
	}
}

// noteReceived records until when no tap was lost.
func (s *state) noteReceived(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received = until
}

// receivedUntil is until when no tap was lost. When the daemon stops, the open poll would have delivered everything up to now.
func (s *state) receivedUntil(stops bool) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); stops && s.is == isPolling && now.Sub(s.received) < tapLife {
		return now
	}
	return s.received
}

// setState records the state and reports whether that is news. why is the reason of isAway, without the token, since when a
// poll was last answered, and host the webhook's, if known: its path often contains secrets.
func (s *state) setState(to connectionState, since time.Time, why, host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := s.is != to
	s.is, s.since, s.why, s.host = to, since, why, cmp.Or(host, s.host)
	return news
}
