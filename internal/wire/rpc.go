package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/daycared/daycared/permissions"
)

// envelope are the members of a JSON-RPC message.
var envelope = []string{"jsonrpc", "id", "method", "params", "result", "error"}

// maxBatch bounds the calls that one message makes: connections and rates are counted in messages.
const maxBatch = 20

// CheckMessage refuses a JSON-RPC message or batch that parsers could read differently: more than one value, a
// duplicate name at any depth, or an envelope member in another case. So it does a batch that is too long.
func CheckMessage(text []byte) error {
	if err := CheckNames(text); err != nil {
		return err
	}
	messages := []jsontext.Value{text}
	if jsontext.Value(text).Kind() == '[' {
		if err := json.Unmarshal(text, &messages, jsontext.AllowInvalidUTF8(true)); err != nil {
			return err
		}
		if len(messages) > maxBatch {
			return fmt.Errorf("a batch has at most %d messages", maxBatch)
		}
	}
	for _, message := range messages {
		if err := CheckEnvelope(message); err != nil {
			return err
		}
	}
	return nil
}

// CheckEnvelope is [CheckMessage] for the members of one message only, not for their values.
func CheckEnvelope(text []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if d.PeekKind() != '{' {
		return errors.New("a message is a JSON object")
	}
	_, err := d.ReadToken()
	var seen []string
	for err == nil && d.PeekKind() == '"' {
		var token jsontext.Token
		if token, err = d.ReadToken(); err != nil {
			break
		}
		name := token.String()
		at := slices.IndexFunc(envelope, func(member string) bool { return strings.EqualFold(member, name) })
		switch {
		case slices.Contains(seen, name):
			return fmt.Errorf("the member %q is there twice", name)
		case at >= 0 && envelope[at] != name:
			return fmt.Errorf("the member is %q, not %q", envelope[at], name)
		}
		seen = append(seen, name)
		err = d.SkipValue()
	}
	return err
}

// Lines reads JSON-RPC messages, one per line, and checks each before passing it on.
type Lines struct {
	from *bufio.Reader
	most int
	take func(line []byte) (passes bool, err error)
	left []byte // rest of the current line

	// TooLong is called for a line that is too long, which is skipped. If it is nil, such a line ends the stream.
	TooLong func()
}

// NewLines reads lines of at most so many bytes. take reports whether a line is passed
// on; its error ends the stream.
func NewLines(from io.Reader, most int, take func(line []byte) (passes bool, err error)) *Lines {
	return &Lines{from: bufio.NewReaderSize(from, 64<<10), most: most, take: take}
}

// Read implements [io.Reader].
func (l *Lines) Read(p []byte) (int, error) {
	for len(l.left) == 0 {
		line, err := l.next()
		if err != nil && len(line) == 0 {
			return 0, err
		}
		passes, err := l.take(line)
		if err != nil {
			return 0, err
		}
		if passes {
			l.left = line
		}
	}
	n := copy(p, l.left)
	l.left = l.left[n:]
	return n, nil
}

// next is a line with its line end.
func (l *Lines) next() (line []byte, err error) {
	for size := 0; ; {
		part, err := l.from.ReadSlice('\n')
		if size += len(part); size <= l.most {
			line = append(line, part...)
		} else if line = nil; l.TooLong == nil {
			return nil, bufio.ErrTooLong
		}
		if size > l.most && err == nil {
			l.TooLong()
			size = 0
			continue
		}
		if err != bufio.ErrBufferFull { //nolint:errorlint // it is returned as it is
			return line, err
		}
	}
}

// MaxUnanswered is how many calls of a program may be unanswered at once. One more ends its connection.
const MaxUnanswered = 100

// MaxServerName is the most bytes of an MCP server's name.
const MaxServerName = 24

// serverName matches a name without two consecutive underscores, which end it in the name of a tool.
var serverName = regexp.MustCompile(`^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$`)

