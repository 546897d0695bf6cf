package wire

import (
	"io"
	"testing"
)

// TestCallsThatWaitForTheirAnswersAreCounted: calls and answers, alone and in batches, and nothing else.
func TestCallsThatWaitForTheirAnswersAreCounted(t *testing.T) {
	u := &Unanswered{Most: 3}
	out := u.Writer(discard{})
	for n, step := range []struct {
		read, written string
		waits         int64
	}{
		{`{"id":1,"method":"a"}`, "", 1},
		{`{"method":"a"}`, `{"method":"b"}`, 1},
		{`{"id":null,"method":"a"}`, `{"id":7,"method":"b"}`, 1},
		{`{"id":7,"result":{}}`, `{"id":null,"error":{}}`, 1},
		{`[{"id":2,"method":"a"},{"id":"3","method":"a"},{"method":"a"}]` + "\n", "", 3},
		{"no json", `{"id":1,"result":{"method":"x"}}` + "\n", 2},
		{`{"id":4,"method":"a"}`, `[{"id":2,"result":{}},{"id":"3","error":{}}]`, 1},
	} {
		if err := u.Received([]byte(step.read)); err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
		if _, err := out.Write([]byte(step.written)); err != nil {
			t.Fatal(err)
		}
		if got := u.now.Load(); got != step.waits {
			t.Errorf("after step %d %d wait, want %d", n, got, step.waits)
		}
	}
	if err := u.Received([]byte(`[{"id":5,"method":"a"},{"id":6,"method":"a"},{"id":7,"method":"a"}]`)); err == nil {
		t.Error("four calls wait")
	}
}

type discard struct{ io.WriteCloser }

func (discard) Write(p []byte) (int, error) { return len(p), nil }
