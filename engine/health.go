package engine

import "github.com/daycared/daycared/connectors"

// Health is what is wrong with each connector that knows, by name; nil for one that is well.
func (e *Engine) Health() map[string]error {
	health := map[string]error{}
	for _, c := range e.couriers {
		if h, knows := c.connector.(connectors.Healther); knows {
			health[c.connector.Name()] = h.Health()
		}
	}
	return health
}
