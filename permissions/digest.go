package permissions

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	typed "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// DigestVersion is the version of the digest that new requests get. A row keeps the version it was made with.
const DigestVersion = 1

// Digest is a SHA-256 of what was asked. The zero Digest is none.
type Digest [sha256.Size]byte

const digestPrefix = "sha256:"

// String formats the digest as `sha256:` and hexadecimal digits.
func (d Digest) String() string { return digestPrefix + hex.EncodeToString(d[:]) }

// Short returns enough of the digest for a person to compare: 4f3a…91.
func (d Digest) Short() string {
	h := hex.EncodeToString(d[:])
	return h[:4] + "…" + h[len(h)-2:]
}

// ParseDigest parses the output of [Digest.String].
func ParseDigest(text string) (d Digest, err error) {
	digits, found := strings.CutPrefix(text, digestPrefix)
	b, err := hex.DecodeString(digits)
	if !found || err != nil || len(b) != len(d) {
		return d, fmt.Errorf("a digest is %s and %d hexadecimal digits, not %q", digestPrefix, 2*len(d), text)
	}
	return Digest(b), nil
}

// CanonicalJSON returns the one form in which an input is stored, shown, hashed and run: members sorted, no space,
// strings unescaped where possible, numbers as written (RFC 8785 would round them, and two different inputs could become
// equal). It refuses duplicate members and invalid UTF-8. Empty input is null.
func CanonicalJSON(input json.RawMessage) (json.RawMessage, error) {
	if len(input) == 0 {
		return json.RawMessage("null"), nil
	}
	v := jsontext.Value(slices.Clone(input))
	err := v.Format(
		jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false),
		jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false),
		jsontext.ReorderRawObjects(true), jsontext.PreserveRawStrings(false),
		jsontext.SpaceAfterColon(false), jsontext.SpaceAfterComma(false), jsontext.Multiline(false),
	)
	if err = cmp.Or(err, Answerable(string(v), 1000)); err != nil {
		return nil, fmt.Errorf("the input is not strict JSON: %w", PlainJSON(err))
	}
	return json.RawMessage(v), nil
}

// Answerable refuses JSON that cannot be embedded in an answer and parsed there: invalid JSON, duplicate names in an
// object, or nesting that is too deep inside that many levels more.
func Answerable(text string, deeper int) error {
	valid := func(text string) bool { return jsontext.Value(text).IsValid(jsontext.AllowInvalidUTF8(true)) }
	if !valid(text) || strings.Count(text, "[")+strings.Count(text, "{") > 10_000-deeper &&
		!valid(strings.Repeat("[", deeper)+text+strings.Repeat("]", deeper)) {
		return errors.New("a name stands there twice, or it is nested too deep")
	}
	return nil
}

// PlainJSON explains a JSON error to a model or a person, without naming Go types.
func PlainJSON(err error) error {
	broken, unread := errors.AsType[*jsontext.SyntacticError](err)
	odd, unfit := errors.AsType[*typed.SemanticError](err)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it ends too early")
	case unread:
		return fmt.Errorf("%w, at byte %d", broken.Err, broken.ByteOffset)
	case unfit && errors.Is(err, typed.ErrUnknownName):
		return fmt.Errorf("there is no %q", odd.JSONPointer)
	case unfit:
		return fmt.Errorf("%q has another type than it must have", odd.JSONPointer)
	}
	return err
}

// ComputeDigest returns the digest of what r asks, in the version that r carries. Every field is preceded by its length,
// so that different requests have different bytes. Id, key, code and times are left out.
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
	if r.Folder != "" { // requests of older versions have none
		w.text(r.Folder)
	}
	return sha256.Sum256(w.b)
}

// ShownDigest returns the digest of what people are shown of r: its own, and with it the rows of files and the links that were told.
func (r Request) ShownDigest() Digest {
	w := &fields{}
	w.text(string(r.Digest[:]))
	all, told := [][]Rows{r.Rows}, false
	for _, c := range r.Calls {
		all = append(all, c.Rows)
	}
	for _, part := range all {
		w.number(len(part))
		for _, was := range part {
			told = true
			w.number(was.First)
			w.text(was.Text)
			w.number(was.After)
		}
	}
	leads := r.Symlinks()
	for _, name := range slices.Sorted(maps.Keys(leads)) {
		told = true
		w.text(name, leads[name])
	}
	if r.LeadsUnknown() {
		told = true
		w.text("leads are unknown")
	}
	if !told {
		return r.Digest
	}
	return sha256.Sum256(w.b)
}

// HookACP is the [Request.Hook] of calls that programs describe over ACP. Their [Request.Reason] is the title of the call, which may have
// the name of its tool.
const HookACP = "acp"

