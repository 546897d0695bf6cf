// Package directory knows who is who: the people of the configuration with the accounts that were paired with them
// (pairing.go), without those that are suspended, and who is locked (suspend.go) or away (away.go). Its [Settings] say who is
// asked about a request (route.go).
package directory

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
	"github.com/daycared/daycared/permissions/timing"
)

// Store keeps what the configuration does not say about people.
type Store interface {
	// Tokens lists every token that is not revoked, by name.
	Tokens(ctx context.Context) ([]permissions.Token, error)

	// Pair stores a pairing, replacing the person's earlier one, and returns that: its Address is empty without one. The
	// account of another person is refused with [permissions.CodeNotYours]; an equal pairing changes nothing. A
	// suspension of the account ends in the same commit.
	Pair(ctx context.Context, p permissions.Pairing, by, via string) (was permissions.Pairing, err error)
	// Pairings lists every pairing, by person.
	Pairings(ctx context.Context) ([]permissions.Pairing, error)
	// Unpair removes and returns a person's account at a channel, or refuses with [permissions.CodeUnknown]. A suspended
	// account stays suspended, whoever is paired with it next.
	Unpair(ctx context.Context, person, channel, by, via string, at time.Time) (permissions.Pairing, error)
	// Senders lists the unknown senders that are stored, with what is proposed about them.
	Senders(ctx context.Context) ([]permissions.UnknownSender, error)
	// PutProposal stores the proposal about a sender, or withdraws it, as r says, with notices of it. It refuses with
	// [permissions.CodeUnknown] if the sender is not stored any more.
	PutProposal(ctx context.Context, s permissions.UnknownSender, r permissions.Record, tell []permissions.Notice) error
	// Suspend suspends an account of the person who, from a time until it is paired again: it may belong to somebody
	// else. It is audited; repeating it changes nothing.
	Suspend(ctx context.Context, via, address, who string, at time.Time) error
	// Suspensions lists what Suspend has suspended.
	Suspensions(ctx context.Context) ([]permissions.Suspension, error)

	// Locks lists the locks, including those whose row was changed outside the store.
	Locks(ctx context.Context) ([]permissions.Lock, error)
	// PutLock stores a lock, replacing the earlier one, or ends it, as r says.
	// The notices are left in the same commit.
	PutLock(ctx context.Context, l permissions.Lock, r permissions.Record, notices ...permissions.Notice) error

	// Absences lists who is away, perhaps with some whose time is over.
	Absences(ctx context.Context) ([]permissions.Absence, error)
	// AskedFrom reports whether the account uid has asked anything since a time, as a caller or, if that is empty, as anybody.
	AskedFrom(ctx context.Context, uid int, caller string, since time.Time) (bool, error)

	// PutAbsence stores an absence, replacing the earlier one, or ends it, as r says.
	PutAbsence(ctx context.Context, a permissions.Absence, r permissions.Record) error

	// Languages has the language code of each person's app, by name, as PutLanguage stored it last.
	Languages(ctx context.Context) (map[string]string, error)
	PutLanguage(ctx context.Context, person, language string) error

	// Suspended lists what has been suspended since the store was restored.
	Suspended(ctx context.Context) (permissions.Suspended, error)
	// Reinstate ends the suspension of grants and tokens by id, and of pairings by [permissions.Pairing.Name]; without
	// names, of everything. It returns what was reinstated. If a name denotes nothing suspended, it reinstates nothing
	// and refuses with [permissions.CodeUnknown].
	Reinstate(ctx context.Context, names []string, by, via string, at time.Time) (permissions.Suspended, error)

	// Missing lists the grants, tokens and pairings that are open by the audit and whose rows somebody deleted, as the records that
	// close them.
	Missing(ctx context.Context) ([]permissions.Record, error)
	// CloseMissing writes such records, so that a row that is put back opens nothing.
	CloseMissing(ctx context.Context, all []permissions.Record, by, via string, at time.Time) error
}

