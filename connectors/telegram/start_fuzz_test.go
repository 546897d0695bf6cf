package telegram

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzStartCode reads messages as Telegram sends them: only a person's own words in their own chat can bring a code.
func FuzzStartCode(f *testing.F) {
	for _, text := range []string{
		`{"from":{"id":1},"chat":{"type":"private"},"text":"/start abc"}`, `{"from":{"id":1},"chat":{"type":"group"},"text":"/start abc"}`,
		`{"from":{"id":1},"chat":{"type":"private"},"text":"/start@our_bot  abc "}`, `{"chat":{"type":"private"},"text":"/start abc"}`,
		`{"from":{"id":1,"is_bot":true},"chat":{"type":"private"},"text":"/start abc"}`,
		`{"from":{"id":1},"chat":{"type":"private"},"text":"/start abc","forward_origin":{}}`,
		`{"from":{"id":1},"chat":{"type":"private"},"text":"/start abc","via_bot":{"id":7}}`,
		`{"from":{"id":1},"chat":{"type":"private"},"text":"/start abc","sender_business_bot":{"id":7}}`,
		`{"from":{"id":1},"sender_chat":{"id":-1},"chat":{"type":"private"},"text":"/start abc"}`,
		`{"from":{"id":1},"chat":{"type":"private"},"text":"/START abc"}`, `{"from":{"id":1},"chat":{"type":"private"},"text":"/start\nabc"}`,
		`{"from":{"id":1},"chat":{"type":"private"},"text":"/start \u00a0"}`, `{"from":null,"text":"/start x"}`, `{}`, `null`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var m message
		if json.Unmarshal(raw, &m) != nil {
			return
		}
		code, is := startCode(&m)
		if !is {
			return
		}
		if m.From == nil || m.From.IsBot || m.SenderChat != nil || m.Forward != nil || m.Through != nil || m.Business != nil ||
			m.Chat.Type != "private" {
			t.Fatalf("%s brings %q, and is not somebody's own", raw, code)
		}
		if code == "" || !strings.HasPrefix(m.Text, "/start") || !strings.HasSuffix(strings.TrimSpace(m.Text), code) {
			t.Fatalf("%q brings %q", m.Text, code)
		}
	})
}
