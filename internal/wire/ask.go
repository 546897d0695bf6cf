package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/permissions"
)

const (
	// MaxWait is the longest that one call may wait for an answer; the caller then asks again.
	MaxWait = 50 * time.Second
	// MaxBody is the most bytes of JSON of a question without its details.
	MaxBody = 64 << 10
)

// The headers by which a repeated call finds its request again.
const (
	HeaderCall    = "Daycared-Call"    // the call's own name
	HeaderRequest = "Daycared-Request" // the id that it was given, or proposes
	HeaderStays   = "Daycared-Stays"   // how long the asking process lives unless it is killed
)

// Ask is a question as an agent posts it. [Ask.Question] checks which members a kind takes; their values are validated elsewhere.
type Ask struct {
	Kind        permissions.Kind   `json:"kind" doc:"permission, tool, pause or clarification"`
	Mode        permissions.Mode   `json:"mode,omitzero" doc:"of a pause: continue or confirm"`
	Permissions []string           `json:"permissions,omitzero" doc:"of a permission: tags such as @write:/srv/www"`
	Tool        string             `json:"tool,omitzero" doc:"of a tool: its name, beside input"`
	Input       json.RawMessage    `json:"input,omitzero"`
	Affected    string             `json:"affected_path,omitzero" doc:"of a tool: the file that it is about, by the asker's word"`
	Was         []permissions.Rows `json:"was,omitzero" doc:"of a tool: rows of the file around what the input changes, at most 256 KiB"`
	Hook        string             `json:"hook,omitzero" doc:"of a tool: the dialect of the agent's own hook that asks"`
	HookStage   string             `json:"hook_stage,omitzero" doc:"of a hook: before a call, again (its rules ask), denied (it refused)"`
	Harmless    bool               `json:"harmless,omitzero" doc:"of a hook: it has read the call whole and leaves it to the agent's mode"`
	Leads       permissions.Leads  `json:"leads,omitzero" doc:"of a hook: where names in the call lead on its machine, links resolved"`
	Ahead       bool               `json:"ahead,omitzero" doc:"of a hook: it asks more in a moment, so nobody is shown this before"`
	Calls       []AskedCall        `json:"calls,omitzero" doc:"of a tool: the calls of one step, instead of tool and input"`
	Message     string             `json:"message,omitzero" doc:"of a pause or a clarification; of a tool: what else its asker says"`
	Options     []string           `json:"options,omitzero" doc:"of a clarification; of a hook: what a yes can add for its agent"`
	Reason      string             `json:"reason,omitzero"`
	Details     string             `json:"details,omitzero" doc:"at most 1 MiB"`
	Cwd         string             `json:"cwd,omitzero"`
	Host        string             `json:"host,omitzero"`
	Agent       string             `json:"agent,omitzero" doc:"who asks, by its own word"`
	Session     string             `json:"session,omitzero"`
	Title       string             `json:"session_title,omitzero" doc:"of the session; only the agent's owner is shown it"`
	Prompt      string             `json:"last_prompt,omitzero" doc:"what the session was told to do last; only the agent's owner is shown it"`
	Timeout     string             `json:"timeout,omitzero" doc:"how long to wait for people, such as 15m; at most the route's"`
	Scope       string             `json:"scope,omitzero" doc:"the widest scope to offer"`
	Key         string             `json:"key,omitzero" doc:"asking again with the same key finds the same answer"`
	Wait        string             `json:"wait,omitzero" doc:"how long this call waits, at most 50s"`
}

// AskedCall is one call of a step in a question.
type AskedCall struct {
	Tool  string          `json:"tool"`
	Input json.RawMessage `json:"input,omitzero"`
}

// Reply is the result of the dialog in the asker's own editor.
type Reply struct {
	Answer permissions.Answer `json:"answer" maxLength:"64" doc:"the id of one of the request's options"`
	Digest string             `json:"digest" doc:"of the request, as it was shown"`
}

// Tell is a notice as a caller posts it.
type Tell struct {
	To    string            `json:"to,omitzero" doc:"a person; empty: whoever the caller belongs to"`
	About permissions.About `json:"about,omitzero" enum:"says,finished,waits,failed" default:"says"`
	permissions.CallerMessage
}

// Told is the recipient of a notice.
type Told struct {
	To string `json:"to"`
}

// Recalled counts withdrawn requests.
type Recalled struct {
	Withdrawn int `json:"withdrawn"`
}

// AskOf is the body that asks q, without what a body cannot express: the affected paths of a step's calls, and the environment.
func AskOf(q permissions.Request) Ask {
	a := Ask{
		Kind: q.Kind, Mode: q.Mode, Tool: q.Tool, Input: q.Input, Message: q.Message, Options: q.Choices,
		Reason: q.Reason, Details: q.Details, Cwd: q.Cwd, Host: q.Host, Agent: q.Agent, Session: q.Session,
		Scope: q.Widest.String(), Key: q.Key, Affected: q.AffectedPath, Hook: q.Hook, HookStage: q.HookStage, Harmless: q.Harmless,
		Ahead: q.FollowUpExpected, Was: q.Rows, Leads: q.Leads, Title: q.SessionTitle, Prompt: q.LastPrompt,
	}
	if len(q.Tags) > 0 {
		a.Permissions = Map(q.Tags, permissions.Tag.String)
	}
	if len(q.Calls) > 0 {
		a.Calls = Map(q.Calls, func(c permissions.Call) AskedCall { return AskedCall{Tool: c.Tool, Input: c.Input} })
	}
	if q.WantedTimeout > 0 {
		a.Timeout = q.WantedTimeout.String()
	}
	return a
}