// IsServerName reports whether no tool's name with that server's can be taken for another's.
func IsServerName(name string) bool {
	return serverName.MatchString(name) && len(name) <= MaxServerName
}

// Unanswered bounds how many calls of a program at the other end are unanswered at once, since each takes memory until its answer is
// written. It is safe for concurrent use.
type Unanswered struct {
	Most int64

	now atomic.Int64
}

// Received counts the calls in a message that was read. It fails if too many are unanswered.
func (u *Unanswered) Received(message []byte) error {
	calls, _ := callsAndAnswers(message)
	if u.now.Add(calls) > u.Most {
		return fmt.Errorf("more than %d calls wait for their answers", u.Most)
	}
	return nil
}

// Writer counts the answers that are written to a stream, each by one call of Write.
func (u *Unanswered) Writer(to io.WriteCloser) io.WriteCloser { return answers{to, u} }

type answers struct {
	io.WriteCloser
	to *Unanswered
}

func (a answers) Write(message []byte) (int, error) {
	n, err := a.WriteCloser.Write(message)
	_, answers := callsAndAnswers(message)
	a.to.now.Add(-answers)
	return n, err
}

// callsAndAnswers counts the calls and the answers in a JSON-RPC message or batch.
func callsAndAnswers(text []byte) (calls, answers int64) {
	messages := []jsontext.Value{bytes.TrimSpace(text)}
	loose := json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if messages[0].Kind() == '[' {
		_ = json.Unmarshal(text, &messages, loose) // what is no message is no call
	}
	for _, message := range messages {
		var is struct {
			ID     jsontext.Value `json:"id"`
			Method jsontext.Value `json:"method"`
		}
		switch err := json.Unmarshal(message, &is, loose); {
		case err != nil || len(is.ID) == 0 || is.ID.Kind() == 'n':
		case len(is.Method) > 0:
			calls++
		default:
			answers++
		}
	}
	return calls, answers
}

// MaxDepth is the maximum nesting of arrays and objects.
const MaxDepth = 16

// Decode reads one JSON value strictly into v.
func Decode(data []byte, v any) error {
	err := checkDepth(data)
	if err == nil {
		err = json.Unmarshal(data, v, json.RejectUnknownMembers(true))
	}
	return permissions.PlainJSON(err)
}

// CheckNames refuses text that is not one JSON value, or has a duplicate name in an object at any depth.
func CheckNames(text []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowInvalidUTF8(true))
	switch _, err := d.ReadValue(); {
	case errors.Is(err, io.EOF):
		return errors.New("there is nothing")
	case err != nil:
		return fmt.Errorf("it is not JSON whose names stand there once: %w", permissions.PlainJSON(err))
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one value")
	}
	return nil
}

// decoders are reused by checkDepth: a new one's buffer is as large as most bodies.
var (
	decoders sync.Pool
	nothing  = bytes.NewReader(nil)
)

// checkDepth reads every token, so it also refuses what is not one JSON value: a byte order mark, invalid UTF-8,
// duplicate names, anything after the value.
func checkDepth(data []byte) error {
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return errors.New("JSON must not begin with a byte order mark")
	}
	d, kept := decoders.Get().(*jsontext.Decoder)
	if !kept {
		d = new(jsontext.Decoder)
	}
	defer decoders.Put(d)
	defer d.Reset(nothing) // releases data
	d.Reset(bytes.NewBuffer(data))
	for {
		token, err := d.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if token.Kind() == '0' {
			if _, err := strconv.ParseFloat(token.String(), 64); err != nil {
				return errors.New("the JSON has a number beyond 1.8e308, the largest that can be read")
			}
		}
		if d.StackDepth() > MaxDepth {
			return fmt.Errorf("JSON may be at most %d levels deep", MaxDepth)
		}
	}
}

// Encode writes v on one line. Invalid UTF-8 is repaired, so that no answer is lost because of a comment.
func Encode(v any) ([]byte, error) {
	return json.Marshal(v, json.FormatNilSliceAsNull(true), json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
}
