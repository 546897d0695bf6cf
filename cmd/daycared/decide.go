package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// scopeHelp has a line for each kind of scope.
func scopeHelp() (lines string) {
	for _, k := range permissions.ScopeKinds {
		lines += fmt.Sprintf("  %-12s  %s\n", k.Name, k.Help)
	}
	return lines
}

func (c *CLI) approveCommand() *cobra.Command {
	d, scope := connectors.Decision{}, "once"
	cmd := newCommand("approve ID", arguments(cobra.ExactArgs(1), theRequest), func(cmd *cobra.Command, args []string) error {
		s, err := permissions.ParseScope(strings.ToLower(scope))
		if err != nil {
			return usage("%s", err)
		}
		if d.Answer = permissions.Allow(s); d.Rule != "" && s != permissions.Rule {
			return usage("--rule goes with --scope rule")
		}
		return c.decide(cmd, args[0], d)
	})
	cmd.Flags().StringVar(&scope, "scope", scope, "how far it reaches: "+strings.Join(permissions.ScopeNames(), ", "))
	cmd.Flags().IntVar(&d.Call, "call", 0, "the call of a step; 0 for all that are open")
	cmd.Flags().BoolVar(&d.Really, "really", false, "the second yes that high risk and a rule need")
	cmd.Flags().StringVar(&d.Rule, "rule", "", "with --scope rule: the name of the rule that was shown, and no other is given")
	return cmd
}

func (c *CLI) denyCommand() *cobra.Command {
	d := connectors.Decision{Answer: permissions.Deny}
	cmd := newCommand("deny ID", arguments(cobra.ExactArgs(1), theRequest), func(cmd *cobra.Command, args []string) error {
		return c.decide(cmd, args[0], d)
	})
	cmd.Flags().StringVar(&d.Comment, "reason", "", "why, for the agent to read")
	cmd.Flags().IntVar(&d.Call, "call", 0, "the call of a step; 0 for all that are open")
	return cmd
}

func (c *CLI) answerCommand() *cobra.Command {
	words := ""
	cmd := newCommand("answer ID OPTION", arguments(cobra.ExactArgs(2), theRequest, "and one option"),
		func(cmd *cobra.Command, args []string) error {
			answer, own := permissions.Answer(args[1]), cmd.Flags().Changed("text")
			if !own {
				var err error
				if answer, err = c.option(cmd.Context(), args[0], args[1]); err != nil {
					return err
				}
			}
			if own != (answer == permissions.Other) {
				return usage("an answer in your own words is: daycared answer ID other --text 'WORDS'")
			}
			return c.decide(cmd, args[0], connectors.Decision{Answer: answer, Comment: words})
		})
	cmd.Flags().StringVar(&words, "text", "", "with other: the answer to a question in your own words")
	return cmd
}

// option resolves a word to an option of the request, otherwise it returns the word itself. A word that names two options is an error.
func (c *CLI) option(ctx context.Context, name, word string) (permissions.Answer, error) {
	if client, err := c.adminClient(); err == nil {
		defer client.Close()
		s, _ := client.Show(ctx, name) // if this fails, so does the decision
		switch meant := reply.ChosenOptions(word, s.Request); {
		case s.Request.Kind != permissions.KindClarification:
		case len(meant) == 1:
			return permissions.Choose(meant[0]), nil
		case len(meant) > 1:
			return "", usage("%q names two options of %s: write %s or %s", word, name, permissions.Choose(meant[0]), permissions.Choose(meant[1]))
		}
	}
	if k, err := strconv.Atoi(word); err == nil {
		return permissions.Choose(k), nil
	}
	return permissions.Answer(word), nil
}

func (c *CLI) cancelCommand() *cobra.Command {
	return c.adminCommand("cancel ID", arguments(cobra.ExactArgs(1), theRequest),
		func(cmd *cobra.Command, args []string, client *admin.Client) error {
			r, err := client.Cancel(cmd.Context(), args[0])
			if mayBeOwn(args[0], err) {
				r, err = c.cancelAsked(cmd.Context(), permissions.ID(args[0]), err)
			}
			if err != nil {
				return nearRequest(cmd.Context(), client, args[0], err)
			}
			return c.printSettled(cmd.Context(), client, r)
		})
}

// mayBeOwn reports whether a request that the admin socket refused to cancel may be this account's own, which its asker knows by id.
func mayBeOwn(name string, err error) bool {
	code := permissions.CodeOf(err)
	kept := code == permissions.CodeNotYours || code == permissions.CodeUnknown
	return len(name) != permissions.CodeLength && (kept || errors.Is(err, admin.ErrUnreachable))
}

