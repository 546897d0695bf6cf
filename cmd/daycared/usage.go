package main

import (
	"bufio"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/daycared/daycared/agents/hooks"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/cmd/daycared/connect"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// knownCommand rejects an unknown command, and suggests the most similar one.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return usage("there is no command %q; %s", args[0], suggestSimilar(args[0], names, "see: "+cmd.CommandPath()+" --help"))
}

// suggestSimilar suggests the known word most similar to an unknown one, otherwise returns the given text.
func suggestSimilar(word string, known []string, otherwise string) string {
	if near := permissions.Nearest(word, known); near != "" {
		return "did you mean " + near + "?"
	}
	return otherwise
}

// helpTexts has a section for each command: its path, what it does in a row, what it does in full (if that is more), and examples.
//
//go:embed help.txt
var helpTexts string

func setHelp(root *cobra.Command) {
	text := strings.NewReplacer(
		"{scopes}\n", scopeHelp(), "{dialects}", strings.Join(hooks.Names(), ", "), "{agents}", strings.Join(connect.Names(), ", "),
		"{movers}", strings.Join(connect.Movers(), ", "),
	).Replace(helpTexts)
	texts := map[string][]string{}
	for section := range strings.SplitSeq(strings.TrimPrefix(text, "== "), "\n== ") {
		parts := strings.Split(strings.TrimRight(section, "\n"), "\n\n")
		texts[parts[0]] = parts[1:]
	}
	for _, cmd := range append(slices.Collect(commandsBelow(root)), root) {
		parts := texts[cmd.CommandPath()] // without any this panics, since every command has some
		cmd.Short = parts[0]
		for _, part := range parts[1:] {
			if strings.HasPrefix(part, " ") {
				cmd.Example = part
			} else {
				cmd.Long = part
			}
		}
	}
}

// helpCommand is cobra's, except that an unknown command is wrong usage.
func helpCommand() *cobra.Command {
	return newCommand("help [COMMAND]", nil, func(cmd *cobra.Command, args []string) error {
		about, rest, err := cmd.Root().Find(args)
		if err == nil && len(rest) > 0 && about.HasSubCommands() {
			err = knownCommand(about, rest)
		}
		if err != nil {
			return err
		}
		about.InitDefaultHelpFlag()
		return about.Help()
	})
}

// theRequest describes the argument of most commands for people.
const theRequest = "the id or the code of a request"

// arguments rejects a wrong number of arguments as wrong usage. what describes the arguments; empty: the usage line does.
func arguments(check cobra.PositionalArgs, what ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) == nil {
			return nil
		}
		if cmd.HasSubCommands() {
			return knownCommand(cmd, args)
		}
		_, rest, _ := strings.Cut(cmd.Use, " ")
		named, _, _ := strings.Cut(rest, " --")
		takes := cmp.Or(strings.Join(what, " "), named, "no arguments")
		given := fmt.Sprintf("%d words were given", len(args))
		switch len(args) {
		case 0:
			given = "nothing was given"
		case 1:
			given = fmt.Sprintf("%q was given", args[0])
		}
		return usage("%s takes %s, and %s; see: %s --help", cmd.Name(), takes, given, cmd.CommandPath())
	}
}

// wrongFlag says what is wrong with a flag, and what would be right.
func wrongFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var empty *pflag.ValueRequiredError
	var wrong *pflag.InvalidValueError
	see := "see: " + cmd.CommandPath() + " --help"
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return usage("there is no flag -%s; %s", unknown.GetSpecifiedName(), see)
	case errors.As(err, &unknown) && unused(unknown.GetSpecifiedName()) != "":
		return usage("%s has no use for --%s: %s", cmd.CommandPath(), unknown.GetSpecifiedName(), unused(unknown.GetSpecifiedName()))
	case errors.As(err, &unknown):
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		name := "--" + unknown.GetSpecifiedName()
		return usage("there is no flag %s; %s", name, suggestSimilar(name, names, see))
	case errors.As(err, &empty):
		return usage("--%s needs a value; %s", empty.GetFlag().Name, see)
	case errors.As(err, &wrong):
		return usage("--%s is %s, not %q", wrong.GetFlag().Name, sortOf(wrong.GetFlag()), wrong.GetValue())
	}
	return usage("a flag is --name or --name=value; %s", see)
}

func sortOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "int64":
		return "a whole number"
	case "duration":
		return "a duration, such as 90s or 15m"
	case "bool":
		return "true or false, or stands alone"
	}
	return "something else"
}

