// Package permissions defines what daycared decides: what is asked, who answered, what was decided and what that
// decision grants. It imports no other package of daycared and does no I/O.
//
// A [Request] is one question that an agent asks people and waits for. A [Vote] is one person's answer to it. [Step] is
// the life of a request: a pure and total function from a request and a [Transition] to a [Change], which is everything
// that the transition does (the row after it, the votes, the grants, the audit records). A [Grant] is what a [Scope]
// wider than once leaves behind, and [Policy] says what needs asking at all. In doubt, nothing is granted. Waiters and
// deadlines are in permissions/registry.
package permissions

import (
	"crypto/rand"
	"encoding/json"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/oklog/ulid/v2"
)

// Limits of what a request may contain. Lengths are in characters (code points) unless they say bytes.
const (
	MaxReason  = 2000
	MaxMessage = 4000
	MaxDetails = 1 << 20 // bytes
	MaxOptions = 20
	MaxOption  = 200
	// MaxSuggestions is how many changes of an agent's own permissions a yes to its hook can choose between.
	MaxSuggestions = 4
	MaxTags        = 50
	MaxCalls       = 50
	MaxName        = 200       // agent, host, session, key, tool
	MaxPrompt      = 200       // of the last prompt of a session: more is cut
	MaxRows        = 256 << 10 // bytes of a file that a call changes
)

// ID identifies a request: a ULID, so that every index grows at its end.
type ID string

// The lengths of an id and of [ID.Short].
const (
	IDLength = ulid.EncodedSize
	ShortID  = CodeLength + 1
)

// Short names a grant or a token among a few, see [ResolveID]: the end of its id, which is random.
func (id ID) Short() string { return string(id)[max(len(id)-ShortID, 0):] }

// minIDPart is how many characters of an id name it at least.
const minIDPart = 4

// ResolveID returns the id that a name denotes among all: the name itself, or the only id that begins or ends with it, in any case. If
// that is none, it returns the name as it is; if there are several, it refuses and lists them.
func ResolveID(name string, all []ID) (ID, error) {
	part := strings.ToUpper(name)
	if slices.Contains(all, ID(name)) || len(part) < minIDPart {
		return ID(name), nil
	}
	meant := slices.DeleteFunc(slices.Clone(all), func(id ID) bool {
		return !strings.HasPrefix(string(id), part) && !strings.HasSuffix(string(id), part)
	})
	switch len(meant) {
	case 0:
		return ID(name), nil
	case 1:
		return meant[0], nil
	}
	return ID(name), Ambiguous(name, meant)
}

// NewID creates an id for a request created at t. It is safe for concurrent use.
func NewID(t time.Time) ID { return newID(t, rand.Reader) }

// newID creates an id with ten bytes of entropy. A time outside the range of ULIDs is clamped.
func newID(t time.Time, entropy io.Reader) ID {
	ms := uint64(max(t.UnixMilli(), 0))
	return ID(ulid.MustNew(min(ms, ulid.MaxTime()), entropy).String())
}

// idSkew is how far the time in a proposed id may differ from ours.
const idSkew = 10 * time.Minute

// FitsTime reports whether id may be given to a request created at t: a ULID of about that time.
func (id ID) FitsTime(t time.Time) bool {
	u, err := ulid.ParseStrict(string(id))
	return err == nil && u.String() == string(id) && ulid.Time(u.Time()).Sub(t).Abs() < idSkew
}

// Kind is the kind of question a request asks.
type Kind string

// The kinds.
const (
	KindPermission    Kind = "permission"    // may I hold these tags
	KindTool          Kind = "tool"          // may I make this call, or the calls of this step
	KindPause         Kind = "pause"         // look before I go on
	KindClarification Kind = "clarification" // which of these options
)

// Mode distinguishes the two kinds of pause; it is empty for every other kind.
type Mode string

// The modes of a pause.
const (
	ModeContinue Mode = "continue" // continues by itself when nobody answers
	ModeConfirm  Mode = "confirm"  // never continues by itself
)

// State is the state of a request. Every state but pending is terminal.
type State string

