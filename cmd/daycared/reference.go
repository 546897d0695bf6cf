package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/daycared/daycared/internal/wire"
)

//go:generate go test . -run ^TestReference$ -reference

// referenceCommand writes man pages from the commands' help, which make install puts beside the binary. docs/cli.md is generated
// from the same text.
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
	return wire.Each(strings.Split(cmd.Example, "\n"), func(line string) string { return strings.TrimPrefix(line, "  ") })
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
