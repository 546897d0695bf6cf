// Package acp runs agents of other vendors that speak the Agent Client Protocol, version 1, on their standard streams.
// To the engine each is an [agents.Resident] like our own: the person's messages are prompts, and the agent's output
// comes back ([Agent]). `daycared run` executes one prompt without the chat ([Once]).
//
// The program runs in a sandbox that its configuration entry names, so the kernel limits what it does by itself. What
// it asks its client for is gated: permissions become requests of kind tool that people answer; files and commands go
// through our own gated tools (agents/tools), and run only as people were shown them. Unknown calls are refused.
//
// The library transports the messages; their content is parsed here, because the library's parser would lose what
// people have to see: an input's exact numbers and duplicate names, and every unknown update.
//
// A turn belongs to the program: when the program or the daemon ends, the turn is lost, its requests are cancelled, and
// the person is told. The conversation continues if the program can load it again.
package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// Options configure an agent. All but Program.Start are required.
type Options struct {
	Name    string // in the configuration
	Person  string // its owner
	Via     string // the channel of their chat
	Program Program
	Store   agents.SessionStore
	Now     func() time.Time
}

// Agent is an agent that another program implements. It is safe for concurrent use.
type Agent struct {
	o          Options
	log        *slog.Logger
	approvals  agents.Approvals // set by Bind before anything else
	workSignal timing.Signal    // notified of messages and finished orders
	activity   atomic.Pointer[permissions.Activity]
	row        row

	speaker atomic.Pointer[agents.Speaker] // set by Run
	running atomic.Pointer[session]        // its program while that runs

	mu         sync.Mutex
	turn       *turn         // the current one; nil: none
	orders     int           // number of orders being obeyed: meanwhile no turn begins
	ended      chan struct{} // closed when the turn has ended
	pending    []*submitted  // pending questions
	unreported []*submitted  // questions whose outcome is still to be reported
	answers    map[permissions.ID]timing.Signal
}

type session struct {
	*client
	*process
}

// submitted is a question that waits for people.
type submitted struct {
	id   permissions.ID
	tool string
	done chan struct{} // closed when nothing more is reported of it
}

var (
	_ agents.Resident     = (*Agent)(nil)
	_ agents.EventHandler = (*Agent)(nil)
	_ gate                = (*Agent)(nil)
)

// New makes an agent without starting it: call [Agent.Bind], then the engine runs it.
func New(o Options) *Agent {
	a := &Agent{
		o: o, log: o.Program.Log, workSignal: timing.NewSignal(), answers: map[permissions.ID]timing.Signal{},
	}
	a.row = row{store: o.Store, agent: a}
	a.setActivity(permissions.Idle)
	return a
}

// Bind sets where the agent asks. It is called once, before anything runs.
func (a *Agent) Bind(d agents.Approvals) { a.approvals = d }

// Binding implements [agents.Resident].
func (a *Agent) Binding() permissions.Binding {
	return permissions.Binding{Agent: a.o.Name, Person: a.o.Person, Via: a.o.Via}
}

// Activity implements [agents.Resident].
func (a *Agent) Activity() permissions.Activity { return *a.activity.Load() }

func (a *Agent) setActivity(now permissions.Activity) { a.activity.Store(&now) }

func (a *Agent) stamp() time.Time { return a.o.Now().UTC().Truncate(time.Microsecond) }

func (a *Agent) caller() permissions.Caller { return permissions.AgentCaller(a.o.Name) }

// Receive implements [agents.Resident]: the message is kept until a turn takes it.
func (a *Agent) Receive(ctx context.Context, m permissions.Message) error {
	s, err := a.row.current(ctx)
	if err != nil {
		return err
	}
	err = a.o.Store.Post(ctx, agents.Post{Session: s.ID, Key: m.Key, From: m.From, Text: m.Text, At: m.CreatedAt})
	if err != nil {
		return err
	}
	a.workSignal.Notify()
	return nil
}

// Run implements [agents.Resident]. When it ends, the program does.
func (a *Agent) Run(ctx context.Context, s agents.Speaker) error {
	a.speaker.Store(&s)
	defer a.stopProgram()
	if err := a.resume(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		worked, err := a.work(ctx)
		if err != nil {
			return err
		}
		if worked {
			continue
		}
		select {
		case <-ctx.Done():
		case <-a.workSignal:
		}
	}
	return ctx.Err()
}

// resume cancels the requests of the previous program, and reports a turn that ended with it.
func (a *Agent) resume(ctx context.Context) error {
	s, open, err := a.row.open(ctx)
	if err != nil || !open {
		return err
	}
	if err := a.approvals.EndSession(ctx, a.caller(), string(s.ID)); err != nil {
		return fmt.Errorf("cancel what an agent asked before: %w", err)
	}
	if s.Status != permissions.Running && s.Status != permissions.AwaitingUser {
		a.setActivity(s.Status)
		return nil
	}
	was, err := a.row.step()
	if err != nil {
		return err
	}
	if err := a.say(ctx, fmt.Sprintf("%s/%d/restart", s.ID, was.Turns), restarted); err != nil {
		return err
	}
	end, err := a.interrupted(ctx, was)
	if err != nil {
		return err
	}
	return a.row.change(ctx, end)
}

