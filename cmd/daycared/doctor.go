package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/agents/acp"
	"github.com/daycared/daycared/agents/hooks"
	"github.com/daycared/daycared/agents/mcp"
	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/cmd/daycared/connect"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// finding is one result of doctor.
type finding struct {
	Level  string `json:"level"` // ok, note, wrong
	What   string `json:"what"`
	Remedy string `json:"remedy"` // how to fix it; empty if nothing is to be done
	config.Problem
}

func (c *CLI) doctorCommand() *cobra.Command {
	return newCommand("doctor", nil, func(cmd *cobra.Command, _ []string) error {
		if _, _, err := c.load(); errors.Is(err, errUsage) {
			return err
		}
		report := struct {
			OK       bool       `json:"ok"`
			Findings []finding  `json:"findings"`
			Agents   []agentRow `json:"agents"`
		}{OK: true, Agents: []agentRow{}}
		report.Findings = c.examine(cmd.Context(), &report.Agents)
		for _, f := range report.Findings {
			report.OK = report.OK && f.Level != "wrong"
		}
		if c.asJSON {
			if err := c.json(report); err != nil {
				return err
			}
		} else {
			for _, f := range report.Findings {
				c.print("%-5s  %s\n", f.Level, f.What)
				if f.Remedy != "" {
					c.print("       → %s\n", f.Remedy)
				}
			}
			if err := c.printTable(report.Agents); err != nil {
				return err
			}
		}
		if !report.OK {
			return exitCode(permissions.ExitOther)
		}
		return nil
	})
}

// newFinding returns a finding without a configuration key.
func newFinding(level, what, remedy string) finding {
	return finding{Level: level, What: what, Remedy: remedy}
}

// examine checks everything that can prevent a question from being answered, innermost first, and adds the agents of this
// account and of the configuration to the table.
func (c *CLI) examine(ctx context.Context, table *[]agentRow) []finding {
	findings := []finding{newFinding("ok", "daycared "+version+", SQLite "+store.LibraryVersion(), "")}
	cfg, paths, err := c.load()
	if c.hidden(err) { // as for every client
		daemon, _, _, _ := c.examineDaemon(ctx)
		findings = append(findings, newFinding("note", "the configuration cannot be looked at from this account", ""))
		return append(findings, daemon...)
	}
	if err == nil {
		cfg, err = c.check()
	}
	if err != nil {
		return append(findings, refused(err)...)
	}
	current, err := settings(cfg, paths, c.UID)
	if err != nil {
		return append(findings, refused(err)...)
	}
	if cfg.File == "" {
		findings = append(findings, newFinding("ok", "no configuration file; the defaults are in force and the operator is asked", ""))
	} else {
		findings = append(findings, newFinding("ok", "configuration "+cfg.File, ""))
	}
	for _, w := range cfg.Warnings {
		findings = append(findings, found("note", w))
	}
	running := c.daemonOf(ctx, paths)
	in := c.inspect(cfg, paths, c.serves(paths, running), running)
	findings = slices.Concat(findings, in.findings(), in.examineData(ctx), in.examineAdminKey(), in.examineListener(),
		examineSandbox(cfg, current.Own))
	daemon, people, up, both := c.examineDaemon(ctx)
	locks := examineLocks(running, &current) // before the people, of whom it takes those who are locked out
	findings = slices.Concat(findings, daemon, examineFaults(running, findings, paths), examineReach(running), locks,
		c.examinePeople(cfg, current, people), in.examineServices(ctx))
	connections, rows := c.examineConnections(ctx, cfg, up)
	findings, *table = append(findings, connections...), append(*table, rows...)
	if both && !cfg.API.AllowSameUser { // otherwise a warning has said more
		findings = append(findings, newFinding("note",
			fmt.Sprintf("agents that run as uid %d share the approver's account: through the admin socket they may "+
				"deny, not allow, but the machine cannot keep them from the terminal's own input", c.UID),
			"run agents under another account; only then is the approver's finger independent"))
	}
	return findings
}

// refused returns the findings for a configuration that cannot be served.
func refused(err error) []finding {
	var all config.Problems
	if !errors.As(err, &all) {
		return []finding{newFinding("wrong", err.Error(), "fix what is named, then run: daycared config check")}
	}
	return wire.Map(all, func(p config.Problem) finding { return found("wrong", p) })
}

