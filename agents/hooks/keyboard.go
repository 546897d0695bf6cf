package hooks

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// keyboardSupport describes how an agent shows that a person is at its keyboard.
type keyboardSupport struct {
	environ  map[string]string // environment variables of its hooks
	modes    []string          // modes in which it asks if a hook says so
	versions []string          // verified versions
}

// Attended reports whether the agent certainly asks a person at its keyboard when its hook says ask.
func (c Call) Attended(env func(string) string) bool {
	d, known := Find(c.dialect)
	if !known || c.expected != c.dialect || d.keyboard == nil || !slices.Contains(d.keyboard.modes, c.mode) {
		return false
	}
	return d.keyboard.atKeyboard(env) && slices.Contains(d.keyboard.versions, versionIn(c.history))
}

// atKeyboard reports whether the hook's environment says that a person is at the keyboard.
func (a keyboardSupport) atKeyboard(env func(string) string) bool {
	for name, value := range a.environ {
		if env(name) != value {
			return false
		}
	}
	return true
}

// RacedVersions returns the versions of an agent that were verified to ask at the keyboard when a hook says so. For other
// versions, the hook waits for people and answers itself.
func RacedVersions(name string) []string {
	if d, known := Find(name); known && d.keyboard != nil {
		return slices.Clone(d.keyboard.versions)
	}
	return nil
}

// versioned matches the agent's version in a session history.
var versioned = regexp.MustCompile(`"version":"([0-9.]+)"`)

// maxHistory is how many bytes at the end of a history are searched.
const maxHistory = 256 << 10

// versionIn is the version of the agent that last wrote to a history; empty if unknown.
func versionIn(history string) string {
	for _, line := range newest(history) {
		if found := versioned.FindSubmatch(line); found != nil {
			return string(found[1])
		}
	}
	return ""
}

// newest returns the last rows of a history, the newest first.
func newest(history string) [][]byte {
	if info, err := os.Stat(history); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(history) //nolint:gosec // the agent's own file
	if err != nil {
		return nil
	}
	defer f.Close()
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, size-maxHistory), io.SeekStart)
	}
	text, _ := io.ReadAll(io.LimitReader(f, maxHistory))
	lines := bytes.Split(text, []byte("\n"))
	slices.Reverse(lines)
	return lines
}

// Beginner is a [Requests] that can also submit without waiting.
type Beginner interface {
	Requests
	Begin(ctx context.Context, caller permissions.Caller, q permissions.Request) (permissions.RequestView, error)
}

// raceWithin bounds the delay before the agent's own dialog appears.
const raceWithin = 2 * time.Second

// Race is [Decide] for a call whose agent also asks at its keyboard ([Call.Keyboard]): the first answer counts. Before the
// agent's dialog appears, people are asked without waiting; while it is shown, the hook waits for them.
func Race(ctx context.Context, requests Beginner, caller permissions.Caller, c Call, within time.Duration) Verdict {
	if !c.Keyboard {
		return Decide(ctx, requests, caller, c, within)
	}
	plain := c // as the hook before it asked
	plain.suggested, plain.Request.Choices, plain.Request.Message = nil, nil, ""
	more := c.Request.Message != "" || c.suggested != nil
	given := plain.Request
	limited, over := context.WithTimeout(ctx, within)
	defer over()
	if c.questions != nil && mayQuestion(limited, requests, caller, c) {
		given = c.requests()[0]
	} else {
		c.questions, plain.questions = nil, nil
	}
	q, err := c.resolvePaths(limited, given, caller)
	if err != nil {
		return Refuse(err)
	}
	q.ID, q.Call = permissions.NewID(time.Now()), "" // not a waiter: the process that waits has its own call name
	q.FollowUpExpected = c.questions == nil && (c.event == "PreToolUse" || more)
	brief, done := context.WithTimeout(ctx, raceWithin)
	s, err := requests.Begin(brief, caller, q)
	done()
	r, v := s.Request, Verdict{}
	if err == nil && !r.IsRowOf(q) {
		err = errOther
	}
	switch {
	case err != nil && (c.event == "PreToolUse" || !wire.IsConnectionError(err)):
		return VerdictOf(r, err)
	case err != nil: // while the dialog is shown, the daemon may start again
		return questioner{ctx, limited, requests, caller, true}.askAll(plain, nil)
	case r.State != permissions.Pending:
		v = questioner{ctx, limited, requests, caller, true}.askAll(plain, &r)
	case s.Keyboard && c.event == "PreToolUse":
		return Verdict{Undecided: true, Reason: cmp.Or(strings.Join(r.Asked, ", "), "somebody else") + " is asked on another way, too"}
	default:
		if more && !replaced(ctx, requests, caller, r.ID) {
			c = plain
		}
		v = questioner{ctx, limited, requests, caller, true}.askAll(c, nil)
	}
	v.Undecided = v.Undecided && s.Keyboard // the keyboard alone cannot decide if others must approve too
	return v
}

// mayQuestion is [questioner.mayQuestion] without waiting for anybody.
func mayQuestion(ctx context.Context, requests Beginner, caller permissions.Caller, c Call) bool {
	q, err := c.resolvePaths(ctx, c.Request, caller)
	if err != nil {
		return false
	}
	q.ID, q.Call = permissions.NewID(time.Now()), ""
	brief, done := context.WithTimeout(ctx, raceWithin)
	defer done()
	s, err := requests.Begin(brief, caller, q)
	return err == nil && s.Request.IsRowOf(q) && VerdictOf(s.Request, nil).Unasked
}

// replaced reports whether a question was withdrawn, so that another can be put in its place.
func replaced(ctx context.Context, requests Requests, caller permissions.Caller, id permissions.ID) bool {
	brief, done := context.WithTimeout(ctx, raceWithin)
	defer done()
	left, err := requests.LeaveOrCancel(brief, caller, id, "", "")
	return err == nil && left.Request.State == permissions.Cancelled && left.Request.DecidedBy == ""
}
