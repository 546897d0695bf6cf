package directory

import (
	"fmt"
	"maps"
	"slices"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Locks returns the locks, in no particular order.
func (d *Directory) Locks() []permissions.Lock {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.locks)
}

// SetLock puts a lock into force, replacing the person's earlier one, and ends their pairing links; with on false it
// removes it.
func (d *Directory) SetLock(l permissions.Lock, on bool) {
	d.mu.Lock()
	d.locks = slices.DeleteFunc(slices.Clone(d.locks), func(o permissions.Lock) bool { return o.Person == l.Person })
	if on {
		d.locks = append(d.locks, l)
		maps.DeleteFunc(d.invited, func(code string, in invited) bool {
			if in.name == l.Person {
				in.door.Dismiss(code)
			}
			return in.name == l.Person
		})
	}
	d.mu.Unlock()
	d.refill()
}

// AccountsOf returns all accounts of a person, including those from an earlier lock; known is false for an unknown name.
func (d *Directory) AccountsOf(name string) (all []string, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.locks {
		if l.Person == name {
			all, known = append(all, l.Accounts...), true
		}
	}
	for _, p := range d.filled() {
		if p.Name == name {
			all, known = append(all, Accounts(p)...), true
		}
	}
	slices.Sort(all)
	return slices.Compact(all), known
}

// Accounts returns the accounts of a person, as the audit names them.
func Accounts(p connectors.Person) []string {
	all := []string{AccountOf(connectors.Identity{UID: p.UID})}
	for via, address := range p.Addresses {
		all = append(all, AccountOf(connectors.Identity{Via: via, Address: address, UID: permissions.NoUID}))
	}
	slices.Sort(all)
	return slices.DeleteFunc(all, func(account string) bool { return account == "" })
}

// AccountOf returns the account that an identity acts by; for the operator and the console, the daemon's.
func (s *Settings) AccountOf(id connectors.Identity) string {
	if id.Console || id.Operator {
		id = connectors.Identity{UID: s.UID}
	}
	return AccountOf(id)
}

// AccountOf returns the account that a connection proved, as the audit names it; empty if it proved none.
func AccountOf(id connectors.Identity) string {
	switch {
	case id.Address != "":
		return id.Via + ":" + id.Address
	case id.UID != permissions.NoUID:
		return fmt.Sprintf("uid:%d", id.UID)
	}
	return ""
}

// shut marks the people who are locked, by name or by account, and records in each lock the other names, and when they
// were locked last. The mutex is held.
func (d *Directory) shut(people []connectors.Person) {
	for j, l := range d.locks {
		d.locks[j].Holds = nil
		for i, p := range people {
			named := l.Person == p.Name
			if !named && !slices.ContainsFunc(Accounts(p), func(a string) bool { return slices.Contains(l.Accounts, a) }) {
				continue
			}
			if people[i].Locked = l.Person; !named {
				d.locks[j].Holds = append(d.locks[j].Holds, p.Name)
			}
			if l.At.After(d.locked[p.Name]) {
				d.locked[p.Name] = l.At
			}
		}
	}
	for i, p := range people {
		people[i].LastLocked = d.locked[p.Name]
	}
}
