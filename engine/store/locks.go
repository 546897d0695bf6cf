package store

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/permissions"
)

const lockColumns = `person, accounts, locked_at, locked_by, via, unlocking`

func lockFields(l *permissions.Lock) []any {
	return []any{&l.Person, list[string]{&l.Accounts}, instant{&l.At}, &l.By, &l.Via, list[string]{&l.Unlocking}}
}

// lockGate is the inverse of a gate: its rows shut something. A row whose seal does not hold shuts it too.
var lockGate = gate[permissions.Lock]{
	table: "locks", fields: lockFields, sealed: lockFields,
	since: func(l *permissions.Lock) *time.Time { return &l.At }, // never zero: a restore suspends no lock
	open:  `SELECT ` + lockColumns + `, mac FROM locks ORDER BY person`,
	set:   `UPDATE locks SET locked_at = $1, mac = $2 WHERE person = $3`,
	key:   func(l *permissions.Lock) []any { return []any{l.Person} },
	name:  func(l permissions.Lock) string { return "lock of " + l.Person },
	made:  func(l permissions.Lock) time.Time { return l.At },
	agrees: func(l permissions.Lock, said *permissions.Entry) bool {
		return maps.Equal(l.Record("", "", "", time.Time{}).Detail, said.Detail)
	},
}

var writeLock = replaceRow("locks", lockColumns+`, mac`)

const (
	deleteLock = `DELETE FROM locks WHERE person = $1`

	// countLocks is 0 for a copy from before there were locks, else 1.
	countLocks = `SELECT COUNT(*) FROM sqlite_schema WHERE name = 'locks'`
)

// Locks lists the locked people, those too whose row somebody deleted. In a row whose seal does not hold, the people who agreed to end
// the lock are ignored.
func (s *Store) Locks(ctx context.Context) (locks []permissions.Lock, err error) {
	err = s.read(ctx, func(from source) error {
		found, err := collect(ctx, from, "", lockGate.rowFields, lockGate.open)
		for _, r := range found {
			if !lockGate.hasValidSeal(s.seals, r) {
				s.log.Error("lock without a valid seal stays in force", "err", s.advised(unsealed(lockGate.name(r.row))))
				if r.row.Unlocking = nil; r.row.Agent() != "" { // then only the operator ends it
					r.row.Accounts = nil
				}
			}
			locks = append(locks, r.row)
		}
		missing, failed := s.missingRestrictions(ctx, from, restrictions{Locks: locks})
		for _, l := range missing.Locks { // in place of a row that says something else
			locks = append(slices.DeleteFunc(locks, func(o permissions.Lock) bool { return o.Person == l.Person }), l)
		}
		slices.SortFunc(locks, func(a, b permissions.Lock) int { return cmp.Compare(a.Person, b.Person) })
		return cmp.Or(err, failed)
	})
	return locks, err
}

// PutLock replaces or ends a lock, as the record says, and leaves notices about it.
func (s *Store) PutLock(ctx context.Context, l permissions.Lock, r permissions.Record, notices ...permissions.Notice) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		s.changeRestrictions(ctx, t, func() {
			if r.Type == permissions.PersonUnlocked || r.Type == permissions.AgentResumed {
				t.exec(ctx, deleteLock, l.Person)
			} else {
				t.exec(ctx, writeLock, lockGate.args(s.seals, l)...)
			}
			s.append(ctx, t, r)
		})
		for _, n := range notices {
			insertNotice(ctx, t, n)
		}
		return nil
	})
}

const (
	readUnheeded = `SELECT requests.id, session, state, decided_at, COALESCE(person, ''), COALESCE(sent_at, 0) ` +
		`FROM requests LEFT JOIN request_copies AS copies ON copies.request = requests.number AND sent_at > 0 ` +
		`WHERE caller = $1 AND decided_at > $2 ` +
		`AND (state IN ('denied', 'expired') OR timed_out) AND decided_via <> 'rule' ORDER BY decided_at DESC LIMIT 0 + $3`

	maxUnheeded = 500

	readResumed = `SELECT ` + entryColumns + gateEntries + ` AND audit.request = '' AND audit.at > $1 ` +
		`AND audit.type = ` + resumedType + `) CROSS JOIN audit ON audit.key = k`
)