func found(level string, p config.Problem) finding {
	cause, remedy := p.Split()
	p.Text = cause
	return finding{level, p.String(), remedy, p}
}

// access is the result of connecting to one of the two sockets.
type access struct {
	err  error    // nil: this account has access
	shut bool     // the daemon runs but refuses this account
	me   admin.Me // of a person
	open int      // how many requests wait for them

	ahead time.Duration // this machine's clock, of the one that the daemon goes by

	channels []admin.Channel
	people   []admin.Person // only the operator gets these
}

// examineDaemon queries the running daemon at both sockets, and which channels reach people. up reports whether it accepts
// questions; both reports whether this account asks and decides, or may do so once the daemon runs.
func (c *CLI) examineDaemon(ctx context.Context) (findings []finding, people []admin.Person, up, both bool) {
	ctx, done := context.WithTimeout(ctx, 5*time.Second)
	defer done()
	asks, decides := c.askSocket(ctx), c.decideSocket(ctx)
	both = (asks.err == nil || !asks.shut) && (decides.err == nil || !decides.shut)
	return describeAccess(asks, decides, c.UID), decides.people, asks.err == nil, both
}

func (c *CLI) askSocket(ctx context.Context) (d access) {
	client, err := c.agentClient()
	if err != nil {
		return access{err: err}
	}
	defer client.Close()
	err = client.Ready(ctx)
	return access{err: err, shut: errors.Is(err, fs.ErrPermission)}
}

func (c *CLI) decideSocket(ctx context.Context) (d access) {
	client, err := c.adminClient()
	if err != nil {
		return access{err: err}
	}
	defer client.Close()
	if d.me, d.err = client.WhoAmI(ctx); d.err == nil {
		d.ahead = time.Since(d.me.Now)
		var list []permissions.RequestView
		list, d.err = client.List(ctx, "", 0)
		d.open = len(list)
		d.channels, _ = client.Health(ctx) // an older daemon does not have it
		d.people, _ = client.People(ctx)
	}
	d.shut = errors.Is(d.err, fs.ErrPermission) || permissions.CodeOf(d.err) == permissions.CodeNotYours
	return d
}

// lacksAccess says what a person's account lacks at a socket that is shut to it.
func lacksAccess(d access) string {
	if errors.Is(d.err, fs.ErrPermission) { // it may be named already, and cannot be told
		return "if a person uses it, name it as user of one of people, and write api.admin_group, a group that it is in: without one " +
			"admin.sock opens to the daemon's own account alone"
	}
	return "name it as user of one of people if a person uses it"
}

// clockTolerance is how far this machine's clock may differ from the daemon's.
const clockTolerance = 5 * time.Second

// describeAccess describes the account's access to the sockets. Access to only one of them is normal.
func describeAccess(asks, decides access, uid int) (findings []finding) {
	var other *wire.Problem // not a refusal
	switch {
	case asks.shut && decides.shut:
		return []finding{newFinding("wrong", fmt.Sprintf("this account, uid %d, neither asks nor answers here: %s", uid, asks.err),
			lacksAccess(decides)+"; put it into the group of api.agent_group if agents run as it")}
	case asks.shut && decides.err == nil:
		findings = append(findings, newFinding("note",
			"this account answers as "+decides.me.Name+"; it cannot ask here, which is as it should be", ""))
	case asks.err != nil:
		remedy := "start it with: daycared serve"
		if !wire.IsConnectionError(asks.err) {
			remedy = "" // the error says what to do
		}
		findings = append(findings, newFinding("wrong", "the daemon cannot take questions: "+asks.err.Error(), remedy))
	default:
		findings = append(findings, newFinding("ok", "the daemon takes questions", ""))
	}
	switch {
	case decides.shut && asks.err == nil:
		findings = append(findings, newFinding("note",
			"this account asks; it cannot answer here, which is as it should be for agents",
			lacksAccess(decides)))
	case errors.As(decides.err, &other) && asks.err == nil:
		findings = append(findings, newFinding("note", "this is not the socket of people: "+decides.err.Error(), ""))
	case decides.err != nil && asks.err == nil:
		findings = append(findings, newFinding("wrong", "people cannot answer here: "+decides.err.Error(), ""))
	case decides.err == nil:
		if note := stopNote(decides.me); note != "" {
			findings = append(findings, newFinding("note", note, "go on with: daycared resume"))
		}
		findings = append(findings, newFinding("ok",
			fmt.Sprintf("this account answers as %s; %d waiting", decides.me.Name, decides.open), ""))
	}
	if by := decides.ahead.Round(time.Second); by.Abs() >= clockTolerance {
		what := fmt.Sprintf("the clock of this machine is %s ahead of the database's, which counts", by)
		if by < 0 {
			what = fmt.Sprintf("the clock of this machine is %s behind the database's, which counts", -by)
		}
		findings = append(findings, newFinding("wrong", what, "set the clock of this machine, or of the database's"))
	}
	for _, c := range decides.channels {
		if c.OK {
			findings = append(findings, newFinding("ok", c.Name+" is connected", ""))
		} else {
			findings = append(findings, newFinding("wrong", c.Name+": "+c.Text, ""))
		}
	}
	return findings
}

