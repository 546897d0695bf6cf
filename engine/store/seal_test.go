package store

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// populatedStore is a store in which a grant, a token and a pairing are open, with a request in every relevant state.
type populatedStore struct {
	*Store
	token                                   permissions.Token
	always, waiting, denied, approved, used permissions.Request
}

func newOpened(t *testing.T, path string) *populatedStore {
	t.Helper()
	return openedIn(t, reopen(t, path))
}

func openedIn(t *testing.T, s *Store) *populatedStore {
	t.Helper()
	o := &populatedStore{Store: s}
	o.token = permissions.Token{ID: "T1", Name: "ci", Hash: permissions.Digest{7}, CreatedAt: time.Now().Add(-time.Hour)}
	if err := s.AddToken(t.Context(), o.token, "op", "cli"); err != nil {
		t.Fatal(err)
	}
	p := permissions.Pairing{Person: "fay", Via: "telegram", Address: "1", PairedAt: time.Now()}
	if _, err := s.Pair(t.Context(), p, "op", "cli"); err != nil {
		t.Fatal(err)
	}
	o.always = approve(t, s, permissions.Always)
	o.approved, o.used = approve(t, s, permissions.Once), approve(t, s, permissions.Once)
	for _, r := range []permissions.Request{o.always, o.used} {
		if err := use(t, s, r); err != nil {
			t.Fatal(err)
		}
	}
	o.denied = insert(t, s)
	no := fayAllows()
	no.Vote.Answer = permissions.Deny
	if _, err := s.Apply(t.Context(), o.denied.ID, no); err != nil {
		t.Fatal(err)
	}
	o.waiting = insert(t, s)
	return o
}

// gates lists what still opens something.
func (o *populatedStore) gates(t *testing.T) (open []string) {
	t.Helper()
	now := time.Now()
	held, err := o.Grants(t.Context(), "uid:1000", now)
	if err != nil {
		t.Fatal(err)
	}
	for range held {
		open = append(open, "grant")
	}
	if _, err := o.VerifyToken(t.Context(), o.token.Hash, now); err == nil {
		open = append(open, "token")
	}
	paired, err := o.Pairings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range paired {
		open = append(open, "pairing")
	}
	return open
}

// meddle changes the file directly, as a flipped bit or a person might.
func meddle(t *testing.T, s *Store, statement string, args ...any) {
	t.Helper()
	other := connect(s.path, time.Second, 1, "")
	if _, err := other.ExecContext(t.Context(), "ATTACH '"+s.path+".kept' AS kept"); err != nil { // for old rows
		t.Fatal(err)
	}
	if _, err := other.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	s.forget() // as after a restart, or when others were written since: what was written last is read from memory
}

// TestASealDistinguishesVotersFromRevokers: a vote's account cannot pass for the one who revoked an approval.
func TestASealDistinguishesVotersFromRevokers(t *testing.T) {
	k := newSealer(auditKey{1})
	voted, taken := permissions.Request{Votes: []permissions.Vote{{Account: "sam"}}}, permissions.Request{Votes: make([]permissions.Vote, 1)}
	taken.VoidedBy = "sam"
	if bytes.Equal(k.request(&voted), k.request(&taken)) {
		t.Error("both have the same seal")
	}
}

