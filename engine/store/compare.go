package store

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
	"time"

	"github.com/daycared/daycared/permissions"
)

// comparison is of the rows with what the audit says of them. Of each entry it keeps a few numbers, so that a long audit is
// not in memory.
type comparison struct {
	own    identity
	keys   []*sealer
	since  time.Time // entries from before were deleted; zero: none were
	seed   maphash.Seed
	told   map[uint64]uint64 // what the entries say of something, by what it is
	heard  int               // how many entries
	paired map[string]string // the account that PERSON/CHANNEL has by the entries; empty: none any more
	locked map[string]bool   // whether a person is locked by the entries

	stopped *string // who stopped everything by the entries, empty for nobody; nil: they do not say
}

func (c *comparison) sum(words ...string) uint64 {
	return maphash.String(c.seed, strings.Join(words, "\x00"))
}

func at(t time.Time) string { return strconv.FormatInt(micros(t), 10) }

// What the entries say something of.
const (
	created = "created"
	settled = "settled" // how a request ended
	used    = "used"
	voided  = "voided"
	voted   = "voted" // who answered it, and when
	opens   = "opens" // since when a grant or a token does
	closed  = "closed"
)

// hear notes what an entry says.
func (c *comparison) hear(e permissions.Entry) {
	c.heard++
	id := string(e.Request)
	say := func(what string, about ...string) {
		c.told[c.sum(append([]string{what}, about...)...)] = c.sum(at(e.At))
	}
	switch e.Type {
	case permissions.RequestCreated:
		say(created, id)
	case permissions.RequestSettled:
		c.told[c.sum(settled, id)] = c.sum(e.Detail["state"], e.Detail["answer"], e.Via, at(e.At))
		say(voted, id, e.Actor, e.Via, at(e.At))
	case permissions.RequestVoted:
		say(voted, id, e.Actor, e.Via, at(e.At))
	case permissions.RequestUsed:
		say(used, id)
	case permissions.RequestVoided:
		say(voided, id)
	case permissions.GrantAdded:
		say(opens, e.Detail["grant"], id, e.Actor)
	case permissions.GrantRevoked, permissions.GrantEnded:
		say(closed, e.Detail["grant"])
	case permissions.TokenCreated:
		say(opens, e.Detail["id"], e.Detail["name"])
	case permissions.TokenRevoked:
		say(closed, e.Detail["id"])
	case permissions.Paired:
		c.paired[e.Detail["person"]+"/"+e.Detail["via"]] = e.Detail["address"]
	case permissions.Unpaired:
		c.paired[e.Detail["person"]+"/"+e.Detail["via"]] = ""
	case permissions.AllStopped:
		by := cmp.Or(e.Actor, stoppedByNobody)
		c.stopped = &by
	case permissions.AllResumed:
		c.stopped = new(string)
	case permissions.StoreRestored: // a stop of the store that was replaced holds on
		c.stopped = nil
	case permissions.PersonLocked, permissions.PersonUnlocked:
		c.locked[e.Detail["person"]] = e.Type == permissions.PersonLocked
	}
}

// says reports whether the entries say that of something. Those that said what happened at a time may have been deleted.
func (c *comparison) says(when time.Time, want uint64, what ...string) bool {
	told, known := c.told[c.sum(what...)]
	return known && told == want || !known && when.Before(c.since)
}

func (c *comparison) saysAnything(what ...string) bool {
	_, known := c.told[c.sum(what...)]
	return known
}