// examinePeople says how people can be reached: according to the running daemon, or to the configuration, which does not know pairings.
func (c *CLI) examinePeople(cfg *config.Config, s engine.Settings, told []admin.Person) []finding {
	var findings []finding
	if cfg.Connectors.Terminal.Enabled && !terminal.IsConsole(c.In) {
		findings = append(findings, newFinding("note", "this shell has no console; a daemon started here could not prompt in it", ""))
	}
	kinds := connectors.KindNames()
	for _, p := range s.People {
		reached := slices.ContainsFunc(kinds, func(kind string) bool { return p.Addresses[kind] != "" && cfg.IsEnabled(kind) })
		if at := slices.IndexFunc(told, func(t admin.Person) bool { return t.Name == p.Name }); at >= 0 {
			reached = len(told[at].Via) > 0
		}
		if reached || p.UID != permissions.NoUID {
			continue
		}
		via := ""
		if first := slices.IndexFunc(kinds, cfg.IsEnabled); first > 0 {
			via = " --via " + kinds[first]
		}
		findings = append(findings, newFinding("wrong", p.Name+" can be reached by no channel that is switched on",
			"pair a phone with: daycared pair "+p.Name+via+"; or give "+p.Name+" a user, who opens daycared inbox"))
	}
	return findings
}

// findings returns the results of the inspection: wrong if they prevent this account from serving, otherwise notes.
func (in *inspection) findings() (all []finding) {
	for _, o := range in.found {
		level := "note"
		if o.fatal && in.as.self() {
			level = "wrong"
		}
		all = append(all, found(level, o.Problem))
	}
	if !in.as.self() {
		all = append(all, newFinding("note", "files, ports and programs were "+in.scope(), "run doctor as that account"))
	} else if len(in.blind) > 0 {
		all = append(all, newFinding("note", "files, ports and programs were "+in.scope(), ""))
	}
	return all
}

const storeTime = 20 * time.Second

// examineData checks the content of the data directory as far as this account may read it. Its modes were checked before.
func (in *inspection) examineData(ctx context.Context) []finding {
	dir := in.paths.DataDir
	_, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []finding{newFinding("note", "the data directory "+dir+" does not exist yet", "daycared serve makes it")}
	case errors.Is(err, fs.ErrPermission):
		return []finding{newFinding("note", "the data directory "+dir+" cannot be looked at from this account", "")}
	case err != nil, slices.ContainsFunc(in.found, func(o observation) bool { return o.Key == "data_dir" }):
		return nil // reported already
	}
	var unwell *store.Error
	if in.paths.Database != "" {
		return in.examineServer(ctx)
	}
	file := filepath.Join(dir, storeName)
	if exists(file) && in.running == nil && !in.locked() {
		ctx, done := context.WithTimeout(ctx, storeTime)
		defer done()
		if err := store.Inspect(ctx, file); errors.As(err, &unwell) {
			return []finding{newFinding("wrong", unwell.What, "put a backup in its place with: daycared restore FILE (those that daycared backup "+
				"made lie in "+filepath.Join(dir, "backups")+")")}
		} else if err != nil && ctx.Err() == nil {
			return []finding{newFinding("note", "the store "+file+" cannot be looked at: "+err.Error(), "")}
		}
	}
	if err := store.CheckKey(ctx, storeOptions(in.paths, nil)); errors.As(err, &unwell) {
		return []finding{newFinding("wrong", unwell.What, unwell.Advice)}
	}
	all := []finding{newFinding("ok", "data directory "+dir, "")}
	if at, err := store.NewestEntry(ctx, file); err == nil && time.Until(at) > time.Minute {
		all = append(all, clockBehind("of this machine", at)...)
	}
	return all
}

