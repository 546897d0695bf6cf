package directory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

// Suspend suspends an account that may belong to somebody else, for example since its keys have changed: it answers for
// nobody and receives nothing until it is paired again. Its person is asked elsewhere; earlier votes stay. An unknown
// account changes nothing. After an error the account is suspended until a restart: try again.
func (d *Directory) Suspend(ctx context.Context, via, address string) error {
	door := d.Pairer(via)
	if door == nil {
		return nil
	}
	d.pairing.Lock()
	defer d.pairing.Unlock()
	who := d.owner(via, address)
	if who == "" {
		return nil
	}
	s := permissions.Suspension{Via: via, Address: address, At: d.clock.Stamp()}
	if !d.isSuspended(via, address) {
		d.log.Warn("account suspended: its keys changed; pair it again", "via", via, "person", who)
		d.mu.Lock()
		d.suspended = append(d.suspended, s)
		d.mu.Unlock()
		d.applyPairings()
		d.realign(false)
	}
	noting, done := shared.Noting(ctx)
	defer done()
	return shared.Broken(d.store.Suspend(noting, via, address, who, s.At))
}

func (d *Directory) isSuspended(via, address string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.suspended, func(s permissions.Suspension) bool { return s.Via == via && s.Address == address })
}

// lift ends the suspension of an account.
func (d *Directory) lift(via, address string) {
	d.mu.Lock()
	d.suspended = slices.DeleteFunc(d.suspended, func(s permissions.Suspension) bool { return s.Via == via && s.Address == address })
	d.mu.Unlock()
	d.applyPairings()
}

// removeUnconfirmed removes the accounts that were paired before the store was restored and that the configuration lacks.
func (d *Directory) removeUnconfirmed(people []connectors.Person) {
	for _, p := range d.pairings {
		door := d.Pairer(p.Via)
		if p.SuspendedAt.IsZero() || door == nil || slices.ContainsFunc(d.base.Load().People, func(o connectors.Person) bool {
			return o.Addresses[p.Via] == p.Address
		}) {
			continue
		}
		for _, i := range removeAccount(people, permissions.Suspension{Via: p.Via, Address: p.Address}) {
			people[i].Unconfirmed = append(slices.Clip(people[i].Unconfirmed), p.Via)
		}
	}
}

// removeAccount removes a suspended account from everybody who has it, including by the configuration, and returns whose it was.
func removeAccount(people []connectors.Person, s permissions.Suspension) (whose []int) {
	for i, p := range people {
		if p.Addresses[s.Via] == s.Address {
			people[i] = p.WithAddress(s.Via, "")
			people[i].Suspended = append(slices.Clip(p.Suspended), s.Via)
			whose = append(whose, i)
		}
	}
	return whose
}

// AccountProblem returns the error for a suspended account or a locked person, which says what to do; nil if neither.
func AccountProblem(p connectors.Person, via string) error {
	why := ""
	switch {
	case p.Locked != "":
		why = fmt.Sprintf("%s is locked until: daycared unlock %s", p.Name, p.Locked)
	case !slices.Contains(p.Suspended, via):
		return nil
	case slices.Contains(p.Unconfirmed, via):
		why = fmt.Sprintf("%s's %s account is suspended since the store was restored: confirm it with daycared reinstate %s",
			p.Name, via, permissions.Pairing{Person: p.Name, Via: via}.Name())
	default:
		why = fmt.Sprintf("%s's %s account has changed its keys: enrol it again with daycared pair %[1]s --via %[2]s", p.Name, via)
	}
	return &connectors.UnreachableError{Reason: why}
}

// Suspended lists what has been suspended since the store was restored, for the operator.
func (d *Directory) Suspended(ctx context.Context, id connectors.Identity) (permissions.Suspended, error) {
	if !id.Operator {
		return permissions.Suspended{}, permissions.OperatorOnly()
	}
	all, err := d.store.Suspended(ctx)
	return all, shared.Broken(err)
}

// Reinstate ends the suspension of what the names denote, or of everything without names, and returns it. Operator only.
func (d *Directory) Reinstate(ctx context.Context, id connectors.Identity, names []string) (permissions.Suspended, error) {
	who, err := d.Operator(id)
	if err != nil {
		return permissions.Suspended{}, err
	}
	d.pairing.Lock()
	defer d.pairing.Unlock()
	back, err := d.store.Reinstate(ctx, names, who, id.Via, d.clock.Stamp())
	if err != nil {
		return permissions.Suspended{}, shared.Broken(err)
	}
	if len(back.Pairings) > 0 {
		if err := d.readPairings(context.WithoutCancel(ctx)); err != nil {
			return back, shared.Broken(err)
		}
		d.realign(false)
	}
	return back, nil
}

// Locks returns the locks of people, in no particular order.
func (d *Directory) Locks() []permissions.Lock {
	return slices.DeleteFunc(d.allLocks(), func(l permissions.Lock) bool { return l.Agent() != "" })
}

// StoppedAgents returns the locks of agents, in no particular order.
func (d *Directory) StoppedAgents() []permissions.Lock {
	return slices.DeleteFunc(d.allLocks(), func(l permissions.Lock) bool { return l.Agent() == "" })
}

func (d *Directory) allLocks() []permissions.Lock {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.locks)
}

