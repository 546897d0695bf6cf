package store

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/daycared/daycared/permissions"
)

// Deleting the row of a lock or a suspension would end it. So the store's sealed identity lists these rows too.

// shutList is the list of locks and suspensions.
type shutList struct {
	Locks       []permissions.Lock
	Suspensions []permissions.Suspension
	// Since is the last entry from before the audit recorded which rows were pruned; nil: it does not yet.
	Since *int64 `json:",omitempty"`
	// Gone are the grants and tokens closed in the store that a restore replaces, until the audit has them.
	Gone []permissions.Record `json:",omitempty"`
}

const writeShut = `UPDATE meta SET shut = $1`

func readShut(ctx context.Context, from source) (is shutList, err error) {
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

// decodeShutList decodes the list.
func (i *identity) decodeShutList() (said shutList, err error) {
	if i.shut != "" {
		err = json.Unmarshal([]byte(i.shut), &said)
	}
	return said, err
}

// changeShut applies a change of what is locked or suspended, and updates the list. It first puts back rows that the list
// has and the tables lack.
func (s *Store) changeShut(ctx context.Context, t *tx, change func()) {
	own, err := readIdentity(ctx, t)
	t.fail(err)
	said, err := own.decodeShutList()
	t.fail(err)
	is, err := readShut(ctx, t)
	t.fail(err)
	if is.Since = said.Since; !reflect.DeepEqual(is, said) {
		s.restoreShut(ctx, t, said, is)
	}
	change()
	is, err = readShut(ctx, t)
	t.fail(err)
	if is.Since = said.Since; is.Since == nil {
		is.Since = &t.seq
	}
	if reflect.DeepEqual(is, said) {
		return
	}
	text, err := encode(is)
	t.fail(err)
	t.exec(ctx, writeShut, text)
	t.fail(sealIdentity(ctx, t, s.seals))
}

// restoreShut restores locks and suspensions that somebody deleted or changed, and logs each.
func (s *Store) restoreShut(ctx context.Context, t *tx, said, is shutList) {
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
			put(lockGate.name(l), writeLock, lockGate.args(s.seals, l), l.Record(permissions.PersonLocked, l.By, l.Via, s.now()))
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
