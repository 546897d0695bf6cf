// Package wire is the protocol of daycared's sockets: the JSON of requests and questions, its strict decoding, problem details
// for refusals, and the client's side of a connection. The server's side is internal/server, so that a program that only asks
// does not bring a server along.
//
// It defines syntax only: the meaning is in permissions, its one import of ours.
//
// Strict means: UTF-8 without a byte order mark, every member known, spelled exactly and given once, at most [MaxDepth]
// levels, nothing after the value, and bounded in size. What another parser could read differently is refused.
package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Request is a request as programs read it. The names and their order are a contract; a member without a value is null,
// a list without members is []. Times are UTC.
type Request struct {
	ID           permissions.ID       `json:"id"`
	Kind         permissions.Kind     `json:"kind"`
	Agent        *string              `json:"agent"`
	Caller       string               `json:"caller"`
	Session      *string              `json:"session"`
	Background   bool                 `json:"background"`
	Foreground   *string              `json:"foreground"`
	Step         *int                 `json:"step"`
	Mode         *permissions.Mode    `json:"mode"`
	Claimed      bool                 `json:"claimed"`
	Host         *string              `json:"host"`
	Cwd          *string              `json:"cwd"`
	Tags         []string             `json:"permissions"`
	Tool         *string              `json:"tool"`
	Input        json.RawMessage      `json:"input"`
	AffectedPath *string              `json:"affected_path"`
	Was          []permissions.Rows   `json:"was,omitzero" doc:"rows of the file that the input changes, by the asker's word"`
	Calls        []Call               `json:"calls"` // null outside a step
	HighRisk     bool                 `json:"high_risk"`
	Message      *string              `json:"message"`
	Details      *string              `json:"details"`
	Reason       *string              `json:"reason"`
	Digest       string               `json:"digest" doc:"of what people are shown"`
	Question     string               `json:"question_digest,omitzero" doc:"without was, where digest is of more"`
	Key          *string              `json:"key"`
	Options      []permissions.Option `json:"options"`
	Suggested    []string             `json:"suggested,omitzero"` // by the agent of a hook's call, whether offered or not
	State        permissions.State    `json:"state"`
	Answer       *permissions.Answer  `json:"answer"`
	Scope        *string              `json:"scope"`
	Comment      *string              `json:"comment"`
	DecidedBy    *string              `json:"decided_by"`
	DecidedVia   *string              `json:"decided_via"`
	DecidedAt    *time.Time           `json:"decided_at"`
	Votes        []Vote               `json:"votes"`
	Quorum       int                  `json:"quorum"`
	CreatedAt    *time.Time           `json:"created_at"`
	Deadline     *time.Time           `json:"deadline"`
	Asked        []string             `json:"asked"`
	Delivered    []Delivery           `json:"delivered"`
	TimedOut     bool                 `json:"timed_out" doc:"of a clarification: its first option counts; the rest is expired"`
	Defaulted    bool                 `json:"defaulted"`
	UsedAt       *time.Time           `json:"used_at"`
	VoidedBy     *string              `json:"voided_by,omitzero"` // only of an approval that a person revoked
	VoidAt       *time.Time           `json:"void_at"`
	LapsedAt     *time.Time           `json:"lapsed_at,omitzero"` // nobody used the approval in time
	Waiting      int                  `json:"waiting"`
	Result       string               `json:"result"`
	Hook         string               `json:"hook,omitzero"` // only of an agent's own hook
	// Grants are those by which nobody had to be asked. Without any, an unasked request was allowed by policy.
	Grants []permissions.ID `json:"grants,omitzero"`
	// Beyond is the number of unasked calls per minute that this call exceeds; omitted if it is asked for another reason.
	Beyond int `json:"beyond,omitzero"`
	// Ruled is what the rules of the configuration said of it; omitted if there are none.
	Ruled []permissions.Ruling `json:"ruled,omitzero"`
	Code  string               `json:"code,omitzero"` // deciders only
	// Earlier is when the same question was answered under the same key; that answer is over, and this one was asked anew.
	Earlier *time.Time `json:"earlier_at,omitzero"`
	// Brief marks a list item: details are missing, and long values are null. The request itself has them.
	Brief bool `json:"brief,omitzero"`
	// Editor reports whether the asker's own editor may answer as well: POST /v1/requests/{id}/answer. Agents only.
	Editor bool `json:"editor,omitzero"`
	// Keyboard reports whether the agent's own dialog may answer before people do: a hook's call, or a question. Agents only.
	Keyboard bool `json:"keyboard,omitzero"`
	// Delayed are the channels that do not deliver it although it is due; they are tried again. Agents only.
	Delayed []string `json:"delayed,omitzero"`
	// Lately is what the caller did before a pending request; omitted where nothing is known. Deciders only.
	Lately *Lately `json:"lately,omitzero"`
}

