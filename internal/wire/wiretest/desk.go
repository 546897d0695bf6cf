// Package wiretest is shared by the tests of both servers: a [Desk], an engine in memory with the real registry and
// state machine, and paths for sockets.
package wiretest

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/registry"
	"github.com/daycared/daycared/permissions/timing"
)

// Desk is a small engine: it asks fay, the operator of tests, and the others in People.
type Desk struct {
	People map[int]string // by account
	Asked  []string
	// Limit is the most requests; 0 for no limit.
	Limit int
	// Asks and Verified, if set, are called at the start of every Ask and instead of a verification.
	Asks     func(permissions.Caller, permissions.Request)
	Verified func() error

	// Sittings are the sessions, by id.
	Sittings []permissions.SessionView
	// Calls are those of their calls, by ID.
	Calls []permissions.Execution
	// Products are their artifacts, by ID.
	Products []permissions.Artifact
	// Channels are the errors of the channels.
	Channels map[string]error

	// Waits are the stored processes with their callers; Regretted is how long each cancelled call's request stays pending.
	Waits     []permissions.Wait
	Callers   []permissions.Caller
	Regretted []time.Duration

	Registry *registry.Registry
	store    *store
	coder    permissions.Coder
	feeds    []*registry.Feed
}

// lease is how long a call keeps its place between two waits.
const lease = 10 * time.Second

// NewDesk makes a desk whose operator fay is this process's account.
func NewDesk() *Desk {
	s, began := newStore(), time.Now()
	clock := timing.Clock{Now: time.Now, Elapsed: func() time.Duration { return time.Since(began) }}
	return &Desk{
		People: map[int]string{os.Getuid(): "fay"}, Asked: []string{"fay"}, store: s,
		Registry: registry.New(s, clock, time.Minute, Quiet),
	}
}

// Fail makes every call fail with err; nil ends that.
func (d *Desk) Fail(err error) {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	d.store.fail = err
}

// Ask opens or joins a request and waits.
func (d *Desk) Ask(ctx context.Context, c permissions.Caller, q permissions.Request) (permissions.Request, error) {
	if d.Asks != nil {
		d.Asks(c, q)
	}
	if err := q.Validate(); err != nil {
		return permissions.Request{}, permissions.Invalid(err)
	}
	work := context.WithoutCancel(ctx)
	w, back := d.Registry.Rejoin(q.Call)
	if !back {
		if told, err := d.store.Read(work, q.ID); err == nil && told.State != permissions.Pending {
			return told, nil
		}
		var err error
		if w, err = d.open(work, c, q); err != nil {
			return permissions.Request{}, err
		}
	}
	r, err := w.Wait(ctx)
	switch {
	case err == nil:
		w.Leave(work)
		return r, nil
	case errors.Is(err, registry.ErrUsedElsewhere):
		w.Leave(work)
		q.ID = ""
		return d.Ask(ctx, c, q)
	case errors.Is(err, context.DeadlineExceeded) && q.Call != "":
		w.Park(lease)
	default:
		w.Leave(work)
	}
	r, failed := d.store.Read(work, w.ID())
	return r, errors.Join(err, failed)
}

// AskDeferred is Ask of what question returns.
func (d *Desk) AskDeferred(
	ctx context.Context, c permissions.Caller, question func() (permissions.Request, error),
) (*permissions.Request, error) {
	q, err := question()
	if err == nil {
		q, err = d.Ask(ctx, c, q)
	}
	return &q, err
}

