package simulation

import (
	"testing"
	"time"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store/storetest"
)

// TestTheSimulatedStoreConforms holds the store of the simulation to what the real ones have to do.
func TestTheSimulatedStoreConforms(t *testing.T) {
	made := byte(0)
	storetest.RunRequests(t, storetest.Backend{
		Open: func(*testing.T) engine.Store {
			made++
			return newShelf(time.Now, made)
		},
		Reopen: func(_ *testing.T, s engine.Store) engine.Store { return s },
	})
}
