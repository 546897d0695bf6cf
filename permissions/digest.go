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

// Answerable refuses JSON that cannot be written into an answer and read there: what is none, has a name twice in an object, or
// could not be read that much deeper in another value.
func Answerable(text string, deeper int) error {
	valid := func(text string) bool { return jsontext.Value(text).IsValid(jsontext.AllowInvalidUTF8(true)) }
	if !valid(text) || strings.Count(text, "[")+strings.Count(text, "{") > 10_000-deeper &&
		!valid(strings.Repeat("[", deeper)+text+strings.Repeat("]", deeper)) {
		return errors.New("a name stands there twice, or it is nested too deep")
	}
	return nil
}

// PlainJSON says what is wrong with JSON to whoever wrote it: a model and a person know nothing of our types.
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
	if r.Folder != "" { // which requests before it had not
		w.text(r.Folder)
	}
	return sha256.Sum256(w.b)
}

// CallDigest is the digest of one exact call of r: what it does, and where. The same words in another folder, or by the hook of
// another agent, are another call.
func CallDigest(r Request, c Call) Digest {
	w := &fields{}
	w.number(DigestVersion)
	w.text(c.Tool, string(c.Input), c.AffectedPath, r.Host, r.Cwd, r.EnvHash)
	w.number(len(r.EnvNames))
	w.text(r.EnvNames...)
	if r.Hook != "" {
		w.text(r.Hook)
	}
	return sha256.Sum256(w.b)
}

