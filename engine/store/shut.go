package store

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"github.com/daycared/daycared/permissions"
)

// A row that shuts something, a lock or a suspension, opens it when somebody deletes it. So the row that the store says in
// what it is, which is sealed, lists them once more.

// shut is what is locked and suspended.
type shut struct {
	Locks       []permissions.Lock
	Suspensions []permissions.Suspension
	// Since is the last entry from before the audit said which rows were pruned; nil: it does not yet.
	Since *int64 `json:",omitempty"`
	// Gone are the grants and tokens that were closed in the store that a restore replaces, until the audit says so.
	Gone []permissions.Record `json:",omitempty"`
}

const writeShut = `UPDATE meta SET shut = $1`

func readShut(ctx context.Context, from source) (is shut, err error) {
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

// shuts is the list that a store keeps of itself.
func (i *identity) shuts() (said shut, err error) {
	if i.shut != "" {
		err = json.Unmarshal([]byte(i.shut), &said)
	}
	return said, err
}

// keepShut does a change of what is locked or suspended, and lists it. Before that it puts back what the list has and the
// rows do not.
func (s *Store) keepShut(ctx context.Context, t *tx, change func() error) error {
	own, err := readIdentity(ctx, t)
	if err != nil {
		return err
	}
	said, err := own.shuts()
	if err != nil {
		return err
	}
	is, err := readShut(ctx, t)
	if err != nil {
		return err
	}
	if is.Since = said.Since; !reflect.DeepEqual(is, said) {
		if err := s.putShut(ctx, t, said, is); err != nil {
			return err
		}
	}
	if err := change(); err != nil {
		return err
	}
	is, err = readShut(ctx, t)
	if is.Since = said.Since; is.Since == nil {
		is.Since = &t.seq
	}
	if err != nil || reflect.DeepEqual(is, said) {
		return err
	}
	text, err := encode(is)
	if err != nil {
		return err
	}
	if _, err := t.ExecContext(ctx, writeShut, text); err != nil {
		return err
	}
	return sealIdentity(ctx, t, s.seals)
}

// putShut puts back the rows of what is shut that somebody deleted or changed, and says so.
func (s *Store) putShut(ctx context.Context, t *tx, said, is shut) (err error) {
	put := func(name, text string, args []any, r permissions.Record) {
		s.log.Error("a row that somebody deleted or changed behind daycared's back is put back", "row", name)
		_, failed := t.ExecContext(ctx, text, args...)
		err = errors.Join(err, failed, s.append(ctx, t, r))
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
	return err
}
