package engine

import (
	"fmt"

	"github.com/daycared/daycared/connectors"
)

// Health is what is wrong with each connector that knows, and with the accounts of people there, by the connector's name;
// nil for one that is well.
func (e *Engine) Health() map[string]error {
	health := map[string]error{}
	for _, c := range e.couriers {
		if h, knows := c.connector.(connectors.Healther); knows {
			health[c.connector.Name()] = h.Health()
		}
	}
	for _, p := range e.settings.Load().People {
		for _, via := range p.Suspended {
			why := suspended(p, via)
			if before := health[via]; before != nil {
				why = fmt.Errorf("%w; %w", before, why)
			}
			health[via] = why
		}
	}
	return health
}
