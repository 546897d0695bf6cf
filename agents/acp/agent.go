// Package acp drives agents that other people wrote and that speak the Agent Client Protocol, version 1, on their standard
// streams. To the engine each is a [agents.Resident] like those of our own: what its person writes is a prompt, and what it
// says comes back ([Agent]). `daycared run` does one prompt without the chat ([Once]).
//
// The program runs in walls that its entry names, so what it does by itself is held by the kernel. What it asks its client
// for is another matter: permissions become requests of kind tool, put to people; files and commands go through the gated
// tools of our own (agents/tools), which run only as people were shown them. What is not understood is refused.
//
// The library carries the messages; their meaning is read here. Its own reading would lose what people have to see: an
// input's exact numbers and repeated names, and every update that it does not know.
//
// A turn belongs to the program: when that ends, or the daemon does, the turn is gone, what it asked is cancelled, and the
// person is told. Its conversation goes on where the program can load it again.
package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/permissions"
)

// Options are what an agent is made of. All but Program.Start are required.
type Options struct {
	Name    string // of the configuration
	Person  string // whose it is
	Via     string // where the two talk
	Program Program
	Place   tools.Place // where files and commands of its are held; its Tags are what the configuration gives
	Read    tools.Tool  // read_file, write_file and run_command, as its own calls of these meet them
	Write   tools.Tool
	Run     tools.Tool
	Store   agents.SessionStore
	Now     func() time.Time
}

// Agent is an agent of somebody's that another program is. It is safe for concurrent use.
type Agent struct {
	o        Options
	log      *slog.Logger
	desk     agents.Desk      // set by Bind, before anything else
	rung     permissions.Bell // somebody wrote, or an order was obeyed
	activity atomic.Pointer[permissions.Activity]
	row      row

	mu      sync.Mutex
	speaker agents.Speaker // while it runs
	turn    *turn          // that goes on; nil for none
	orders  int            // that are being obeyed: no turn begins meanwhile
	ended   chan struct{}  // closed when the turn has ended
	seat    *seat          // its program, while that runs
	posed   []*posed       // what it waits for
	open    []*posed       // of which something is still to be told
	answers map[permissions.ID]permissions.Bell
}

// seat is a program at work.
type seat struct {
	*client
	*process
}

// posed is a question that waits for people.
type posed struct {
	id   permissions.ID
	tool string
	done chan struct{} // closed when nothing more is told of it
}

var (
	_ agents.Resident = (*Agent)(nil)
	_ agents.Witness  = (*Agent)(nil)
	_ gate            = (*Agent)(nil)
)

// New makes an agent. It starts nothing: call [Agent.Bind], then the engine runs it.
func New(o Options) *Agent {
	a := &Agent{
		o: o, log: o.Program.Log, rung: permissions.NewBell(), answers: map[permissions.ID]permissions.Bell{},
	}
	a.row = row{store: o.Store, agent: a}
	a.shows(permissions.Idle)
	return a
}

// Bind says where the agent asks. It is called once, before anything runs.
func (a *Agent) Bind(d agents.Desk) { a.desk = d }

// Bond implements [agents.Resident].
func (a *Agent) Bond() permissions.Bond {
	return permissions.Bond{Agent: a.o.Name, Person: a.o.Person, Via: a.o.Via}
}

// Activity implements [agents.Resident].
func (a *Agent) Activity() permissions.Activity { return *a.activity.Load() }

func (a *Agent) shows(now permissions.Activity) { a.activity.Store(&now) }

func (a *Agent) stamp() time.Time { return a.o.Now().UTC().Truncate(time.Microsecond) }

func (a *Agent) caller() permissions.Caller { return permissions.AgentCaller(a.o.Name) }

// Hear implements [agents.Resident]: the message is kept until a turn takes it.
func (a *Agent) Hear(ctx context.Context, m permissions.Message) error {
	s, err := a.row.current(ctx)
	if err != nil {
		return err
	}
	err = a.o.Store.Post(ctx, agents.Post{Session: s.ID, Key: m.Key, From: m.From, Text: m.Text, At: m.CreatedAt})
	if err != nil {
		return err
	}
	a.rung.Ring()
	return nil
}

// Run implements [agents.Resident]. When it ends, the program does.
func (a *Agent) Run(ctx context.Context, s agents.Speaker) error {
	a.mu.Lock()
	a.speaker = s
	a.mu.Unlock()
	defer a.leave()
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
		case <-a.rung:
		}
	}
	return ctx.Err()
}

