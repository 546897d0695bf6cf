package permissions

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Validate returns what is wrong with the caller's fields, and what would be right.
func (r Request) Validate() error {
	if err := r.validateTexts(); err != nil {
		return err
	}
	if len(r.Tags) > MaxTags {
		return fmt.Errorf("at most %d permissions may be asked at once, not %d", MaxTags, len(r.Tags))
	}
	if slices.Contains(r.Tags, Tag{}) {
		return fmt.Errorf("a permission is empty; name one, such as %s", Network)
	}
	if !slices.Contains([]Kind{KindPermission, KindTool, KindPause, KindClarification}, r.Kind) {
		return fmt.Errorf("unknown kind %q; use permission, tool, pause or clarification", r.Kind)
	}
	if err := r.validateForeign(); err != nil {
		return err
	}
	if r.Harmless && r.Key != "" {
		return errors.New("what is harmless has no key, since nobody is asked about it; leave one of them out")
	}
	switch r.Kind {
	case KindPermission:
		return r.validatePermission()
	case KindTool:
		return r.validateTool()
	case KindPause:
		return r.validatePause()
	}
	return r.validateClarification()
}

type text struct {
	name, text string
	most       int // characters
}

func (r Request) validateTexts() error {
	texts := []text{
		{"agent", r.Agent, MaxName}, {"session", r.Session, MaxName}, {"host", r.Host, MaxName},
		{"key", r.Key, MaxName}, {"hook", r.Hook, MaxName}, {"environment hash", r.EnvHash, MaxName}, {"folder", r.Folder, MaxName},
		{"cwd", r.Cwd, MaxTagPath}, {"affected_path", r.AffectedPath, MaxTagPath},
		{"message", r.Message, MaxMessage}, {"reason", r.Reason, MaxReason},
	}
	for _, name := range r.EnvNames {
		texts = append(texts, text{"environment name", name, MaxName})
	}
	for _, c := range r.Calls {
		texts = append(texts, text{"affected_path", c.AffectedPath, MaxTagPath})
	}
	for _, f := range texts {
		if n := utf8.RuneCountInString(f.text); n > f.most || !utf8.ValidString(f.text) {
			return fmt.Errorf("%s must be UTF-8 text of at most %d characters, and has %d", f.name, f.most, n)
		}
	}
	if len(r.Details) > MaxDetails || !utf8.ValidString(r.Details) {
		return fmt.Errorf("details must be UTF-8 text of at most %d bytes, and have %d", MaxDetails, len(r.Details))
	}
	return nil
}

// validateForeign refuses fields that mean nothing for the kind: the request would be decided without being understood.
func (r Request) validateForeign() error {
	for _, f := range []struct {
		name  string
		given bool
		kinds []Kind
	}{
		{"permissions", len(r.Tags) > 0, []Kind{KindPermission, KindTool}},
		{"a tool", r.Tool != "" || r.AffectedPath != "" || r.hasInput(), []Kind{KindTool}},
		{"calls", len(r.Calls) > 0, []Kind{KindTool}},
		{"rows of a file", len(r.Rows) > 0, []Kind{KindTool}},
		{"a hook", r.Hook != "", []Kind{KindTool, KindClarification}},
		{"a mode", r.Mode != "", []Kind{KindPause}},
		{"options", len(r.Choices) > 0, []Kind{KindClarification, KindTool}},
	} {
		if f.given && !slices.Contains(f.kinds, r.Kind) {
			return fmt.Errorf("a %s request cannot have %s; only %s can", r.Kind, f.name, join(f.kinds))
		}
	}
	return nil
}

func join(kinds []Kind) string {
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = string(k)
	}
	return strings.Join(words, " and ")
}

// hasInput reports whether an input was given; null is none.
func (r Request) hasInput() bool { return len(r.Input) > 0 && string(r.Input) != "null" }

func (r Request) validatePermission() error {
	if len(r.Tags) == 0 {
		return fmt.Errorf("a permission request names at least one permission, such as %s", Network)
	}
	if strings.TrimSpace(r.Reason) == "" {
		return fmt.Errorf("a permission request needs a reason of 1 to %d characters", MaxReason)
	}
	return nil
}

func (r Request) validateTool() error {
	step := len(r.Calls) > 0
	if (r.Tool != "") == step || (step && (r.hasInput() || r.AffectedPath != "" || len(r.Rows) > 0)) {
		return fmt.Errorf("a tool request names one tool with its input, or the calls of one step")
	}
	if len(r.Choices) > 0 && (r.Hook == "" || step) {
		return fmt.Errorf("only a hook's request about one call can have options")
	}
	if len(r.Choices) > MaxSuggestions {
		return fmt.Errorf("a hook's request has at most %d options, not %d", MaxSuggestions, len(r.Choices))
	}
	if err := r.validateChoices(); err != nil {
		return err
	}
	if len(r.Calls) > MaxCalls {
		return fmt.Errorf("a step may have at most %d calls, not %d", MaxCalls, len(r.Calls))
	}
	for i, c := range r.ToolCalls() {
		switch told := c.RowBytes(); {
		case len(c.Rows) > 1 || told > MaxRows:
			return fmt.Errorf("call %d has at most one part of its file, of at most %d bytes", i+1, MaxRows)
		case told > 0 && !utf8.ValidString(c.Rows[0].Text),
			len(c.Rows) > 0 && (min(c.Rows[0].First, c.Rows[0].After) < 0 || max(c.Rows[0].First, c.Rows[0].After) > math.MaxInt32):
			return fmt.Errorf("call %d needs UTF-8 rows of its file, and numbers of rows from 0 to %d", i+1, math.MaxInt32)
		}
		if !isToolName(c.Tool) {
			return fmt.Errorf("call %d needs a printable tool name of 1 to %d bytes, other than %s", i+1, MaxName, AllTools)
		}
		if c.N != i+1 {
			return fmt.Errorf("call %d needs the number %d, not %d", i+1, i+1, c.N)
		}
	}
	return nil
}

func isToolName(name string) bool {
	return name != "" && name != AllTools && len(name) <= MaxName && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) })
}

func (r Request) validatePause() error {
	if r.Mode != ModeContinue && r.Mode != ModeConfirm {
		return fmt.Errorf("a pause needs mode continue or confirm, not %q", r.Mode)
	}
	if strings.TrimSpace(r.Message) == "" {
		return fmt.Errorf("a pause needs a message of 1 to %d characters", MaxMessage)
	}
	return nil
}

func (r Request) validateClarification() error {
	if strings.TrimSpace(r.Message) == "" {
		return fmt.Errorf("a clarification needs a message of 1 to %d characters", MaxMessage)
	}
	if len(r.Choices) < 2 || len(r.Choices) > MaxOptions {
		return fmt.Errorf("a clarification has 2 to %d options, not %d", MaxOptions, len(r.Choices))
	}
	return r.validateChoices()
}

func (r Request) validateChoices() error {
	for i, c := range r.Choices {
		if strings.TrimSpace(c) == "" || slices.Contains(r.Choices[:i], c) ||
			utf8.RuneCountInString(c) > MaxOption || !utf8.ValidString(c) {
			return fmt.Errorf("option %d must be different from the others and have 1 to %d characters", i+1, MaxOption)
		}
	}
	return nil
}
