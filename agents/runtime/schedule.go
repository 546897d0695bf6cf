package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

// Schedule says when a background agent runs by itself.
type Schedule struct {
	// Next returns the first run after a time. It is pure.
	Next func(after time.Time) time.Time
	// Needs are the permissions that a run needs. They are requested in advance, at AskAt before the run.
	Needs []permissions.Tag
	AskAt func(run time.Time) time.Time
}

// tick is the longest sleep of a timetable, because the clock may be set meanwhile.
const tick = time.Minute

// keepTimetable runs a scheduled agent at its times. A single run makes up for those missed while the daemon was down.
func (rt *Runtime) keepTimetable(ctx context.Context, a *agent) error {
	for ctx.Err() == nil {
		next, err := rt.timetable(ctx, a)
		wait := again
		if err != nil {
			rt.log.Error("run schedule", "agent", a.Name, "err", err)
		} else {
			wait = min(max(next.Sub(rt.now()), 0), tick)
		}
		select {
		case <-ctx.Done():
		case <-a.due:
		case <-time.After(wait):
		}
	}
	return nil
}

// timetable does what is due, and returns when to check again.
func (rt *Runtime) timetable(ctx context.Context, a *agent) (next time.Time, err error) {
	now := rt.stamp()
	t, ok, err := rt.store.Timetable(ctx, a.Name)
	if err != nil {
		return now, err
	}
	if !ok {
		t = agents.Timetable{Agent: a.Name, Next: a.Schedule.Next(now)}
		if err := rt.store.SetTimetable(ctx, t); err != nil {
			return now, err
		}
	}
	asks := len(a.Schedule.Needs) > 0 && t.Asked == ""
	if at := a.Schedule.AskAt(t.Next); asks && at.After(now) && at.Before(t.Next) {
		return at, nil
	}
	if asks && (a.Schedule.AskAt(t.Next).Before(t.Next) || !t.Next.After(now)) {
		if t.Asked, err = rt.requestTags(ctx, a, t); err != nil {
			return now, err
		}
		if err := rt.store.SetTimetable(ctx, t); err != nil {
			return now, err
		}
	}
	if t.Next.After(now) {
		return t.Next, nil
	}
	given, until, err := rt.approvedTags(ctx, a, t)
	if err != nil || until.After(now) {
		return until, err
	}
	if err := rt.start(ctx, a, t, given); err != nil {
		return now, err
	}
	t = agents.Timetable{Agent: a.Name, Next: a.Schedule.Next(now)}
	return t.Next, rt.store.SetTimetable(ctx, t)
}

// none marks a run for which nobody could be asked.
const none permissions.ID = "-"

func runKey(t agents.Timetable) string { return t.Agent + "/" + t.Next.UTC().Format(time.RFC3339) }

func (rt *Runtime) requestTags(ctx context.Context, a *agent, t agents.Timetable) (permissions.ID, error) {
	q, err := rt.approvals.Submit(ctx, permissions.AgentCaller(a.Name), permissions.Request{
		Kind: permissions.KindPermission, Agent: a.Name, Tags: a.Schedule.Needs, Background: true, Foreground: rt.foreground(a),
		Reason:        "My run at " + t.Next.UTC().Format("2006-01-02 15:04 MST") + " will need this: " + short(a.Prompt, maxQuoted),
		WantedTimeout: max(t.Next.Sub(rt.now()).Truncate(time.Second), 0), Widest: permissions.Once,
		Key: runKey(t),
	})
	if r := permissions.AsRefusal(err); r != nil && r.Code != permissions.CodeBroken {
		rt.log.Warn("request permissions for a scheduled run", "agent", a.Name, "code", r.Code)
		return none, nil
	}
	return q.ID, err
}

// start runs a scheduled agent in a session of its own, with the permissions that were allowed for this run.
func (rt *Runtime) start(ctx context.Context, a *agent, t agents.Timetable, given []permissions.Tag) error {
	key := "run/" + t.Next.UTC().Format(time.RFC3339)
	last, ok, err := rt.store.CurrentSession(ctx, a.Name)
	switch {
	case err != nil:
		return err
	case ok && !last.CreatedAt.Before(t.Next): // started by a daemon that was killed before it stored that
		return rt.tell(ctx, last.ID, agents.Post{Key: key, Text: a.Prompt})
	case ok: // the session of the previous run, whose time is over
		select {
		case <-rt.giveOrder(last.ID, permissions.OrderQuit):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s, err := rt.begin(ctx, a, permissions.AgentSession{}, Run{Given: given})
	if err != nil {
		return err
	}
	return rt.tell(ctx, s.ID, agents.Post{Key: key, Text: a.Prompt})
}

// approvedTags returns the permissions allowed for a run. If the request is still pending, it returns until when to wait.
func (rt *Runtime) approvedTags(
	ctx context.Context, a *agent, t agents.Timetable,
) (given []permissions.Tag, until time.Time, err error) {
	if t.Asked == "" || t.Asked == none {
		return nil, until, nil
	}
	caller := permissions.AgentCaller(a.Name)
	q, err := rt.approvals.Read(ctx, caller, t.Asked)
	if err != nil {
		return nil, until, nonFatal(err)
	}
	switch {
	case q.Key != runKey(t): // it is for another run
	case q.State == permissions.Pending:
		return nil, q.Deadline.Add(time.Second), nil
	case q.State == permissions.Approved && (q.UsedAt.IsZero() || a.taken == q.ID): // else a run had it, whatever the row says
		a.taken = q.ID
		used, err := rt.approvals.Use(ctx, caller, q.ID, q.Key)
		if err != nil {
			return nil, until, nonFatal(err)
		}
		return used.Missing(), until, nil
	}
	return nil, until, nil
}

// nonFatal returns nil for errors that a retry would not fix; then nothing counts as allowed.
func nonFatal(err error) error {
	if r := permissions.AsRefusal(err); r != nil && r.Code != permissions.CodeBroken || errors.Is(err, permissions.ErrRow) {
		return nil
	}
	return err
}