// Lately is what a caller did in the ten minutes before a request, and how often people allowed the same in 30 days.
type Lately struct {
	Allowed int       `json:"allowed"`
	Denied  int       `json:"denied"`
	Last    []Request `json:"last" doc:"the newest of these that were put to the reader"`
	Before  int       `json:"before" doc:"how often people allowed the same words or tags, in whatever folder"`
	By      string    `json:"by,omitzero" doc:"who allowed it last"`
	Title   string    `json:"session_title,omitzero" doc:"of the session, as the asking program says; for its owner only"`
	Prompt  string    `json:"last_prompt,omitzero" doc:"what the session was told to do last, likewise"`
}

func fromLately(l permissions.RecentActivity) *Lately {
	if l.Allowed+l.Denied+l.AllowedBefore == 0 && l.Title+l.Prompt == "" {
		return nil
	}
	return &Lately{l.Allowed, l.Denied, Map(l.Last, func(r permissions.Request) Request {
		r.Options, r.Choices = nil, nil // nobody answers them any more
		return Listed(permissions.RequestView{Request: r})
	}), l.AllowedBefore, l.AllowedBy, l.Title, l.Prompt}
}

func (l *Lately) permissions() (permissions.RecentActivity, error) {
	if l == nil {
		return permissions.RecentActivity{}, nil
	}
	last, err := TryMap(l.Last, Request.Permissions)
	return permissions.RecentActivity{
		Allowed: l.Allowed, Denied: l.Denied, Last: last, AllowedBefore: l.Before, AllowedBy: l.By, Title: l.Title, Prompt: l.Prompt,
	}, err
}

// Call is one call of a step.
type Call struct {
	N            int                 `json:"n"`
	Tool         string              `json:"tool"`
	Input        json.RawMessage     `json:"input"`
	AffectedPath *string             `json:"affected_path"`
	Answer       *permissions.Answer `json:"answer"`
	Comment      string              `json:"comment,omitzero"` // of the person who denied this call
	By           string              `json:"by,omitzero"`      // whose answer decided it
	At           time.Time           `json:"at,omitzero"`
	Ends         bool                `json:"ends,omitzero"` // denying it denies the whole step
	Was          []permissions.Rows  `json:"was,omitzero"`  // as in a request
}

// Vote is one person's answer.
type Vote struct {
	By     string             `json:"by"`
	Via    string             `json:"via"`
	Answer permissions.Answer `json:"answer"`
	At     time.Time          `json:"at"`
	Call   int                `json:"call,omitzero"` // of a step; absent for all open calls
}

// Delivery is one place where the request was shown.
type Delivery struct {
	To  string    `json:"to"`
	Via string    `json:"via"`
	At  time.Time `json:"at"`
}

