package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/connectors/whatsapp"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/permissions"
)

func (c *CLI) pairCommand() *cobra.Command {
	via, sure := connectors.Kinds[0].Name, ""
	cmd := newCommand("pair NAME", arguments(cobra.ExactArgs(1), "the name of a person in the configuration"),
		func(cmd *cobra.Command, args []string) error {
			if sure == "" && !terminal.IsTerminal(c.In) {
				return usage("pair asks you whether it is the right account; without a terminal, name it: --yes-if-id ID")
			}
			client, err := c.adminClient()
			if err != nil {
				return err
			}
			defer client.Close()
			return c.pair(cmd.Context(), client, args[0], via, sure)
		})
	cmd.Flags().StringVar(&via, "via", via, "the channel that the account is of")
	cmd.Flags().StringVar(&sure, "yes-if-id", "", "say yes to the account with this id, and no to every other")
	return cmd
}

func (c *CLI) pair(ctx context.Context, client *admin.Client, name, via, sure string) error {
	i, err := client.Invite(ctx, name, via)
	if err != nil {
		return err
	}
	talk := dialogue{in: c.In, out: c.Err}
	switch {
	case i.Link == "": // somebody proposed an account
	case terminal.IsTerminal(c.In):
		talk.say("Within ten minutes, %s %s:", spelled(name), i.How)
		talk.link(i.Link)
	default:
		fmt.Fprintln(c.Out, i.Link)
	}
	if i.Link != "" {
		c.say("waiting until %s; Ctrl-C takes the link back", when(i.Until, time.Local))
	}
	yes := false
	guest, err := client.Guest(ctx, i.Code)
	if err == nil {
		yes, err = talk.confirmGuest(ctx, guest, name, sure)
	}
	if err != nil || !yes {
		last, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer done()
		_ = client.Dismiss(last, i.Code) // it would expire soon anyway
	}
	switch {
	case ctx.Err() != nil:
		return &problem{Text: "left before the end; nobody was paired", Code: codeEnded, Exit: permissions.ExitCancelled}
	case err != nil:
		return err
	case !yes:
		c.say("nobody was paired")
		return exitCode(permissions.ExitNo)
	}
	p, err := client.Pair(ctx, i.Code, guest.Address)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "%s answers via %s with %s from now on\n", spelled(p.Person), p.Via, spelled(p.Address))
	if p.Was != nil {
		c.say("the account %s, which did before, has been told", *p.Was)
	}
	return nil
}

// confirmGuest shows who used a pairing link, and asks whether that is the right person; sure is the id of a confirmed one.
func (d dialogue) confirmGuest(ctx context.Context, g admin.Guest, name, sure string) (bool, error) {
	if g.By != "" {
		d.say("%s says that this account is %s's. A no takes that back.", spelled(g.By), spelled(name))
	} else {
		d.say("Somebody came:")
	}
	d.say("  id         %s", spelled(g.Address))
	d.say("  name       %s (as the account calls itself)", spelled(g.Name))
	d.say("  language   %s", spelled(cmp.Or(g.Language, "not told")))
	if sure != "" {
		return g.Address == sure, nil
	}
	return d.yes(ctx, "Is this "+spelled(name)+"?", false)
}

func (c *CLI) unpairCommand() *cobra.Command {
	via := connectors.Kinds[0].Name
	cmd := c.adminCommand("unpair NAME", arguments(cobra.ExactArgs(1), "the name of a person"),
		func(cmd *cobra.Command, args []string, client *admin.Client) error {
			p, err := client.Unpair(cmd.Context(), args[0], via)
			if err != nil {
				return err
			}
			return c.result(p, "%s no longer answers via %s with %s\n", spelled(p.Person), p.Via, spelled(p.Address))
		})
	cmd.Flags().StringVar(&via, "via", via, "the channel that the account is of")
	return cmd
}

func (c *CLI) linkCommand() *cobra.Command {
	byCode := ""
	cmd := &cobra.Command{
		Use:  "link whatsapp",
		Args: arguments(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), "what to link: whatsapp"), ValidArgs: []string{whatsapp.Name},
		RunE: func(cmd *cobra.Command, _ []string) error { return c.link(cmd.Context(), byCode) },
	}
	cmd.Flags().StringVar(&byCode, "code", "", "show a code to be typed on the phone with this number, as in +4915112345678")
	return cmd
}