// Config are the parts of a [Directory].
type Config struct {
	Store    Store
	Settings Settings
	Clock    timing.Clock
	Log      *slog.Logger

	// Changed is called whenever other settings are in force. It must not call the directory.
	Changed func()
	// Realign has the pending requests follow the settings soon; moved: a person has another account.
	Realign func(moved bool)
	// Recovered has a person asked again in a channel.
	Recovered func(ctx context.Context, via, person, group string) error
	// Noticed is called when notices were stored.
	Noticed func()
	// ReadsChats reports whether this daemon receives what is written in chats; nil: it does.
	ReadsChats func() bool
}

// Directory knows people and their accounts. It is safe for concurrent use.
type Directory struct {
	store      Store
	clock      timing.Clock
	log        *slog.Logger
	changed    func()
	realign    func(moved bool)
	recovered  func(ctx context.Context, via, person, group string) error
	noticed    func()
	readsChats func() bool

	channels   map[string]connectors.Connector
	settings   atomic.Pointer[Settings] // in force: base with the paired accounts and without the suspended ones
	base       atomic.Pointer[Settings] // as configured
	pairing    sync.Mutex               // one pairing at a time
	grantRules *grantRules

	mu        sync.Mutex
	pairings  []permissions.Pairing
	owners    map[string]string // see Settings
	suspended []permissions.Suspension
	locks     []permissions.Lock
	ended     map[string]int // how often accounts have ceased to answer for somebody
	absences  []permissions.Absence
	changes   atomic.Int64           // of absences
	links     map[string]pairingLink // by code
	languages map[string]string      // language codes by name, as their app said last
	missing   []permissions.Record   // see [Directory.NoteMissing]
}

// New makes a directory of the people in the settings; call [Directory.Connect] and [Directory.ReadPeople].
func New(c Config) *Directory {
	d := &Directory{
		store: c.Store, clock: c.Clock, log: c.Log, changed: c.Changed, realign: c.Realign, recovered: c.Recovered,
		noticed: c.Noticed, readsChats: c.ReadsChats,
		channels: map[string]connectors.Connector{}, links: map[string]pairingLink{},
		ended: map[string]int{}, languages: map[string]string{}, grantRules: &grantRules{set: map[string]compiledRules{}},
	}
	c.Settings.grantRules = d.grantRules
	d.base.Store(&c.Settings)
	d.settings.Store(&c.Settings)
	return d
}

// Connect adds channels.
func (d *Directory) Connect(channels ...connectors.Connector) {
	for _, c := range channels {
		d.channels[c.Name()] = c
	}
}

// Channel returns the channel of that name; on is false if it is not switched on.
func (d *Directory) Channel(name string) (c connectors.Connector, on bool) {
	c, on = d.channels[name]
	return c, on
}

// Settings returns the settings in force.
func (d *Directory) Settings() *Settings { return d.settings.Load() }

// Pairer returns the channel of that name, if people can be paired there, or else nil.
func (d *Directory) Pairer(via string) connectors.Pairer {
	door, _ := d.channels[via].(connectors.Pairer)
	return door
}

// LocalTime is the wall clock in the person's time zone.
func (d *Directory) LocalTime(p connectors.Person) time.Time {
	if p.Location == nil {
		return d.clock.Now()
	}
	return d.clock.Now().In(p.Location)
}

// Configure replaces the settings, and reports whether a person has another account than before, or a chat may show something else.
func (d *Directory) Configure(s Settings) (moved bool) {
	was := d.base.Swap(&s)
	d.applyPairings()
	return AccountsChanged(was.People, s.People) || !maps.Equal(was.OnlyTitles, s.OnlyTitles) ||
		!slices.EqualFunc(was.Routes, s.Routes, func(a, b Route) bool { return !a.OnlyTitle && !b.OnlyTitle || reflect.DeepEqual(a, b) })
}

// ReadPeople reads what is stored about people.
func (d *Directory) ReadPeople(ctx context.Context) error {
	return cmp.Or(
		d.ReadOwners(ctx), d.readPairings(ctx),
		reread(ctx, d, d.store.Suspensions, &d.suspended), reread(ctx, d, d.readLocks, &d.locks),
		reread(ctx, d, d.store.Absences, &d.absences), reread(ctx, d, d.store.Languages, &d.languages))
}

