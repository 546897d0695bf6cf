package runtime

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/schema"
	"github.com/daycared/daycared/permissions"
)

// childMark separates an agent's name from its child's; configured names never contain it.
const childMark = "/"

const (
	startWords = "Start a background agent with a task of its own. It works while you go on, and tells you when it is done. " +
		"It holds only the permissions that you give it, of those that you hold yourself and for as long as you do, and asks " +
		"your person for more."
	messageWords = "Write to an agent that you started, or to the one that started you (parent)."

	startAgent, messageAgent = "start_agent", "message_agent"

	// maxDepth is the maximum nesting below a configured agent, maxChildren the maximum of concurrent children per agent.
	maxDepth    = 3
	maxChildren = 10
)

var childName = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

type startInput struct {
	Name        string   `json:"name" need:"yes" form:"^[a-z0-9-]{1,32}$" say:"a short name of its own, as in tests-1"`
	Prompt      string   `json:"prompt" need:"yes" size:"1..16384" unit:"bytes" say:"its task, with everything that it has to know"`
	Permissions []string `json:"permissions" each:"1.." say:"of yours, as in @read:/srv/www; none without it"`
}

type messageInput struct {
	Agent string `json:"agent" need:"yes" size:"1.." say:"its name, or parent"`
	Text  string `json:"text" need:"yes" size:"1..16384" unit:"bytes" say:"what to say to it"`
}

// child is the full name of a child that this agent could have started, or of its configured background agent; or empty.
func (sh *turn) child(name string) string {
	full := name
	if !strings.HasPrefix(name, sh.agent.Name+childMark) {
		full = sh.agent.Name + childMark + name
	}
	if own, ok := sh.runtime.own[name]; ok && own.Parent == sh.agent.Name {
		return name
	}
	if _, rest, ok := strings.Cut(full, sh.agent.Name+childMark); !ok || !childName.MatchString(rest) {
		return ""
	}
	return full
}

// childSession returns the open session of a child of this agent, started or configured.
func (sh *turn) childSession(ctx context.Context, name string) (s permissions.AgentSession, is bool, err error) {
	full := sh.child(name)
	if full == "" {
		return s, false, nil
	}
	s, open, err := sh.runtime.store.CurrentSession(ctx, full)
	open = open && s.Person == sh.session.Person
	return s, open && (s.Parent == sh.session.ID || sh.runtime.own[full] != nil), err
}

func start(ctx context.Context, sh *turn, c Call) (string, error) {
	in, err := schema.Decode[startInput](startAgent, c.Input)
	if err != nil {
		return "", err
	}
	tags, err := permissions.ParseTags(in.Permissions)
	if err != nil {
		return "", err
	}
	held, err := sh.held(ctx)
	if err != nil {
		return "", err
	}
	if missing := permissions.Missing(tags, held); len(missing) > 0 {
		return "", fmt.Errorf("you cannot give %s: you do not hold it yourself; ask for it first", missing[0])
	}
	name := sh.agent.Name + childMark + in.Name
	if strings.Count(name, childMark) > maxDepth {
		return "", fmt.Errorf("an agent that was started %d times over may not start another", maxDepth)
	}
	children, err := sh.runtime.children(ctx, sh.session.ID)
	if err != nil {
		return "", err
	}
	if len(children) >= maxChildren {
		return "", fmt.Errorf("you have started %d agents; that is the most at once", len(children))
	}
	for _, s := range children {
		if s.Agent == name {
			return "", fmt.Errorf("there is an agent %s already; write to it with message_agent", in.Name)
		}
	}
	s := permissions.AgentSession{Parent: sh.session.ID}
	a, err := sh.runtime.agent(permissions.AgentSession{Agent: name, Person: sh.session.Person})
	if err != nil {
		return "", err
	}
	if s, err = sh.runtime.begin(ctx, a, s, Run{Given: tags}); err != nil {
		return "", err
	}
	err = sh.runtime.tell(ctx, s.ID, agents.Post{Key: "start", From: sh.session.Caller().Name, Chain: sh.run.Chain + 1, Text: in.Prompt})
	return "Started " + name + ". You are told when it is done.", err
}

