package agents

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/daycared/daycared/permissions"
)

// ErrStale says that a [Commit] was made from a row that is another by now: nothing of it was stored.
var ErrStale = errors.New("the session has changed meanwhile")

// Turn is one message of a session's transcript, as its model is told it.
type Turn struct {
	Seq     int64           // 1, 2, 3 … within the session; the store gives it
	Content json.RawMessage // in the words of whoever runs the session
	At      time.Time
}

// Post is what waits for a session: what its person wrote, or another agent, or what it is told of in silence. It is
// taken into the transcript when the session's model is asked next.
type Post struct {
	Number  int64 // the store's, in the order in which they came
	Session permissions.ID
	Key     string // required: the same key again, for the same session, changes nothing
	From    string // a person, the caller that an agent is ("agent:helper"), or empty for daycared itself
	Text    string
	Silent  bool // begins no run
	Chain   int  // how many runs led to it, one by the other, since a person or the clock began the first
	At      time.Time
}

// Execution is one tool call as it went.
type Execution = permissions.Execution

// ArtifactType is what an artifact is; the store takes no other than those below.
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

// Artifact is something that came of a step.
type Artifact = permissions.Artifact

// Commit is all that one step of a session does, to be stored whole or not at all.
type Commit struct {
	// Session as it is afterwards. Its Version is one more than that of the row that it was made from; the first is 1.
	Session    permissions.AgentSession
	Turns      []Turn      // to be added to the transcript
	Drops      int64       // turns up to this Seq leave the transcript, but for those of Turns: a summary stands for them; 0: none
	Taken      []int64     // numbers of posts that are in the transcript now
	Executions []Execution // begun or ended: there is one row for each Step and Call
	Artifacts  []Artifact
	// Records go to the audit. One without a request names its session in its detail "session", and who may see it besides
	// the operator in its detail "person".
	Records []permissions.Record
}

// SessionStore keeps sessions. Every write is durable when its method returns nil. See engine/store.
type SessionStore interface {
	// Commit stores all of it or nothing. When the row's version is another than one less than the session's, the error
	// matches [ErrStale].
	Commit(ctx context.Context, c Commit) error
	// CurrentSession is the newest of an agent's that has not ended.
	CurrentSession(ctx context.Context, agent string) (permissions.AgentSession, bool, error)
	// Post keeps a post; the same key again, for the same session, changes nothing. When too many wait it refuses with
	// [permissions.CodeLimit].
	Post(ctx context.Context, p Post) error
	// Posts lists what was not taken yet, oldest first.
	Posts(ctx context.Context, session permissions.ID, limit int) ([]Post, error)
}

// Timetable is when a scheduled agent runs.
type Timetable struct {
	Agent string
	Next  time.Time      // its next run
	Asked permissions.ID // the request for what that run will need; empty: not asked yet
}