func (d *Desk) open(ctx context.Context, c permissions.Caller, q permissions.Request) (*registry.Waiter, error) {
	now := time.Now().UTC()
	patience := q.Patience
	if patience == 0 {
		patience = time.Hour
	}
	q.ID, q.Caller, q.Version, q.State = permissions.NewID(now), c, permissions.DigestVersion, permissions.Pending
	q.CreatedAt, q.Deadline, q.Asked, q.Quorum = now, now.Add(patience), slices.Clone(d.Asked), 1
	q.Options = permissions.Offer(q, []permissions.Scope{permissions.Session, permissions.For(15 * time.Minute)}, q.Widest)
	if err := q.Normalize(); err != nil {
		return nil, permissions.Invalid(err)
	}
	q.Digest = permissions.ComputeDigest(q)
	w, _, _, err := d.Registry.Register(ctx, permissions.Opening{Request: q, PerCaller: d.Limit})
	return w, err
}

// Delivered records that a request was shown to fay.
func (d *Desk) Delivered(id permissions.ID) {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	d.store.copies[id] = append(d.store.copies[id], permissions.Copy{
		Request: id, Person: "fay", Connector: "telegram", Ref: "1", SentAt: time.Now().UTC(),
	})
}

// PendingIDs are the ids of pending requests, oldest first.
func (d *Desk) PendingIDs() (ids []permissions.ID) {
	rows, _ := d.store.pending("", "", 1000)
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	return ids
}

// Find reads an agent's request.
func (d *Desk) Find(ctx context.Context, c permissions.Caller, id permissions.ID) (permissions.RequestView, error) {
	r, err := d.store.Read(ctx, id)
	if err == nil && r.Caller.Name != c.Name {
		err = permissions.Unknown(string(id))
	}
	if err != nil {
		return permissions.RequestView{}, err
	}
	return d.View(ctx, r)
}

// Await is Find once it is settled.
func (d *Desk) Await(ctx context.Context, c permissions.Caller, id permissions.ID) (permissions.RequestView, error) {
	if err := d.WaitSettled(ctx, c, id); err != nil {
		return permissions.RequestView{}, err
	}
	return d.Find(context.WithoutCancel(ctx), c, id)
}

// WaitSettled waits until it is settled.
func (d *Desk) WaitSettled(ctx context.Context, c permissions.Caller, id permissions.ID) error {
	if _, err := d.Find(ctx, c, id); err != nil {
		return err
	}
	work := context.WithoutCancel(ctx)
	w, _, err := d.Registry.Attach(work, id)
	if err != nil {
		return err
	}
	defer w.Leave(work)
	w.WaitSettled(ctx)
	return nil
}

// Withdraw cancels for the asker.
func (d *Desk) Withdraw(ctx context.Context, c permissions.Caller, id permissions.ID) (permissions.RequestView, error) {
	if _, err := d.Find(ctx, c, id); err != nil {
		return permissions.RequestView{}, err
	}
	return d.withdraw(ctx, id, c.Name, "")
}

// Begin is Ask without waiting.
func (d *Desk) Begin(ctx context.Context, c permissions.Caller, q permissions.Request) (permissions.RequestView, error) {
	now, done := context.WithTimeout(ctx, 0)
	defer done()
	r, err := d.Ask(now, c, q)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return permissions.RequestView{Request: r}, err
	}
	return d.View(ctx, r)
}

// Reply answers by an editor's dialog.
func (d *Desk) Reply(
	ctx context.Context, c permissions.Caller, id permissions.ID, a permissions.Answer, shown permissions.Digest,
) (permissions.RequestView, error) {
	s, err := d.Find(ctx, c, id)
	if err != nil {
		return permissions.RequestView{}, err
	}
	if s.Request.Digest != shown {
		return permissions.RequestView{}, permissions.OtherShown()
	}
	change, err := d.Registry.Resolve(ctx, id, permissions.Reply{Answer: a, At: time.Now().UTC()})
	if err != nil {
		return permissions.RequestView{}, permissions.Refused(err)
	}
	return d.View(ctx, change.After)
}

// LeaveOrCancel cancels for the asker if no other call of theirs waits.
func (d *Desk) LeaveOrCancel(ctx context.Context, c permissions.Caller, id permissions.ID, call string) (permissions.RequestView, error) {
	if _, err := d.Find(ctx, c, id); err != nil {
		return permissions.RequestView{}, err
	}
	r, err := d.Registry.LeaveOrCancel(ctx, id, call, "")
	if err != nil {
		return permissions.RequestView{}, permissions.Refused(err)
	}
	return d.View(ctx, r)
}

