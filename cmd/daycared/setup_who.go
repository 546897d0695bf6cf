package main

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/daycared/daycared/cmd/daycared/config"
)

// who is the first act: who answers, and in which time zone.
func (s *steps) who(ctx context.Context) error {
	s.act("Who answers")
	account := ""
	if me, err := user.LookupId(strconv.Itoa(s.cli.UID)); err == nil {
		account = me.Username
	}
	usual := account
	if i := slices.IndexFunc(s.cfg.People, func(p config.Person) bool { return p.User == account }); i >= 0 {
		usual = s.cfg.People[i].Name
	} else if len(s.cfg.People) > 0 {
		usual = s.cfg.People[0].Name
	}
	s.talk.say("  A name for whoever is asked. It is shown on cards and typed in commands.")
	var err error
	for s.name == "" {
		if s.name, err = s.talk.ask(ctx, "  name", usual); err != nil {
			return err
		}
		if wrong := config.CheckName(s.name); wrong != nil {
			s.talk.say("  %s", wrong)
			s.name = ""
		}
	}
	isNew := s.draft.Person(s.name, "name") == ""
	if !isNew {
		s.kept("%s stands in %s", s.name, s.short(s.file))
	}
	if err := s.zone(ctx); err != nil {
		return err
	}
	taken := slices.ContainsFunc(s.cfg.People, func(p config.Person) bool { return p.User == account })
	if isNew && account != "" && !taken {
		s.draft.SetPerson(s.name, "user", account, "this account is "+s.name+"'s: daycared inbox answers here, too")
	}
	return s.route()
}

// zone asks for the time zone.
func (s *steps) zone(ctx context.Context) error {
	if zone := s.draft.Person(s.name, "timezone"); zone != "" {
		s.kept("deadlines are told in the time of %s", zone)
		return nil
	}
	for {
		zone, err := s.talk.ask(ctx, "  time zone", machineZone(s.cli.env("TZ")))
		if err != nil {
			return err
		}
		if !config.IsZone(zone) {
			s.talk.say("  There is no time zone %q; they are called as in Europe/Berlin.", zone)
			continue
		}
		s.draft.SetPerson(s.name, "timezone", zone, "deadlines are told in it")
		return nil
	}
}

// route has whoever answers asked, if no route does.
func (s *steps) route() error {
	asked := func(r config.Route) bool {
		return slices.Contains(r.Ask, s.name) || slices.Contains(r.Escalate.To, s.name)
	}
	switch {
	case slices.ContainsFunc(s.cfg.Routes, asked):
		s.kept("a route asks %s", s.name)
	case len(s.cfg.Routes) == 0:
		s.draft.Ask(s.name, "everything is put to "+s.name)
	default:
		s.draft.Ask(s.name, "what no route before it matches is put to "+s.name)
	}
	if _, err := s.draft.Check(s.cli.Environ); err != nil {
		return fmt.Errorf("the configuration would not be right: %w", err)
	}
	return nil
}

// machineZone is the name of the machine's time zone, UTC where it cannot be found.
func machineZone(variable string) string {
	if zone := strings.TrimPrefix(variable, ":"); config.IsZone(zone) {
		return zone
	}
	if target, err := filepath.EvalSymlinks("/etc/localtime"); err == nil {
		if _, zone, is := strings.Cut(target, "zoneinfo/"); is && config.IsZone(zone) {
			return zone
		}
	}
	if text, err := os.ReadFile("/etc/timezone"); err == nil && config.IsZone(strings.TrimSpace(string(text))) {
		return strings.TrimSpace(string(text))
	}
	return "UTC"
}