// Unheeded implements [engine.Store].
func (s *Store) Unheeded(ctx context.Context, caller string, since time.Time) ([]permissions.Unheeded, error) {
	none, known, version := s.withoutUnheeded.get(caller)
	if known {
		return none, s.checkPathsLately(ctx)
	}
	all, err := reading(ctx, s, func(from source) ([]permissions.Unheeded, error) {
		fields := func(u *permissions.Unheeded) []any {
			return []any{&u.ID, &u.Session, &u.State, instant{&u.At}, &u.Person, instant{&u.SentAt}}
		}
		found, err := collect(ctx, from, "a request that was denied or not answered", fields, readUnheeded, caller, micros(since), maxUnheeded)
		if err != nil || len(found) == 0 {
			return nil, err
		}
		resumed, err := collect(ctx, from, "an entry", entryFields, readResumed, micros(since))
		for _, e := range resumed { // by then people want to be asked again
			if of := (permissions.Lock{Person: e.Detail["person"]}).Agent(); of == caller || of == (permissions.Caller{Name: caller}).Root() {
				found = slices.DeleteFunc(found, func(u permissions.Unheeded) bool { return !u.At.After(e.At) })
			}
		}
		return found, err
	})
	if err == nil && len(all) == 0 {
		s.withoutUnheeded.put(caller, nil, version)
	}
	return all, err
}

const (
	addSuspension = `INSERT INTO suspensions (via, address, at) VALUES ($1, $2, $3) ON CONFLICT (via, address) DO NOTHING`

	putSuspension = `INSERT INTO suspensions (via, address, at) VALUES ($1, $2, $3) ` +
		`ON CONFLICT (via, address) DO UPDATE SET at = excluded.at`

	readSuspensions = `SELECT via, address, at FROM suspensions ORDER BY via, address`
)

func suspensionFields(a *permissions.Suspension) []any {
	return []any{&a.Via, &a.Address, instant{&a.At}}
}

// Suspend implements [engine.Store].
func (s *Store) Suspend(ctx context.Context, via, address, who string, at time.Time) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		s.changeRestrictions(ctx, t, func() {
			if t.affected(ctx, addSuspension, via, address, micros(at)) > 0 {
				account := permissions.Pairing{Person: who, Via: via, Address: address}
				s.append(ctx, t, pairingRecord(permissions.AccountSuspended, account, who, via, at))
			}
		})
		return nil
	})
}

// Suspensions lists the accounts that are suspended, those too whose row somebody deleted.
func (s *Store) Suspensions(ctx context.Context) ([]permissions.Suspension, error) {
	return reading(ctx, s, func(from source) ([]permissions.Suspension, error) {
		all, err := collect(ctx, from, "", suspensionFields, readSuspensions)
		missing, failed := s.missingRestrictions(ctx, from, restrictions{Suspensions: all})
		return append(all, missing.Suspensions...), cmp.Or(err, failed)
	})
}

// lift ends the suspension of an account, and reports whether there was one.
func (s *Store) lift(ctx context.Context, t *tx, via, address string) (was bool) {
	s.changeRestrictions(ctx, t, func() {
		was = t.affected(ctx, `DELETE FROM suspensions WHERE via = $1 AND address = $2`, via, address) > 0
	})
	return was
}

func pairingRecord(what permissions.Type, p permissions.Pairing, by, via string, at time.Time) permissions.Record {
	r := permissions.Record{
		Type: what, At: at, Actor: by, Via: via,
		Detail: map[string]string{"person": p.Person, "via": p.Via, "address": p.Address},
	}
	if p.Alias != "" {
		r.Detail["alias"] = p.Alias
	}
	return r
}

const readApprovedBy = `SELECT ` + sealedRequest + ` FROM requests WHERE state <> 'pending' AND state = 'approved' ` +
	`AND pruned IN (FALSE, TRUE) AND decided_at >= $1 AND void_at = 0 AND EXISTS (SELECT 1 FROM request_votes ` +
	`WHERE request = requests.number AND voter = $2 AND at >= $1 AND answer <> 'deny') AND (used_at <> 0) = $3 LIMIT 0 + $4`

// ApprovedBy lists at most limit unrevoked approvals that a person voted for since a time, unused ones first.
func (s *Store) ApprovedBy(ctx context.Context, person string, since time.Time, limit int) (all []permissions.Request, err error) {
	err = s.read(ctx, func(from source) error {
		all = nil
		for _, used := range []bool{false, true} {
			some, _, err := s.many(ctx, from, readApprovedBy, micros(since), person, used, limit-len(all))
			if err != nil {
				return err
			}
			all = append(all, some...)
		}
		slices.SortFunc(all, func(a, b permissions.Request) int { return cmp.Compare(a.Number, b.Number) })
		return nil
	})
	return all, err
}

