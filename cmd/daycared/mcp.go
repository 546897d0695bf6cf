package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/agents/mcp"
	"github.com/daycared/daycared/client"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

func (c *CLI) mcpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the tools that ask to an agent that speaks MCP, on standard input and output",
		Example: "  daycared mcp\n" +
			"  daycared mcp --url https://daycared.example --token-file deploy.token",
		Long: "Serve the tools that ask to an agent that speaks MCP, on standard input and output. The agent starts it:\n" +
			"request_permission, ask_user, pause, await_request, and approve_tool for Claude Code's --permission-prompt-tool.\n" +
			"It asks the daemon at agent.sock, or at --url. While there is none, every call is an error, and nothing is granted.\n" +
			pinnedHelp,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.pin()
			return c.mcp(cmd.Context())
		},
	}
	c.urlFlags(cmd)
	return cmd
}

// mcp serves one agent until it closes standard input, or a signal arrives. Pending requests stay open.
func (c *CLI) mcp(ctx context.Context) error {
	asks, err := c.agentClient()
	if err != nil {
		return err
	}
	defer asks.Close()
	if terminal.IsTerminal(c.In) {
		c.say("this speaks MCP on standard input and output, so an agent is to start it; daycared connect AGENT tells one to; Ctrl-D ends it")
	}
	cwd, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the working directory: %w", err)
	}
	host, _ := os.Hostname() // empty if it fails
	server := mcp.New(mcp.Options{
		Desk: remoteRequests{asks, &sync.Map{}}, Version: version, Cwd: own.Resolve(cwd), Host: host,
		Log: slog.New(slog.NewTextHandler(c.Err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	return server.Serve(ctx, c.In, unclosed{c.Out})
}

// unclosed is an output whose Close does nothing to the process's own stream.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// remoteRequests implements mcp.Requests over agent.sock. The socket or the token identifies the caller.
type remoteRequests struct {
	client *client.Client
	held   *sync.Map // cancels each [remoteRequests.Hold], by request
}

var _ mcp.Requests = remoteRequests{}

// Ask implements [agents.Asker]. It proposes the id, so that the question can be found again even if no reply arrived.
func (d remoteRequests) Ask(ctx context.Context, _ permissions.Caller, q permissions.Request) (permissions.Request, error) {
	q.ID = cmp.Or(q.ID, permissions.NewID(time.Now()))
	s, err := d.client.Put(ctx, q)
	if err != nil && s.Request.ID == "" {
		s.Request.ID = q.ID
	}
	return s.Request, err
}

// Find reads a request.
func (d remoteRequests) Find(ctx context.Context, _ permissions.Caller, id permissions.ID) (permissions.RequestView, error) {
	return d.client.Get(ctx, id, 0)
}

// Await reads a request until it is settled, and retries lost connections until its time is over.
func (d remoteRequests) Await(ctx context.Context, _ permissions.Caller, id permissions.ID) (permissions.RequestView, error) {
	last, err := d.client.Get(ctx, id, 0)
	tries := wire.NewTries()
	for err == nil && ctx.Err() == nil && last.Request.State == permissions.Pending {
		next, lost := d.client.Get(ctx, id, wire.MaxWait)
		switch {
		case lost == nil:
			last = next
			tries.Reset()
		case ctx.Err() != nil: // the last known state
		case wire.IsConnectionError(lost) && time.Now().Before(last.Request.Deadline):
			_ = timing.Pause(ctx, tries.NextBackOff()) // the loop checks ctx
		default:
			err = lost
		}
	}
	return last, err
}

// LeaveOrCancel removes a call from a request, and cancels the request if no other call waits.
func (d remoteRequests) LeaveOrCancel(
	ctx context.Context, _ permissions.Caller, id permissions.ID, call string,
) (permissions.RequestView, error) {
	return d.client.Forgo(ctx, id, call)
}

// Recall withdraws the requests that need no answer any more.
func (d remoteRequests) Recall(ctx context.Context, _ permissions.Caller, m permissions.Recall) (int, error) {
	return d.client.Recall(ctx, m)
}

// Regret schedules the withdrawal of a request. It retries while a daemon restarts.
func (d remoteRequests) Regret(
	ctx context.Context, _ permissions.Caller, id permissions.ID, after time.Duration,
) (permissions.RequestView, error) {
	tries := wire.NewTries()
	for {
		s, err := d.client.Regret(ctx, id, after)
		if err == nil || !wire.IsConnectionError(err) || timing.Pause(ctx, tries.NextBackOff()) != nil {
			return s, err
		}
	}
}

// Hold waits in place of a client that shows a dialog, for as long as this process runs.
func (d remoteRequests) Hold(_ context.Context, caller permissions.Caller, id permissions.ID, held bool) error {
	if was, found := d.held.LoadAndDelete(id); found {
		if end, is := was.(context.CancelFunc); is {
			end()
		}
	}
	if held {
		ctx, end := context.WithCancel(context.Background())
		d.held.Store(id, end)
		go func() {
			defer end()
			_, _ = d.Await(ctx, caller, id) // the client learns the outcome from its own call
		}()
	}
	return nil
}

// Withdraw cancels a request.
func (d remoteRequests) Withdraw(ctx context.Context, _ permissions.Caller, id permissions.ID) (permissions.RequestView, error) {
	return d.client.Cancel(ctx, id)
}

// Begin submits without waiting. It proposes the id, as Ask does.
func (d remoteRequests) Begin(ctx context.Context, _ permissions.Caller, q permissions.Request) (permissions.RequestView, error) {
	q.ID = cmp.Or(q.ID, permissions.NewID(time.Now()))
	s, err := d.client.Begin(ctx, q)
	if err != nil {
		s.Request.ID = q.ID
	}
	return s, err
}

// Reply submits the result of the editor's dialog.
func (d remoteRequests) Reply(
	ctx context.Context, _ permissions.Caller, id permissions.ID, a permissions.Answer, shown permissions.Digest,
) (permissions.RequestView, error) {
	return d.client.Reply(ctx, id, a, shown)
}
