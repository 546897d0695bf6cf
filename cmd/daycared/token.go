package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

func (c *CLI) tokenCommand() *cobra.Command {
	cmd := newCommand("token", nil, func(*cobra.Command, []string) error {
		return usage("say token create, token list or token revoke")
	})
	cmd.AddCommand(c.tokenCreateCommand(), c.tokenListCommand(), c.tokenRevokeCommand())
	return cmd
}

func (c *CLI) tokenCreateCommand() *cobra.Command {
	expires, file, person := "", "", ""
	cmd := newCommand("create NAME", arguments(cobra.ExactArgs(1), "a name"), func(cmd *cobra.Command, args []string) error {
		if err := permissions.CheckTokenName(args[0]); err != nil {
			return usage("%s", err)
		}
		span, ok := parseSpan(expires)
		if !ok && expires != "" {
			return usage("--expires is how long the token is valid, such as 90d or 720h, not %q", expires)
		}
		client, err := c.adminClient()
		if err != nil {
			return err
		}
		defer client.Close()
		return c.createToken(cmd.Context(), client, newToken{args[0], person, span, file})
	})
	cmd.Flags().StringVar(&file, "out", "", "new file that the token is written to, which only this account can read")
	cmd.Flags().StringVar(&person, "person", "", "whose agent it is, of people in the configuration: a route may say ask: [owner]")
	cmd.Flags().StringVar(&expires, "expires", "", "how long it is valid, such as 90d or 720h (default: until revoked)")
	return cmd
}

type newToken struct {
	name   string
	person string // the owner of the agent; empty: none
	span   time.Duration
	file   string // where it is written; empty: it is printed
}

// createToken creates a token and says what to do with it.
func (c *CLI) createToken(ctx context.Context, client *admin.Client, n newToken) error {
	var token admin.Token
	var secret permissions.Secret
	create := func() (_ permissions.Secret, err error) {
		secret, token, err = client.CreateToken(ctx, n.name, n.person, n.span)
		return secret, err
	}
	var err error
	if n.file == "" {
		_, err = create()
	} else {
		err = writeSecret(n.file, create)
	}
	if err != nil && token.ID != "" {
		return fmt.Errorf("%w; the token is of no use, revoke it with: daycared token revoke %s", err, token.ID.Short())
	}
	if err != nil {
		return err
	}
	if err := c.printToken(n, token, secret); err != nil {
		return err
	}
	next := "this is told once; it is valid " + valid(token, token.CreatedAt) +
		". Put it in a file of mode 0600 (--out FILE does) and name that in DAYCARED_TOKEN_FILE or --token-file"
	if n.file != "" {
		next = fmt.Sprintf("%s holds the token of %s, which is valid %s. Next: daycared ask --token-file %s @network --reason 'try it'",
			n.file, n.name, valid(token, token.CreatedAt), n.file)
	}
	c.say("%s", next)
	c.tellOthers(ctx, client, token)
	return nil
}

// printToken prints a new token, with its secret unless that was written to a file.
func (c *CLI) printToken(n newToken, token admin.Token, secret permissions.Secret) error {
	told := map[string]any{"token": token, "file": n.file}
	if n.file == "" {
		told = map[string]any{"token": token, "secret": string(secret)}
	}
	var err error
	switch {
	case c.asJSON:
		err = c.json(told)
	case n.file == "":
		_, err = fmt.Fprintln(c.Out, string(secret))
	}
	switch {
	case err == nil:
		return nil
	case n.file == "":
		return fmt.Errorf("print the token, which is not told again (revoke it with: daycared token revoke %s): %w", token.ID.Short(), err)
	}
	return fmt.Errorf("print the token %s, which is in %s: %w", token.ID.Short(), n.file, err)
}

// writeSecret writes a new secret to a new file that only this account can read. It creates the file before the secret, so that
// no secret is created that cannot be stored, and replaces it atomically. On failure the file is removed.
func writeSecret(name string, create func() (permissions.Secret, error)) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return usage("--out %s is there already; name a new file", name)
	}
	if err != nil {
		return usage("--out %s: %s", name, permissions.Cause(err))
	}
	var secret permissions.Secret
	if err = f.Close(); err == nil {
		secret, err = create()
	}
	if err == nil {
		err = writeWhole(name, []byte(string(secret)+"\n"), 0o600)
	}
	if err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// tellOthers lists the other tokens for the same name.
func (c *CLI) tellOthers(ctx context.Context, client *admin.Client, made admin.Token) {
	list, err := client.Tokens(ctx)
	if err != nil { // the new token exists in any case
		return
	}
	var others []string
	for _, t := range list {
		if t.Name == made.Name && t.ID != made.ID {
			others = append(others, used(t)+": daycared token revoke "+t.ID.Short())
		}
	}
	if len(others) > 0 {
		c.say("%s has %s, %s", made.Name, count(len(others), "other token", "other tokens"), strings.Join(others, "; "))
	}
}

func used(t admin.Token) string {
	if t.UsedAt == nil {
		return "never used"
	}
	return "used " + when(*t.UsedAt, time.Local)
}

func (c *CLI) tokenListCommand() *cobra.Command {
	return c.adminCommand("list", nil, func(cmd *cobra.Command, _ []string, client *admin.Client) error {
		local := here(cmd.Context(), client)
		since, err := c.listing.begin(local)
		if err != nil {
			return err
		}
		list, err := client.Tokens(cmd.Context())
		if err != nil {
			return err
		}
		list = newest(list, since, c.listing.limit, func(t admin.Token) time.Time { return t.CreatedAt })
		if c.asJSON {
			return c.json(list)
		}
		if len(list) == 0 {
			c.say("there are no tokens")
		}
		table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
		for _, t := range list {
			whose := ""
			if t.Person != "" {
				whose = ", of " + spelled(t.Person)
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s%s%s\n",
				t.ID.Short(), spelled(t.Name), valid(t, local.Now), used(t), whose, sinceRestored(t.SuspendedAt != nil))
		}
		return table.Flush()
	})
}

func (c *CLI) tokenRevokeCommand() *cobra.Command {
	return c.adminCommand("revoke NAME|ID", arguments(cobra.ExactArgs(1), "the name of an agent, or the id of a token"),
		func(cmd *cobra.Command, args []string, client *admin.Client) error {
			list, err := client.RevokeToken(cmd.Context(), args[0])
			if permissions.CodeOf(err) == permissions.CodeUnknown {
				return c.nearToken(cmd.Context(), client, args[0], err)
			}
			if err != nil {
				return err
			}
			if c.asJSON {
				return c.json(list)
			}
			for _, t := range list {
				fmt.Fprintf(c.Out, "revoked %s (%s)\n", spelled(t.Name), t.ID.Short())
			}
			return nil
		})
}

// nearToken adds the most similar token name to the refusal of a name.
func (c *CLI) nearToken(ctx context.Context, client *admin.Client, name string, refused error) error {
	list, err := client.Tokens(ctx)
	if err != nil {
		return refused
	}
	names := wire.Map(list, func(t admin.Token) string { return t.Name })
	return adding(refused, permissions.Nearest(name, names))
}

func valid(t admin.Token, now time.Time) string {
	switch {
	case t.ExpiresAt == nil:
		return "until revoked"
	case t.ExpiresAt.After(now):
		return "until " + when(*t.ExpiresAt, time.Local)
	}
	return "no more since " + when(*t.ExpiresAt, time.Local)
}
