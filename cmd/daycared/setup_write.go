package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/permissions"
)

// write is the fourth act: every change with its reason, a yes, and the files. The token comes first, and then the
// configuration that names it; each is there whole or not at all.
func (s *steps) write(ctx context.Context) error {
	s.act("The configuration")
	edits := s.draft.Edits()
	slices.SortStableFunc(edits, func(a, b config.Edit) int { return cmp.Compare(sectionOf(a), sectionOf(b)) })
	if len(edits) == 0 && !s.newToken {
		s.kept("everything stands in %s already; nothing is written", s.short(s.file))
		return nil
	}
	if s.running {
		return s.inTheWay()
	}
	if _, err := s.draft.Check(s.cli.Environ); err != nil {
		return fmt.Errorf("the configuration would not be right: %w", err)
	}
	if len(edits) > 0 {
		s.talk.say("  %s:", s.short(s.file))
	}
	for _, e := range edits {
		was := ""
		if e.Was != "" {
			was = " (was " + e.Was + ")"
		}
		s.talk.say("    %s: %s%s\n        %s", e.Key, e.Value, was, e.Why)
	}
	if s.newToken {
		s.talk.say("  %s, which this account alone may read:\n    the token", s.short(s.tokenFile))
	}
	question, usual := "Write it?", true
	if s.draft.Exists() {
		question, usual = "Change the file? A copy of it as it is now stays beside it.", false
	}
	yes, err := s.talk.yes(ctx, question, usual)
	if err != nil {
		return err
	}
	if !yes {
		s.talk.say("Nothing was written.")
		return exitCode(permissions.ExitNo)
	}
	return s.save()
}

// sectionOf is where in the file an edit stands: people, routes, the rest.
func sectionOf(e config.Edit) int {
	return slices.IndexFunc([]string{"people", "routes", ""}, func(name string) bool { return strings.HasPrefix(e.Key, name) })
}

func (s *steps) save() error {
	text, err := s.draft.Text()
	if err != nil {
		return err
	}
	for _, file := range []string{s.file, s.tokenFile} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return fmt.Errorf("make the folder of %s: %w", file, cause(err))
		}
	}
	mode := os.FileMode(0o600)
	if s.draft.Exists() && len(s.draft.Edits()) > 0 {
		info, err := os.Stat(s.file)
		if err != nil {
			return fmt.Errorf("look at the configuration: %w", err)
		}
		mode = info.Mode().Perm()
		old, err := os.ReadFile(s.file)
		if err != nil {
			return fmt.Errorf("read the configuration: %w", err)
		}
		backup := s.file + "." + time.Now().Format("20060102-150405") + ".bak"
		if err := writeWhole(backup, old, mode); err != nil {
			return err
		}
		s.talk.say("  the file as it was: %s", s.short(backup))
	}
	if s.newToken {
		if err := writeWhole(s.tokenFile, []byte(string(s.token)+"\n"), 0o600); err != nil {
			return err
		}
	}
	if len(s.draft.Edits()) > 0 {
		if err := writeWhole(s.file, text, mode); err != nil {
			return err
		}
	}
	s.written = true
	s.talk.say("  written.")
	return nil
}
