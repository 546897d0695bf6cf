package runtime

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

var _ agents.EventHandler = (*Runtime)(nil)

// HandleEvent implements [agents.EventHandler]: it wakes a waiting session, and silently tells the foreground agent when a
// background agent's request is shown and when it is settled.
func (rt *Runtime) HandleEvent(ctx context.Context, h permissions.Event, r permissions.Request) error {
	if h.Type == permissions.AllStopped || h.Type == permissions.AgentStopped {
		rt.mu.Lock()
		all := slices.Collect(maps.Keys(rt.working))
		rt.mu.Unlock()
		for _, id := range all { // a waiting session is woken when its request ends, and then sees the stop
			s, err := rt.store.AgentSession(ctx, id)
			if err != nil || h.IsStopOf(s.Caller()) {
				rt.giveOrder(id, permissions.OrderStop)
			}
		}
		return nil
	}
	if h.Type == permissions.RequestSettled {
		s, waiting, err := rt.store.SessionWaiting(ctx, r.ID)
		if err != nil {
			return err
		}
		if waiting {
			rt.kick(s.ID)
		} else if a, ok := rt.own[r.Caller.ProvenName()]; ok && a.Schedule != nil {
			a.due.Notify()
		}
	}
	if r.Foreground == "" {
		return nil
	}
	switch h.Type {
	case permissions.RequestShown:
		return rt.shown(ctx, r, h.At)
	case permissions.RequestSettled:
		by := ""
		if r.DecidedBy != "" {
			by = fmt.Sprintf(" (%s, %s)", r.DecidedBy, r.DecidedVia)
			if err := rt.shown(ctx, r, h.At); err != nil { // the "settled" event can arrive before "shown" was reported
				return err
			}
		}
		return rt.notifySilently(ctx, r, "settled", fmt.Sprintf(
			"What the background agent %s asked, %s, is settled%s: %s", who(r), wants(r), by, permissions.Result(r).Text))
	}
	return nil
}

// shown reports once that a request was shown.
func (rt *Runtime) shown(ctx context.Context, r permissions.Request, at time.Time) error {
	people := strings.Join(r.Asked, ", ")
	return rt.notifySilently(ctx, r, "shown", fmt.Sprintf(
		"The background agent %s asks %s for %s%s. It was shown to %s at %s. Only a person decides it: you can talk about it, "+
			"but not answer it.", who(r), people, wants(r), because(r), people, at.UTC().Format("15:04:05 UTC")))
}

// who is [permissions.Request.AgentLabel], quoted where a claimed name has more than can be seen.
func who(r permissions.Request) string {
	if quoted := strconv.Quote(r.AgentLabel()); quoted != `"`+r.AgentLabel()+`"` {
		return quoted
	}
	return r.AgentLabel()
}

func wants(r permissions.Request) string {
	switch r.Kind {
	case permissions.KindPermission:
		return permissions.DescribeTags(r.Missing())
	case permissions.KindTool:
		return "leave to run " + strings.Join(r.ToolNames(), ", ")
	case permissions.KindPause:
		return "a look: " + fmt.Sprintf("%q", short(r.Message, maxQuoted))
	}
	return "a choice: " + fmt.Sprintf("%q", short(r.Message, maxQuoted))
}

// maxQuoted is the maximum number of characters quoted from an agent.
const maxQuoted = 200

func because(r permissions.Request) string {
	if r.Reason == "" {
		return ""
	}
	return fmt.Sprintf(" (%q)", short(r.Reason, maxQuoted))
}

// notifySilently posts text to the foreground agent of a request without starting a run.
func (rt *Runtime) notifySilently(ctx context.Context, r permissions.Request, what, text string) error {
	a, ok := rt.own[r.Foreground]
	if !ok {
		return nil // it is no longer configured
	}
	s, err := rt.session(ctx, a)
	if err != nil {
		return err
	}
	err = rt.tell(ctx, s.ID, agents.Post{Key: string(r.ID) + "/" + what, Text: text, Silent: true})
	if permissions.CodeOf(err) == permissions.CodeLimit {
		rt.log.Warn("agent inbox full, event dropped", "agent", a.Name)
		return nil
	}
	return err
}