// AgentMayAsk returns the refusal of whatever a caller asks, and of the use of what it was allowed, while it is stopped; else nil.
func (d *Directory) AgentMayAsk(c permissions.Caller) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.locks {
		if l.Person == permissions.StopOf(c.Name) {
			return permissions.AgentStoppedBy(l)
		}
	}
	return nil
}

// AgentMuted returns the refusal of what a caller asks in a session while it is muted there; else nil.
func (d *Directory) AgentMuted(c permissions.Caller, session string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.locks {
		if l.Person == permissions.MuteOf(c.Name, session) || l.Person == permissions.MuteOf(c.Name, permissions.AllSessions) {
			return permissions.Muted(l)
		}
	}
	return nil
}

// AgentNamed returns the caller of a name, proven or as routes match it, that may ask a person; an empty person is the operator.
func (d *Directory) AgentNamed(ctx context.Context, name, person string) (caller string, err error) {
	s := d.Settings()
	var names []string
	for full := range s.Bindings {
		names = append(names, full)
	}
	tokens, err := d.store.Tokens(ctx)
	if err != nil {
		return "", shared.Unread(err)
	}
	for _, t := range tokens {
		names = append(names, t.Caller(permissions.NoUID).Name)
	}
	if uid, is := strings.CutPrefix(name, "uid:"); is {
		if n, err := strconv.Atoi(uid); err == nil && n >= 0 {
			names = append(names, permissions.CallerUID(n).Name)
		}
	}
	for _, full := range append(names, permissions.Anonymous) {
		c := permissions.Caller{Name: full, UID: permissions.NoUID}
		if n, err := strconv.Atoi(strings.TrimPrefix(full, "uid:")); err == nil {
			c.UID = n
		}
		if (full == name || c.ProvenName() == name) && (person == "" || slices.Contains(s.noticeRecipients(c, s.owner(c)), person)) {
			return c.Root(), nil
		}
	}
	return "", permissions.NoAgentNamed(name)
}

// SetLock puts a lock into force, replacing an earlier one, and ends the person's links; with on false it removes it.
func (d *Directory) SetLock(l permissions.Lock, on bool) {
	d.mu.Lock()
	d.locks = slices.DeleteFunc(slices.Clone(d.locks), func(o permissions.Lock) bool { return o.Person == l.Person })
	if on {
		d.locks = append(d.locks, l)
		maps.DeleteFunc(d.links, func(code string, in pairingLink) bool {
			if in.name == l.Person {
				in.pairer.Dismiss(code)
			}
			return in.name == l.Person
		})
	}
	d.mu.Unlock()
	d.applyPairings()
}

// AccountsOf returns all accounts of a person, including those from an earlier lock; known is false for an unknown name.
func (d *Directory) AccountsOf(name string) (all []string, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.locks {
		if l.Person == name && l.Agent() == "" {
			all, known = append(all, l.Accounts...), true
		}
	}
	for _, p := range d.peopleWithPairings() {
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

// applyLocks marks the people who are locked, by name or by account, and records in each lock the other names. Votes to end a lock end
// with the account that they came from. The mutex is held.
func (d *Directory) applyLocks(people []connectors.Person) {
	for j, l := range d.locks {
		if d.locks[j].OtherNames = nil; l.Agent() != "" {
			continue
		}
		for i, p := range people {
			named := l.Person == p.Name
			if !named && !slices.ContainsFunc(Accounts(p), func(a string) bool { return slices.Contains(l.Accounts, a) }) {
				continue
			}
			if people[i].Locked = l.Person; !named {
				d.locks[j].OtherNames = append(d.locks[j].OtherNames, p.Name)
			}
		}
	}
	theirs := UnlockedAccounts(people)
	for j, l := range d.locks {
		d.locks[j].Unlocking = slices.DeleteFunc(slices.Clone(l.Unlocking), func(said string) bool { return !slices.Contains(theirs, said) })
	}
}

// UnlockedAccounts returns the people who are not locked, once for each of their accounts, as [permissions.Lock] names them.
func UnlockedAccounts(people []connectors.Person) (all []string) {
	for _, p := range people {
		for _, account := range Accounts(p) {
			if p.Locked == "" {
				all = append(all, p.Name+" ("+account+")")
			}
		}
	}
	return all
}

// countEnded counts the accounts that no longer answer for the person for whom they did. The mutex is held.
func (d *Directory) countEnded(were, are []connectors.Person) {
	now := UnlockedAccounts(are)
	for _, p := range were {
		for _, account := range Accounts(p) {
			if p.Locked == "" && !slices.Contains(now, p.Name+" ("+account+")") {
				d.ended[account]++
			}
		}
	}
}

// Locked returns the people who are locked.
func (s *Settings) Locked() (names []string) {
	for _, p := range s.People {
		if p.Locked != "" {
			names = append(names, p.Name)
		}
	}
	return names
}

// Unlocked returns those of some people who are configured and not locked.
func (s *Settings) Unlocked(names ...string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		p, known := s.Person(name)
		return !known || p.Locked != ""
	})
}

// LeaveOutLocked has who is locked asked once they are not, if the others are enough to decide r. If they are not, it is said why.
func (s *Settings) LeaveOutLocked(r *permissions.Request) {
	asked := s.Unlocked(r.Asked...)
	if len(asked) < len(r.Asked) && len(asked) >= max(r.Quorum, 1) {
		r.Asked, r.EscalateTo = asked, append(notIn(r.Asked, asked), r.EscalateTo...)
	}
}
