package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/directory"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

// Health returns the problem of each connector that reports one, with its clock or the machine's, or with accounts
// there, by the connector's name; nil for a healthy one.
func (e *Engine) Health() map[string]error {
	health := map[string]error{}
	for _, c := range e.dispatchers {
		if h, knows := c.connector.(connectors.HealthChecker); knows {
			health[c.connector.Name()] = h.Health()
		}
		if why := c.skew(); why != nil {
			health[c.connector.Name()] = joined(health[c.connector.Name()], why)
		}
	}
	for _, p := range e.Settings().People {
		ill := slices.Clone(p.Suspended)
		for _, c := range e.dispatchers {
			if isLost(reach(c.connector, p)) {
				ill = append(ill, c.connector.Name())
			}
		}
		for _, via := range ill {
			why := directory.AccountProblem(p, via)
			if c, on := e.Channel(via); on && why == nil {
				why = reach(c, p)
			}
			health[via] = joined(health[via], why)
		}
	}
	return health
}

// joined adds a problem to a channel's problems.
func joined(before, why error) error {
	if before == nil {
		return why
	}
	return fmt.Errorf("%w; %w", before, why)
}

// ReachableVia returns the channels by which each person can be reached, as far as the channels know; screens are not
// included.
func (e *Engine) ReachableVia() map[string][]string {
	ways := map[string][]string{}
	for _, p := range e.Settings().People {
		ways[p.Name] = []string{}
		for _, c := range e.dispatchers {
			if _, screen := c.connector.(connectors.Screen); !screen && reach(c.connector, p) == nil {
				ways[p.Name] = append(ways[p.Name], c.connector.Name())
			}
		}
	}
	return ways
}

// Contacts returns all enabled channels with the people whom each can reach now: everybody configured or, without
// people, the operator.
func (e *Engine) Contacts() []connectors.Contact {
	s := e.Settings()
	people := s.People
	if len(people) == 0 {
		people = []connectors.Person{s.Operator()}
	}
	contacts := make([]connectors.Contact, len(e.dispatchers))
	for i, c := range e.dispatchers {
		_, screen := c.connector.(connectors.Screen)
		contacts[i] = connectors.Contact{Channel: c.connector.Name(), Screen: screen, People: map[string]error{}, Suspended: map[string]error{}}
		if h, knows := c.connector.(connectors.HealthChecker); knows {
			contacts[i].Health = h.Health()
		}
		for _, p := range people {
			contacts[i].People[p.Name] = reachNow(c.connector, p)
			if why := directory.AccountProblem(p, c.connector.Name()); why != nil && p.Locked == "" {
				contacts[i].Suspended[p.Name] = why
			}
		}
	}
	return contacts
}

// reachNow returns nil if a person can be reached at a connector now. Unlike [reach] it includes temporary problems.
func reachNow(c connectors.Connector, p connectors.Person) error {
	if err := directory.AccountProblem(p, c.Name()); err != nil {
		return err
	}
	if reacher, knows := c.(connectors.ReachabilityChecker); knows {
		return reacher.Reach(p)
	}
	return nil
}

// Waiting returns how many requests await an identity's answer, for the operator all of them, and since when the oldest
// does; zero if none does.
func (e *Engine) Waiting(ctx context.Context, id connectors.Identity) (count int, since time.Time, err error) {
	who, err := e.Sees(id)
	if err != nil {
		return 0, time.Time{}, err
	}
	var after permissions.ID
	for {
		rows, err := e.store.Pending(ctx, who, after, shared.Page)
		if err != nil {
			return 0, time.Time{}, shared.Broken(err)
		}
		if count == 0 && len(rows) > 0 {
			since = rows[0].CreatedAt
			if id.Operator {
				count, err = e.CountPending(ctx)
				return count, since, err
			}
		}
		count += len(rows)
		if len(rows) < shared.Page {
			return count, since, nil
		}
		after = rows[len(rows)-1].ID
	}
}

// CountPending returns how many requests are pending.
func (e *Engine) CountPending(ctx context.Context) (int, error) {
	n, err := e.store.CountPending(ctx)
	return n, shared.Broken(err)
}
