package permissions

import (
	"crypto/sha256"
	"maps"
	"slices"
)

// Entry is a record in its audit chain. Each writing daemon has a chain of its own, so that none queues for another's
// head; within a chain every entry holds the hash of the one before, so none can be changed or taken out unseen.
type Entry struct {
	Chain string
	Seq   int64 // 1, 2, 3 … within the chain
	Prev  Digest
	Hash  Digest
	Record
}

// ComputeHash is the SHA-256 of everything in e but Hash itself, each field preceded by its length. Times count in
// microseconds.
func (e Entry) ComputeHash() Digest {
	w := &fields{}
	w.text(e.Chain)
	w.number(int(e.Seq))
	w.text(string(e.Prev[:]), string(e.Type))
	w.number(int(e.At.UnixMicro()))
	w.text(string(e.Request), e.Actor, e.Via)
	w.number(len(e.Detail))
	for _, k := range slices.Sorted(maps.Keys(e.Detail)) {
		w.text(k, e.Detail[k])
	}
	return sha256.Sum256(w.b)
}
