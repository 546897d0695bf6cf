// Grow makes a large store to measure with, by the store's own code, so that its schema, its audit and its seals are as a
// daemon that ran for a long time leaves them:
//
//	go run ./tools/grow -settled 1000000 -pending 100000 DATA_DIR
//
// It adds to the store of a data directory, which is made where there is none, about two thousand requests a second. No daemon
// may run on it meanwhile.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/permissions"
)

// crop is what is to be in a store.
type crop struct {
	settled, pending int
	asked            string
	over             time.Duration // the time that it all took
}

func main() {
	var c crop
	flag.IntVar(&c.settled, "settled", 10_000, "how many requests were allowed and used")
	flag.IntVar(&c.pending, "pending", 0, "how many requests wait")
	flag.StringVar(&c.asked, "asked", "operator", "who is asked")
	flag.DurationVar(&c.over, "over", 20*24*time.Hour, "the time that it all took")
	flag.Parse()
	if flag.NArg() != 1 || c.settled < 0 || c.pending < 0 {
		fmt.Fprintln(os.Stderr, "usage: grow [-settled N] [-pending N] [-asked NAME] [-over DURATION] DATA_DIR")
		os.Exit(2)
	}
	if err := grow(context.Background(), flag.Arg(0), c); err != nil {
		fmt.Fprintln(os.Stderr, "grow:", err)
		os.Exit(1)
	}
}

// grow adds c to the store of a data directory.
func grow(ctx context.Context, dir string, c crop) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "daycared.lock"), os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // as it was named
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("a daemon runs on %s: %w", dir, err)
	}
	s, err := store.Open(ctx, store.Options{
		Path: filepath.Join(dir, "daycared.db"), Now: time.Now, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()

	const atOnce = 256 // of what is written at the same time, so much shares a commit
	var next atomic.Int64
	all, now := c.settled+c.pending, time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for range atOnce {
		group.Go(func() error {
			for n := int(next.Add(1)) - 1; n < all; n = int(next.Add(1)) - 1 {
				at := now.Add(-c.over + c.over/time.Duration(all)*time.Duration(n))
				if err := plant(ctx, s, c.asked, n, at, n < c.settled); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// plant adds a request that was asked at a time, with its copy, and the answer and its use where it is settled.
func plant(ctx context.Context, s *store.Store, asked string, n int, at time.Time, settled bool) error {
	const callers, firstUID, patience = 20, 20_001, time.Minute
	r := permissions.Request{
		ID: permissions.NewID(at), Revision: 1, Version: 1, Kind: permissions.KindPermission,
		Caller: permissions.CallerUID(firstUID + n%callers), Tags: []permissions.Tag{permissions.Network},
		Reason: fmt.Sprintf("fetch page %d of the docs", n), Asked: []string{asked}, Quorum: 1,
		CreatedAt: at, Deadline: at.Add(patience), State: permissions.Pending,
	}
	if !settled {
		r.Deadline = time.Now().Add(24 * time.Hour)
	}
	r.Session, r.Options = string(r.ID), permissions.Offer(r, nil, r.Widest)
	r.Digest = permissions.ComputeDigest(r)
	c := permissions.Copy{Request: r.ID, Person: asked, Connector: "admin", Button: permissions.NewButton(), DueAt: at}
	if _, _, err := s.Open(ctx, permissions.Opening{Request: r, Copies: []permissions.Copy{c}, RedeemWindow: time.Hour}); err != nil {
		return err
	}
	c.Ref, c.SentAt, c.Shown = "admin", at, r.Revision
	var answered []permissions.Transition
	if settled {
		yes := permissions.Vote{By: asked, Via: "cli", Answer: permissions.Allow(permissions.Once), At: at.Add(time.Second)}
		answered = []permissions.Transition{permissions.Cast{Vote: yes}, permissions.Use{At: yes.At}, permissions.Collect{At: yes.At}}
	}
	for _, e := range answered {
		changed, err := s.Apply(ctx, r.ID, e)
		if err != nil {
			return err
		}
		c.Shown = changed.After.Revision
	}
	return s.MarkShown(ctx, c, "")
}
