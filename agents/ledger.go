package agents

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/daycared/daycared/permissions"
)

// ErrStale reports that a [Commit] was made from an outdated row: nothing was stored.
var ErrStale = errors.New("the session has changed meanwhile")

// Turn is one message of a session's transcript, as its model receives it.
type Turn struct {
	Seq     int64           // 1, 2, 3 … within the session; set by the store
	Content json.RawMessage // in the format of the session's runtime
	At      time.Time
}

// Post waits for a session: a message of its person, of another agent, or a silent notification. It joins the
// transcript when the session's model is asked next.
type Post struct {
	Number  int64 // set by the store, in order of arrival
	Session permissions.ID
	Key     string // required; a repeated key of a session changes nothing
	From    string // a person, an agent's caller ("agent:helper"), or empty for daycared
	Text    string
	Silent  bool // starts no run
	Chain   int  // number of runs that led to it since a person or the clock started the first
	At      time.Time
}

// Execution is one tool call and its result.
type Execution = permissions.Execution

// ArtifactType is the kind of an artifact; the store accepts only those below.
type ArtifactType = permissions.ArtifactType

// The types of artifacts.
const (
	ArtifactStdout           ArtifactType = "stdout"
	ArtifactStderr           ArtifactType = "stderr"
	ArtifactDiagnostics      ArtifactType = "diagnostics"
	ArtifactPrompt           ArtifactType = "prompt"
	ArtifactValidationError  ArtifactType = "validation_error"
	ArtifactUserMessage      ArtifactType = "chat_user_message"
	ArtifactAssistantMessage ArtifactType = "chat_assistant_message"
	ArtifactSession          ArtifactType = "chat_session"
	ArtifactSummary          ArtifactType = "chat_summary"
	ArtifactApprovalGranted  ArtifactType = "approval_granted"
	ArtifactApprovalDenied   ArtifactType = "approval_denied"
)

// Artifact is a result of a step.
type Artifact = permissions.Artifact

// Commit is everything that one step of a session does, stored completely or not at all.
type Commit struct {
	// Session is the new row. Its Version is one more than that of the row it was made from; the first is 1.
	Session    permissions.AgentSession
	Turns      []Turn      // to be added to the transcript
	Drops      int64       // turns up to this Seq leave the transcript, except Turns: a summary replaces them; 0: none
	Taken      []int64     // numbers of the posts that joined the transcript
	Executions []Execution // started or finished calls: one row for each Step and Call
	Artifacts  []Artifact
	// Records are appended to the audit. One without a request names its session in its detail "session", and the
	// person who may see it besides the operator in "person".
	Records []permissions.Record
}

// SessionStore keeps sessions. A write is durable when its method returns nil. See engine/store.
type SessionStore interface {
	// Commit stores c whole or not at all. Unless the row's version is the session's minus one, the error matches [ErrStale].
	Commit(ctx context.Context, c Commit) error
	// CurrentSession is the agent's newest session that has not ended.
	CurrentSession(ctx context.Context, agent string) (permissions.AgentSession, bool, error)
	// Post stores a post; a repeated key of a session changes nothing. When too many wait it refuses with [permissions.CodeLimit].
	Post(ctx context.Context, p Post) error
	// Posts lists the posts that were not taken yet, oldest first.
	Posts(ctx context.Context, session permissions.ID, limit int) ([]Post, error)
}

// Timetable is when a scheduled agent runs.
type Timetable struct {
	Agent string
	Next  time.Time      // its next run
	Asked permissions.ID // the request for what that run will need; empty: not asked yet
}
