package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
)

const (
	mostReply = 32 << 20 // bytes of one reply, as it comes
	mostFault = 64 << 10 // bytes that are read of an error
	tailBytes = 64
)

var errSilence = errors.New("silence")

// Exchange is one try: one request and the stream that answers it. To a library it is an HTTP client. [Exchange.End] is
// called once the stream has been read.
type Exchange struct {
	link   *Link
	ctx    context.Context //nolint:containedctx // that of the one request
	cancel context.CancelCauseFunc
	quiet  *time.Timer
	body   io.ReadCloser
	left   int64
	tail   []byte
	err    error // what ended the stream too early
}

// Exchange begins a try.
func (l *Link) Exchange(ctx context.Context) *Exchange {
	x := &Exchange{link: l, left: mostReply}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	x.quiet = time.AfterFunc(l.silence, func() { x.cancel(errSilence) })
	return x
}

// Context is what the request is to be made with.
func (x *Exchange) Context() context.Context { return x.ctx }

// Do sends the request. What is not a stream is a *[Fault].
func (x *Exchange) Do(r *http.Request) (*http.Response, error) {
	r.Header.Set("User-Agent", "daycared")
	response, err := x.link.client.Do(r) //nolint:gosec // the address is that of the configuration
	if err != nil {
		x.link.Close() // those that are idle may be as dead as this one
		return nil, x.link.lost(x.ctx, err)
	}
	x.quiet.Reset(x.link.silence)
	x.body = response.Body
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case response.StatusCode != http.StatusOK, strings.HasSuffix(kind, "json"):
		defer response.Body.Close()
		text, err := io.ReadAll(io.LimitReader(response.Body, mostFault))
		if err != nil {
			return nil, x.link.lost(x.ctx, err)
		}
		return nil, x.link.answered(response.StatusCode, response.Header, text)
	case kind == "text/html": // all else that is no JSON may be a stream of a server that does not know better
		response.Body.Close()
		return nil, x.link.noStream(kind)
	}
	response.Body = x
	return response, nil
}

// Read reads the answer, see [Exchange.Events].
func (x *Exchange) Read(p []byte) (int, error) {
	n, err := x.body.Read(p)
	x.quiet.Reset(x.link.silence)
	x.left -= int64(n)
	if n > 0 {
		x.tail = append(x.tail, p[:n]...)
		x.tail = bytes.Clone(x.tail[max(0, len(x.tail)-tailBytes):])
	}
	switch {
	case x.left < 0:
		x.err = fmt.Errorf("the reply is longer than %d bytes", mostReply)
		return 0, x.err
	case err != nil && !errors.Is(err, io.EOF):
		x.err = err
	}
	return n, err
}

// Close is for a library.
func (x *Exchange) Close() error { return x.body.Close() }

// Tail is how the stream ended, in its last bytes.
func (x *Exchange) Tail() string { return strings.TrimSpace(string(x.tail)) }

// End ends the try. err is what went wrong; what it is about comes back: a *[Fault], or the error of the
// context that the try began with.
func (x *Exchange) End(ctx context.Context, err error) error {
	defer x.cancel(nil)
	x.quiet.Stop()
	if x.body != nil {
		_ = x.body.Close() // it has been read
	}
	var fault *Fault
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &fault):
		return fault
	case x.err != nil:
		return x.link.lost(x.ctx, x.err)
	}
	return x.link.lost(x.ctx, err)
}