// From is a request for agents, or for deciders, who also see its code.
func From(s permissions.RequestView, forDeciders bool) Request {
	r := s.Request.Outcome()
	w := Request{
		ID: r.ID, Kind: r.Kind, Agent: OrNull(r.Agent), Caller: r.Caller.Name, Session: OrNull(r.Session),
		Background: r.Background, Foreground: OrNull(r.Foreground), Step: OrNull(r.Step),
		Mode: OrNull(r.Mode), Claimed: r.Claimed, Host: OrNull(r.Host), Cwd: OrNull(r.Cwd),
		Tags: Map(r.Tags, permissions.Tag.String), Tool: OrNull(r.Tool), Input: orNullJSON(r.Input),
		AffectedPath: OrNull(r.AffectedPath), Was: r.Rows, HighRisk: r.HighRisk,
		Message: OrNull(r.Message), Details: OrNull(r.Details), Reason: OrNull(r.Reason),
		Digest: r.ShownDigest().String(), Key: OrNull(r.Key), Options: append([]permissions.Option{}, r.Options...),
		Suggested: suggested(r),
		State:     r.State, Answer: OrNull(r.Answer), Scope: OrNull(r.Scope.String()), Comment: OrNull(r.Comment),
		DecidedBy: OrNull(r.DecidedBy), DecidedVia: OrNull(r.DecidedVia), DecidedAt: OrNullTime(r.DecidedAt),
		Votes: Map(r.Votes, fromVote), Quorum: r.Quorum,
		CreatedAt: OrNullTime(r.CreatedAt), Deadline: OrNullTime(r.Deadline), Asked: append([]string{}, r.Asked...),
		Delivered: delivered(s.Copies), TimedOut: r.TimedOut, Defaulted: r.Defaulted,
		UsedAt: OrNullTime(r.UsedAt), VoidedBy: OrNull(r.VoidedBy), VoidAt: OrNullTime(r.VoidAt), LapsedAt: OrNullTime(r.LapsedAt),
		Waiting: s.Waiting, Result: permissions.Result(r).Text, Hook: r.Hook, Grants: r.Grants, Earlier: OrNullTime(r.EarlierAt), Brief: s.Brief,
		Beyond: r.ExceededRate, Ruled: r.Ruled,
	}
	if len(r.Calls) > 0 {
		w.Calls = Map(r.Calls, fromCall)
	}
	if question := r.Digest.String(); question != w.Digest {
		w.Question = question
	}
	if forDeciders {
		w.Code, w.Lately = s.Code, fromLately(s.Recent)
	} else {
		w.Editor, w.Keyboard, w.Delayed = s.Editor, s.Keyboard, s.Delayed
	}
	return w
}

// maxListed is the most bytes of an input or a message in a list.
const maxListed = 300

// Listed is a request in a list for deciders: without details and long values.
func Listed(s permissions.RequestView) Request {
	shown := s.Request.ShownDigest()
	s.Brief = shorten(&s.Request) || s.Brief
	w := From(s, true)
	w.Digest = shown.String()
	return w
}

// ListedSession is a session in a list, with the request that it waits for as in [Listed].
func ListedSession(s permissions.SessionView) Session {
	shorten(&s.WaitsOn)
	return FromSession(s)
}

// shorten removes the long values of r, and reports whether there were any.
func shorten(r *permissions.Request) (shortened bool) {
	shortened = r.Details != "" || r.Rows != nil || r.Symlinks() != nil || len(r.Input) > maxListed || len(r.Message) > maxListed
	r.Details, r.Rows, r.Ruled = "", nil, slices.Clone(r.Ruled)
	for i := range r.Ruled {
		r.Ruled[i].Leads = nil
	}
	if len(r.Input) > maxListed {
		r.Input = nil
	}
	if len(r.Message) > maxListed {
		r.Message = ""
	}
	r.Calls = slices.Clone(r.Calls)
	for i, c := range r.Calls {
		if len(c.Input) > maxListed {
			r.Calls[i].Input, shortened = nil, true
		}
		r.Calls[i].Rows = nil
	}
	return shortened
}

func fromVote(v permissions.Vote) Vote {
	return Vote{By: v.By, Via: v.Via, Answer: v.Answer, At: v.At.UTC(), Call: v.Call}
}