// TestARowThatWasChangedOpensNothing: any change of a row that opens a gate closes it, and verify names the row.
func TestARowThatWasChangedOpensNothing(t *testing.T) {
	denied := func(o *populatedStore) permissions.Request { return o.denied }
	used := func(o *populatedStore) permissions.Request { return o.used }
	waiting := func(o *populatedStore) permissions.Request { return o.waiting }
	approved := func(o *populatedStore) permissions.Request { return o.approved }
	for name, c := range map[string]struct {
		change string
		closes string // empty: a request, which becomes unusable
		of     func(o *populatedStore) permissions.Request
	}{
		"B6/the path of a grant":         {`UPDATE grants SET tags = '["@write:/etc"]'`, "grant", nil},
		"B6/the end of a grant":          {`UPDATE grants SET until = until - 1`, "grant", nil},
		"B6/the caller of a grant":       {`UPDATE grants SET caller = 'uid:1'`, "grant", nil},
		"B6/the time of a grant":         {`UPDATE grants SET created_at = created_at - 1`, "grant", nil},
		"B6/no seal":                     {`UPDATE grants SET mac = ''`, "grant", nil},
		"B6/a grant with another's seal": {`UPDATE grants SET mac = (SELECT mac FROM tokens)`, "grant", nil},
		"G2/the end of a token":          {`UPDATE tokens SET expires_at = 9000000000000000`, "token", nil},
		"G2/the name of a token":         {`UPDATE tokens SET name = 'root'`, "token", nil},
		"G2/the age of a token":          {`UPDATE tokens SET created_at = 1`, "token", nil},
		"A2/the account of a pairing":    {`UPDATE pairings SET address = '666'`, "pairing", nil},
		"A2/the person of a pairing":     {`UPDATE pairings SET person = 'sam'`, "pairing", nil},
		"A5/a denial that reads approved": {
			`UPDATE requests SET state = 'approved', answer = 'allow_once', scope = 'once' WHERE state = 'denied'`, "", denied,
		},
		"A7/an approval that is unused": {`UPDATE requests SET used_at = 0, used_call = '', collected_at = 0`, "", used},
		"H1/who took an approval back":  {`UPDATE requests SET voided_by = 'fay' WHERE state = 'approved'`, "", approved},
		"A3/who is asked":               {`UPDATE requests SET asked = '["mallory"]' WHERE state = 'pending'`, "", waiting},
		"A3/how many are to agree":      {`UPDATE requests SET quorum = 0 WHERE state = 'pending'`, "", waiting},
		"B5/what is asked":              {`UPDATE requests SET tags = '["@write:/etc"]' WHERE state = 'pending'`, "", waiting},
		"B3/the label of a button": {`UPDATE requests SET options = replace(options, char(15), '{"id":"deny","label":"Allow once"}')
			WHERE state = 'pending'`, "", waiting},
		"B3/rows of a file":     {`UPDATE requests SET was = '[{"first":1,"text":"x"}]' WHERE state = 'pending'`, "", waiting},
		"B3/a rate on the card": {`UPDATE requests SET beyond = 5 WHERE state = 'pending'`, "", waiting},
		"B3/whether a person talks to the agent": {
			`UPDATE requests SET background = NOT background WHERE state = 'pending'`, "", waiting,
		},
		"B3/whose chat it is":        {`UPDATE requests SET foreground = 'x' WHERE state = 'pending'`, "", waiting},
		"B5/the step of an agent":    {`UPDATE requests SET step = step + 1 WHERE state = 'approved'`, "", approved},
		"A3/the group that is asked": {`UPDATE requests SET place = 'telegram:-1' WHERE state = 'pending'`, "", waiting},
		"B5/why it is asked":         {`UPDATE requests SET reason = 'tests' WHERE state = 'pending'`, "", waiting},
		"A5/the number of a request": {`UPDATE requests SET number = number + 100 WHERE state = 'pending'`, "", waiting},
		"D4/a vote":                  {`UPDATE request_votes SET answer = 'deny'`, "", approved},
		"D4/a vote more": {
			`INSERT INTO request_votes SELECT request, n + 1, 'sam', via, answer, call, comment, at, '', account, rule FROM request_votes`,
			"", approved,
		},
		"A2/the account of a vote": {`UPDATE request_votes SET account = 'uid:1'`, "", approved},
		"D4/a vote less":           {`DELETE FROM request_votes`, "", approved},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			if got := fmt.Sprint(o.gates(t)); got != "[grant token pairing]" {
				t.Fatalf("before, %s are open", got)
			}
			if _, err := o.Verify(t.Context()); err != nil {
				t.Fatal(err)
			}
			meddle(t, o.Store, c.change)
			if c.of == nil {
				if got := strings.Join(o.gates(t), " "); strings.Contains(got, c.closes) || len(strings.Fields(got)) != 2 {
					t.Errorf("%s are open", got)
				}
			} else {
				id := c.of(o).ID
				_, err := o.Read(t.Context(), id)
				unwell(t, "read", err, string(id), "does not carry the seal")
				_, err = o.Apply(t.Context(), id, permissions.Use{Call: "x", At: time.Now()})
				unwell(t, "use", err, string(id))
				_, err = o.Apply(t.Context(), id, fayAllows())
				unwell(t, "decide", err, string(id))
			}
			if name == "B5/why it is asked" {
				return // the digest does not match, which every reader checks
			}
			if _, err := o.Verify(t.Context()); err == nil {
				t.Error("it verifies")
			}
		})
	}
}

