package main

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/runtime"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/telegram"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/connectors/whatsapp"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/permissions"
)

// A daemon that this binary runs as kills itself (SIGKILL) at the place that DAYCARED_FAILPOINT names, as in apply.after:3:
// after the third Apply has returned. The crash loops drive it through every store and send call. At group.before and
// group.after it dies around a commit of several writes.
//
// At apply.lost and apply.twice it does not die, but does what must never happen: what the third decision changes is
// told and not stored, or is stored twice. By that the tests show that the loops would see it.

var (
	failAt, failCount = failpoint()
	failHits          atomic.Int64
)

func failpoint() (string, int64) {
	name, count, _ := strings.Cut(os.Getenv("DAYCARED_FAILPOINT"), ":")
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		return "", 0
	}
	return name, n
}

// reached reports whether to fail now at the named point.
func reached(name string) bool { return name == failAt && failHits.Add(1) == failCount }

func point(name string) {
	if reached(name) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// At the places of [store.OnPoint], a daemon appends the place's name to the file that DAYCARED_COUNT names.
func init() {
	if name := os.Getenv("DAYCARED_COUNT"); name != "" {
		counted, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		store.OnPoint = func(place string, _ int) { _, _ = counted.WriteString(place + "\n") }
	}
	if failAt == "" {
		return
	}
	hookStore = func(s engine.Store) engine.Store { return failingStore{s} }
	hookSessions = func(s runtime.Store) runtime.Store { return failingSessions{s} }
	hookAdmin = func(a *admin.Connector) connectors.Connector { return failingAdmin{a} }
	hookTerminal = func(t *terminal.Terminal) connectors.Connector { return failingTerminal{t} }
	hookTelegram = func(t *telegram.Connector) connectors.Connector { return failingTelegram{t} }
	hookInbound = func(s connectors.Services) connectors.Services { return failingInbound{s} }
	hookWhatsApp = func(w *whatsapp.Connector) connectors.Connector { return failingWhatsApp{w} }
	store.OnPoint = func(name string, writes int) {
		if writes > 1 {
			point(name)
		}
	}
}

// around runs f between its two failpoints.
func around(name string, f func() error) error {
	point(name + ".before")
	err := f()
	point(name + ".after")
	return err
}

type failingStore struct{ engine.Store }

type failingSessions struct{ runtime.Store }

func (s failingSessions) Commit(ctx context.Context, c agents.Commit) error {
	return around("commit", func() error { return s.Store.Commit(ctx, c) })
}

func (s failingSessions) Post(ctx context.Context, p agents.Post) error {
	return around("post", func() error { return s.Store.Post(ctx, p) })
}

func (s failingStore) Open(ctx context.Context, o permissions.Opening) (r permissions.Request, created bool, err error) {
	err = around("open", func() error { r, created, err = s.Store.Open(ctx, o); return err })
	return r, created, err
}

func (s failingStore) Apply(ctx context.Context, id permissions.ID, e permissions.Transition) (c permissions.Change, err error) {
	if c, lost := s.lose(ctx, id, e); lost {
		return c, nil
	}
	err = around("apply", func() error { c, err = s.Store.Apply(ctx, id, e); return err })
	if err == nil && c.Settled() && reached("apply.twice") {
		for _, r := range c.Records {
			err = errors.Join(err, s.Store.Record(ctx, r))
		}
	}
	return c, err
}

// lose returns the effect of a decision without storing it, if it is the one to lose.
func (s failingStore) lose(ctx context.Context, id permissions.ID, e permissions.Transition) (c permissions.Change, lost bool) {
	if failAt != "apply.lost" {
		return c, false
	}
	r, err := s.Read(ctx, id)
	if err != nil {
		return c, false
	}
	c, err = permissions.Step(r, e)
	return c, err == nil && c.Settled() && reached("apply.lost")
}

func (s failingStore) MarkShown(ctx context.Context, c permissions.Copy, was string) error {
	return around("shown", func() error { return s.Store.MarkShown(ctx, c, was) })
}

func (s failingStore) MarkFailed(ctx context.Context, c permissions.Copy) error {
	return around("failed", func() error { return s.Store.MarkFailed(ctx, c) })
}

func (s failingStore) ForgetCopies(ctx context.Context, connector string) error {
	return around("forget", func() error { return s.Store.ForgetCopies(ctx, connector) })
}

func (s failingStore) Record(ctx context.Context, r permissions.Record) error {
	return around("record", func() error { return s.Store.Record(ctx, r) })
}

func (s failingStore) AddCopies(ctx context.Context, copies []permissions.Copy) error {
	return around("addcopies", func() error { return s.Store.AddCopies(ctx, copies) })
}

func (s failingStore) EndGrants(ctx context.Context, now time.Time, limit int) (g []permissions.Grant, next time.Time, err error) {
	err = around("endgrants", func() error { g, next, err = s.Store.EndGrants(ctx, now, limit); return err })
	return g, next, err
}

func (s failingStore) Revoke(
	ctx context.Context, id permissions.ID, by, via string, at time.Time, limit int,
) (r permissions.Revoked, err error) {
	err = around("revoke", func() error { r, err = s.Store.Revoke(ctx, id, by, via, at, limit); return err })
	return r, err
}

func (s failingStore) Stop(ctx context.Context, by, via string, at time.Time) (r []permissions.Request, err error) {
	err = around("stop", func() error { r, err = s.Store.Stop(ctx, by, via, at); return err })
	return r, err
}

func (s failingStore) Resume(ctx context.Context, by, via string, force bool, at time.Time) error {
	return around("resume", func() error { return s.Store.Resume(ctx, by, via, force, at) })
}

func (s failingStore) DeleteNotice(ctx context.Context, id permissions.ID) error {
	return around("noted", func() error { return s.Store.DeleteNotice(ctx, id) })
}

func (s failingStore) Prune(ctx context.Context, keep permissions.Keep, now time.Time, limit int) (more bool, err error) {
	err = around("prune", func() error { more, err = s.Store.Prune(ctx, keep, now, limit); return err })
	return more, err
}

// Embedding the concrete connector keeps its optional interfaces.

type failingAdmin struct{ *admin.Connector }

func (c failingAdmin) Send(ctx context.Context, p connectors.Prompt) (ref string, err error) {
	err = around("send", func() error { ref, err = c.Connector.Send(ctx, p); return err })
	return ref, err
}

type failingTerminal struct{ *terminal.Terminal }

func (c failingTerminal) Send(ctx context.Context, p connectors.Prompt) (ref string, err error) {
	err = around("send", func() error { ref, err = c.Terminal.Send(ctx, p); return err })
	return ref, err
}

func (c failingTerminal) Edit(ctx context.Context, ref string, p connectors.Prompt) error {
	return around("edit", func() error { return c.Terminal.Edit(ctx, ref, p) })
}

type failingTelegram struct{ *telegram.Connector }

func (c failingTelegram) Send(ctx context.Context, p connectors.Prompt) (ref string, err error) {
	err = around("send", func() error { ref, err = c.Connector.Send(ctx, p); return err })
	return ref, err
}

func (c failingTelegram) Edit(ctx context.Context, ref string, p connectors.Prompt) error {
	return around("edit", func() error { return c.Connector.Edit(ctx, ref, p) })
}

type failingWhatsApp struct{ *whatsapp.Connector }

func (c failingWhatsApp) Send(ctx context.Context, p connectors.Prompt) (ref string, err error) {
	err = around("send", func() error { ref, err = c.Connector.Send(ctx, p); return err })
	shown.Store(err == nil)
	return ref, err
}

func (c failingWhatsApp) Edit(ctx context.Context, ref string, p connectors.Prompt) error {
	return around("edit", func() error { return c.Connector.Edit(ctx, ref, p) })
}

type failingInbound struct{ connectors.Services }

// Person is called for a message that was decrypted, before anything else is done with it.
func (d failingInbound) Person(id connectors.Identity) (p connectors.Person, err error) {
	err = around("heard", func() error { p, err = d.Services.Person(id); return err })
	return p, err
}

func (d failingInbound) OnPermission(ctx context.Context, by connectors.Decision) (r permissions.Request, err error) {
	err = around("decide", func() error { r, err = d.Services.OnPermission(ctx, by); return err })
	decided.Store(err == nil)
	return r, err
}

// The network has failpoints too: reads after a card was shown, hence before decryption, and writes after a decision: the
// acknowledgement, the edit and the reaction, in any order.
var shown, decided atomic.Bool

type failingConn struct{ net.Conn }

func (c failingConn) Read(p []byte) (n int, err error) {
	if !shown.Load() {
		return c.Conn.Read(p)
	}
	err = around("read", func() error { n, err = c.Conn.Read(p); return err })
	return n, err
}

func (c failingConn) Write(p []byte) (n int, err error) {
	if !decided.Load() {
		return c.Conn.Write(p)
	}
	err = around("write", func() error { n, err = c.Conn.Write(p); return err })
	return n, err
}
