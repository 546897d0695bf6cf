package engine

import (
	"context"
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

// Ways are the channels by which each person can be reached, as far as these know; screens are not among them.
func (e *Engine) Ways() map[string][]string {
	ways := map[string][]string{}
	for _, p := range e.settings.Load().People {
		ways[p.Name] = []string{}
		for _, c := range e.couriers {
			if _, screen := c.connector.(connectors.Screen); !screen && reach(c.connector, p) == nil {
				ways[p.Name] = append(ways[p.Name], c.connector.Name())
			}
		}
	}
	return ways
}

// CountPending is how many requests wait for an answer.
func (e *Engine) CountPending(ctx context.Context) (int, error) {
	n, err := e.store.CountPending(ctx)
	return n, broken(err)
}