// Normalize gives r the name that its caller proves, if any, tool inputs their one form, and calls their numbers: the shape
// in which a question is digested. A proven name needs no claim, and a claim that repeats it is none.
func (r *Request) Normalize() (err error) {
	if proven := r.Caller.Proven(); proven != r.Caller.Name && (r.Agent == "" || r.Agent == proven) {
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

// Answers reports whether r, as somebody told it, is the row of question q: by its digest, in which all but the caller's name
// is q's own, and by what it shows of what is asked. A row that answers another question permits nothing.
func (r Request) Answers(q Request) bool {
	q.Caller = r.Caller
	if q.Normalize() != nil || r.Normalize() != nil || !r.shows(q) {
		return false
	}
	for q.Version = DigestVersion; q.Version > 0; q.Version-- { // a row that is joined may be older than this program
		if ComputeDigest(q) == r.Digest {
			return true
		}
	}
	return false
}

// shows reports whether r and q, both normalized, ask the same thing.
func (r Request) shows(q Request) bool {
	return r.Kind == q.Kind && r.Mode == q.Mode && slices.EqualFunc(r.Tags, q.Tags, func(a, b Tag) bool { return a.String() == b.String() }) &&
		r.Tool == q.Tool && (len(q.Calls) > 0 || string(r.Input) == string(q.Input)) && r.AffectedPath == q.AffectedPath &&
		r.Message == q.Message && slices.Equal(r.Choices, q.Choices) &&
		slices.EqualFunc(r.Calls, q.Calls, func(a, b Call) bool { return a.Tool == b.Tool && string(a.Input) == string(b.Input) })
}

// ActionDigest is the digest of what r is about, whatever is said or claimed beside it: who it is that asks, and the tags,
// the calls or the question. What differs in nothing else is the same to those who denied it.
func ActionDigest(r Request) Digest {
	w := &fields{}
	w.text(r.Caller.Name, string(r.Kind), string(r.Mode), r.Message)
	parts := append([]string{}, r.Choices...)
	for _, t := range r.Tags {
		parts = append(parts, t.String())
	}
	for _, c := range r.ToolCalls() {
		one := &fields{}
		one.text(c.Tool, c.act())
		parts = append(parts, string(one.b))
	}
	slices.Sort(parts)
	w.text(slices.Compact(parts)...)
	return sha256.Sum256(w.b)
}

// act is the input of c without what a shell's agent only says of its command.
func (c Call) act() string {
	var input map[string]json.RawMessage
	if !runsCode(c.Tool) || json.Unmarshal(c.Input, &input) != nil || input["description"] == nil {
		return string(c.Input)
	}
	delete(input, "description")
	text, err := json.Marshal(input)
	if err != nil {
		return string(c.Input)
	}
	return string(text)
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

// Type names what a record or an event of the daemon is about.
type Type string

// The types that this package writes. They are the words of the audit and of the event stream.
const (
	RequestCreated   Type = "REQUEST_CREATED"
	RequestShown     Type = "REQUEST_SHOWN"
	RequestVoted     Type = "REQUEST_VOTED"
	RequestSettled   Type = "REQUEST_SETTLED"
	RequestUsed      Type = "REQUEST_USED"
	RequestVoided    Type = "REQUEST_VOIDED"
	RequestLapsed    Type = "REQUEST_LAPSED"
	RequestRerouted  Type = "REQUEST_REROUTED"
	RequestExtended  Type = "REQUEST_EXTENDED"
	RequestEscalated Type = "REQUEST_ESCALATED"
	GrantAdded       Type = "GRANT_ADDED"
	GrantRevoked     Type = "GRANT_REVOKED"
	GrantEnded       Type = "GRANT_ENDED"
	DecisionRefused  Type = "DECISION_REFUSED"
	AllStopped       Type = "ALL_STOPPED"
	AllResumed       Type = "ALL_RESUMED"
	TokenCreated     Type = "TOKEN_CREATED"
	TokenRevoked     Type = "TOKEN_REVOKED"
	Paired           Type = "PAIRED"
	Unpaired         Type = "UNPAIRED"
	AccountSuspended Type = "ACCOUNT_SUSPENDED" // it may be somebody else's by now
	PersonLocked     Type = "PERSON_LOCKED"
	PersonUnlocked   Type = "PERSON_UNLOCKED"
	UnlockAsked      Type = "UNLOCK_ASKED"  // by one of the two people that it takes
	GroupRenamed     Type = "PLACE_MOVED"   // a group has another id
	AuditPruned      Type = "AUDIT_PRUNED"  // what came before was deleted, and this signs it off
	RowsPruned       Type = "ROWS_PRUNED"   // old requests or tokens were deleted
	RowSuspended     Type = "ROW_SUSPENDED" // again: by hand it was put back to before a restore
	AuditKeyed       Type = "AUDIT_KEYED"   // from here on entries are keyed, and what came before is sealed as it was
	// StoreRestored begins the life of a store that was put back from a copy. Its seq lies above a gap, in which the entries
	// are that were lost; its detail names the entry before the gap and why the store counts as restored.
	StoreRestored     Type = "STORE_RESTORED"
	GrantReinstated   Type = "GRANT_REINSTATED"
	TokenReinstated   Type = "TOKEN_REINSTATED"
	PairingReinstated Type = "PAIRING_REINSTATED"
)

// The types of what sessions of agents of ours do. Their records name the session in the detail "session" and the person
// who may see it in "person".
const (
	SessionStatus      Type = "SESSION_STATUS"
	SessionEnded       Type = "SESSION_ENDED"
	RunFinished        Type = "RUN_FINISHED"
	WaitAckEnter       Type = "WAIT_ACK_ENTER"
	AckApproved        Type = "ACK_APPROVED"
	AckRejected        Type = "ACK_REJECTED"
	ToolFinished       Type = "TOOL_FINISHED"        // once for each call, also one that did not run
	AckDecisionHandled Type = "ACK_DECISION_HANDLED" // once for the calls that were allowed, and once for those denied
)

// Record is one row of the audit before the store chains it.
type Record struct {
	Type    Type
	At      time.Time
	Request ID
	Actor   string // a person, "operator", a caller, or empty for the daemon itself
	Via     string
	Detail  map[string]string
}

// Entry is a record in its audit chain. Each writing daemon has a chain of its own, so that none queues for another's
// head; within a chain every entry holds the hash of the one before, so none can be changed or taken out unseen.
type Entry struct {
	Chain string
	Seq   int64 // 1, 2, 3 … within the chain
	Prev  Digest
	Hash  Digest
	Record
}

// Head is the last entry of a chain, and what is kept of that chain.
type Head struct {
	Entry
	First   int64 // the seq of the first entry that is kept
	Entries int   // so many are kept; there are gaps where the store was restored
	// Unkeyed is the last entry that was not checked with the audit key: the one after it seals those before it as they were
	// then. 0: all were.
	Unkeyed int64
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