// Question returns the request and how long the call waits for its answer. An inconsistent question is refused as invalid.
func (a Ask) Question() (q permissions.Request, wait time.Duration, err error) {
	if q, err = a.question(); err != nil {
		return permissions.Request{}, 0, permissions.Invalid(err)
	}
	if wait, err = ParseWait(a.Wait); err != nil {
		return permissions.Request{}, 0, permissions.Invalid(err)
	}
	return q, wait, nil
}

// ParseWait parses how long a call waits: empty for not at all, else a duration up to [MaxWait].
func ParseWait(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > MaxWait {
		return 0, fmt.Errorf("wait must be a duration from 0s to %s, such as 30s", MaxWait)
	}
	return d, nil
}

func (a Ask) question() (q permissions.Request, err error) {
	if err := a.checkMembers(); err != nil {
		return q, err
	}
	q = permissions.Request{
		Kind: a.Kind, Mode: a.Mode, Tool: a.Tool, Message: a.Message, Choices: a.Options, Reason: a.Reason,
		Details: a.Details, Cwd: a.Cwd, Host: a.Host, Agent: a.Agent, Claimed: a.Agent != "", Session: a.Session, Key: a.Key,
		AffectedPath: a.Affected, Hook: a.Hook, HookStage: a.HookStage, Harmless: a.Harmless,
		FollowUpExpected: a.Ahead, Rows: a.Was, Leads: a.Leads, SessionTitle: a.Title, LastPrompt: a.Prompt,
	}
	if q.Tags, err = permissions.ParseTags(a.Permissions); err != nil {
		return q, err
	}
	if a.Tool != "" {
		if q.Input, err = permissions.CanonicalJSON(a.Input); err != nil {
			return q, err
		}
	}
	for i, c := range a.Calls {
		input, err := permissions.CanonicalJSON(c.Input)
		if err != nil {
			return q, fmt.Errorf("call %d: %w", i+1, err)
		}
		q.Calls = append(q.Calls, permissions.Call{N: i + 1, Tool: c.Tool, Input: input})
	}
	if a.Scope != "" {
		if q.Widest, err = permissions.ParseScope(a.Scope); err != nil {
			return q, err
		}
	}
	if a.Timeout != "" {
		q.WantedTimeout, err = time.ParseDuration(a.Timeout)
		if err != nil || q.WantedTimeout < time.Second {
			return q, errors.New("timeout must be a duration of at least 1s and at most 2562047h, such as 15m")
		}
	}
	return q, a.checkSizes()
}

// checkMembers checks that the members are those of the kind.
func (a Ask) checkMembers() error {
	kinds := []permissions.Kind{
		permissions.KindPermission, permissions.KindTool, permissions.KindPause, permissions.KindClarification,
	}
	permission, tool, pause, clarification := kinds[:1], kinds[1:2], kinds[2:3], kinds[3:]
	for _, m := range []struct {
		name  string
		given bool
		of    []permissions.Kind
	}{
		{"permissions", a.Permissions != nil, permission},
		{"tool", a.Tool != "", tool},
		{"input", a.hasInput(), tool},
		{"affected_path", a.Affected != "", tool},
		{"was", a.Was != nil, tool},
		{"hook", a.Hook != "", []permissions.Kind{permissions.KindTool, permissions.KindClarification}},
		{"hook_stage", a.HookStage != "", tool},
		{"harmless", a.Harmless, tool},
		{"leads", a.Leads.Root != "" || a.Leads.Names != nil || a.Leads.Unknown, tool},
		{"ahead", a.Ahead, tool},
		{"calls", a.Calls != nil, tool},
		{"mode", a.Mode != "", pause},
		{"message", a.Message != "", kinds[1:]},
		{"options", a.Options != nil, append(slices.Clone(clarification), tool...)},
		{"scope", a.Scope != "", kinds[:2]},
	} {
		if m.given && !slices.Contains(m.of, a.Kind) {
			return fmt.Errorf("%s does not belong to kind %q, but to %s", m.name, a.Kind, either(m.of))
		}
	}
	switch {
	case !slices.Contains(kinds, a.Kind):
		return fmt.Errorf("unknown kind %q; use permission, tool, pause or clarification", a.Kind)
	case a.Calls != nil && (a.Tool != "" || a.hasInput()):
		return errors.New("give either tool and input, or calls")
	}
	return nil
}

func (a Ask) hasInput() bool { return len(a.Input) > 0 && string(a.Input) != "null" }

func either(kinds []permissions.Kind) string {
	words := Map(kinds, func(k permissions.Kind) string { return string(k) })
	if last := len(words) - 1; last > 0 {
		return strings.Join(words[:last], ", ") + " or " + words[last]
	}
	return words[0]
}

// checkSizes bounds everything except details, rows of files and where names lead, which have bounds of their own.
func (a Ask) checkSizes() error {
	leads := 0
	for name, to := range a.Leads.Names {
		leads += len(name) + len(to)
	}
	if leads > permissions.MaxLeads {
		return fmt.Errorf("the names in leads have at most %d bytes, not %d", permissions.MaxLeads, leads)
	}
	a.Details, a.Was, a.Leads = "", nil, permissions.Leads{}
	body, err := Encode(&a)
	if err != nil {
		return err
	}
	if len(body) > MaxBody {
		return fmt.Errorf("without its details a question has at most %d bytes of JSON, not %d", MaxBody, len(body))
	}
	return nil
}