func message(ctx context.Context, sh *turn, c Call) (string, error) {
	in, err := schema.Decode[messageInput](messageAgent, c.Input)
	if err != nil {
		return "", err
	}
	to := permissions.AgentSession{}
	if in.Agent == "parent" {
		if to, err = sh.parent(ctx); err != nil {
			return "", err
		}
	} else if s, is, err := sh.childSession(ctx, in.Agent); err != nil {
		return "", err
	} else if is {
		to = s
	}
	if to.ID == "" || !to.EndedAt.IsZero() {
		return "", fmt.Errorf("there is no agent %s here that you could write to", in.Agent)
	}
	err = sh.runtime.tell(ctx, to.ID, agents.Post{
		Key: sh.callKey(c), From: sh.session.Caller().Name, Chain: sh.run.Chain + 1, Text: in.Text,
	})
	if err != nil {
		return "", err
	}
	return "Sent to " + to.Agent + ".", nil
}

func (rt *Runtime) tell(ctx context.Context, to permissions.ID, p agents.Post) error {
	p.Session, p.At = to, rt.stamp()
	if err := rt.store.Post(ctx, p); err != nil {
		return err
	}
	rt.kick(to)
	return nil
}

// parent is the session that receives this one's reports: the one that started it, else that of its configured parent.
func (sh *turn) parent(ctx context.Context) (s permissions.AgentSession, err error) {
	if sh.session.Parent != "" {
		s, err = sh.runtime.store.AgentSession(ctx, sh.session.Parent)
		if permissions.CodeOf(err) == permissions.CodeUnknown || errors.Is(err, permissions.ErrRow) { // deleted, or changed by somebody else
			return permissions.AgentSession{}, nil
		}
		return s, err
	}
	if a, ok := sh.runtime.own[sh.agent.Parent]; ok {
		return sh.runtime.session(ctx, a)
	}
	return s, nil
}

// startingSession is the session that started this one, for reading only; ok is false when it has ended.
func (sh *turn) startingSession(ctx context.Context) (startingSession *turn, ok bool, err error) {
	s, err := sh.runtime.store.AgentSession(ctx, sh.session.Parent)
	if permissions.CodeOf(err) == permissions.CodeUnknown || errors.Is(err, permissions.ErrRow) {
		return nil, false, nil
	}
	if err != nil || !s.EndedAt.IsZero() {
		return nil, false, err
	}
	startingSession = &turn{worker: sh.worker, runtime: sh.runtime, session: s}
	if startingSession.run, err = runOf(s); err != nil {
		return nil, false, err
	}
	startingSession.agent, err = sh.runtime.agent(s)
	return startingSession, err == nil, nil // an agent that is no longer configured holds nothing
}

// report tells the parent agent how the run ended.
func (sh *turn) report(ctx context.Context) error {
	to, err := sh.parent(ctx)
	if err != nil {
		return err
	}
	if to.ID == "" || !to.EndedAt.IsZero() {
		return sh.notice(ctx)
	}
	text := "I am done."
	if sh.run.Outcome != agents.Done {
		text = fmt.Sprintf("I have ended: %s (%s).", sh.run.Outcome, sh.run.Reason)
	}
	if sh.run.Words != "" {
		text += "\n" + sh.run.Words
	}
	err = sh.runtime.tell(ctx, to.ID, agents.Post{
		Key: "ended/" + string(sh.session.ID) + "/" + strconv.Itoa(sh.run.N), From: sh.session.Caller().Name, Chain: sh.run.Chain + 1, Text: text,
	})
	if permissions.CodeOf(err) == permissions.CodeLimit { // its inbox is full
		return sh.notice(ctx)
	}
	return err
}

// notice tells the person how a run ended, if no agent is told and the person did not end it.
func (sh *turn) notice(ctx context.Context) error {
	if sh.agent.Via != "" || slices.Contains([]string{ReasonDenied, ReasonInterrupted, ReasonStopped}, sh.run.Reason) {
		return nil
	}
	about, text := permissions.AboutFinished, sh.run.Words
	if sh.run.Outcome != agents.Done {
		about, text = permissions.AboutFailed, strings.TrimSpace(sh.run.Reason+"\n"+text)
	}
	err := sh.runtime.approvals.Tell(ctx, sh.session.Caller(), about, permissions.CallerMessage{
		Session: string(sh.session.ID), Text: permissions.Brief(strings.ToValidUTF8(text, "\ufffd"), permissions.MaxCallerMessage),
	})
	if r := permissions.AsRefusal(err); r != nil && r.Code != permissions.CodeBroken {
		sh.runtime.log.Warn("run outcome not delivered", "agent", sh.agent.Name, "code", r.Code)
		return nil
	}
	return err
}

func (rt *Runtime) children(ctx context.Context, of permissions.ID) (all []permissions.AgentSession, err error) {
	err = rt.eachOpen(ctx, of, func(s permissions.AgentSession) { // ids are ordered by time, so a child follows its parent
		if s.Parent == of {
			all = append(all, s)
		}
	})
	return all, err
}
