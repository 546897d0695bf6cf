package connect

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// The lines between which our part of a TOML file stands.
const (
	blockBegin = "# daycared: begin; daycared connect writes this, and takes it out with --remove"
	blockEnd   = "# daycared: end"
)

var errBlock = errors.New("our part of it begins and does not end; take it out by hand")

// codexBlock is our part of Codex's configuration. Tables may stand anywhere in it, so ours stand at its end.
func (p Place) codexBlock() string {
	args := append(slices.Clone(p.Command[1:]), "mcp")
	for i, a := range args {
		args[i] = strconv.Quote(a)
	}
	seconds := int(waits.Seconds())
	return strings.Join([]string{
		blockBegin,
		"[mcp_servers.daycared]",
		"command = " + strconv.Quote(p.Command[0]),
		"args = [" + strings.Join(args, ", ") + "]",
		fmt.Sprintf("tool_timeout_sec = %d", seconds),
		"",
		"[[hooks.PreToolUse]]",
		`matcher = ".*"`,
		"",
		"[[hooks.PreToolUse.hooks]]",
		`type = "command"`,
		"command = " + strconv.Quote(p.hook("codex")),
		fmt.Sprintf("timeout = %d", seconds),
		blockEnd,
		"",
	}, "\n")
}

// installBlock puts the block at the end of a file. What would not be TOML any more is not written.
func installBlock(text, block string) (string, error) {
	if strings.Contains(text, block) {
		return text, nil
	}
	rest, err := removeBlock(text)
	if err != nil {
		return "", err
	}
	if err := readsAsTOML(rest); err != nil {
		return "", err
	}
	if rest != "" {
		rest = strings.TrimRight(rest, "\n") + "\n\n"
	}
	if err := readsAsTOML(rest + block); err != nil {
		return "", fmt.Errorf("it has something of the same name already, beside which ours cannot stand: %w", err)
	}
	return rest + block, nil
}

func readsAsTOML(text string) error {
	var tables map[string]any
	return toml.Unmarshal([]byte(text), &tables)
}

// removeBlock takes the block out, and the empty line before it.
func removeBlock(text string) (string, error) {
	before, after, found := strings.Cut(text, blockBegin)
	if !found {
		return text, nil
	}
	_, after, found = strings.Cut(after, blockEnd)
	if !found {
		return "", errBlock
	}
	before, after = strings.TrimRight(before, "\n"), strings.TrimLeft(after, "\n")
	switch {
	case before == "":
		return after, nil
	case after == "":
		return before + "\n", nil
	}
	return before + "\n\n" + after, nil
}