// examineServer looks at the PostgreSQL database that has the store.
func (in *inspection) examineServer(ctx context.Context) []finding {
	ctx, done := context.WithTimeout(ctx, storeTime)
	defer done()
	var unwell *store.Error
	found, err := store.InspectServer(ctx, storeOptions(in.paths, nil))
	switch {
	case errors.As(err, &unwell):
		return []finding{newFinding("wrong", unwell.What, unwell.Advice)}
	case err != nil:
		return []finding{newFinding("wrong", err.Error(), "")}
	}
	used := newFinding("ok", found.Name+", used by no daemon", "")
	if at := strings.Join(placesOf(found), "; "); found.Differ() {
		used = newFinding("wrong", found.Name+": its daemons go by different settings, at "+at, sameSettings)
	} else if at != "" {
		used = newFinding("ok", found.Name+", used by the daemons at "+at, "")
	}
	all := append([]finding{used}, clockBehind("of the database", found.NewestEntry)...)
	if !found.Linked && in.wantsAccount() {
		all = append(all, newFinding("note", notLinkedYet, "run: daycared link whatsapp"))
	}
	return all
}

// clockBehind says that a clock is behind the newest entry of the audit, unless that is zero.
func clockBehind(whose string, newest time.Time) []finding {
	if newest.IsZero() {
		return nil
	}
	what := fmt.Sprintf("the clock %s is behind: the newest entry of the audit is of %s", whose, stamp(newest, time.Local))
	return []finding{newFinding("wrong", what, "set the clock; until then what was given counts for longer than people meant")}
}

// examineAdminKey checks that the admin key file holds a key: without a valid one, the daemon's account is not recognized as the
// operator's. It reports nothing to an account that may not read the file.
func (in *inspection) examineAdminKey() []finding {
	text, err := config.ReadFile(in.paths.AdminKey, maxSecret)
	if err != nil || isAdminKey(text) {
		return nil
	}
	return []finding{newFinding("wrong", in.paths.AdminKey+" holds no admin key, so the daemon does not know its operator",
		"start the daemon again; it replaces the key and logs that")}
}

// examineListener says whether remote agents are served. Problems with the port were reported before.
func (in *inspection) examineListener() []finding {
	listen := in.cfg.API.Listen
	switch {
	case listen == "":
		return nil
	case in.running == nil:
		return []finding{newFinding("note", "no daemon was found at api.listen, "+listen, "start it with: daycared serve")}
	case wire.Value(in.running.Listen) != listen:
		return []finding{newFinding("note", "the daemon does not listen at "+listen+" yet", "start it again")}
	}
	scheme := "http://"
	if in.cfg.API.TLSCertFile != "" {
		scheme = "https://"
	}
	return []finding{newFinding("ok", "agents elsewhere are answered at "+scheme+listen, "")}
}

// examineFaults says what the running daemon finds wrong with itself, but for the audit key if the findings are about it already.
func examineFaults(running *admin.Status, said []finding, paths config.Paths) (all []finding) {
	if running == nil {
		return nil
	}
	for _, fault := range running.Faults {
		if what, remedy, _ := strings.Cut(fault, "; "); !slices.ContainsFunc(said, func(f finding) bool {
			return f.Level == "wrong" && strings.Contains(f.What, paths.AuditKey) && strings.Contains(what, paths.AuditKey)
		}) {
			all = append(all, newFinding("wrong", what, remedy))
		}
	}
	return all
}

// examineReach says whom the running daemon can reach now. An unreachable person is reported by examinePeople.
func examineReach(running *admin.Status) []finding {
	if running == nil || running.Reachable {
		return nil
	}
	var why []string
	for _, p := range running.People {
		text := p.Text
		if !strings.Contains(text, p.Name) {
			text = p.Name + ": " + text
		}
		why = append(why, text)
	}
	if len(why) == 0 {
		why = []string{"no channel has anybody to ask"}
	}
	return []finding{newFinding("wrong", "nobody can be reached: "+strings.Join(why, "; "),
		"open daycared inbox, or pair a phone with: daycared pair NAME, or let requests wait for somebody with api.admin_reachable")}
}

