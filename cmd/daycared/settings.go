package main

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daycared/daycared/agents/hooks"
	"github.com/daycared/daycared/agents/mcp"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/telegram"
	"github.com/daycared/daycared/connectors/whatsapp"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/rules"
)

// usualRate is how many calls a minute an entry of tools.auto lets run where limits.auto_per_minute has none for the tool.
const usualRate = 600

// settings converts a configuration to the engine's settings: it resolves accounts to uids here, and adds the daemon's own files.
func settings(cfg *config.Config, paths config.Paths, uid int) (engine.Settings, error) {
	if len(cfg.Faults) > 0 {
		return engine.Settings{}, cfg.Faults
	}
	var err error
	s := engine.Settings{
		UID: uid,
		Approvals: engine.Approvals{
			Timeout: cfg.Approvals.Timeout, MaxTimeout: cfg.Approvals.MaxTimeout,
			ClarificationTimeout: cfg.Approvals.ClarificationTimeout, DeliverWithin: cfg.Approvals.DeliverWithin,
			RedeemWindow: cfg.Approvals.RedeemWindow, Scopes: cfg.Approvals.Scopes, AskRefused: cfg.Approvals.AskRefused,
			Unhurried: cfg.Approvals.ReadFirst,
		},
		Keep:          permissions.Keep(cfg.Keep),
		Policy:        policy(cfg),
		Limits:        engine.Limits(cfg.Limits),
		AllowSameUser: cfg.API.AllowSameUser,
		TrustedLinks:  wire.Map(cfg.API.TrustedTokens, callerOf),
		Editor:        cfg.Connectors.Editor.Enabled,
		Own:           ownFiles(cfg, paths),
		Asking:        hooks.AskingTools(mcp.ToolNames()),
	}
	if s.Rules, err = ruleSet(cfg, s.Own); err != nil {
		return s, err
	}
	s.Limits.AutoPerMinute = map[string]int{"*": usualRate}
	maps.Copy(s.Limits.AutoPerMinute, cfg.Limits.AutoPerMinute)
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
	if s.People, err = people(cfg, user.Lookup); err != nil {
		return s, err
	}
	s.OnlyTitles = map[string]bool{
		telegram.Name: cfg.Connectors.Telegram.OnlyTitle, whatsapp.Name: cfg.Connectors.WhatsApp.OnlyTitle,
	}
	for _, r := range cfg.Routes {
		route := engine.Route{
			Agents: r.Agents, Tags: r.Tags, Tools: r.Tools, Kinds: r.Kinds, Ask: r.Ask, Quorum: r.Quorum, Timeout: r.Timeout,
			NoKeyboard: r.NoKeyboard, OnlyTitle: r.OnlyTitle,
		}
		if r.Chat != 0 {
			route.Group = telegram.Place(r.Chat, int64(r.Thread))
		}
		route.Escalate.Moment, route.Escalate.To = engine.Moment(r.Escalate.After), r.Escalate.To
		s.Routes = append(s.Routes, route)
	}
	addAgentSettings(cfg, &s)
	return s, nil
}

// policy converts the configured lists of tools and what is high risk.
func policy(cfg *config.Config) permissions.Policy {
	return permissions.Policy{
		Auto: cfg.Tools.Auto, OwnAuto: cfg.DefaultAuto(), Gated: cfg.Tools.Gated, Forbidden: cfg.Tools.Forbidden,
		Sandboxed:     cfg.Sandboxed && cfg.Sandbox,
		HighRiskTools: cfg.HighRisk.Tools, HighRiskTags: cfg.HighRisk.Tags,
		HighRiskEffects: cfg.HighRisk.Kinds, HighRiskPatterns: cfg.HighRisk.Patterns, NoHighRisk: !cfg.HighRisk.Enabled,
		Ordinary: permissions.Ordinary{
			Tools: cfg.HighRisk.Except.Tools, Effects: cfg.HighRisk.Except.Kinds, Patterns: cfg.HighRisk.Except.Patterns,
		},
	}
}

// ruleSet compiles the rules. None may allow access to the daemon's own files.
func ruleSet(cfg *config.Config, own []string) (*rules.Set, error) {
	set, found := rules.Compile(cfg.PermissionRules())
	if err := rules.FirstError(found); err != nil {
		return nil, err // Load has refused it
	}
	for _, file := range own {
		if rule, text := set.Reaches(file); rule > 0 {
			return nil, config.Problems{cfg.Problem(fmt.Sprintf("rules.%d.allow", rule-1),
				"rules.allow: %q covers or lies in daycared's own %s, which no rule allows; name another folder", text, file)}
		}
	}
	return set, nil
}

// people converts the configured people; lookup resolves their accounts to uids.
func people(cfg *config.Config, lookup func(name string) (*user.User, error)) ([]connectors.Person, error) {
	var all []connectors.Person
	for i, p := range cfg.People {
		account := permissions.NoUID
		if p.User != "" {
			known, err := lookup(p.User)
			if err != nil {
				return nil, config.Problems{cfg.Problem(fmt.Sprintf("people.%d.user", i), config.UnknownUser, p.User)}
			}
			if account, err = strconv.Atoi(known.Uid); err != nil {
				return nil, fmt.Errorf("look up the account %q: %w", p.User, err)
			}
		}
		if at := slices.IndexFunc(all, func(o connectors.Person) bool { return o.UID == account }); at >= 0 && p.User != "" {
			return nil, config.Problems{cfg.Problem(fmt.Sprintf("people.%d.user", i), "people.user: %s and %s are two names of one "+
				"account (uid %d), which is that of %s; no two people may share it", p.User, all[at].User, account, all[at].Name)}
		}
		all = append(all, connectors.Person{
			Name: p.Name, User: p.User, UID: account, Addresses: p.Addresses, Location: p.Location, Language: p.Language,
			Quiet: p.Quiet, Via: p.Via, PhoneAfter: p.PhoneAfter,
		})
	}
	return all, nil
}