// printsErrors reports whether a command line asks for errors as JSON.
func (c *CLI) printsErrors(cmd *cobra.Command, args []string) bool {
	asked := c.asJSON || slices.Contains(args, "--json") // arguments after an invalid flag are not parsed
	for _, output := range jsonOutputs {
		if output.errors && slices.Contains(output.commands, pathOf(cmd)) {
			return asked
		}
	}
	return false
}

func (c *CLI) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:       "completion SHELL",
		Args:      arguments(cobra.ExactArgs(1), "a shell: bash, zsh or fish"),
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch args[0] {
			case "bash":
				return cmd.Root().GenBashCompletionV2(c.Out, true)
			case "zsh":
				return cmd.Root().GenZshCompletion(c.Out)
			case "fish":
				return cmd.Root().GenFishCompletion(c.Out, true)
			}
			return usage("there is no completion for %q; %s", args[0], suggestSimilar(args[0], cmd.ValidArgs, "there are bash, zsh, fish"))
		},
	}
}

// source returns the words for a place on a command line, optionally each with a tab and a description.
type source func(context.Context) []string

// completeWithin bounds the query of a daemon during completion.
const completeWithin = time.Second

// argumentWords are the sources of arguments, by command path.
func (c *CLI) argumentWords() map[string]source {
	return map[string]source{
		"approve": c.codes(), "deny": c.codes(), "answer": c.codes(), "cancel": c.codes(), "show": c.codes(), "revoke": c.grantIDs(),
		"connect": fixed(connect.Names()), "hook": fixed(hooks.Names()), "run": c.configured(agentNames),
		"pair": c.configured(personNames), "unpair": c.configured(personNames), "token revoke": c.tokenNames(),
		"lock": c.configured(personNames), "unlock": c.configured(personNames),
		"ask": fixed([]string{"@network", "@workspace", "@events", "@read:", "@write:"}),
	}
}

// completeArguments sets the completion of a command's arguments and flag values.
func (c *CLI) completeArguments(cmd *cobra.Command, path string) {
	flags := map[string]source{
		"scope":   fixed(permissions.ScopeNames()),
		"request": c.codes(), "via": fixed(connectors.KindNames()),
	}
	if path == "audit" {
		flags["agent"] = c.configured(agentNames)
	}
	if words := c.argumentWords()[path]; words != nil {
		cmd.ValidArgsFunction = words.complete
	}
	for name, words := range flags {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, words.complete) // the flag exists
		}
	}
	for _, name := range []string{"config", "token-file", "details", "out", "socket"} {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.MarkFlagFilename(name)
		}
	}
}

// complete adapts the source for cobra. Errors are suppressed, because the user is typing.
func (s source) complete(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, done := context.WithTimeout(cmd.Context(), completeWithin)
	defer done()
	return s(ctx), cobra.ShellCompDirectiveNoFileComp
}

func fixed(words []string) source { return func(context.Context) []string { return words } }

// configured returns names from the configuration, none if it cannot be read.
func (c *CLI) configured(names func(*config.Config) []string) source {
	return func(context.Context) []string {
		cfg, _, err := c.load()
		if err != nil {
			return nil
		}
		return names(cfg)
	}
}

func personNames(cfg *config.Config) []string {
	return wire.Map(cfg.People, func(p config.Person) string { return p.Name })
}

func agentNames(cfg *config.Config) []string {
	return wire.Map(cfg.Agents, func(a config.Agent) string { return a.Name })
}

// atDaemon returns a word for each item of a list from the daemon, none if it is not running.
func atDaemon[T any](c *CLI, list func(context.Context, *admin.Client) ([]T, error), word func(T) string) source {
	return func(ctx context.Context) []string {
		c.warned = true // suppresses warnings, because the user is typing
		client, err := c.adminClient()
		if err != nil {
			return nil
		}
		defer client.Close()
		all, _ := list(ctx, client)
		return wire.Map(all, word)
	}
}

func (c *CLI) codes() source {
	return atDaemon(c, func(ctx context.Context, client *admin.Client) ([]permissions.RequestView, error) {
		return client.List(ctx, "", 0)
	},
		func(s permissions.RequestView) string {
			return fmt.Sprintf("%s\t%s wants %s", s.Code, spelled(s.Request.AgentLabel()), oneRow(card.Wants(s.Request)))
		})
}