// Killed is Forgo for a call whose process was ended.
func (d *Desk) Killed(ctx context.Context, _ permissions.Caller, id permissions.ID, call string) error {
	_, err := d.Registry.LeaveOrCancel(ctx, id, call, permissions.ViaInterrupt)
	return err
}

// Regret records how long a request stays pending.
func (d *Desk) Regret(
	ctx context.Context, c permissions.Caller, id permissions.ID, after time.Duration,
) (permissions.RequestView, error) {
	s, err := d.Find(ctx, c, id)
	if err == nil {
		d.Regretted = append(d.Regretted, after)
	}
	return s, err
}

// Hold does nothing: a caller that is back asks again.
func (d *Desk) Hold(context.Context, permissions.Caller, permissions.ID, bool) error { return nil }

// KeepProcess stores which process waits.
func (d *Desk) KeepProcess(_ context.Context, c permissions.Caller, w permissions.Wait) error {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	d.Waits, d.Callers = append(d.Waits, w), append(d.Callers, c)
	return d.store.fail
}

// Processes lists the stored processes.
func (d *Desk) Processes(context.Context) ([]permissions.Wait, []permissions.Caller, error) {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	return slices.Clone(d.Waits), slices.Clone(d.Callers), d.store.fail
}

// Recall withdraws requests that need no answer any more.
func (d *Desk) Recall(ctx context.Context, c permissions.Caller, m permissions.Recall) (withdrawn int, err error) {
	if c.Name == permissions.Anonymous {
		return 0, permissions.TokenNeeded()
	}
	rows, _ := d.store.pending("", "", 1000)
	for _, r := range rows {
		if r.Caller.Name == c.Name && m.Matches(r) {
			withdrawn++
			_, err = d.Registry.Cancel(ctx, r.ID, "", m.Via)
		}
	}
	return withdrawn, err
}

// Tell sends a notice to the owner only.
func (d *Desk) Tell(
	_ context.Context, c permissions.Caller, to string, about permissions.About, t permissions.Telling,
) (person string, err error) {
	if c.Name == permissions.Anonymous {
		return "", permissions.TokenNeeded()
	}
	if err := t.Validate(about); err != nil {
		return "", permissions.Invalid(err)
	}
	if to != "" && to != "fay" {
		return "", permissions.NobodyToTell(to, []string{"fay"})
	}
	return "fay", nil
}

// Ready is nil until Fail.
func (d *Desk) Ready(context.Context) error {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	return d.store.fail
}

// OnPermission decides.
func (d *Desk) OnPermission(ctx context.Context, c connectors.Decision) (permissions.Request, error) {
	who, err := d.Who(c.From)
	if err != nil {
		return permissions.Request{}, err
	}
	id := c.Request
	if c.Code != "" {
		if id, err = d.store.byCode(d.coder, c.Code); err != nil {
			return permissions.Request{}, err
		}
	}
	now := time.Now().UTC()
	var e permissions.Transition = permissions.Cast{Really: c.Really, Vote: permissions.Vote{
		By: who, Via: c.From.Via, Answer: c.Answer, Call: c.Call, Comment: c.Comment, At: now,
	}}
	if c.Default {
		e = permissions.Default{By: who, Via: c.From.Via, At: now}
	}
	change, err := d.Registry.Resolve(ctx, id, e)
	if err != nil {
		r, _ := d.store.Read(ctx, id)
		return r, permissions.Refused(err)
	}
	return change.After, nil
}

// Who knows People, and the process's account as the operator.
func (d *Desk) Who(id connectors.Identity) (string, error) {
	if id.Operator {
		return d.People[os.Getuid()], nil
	}
	if name, known := d.People[id.UID]; known {
		return name, nil
	}
	return "", permissions.NotConfigured(id.UID)
}

