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

	"github.com/cenkalti/backoff/v5"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

const (
	pollFor    = 50 * time.Second // the most that Telegram does
	pollMost   = 100              // updates at a time
	tapLife    = 150 * time.Second
	remembered = 1000 // updates
	// cutMost is about the longest time between two polls to which nothing is answered: after an outage, people see soon
	// what of what they pressed counted.
	cutMost = 2500 * time.Millisecond
)

// poller fetches updates, one poll after the other. Only its run touches it.
type poller struct {
	api     *api
	state   *state
	now     func() time.Time
	elapsed func() time.Duration // by the clock that cannot be set
	log     *slog.Logger

	offset int64                       // the next poll confirms all that is below
	before time.Duration               // how long there was no contact before run
	heard  moment                      // when a poll was answered last
	owed   time.Duration               // how long there was no contact, until gap has been told
	seen   *lru.Cache[int64, bool]     // the last updates that were handled
	tries  *backoff.ExponentialBackOff // after what passes
	cut    *backoff.ExponentialBackOff // after what is not answered at all
	slow   *backoff.ExponentialBackOff // after what somebody has to mend
	stale  *backoff.ExponentialBackOff // after what brings nothing new
	hasty  *backoff.ExponentialBackOff // after what is empty long before its time
}

func newPoller(a *api, s *state, now func() time.Time, log *slog.Logger) *poller {
	began := time.Now()
	return &poller{
		api: a, state: s, now: now, elapsed: func() time.Duration { return time.Since(began) }, log: log,
		seen:  connectors.NewMemory[int64, bool](remembered),
		tries: wire.Tries(time.Second, 30*time.Second), cut: wire.Tries(time.Second, cutMost),
		slow: wire.Tries(10*time.Second, 2*time.Minute), stale: wire.Tries(50*time.Millisecond, 30*time.Second),
		hasty: wire.Tries(50*time.Millisecond, 5*time.Second),
	}
}

// run polls until ctx ends; no other error ends it. Updates go to handle in order, one at a time, and the next poll
// confirms to Telegram those that handle returned nil for. After an error the same update is handled again, ever later,
// until it is done or handle returns [errSkip]; one at which handle panics is passed over.
//
// Telegram forgets taps after 150 seconds. When polls have not been answered for longer, gap is called once the updates
// that Telegram still has are handled, and after an error again with the next poll. No poll runs during handle and gap, so
// neither may take long.
func (p *poller) run(
	ctx context.Context, handle func(context.Context, update) error, gap func(ctx context.Context, away time.Duration) error,
) error {
	var aside sync.WaitGroup
	defer aside.Wait()
	aside.Go(func() { p.lookForWebhook(ctx) })
	p.heard = p.moment().ago(p.before)
	p.state.hear(p.heard.wall)
	timeout := time.Duration(0) // at first, and whenever it is to be known soon that Telegram is there
	for ctx.Err() == nil {
		if p.owed > 0 || p.moment().since(p.heard) > tapLife {
			timeout = 0
		}
		began := p.elapsed()
		batch, err := p.poll(ctx, timeout)
		if ctx.Err() != nil {
			break
		}
		hasty := len(batch) == 0 && p.elapsed()-began < timeout/2
		timeout = pollFor
		if err != nil {
			timeout = 0
			select { // the loop looks at ctx
			case <-ctx.Done():
			case <-p.api.fresh:
			case <-time.After(p.failed(ctx, err)):
			}
			continue
		}
		p.answered()
		news := p.handle(ctx, batch, handle)
		last := len(batch) < pollMost || !news // of those that Telegram still has
		if last {
			p.mend(ctx, gap)
		}
		if p.owed == 0 {
			p.state.hear(p.heard.wall)
		}
		switch {
		case !news: // what was confirmed came again, and might for ever
			_ = permissions.Pause(ctx, p.stale.NextBackOff())
		case p.owed > 0 && last:
			_ = permissions.Pause(ctx, p.tries.NextBackOff())
		case hasty:
			_ = permissions.Pause(ctx, p.hasty.NextBackOff())
		default:
			p.stale.Reset()
			p.hasty.Reset()
		}
	}
	return nil
}

// poll fetches updates, each still to be decoded, so that an odd one takes none of the others with it.
func (p *poller) poll(ctx context.Context, timeout time.Duration) ([]jsontext.Value, error) {
	var batch []jsontext.Value
	err := p.api.call(ctx, "getUpdates", map[string]any{
		"offset": p.offset, "limit": pollMost, "timeout": int(timeout / time.Second), "allowed_updates": wanted,
	}, &batch)
	return batch, err
}

