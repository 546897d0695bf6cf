package provider

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Events reads the answer as a stream of events, and passes each on: its name, which may be empty, and its data, in which
// every line ends with a line break, and which is only valid during the call. An event that the stream breaks off in is
// none. An error of take ends the reading; io.EOF does so as if the stream had ended.
func (x *Exchange) Events(take func(name string, data []byte) error) error {
	lines := bufio.NewScanner(x)
	lines.Buffer(nil, mostReply)
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
