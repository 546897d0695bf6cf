package store

import (
	"cmp"
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/daycared/daycared/permissions"
)

// nextSuffix ends the name of a key that the store is not sealed with yet.
const nextSuffix = ".next"

func (o Options) keyFile() string {
	return cmp.Or(o.KeyFile, filepath.Join(filepath.Dir(o.Path), KeyName))
}

// keys are the readable ones of the audit key and the copy's key. What cannot be checked without them is reported.
func (o Options) keys() (all []*sealer) {
	for _, file := range []string{o.keyFile(), o.CopyKey} {
		if file == "" {
			continue
		}
		if k, err := readKey(file); err == nil {
			all = append(all, k)
		}
	}
	return all
}

// findKey finds the key of a store with the identity i, and the key that its rows are sealed with: none in a store from before the
// key, which gets one. A store sealed with another key is refused, unless it begins a new life ([Restore], Options.NewKey).
func (s *Store) findKey(ctx context.Context, from source, o Options, i identity, fresh bool) error {
	file := o.keyFile()
	next := file + nextSuffix
	key, err := readKey(file)
	if made, failed := readKey(next); failed == nil && !i.hasValidSeal(key) && i.hasValidSeal(made) { // an earlier start was interrupted
		if err := s.finishKey(file); err != nil {
			return err
		}
		key, err = made, nil
	}
	missing := errors.Is(err, fs.ErrNotExist)
	keyed, unread := keyedChain(ctx, from, key, i, readKeyed)
	switch {
	case unread != nil:
		return unread
	case fresh && err == nil:
		s.seals, s.from = key, key
		return nil
	case fresh && missing:
		s.seals, err = makeKey(file)
		s.from = s.seals
		return err
	case o.NewKey && (keyed == "" || keyed == i.chain):
		if i.hasValidSeal(key) || keyed != "" {
			s.from = key
		}
		s.newKey = "its audit key was replaced"
		s.seals, err = makeKey(next)
		return err
	case i.hasValidSeal(key):
		s.seals, s.from = key, key
		return nil
	case len(i.mac) == 0 && missing:
		s.newKey = firstKey
		s.seals, err = makeKey(next)
		return err
	case o.restored:
		if i.hasValidSeal(o.copyKey) {
			s.from = o.copyKey
		}
		s.newKey = "it was sealed with another key"
		if s.seals = key; missing {
			s.seals, err = makeKey(next)
		}
		return err
	}
	return s.wrongKey(file, i, keyed, err)
}

const readKeyed = `SELECT ` + keyedColumns + ` FROM audit ORDER BY chain = (SELECT chain FROM meta) DESC, seq DESC`

// keyedChain is the chain, preferably i's, with an entry sealed by the key (where entries can be; otherwise one that
// introduces it) and no later key; empty if there is none, the key is nil, or i carries its seal.
func keyedChain(ctx context.Context, from source, k *sealer, i identity, text string) (chain string, err error) {
	if k == nil || i.hasValidSeal(k) {
		return "", nil
	}
	rows, err := from.QueryContext(ctx, text)
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }() // rows.Err has the error
	for rows.Next() {
		var e permissions.Entry
		var mac []byte
		if err := rows.Scan(exactFields(append(entryFields(&e), &mac))...); err != nil {
			return "", unreadable("the seals of the audit", err)
		}
		introduced := ""
		if e.Type == permissions.AuditKeyed || e.Type == permissions.StoreRestored {
			introduced = e.Detail[keyID]
		}
		if hmac.Equal(mac, k.entry(e.Hash)) || introduced == k.id && text == readOldAudit {
			return e.Chain, nil
		}
		if introduced != "" {
			break
		}
	}
	return "", rows.Err()
}

// wrongKey explains why the audit key in file, read with err and sealing the chain keyed, is not that of store i.
func (s *Store) wrongKey(file string, i identity, keyed string, err error) error {
	switch {
	case keyed != "":
		return &Error{
			What: fmt.Sprintf("the store %s was changed behind daycared's back: its entries carry the seals of the audit key %s, and what it "+
				"says of itself does not", s.name(), file),
			Advice: "put a backup in its place: " + restoresFile + "; without one, daycared audit new-key leaves out what was changed and " +
				"suspends the rest",
		}
	case errors.Is(err, fs.ErrNotExist):
		return &Error{
			What:   fmt.Sprintf("the audit key %s of the store %s is missing", file, s.name()),
			Advice: LostKey,
		}
	case err != nil:
		return &Error{What: err.Error(), Advice: LostKey, Err: err}
	case len(i.mac) == 0:
		return &Error{
			What:   fmt.Sprintf("the store %s carries no seal, and the audit key %s was there before it", s.name(), file),
			Advice: "put a backup in its place: " + restoresFile + "; if it is from before daycared had a key: daycared audit new-key",
		}
	}
	return &Error{
		What:   fmt.Sprintf("the audit key %s is not the one that the store %s was sealed with, or the store was changed", file, s.name()),
		Advice: LostKey,
	}
}

// CheckKey checks, without changing anything, that the next start will find the store's audit key. If not, the error is
// an [Error]. A store that it cannot read is left to [Inspect].
func CheckKey(ctx context.Context, o Options) (err error) {
	db := lookInto(o.Path, readOnlySettings(o.Path))
	defer func() { err = errors.Join(err, db.Close()) }()
	i, unread := readIdentity(ctx, db)
	file := o.keyFile()
	key, err := readKey(file)
	next, failed := readKey(file + nextSuffix) // an earlier start was interrupted
	if unread != nil || i.hasValidSeal(key) || failed == nil && i.hasValidSeal(next) || len(i.mac) == 0 && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	keyed, _ := keyedChain(ctx, db, key, i, readKeyed) // unreadable: left to Inspect
	return (&Store{path: o.Path}).wrongKey(file, i, keyed, err)
}

// firstKey is the reason for sealing a store from before the key.
const firstKey = "it is from before the key"

// LostKey is what to do when the audit key is missing or wrong.
const LostKey = "put the right key back; if it is lost, run daycared audit new-key, which suspends every grant, token and pairing"

// finishKey renames the key that the store is sealed with now. The replaced one is kept.
func (s *Store) finishKey(file string) error {
	if !fileExists(file + nextSuffix) {
		return nil
	}
	if fileExists(file) {
		kept := file + replacedSuffix + s.now().UTC().Format("20060102T150405.000Z")
		if err := os.Link(file, kept); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("keep the audit key that is replaced: %w", err)
		}
	}
	if err := os.Rename(file+nextSuffix, file); err != nil {
		return fmt.Errorf("put the new audit key in place: %w", err)
	}
	return syncFolder(filepath.Dir(file))
}