// readLocks returns the stored locks, and those that could not be stored yet.
func (d *Directory) readLocks(ctx context.Context) ([]permissions.Lock, error) {
	all, err := d.store.Locks(ctx)
	for _, l := range d.allLocks() {
		if l.Unsaved != nil {
			all = append(slices.DeleteFunc(all, func(o permissions.Lock) bool { return o.Person == l.Person }), l)
		}
	}
	return all, err
}

// reread puts into force what the store has of something.
func reread[T any](ctx context.Context, d *Directory, read func(context.Context) (T, error), into *T) error {
	stored, err := read(ctx)
	if err != nil {
		return err
	}
	d.mu.Lock()
	*into = stored
	d.mu.Unlock()
	d.applyPairings()
	return nil
}

// ReadAgain is ReadPeople while the directory is in use. The caller ensures that no lock changes meanwhile.
func (d *Directory) ReadAgain(ctx context.Context) error {
	d.pairing.Lock()
	defer d.pairing.Unlock()
	return d.ReadPeople(ctx)
}

// Who returns the name of the person behind an identity, or a refusal.
func (d *Directory) Who(id connectors.Identity) (string, error) {
	p, err := d.Person(id)
	return p.Name, err
}

// Person returns the person behind an identity, or a refusal.
func (d *Directory) Person(id connectors.Identity) (connectors.Person, error) {
	p, known := d.settings.Load().Identify(id)
	switch {
	case p.Locked != "":
		return connectors.Person{}, permissions.LockedOut(p.Locked)
	case !known:
		return connectors.Person{}, permissions.NotConfigured(id.UID)
	}
	if in := i18n.Known(id.Language); in != "" && d.noteLanguage(p.Name, in) {
		p, _ = d.settings.Load().Identify(id)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p.Ended = d.ended[d.settings.Load().AccountOf(id)]
	return p, nil
}

// noteLanguage notes in which language a person's app is, and reports whether that is new.
func (d *Directory) noteLanguage(name string, in i18n.Language) bool {
	d.mu.Lock()
	was := d.languages[name]
	d.languages[name] = string(in)
	d.mu.Unlock()
	if was == string(in) {
		return false
	}
	if err := d.store.PutLanguage(context.Background(), name, string(in)); err != nil {
		d.log.Warn("store the language of a person", "person", name, "err", err)
	}
	d.applyPairings()
	return true
}

// Operator returns the name of the operator behind an identity, or a refusal.
func (d *Directory) Operator(id connectors.Identity) (string, error) {
	if !id.Operator {
		return "", permissions.OperatorOnly()
	}
	return d.Who(id)
}

// askingAccountFor is how long after its last request an account counts as one that agents ask from.
const askingAccountFor = 30 * 24 * time.Hour

// RefuseAskingAccount refuses, except the operator, an account from which a caller has asked, or anybody if that is empty: an agent that
// runs as the account could do what its person does.
func (d *Directory) RefuseAskingAccount(ctx context.Context, id connectors.Identity, caller string) error {
	if id.Operator || id.UID < 0 || d.settings.Load().AllowSameUser {
		return nil
	}
	switch asked, err := d.store.AskedFrom(ctx, id.UID, caller, d.clock.Now().Add(-askingAccountFor)); {
	case err != nil:
		return shared.Broken(err)
	case asked:
		return permissions.AskingAccount(id.UID)
	}
	return nil
}

// MaySeeRequestsOf returns whose requests an identity may see; empty, everybody's, for the operator.
func (d *Directory) MaySeeRequestsOf(id connectors.Identity) (who string, err error) {
	if who, err = d.Who(id); id.Operator {
		who = ""
	}
	return who, err
}

// People returns everybody in the configuration with their paired accounts, without the suspended ones.
func (d *Directory) People() []connectors.Person { return slices.Clone(d.settings.Load().People) }

// TokenOwner returns the person of a new token: the named one, else the person of the existing tokens of that name.
func (d *Directory) TokenOwner(ctx context.Context, name, person string) (string, error) {
	if _, known := d.settings.Load().Person(person); person != "" && (!known || person == OperatorName) {
		return "", permissions.Invalid(fmt.Errorf("nobody in people is called %q", person))
	}
	tokens, err := d.store.Tokens(ctx)
	if err != nil {
		return "", shared.Unread(err)
	}
	for _, t := range tokens {
		switch {
		case t.Name != name || t.Person == person:
		case person == "":
			person = t.Person
		default:
			return "", permissions.Invalid(fmt.Errorf("there is a token of %s that is not of %s; revoke it first, or write another name",
				name, person))
		}
	}
	return person, nil
}

// ReadOwners reads the owners of all tokens.
func (d *Directory) ReadOwners(ctx context.Context) error {
	return reread(ctx, d, func(ctx context.Context) (map[string]string, error) {
		tokens, err := d.store.Tokens(ctx)
		owners := map[string]string{}
		for _, t := range tokens {
			if t.Person != "" {
				owners[t.Caller(permissions.NoUID).Name] = t.Person
			}
		}
		return owners, err
	}, &d.owners)
}

// applyPairings applies the pairings to the configuration and removes the suspended accounts.
func (d *Directory) applyPairings() {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := *d.base.Load()
	s.owners, s.grantRules = d.owners, d.grantRules
	s.People = d.peopleWithPairings()
	for _, a := range d.suspended {
		if d.Pairer(a.Via) != nil {
			removeAccount(s.People, a)
		}
	}
	d.removeUnconfirmed(s.People)
	d.applyLocks(s.People)
	d.countEnded(d.settings.Load().People, s.People)
	for i, p := range s.People { // what a locked person said does not count
		at := slices.IndexFunc(d.absences, func(a permissions.Absence) bool { return a.Person == p.Name })
		if at >= 0 && p.Locked == "" {
			s.People[i].Away = d.absences[at]
		}
	}
	d.settings.Store(&s)
	d.changed()
}

// peopleWithPairings returns everybody in the configuration, with their paired accounts. The lock is held.
func (d *Directory) peopleWithPairings() []connectors.Person {
	people := slices.Clone(d.base.Load().People)
	for i, p := range people {
		people[i].Language = cmp.Or(p.Language, i18n.Known(d.languages[p.Name]))
	}
	for _, p := range d.pairings {
		if door := d.Pairer(p.Via); door != nil {
			addPairedAccount(people, p)
		}
	}
	return people
}

// addPairedAccount gives a person their paired account, unless the configuration gives them one, or gives it to another person: the
// file wins. The account's alias on the channel applies either way.
func addPairedAccount(people []connectors.Person, p permissions.Pairing) {
	taken := slices.ContainsFunc(people, func(o connectors.Person) bool { return o.Addresses[p.Via] == p.Address })
	for i, o := range people {
		if o.Name == p.Person && o.Addresses[p.Via] == "" && !taken {
			people[i] = o.WithAddress(p.Via, p.Address)
		}
		if p.Alias != "" && people[i].Addresses[p.Via] == p.Address {
			people[i] = people[i].WithAlias(p.Via, p.Alias)
		}
	}
}

// UnknownPerson refuses an unknown name and lists the known ones.
func (d *Directory) UnknownPerson(name string) error {
	people := d.base.Load().People
	names := make([]string, len(people))
	for i, p := range people {
		names[i] = p.Name
	}
	known := "there are " + strings.Join(names, ", ")
	if near := permissions.Nearest(name, names); near != "" {
		known = "did you mean " + near + "? " + known
	}
	if len(people) == 0 {
		known = "there are no people; write them there"
	}
	return permissions.NoPerson(name, known)
}

// AccountsChanged reports whether a person has another account than before.
func AccountsChanged(before, now []connectors.Person) bool {
	return slices.ContainsFunc(now, func(p connectors.Person) bool {
		return slices.ContainsFunc(before, func(o connectors.Person) bool {
			return o.Name == p.Name && !maps.Equal(o.Addresses, p.Addresses)
		})
	})
}
