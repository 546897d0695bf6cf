package connectortest_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
)

func TestMemoryRemembersWhatAgentsSay(t *testing.T) {
	m := connectortest.NewMemory(tapOf, nil)
	away := errors.New("away")
	m.FailSend(2, away)
	s := connectors.AgentMessage{To: fay, Agent: "helper", Text: strings.Repeat("word ", 300)}
	if _, _, err := m.SendMessage(t.Context(), s); !errors.Is(err, away) {
		t.Errorf("Talk = %v; want %v", err, away)
	}
	if err := m.ShowTyping(t.Context(), fay); !errors.Is(err, away) {
		t.Errorf("Typing = %v; want %v", err, away)
	}
	for part, more := range []bool{true, false, false} {
		s.Part = part
		ref, got, err := m.SendMessage(t.Context(), s)
		if err != nil || got != more || (ref == "") != (part == 2) {
			t.Errorf("part %d: %q, more %v, %v", part, ref, got, err)
		}
	}
	said, err := m.Spoken(t.Context(), func(s []connectortest.Spoken) bool { return len(s) == 2 })
	if err != nil || !strings.HasPrefix(said[1].Text, "helper (2/2): word") || said[1].Saying.Part != 1 || said[0].Ref == said[1].Ref {
		t.Errorf("it was said: %+v, %v", said, err)
	}
	if err := m.ShowTyping(t.Context(), fay); err != nil {
		t.Error(err)
	}
	if at, err := m.Typed(t.Context(), func(at []time.Time) bool { return len(at) == 1 }); err != nil || at[0].IsZero() {
		t.Errorf("typed at %v, %v", at, err)
	}
}
