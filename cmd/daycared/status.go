package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/client"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// describe is what a daemon's process knows about itself at its start.
func (c *CLI) describe(cfg *config.Config, paths config.Paths) admin.Daemon {
	d := admin.Daemon{
		PID: os.Getpid(), UID: c.UID, Version: version, Since: time.Now().UTC(), DataDir: paths.DataDir,
		AgentSocket: paths.AgentSocket, AdminSocket: paths.AdminSocket, Config: wire.OrNull(absolute(cfg.File)),
		Listen: wire.OrNull(cfg.API.Listen),
	}
	if c.logsToFile(cfg) {
		d.Log = &paths.LogFile
	}
	if c.env("SYSTEMD_EXEC_PID") == strconv.Itoa(d.PID) {
		manager := "systemd"
		d.Manager = &manager
	}
	return d
}

// describe is the daemon's current description of itself.
func (d *daemon) describe() admin.Daemon {
	ctx, done := context.WithTimeout(context.Background(), describeTime)
	defer done()
	server, err := d.rows.Server(ctx)
	if err != nil {
		d.log.Warn("list the daemons on the database", "err", err)
	}
	faults := d.faults() // it looks at a file, which may take a second
	d.mu.Lock()
	defer d.mu.Unlock()
	self := d.self
	self.Database, self.Daemons, self.Differ = server.Name, placesOf(server), server.Differ()
	self.Faults = faults
	self.ConfigRead, self.ConfigRefused, self.Console = d.read, wire.OrNull(d.refused), "off"
	if d.console != nil {
		self.Console = d.console.Console()
	}
	return self
}

// faults says what is wrong though requests are answered. The next start would be refused without the key.
func (d *daemon) faults() (all []string) {
	if isGone(d.paths.AuditKey) {
		all = append(all, "the audit key "+d.paths.AuditKey+" is missing; "+store.LostKey)
	}
	if d.heads != nil {
		if failed := d.heads.failed.Load(); failed != nil {
			all = append(all, fmt.Sprintf("heads of the audit are not published to %s: %v; see audit.heads", d.heads.to, *failed))
		}
	}
	return all
}

// isGone reports whether a file is known not to be there.
func isGone(path string) bool {
	err := own.Do(path, func() error { _, err := os.Stat(path); return err })
	return errors.Is(err, fs.ErrNotExist)
}

// sameSettings is what to do about daemons on one database that have different settings.
const sameSettings = "write the same people, routes, approvals, tools, rules, high_risk, limits and sandboxed into the configuration of " +
	"each, and have each read it again (SIGHUP): a call goes by the settings of the daemon that it reaches"

// noteSettings stores a hash of this daemon's settings for the others on the database, and warns if another one has different settings.
func (d *daemon) noteSettings(cfg *config.Config) {
	text, err := json.Marshal([]any{cfg.People, cfg.Routes, cfg.Approvals, cfg.Tools, cfg.Rules, cfg.HighRisk, cfg.Limits, cfg.Sandboxed})
	ctx, done := context.WithTimeout(context.Background(), statusTime)
	defer done()
	differ := false
	if err == nil {
		differ, err = d.rows.NoteSettings(ctx, fmt.Sprintf("%x", sha256.Sum256(text)))
	}
	switch {
	case err != nil:
		d.log.Warn("say by which settings this daemon goes", "err", err)
	case differ:
		d.log.Warn("the daemons on the database go by different settings", "advice", sameSettings)
	}
}

// placesOf says where the daemons run that use a database.
func placesOf(found store.Server) (all []string) {
	for _, daemon := range found.Daemons {
		all = append(all, daemon.String())
	}
	return all
}

func (d *daemon) noteReload(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.refused = err.Error()
		return
	}
	d.read, d.refused = time.Now().UTC(), ""
}

