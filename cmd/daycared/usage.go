package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/daycared/daycared/permissions"
)

// knownCommand refuses a word that is no command, and names the nearest.
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
	return usage("there is no command %q; %s", args[0], meant(args[0], names, "see: "+cmd.CommandPath()+" --help"))
}

// meant says which of known was probably meant by a word that is none of them, and otherwise what to do.
func meant(word string, known []string, otherwise string) string {
	if near := permissions.Nearest(word, known); near != "" {
		return "did you mean " + near + "?"
	}
	return otherwise
}

// helpCommand is cobra's, but that a word that is no command is wrong usage.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		Long:  "Show the help of a command, as the command itself does with --help.",
		Example: "  daycared help ask\n" +
			"  daycared help token create",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) > 0 && about.HasSubCommands() {
				err = knownCommand(about, rest)
			}
			if err != nil {
				return err
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// theRequest is what most commands of people take.
const theRequest = "the id or the code of a request"

// arguments refuses a wrong number of arguments as wrong usage. what they are is said in words; empty: as the usage of
// the command has them.
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
		return usage("there is no flag %s; %s", name, meant(name, names, see))
	case errors.As(err, &empty):
		return usage("--%s needs a value; %s", empty.GetFlag().Name, see)
	case errors.As(err, &wrong):
		return usage("--%s is %s, not %q", wrong.GetFlag().Name, sortOf(wrong.GetFlag()), wrong.GetValue())
	}
	return usage("a flag is --name or --name=value; %s", see)
}

// sortOf is what a flag takes, in words.
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

// oneObject marks the commands that print one JSON object, whatever comes of them.
const oneObject = "one-object"

// printsObject tells whether a command line is to print one JSON object.
func printsObject(cmd *cobra.Command, args []string) bool {
	if cmd == nil || cmd.Annotations[oneObject] == "" {
		return false
	}
	asked, err := cmd.Flags().GetBool("json")
	return (err == nil && asked) || slices.Contains(args, "--json") // what stands behind a wrong flag is not parsed
}
