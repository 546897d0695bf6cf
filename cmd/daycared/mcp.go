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

	"github.com/daycared/daycared/agents/hooks"
	"github.com/daycared/daycared/agents/mcp"
	"github.com/daycared/daycared/client"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/permissions"
)

func (c *CLI) mcpCommand() *cobra.Command {
	return newCommand("mcp", nil, func(cmd *cobra.Command, _ []string) error {
		c.pin()
		return c.mcp(cmd.Context())
	})
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
		Requests: remoteRequests{asks, &sync.Map{}}, Version: version, Cwd: own.Resolve(cwd), Host: host,
		Leads: func(q permissions.Request) (permissions.Leads, error) { return hooks.LeadsOf("claude-code", q, c.env) },
		Log:   slog.New(slog.NewTextHandler(c.Err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	return server.Serve(ctx, c.In, unclosed{c.Out})
}

// unclosed is an output whose Close does nothing to the process's own stream.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// remoteRequests implements mcp.Requests and hooks.Requests by a client. The daemon identifies the caller by the socket or the
// token, whatever caller a method is given.
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

// Begin is Ask without waiting.
func (d remoteRequests) Begin(ctx context.Context, _ permissions.Caller, q permissions.Request) (permissions.RequestView, error) {
	q.ID = cmp.Or(q.ID, permissions.NewID(time.Now()))
	s, err := d.client.Begin(ctx, q)
	if err != nil {
		s.Request.ID = q.ID
	}
	return s, err
}

// Hold waits in place of a client that shows a dialog, for as long as this process runs.
func (d remoteRequests) Hold(_ context.Context, _ permissions.Caller, id permissions.ID, held bool) error {
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
			_, _ = d.client.Wait(ctx, id) // the client learns the outcome from its own call
		}()
	}
	return nil
}

func (d remoteRequests) Find(ctx context.Context, _ permissions.Caller, id permissions.ID) (permissions.RequestView, error) {
	return d.client.Get(ctx, id, 0)
}

func (d remoteRequests) Await(ctx context.Context, _ permissions.Caller, id permissions.ID) (permissions.RequestView, error) {
	return d.client.Wait(ctx, id)
}

func (d remoteRequests) Withdraw(ctx context.Context, _ permissions.Caller, id permissions.ID) (permissions.RequestView, error) {
	return d.client.Cancel(ctx, id)
}

func (d remoteRequests) Recall(ctx context.Context, _ permissions.Caller, m permissions.Recall) (int, error) {
	return d.client.Recall(ctx, m)
}

func (d remoteRequests) LeaveOrCancel(
	ctx context.Context, _ permissions.Caller, id permissions.ID, call, _ string,
) (permissions.RequestView, error) {
	return d.client.Leave(ctx, id, call)
}

func (d remoteRequests) WithdrawLater(
	ctx context.Context, _ permissions.Caller, id permissions.ID, after time.Duration,
) (permissions.RequestView, error) {
	return d.client.CancelAfter(ctx, id, after)
}

func (d remoteRequests) Reply(
	ctx context.Context, _ permissions.Caller, id permissions.ID, a permissions.Answer, shown permissions.Digest,
) (permissions.RequestView, error) {
	return d.client.Reply(ctx, id, a, shown)
}
