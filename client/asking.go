package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

const (
	// firstWait doubles with every call, so that an early answer arrives promptly and a long wait costs few calls.
	firstWait = time.Second
	// patience bounds the retries on a lost connection while the request's deadline is unknown.
	patience = 15 * time.Minute
)

// asking is the state of one question: the calls that create and follow its request.
type asking struct {
	client *Client
	body   wire.Ask
	asked  permissions.Request // sent in the body
	header http.Header
	stays  time.Time // until then the process lives; zero: unknown
	until  time.Time // when to give up on a lost connection or a failing store
	tries  *wire.Backoff

	row  wire.Request // the last view received; its ID is empty before the first
	met  bool         // the daemon has answered before
	lost bool         // the connection was lost since row was received
}

func newAsking(c *Client, q permissions.Request) (*asking, error) {
	body := wire.AskOf(q)
	asked, _, err := body.Question()
	if err != nil {
		return nil, err
	}
	longest := patience
	if q.Patience > 0 {
		longest = q.Patience
	}
	a := &asking{
		client: c, body: body, asked: asked, header: http.Header{
			wire.HeaderCall: {cmp.Or(q.Call, rand.Text())}, wire.HeaderRequest: {string(cmp.Or(q.ID, permissions.NewID(time.Now())))},
		},
		until: time.Now().Add(longest), tries: wire.NewTries(),
	}
	if q.Stays > 0 {
		a.stays = time.Now().Add(q.Stays)
	}
	return a, nil
}

// run asks until the request is settled. The first call does not wait, so that the request's id is known early.
func (a *asking) run(ctx context.Context) error {
	var file *tokenFileError
	for wait := time.Duration(0); ; {
		began := time.Now()
		err := a.post(ctx, wait)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && a.row.State != permissions.Pending:
			return nil
		case err == nil && time.Since(began) >= wait/2:
			a.tries.Reset()
			wait = min(max(firstWait, 2*wait), wire.MaxWait)
			continue
		case err == nil: // answered early because the daemon stops
		case wire.SlowDown(err) > 0 && time.Now().Before(a.until):
			if err := timing.Pause(ctx, wire.SlowDown(err)); err != nil {
				return err
			}
			continue
		case a.row.ID != "" && errors.As(err, &file) && time.Now().Before(a.until): // the file is perhaps being replaced
		case a.row.ID != "" && permissions.CodeOf(err) == permissions.CodeBroken && time.Now().Before(a.until):
			// The request is still pending and may yet be answered.
			a.missing(err)
			wait = 0
		case !a.met || !wire.IsConnectionError(err):
			return err
		case !time.Now().Before(a.until):
			return fmt.Errorf("%w, and the time to wait for it is over: %w", ErrUnreachable, err)
		default:
			a.missing(err)
			wait = 0
		}
		if err := timing.Pause(ctx, a.tries.NextBackOff()); err != nil {
			return err
		}
	}
}

// missing reports once that the daemon or its store is unavailable.
func (a *asking) missing(err error) {
	if !a.lost && a.client.Lost != nil {
		a.client.Lost(err)
	}
	a.lost = true
}

// post makes one call and reports progress.
func (a *asking) post(ctx context.Context, wait time.Duration) error {
	a.body.Wait = wait.String()
	if left := time.Until(a.stays); !a.stays.IsZero() && left > 0 {
		a.header.Set(wire.HeaderStays, left.String())
	} else {
		a.header.Del(wire.HeaderStays)
	}
	if a.row.ID != "" {
		a.header.Set(wire.HeaderRequest, string(a.row.ID))
	}
	var row wire.Request
	err := a.client.call(ctx, http.MethodPost, "/v1/requests", a.header, a.body, wait, &row)
	a.met = a.met || !errors.Is(err, ErrUnreachable)
	if err != nil {
		return err
	}
	told, err := row.Standing()
	switch {
	case err != nil:
		return err
	case !told.Request.Answers(a.asked):
		return fmt.Errorf("%w, %s", ErrOtherRow, told.Request.ID)
	}
	news := a.lost || row.ID != a.row.ID || len(row.Delivered) > len(a.row.Delivered) || !slices.Equal(row.Delayed, a.row.Delayed)
	a.row, a.lost = row, false
	if deadline := row.Until(); !deadline.IsZero() {
		a.until = deadline
	}
	if news && a.client.Progress != nil {
		a.client.Progress(told)
	}
	return nil
}