// examineLocks says which rows are missing, and who is locked, and removes them from the people whose reachability is reported.
func examineLocks(running *admin.Status, s *engine.Settings) (all []finding) {
	if running == nil {
		return nil
	}
	for _, remedy := range running.Missing {
		all = append(all, newFinding("wrong", deletedRow, remedy))
	}
	for _, l := range running.Locked {
		all = append(all, newFinding("note", l.Person+" is locked "+lockedSince(l)+": nothing from their accounts counts",
			"daycared unlock "+l.Person))
		names := append(slices.Clone(l.Holds), l.Person)
		s.People = slices.DeleteFunc(slices.Clone(s.People), func(p connectors.Person) bool { return slices.Contains(names, p.Name) })
	}
	return all
}

// callTime bounds each call to a service.
const callTime = 3 * time.Second

// examineServices calls the services that the daemon would call: Telegram, unless a daemon is connected, and the models. A model
// receives neither a key nor a question.
func (in *inspection) examineServices(ctx context.Context) (all []finding) {
	on := in.cfg.Connectors.Telegram
	if token, err := in.cli.telegramToken(on.TokenFile); on.Enabled && in.running == nil && err == nil {
		limited, done := context.WithTimeout(ctx, callTime)
		bot, err := newBot(token, on.APIURL, nil, slog.New(slog.DiscardHandler)).Bot(limited)
		done()
		if err != nil {
			all = append(all, found("wrong", in.cfg.Problem("connectors.telegram.api_url", "connectors.telegram: at %s, %v; look at the network, "+
				"the address and the token", on.APIURL, err)))
		} else {
			all = append(all, newFinding("ok", "@"+bot.Username+" answers at "+on.APIURL, ""))
		}
	}
	tried := map[string]bool{}
	for i, a := range in.cfg.Agents {
		if address := a.Model.BaseURL; address != "" && !tried[address] {
			tried[address] = true
			all = append(all, in.examineModel(ctx, "agents."+strconv.Itoa(i)+".model.base_url", address))
		}
	}
	return all
}

func (in *inspection) examineModel(ctx context.Context, key, address string) finding {
	limited, done := context.WithTimeout(ctx, callTime)
	defer done()
	request, err := http.NewRequestWithContext(limited, http.MethodGet, address+"/models", http.NoBody)
	if err == nil {
		var response *http.Response
		if response, err = http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
			return newFinding("ok", "something answers at "+address+", where a model is said to be", "")
		}
	}
	return found("wrong", in.cfg.Problem(key, "%s: nothing answers at %s (%v); start what serves the model, or write where it is",
		config.KeyName(key), address, wire.Plain(err)))
}

// examineSandbox says which promises of the sandbox this kernel keeps, and whether anything can run in it. If the sandbox is
// disabled, the configuration's warning covers it.
func examineSandbox(cfg *config.Config, own []string) []finding {
	if !cfg.Sandbox {
		return nil
	}
	level := "note" // unless it is needed
	if len(cfg.Agents) > 0 {
		level = "wrong"
	}
	findings := promised(sandbox.Check(), level)
	if err := sandbox.New(sandbox.Options{Own: own}).Ready(); errors.Is(err, sandbox.ErrOwn) {
		findings = append(findings, newFinding(level, "no command of agents can run: "+err.Error(), "move it elsewhere"))
	}
	return findings
}

// promised lists the promises that hold in one finding, and each other one in its own.
func promised(promises []sandbox.Promise, level string) (findings []finding) {
	var held []string
	for _, p := range promises {
		if p.Holds {
			held = append(held, p.Name)
		}
	}
	if len(held) > 0 {
		findings = append(findings, newFinding("ok", "the kernel can hold commands of agents: "+strings.Join(held, ", "), ""))
	}
	for _, p := range promises {
		if !p.Holds {
			findings = append(findings, newFinding(level, "the kernel cannot hold commands of agents: "+p.Name+": "+p.Why+
				"; files and commands are refused to agents", "take Linux 6.12 or newer with Landlock; sandbox: off does without all of it"))
		}
	}
	return findings
}

// tryWithin bounds the test call of one hook.
const tryWithin = 5 * time.Second