const readAskedFrom = `SELECT EXISTS (SELECT 1 FROM requests WHERE state = 'pending' AND caller_uid IN ($1, -2) ` +
	`AND ($2 = '' OR caller = $2)) OR EXISTS (SELECT 1 FROM requests WHERE state <> 'pending' AND pruned IN (FALSE, TRUE) ` +
	`AND decided_at >= $3 AND caller_uid IN ($1, -2) AND ($2 = '' OR caller = $2))` // -2: permissions.AnyUID

// AskedFrom implements [directory.Store].
func (s *Store) AskedFrom(ctx context.Context, uid int, caller string, since time.Time) (bool, error) {
	return reading(ctx, s, func(from source) (bool, error) {
		n, err := count(ctx, from, readAskedFrom, uid, caller, micros(since))
		return n > 0, err
	})
}

// Deleting the row of a lock or a suspension would end it. So the store's sealed identity lists these rows too.

// restrictions is the list of locks and suspensions.
type restrictions struct {
	Locks       []permissions.Lock
	Suspensions []permissions.Suspension
	// Since is the last entry from before the audit recorded which rows were pruned; nil: it does not yet.
	Since *int64 `json:",omitempty"`
	// Gone are the grants and tokens closed in the store that a restore replaces, until the audit has them.
	Gone []permissions.Record `json:",omitempty"`
}

const writeRestrictions = `UPDATE meta SET shut = $1`

func readRestrictions(ctx context.Context, from source) (is restrictions, err error) {
	locks, err := collect(ctx, from, "", lockGate.rowFields, lockGate.open)
	if err != nil {
		return is, err
	}
	for _, l := range locks {
		is.Locks = append(is.Locks, l.row)
	}
	is.Suspensions, err = collect(ctx, from, "", suspensionFields, readSuspensions)
	return is, err
}

func (i *identity) decodeRestrictions() (said restrictions, err error) {
	if i.restrictions != "" {
		err = json.Unmarshal([]byte(i.restrictions), &said)
	}
	return said, err
}

// readRestrictionEntries finds the entries that lock or suspend somebody, or end that.
const readRestrictionEntries = `SELECT ` + keyedColumns + gateEntries + ` AND audit.request = '') CROSS JOIN audit ON audit.key = k ` +
	`WHERE audit.type IN ('PAIRED', 'ACCOUNT_SUSPENDED', 'PERSON_LOCKED', 'PERSON_UNLOCKED', 'UNLOCK_ASKED', 'AGENT_STOPPED', ` +
	`'AGENT_MUTED', 'AGENT_RESUMED') ORDER BY k`

// missingRestrictions returns the locks and suspensions that the audit has and is lacks.
func (s *Store) missingRestrictions(ctx context.Context, from source, is restrictions) (said restrictions, err error) {
	last := map[[3]string]*permissions.Entry{} // by row
	err = s.eachEntry(ctx, from, readRestrictionEntries, func(e *permissions.Entry, sealed bool) {
		row := [3]string{"", e.Detail["person"]}
		if e.Type == permissions.Paired || e.Type == permissions.AccountSuspended {
			row = [3]string{"suspension", e.Detail["via"], e.Detail["address"]}
		}
		if sealed {
			last[row] = e
		}
	})
	for _, e := range last {
		is.collectMissing(e, &said)
	}
	return said, err
}

// collectMissing adds to said what an entry, the last one of its row, shuts and l lacks.
func (l restrictions) collectMissing(e *permissions.Entry, said *restrictions) {
	d := e.Detail
	switch e.Type {
	case permissions.PersonLocked, permissions.UnlockAsked, permissions.AgentStopped, permissions.AgentMuted:
		if !slices.ContainsFunc(l.Locks, func(o permissions.Lock) bool { return lockGate.agrees(o, e) }) {
			accounts := strings.FieldsFunc(d["accounts"], func(r rune) bool { return strings.ContainsRune(", ", r) })
			said.Locks = append(said.Locks, permissions.Lock{Person: d["person"], Accounts: accounts, At: e.At, By: e.Actor, Via: e.Via})
		}
	case permissions.AccountSuspended:
		if !slices.ContainsFunc(l.Suspensions, func(a permissions.Suspension) bool { return a.Via == d["via"] && a.Address == d["address"] }) {
			said.Suspensions = append(said.Suspensions, permissions.Suspension{Via: d["via"], Address: d["address"], At: e.At})
		}
	}
}