// resume cancels what a program before this one asked, and tells of a turn that ended with it.
func (a *Agent) resume(ctx context.Context) error {
	s, open, err := a.row.open(ctx)
	if err != nil || !open {
		return err
	}
	if err := a.desk.EndSession(ctx, a.caller(), string(s.ID)); err != nil {
		return fmt.Errorf("cancel what an agent asked before: %w", err)
	}
	if s.Status != permissions.Running && s.Status != permissions.AwaitingUser {
		a.shows(s.Status)
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

// interrupted ends a turn that a program before this one did not: what it asked, which is cancelled by now, and what it ran.
func (a *Agent) interrupted(ctx context.Context, was step) (end func(*permissions.AgentSession, *agents.Commit), err error) {
	var closed []permissions.Request
	for _, id := range was.Asks {
		r, err := a.desk.Read(ctx, a.caller(), id)
		switch {
		case permissions.CodeOf(err) == permissions.CodeUnknown: // the daemon ended before it was asked
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
		a.over(s, c, agents.Interrupted, "restarted")
	}, nil
}

// over ends a turn in the row, and tells how it ended.
func (a *Agent) over(s *permissions.AgentSession, c *agents.Commit, outcome, reason string) {
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

// work does one turn, if somebody wrote.
func (a *Agent) work(ctx context.Context) (worked bool, err error) {
	s, open, err := a.row.open(ctx)
	if err != nil || !open {
		return false, err
	}
	posts, err := a.o.Store.Posts(ctx, s.ID, mostPosts)
	if err != nil || len(posts) == 0 {
		return false, err
	}
	was, err := a.row.step()
	if err != nil {
		return false, err
	}
	t := newTurn(string(s.ID), was.Turns+1)
	if !a.begin(t) {
		return false, nil // an order is obeyed first, and rings then
	}
	defer a.finish(t)
	texts, numbers := make([]string, len(posts)), make([]int64, len(posts))
	for i, p := range posts {
		texts[i], numbers[i] = p.Text, p.Number
	}
	err = a.row.change(ctx, func(s *permissions.AgentSession, c *agents.Commit) {
		was = step{Conversation: was.Conversation, Turns: t.n}
		s.Status, s.Step, c.Taken = permissions.Running, was.encode(), numbers
		c.Artifacts = []agents.Artifact{note(agents.ArtifactUserMessage, s.ID, t.n, strings.Join(texts, "\n\n"), a.stamp())}
	})
	if err != nil {
		return false, err
	}
	return true, a.prompt(ctx, t, strings.Join(texts, "\n\n"))
}

// mostPosts is how many messages are one prompt at most.
const mostPosts = 100

// begin has a turn go on, unless an order is obeyed just now.
func (a *Agent) begin(t *turn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.orders > 0 {
		return false
	}
	a.turn, a.ended = t, make(chan struct{})
	return true
}

// finish ends a turn, whatever became of it.
func (a *Agent) finish(t *turn) {
	t.end()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turn = nil
	close(a.ended)
}

// note is what was said, as it is kept.
func note(of agents.ArtifactType, session permissions.ID, n int, text string, at time.Time) agents.Artifact {
	content, _ := json.Marshal(map[string]any{"session_id": session, "text": text, "timestamp": at}) // it can always be written
	return agents.Artifact{Step: n, Type: of, Content: content}
}

// say tells the person something.
func (a *Agent) say(ctx context.Context, key, text string) error {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	a.mu.Lock()
	s := a.speaker
	a.mu.Unlock()
	err := s.Say(ctx, key, short(text, permissions.MaxUtterance-10))
	if r := permissions.AsRefusal(err); r != nil && r.Code != permissions.CodeBroken {
		a.log.Warn("what an agent says is not taken", "code", r.Code)
		return nil
	}
	return err
}

// working shows the person that the agent works, or no longer.
func (a *Agent) working(on bool) {
	a.mu.Lock()
	s := a.speaker
	a.mu.Unlock()
	s.Working(on)
}

// leave ends the program.
func (a *Agent) leave() {
	a.mu.Lock()
	s := a.seat
	a.seat = nil
	a.mu.Unlock()
	if s != nil {
		s.part()
	}
}

// part ends a program, with the commands that run for it.
func (s *seat) part() {
	s.mutex().Lock()
	t := s.turn
	s.mutex().Unlock()
	if t != nil {
		t.end()
	}
	s.stop()
	s.jobs.Wait()
}

func (s *seat) mutex() *sync.Mutex { return &s.client.mu }

// conversation is what the agent is told of a new one, or of one to be loaded.
func (o Options) conversation() sdk.NewSessionRequest {
	return sdk.NewSessionRequest{Cwd: o.Place.Workspace, McpServers: []sdk.McpServer{}}
}

// Obey implements [agents.Resident]. It returns once the turn has ended, and the session as well where that was ordered.
func (a *Agent) Obey(ctx context.Context, o permissions.Order) error {
	a.mu.Lock()
	a.orders++
	t, ended := a.turn, a.ended
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.orders--
		a.mu.Unlock()
		a.rung.Ring()
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
		a.leave()
		return nil
	}
	_, err := a.row.current(ctx)
	return err
}

// close ends the session, with what it was granted.
func (a *Agent) close(ctx context.Context) error {
	s, open, err := a.row.open(ctx)
	if err != nil || !open {
		return err
	}
	if err := a.desk.EndSession(ctx, a.caller(), string(s.ID)); err != nil {
		return err
	}
	return a.row.change(ctx, func(s *permissions.AgentSession, _ *agents.Commit) {
		s.Status, s.EndedAt, s.Request, s.Tool = permissions.Idle, a.stamp(), "", ""
	})
}