// examineConnections finds the connected agents of this account, queries whether they run the hook, if they can be queried, and
// tests the hook of each that does.
func (c *CLI) examineConnections(ctx context.Context, cfg *config.Config, up bool) (findings []finding, table []agentRow) {
	if c.env("HOME") != "" { // without a home there are no agents
		place, err := c.here()
		if err != nil {
			findings = append(findings, newFinding("wrong", "connected agents are not looked for: "+err.Error(), "set it as the agents have it"))
		}
		for _, name := range connect.Names() {
			if err == nil {
				seen, rows := c.examineConnection(ctx, cfg, place, name, up)
				findings, table = append(findings, seen...), append(table, rows...)
			}
		}
	}
	for _, a := range cfg.Agents {
		if len(a.ACP) > 0 {
			table = append(table, boundByACP(a))
		}
	}
	return findings, table
}

// boundByACP is the table row of a configured agent that is a separate program.
func boundByACP(a config.Agent) agentRow {
	row := agentRow{Agent: a.Name, Mode: a.Mode, Verdict: connect.BindsUnless,
		Note: "the daemon sets it before each prompt; what the program's own settings allow, it does not ask about"}
	switch {
	case a.Mode == "":
		row.Mode = "the first that asks"
		row.Note += "; one that offers no mode that is known to ask stays in its own"
	case !acp.Asks(a.Mode):
		row.Verdict, row.Note = connect.Nothing, "not a mode that is known to ask"
	}
	return row
}

// examineConnection checks one agent. Each problem is reported once, with a fix.
func (c *CLI) examineConnection(
	ctx context.Context, cfg *config.Config, place connect.Target, name string, up bool,
) (findings []finding, rows []agentRow) {
	place.Gate = connect.GateAll
	a, _ := place.Find(name)
	again := "write it anew with: daycared connect " + name + " --write"
	if mentions(a, "--gate risky", `"--gate","risky"`) {
		place.Gate = connect.GateRisky
		a, _ = place.Find(name)
		again += " --gate risky"
	}
	has, stale, loose, err := connected(a)
	root := c.managed(a)
	if has == 0 && err == nil && root.verdict == "" {
		return nil, []agentRow{{Agent: name, Mode: "any", Verdict: connect.Nothing, Note: "not connected"}}
	}
	wrong := func(what, remedy string) ([]finding, []agentRow) {
		return []finding{newFinding("wrong", name+what, remedy)}, rowsOf(a, hookStatus{why: "see above"}, managed{})
	}
	switch {
	case err != nil:
		return wrong(": "+err.Error(), "fix that file by hand")
	case loose:
		return wrong(" is connected, and its settings do not say which daemon it asks: the environment that it runs in does", again)
	case has == 0: // only root's files have it
	case stale && !place.Keyboard && mentions(a, " --keyboard"):
		return wrong(" is connected so that its keyboard answers, too, and a route says that people do", again)
	case has < len(a.Files), stale:
		if lacks := missingHooks(a); len(lacks) > 0 {
			return wrong(" is connected in part: it lacks the hooks "+strings.Join(lacks, ", "), again)
		}
		return wrong(" is connected in part, or to another daycared than this", again)
	case !loaded(a):
		return wrong(" is connected, and has not loaded its plugin since that was written", "restart "+name)
	}
	h := c.runsHook(ctx, a, root.verdict != "")
	rows = rowsOf(a, h, root)
	switch {
	case h.why != "":
		findings = append(findings, newFinding("wrong", name+" is connected, and "+h.why, h.remedy))
	case !up: // reported already
		findings = append(findings, newFinding("note", name+" is connected; while the daemon cannot be asked, it is denied what asks", ""))
	case a.Dialect == "":
		findings = append(findings, c.tryTools(ctx, place, a))
	default:
		findings = append(findings, c.tryHook(ctx, cfg, place, a))
	}
	if h.open != "" {
		findings = append(findings, newFinding("note", name+": "+h.open, ""))
	}
	if h.unasked != "" {
		findings = append(findings, newFinding("note", name+" was not asked whether it runs the hook: "+h.unasked, ""))
	}
	return findings, rows
}