func fromCall(c permissions.Call) Call {
	return Call{
		N: c.N, Tool: c.Tool, Input: orNullJSON(c.Input),
		AffectedPath: OrNull(c.AffectedPath), Answer: OrNull(c.Answer), Comment: c.Comment, By: c.By, At: c.At, Ends: c.EndsRun,
		Was: c.Rows,
	}
}

// delivered are the copies that were shown.
func delivered(copies []permissions.Copy) []Delivery {
	shown := slices.DeleteFunc(slices.Clone(copies), func(c permissions.Copy) bool { return c.SentAt.IsZero() })
	return Map(shown, func(c permissions.Copy) Delivery {
		return Delivery{To: c.Person, Via: c.Connector, At: c.SentAt.UTC()}
	})
}

// Map maps a list. The result is never nil, so that an empty list is [] and not null.
func Map[A, B any](list []A, f func(A) B) []B {
	made := make([]B, len(list))
	for i, a := range list {
		made[i] = f(a)
	}
	return made
}

// TryMap is [Map] of an f that may fail.
func TryMap[A, B any](list []A, f func(A) (B, error)) ([]B, error) {
	made := make([]B, len(list))
	for i, a := range list {
		var err error
		if made[i], err = f(a); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// OrNull is nil, JSON's null, for a zero value.
func OrNull[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// OrNullTime is [OrNull] of a time, in UTC.
func OrNullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func orNullJSON(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return json.RawMessage("null")
	}
	return v
}

// Permissions converts w as far as possible: enough for a card and for [permissions.Result]. The error names an invalid member.
func (w Request) Permissions() (permissions.Request, error) {
	s, err := w.View()
	return s.Request, err
}

// View is [Request.Permissions] with where it was shown and who waits. [From] reverses it.
func (w Request) View() (permissions.RequestView, error) {
	tags, err := permissions.ParseTags(w.Tags)
	if err != nil {
		return permissions.RequestView{}, fmt.Errorf("read request %s: %w", w.ID, err)
	}
	digest, err := permissions.ParseDigest(cmp.Or(w.Question, w.Digest))
	if err != nil {
		return permissions.RequestView{}, fmt.Errorf("read request %s: %w", w.ID, err)
	}
	var scope permissions.Scope
	if w.Scope != nil {
		if scope, err = permissions.ParseScope(*w.Scope); err != nil {
			return permissions.RequestView{}, fmt.Errorf("read request %s: %w", w.ID, err)
		}
	}
	r := permissions.Request{
		ID: w.ID, Kind: w.Kind, Mode: Value(w.Mode), Caller: caller(w.Caller),
		Agent: Value(w.Agent), Claimed: w.Claimed, Session: Value(w.Session), Host: Value(w.Host), Cwd: Value(w.Cwd),
		Tags: tags, Tool: Value(w.Tool), AffectedPath: Value(w.AffectedPath), Rows: w.Was, Calls: w.calls(), Hook: w.Hook,
		Message: Value(w.Message), Details: Value(w.Details), Reason: Value(w.Reason), Choices: w.choices(),
		Digest: digest, HighRisk: w.HighRisk, Background: w.Background, Foreground: Value(w.Foreground),
		Step: Value(w.Step), Key: Value(w.Key), Options: w.Options, Asked: w.Asked, Quorum: w.Quorum,
		CreatedAt: Value(w.CreatedAt), Deadline: Value(w.Deadline),
		State: w.State, Answer: Value(w.Answer), Scope: scope, Comment: Value(w.Comment),
		DecidedBy: Value(w.DecidedBy), DecidedVia: Value(w.DecidedVia), DecidedAt: Value(w.DecidedAt),
		Votes: Map(w.Votes, Vote.permissions), TimedOut: w.TimedOut, Defaulted: w.Defaulted, Failure: w.failure(),
		UsedAt: Value(w.UsedAt), VoidedBy: Value(w.VoidedBy), VoidAt: Value(w.VoidAt), LapsedAt: Value(w.LapsedAt),
		EarlierAt: Value(w.Earlier), Grants: w.Grants, ExceededRate: w.Beyond, Ruled: w.Ruled,
	}
	if r.Tool != "" {
		r.Input = w.Input
	}
	lately, err := w.Lately.permissions()
	if err != nil {
		return permissions.RequestView{}, err
	}
	copies := Map(w.Delivered, func(d Delivery) permissions.Copy {
		return permissions.Copy{Request: w.ID, Person: d.To, Connector: d.Via, SentAt: d.At}
	})
	return permissions.RequestView{
		Request: r, Code: w.Code, Copies: copies, Waiting: w.Waiting, Editor: w.Editor, Keyboard: w.Keyboard, Delayed: w.Delayed,
		Brief: w.Brief, Recent: lately,
	}, nil
}

// Until is the request's deadline, or the zero time.
func (w Request) Until() time.Time { return Value(w.Deadline) }

func (v Vote) permissions() permissions.Vote {
	return permissions.Vote{By: v.By, Via: v.Via, Answer: v.Answer, At: v.At, Call: v.Call}
}

func (w Request) calls() []permissions.Call {
	if len(w.Calls) == 0 {
		return nil
	}
	return Map(w.Calls, func(c Call) permissions.Call {
		return permissions.Call{
			N: c.N, Tool: c.Tool, Input: orNullJSON(c.Input),
			AffectedPath: Value(c.AffectedPath), Answer: Value(c.Answer), Comment: c.Comment, By: c.By, At: c.At, EndsRun: c.Ends,
			Rows: c.Was,
		}
	})
}

func suggested(r permissions.Request) []string {
	if r.Kind != permissions.KindTool {
		return nil
	}
	return r.Choices
}

// choices are the options of a clarification, or what the agent of a hook's call suggests.
func (w Request) choices() []string {
	if w.Kind != permissions.KindClarification {
		return w.Suggested
	}
	return Map(w.Options, func(o permissions.Option) string { return o.Label })
}

// failure is why nobody was reached or what forbids it, which only the result has.
func (w Request) failure() (why string) {
	switch {
	case w.State == permissions.Undeliverable:
		_, why, _ = strings.Cut(w.Result, "could not be delivered: ")
	case Value(w.DecidedVia) == permissions.ViaRule:
		_, why, _ = strings.Cut(w.Result, " is forbidden here: ")
	}
	return strings.TrimSuffix(why, ".")
}

// caller returns a caller, with its account if the name has one.
func caller(name string) permissions.Caller {
	digits, found := strings.CutPrefix(name, "uid:")
	if uid, err := strconv.Atoi(digits); found && err == nil {
		return permissions.CallerUID(uid)
	}
	return permissions.Caller{Name: name, UID: permissions.NoUID}
}

// Value reverses [OrNull].
func Value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Grant is a grant as programs read it. A member without a value is null, a list without members is []. Times are UTC.
type Grant struct {
	ID        permissions.ID `json:"id"`
	Caller    string         `json:"caller"`
	Session   *string        `json:"session"`
	Tags      []string       `json:"permissions"`
	Tool      *string        `json:"tool"`
	Call      *string        `json:"call"` // digest of the one call that it covers
	Until     *time.Time     `json:"until"`
	Request   permissions.ID `json:"request"`
	Code      string         `json:"code,omitzero"` // of the request where grants are listed, if it is kept
	By        string         `json:"by"`
	CreatedAt *time.Time     `json:"created_at"`
	RevokedAt *time.Time     `json:"revoked_at"`
	Used      int            `json:"used"`
	// SuspendedAt is since when it is suspended, because the store was restored.
	SuspendedAt *time.Time `json:"suspended_at"`
	// Suspended is why else it is suspended where grants are listed: a lock or a stop.
	Suspended string `json:"suspended,omitzero"`
	// Rule is what the grant of a rule covers; its until moves with each use.
	Rule    permissions.GrantedRule `json:"rule,omitzero"`
	LastUse *time.Time              `json:"last_use,omitzero"`
}

// FromGrant converts g.
func FromGrant(g permissions.Grant) Grant {
	w := Grant{
		ID: g.ID, Caller: g.Caller, Session: OrNull(g.Session), Tags: Map(g.Tags, permissions.Tag.String),
		Tool: OrNull(g.Tool), Until: OrNullTime(g.Until), Request: g.Request, Code: g.Code, By: g.By,
		CreatedAt: OrNullTime(g.CreatedAt), RevokedAt: OrNullTime(g.RevokedAt), Used: g.Used,
		SuspendedAt: OrNullTime(g.SuspendedAt), Suspended: g.Suspended, Rule: g.Rule, LastUse: OrNullTime(g.LastUse()),
	}
	if g.Call != (permissions.Digest{}) {
		w.Call = OrNull(g.Call.String())
	}
	return w
}

// Permissions converts w. The error names an invalid member.
func (w Grant) Permissions() (permissions.Grant, error) {
	tags, err := permissions.ParseTags(w.Tags)
	if err != nil {
		return permissions.Grant{}, fmt.Errorf("read grant %s: %w", w.ID, err)
	}
	var call permissions.Digest
	if w.Call != nil {
		if call, err = permissions.ParseDigest(*w.Call); err != nil {
			return permissions.Grant{}, fmt.Errorf("read grant %s: %w", w.ID, err)
		}
	}
	return permissions.Grant{
		ID: w.ID, Caller: w.Caller, Session: Value(w.Session), Tags: tags, Tool: Value(w.Tool), Call: call,
		Until: Value(w.Until), Request: w.Request, Code: w.Code, By: w.By, CreatedAt: Value(w.CreatedAt),
		RevokedAt: Value(w.RevokedAt), Used: w.Used, SuspendedAt: Value(w.SuspendedAt), Suspended: w.Suspended, Rule: w.Rule,
	}, nil
}

// Session is a session of one of our own agents as programs read it. A member without a value is null. Times are UTC.
type Session struct {
	ID        permissions.ID       `json:"id"`
	Agent     string               `json:"agent"`
	Status    permissions.Activity `json:"status"`
	Model     string               `json:"model"`
	Tokens    int64                `json:"tokens"`
	Version   int64                `json:"version"`
	WaitingOn *WaitingOn           `json:"waiting_on" doc:"null: nothing"`
	Person    string               `json:"person"`
	Parent    *permissions.ID      `json:"parent"` // the session that started it
	Cost      int64                `json:"cost"`   // in millionths of the currency of the configured prices
	Debug     bool                 `json:"debug"`  // every state change is logged
	Started   *time.Time           `json:"started"`
	Changed   *time.Time           `json:"changed"`
	Ended     *time.Time           `json:"ended"`
}

// WaitingOn is what a session waits for.
type WaitingOn struct {
	Request permissions.ID    `json:"request"`
	Kind    *permissions.Kind `json:"kind"`
	Tool    *string           `json:"tool"`
	Message *string           `json:"message"` // else the reason
	Details *string           `json:"details"`
	Mode    *permissions.Mode `json:"mode"`  // of a pause
	Calls   []Gated           `json:"calls"` // of a gated step
}

// FromSession converts s.
func FromSession(s permissions.SessionView) Session {
	a, r := s.Session, s.WaitsOn
	w := Session{
		ID: a.ID, Agent: a.Agent, Status: a.Status, Model: a.Model, Tokens: a.Tokens, Version: a.Version,
		Person: a.Person, Parent: OrNull(a.Parent), Cost: a.Cost, Debug: a.Debug,
		Started: OrNullTime(a.CreatedAt), Changed: OrNullTime(a.ChangedAt), Ended: OrNullTime(a.EndedAt),
	}
	if a.Request != "" {
		w.WaitingOn = &WaitingOn{
			Request: a.Request, Kind: OrNull(r.Kind), Tool: OrNull(cmp.Or(a.Tool, r.Tool)),
			Message: OrNull(cmp.Or(r.Message, r.Reason)), Details: OrNull(r.Details), Mode: OrNull(r.Mode),
		}
		if r.Kind == permissions.KindTool {
			w.WaitingOn.Calls = GatedCalls(r)
		}
	}
	return w
}

// Execution is a tool call of a session as programs read it. A member without a value is null. Times are UTC.
type Execution struct {
	ID           int64           `json:"id"`
	Step         int             `json:"step"`
	Call         int             `json:"call"`
	Tool         string          `json:"tool"`
	Arguments    json.RawMessage `json:"arguments"`
	AffectedPath *string         `json:"affected_path" doc:"the one file or folder that it changes or reads"`
	Began        *time.Time      `json:"began"`
	Ended        *time.Time      `json:"ended" doc:"null: it has not, or nobody knows how"`
	Success      *bool           `json:"success" doc:"null until it has ended"`
	ExitCode     *int            `json:"exit_code" doc:"of a command"`
	Error        *string         `json:"error" doc:"why there was no success"`
}

// FromExecution converts e.
func FromExecution(e permissions.Execution) Execution {
	w := Execution{
		ID: e.ID, Step: e.Step, Call: e.Call, Tool: e.Tool, Arguments: orNullJSON(e.Arguments), AffectedPath: OrNull(e.AffectedPath),
		Began: OrNullTime(e.Began), Ended: OrNullTime(e.Ended), ExitCode: e.Exit, Error: OrNull(e.Error),
	}
	if !e.Ended.IsZero() {
		w.Success = &e.Success
	}
	return w
}

// Artifact is a result of a session as programs read it.
type Artifact struct {
	ID        int64                    `json:"id"`
	Execution *int64                   `json:"execution" doc:"the id of the execution that it came of; null: of none"`
	Step      int                      `json:"step"`
	Type      permissions.ArtifactType `json:"type"`
	Content   json.RawMessage          `json:"content"`
}

// FromArtifact converts a.
func FromArtifact(a permissions.Artifact) Artifact {
	return Artifact{ID: a.ID, Execution: OrNull(a.Execution), Step: a.Step, Type: a.Type, Content: orNullJSON(a.Content)}
}

// Event is an event for front ends. Seq grows in commit order and has gaps.
type Event struct {
	Seq     int64            `json:"seq"`
	Type    permissions.Type `json:"type"`
	At      time.Time        `json:"at"`
	Session *string          `json:"session"`
	Request *permissions.ID  `json:"request"`
	Payload map[string]any   `json:"payload"` // never null
}

// Gated is a call that waits for people.
type Gated struct {
	Tool         string          `json:"tool"`
	Args         json.RawMessage `json:"args"`
	Step         int             `json:"step"`
	AffectedPath *string         `json:"affected_path"`
}

// GatedCalls are the calls that r asks about; nil if they were pruned.
func GatedCalls(r permissions.Request) []Gated {
	if r.ID == "" {
		return nil
	}
	return Map(r.ToolCalls(), func(c permissions.Call) Gated {
		return Gated{Tool: c.Tool, Args: orNullJSON(c.Input), Step: r.Step, AffectedPath: OrNull(c.AffectedPath)}
	})
}

// Answered is a call that people were asked about, with the outcome.
type Answered struct {
	Call   int        `json:"call"` // its position among the tools of WAIT_ACK_ENTER, from 1
	Tool   *string    `json:"tool"`
	Scope  *string    `json:"scope"`  // null: not allowed
	Reason *string    `json:"reason"` // of the person who denied it
	Person *string    `json:"person"` // null: nobody answered
	At     *time.Time `json:"at"`
}