func (c *CLI) grantIDs() source {
	return atDaemon(c, func(ctx context.Context, client *admin.Client) ([]permissions.Grant, error) {
		return client.Grants(ctx, connectors.Identity{}, "", 0)
	}, func(g permissions.Grant) string {
		return fmt.Sprintf("%s\t%s for %s", g.ID.Short(), covers(g, permissions.RequestView{}), spelled(g.Caller))
	})
}

func (c *CLI) tokenNames() source {
	return atDaemon(c, func(ctx context.Context, client *admin.Client) ([]admin.Token, error) { return client.Tokens(ctx) },
		func(t admin.Token) string { return t.Name })
}

//go:generate go test . -run ^TestReference$ -reference

// referenceCommand writes man pages from the commands' help, for make install. docs/cli.md is generated from the same text.
func (c *CLI) referenceCommand() *cobra.Command {
	man := ""
	cmd := &cobra.Command{
		Use:    "reference",
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if man == "" {
				return nil
			}
			for _, about := range documented(cmd.Root()) {
				name := strings.ReplaceAll(about.CommandPath(), " ", "-") + ".1"
				if err := writePage(filepath.Join(man, name), about); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&man, "man", "", "folder to write man pages to")
	return cmd
}

func writePage(name string, about *cobra.Command) error {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("write the reference: %w", err)
	}
	w := bufio.NewWriter(f)
	writeMan(w, about)
	return cmp.Or(w.Flush(), f.Close())
}

// documented returns a command and its subcommands, without hidden ones.
func documented(root *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{root}
	for cmd := range commandsBelow(root) {
		if !cmd.Hidden {
			all = append(all, cmd)
		}
	}
	return all
}

// flagsOf returns a command's flags, as typed, with their descriptions.
func flagsOf(cmd *cobra.Command) (flags [][2]string) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		value, says := pflag.UnquoteUsage(f)
		typed := "--" + f.Name
		if value != "" {
			typed += " " + strings.ToUpper(value)
		}
		if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "0s" && f.DefValue != "false" && f.DefValue != "[]" {
			says += " (default: " + f.DefValue + ")"
		}
		flags = append(flags, [2]string{typed, says})
	})
	return flags
}

// paragraphs splits a command's long text. A paragraph that begins with white space is preformatted.
func paragraphs(cmd *cobra.Command) (all []string) {
	for line := range strings.SplitSeq(cmp.Or(cmd.Long, cmd.Short), "\n") {
		set, last := strings.HasPrefix(line, " "), len(all)-1
		switch {
		case last >= 0 && set && strings.HasPrefix(all[last], " "), last >= 0 && !set && !strings.HasPrefix(all[last], " "):
			all[last] += "\n" + line
		default:
			all = append(all, line)
		}
	}
	return all
}

// examplesOf returns a command's examples without their indentation.
func examplesOf(cmd *cobra.Command) []string {
	return wire.Map(strings.Split(cmd.Example, "\n"), func(line string) string { return strings.TrimPrefix(line, "  ") })
}

// writeMan writes one page of section 1.
func writeMan(w io.Writer, cmd *cobra.Command) {
	quoted := strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace
	text := func(s string) string {
		if s = quoted(s); strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
			s = `\&` + s
		}
		return s
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	fmt.Fprintf(w, ".TH %s 1 \"\" \"daycared\" \"daycared\"\n.SH NAME\n%s \\- %s\n", text(strings.ToUpper(name)), text(name), text(cmd.Short))
	fmt.Fprintf(w, ".SH SYNOPSIS\n%s\n.SH DESCRIPTION\n", text(cmd.UseLine()))
	for _, p := range paragraphs(cmd) {
		if strings.HasPrefix(p, " ") {
			fmt.Fprintf(w, ".PP\n.nf\n%s\n.fi\n", text(p))
			continue
		}
		fmt.Fprintf(w, ".PP\n%s\n", text(p))
	}
	fmt.Fprintln(w, ".SH OPTIONS")
	for _, f := range flagsOf(cmd) {
		fmt.Fprintf(w, ".TP\n.B %s\n%s\n", text(f[0]), text(f[1]))
	}
	fmt.Fprintf(w, ".SH EXAMPLES\n.nf\n%s\n.fi\n.SH SEE ALSO\n", text(strings.Join(examplesOf(cmd), "\n")))
	var also []string
	if cmd.HasParent() {
		also = append(also, text(strings.ReplaceAll(cmd.Parent().CommandPath(), " ", "-"))+"(1)")
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			also = append(also, text(strings.ReplaceAll(sub.CommandPath(), " ", "-"))+"(1)")
		}
	}
	fmt.Fprintln(w, strings.Join(also, ",\n"))
}
