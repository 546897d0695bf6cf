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
	mostReply = 32 << 20 // bytes of one reply, as it comes
	mostEvent = 2 << 20  // bytes of one event: some servers send a whole reply in one, with six bytes for a letter
	mostFault = 64 << 10 // bytes that are read of an error
	tailBytes = 64
)

// Why a try is given up.
var (
	errSilence = errors.New("silence")
	errLong    = errors.New("too long")
)

// Exchange is one try: one request and the stream that answers it. To a library it is an HTTP client. [Exchange.End] is
// called once the stream has been read.
type Exchange struct {
	link   *Link
	ctx    context.Context //nolint:containedctx // that of the one request
	cancel context.CancelCauseFunc
	quiet  *time.Timer
	total  *time.Timer
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
	x.total = time.AfterFunc(l.total, func() { x.cancel(errLong) })
	return x
}

// Context is what the request is to be made with.
func (x *Exchange) Context() context.Context { return x.ctx }

// Do sends the request. What is not a stream is a *[Fault].
func (x *Exchange) Do(r *http.Request) (*http.Response, error) {
	r.Header.Set("User-Agent", "daycared")
	response, err := x.link.client.Do(r)
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
	x.total.Stop()
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

// Try calls once until it gives a reply, its fault does not pass by itself, the tries are spent, or ctx ends. Before
// each try but the first it calls again. The error is a *models.Error, or that of ctx.
func (l *Link) Try(ctx context.Context, once func() (models.Reply, error), again func()) (models.Reply, error) {
	steps := wire.Tries(l.retry.Wait, 30*time.Second)
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
		case !errors.As(err, &fault) || !fault.Passes || fault.After > l.retry.Longest:
			return reply, backoff.Permanent(err)
		case fault.After > 0:
			return reply, &backoff.RetryAfterError{Duration: fault.After}
		}
		return reply, err
	}, backoff.WithBackOff(steps), backoff.WithMaxTries(uint(l.retry.Tries)), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(_ error, in time.Duration) {
			l.log.Debug("a model is asked again", "in", in, "err", last)
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

var errEvent = fmt.Errorf("an event of the reply is longer than %d bytes", mostEvent)

// Events reads the answer as a stream of events, and passes each on: its name, which may be empty, and its data, in which
// every line ends with a line break, and which is only valid during the call. An event that the stream breaks off in is
// none. An error of take ends the reading; io.EOF does so as if the stream had ended.
func (x *Exchange) Events(take func(name string, data []byte) error) error {
	lines := bufio.NewScanner(x)
	lines.Buffer(nil, mostEvent)
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
		if len(data) > mostEvent {
			return errEvent
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return errEvent
	}
	return lines.Err()
}

// Text is a string of an event. It takes what servers send instead: a value of another type is its JSON, and a letter may
// be split between two events, so that neither is valid UTF-8.
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
		_ = json.Unmarshal(slices.Concat([]byte{'"'}, rest[:n], []byte{'"'}), &valid) // a piece of a string that is valid
		broken := min(n+1, len(rest))
		all = append(append(all, valid...), rest[n:broken]...)
		rest = rest[broken:]
	}
	*t = Text(all)
	return nil
}

// Number is a count or an index of an event, from 0. Some servers write it as 1.0 or "1".
type Number int64

// UnmarshalJSON never fails. What is no such number is passed over.
func (n *Number) UnmarshalJSON(raw []byte) error {
	const most = 1 << 53
	if f, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64); err == nil && f >= 0 && f <= most {
		*n = Number(f)
	}
	return nil
}

// Calls makes calls fit to be kept: each has an id that is no other's in the conversation, and an input that is JSON. Some
// servers give no ids, or begin to count anew with every reply, which others refuse to be told.
func Calls(calls []models.Call, p models.Prompt) []models.Call {
	seen := map[string]bool{}
	for _, m := range p.Messages {
		for _, c := range m.Calls {
			seen[c.ID] = true
		}
	}
	for i := range calls {
		c := &calls[i]
		for c.ID == "" || seen[c.ID] {
			c.ID = rand.Text()[:9] // nine letters and digits: some models take no other
		}
		seen[c.ID] = true
		c.Input = input(string(c.Input))
	}
	return calls
}

// input is what the model wrote, if that is a JSON object. Nothing is an empty one, and anything else a string.
func input(text string) json.RawMessage {
	trimmed := strings.TrimSpace(strings.ToValidUTF8(text, "�"))
	if trimmed == "" {
		return json.RawMessage(`{}`)
	}
	if raw := json.RawMessage(trimmed); trimmed[0] == '{' && json.Valid(raw) {
		return raw
	}
	raw, _ := json.Marshal(trimmed) // a string always can be written
	return raw
}

// Name is the name of a tool as providers take it back: 1 to 64 letters, digits, - and _. Models make up others, and a
// conversation that has one would be refused from then on.
func Name(tool string) string {
	clean := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, tool)
	return cmp.Or(clean[:min(len(clean), 64)], "_")
}

// Object is the input of a call as providers take it back: an object in any case.
func Object(input json.RawMessage) json.RawMessage {
	if trimmed := bytes.TrimSpace(input); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed) {
		return trimmed
	}
	if len(input) == 0 || !json.Valid(input) {
		input, _ = json.Marshal(string(input)) // a string always can be written
	}
	raw, _ := json.Marshal(map[string]json.RawMessage{"not_an_object": input}) // it is valid
	return raw
}

// Schema is that of a tool's input as providers take it: an object with properties.
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

// Spent is the usage that a provider told, and an estimate of what it did not.
func Spent(told models.Usage, p models.Prompt, r models.Reply) models.Usage {
	if told.Read == 0 {
		told.Read = models.Estimate(p)
	}
	if told.Written == 0 {
		told.Written = models.EstimateMessage(models.Message{Role: models.Assistant, Text: r.Text, Calls: r.Calls})
	}
	return told
}