// CallDigest returns the digest of one exact call of r: what it does, where, and what people are shown of it besides its reason. The same
// words in another folder, by the hook of another agent, or with a name that leads elsewhere by now are another call. So are those with
// other details or another message, where what a call does may be said alone; those of the daemon's own tools follow from the input.
func CallDigest(r Request, c Call) Digest {
	w := &fields{}
	w.number(DigestVersion)
	w.text(c.Tool, string(c.Input), c.AffectedPath, r.Host, r.Cwd, r.EnvHash)
	w.number(len(r.EnvNames))
	w.text(r.EnvNames...)
	if r.Hook != "" {
		w.text(r.Hook)
	}
	described := r.Hook == HookACP || !r.Caller.IsOurs()
	if described && r.Details != "" {
		w.text("details", r.Details)
	}
	if described && r.Message != "" {
		w.text("message", r.Message)
	}
	if r.Hook == HookACP { // the call's title
		w.text(r.Reason)
	}
	leads := r.Symlinks()
	for _, name := range slices.Sorted(maps.Keys(leads)) {
		w.text("leads", name, leads[name])
	}
	if r.LeadsUnknown() {
		w.text("leads are unknown")
	}
	return sha256.Sum256(w.b)
}

// Normalize sets the name that r's caller proves, if any, the canonical tool inputs, and the numbers of calls: the form
// that is digested. A proven name needs no claim, so a claim that repeats it is dropped.
func (r *Request) Normalize() (err error) {
	if proven := r.Caller.ProvenName(); proven != r.Caller.Name && (r.Agent == "" || r.Agent == proven) {
		r.Agent, r.Claimed = proven, false
	}
	if r.Kind != KindTool {
		return nil
	}
	r.Calls = slices.Clone(r.Calls)
	for i := range r.Calls {
		c := &r.Calls[i]
		c.N, c.Answer, c.Comment, c.By, c.At = i+1, "", "", "", time.Time{}
		if c.Input, err = CanonicalJSON(c.Input); err != nil {
			return err
		}
	}
	if len(r.Calls) == 0 {
		r.Input, err = CanonicalJSON(r.Input)
	}
	return err
}

// IsRowOf reports whether r is the row of question q: by its digest, which includes everything but the caller's name,
// and by what it shows. A row of another question permits nothing.
func (r Request) IsRowOf(q Request) bool {
	q.Caller = r.Caller
	if q.Normalize() != nil || r.Normalize() != nil || !r.asksSameAs(q) {
		return false
	}
	for q.Version = DigestVersion; q.Version > 0; q.Version-- { // a row that is joined may have an older version
		if ComputeDigest(q) == r.Digest {
			return true
		}
	}
	return false
}

// asksSameAs reports whether r and q, both normalized, ask the same thing.
func (r Request) asksSameAs(q Request) bool {
	return r.Kind == q.Kind && r.Mode == q.Mode && slices.EqualFunc(r.Tags, q.Tags, func(a, b Tag) bool { return a.String() == b.String() }) &&
		r.Tool == q.Tool && (len(q.Calls) > 0 || string(r.Input) == string(q.Input)) && r.AffectedPath == q.AffectedPath &&
		r.Message == q.Message && slices.Equal(r.Choices, q.Choices) &&
		slices.EqualFunc(r.Calls, q.Calls, func(a, b Call) bool { return a.Tool == b.Tool && string(a.Input) == string(b.Input) })
}

// ActionDigest returns the digest of the action of r, without explanations and claims: the caller, and the tags, the
// calls or the question. Requests that differ in nothing else are the same to a person who denied one.
func ActionDigest(r Request) Digest {
	w := &fields{}
	if r.Kind == KindTool { // what is suggested beside a call makes it no other
		r.Message, r.Choices = "", nil
	}
	w.text(r.Caller.Name, string(r.Kind), string(r.Mode), r.Message)
	parts := append([]string{}, r.Choices...)
	for _, t := range r.Tags {
		parts = append(parts, t.String())
	}
	for _, c := range r.ToolCalls() {
		one := &fields{}
		one.text(c.Tool, c.inputWithoutDescription())
		parts = append(parts, string(one.b))
	}
	slices.Sort(parts)
	w.text(slices.Compact(parts)...)
	return sha256.Sum256(w.b)
}

// inputWithoutDescription returns the input of c without the description that a shell tool's agent adds to its command.
func (c Call) inputWithoutDescription() string {
	var input map[string]json.RawMessage
	if !RunsCode(c.Tool) || json.Unmarshal(c.Input, &input) != nil || input["description"] == nil {
		return string(c.Input)
	}
	delete(input, "description")
	text, err := json.Marshal(input)
	if err != nil {
		return string(c.Input)
	}
	return string(text)
}

// fields builds a byte string in which every field is preceded by its length.
type fields struct{ b []byte }

func (f *fields) number(n int) { f.b = binary.BigEndian.AppendUint64(f.b, uint64(n)) }

func (f *fields) text(texts ...string) {
	for _, t := range texts {
		f.number(len(t))
		f.b = append(f.b, t...)
	}
}