// The states.
const (
	Pending       State = "pending"
	Approved      State = "approved"
	Denied        State = "denied"
	Answered      State = "answered"
	Expired       State = "expired"
	Cancelled     State = "cancelled"
	Undeliverable State = "undeliverable"
)

// Values of decided_via besides the names of connectors.
const (
	ViaGrant   = "grant"   // nobody was asked: a grant covered it
	ViaTimeout = "timeout" // nobody answered
	ViaEditor  = "editor"  // through the asker's side, without a proven identity: see [Reply]
	ViaRule    = "rule"    // the configuration has forbidden the call since it was asked: see [Forbid]
)

// Values of decided_via for a request that its asker withdrew with a reason.
const (
	ViaKeyboard   = "keyboard"    // the agent's own dialog was answered
	ViaInterrupt  = "interrupt"   // the agent was interrupted, or the asking process was ended
	ViaSessionEnd = "session_end" // the agent's session is over
	ViaExpiry     = "expiry"      // its caller's last token has expired
)

// When an agent runs a hook for a call.
const (
	HookBefore = "before" // before every call
	HookAgain  = "again"  // when the agent's own rules require asking
	HookDenied = "denied" // after the agent's own judgement has refused the call
)

// Recall says which pending requests of a caller need no answer any more, and why.
type Recall struct {
	Session string          `json:"session" minLength:"1" maxLength:"200"` // exactly
	Agent   string          `json:"agent" minLength:"1" maxLength:"200" doc:"who asked, by its own word"`
	Kind    Kind            `json:"kind,omitzero" doc:"only requests of this kind"`
	Tool    string          `json:"tool,omitzero" doc:"with input, only the one call"`
	Input   json.RawMessage `json:"input,omitzero"`
	Via     string          `json:"reason" enum:"keyboard,interrupt,session_end"`
}

// Matches reports whether r is one of them, ignoring its caller.
func (m Recall) Matches(r Request) bool {
	return r.Session == m.Session && r.Agent == m.Agent && r.Claimed && (m.Kind == "" || r.Kind == m.Kind) &&
		(m.Tool == "" || r.Tool == m.Tool && string(r.Input) == string(m.Input))
}

// Rows are rows of the file that a call changes, as whoever asks has read them. They show people what stands around the change, and
// are no part of the question: an equal question may come with others. The zero Rows mean that there is no such file.
type Rows struct {
	First int    `json:"first"`           // the number of the first row; 1 is the file's first
	Text  string `json:"text,omitempty"`  // the rows
	After int    `json:"after,omitempty"` // how many rows follow, where the call writes the whole file
}

// Call is one tool call of a step.
type Call struct {
	N            int             `json:"n"`
	Tool         string          `json:"tool"`
	Input        json.RawMessage `json:"input"` // canonical
	AffectedPath string          `json:"affected_path,omitempty"`
	Answer       Answer          `json:"answer,omitempty"`
	Comment      string          `json:"comment,omitempty"`
	By           string          `json:"by,omitempty"` // the person whose vote decided it, and when
	At           time.Time       `json:"at,omitzero"`
	EndsRun      bool            `json:"ends,omitempty"` // denying it ends the run, and so denies the whole step
	Rows         []Rows          `json:"was,omitempty"`  // as in [Request]
}

