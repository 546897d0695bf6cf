package client

import (
	"context"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Question is what a question may say besides what it asks. Its zero value says nothing.
type Question struct {
	// Key names the question: asking again with it, from whatever process, finds the same request and its answer, until
	// ten minutes after it was given. Other content under it is refused.
	Key string
	// Timeout is how long to wait for people; 0: the daemon's default.
	Timeout time.Duration
	// Details is text that the person is shown whole, at most 1 MiB.
	Details string
	// Agent is a name to show, which people see as a claim; Host and Cwd say where this runs.
	Agent, Host, Cwd string
	// Session is what the answer may hold for, where people choose that.
	Session string
	// Scope is the widest scope to offer: once, session, 15m, always; empty: every one that is configured.
	Scope string
}

// Answer is how a question ended.
type Answer struct {
	// Yes is true where somebody said yes, to this question; or, of [Client.Choose], where somebody chose.
	Yes bool
	// Text is the outcome in a sentence, or what was chosen, in the words of the option.
	Text string
	// Standing is the request as it stands: who decided it, when, and with what words.
	Standing permissions.Standing
}

// Ask asks for permissions (@network, @workspace, @events, @read:/path, @write:/path), saying why.
func (c *Client) Ask(ctx context.Context, tags []string, reason string, more Question) (Answer, error) {
	parsed, err := permissions.ParseTags(tags)
	if err != nil {
		return Answer{}, permissions.Invalid(err)
	}
	return c.put(ctx, permissions.Request{Kind: permissions.KindPermission, Tags: parsed, Reason: reason}, more)
}

// Confirm asks a question whose answer is yes or no; it never answers itself.
func (c *Client) Confirm(ctx context.Context, question string, more Question) (Answer, error) {
	return c.put(ctx, permissions.Request{
		Kind: permissions.KindPause, Mode: permissions.ModeConfirm, Message: question,
	}, more)
}

// Choose lets somebody choose between options, or say it in their own words. When nobody does in time, Yes is false and
// Text begins with the line of the first option, which is nobody's word, and permission for nothing.
func (c *Client) Choose(ctx context.Context, question string, options []string, more Question) (Answer, error) {
	return c.put(ctx, permissions.Request{
		Kind: permissions.KindClarification, Message: question, Choices: options,
	}, more)
}

func (c *Client) put(ctx context.Context, q permissions.Request, more Question) (Answer, error) {
	q.Key, q.Patience, q.Details, q.Session = more.Key, more.Timeout, more.Details, more.Session
	q.Agent, q.Claimed, q.Host, q.Cwd = more.Agent, more.Agent != "", more.Host, more.Cwd
	if more.Scope != "" {
		widest, err := permissions.ParseScope(more.Scope)
		if err != nil {
			return Answer{}, permissions.Invalid(err)
		}
		q.Widest = widest
	}
	if err := q.Validate(); err != nil {
		return Answer{}, permissions.Invalid(err)
	}
	s, err := c.Put(ctx, q)
	if err != nil {
		return Answer{Standing: s}, err
	}
	result := permissions.Result(s.Request)
	return Answer{Yes: result.Exit == permissions.ExitYes, Text: result.Text, Standing: s}, nil
}