// readRows compares the requests with their votes, the grants, tokens and pairings that are open, and the locks.
func (c *comparison) readRows(ctx context.Context, from source, v *Verified) error {
	var seals *sealer
	for _, k := range c.keys {
		if c.own.holds(k) {
			seals = k
		}
	}
	switch {
	case c.own.chain == "":
	case seals == nil && len(c.own.mac) == 0:
		v.Unchecked = append(v.Unchecked, beforeKey)
	case seals == nil:
		v.Unchecked = append(v.Unchecked, "the seals of requests, votes, grants, tokens and pairings: the audit key is not here, or "+
			"the name, the codes or the stop of the store were changed")
	}
	if err := eachSealed(ctx, from, func(r permissions.Request, mac []byte) error {
		if seals != nil && !seals.holds(mac, "requests", sealing(&r)...) {
			return unsealed("request " + string(r.ID))
		}
		return c.request(r)
	}); err != nil {
		return err
	}
	if err := comparePending(ctx, from); err != nil {
		return err
	}
	if err := compareOpen(ctx, c, from, seals, grantGate, func(g permissions.Grant) bool {
		return c.says(g.CreatedAt, c.sum(at(g.CreatedAt)), opens, string(g.ID), string(g.Request), g.By) &&
			!c.saysAnything(closed, string(g.ID))
	}); err != nil {
		return err
	}
	if err := compareOpen(ctx, c, from, seals, tokenGate, func(t permissions.Token) bool {
		return c.says(t.CreatedAt, c.sum(at(t.CreatedAt)), opens, string(t.ID), t.Name) &&
			!c.saysAnything(closed, string(t.ID))
	}); err != nil {
		return err
	}
	if err := c.locks(ctx, from, seals); err != nil {
		return err
	}
	if c.stopped != nil && *c.stopped != c.own.stoppedBy {
		return c.differs("who stopped everything")
	}
	return compareOpen(ctx, c, from, seals, pairingGate, func(p permissions.Pairing) bool {
		address, known := c.paired[p.Person+"/"+p.Via]
		return known && address == p.Address || !known && p.PairedAt.Before(c.since)
	})
}

// differs is the error of a row that its entries contradict.
func (c *comparison) differs(what string) error {
	if c.heard == 0 {
		return fmt.Errorf("the audit is empty, and the store has %s", what)
	}
	return fmt.Errorf("%s is not what the audit says of it", what)
}

// request compares a request, and the votes on it, with its entries.
func (c *comparison) request(r permissions.Request) error {
	name := "request " + string(r.ID)
	if !c.says(r.CreatedAt, c.sum(at(r.CreatedAt)), created, string(r.ID)) {
		return c.differs(name)
	}
	for _, vote := range r.Votes {
		if !c.says(vote.At, c.sum(at(vote.At)), voted, string(r.ID), vote.By, vote.Via, at(vote.At)) {
			return c.differs("the vote of " + vote.By + " on " + name)
		}
	}
	if r.State == permissions.Pending {
		if c.saysAnything(settled, string(r.ID)) {
			return c.differs(name)
		}
		return nil
	}
	answer := string(r.Answer)
	if r.TimedOut || r.Defaulted { // nobody gave it
		answer = ""
	}
	if !c.says(r.DecidedAt, c.sum(string(r.State), answer, r.DecidedVia, at(r.DecidedAt)), settled, string(r.ID)) ||
		c.saysAnything(used, string(r.ID)) && r.UsedAt.IsZero() || c.saysAnything(voided, string(r.ID)) && r.VoidAt.IsZero() {
		return c.differs(name)
	}
	return nil
}

// comparePending compares the words of the requests that are pending with their digests.
func comparePending(ctx context.Context, from source) error {
	for after := int64(0); ; {
		page, err := many(ctx, from, readPending, after, sealedPage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, r := range page {
			if permissions.ComputeDigest(r) != r.Digest {
				return unsealed("request " + string(r.ID))
			}
			after = r.Number
		}
	}
}

// compareOpen checks the seals of the open rows of a table, where there is a key, and what else is to hold of each. What was
// closed has none.
func compareOpen[T any](
	ctx context.Context, c *comparison, from source, seals *sealer, g gate[T], told func(T) bool,
) error {
	found, err := collect(ctx, from, g.what, g.rowFields, g.open)
	if err != nil {
		return err
	}
	if g.closed != "" {
		closed, err := collect(ctx, from, g.what, g.rowFields, g.closed)
		if err == nil && len(closed) > 0 {
			err = c.differs(g.name(closed[0].row))
		}
		if err != nil {
			return err
		}
	}
	for _, r := range found {
		if seals != nil && !g.holds(seals, r) {
			return unsealed(g.name(r.row))
		}
		if !told(r.row) {
			return c.differs(g.name(r.row))
		}
	}
	return nil
}
