package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/permissions"
)

func (c *CLI) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Say who an agent is, whatever account it runs as",
		Args:  arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return usage("say token create, token list or token revoke")
		},
	}
	cmd.AddCommand(c.tokenCreateCommand(), c.tokenListCommand(), c.tokenRevokeCommand())
	return cmd
}

func (c *CLI) tokenCreateCommand() *cobra.Command {
	expires := ""
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a token and print it, this once; routes know the agent by NAME",
		Args:  arguments(cobra.ExactArgs(1), "a name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := permissions.CheckTokenName(args[0]); err != nil {
				return usage("%s", err)
			}
			span, err := parseExpires(expires)
			if err != nil {
				return err
			}
			client, err := c.adminClient()
			if err != nil {
				return err
			}
			defer client.Close()
			secret, token, err := client.CreateToken(cmd.Context(), args[0], span)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(c.Out, string(secret)); err != nil {
				return fmt.Errorf("print the token, which is not told again (revoke it with: daycared token revoke %s): %w", token.ID, err)
			}
			c.say("this is told once; it is valid %s. Put it in a file of mode 0600 and name that in DAYCARED_TOKEN_FILE or "+
				"--token-file", valid(token))
			return nil
		},
	}
	cmd.Flags().StringVar(&expires, "expires", "", "how long it is valid, such as 90d or 720h (default: until revoked)")
	return cmd
}

func (c *CLI) tokenListCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tokens that are not revoked",
		Args:  arguments(cobra.NoArgs),
		RunE: c.atDesk(func(cmd *cobra.Command, _ []string, client *admin.Client) error {
			list, err := client.Tokens(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return c.json(list)
			}
			if len(list) == 0 {
				c.say("there are no tokens")
			}
			table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
			for _, t := range list {
				used := "never used"
				if t.UsedAt != nil {
					used = "used " + when(*t.UsedAt, time.Local)
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", t.ID, t.Name, valid(t), used)
			}
			return table.Flush()
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func (c *CLI) tokenRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME|ID",
		Short: "Revoke all tokens of a name, or one by its id",
		Args:  arguments(cobra.ExactArgs(1), "the name of an agent, or the id of a token"),
		RunE: c.atDesk(func(cmd *cobra.Command, args []string, client *admin.Client) error {
			list, err := client.RevokeToken(cmd.Context(), args[0])
			if isUnknown(err) {
				return c.nearToken(cmd.Context(), client, args[0], err)
			}
			if err != nil {
				return err
			}
			for _, t := range list {
				fmt.Fprintf(c.Out, "revoked %s (%s)\n", t.Name, t.ID)
			}
			return nil
		}),
	}
}

// nearToken adds to a refused name the nearest name of a token.
func (c *CLI) nearToken(ctx context.Context, client *admin.Client, name string, refused error) error {
	list, err := client.Tokens(ctx)
	if err != nil {
		return refused
	}
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = t.Name
	}
	return adding(refused, permissions.Nearest(name, names))
}

// valid is how long a token is valid, in words.
func valid(t admin.Token) string {
	switch {
	case t.ExpiresAt == nil:
		return "until revoked"
	case t.ExpiresAt.After(time.Now()):
		return "until " + when(*t.ExpiresAt, time.Local)
	}
	return "no more since " + when(*t.ExpiresAt, time.Local)
}

// parseExpires reads how long a token is valid; empty is for ever.
func parseExpires(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	span, ok := parseSpan(text)
	if !ok {
		return 0, usage("--expires is how long the token is valid, such as 90d or 720h, not %q", text)
	}
	return span, nil
}