// mentions reports whether our entries of an agent contain one of these words.
func mentions(a connect.Agent, these ...string) bool {
	return slices.ContainsFunc(a.Files, func(f connect.File) bool {
		s, err := look(f)
		return err == nil && slices.ContainsFunc(these, func(one string) bool { return strings.Contains(s.text, one) })
	})
}

// connected returns how many of an agent's files have entries of ours, and whether any are outdated (stale) or name no daemon (loose).
func connected(a connect.Agent) (has int, stale, loose bool, err error) {
	for _, f := range a.Files {
		s, err := look(f)
		if err != nil || !s.there {
			if err != nil {
				return 0, false, false, err
			}
			continue
		}
		clean, err := s.Remove(s.text)
		if err != nil {
			return 0, false, false, fmt.Errorf("read %s: %w", s.path, err)
		}
		if clean == s.text {
			continue
		}
		has++
		next, err := s.Install(s.text)
		if err != nil {
			return 0, false, false, fmt.Errorf("%s: %w", s.path, err)
		}
		stale = stale || next != s.text
		loose = loose || !s.Pinned(s.text)
	}
	return has, stale, loose, nil
}

// missingHooks lists our hooks that are not in an agent's settings.
func missingHooks(a connect.Agent) (names []string) {
	for _, f := range a.Files {
		if s, err := look(f); err == nil {
			names = append(names, s.Missing(s.text)...)
		}
	}
	return names
}

// loaded reports whether the agent has loaded our entries, for agents that leave a mark when they do.
func loaded(a connect.Agent) bool {
	if a.Loaded == "" {
		return true
	}
	written, err := os.Stat(a.Files[len(a.Files)-1].Path)
	mark, none := os.Stat(a.Loaded)
	return err == nil && none == nil && !mark.ModTime().Before(written.ModTime())
}

// tryHook runs the hook as the agent would, for a tool that needs no approval, so that nobody is asked.
func (c *CLI) tryHook(ctx context.Context, cfg *config.Config, place connect.Target, a connect.Agent) finding {
	d, known := hooks.Find(a.Dialect)
	i := slices.IndexFunc(cfg.Tools.Auto, func(t string) bool { return !strings.ContainsAny(t, `*?[\`) })
	if !known || i < 0 {
		return newFinding("note", a.Name+" is connected; tools.auto names no tool to try its hook with", "")
	}
	tool := cfg.Tools.Auto[i]
	limited, done := context.WithTimeout(ctx, 2*tryWithin)
	defer done()
	args := append(slices.Clone(place.Command[1:]), "hook", d.Name, "--within", tryWithin.String())
	cmd := exec.CommandContext(limited, place.Command[0], args...) //nolint:gosec // this very program
	cmd.Env = c.Environ
	cmd.Stdin = bytes.NewReader(d.Probe(tool, place.Home))
	began := time.Now()
	out, err := cmd.Output()
	if err != nil || !d.Allows(out) {
		return newFinding("wrong", fmt.Sprintf("%s is connected, and its hook denies even %s, which runs by itself",
			a.Name, tool), "see what it says with: daycared hook "+d.Name)
	}
	gate := ""
	if place.Gate == connect.GateRisky {
		gate = "; it asks about what is risky (--gate risky), and leaves what is harmless in its folder to " + a.Name
	}
	return newFinding("ok", fmt.Sprintf("%s is connected: its hook asked and was answered in %d ms%s",
		a.Name, time.Since(began).Milliseconds(), gate), "")
}

// tryTools starts the MCP server as the agent would, and initializes a session.
func (c *CLI) tryTools(ctx context.Context, place connect.Target, a connect.Agent) finding {
	name, err := c.greet(ctx, place)
	if err != nil || name != "daycared" {
		return newFinding("wrong", fmt.Sprintf("%s is connected, and daycared mcp does not answer it: %v", a.Name, err),
			"see what it says with: daycared mcp")
	}
	return newFinding("ok", a.Name+" is connected: daycared mcp answered; it enforces nothing, its model is told of the tools", "")
}

func (c *CLI) greet(ctx context.Context, place connect.Target) (name string, err error) {
	limited, done := context.WithTimeout(ctx, tryWithin)
	defer done()
	args := append(slices.Clone(place.Command[1:]), "mcp")
	cmd := exec.CommandContext(limited, place.Command[0], args...) //nolint:gosec // this very program
	cmd.Env = c.Environ
	return mcp.Greet(limited, cmd, version)
}