// Request is one question that an agent asks people and waits for. It is a value: nothing in it is shared or modified in
// place. Times are UTC.
type Request struct {
	ID       ID
	Number   int64 // counts requests within a store; codes are derived from it
	Revision int64 // grows with every visible change

	// The question. These fields make the digest.
	Version      int // of the digest
	Kind         Kind
	Mode         Mode
	Caller       Caller
	Agent        string // who asks, as shown
	Claimed      bool   // Agent is only claimed by the caller
	Session      string
	Host         string // claimed
	Cwd          string
	Folder       string // the identity of the folder Cwd, if daycared itself holds it: another folder may get its name later
	Tags         []Tag
	Tool         string
	Input        json.RawMessage // canonical
	AffectedPath string
	Calls        []Call // instead of Tool and Input
	Rows         []Rows // of the file that Input changes, at most one; nil: unknown. Not in the digest, see [Request.ShownDigest]
	EnvNames     []string
	EnvHash      string
	Message      string
	Details      string
	Reason       string
	Choices      []string // of a clarification; of a hook's call, what its agent suggests: see [AllowWithSuggestion]
	Widest       Scope    // the widest scope that the caller wants offered; zero for any
	Digest       Digest

	Held             []Tag // those of Tags that were held already, and are not asked
	HighRisk         bool
	Background       bool
	Foreground       string // the agent whose person is notified
	Step             int    // 0: not in a step
	Key              string
	Hook             string        // the dialect of the agent's hook that asks, which sees one call at a time; empty: no hook
	WantedTimeout    time.Duration // how long the caller wants to wait; zero: the default. Not stored: see Deadline
	HookStage        string        // HookBefore, HookAgain or HookDenied, if the hook says so. Not stored
	Ruled            []Ruling      // what the rules said when it was asked: the one that decides; empty: there were none
	Leads            Leads         // where names lead on the machine where the call runs, as its hook says. Not stored, but see [Ruling]
	Harmless         bool          // the hook has read the whole call and found that people need not be asked. Not stored
	FollowUpExpected bool          // another question about the call follows in a moment, so nobody is shown this one before. Not stored
	ProcessTimeout   time.Duration // how long the asking process runs unless it is ended; zero: unknown. Not stored
	OnlyTitle        bool          // the rest was left out: see Title. Not stored
	Call             string        // identifies the waiting call, so that its own retry finds its place; not stored
	Options          []Option
	Asked            []string // people
	Group            string   // the group that shows it once for all of them, as the connector names it; empty: to each individually
	Quorum           int
	EscalateTo       []string    // people who are asked as well from EscalateAt on, or once they are not locked; empty afterwards
	EscalateAt       time.Time   // zero: never by time
	Reminders        []time.Time // future ones, earliest first
	// SessionTitle and LastPrompt are the title of the session and what it was told to do last, as the asking program says. Only the
	// agent's owner is shown them. Not in the digest.
	SessionTitle, LastPrompt string
	Grants                   []ID // the grants that covered it, wholly or in part
	ExceededRate             int  // the limit of unasked calls a minute that this one exceeds; 0: it is asked for another reason
	CreatedAt                time.Time
	Deadline                 time.Time

	State       State
	Answer      Answer
	Scope       Scope
	Comment     string
	DecidedBy   string
	DecidedVia  string
	DecidedAt   time.Time
	Votes       []Vote
	TimedOut    bool
	Defaulted   bool
	Failure     string // why it could not be delivered
	UsedAt      time.Time
	UsedCall    string // the call that used it
	CollectedAt time.Time
	VoidAt      time.Time
	VoidedBy    string    // who took it back; empty: nobody did, its basis ended
	LapsedAt    time.Time // when it lapsed uncollected
	LeftAt      time.Time // since when nobody waits
	EarlierAt   time.Time // when the same question was answered under the same key, if that answer is over; zero: it was not
}

// SeveralAnswers ends the message of a hook's question that takes several of its choices. A card says it in the language of its reader.
const SeveralAnswers = "\n(Several may be chosen: write them.)"

// MaxLeads is the most bytes of the names in [Leads].
const MaxLeads = 32 << 10

// Leads says where the names in a call lead on the machine where it runs, with links resolved, as the hook there tells it.
type Leads struct {
	Root  string            `json:"root,omitempty"`  // the project's folder, absolute
	Names map[string]string `json:"names,omitempty"` // absolute names, and where each leads
	// Unknown says that the hook could not look at every name: there are too many, a command computes some, or could not be read.
	Unknown bool `json:"unknown,omitempty" doc:"the hook could not look at every name in the call"`
}

// Resolve returns where a name leads, or "" if that is not known: what is not absolute, clean and visible is no name of a file.
func (l Leads) Resolve(name string) string {
	to := l.Names[name]
	if !path.IsAbs(to) || path.Clean(to) != to || strings.ContainsFunc(to, unicode.IsControl) {
		return ""
	}
	return to
}