// interrupted ends the turn of an earlier program: its requests, which are cancelled by now, and its calls.
func (a *Agent) interrupted(ctx context.Context, was step) (end func(*permissions.AgentSession, *agents.Commit), err error) {
	var closed []permissions.Request
	for _, id := range was.Asks {
		r, err := a.approvals.Read(ctx, a.caller(), id)
		switch {
		case permissions.CodeOf(err) == permissions.CodeUnknown, // the daemon ended before it asked
			errors.Is(err, permissions.ErrRow): // somebody changed its row, which allows nothing
		case err != nil:
			return nil, err
		case r.DecidedVia != permissions.ViaGrant:
			closed = append(closed, r)
		}
	}
	return func(s *permissions.AgentSession, c *agents.Commit) {
		for _, r := range closed {
			c.Records = append(c.Records, agents.Closing(*s, r, false, agents.ReasonStopped, a.stamp())...)
			a.closing(*s, r, false, c)
		}
		for _, n := range was.Runs {
			c.Executions = append(c.Executions, agents.Execution{Step: was.Turns, Call: n, Ended: a.stamp(), Error: unknown})
		}
		a.endTurn(s, c, agents.Interrupted, "restarted")
	}, nil
}

func (a *Agent) endTurn(s *permissions.AgentSession, c *agents.Commit, outcome, reason string) {
	if s.Status = permissions.Idle; outcome != agents.Done {
		s.Status = permissions.Interrupted
	}
	s.Request, s.Tool = "", ""
	was := stepOf(*s)
	was.Asks = nil
	s.Step = was.encode()
	c.Records = append(c.Records, agents.RecordOf(permissions.RunFinished, *s, a.stamp(), "outcome", outcome, "reason", reason))
}

const unknown = "This was interrupted: the daemon ended while it ran. Its outcome is unknown."

const restarted = "I was interrupted in the middle of something. That is gone, and what I had asked you is cancelled: nobody waits " +
	"any more. Write again, and I go on."

// work runs one turn if there are messages.
func (a *Agent) work(ctx context.Context) (worked bool, err error) {
	s, open, err := a.row.open(ctx)
	if err != nil || !open {
		return false, err
	}
	posts, err := a.o.Store.Posts(ctx, s.ID, maxPosts)
	if err != nil || len(posts) == 0 {
		return false, err
	}
	was, err := a.row.step()
	if err != nil {
		return false, err
	}
	t := newTurn(string(s.ID), was.Turns+1)
	if !a.begin(t) {
		return false, nil // an order comes first, and notifies when done
	}
	defer a.finish(t)
	texts, numbers := make([]string, len(posts)), make([]int64, len(posts))
	for i, p := range posts {
		texts[i], numbers[i] = p.Text, p.Number
	}
	t.prompt = strings.Join(texts, "\n\n")
	err = a.row.change(ctx, func(s *permissions.AgentSession, c *agents.Commit) {
		was = step{Conversation: was.Conversation, Turns: t.n}
		s.Status, s.Step, c.Taken = permissions.Running, was.encode(), numbers
		c.Artifacts = []agents.Artifact{note(agents.ArtifactUserMessage, s.ID, t.n, t.prompt, a.stamp())}
	})
	if err != nil {
		return false, err
	}
	return true, a.prompt(ctx, t, t.prompt)
}

// maxPosts is the most messages per prompt.
const maxPosts = 100

// begin starts a turn, unless an order is being obeyed.
func (a *Agent) begin(t *turn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.orders > 0 {
		return false
	}
	a.turn, a.ended = t, make(chan struct{})
	return true
}

func (a *Agent) finish(t *turn) {
	t.end()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turn = nil
	close(a.ended)
}

// note is a text as an artifact.
func note(of agents.ArtifactType, session permissions.ID, n int, text string, at time.Time) agents.Artifact {
	content, _ := json.Marshal(map[string]any{"session_id": session, "text": text, "timestamp": at}) // always encodable
	return agents.Artifact{Step: n, Type: of, Content: content}
}

func (a *Agent) say(ctx context.Context, key, text string) error {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	err := (*a.speaker.Load()).Say(ctx, key, short(text, permissions.MaxAgentMessage-10))
	if r := permissions.AsRefusal(err); r != nil && r.Code != permissions.CodeBroken {
		a.log.Warn("agent output rejected", "code", r.Code)
		return nil
	}
	return err
}

func (a *Agent) working(on bool) { (*a.speaker.Load()).Working(on) }

// stopProgram ends the program.
func (a *Agent) stopProgram() {
	if s := a.running.Swap(nil); s != nil {
		s.shutDown()
	}
}

// shutDown ends a program and the commands that run for it.
func (s *session) shutDown() {
	s.mu.Lock()
	t := s.turn
	s.mu.Unlock()
	if t != nil {
		t.end()
	}
	s.stop()
	s.jobs.Wait()
}

// Obey implements [agents.Resident]. It returns once the turn has ended, and the session too if that was ordered.
func (a *Agent) Obey(ctx context.Context, o permissions.Order) error {
	a.mu.Lock()
	a.orders++
	t, ended := a.turn, a.ended
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.orders--
		a.mu.Unlock()
		a.workSignal.Notify()
	}()
	if t != nil {
		t.end()
		select {
		case <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if o == permissions.OrderStop {
		return nil
	}
	if err := a.close(ctx); err != nil {
		return err
	}
	if o == permissions.OrderQuit {
		a.stopProgram()
		return nil
	}
	_, err := a.row.current(ctx)
	return err
}

// close ends the session and its grants.
func (a *Agent) close(ctx context.Context) error {
	s, open, err := a.row.open(ctx)
	if err != nil || !open {
		return err
	}
	if err := a.approvals.EndSession(ctx, a.caller(), string(s.ID)); err != nil {
		return err
	}
	return a.row.change(ctx, func(s *permissions.AgentSession, _ *agents.Commit) {
		s.Status, s.EndedAt, s.Request, s.Tool = permissions.Idle, a.stamp(), "", ""
	})
}
