package permissions

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// DigestVersion is the version of the digest that new requests get. A row keeps the version it was made with.
const DigestVersion = 1

// Digest is a SHA-256 of what was asked. The zero Digest is none.
type Digest [sha256.Size]byte

const digestPrefix = "sha256:"

// String is the digest as `sha256:` and hexadecimal digits.
func (d Digest) String() string { return digestPrefix + hex.EncodeToString(d[:]) }

// Short is enough of the digest for a person to compare: 4f3a…91.
func (d Digest) Short() string {
	h := hex.EncodeToString(d[:])
	return h[:4] + "…" + h[len(h)-2:]
}

// ParseDigest reads what [Digest.String] wrote.
func ParseDigest(text string) (d Digest, err error) {
	digits, found := strings.CutPrefix(text, digestPrefix)
	b, err := hex.DecodeString(digits)
	if !found || err != nil || len(b) != len(d) {
		return d, fmt.Errorf("a digest is %s and %d hexadecimal digits, not %q", digestPrefix, 2*len(d), text)
	}
	return Digest(b), nil
}

// CanonicalJSON is the one form in which an input is stored, shown, hashed and run: members in order, no space, strings
// unescaped where they can be, numbers as written (RFC 8785 would round them, and two different inputs could meet).
// It refuses duplicate members and invalid UTF-8. Empty input is null.
func CanonicalJSON(input json.RawMessage) (json.RawMessage, error) {
	if len(input) == 0 {
		return json.RawMessage("null"), nil
	}
	v := jsontext.Value(slices.Clone(input))
	if err := v.Format(
		jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false),
		jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false),
		jsontext.ReorderRawObjects(true), jsontext.PreserveRawStrings(false),
		jsontext.SpaceAfterColon(false), jsontext.SpaceAfterComma(false), jsontext.Multiline(false),
	); err != nil {
		return nil, fmt.Errorf("the input is not strict JSON: %w", err)
	}
	return json.RawMessage(v), nil
}

// ComputeDigest is the digest of what r asks, in the version that r carries. Every field is preceded by its length, so
// no two different requests have the same bytes. Id, key, code and times are left out.
func ComputeDigest(r Request) Digest {
	w := &fields{}
	w.number(r.Version)
	w.text(r.Caller.Name, r.Session, string(r.Kind), string(r.Mode))
	w.number(len(r.Tags))
	for _, t := range r.Tags {
		w.text(t.String())
	}
	w.text(r.Tool, string(r.Input), r.AffectedPath)
	w.number(len(r.Calls))
	for _, c := range r.Calls {
		w.text(c.Tool, string(c.Input), c.AffectedPath)
	}
	w.text(r.Host, r.Cwd)
	w.number(len(r.EnvNames))
	w.text(r.EnvNames...)
	w.text(r.EnvHash)
	if r.Claimed {
		w.text("claimed")
	} else {
		w.text("proven")
	}
	w.text(r.Agent, r.Message, r.Details, r.Reason)
	w.number(len(r.Choices))
	w.text(r.Choices...)
	w.text(r.Widest.String())
	return sha256.Sum256(w.b)
}

// CallDigest is the digest of one exact call of r: what it does, and where. The same words in another folder are
// another call.
func CallDigest(r Request, c Call) Digest {
	w := &fields{}
	w.number(DigestVersion)
	w.text(c.Tool, string(c.Input), c.AffectedPath, r.Host, r.Cwd, r.EnvHash)
	w.number(len(r.EnvNames))
	w.text(r.EnvNames...)
	return sha256.Sum256(w.b)
}

// fields is a byte string in which every field is preceded by its length.
type fields struct{ b []byte }

func (f *fields) number(n int) { f.b = binary.BigEndian.AppendUint64(f.b, uint64(n)) }

func (f *fields) text(texts ...string) {
	for _, t := range texts {
		f.number(len(t))
		f.b = append(f.b, t...)
	}
}
