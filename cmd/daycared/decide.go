package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

func (c *CLI) approveCommand() *cobra.Command {
	d, scope := connectors.Decision{}, "once"
	cmd := &cobra.Command{
		Use:   "approve ID",
		Short: "Allow a request, by its id or its code",
		Args:  arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := permissions.ParseScope(scope)
			if err != nil {
				return usage("%s", err)
			}
			d.Answer = permissions.Allow(s)
			return c.decide(cmd, args[0], d)
		},
	}
	cmd.Flags().StringVar(&scope, "scope", scope, "how far it reaches: once, session_tool, session, 15m, always")
	cmd.Flags().IntVar(&d.Call, "call", 0, "the call of a step; 0 for all that are open")
	cmd.Flags().BoolVar(&d.Really, "really", false, "the second yes that high risk needs")
	return cmd
}

func (c *CLI) denyCommand() *cobra.Command {
	d := connectors.Decision{Answer: permissions.Deny}
	cmd := &cobra.Command{
		Use:   "deny ID",
		Short: "Deny a request, by its id or its code",
		Args:  arguments(cobra.ExactArgs(1)),
		RunE:  func(cmd *cobra.Command, args []string) error { return c.decide(cmd, args[0], d) },
	}
	cmd.Flags().StringVar(&d.Comment, "reason", "", "why, for the agent to read")
	cmd.Flags().IntVar(&d.Call, "call", 0, "the call of a step; 0 for all that are open")
	return cmd
}

func (c *CLI) answerCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "answer ID OPTION",
		Short: "Answer a question or a pause: the number or id of an option, continue or interrupt",
		Args:  arguments(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			answer := permissions.Answer(args[1])
			if k, err := strconv.Atoi(args[1]); err == nil {
				answer = permissions.Choose(k)
			}
			return c.decide(cmd, args[0], connectors.Decision{Answer: answer})
		},
	}
}

func (c *CLI) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel ID",
		Short: "Cancel a request that is pending, by its id or its code",
		Args:  arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.adminClient()
			if err != nil {
				return err
			}
			r, err := client.Cancel(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			c.settled(r.Request)
			return nil
		},
	}
}

// decide sends one person's answer and prints what came of it.
func (c *CLI) decide(cmd *cobra.Command, name string, d connectors.Decision) error {
	client, err := c.adminClient()
	if err != nil {
		return err
	}
	d.Request = permissions.ID(name)
	if len(name) == permissions.CodeLength {
		d.Request, d.Code = "", strings.ToUpper(name)
	}
	r, err := client.OnPermission(cmd.Context(), d)
	if err != nil {
		return err
	}
	c.settled(r)
	return nil
}
