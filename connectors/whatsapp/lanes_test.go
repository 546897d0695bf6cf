package whatsapp

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors/whatsapp/whatsapptest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// While WhatsApp does not confirm what is sent to fay, whose phone is off, sam's cards are sent at once: half of them at
// least, so that a busy machine is not taken for a busy chat, and all of them while fay's is still not confirmed.
func TestOneChatHoldsUpNoOther(t *testing.T) {
	for name, pending := range map[string]int{"E2/one that is not confirmed": 1, "F2/many": 8} {
		t.Run(name, func(t *testing.T) {
			tag, err := permissions.ParseTag("@read:/sam")
			if err != nil {
				t.Fatal(err)
			}
			s := newEnv(t, func(s *env) {
				s.settings.Routes = []engine.Route{{Tags: []permissions.Tag{tag}, Ask: []string{"sam"}}, {Ask: []string{"fay"}}}
			})
			s.phones["fay"].Leaves()
			s.server.LoseAcks(1)
			sent := len(s.server.Stanzas())
			for i := range pending {
				s.ask(network(fmt.Sprintf("fay's %d", i)))
			}
			s.until("the first is sent", func() bool {
				return slices.ContainsFunc(s.server.Stanzas()[sent:], func(n whatsapptest.Stanza) bool { return n.Is("message", "") })
			})
			var took []time.Duration
			for i := range 5 {
				q := network(fmt.Sprintf("sam's %d", i))
				q.Tags = []permissions.Tag{tag}
				began := time.Now()
				s.ask(q)
				s.card("sam", q.Reason)
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			if took[2] > 500*time.Millisecond {
				t.Errorf("sam's cards took %v", took)
			}
			t.Log(took)
			rows, err := s.rows.Pending(t.Context(), "fay", "", 1)
			if err != nil || len(rows) != 1 {
				t.Fatal(rows, err)
			}
			copies, err := s.rows.Copies(t.Context(), rows[0].ID)
			if err != nil || len(copies) != 1 || !copies[0].SentAt.IsZero() {
				t.Errorf("fay's card is noted as shown: %v, %v", copies, err)
			}
		})
	}
}
