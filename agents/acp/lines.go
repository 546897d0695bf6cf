package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"

	sdk "github.com/coder/acp-go-sdk"
)

// mostLine is how many bytes one message of an agent's may have. A longer one ends the connection.
const mostLine = 10 << 20

// lines is what an agent writes, without its updates: these are handed on at once. The library would take them in its own
// time, so that a question could be put before what the agent said of it, and would end the connection when many wait.
type lines struct {
	from    *bufio.Reader
	ready   chan struct{} // nothing is read before it is closed
	updates func(json.RawMessage)
	left    []byte // of the line that is being read
}

func newLines(from io.Reader, ready chan struct{}, updates func(json.RawMessage)) *lines {
	return &lines{from: bufio.NewReaderSize(from, 64<<10), ready: ready, updates: updates}
}

func (l *lines) Read(p []byte) (int, error) {
	<-l.ready
	for len(l.left) == 0 {
		line, err := l.next()
		if err != nil && len(line) == 0 {
			return 0, err
		}
		if !l.isUpdate(line) {
			l.left = line
		}
	}
	n := copy(p, l.left)
	l.left = l.left[n:]
	return n, nil
}

// next is a line with its end.
func (l *lines) next() (line []byte, err error) {
	for {
		part, err := l.from.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > mostLine {
			return nil, bufio.ErrTooLong
		}
		if err != bufio.ErrBufferFull { //nolint:errorlint // it is returned as it is
			return line, err
		}
	}
}

// isUpdate hands on a line that is an update.
func (l *lines) isUpdate(line []byte) bool {
	var message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if !bytes.Contains(line, []byte(sdk.ClientMethodSessionUpdate)) || json.Unmarshal(line, &message) != nil ||
		message.Method != sdk.ClientMethodSessionUpdate || len(message.ID) > 0 {
		return false
	}
	l.updates(message.Params)
	return true
}
