package provider

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cenkalti/backoff/v5"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/internal/wire"
)

const (
	maxReply  = 32 << 20 // bytes of one reply on the wire
	maxEvent  = 2 << 20  // bytes of one event: some servers send a whole reply in one, six bytes per character
	maxFault  = 64 << 10 // bytes read of an error response
	tailBytes = 64
	maxTotal  = time.Hour // of one reply, without a retry: 128,000 tokens come in it at 36 a second
)

// Reasons for ending an attempt.
var (
	errSilence = errors.New("silence")
	errLong    = errors.New("too long")
)

// Attempt is a request and its response stream; a library uses it as HTTP client. [Attempt.End] must be called after reading.
type Attempt struct {
	link   *Client
	ctx    context.Context //nolint:containedctx // that of the one request
	cancel context.CancelCauseFunc
	quiet  *time.Timer
	total  *time.Timer
	body   io.ReadCloser
	left   int64
	tail   []byte
	err    error // why the stream ended early
}

// Exchange starts an attempt.
func (l *Client) Exchange(ctx context.Context) *Attempt {
	x := &Attempt{link: l, left: maxReply}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	x.quiet = time.AfterFunc(l.silence, func() { x.cancel(errSilence) })
	x.total = time.AfterFunc(maxTotal, func() { x.cancel(errLong) })
	return x
}

// Context is the context for the request.
func (x *Attempt) Context() context.Context { return x.ctx }

// Do sends the request. If the response is no stream, the error is a *[Fault].
func (x *Attempt) Do(r *http.Request) (*http.Response, error) {
	r.Header.Set("User-Agent", "daycared")
	response, err := x.link.client.Do(r)
	if err != nil {
		x.link.Close() // idle ones may be dead as well
		return nil, x.link.lost(x.ctx, err)
	}
	x.quiet.Reset(x.link.silence)
	x.body = response.Body
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case response.StatusCode != http.StatusOK, strings.HasSuffix(kind, "json"):
		defer response.Body.Close()
		text, err := io.ReadAll(io.LimitReader(response.Body, maxFault))
		if err != nil {
			return nil, x.link.lost(x.ctx, err)
		}
		return nil, x.link.answered(response.StatusCode, response.Header, text)
	case kind == "text/html": // anything else but JSON may be a stream of a sloppy server
		response.Body.Close()
		return nil, x.link.noStream(kind)
	}
	response.Body = x
	return response, nil
}

// Read reads the response; see [Attempt.Events].
func (x *Attempt) Read(p []byte) (int, error) {
	n, err := x.body.Read(p)
	x.quiet.Reset(x.link.silence)
	x.left -= int64(n)
	if n > 0 {
		x.tail = append(x.tail, p[:n]...)
		x.tail = bytes.Clone(x.tail[max(0, len(x.tail)-tailBytes):])
	}
	switch {
	case x.left < 0:
		x.err = fmt.Errorf("the reply is longer than %d bytes", maxReply)
		return 0, x.err
	case err != nil && !errors.Is(err, io.EOF):
		x.err = err
	}
	return n, err
}

// Close implements [io.Closer] for libraries.
func (x *Attempt) Close() error { return x.body.Close() }