// cancelAsked withdraws a request of this account or its token. If it may not ask, or has no such request, it returns the
// refusal given to the person, if there was one.
func (c *CLI) cancelAsked(ctx context.Context, id permissions.ID, told error) (permissions.RequestView, error) {
	client, err := c.agentClient()
	if err != nil {
		return permissions.RequestView{}, err
	}
	defer client.Close()
	s, err := client.Cancel(ctx, id)
	unknown := permissions.CodeOf(err) == permissions.CodeUnknown
	if errors.Is(err, admin.ErrUnreachable) || (unknown && !errors.Is(told, admin.ErrUnreachable)) {
		return s, told
	}
	return s, err
}

func (c *CLI) decide(cmd *cobra.Command, name string, d connectors.Decision) error {
	client, err := c.adminClient()
	if err != nil {
		return err
	}
	defer client.Close()
	d.Request = permissions.ID(name)
	if len(name) == permissions.CodeLength {
		d.Request, d.Code = "", strings.ToUpper(name)
	}
	s, err := client.Decide(cmd.Context(), d)
	if p := permissions.AsRefusal(err); p != nil && p.Proposal != nil {
		if d.Rule != "" {
			c.say("by now it would be another rule:")
		}
		if err := c.confirmRule(cmd.Context(), client, *p.Proposal, d.Really && d.Rule == "", name); err != nil {
			return err
		}
		d.Rule = p.Proposal.Rule.Fingerprint()
		s, err = client.Decide(cmd.Context(), d)
	}
	if err != nil && c.asJSON {
		return nearRequest(cmd.Context(), client, name, err)
	}
	if err != nil {
		return c.withOffer(nearRequest(cmd.Context(), client, name, err), s.Request, name)
	}
	return c.printSettled(cmd.Context(), client, s)
}

// confirmRule prints the rule that an answer gives, and returns an error unless somebody wants it given.
func (c *CLI) confirmRule(ctx context.Context, client *admin.Client, p permissions.Proposal, really bool, name string) error {
	if c.asJSON && !really {
		return cmp.Or(c.json(wire.Proposal{Proposal: p, Name: p.Rule.Fingerprint()}), error(exitCode(permissions.ExitOther)))
	}
	for _, row := range card.Proposed(p, here(ctx, client)) {
		c.say("%s", card.Spell(card.Plain(row)))
	}
	if really {
		return nil
	}
	if !terminal.IsTerminal(c.In) {
		c.say("to give it: daycared approve %s --scope rule --rule %s", spelled(name), p.Rule.Fingerprint())
		return exitCode(permissions.ExitOther)
	}
	yes, err := dialogue{in: c.In, out: c.Err}.yes(ctx, "Give this rule?", false)
	if err == nil && !yes {
		c.say("nothing was decided")
		err = exitCode(permissions.ExitOther)
	}
	return err
}

// withOffer adds the request's options, and how to give them, to the refusal of an answer.
func (c *CLI) withOffer(err error, r permissions.Request, name string) error {
	refusal := permissions.AsRefusal(err)
	if refusal == nil || refusal.Code != permissions.CodeNoAnswer || refusal.Exit != permissions.ExitUsage ||
		len(r.Options) == 0 {
		return err
	}
	c.say("%s It offers:", refusal.Text)
	table := tabwriter.NewWriter(c.Err, 0, 0, 2, ' ', 0)
	for _, o := range r.Options {
		fmt.Fprintf(table, "  %s\t%s\tdaycared %s\n", o.ID, spelled(o.Label), answering(o.ID, r, spelled(name)))
	}
	if r.TakesWords() {
		fmt.Fprintf(table, "  %s\t%s\tdaycared answer %s other --text 'WORDS'\n", permissions.Other, "in your own words",
			spelled(name))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print what is offered: %w", err)
	}
	return exitCode(refusal.Exit)
}

// answering is the command that gives an answer.
func answering(a permissions.Answer, r permissions.Request, name string) string {
	scope, allows := a.Scope()
	switch {
	case a.SuggestionNumber() > 0:
		return "answer " + name + " " + string(a)
	case allows:
		words := "approve " + name + " --scope " + scope.String()
		if r.HighRisk {
			words += " --really"
		}
		return words
	case a == permissions.Deny:
		return "deny " + name
	}
	for k := range r.Choices {
		if a == permissions.Choose(k+1) {
			if number := strconv.Itoa(k + 1); len(reply.ChosenOptions(number, r)) == 1 {
				return "answer " + name + " " + number
			}
		}
	}
	return "answer " + name + " " + string(a)
}
