// Package client asks people, through daycared, from any Go program.
//
//	c, err := client.New(client.Options{Socket: "/run/daycared/agent.sock"})
//	…
//	answer, err := c.Ask(ctx, []string{"@write:/srv/www"}, "deploy v42", client.Question{Key: "deploy-v42"})
//	if err != nil || !answer.Yes {
//		…
//	}
//
// A question waits for as long as people may take, across lost connections and restarts of the daemon, and is put to
// them once: a call that asks again joins it. With a [Question.Key] even another process does, and finds the answer that
// was given meanwhile. Whatever is not a yes is not one: no error and no silence ever counts as consent.
//
// Leaving (the end of a context) is not cancelling: the question stands until [Client.Cancel], or its deadline.
package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// ErrUnreachable is matched by errors that mean there is no daemon to ask, or none any more.
var ErrUnreachable = wire.ErrUnreachable

// ErrOtherRow is matched by errors that mean that the answer belongs to another request than the one that was asked, for example
// because a proxy mixed up responses. Such an answer permits nothing.
var ErrOtherRow = errors.New("the answer is about another request than this one")

// Options say where the daemon is, and who asks.
type Options struct {
	// Socket is the path of agent.sock. The account that this process runs as is who asks, unless there is a token. Only this
	// account, root, the owner of TokenFile, and an account whose socket nobody else can have put there are asked.
	Socket string
	// URL is where a daemon on another machine listens, instead of Socket: https, or http on this machine. Redirects are
	// not followed. There only a token proves who asks.
	URL string
	// Proxy is the URL of the proxy on the way to URL, and CAFile holds certificates in PEM that are trusted there instead of
	// the machine's; empty: as the environment has it (HTTPS_PROXY, SSL_CERT_FILE).
	Proxy, CAFile string
	// EnvironmentProxy finds the environment's proxy; nil: [http.ProxyFromEnvironment], which reads the environment once.
	EnvironmentProxy func(*http.Request) (*url.URL, error)
	// TokenFile holds the token to present, on one line; empty: none is. It is read for every call, so that one token can
	// replace another; a call fails if the file is unreadable or holds no token, and one that already waits is tried again.
	TokenFile string
}

// Client asks one daemon, which identifies it by the process's account or its token. It is safe for concurrent use; see [Client.Close].
type Client struct {
	// Progress, if set before the first question, is called when a request was created or shown, or a lost connection was restored.
	Progress func(permissions.RequestView)
	// Lost, if set before the first question, is called once per outage, before the first retry, when the connection is lost or
	// the daemon's store fails while a question waits.
	Lost func(error)

	tokenFile string
	readToken func(file string) (permissions.Secret, error)
	reading   chan struct{} // calls of readToken
	wire      *wire.Client
}

// New makes a client. It does not connect yet. The error says what is wrong with the options.
func New(o Options) (*Client, error) {
	c := &Client{tokenFile: o.TokenFile, readToken: readToken, reading: make(chan struct{}, maxReading)}
	switch {
	case (o.Socket == "") == (o.URL == ""):
		return nil, errors.New("name either the daemon's socket or its URL")
	case o.URL != "":
		way := wire.RemoteOptions{Proxy: o.Proxy, CAFile: o.CAFile, EnvironmentProxy: o.EnvironmentProxy}
		var err error
		if c.wire, err = wire.NewRemoteClient(o.URL, way); err != nil {
			return nil, err
		}
		return c, nil
	case o.Proxy != "" || o.CAFile != "":
		return nil, errors.New("a proxy and certificates are for a URL, not for a socket")
	}
	c.wire = wire.NewClient(o.Socket, func(uid int) bool {
		return wire.Owns(uid, o.TokenFile) || wire.IsTrustedSocket(uid, o.Socket)
	})
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.wire.Close() }

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
	Standing permissions.RequestView
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
	q.Key, q.WantedTimeout, q.Details, q.Session = more.Key, more.Timeout, more.Details, more.Session
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
