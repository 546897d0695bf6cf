package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// FuzzDecode parses bodies with the test's own parser, which looks only for ambiguities: a body with one must be refused.
func FuzzDecode(f *testing.F) {
	for _, body := range lenient {
		f.Add([]byte(body[:min(len(body), 200)]))
	}
	for _, body := range []string{
		`{"answer":"allow_once","digest":"sha256:00","really":true,"call":2,"comment":"c"}`, ` {"answer" : "deny"}` + "\n",
		`{"answer":"deny","answer":"allow_once"}`, `{"answer":"deny","Answer":"allow_once"}`, `{"answer":"deny","an\u0073wer":"x"}`,
		`{"answer":"\ud83d\ude00"}`, `{"answer":"\ude00"}`, `{"call":1e0}`, `{"call":1.0}`, `{"call":-1}`, `{"call":9223372036854775808}`,
		`{"really":"true"}`, `{"answer":null}`, `{"answer":"a","":1}`,
	} {
		f.Add([]byte(body))
	}
	known := []string{"answer", "call", "comment", "digest", "really"}
	f.Fuzz(func(t *testing.T, body []byte) {
		type decision struct {
			Answer  string `json:"answer"`
			Call    int    `json:"call"`
			Comment string `json:"comment"`
			Digest  string `json:"digest"`
			Really  bool   `json:"really"`
		}
		var in decision
		if err := Decode(body, &in); err != nil {
			return
		}
		if odd := oddities(body, known); odd != "" {
			t.Fatalf("%s in %q is taken as %+v", odd, body, in)
		}
		var lenient decision
		if err := json.Unmarshal(body, &lenient); err != nil || lenient != in {
			t.Fatalf("%q is read as %+v, and by another reader as %+v, %v", body, in, lenient, err)
		}
	})
}

// oddities are what strict JSON excludes, token by token.
func oddities(body []byte, known []string) string {
	type level struct {
		object bool
		names  []string
		name   bool // a name comes next
	}
	var open []*level
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			break
		}
		var in *level
		if len(open) > 0 {
			in = open[len(open)-1]
		}
		if name, is := token.(string); is && in != nil && in.object && in.name {
			switch {
			case slices.Contains(in.names, name):
				return "a name that is there twice"
			case len(open) == 1 && !slices.Contains(known, name):
				return "an unknown name"
			}
			in.names, in.name = append(in.names, name), false
			continue
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			open = append(open, &level{object: token == json.Delim('{'), name: true})
			if len(open) > MaxDepth {
				return "too many levels"
			}
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			open[len(open)-1].name = true
		}
	}
	switch {
	case !json.Valid(body):
		return "no JSON, or more than one value"
	case !bytes.Equal(body, []byte(strings.ToValidUTF8(string(body), "\uFFFD"))):
		return "text that is no UTF-8"
	}
	return ""
}
