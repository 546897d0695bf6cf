package whatsapptest

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/coder/websocket"
	"go.mau.fi/whatsmeow/proto/waWa6"
	"go.mau.fi/whatsmeow/socket"
	"google.golang.org/protobuf/proto"
)

// frames is a websocket of WhatsApp: each frame has its length in three bytes before it, and the client's first one
// WhatsApp's header before that. Frames do not fit messages of the websocket.
type frames struct {
	ctx    context.Context //nolint:containedctx // it is the life of this connection, which ends both directions
	ws     *websocket.Conn
	rest   []byte
	headed bool
}

// errWent is matched by errors of a connection that ended, politely or because its client died.
var errWent = errors.New("the client went away")

func (f *frames) read() ([]byte, error) {
	for {
		if !f.headed && len(f.rest) >= len(socket.WAConnHeader) {
			if !bytes.HasPrefix(f.rest, socket.WAConnHeader) {
				return nil, fmt.Errorf("the header is %x", f.rest[:len(socket.WAConnHeader)])
			}
			f.rest, f.headed = f.rest[len(socket.WAConnHeader):], true
		}
		if f.headed && len(f.rest) >= socket.FrameLengthSize {
			end := socket.FrameLengthSize + int(f.rest[0])<<16 + int(f.rest[1])<<8 + int(f.rest[2])
			if len(f.rest) >= end {
				frame := bytes.Clone(f.rest[socket.FrameLengthSize:end])
				f.rest = f.rest[end:]
				return frame, nil
			}
		}
		_, more, err := f.ws.Read(f.ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errWent, err)
		}
		f.rest = append(f.rest, more...)
	}
}

func (f *frames) write(frame []byte) error {
	n := len(frame)
	if err := f.ws.Write(f.ctx, websocket.MessageBinary, join([]byte{byte(n >> 16), byte(n >> 8), byte(n)}, frame)); err != nil {
		return fmt.Errorf("%w: %w", errWent, err)
	}
	return nil
}

func (f *frames) handshake() (*waWa6.HandshakeMessage, error) {
	frame, err := f.read()
	if err != nil {
		return nil, err
	}
	var m waWa6.HandshakeMessage
	return &m, proto.Unmarshal(frame, &m)
}