func (c *CLI) link(ctx context.Context, byCode string) error {
	cfg, paths, err := c.load()
	if err != nil {
		return err
	}
	only := cfg.Connectors.WhatsApp.Phone
	_, wrong := connectors.ParsePhone(byCode)
	switch {
	case byCode != "" && wrong != nil:
		return usage("--code %q is no number with its country code; write it as in +4915112345678", byCode)
	case byCode != "" && only != "" && byCode != only:
		return usage("--code %s is not connectors.whatsapp.phone, %s, which alone may be linked", byCode, only)
	case byCode != "":
		only = byCode
	}
	g := &linkGuide{dialogue{in: c.In, out: c.Out}}
	number, err := c.linkAccount(ctx, paths, whatsapp.Linking{
		Number: only, ByCode: byCode != "", AutoVersion: cfg.Connectors.WhatsApp.AutoVersion,
	}, g)
	if err != nil {
		return notLinked(ctx, paths.DataDir, number, err)
	}
	g.say("\ndaycared is a linked device of %s now.", number)
	if !cfg.Connectors.WhatsApp.Enabled {
		g.say("Switch it on in the configuration, and restart daycared: connectors: {whatsapp: {enabled: true, phone: %q}}", number)
	}
	g.say("Then enrol whoever answers: daycared pair NAME --via whatsapp")
	return nil
}

// linkAccount links an account, stores its keys in the data directory or the database of the store, and returns its number.
func (c *CLI) linkAccount(ctx context.Context, paths config.Paths, o whatsapp.Linking, g *linkGuide) (number string, err error) {
	if err := makeDataDir(paths.DataDir, c.UID); err != nil {
		return "", err
	}
	g.Say(linkRisks)
	o.Path, o.HTTP, o.Log = filepath.Join(paths.DataDir, whatsappName), whatsappHTTP(), slog.New(slog.DiscardHandler)
	if paths.Database != "" {
		rows, err := store.Open(ctx, storeOptions(paths, o.Log))
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		o.Shared = sharedAccount(rows)
	}
	return whatsapp.Link(ctx, o, g)
}

// linkRisks is what a person must know before linking an account.
const linkRisks = `This is no official client. Its use is against WhatsApp's terms, and WhatsApp may ban the account, for a time ` +
	`or for good. Link a number of its own, never the one that you live with; Telegram has no such risk.`

// notLinked says why no account was linked; number is that of the account linked already, if any.
func notLinked(ctx context.Context, dataDir, number string, err error) error {
	switch {
	case errors.Is(err, whatsapp.ErrLinked):
		return fmt.Errorf("the account %s is linked already; to link another one, remove daycared on its phone first (Linked devices)", number)
	case errors.Is(err, whatsapp.ErrInUse):
		who := ""
		if by, held := heldBy(dataDir); held {
			who = " (" + by.String() + ")"
		}
		return fmt.Errorf("a running daycared%s has the WhatsApp account open, so one is linked already; daycared doctor says how it stands, "+
			"and daycared stop ends the daemon", who)
	case ctx.Err() != nil:
		return &problem{Text: "left before the end; nothing was linked", Code: codeEnded, Exit: permissions.ExitCancelled}
	}
	return err
}

type linkGuide struct{ dialogue }

// Scan implements [whatsapp.Guide].
func (g *linkGuide) Scan(code string, life time.Duration) {
	g.say("\nOn the phone of the account: Settings, Linked devices, Link a device. Scan this within %d s:", int(life.Seconds()))
	columns, _, err := term.GetSize(int(g.in.Fd()))
	if drawn := qrCode(code, columns); err == nil && drawn != "" {
		g.say("\n%s", drawn)
		return
	}
	if err == nil {
		g.say("(The terminal is too narrow to draw it, and daycared link whatsapp --code NUMBER needs less room. As text it is:)")
	}
	g.say("\n  %s\n", code)
}

// Type implements [whatsapp.Guide].
func (g *linkGuide) Type(code string) {
	g.say("\nOn the phone of the account: Settings, Linked devices, Link a device, Link with phone number instead. Type\n\n  %s\n", code)
}

// Passkey implements [whatsapp.Guide].
func (g *linkGuide) Passkey(ctx context.Context, request string) (string, error) {
	if !terminal.IsTerminal(g.in) {
		return "", errors.New("WhatsApp asks for the account's passkey, which takes a terminal; run daycared link whatsapp in one")
	}
	if row, err := json.Marshal(json.RawMessage(request)); err == nil {
		request = string(row)
	}
	g.say("\nWhatsApp asks for the passkey of this account, which only a browser of its owner can answer. In a browser that has it, " +
		"open https://web.whatsapp.com, and run in its developer console:\n")
	fmt.Fprintf(g.out, "  navigator.credentials.get({publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(%s)})"+
		".then(c => console.log(JSON.stringify(c)))\n\n", strings.TrimSpace(request)) // not wrapped, because it is copied
	return g.ask(ctx, "Then paste the line that it prints", "")
}

// Compare implements [whatsapp.Guide].
func (g *linkGuide) Compare(ctx context.Context, code string) (bool, error) {
	return g.yes(ctx, "Does the phone show "+code+"?", false)
}

// Say implements [whatsapp.Guide].
func (g *linkGuide) Say(text string) { g.say("%s", text) }