// changeRestrictions puts back rows that the list or the audit has and the tables lack, then changes what is shut, and the list.
func (s *Store) changeRestrictions(ctx context.Context, t *tx, change func()) {
	own, err := readIdentity(ctx, t)
	t.fail(err)
	said, err := own.decodeRestrictions()
	t.fail(err)
	is, err := readRestrictions(ctx, t)
	t.fail(err)
	missing, err := s.missingRestrictions(ctx, t, restrictions{
		Locks: slices.Concat(is.Locks, said.Locks), Suspensions: slices.Concat(is.Suspensions, said.Suspensions),
	})
	t.fail(err)
	if is.Since = said.Since; !reflect.DeepEqual(is, said) {
		s.restoreRestrictions(ctx, t, said, is)
	}
	s.restoreRestrictions(ctx, t, missing, is)
	change()
	is, err = readRestrictions(ctx, t)
	t.fail(err)
	if is.Since = said.Since; is.Since == nil {
		is.Since = &t.seq
	}
	if reflect.DeepEqual(is, said) {
		return
	}
	text, err := encode(is)
	t.fail(err)
	t.exec(ctx, writeRestrictions, text)
	t.fail(sealIdentity(ctx, t, s.seals))
}

// restoreRestrictions restores locks and suspensions that somebody deleted or changed, and logs each.
func (s *Store) restoreRestrictions(ctx context.Context, t *tx, said, is restrictions) {
	if t.err != nil { // is may be incomplete
		return
	}
	put := func(name, text string, args []any, r permissions.Record) {
		s.log.Error("row deleted or changed behind daycared's back: restored", "row", name)
		t.exec(ctx, text, args...)
		s.append(ctx, t, r)
	}
	for _, l := range said.Locks {
		if !slices.ContainsFunc(is.Locks, func(o permissions.Lock) bool { return reflect.DeepEqual(o, l) }) {
			put(lockGate.name(l), writeLock, lockGate.args(s.seals, l), l.Record(l.Type(), l.By, l.Via, s.now()))
		}
	}
	for _, a := range said.Suspensions {
		if !slices.Contains(is.Suspensions, a) {
			account := permissions.Pairing{Via: a.Via, Address: a.Address}
			put("suspension of "+a.Via+" "+a.Address, putSuspension, suspensionFields(&a),
				pairingRecord(permissions.AccountSuspended, account, "", a.Via, s.now()))
		}
	}
}

// The table away has who is away. A row whose seal does not hold counts as none: its person is asked.

const (
	readAbsences = `SELECT person, until_at, to_name, at, via, mac FROM away ORDER BY person`

	deleteAbsence = `DELETE FROM away WHERE person = $1 AND until_at = $2`
)

var writeAbsence = replaceRow("away", `person, until_at, to_name, at, via, mac`)

func absenceFields(a *permissions.Absence) []any {
	return []any{&a.Person, instant{&a.Until}, &a.To, instant{&a.At}, &a.Via}
}

var absenceGate = gate[permissions.Absence]{
	table: "away", fields: absenceFields, sealed: absenceFields,
	name: func(a permissions.Absence) string { return "absence of " + a.Person },
}

// Absences lists who is away, and who was and has said nothing since.
func (s *Store) Absences(ctx context.Context) ([]permissions.Absence, error) {
	return reading(ctx, s, func(from source) ([]permissions.Absence, error) {
		return readSealedRows(ctx, s, from, absenceGate, readAbsences)
	})
}

// PutAbsence replaces or, if it is still there, ends the absence of a person, as the record says.
func (s *Store) PutAbsence(ctx context.Context, a permissions.Absence, r permissions.Record) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		if r.Type == permissions.PersonAway {
			t.exec(ctx, writeAbsence, absenceGate.args(s.seals, a)...)
		} else if t.affected(ctx, deleteAbsence, a.Person, micros(a.Until)) == 0 {
			return nil
		}
		s.append(ctx, t, r)
		return nil
	})
}

const (
	readLanguages = `SELECT person, language FROM languages`

	writeLanguage = `INSERT INTO languages (person, language) VALUES ($1, $2) ` +
		`ON CONFLICT (person) DO UPDATE SET language = excluded.language`
)

// Languages implements [engine.Store]. Nothing is decided by a language, so its rows have no seals.
func (s *Store) Languages(ctx context.Context) (map[string]string, error) {
	return reading(ctx, s, func(from source) (map[string]string, error) {
		type row struct{ person, language string }
		found, err := collect(ctx, from, "the language of a person", func(r *row) []any { return []any{&r.person, &r.language} }, readLanguages)
		all := map[string]string{}
		for _, r := range found {
			all[r.person] = r.language
		}
		return all, err
	})
}

// PutLanguage implements [engine.Store].
func (s *Store) PutLanguage(ctx context.Context, person, language string) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		t.exec(ctx, writeLanguage, person, language)
		return nil
	})
}