// absolute returns an absolute path if possible; empty stays empty.
func absolute(path string) string {
	if path == "" {
		return ""
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

const (
	statusTime = 5 * time.Second
	// describeTime is how much of statusTime listing the daemons on a database may take, so that the rest is enough to say why it does not
	// answer.
	describeTime = time.Second
)

func (c *CLI) statusCommand() *cobra.Command {
	return newCommand("status", nil, func(cmd *cobra.Command, _ []string) error {
		s, err := c.status(cmd.Context())
		if errors.Is(err, fs.ErrPermission) || permissions.CodeOf(err) == permissions.CodeNotYours {
			return c.statusOutside(cmd.Context(), err)
		}
		if errors.Is(err, client.ErrUnreachable) { // a starting daemon tells agents what it waits for
			if why := c.askSocket(cmd.Context()).err; isBroken(why) {
				return &problem{"daycared runs, and is not ready: " + explain(why).Text, string(permissions.CodeBroken), permissions.ExitOther}
			}
		}
		if err != nil {
			return c.notRunning(err)
		}
		if c.asJSON {
			err = c.json(s)
		} else {
			err = c.printStatus(s)
		}
		if err == nil && (!s.Ready || !s.Reachable || len(s.Faults) > 0) {
			err = exitCode(permissions.ExitOther)
		}
		return err
	})
}

// status queries the daemon's process, files, channels, and whom it can reach. Without a daemon the error matches
// [client.ErrUnreachable]; an account that is not configured gets a refusal.
func (c *CLI) status(ctx context.Context) (admin.Status, error) {
	daemon, err := c.adminClient()
	if err != nil {
		return admin.Status{}, err
	}
	defer daemon.Close()
	ctx, done := context.WithTimeout(ctx, statusTime)
	defer done()
	s, err := daemon.Status(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("the daemon does not answer within %s; its log may say why", statusTime)
	}
	return s, err
}

// statusOutside prints only whether the daemon is ready; refused is why this account may not see more.
func (c *CLI) statusOutside(ctx context.Context, refused error) error {
	asks, err := c.agentClient()
	if err != nil {
		return err
	}
	defer asks.Close()
	ctx, done := context.WithTimeout(ctx, statusTime)
	defer done()
	switch err := asks.Ready(ctx); {
	case errors.Is(err, client.ErrUnreachable):
		return c.notRunning(err)
	case err != nil:
		return err
	}
	c.say("the daemon runs and takes questions; details are shown only to people in its configuration and to the account that runs it: %s",
		explain(refused).Text)
	if c.asJSON {
		return c.json(map[string]bool{"ready": true})
	}
	return nil
}

// notRunning says that no daemon answers, and what to do.
func (c *CLI) notRunning(err error) error {
	if !errors.Is(err, client.ErrUnreachable) {
		return err
	}
	p := explain(err)
	p.Text += c.explainSocket(p.Text)
	if paths, err := c.places("DAYCARED_ADMIN_SOCKET"); err == nil {
		if by, held := heldBy(paths.DataDir); held {
			p.Text = fmt.Sprintf("a daycared holds %s (%s), and does not answer: %s", paths.DataDir, by, p.Text)
			return p
		}
	}
	if strings.Contains(p.Text, emptied) {
		return p
	}
	p.Text = "daycared does not run: " + p.Text + "; start it with: daycared" + c.sameConfig() + " serve"
	return p
}

// sameConfig returns the flags with which another command uses this configuration.
func (c *CLI) sameConfig() string {
	if c.configFlag == "" {
		return ""
	}
	return " --config " + c.configFlag
}

func (c *CLI) printStatus(s admin.Status) error {
	table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	row := func(what, format string, args ...any) {
		fmt.Fprintf(table, "%s\t%s\n", what, spelled(fmt.Sprintf(format, args...)))
	}
	row("daycared", "%s, pid %d of %s, since %s", s.Version, s.PID, accountName(s.UID), stamp(s.Since, time.Local))
	row("configuration", "%s, read %s", cmp.Or(wire.Value(s.Config), "none, the defaults"), stamp(s.ConfigRead, time.Local))
	if s.ConfigRefused != nil {
		for i, problem := range strings.Split(*s.ConfigRefused, "\n") {
			row("", []string{"read again since, and refused: %s", "  %s"}[min(i, 1)], problem)
		}
	}
	if elsewhere := c.elsewhere(s); elsewhere != "" {
		row("", "%s", elsewhere)
	}
	row("data", "%s", s.DataDir)
	if s.Database != "" {
		row("store", "%s", s.Database)
		row("", "used by the daemons at %s", strings.Join(s.Daemons, "; "))
		if s.Differ {
			row("", "they go by different settings; %s", sameSettings)
		}
	}
	row("log", "%s", cmp.Or(wire.Value(s.Log), "standard error"))
	row("agents ask at", "%s", strings.TrimSuffix(s.AgentSocket+", "+wire.Value(s.Listen), ", "))
	row("people answer at", "%s", s.AdminSocket)
	if s.Console != "off" {
		row("console", "%s", s.Console)
	}
	row("ready", "%s", cmp.Or(wire.Value(s.NotReady), "yes"))
	for _, fault := range s.Faults {
		row("fault", "%s", fault)
	}
	for _, ch := range s.Channels {
		how := "reaches " + strings.Join(ch.Reaches, ", ")
		if len(ch.Reaches) == 0 {
			how = "reaches nobody"
		}
		if ch.Text != "" {
			how += ": " + ch.Text
		}
		row("channel", "%s %s", ch.Name, how)
	}
	for _, p := range s.People {
		if len(p.Via) == 0 {
			row("person", "%s cannot be reached just now: %s", p.Name, p.Text)
		} else {
			row("person", "%s can be reached by %s", p.Name, strings.Join(p.Via, ", "))
		}
	}
	if !s.Reachable && (len(s.Locked) == 0 || len(s.Locked) < len(s.People)) {
		row("", "nobody can be reached just now, so what is asked fails at once; open an inbox with: daycared%s inbox", c.sameConfig())
	}
	waiting := strconv.Itoa(s.Waiting.Count)
	if s.Waiting.Oldest != nil {
		waiting += ", the oldest since " + stamp(*s.Waiting.Oldest, time.Local)
	}
	row("waiting", "%s", waiting)
	suspendedRows(row, s)
	return table.Flush()
}

// deletedRow is what is wrong where the audit has something open that the store lacks.
const deletedRow = "the audit has something open whose row somebody deleted from the store, and that is in force again if it is put back"

func suspendedRows(row func(what, format string, args ...any), s admin.Status) {
	if s.StoppedBy != nil {
		row("stopped", "by %s; nothing is asked until: daycared resume", *s.StoppedBy)
	}
	for _, l := range s.Locked {
		row("locked", "%s, %s; see: daycared unlock %s", l.Person, lockedSince(l), l.Person)
	}
	for _, a := range s.StoppedAgents {
		name := permissions.Caller{Name: a.Agent}.ProvenName()
		if a.StoppedBy == "" {
			row("muted", "%s, since %s; too much of it was denied or ignored; it asks nothing until: daycared resume %[1]s",
				spelled(name), stamp(a.StoppedAt, time.Local))
			continue
		}
		row("stopped", "%s, since %s by %s; it asks nothing until: daycared resume %[1]s",
			spelled(name), stamp(a.StoppedAt, time.Local), spelled(a.StoppedBy))
	}
	for _, a := range s.Away {
		row("away", "%s", awayUntil(a, time.Local))
	}
	for _, a := range s.Suspended {
		row("suspended", "%s", a.Text)
	}
	for _, remedy := range s.Missing {
		row("missing", "%s; close it with: %s", deletedRow, remedy)
	}
	if u := s.Unconfirmed; u != nil && u.Grants+u.Tokens > 0 {
		row("unconfirmed", "%s, %s since the store was restored; see: daycared suspended",
			count(u.Grants, "grant", "grants"), count(u.Tokens, "token", "tokens"))
	}
}

// elsewhere says that the answering daemon has another configuration; empty if it has this one.
func (c *CLI) elsewhere(s admin.Status) string {
	cfg, paths, err := c.load()
	if err != nil || serves(s, cfg, paths) {
		return ""
	}
	return fmt.Sprintf("it is not the daemon of this command line, which has the configuration %s and the data directory %s",
		cmp.Or(absolute(cfg.File), "none"), paths.DataDir)
}

// serves reports whether a daemon has this configuration: by default, the service and each account have data directories of their own.
func serves(s admin.Status, cfg *config.Config, paths config.Paths) bool {
	return wire.Value(s.Config) == absolute(cfg.File) && (s.DataDir == paths.DataDir || cfg.File == config.SystemFile)
}

func (c *CLI) agentsCommand() *cobra.Command {
	return c.adminCommand("agents", nil, func(cmd *cobra.Command, _ []string, client *admin.Client) error {
		list, err := pages(func(after permissions.ID) ([]wire.Session, error) {
			return client.Sessions(cmd.Context(), false, after, 0)
		}, func(s wire.Session) permissions.ID { return s.ID })
		if err != nil {
			return err
		}
		local := here(cmd.Context(), client)
		zone := local.Location
		from, err := c.listing.begin(local)
		if err != nil {
			return err
		}
		list = newest(list, from, c.listing.limit, func(s wire.Session) time.Time { return wire.Value(s.Changed) })
		if c.asJSON {
			return c.json(append([]wire.Session{}, list...))
		}
		if len(list) == 0 {
			c.say("no agent of yours has a session")
			return nil
		}
		table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "AGENT\tPERSON\tSTATUS\tWAITING ON\tTOKENS\tCOST\tSINCE")
		for _, s := range list {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", spelled(s.Agent), spelled(s.Person), s.Status,
				waitingOn(s), s.Tokens, cost(s.Cost), since(s, zone))
		}
		return table.Flush()
	})
}

func waitingOn(s wire.Session) string {
	w := s.WaitingOn
	if w == nil {
		return "-"
	}
	var words []string
	if w.Kind != nil {
		words = append(words, string(*w.Kind))
	}
	if w.Tool != nil {
		words = append(words, spelled(*w.Tool))
	}
	return strings.Join(append(words, string(w.Request)), " ")
}

// cost formats millionths of the currency of the configured prices.
func cost(millionths int64) string {
	if millionths == 0 {
		return "-"
	}
	return fmt.Sprintf("%d.%04d", millionths/1_000_000, millionths%1_000_000/100)
}

// since is when a session last changed.
func since(s wire.Session, zone *time.Location) string {
	if s.Changed == nil {
		return "-"
	}
	return when(*s.Changed, zone)
}
