package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is how deep arrays and objects may lie in one another.
const MaxDepth = 16

// format is JSON as it crosses our sockets.
var format = huma.Format{
	Marshal: func(w io.Writer, v any) error {
		line, err := Encode(v)
		if err != nil {
			return err
		}
		_, err = w.Write(append(line, '\n'))
		return err
	},
	Unmarshal: Decode,
}

// Decode reads one JSON value strictly into v.
func Decode(data []byte, v any) error {
	if err := checkDepth(data); err != nil {
		return err
	}
	return json.Unmarshal(data, v, json.RejectUnknownMembers(true))
}

// decoders are those of checkDepth: what one makes itself room for is as much again as the body of most calls.
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
	defer d.Reset(nothing) // which lets go of data
	d.Reset(bytes.NewBuffer(data))
	for {
		_, err := d.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if d.StackDepth() > MaxDepth {
			return fmt.Errorf("JSON may be at most %d levels deep", MaxDepth)
		}
	}
}

// Encode writes v on one line. Text that is not UTF-8 is made so: an answer must not be lost over somebody's comment.
func Encode(v any) ([]byte, error) {
	return json.Marshal(v, json.FormatNilSliceAsNull(true), json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
}