// Follow returns where a name leads, or "" if that is not known, from what [Leads.Symlinks] leaves: what lies in a folder leads where that
// does.
func (l Leads) Follow(name string) (followed string) {
	if to := l.Resolve(name); to != "" {
		return to
	}
	name = path.Clean(name)
	for range maxFollowed {
		at := name
		for l.Resolve(at) == "" && at != path.Dir(at) {
			at = path.Dir(at)
		}
		to := l.Resolve(at)
		if to == "" {
			return followed
		}
		if followed = path.Join(to, strings.TrimPrefix(name, at)); followed == name {
			return followed
		}
		name = followed
	}
	return ""
}

// maxFollowed is how many links a name may lead through, one after the other.
const maxFollowed = 40

// Symlinks returns the names that lead elsewhere than they say, but for what follows from a folder above them; nil: there are none.
func (l Leads) Symlinks() *Leads {
	names := map[string]string{}
	for name, to := range l.Names {
		plain := path.Clean(name)
		says, above := plain, path.Dir(plain)
		for l.Names[above] == "" && above != path.Dir(above) {
			above = path.Dir(above)
		}
		if folder := l.Names[above]; folder != "" && above != plain {
			says = path.Join(folder, strings.TrimPrefix(plain, above))
		}
		if to != says && to != "" && (name == plain || to != l.Names[plain]) {
			names[name] = to
		}
	}
	if len(names) == 0 && !l.Unknown {
		return nil
	}
	return &Leads{Names: names, Unknown: l.Unknown}
}

// Symlinks is where the names in r's call lead that lead elsewhere than they say, as its hook says: what people are shown of r.Leads.
func (r Request) Symlinks() map[string]string { return r.symlinkLeads().Names }

// LeadsUnknown reports whether the hook could not tell where all names in r's call lead.
func (r Request) LeadsUnknown() bool { return r.symlinkLeads().Unknown }

// SameLeads reports whether people are shown of two requests that their names lead to the same.
func (r Request) SameLeads(q Request) bool {
	return maps.Equal(r.Symlinks(), q.Symlinks()) && r.LeadsUnknown() == q.LeadsUnknown()
}

func (r Request) symlinkLeads() Leads {
	for _, ruled := range r.Ruled {
		if ruled.Leads != nil {
			return *ruled.Leads
		}
	}
	if l := r.Leads.Symlinks(); l != nil { // it was not asked yet
		return *l
	}
	return Leads{}
}

// RowBytes is how many bytes of its file were told beside c.
func (c Call) RowBytes() (n int) {
	for _, was := range c.Rows {
		n += len(was.Text)
	}
	return n
}

// Missing returns the tags that people are asked about.
func (r Request) Missing() []Tag { return Missing(r.Tags, r.Held) }

// ToolCalls returns the calls that a tool request asks about: its own, or those of its step.
func (r Request) ToolCalls() []Call {
	if r.Kind == KindTool && len(r.Calls) == 0 {
		return []Call{{
			N: 1, Tool: r.Tool, Input: r.Input, AffectedPath: r.AffectedPath, Answer: r.Answer, Comment: r.Comment,
			By: r.DecidedBy, At: r.DecidedAt, Rows: r.Rows,
		}}
	}
	return r.Calls
}

// Condensed reports whether one of r's calls has only the hash of what a hook was given, all of which is in the details.
func (r Request) Condensed(c Call) bool {
	return r.Hook != "" && strings.HasPrefix(string(c.Input), `{"input_bytes":`)
}

// FullInput returns the input of one of r's calls for rules that deny or ask. If it has only the hash of what a hook was given (condensed),
// that is read from the details, where text and JSON look alike.
func (r Request) FullInput(c Call) (input json.RawMessage, condensed bool) {
	if !r.Condensed(c) {
		return c.Input, false
	}
	all, name := map[string]any{}, ""
	var lines []string
	end := func() {
		text := strings.Join(lines, "\n")
		if all[name] = text; json.Valid([]byte(text)) {
			all[name] = json.RawMessage(text)
		}
	}
	for line := range strings.SplitSeq(r.Details, "\n") {
		if text, is := strings.CutPrefix(line, "    "); is {
			lines = append(lines, text)
			continue
		}
		end()
		quoted, _ := strconv.QuotedPrefix(line)
		name, _ = strconv.Unquote(quoted)
		lines = nil
	}
	end()
	delete(all, "")
	input, _ = json.Marshal(all) // cannot fail
	return input, true
}