// TestNothingThatWasClosedIsOpenedByHand: closing a row deletes its seal.
func TestNothingThatWasClosedIsOpenedByHand(t *testing.T) {
	o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
	now := time.Now()
	held, err := o.Grants(t.Context(), "uid:1000", now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Revoke(t.Context(), held[0].ID, "op", "cli", now, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := o.RevokeToken(t.Context(), "ci", "op", "cli", now); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Stop(t.Context(), "sam", "cli", now); err != nil {
		t.Fatal(err)
	}
	meddle(t, o.Store, "UPDATE grants SET revoked_at = 0")
	meddle(t, o.Store, "UPDATE tokens SET revoked_at = 0")
	if got := fmt.Sprint(o.gates(t)); got != "[pairing]" {
		t.Errorf("%s are open", got)
	}
	meddle(t, o.Store, "UPDATE meta SET stopped_by = ''")
	unwell(t, "everything goes on", o.Resume(t.Context(), "sam", "cli", true, now), "who stopped everything does not carry the seal")
	if _, _, err = o.Open(t.Context(), newAsk()); err == nil {
		t.Error("asked while everything is stopped")
	}
}

// TestAnApprovalDoesNotOutliveItsGrant, even if the grant's row is deleted.
func TestAnApprovalDoesNotOutliveItsGrant(t *testing.T) {
	t.Run("B6/a grant that was revoked, without its row", func(t *testing.T) {
		o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
		r := approve(t, o.Store, permissions.Always)
		held, err := o.Grants(t.Context(), r.Caller.Name, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range held {
			if _, err := o.Revoke(t.Context(), g.ID, "op", "cli", time.Now(), 1); err != nil {
				t.Fatal(err)
			}
		}
		meddle(t, o.Store, "DELETE FROM uses; DELETE FROM grants")
		for of, used := range map[permissions.ID]bool{r.ID: false, o.approved.ID: true} {
			c, err := o.Apply(t.Context(), of, permissions.Use{Call: "call", At: time.Now()})
			if err != nil || c.After.UsedAt.IsZero() == used {
				t.Errorf("used at %s, want %t; %v", c.After.UsedAt, used, err)
			}
		}
	})
}

// TestARowThatWasPutBackIsFound: an old row has a valid seal, but the audit has the later events.
func TestARowThatWasPutBackIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		table, where string
		happens      func(o *populatedStore) error
	}{
		"H1/a grant that was revoked": {"grants", "TRUE", func(o *populatedStore) error {
			held, err := o.Grants(context.Background(), "uid:1000", time.Now())
			if err == nil {
				_, err = o.Revoke(context.Background(), held[0].ID, "op", "cli", time.Now(), 1)
			}
			return err
		}},
		"H1/a token that was revoked": {"tokens", "TRUE", func(o *populatedStore) error {
			_, err := o.RevokeToken(context.Background(), "ci", "op", "cli", time.Now())
			return err
		}},
		"H1/a pairing that ended": {"pairings", "TRUE", func(o *populatedStore) error {
			_, err := o.Unpair(context.Background(), "fay", "telegram", "op", "cli", time.Now())
			return err
		}},
		"H1/an approval that was used": {"requests", "state = 'approved' AND used_at = 0", func(o *populatedStore) error {
			_, err := o.Apply(context.Background(), o.approved.ID, permissions.Use{Call: "c", At: time.Now()})
			return err
		}},
		"H1/an approval that was taken back": {"requests", "state = 'approved' AND used_at = 0", func(o *populatedStore) error {
			_, err := o.Apply(context.Background(), o.approved.ID, permissions.Void{By: "fay", At: time.Now()})
			return err
		}},
		"H1/a request that was denied": {"requests", "state = 'pending'", func(o *populatedStore) error {
			no := fayAllows()
			no.Vote.Answer = permissions.Deny
			_, err := o.Apply(context.Background(), o.waiting.ID, no)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			meddle(t, o.Store, "CREATE TABLE kept.earlier AS SELECT * FROM "+c.table+" WHERE "+c.where)
			if err := c.happens(o); err != nil {
				t.Fatal(err)
			}
			if _, err := o.Verify(t.Context()); err != nil {
				t.Fatal(err)
			}
			meddle(t, o.Store, "REPLACE INTO "+c.table+" SELECT * FROM kept.earlier")
			if _, err := o.Verify(t.Context()); err == nil ||
				!strings.Contains(err.Error(), "is not what the audit says of it") && !strings.Contains(err.Error(), "does not carry the seal") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestAnEntryMayNameItsRequestByItsID: H1/what was put back behind such an entry, whose hash is the same, opens nothing either.
func TestAnEntryMayNameItsRequestByItsID(t *testing.T) {
	o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
	meddle(t, o.Store, "CREATE TABLE kept.earlier AS SELECT * FROM requests WHERE state = 'approved' AND used_at = 0")
	if err := use(t, o.Store, o.approved); err != nil {
		t.Fatal(err)
	}
	meddle(t, o.Store, "UPDATE entries SET (request, detail) = (SELECT request, detail FROM audit WHERE audit.key = entries.key)")
	if _, err := o.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	meddle(t, o.Store, "REPLACE INTO requests SELECT * FROM kept.earlier")
	for range 2 {
		unwell(t, "use", use(t, o.Store, o.approved), "does not carry the seal")
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		o.Store = reopen(t, o.path)
	}
	// and a number that is text is no number
	meddle(t, o.Store, "UPDATE entries SET request = '' || (SELECT number FROM requests WHERE id = request) "+
		"WHERE type = (SELECT number FROM types WHERE name = 'REQUEST_USED')")
	if _, err := o.Verify(t.Context()); err == nil {
		t.Error("an entry that names no request verifies")
	}
}

// TestAStopThatWasTakenOutIsFound: the identity row of before a stop has a valid seal, but the audit has the stop.
func TestAStopThatWasTakenOutIsFound(t *testing.T) {
	t.Run("H1/a stop", func(t *testing.T) {
		o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
		meddle(t, o.Store, "CREATE TABLE kept.earlier AS SELECT * FROM meta")
		if _, err := o.Stop(t.Context(), "fay", "cli", time.Now()); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Verify(t.Context()); err != nil {
			t.Fatal(err)
		}
		meddle(t, o.Store, "DELETE FROM meta; INSERT INTO meta SELECT * FROM kept.earlier; DROP TABLE kept.earlier")
		want := "who stopped everything, or when the store was restored, is not what the audit says"
		if _, err := o.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v", err)
		}
	})
}

// TestVerifyFindsWhatTheDaemonRefuses: words of pending requests are compared with the digest, and a row closed by hand
// still has its seal.
func TestVerifyFindsWhatTheDaemonRefuses(t *testing.T) {
	for name, c := range map[string]struct{ change, want string }{
		"H1/the reason of a pending request": {"UPDATE requests SET reason = 'harmless' WHERE state = 'pending'", "request"},
		"H1/a grant revoked by hand":         {"UPDATE grants SET revoked_at = 1", "grant"},
		"H1/a grant ended by hand":           {"UPDATE grants SET ended_at = 1", "grant"},
		"H1/a token revoked by hand":         {"UPDATE tokens SET revoked_at = 1", "token"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			if _, err := o.Verify(t.Context()); err != nil {
				t.Fatal(err)
			}
			meddle(t, o.Store, c.change)
			if _, err := VerifyFile(t.Context(), options(o.path)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestAChainHashedAnewIsFound: the hashes need no key, the seals do.
func TestAChainHashedAnewIsFound(t *testing.T) {
	rehash := func(t *testing.T, s *Store, change func(e *permissions.Entry)) {
		t.Helper()
		all, err := s.Audit(t.Context(), "", 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		prev := permissions.Digest{}
		for _, e := range all {
			change(&e)
			e.Prev = prev
			e.Hash = e.ComputeHash()
			prev = e.Hash
			meddle(t, s, "UPDATE entries SET actor = $1, prev = $2, hash = $3 WHERE key = $4", e.Actor, e.Prev[:], e.Hash[:], e.Seq)
		}
	}
	mallory := func(e *permissions.Entry) {
		if e.Actor == "fay" {
			e.Actor = "mallory"
		}
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, o *populatedStore)
		want   string
	}{
		"H1/every decider changed": {func(t *testing.T, o *populatedStore) {
			rehash(t, o.Store, mallory)
		}, "does not carry the seal of the audit key"},
		"H1/and the seals deleted": {func(t *testing.T, o *populatedStore) {
			rehash(t, o.Store, mallory)
			meddle(t, o.Store, "UPDATE entries SET mac = ''")
		}, "it is not keyed"},
		"H1/the first seals deleted": {func(t *testing.T, o *populatedStore) {
			meddle(t, o.Store, "UPDATE entries SET mac = '' WHERE key < 3")
		}, "no entry says with what"},
		"H1/a seal in the middle deleted": {func(t *testing.T, o *populatedStore) {
			meddle(t, o.Store, "UPDATE entries SET mac = '' WHERE key = 3")
		}, "it is not keyed, as the one before it is"},
		"H1/every seal of the store deleted": {func(t *testing.T, o *populatedStore) {
			for _, table := range []string{"entries", "requests", "grants", "tokens", "pairings", "meta"} {
				meddle(t, o.Store, "UPDATE "+table+" SET mac = ''")
			}
		}, "not checked"},
		"H1/nothing left of it": {func(t *testing.T, o *populatedStore) { meddle(t, o.Store, "DELETE FROM entries") }, "the audit is empty"},
		"H1/its end": {func(t *testing.T, o *populatedStore) {
			meddle(t, o.Store, "DELETE FROM entries WHERE key > 4")
		}, "is not what the audit says"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			c.change(t, o)
			if _, err := o.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestPruningInvalidatesNoSeal prunes everything, then uses an unlimited grant, a token and a pairing; a lock is in force.
func TestPruningInvalidatesNoSeal(t *testing.T) {
	o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
	if err := locked(t, o.Store, permissions.PersonLocked); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(10000 * time.Hour)
	for more := true; more; {
		var err error
		if more, err = o.Prune(t.Context(), permissions.Keep{Payloads: 1, Requests: 1, Audit: 1}, later, 100); err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(o.gates(t)); got != "[grant token pairing]" {
		t.Errorf("%s are open", got)
	}
	r := newAsk().Request
	held, err := o.Grants(t.Context(), "uid:1000", time.Now())
	if err != nil || len(held) != 1 {
		t.Fatalf("%d grants, %v", len(held), err)
	}
	r.State, r.Answer, r.Scope = permissions.Approved, permissions.Allow(permissions.Once), permissions.Once
	r.DecidedVia, r.DecidedAt, r.Grants = permissions.ViaGrant, time.Now(), []permissions.ID{held[0].ID}
	if _, created, err := o.Open(t.Context(), permissions.Opening{Request: r}); err != nil || !created {
		t.Errorf("under the grant: %v", err)
	}
	if err := use(t, o.Store, r); err != nil {
		t.Errorf("used: %v", err)
	}
	if kept, err := o.Read(t.Context(), o.always.ID); err != nil || kept.Reason != "" {
		t.Errorf("the request of the grant: %q, %v", kept.Reason, err)
	}
	if _, err := o.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	o.Store = reopen(t, o.path)
	if got := fmt.Sprint(o.gates(t)); got != "[grant token pairing]" {
		t.Errorf("after a restart, %s are open", got)
	}
	if all, err := o.Locks(t.Context()); err != nil || len(all) != 1 || all[0].Accounts == nil {
		t.Errorf("after a restart, locked are %v, %v", all, err)
	}
}

// locked locks or unlocks fay.
func locked(t *testing.T, s *Store, what permissions.Type) error {
	t.Helper()
	l := permissions.Lock{Person: "fay", Accounts: []string{"telegram:1"}, At: time.Now(), By: "sam", Via: "cli"}
	return s.PutLock(t.Context(), l, l.Record(what, "sam", "cli", l.At))
}

// TestALockWhoseRowWasChanged stays in force while its row exists, and verify reports it.
func TestALockWhoseRowWasChanged(t *testing.T) {
	for name, c := range map[string]struct{ change, says string }{
		"A8/another time":                {`UPDATE locks SET locked_at = locked_at - 1`, "does not carry the seal"},
		"A8/without accounts":            {`UPDATE locks SET accounts = '[]'`, "does not carry the seal"},
		"A8/people who agree to unlock":  {`UPDATE locks SET unlocking = '["sam"]'`, "does not carry the seal"},
		"A8/no seal":                     {`UPDATE locks SET mac = ''`, "does not carry the seal"},
		"A8/a row that somebody deleted": {`DELETE FROM locks`, "the locks and suspensions are not those that the store lists"},
	} {
		t.Run(name, func(t *testing.T) {
			s := reopen(t, filepath.Join(t.TempDir(), "daycared.db"))
			if err := locked(t, s, permissions.PersonLocked); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Verify(t.Context()); err != nil {
				t.Fatal(err)
			}
			meddle(t, s, c.change)
			all, err := s.Locks(t.Context())
			holds := len(all) == 1 && all[0].Person == "fay" && all[0].Unlocking == nil
			if err != nil || !holds && !strings.HasPrefix(c.change, "DELETE") {
				t.Errorf("locked: %+v, %v", all, err)
			}
			if _, err := s.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("verify says %v", err)
			}
		})
	}
	t.Run("A8/a lock of before that was ended", func(t *testing.T) {
		s := reopen(t, filepath.Join(t.TempDir(), "daycared.db"))
		for _, what := range []permissions.Type{permissions.PersonLocked, permissions.PersonUnlocked} {
			if err := locked(t, s, what); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Verify(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A lock revokes unused approvals first, however many used ones there are.
func TestApprovalsThatWereNotUsedComeFirst(t *testing.T) {
	s := reopen(t, filepath.Join(t.TempDir(), "daycared.db"))
	used, unused := approve(t, s, permissions.Once), approve(t, s, permissions.Once)
	if err := use(t, s, used); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int]string{1: string(unused.ID), 2: string(used.ID) + " " + string(unused.ID)} {
		all, err := s.ApprovedBy(t.Context(), "fay", time.Time{}, limit)
		var ids []string
		for _, r := range all {
			ids = append(ids, string(r.ID))
		}
		if got := strings.Join(ids, " "); err != nil || got != want {
			t.Errorf("of %d: %s, %v", limit, got, err)
		}
	}
}

// Verify reports a lock whose table was removed from a copy.
func TestALockWhoseTableIsGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daycared.db")
	s := reopen(t, path)
	if err := locked(t, s, permissions.PersonLocked); err != nil {
		t.Fatal(err)
	}
	meddle(t, s, "DROP TABLE locks")
	_, err := s.Verify(t.Context())
	if err == nil || !strings.Contains(err.Error(), "a row of the table locks that entry 1 speaks of is missing") {
		t.Errorf("verify says %v", err)
	}
}

// persons are the valid tokens with their persons, by name.
func persons(t *testing.T, s *Store) (all []string) {
	t.Helper()
	tokens, err := s.Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens {
		all = append(all, token.Name+" "+token.Person)
	}
	return all
}

// ownedToken adds a person's token.
func ownedToken(t *testing.T, s *Store, id, name, person string) permissions.Token {
	t.Helper()
	token := permissions.Token{ID: permissions.ID(id), Name: name, Person: person, Hash: permissions.Digest{id[1]}}
	if err := s.AddToken(t.Context(), token, "op", "cli"); err != nil {
		t.Fatal(err)
	}
	return token
}

// TestATokenWhosePersonWasChangedProvesNothing: editing the file cannot change whom an agent asks, or that it asks
// anybody. A start and a backup detect it too.
func TestATokenWhosePersonWasChangedProvesNothing(t *testing.T) {
	for name, c := range map[string]string{
		"H1/a person that was changed":    "UPDATE tokens SET person = 'sam' WHERE id = 'T3'",
		"H1/a person that was taken away": "UPDATE tokens SET person = '' WHERE id = 'T3'",
		"H1/a person that was added":      "UPDATE tokens SET person = 'fay' WHERE id = 'T1'",
		"H1/the row of an earlier token":  "UPDATE tokens SET (person, mac) = (SELECT person, mac FROM tokens WHERE id = 'T2') WHERE id = 'T3'",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "daycared.db")
			o := newOpened(t, path)
			ownedToken(t, o.Store, "T2", "deploy", "sam")
			if _, err := o.RevokeToken(t.Context(), "T2", "op", "cli", time.Now()); err != nil {
				t.Fatal(err)
			}
			ownedToken(t, o.Store, "T3", "deploy", "fay")
			if got := persons(t, o.Store); !slices.Equal(got, []string{"ci ", "deploy fay"}) {
				t.Errorf("there are %q", got)
			}
			copied := filepath.Join(t.TempDir(), "copy.db")
			if _, err := Backup(t.Context(), options(path), copied); err != nil {
				t.Fatal(err)
			}
			if _, err := VerifyFile(t.Context(), Options{Path: copied, KeyFile: options(path).keyFile()}); err != nil {
				t.Fatal(err)
			}
			if err := change(t.Context(), copied, statements(c)); err != nil {
				t.Fatal(err)
			}
			if _, err := VerifyFile(t.Context(), Options{Path: copied, KeyFile: options(path).keyFile()}); err == nil {
				t.Error("the backup that was changed is verified")
			}
			meddle(t, o.Store, c)
			for range 2 { // at run time and after a start
				if got := persons(t, o.Store); len(got) != 1 {
					t.Errorf("there are %q", got)
				}
				if _, err := o.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "token T") {
					t.Errorf("verify says %v", err)
				}
				if err := o.Close(); err != nil {
					t.Fatal(err)
				}
				o.Store = reopen(t, path)
			}
		})
	}
}

// TestATokensPersonOutlivesANewKey: the person is resealed with the token, which is suspended.
func TestATokensPersonOutlivesANewKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daycared.db")
	s := reopen(t, path)
	ownedToken(t, s, "T3", "deploy", "fay")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	o := options(path)
	o.NewKey = true
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if got := persons(t, s); !slices.Equal(got, []string{"deploy fay"}) || s.countUnsealed() != 0 {
		t.Errorf("there are %q, and %d rows are left out", got, s.countUnsealed())
	}
	if _, err := s.Reinstate(t.Context(), nil, "op", "cli", time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestThePersonsOfTokensAreTakenOver from the table of before migration 15, if it agrees with the audit.
func TestThePersonsOfTokensAreTakenOver(t *testing.T) {
	for name, c := range map[string]struct {
		change string
		want   []string
	}{
		"as it was":                          {"", []string{"ci ", "deploy fay", "deploy fay"}},
		"H1/a person that was changed":       {"UPDATE owners SET person = 'sam'", []string{"ci "}},
		"H1/a row of earlier":                {"REPLACE INTO owners SELECT 'deploy', 'sam', x'00'", []string{"ci "}},
		"H1/a person that was taken away":    {"DELETE FROM owners", []string{"ci "}},
		"H1/a person for nobody's own":       {"UPDATE owners SET name = 'ci'", nil},
		"G2/the end of a token":              {"UPDATE tokens SET expires_at = 9000000000000000 WHERE id = 'T3'", []string{"ci ", "deploy fay"}},
		"H1/a person that the audit has not": {"INSERT INTO owners SELECT 'ci', person, mac FROM owners", []string{"deploy fay", "deploy fay"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "daycared.db")
			o := newOpened(t, path)
			ownedToken(t, o.Store, "T3", "deploy", "fay")
			ownedToken(t, o.Store, "T4", "deploy", "fay")
			if err := o.Close(); err != nil {
				t.Fatal(err)
			}
			beforePersons(t, o.Store, path)
			if _, err := VerifyFile(t.Context(), options(path)); err != nil {
				t.Errorf("before it is brought up to date: %v", err)
			}
			if err := change(t.Context(), path, statements(c.change)); err != nil {
				t.Fatal(err)
			}
			s := reopen(t, path)
			if got := persons(t, s); !slices.Equal(got, c.want) {
				t.Errorf("there are %q, not %q", got, c.want)
			}
			if _, err := s.Verify(t.Context()); (err == nil) != (c.change == "" || c.change == "DELETE FROM owners") {
				t.Errorf("verify says %v", err)
			}
		})
	}
}

// beforePersons reverts a store to the schema with a table of persons, as a daemon of that time left it.
func beforePersons(t *testing.T, s *Store, path string) {
	t.Helper()
	seals := func(ctx context.Context, db *sql.DB) error {
		found, err := collect(ctx, db, "", tokenGate.rowFields, tokenGate.open)
		for _, r := range found {
			person := r.row.Person
			r.row.Person = ""
			if person != "" && err == nil {
				_, err = db.ExecContext(ctx, "REPLACE INTO owners VALUES ($1, $2, $3)", r.row.Name, person,
					s.seals.seal("owners", r.row.Name, person))
			}
			if err == nil {
				_, err = db.ExecContext(ctx, "UPDATE tokens SET mac = $1 WHERE id = $2",
					s.seals.seal("tokens", tokenGate.sealed(&r.row)...), r.row.ID)
			}
		}
		return err
	}
	text, err := migrations.ReadFile("migrations/00014_owner.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, do := range []func(context.Context, *sql.DB) error{
		statements(string(text)), seals, statements(oldColumns...), oldSeals(s.seals),
		statements("ALTER TABLE tokens DROP COLUMN person", "ALTER TABLE requests DROP COLUMN beyond", "DROP TABLE waits",
			"ALTER TABLE notices DROP COLUMN agent", "ALTER TABLE notices DROP COLUMN session", "ALTER TABLE notices DROP COLUMN title",
			"ALTER TABLE notices DROP COLUMN words", "ALTER TABLE notices DROP COLUMN silent",
			"DELETE FROM goose_db_version WHERE version_id > 14"),
	} {
		if err := change(t.Context(), path, do); err != nil {
			t.Fatal(err)
		}
	}
}
