package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/daycared/daycared/permissions"
)

// newStore is an empty store in its own folder with a short busy timeout.
func newStore(t testing.TB) *Store {
	t.Helper()
	s, err := Open(context.Background(), options(filepath.Join(t.TempDir(), "daycared.db")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		RowsAreTheFile(t, s)
		_ = s.Close()
	})
	return s
}

// RowsAreTheFile checks that the cached requests equal those in the file.
func RowsAreTheFile(t testing.TB, s *Store) {
	t.Helper()
	err := s.turn(context.Background(), func(ctx context.Context, conn *sql.Conn) error {
		for _, id := range s.rows.lru.Keys() {
			kept, _ := s.rows.lru.Peek(id)
			stored, err := s.load(ctx, conn, id)
			if err != nil {
				return err
			}
			copies, err := s.copiesOf(ctx, conn, id)
			if err != nil {
				return err
			}
			if diff := cmp.Diff(copies, kept.copies, cmpopts.EquateEmpty()); kept.shown && diff != "" {
				t.Errorf("copies of request %s (-in the file +in memory):\n%s", id, diff)
			}
			same := cmpopts.EquateComparable(permissions.Tag{}, permissions.Scope{})
			if diff := cmp.Diff(stored, kept.Request, cmpopts.EquateEmpty(), same); diff != "" {
				t.Errorf("request %s (-in the file +in memory):\n%s", id, diff)
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, permissions.ErrBroken) { // a test that breaks the file
		t.Error(err)
	}
}

// Reseal seals every row as it is, after the test changed it directly.
func Reseal(t testing.TB, s *Store) {
	t.Helper()
	was := s.from
	s.from = nil
	defer func() { s.from = was }()
	err := s.write(context.Background(), func(ctx context.Context, t *tx) error {
		s.resealRequests(ctx, t, sealVersion)
		reseal(ctx, s, t, grantGate, time.Time{})
		reseal(ctx, s, t, tokenGate, time.Time{})
		reseal(ctx, s, t, pairingGate, time.Time{})
		return sealIdentity(ctx, t, s.seals)
	})
	if err != nil && !errors.Is(err, permissions.ErrBroken) { // a test that breaks the file
		t.Fatal(err)
	}
}

func options(path string) Options {
	return Options{Path: path, Now: time.Now, Log: slog.New(slog.DiscardHandler), Busy: 20 * time.Millisecond}
}

// newAsk is a new request.
func newAsk() permissions.Opening {
	now := time.Now()
	r := permissions.Request{
		ID: permissions.NewID(now), Revision: 1, Version: 1, Kind: permissions.KindPermission,
		Caller: permissions.CallerUID(1000), Tags: []permissions.Tag{permissions.Network}, Reason: "fetch the docs",
		Asked: []string{"fay"}, Quorum: 1, CreatedAt: now, Deadline: now.Add(time.Hour), State: permissions.Pending,
	}
	r.Session = string(r.ID)
	r.Options = permissions.Offer(r, nil, r.Widest)
	r.Digest = permissions.ComputeDigest(r)
	return permissions.Opening{Request: r, RedeemWindow: time.Minute}
}

func fayAllows() permissions.Cast {
	return permissions.Cast{Vote: permissions.Vote{
		By: "fay", Via: "terminal", Answer: permissions.Allow(permissions.Once), At: time.Now(),
	}}
}

// insert opens a request in a healthy store.
func insert(t testing.TB, s *Store) permissions.Request {
	t.Helper()
	r, created, err := s.Open(context.Background(), newAsk())
	if err != nil || !created {
		t.Fatalf("created %v, %v", created, err)
	}
	return r
}

func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

// copyFiles copies a store's files as after a crash, with the audit key.
func copyFiles(t *testing.T, from, to string, suffixes ...string) {
	t.Helper()
	if key := options(from).keyFile(); fileExists(key) && !fileExists(options(to).keyFile()) {
		content, err := os.ReadFile(key)
		if err == nil {
			err = os.WriteFile(options(to).keyFile(), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, suffix := range suffixes {
		content, err := os.ReadFile(from + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(to+suffix, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