// DenialEndsRun reports whether denying one call of r denies all, since it ends the run.
func (r Request) DenialEndsRun() bool {
	return slices.ContainsFunc(r.Calls, func(c Call) bool { return c.EndsRun })
}

// ToolNames returns the names of the tools asked about, each once, in order.
func (r Request) ToolNames() []string {
	var names []string
	for _, c := range r.ToolCalls() {
		if !slices.Contains(names, c.Tool) {
			names = append(names, c.Tool)
		}
	}
	return names
}

// AgentLabel is the asking agent's name as people see it: a claimed name is marked as a claim.
func (r Request) AgentLabel() string {
	switch {
	case r.Agent == "":
		return strings.Replace(r.Caller.Name, ":", " ", 1)
	case r.Claimed:
		return strings.Replace(r.Caller.Name, ":", " ", 1) + ", says it is " + r.Agent
	}
	return r.Agent
}

// Timeout is how long the request waits for an answer.
func (r Request) Timeout() time.Duration { return r.Deadline.Sub(r.CreatedAt) }

// RequestView is a request with its copies and waiters, as the servers report it.
type RequestView struct {
	Request Request
	Code    string // for people only: servers for agents omit it
	Copies  []Copy
	Waiting int
	Editor  bool // it may also be answered in the asker's own editor, see [Reply]
	// Keyboard says that the dialog of the asker's own program may answer it before people do.
	Keyboard bool
	Delayed  []string       // channels that do not deliver it although it is due; it is tried again
	Brief    bool           // long texts were left out of Request, as in lists
	Recent   RecentActivity // what its caller did before it; for people only, of a pending request
}

// Vote is one person's answer to a request. The connector sets who and through what; everything else is read from the
// request's row.
type Vote struct {
	By      string
	Via     string // the connector: telegram, whatsapp, terminal, cli, web; never an editor, which proves nobody
	Answer  Answer
	Call    int // the answered call of a step; 0: all open ones
	Comment string
	At      time.Time
	Rule    GrantedRule // of an answer with [Rule]: what the person was shown
	// Account is the proven account, as the audit names it: telegram:ID, whatsapp:NUMBER, uid:N. Empty: unknown.
	Account string
	// Key identifies the chat event that carried the vote ("telegram:bot", update id), so that a redelivery is harmless.
	// Empty if the connector delivers once.
	Key string
}

// Brief returns at most most characters of a text, with "…" if it was cut.
func Brief(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return strings.TrimRight(string(runes[:most-1]), "\u200D") + "…"
	}
	return text
}

// Title returns r without what it asks for: who asks, the kind, the names of tools and the folder are left, for a chat that
// shows no more. Nothing is offered there that allows.
func (r Request) Title() Request {
	r.Input, r.AffectedPath, r.Message, r.Details, r.Reason, r.Comment = nil, "", "", "", "", ""
	r.EnvNames, r.Choices, r.Held, r.Rows, r.OnlyTitle = nil, nil, nil, nil, true
	r.Ruled, r.Leads, r.SessionTitle, r.LastPrompt = nil, Leads{}, "", ""
	r.Tags = slices.Clone(r.Tags)
	for i := range r.Tags {
		r.Tags[i].path = ""
	}
	r.Calls, r.Votes = slices.Clone(r.Calls), slices.Clone(r.Votes)
	for i := range r.Calls {
		c := &r.Calls[i]
		c.Input, c.AffectedPath, c.Comment, c.Rows = nil, "", "", nil
	}
	for i := range r.Votes {
		r.Votes[i].Comment = ""
	}
	r.Options = slices.DeleteFunc(slices.Clone(r.Options), func(o Option) bool { return o.ID != Deny && o.ID != Interrupt })
	return r
}