// Pending lists requests.
func (d *Desk) Pending(
	ctx context.Context, id connectors.Identity, after permissions.ID, limit int,
) (list []permissions.RequestView, err error) {
	who, err := d.Who(id)
	if err != nil {
		return nil, err
	}
	if id.Operator {
		who = ""
	}
	rows, err := d.store.pending(who, after, limit)
	for _, r := range rows {
		s, _ := d.View(ctx, r)
		list = append(list, s)
	}
	return list, err
}

// Show finds a request by id or code.
func (d *Desk) Show(ctx context.Context, id connectors.Identity, name string) (permissions.RequestView, error) {
	who, err := d.Who(id)
	if err != nil {
		return permissions.RequestView{}, err
	}
	ref := permissions.ID(name)
	if len(name) == permissions.CodeLength {
		if ref, err = d.store.byCode(d.coder, name); err != nil {
			return permissions.RequestView{}, err
		}
	}
	r, err := d.store.Read(ctx, ref)
	if err == nil && !id.Operator && !slices.Contains(r.Asked, who) {
		err = permissions.Unknown(name)
	}
	if err != nil {
		return permissions.RequestView{}, err
	}
	return d.View(ctx, r)
}

// Cancel withdraws for a decider.
func (d *Desk) Cancel(ctx context.Context, id connectors.Identity, name string) (permissions.RequestView, error) {
	s, err := d.Show(ctx, id, name)
	if err != nil {
		return s, err
	}
	return d.withdraw(ctx, s.Request.ID, "fay", id.Via)
}

func (d *Desk) withdraw(ctx context.Context, id permissions.ID, by, via string) (permissions.RequestView, error) {
	c, err := d.Registry.Cancel(ctx, id, by, via)
	if err != nil {
		return permissions.RequestView{}, permissions.Refused(err)
	}
	return d.View(ctx, c.After)
}

// Audit lists.
func (d *Desk) Audit(_ context.Context, id connectors.Identity, after int64, limit int) ([]permissions.Entry, error) {
	if !id.Operator {
		return nil, permissions.OperatorOnly()
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	rest := d.store.audit[min(int(after), len(d.store.audit)):]
	return slices.Clone(rest[:min(limit, len(rest))]), d.store.fail
}

// Verify returns the head, or Verified's result.
func (d *Desk) Verify(_ context.Context, id connectors.Identity) ([]permissions.Head, error) {
	if !id.Operator {
		return nil, permissions.OperatorOnly()
	}
	if d.Verified != nil {
		return nil, d.Verified()
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	if len(d.store.audit) == 0 {
		return nil, nil
	}
	first, last := d.store.audit[0], d.store.audit[len(d.store.audit)-1]
	return []permissions.Head{{Entry: last, First: first.Seq, Entries: len(d.store.audit)}}, nil
}

// Subscribe returns a feed.
func (d *Desk) Subscribe(buffer int) *registry.Feed {
	f := d.Registry.Subscribe(buffer)
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	d.feeds = append(d.feeds, f)
	return f
}

// Feeds are all feeds ever made, in order.
func (d *Desk) Feeds() []*registry.Feed {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	return slices.Clone(d.feeds)
}

// View is a row with its delivery and waiters.
func (d *Desk) View(_ context.Context, r permissions.Request) (permissions.RequestView, error) {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	if d.store.fail != nil {
		return permissions.RequestView{}, d.store.fail
	}
	return permissions.RequestView{
		Request: r, Code: d.coder.Encode(r.Number), Copies: slices.Clone(d.store.copies[r.ID]),
		Waiting: d.Registry.Waiting(r.ID),
	}, nil
}

// Question is a question for tests.
func Question(reason string) permissions.Request {
	return permissions.Request{
		Kind: permissions.KindPermission, Tags: []permissions.Tag{permissions.Network}, Reason: reason,
	}
}