// answered notes that there is contact, and whether there was none for long.
func (p *poller) answered() {
	was := p.heard
	p.heard = p.moment()
	p.slow.Reset()
	p.cut.Reset()
	if p.state.answered() {
		p.tries.Reset()
		p.log.Info("telegram answers")
	}
	if away := p.heard.since(was); away > tapLife {
		p.log.Warn("there was no contact with telegram for longer than it keeps taps", "away", away.Round(time.Second))
		p.owed = max(p.owed, away)
	}
}

// mend tells that there was no contact for long, if that is still to be told.
func (p *poller) mend(ctx context.Context, gap func(context.Context, time.Duration) error) {
	if p.owed == 0 || ctx.Err() != nil {
		return
	}
	if err := gap(ctx, p.owed); err != nil {
		p.log.Warn("what was missed cannot be mended just now; it is tried again", "err", err)
		return
	}
	p.owed = 0
	p.tries.Reset()
}

// failed notes why a poll was not answered, and tells how long to wait before the next.
func (p *poller) failed(ctx context.Context, err error) time.Duration {
	var news bool
	tries := p.slow
	switch m, _ := meaningOf(err); m {
	case meansDenied:
		news = p.state.refused()
	case meansHooked:
		news = p.state.hooked("")
	case meansPolled:
		news = p.state.conflicts()
	default:
		news = p.state.gone(p.heard.wall, err.Error())
		if tries = p.tries; errors.As(err, new(*lostError)) {
			tries = p.cut
		}
	}
	level := slog.LevelDebug
	if news {
		level = slog.LevelWarn
	}
	wait := retryAfter(err)
	if wait == 0 {
		wait = tries.NextBackOff()
	}
	p.log.Log(ctx, level, "telegram does not answer polls; it is tried again", "delay", wait, "err", err)
	return wait
}

// handle handles a batch and confirms it. It returns false if there was nothing new in it.
func (p *poller) handle(ctx context.Context, batch []jsontext.Value, handle func(context.Context, update) error) bool {
	top, fresh := int64(0), false
	for _, raw := range batch {
		u, err := decode(raw)
		if err != nil {
			p.log.Warn("an update is not understood and passed over", "update", u.ID, "err", err)
		}
		top = max(top, u.ID)
		if u.ID == 0 || p.seen.Contains(u.ID) {
			continue
		}
		if err == nil && !p.settle(ctx, u, handle) {
			return true // ctx has ended, and no poll comes that would confirm the rest
		}
		fresh = true
		p.seen.Add(u.ID, true)
	}
	if top > 0 && (fresh || top >= p.offset) { // after a quiet week Telegram counts anew, from anywhere
		p.offset = top + 1
		return true
	}
	return len(batch) == 0
}

// decode reads an update. Beside an error it has its id, or 0 when not even that can be read.
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

// settle handles an update until that is done or will never be. It returns false when ctx ends before.
func (p *poller) settle(ctx context.Context, u update, handle func(context.Context, update) error) bool {
	tries := wire.Tries(200*time.Millisecond, 15*time.Second)
	for ctx.Err() == nil {
		err := p.once(ctx, u, handle)
		if err == nil {
			return true
		}
		if errors.Is(err, errSkip) {
			p.log.Error("an update is passed over", "update", u.ID, "err", err)
			return true
		}
		if ctx.Err() != nil {
			break
		}
		delay := tries.NextBackOff()
		p.log.Warn("an update is not handled; it is tried again", "update", u.ID, "delay", delay, "err", err)
		_ = permissions.Pause(ctx, delay) // the loop looks at ctx
	}
	return false
}

// once handles an update, and turns a panic into an error: its place is told, not its value, which may be what somebody
// wrote.
func (p *poller) once(ctx context.Context, u update, handle func(context.Context, update) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: panic of type %T at %s", errSkip, v, debug.Stack())
		}
	}()
	return handle(ctx, u)
}

// lookForWebhook says why polls get nothing, if that is why.
func (p *poller) lookForWebhook(ctx context.Context) {
	tries := wire.Tries(time.Second, 30*time.Second)
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
			p.state.hooked(host)
			p.log.Warn("a webhook is set, so telegram does not answer polls", "host", host)
		}
		if err == nil || !temporary(err) || permissions.Pause(ctx, cmp.Or(retryAfter(err), tries.NextBackOff())) != nil {
			return
		}
	}
}

// moment is a time by two clocks: the one on the wall counts a machine's sleep, and the other cannot be set.
type moment struct {
	wall    time.Time
	elapsed time.Duration
}

func (p *poller) moment() moment { return moment{p.now().Round(0), p.elapsed()} }

func (m moment) ago(d time.Duration) moment { return moment{m.wall.Add(-d), m.elapsed - d} }

// since is the longer of the two times that have passed.
func (m moment) since(was moment) time.Duration {
	return max(m.wall.Sub(was.wall), m.elapsed-was.elapsed)
}