// End ends the attempt. It turns err into a *[Fault], or the error of ctx, with which the attempt started.
func (x *Attempt) End(ctx context.Context, err error) error {
	defer x.cancel(nil)
	x.quiet.Stop()
	x.total.Stop()
	if x.body != nil {
		_ = x.body.Close() // already read
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

// Try calls once until it returns a reply or a permanent fault, the attempts are used up, or ctx ends. It calls again
// before each retry. The error is a *models.Error or ctx's.
func (l *Client) Try(ctx context.Context, once func() (models.Reply, error), again func()) (models.Reply, error) {
	steps := wire.NewBackoff(l.retry.Wait, 30*time.Second)
	var last error
	begun := false
	reply, err := backoff.Retry(ctx, func() (models.Reply, error) {
		if begun {
			again()
		}
		begun = true
		reply, err := once()
		last = err
		var fault *Fault
		switch {
		case err == nil:
			return reply, nil
		case !errors.As(err, &fault) || !fault.Transient || fault.After > l.retry.Longest:
			return reply, backoff.Permanent(err)
		case fault.After > 0:
			return reply, &backoff.RetryAfterError{Duration: fault.After}
		}
		return reply, err
	}, backoff.WithBackOff(steps), backoff.WithMaxTries(uint(l.retry.Tries)), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(_ error, in time.Duration) {
			l.log.Debug("ask model, retrying", "in", in, "err", last)
		}))
	var fault *Fault
	switch {
	case err == nil:
		return reply, nil
	case ctx.Err() != nil:
		return models.Reply{}, ctx.Err()
	case errors.As(last, &fault):
		return models.Reply{}, &models.Error{Kind: fault.kind, Text: fault.Text, After: fault.After}
	}
	return models.Reply{}, err
}

var errEvent = fmt.Errorf("an event of the reply is longer than %d bytes", maxEvent)

// Events reads the response as an event stream and passes each event on: its name, which may be empty, and its data, in
// which every line ends with a line break and which is valid only during the call. An incomplete last event is dropped.
// An error of take ends the reading; io.EOF ends it as the end of the stream does.
func (x *Attempt) Events(take func(name string, data []byte) error) error {
	lines := bufio.NewScanner(x)
	lines.Buffer(nil, maxEvent)
	var name string
	var data []byte
	for lines.Scan() {
		field, value, _ := bytes.Cut(lines.Bytes(), []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(lines.Bytes()) == 0:
			err := take(name, data)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			name, data = "", data[:0]
		case string(field) == "event":
			name = string(value)
		case string(field) == "data":
			data = append(append(data, value...), '\n')
		}
		if len(data) > maxEvent {
			return errEvent
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return errEvent
	}
	return lines.Err()
}

// Text is a string in an event. It tolerates other types, as their JSON, and characters split between two events.
type Text string

// UnmarshalJSON never fails.
func (t *Text) UnmarshalJSON(raw []byte) error {
	if raw[0] != '"' {
		if string(raw) != "null" {
			*t = Text(raw)
		}
		return nil
	}
	var all []byte
	for rest := raw[1 : len(raw)-1]; len(rest) > 0; {
		n := 0
		for n < len(rest) {
			c, size := utf8.DecodeRune(rest[n:])
			if c == utf8.RuneError && size == 1 {
				break
			}
			n += size
		}
		var valid string
		_ = json.Unmarshal(slices.Concat([]byte{'"'}, rest[:n], []byte{'"'}), &valid) // a part of a valid string
		broken := min(n+1, len(rest))
		all = append(append(all, valid...), rest[n:broken]...)
		rest = rest[broken:]
	}
	*t = Text(all)
	return nil
}

// Number is a count or index in an event, not negative. Some servers write 1.0 or "1".
type Number int64

// UnmarshalJSON never fails. Anything else is ignored.
func (n *Number) UnmarshalJSON(raw []byte) error {
	const most = 1 << 53
	if f, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64); err == nil && f >= 0 && f <= most {
		*n = Number(f)
	}
	return nil
}

// storable makes calls storable: each gets an id unique in the conversation and an input that is JSON. Some servers give
// no ids, or start counting again in each reply, which others refuse to read.
func storable(calls []models.Call, p models.Prompt) []models.Call {
	seen := map[string]bool{}
	for _, m := range p.Messages {
		for _, c := range m.Calls {
			seen[c.ID] = true
		}
	}
	for i := range calls {
		c := &calls[i]
		for c.ID == "" || seen[c.ID] {
			c.ID = rand.Text()[:9] // nine alphanumeric characters: some models accept nothing else
		}
		seen[c.ID] = true
		c.Input = input(string(c.Input))
	}
	return calls
}

// input is the model's text if it is a JSON object, {} if it is empty, else a JSON string.
func input(text string) json.RawMessage {
	trimmed := strings.TrimSpace(strings.ToValidUTF8(text, "�"))
	if trimmed == "" {
		return json.RawMessage(`{}`)
	}
	if raw := json.RawMessage(trimmed); trimmed[0] == '{' && json.Valid(raw) {
		return raw
	}
	raw, _ := json.Marshal(trimmed) // a string is always encodable
	return raw
}

// Name makes a tool name that providers accept: 1 to 64 letters, digits, - and _. Models make up others, and a
// conversation with one would be refused from then on.
func Name(tool string) string {
	clean := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, tool)
	return cmp.Or(clean[:min(len(clean), 64)], "_")
}

// Object makes a call's input an object, as providers require.
func Object(input json.RawMessage) json.RawMessage {
	if trimmed := bytes.TrimSpace(input); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed) {
		return trimmed
	}
	if len(input) == 0 || !json.Valid(input) {
		input, _ = json.Marshal(string(input)) // a string is always encodable
	}
	raw, _ := json.Marshal(map[string]json.RawMessage{"not_an_object": input}) // valid
	return raw
}

// Schema makes a tool's input schema an object with properties, as providers require.
func Schema(raw json.RawMessage) map[string]any {
	var schema map[string]any
	if json.Unmarshal(raw, &schema) != nil || schema == nil {
		schema = map[string]any{}
	}
	schema["type"] = "object"
	if _, ok := schema["properties"].(map[string]any); !ok {
		schema["properties"] = map[string]any{}
	}
	return schema
}
