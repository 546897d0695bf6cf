package store

import (
	"cmp"
	"context"
	"crypto/hmac"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/daycared/daycared/permissions"
)

// Restored is what [Restore] did.
type Restored struct {
	Summary        // of the store that is in place now
	BackTo  string // SEQ:HASH of the copy's newest own audit entry; empty: none
	Was     string // the same of the replaced store; empty: none, or unreadable
	Kept    string // where the replaced store is kept; empty: there was none
	Left    error  // why nothing was carried over from the replaced store
	Now     permissions.Suspended
}

// Restore puts a copy of a store, a backup or another store's files, in place of the one at o.Path, and begins a new
// life of it. The caller must hold the lock of the folder. The copy is verified first: pages, references, schema and
// audit. The replaced store is kept beside it, with its companion files, under a name with the time. What was revoked
// there since the copy was made stays revoked.
//
// After a crash the store is either unchanged, or replaced once [Open] or Restore has finished the rest.
func Restore(ctx context.Context, o Options, from string) (Restored, error) {
	r, err := restoreFrom(ctx, o, from)
	if err != nil {
		return Restored{}, fmt.Errorf("restore the store from %s: %w", from, err)
	}
	return r, nil
}

func restoreFrom(ctx context.Context, o Options, from string) (r Restored, err error) {
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return r, err
	}
	if from, err = filepath.Abs(from); err != nil {
		return r, err
	}
	if err := finishRestore(path); err != nil {
		return r, err
	}
	if err := restorable(path, from); err != nil {
		return r, err
	}
	if o.CopyKey != "" {
		if o.copyKey, err = readKey(o.CopyKey); err != nil {
			return r, err
		}
	}
	if err := r.draft(ctx, o, path, from); err != nil {
		return r, unusable(err)
	}
	kept := path + replacedSuffix + o.Now().UTC().Format("20060102T150405Z")
	for n := 2; fileExists(kept); n++ {
		kept = fmt.Sprintf("%s-%d", strings.TrimSuffix(kept, fmt.Sprintf("-%d", n-1)), n)
	}
	if fileExists(path) || fileExists(path+logSuffix) {
		r.Kept = kept
	}
	if err := WriteFile(path+intentSuffix, []byte(filepath.Base(kept)), 0o600); err != nil {
		return r, err
	}
	if err := finishRestore(path); err != nil {
		return r, err
	}
	o.restored = true
	s, err := Open(ctx, o)
	if err != nil {
		old := ""
		if r.Kept != "" {
			old = " and the old store is kept as " + r.Kept
		}
		return r, fmt.Errorf("the copy is in place%s, but it cannot be opened: %w", old, err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r.Now, err = s.Suspended(ctx)
	return r, err
}

// restorable checks the name of a file that is to replace the store at path.
func restorable(path, from string) error {
	found, err := os.Stat(from)
	switch {
	case err != nil:
		return permissions.Cause(err)
	case !found.Mode().IsRegular():
		return errors.New("it is not a file")
	}
	if at, err := os.Stat(path); err == nil && os.SameFile(found, at) {
		return errors.New("it is the store itself; name a copy of it")
	}
	return foreignLog(from)
}

// draft makes a verified copy of the file from beside the store at path.
func (r *Restored) draft(ctx context.Context, o Options, path, from string) (err error) {
	db := lookInto(from, readOnlySettings(from))
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := checkFile(ctx, db, from); err != nil {
		return err
	}
	return copyInto(ctx, db, from, path+restoredSuffix, o.tell, func(draft string) error {
		keys := o.keys()
		if r.Summary, err = inspect(ctx, draft, o); err != nil {
			return err
		}
		if err := refuseUnsealed(ctx, draft, path, keys); err != nil {
			return err
		}
		r.Was, r.Left = carryOver(ctx, draft, path, keys)
		if err := ctx.Err(); err != nil {
			return err
		}
		r.Path = path
		var own string
		if err := db.QueryRowContext(ctx, readChain).Scan(&own); err != nil {
			return err
		}
		for _, c := range r.Chains {
			if c.Chain == own {
				r.BackTo = fmt.Sprintf("%d:%s", c.Seq, c.Hash)
			}
		}
		return nil
	})
}

// refuseUnsealed refuses a copy whose seals were removed, so that its rows could not be checked: its identity has no seal of
// our keys although its entries or requests have one or name the key, or it has none at all where daycared always
// writes one. It also refuses if the current store has a sealed entry that the copy should contain.
func refuseUnsealed(ctx context.Context, draft, path string, keys []*sealer) (err error) {
	db := lookInto(draft, "immutable=1")
	defer func() { err = errors.Join(err, db.Close()) }()
	i, text := identity{}, readOldAudit
	sealed, err := hasSeals(ctx, db)
	if sealed && err == nil {
		text = readKeyed
		i, err = readIdentity(ctx, db)
	}
	if err != nil || slices.ContainsFunc(keys, i.hasValidSeal) {
		return err
	}
	for _, k := range keys {
		keyed, err := keyedChain(ctx, db, k, i, text)
		ours := keyed != "" || sealed && len(i.mac) == 0
		if sealed && !ours && err == nil {
			err = eachSealed(ctx, db, func(r permissions.Request, mac []byte) error {
				ours = ours || k.isSealOf(mac, "requests", sealedValuesOf(i.seals, nil, &r)...)
				return nil
			})
		}
		if ours || err != nil {
			return cmp.Or(err, unsealed("what the store says of itself"))
		}
	}
	if wasSealed(ctx, db, path, keys) {
		return unsealed("what the store says of itself")
	}
	return nil
}

// reachedEntry is the newest entry of a chain up to a seq.
const reachedEntry = `SELECT ` + keyedColumns + ` FROM audit WHERE chain = $1 AND seq <= $2 ORDER BY seq DESC LIMIT 1`

// wasSealed reports whether the newest entry that the store at path shares with a copy is sealed there with one of the
// keys, so that the copy must have been sealed too.
func wasSealed(ctx context.Context, copied source, path string, keys []*sealer) bool {
	if !fileExists(path) {
		return false
	}
	db := lookInto(path, readOnlySettings(path))
	defer func() { _ = db.Close() }() // only read
	var chain string
	var reached int64
	var e permissions.Entry
	var mac []byte
	err := db.QueryRowContext(ctx, readChain).Scan(&chain)
	if err == nil {
		err = copied.QueryRowContext(ctx, `SELECT COALESCE(MAX(seq), 0) FROM audit WHERE chain = $1`, chain).Scan(&reached)
	}
	if err == nil {
		err = db.QueryRowContext(ctx, reachedEntry, chain, reached).Scan(exactFields(append(entryFields(&e), &mac))...)
	}
	return err == nil && slices.ContainsFunc(keys, func(k *sealer) bool { return hmac.Equal(mac, k.entry(e.Hash)) })
}

// Statements that carry what was revoked in the replaced store, attached as "was", into the copy.
const (
	sameChain = `(SELECT chain FROM main.meta) = (SELECT chain FROM was.meta)`

	carrySuspensions = `INSERT INTO main.suspensions (via, address, at) SELECT via, address, at FROM was.suspensions WHERE ` +
		sameChain + ` ON CONFLICT (via, address) DO NOTHING`

	carryStop = `UPDATE main.meta SET (stopped_by, stopped_at) = (SELECT stopped_by, stopped_at FROM was.meta) WHERE ` +
		sameChain + ` AND (SELECT stopped_by FROM was.meta) <> ''`

	carryGrants = `UPDATE main.grants SET (revoked_at, ended_at) = (SELECT revoked_at, ended_at FROM was.grants AS g ` +
		`WHERE g.id = main.grants.id) WHERE revoked_at = 0 AND ended_at = 0 AND EXISTS (SELECT 1 FROM was.grants AS g ` +
		`WHERE g.id = main.grants.id AND (g.revoked_at > 0 OR g.ended_at > 0))`

	carryTokens = `UPDATE main.tokens SET revoked_at = (SELECT revoked_at FROM was.tokens AS t WHERE t.id = main.tokens.id) ` +
		`WHERE revoked_at = 0 AND EXISTS (SELECT 1 FROM was.tokens AS t WHERE t.id = main.tokens.id AND t.revoked_at > 0)`

	carryLocks = `INSERT INTO main.locks (` + lockColumns + `, mac) SELECT ` + lockColumns + `, mac FROM was.locks WHERE ` +
		sameChain + ` ON CONFLICT (person) DO NOTHING`

	canLock = `SELECT EXISTS (SELECT 1 FROM was.sqlite_schema WHERE name = 'locks'), ` +
		`EXISTS (SELECT 1 FROM main.sqlite_schema WHERE name = 'locks'), ` + sameChain
	anyLocks = `SELECT EXISTS (SELECT 1 FROM was.locks WHERE ` + sameChain + `)`

	carryPairings = `DELETE FROM main.pairings WHERE ` + sameChain + ` AND NOT EXISTS (SELECT 1 FROM was.pairings AS p ` +
		`WHERE p.person = main.pairings.person AND p.via = main.pairings.via AND p.address = main.pairings.address)`
)

// ErrPruned is a reason of [Restored.Left] that leaves locks known.
var ErrPruned = errors.New("pruning (keep.audit) has deleted what the replaced store's audit said between the backup and")

// carryOver carries what was revoked in the store at path, if it is readable, into a copy, and returns how far that store had come.
func carryOver(ctx context.Context, draft, path string, keys []*sealer) (reached string, err error) {
	if !fileExists(path) {
		return "", nil
	}
	if err := foreignLog(path); err != nil {
		return "", err
	}
	db := lookInto(path, readOnlySettings(path))
	defer func() { _ = db.Close() }() // only read
	var chain string
	if err := db.QueryRowContext(ctx, readChain).Scan(&chain); err != nil {
		return "", err
	}
	h, err := readHead(ctx, db, chain)
	if err != nil {
		return "", err
	}
	var left error
	m, text, _ := readMark(path)
	if m.checkReached(ctx, db, text) != nil {
		left = errors.New("the store that was replaced was an older copy itself, by the mark beside it")
	}
	said, err := collect(ctx, db, "the audit", entryFields, readGateEntries, chain)
	if err != nil {
		return "", err
	}
	first, err := firstSeq(ctx, db, chain)
	if err != nil {
		return "", err
	}
	was := url.URL{Scheme: "file", Path: path, RawQuery: "mode=ro&" + readOnlySettings(path)}
	attach := "ATTACH '" + strings.ReplaceAll(was.String(), "'", "''") + "' AS was"
	err = change(ctx, draft, func(ctx context.Context, db *sql.DB) error {
		own, failed := readIdentity(ctx, db) // old stores have no seals
		same, canLock, lost, err := carryRows(ctx, db, attach)
		if err != nil {
			return err
		}
		left = cmp.Or(left, lost)
		var k *sealer // seals the copy's rows; nil: unknown
		if i := slices.IndexFunc(keys, own.hasValidSeal); failed == nil && i >= 0 {
			k = keys[i]
		}
		if same {
			if h, err := readHead(ctx, db, chain); err == nil && first > h.seq+1 {
				left = cmp.Or(left, fmt.Errorf("%w entry %d", ErrPruned, first))
			}
			err = carryAudited(ctx, db, chain, said, k, canLock)
		}
		if err == nil && k != nil {
			err = sealIdentity(ctx, db, k)
		}
		if err != nil {
			return err
		}
		_, err = db.ExecContext(ctx, "COMMIT")
		return err
	})
	return fmt.Sprintf("%d:%s", h.seq, h.hash), cmp.Or(err, left)
}

// carryRows carries what the replaced store's rows say was revoked into a copy, and returns what was lost. A copy from
// before there were locks cannot keep them.
func carryRows(ctx context.Context, db *sql.DB, attach string) (same, canKeep bool, lost, err error) {
	carry := statements(attach, "BEGIN IMMEDIATE", carrySuspensions, carryStop, carryGrants, carryTokens, carryPairings)
	if err := carry(ctx, db); err != nil {
		return false, false, nil, err
	}
	from, has := false, false
	if err := db.QueryRowContext(ctx, canLock).Scan(&from, &canKeep, &same); err != nil {
		return false, false, nil, err
	}
	if from {
		if err := db.QueryRowContext(ctx, anyLocks).Scan(&has); err != nil {
			return false, false, nil, err
		}
	}
	switch {
	case !same:
		lost = errors.New("the store that was replaced is not the one that the backup was made of")
	case has && canKeep:
		err = statements(carryLocks)(ctx, db)
	case has:
		lost = errors.New("the backup is from before there were locks; lock again whoever was locked, with: daycared lock NAME")
	}
	return same, canKeep, lost, err
}

// carryAudited carries into a copy what the later entries of the replaced store say was revoked, whatever its rows say.
func carryAudited(ctx context.Context, db *sql.DB, chain string, said []permissions.Entry, k *sealer, canLock bool) error {
	h, err := readHead(ctx, db, chain)
	said = slices.DeleteFunc(said, func(e permissions.Entry) bool { return e.Seq <= h.seq })
	do := func(text string, args ...any) {
		_, failed := db.ExecContext(ctx, text, args...)
		err = cmp.Or(err, failed)
	}
	last := newComparison()
	var gone []permissions.Record
	for _, e := range said {
		last.addRowEntry(&e)
		switch e.Type {
		case permissions.GrantRevoked, permissions.GrantEnded:
			do(`UPDATE grants SET revoked_at = $1 WHERE id = $2 AND revoked_at = 0 AND ended_at = 0`, micros(e.At), e.Detail["grant"])
			gone = append(gone, e.Record)
		case permissions.TokenRevoked:
			do(`UPDATE tokens SET revoked_at = $1 WHERE id = $2 AND revoked_at = 0`, micros(e.At), e.Detail["id"])
			gone = append(gone, e.Record)
		case permissions.Unpaired:
			do(deletePairing, e.Detail["person"], e.Detail["via"])
		}
	}
	if by := last.stoppedBy(); by != "" {
		do(`UPDATE meta SET stopped_by = $1, stopped_at = $2 WHERE stopped_by = ''`, by, micros(said[len(said)-1].At))
	}
	if own, failed := readIdentity(ctx, db); failed == nil && own.restrictions != "" { // old stores lack the column
		known, failed := own.decodeRestrictions()
		known.Gone = gone
		text, unwritten := encode(known)
		err = cmp.Or(err, failed, unwritten)
		do(writeRestrictions, text)
	}
	if !canLock || err != nil {
		return err
	}
	is, err := readRestrictions(ctx, db)
	missing := last.missingRestrictions(is)
	for _, l := range missing.Locks {
		mac := []byte{} // a lock without a seal is in force too
		if k != nil {
			mac = k.seal(lockGate.table, lockFields(&l)...)
		}
		do(writeLock, append(lockFields(&l), mac)...)
	}
	for _, a := range missing.Suspensions {
		do(putSuspension, suspensionFields(&a)...)
	}
	return err
}