// ownFiles lists the daemon's data, sockets, binary, configuration and every file that it names, as named and with links resolved.
func ownFiles(cfg *config.Config, paths config.Paths) []string {
	files := []string{
		paths.DataDir, paths.AgentSocket, paths.AdminSocket, paths.AdminKey, paths.AuditKey, cfg.Audit.KeyFile, paths.Credentials,
		cfg.API.TLSKeyFile, cfg.API.TLSCertFile, cfg.Connectors.Telegram.TokenFile,
	}
	if filepath.IsAbs(cfg.Audit.Heads.To) {
		files = append(files, cfg.Audit.Heads.To)
	}
	for _, a := range cfg.Agents { // whoever can write an agent's instructions or script controls the agent
		files = append(files, a.Model.APIKeyFile, a.Model.File, a.InstructionsFile)
	}
	files = slices.DeleteFunc(files, func(p string) bool { return p == "" })
	if cfg.File != "" {
		files = append(files, cfg.File)
	}
	if binary, err := os.Executable(); err == nil {
		files = append(files, binary)
	}
	for _, p := range slices.Clone(files) {
		if abs, err := filepath.Abs(p); err == nil {
			files = append(files, abs)
		}
		if resolved, err := own.LookUp(p, func() (string, error) { return filepath.EvalSymlinks(p) }); err == nil {
			files = append(files, resolved)
		}
	}
	files = slices.DeleteFunc(files, func(p string) bool { return !filepath.IsAbs(p) })
	slices.Sort(files)
	return slices.Compact(files)
}

// botToken matches the tokens of BotFather.
var botToken = regexp.MustCompile(`^[0-9]{1,20}:[A-Za-z0-9_-]{20,100}$`)

// telegramConnector builds the Telegram connector; nil if it is disabled.
func (c *CLI) telegramConnector(cfg *config.Config, in connectors.Services, log *slog.Logger) (*telegram.Connector, error) {
	if !cfg.Connectors.Telegram.Enabled {
		return nil, nil
	}
	token, err := c.telegramToken(cfg.Connectors.Telegram.TokenFile)
	if err != nil {
		return nil, err
	}
	return newBot(token, cfg.Connectors.Telegram.APIURL, in, log.With("connector", telegram.Name)), nil
}

// notToken says why a text is not a bot token, without revealing it.
func notToken(text string) string {
	number, secret, _ := strings.Cut(text, ":")
	_, err := strconv.ParseUint(number, 10, 64)
	switch {
	case err != nil || number == text:
		return "BotFather's begins with digits and a colon"
	case len(secret) < 20:
		return fmt.Sprintf("what follows the colon is too short: it has %s, and BotFather's has 35",
			count(len(secret), "character", "characters"))
	}
	return "what follows the colon is 35 letters, digits, - and _"
}

func newBot(token telegram.Token, address string, in connectors.Services, log *slog.Logger) *telegram.Connector {
	host, _ := os.Hostname() // empty: people read "here"
	return telegram.New(telegram.Options{Token: token, APIURL: address, Host: host, Now: time.Now, Log: log}, in)
}

// telegramToken reads the bot's token from its file, or from the service's credentials. Errors do not reveal it.
func (c *CLI) telegramToken(file string) (telegram.Token, error) {
	const key = "connectors.telegram.token_file: "
	if folder := c.env("CREDENTIALS_DIRECTORY"); file == "" && folder != "" {
		file = filepath.Join(folder, "telegram.token")
	}
	if file == "" {
		return "", errors.New(key + "it is empty, and there is no credential telegram.token; " +
			"put the token that BotFather gave you into a file of mode 0600 and name it there")
	}
	token, err := readSecret(file, "the token that BotFather gave you")
	switch {
	case err != nil:
		return "", fmt.Errorf("%s%w", key, err)
	case !botToken.MatchString(token):
		return "", fmt.Errorf("%swhat %s holds is no bot token: %s", key, file, notToken(token))
	}
	return telegram.Token(token), nil
}

// whatsappName is the file of the linked account in the data directory.
const whatsappName = "whatsapp.db"

// whatsappHTTP returns the HTTP client for WhatsApp; nil is the default one. Test builds replace it.
var whatsappHTTP = func() *http.Client { return nil }

// whatsappConnector builds the WhatsApp connector; nil if it is disabled.
func whatsappConnector(
	cfg *config.Config, paths config.Paths, in connectors.Services, shared whatsapp.Shared, log *slog.Logger,
) *whatsapp.Connector {
	on := cfg.Connectors.WhatsApp
	if !on.Enabled {
		return nil
	}
	host, _ := os.Hostname() // empty: people read "here"
	client := whatsappHTTP()
	c := whatsapp.New(whatsapp.Options{
		Path: filepath.Join(paths.DataDir, whatsappName), Shared: shared, Number: on.Phone, AutoVersion: on.AutoVersion, Host: host,
		HTTP: client, Now: time.Now, Log: log.With("connector", whatsapp.Name),
	}, in)
	if client != nil {
		c.Unpace()
	}
	return c
}

// sharedAccount is the place of the WhatsApp account in the database of the store; nil if that is a file.
func sharedAccount(rows *store.Store) whatsapp.Shared {
	if rows.Pool() == nil {
		return nil
	}
	return rows.OpenAccount
}

// callerOf is the name of the caller with a token of that name.
func callerOf(token string) string {
	return permissions.Token{Name: token}.Caller(permissions.NoUID).Name
}
