package main

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/telegram"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// settings is what a configuration means to the engine on this machine: accounts become uids, and the daemon's own
// files are named.
func settings(cfg *config.Config, paths config.Paths, uid int) (engine.Settings, error) {
	if len(cfg.Faults) > 0 {
		return engine.Settings{}, cfg.Faults
	}
	s := engine.Settings{
		UID: uid,
		Approvals: engine.Approvals{
			Timeout: cfg.Approvals.Timeout, MaxTimeout: cfg.Approvals.MaxTimeout,
			ClarificationTimeout: cfg.Approvals.ClarificationTimeout, DeliverWithin: cfg.Approvals.DeliverWithin,
			RedeemWindow: cfg.Approvals.RedeemWindow, Scopes: cfg.Approvals.Scopes,
		},
		Keep: permissions.Keep{Requests: cfg.Keep.Requests, Payloads: cfg.Keep.Payloads, Audit: cfg.Keep.Audit},
		Policy: permissions.Policy{
			Auto: cfg.Tools.Auto, Gated: cfg.Tools.Gated, Forbidden: cfg.Tools.Forbidden,
			HighRiskTools: cfg.HighRisk.Tools, HighRiskTags: cfg.HighRisk.Tags,
		},
		Limits: engine.Limits{
			PendingPerCaller: cfg.Limits.PendingPerCaller, PromptsPerMinute: cfg.Limits.PromptsPerMinute,
			PendingTotal: cfg.Limits.PendingTotal,
		},
		AllowSameUser: cfg.API.AllowSameUser,
		Editor:        cfg.Connectors.Editor.Enabled,
		Own:           ownFiles(cfg, paths),
	}
	if err := agentFolders(cfg, s.Own); err != nil {
		return s, err
	}
	for _, when := range cfg.Approvals.Remind {
		s.Approvals.Remind = append(s.Approvals.Remind, engine.Moment(when))
	}
	for key, group := range map[string]string{"api.agent_group": cfg.API.AgentGroup, "api.admin_group": cfg.API.AdminGroup} {
		if _, err := strconv.Atoi(group); group == "" || err == nil {
			continue
		}
		if _, err := user.LookupGroup(group); err != nil {
			return s, config.Problems{cfg.Problem(key, config.UnknownGroup, key, group)}
		}
	}
	var err error
	if s.People, err = people(cfg); err != nil {
		return s, err
	}
	for _, r := range cfg.Routes {
		route := engine.Route{
			Agents: r.Agents, Tags: r.Tags, Tools: r.Tools, Kinds: r.Kinds, Ask: r.Ask, Quorum: r.Quorum, Timeout: r.Timeout,
		}
		if r.Chat != 0 {
			route.Place = telegram.Place(r.Chat, int64(r.Thread))
		}
		route.Escalate.Moment, route.Escalate.To = engine.Moment(r.Escalate.After), r.Escalate.To
		s.Routes = append(s.Routes, route)
	}
	ruleAgents(cfg, &s)
	return s, nil
}

// people are those of the configuration, with the uids of their accounts.
func people(cfg *config.Config) ([]connectors.Person, error) {
	var all []connectors.Person
	for i, p := range cfg.People {
		account := permissions.NoUID
		if p.User != "" {
			known, err := user.Lookup(p.User)
			if err != nil {
				return nil, config.Problems{cfg.Problem(fmt.Sprintf("people.%d.user", i), config.UnknownUser, p.User)}
			}
			if account, err = strconv.Atoi(known.Uid); err != nil {
				return nil, fmt.Errorf("look up the account %q: %w", p.User, err)
			}
		}
		all = append(all, connectors.Person{
			Name: p.Name, User: p.User, UID: account, Telegram: p.Telegram, WhatsApp: p.WhatsApp, Location: p.Location,
			Quiet: p.Quiet, Via: p.Via, PhoneAfter: p.PhoneAfter,
		})
	}
	return all, nil
}

// ownFiles are the daemon's data, configuration, secrets, sockets and binary, by their names and by what these resolve to.
func ownFiles(cfg *config.Config, paths config.Paths) []string {
	own := []string{
		paths.DataDir, paths.AgentSocket, paths.AdminSocket, paths.AdminKey, paths.Credentials, cfg.Connectors.Telegram.TokenFile,
	}
	for _, a := range cfg.Agents {
		own = append(own, a.Model.APIKeyFile)
	}
	own = slices.DeleteFunc(own, func(p string) bool { return p == "" })
	if cfg.File != "" {
		own = append(own, cfg.File)
	}
	if binary, err := os.Executable(); err == nil {
		own = append(own, binary)
	}
	for _, p := range slices.Clone(own) {
		if abs, err := filepath.Abs(p); err == nil {
			own = append(own, abs)
		}
		if resolved, err := filepath.EvalSymlinks(p); err == nil {
			own = append(own, resolved)
		}
	}
	own = slices.DeleteFunc(own, func(p string) bool { return !filepath.IsAbs(p) })
	slices.Sort(own)
	return slices.Compact(own)
}
