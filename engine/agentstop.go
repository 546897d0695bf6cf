package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/directory"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

// StopAgent denies what an agent waits for and refuses what it asks until ResumeAgent, with all that it starts; grants and unused
// approvals do not count meanwhile. name is the id or code of a request that the identity may see, or the agent's. Like a lock it
// holds even if it cannot be stored. It returns how many requests ended. Everybody whom the agent may ask may stop it.
func (k *locks) StopAgent(ctx context.Context, id connectors.Identity, name string) (l permissions.Lock, ended int, err error) {
	caller, who, err := k.agentOf(ctx, id, name)
	if err != nil {
		return l, 0, err
	}
	k.locking.Lock()
	defer k.locking.Unlock()
	all := k.StoppedAgents()
	i := slices.IndexFunc(all, func(l permissions.Lock) bool { return l.Person == permissions.StopOf(caller) })
	if i >= 0 {
		l = all[i]
	}
	if i < 0 || who == directory.OperatorName { // whose stop replaces a person's, who then cannot end it
		l = permissions.Lock{
			Person: permissions.StopOf(caller), Accounts: []string{who}, At: k.clock.Stamp(), By: who, Via: id.Via,
		}
		entry := l.Record(permissions.AgentStopped, who, id.Via, l.At)
		l.Unsaved = &entry
		k.deciding.Lock() // decisions in progress are ordered before the stop
		k.SetLock(l, true)
		k.deciding.Unlock()
		k.log.Warn("agent stopped", "agent", caller, "by", who, "via", id.Via)
	}
	k.endTrust(ctx, permissions.Caller{Name: caller})
	k.forget(func(of decisionKey) bool { return permissions.Caller{Name: of.caller}.Root() == caller })
	noting, done := shared.Noting(ctx)
	defer done()
	k.EndRuns(noting, l.Record(permissions.AgentStopped, who, id.Via, l.At))
	saving := k.saveLocks(noting)
	if saving != nil {
		k.log.Error("save stop of an agent: retrying", "agent", caller, "err", saving)
		saving = permissions.AgentUnsaved(l, saving.Error())
	} else {
		l.Unsaved = nil
	}
	whole := context.WithoutCancel(ctx)
	err = k.EveryPending(whole, func(r permissions.Request) error {
		if r.Caller.Root() != caller {
			return nil
		}
		var with permissions.Transition = permissions.Withdraw{By: who, Via: id.Via, At: k.clock.Stamp()}
		if slices.Contains(r.Asked, who) && r.Offers(permissions.Deny) {
			with = permissions.Cast{Vote: permissions.Vote{
				By: who, Via: id.Via, Answer: permissions.Deny, At: k.clock.Stamp(), Account: k.Settings().AccountOf(id),
			}}
		}
		_, err := k.registry.Resolve(whole, r.ID, with)
		switch {
		case err == nil:
			ended++
		case !errors.Is(err, permissions.ErrSettled) && !errors.Is(err, permissions.ErrLate):
			return err
		}
		return nil
	})
	return l, ended, cmp.Or(saving, shared.Broken(err))
}

// ResumeAgent ends a stop of an agent, and what mutes it. It is for the operator and for whoever stopped it, or was asked when it was
// muted, but not from an account that the agent asks from. It returns the last of what ended.
func (k *locks) ResumeAgent(ctx context.Context, id connectors.Identity, name string) (l permissions.Lock, err error) {
	who, err := k.Who(id)
	if err != nil {
		return l, err
	}
	k.locking.Lock()
	defer k.locking.Unlock()
	all := slices.DeleteFunc(k.StoppedAgents(), func(l permissions.Lock) bool { return l.Agent() != name && l.AgentName() != name })
	if len(all) == 0 {
		return l, permissions.AgentNotStopped(name)
	}
	for _, l = range all {
		if !id.Operator && !slices.Contains(l.Accounts, who) {
			return l, permissions.NotYours()
		}
		if err := k.RefuseAskingAccount(ctx, id, l.Agent()); err != nil {
			return l, err
		}
	}
	noting, done := shared.Noting(ctx)
	defer done()
	for _, l = range all {
		l.Unsaved = nil
		if err := k.store.PutLock(noting, l, l.Record(permissions.AgentResumed, who, id.Via, k.clock.Stamp())); err != nil {
			return l, shared.Broken(err)
		}
		k.SetLock(l, false)
		k.log.Warn("agent resumed", "agent", l.Agent(), "by", who, "via", id.Via)
	}
	return l, nil
}

// agentOf returns the agent that a name denotes for an identity, see StopAgent, and the identity's person.
func (e *services) agentOf(ctx context.Context, id connectors.Identity, name string) (caller, who string, err error) {
	sees, err := e.MaySeeRequestsOf(id)
	if err != nil {
		return "", "", err
	}
	r, who, err := e.FindVisible(ctx, id, name)
	switch {
	case err == nil:
		return r.Caller.Root(), who, nil
	case permissions.CodeOf(err) != permissions.CodeUnknown:
		return "", "", err
	}
	if who, err = e.Who(id); err != nil {
		return "", "", err
	}
	caller, err = e.AgentNamed(ctx, name, sees)
	if permissions.CodeOf(err) == permissions.CodeUnknown { // another daemon may run it, and this one's configuration does not have it
		agent := strings.TrimPrefix(name, "agent:")
		if runs, unread := e.IsOpen(ctx, sees, agent); unread != nil {
			err = shared.Unread(unread)
		} else if runs {
			caller, err = permissions.AgentCaller(agent).Root(), nil
		}
	}
	return caller, who, err
}
