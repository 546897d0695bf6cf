package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// panickingStore is a store that panics in Open.
type panickingStore struct{ engine.Store }

func (panickingStore) Open(context.Context, permissions.Opening) (permissions.Request, bool, error) {
	panic("boom")
}

// A panic under a call stays in that call: its server survives, and the panic says where it was.
func TestAPanicIsThatOfTheCallItself(t *testing.T) {
	st := &env{
		t: t, dir: t.TempDir(), settings: usual(), people: []connectors.Connector{connectortest.NewMemory(fayAt("phone"), nil)},
		through: func(rows engine.Store) engine.Store { return panickingStore{rows} },
	}
	st.open()
	t.Cleanup(func() { st.stop() })
	defer func() {
		if p := fmt.Sprint(recover()); !strings.Contains(p, "boom") || !strings.Contains(p, "Register") {
			t.Errorf("the call panicked with %s", p)
		}
	}()
	r, err := st.Ask(t.Context(), self, permissions.Request{Kind: permissions.KindTool, Tool: "write_file"})
	t.Errorf("the call returned %s, %v", r.State, err)
}
