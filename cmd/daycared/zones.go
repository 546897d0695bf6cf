package main

import (
	"sync/atomic"
	"time"

	"github.com/daycared/daycared/connectors"
)

// zones is where the people of the configuration in force live. It is safe for concurrent use; the zero value knows
// nobody.
type zones struct {
	people atomic.Pointer[[]connectors.Person]
}

func (z *zones) set(people []connectors.Person) { z.people.Store(&people) }

// of is the zone of a person by name, nil where none is known.
func (z *zones) of(name string) *time.Location {
	people := z.people.Load()
	if people == nil {
		return nil
	}
	for _, p := range *people {
		if p.Name == name {
			return p.Location
		}
	}
	return nil
}
