package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"

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

// checkDepth reads every token, so it also refuses what is not one JSON value: a byte order mark, invalid UTF-8,
// duplicate names, anything after the value.
func checkDepth(data []byte) error {
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return errors.New("JSON must not begin with a byte order mark")
	}
	d := jsontext.NewDecoder(bytes.NewReader(data))
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
