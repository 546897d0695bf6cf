package dispatch

import (
	"fmt"
	"slices"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/directory"
)

// Health returns the problem of each connector that reports one, with its clock or the machine's, or with accounts
// there, by the connector's name; nil for a healthy one.
func (d *Dispatch) Health() map[string]error {
	health := map[string]error{}
	for _, c := range d.dispatchers {
		if h, knows := c.connector.(connectors.HealthChecker); knows {
			health[c.connector.Name()] = h.Health()
		}
		if why := c.skew(); why != nil {
			health[c.connector.Name()] = joined(health[c.connector.Name()], why)
		}
	}
	for _, p := range d.dir.Settings().People {
		ill := slices.Clone(p.Suspended)
		for _, c := range d.dispatchers {
			if isLost(reach(c.connector, p)) {
				ill = append(ill, c.connector.Name())
			}
		}
		for _, via := range ill {
			why := directory.AccountProblem(p, via)
			if c, on := d.dir.Channel(via); on && why == nil {
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
func (d *Dispatch) ReachableVia() map[string][]string {
	ways := map[string][]string{}
	for _, p := range d.dir.Settings().People {
		ways[p.Name] = []string{}
		for _, c := range d.dispatchers {
			if _, screen := c.connector.(connectors.Screen); !screen && reach(c.connector, p) == nil {
				ways[p.Name] = append(ways[p.Name], c.connector.Name())
			}
		}
	}
	return ways
}

// Contacts returns all enabled channels with the people whom each can reach now: everybody configured or, without
// people, the operator.
func (d *Dispatch) Contacts() []connectors.Contact {
	s := d.dir.Settings()
	people := s.People
	if len(people) == 0 {
		people = []connectors.Person{s.Operator()}
	}
	contacts := make([]connectors.Contact, len(d.dispatchers))
	for i, c := range d.dispatchers {
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
